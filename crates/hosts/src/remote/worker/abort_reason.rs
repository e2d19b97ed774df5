//! A phase that is ended for a reason outside of its workers.

use dyno_types::sync::held;
use std::sync::{Arc, Mutex};

/// Ends the phase under way, from any thread: what has arrived is kept, and the run is not valid.
#[derive(Clone, Debug, Default)]
pub struct AbortReason(Arc<Mutex<Option<String>>>);

impl AbortReason {
    /// Ends it, and says why.
    pub fn cut_for(&self, why: String) {
        *held(&self.0) = Some(why);
    }

    /// Why it is to end, once.
    pub fn take_reason(&self) -> Option<String> {
        held(&self.0).take()
    }
}
