//! Every bound of the product, with its reason. Whatever grows has one.

/// Histograms resolve latencies up to 2^36 units (73 minutes at 64 ns); longer ones are counted at the top bucket
/// and as saturated.
pub const HISTOGRAM_BITS: u32 = 36;

/// Operation names one run may record: the recorder keeps one slot per name, and a YCSB run has at most 12.
pub const METRICS: usize = 64;

/// Due arrivals that may wait for a free connection (open loop) before the oldest is dropped, by default. One
/// million is 10 s at 100,000/s; waiting arrivals are two counters, so this costs no memory.
pub const BACKLOG: u64 = 1_000_000;

/// Connections of one process: file descriptors and 16 KiB each.
pub const CONNECTIONS: usize = 100_000;

/// Operations in flight on one connection.
pub const PIPELINE: usize = 10_000;

/// Inserts of one batch: MongoDB's own limit of writes in one command.
pub const BATCH: usize = 100_000;

/// Load threads of one process.
pub const THREADS: usize = 1_024;

/// Redirections (MOVED, ASK) one command may follow before it ends as `redirects`.
pub const REDIRECTS: u8 = 16;

/// Longest reply the wire decoders accept, in bytes: Redis' own bulk limit.
pub const REPLY_BYTES: usize = 512 << 20;

/// Longest answer to what is asked beside the load, bytes: a message of MongoDB's, or the slots of a cluster.
pub const ANSWER_BYTES: usize = 64 << 20;

/// Longest reply to the greeting of a connection, bytes: Redis' HELLO names its modules.
pub const GREETING_BYTES: usize = 1 << 20;

/// Longest message of MongoDB's wire protocol, bytes: what servers announce as `maxMessageSizeBytes`, and some room.
pub const MESSAGE_BYTES: usize = 49 << 20;

/// Nesting of aggregates in a RESP reply.
pub const REPLY_DEPTH: usize = 16;

/// Nodes a cluster client keeps.
pub const NODES: usize = 1_000;

/// First and longest pause between two attempts to connect, nanoseconds. It doubles in between.
pub const BACKOFF_NS: (u64, u64) = (1_000_000, 500_000_000);

/// Run-phase inserts that may be under way beyond the acknowledged prefix (YCSB's window).
pub const INSERT_WINDOW: u64 = 1 << 20;

/// Draws after which choosing an acknowledged key gives up and takes the newest.
pub const REDRAWS: u32 = 10_000;

/// Longest line of a properties file or a log that is read back, bytes.
pub const LINE_BYTES: usize = 1 << 20;

/// Records one scan may ask for.
pub const SCAN_RECORDS: u32 = 1_000_000;

/// Single samples kept in memory for reports that need them (YCSB's `raw`, `histogram`, `timeseries`), by default: 40
/// bytes each.
pub const SAMPLES: usize = 20_000_000;

/// Longest log of a run directory, bytes. At the level of phases a run has some hundred lines; 16 MiB hold about 60,000, and an
/// editor still opens them.
pub const LOG_BYTES: u64 = 16 << 20;

/// Longest text of a record of the log, bytes: a server's command line with all its options is shorter.
pub const LOG_TEXT_BYTES: usize = 8 << 10;

/// Records of the log that wait for a run directory, or for the controller: starting a large cluster takes some hundred.
pub const LOG_WAITING: usize = 4_096;

/// Pushes of live metrics that wait for a receiver: a minute at one a second. The oldest goes first, and the next has counted
/// what was in it.
pub const PUSHES_WAITING: usize = 60;

/// Distinct error texts kept per run; further ones are only counted.
pub const ERROR_TEXTS: usize = 32;

/// Time that replies are awaited after the last arrival, nanoseconds, where no time-out is set.
pub const DRAIN_NS: u64 = 10_000_000_000;
