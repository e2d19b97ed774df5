//! A worker as its controller sees it: its process, the way to it, and what it says.

use crate::protocol::frame::PackedTotals;
use crate::protocol::offset::Offset;
use crate::protocol::worker::{HostCpuShare, WorkerHost};
use crate::remote::channel::{ProgramInput, Running};
use crate::remote::transport::Transport;
use crate::remote::worker::group::controller::GroupEnd;
use dyno_record::{Scale, Totals};
use dyno_session::collection_stats::WorkerPart;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

/// What a worker has measured in a phase, as far as it is known.
#[derive(Clone)]
pub(super) enum OwnTotals {
    /// As it has sent it at its end.
    Whole(PackedTotals),
    /// It was lost before its end: what its seconds have counted, without histograms.
    Counts(Box<Totals>),
}

/// What is kept of a worker's phase.
pub(super) struct OwnPart {
    pub(super) worker: usize,
    pub(super) users: usize,
    /// Length without the warm-up, nanoseconds.
    pub(super) measured_ns: u64,
    pub(super) totals: OwnTotals,
}

impl OwnPart {
    pub(super) fn open(&self) -> WorkerPart {
        let totals = match &self.totals {
            // It was read when it came.
            OwnTotals::Whole(packed) => packed.open().map(|totals| totals.to_dense()).ok(),
            OwnTotals::Counts(totals) => Some((**totals).clone()),
        };
        let totals = totals.unwrap_or_else(|| Totals::new(0, Scale::Ns64));
        WorkerPart { users: self.users, totals, measured_ns: self.measured_ns }
    }
}

pub(super) struct PoolMember {
    /// Its group on another host, which adds up the seconds of all its workers.
    pub(super) group: Option<Arc<GroupEnd>>,
    /// The number in the pool under which its seconds arrive: its group's first worker, or itself.
    pub(super) party: usize,
    pub(super) running: Mutex<Running>,
    pub(super) input: ProgramInput,
    /// Which target it works on.
    pub(super) instance: usize,
    pub(super) number: usize,
    /// Process number, on its own host once it has said hello.
    pub(super) pid: AtomicU32,
    pub(super) transport: Option<Transport>,
    pub(super) log: PathBuf,
    /// Clock beside ours.
    pub(super) clock: Arc<Mutex<Offset>>,
    /// When its last load thread began the last phase, by its own clock, Unix nanoseconds.
    pub(super) began_ns: AtomicU64,
    /// Its host, and the cores of its load threads, as it has said; none before.
    pub(super) on: OnceLock<(WorkerHost, Vec<usize>)>,
    /// CPU time of its host in the last phase.
    pub(super) host_cpu: Mutex<Option<HostCpuShare>>,
    /// The longest time in which it heard nothing of this end in the last phase, nanoseconds.
    pub(super) unheard_ns: AtomicU64,
}
