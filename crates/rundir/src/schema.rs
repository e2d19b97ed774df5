//! Every JSON document of a run directory. The JSON Schema in `docs/schema/` is made from these types.

use crate::faults::FaultFigures;
pub use crate::hosts::{HostRole, PhaseHost};
pub use crate::setting::Setting;
use crate::system::System;
pub use crate::used::{DatabaseUse, DiskUse, HostUse, Monitored, OthersUse, ProcessUse};
pub use crate::verdict::{Claim, Grade, Reason, Trust, Verdict};
use dyno_types::units::Thousands;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the run directory's format. Readers refuse a higher one.
pub const VERSION: u32 = 1;

/// Status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Under way, or killed before it could say anything else.
    Running,
    /// Ended as planned.
    Complete,
    /// Ended early by a signal; what was measured is there.
    Interrupted,
    /// Ended by an error.
    Failed,
}

/// `run.json`: what was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Version of the format.
    pub version: u32,
    /// Version of dyno.
    pub dyno: String,
    /// The command line, secrets masked.
    pub command: Vec<String>,
    /// Begin, RFC 3339.
    pub started: String,
    /// Status of the run.
    pub status: Status,
    /// The target, secrets masked.
    pub target: String,
    /// Product and version of the database, as it says itself.
    pub database: String,
    /// Facts about the database: durability, topology, TLS, and what it says of itself.
    pub facts: BTreeMap<String, String>,
    /// Every setting with its source. Those of `dyno run` have the keys of experiment files.
    #[serde(deserialize_with = "crate::older_settings::deserialize")]
    pub settings: Vec<Setting>,
    /// Names of the metrics by phase, in the order of the engine.
    pub metrics: BTreeMap<String, Vec<String>>,
    /// Unit of the histograms' values in nanoseconds (64, or 1000 for the YCSB front end).
    pub unit_ns: u64,
    /// Plan of each phase that has begun; a warm-up belongs to the phase that follows it. Older directories do not
    /// say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plans: BTreeMap<String, Planned>,
}

/// When a phase ends, and how it is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Planned {
    /// Seconds after the warm-up, if the phase ends by the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Seconds of warm-up before it.
    #[serde(default)]
    pub warmup_s: f64,
    /// Operations after which it ends, if it does by their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// Length of the recorded intervals, seconds.
    pub interval_s: f64,
    /// Load threads; absent where workers chose them, and in directories of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
}

/// `environment.json`: the machine that applied the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Host name.
    pub host: String,
    /// Operating system and kernel.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Cores this process may use.
    pub cores: Vec<usize>,
    /// Memory of the host, bytes; absent where it is not known.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub memory_bytes: u64,
    /// Frequency governor, transparent huge pages, clock source and the like, as found.
    pub tuning: BTreeMap<String, String>,
    /// Median cost of reading the clock, nanoseconds; absent where it is not known.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub clock_ns: u64,
    /// Load average over one minute at the start; absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load_average: Option<f64>,
    /// Setup of the host, in full; absent in directories of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub system: Option<System>,
}

/// Latencies of one kind, microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Samples.
    pub count: u64,
    /// Exact mean, microseconds.
    pub mean_us: f64,
    /// Exact minimum, microseconds; absent where an imported result does not say it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min_us: Option<f64>,
    /// Exact maximum, microseconds; absent where an imported result does not say it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_us: Option<f64>,
    /// Percentiles by name (`p50` ... `p99.99`), microseconds. One that too few samples support is absent; `null` means
    /// that it lies among dropped arrivals, that is, beyond every measured latency.
    pub percentiles_us: BTreeMap<String, Option<f64>>,
    /// 95 % intervals of these percentiles, by name, microseconds; absent in runs of fewer than ten seconds, in imported results
    /// and in directories of earlier versions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub intervals_us: BTreeMap<String, ConfidenceInterval>,
}

/// A 95 % confidence interval of a figure, in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfidenceInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end; `null` where it lies beyond every measured value.
    pub high: Option<f64>,
}

