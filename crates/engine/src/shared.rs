//! State that all load threads of a run share.

use crate::claim::Claims;
use crate::job::{Control, Job};
use dyno_workload::Frontier;
use dyno_workload::OwnMetrics;
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

impl RunState {
    /// State of a run that has not begun.
    pub fn new(job: Job, control: Arc<Control>) -> Arc<Self> {
        Arc::new(RunState {
            claims: Claims::new(job.end.operations, job.cores.len(), job.stripe),
            frontier: match &job.team {
                Some(team) => team.frontier.clone(),
                None => Arc::new(job.workload.frontier()),
            },
            own: job.workload.own_metrics(),
            control,
            job,
        })
    }
}
