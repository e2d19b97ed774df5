//! Receivers of live metrics, as a run sees them: they get a snapshot when it is due, and what goes wrong is said once.

use crate::exit::Failure;
use crate::push::{Pusher, Receiver, Sender, Snapshot};
use crate::terminal;
use dyno_monitor::prometheus::Family;
use dyno_types::secret::conceal;
use dyno_types::units::Thousands;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Time that the end of a run gives to pushes that wait.
const PATIENCE: Duration = Duration::from_secs(5);

struct NamedReceiver {
    /// The option and the URL.
    name: String,
    pusher: Pusher,
}

/// All receivers of a run.
pub struct Receivers {
    all: Vec<NamedReceiver>,
    interval: Duration,
    last: Option<Instant>,
    /// Time of the last snapshot. The next is later, also where the clock was set back.
    at: SystemTime,
}

impl Receivers {
    /// Starts a thread for each.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        receivers: Vec<(&'static str, Receiver)>,
        sender: &Sender,
        interval: Duration,
    ) -> Result<Self, Failure> {
        let mut all = Vec::new();
        for (option, receiver) in receivers {
            let name = format!("{option} {receiver}");
            all.push(NamedReceiver { name, pusher: Pusher::start(receiver, sender.clone())? });
        }
        Ok(Receivers { all, interval, last: None, at: SystemTime::UNIX_EPOCH })
    }

    /// Returns whether a snapshot is due: at once, or because the interval is over.
    pub fn are_due(&self, at_once: bool) -> bool {
        // A second is told of a little early or late.
        let over = |last: Instant| last.elapsed() + Duration::from_millis(500) >= self.interval;
        !self.all.is_empty() && (at_once || self.last.is_none_or(over))
    }

    /// A moment after that of the last snapshot, by a millisecond at least: receivers take no two of one moment.
    fn next_moment(&mut self) -> SystemTime {
        self.at = SystemTime::now().max(self.at + Duration::from_millis(1));
        self.at
    }

    /// Gives every receiver a snapshot.
    pub fn push(&mut self, families: Vec<Family>) {
        let snapshot = Arc::new(Snapshot { at: self.next_moment(), families });
        self.last = Some(Instant::now());
        self.all.iter().for_each(|one| one.pusher.push(snapshot.clone()));
    }

    /// Says what has gone wrong, once for each receiver.
    pub fn complain(&self) {
        for one in &self.all {
            if let Some(message) = one.pusher.complaint() {
                terminal::warn(&conceal(&format!("{}: {message}; the run goes on", one.name)));
            }
        }
    }

    /// Waits for what is under way, and says what was lost.
    pub fn end(&mut self) {
        let at = self.next_moment();
        let deadline = Instant::now() + PATIENCE;
        for one in std::mem::take(&mut self.all) {
            let left = deadline.saturating_duration_since(Instant::now());
            let delivery = one.pusher.finish(at, left);
            let all = delivery.taken + delivery.lost;
            if delivery.lost > 0 {
                let first = delivery.first.unwrap_or_else(|| "it was too slow".into());
                let (lost, all) = (Thousands(delivery.lost), Thousands(all));
                let message = format!("{}: {lost} of {all} pushes were lost; first: {first}", one.name);
                terminal::warn(&conceal(&message));
            }
        }
    }
}

impl Drop for Receivers {
    fn drop(&mut self) {
        self.end();
    }
}