/// One operation name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Name.
    pub name: String,
    /// Ended requests by outcome; only those that occurred.
    pub outcomes: BTreeMap<String, u64>,
    /// Completion less sending, of successful requests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub service: Option<Latency>,
    /// Completion less intended start, of successful requests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response: Option<Latency>,
    /// The server's share of `response`: what a client that is never late would have seen (open loop), or the service time
    /// (closed loop). Absent in imported results and in directories of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<Latency>,
    /// The client's share of `response` by percentile (`p50` ... `p99.99`), microseconds: the percentile less that of `server`.
    /// `null` where it is not known, because too many replies came in one piece with later bytes, or arrivals were dropped.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub client_us: BTreeMap<String, Option<f64>>,
    /// Service time of failed requests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed_service: Option<Latency>,
    /// Response time of failed requests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed_response: Option<Latency>,
    /// Response time of all arrivals where some failed: a failure counts with at least the time after which it failed, one that
    /// was never sent as infinite. No figure is less than that of the successful ones alone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub all_response: Option<Latency>,
    /// Service time of all requests where some failed, in the same way.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub all_service: Option<Latency>,
}

impl Metric {
    /// Response time as a caller has it: of all arrivals, failures with at least their time.
    pub fn arrival_response(&self) -> Option<&Latency> {
        self.all_response.as_ref().or(self.response.as_ref())
    }

    /// The server's and the client's share of a percentile of the response time such as `p99`, microseconds; `None` where they
    /// are not known.
    pub fn shares_us(&self, percentile: &str) -> Option<(f64, f64)> {
        let server = self.server.as_ref()?.percentiles_us.get(percentile).copied().flatten()?;
        Some((server, self.client_us.get(percentile).copied().flatten()?))
    }

    /// Service time in the way of [`Metric::arrival_response`].
    pub fn arrival_service(&self) -> Option<&Latency> {
        self.all_service.as_ref().or(self.service.as_ref())
    }
}

/// Returns whether a figure that is never 0 where it is known is not known: imported results leave it out.
fn is_zero(figure: &u64) -> bool {
    *figure == 0
}

/// The same for counts.
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// The same for times.
fn is_nothing(time: &f64) -> bool {
    *time == 0.0
}

/// Default of summaries written before there were batches.
fn one() -> usize {
    1
}

/// Resources that the client used. Threads, users and CPU times are absent where an imported result does not say them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// Client that spoke to the database, where there is a choice: `wire` or `official, mongodb VERSION`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub driver: Option<String>,
    /// Load threads.
    #[serde(skip_serializing_if = "is_none", default)]
    pub threads: usize,
    /// Users or connections.
    #[serde(skip_serializing_if = "is_none", default)]
    pub users: usize,
    /// Users that had a connection, on average over the time of the phase; absent for embedded stores and in directories of
    /// earlier versions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connected: Option<f64>,
    /// Operations under way on one connection.
    pub pipeline: usize,
    /// Closed loop: pause of a user between two operations, microseconds. Absent in the open loop, and in summaries of
    /// earlier versions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub think_us: Option<f64>,
    /// Inserts that went out as one batch.
    #[serde(default = "one")]
    pub batch: usize,
    /// User CPU of the process since the warm-up, seconds.
    #[serde(skip_serializing_if = "is_nothing", default)]
    pub user_cpu_s: f64,
    /// System CPU of the process since the warm-up, seconds.
    #[serde(skip_serializing_if = "is_nothing", default)]
    pub system_cpu_s: f64,
    /// CPU microseconds for one operation; 0 where none has ended.
    #[serde(skip_serializing_if = "is_nothing", default)]
    pub cpu_us_per_op: f64,
    /// Share of the time that load threads did not sleep, 0 to 1; `null` for embedded stores, whose users wait inside.
    pub busy_share: Option<f64>,
    /// Largest resident memory of the process, bytes.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub peak_resident_bytes: u64,
    /// True if every load thread was on the core it was given.
    pub pinned: bool,
    /// Share of the time that the hypervisor took away, 0 to 1.
    pub steal_share: f64,
}

