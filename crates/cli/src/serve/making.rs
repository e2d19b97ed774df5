//! Pages that take time: each is made on a thread of its own, a few at once, and waited for only so long. One that takes longer
//! goes on being made, and others are answered meanwhile.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pages that are made at once.
const AT_ONCE: usize = 4;

/// The pages under way.
pub struct Making {
    deadline: Duration,
    names: Mutex<Vec<String>>,
    ended: Condvar,
}

/// A page under way.
struct Page {
    making: Arc<Making>,
    name: String,
}

impl Drop for Page {
    fn drop(&mut self) {
        self.making.names().retain(|name| *name != self.name);
        self.making.ended.notify_all();
    }
}

impl Making {
    /// Pages that are waited for as long as `deadline`.
    pub fn new(deadline: Duration) -> Arc<Self> {
        Arc::new(Making { deadline, names: Mutex::default(), ended: Condvar::new() })
    }

    /// How long a page is waited for.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    fn names(&self) -> MutexGuard<'_, Vec<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `make` gives for the page `name`, one at a time; `None` where it takes longer than the deadline, or its turn does not
    /// come before.
    pub fn wait<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        make: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Option<Result<T, String>> {
        let end = Instant::now() + self.deadline;
        let left = || end.saturating_duration_since(Instant::now());
        let mut names = self.names();
        while names.len() >= AT_ONCE || names.iter().any(|other| other == name) {
            if left().is_zero() {
                return None;
            }
            names = self.ended.wait_timeout(names, left()).unwrap_or_else(PoisonError::into_inner).0;
        }
        names.push(name.to_owned());
        drop(names);
        let (page, (tell, told)) = (Page { making: self.clone(), name: name.to_owned() }, channel());
        let thread = std::thread::Builder::new().name("dyno-page".into()).spawn(move || {
            let _page = page;
            // Whoever asked may have gone.
            let _ = tell.send(make());
        });
        if let Err(error) = thread {
            return Some(Err(error.to_string()));
        }
        match told.recv_timeout(left()) {
            Ok(made) => Some(made),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err("this page could not be made".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_takes_too_long_stops_no_other() {
        let making = Making::new(Duration::from_millis(200));
        let (end, ends) = channel::<()>();
        let slow = move || ends.recv().map_err(|why| why.to_string());
        assert_eq!(making.wait("slow", slow), None);
        assert_eq!(making.wait("quick", || Ok(1)), Some(Ok(1)));
        // It is not begun a second time.
        assert_eq!(making.wait("slow", || Ok(2)), None);
        end.send(()).unwrap();
        let begun = Instant::now();
        while making.wait("slow", || Ok(3)) != Some(Ok(3)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is under way for ever");
        }
        let panics = || -> Result<(), String> { panic!("as it was asked") };
        assert_eq!(making.wait("panics", panics), Some(Err("this page could not be made".into())));
        assert_eq!(making.wait("panics", || Ok(4)), Some(Ok(4)));
    }

    #[test]
    fn whose_turn_does_not_come_is_told_so() {
        let making = Making::new(Duration::from_millis(100));
        let (end, ends) = channel::<()>();
        let ends = Arc::new(Mutex::new(ends));
        for at in 0..AT_ONCE {
            let ends = ends.clone();
            let slow = move || {
                let _ = ends.lock().map(|ends| ends.recv());
                Ok(())
            };
            assert_eq!(making.wait(&format!("slow {at}"), slow), None);
        }
        assert_eq!(making.wait("quick", || Ok(1)), None);
        drop(end);
        let begun = Instant::now();
        while making.wait("quick", || Ok(1)) != Some(Ok(1)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "there is no turn");
        }
    }
}
