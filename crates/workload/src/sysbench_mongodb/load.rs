//! The loader: one request is one insert of a batch into one collection.
//!
//! The original loads a collection with one thread. Here any number of threads may: the batches of a collection are
//! handed out in order, under a lock that is held for a scan of the generator (half of what writing the
//! documents takes), and written side by side. So many collections are loaded at a time as there are loader threads.

use super::LOAD_METRIC;
use super::config::SysbenchConfig;
use super::content::SysbenchContent;
use super::generator::Generator;
use super::shapes::Command;
use crate::java_random::JavaRandom;
use crate::ycsb::BadProperty;
use crate::{Draw, Frontier, Workload};
use dyno_types::{Content, Outcome, Request, Verb};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The next batch of a collection.
#[derive(Debug)]
struct BatchCursor {
    next: u32,
    random: JavaRandom,
}

/// The load phase.
#[derive(Debug)]
pub struct SysbenchLoad {
    metrics: Vec<String>,
    content: Arc<SysbenchContent>,
    /// Collections loaded by this process, and how many at a time.
    first: u32,
    collections: u64,
    at_a_time: u64,
    batches: u64,
    batch: u32,
    loaded: u32,
    cursors: Vec<Mutex<BatchCursor>>,
    acknowledged: AtomicU64,
}

impl SysbenchLoad {
    /// Loads all collections.
    pub fn new(config: &SysbenchConfig) -> Result<Self, BadProperty> {
        Self::of_part(config, 0, config.collections)
    }

    /// Loads `count` collections from number `first` on, counted from 0: a worker's share.
    pub fn of_part(config: &SysbenchConfig, first: u32, count: u32) -> Result<Self, BadProperty> {
        config.check()?;
        if config.loaded_documents() == 0 {
            let expected = format!("at most the {} documents of a collection", config.documents);
            return Err(BadProperty::new("NUM_DOCUMENTS_PER_INSERT", config.batch, expected));
        }
        let cursor = |number: u32| {
            Mutex::new(BatchCursor { next: 1, random: Generator::for_collection(first + number + 1) })
        };
        Ok(SysbenchLoad {
            metrics: vec![LOAD_METRIC.into()],
            content: Arc::new(SysbenchContent::new(config)),
            first,
            collections: u64::from(count),
            at_a_time: u64::from(config.loaders.min(count).max(1)),
            batches: config.count_batches(),
            batch: config.batch,
            loaded: config.loaded_documents(),
            cursors: (0..count).map(cursor).collect(),
            acknowledged: AtomicU64::new(0),
        })
    }

    /// Inserts in all: the operations of the run.
    pub fn count_inserts(&self) -> u64 {
        self.collections * self.batches
    }

    /// Documents whose insert has been acknowledged so far.
    pub fn acknowledged_documents(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// The collection that insert number `index` goes to: groups of collections one after the other, the collections
    /// of a group in turn.
    fn collection(&self, index: u64) -> u64 {
        let group = index / (self.at_a_time * self.batches);
        let first = group * self.at_a_time;
        let width = self.at_a_time.min(self.collections.saturating_sub(first)).max(1);
        let within = index - first * self.batches;
        (first + within % width) % self.collections.max(1)
    }
}

impl Workload for SysbenchLoad {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        Arc::clone(&self.content) as Arc<dyn Content>
    }

    fn draw(&self, index: u64) -> Draw {
        Draw { index, kind: 0, seed: 0 }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        let collection = self.collection(draw.index);
        let mut cursor = self.cursors[collection as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let (first, seed) = (cursor.next, cursor.random.state());
        let count = self.batch.min((self.loaded + 1).saturating_sub(first)).max(1);
        for _ in 0..count {
            self.content.generator.skip_document(&mut cursor.random);
        }
        cursor.next = first.saturating_add(count);
        Request {
            verb: Verb::Document,
            shape: Command::Load as u16,
            collection: self.first + collection as u32,
            limit: count,
            key: u64::from(first),
            seed,
            ..Request::default()
        }
    }

    fn next(&self, done: &Request, outcome: Outcome) -> Option<Request> {
        if outcome.is_ok() {
            self.acknowledged.fetch_add(u64::from(done.limit), Ordering::Relaxed);
        }
        None
    }

    fn documents(&self) -> Option<u64> {
        Some(self.collections * u64::from(self.loaded))
    }

    fn is_pure(&self) -> bool {
        true
    }
}
