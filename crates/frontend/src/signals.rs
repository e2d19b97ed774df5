//! Signals. While a run is under way the first ends it and keeps what was measured, the second does not wait for replies, and the
//! third, or what does not end soon after the second, ends the process. Where nothing has begun, the first ends the process.

use dyno_engine::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time that the end may take after the second signal.
const PATIENCE: Duration = Duration::from_secs(4);

/// The exit code, `Exit::Interrupted`.
const INTERRUPTED: i32 = 130;

static SEEN: AtomicBool = AtomicBool::new(false);
static LISTENING: Mutex<SignalTargets> =
    Mutex::new(SignalTargets { begun: false, control: None, restore: None });

/// Things that a signal ends.
struct SignalTargets {
    begun: bool,
    control: Option<Arc<Control>>,
    /// Done before the process ends.
    restore: Option<Box<dyn FnOnce() + Send>>,
}

fn listening() -> MutexGuard<'static, SignalTargets> {
    LISTENING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Signals that ask for the end. A user who started dyno with `nohup` wants it to outlive the terminal.
pub fn wanted() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let is_ignored = |signal: i32| ignored & (1 << (signal - 1)) != 0;
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(SIGHUP)).collect()
}

/// Returns whether a signal has asked for the end.
pub fn interrupted() -> bool {
    SEEN.load(Ordering::Relaxed)
}

/// Lets the first signal end the process with the code of an interruption, until [`listen`] is called.
pub fn begin() -> std::io::Result<()> {
    if std::mem::replace(&mut listening().begun, true) {
        return Ok(());
    }
    let mut signals = Signals::new(wanted())?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut nth = 0;
        for _ in signals.forever() {
            SEEN.store(true, Ordering::Relaxed);
            let Some(control) = listening().control.clone() else { end() };
            nth += 1;
            match nth {
                1 => {
                    crate::terminal::note(
                        "\ninterrupted: waiting for replies under way (again: do not wait)",
                    );
                    control.stop();
                }
                2 => {
                    control.abort_run();
                    std::thread::spawn(give_up);
                }
                _ => end(),
            }
            // The log may wait for a disk; what ends dyno does not.
            tracing::warn!(nth, "a signal asks for the end");
        }
    })?;
    Ok(())
}

/// Lets signals end what `control` controls, for the rest of the process' life.
pub fn listen(control: &Arc<Control>) -> std::io::Result<()> {
    listening().control = Some(control.clone());
    begin()
}

/// Has `restore` done if a signal ends the process before [`settled`] is called.
pub fn restoring(restore: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    listening().restore = Some(Box::new(restore));
    begin()
}

/// Nothing has to be restored any more.
pub fn settled() {
    listening().restore = None;
}

fn give_up() {
    std::thread::sleep(PATIENCE);
    crate::terminal::note(
        "something does not end: dyno ends without it (`dyno stop DIR` puts back what an experiment has changed)",
    );
    end()
}

fn end() -> ! {
    let restore = listening().restore.take();
    if let Some(restore) = restore {
        restore();
    }
    exit(INTERRUPTED)
}
