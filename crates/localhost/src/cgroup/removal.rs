//! Control groups are removed, with what still runs in them.

use crate::error::LocalError;
use crate::process;
use rustix::process::Signal;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Removes a group, and whatever still runs in it first; and the folder above it, if that was the last group.
pub(crate) fn remove(path: &Path) -> Result<(), LocalError> {
    let begun = Instant::now();
    loop {
        match fs::remove_dir(path) {
            Ok(()) => break,
            Err(e) if e.kind() == io::ErrorKind::NotFound => break,
            // The folder above the groups: there are others, of this run or of another.
            Err(_) if path.ends_with("dyno") && has_groups(path) => break,
            Err(e) if begun.elapsed() > Duration::from_secs(5) => {
                return Err(LocalError::failed_step(path.display(), e));
            }
            Err(_) => {}
        }
        let left = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        for pid in left.lines().filter_map(|line| line.parse().ok()) {
            process::send_signal(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    if let Some(above) = path.parent().filter(|above| above.ends_with("dyno")) {
        // It stays where there are others.
        let _ = fs::remove_dir(above);
    }
    Ok(())
}

fn has_groups(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|entries| entries.flatten().any(|entry| entry.path().is_dir()))
}
