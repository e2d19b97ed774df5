//! A worker as its controller sees it: its process, the way to it, and what it says.

use crate::protocol::frame::PackedSecond;
use crate::protocol::offset::Offset;
use crate::protocol::worker::{FromWorker, HostCpuShare, WorkerHost};
use crate::remote::channel::{ProgramInput, Running};
use crate::remote::transport::Transport;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

pub(super) enum WorkerEvent {
    Message(FromWorker),
    Second(PackedSecond),
    Lost(String),
}

pub(super) struct PoolMember {
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
