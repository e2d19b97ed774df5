//! Names of metrics that are more than an operation's own: who records them and who reads them say the same.

/// The metric of YCSB's read and update of one record, as a whole.
pub const READ_MODIFY_WRITE: &str = "READ-MODIFY-WRITE";

/// YCSB's verification of what was read.
pub const VERIFY: &str = "VERIFY";

/// YCSB's time of a scan divided by its records.
pub const SCAN_PER_RECORD: &str = "SCAN-LATENCY-PER-RECORD";

/// YCSB's closing of a user's connections.
pub const CLEANUP: &str = "CLEANUP";

/// Time that recorded commands were held back because the one before on their connection was not answered yet.
pub const HELD: &str = "HELD";

/// A recorded transaction, from its first command to its last; those commands have its name and their own with a dot between.
pub const MULTI_EXEC: &str = "MULTI-EXEC";

/// Returns whether a metric is of requests: the time that closing connections takes, or that commands are held back, says nothing
/// of a database.
pub fn is_request(name: &str) -> bool {
    ![CLEANUP, HELD].contains(&name)
}

/// The metric of a whole transaction; the others of its phase are its requests.
pub const TRANSACTION: &str = "TRANSACTION";

/// The metric of a bulk of several commands.
pub const BULK: &str = "BULK";

/// The metrics of the closed economy's transactions, which have several requests, begin with this.
pub const TRANSACTIONAL: &str = "TX-";

/// Last part of the name of an operation that has users or a rate of its own: it is in no total.
pub const OWN: &str = "own";

/// The same of one whose commands wait for data at the server: its times are what it waits.
pub const WAIT: &str = "wait";

/// Last part of the name of what a command asked for and found, element by element: a count without times.
pub const HITS: &str = "hits";

/// The same of what it did not find.
pub const MISSES: &str = "misses";

/// Last part of the name of the times from the stamp in a message to its receipt, of an operation beside the others.
pub const DELIVERY: &str = "delivery";
