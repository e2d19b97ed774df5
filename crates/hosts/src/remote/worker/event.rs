//! What a pool hears of its workers.

use crate::protocol::frame::{PackedSecond, PackedTotals};
use crate::protocol::worker::FromWorker;

/// A word of a worker, or its end.
pub(crate) enum WorkerEvent {
    Message(FromWorker),
    Second(PackedSecond),
    /// All that it has measured in a phase; comes before [`FromWorker::Done`].
    Whole(PackedTotals),
    Lost(String),
}
