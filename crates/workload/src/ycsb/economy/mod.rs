//! YCSB+T's closed economy: accounts among which money moves, so that lost updates show as money that appears or
//! vanishes (Dey, Fekete, Nambiar, Röhm, "YCSB+T: Benchmarking web-scale transactional databases", ICDEW 2014).
//!
//! An account is a record with one field, its balance in decimal. What an operation does is a script of plain reads
//! and updates; stores without transactions interleave them, and the audit at the end counts what that has cost.
//! Money is moved by transfers (READMODIFYWRITE) and between an account and a pot that the workload keeps (UPDATE);
//! new accounts are empty.

mod bank;
mod config;

use crate::OwnMetrics;
use crate::ycsb::operations::own_metrics;
pub use bank::{AccountReads, Audit};
pub use config::EconomyConfig;
use dyno_types::metric::CLEANUP;

use super::operations::{OPERATIONS, Operation};
use super::properties::BadProperty;
use super::requests::Chooser;
use crate::mix::Mix;
use crate::{Draw, Frontier, Workload};
use bank::{Bank, Slot};
use dyno_types::limits::REDRAWS;
use dyno_types::rng::{self, Purpose, Stream};
use dyno_types::{Content, Outcome, Request, Verb};
use std::sync::Arc;

/// The closed economy, in one of its two phases.
#[derive(Debug)]
pub struct EconomyWorkload {
    metrics: Vec<String>,
    bank: Arc<Bank>,
    config: EconomyConfig,
    run: Option<EconomyRun>,
}

#[derive(Debug)]
struct EconomyRun {
    mix: Mix,
    chooser: Chooser,
    /// Metric of each operation's whole, by its place in [`OPERATIONS`].
    whole: [u16; OPERATIONS.len()],
    /// Operation of each metric that is a whole.
    operation: Vec<Option<Operation>>,
    read: u16,
    update: u16,
    insert: u16,
    scan: u16,
}

impl EconomyWorkload {
    /// The load phase: index i opens account `insertstart` + i.
    pub fn load_phase(config: &EconomyConfig) -> Self {
        EconomyWorkload {
            metrics: vec!["INSERT".into(), CLEANUP.into()],
            bank: Arc::new(Bank::new(config)),
            config: config.clone(),
            run: None,
        }
    }

    /// The run phase: index i is an operation of the mix.
    pub fn run(config: &EconomyConfig) -> Result<Self, BadProperty> {
        let core = &config.core;
        let weights = core.proportions.all_weights();
        let mix =
            Mix::new(&weights, Some(Operation::Insert as usize), core.mode, core.seed).ok_or_else(|| {
                BadProperty::new("readproportion", weights[0], "weights from 0 on, not all of them 0")
            })?;
        let mut metrics = Vec::new();
        let mut metric = |name: String| {
            metrics.push(name);
            metrics.len() as u16 - 1
        };
        let parts = ["READ", "UPDATE", "INSERT", "SCAN"].map(|name| metric(name.into()));
        let whole = OPERATIONS.map(|(_, name)| {
            metric(format!("TX-{}", name.replace("READ-MODIFY", "READMODIFY").replace("-WRITE", "WRITE")))
        });
        metric(CLEANUP.into());
        let mut operation = vec![None; metrics.len()];
        for (kind, at) in OPERATIONS.iter().zip(whole) {
            operation[usize::from(at)] = Some(kind.0);
        }
        let [read, update, insert, scan] = parts;
        let run =
            EconomyRun { mix, chooser: Chooser::new(core), whole, operation, read, update, insert, scan };
        Ok(EconomyWorkload {
            metrics,
            bank: Arc::new(Bank::new(config)),
            config: config.clone(),
            run: Some(run),
        })
    }

    /// Reads every account once; to be run when the run phase has ended.
    pub fn count(&self) -> Arc<AccountReads> {
        Arc::new(AccountReads::new(self.bank.clone()))
    }

    /// Result of [`EconomyWorkload::count`], after `operations` operations.
    pub fn audit_after(&self, operations: u64) -> Audit {
        self.bank.audit_accounts(operations)
    }

    /// Two different accounts.
    fn pair(&self, run: &EconomyRun, draw: &Draw, newest: u64) -> (u64, u64) {
        let mut stream = Stream::from_bits(draw.seed);
        let place = || run.mix.others_before(draw.index);
        let first = run.chooser.choose_key(&mut stream, place, newest);
        let oldest = self.config.core.insert_start;
        for _ in 0..REDRAWS.min(100) {
            let second = run.chooser.choose_key(&mut stream, place, newest);
            if second != first {
                return (first, second);
            }
        }
        (first, if first == oldest { oldest + 1 } else { first - 1 })
    }

