//! Operations on the database: keys, values, distributions and mixes.
//!
//! The picture: `index -> draw` is pure; `bind` turns a draw into a request and is the only step that may look at the
//! state of the run (the [`Frontier`] of acknowledged inserts); `next` continues a script of several requests.
//! Nothing here knows of sockets, clocks or files.

pub mod command_mix;
pub mod commands;
pub mod distributions;
pub mod frontier;
pub mod java_random;
pub mod keys;
pub mod mix;
pub mod pace;
pub mod permute;
pub mod pocdriver;
pub mod sysbench_mongodb;
pub mod template;
pub mod values;
pub mod ycsb;

pub use frontier::Frontier;

use dyno_types::{Content, Outcome, Request};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The pure part of one operation: which kind it is and the random words it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The index it was drawn for.
    pub index: u64,
    /// Kind of operation, an index into [`Workload::metrics`].
    pub kind: u16,
    /// Seed of the values.
    pub seed: u64,
}

/// Which of a workload's methods do anything. The engine calls no others on its way through an operation: a call that
/// does nothing costs as much as a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// [`Workload::next`] and [`Workload::script`].
    pub scripts: bool,
    /// [`Workload::settled`].
    pub settled: bool,
    /// [`Workload::answered`].
    pub answered: bool,
    /// [`Workload::resume_ns`].
    pub resume: bool,
}

impl Hooks {
    /// All of them.
    pub const ALL: Hooks = Hooks { scripts: true, settled: true, answered: true, resume: true };
    /// None of them.
    pub const NONE: Hooks = Hooks { scripts: false, settled: false, answered: false, resume: false };
}

/// When a user's next recorded operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRecorded {
    /// There is one.
    Due {
        /// When it is due.
        due: RecordedDue,
        /// True if it may not begin before the operations of this user that are under way have ended.
        waits: bool,
    },
    /// There is one, which may not begin before an operation of another user has ended: it is to be asked for again soon.
    Blocked {
        /// When it is due after the epoch, nanoseconds; `None`: as soon as it may begin.
        at_ns: Option<u64>,
    },
    /// It is not known yet: it is to be asked for again soon, but not before this time after the epoch, nanoseconds, where it
    /// cannot be due earlier.
    Unknown {
        /// Nothing is due before.
        not_before_ns: u64,
    },
    /// There is none.
    Over,
}

/// When a recorded operation is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedDue {
    /// So long after the epoch, nanoseconds.
    At(u64),
    /// So long after the last operation of its user has ended, nanoseconds: when none of them is under way.
    AfterEnd(u64),
    /// So long after the operation of its user before it was due, nanoseconds.
    AfterDue(u64),
    /// As soon as it may begin.
    AtOnce,
}

/// Examples of replies that differ which are kept.
pub const REPLAY_EXAMPLES: usize = 5;

/// Replies of a replay beside those that were recorded. A reply counts once, by the first way in which it differs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplayedReplies {
    /// Replies that were compared.
    pub compared: u64,
    /// There was a reply then, and none now.
    pub missing: u64,
    /// One of the two is an error, or both are of different classes.
    pub error: u64,
    /// They are of different kinds, or one of them is nil.
    pub kind: u64,
    /// They have different sizes.
    pub size: u64,
    /// Connections on which a reply differs: what differs later on the same one may follow from it.
    pub connections: u64,
    /// Replies that were not compared: none was recorded, or replies to the command are never alike.
    pub not_compared: u64,
    /// Errors that were the same then.
    pub errors_as_then: u64,
    /// Some of the first that differ: the command, the reply of then, and that of now.
    pub examples: Vec<[String; 3]>,
    /// Commands that waited for data for as long as they may, and were ended: their connections were made anew.
    pub cut_waits: u64,
    /// What decides when commands are due: `due`, `think`, `rate` or `max`.
    pub pace: String,
    /// Where times were taken then.
    pub point: String,
    /// Recorded times from command to reply, by metric: nanoseconds (to three digits), and how often each came.
    pub then: BTreeMap<String, BTreeMap<u64, u64>>,
    /// Commands that were not sent, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Commands that were not sent because their keys are in several slots of the cluster, by name.
    pub crossing: BTreeMap<String, u64>,
    /// Commands of the recording that are sent, or cross slots.
    pub recorded: u64,
    /// The same of replies beside those of another server, where there is one: its reply stands in place of that of then.
    pub against: Option<Box<ReplayedReplies>>,
    /// Why the recording could not be read to its end.
    pub failure: Option<String>,
}

