//! Experiment file, typed. The doc comments are the descriptions of the published JSON Schema.

use crate::experiment::fault::Fault;
use crate::experiment::kubernetes::Kubernetes;
use crate::experiment::ssh::Ssh;
use crate::experiment::strategies::Strategy;
use crate::experiment::traces::Trace;
use crate::server::placement::{Limits, Placement};
use crate::server::tuning::HostTuning;
use crate::server::{IfNotPermitted, ServerSpec};
use crate::values::{Cores, Count, ReplaySpeed, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// An experiment: one target, one workload, the phases of a run, and what is varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Experiment {
    /// Part of the experiment directory's name. Default: the file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Subject of the experiment, in words for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Values by name for `{NAME}` in any text of this file, so that one factor can set several at once. Default: none.
    pub variables: BTreeMap<String, String>,
    /// URI of a target that exists, or of an embedded store; `{dir}` in it stands for a fresh directory of the run.
    /// Default: a temporary server, as `dyno run` starts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// A server that is started on this host instead; its URI is the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerSpec>,
    /// Lifetime of a server that was started. Default: run.
    pub server_lifetime: Lifetime,
    /// Settings of the host, applied before the first run and reverted after the last. Default: none is touched.
    #[serde(skip_serializing_if = "HostTuning::is_nothing")]
    pub host: HostTuning,
    /// Hosts that are reached by ssh. Default: everything runs on this host.
    #[serde(skip_serializing_if = "Ssh::is_nothing")]
    pub ssh: Ssh,
    /// A cluster of Kubernetes that servers and load run in. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Kubernetes>,
    /// The load's side.
    pub client: Client,
    /// Workload that is applied.
    pub workload: Workload,
    /// Phases of a run: load, pause, warm-up, measurement.
    pub phases: Phases,
    /// Factors that are varied: a mapping of names to values, see docs/experiments.md. Default: nothing, one cell.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factors: Option<serde_json::Value>,
    /// Cells that are left out: each entry names levels of factors; a cell that has all of them is not run.
    #[schemars(with = "Vec<BTreeMap<String, String>>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<serde_json::Value>,
    /// Values for some cells: each entry has `when` (levels of factors) and `set` (keys and their values).
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overrides: Option<serde_json::Value>,
    /// Number of times that every cell is run. Default: 1.
    pub repetitions: u32,
    /// In which order runs are made. Default: random.
    pub order: Order,
    /// Seed of the order, of arrivals and of the workload. Default: 1. Every repetition has a seed of its own, the same for all
    /// cells.
    #[schemars(extend(
        "x-flag" = "--seed <N>",
        "x-help" = "Seed of keys, values, mix and arrivals. Default: 1"
    ))]
    pub seed: u64,
    /// Which repetition this is, from 1; set for each run, never by the file.
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition: Option<u32>,
    /// A search instead of the grid. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Commands around experiment, cell and phase.
    pub hooks: Hooks,
    /// Thresholds of every run, such as `p99(read) < 5ms`; one that is missed makes the exit code 4. Default: none.
    #[schemars(extend(
        "x-flag" = "--require <EXPRESSION>",
        "x-help" = "Threshold such as p99(read) < 5ms; one that is missed makes the exit code 4"
    ))]
    pub require: Vec<String>,
    /// A threshold whose limit lies within the interval of what was measured counts as missed. Default: false, such a run is too
    /// close to call and misses nothing.
    #[schemars(extend(
        "x-flag" = "--strict",
        "x-requires" = "require",
        "x-help" = "A threshold that is too close to call counts as missed: exit code 4"
    ))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// Monitoring while the load runs.
    pub monitors: Monitors,
    /// Commands that run for a window of a phase, such as `perf stat -a`; what they print is kept in the run directory.
    pub traces: Vec<Trace>,
    /// Faults that hit server, workers and the way between them in the measured phase, see docs/faults.md. Default: nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// The part of the measured phase that the table shows.
    pub window: Window,
    /// Reaction to a run that fails: the rest goes on, or the experiment ends. Default: continue.
    pub on_failure: OnFailure,
    /// Longest time that hosts or a cluster which earlier runs have reached may be out of reach: a run that meets that is made
    /// again until then. Default: 10m.
    pub outage: Span,
}

