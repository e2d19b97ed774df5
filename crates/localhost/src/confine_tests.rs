use crate::confine::*;
use std::fs;
use std::os::unix::fs::symlink;

struct Scene {
    _all: tempfile::TempDir,
    home: PathBuf,
    data: Vec<PathBuf>,
    machine: Machine,
}

fn place() -> Scene {
    let all = tempfile::tempdir().unwrap();
    let root = all.path().canonicalize().unwrap();
    let (home, data) = (root.join("o"), root.join("disk"));
    fs::create_dir_all(home.join("server")).unwrap();
    fs::create_dir_all(data.join("redis-1.data")).unwrap();
    fs::create_dir_all(root.join("other/x")).unwrap();
    symlink(root.join("other"), home.join("link")).unwrap();
    Scene { _all: all, home, data: vec![data], machine: Machine::default() }
}

impl Scene {
    fn refuses(&self, undo: &Undo) -> bool {
        let within = Within { home: &self.home, data: &self.data, machine: &self.machine, known: true };
        within.refuses(undo).is_some()
    }

    fn refuses_folder(&self, path: PathBuf) -> bool {
        self.refuses(&Undo::Folder { path })
    }
}

#[test]
fn folders_are_those_of_the_journal_and_of_its_data() {
    let place = place();
    let (home, disk) = (&place.home, &place.data[0]);
    for own in
        [home.join("server"), home.join("server/none"), disk.join("redis-1.data"), "/none/there".into()]
    {
        assert!(!place.refuses_folder(own.clone()), "{}", own.display());
    }
    fs::create_dir_all(disk.join("photos")).unwrap();
    for other in [
        "/".into(),
        "relative".into(),
        home.clone(),
        home.join(".."),
        home.join("server/../../disk"),
        home.parent().unwrap().to_owned(),
        home.parent().unwrap().join("other"),
        home.join("link/x"),
        disk.clone(),
        disk.join("photos"),
    ] {
        assert!(place.refuses_folder(other.clone()), "{}", other.display());
    }
    assert!(place.refuses(&Undo::Mount { path: home.join("link") }));
    assert!(!place.refuses(&Undo::Mount { path: home.join("mount") }));
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
    assert!(place.refuses(&Undo::Cgroup { path: place.home.join("dyno") }));
    for pid in [0, 1, std::process::id()] {
        assert!(place.refuses(&Undo::Process { pid, started: 1, session: None }));
    }
    // A journal that names neither host nor boot is of nobody knows whose processes.
    let within = Within { home: &place.home, data: &place.data, machine: &place.machine, known: false };
    assert!(within.refuses(&Undo::Process { pid: 77, started: 1, session: None }).is_some());
}
