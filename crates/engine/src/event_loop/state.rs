//! State of a load thread: its users, its connections, and the operations in flight.

use super::alarm::Alarm;
use super::induced::Induced;
use crate::arrivals::Schedule;
use crate::claim::Block;
use crate::net::{Net, Ready};
use crate::shared::Shared;
use dyno_record::Recorder;
use dyno_types::{Driver, Outcome, Request};
use dyno_workload::Hooks;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not open; another attempt is made at `retry_ns`.
    Closed {
        retry_ns: u64,
    },
    Opening {
        since_ns: u64,
    },
    /// Awaiting this reply of the greeting.
    Greeting {
        reply: u16,
        since_ns: u64,
    },
    Ready,
}

/// A reply that is awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited {
    pub op: u32,
    pub generation: u32,
    pub command: u32,
    /// The answer to what preceded a command, not to the command.
    pub preamble: bool,
}

pub(super) struct Connection<S> {
    pub socket: Option<S>,
    pub state: State,
    pub user: u32,
    pub node: u16,
    pub awaited: VecDeque<Awaited>,
    /// How many of the newest awaited replies belong to output not yet sent.
    pub unsent: usize,
    pub input: Vec<u8>,
    pub output: Vec<u8>,
    pub written: usize,
    pub watching: bool,
    pub dirty: bool,
    pub timeouts: u8,
    /// When the last bytes before those at hand arrived, by the kernel.
    pub heard_ns: u64,
    pub backoff_ns: u64,
    pub ever_ready: bool,
    /// Outcome of the last failed attempt to open it: until the next one, whatever needs it ends so.
    pub refused: Option<Outcome>,
    /// It is being made anew on purpose, or for a user that begins: that one's places wait for it.
    pub renewed: bool,
}

/// User of connections on which nodes are checked.
pub(super) const CHECKER: u32 = u32::MAX;

/// Checks of one node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Monitor {
    /// The connection, once it was needed.
    pub connection: Option<u32>,
    /// When the check under way was sent.
    pub asked_ns: Option<u64>,
    /// It has been without its answer for too long when last looked at. What had arrived by then has been read since.
    pub overdue: bool,
    /// When the last one began.
    pub begun_ns: u64,
}

/// A command that waits for a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parked {
    pub(super) op: u32,
    pub(super) generation: u32,
    pub(super) command: u32,
    /// Outcome of its op if there is none.
    pub(super) outcome: Outcome,
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
}

/// Why nothing more is sent, and until when replies are awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// When operations that are still under way end as aborted.
    pub until_ns: u64,
    /// All operations that were asked for have been sent, rather than that the time is over: none may be lost that a server
    /// would have answered.
    pub counted: bool,
    /// Operations under way when this was looked at last.
    pub left: usize,
}

impl Drain {
    /// Not begun.
    pub const NONE: Drain = Drain { until_ns: u64::MAX, counted: false, left: 0 };
}

/// A user with its connections by node; in the open loop a connection.
#[derive(Debug, Default)]
pub(super) struct VirtualUser {
    pub(super) connections: Vec<Option<u32>>,
    /// Pause after a lost or refused connection, nanoseconds; doubles until an operation succeeds.
    pub(super) penalty_ns: u64,
    /// Operations begun by this user (for workloads whose indexes belong to users).
    pub(super) position: u64,
    /// Operations of this user that are measured.
    pub(super) measured: u64,
    /// The user does nothing any more.
    pub(super) gone: bool,
    /// Number of its connections that are ready.
    pub(super) ready: u16,
    /// Operations begun since its connection was made, and those under way, where connections are made anew after so many.
    pub(super) since_connect: u64,
    pub(super) under_way: u32,
    /// Its places that wait for the new connection: when each became free.
    pub(super) held: Vec<u64>,
}

/// An operation in flight. What every operation touches comes first, so that it fills few cache lines: with many under way
/// they do not fit the first cache.
#[repr(C)]
pub(super) struct Op<X> {
    pub(super) generation: u32,
    pub(super) user: u32,
    pub(super) connection: u32,
    pub(super) active: bool,
    /// A question of the driver's own: not recorded.
    pub(super) internal: bool,
    /// Begun in the warm-up.
    pub(super) warm: bool,
    /// The end frees its user; not so for passengers of a batch.
    pub(super) holds_place: bool,
    pub(super) hops: u8,
    pub(super) first_outcome: Outcome,
    pub(super) begun_ns: u64,
    pub(super) intended_ns: u64,
    pub(super) sent_ns: u64,
    pub(super) first_intended_ns: u64,
    pub(super) first_sent_ns: u64,
    /// Open loop: when a client that is never late would begin the request under way.
    pub(super) ideal_ns: u64,
    /// Open loop: when it was due and had a place, as things were.
    pub(super) ready_ns: u64,
    pub(super) request: Request,
    /// The other operations of the batch that this one leads.
    pub(super) passengers: Vec<u32>,
    /// Attempts of an insert that have failed.
    pub(super) attempts: u64,
    /// Time that the last reply took to decode, nanoseconds, where values are verified meanwhile.
    pub(super) verify_ns: u64,
    pub(super) exchange: X,
    /// The first request of a script, where the workload has scripts or wants to see it again.
    pub(super) first: Request,
}