/// One phase of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// `load`, `warmup` or `measure`.
    pub name: String,
    /// Length T, seconds: the duration asked for, or until the last of the operations asked for was done (closed loop) or the
    /// next one would have been due (open loop), or until the phase was ended early.
    pub seconds: f64,
    /// Seconds from its beginning to its last reply, drain and all, which the reports of other tools call the run's time;
    /// absent in imported results and in directories of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub elapsed_s: Option<f64>,
    /// Arrivals taken from the schedule.
    pub arrivals: u64,
    /// Arrivals by outcome; their sum is `arrivals` (for a warm-up: less those that ended after it).
    pub outcomes: BTreeMap<String, u64>,
    /// Successful operations per second: `completed` by `seconds`. Imported results, and directories of earlier versions, have
    /// what their tool divided.
    pub throughput: f64,
    /// Successes that lie within the phase's time, in whichever phase they arrived; absent in imported results and in
    /// directories of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub completed: Option<u64>,
    /// Documents written by the successful operations of a load whose operations write several each.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub documents: Option<u64>,
    /// Scheduled arrivals per second (open loop).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offered: Option<f64>,
    /// By operation name.
    pub metrics: Vec<Metric>,
    /// Sending less the moment at which a client that is never late would have sent (open loop). In directories of earlier
    /// versions: sending less intended start, of arrivals that did not wait for a free connection.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub schedule_lag: Option<Latency>,
    /// Kernel's arrival of a reply to its handling; sampled on one connection in 16 where the client's clock ends service times.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub receive_lag: Option<Latency>,
    /// Open loop: response times of all successful requests as a client that is never late would have seen them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ideal_response: Option<Latency>,
    /// Replies by the clock that ended their service times, where the kernel was asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stamps: Option<StampCounts>,
    /// Completion to the next sending of the same user (closed loop).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turnaround: Option<Latency>,
    /// Replies that came after their time-out.
    pub late_replies: u64,
    /// Replies that no command had asked for: which reply belongs to which operation is not certain then.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub unexpected_replies: u64,
    /// Replies that do not follow the protocol; each ends its connection.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub broken_replies: u64,
    /// Connections made anew.
    pub reconnects: u64,
    /// Redirections followed.
    pub redirects: u64,
    /// Longest queue of due arrivals.
    pub backlog: u64,
    /// Dropped arrivals by intended second.
    pub drops: BTreeMap<u64, u64>,
    /// Stretches in which nothing succeeded although an operation waited, in order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub silences: Vec<Silence>,
    /// Stretches of at least 100 ms in which no load thread ran, in order: what is recorded of their seconds is the client's.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub pauses: Vec<Pause>,
    /// The client.
    pub client: Client,
    /// First error text of every class.
    pub errors: BTreeMap<String, String>,
    /// A dashboard that shows the exact time of the phase, where the experiment names one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link: Option<String>,
    /// Resources that host, server and database used meanwhile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub monitor: Option<Monitored>,
    /// Hosts that take part; empty where time is virtual, in imported results, and in directories of earlier versions.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub hosts: Vec<PhaseHost>,
    /// Replies of a replay beside those that were recorded.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub replay: Option<ReplayFigures>,
    /// MongoDB's statistics of its collections before and after the phase; a warm-up belongs to the phase that follows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub collections: Option<Collections>,
}

impl Phase {
    /// Seconds from its beginning to its last reply; its length where that is not known.
    pub fn until_last_s(&self) -> f64 {
        self.elapsed_s.unwrap_or(self.seconds)
    }

    /// Successes within its time; where that was not counted, those of its arrivals.
    pub fn count_successes(&self) -> u64 {
        self.completed.unwrap_or_else(|| self.outcomes.get("ok").copied().unwrap_or(0))
    }

    /// Documents written a second where operations write several each, else successful operations.
    pub fn written_per_s(&self) -> f64 {
        match self.documents {
            Some(count) if self.seconds > 0.0 => count as f64 / self.seconds,
            _ => self.throughput,
        }
    }
}

/// A stretch of at least 300 ms, and of 20 usual service times, in which nothing succeeded although an operation waited for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Silence {
    /// Begin, seconds after the phase's.
    pub from_s: f64,
    /// Length, seconds.
    pub length_s: f64,
}

/// A stretch in which the client itself stood still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    /// Begin, seconds after the phase's.
    pub from_s: f64,
    /// Length, seconds.
    pub length_s: f64,
}

impl Pause {
    /// Time that a client needs for what was left undone in a pause, seconds.
    const AFTER_S: f64 = 1.0;

    /// Returns whether an interval, seconds after the phase's begin, has figures of it.
    pub fn spoils_interval(&self, from_s: f64, to_s: f64) -> bool {
        from_s < self.from_s + self.length_s + Pause::AFTER_S && to_s > self.from_s
    }
}

