//! The kinds of operation and the metrics they are recorded under.

use crate::OwnMetrics;
use dyno_types::metric::READ_MODIFY_WRITE;
use dyno_types::metric::{CLEANUP, SCAN_PER_RECORD, VERIFY};

/// Kinds of operation, in the order of their weights ([`super::config::Proportions::all_weights`]) and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    Delete,
    ReadModifyWrite,
}

pub(super) const OPERATIONS: [(Operation, &str); 6] = [
    (Operation::Read, "READ"),
    (Operation::Update, "UPDATE"),
    (Operation::Insert, "INSERT"),
    (Operation::Scan, "SCAN"),
    (Operation::Delete, "DELETE"),
    (Operation::ReadModifyWrite, READ_MODIFY_WRITE),
];

/// Metric of a kind that the mix cannot produce.
const NO_METRIC: u16 = u16::MAX;

/// Metric of each operation, by its place in [`OPERATIONS`].
pub(super) type MetricOf = [u16; OPERATIONS.len()];

/// Names of the metrics that a mix of these weights can produce, the metric of each operation, and the operation of
/// each metric that is one.
pub(super) fn run_metrics(
    weights: &[f64; OPERATIONS.len()],
    verifies: bool,
) -> (Vec<String>, MetricOf, Vec<Operation>) {
    let mut used = weights.map(|w| w > 0.0);
    let modifies = used[Operation::ReadModifyWrite as usize];
    used[Operation::Read as usize] |= modifies;
    used[Operation::Update as usize] |= modifies;
    let mut names = Vec::new();
    let mut metric = [NO_METRIC; OPERATIONS.len()];
    let mut operations = Vec::new();
    for (operation, name) in OPERATIONS {
        if used[operation as usize] {
            metric[operation as usize] = names.len() as u16;
            names.push(name.to_owned());
            operations.push(operation);
        }
    }
    if verifies && used[Operation::Read as usize] {
        names.push(VERIFY.into());
    }
    if used[Operation::Scan as usize] {
        names.push(SCAN_PER_RECORD.into());
    }
    names.push(CLEANUP.into());
    (names, metric, operations)
}

/// Finds the metrics that YCSB has beside its operations, by their names.
pub(super) fn own_metrics(metrics: &[String]) -> OwnMetrics {
    debug_assert!(metrics.len() <= usize::from(u16::MAX), "a metric's number has 16 bits");
    let at = |name: &str| metrics.iter().position(|metric| metric == name).map(|at| at as u16);
    OwnMetrics {
        verify: at(VERIFY),
        scan_per_record: at(SCAN_PER_RECORD),
        cleanup: at(CLEANUP),
        ..OwnMetrics::default()
    }
}

/// Share of each of `count` metrics as the weights say it; a read-modify-write is a read and an update, too.
pub(super) fn asked(weights: &[f64; OPERATIONS.len()], metric: &MetricOf, count: usize) -> Vec<f64> {
    let mut shares = vec![f64::NAN; count];
    let both = weights[Operation::ReadModifyWrite as usize];
    for (operation, _) in OPERATIONS {
        let more = if matches!(operation, Operation::Read | Operation::Update) { both } else { 0.0 };
        if let Some(share) = shares.get_mut(metric[operation as usize] as usize) {
            *share = weights[operation as usize] + more;
        }
    }
    shares
}