impl Experiment {
    /// Which workers of a target take part in a phase, of all `total`: the first, or, where pods of their own load, the phase's.
    pub fn taking_part(&self, loads: bool, total: usize) -> Range<usize> {
        let each = self.client.workers as usize;
        let loaders = self.kubernetes.as_ref().map_or(0, |asked| asked.load_pods as usize * each);
        let (own, asked) = match (loads, loaders) {
            (true, 0) => (0..total, self.phases.load.workers),
            (true, _) => (0..loaders.min(total), self.phases.load.workers),
            (false, _) => (loaders.min(total)..total, self.phases.measure.workers),
        };
        let most = asked.map_or(usize::MAX, |asked| asked as usize);
        own.start..own.end.min(own.start.saturating_add(most))
    }
}

impl Experiment {
    /// Seed of the measured phase: the data stay those of [`Experiment::seed`], operations and arrivals are drawn anew in each
    /// repetition. The first has the seed itself.
    pub fn run_seed(&self) -> u64 {
        let before = u64::from(self.repetition.unwrap_or(1).saturating_sub(1));
        self.seed.wrapping_add(before * REPETITION)
    }
}

/// From the seed of one repetition to that of the next: more than any number of users, who number their streams on from the
/// seed.
const REPETITION: u64 = 1_000_003;

impl Default for Experiment {
    fn default() -> Self {
        Experiment {
            name: None,
            description: None,
            variables: BTreeMap::new(),
            target: None,
            server: None,
            server_lifetime: Lifetime::default(),
            host: HostTuning::default(),
            ssh: Ssh::default(),
            kubernetes: None,
            client: Client::default(),
            workload: Workload::default(),
            phases: Phases::default(),
            factors: None,
            exclude: None,
            overrides: None,
            repetitions: 1,
            order: Order::default(),
            seed: 1,
            repetition: None,
            strategy: None,
            hooks: Hooks::default(),
            require: Vec::new(),
            strict: false,
            monitors: Monitors::default(),
            traces: Vec::new(),
            faults: Vec::new(),
            window: Window::default(),
            on_failure: OnFailure::default(),
            outage: Span(600_000_000_000),
        }
    }
}

/// The load's side: who speaks to the target, from where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Client {
    /// Client that speaks to MongoDB: dyno's own codec or the official driver. Default: wire.
    #[schemars(extend(
        "x-flag" = "--client <CLIENT>",
        "x-help" = "Client that speaks to MongoDB: dyno's own codec or the official driver, which dyno must be built with \
                    (--features official). Default: wire"
    ))]
    pub driver: Driver,
    /// Clock that says when a reply has arrived: the kernel's, the network card's or the client's. Default: kernel.
    #[schemars(extend("x-flag" = "--stamps <CLOCK>"))]
    pub stamps: Stamps,
    /// Worker processes among which users and operations are divided. Default: 1. Unit: processes.
    pub workers: u32,
    /// Load threads of each worker. Default: one a core, less one where the target is on this host. Unit: threads.
    #[schemars(extend(
        "x-flag" = "-t, --threads <N>",
        "x-help" = "Load threads. Default: one a core, less one where the target is on this host"
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Cores of the load threads, such as `2-5`. Default: the last ones that may be used.
    #[schemars(extend("x-flag" = "--cores <LIST>", "x-conflicts" = "no_pin"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<Cores>,
    /// True if load threads are pinned to their cores. Default: true.
    pub pin: bool,
    /// Way in which load threads wait for replies. Default: auto.
    #[schemars(extend("x-flag" = "--wait <WAIT>"))]
    #[serde(skip_serializing_if = "Wait::is_auto")]
    pub wait: Wait,
    /// Which cores and memory nodes each worker process gets. Default: no policy.
    #[serde(skip_serializing_if = "Placement::is_nothing")]
    pub placement: Placement,
    /// Limits of each worker process, by a cgroup in which it is started: how embedded stores are limited, which live in
    /// the worker. Default: none.
    #[serde(skip_serializing_if = "Limits::is_nothing")]
    pub limits: Limits,
    /// Reaction where placement or limits are not permitted. Default: fail.
    pub if_not_permitted: IfNotPermitted,
}

