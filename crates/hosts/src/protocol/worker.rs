//! Messages between controller and worker.

use dyno_config::experiment::Experiment;
use dyno_db::target::TargetInfo;
use dyno_rundir::log::Record;
use dyno_session::load_generator::ReplayedReplies;
use dyno_session::work::Prepared;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the protocol; both ends must speak the same.
pub const PROTOCOL: u32 = 14;

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Records are put in.
    Load,
    /// Warm-up and measurement.
    Measure,
}

impl Stage {
    /// The phase's name in the run directory.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Load => "load",
            Stage::Measure => "measure",
        }
    }
}

/// Work of one worker process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// URI of the target, with its secrets: it travels through the pipe, never on a command line.
    pub target: String,
    /// The cell's experiment.
    pub spec: Box<Experiment>,
    /// Index of the worker among those of this target.
    #[serde(rename = "number")]
    pub index: usize,
    /// Number of workers of this target.
    #[serde(rename = "of")]
    pub total: usize,
    /// Number of targets before this one (server-client pairs); part of nothing but names.
    pub instance: usize,
    /// Cores its load threads may choose from; empty: all that the process may use.
    pub cores: Vec<usize>,
    /// True if the target runs on the same host, so that a core is left to it where the file does not say.
    pub local: bool,
    /// True if the target is known to keep off the load threads' cores, so that they may spin.
    pub spin: bool,
    /// Time the worker goes on without a message of its controller, milliseconds.
    pub lease_ms: u64,
}

/// Controller to worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    /// The first word.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// The controller's Unix time, nanoseconds.
        now_ns: u64,
        /// Which records of the log are wanted beyond those that are kept in any case: see [`dyno_rundir::log::TargetFilter`].
        #[serde(default)]
        log: Vec<String>,
    },
    /// Assigns work.
    Assign(Box<Assignment>),
    /// Asks for the worker's clock.
    Clock,
    /// Makes collections ready and looks for records.
    Prepare,
    /// Connects for a phase.
    Start {
        /// Which.
        stage: Stage,
        /// Findings of the first worker of the target.
        prepared: Prepared,
    },
    /// Begins the phase.
    Begin {
        /// Unix time on the worker's clock, nanoseconds.
        at_ns: u64,
    },
    /// Starts nothing new; waits for replies.
    Stop,
    /// Does not even wait.
    Abort,
    /// A sign of life.
    Ping,
    /// The end.
    Bye,
}

/// A worker's host, as it says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerHost {
    /// Identity of the running kernel: hosts and pods that share it are one host, or one node. Empty if it is not told.
    pub boot_id: String,
    /// Number of the host's cores, also those that the worker may not use; 0 if it is not told.
    pub cores: usize,
    /// Median cost of reading the clock, nanoseconds.
    pub clock_ns: u64,
    /// The kernel's clock source; empty if it is not told.
    pub clock_source: String,
}

/// CPU time of a whole host, as shares of all its cores' time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostCpuShare {
    /// Neither idle nor waiting for input or output.
    pub busy: f64,
    /// Taken away by the hypervisor.
    pub steal: f64,
}

/// Worker to controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// The answer to hello.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// Version of dyno.
        dyno: String,
        /// Process number.
        pid: u32,
        /// The controller's time as heard, nanoseconds.
        heard_ns: u64,
        /// Own Unix time, nanoseconds.
        now_ns: u64,
    },
    /// Clock.
    Clock {
        /// Unix time of the worker, nanoseconds.
        now_ns: u64,
    },
    /// The target answers.
    Ready {
        /// Description of the target.
        target_info: TargetInfo,
        /// Facts about it.
        facts: BTreeMap<String, String>,
        /// The target without secrets.
        shown: String,
        /// Cores of its load threads.
        cores: Vec<usize>,
        /// Its host.
        host: WorkerHost,
    },
    /// Collections are there.
    Prepared(Prepared),
    /// All users have connected.
    Connected,
    /// The phase has ended.
    Done(PhaseDone),
    /// It could not be done.
    Failed {
        /// True if the target, not the request, is at fault.
        unreachable: bool,
        /// Why.
        #[serde(rename = "words")]
        cause: String,
    },
    /// A sign of life, once a second.
    Alive,
    /// Something worth noting.
    Event(String),
    /// A record of the worker's log, on its clock.
    Log(Box<Record>),
}

/// End of a phase at a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseDone {
    /// First error text of every outcome, by the outcome's name.
    pub errors: BTreeMap<String, String>,
    /// Unix time at its beginning, nanoseconds.
    pub epoch_ns: u64,
    /// Time from the begin to that of its last load thread, nanoseconds.
    #[serde(default)]
    pub late_ns: u64,
    /// From the beginning to the last completion, nanoseconds.
    pub elapsed_ns: u64,
    /// Length of its measured phase, nanoseconds.
    #[serde(default)]
    pub measured_ns: u64,
    /// Successes a second until its first user had nothing left to do, where that is known.
    #[serde(default)]
    pub busy_rate: Option<f64>,
    /// Time that connecting took, nanoseconds.
    pub connecting_ns: u64,
    /// True if all threads were on their cores.
    pub pinned: bool,
    /// User CPU, seconds.
    pub user_s: f64,
    /// System CPU, seconds.
    pub system_s: f64,
    /// Largest resident memory, bytes.
    pub peak_resident_bytes: u64,
    /// Load threads.
    pub threads: usize,
    /// Users.
    #[serde(default)]
    pub users: usize,
    /// Requests that were still queued at the end: sent afterwards, and not sent.
    #[serde(default)]
    pub rest: (u64, u64),
    /// Replies of its part of a replay beside those of then.
    #[serde(default)]
    pub replayed: Option<Box<ReplayedReplies>>,
    /// CPU time of its whole host in the measured phase; `None` where the host does not tell it.
    #[serde(default)]
    pub host_cpu: Option<HostCpuShare>,
    /// The longest time in which it heard nothing of its controller, nanoseconds.
    #[serde(default)]
    pub unheard_ns: u64,
    /// Why it ended early, if it did.
    pub ended_early: Option<String>,
}