/// Replies by the clock that says when they arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StampCounts {
    /// Replies stamped by the kernel or the network card.
    pub kernel: u64,
    /// Number of `kernel` that the network card stamped.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub card: u64,
    /// Replies stamped when the client handled them: the connection has no such stamps, the kernel did not say it, its clock
    /// had just been set, or what it says is no moment between sending and handling.
    pub client: u64,
    /// Number of `kernel` that came in one piece with later bytes, whose time they have.
    pub shared: u64,
    /// By how much the service time of one of these may be overstated at most, microseconds.
    pub shared_most_us: f64,
}

/// Replies of a replay beside those that were recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayFigures {
    /// Replies that were compared.
    pub compared: u64,
    /// There was a reply then, and none now. Each reply counts once, by the first way in which it differs.
    pub missing: u64,
    /// One of the two is an error, or both are of different classes.
    pub error: u64,
    /// They are of different kinds, or one of them is nil.
    pub kind: u64,
    /// They have different sizes.
    pub size: u64,
    /// Connections on which a reply differs.
    pub connections: u64,
    /// Replies that were not compared: none was recorded, or replies to the command are never alike.
    pub not_compared: u64,
    /// Errors that were the same then: they are no failures.
    pub errors_as_then: u64,
    /// Some of the first replies that differ.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub examples: Vec<ReplayExample>,
    /// Commands that waited for data twice as long as then and a second, and were ended: their connections were made anew.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub cut_waits: u64,
    /// What decided when commands were due: their times of then (`due`), the pauses of then behind each reply (`think`), a rate
    /// (`rate`), or nothing (`max`).
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub pace: String,
    /// Where times were taken then: `server`, `client`, `proxy` or `unknown`.
    pub point: String,
    /// Times from command to reply then, by metric; absent where none were recorded.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub then: BTreeMap<String, ThenLatency>,
    /// Commands of the recording that were not sent, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub left_out: BTreeMap<String, u64>,
    /// Commands of the recording that were not sent because their keys are in several slots of the cluster; absent where there
    /// are none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cross_slot: Option<CrossSlotFigures>,
    /// Replies beside those of another server that the same traffic was sent to at the same time; absent where there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub against: Option<AgainstFigures>,
    /// Why the recording was not read to its end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unread: Option<String>,
}

impl ReplayFigures {
    /// Where times were taken then, in words.
    pub fn describe_point(&self) -> String {
        match self.point.as_str() {
            "unknown" => "it was not said where".into(),
            point => format!("recorded at the {point}"),
        }
    }

    /// Replies that differ.
    pub fn count_differing(&self) -> u64 {
        self.missing + self.error + self.kind + self.size
    }
}

/// Replies of a replay beside those of another server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgainstFigures {
    /// Replies that were compared.
    pub compared: u64,
    /// One server has replied, and the other has not. Each reply counts once, by the first way in which it differs.
    pub missing: u64,
    /// One of the two is an error, or both are of different classes.
    pub error: u64,
    /// They are of different kinds, or one of them is nil.
    pub kind: u64,
    /// They have different sizes.
    pub size: u64,
    /// Replies that were not compared: those of one server have not come before the run's end, or the command was not sent to it.
    pub not_compared: u64,
    /// Some of the first replies that differ; `then` is the reply of the other server.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub examples: Vec<ReplayExample>,
}

impl AgainstFigures {
    /// Replies that differ.
    pub fn count_differing(&self) -> u64 {
        self.missing + self.error + self.kind + self.size
    }
}

/// Commands of a recording whose keys are in several slots of the cluster: they are no arrivals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrossSlotFigures {
    /// Their number.
    pub count: u64,
    /// Their share of these and of those that are sent.
    pub share: f64,
    /// The same by name.
    pub commands: BTreeMap<String, u64>,
}

impl CrossSlotFigures {
    /// The most frequent of them, in words.
    pub fn describe_most(&self) -> String {
        let mut all: Vec<(&String, &u64)> = self.commands.iter().collect();
        all.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
        let shown = all.iter().take(3).map(|(name, count)| format!("{} {name}", Thousands(**count)));
        let more = if all.len() > 3 { format!(" and {} more", all.len() - 3) } else { String::new() };
        format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
    }
}

