//! The variables of both dialects.

/// Versions that know a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownVersions {
    /// All.
    Both,
    /// Versions that name server and port; the value marks them as such.
    Old,
    /// Versions that have a URI.
    Head,
}

/// A variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Name.
    pub name: &'static str,
    /// Versions that know it.
    pub known: KnownVersions,
    /// Defaults in the version of 2015 and in the last one; empty for nothing.
    pub defaults: (&'static str, &'static str),
    /// Meaning.
    pub meaning: &'static str,
}

const fn both(name: &'static str, default: &'static str, meaning: &'static str) -> Variable {
    Variable { name, known: KnownVersions::Both, defaults: (default, default), meaning }
}

const fn differs(
    name: &'static str,
    old: &'static str,
    head: &'static str,
    meaning: &'static str,
) -> Variable {
    Variable { name, known: KnownVersions::Both, defaults: (old, head), meaning }
}

const fn old(name: &'static str, default: &'static str, meaning: &'static str) -> Variable {
    Variable { name, known: KnownVersions::Old, defaults: (default, ""), meaning }
}

const fn head(name: &'static str, default: &'static str, meaning: &'static str) -> Variable {
    Variable { name, known: KnownVersions::Head, defaults: ("", default), meaning }
}

/// All variables.
pub const VARIABLES: [Variable; 40] = [
    differs("DB_NAME", "sbtest", "sbtest10by1mm", "database"),
    old("MONGO_SERVER", "localhost", "host of the server"),
    old("MONGO_PORT", "27017", "port of the server"),
    old("USERNAME", "none", "user; none for no login"),
    old("PASSWORD", "none", "the user's password"),
    old("WRITE_CONCERN", "SAFE", "acknowledgement of writes"),
    old("MONGO_READ_PREFERENCE", "", "which members are read from"),
    old("USE_TLS", "", "true for TLS"),
    old("MONGO_COMPRESSION", "zlib", "of TokuMX alone: has no effect"),
    old("MONGO_BASEMENT", "65536", "of TokuMX alone: has no effect"),
    old("SYSBENCH_AUTO_COMMIT", "Y", "of TokuMX alone: has no effect"),
    old("SYSBENCH_READ_ONLY", "N", "Y for transactions without writes"),
    head("URI", "mongodb://localhost:27017", "connection string"),
    head("TRUST_STORE", "", "not used by the original either; use tlsCAFile in URI"),
    head("TRUST_STORE_PASSWORD", "", "not used by the original either"),
    head("DOCDB_DBNAME", "", "word in the names of the log files"),
    head("SHARDED", "no", "yes for documents and queries by shardKey and orderId"),
    head("MAX_SHARD_KEY", "", "shard keys; of SHARDED=yes alone"),
    head("DOCS_PER_SHARD", "", "documents of a shard key; of SHARDED=yes alone"),
    both("DOLOAD", "yes", "whether to load"),
    both("DOQUERY", "yes", "whether to run transactions"),
    differs("NUM_COLLECTIONS", "16", "1", "collections"),
    differs("NUM_DOCUMENTS_PER_COLLECTION", "10000000", "1000000", "documents of each collection"),
    both("NUM_DOCUMENTS_PER_INSERT", "1000", "documents of one insert of the loader"),
    differs("NUM_LOADER_THREADS", "8", "10", "users of the load phase"),
    differs("NUM_WRITER_THREADS", "64", "10", "users of the run phase"),
    both("RUN_TIME_MINUTES", "10", "length of the run phase, minutes"),
    both("RUN_TIME_SECONDS", "", "length of the run phase, seconds; default: RUN_TIME_MINUTES"),
    both("MAX_TPS", "999999", "transactions a second at most; 999999 and more for no cap"),
    both("SYSBENCH_RANGE_SIZE", "100", "_ids of a range"),
    both("SYSBENCH_POINT_SELECTS", "10", "of a transaction"),
    both("SYSBENCH_SIMPLE_RANGES", "1", "of a transaction"),
    both("SYSBENCH_SUM_RANGES", "1", "of a transaction"),
    both("SYSBENCH_ORDER_RANGES", "1", "of a transaction"),
    both("SYSBENCH_DISTINCT_RANGES", "1", "of a transaction"),
    both("SYSBENCH_INDEX_UPDATES", "1", "of a transaction"),
    both("SYSBENCH_NON_INDEX_UPDATES", "1", "of a transaction"),
    both("SYSBENCH_INSERTS", "1", "deletes with an insert of a transaction"),
    both("NUM_INSERTS_PER_FEEDBACK", "-1", "documents between two lines of the load phase; -1 for never"),
    both("NUM_SECONDS_PER_FEEDBACK", "10", "seconds between two lines; -1 for never"),
];

/// The seed's name; its default is the time.
pub const SEED: &str = "SEED";

/// Names of all variables.
pub fn names() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().map(|v| v.name).chain([SEED])
}

/// A variable by its name, the seed aside.
pub fn variable(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|v| v.name == name)
}
