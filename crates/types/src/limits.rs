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

/// Workers of one host: processes with connections and threads of their own.
pub const WORKERS: u32 = 1_024;

/// Pods of workers, as many as nodes that Kubernetes is made for have pods of load.
pub const PODS: u32 = 10_000;

/// Servers of a simulation that work at the same time: eight bytes each.
pub const SIM_SERVERS: u32 = 1_000_000;

/// Longest document, bytes: what MongoDB takes (16 MiB), and some room.
pub const BSON_BYTES: u64 = 17 << 20;

/// Longest record with all its fields, bytes: the longest value that Redis takes.
pub const RECORD_BYTES: u64 = 512 << 20;

/// Longest batch of records, bytes: it is held as a whole, and so is what is sent of it.
pub const BATCH_BYTES: u64 = 1 << 30;

/// Secondary indexes of a collection: MongoDB's own limit.
pub const INDEXES: usize = 64;

/// Collections of a workload: one takes some hundred bytes of a plan, and in MongoDB two files.
pub const COLLECTIONS: u64 = 100_000;

/// Iterations of a case (loops x burst): each is an experiment.
pub const ITERATIONS: usize = 10_000;

/// Most runs of one experiment: what a year of ten-minute runs comes to, so that a slip of a digit is caught.
pub const RUNS: usize = 50_000;

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

/// Longest password, token, headers of a push, or certificate, bytes: chains of certificates have some ten KiB.
pub const SECRET_BYTES: u64 = 1 << 20;

/// Longest text that somebody has written by hand, bytes: experiments, documents, inventories, settings. The longest that we know
/// has 40 KiB.
pub const TEXT_BYTES: u64 = 16 << 20;

/// Longest file of a directory that is held as a whole, bytes: records, summaries, events, journals. 600,000 events, or 100,000
/// runs of an experiment.
pub const DOCUMENT_BYTES: u64 = 64 << 20;

/// Longest file of intervals or histograms that is held as a whole, bytes: of ten days at one interval a second, or two hours at
/// ten milliseconds. Most commands read them line by line, however long they are.
pub const RESULT_BYTES: u64 = 4 << 30;

/// Longest line of a file of results, bytes: the names of all that monitors saw are one, in some ten KiB.
pub const RESULT_LINE_BYTES: u64 = 8 << 20;

/// Longest output of a program that is asked something, bytes: a list of all pods of a large cluster.
pub const OUTPUT_BYTES: u64 = 64 << 20;

/// End of a log that is looked at for the reason why a program ended, bytes.
pub const LOG_END_BYTES: u64 = 64 << 10;

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