impl<X> Op<X> {
    /// Open loop: no client could begin it before this time.
    #[inline]
    pub(super) fn begins_from(&mut self, ns: u64) {
        self.ideal_ns = self.ideal_ns.max(ns);
        self.ready_ns = self.ready_ns.max(ns);
    }
}

/// A load thread.
pub struct LoadThread<D: Driver, N: Net> {
    pub(super) shared: Arc<Shared>,
    pub(super) thread: usize,
    pub(super) hooks: Hooks,
    pub(super) per_user: bool,
    /// The workload is told the time of each request.
    pub(super) timed: bool,
    pub(super) driver: D,
    pub(super) net: N,
    pub(super) recorder: Recorder,
    pub(super) users: Vec<VirtualUser>,
    pub(super) connections: Vec<Connection<N::Socket>>,
    pub(super) ops: Vec<Op<D::Exchange>>,
    pub(super) free_ops: Vec<u32>,
    pub(super) in_flight: usize,
    /// Users with a connection that is ready, and when their time was counted last.
    pub(super) connected: usize,
    pub(super) counted_ns: u64,
    /// Users (closed loop: with the time they became ready) or free places on connections (open loop).
    pub(super) idle: VecDeque<(u32, u64)>,
    /// Open loop: when each of the idle places would be free if the client were never late.
    pub(super) free_ns: BinaryHeap<Reverse<u64>>,
    /// Users that think or are being kept from a dead server: (until, user).
    pub(super) resting: BinaryHeap<Reverse<(u64, u32)>>,
    /// Failed inserts to be tried again: (when, op).
    pub(super) retries: BinaryHeap<Reverse<(u64, u32)>>,
    /// Arrivals to dispatch, and the same arrivals run ahead to count those that are due.
    pub(super) schedule: Option<Schedule>,
    pub(super) due: Option<Schedule>,
    pub(super) backlog: u64,
    /// Open loop: when an arrival last found no free connection.
    pub(super) starved_ns: u64,
    pub(super) block: Block,
    /// First open-loop index beyond the end.
    pub(super) index_end: u64,
    pub(super) alarm: Alarm,
    /// Open loop: what the client's own lags make of the server's times.
    pub(super) induced: Induced,
    /// Operations that share one exchange.
    pub(super) batch: usize,
    pub(super) batch_requests: Vec<Request>,
    pub(super) dirty: Vec<u32>,
    pub(super) ready: Vec<Ready>,
    /// Connections that are read on in the next pass.
    pub(super) unread: Vec<Ready>,
    pub(super) buffer: Vec<u8>,
    pub(super) spare: Vec<Vec<u8>>,
    pub(super) retrying: Vec<u32>,
    /// Users that begin later: (when, user), the next one first.
    pub(super) late: VecDeque<(u64, u32)>,
    /// Users whose connections are to be made anew.
    pub(super) renewals: Vec<u32>,
    /// Commands that wait for a node to be sent to once more.
    pub(super) parked: Vec<Parked>,
    pub(super) unsettled: usize,
    pub(super) next_retry_ns: u64,
    pub(super) next_sweep_ns: u64,
    pub(super) next_topology_ns: u64,
    /// Checks of each node.
    pub(super) monitors: Vec<Monitor>,
    pub(super) next_check_ns: u64,
    /// An operation has been without its reply for long, and when to look again.
    pub(super) unanswered: bool,
    pub(super) next_unanswered_ns: u64,
    pub(super) next_swap_ns: u64,
    pub(super) epoch_ns: u64,
    pub(super) measure_ns: u64,
    pub(super) end_ns: u64,
    /// When the measured phase is over at the latest, as far as that is known yet.
    pub(super) bound_ns: u64,
    /// The last completion of a measured operation.
    pub(super) done_ns: u64,
    /// Successes of measured operations.
    pub(super) completed: u64,
    /// Closed loop: when the first user had nothing left to do, and the successes until then.
    pub(super) first_out: Option<(u64, u64)>,
    /// Time of users in the measured phase that the histograms lack, less what they hold of times outside it, nanoseconds.
    pub(super) clipped_ns: i64,
    pub(super) measuring: bool,
    pub(super) issued_all: bool,
    /// Number of the first user.
    pub(super) first_user: u64,
    /// Users that have not begun all of their share, where operations belong to users.
    pub(super) users_with_quota: usize,
    pub(super) drain: Drain,
    pub(super) errors: Vec<(Outcome, String)>,
}

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// Keeps one text per class of error, the first.
    pub(super) fn remember(&mut self, outcome: Outcome, text: &str) {
        if self.errors.iter().all(|(o, _)| *o != outcome) {
            self.errors.push((outcome, text.to_owned()));
        }
    }
}
