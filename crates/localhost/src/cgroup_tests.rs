use crate::cgroup::lines::quota;
use crate::cgroup::*;
use dyno_monitor::topology::trees::put_line;

const EVERYTHING: &str = r#"{"memory": "64MiB", "cpus": 1.5, "read_bytes_per_s": "10MiB", "write_iops": 50}"#;

fn limits(text: &str) -> Limits {
    serde_json::from_str(text).unwrap()
}

/// A machine in a folder whose hierarchies are those of `mounts`: root, point, kind, options of each.
fn machine(folder: &Path, mounts: &[(&str, &str, &str, &str)], own: &str) -> Machine {
    let line = |(root, point, kind, options): &(&str, &str, &str, &str)| {
        format!("30 25 0:26 {root} {}/{point} rw - {kind} {kind} {options}", folder.display())
    };
    let lines: Vec<String> = mounts.iter().map(line).collect();
    put_line(&folder.join("proc/self/mountinfo"), &lines.join("\n")).unwrap();
    put_line(&folder.join("proc/self/cgroup"), own).unwrap();
    Machine { proc: folder.join("proc"), ..Machine::default() }
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).trim().to_owned()
}

#[test]
fn version_2_is_limited_beside_the_own_group() {
    let folder = tempfile::tempdir().unwrap();
    let own = "0::/user.slice/session-1.scope";
    let machine = machine(folder.path(), &[("/", "cg", "cgroup2", "rw")], own);
    let slice = folder.path().join("cg/user.slice");
    put_line(&folder.path().join("cg/cgroup.controllers"), "cpuset cpu io memory pids").unwrap();
    put_line(&slice.join("cgroup.subtree_control"), "memory pids").unwrap();
    let mut journal = Journal::open(&folder.path().join("home"), &machine).unwrap();
    let wanted = limits(EVERYTHING);
    let group = ControlGroup::make_group(&machine, "a", &wanted, &["8:0".to_owned()], &mut journal).unwrap();
    let own = slice.join("dyno/a");
    assert_eq!(group.entry_files(), [own.join("cgroup.procs")]);
    assert_eq!(group.controller_folders(), [("unified".to_owned(), own.clone())]);
    assert_eq!(read(own.join("memory.max")), "67108864");
    assert_eq!(read(own.join("cpu.max")), "150000 100000");
    assert_eq!(read(own.join("io.max")), "8:0 rbps=10485760 wiops=50");
    // What was on is not asked for again; `dyno` was made with nothing on, and the last one wanted stands there.
    assert_eq!(read(slice.join("cgroup.subtree_control")), "+io");
    assert_eq!(read(slice.join("dyno/cgroup.subtree_control")), "+io");

    // As the kernel would fill it.
    put_line(&own.join("memory.events"), "low 0\nhigh 0\nmax 17\noom 2\noom_kill 1\noom_group_kill 0")
        .unwrap();
    put_line(&own.join("memory.peak"), "67108864").unwrap();
    put_line(&own.join("memory.stat"), "anon 100\nfile 200\nkernel 5\nworkingset_refault_file 7").unwrap();
    put_line(&own.join("io.stat"), "8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0").unwrap();
    let facts = group.limit_facts();
    assert_eq!(facts["memory.events.max"], "17");
    assert_eq!(facts["memory.stat.workingset_refault_file"], "7");
    assert_eq!(facts["io.stat"], "8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0");
    assert_eq!(facts["memory.peak"], "67108864");
    assert!(!facts.contains_key("memory.stat.kernel") && !facts.contains_key("limits.writes"));
    assert_eq!(group.count_killed(), 1);
    // The kernel removes a group's files with its folder.
    fs::remove_dir_all(slice.join("dyno")).unwrap();
}