impl Default for Client {
    fn default() -> Self {
        Client {
            driver: Driver::Wire,
            stamps: Stamps::Kernel,
            workers: 1,
            threads: None,
            cores: None,
            pin: true,
            wait: Wait::Auto,
            placement: Placement::default(),
            limits: Limits::default(),
            if_not_permitted: IfNotPermitted::Fail,
        }
    }
}

/// Lifetime of a server that was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// Every run has its own, with no data.
    #[default]
    Run,
    /// Runs that describe it in the same words share one and its data, as long as they follow each other.
    Shared,
}

/// Client that speaks to MongoDB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// dyno's own codec.
    #[default]
    Wire,
    /// The official driver.
    Official,
}

/// Clock that says when a reply has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stamps {
    /// The kernel's, where a connection has it (TCP, with TLS or without): when the reply's last byte came.
    #[default]
    Kernel,
    /// The network card's, where it stamps all that it receives and a connection has it; else the kernel's.
    Hardware,
    /// The client's: when it got to the reply.
    Client,
}

/// Way in which load threads wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Spin where the server is known to be kept off their cores, else sleep.
    #[default]
    Auto,
    /// Sleep.
    Sleep,
    /// Spin: precise, takes whole cores.
    Spin,
}

impl Wait {
    fn is_auto(&self) -> bool {
        *self == Wait::Auto
    }

    /// Returns whether pinned load threads spin; `kept_off`: the server is known to be kept off their cores.
    pub fn does_spin(self, kept_off: bool) -> bool {
        match self {
            Wait::Auto => kept_off,
            Wait::Sleep => false,
            Wait::Spin => true,
        }
    }
}

/// Workload: exactly one of the five kinds; `ycsb` with workload a if nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// YCSB's core workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ycsb: Option<Ycsb>,
    /// Documents and operations of one's own: path of a YAML file, see docs/documents.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<String>,
    /// Commands of one's own, see docs/commands.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<CommandSource>,
    /// Recorded traffic that is sent once more, see docs/replay.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<RecordingSource>,
    /// sysbench-mongodb: its variables, such as `NUM_COLLECTIONS: 4`; `CONFIG` names a configuration file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sysbench: Option<BTreeMap<String, String>>,
    /// POCDriver: its flags as one text, such as `-i 100 -k 20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pocdriver: Option<String>,
}

/// Commands of one's own: a file, the text of one, commands one by one, or a file of lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CommandSource {
    /// Path of a YAML file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The text of such a file, instead of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Contents of the files that the text names, by their names there. Default: they are read from the file's folder.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Commands with generators in them, such as `ZADD board %{int:1-100} user:%{key}`; `;` stands between those of a sequence.
    #[schemars(extend(
        "x-flag" = "--command <LINE>",
        "x-conflicts" = "workload distribution fields field_length properties records"
    ))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<String>,
    /// Path of a text file with one command a line, behind a weight or without one: `3 GET user:%{key}`.
    #[schemars(extend(
        "x-flag" = "--command-file <FILE>",
        "x-conflicts" = "command workload distribution fields field_length properties records"
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<String>,
    /// Weight of each of these commands, in their order. Default: 1.
    #[schemars(extend("x-flag" = "--command-ratio <N>", "x-requires" = "command"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratio: Vec<f64>,
    /// Keys that `%{key}`, `__key__` and `__rand_int__` draw from. Default: 100k. Unit: keys.
    #[schemars(extend("x-flag" = "--command-keys <N>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Count>,
    /// CSV, TSV or JSON lines whose columns `__field:NAME__` and `%{row:data.NAME}` are. Default: none.
    #[schemars(extend("x-flag" = "--command-data <FILE>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// Recorded traffic that is sent once more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecordingSource {
    /// Path of a recording that `dyno record` has made.
    #[schemars(extend(
        "x-flag" = "--recording <FILE>",
        "x-conflicts" = "workload distribution fields field_length properties records command users think ops pipeline"
    ))]
    pub file: String,
    /// How many times as fast as it was recorded, or max: each command as soon as the one before it is answered. Default: 1.
    #[schemars(extend("x-flag" = "--speed <N|max>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<ReplaySpeed>,
    /// What decides when commands are due: their times of then, or the pauses of then behind each reply of now. Default: due.
    #[schemars(extend("x-flag" = "--pace <PACE>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<RecordedPace>,
    /// The part from this time of the recording on. Default: 0s.
    #[schemars(extend("x-flag" = "--from <SPAN>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Span>,
    /// The part up to this time of the recording. Default: its end.
    #[schemars(extend("x-flag" = "--to <SPAN>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Span>,
    /// A half of the traffic alone. Default: all of it.
    #[schemars(extend("x-flag" = "--only <KIND>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<TrafficKind>,
    /// Divide relative times to live (EXPIRE, SET ... EX) by the speed. Default: false.
    #[schemars(extend("x-flag" = "--scale-ttl"))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub scale_ttl: bool,
    /// On a cluster, send MGET, MSET, DEL, UNLINK and EXISTS whose keys are in several slots once for each slot. Default: false.
    #[schemars(extend("x-flag" = "--split"))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub split: bool,
    /// URI of a second server that gets the same traffic at the same time, and whose replies are compared. Default: none.
    #[schemars(extend("x-flag" = "--against <URI>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// Commands that administer a server, such as FLUSHALL, CONFIG or dropDatabase, and are sent all the same. Default: none.
    #[schemars(extend("x-flag" = "--include <NAME>"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// The server that commands which write may be sent to although it holds data, as HOST:PORT/DB,DB; with --against both,
    /// with a blank between. Default: none.
    #[schemars(extend("x-flag" = "--yes-write <SERVER>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yes_write: Option<String>,
}

