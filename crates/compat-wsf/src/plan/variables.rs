//! The variables of the workload: name, type, default in each reading, and what becomes of them here.

use crate::plan::cases::Reading;
use dyno_config::values::parse_cores;
use std::fmt;

/// Values that a variable takes. Blank is allowed everywhere and means "not passed on".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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

impl Kind {
    /// Checks a value.
    pub fn check(self, value: &str) -> Result<(), BadValue> {
        let number = value.parse::<f64>().ok().filter(|n| n.is_finite());
        let fits = match self {
            _ if value.is_empty() => true,
            Kind::Whole(from) => value.parse::<u64>().is_ok_and(|n| n >= from),
            Kind::Share => number.is_some_and(|n| (0.0..=1.0).contains(&n)),
            Kind::Size => number.is_some_and(|n| n > 0.0),
            Kind::Switch => switch(value).is_some(),
            Kind::Cores => parse_cores(value).is_some(),
            Kind::Word(words) => words.contains(&value),
            Kind::Text => true,
        };
        if fits { Ok(()) } else { Err(BadValue { value: value.to_owned(), kind: self }) }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Whole(from) => write!(f, "a whole number from {from}"),
            Kind::Share => f.write_str("a number from 0 to 1"),
            Kind::Size => f.write_str("a number above 0"),
            Kind::Switch => f.write_str("true or false"),
            Kind::Cores => f.write_str("a list of cores such as 0-3,8"),
            Kind::Word(words) => f.write_str(&words.join(", ")),
            Kind::Text => f.write_str("a text"),
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
    pub kind: Kind,
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
pub struct Variable {
    /// Name.
    pub name: &'static str,
    /// Values that it takes.
    pub kind: Kind,
    /// Defaults of the readings 23.3 and 25; `None` where it does not exist.
    pub defaults: [Option<&'static str>; 2],
    /// Effect that it has here.
    pub help: &'static str,
}

impl Variable {
    /// Default in a reading; `None` where it does not exist.
    pub fn default(&self, reading: Reading) -> Option<&'static str> {
        self.defaults[reading as usize]
    }
}

/// Finds a variable.
pub fn find(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}

const fn both(
    name: &'static str,
    kind: Kind,
    old: &'static str,
    new: &'static str,
    help: &'static str,
) -> Variable {
    Variable { name, kind, defaults: [Some(old), Some(new)], help }
}

const fn new(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Variable {
    Variable { name, kind, defaults: [None, Some(default)], help }
}

const DISTRIBUTIONS: Kind =
    Kind::Word(&["uniform", "zipfian", "hotspot", "sequential", "exponential", "latest"]);
const COMPRESSORS: Kind = Kind::Word(&["none", "snappy", "zlib", "zstd"]);
const ORDERS: Kind = Kind::Word(&["hashed", "ordered"]);
const LENGTHS: Kind = Kind::Word(&["uniform", "zipfian"]);
const MEASUREMENTS: Kind =
    Kind::Word(&["hdrhistogram", "histogram", "raw", "timeseries", "hdrhistogram+raw"]);
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
pub const VARIABLES: [Variable; 69] = [
    both("CLIENT_SERVER_PAIR", Kind::Whole(1), "3", "3", "servers, each with a client of its own"),
    both(
        "CLIENT_COUNT",
        Kind::Whole(0),
        "1",
        "1",
        "client machines; --backend local has this one; 0: single node",
    ),
    both("RUN_SINGLE_NODE", Kind::Switch, "false", "false", "clients beside the servers: CLIENT_COUNT is 0"),
    both("CONFIG_CENTER_PORT", Kind::Whole(1), "16379", "16379", MINDED),
    both("TLS_FLAG", Kind::Switch, "0", "0", REFUSED),
    both("NUMACTL_OPTION", Kind::Whole(0), "0", "0", "placement of servers: 0 to 2; in reading 25 to 5"),
    both("SELECT_NUMA_NODE", Kind::Whole(0), "0", "0", "node of NUMACTL_OPTION=2"),
    both("CORES", Kind::Cores, "", "", "cores that all servers share with NUMACTL_OPTION=2"),
    both("YCSB_CORES", Kind::Cores, "", "", "cores of the clients with NUMACTL_OPTION=2 or on a single node"),
    new(
        "CORE_NUMS_EACH_INSTANCE",
        Kind::Whole(1),
        "",
        "physical cores of a server with NUMACTL_OPTION=3 and 4",
    ),
    both(
        "CUSTOMER_NUMAOPT_CLIENT",
        Kind::Text,
        "",
        "",
        "options of numactl for clients, instead of all others",
    ),
    both(
        "CUSTOMER_NUMAOPT_SERVER",
        Kind::Text,
        "",
        "",
        "options of numactl for servers, instead of all others",
    ),
    Variable {
        name: "NETWORK_RPS_TUNE_ENABLE",
        kind: Kind::Switch,
        defaults: [Some("false"), None],
        help: "receive packet steering of network devices; a local run uses none",
    },
    both(
        "DB_HUGEPAGE_STATUS",
        Kind::Switch,
        "false",
        "false",
        "transparent huge pages: always or never (--tune-host)",
    ),
    new(
        "KERNEL_SETTING_OPTIMIZED",
        Kind::Switch,
        "true",
        "zone reclaim off, NUMA balancing on (--tune-host)",
    ),
    new("CORE_FREQUENCY_ENABLE", Kind::Switch, "false", REFUSED),
    new("CORE_FREQUENCY", Kind::Text, "", MINDED),
    new("UNCORE_FREQUENCY_ENABLE", Kind::Switch, "false", REFUSED),
    new("UNCORE_FREQUENCY", Kind::Text, "", MINDED),
    both("MAX_SKEW", Kind::Whole(1), "", "", MINDED),
    new("KUBERNETES_RESOURCE_REQUESTS", Kind::Switch, "true", MINDED),
    new("KUBERNETES_RESOURCE_REQUESTS_CPU", Kind::Text, "1", MINDED),
    new("KUBERNETES_RESOURCE_REQUESTS_MEMORY", Kind::Text, "", MINDED),
    new("KUBERNETES_RESOURCE_LIMITS", Kind::Switch, "false", "whether the two below limit servers"),
    new("KUBERNETES_RESOURCE_LIMITS_CPU", Kind::Size, "", "processor time of each server, cores"),
    new("KUBERNETES_RESOURCE_LIMITS_MEMORY", Kind::Text, "", "memory of each server, such as 4Gi"),
    both(
        "EVENT_TRACE_PARAMS",
        Kind::Text,
        "roi,RUN PHASE,benchmark-finish",
        "roi,RUN_PHASE,benchmark-finish",
        "windows of traces: triples roi,BEGIN,END or time,BEGIN,LENGTH (seconds)",
    ),
    new("HERO_FEATURE_IAA", Kind::Switch, "false", REFUSED),
    new("IAA_MODE", Kind::Text, "", MINDED),
    new("IAA_DEVICES", Kind::Text, "", MINDED),
    new("IAA_WQ_SIZE", Kind::Text, "", MINDED),
    new("HERO_FEATURE_QAT", Kind::Switch, "false", REFUSED),
    both(
        "WORKLOAD_FILE",
        Kind::Text,
        "90Read10Update",
        "90Read10Update",
        "the mix: built in, or a file of properties",
    ),
    both("THREADS", Kind::Whole(1), "10", "10", "users of each client, in both phases"),
    both("RECORD_COUNT", Kind::Whole(1), "4000000", "", "records of each server"),
    both(
        "OPERATION_COUNT",
        Kind::Whole(0),
        "4000000",
        "",
        "operations of each client in the run phase; 0: no limit",
    ),
    both("INSERT_START", Kind::Whole(0), "0", "", "first key of the run phase"),
    both("INSERT_COUNT", Kind::Whole(0), "0", "", "keys of the run phase; 0: all records"),
    both("INSERT_ORDER", ORDERS, "hashed", "", "insertorder"),
    both("READ_PROPORTION", Kind::Share, "0.95", "", "share of reads"),
    both("UPDATE_PROPORTION", Kind::Share, "0.05", "", "share of updates"),
    both("INSERT_PROPORTION", Kind::Share, "0", "", "share of inserts"),
    both("SCAN_PROPORTION", Kind::Share, "0", "", "share of scans"),
    both("READ_MODIFY_WRITE_PROPORTION", Kind::Share, "0", "", "share of read-modify-writes"),
    both("TARGET", Kind::Whole(0), "0", "", "operations per second of each client; 0: as many as it can"),
    both("MAX_EXECUTION_TIME", Kind::Whole(0), "180", "", "longest run phase, seconds; 0: no limit"),
    both("FIELD_COUNT", Kind::Whole(1), "10", "", "fieldcount"),
    both("FIELD_LENGTH", Kind::Whole(1), "100", "", "fieldlength"),
    both("MIN_FIELD_LENGTH", Kind::Whole(1), "1", "", "minfieldlength"),
    both("READ_ALL_FIELDS", Kind::Switch, "true", "", "readallfields"),
    both("WRITE_ALL_FIELDS", Kind::Switch, "false", "", "writeallfields"),
    both("REQUEST_DISTRIBUTION", DISTRIBUTIONS, "zipfian", "", "requestdistribution"),
    both("MIN_SCANLENGTH", Kind::Whole(1), "1", "", "minscanlength"),
    both("MAX_SCANLENGTH", Kind::Whole(1), "1000", "", "maxscanlength"),
    both("SCAN_LENGTH_DISTRIBUTION", LENGTHS, "uniform", "", "scanlengthdistribution"),
    both("ZERO_PADDING", Kind::Whole(1), "1", "", "zeropadding"),
    both("FIELD_NAME_PREFIX", Kind::Text, "field", "", "fieldnameprefix"),
    both("JVM_ARGS", Kind::Text, "-XX:+UseNUMA", "-XX:+UseNUMA", "recorded; there is no Java"),
    both(
        "YCSB_MEASUREMENT_TYPE",
        MEASUREMENTS,
        "hdrhistogram",
        "",
        "recorded; histograms are always kept whole",
    ),
    both("CACHE_SIZE_GB", Kind::Size, "", "", "WiredTiger's cache of each mongod, GiB"),
    both("JOURNAL_ENABLED", Kind::Switch, "false", "false", "mongod's journal, where it can be switched off"),
    both("DB_HOSTPATH", Kind::Text, "", "", "folder of the data; several with blanks (%20) between them"),
    both("MONGO_DISK_DATABASE_ACCESS", Kind::Switch, "false", "false", REFUSED),
    new("REPLICA_SET", Kind::Switch, "false", "each server is a replica set of one member"),
    both("COLLECTIONCONFIG_BLOCKCOMPRESSOR", COMPRESSORS, "snappy", "snappy", "compressor of collections"),
    both("JOURNAL_COMPRESSOR", COMPRESSORS, "snappy", "snappy", "compressor of the journal"),
    both("PROCESS_MANAGEMENT_FORK", Kind::Switch, "true", "true", MINDED),
    new("DISK_SPEC", Kind::Switch, "false", MINDED),
    both("MONGODB_PERCENTAGE_DB_CACHE_DB", Kind::Share, "0.25", "", MINDED),
];