#[test]
fn limits_are_lowered_all_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let machine = machine(folder.path(), &[("/", "cg", "cgroup2", "rw")], "0::/user.slice/a.scope");
    put_line(&folder.path().join("cg/cgroup.controllers"), "cpu io memory").unwrap();
    fs::create_dir_all(folder.path().join("cg/user.slice")).unwrap();
    let mut journal = Journal::open(&folder.path().join("home"), &machine).unwrap();
    let usual = limits(EVERYTHING);
    let devices = ["8:0".to_owned()];
    let group = ControlGroup::make_group(&machine, "a", &usual, &devices, &mut journal).unwrap();
    let own = group.controller_folders().remove(0).1;
    let lower = limits(r#"{"memory": "1MiB", "cpus": 0.5, "read_bytes_per_s": "1MiB"}"#);
    group.set_limits(&machine, &lower, &usual, &devices).unwrap();
    assert_eq!(
        (read(own.join("memory.max")), read(own.join("io.max"))),
        ("1048576".into(), "8:0 rbps=1048576".into())
    );
    group.set_limits(&machine, &usual, &usual, &devices).unwrap();
    // As if the kernel refused it: nothing can be written there.
    fs::remove_file(own.join("io.max")).unwrap();
    fs::create_dir(own.join("io.max")).unwrap();
    let error = group.set_limits(&machine, &lower, &usual, &devices).unwrap_err();
    assert!(matches!(error, LocalError::NotPermitted { .. }), "{error}");
    assert_eq!(
        (read(own.join("memory.max")), read(own.join("cpu.max"))),
        ("67108864".into(), "150000 100000".into())
    );
    // What is not of the harm is not touched.
    fs::remove_file(own.join("memory.max")).unwrap();
    let part = limits(r#"{"cpus": 0.5, "read_bytes_per_s": "1MiB"}"#);
    group.set_limits(&machine, &part, &usual, &devices).unwrap_err();
    assert!(!own.join("memory.max").exists() && read(own.join("cpu.max")) == "150000 100000");
    fs::remove_dir_all(folder.path().join("cg/user.slice/dyno")).unwrap();
}

#[test]
fn devices_are_told_apart() {
    let line = |text: &str| lines::LimitLine {
        path: "io.max".into(),
        file: "io.max".into(),
        text: text.into(),
        needed: true,
    };
    assert!(
        line("8:0 rbps=1").is_like(&line("8:0 rbps=2")) && !line("8:0 rbps=1").is_like(&line("8:16 rbps=1"))
    );
    assert!(line("50000 100000").is_like(&line("100000 100000")));
}

#[test]
fn version_1_is_limited_below_the_own_group() {
    let folder = tempfile::tempdir().unwrap();
    let mounts = [
        ("/", "memory", "cgroup", "rw,memory"),
        ("/", "cpu,cpuacct", "cgroup", "rw,cpu,cpuacct"),
        ("/docker/x", "blkio", "cgroup", "rw,blkio"),
    ];
    let own = "4:memory:/work/a\n1:cpu,cpuacct:/\n7:blkio:/docker/x/b\n0::/";
    let machine = machine(folder.path(), &mounts, own);
    for path in ["memory/work/a", "cpu,cpuacct", "blkio/b"] {
        fs::create_dir_all(folder.path().join(path)).unwrap();
    }
    let mut journal = Journal::open(&folder.path().join("home"), &machine).unwrap();
    let wanted = limits(EVERYTHING);
    let group = ControlGroup::make_group(&machine, "a", &wanted, &["8:0".to_owned()], &mut journal).unwrap();
    let at = |path: &str| folder.path().join(path);
    assert_eq!(read(at("memory/work/a/dyno/a/memory.limit_in_bytes")), "67108864");
    // Memory with swap: no swap beside it.
    assert_eq!(read(at("memory/work/a/dyno/a/memory.memsw.limit_in_bytes")), "67108864");
    assert_eq!(read(at("cpu,cpuacct/dyno/a/cpu.cfs_quota_us")), "150000");
    // Inside a container the hierarchy is shown from the container's group on.
    assert_eq!(read(at("blkio/b/dyno/a/blkio.throttle.read_bps_device")), "8:0 10485760");
    assert_eq!(read(at("blkio/b/dyno/a/blkio.throttle.write_iops_device")), "8:0 50");
    assert_eq!(group.entry_files().len(), 3);
    put_line(&at("memory/work/a/dyno/a/memory.failcnt"), "12").unwrap();
    put_line(&at("memory/work/a/dyno/a/memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 3")
        .unwrap();
    put_line(&at("blkio/b/dyno/a/blkio.throttle.io_serviced"), "8:0 Read 5\n8:0 Write 6\nTotal 11").unwrap();
    let facts = group.limit_facts();
    assert_eq!(facts["memory.failcnt"], "12");
    assert_eq!(facts["blkio.throttle.io_serviced"], "8:0 Read 5; 8:0 Write 6; Total 11");
    assert!(facts["limits.writes"].contains("direct I/O only"));
    assert_eq!(group.count_killed(), 3);
    for path in ["memory/work/a/dyno", "cpu,cpuacct/dyno", "blkio/b/dyno"] {
        fs::remove_dir_all(at(path)).unwrap();
    }
}

#[test]
fn a_controller_of_version_2_goes_before_that_of_version_1() {
    let folder = tempfile::tempdir().unwrap();
    let mounts = [("/", "memory", "cgroup", "rw,memory"), ("/", "unified", "cgroup2", "rw")];
    let machine = machine(folder.path(), &mounts, "4:memory:/\n0::/");
    put_line(&folder.path().join("unified/cgroup.controllers"), "").unwrap();
    let offer = AvailableControllers::detect(&machine).unwrap();
    assert_eq!(offer.controllers["memory"].0, Version::V1);
    put_line(&folder.path().join("unified/cgroup.controllers"), "memory").unwrap();
    let offer = AvailableControllers::detect(&machine).unwrap();
    assert_eq!(offer.controllers["memory"], (Version::V2, folder.path().join("unified")));
}

#[test]
fn what_is_missing_is_said_and_nothing_stays() {
    let folder = tempfile::tempdir().unwrap();
    let machine = machine(folder.path(), &[("/", "memory", "cgroup", "rw,memory")], "4:memory:/");
    fs::create_dir_all(folder.path().join("memory")).unwrap();
    let mut journal = Journal::open(&folder.path().join("home"), &machine).unwrap();
    let error = ControlGroup::make_group(&machine, "a", &limits(r#"{"cpus": 1}"#), &[], &mut journal)
        .unwrap_err()
        .to_string();
    assert!(error.contains("cgroup, cpu: this system has no such cgroup controller"), "{error}");
    assert!(error.contains("if_not_permitted: continue"), "{error}");
    let error = ControlGroup::make_group(&machine, "a", &limits(r#"{"read_iops": 1}"#), &[], &mut journal)
        .unwrap_err();
    assert!(matches!(error, LocalError::Refused(_)), "{error}");
    assert!(journal.is_clear() && !folder.path().join("memory/dyno").exists());
}

#[test]
fn without_swap_the_counter_of_memory_alone_is_asked() {
    let lines = split_lines(&limits(r#"{"memory": "1MiB"}"#), &[], "memory", false);
    assert_eq!(lines.iter().map(|line| line.0.as_str()).collect::<Vec<_>>(), ["memory.limit_in_bytes"]);
    let lines = split_lines(&limits(r#"{"memory": "1MiB", "swap": "1MiB"}"#), &[], "memory", false);
    assert_eq!(lines[1], ("memory.memsw.limit_in_bytes".into(), (2u64 << 20).to_string(), true));
}

#[test]
fn a_share_of_processor_time_is_at_least_what_the_kernel_takes() {
    assert_eq!((quota(0.01), quota(0.5), quota(2.0)), (1_000, 50_000, 200_000));
}