impl ReplayedReplies {
    /// Adds those of another worker.
    pub fn merge(&mut self, other: ReplayedReplies) {
        let both = [
            (&mut self.compared, other.compared),
            (&mut self.missing, other.missing),
            (&mut self.error, other.error),
            (&mut self.kind, other.kind),
            (&mut self.size, other.size),
            (&mut self.connections, other.connections),
            (&mut self.not_compared, other.not_compared),
            (&mut self.errors_as_then, other.errors_as_then),
            (&mut self.recorded, other.recorded),
            (&mut self.cut_waits, other.cut_waits),
        ];
        both.into_iter().for_each(|(own, more)| *own += more);
        let room = REPLAY_EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.into_iter().take(room));
        for (name, times) in other.then {
            let own = self.then.entry(name).or_default();
            times.into_iter().for_each(|(ns, count)| *own.entry(ns).or_default() += count);
        }
        for (own, more) in [(&mut self.left_out, other.left_out), (&mut self.crossing, other.crossing)] {
            more.into_iter().for_each(|(reason, count)| *own.entry(reason).or_default() += count);
        }
        self.failure = self.failure.take().or(other.failure);
        if self.point.is_empty() {
            (self.point, self.pace) = (other.point, other.pace);
        }
    }
}

/// Numbers of the metrics that the engine records beside those of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnMetrics {
    /// Verification of what was read.
    pub verify: Option<u16>,
    /// A scan's time divided by its records.
    pub scan_per_record: Option<u16>,
    /// Closing a user's connections.
    pub cleanup: Option<u16>,
    /// Time that a recorded operation was held back because the one before it on its connection was not answered yet.
    pub held: Option<u16>,
    /// True if [`Workload::element_metrics`] names any.
    pub elements: bool,
    /// Messages that a server delivers: the wait for each, and the time from its stamp to its receipt where it has one.
    pub messages: Option<(u16, Option<u16>)>,
}

/// A source of operations. One instance is shared by all load threads.
pub trait Workload: Send + Sync {
    /// Names of everything the workload records, in the order of [`Request::metric`].
    fn metrics(&self) -> &[String];

    /// Renders requests as bytes.
    fn content(&self) -> Arc<dyn Content>;

    /// The pure draw for an index.
    fn draw(&self, index: u64) -> Draw;

    /// Binds a draw to a request.
    fn bind(&self, draw: &Draw, frontier: &Frontier) -> Request;

    /// The request for an index: drawn and bound.
    fn request(&self, index: u64, frontier: &Frontier) -> Request {
        self.bind(&self.draw(index), frontier)
    }

    /// Which of the methods below do anything; asked once.
    fn hooks(&self) -> Hooks {
        Hooks::ALL
    }

    /// The request that follows `done` inside the same operation (the update of a read-modify-write), if any.
    fn next(&self, _done: &Request, _outcome: Outcome) -> Option<Request> {
        None
    }

    /// Returns whether what a request has come to is what its whole operation has come to. In a script, a step that
    /// finds nothing need not be a failure.
    fn spoils(&self, _request: &Request, outcome: Outcome) -> bool {
        !outcome.is_ok()
    }

    /// The metric that covers a whole script that began with `first` (READ-MODIFY-WRITE), if it has one.
    fn script(&self, _first: &Request) -> Option<u16> {
        None
    }

