//! Names of series of databases: what the monitors of several databases write, and what rules, reports and the live view read.
//! MongoDB's own are in `mongod/counters`. A name that only the "any series" chart shows needs no constant.

/// Operations that the server counts, commands among them.
pub const OPERATIONS: &str = "operations";
/// Connections of clients now.
pub const CONNECTIONS: &str = "connections";
/// Connections that were accepted.
pub const CONNECTIONS_ACCEPTED: &str = "connections_accepted";
/// Connections whose command waits for data.
pub const CONNECTIONS_BLOCKED: &str = "connections_blocked";
/// Connections that were refused, because there were too many.
pub const CONNECTIONS_REJECTED: &str = "connections_rejected";
/// Memory that the server says it uses, bytes.
pub const MEMORY_BYTES: &str = "memory_bytes";
/// Memory that data may use, bytes.
pub const MEMORY_LIMIT_BYTES: &str = "memory.limit_bytes";
/// Resident memory, as the server tells it, bytes.
pub const MEMORY_RESIDENT_BYTES: &str = "memory.resident_bytes";
/// Bytes that the server received from clients.
pub const RECEIVED_BYTES: &str = "network.received_bytes";
/// Bytes that the server sent to clients.
pub const SENT_BYTES: &str = "network.sent_bytes";
/// Reads of keys that were there.
pub const KEYSPACE_HITS: &str = "keyspace.hits";
/// Reads of keys that were not there.
pub const KEYSPACE_MISSES: &str = "keyspace.misses";
/// Keys whose time was over.
pub const KEYSPACE_EXPIRED: &str = "keyspace.expired";
/// Keys that were removed for want of memory.
pub const KEYSPACE_EVICTED: &str = "keyspace.evicted";
/// 1 while a snapshot is written.
pub const RDB_SAVING: &str = "rdb.saving";
/// 1 while the append-only file is rewritten.
pub const AOF_REWRITING: &str = "aof.rewriting";
/// Syncs of the append-only file that came late because the one before went on.
pub const AOF_DELAYED_SYNCS: &str = "aof.delayed_syncs";
/// Replicas that are connected.
pub const REPLICATION_REPLICAS: &str = "replication.replicas";
/// Bytes that the replica furthest behind lacks.
pub const REPLICATION_LAG_BYTES: &str = "replication.lag_bytes";
/// Records that the replica furthest behind lacks.
pub const REPLICATION_LAG_RECORDS: &str = "replication.lag_records";
/// Replicas that came back and needed a part of the data alone.
pub const REPLICATION_PARTIAL_SYNCS: &str = "replication.partial_syncs";
/// Time since the server started, seconds.
pub const UPTIME_S: &str = "uptime_s";
/// CPU time of the process in its own code, seconds; processes of this host have it too.
pub const CPU_USER_S: &str = "cpu.user_s";
/// The same in the kernel.
pub const CPU_SYSTEM_S: &str = "cpu.system_s";