    /// The request that follows a read whose balance is known.
    fn after_read(&self, run: &EconomyRun, done: &Request) -> Option<Request> {
        let operation = run.operation[usize::from(done.script - 1)]?;
        let update = |key, balance, step| Request {
            verb: Verb::Update,
            metric: run.update,
            key,
            seed: balance,
            step,
            ..*done
        };
        match (operation, done.step) {
            (Operation::Update, 0) => {
                let balance = self.bank.draw_balance(done.collection)?;
                Some(update(done.key, balance, 2))
            }
            (Operation::ReadModifyWrite, 0) => {
                Some(Request { key: self.bank.second_key(done.collection), step: 1, ..*done })
            }
            (Operation::ReadModifyWrite, 1) => {
                let (from, balance) = self.bank.plan_withdrawal(done.collection)?;
                Some(update(from, balance, 2))
            }
            _ => None,
        }
    }
}

impl Workload for EconomyWorkload {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn own_metrics(&self) -> OwnMetrics {
        own_metrics(&self.metrics)
    }

    fn content(&self) -> Arc<dyn Content> {
        self.bank.clone()
    }

    fn draw(&self, index: u64) -> Draw {
        let seed = rng::draw_at(self.config.core.seed, index, Purpose::Key);
        match &self.run {
            None => Draw { index, kind: 0, seed },
            Some(run) => Draw { index, kind: run.whole[run.mix.kind(index)], seed },
        }
    }

    fn bind(&self, draw: &Draw, frontier: &Frontier) -> Request {
        let core = &self.config.core;
        let Some(run) = &self.run else {
            let key = core.insert_start + draw.index;
            return Request { verb: Verb::Insert, key, seed: self.config.initial, ..Request::default() };
        };
        let newest = frontier.last().unwrap_or(core.insert_start);
        let (first, second) = self.pair(run, draw, newest);
        let request = Request {
            metric: run.read,
            script: draw.kind + 1,
            key: first,
            collection: Bank::NO_SLOT,
            ..Request::default()
        };
        match run.operation[usize::from(draw.kind)] {
            Some(Operation::Insert) => {
                let key = frontier.next_key();
                self.bank.note_opened(key);
                Request { verb: Verb::Insert, metric: run.insert, key, seed: 0, ..request }
            }
            Some(Operation::Scan) => {
                let choices = u64::from(core.max_scan - core.min_scan) + 1;
                let stream = &mut Stream::new(draw.seed, 0, Purpose::Choice);
                let limit = core.min_scan + stream.next_below(choices) as u32;
                Request { verb: Verb::Scan, metric: run.scan, limit, ..request }
            }
            Some(Operation::Update | Operation::ReadModifyWrite) => {
                Request { collection: self.bank.take_slot(Slot::new(first, second)), ..request }
            }
            _ => request,
        }
    }

    fn next(&self, done: &Request, outcome: Outcome) -> Option<Request> {
        let run = self.run.as_ref()?;
        if done.collection == Bank::NO_SLOT {
            return None;
        }
        let next = match (outcome, done.verb, done.step) {
            (Outcome::Ok, Verb::Read, _) => self.after_read(run, done),
            // Money that was taken from one account goes to the other.
            (Outcome::Ok, Verb::Update, 2) => {
                let second = self.bank.plan_deposit(done.collection);
                second.map(|(key, balance)| Request { key, seed: balance, step: 3, ..*done })
            }
            (failed, Verb::Update, 2) if !failed.is_ok() => {
                self.bank.refund_pot(done.collection);
                None
            }
            _ => None,
        };
        if next.is_none() {
            self.bank.free_slot(done.collection);
        }
        next
    }

    fn script(&self, first: &Request) -> Option<u16> {
        first.script.checked_sub(1)
    }

    fn settled(&self, request: &Request, frontier: &Frontier) {
        if request.verb == Verb::Insert && self.run.is_some() {
            frontier.acknowledge(request.key);
        }
    }

    fn only_inserts(&self) -> bool {
        self.run.is_none()
    }

    fn is_pure(&self) -> bool {
        self.run.is_none()
    }

    fn expects(&self) -> Option<(u64, u64)> {
        let core = &self.config.core;
        self.run.as_ref().map(|_| (core.insert_count, core.insert_start))
    }

    fn frontier(&self) -> Frontier {
        let core = &self.config.core;
        Frontier::new(if self.run.is_some() { core.record_count } else { core.insert_start })
    }
}

#[cfg(test)]
mod tests;