    /// Numbers of the metrics that are no requests of the workload, asked once.
    fn own_metrics(&self) -> OwnMetrics {
        OwnMetrics::default()
    }

    /// An operation's request has ended; inserts are acknowledged here, failed ones too (YCSB does the same).
    fn settled(&self, _request: &Request, _frontier: &Frontier) {}

    /// A request has been answered (or given up) with `outcome`; `records` documents were found or written.
    fn answered(&self, _request: &Request, _outcome: Outcome, _records: u32) {}

    /// Returns whether [`Workload::timed`] does anything; asked once.
    fn times_each(&self) -> bool {
        false
    }

    /// A measured request has ended: its time from sending to the reply, and when that was, from the epoch on.
    fn timed(&self, _request: &Request, _service_ns: u64, _done_ns: u64) {}

    /// Returns whether index i belongs to user i modulo the number of users (streams that are defined per thread).
    fn is_per_user(&self) -> bool {
        false
    }

    /// Returns whether every operation is one insert: only these may go out in batches.
    fn only_inserts(&self) -> bool {
        false
    }

    /// When the next operation of a user begins, where operations are recorded ones with users and times of their own. The one
    /// that this speaks of is taken by [`Workload::request`], or by [`Workload::draw`] where it is not to be sent.
    fn next_recorded(&self, _user: u64) -> NextRecorded {
        NextRecorded::Over
    }

    /// Returns whether recorded operations have times.
    fn has_recorded_times(&self) -> bool {
        false
    }

    /// When the next recorded operation of a user is due after the epoch, nanoseconds, whatever it waits for; `None` where none
    /// is known. [`Workload::draw`] takes it.
    fn left_recorded(&self, _user: u64) -> Option<u64> {
        None
    }

    /// The connection of a user whose operations are recorded ones was lost.
    fn connection_lost(&self, _user: u64) {}

    /// Time that a user of a closed loop waits before its first operation, nanoseconds.
    fn begin_ns(&self) -> u64 {
        0
    }

    /// When the user whose operation began with `first` and ended at `now_ns` may begin its next one, on the engine's
    /// clock; `u64::MAX` if never. Asked once for each operation of a closed loop.
    fn resume_ns(&self, _first: &Request, now_ns: u64) -> u64 {
        now_ns
    }

    /// The part of worker process `index` of `total`, where keys are handed out as operations are sent: each process
    /// then has keys of its own. `None`: the workload itself, for all of them.
    fn part(&self, _index: u64, _total: u64) -> Option<Arc<dyn Workload>> {
        None
    }

    /// Returns whether every request is a function of its index alone.
    fn is_pure(&self) -> bool;

    /// Documents that all operations of a load write together, where one operation writes several.
    fn documents(&self) -> Option<u64> {
        None
    }

    /// Records that must exist before this workload makes sense, and the first of their key numbers.
    fn expects(&self) -> Option<(u64, u64)> {
        None
    }

    /// The share of the arrivals that was asked for, for the metrics of operations in their order (`NaN` for others), as it was
    /// written: shares of YCSB need not add up to 1. Empty where nothing was asked for.
    fn asked(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Replies of now beside those that were recorded, where operations are recorded ones.
    fn replayed(&self) -> Option<ReplayedReplies> {
        None
    }

    /// The metrics that count what a request found, element by element, and what it did not find.
    fn element_metrics(&self, _request: &Request) -> Option<(u16, u16)> {
        None
    }

    /// Returns whether its operations are beside those of the load: they are measured under their names, and are in no total.
    fn is_beside(&self) -> bool {
        false
    }

    /// Returns whether requests of a metric may well find nothing: the run is no worse for it.
    fn accepts_misses(&self, _metric: u16) -> bool {
        false
    }

    /// The frontier this workload starts from: everything it expects is there, nothing else is.
    fn frontier(&self) -> Frontier {
        Frontier::new(self.expects().map_or(0, |(count, first)| first.saturating_add(count)))
    }
}