/// A reply that differs from the recorded one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayExample {
    /// The command, shortened.
    pub command: String,
    /// The reply of then.
    pub then: String,
    /// The reply of now.
    pub now: String,
}

/// Recorded times from command to reply, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThenLatency {
    /// Replies.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
}

/// Figures of collections (`collStats`): name, figure, value. What the server does not say is not there.
pub type CollectionFigures = BTreeMap<String, BTreeMap<String, f64>>;

/// MongoDB's statistics of the collections of the run's database at the boundaries of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collections {
    /// Before its first operation, and before its warm-up.
    pub before: CollectionFigures,
    /// After its last operation; empty where it was interrupted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub after: CollectionFigures,
}

/// Answer to a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It holds.
    Pass,
    /// It is missed.
    Fail,
    /// The limit lies within the interval of the figure: another run may say the opposite.
    TooClose,
}

impl Decision {
    /// Its words in reports.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Pass => "PASS",
            Decision::Fail => "FAIL",
            Decision::TooClose => "TOO CLOSE",
        }
    }
}

/// A threshold and whether it held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Threshold {
    /// As written: `p99(read) < 5ms`.
    pub expression: String,
    /// Measured value, in the unit of the expression; `null` if it cannot be told.
    pub measured: Option<f64>,
    /// True if the measured value is within the limit.
    pub passed: bool,
    /// True if the interval of the value holds the limit, or if the run is too short to decide: neither passed nor failed.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub too_close: bool,
    /// 95 % interval of the value; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interval: Option<ConfidenceInterval>,
    /// Distance from the limit in half widths of the interval: 1 and above passed, -1 and below failed, between them too close.
    /// At most 1,000 either way.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub margin: Option<f64>,
}

impl Threshold {
    /// Returns its answer.
    pub fn threshold_answer(&self) -> Decision {
        match (self.too_close, self.passed) {
            (true, _) => Decision::TooClose,
            (false, true) => Decision::Pass,
            (false, false) => Decision::Fail,
        }
    }
}

/// `summary.json`: the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Version of the format.
    pub version: u32,
    /// Version of dyno.
    pub dyno: String,
    /// Status of the run.
    pub status: Status,
    /// The target, secrets masked.
    pub target: String,
    /// Product and version of the database.
    pub database: String,
    /// Begin, RFC 3339.
    pub started: String,
    /// Title of the run.
    pub title: String,
    /// Verdict on the result.
    pub verdict: Verdict,
    /// Thresholds, in the order given.
    pub thresholds: Vec<Threshold>,
    /// True if a threshold that is too close to call counts as missed (`--strict`).
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub strict: bool,
    /// Phases in order.
    pub phases: Vec<Phase>,
    /// Faults that the experiment asked for, and what each did to the load, by their begin.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub faults: Vec<FaultFigures>,
    /// Each server-client pair by itself, where there are several; the phases above are all of them together.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub pairs: Vec<Pair>,
    /// MongoDB's statistics of each collection of the run's database at the end (`collStats`): name, figure, value. What it does
    /// not say is not there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub collections: CollectionFigures,
}

/// One server and its clients, of several that ran at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// From 1.
    pub number: usize,
    /// Target, secrets masked.
    pub target: String,
    /// Phases in order; throughput is over the pair's own time.
    pub phases: Vec<Phase>,
}

impl Summary {
    /// Returns whether a threshold counts as missed.
    pub fn misses_threshold(&self, threshold: &Threshold) -> bool {
        match threshold.threshold_answer() {
            Decision::Pass => false,
            Decision::Fail => true,
            Decision::TooClose => self.strict,
        }
    }

    /// Returns whether monitors have seen anything of the run: else its verdict is about what the client saw alone.
    pub fn is_watched(&self) -> bool {
        self.phases.iter().any(|phase| phase.monitor.is_some())
    }

    /// The measured phase. A load stands for it only where the run came to its end: what was cut off in its load may have
    /// been about to measure.
    pub fn measured_phase(&self) -> Option<&Phase> {
        let measured = self.phases.iter().find(|phase| phase.name == "measure");
        measured.or_else(|| self.phases.last().filter(|_| self.status == Status::Complete))
    }
}

/// The JSON Schema of `summary.json`.
pub fn summary_schema() -> String {
    let schema = schemars::schema_for!(Summary);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
