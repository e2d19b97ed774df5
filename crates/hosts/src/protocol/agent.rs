//! Messages between controller and agent.

use crate::collected::CollectedFile;
use crate::servers::server::fault_preparation::FaultPreparation;
use crate::servers::server::faults::{FaultOutcome, ServerFault, WorkerFault};
use crate::servers::volume::Loaded;
use dyno_config::server::ServerSpec;
use dyno_config::server::tuning::HostTuning;
use dyno_rundir::log::Record;
use dyno_session::watch::sources::DeclaredProcess;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Controller to agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToHost {
    /// The first word.
    Hello {
        /// [`crate::protocol::worker::PROTOCOL`].
        protocol: u32,
        /// Which records of the log are wanted beyond those that are kept in any case: see [`dyno_rundir::log::TargetFilter`].
        #[serde(default)]
        log: Vec<String>,
    },
    /// Asks for the host's clock.
    Clock,
    /// Starts servers.
    Start {
        /// Description of the servers.
        spec: Box<ServerSpec>,
        /// Faults that they are prepared for.
        #[serde(rename = "room")]
        preparation: Box<FaultPreparation>,
        /// The folder of the volume whose data they begin with, and which load these are of.
        volume: Option<(PathBuf, String)>,
        /// Settings of their host, which are put back when they are stopped.
        #[serde(default)]
        tuning: Box<HostTuning>,
    },
    /// Looks for the volume that servers of this description would begin with.
    Look {
        /// Description of the servers.
        spec: Box<ServerSpec>,
    },
    /// Keeps the data of the servers as a volume.
    Keep {
        /// Folder.
        folder: PathBuf,
        /// Record of the data. `count` is of this host's servers.
        record: Box<Loaded>,
    },
    /// Counts keys or documents of the servers.
    CountOwn,
    /// Injects a fault into processes of the servers.
    #[serde(rename = "harm")]
    InjectFault {
        /// The first, from 0, and the one after the last.
        which: (usize, usize),
        /// The fault.
        #[serde(rename = "harm")]
        fault: ServerFault,
    },
    /// Undoes that.
    Heal {
        /// The processes that the answer to it has named.
        which: Vec<usize>,
        /// The fault.
        #[serde(rename = "harm")]
        fault: ServerFault,
        /// Journal entries that the answer has named.
        noted: Vec<u64>,
    },
    /// Makes a cluster or a replica set of servers that run elsewhere, and waits until they are ready.
    Form {
        /// Description of the servers.
        spec: Box<ServerSpec>,
        /// Where they listen, instance by instance.
        nodes: Vec<SocketAddr>,
        /// True if their data say that it has been made.
        #[serde(default)]
        made: bool,
    },
    /// Counts keys or documents of servers that run elsewhere, after they have written them to disk if that is asked for.
    Count {
        /// Description of the servers.
        spec: Box<ServerSpec>,
        /// Where they listen, instance by instance.
        nodes: Vec<SocketAddr>,
        /// True if they write them to disk first.
        save: bool,
    },
    /// Injects a fault into a worker there.
    #[serde(rename = "harm_worker")]
    InjectIntoWorker {
        /// Process number.
        pid: u32,
        /// The fault.
        #[serde(rename = "harm")]
        fault: WorkerFault,
    },
    /// Undoes that.
    HealWorker {
        /// Journal entry that the answer has named.
        noted: u64,
    },
    /// Has monitors tell what they read from now on: the host, the servers, and these processes.
    Watch {
        /// True if the host is read, too: one agent of several on a kernel is enough.
        host: bool,
        /// Time between two ticks, nanoseconds.
        interval_ns: u64,
        /// Databases to be asked, by URI.
        databases: Vec<String>,
        /// Further processes by name.
        processes: Vec<(String, u32)>,
        /// Processes of servers that others have started, by name, if they run there.
        #[serde(default)]
        told: Vec<(String, DeclaredProcess)>,
        /// Further processes of the run on this kernel, which another agent watches.
        #[serde(default)]
        beside: Vec<u32>,
    },
    /// Has monitors take a further sample.
    Mark {
        /// When, on the host's clock, Unix nanoseconds; none: now, and then it is answered.
        at_ns: Option<u64>,
    },
    /// Ends the monitors.
    Unwatch,
    /// Asks for facts about the servers.
    Ask,
    /// Asks for the logs and configurations of the servers.
    Collect,
    /// The load is over: keeps a copy of the data, where the servers' description asks for that.
    Loaded,
    /// Stops the servers and removes what they left.
    Stop,
    /// A sign of life.
    Ping,
}

/// Agent to controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromHost {
    /// The answer to hello.
    Hello {
        /// [`crate::protocol::worker::PROTOCOL`].
        protocol: u32,
        /// Version of dyno.
        dyno: String,
        /// Description of the host, as `environment.json` has it.
        environment: Box<dyno_rundir::schema::Environment>,
    },
    /// The host's Unix time, nanoseconds.
    Clock {
        /// When it read it.
        now_ns: u64,
    },
    /// Servers are there.
    Started {
        /// Their URIs, one for each instance.
        uris: Vec<String>,
        /// Names and numbers of their processes.
        processes: Vec<(String, u32)>,
        /// Cores that they are confined to, ascending; empty: any.
        cores: Vec<usize>,
    },
    /// Facts about the servers.
    Facts {
        /// By name.
        facts: BTreeMap<String, String>,
        /// Why they are no longer there, if they are not.
        died: Option<String>,
    },
    /// Logs and configurations of the servers.
    Collected(Vec<CollectedFile>),
    /// Keys or documents.
    Counted(u64),
    /// A volume, as it was found.
    Found {
        /// Folder.
        folder: PathBuf,
        /// True if anything is there.
        there: bool,
        /// Record of the loaded data, if a load has come to its end.
        record: Option<Box<Loaded>>,
        /// Version that the servers' program reports.
        version: String,
    },
    /// Outcome of a fault.
    #[serde(rename = "harmed")]
    Injected(Box<FaultOutcome>),
    /// It is undone; what there is to say of it.
    Healed(Option<String>),
    /// It is done.
    Done,
    /// It could not be done.
    Failed(String),
    /// Sample of a monitor.
    Sample {
        /// Which.
        source: String,
        /// When, on the host's clock, Unix nanoseconds.
        at_ns: u64,
        /// Figures: name, whether it is a counter, value; none is a missing sample.
        readings: Option<Vec<(String, bool, f64)>>,
    },
    /// The further sample that was asked for has been told.
    Marked {
        /// Cores that other programs of the host have used since the last one, by name: what is not of the run.
        others: BTreeMap<String, f64>,
    },
    /// Something has happened to a monitor.
    Event {
        /// Which.
        source: String,
        /// The fault.
        #[serde(rename = "words")]
        text: String,
    },
    /// A record of the agent's log, on the host's clock.
    Log(Box<Record>),
}
