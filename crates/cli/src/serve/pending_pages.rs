//! Pages that take time: each is made on a thread of its own, a few at once, and waited for only so long. One that takes longer
//! goes on being made, and others are answered meanwhile.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pages that are made at once.
const AT_ONCE: usize = 4;

/// Long ones among them: those of directories of any size leave room for others.
const LONG_AT_ONCE: usize = 2;

/// A page's name, and whether it takes long.
pub type PageQuery<'a> = (&'a str, bool);

/// Reasons not to wait for a page.
#[derive(Debug, thiserror::Error)]
pub enum NotMade {
    /// It takes longer than the deadline, or its turn does not come before.
    #[error("it is still being made")]
    Late,
    /// No thread can be started for it.
    #[error(transparent)]
    NoThread(std::io::Error),
    /// The thread that makes it has ended before.
    #[error("this page could not be made")]
    Panicked,
}

/// The pages under way.
pub struct PendingPages {
    deadline: Duration,
    names: Mutex<Vec<(String, bool)>>,
    ended: Condvar,
}

/// A page under way.
struct Page {
    pending_pages: Arc<PendingPages>,
    name: String,
}

impl Drop for Page {
    fn drop(&mut self) {
        self.pending_pages.names().retain(|(name, _)| *name != self.name);
        self.pending_pages.ended.notify_all();
    }
}

impl PendingPages {
    /// Pages that are waited for as long as `deadline`.
    pub fn new(deadline: Duration) -> Arc<Self> {
        Arc::new(PendingPages { deadline, names: Mutex::default(), ended: Condvar::new() })
    }

    /// Returns the longest wait for a page.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    fn names(&self) -> MutexGuard<'_, Vec<(String, bool)>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what `make` gives for a page, one of a name at a time.
    pub fn wait<T: Send + 'static>(
        self: &Arc<Self>,
        (name, long): PageQuery<'_>,
        make: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotMade> {
        let end = Instant::now() + self.deadline;
        let left = || end.saturating_duration_since(Instant::now());
        let mut names = self.names();
        let full = |names: &[(String, bool)]| {
            let long_ones = names.iter().filter(|(_, long)| *long).count();
            names.len() >= AT_ONCE
                || (long && long_ones >= LONG_AT_ONCE)
                || names.iter().any(|(other, _)| other == name)
        };
        while full(&names) {
            if left().is_zero() {
                return Err(NotMade::Late);
            }
            names = self.ended.wait_timeout(names, left()).unwrap_or_else(PoisonError::into_inner).0;
        }
        names.push((name.to_owned(), long));
        drop(names);
        let (page, (tell, told)) = (Page { pending_pages: self.clone(), name: name.to_owned() }, channel());
        let thread = std::thread::Builder::new().name("dyno-page".into()).spawn(move || {
            let _page = page;
            // The client may have gone.
            let _ = tell.send(make());
        });
        thread.map_err(NotMade::NoThread)?;
        told.recv_timeout(left()).map_err(|error| match error {
            RecvTimeoutError::Timeout => NotMade::Late,
            RecvTimeoutError::Disconnected => NotMade::Panicked,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_takes_too_long_stops_no_other() {
        let pending_pages = PendingPages::new(Duration::from_millis(200));
        let (end, ends) = channel::<()>();
        let slow = move || ends.recv().map_or(0, |()| 0);
        assert!(matches!(pending_pages.wait(("slow", false), slow), Err(NotMade::Late)));
        assert_eq!(pending_pages.wait(("quick", false), || 1).unwrap(), 1);
        // It is not begun a second time.
        assert!(matches!(pending_pages.wait(("slow", false), || 2), Err(NotMade::Late)));
        end.send(()).unwrap();
        let begun = Instant::now();
        while !matches!(pending_pages.wait(("slow", false), || 3), Ok(3)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is under way for ever");
        }
        // A backtrace takes its time.
        let pending_pages = PendingPages::new(Duration::from_secs(60));
        let panics = || -> () { panic!("as it was asked") };
        assert!(matches!(pending_pages.wait(("panics", false), panics), Err(NotMade::Panicked)));
        assert_eq!(pending_pages.wait(("panics", false), || 4).unwrap(), 4);
    }

    /// However many directories of gigabytes are asked for, others are answered.
    #[test]
    fn long_pages_leave_room_for_others() {
        let pending_pages = PendingPages::new(Duration::from_millis(200));
        let (end, ends) = channel::<()>();
        let ends = Arc::new(Mutex::new(ends));
        for at in 0..6 {
            let ends = ends.clone();
            let slow = move || drop(ends.lock().map(|ends| ends.recv()));
            assert!(matches!(pending_pages.wait((&format!("long {at}"), true), slow), Err(NotMade::Late)));
        }
        assert_eq!(pending_pages.names().len(), LONG_AT_ONCE);
        assert_eq!(pending_pages.wait(("quick", false), || 1).unwrap(), 1);
        drop(end);
    }

    #[test]
    fn whose_turn_does_not_come_is_told_so() {
        let pending_pages = PendingPages::new(Duration::from_millis(100));
        let (end, ends) = channel::<()>();
        let ends = Arc::new(Mutex::new(ends));
        for at in 0..AT_ONCE {
            let ends = ends.clone();
            let slow = move || {
                let _ = ends.lock().map(|ends| ends.recv());
            };
            assert!(matches!(pending_pages.wait((&format!("slow {at}"), false), slow), Err(NotMade::Late)));
        }
        assert!(matches!(pending_pages.wait(("quick", false), || 1), Err(NotMade::Late)));
        drop(end);
        let begun = Instant::now();
        while !matches!(pending_pages.wait(("quick", false), || 1), Ok(1)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "there is no turn");
        }
    }
}
