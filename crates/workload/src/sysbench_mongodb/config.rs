//! Settings of what is loaded and what a transaction consists of.

use crate::pace::Pace;
use crate::ycsb::BadProperty;

/// The value of MAX_TPS that stands for no cap.
pub const UNLIMITED_TPS: u32 = 999_999;

/// Commands of one transaction are numbered in 16 bits.
const COMMANDS: u32 = 60_000;

/// Which of the original's versions is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// February 2015, the version that published results were made with.
    Y2015,
    /// The last one, of 2025.
    Head,
}

/// Where a transaction's random numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Each thread has a generator of its own, as in the original. Neighbouring threads' first draws are correlated.
    Threads,
    /// Each transaction has a generator that is a function of seed and index: transactions are independent of each
    /// other, and of how many threads run them.
    Transactions,
}

/// Number of times that each command occurs in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Finds of one document by `_id`.
    pub point_selects: u32,
    /// Finds of a range of `_id`s.
    pub simple_ranges: u32,
    /// Sums of `k` over a range.
    pub sum_ranges: u32,
    /// Finds of a range, ordered by `c`.
    pub order_ranges: u32,
    /// Different values of `c` in a range.
    pub distinct_ranges: u32,
    /// Increments of `k`.
    pub index_updates: u32,
    /// New values of `c`.
    pub non_index_updates: u32,
    /// Pairs of a delete and an insert of the same `_id`.
    pub inserts: u32,
}

impl Default for Counts {
    fn default() -> Self {
        Counts {
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            index_updates: 1,
            non_index_updates: 1,
            inserts: 1,
        }
    }
}

impl Counts {
    /// Commands of one transaction.
    pub fn count_commands(&self) -> u32 {
        let reads = [
            self.point_selects,
            self.simple_ranges,
            self.sum_ranges,
            self.order_ranges,
            self.distinct_ranges,
        ];
        let writes = [self.index_updates, self.non_index_updates, self.inserts, self.inserts];
        reads.into_iter().chain(writes).fold(0, u32::saturating_add)
    }
}

/// SHARDED=yes: collections are sharded by `shardKey` and `orderId`, and a transaction keeps to one `shardKey`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// Values of `shardKey`, from 0.
    pub keys: u32,
    /// Documents of each, `orderId` from 1.
    pub each: u32,
}

impl Sharding {
    /// `shardKey` and `orderId` of an `_id`.
    pub fn shard_place(self, id: u32) -> (u32, u32) {
        ((id - 1) / self.each, (id - 1) % self.each + 1)
    }
}

/// The workload as configured.
#[derive(Clone, Debug, PartialEq)]
pub struct SysbenchConfig {
    /// Version of the original.
    pub dialect: Dialect,
    /// Collections, `sbtest1` to `sbtestN`.
    pub collections: u32,
    /// Documents of each collection, `_id` 1 to N.
    pub documents: u32,
    /// Spread of documents over shards; the product is `documents`.
    pub sharding: Option<Sharding>,
    /// Documents of one insert of the loader.
    pub batch: u32,
    /// Loader threads; so many collections are loaded at a time.
    pub loaders: u32,
    /// Users of the run phase.
    pub writers: u32,
    /// Number of the first user, where several workers share the work.
    pub first_writer: u32,
    /// Users of all workers together, who share the cap; fewer than `writers` mean this worker alone.
    pub all_writers: u32,
    /// `_id`s of a range.
    pub range_size: u32,
    /// The transaction.
    pub counts: Counts,
    /// Seed of the run phase; user t has seed + t.
    pub seed: i64,
    /// Cap of transactions a second, all users together; [`UNLIMITED_TPS`] and more for none.
    pub max_tps: u32,
    /// Where random numbers come from.
    pub streams: Streams,
    /// Reproduce the original's defects: the rest of a collection that fills no batch is not loaded, the cap is kept
    /// in bursts, and in the version of 2015 a user ends with its first failed transaction.
    pub faithful: bool,
}

impl Default for SysbenchConfig {
    fn default() -> Self {
        SysbenchConfig {
            dialect: Dialect::Head,
            collections: 1,
            documents: 1_000_000,
            sharding: None,
            batch: 1_000,
            loaders: 10,
            writers: 10,
            first_writer: 0,
            all_writers: 0,
            range_size: 100,
            counts: Counts::default(),
            seed: 1,
            max_tps: UNLIMITED_TPS,
            streams: Streams::Threads,
            faithful: false,
        }
    }
}

impl SysbenchConfig {
    /// Refuses what cannot be done; keys are the original's variables.
    pub fn check(&self) -> Result<(), BadProperty> {
        let whole = "a whole number, 1 to 2147483647";
        let most = i32::MAX as u32;
        for (key, value) in [
            ("NUM_COLLECTIONS", self.collections),
            ("NUM_DOCUMENTS_PER_COLLECTION", self.documents),
            ("NUM_DOCUMENTS_PER_INSERT", self.batch),
            ("NUM_LOADER_THREADS", self.loaders),
            ("NUM_WRITER_THREADS", self.writers),
            ("SYSBENCH_RANGE_SIZE", self.range_size),
            ("MAX_TPS", self.max_tps),
        ] {
            if value == 0 || value > most {
                return Err(BadProperty::new(key, value, whole));
            }
        }
        if let Some(Sharding { keys, each }) = self.sharding
            && (keys == 0 || each == 0 || keys.checked_mul(each) != Some(self.documents))
        {
            let expected = format!("such that MAX_SHARD_KEY by {each} DOCS_PER_SHARD is {}", self.documents);
            return Err(BadProperty::new("MAX_SHARD_KEY", keys, expected));
        }
        if self.documents.checked_add(self.range_size).is_none_or(|last| last > most) {
            let expected = "a range that ends below 2147483648 with NUM_DOCUMENTS_PER_COLLECTION added";
            return Err(BadProperty::new("SYSBENCH_RANGE_SIZE", self.range_size, expected));
        }
        match self.counts.count_commands() {
            0 => Err(BadProperty::new("SYSBENCH_POINT_SELECTS", 0, "at least one command in a transaction")),
            n if n > COMMANDS => {
                let expected = format!("{COMMANDS} commands in a transaction at most, not {n}");
                Err(BadProperty::new("SYSBENCH_POINT_SELECTS", self.counts.point_selects, expected))
            }
            _ => Ok(()),
        }
    }

    /// Documents of a collection that are loaded.
    pub fn loaded_documents(&self) -> u32 {
        if self.faithful { self.documents / self.batch * self.batch } else { self.documents }
    }

    /// Batches of a collection.
    pub fn count_batches(&self) -> u64 {
        u64::from(self.loaded_documents().div_ceil(self.batch))
    }

    /// Pace by which a user keeps to its share of the cap.
    pub fn user_pace(&self) -> Pace {
        let (cap, users) = (u64::from(self.max_tps), u64::from(self.writers.max(self.all_writers)));
        match (self.max_tps >= UNLIMITED_TPS, self.faithful, self.dialect) {
            (true, ..) => Pace::Free,
            (_, false, _) => Pace::cap(cap, users),
            (_, true, Dialect::Y2015) => Pace::Quota { units: cap / users + 1 },
            (_, true, Dialect::Head) => Pace::Quota { units: cap / users },
        }
    }
}
