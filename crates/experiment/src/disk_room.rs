//! Room for results: a disk that is full is waited for, because it may be freed while a night of runs goes on.

use dyno_engine::Control;
use dyno_rundir::log::NOTICE;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Room that must be there, bytes: less holds no run.
const ROOM: usize = 1 << 20;
/// Name of the file that is written to find out.
const PROBE: &str = ".room";
/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Returns whether the disk, or the quota, that a folder is on has no room for results. Only writing tells: what the system says
/// of a disk knows no quota. Other errors are told by who writes there.
pub(super) fn is_full(folder: &Path) -> bool {
    let path = folder.join(PROBE);
    let probe = || {
        let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(&vec![1; ROOM])?;
        file.sync_data()
    };
    let full =
        probe().is_err_and(|error| matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded));
    // It may not have been made.
    let _ = std::fs::remove_file(&path);
    full
}

/// Waits until there is room in a folder, for `limit` at most, and says so once. Returns whether there is.
pub(super) fn await_room(folder: &Path, limit: Duration, control: &Control) -> bool {
    if !is_full(folder) {
        return true;
    }
    let (begun, shown, limit_s) = (Instant::now(), folder.display(), limit.as_secs());
    tracing::warn!(target: NOTICE, "{shown}: no room on the disk for results; waits for {limit_s} s (outage)");
    let mut looked = begun;
    while begun.elapsed() < limit && !control.is_stopping() {
        std::thread::sleep(Duration::from_millis(50));
        if looked.elapsed() < LOOK {
            continue;
        }
        looked = Instant::now();
        if !is_full(folder) {
            tracing::warn!(target: NOTICE, "{shown}: there is room again");
            return true;
        }
    }
    !is_full(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_room_is_not_waited_for_and_nothing_is_left_in_it() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_full(folder.path()));
        assert!(await_room(folder.path(), Duration::ZERO, &Control::default()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // What cannot be written for other reasons is no full disk.
        assert!(!is_full(&folder.path().join("nowhere")));
    }

    /// The device of the system that has no room, under the name of the probe.
    #[test]
    fn a_full_disk_is_waited_for_until_the_limit_or_a_signal() {
        let folder = tempfile::tempdir().unwrap();
        let full = || std::os::unix::fs::symlink("/dev/full", folder.path().join(PROBE)).unwrap();
        full();
        assert!(is_full(folder.path()));
        full();
        let control = Control::default();
        control.stop();
        let begun = Instant::now();
        // The first look removes the link: there is room again.
        assert!(await_room(folder.path(), Duration::from_secs(3_600), &control));
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