/// What decides when recorded commands are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordedPace {
    /// Their times of then.
    Due,
    /// The pauses of then, each behind the reply of now.
    Think,
}

/// A half of recorded traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrafficKind {
    /// Commands that only read.
    Reads,
    /// Commands that may write.
    Writes,
}

/// YCSB's core workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ycsb {
    /// A letter (a to f), a built-in name such as `workloads/workloada`, or a properties file. Default: a.
    pub workload: String,
    /// Records of the data set. Default: 100k, or the file's recordcount. Unit: records.
    #[schemars(extend("x-flag" = "-n, --records <N>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<Count>,
    /// Properties of the workload by name, such as `fieldlength: 100`.
    pub properties: BTreeMap<String, String>,
    /// The same for the measured phase alone, such as `insertcount: 1000` for a part of the keys. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub run_properties: BTreeMap<String, String>,
}

impl Default for Ycsb {
    fn default() -> Self {
        Ycsb {
            workload: "a".into(),
            records: None,
            properties: BTreeMap::new(),
            run_properties: BTreeMap::new(),
        }
    }
}

/// The phases of a run, in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Phases {
    /// Records are put in.
    pub load: Load,
    /// Pause between load and measurement. Default: 0s. Unit: duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Span>,
    /// The beginning of the measured phase that is not counted, where its load differs. Default: `phases.measure.warmup` of the
    /// same load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Warmup>,
    /// The measured phase and its warm-up.
    pub measure: Measure,
    /// Contents of the files that rates name as `file:PATH`, by these paths. Default: they are read from this host's disk.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rate_files: BTreeMap<String, String>,
}

/// A warm-up with a load of its own: the same users and the same sequence of operations go on in the measured phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Warmup {
    /// Length. Unit: duration.
    pub duration: Span,
    /// Closed loop: at most so many of the measured users; the others begin when it ends. Default: all. Unit: users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<usize>,
    /// Open loop: as `phases.measure.rate`, which begins when it ends. Default: that rate. Unit: operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
}

/// When records are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Unless they are there.
    #[default]
    Missing,
    /// In every run.
    Always,
    /// Not at all.
    Never,
}

