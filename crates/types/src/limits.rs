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

/// Longest text that a user has written by hand, bytes: experiments, documents, inventories, settings. The longest that we know
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

/// Time that replies are awaited after the last arrival, nanoseconds, where no time-out is set.
pub const DRAIN_NS: u64 = 10_000_000_000;

/// Documents inside documents that a reader of BSON follows: MongoDB's own limit.
pub const BSON_DEPTH: usize = 100;

/// Entries of one list or mapping of YAML. No user writes so many by hand, and what compares each with each still ends.
pub const ENTRIES: usize = 10_000;

/// Values that one series (`from`, `to`) stands for: each is a level, and so at least a run.
pub const SERIES_VALUES: usize = 10_000;

/// Times that the faults of one run come to.
pub const FAULTS: usize = 10_000;

/// Processes of servers that one experiment starts on a host.
pub const PROCESSES: u32 = 512;

/// Hosts that one line of an inventory stands for (`db[1:9]`).
pub const INVENTORY_HOSTS: usize = 10_000;

/// Groups of an inventory inside each other.
pub const GROUP_DEPTH: usize = 16;

/// Values of Python's literals (`cluster.config`) inside each other: every level is a call.
pub const LITERAL_DEPTH: usize = 64;

/// Parts of an expression inside each other, in PromQL and in the arithmetic of shells: every level is some calls.
pub const EXPRESSION_DEPTH: usize = 40;

/// Longest text or binary value of a generated document, bytes: a document has at most 16 MiB.
pub const VALUE_BYTES: i64 = 15 << 20;

/// Highest rate that can be asked for, operations per second.
pub const OPERATIONS_PER_S: u64 = 1_000_000_000;

/// Longest run or pause that can be asked for, seconds: 30 years.
pub const ASKED_S: u64 = 1_000_000_000;

/// Longest measured phase that is read back, seconds: a third of a year, second by second.
pub const RECORDED_S: u64 = 10_000_000;

/// Most that one count of a recorded interval says: more than a thousand hosts count in a day, and so little that the intervals
/// of a day can be added up.
pub const INTERVAL_COUNT: u64 = 100_000_000_000_000;

/// Stretches without a success, and pauses, that are read back of one phase: of 64 load threads some minutes of nothing else.
pub const GAPS: usize = 1 << 16;

/// Longest file of another program's figures, bytes. A table of numbers takes some twenty times as much once it is taken apart.
pub const IMPORT_BYTES: u64 = 256 << 20;

/// Most that such a file may count: at a thousand million operations a second it takes eleven days to count so many.
pub const IMPORT_COUNT: u64 = 1_000_000_000_000_000;

/// Longest time that such a file may tell, seconds, and the highest rate, operations a second.
pub const IMPORT_FIGURE: f64 = 1e9;

/// Longest head of a request to dyno's own pages, bytes: browsers with many cookies send some KiB.
pub const REQUEST_HEAD_BYTES: usize = 16 << 10;

/// Fields in such a head.
pub const REQUEST_FIELDS: usize = 64;

/// Longest body of such a request, bytes: a token and some form fields.
pub const REQUEST_BODY_BYTES: usize = 4 << 10;

/// Clients that are answered at the same time: each has a thread. Further ones are told to come again.
pub const CLIENTS: usize = 16;

/// Longest answer of a receiver of pushed metrics, bytes.
pub const PUSH_ANSWER_BYTES: u64 = 64 << 10;

/// Longest list or refusal of an object store, bytes: 1,000 keys of 1 KiB with what is said of each.
pub const STORE_ANSWER_BYTES: u64 = 8 << 20;

/// Most files of an experiment's folder in an object store: 100,000 runs of ten.
pub const STORE_FILES: usize = 1_000_000;

/// Largest file that an object store takes in one request, bytes.
pub const STORE_FILE_BYTES: u64 = 5 << 30;

/// Folders of a served directory that are looked at for its list.
pub const SERVED_FOLDERS: usize = 20_000;

/// Runs and experiments of a served directory that are listed, the latest.
pub const SERVED_ENTRIES: usize = 2_000;

/// Files below one run or experiment that are looked at for a page.
pub const SERVED_FILES: usize = 100_000;

/// Folders inside each other below a served directory, and below a run or an experiment (`runs/NAME/monitor/FILE`).
pub const SERVED_DEPTH: usize = 4;
