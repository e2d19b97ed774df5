//! Names of figures: those of `serverStatus` by version, and the one of dyno's that stands for all of them. The monitor writes
//! dyno's names and the rules of `dyno explain` read them.

use super::versions::MongodVersion;

/// Cache that the storage engine may use, bytes.
pub const CACHE_LIMIT_BYTES: &str = "cache.limit_bytes";
/// Cache in use, bytes.
pub const CACHE_BYTES: &str = "cache.bytes";
/// Changed bytes in the cache.
pub const CACHE_DIRTY_BYTES: &str = "cache.dirty_bytes";
/// Pages that threads of clients evicted, or began to evict: WiredTiger counts when they begin.
pub const CACHE_EVICTED_BY_USERS: &str = "cache.pages_evicted_by_users";
/// Tickets of the storage engine; below it stand `read.out`, `read.available`, and the same of `write`.
pub const TICKETS: &str = "tickets";
/// Operations that wait for a lock or a ticket.
pub const QUEUE_TOTAL: &str = "queue.total";
/// Writes that were repeated because another one changed the same document.
pub const WRITE_CONFLICTS: &str = "operation.writeConflicts";
/// Documents that queries looked at.
pub const SCANNED_DOCUMENTS: &str = "scanned_documents";
/// Documents that queries returned.
pub const DOCUMENTS_RETURNED: &str = "documents.returned";
/// Time that writers waited for flow control, microseconds.
pub const FLOW_CONTROL_WAITED_US: &str = "flow_control.waited_us";
/// Time of the journal's syncs, microseconds.
pub const JOURNAL_SYNC_US: &str = "journal.sync_us";

/// A figure of `serverStatus`: dyno's name, and the paths under which versions report it, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusFigure {
    /// dyno's name; of [`TICKETS`] and of a queue the names begin with it.
    pub series: &'static str,
    /// Paths in the answer.
    pub paths: &'static [&'static str],
    /// First version that has what is counted; `None` if all known ones have.
    pub since: Option<MongodVersion>,
}

const fn figure(series: &'static str, paths: &'static [&'static str]) -> StatusFigure {
    StatusFigure { series, paths, since: None }
}

/// The figures that rules need. Names of WiredTiger's are from its `dist/stat_data.py`: until 8.0 it has
/// `cache_eviction_app`, "pages evicted by application threads", from 8.1 on `eviction_app_attempt`, "page evict attempts by
/// application threads"; both count when an eviction begins. `queues.execution` replaces `wiredTiger.concurrentTransactions` in
/// 8.0 (manual, `serverStatus`). Flow control came with 4.2 (its release notes).
pub const FIGURES: [StatusFigure; 11] = [
    figure(CACHE_LIMIT_BYTES, &["wiredTiger.cache.maximum bytes configured"]),
    figure(CACHE_BYTES, &["wiredTiger.cache.bytes currently in the cache"]),
    figure(CACHE_DIRTY_BYTES, &["wiredTiger.cache.tracked dirty bytes in the cache"]),
    figure(
        CACHE_EVICTED_BY_USERS,
        &[
            "wiredTiger.cache.pages evicted by application threads",
            "wiredTiger.cache.page evict attempts by application threads",
        ],
    ),
    figure(TICKETS, &["wiredTiger.concurrentTransactions", "queues.execution"]),
    figure(QUEUE_TOTAL, &["globalLock.currentQueue.total"]),
    figure(WRITE_CONFLICTS, &["metrics.operation.writeConflicts"]),
    figure(SCANNED_DOCUMENTS, &["metrics.queryExecutor.scannedObjects"]),
    figure(DOCUMENTS_RETURNED, &["metrics.document.returned"]),
    StatusFigure {
        series: FLOW_CONTROL_WAITED_US,
        paths: &["flowControl.timeAcquiringMicros"],
        since: Some(MongodVersion::new(4, 2)),
    },
    figure(JOURNAL_SYNC_US, &["wiredTiger.log.log sync time duration (usecs)"]),
];

/// Finds the figure of a series.
pub fn find_figure(series: &str) -> Option<&'static StatusFigure> {
    FIGURES.iter().find(|figure| figure.series == series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_stands_once_and_each_path_for_one_series() {
        let mut series: Vec<&str> = FIGURES.iter().map(|figure| figure.series).collect();
        let mut paths: Vec<&str> = FIGURES.iter().flat_map(|figure| figure.paths).copied().collect();
        let (all, every) = (series.len(), paths.len());
        series.sort_unstable();
        series.dedup();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!((series.len(), paths.len()), (all, every));
        assert_eq!(find_figure(TICKETS).unwrap().paths.len(), 2);
        assert_eq!(find_figure("uptime_s"), None);
    }
}
