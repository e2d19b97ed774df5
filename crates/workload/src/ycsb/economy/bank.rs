//! Knowledge of the money: balances read by operations under way, the pot, and the count at the end.
//!
//! One lock guards the slots of operations under way. It is held for nanoseconds beside operations of microseconds,
//! and this workload measures correctness before speed.

use super::config::EconomyConfig;
use crate::keys::{KeyNames, push_decimal};
use crate::{Draw, Frontier, Workload};
use dyno_types::{Content, Request, Verb};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Step of a request that counts.
const COUNTING: u16 = 200;

/// An operation under way: its accounts, and their balances once they have been read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    keys: [u64; 2],
    balances: [Option<u64>; 2],
    /// Money taken from the pot (1), or on its way to it (-1).
    from_pot: i64,
}

impl Slot {
    pub fn new(first: u64, second: u64) -> Self {
        Slot { keys: [first, second], ..Slot::default() }
    }
}

#[derive(Debug, Default)]
struct Slots {
    all: Vec<Slot>,
    free: Vec<u32>,
}

/// The state of the economy, and the bytes of its requests.
#[derive(Debug)]
pub(super) struct Bank {
    table: String,
    names: KeyNames,
    field: String,
    total: u64,
    slots: Mutex<Slots>,
    pot: AtomicI64,
    /// One more than the newest account's number.
    end: AtomicU64,
    counted: AtomicI64,
    unreadable: AtomicU64,
}

/// Result of counting the money.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Audit {
    /// Money that must be there.
    pub total: u64,
    /// Money that is there.
    pub counted: i64,
    /// Operations of the run.
    pub operations: u64,
    /// Accounts whose balance is no number.
    pub unreadable: u64,
}

impl Audit {
    /// Returns whether the money is what it must be.
    pub fn has_passed(&self) -> bool {
        self.counted == self.total as i64 && self.unreadable == 0
    }

    /// Money that appeared or vanished, for each operation.
    pub fn anomaly_score(&self) -> f64 {
        self.counted.abs_diff(self.total as i64) as f64 / self.operations.max(1) as f64
    }
}

impl Bank {
    /// The slot of operations that need none.
    pub const NO_SLOT: u32 = u32::MAX;

    pub fn new(config: &EconomyConfig) -> Self {
        let core = &config.core;
        Bank {
            table: core.table.clone(),
            names: core.names.clone(),
            field: format!("{}0", core.field_prefix),
            total: config.total_cash,
            slots: Mutex::default(),
            pot: AtomicI64::new(0),
            end: AtomicU64::new(core.record_count),
            counted: AtomicI64::new(0),
            unreadable: AtomicU64::new(0),
        }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an operation's slot until it is freed.
    pub fn take_slot(&self, slot: Slot) -> u32 {
        let mut slots = self.slots();
        match slots.free.pop() {
            Some(at) => {
                slots.all[at as usize] = slot;
                at
            }
            None => {
                slots.all.push(slot);
                slots.all.len() as u32 - 1
            }
        }
    }

    pub fn free_slot(&self, slot: u32) {
        self.slots().free.push(slot);
    }

    pub fn second_key(&self, slot: u32) -> u64 {
        self.slots().all[slot as usize].keys[1]
    }

    /// The new balance of an account that draws from the pot or, where that is empty, gives to it.
    pub fn draw_balance(&self, slot: u32) -> Option<u64> {
        let mut slots = self.slots();
        let slot = &mut slots.all[slot as usize];
        let balance = slot.balances[0]?;
        let take = |pot: i64| (pot > 0).then_some(pot - 1);
        if self.pot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            slot.from_pot = 1;
            return Some(balance + 1);
        }
        let left = balance.checked_sub(1)?;
        slot.from_pot = -1;
        Some(left)
    }

    /// The giving account and its new balance, if it has any money.
    pub fn plan_withdrawal(&self, slot: u32) -> Option<(u64, u64)> {
        let slot = self.slots().all[slot as usize];
        slot.balances[1]?;
        Some((slot.keys[0], slot.balances[0]?.checked_sub(1)?))
    }

    /// The first update has been done: the receiving account and its new balance, or the pot gets the money.
    pub fn plan_deposit(&self, slot: u32) -> Option<(u64, u64)> {
        let slot = self.slots().all[slot as usize];
        match slot.from_pot {
            0 => Some((slot.keys[1], slot.balances[1]? + 1)),
            from_pot => {
                if from_pot < 0 {
                    self.pot.fetch_add(1, Ordering::Relaxed);
                }
                None
            }
        }
    }

    /// The first update has failed: what came from the pot goes back.
    pub fn refund_pot(&self, slot: u32) {
        if self.slots().all[slot as usize].from_pot > 0 {
            self.pot.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An account beyond the loaded ones is being opened.
    pub fn note_opened(&self, key: u64) {
        self.end.fetch_max(key + 1, Ordering::Relaxed);
    }

    pub fn audit_accounts(&self, operations: u64) -> Audit {
        Audit {
            total: self.total,
            counted: self.counted.load(Ordering::Relaxed) + self.pot.load(Ordering::Relaxed),
            operations,
            unreadable: self.unreadable.load(Ordering::Relaxed),
        }
    }
}

impl Content for Bank {
    fn table(&self) -> &str {
        &self.table
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        self.names.render(request.key, out);
    }

    fn fields(&self, request: &Request) -> usize {
        usize::from(matches!(request.verb, Verb::Insert | Verb::Update))
    }

    fn name(&self, _request: &Request, _field: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.field.as_bytes());
    }

    fn value_len(&self, request: &Request, _field: usize) -> usize {
        request.seed.checked_ilog10().map_or(1, |log| log as usize + 1)
    }

    fn value(&self, request: &Request, _field: usize, out: &mut Vec<u8>) {
        push_decimal(request.seed, out);
    }

    fn verifies(&self) -> bool {
        true
    }

    fn verify(&self, request: &Request, _field: &[u8], value: &[u8]) -> bool {
        let balance = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
        if request.step == COUNTING {
            match balance {
                Some(balance) => self.counted.fetch_add(balance as i64, Ordering::Relaxed),
                None => self.unreadable.fetch_add(1, Ordering::Relaxed) as i64,
            };
        } else if request.collection != Bank::NO_SLOT && request.step < 2 {
            self.slots().all[request.collection as usize].balances[usize::from(request.step)] = balance;
        }
        balance.is_some()
    }
}

/// Reads every account once.
#[derive(Debug)]
pub struct AccountReads {
    metrics: Vec<String>,
    bank: Arc<Bank>,
}

impl AccountReads {
    pub(super) fn new(bank: Arc<Bank>) -> Self {
        AccountReads { metrics: vec!["READ".into()], bank }
    }

    /// Number of accounts to read.
    pub fn count_accounts(&self) -> u64 {
        self.bank.end.load(Ordering::Relaxed)
    }
}

impl Workload for AccountReads {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        self.bank.clone()
    }

    fn draw(&self, index: u64) -> Draw {
        Draw { index, kind: 0, seed: 0 }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        Request {
            verb: Verb::Read,
            key: draw.index,
            step: COUNTING,
            collection: Bank::NO_SLOT,
            ..Request::default()
        }
    }

    fn is_pure(&self) -> bool {
        true
    }
}
