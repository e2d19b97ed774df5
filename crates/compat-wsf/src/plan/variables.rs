//! The variables of the workload: name, type, default in each reading, and what becomes of them here.

use crate::plan::cases::Reading;
use dyno_types::units::parse_cores;
use std::fmt;

/// Values that a variable takes. Blank is allowed everywhere and means "not passed on".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// A whole number from this one on.
    Whole(u64),
    /// A number from 0 to 1.
    Share,
    /// A number above 0.
    Size,
    /// `true`, `false`, 1 or 0.
    Switch,
    /// A list of cores such as `0-3,8`.
    Cores,
    /// One of these.
    Word(&'static [&'static str]),
    /// Anything.
    Text,
}

impl VariableKind {
    /// Checks a value.
    pub fn check(self, value: &str) -> Result<(), BadValue> {
        let number = value.parse::<f64>().ok().filter(|n| n.is_finite());
        let fits = match self {
            _ if value.is_empty() => true,
            VariableKind::Whole(from) => value.parse::<u64>().is_ok_and(|n| n >= from),
            VariableKind::Share => number.is_some_and(|n| (0.0..=1.0).contains(&n)),
            VariableKind::Size => number.is_some_and(|n| n > 0.0),
            VariableKind::Switch => switch(value).is_some(),
            VariableKind::Cores => parse_cores(value).is_some(),
            VariableKind::Word(words) => words.contains(&value),
            VariableKind::Text => true,
        };
        if fits { Ok(()) } else { Err(BadValue { value: value.to_owned(), kind: self }) }
    }
}

impl fmt::Display for VariableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VariableKind::Whole(from) => write!(f, "a whole number from {from}"),
            VariableKind::Share => f.write_str("a number from 0 to 1"),
            VariableKind::Size => f.write_str("a number above 0"),
            VariableKind::Switch => f.write_str("true or false"),
            VariableKind::Cores => f.write_str("a list of cores such as 0-3,8"),
            VariableKind::Word(words) => f.write_str(&words.join(", ")),
            VariableKind::Text => f.write_str("a text"),
        }
    }
}

/// A value that a variable does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value:?}: expected {kind}")]
pub struct BadValue {
    /// The value.
    pub value: String,
    /// Values that the variable takes.
    pub kind: VariableKind,
}

/// A switch's value; blank is off.
pub fn switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "" | "false" | "0" => Some(false),
        _ => None,
    }
}

/// A variable.
#[derive(Clone, Copy, Debug)]
pub struct WsfVariable {
    /// Name.
    pub name: &'static str,
    /// Values that it takes.
    pub kind: VariableKind,
    /// Defaults of the readings 23.3 and 25; `None` where it does not exist.
    pub defaults: [Option<&'static str>; 2],
    /// Effect that it has here.
    pub help: &'static str,
}

impl WsfVariable {
    /// Default in a reading; `None` where it does not exist.
    pub fn default(&self, reading: Reading) -> Option<&'static str> {
        self.defaults[reading as usize]
    }
}

/// Finds a variable.
pub fn find(name: &str) -> Option<&'static WsfVariable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}

const fn both(
    name: &'static str,
    kind: VariableKind,
    old: &'static str,
    new: &'static str,
    help: &'static str,
) -> WsfVariable {
    WsfVariable { name, kind, defaults: [Some(old), Some(new)], help }
}

const fn new(
    name: &'static str,
    kind: VariableKind,
    default: &'static str,
    help: &'static str,
) -> WsfVariable {
    WsfVariable { name, kind, defaults: [None, Some(default)], help }
}

const DISTRIBUTIONS: VariableKind =
    VariableKind::Word(&["uniform", "zipfian", "hotspot", "sequential", "exponential", "latest"]);
const COMPRESSORS: VariableKind = VariableKind::Word(&["none", "snappy", "zlib", "zstd"]);
const ORDERS: VariableKind = VariableKind::Word(&["hashed", "ordered"]);
const LENGTHS: VariableKind = VariableKind::Word(&["uniform", "zipfian"]);
const MEASUREMENTS: VariableKind =
    VariableKind::Word(&["hdrhistogram", "histogram", "raw", "timeseries", "hdrhistogram+raw"]);
const MINDED: &str = "recorded; has no meaning for a local run";
/// Help of variables that are refused where they are on.
pub const REFUSED: &str = "recorded; refused where it is switched on";

/// Variables that say something to pods alone.
pub const IN_PODS: [&str; 4] = [
    "MAX_SKEW",
    "KUBERNETES_RESOURCE_REQUESTS",
    "KUBERNETES_RESOURCE_REQUESTS_CPU",
    "KUBERNETES_RESOURCE_REQUESTS_MEMORY",
];

