//! State that all load threads of a run share.

use crate::claim::Claims;
use crate::job::{Control, Job};
use dyno_workload::Frontier;
use std::sync::Arc;

/// State that all load threads of a run share.
pub struct RunState {
    /// The run.
    pub job: Job,
    /// Indexes of closed-loop operations.
    pub claims: Claims,
    /// Acknowledged inserts.
    pub frontier: Arc<Frontier>,
    /// The flag that ends the run early.
    pub control: Arc<Control>,
    /// Metrics that the engine records by itself, where the workload has them.
    pub own: OwnMetrics,
}

/// Numbers of the metrics that are not requests of their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnMetrics {
    /// Verification of what was read.
    pub verify: Option<u16>,
    /// A scan's time divided by its records.
    pub scan_per_record: Option<u16>,
    /// Closing a user's connections.
    pub cleanup: Option<u16>,
}

impl OwnMetrics {
    /// Finds them by YCSB's names.
    pub fn find_by_name(metrics: &[String]) -> Self {
        debug_assert!(metrics.len() <= usize::from(u16::MAX), "a metric's number has 16 bits");
        let at = |name: &str| metrics.iter().position(|m| m == name).map(|i| i as u16);
        OwnMetrics {
            verify: at("VERIFY"),
            scan_per_record: at("SCAN-LATENCY-PER-RECORD"),
            cleanup: at("CLEANUP"),
        }
    }
}

impl RunState {
    /// State of a run that has not begun.
    pub fn new(job: Job, control: Arc<Control>) -> Arc<Self> {
        Arc::new(RunState {
            claims: Claims::new(job.end.operations, job.cores.len(), job.stripe),
            frontier: match &job.team {
                Some(team) => team.frontier.clone(),
                None => Arc::new(job.workload.frontier()),
            },
            own: OwnMetrics::find_by_name(job.workload.metrics()),
            control,
            job,
        })
    }
}