/// The load phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Load {
    /// When records are loaded. Default: missing.
    pub when: When,
    /// A data set that is loaded instead of the workload's own data: path of a recording that `dyno record` has made of a
    /// snapshot. Default: the workload's own data.
    #[schemars(extend("x-flag" = "--load-from <FILE>", "x-conflicts" = "no_load load-pipeline load-batch"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Users. Default: 16. Unit: users.
    pub users: usize,
    /// Workers of each target that take part, the first ones; the others wait. Default: all. Unit: processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Inserts under way on one connection. Default: 1. Unit: operations.
    #[schemars(extend("x-flag" = "--load-pipeline <N>", "x-conflicts" = "no_load"))]
    pub pipeline: usize,
    /// Inserts that go out as one batch. Default: 64. Unit: operations.
    #[schemars(extend("x-flag" = "--load-batch <N>", "x-conflicts" = "no_load"))]
    pub batch: usize,
    /// Rate of all users together, as `phases.measure.rate`. Default: as fast as it goes. Unit: operations per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Embedded stores in `{dir}`: whether a copy of the loaded data is kept, with which every run begins that would load
    /// the same. Servers have `server.data.snapshot` for that. Default: false.
    pub keep: bool,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            when: When::Missing,
            from: None,
            users: 16,
            workers: None,
            pipeline: 1,
            batch: 64,
            rate: None,
            keep: false,
        }
    }
}

/// Arrival process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Independent, as from many people.
    #[default]
    Poisson,
    /// Evenly spaced.
    Constant,
}

/// The measured phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// Closed loop: users, each with one operation under way. Not with a rate. Default: 16. Unit: users.
    #[schemars(extend("x-flag" = "-u, --users <N>", "x-conflicts" = "rate"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<usize>,
    /// Open loop: connections, each with one operation under way. Only with a rate. Default: 64. Unit: connections.
    #[schemars(extend("x-flag" = "-c, --connections <N>", "x-requires" = "rate", "x-conflicts" = "users"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<usize>,
    /// Workers of each target that take part, the first ones; the others wait. Default: all. Unit: processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Open loop: operations per second, or a rate that changes: `ramp:FROM-TO:DURATION`, `steps:RATE:DURATION,...`, `file:PATH`,
    /// `day:LOW:HIGH:PERIOD`, `bursty:MEAN:PEAK:PERIOD` or `mmpp:RATE:DURATION,RATE:DURATION`, see docs/rates.md. Default: closed
    /// loop.
    #[schemars(extend(
        "x-flag" = "-r, --rate <RATE>",
        "x-help" = "Open loop: operations per second, or a rate that changes: ramp:FROM-TO:DURATION, steps:RATE:DURATION,..., \
                    file:PATH, day:LOW:HIGH:PERIOD, bursty:MEAN:PEAK:PERIOD or mmpp:RATE:DURATION,RATE:DURATION. Default: closed \
                    loop"
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Open loop: arrival process. Default: poisson.
    #[schemars(extend("x-flag" = "--arrivals <PROCESS>", "x-requires" = "rate"))]
    pub arrivals: Arrivals,
    /// Closed loop: pause of a user between two operations. Default: 0s. Unit: duration.
    #[schemars(extend("x-flag" = "--think <DURATION>", "x-conflicts" = "rate"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Span>,
    /// Measured time. Default: 10s unless `operations` is given. Unit: duration.
    #[schemars(extend(
        "x-flag" = "-d, --duration <DURATION>",
        "x-help" = "Measured time. Default: 10s unless --ops is given"
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Measured operations; the phase ends at whichever of duration and operations comes first. Unit: operations.
    #[schemars(extend(
        "x-flag" = "--ops <N>",
        "x-help" = "Measured operations; with --duration the run ends at whichever comes first. Default: no limit"
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Count>,
    /// Unmeasured time at the start. Default: a tenth of the duration, at most 5s. Unit: duration.
    #[schemars(extend(
        "x-flag" = "--warmup <DURATION>",
        "x-help" = "Unmeasured time at the start. Default: a tenth of the duration, at most 5s; none with --ops alone"
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Span>,
    /// Operations under way on one connection. Default: 1. Unit: operations.
    #[schemars(extend("x-flag" = "--pipeline <N>"))]
    pub pipeline: usize,
    /// Time-out of one operation; 0 waits for ever. Default: 10s. Unit: duration.
    #[schemars(extend("x-flag" = "--timeout <DURATION>"))]
    pub timeout: Span,
    /// Time for which replies are awaited after the last arrival. Default: 10s. Unit: duration.
    #[schemars(extend("x-flag" = "--drain <DURATION>"))]
    pub drain: Span,
    /// Open loop: due arrivals that may wait before the oldest is dropped. Default: 1M. Unit: arrivals.
    #[schemars(extend("x-flag" = "--queue <N>", "x-requires" = "rate"))]
    pub queue: Count,
    /// Open loop: how long a due arrival may wait before it is dropped. Default: for ever. Unit: duration.
    #[schemars(extend("x-flag" = "--queue-age <DURATION>", "x-requires" = "rate"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_age: Option<Span>,
    /// Length of the intervals that are recorded: 10ms to 1s, a whole number of them in a second. Default: 1s. Unit:
    /// duration.
    #[schemars(extend("x-flag" = "--interval <DURATION>"))]
    pub interval: Span,
}

