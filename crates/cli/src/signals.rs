//! Ctrl-C: the first ends the run and keeps what was measured, the second does not wait for replies, the third ends
//! the process.

use dyno_engine::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

static SEEN: AtomicBool = AtomicBool::new(false);

/// Whether a signal has asked for the end.
pub fn interrupted() -> bool {
    SEEN.load(Ordering::Relaxed)
}

/// Listens for the rest of the process' life.
pub fn listen(control: &Arc<Control>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let control = control.clone();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for (nth, _) in signals.forever().enumerate() {
            SEEN.store(true, Ordering::Relaxed);
            match nth {
                0 => {
                    crate::terminal::note(
                        "\ninterrupted: waiting for replies under way (again: do not wait)",
                    );
                    control.stop();
                }
                1 => control.abort(),
                _ => std::process::exit(130),
            }
        }
    })?;
    Ok(())
}

/// Has a write beyond the limit of a file's size (`ulimit -f`) fail instead of ending the process. Children have the usual
/// action again.
pub fn outlive_long_files() {
    // Where it cannot be had, the signal ends dyno as it ends others.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}
