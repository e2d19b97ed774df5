//! A load thread: its parts, and what they share.

use super::dispatcher::Dispatcher;
use super::operations::Operations;
use super::phase_clock::PhaseClock;
use super::pool::Connections;
use crate::net::Net;
use crate::shared::RunState;
use dyno_record::Recorder;
use dyno_types::system_error::without_numbers;
use dyno_types::{Driver, Outcome};
use dyno_workload::Hooks;
use std::collections::VecDeque;
use std::sync::Arc;

/// A recorded transaction: one operation, whose commands have times of their own.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenTransaction {
    /// Its number among those of its user.
    pub(super) number: u64,
    pub(super) metric: u16,
    /// Due in the warm-up.
    pub(super) warm: bool,
    /// Nothing more of it is sent.
    pub(super) is_complete: bool,
    /// Commands under way.
    pub(super) under_way: u32,
    pub(super) intended_ns: u64,
    pub(super) sent_ns: u64,
    /// When a client that is never late would have ended the last of its commands.
    pub(super) ideal_ns: u64,
    pub(super) outcome: Outcome,
}

/// State of a user whose operations are recorded ones.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedUser {
    /// Operations under way.
    pub(super) under_way: u32,
    /// The node that has ended the last operation.
    pub(super) node: u16,
    /// True if the end of an operation is what it waits for.
    pub(super) waits: bool,
    /// When the last operation was due.
    pub(super) due_ns: u64,
    /// Transactions that have begun and not ended, in their order: several where commands are sent without waiting.
    pub(super) transactions: VecDeque<OpenTransaction>,
    /// Number of those that have begun.
    pub(super) begun: u64,
    /// When the last operation ended, and when a client that is never late would have ended it.
    pub(super) ended_ns: u64,
    pub(super) ideal_ns: u64,
    /// Not before this time, and the pause that led to it.
    pub(super) pause_until_ns: u64,
    pub(super) penalty_ns: u64,
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
    /// Where its operations are recorded ones.
    pub(super) recorded: RecordedUser,
}

/// A load thread. Each field of its state belongs to one part: `dispatcher` (what begins, and when), `pool` (connections),
/// `operations` (what is under way) or `clock` (the phase).
pub struct LoadThread<D: Driver, N: Net> {
    pub(super) shared: Arc<RunState>,
    pub(super) thread: usize,
    pub(super) hooks: Hooks,
    pub(super) driver: D,
    pub(super) net: N,
    pub(super) recorder: Recorder,
    pub(super) users: Vec<VirtualUser>,
    pub(super) dispatcher: Dispatcher,
    pub(super) pool: Connections<N::Socket>,
    pub(super) operations: Operations<D::Exchange>,
    pub(super) clock: PhaseClock,
    pub(super) errors: Vec<(Outcome, String)>,
}

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// Keeps one text per class of error, the first.
    pub(super) fn remember(&mut self, outcome: Outcome, text: &str) {
        let text = &without_numbers(text);
        if self.errors.iter().all(|(o, _)| *o != outcome) {
            self.shared.control.note_error(outcome, text);
            self.errors.push((outcome, text.to_string()));
        }
    }
}
