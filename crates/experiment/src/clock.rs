//! Clock for what happens beside the load: it waits here for the epoch of the engine's run, for a time after it, and for its end.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Start and end of a phase, for threads that wait.
#[derive(Debug, Default)]
pub(super) struct PhaseTimes {
    state: Mutex<PhaseState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PhaseState {
    /// Epoch of the engine's run, and the length of its warm-up.
    epoch: Option<(SystemTime, Duration)>,
    over: bool,
}

impl PhaseTimes {
    fn change(&self, change: impl FnOnce(&mut PhaseState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// The run begins then, with so long a warm-up.
    pub fn begin(&self, epoch: SystemTime, warmup: Duration) {
        self.change(|state| state.epoch = Some((epoch, warmup)));
    }

    /// The run is over.
    pub fn end(&self) {
        self.change(|state| state.over = true);
    }

    /// The epoch, once it is known; none if the phase is over before that.
    pub fn epoch(&self) -> Option<(SystemTime, Duration)> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |state: &mut PhaseState| state.epoch.is_none() && !state.over;
        let state = self.changed.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
        state.epoch.filter(|_| !state.over)
    }

    /// Waits until `at`, at most for `patience`; whether the phase is over.
    pub fn wait(&self, at: Option<SystemTime>, patience: Duration) -> bool {
        let left = at.map_or(patience, |at| at.duration_since(SystemTime::now()).unwrap_or_default());
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, left.min(patience), |state| !state.over);
        waited.unwrap_or_else(PoisonError::into_inner).0.over
    }
}
