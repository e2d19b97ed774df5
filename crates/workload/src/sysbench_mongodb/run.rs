//! The run phase: transactions, each a script of commands on one collection.
//!
//! Draws of a transaction, in order: the collection, the `shardKey` where there is one, then for each command its `_id`
//! and its content, just before it is sent; the insert takes the `_id` of the delete before it. A command that fails
//! ends the transaction, and the user's generator goes on from there, as the original's does.

use super::TRANSACTION;
use super::config::{Dialect, Streams, SysbenchConfig};
use super::content::SysbenchContent;
use super::shapes::Command;
use crate::java_random::{Bound, JavaRandom};
use crate::pace::{Pace, Pacer};
use crate::ycsb::BadProperty;
use crate::{Draw, Frontier, Workload};
use dyno_types::rng::{self, Purpose};
use dyno_types::{Content, Outcome, Request, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One user. Only its own load thread touches it.
#[derive(Debug)]
#[repr(align(64))]
struct SysbenchUser {
    /// The generator's state between transactions.
    state: AtomicU64,
    pacer: Pacer,
    dead: AtomicBool,
}

/// The run phase.
#[derive(Debug)]
pub struct SysbenchRun {
    metrics: Vec<String>,
    content: Arc<SysbenchContent>,
    /// Commands of a transaction.
    script: Vec<Command>,
    /// Metric of each command that occurs.
    metric: [u16; Command::ALL.len()],
    transaction: u16,
    collections: Bound,
    /// Values of `shardKey`, and documents of each.
    shards: Option<(Bound, u64)>,
    seed: u64,
    streams: Streams,
    pace: Pace,
    /// True if a failed transaction is its user's last.
    dies: bool,
    users: Vec<SysbenchUser>,
}

impl SysbenchRun {
    /// For `config.writers` users.
    pub fn new(config: &SysbenchConfig) -> Result<Self, BadProperty> {
        config.check()?;
        let script = script(config);
        let mut metrics: Vec<String> = Vec::new();
        let mut metric = [0; Command::ALL.len()];
        for command in Command::ALL {
            if script.contains(&command) {
                metric[command as usize] = metrics.len() as u16;
                metrics.push(command.metric_name().into());
            }
        }
        let transaction = metrics.len() as u16;
        metrics.push(TRANSACTION.into());
        let user = |number: u32| {
            let seed = config.seed.wrapping_add(i64::from(config.first_writer) + i64::from(number));
            SysbenchUser {
                state: AtomicU64::new(JavaRandom::new(seed).state()),
                pacer: Pacer::default(),
                dead: AtomicBool::new(false),
            }
        };
        Ok(SysbenchRun {
            metrics,
            content: Arc::new(SysbenchContent::of_run(config)),
            script,
            metric,
            transaction,
            collections: Bound::new(config.collections),
            shards: config.sharding.map(|s| (Bound::new(s.keys), u64::from(s.each))),
            seed: config.seed as u64 ^ rng::mix_bits(u64::from(config.first_writer)),
            streams: config.streams,
            pace: config.user_pace(),
            dies: config.faithful && config.dialect == Dialect::Y2015,
            users: (0..config.writers).map(user).collect(),
        })
    }

    fn user(&self, request: &Request) -> &SysbenchUser {
        &self.users[request.limit as usize % self.users.len()]
    }

    /// Number of `_id`s that precede those of an `_id`'s `shardKey`.
    fn first_of_shard(&self, id: u64) -> u64 {
        self.shards.map_or(0, |(_, each)| id.saturating_sub(1) / each * each)
    }

    /// The request at `step`, whose draws begin at `random`; `before` is the request that precedes it.
    fn command(&self, step: u16, random: JavaRandom, before: &Request) -> Request {
        let command = self.script[usize::from(step)];
        let key = match command {
            Command::Insert => before.key,
            // Of the transaction's shardKey.
            _ => self.first_of_shard(before.key) + self.content.generator.draw_id(&mut { random }) as u64,
        };
        Request {
            verb: Verb::Document,
            metric: self.metric[command as usize],
            script: self.transaction + 1,
            step,
            shape: command as u16,
            key,
            seed: random.state(),
            ..*before
        }
    }
}

/// The commands of a transaction in order.
fn script(config: &SysbenchConfig) -> Vec<Command> {
    let counts = &config.counts;
    let mut script = Vec::with_capacity(counts.count_commands() as usize);
    for (command, count) in [
        (Command::PointSelect, counts.point_selects),
        (Command::SimpleRange, counts.simple_ranges),
        (Command::SumRange, counts.sum_ranges),
        (Command::OrderRange, counts.order_ranges),
        (Command::DistinctRange, counts.distinct_ranges),
        (Command::IndexUpdate, counts.index_updates),
        (Command::NonIndexUpdate, counts.non_index_updates),
    ] {
        script.extend((0..count).map(|_| command));
    }
    for _ in 0..counts.inserts {
        script.extend([Command::Delete, Command::Insert]);
    }
    script
}

impl Workload for SysbenchRun {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        Arc::clone(&self.content) as Arc<dyn Content>
    }

    fn draw(&self, index: u64) -> Draw {
        let seed = rng::draw_at(self.seed, index, Purpose::Value);
        Draw { index, kind: self.transaction, seed }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        let user = (draw.index % self.users.len() as u64) as u32;
        let mut random = JavaRandom::from_state(match self.streams {
            Streams::Threads => self.users[user as usize].state.load(Ordering::Relaxed),
            Streams::Transactions => draw.seed,
        });
        let collection = random.below(self.collections);
        // The first _id of the shardKey stands for it.
        let key = self.shards.map_or(0, |(keys, each)| u64::from(random.below(keys)) * each + 1);
        let nothing = Request { collection, limit: user, key, ..Request::default() };
        self.command(0, random, &nothing)
    }

    fn spoils(&self, _request: &Request, outcome: Outcome) -> bool {
        // A document that another user has just deleted is no failure: the original counts exceptions.
        !matches!(outcome, Outcome::Ok | Outcome::NotFound)
    }

    fn next(&self, done: &Request, outcome: Outcome) -> Option<Request> {
        let well = !self.spoils(done, outcome);
        let step = usize::from(done.step) + 1;
        let after = self.content.after(done);
        if well && step < self.script.len() {
            return Some(self.command(step as u16, after, done));
        }
        let user = self.user(done);
        user.state.store(after.state(), Ordering::Relaxed);
        if !well && self.dies {
            user.dead.store(true, Ordering::Relaxed);
        }
        None
    }

    fn script(&self, first: &Request) -> Option<u16> {
        first.script.checked_sub(1)
    }

    fn is_per_user(&self) -> bool {
        self.streams == Streams::Threads
    }

    fn resume_ns(&self, first: &Request, now_ns: u64) -> u64 {
        let user = self.user(first);
        if user.dead.load(Ordering::Relaxed) {
            return u64::MAX;
        }
        user.pacer.resume_ns(&self.pace, 1, now_ns, now_ns)
    }

    fn is_pure(&self) -> bool {
        self.streams == Streams::Transactions
    }
}