impl Default for Measure {
    fn default() -> Self {
        let ten = Span(10_000_000_000);
        Measure {
            users: None,
            connections: None,
            workers: None,
            rate: None,
            arrivals: Arrivals::Poisson,
            think: None,
            duration: None,
            operations: None,
            warmup: None,
            pipeline: 1,
            timeout: ten.clone(),
            drain: ten,
            queue: Count(1_000_000),
            queue_age: None,
            interval: Span(1_000_000_000),
        }
    }
}

impl Measure {
    /// Users of a closed loop, or connections of an open one, as far as they are given.
    pub fn concurrency(&self) -> Option<usize> {
        self.users.or(self.connections)
    }

    /// Sets the users of a closed loop, or the connections of an open one: after the rate.
    pub fn set_concurrency(&mut self, count: usize) {
        (self.users, self.connections) =
            if self.rate.is_some() { (None, Some(count)) } else { (Some(count), None) };
    }
}

/// In which order runs are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Every repetition is a block that holds each cell once, shuffled by the seed: drift of the machine meets all cells.
    #[default]
    Random,
    /// Every repetition is a block in the file's order.
    File,
    /// All repetitions of a cell one after the other, in the file's order.
    Sequential,
}

/// Reaction to a run that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The run is noted as failed; the rest goes on.
    #[default]
    Continue,
    /// The experiment ends.
    Stop,
}

/// Commands, each a list of words (nothing is put through a shell). A command that fails ends the run it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hooks {
    /// Before the first run.
    pub before_experiment: Vec<Vec<String>>,
    /// After the last run, also after a failure or Ctrl-C.
    pub after_experiment: Vec<Vec<String>>,
    /// Before every run, before its server is started.
    pub before_run: Vec<Vec<String>>,
    /// After every run, also after a failure.
    pub after_run: Vec<Vec<String>>,
    /// Before the load phase of every run.
    pub before_load: Vec<Vec<String>>,
    /// After the load phase.
    pub after_load: Vec<Vec<String>>,
    /// Before the warm-up of every run.
    pub before_measure: Vec<Vec<String>>,
    /// After the measured phase.
    pub after_measure: Vec<Vec<String>>,
    /// Longest time a command may take. Default: 5m. Unit: duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// Monitoring while the load runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Monitors {
    /// True if host, processes and database are watched. Default: true.
    pub enabled: bool,
    /// Time between samples. Default: 1s. Unit: duration.
    #[schemars(extend("x-flag" = "--monitor-interval <DURATION>"))]
    pub interval: Span,
    /// Prometheus exporters to read, by name: `node: http://127.0.0.1:9100/metrics`.
    pub prometheus: BTreeMap<String, String>,
    /// A dashboard of Grafana, such as `http://127.0.0.1:3000/d/dyno-run`: the summary of every run then links the exact
    /// time range of each phase. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grafana: Option<String>,
}

impl Default for Monitors {
    fn default() -> Self {
        Monitors { enabled: true, interval: Span(1_000_000_000), prometheus: BTreeMap::new(), grafana: None }
    }
}

/// Method that makes one figure of the intervals of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// Mean of the intervals' throughputs.
    #[default]
    Mean,
    /// The same without its fraction, as sysbench-mongodb's authors print it.
    TruncatedMean,
    /// Median of the intervals' throughputs.
    Median,
}

/// The part of the measured phase that the table shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Window {
    /// Begin, from the end of the warm-up. Default: 0s. Unit: duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Span>,
    /// End. Default: the end of the phase. Unit: duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Span>,
    /// Length of an interval. Default: 1s. Unit: duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// Method that makes one figure of the intervals. Default: mean.
    pub estimator: Estimator,
}
