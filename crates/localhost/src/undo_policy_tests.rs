use crate::undo_policy::*;
use std::fs;
use std::os::unix::fs::symlink;

/// Number of the journal.
const ID: &str = "0123456789abcdef0123456789abcdef";

struct Scene {
    _all: tempfile::TempDir,
    directory: PathBuf,
    disk: PathBuf,
    machine: Machine,
}

fn place() -> Scene {
    let all = tempfile::tempdir().unwrap();
    let root = all.path().canonicalize().unwrap();
    let (directory, disk) = (root.join("o"), root.join("disk"));
    fs::create_dir_all(directory.join("server")).unwrap();
    fs::create_dir_all(disk.join("redis-1.data")).unwrap();
    fs::create_dir_all(disk.join("theirs.data")).unwrap();
    fs::write(disk.join(".redis-1.data.dyno"), ID).unwrap();
    fs::write(disk.join(".theirs.data.dyno"), ID.replace('0', "1")).unwrap();
    fs::create_dir_all(root.join("other/x")).unwrap();
    symlink(root.join("other"), directory.join("link")).unwrap();
    Scene { _all: all, directory, disk, machine: Machine::default() }
}

impl Scene {
    fn refuses(&self, undo: &Undo) -> bool {
        self.within(true).refuse_entry(undo).is_some()
    }

    fn within(&self, known: bool) -> AllowedPaths<'_> {
        AllowedPaths { directory: &self.directory, listed: Some(ID), machine: &self.machine, known }
    }

    fn refuses_folder(&self, path: PathBuf) -> bool {
        self.refuses(&Undo::Folder { path })
    }
}

#[test]
fn folders_are_those_of_the_journal_and_of_its_data() {
    let place = place();
    let (directory, disk) = (&place.directory, &place.disk);
    for own in [
        directory.join("server"),
        directory.join("server/none"),
        disk.join("redis-1.data"),
        "/none/there".into(),
    ] {
        assert!(!place.refuses_folder(own.clone()), "{}", own.display());
    }
    fs::create_dir_all(disk.join("photos")).unwrap();
    for other in [
        "/".into(),
        "relative".into(),
        directory.clone(),
        directory.join(".."),
        directory.join("server/../../disk"),
        directory.parent().unwrap().to_owned(),
        directory.parent().unwrap().join("other"),
        directory.join("link/x"),
        disk.clone(),
        disk.join("photos"),
        disk.join("theirs.data"),
    ] {
        assert!(place.refuses_folder(other.clone()), "{}", other.display());
    }
    assert!(place.refuses(&Undo::Mount { path: directory.join("link") }));
    assert!(!place.refuses(&Undo::Mount { path: directory.join("mount") }));
    assert!(place.refuses(&Undo::Loop { file: "/none/image-0".into() }));
    let left = |path: &str| place.refuses(&Undo::File { path: path.into() });
    assert!(!left("/dev/shm/faketime_shm_12") && left("/etc/hostname"));
}

#[test]
fn everything_else_has_the_names_that_dyno_gives() {
    let place = place();
    let value = |path: &str, old: &str| place.refuses(&Undo::Value { path: path.into(), old: old.into() });
    assert!(!value("/proc/sys/vm/swappiness", "60"));
    assert!(!value("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave"));
    assert!(!value("/sys/class/net/eth0/queues/rx-0/rps_cpus", "0"));
    for (path, old) in [
        ("/proc/sys/kernel/core_pattern", "|/tmp/x"),
        ("/proc/sys/vm/swappiness", "60\n1"),
        ("/proc/sys/vm/../kernel/core_pattern", "x"),
        ("/sys/block/../../etc/queue/read_ahead_kb", "1"),
        ("/sys/block/a/b/queue/read_ahead_kb", "1"),
        ("/etc/passwd", "x"),
    ] {
        assert!(value(path, old), "{path}");
    }
    let table = |name: &str| place.refuses(&Undo::Table { name: name.into() });
    assert!(!table("dyno-1-2-3") && table("filter") && table("dyno-1-2-3; flush ruleset"));
    let device =
        |name: &str, handle: &str| place.refuses(&Undo::Device { name: name.into(), handle: handle.into() });
    assert!(
        !device("eth0", "7abc:")
            && device("-batch", "7abc:")
            && device("eth0", "1:")
            && device("a/b", "7abc:")
    );
    let array = |path: &str| place.refuses(&Undo::Array { device: path.into() });
    assert!(!array("/dev/md/dyno-12") && array("/dev/md0") && array("/dev/md/dyno-1/../../sda"));
    assert!(place.refuses(&Undo::Cgroup { path: "/sys/fs/cgroup".into() }));
    assert!(place.refuses(&Undo::Cgroup { path: place.directory.join("dyno") }));
    for pid in [0, 1, std::process::id()] {
        assert!(place.refuses(&Undo::Process { pid, started: 1, session: None }));
    }
    // A journal that names neither host nor boot does not say whose processes it lists.
    assert!(
        place.within(false).refuse_entry(&Undo::Process { pid: 77, started: 1, session: None }).is_some()
    );
}