/// All of them, in the order of the workload's description.
pub const VARIABLES: [WsfVariable; 69] = [
    both("CLIENT_SERVER_PAIR", VariableKind::Whole(1), "3", "3", "servers, each with a client of its own"),
    both(
        "CLIENT_COUNT",
        VariableKind::Whole(0),
        "1",
        "1",
        "client machines; --backend local has this one; 0: single node",
    ),
    both(
        "RUN_SINGLE_NODE",
        VariableKind::Switch,
        "false",
        "false",
        "clients beside the servers: CLIENT_COUNT is 0",
    ),
    both("CONFIG_CENTER_PORT", VariableKind::Whole(1), "16379", "16379", MINDED),
    both("TLS_FLAG", VariableKind::Switch, "0", "0", REFUSED),
    both(
        "NUMACTL_OPTION",
        VariableKind::Whole(0),
        "0",
        "0",
        "placement of servers: 0 to 2; in reading 25 to 5",
    ),
    both("SELECT_NUMA_NODE", VariableKind::Whole(0), "0", "0", "node of NUMACTL_OPTION=2"),
    both("CORES", VariableKind::Cores, "", "", "cores that all servers share with NUMACTL_OPTION=2"),
    both(
        "YCSB_CORES",
        VariableKind::Cores,
        "",
        "",
        "cores of the clients with NUMACTL_OPTION=2 or on a single node",
    ),
    new(
        "CORE_NUMS_EACH_INSTANCE",
        VariableKind::Whole(1),
        "",
        "physical cores of a server with NUMACTL_OPTION=3 and 4",
    ),
    both(
        "CUSTOMER_NUMAOPT_CLIENT",
        VariableKind::Text,
        "",
        "",
        "options of numactl for clients, instead of all others",
    ),
    both(
        "CUSTOMER_NUMAOPT_SERVER",
        VariableKind::Text,
        "",
        "",
        "options of numactl for servers, instead of all others",
    ),
    WsfVariable {
        name: "NETWORK_RPS_TUNE_ENABLE",
        kind: VariableKind::Switch,
        defaults: [Some("false"), None],
        help: "receive packet steering of the servers' network devices on all cores; a local run uses none",
    },
    both(
        "DB_HUGEPAGE_STATUS",
        VariableKind::Switch,
        "false",
        "false",
        "transparent huge pages: always or never (--tune-host)",
    ),
    new(
        "KERNEL_SETTING_OPTIMIZED",
        VariableKind::Switch,
        "true",
        "zone reclaim off, NUMA balancing on (--tune-host)",
    ),
    new("CORE_FREQUENCY_ENABLE", VariableKind::Switch, "false", REFUSED),
    new("CORE_FREQUENCY", VariableKind::Text, "", MINDED),
    new("UNCORE_FREQUENCY_ENABLE", VariableKind::Switch, "false", REFUSED),
    new("UNCORE_FREQUENCY", VariableKind::Text, "", MINDED),
    both("MAX_SKEW", VariableKind::Whole(1), "", "", MINDED),
    new("KUBERNETES_RESOURCE_REQUESTS", VariableKind::Switch, "true", MINDED),
    new("KUBERNETES_RESOURCE_REQUESTS_CPU", VariableKind::Text, "1", MINDED),
    new("KUBERNETES_RESOURCE_REQUESTS_MEMORY", VariableKind::Text, "", MINDED),
    new("KUBERNETES_RESOURCE_LIMITS", VariableKind::Switch, "false", "whether the two below limit servers"),
    new("KUBERNETES_RESOURCE_LIMITS_CPU", VariableKind::Size, "", "processor time of each server, cores"),
    new("KUBERNETES_RESOURCE_LIMITS_MEMORY", VariableKind::Text, "", "memory of each server, such as 4Gi"),
    both(
        "EVENT_TRACE_PARAMS",
        VariableKind::Text,
        "roi,RUN PHASE,benchmark-finish",
        "roi,RUN_PHASE,benchmark-finish",
        "windows of traces: triples roi,BEGIN,END or time,BEGIN,LENGTH (seconds)",
    ),
    new("HERO_FEATURE_IAA", VariableKind::Switch, "false", REFUSED),
    new("IAA_MODE", VariableKind::Text, "", MINDED),
    new("IAA_DEVICES", VariableKind::Text, "", MINDED),
    new("IAA_WQ_SIZE", VariableKind::Text, "", MINDED),
    new("HERO_FEATURE_QAT", VariableKind::Switch, "false", REFUSED),
    both(
        "WORKLOAD_FILE",
        VariableKind::Text,
        "90Read10Update",
        "90Read10Update",
        "the mix: built in, or a file of properties",
    ),
    both("THREADS", VariableKind::Whole(1), "10", "10", "users of each client, in both phases"),
    both("RECORD_COUNT", VariableKind::Whole(1), "4000000", "", "records of each server"),
    both(
        "OPERATION_COUNT",
        VariableKind::Whole(0),
        "4000000",
        "",
        "operations of each client in the run phase; 0: no limit",
    ),
    both("INSERT_START", VariableKind::Whole(0), "0", "", "first key of the run phase"),
    both("INSERT_COUNT", VariableKind::Whole(0), "0", "", "keys of the run phase; 0: all records"),
    both("INSERT_ORDER", ORDERS, "hashed", "", "insertorder"),
    both("READ_PROPORTION", VariableKind::Share, "0.95", "", "share of reads"),
    both("UPDATE_PROPORTION", VariableKind::Share, "0.05", "", "share of updates"),
    both("INSERT_PROPORTION", VariableKind::Share, "0", "", "share of inserts"),
    both("SCAN_PROPORTION", VariableKind::Share, "0", "", "share of scans"),
    both("READ_MODIFY_WRITE_PROPORTION", VariableKind::Share, "0", "", "share of read-modify-writes"),
    both(
        "TARGET",
        VariableKind::Whole(0),
        "0",
        "",
        "operations per second of each client; 0: as many as it can",
    ),
    both("MAX_EXECUTION_TIME", VariableKind::Whole(0), "180", "", "longest run phase, seconds; 0: no limit"),
    both("FIELD_COUNT", VariableKind::Whole(1), "10", "", "fieldcount"),
    both("FIELD_LENGTH", VariableKind::Whole(1), "100", "", "fieldlength"),
    both("MIN_FIELD_LENGTH", VariableKind::Whole(1), "1", "", "minfieldlength"),
    both("READ_ALL_FIELDS", VariableKind::Switch, "true", "", "readallfields"),
    both("WRITE_ALL_FIELDS", VariableKind::Switch, "false", "", "writeallfields"),
    both("REQUEST_DISTRIBUTION", DISTRIBUTIONS, "zipfian", "", "requestdistribution"),
    both("MIN_SCANLENGTH", VariableKind::Whole(1), "1", "", "minscanlength"),
    both("MAX_SCANLENGTH", VariableKind::Whole(1), "1000", "", "maxscanlength"),
    both("SCAN_LENGTH_DISTRIBUTION", LENGTHS, "uniform", "", "scanlengthdistribution"),
    both("ZERO_PADDING", VariableKind::Whole(1), "1", "", "zeropadding"),
    both("FIELD_NAME_PREFIX", VariableKind::Text, "field", "", "fieldnameprefix"),
    both("JVM_ARGS", VariableKind::Text, "-XX:+UseNUMA", "-XX:+UseNUMA", "recorded; there is no Java"),
    both(
        "YCSB_MEASUREMENT_TYPE",
        MEASUREMENTS,
        "hdrhistogram",
        "",
        "recorded; histograms are always kept whole",
    ),
    both("CACHE_SIZE_GB", VariableKind::Size, "", "", "WiredTiger's cache of each mongod, GiB"),
    both(
        "JOURNAL_ENABLED",
        VariableKind::Switch,
        "false",
        "false",
        "mongod's journal, where it can be switched off",
    ),
    both(
        "DB_HOSTPATH",
        VariableKind::Text,
        "",
        "",
        "folder of the data; several with blanks (%20) between them",
    ),
    both("MONGO_DISK_DATABASE_ACCESS", VariableKind::Switch, "false", "false", REFUSED),
    new("REPLICA_SET", VariableKind::Switch, "false", "each server is a replica set of one member"),
    both("COLLECTIONCONFIG_BLOCKCOMPRESSOR", COMPRESSORS, "snappy", "snappy", "compressor of collections"),
    both("JOURNAL_COMPRESSOR", COMPRESSORS, "snappy", "snappy", "compressor of the journal"),
    both("PROCESS_MANAGEMENT_FORK", VariableKind::Switch, "true", "true", MINDED),
    new("DISK_SPEC", VariableKind::Switch, "false", MINDED),
    both("MONGODB_PERCENTAGE_DB_CACHE_DB", VariableKind::Share, "0.25", "", MINDED),
];
