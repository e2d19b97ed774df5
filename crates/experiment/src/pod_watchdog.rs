//! A watchdog that looks after servers in pods while load is applied.
//!
//! Asking the cluster costs a process of tens of megabytes, so it is asked where the load says that something is wrong: where
//! operations fail, or none ends. A run whose server is evicted, preempted, killed for want of memory or deleted ends then, and
//! not when its time is up.

use crate::provisioned_target::ProvisionedTarget;
use dyno_engine::Job;
use dyno_hosts::remote::worker::abort_reason::AbortReason;
use dyno_hosts::remote::worker::pool::WorkerPool;
use dyno_localhost::error::LocalError;
use dyno_record::Totals;
use dyno_rundir::schema::Phase;
use dyno_session::session::{Observer, PhaseProgress};
use dyno_types::Outcome;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Least time between two questions; it doubles while something is wrong that the servers' pods are not.
const FIRST: Duration = Duration::from_secs(2);
/// Longest time between two questions while something is wrong.
const LONGEST: Duration = Duration::from_secs(30);

/// An observer that hands everything on, and has the cluster asked where seconds are bad; ends with this.
pub(super) struct WatchedObserver<'a> {
    observer: &'a mut dyn Observer,
    watchdog: Option<PodWatchdog>,
}

impl<'a> WatchedObserver<'a> {
    /// Looks after the servers of `target`, where they are pods; `pool`'s phase is cut short when one of them is gone.
    pub fn new(
        target: &ProvisionedTarget,
        pool: &WorkerPool,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, LocalError> {
        let pods = target.pods().map(|pods| pods.server_pods().clone()).filter(|pods| !pods.is_nothing());
        let watchdog = pods.map(|pods| PodWatchdog::post(move || pods.describe_change(), pool.cut_short()));
        let watchdog =
            watchdog.transpose().map_err(|e| LocalError::failed_step("cannot start a thread", e))?;
        Ok(WatchedObserver { observer, watchdog })
    }
}

impl Observer for WatchedObserver<'_> {
    fn begin(&mut self, phase: &str, plan: &Job) {
        self.observer.begin(phase, plan);
    }

    fn second(&mut self, progress: &PhaseProgress<'_>) {
        if let Some(watchdog) = self.watchdog.as_ref().filter(|_| is_bad(progress.last)) {
            watchdog.ask();
        }
        self.observer.second(progress);
    }

    fn end(&mut self, phase: &Phase) {
        self.observer.end(phase);
    }
}

/// Outcomes of operations whose server is gone, or was started again.
const GONE: [Outcome; 5] =
    [Outcome::Disconnected, Outcome::Unreachable, Outcome::TimedOut, Outcome::Loading, Outcome::ClusterDown];

/// Returns whether operations of a second ended as if their server were gone, or none ended.
fn is_bad(second: &Totals) -> bool {
    GONE.iter().any(|outcome| second.ended[*outcome as usize] > 0) || second.ended_total() == 0
}

/// A thread that asks.
struct PodWatchdog {
    /// Nothing is sent any more once this is gone.
    asked: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PodWatchdog {
    /// Begins to wait for bad seconds; `look` says why a server is gone, if one is.
    fn post(
        look: impl Fn() -> Option<String> + Send + 'static,
        cut_short: AbortReason,
    ) -> std::io::Result<PodWatchdog> {
        let (asked, bad) = sync_channel(1);
        let watch = move || {
            let mut wait = FIRST;
            while bad.recv().is_ok() {
                if let Some(why) = look() {
                    return cut_short.cut_for(why);
                }
                match quiet_for(&bad, wait) {
                    None => return,
                    Some(true) => wait = FIRST,
                    Some(false) => wait = (wait * 2).min(LONGEST),
                }
            }
        };
        let thread = std::thread::Builder::new().name("dyno-watchdog".into()).spawn(watch)?;
        Ok(PodWatchdog { asked: Some(asked), thread: Some(thread) })
    }

    /// A second was bad: the servers are looked at as soon as may be.
    fn ask(&self) {
        // One that waits already is enough, and one that has ended has found what there is to find.
        let _ = self.asked.as_ref().map(|asked| asked.try_send(()));
    }
}

impl Drop for PodWatchdog {
    fn drop(&mut self) {
        drop(self.asked.take());
        // A thread that panicked has nothing more to say.
        self.thread.take().map(JoinHandle::join);
    }
}

/// Waits; returns whether no second was bad meanwhile. `None` once the watchdog's owner has gone.
fn quiet_for(bad: &Receiver<()>, wait: Duration) -> Option<bool> {
    let end = Instant::now() + wait;
    let mut quiet = true;
    loop {
        match bad.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(()) => quiet = false,
            Err(RecvTimeoutError::Timeout) => return Some(quiet),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::Scale;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn totals(ended: &[(Outcome, u64)]) -> Totals {
        let mut totals = Totals::new(1, Scale::Ns64);
        ended.iter().for_each(|(outcome, n)| totals.ended[*outcome as usize] = *n);
        totals
    }

    #[test]
    fn bad_seconds_are_those_in_which_servers_fail() {
        assert!(!is_bad(&totals(&[(Outcome::Ok, 9)])));
        assert!(!is_bad(&totals(&[(Outcome::Ok, 9), (Outcome::Aborted, 2), (Outcome::NotFound, 1)])));
        assert!(is_bad(&totals(&[(Outcome::Ok, 9), (Outcome::Disconnected, 1)])));
        assert!(is_bad(&totals(&[])));
    }

    #[test]
    fn a_server_that_is_gone_cuts_the_phase_short() {
        let asked = Arc::new(AtomicU32::new(0));
        let (counted, cut_short) = (asked.clone(), AbortReason::default());
        let look = move || match counted.fetch_add(1, Ordering::Relaxed) {
            0 => None,
            _ => Some("evicted".to_owned()),
        };
        let watchdog = PodWatchdog::post(look, cut_short.clone()).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        assert_eq!(cut_short.take_reason(), None);
        let found = loop {
            watchdog.ask();
            match cut_short.take_reason() {
                None if Instant::now() < end => std::thread::sleep(Duration::from_millis(50)),
                found => break found,
            }
        };
        assert_eq!((found.as_deref(), asked.load(Ordering::Relaxed)), (Some("evicted"), 2));
        // Dropping one that waits does not wait.
        drop(PodWatchdog::post(|| None, AbortReason::default()).unwrap());
    }
}
