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
    /// Something is recorded of a request beside its own metric, or told of its time: one look for all of it at each request's
    /// end.
    pub records_more: bool,
}

impl RunState {
    /// State of a run that has not begun.
    pub fn new(job: Job, control: Arc<Control>) -> Arc<Self> {
        let own = job.workload.own_metrics();
        Arc::new(RunState {
            records_more: own.verify.is_some()
                || own.scan_per_record.is_some()
                || own.elements
                || job.raw_samples
                || job.workload.times_each(),
            claims: Claims::new(job.end.operations, job.cores.len(), job.stripe),
            frontier: match &job.team {
                Some(team) => team.frontier.clone(),
                None => Arc::new(job.workload.frontier()),
            },
            own,
            control,
            job,
        })
    }
}
