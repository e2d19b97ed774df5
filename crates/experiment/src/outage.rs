//! Hosts and clusters that are out of reach for a while: a network that is down, an API server that starts again, a login that
//! has expired. Runs that come too early are made again; so are those whose results found no room on the disk.

use crate::disk_room;
use crate::journal::{RunRecord, RunStatus};
use dyno_engine::Control;
use dyno_hosts::kubernetes::error::PodsError;
use dyno_hosts::kubernetes::kubectl::KubectlError;
use dyno_hosts::remote::ssh::RemoteError;
use dyno_rundir::log::NOTICE;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two attempts.
const PAUSE: Duration = Duration::from_secs(10);

/// Returns whether an error says that a cluster or a host cannot be reached now. That a server has died, or that a pod has
/// failed, is none.
pub(super) fn is_out_of_reach(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(one) = next {
        let kubectl = match one.downcast_ref::<PodsError>() {
            Some(PodsError::Kubectl(why)) => Some(why),
            _ => one.downcast_ref::<KubectlError>(),
        };
        if kubectl.is_some_and(KubectlError::is_out_of_reach)
            || matches!(one.downcast_ref::<RemoteError>(), Some(RemoteError::Unreachable { .. }))
        {
            return true;
        }
        next = one.source();
    }
    false
}

/// Time that is left for hosts which earlier runs have reached.
pub(super) struct Outage {
    limit: Duration,
    /// True if a run has reached them, and none has waited in vain since.
    reached: bool,
    since: Option<Instant>,
}

impl Outage {
    /// `reached`: runs of this experiment have reached them before.
    pub(super) fn new(limit: Duration, reached: bool) -> Self {
        Outage { limit, reached, since: None }
    }

    /// Waits for room in the experiment's folder, where earlier runs have found some.
    pub(super) fn await_room(&self, folder: &Path, control: &Control) {
        if self.reached {
            disk_room::await_room(folder, self.limit, control);
        }
    }

    /// Takes in how a run has ended; true if it is to be made again. A run of an experiment that has never reached its hosts
    /// fails at once.
    pub(super) fn ends_in_another_attempt(&mut self, record: &RunRecord) -> bool {
        let again = self.decides(record, Instant::now());
        if again {
            self.tell(&record.cause);
        }
        again
    }

    /// Says why it waits, and for how long.
    pub(super) fn tell(&self, why: &str) {
        let spent = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        let left_s = self.limit.saturating_sub(spent).as_secs();
        tracing::warn!(target: NOTICE, "{why}; tries again for {left_s} s (outage)");
    }

    /// Pauses; true while there is time left and `control` does not stop.
    pub(super) fn goes_on(&mut self, control: &Control) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        let end = Instant::now() + PAUSE;
        while Instant::now() < end && !control.is_stopping() {
            std::thread::sleep(Duration::from_millis(50));
        }
        !control.is_stopping() && since.elapsed() < self.limit
    }

    fn decides(&mut self, record: &RunRecord, now: Instant) -> bool {
        if !record.out_of_reach {
            self.reached |= record.status == RunStatus::Complete;
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        self.reached &= now.duration_since(since) < self.limit;
        self.reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment_error::ExperimentError;
    use crate::rate_search::tests::record;
    use dyno_localhost::error::LocalError;

    fn kubectl(stderr: &str) -> KubectlError {
        KubectlError::Unreachable { stderr: stderr.into() }
    }

    #[test]
    fn a_cluster_that_is_silent_is_told_from_a_pod_that_has_failed() {
        let pods = PodsError::Kubectl(kubectl("dial tcp: i/o timeout"));
        let failed = ExperimentError::unreachable(LocalError::failed_step("kubernetes", pods));
        assert!(failed.is_out_of_reach());
        let host = RemoteError::Unreachable { host: "db".into(), message: "no route".into() };
        assert!(ExperimentError::from(host).is_out_of_reach());
        let agent = RemoteError::AgentLost { host: "db".into(), message: "killed".into() };
        assert!(!ExperimentError::from(agent).is_out_of_reach(), "its host answers");
        let died = PodsError::Failed { pod: "p".into(), why: "OOMKilled".into(), log: Vec::new() };
        assert!(!ExperimentError::unreachable(LocalError::failed_step("kubernetes", died)).is_out_of_reach());
        assert!(!ExperimentError::unreachable("the target does not answer").is_out_of_reach());
    }

    #[test]
    fn what_was_reached_once_is_waited_for_and_not_for_ever() {
        let (begun, limit) = (Instant::now(), Duration::from_secs(600));
        let lost = RunRecord { out_of_reach: true, ..record(1.0, 0.0) };
        let after = |seconds| begun + Duration::from_secs(seconds);
        // Never reached: the address is wrong.
        assert!(!Outage::new(limit, false).decides(&lost, begun));
        let mut outage = Outage::new(limit, false);
        // Another failure, such as that of a hook, has reached nothing.
        let hook = RunRecord { status: RunStatus::Failed, ..record(1.0, 0.0) };
        assert!(!outage.decides(&hook, begun) && !outage.decides(&lost, begun));
        let mut outage = Outage::new(limit, false);
        assert!(!outage.decides(&record(1.0, 5.0), begun), "it was made");
        assert!(outage.decides(&lost, after(10)) && outage.decides(&lost, after(609)));
        assert!(!outage.decides(&lost, after(610)));
        // Those that follow fail at once, until one is made.
        assert!(!outage.decides(&lost, after(620)));
        outage.decides(&record(1.0, 5.0), after(630));
        assert!(outage.decides(&lost, after(640)));
    }
}
