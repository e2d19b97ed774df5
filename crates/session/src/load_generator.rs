//! Load generator of a session: an open target of this process, or a pool of worker processes.

use crate::collection_stats::WorkerPart;
use crate::hosts::SeenByWorker;
use crate::in_process_workers;
use dyno_db::target::{OpenTarget, TargetInfo};
use dyno_engine::{Control, Finished, Job, RunError, Second};
use dyno_monitor::{ProcessCpu, peak_resident_bytes};
use dyno_record::Totals;
use dyno_rundir::schema::CollectionFigures;
pub use dyno_workload::ReplayedReplies;
use std::sync::Arc;

/// A phase that has been applied, and what that cost the client.
#[derive(Debug)]
pub struct Applied {
    /// The engine's own account.
    pub finished: Finished,
    /// User CPU of all processes since the warm-up, seconds.
    pub user_s: f64,
    /// System CPU of all processes since the warm-up, seconds.
    pub system_s: f64,
    /// Largest resident memory, bytes, of all processes together.
    pub peak_resident_bytes: u64,
    /// Load threads; `None`: as many as the job says.
    pub threads: Option<usize>,
    /// Requests that were still queued when the phase ended: sent afterwards, and not sent.
    pub rest: (u64, u64),
    /// Replies of a replay beside those of then.
    pub replayed: Option<ReplayedReplies>,
}

/// Those of several workers together.
pub fn merge_replayed(all: impl Iterator<Item = ReplayedReplies>) -> Option<ReplayedReplies> {
    all.reduce(|mut sum, more| {
        sum.merge(more);
        sum
    })
}

/// Applies the load: in this process, or by workers.
pub trait LoadGenerator {
    /// Returns the description of the target.
    fn target(&self) -> TargetInfo;

    /// Runs the jobs of one phase side by side; `on_second` gets their seconds added up.
    fn run(
        &self,
        phase: &str,
        jobs: &[Job],
        control: &Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Applied, RunError>;

    /// Returns the load threads that will carry out a phase, those of all its jobs together; `None` where workers choose them.
    fn threads(&self, job: &Job) -> Option<usize> {
        Some(threads(job, &self.target()))
    }

    /// Returns the share of each target in the last phase, where there are several: target, totals, measured nanoseconds.
    fn parts(&self) -> Vec<(String, Totals, u64)> {
        Vec::new()
    }

    /// Gives the part of each worker process in the last phase, one after another: its number from 0, its target, and its part.
    fn each_worker(&self, _take: &mut dyn FnMut(usize, String, WorkerPart)) {}

    /// Returns what each worker process saw of its beginning and of its host in the last phase, by its number.
    fn seen_by_workers(&self) -> Vec<SeenByWorker> {
        Vec::new()
    }

    /// Reads the database's statistics of its collections: name, figure, value.
    fn collections(&self) -> CollectionFigures {
        CollectionFigures::new()
    }

    /// Names the nodes that did not answer before the run; they are left out until they do.
    fn missing(&self) -> Option<String> {
        None
    }

    /// Workers that were lost on the way, in words: what they had measured since their last second is missing.
    fn lost(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Load threads of a job: of a store in this process, each user is one.
pub(crate) fn threads(job: &Job, target: &TargetInfo) -> usize {
    if target.wire { job.cores.len() } else { job.users }
}

/// Load threads of this process, on a target that is open.
pub struct LocalGenerator(pub Box<dyn OpenTarget>);

impl AsRef<dyn OpenTarget> for LocalGenerator {
    fn as_ref(&self) -> &dyn OpenTarget {
        self.0.as_ref()
    }
}

impl LoadGenerator for LocalGenerator {
    fn target(&self) -> TargetInfo {
        self.0.info()
    }

    fn run(
        &self,
        _phase: &str,
        jobs: &[Job],
        control: &Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Applied, RunError> {
        run_jobs(self.as_ref(), jobs, control, on_second)
    }

    fn collections(&self) -> CollectionFigures {
        self.0.collection_stats().map(|stats| stats.read_stats()).unwrap_or_default()
    }

    fn missing(&self) -> Option<String> {
        OpenTarget::missing(self.as_ref())
    }
}

/// Runs jobs side by side in this process, and takes down what they cost it.
pub fn run_jobs(
    opened: &dyn OpenTarget,
    jobs: &[Job],
    control: &Arc<Control>,
    on_second: &mut dyn FnMut(Second),
) -> Result<Applied, RunError> {
    let mut before = ProcessCpu::read_now();
    let mut after = None;
    // A second is handed out as soon as all threads are past it: the last one of the warm-up ends that, and the one in which
    // the duration ends is the last that is measured.
    let last = jobs.first().and_then(|job| {
        let end_ns = job.warmup_ns + job.end.duration_ns?;
        Some(end_ns.div_ceil(job.interval_ns).saturating_sub(1))
    });
    let mut counted = |second: Second| {
        if second.warmup {
            before = ProcessCpu::read_now();
        } else if last.is_some_and(|last| second.number >= last) {
            after.get_or_insert_with(ProcessCpu::read_now);
        }
        on_second(second);
    };
    let finished = in_process_workers::run(opened, jobs, control, &mut counted)?;
    let cpu = after.unwrap_or_else(ProcessCpu::read_now).since_earlier(&before);
    Ok(Applied {
        finished,
        user_s: cpu.user_s,
        system_s: cpu.system_s,
        peak_resident_bytes: peak_resident_bytes().unwrap_or(0),
        threads: None,
        rest: (0, 0),
        replayed: merge_replayed(jobs.iter().filter_map(|job| job.workload.replayed())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_engine::{End, Pacing};
    use std::time::{Duration, SystemTime};

    /// Spends `warm` of CPU in the warm-up, and next to nothing afterwards.
    struct Warming(Duration);

    impl OpenTarget for Warming {
        fn info(&self) -> TargetInfo {
            TargetInfo::default()
        }

        fn apply(
            &self,
            job: Job,
            _control: Arc<Control>,
            on_second: &mut dyn FnMut(Second),
        ) -> Result<Finished, RunError> {
            let begun = ProcessCpu::read_now();
            let spent = || ProcessCpu::read_now().since_earlier(&begun);
            while spent().user_s + spent().system_s < self.0.as_secs_f64() {}
            let totals = || Totals::new(job.workload.metrics().len(), job.scale);
            on_second(Second { number: 0, warmup: true, totals: totals() });
            on_second(Second { number: 0, warmup: false, totals: totals() });
            Ok(Finished {
                errors: Vec::new(),
                epoch: SystemTime::now(),
                elapsed_ns: 1,
                measured_ns: 1,
                busy_rate: None,
                connecting_ns: 0,
                pinned: false,
            })
        }
    }

    #[test]
    fn the_cpu_time_of_the_warm_up_is_not_counted() {
        let warm = Duration::from_millis(200);
        let end = End { operations: Some(1), ..End::default() };
        let job = crate::oracle::ping_job(Pacing::Closed { think_ns: 0 }, 1, 1, end);
        let applied = run_jobs(&Warming(warm), &[job], &Arc::default(), &mut |_| ()).unwrap();
        let counted = applied.user_s + applied.system_s;
        assert!(counted < warm.as_secs_f64() / 4.0, "{counted}");
    }
}
