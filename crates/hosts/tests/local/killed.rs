//! A dyno that is killed: what it has left is undone from its journal.

use super::common::{Home, skip, spec, within};
use dyno_hosts::servers::server::Server;
use dyno_localhost::machine::Machine;
use dyno_localhost::undo;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const HOME: &str = "DYNO_TEST_KILLED_HOME";

/// A machine without setpriv, so that the kernel does not end the server: what ends it must be the journal.
fn machine(folder: &Path) -> Machine {
    let programs = folder.join("programs");
    if !programs.exists() {
        std::fs::create_dir_all(&programs).unwrap();
        for name in ["redis-server", "taskset", "losetup", "mount", "umount", "cp", "mkfs.btrfs"] {
            if let Some(path) = Machine::default().find_program(name) {
                symlink(path, programs.join(name)).unwrap();
            }
        }
    }
    Machine { path: programs.into_os_string(), ..Machine::default() }
}

#[test]
#[ignore = "is started, and killed, by the test below"]
#[expect(clippy::print_stdout, reason = "the test below reads these lines")]
fn a_dyno_that_will_be_killed() {
    let home = PathBuf::from(std::env::var_os(HOME).expect("the test below sets it"));
    let json = r#"{"kind": "redis", "instances": 2, "placement": {"cores": 0}, "if_not_permitted": "continue",
        "limits": {"memory": "64MiB"}, "data": {"image": {"filesystem": "btrfs", "size": "128MiB"}}}"#;
    let server = Server::start(&spec(json), &home.join("home"), &machine(&home)).unwrap();
    println!("\nPIDS {:?}", server.running_processes().iter().map(|(_, pid)| *pid).collect::<Vec<_>>());
    println!("GROUPS {:?}", server.cgroups().iter().map(|(_, path)| path).collect::<Vec<_>>());
    println!("READY");
    loop {
        std::thread::park();
    }
}

#[test]
fn what_a_killed_dyno_leaves_is_undone() {
    let home = Home::new();
    let folder = home.path();
    let folder = folder.parent().unwrap();
    let machine = machine(folder);
    if machine.find_program("redis-server").is_none() {
        return skip("a dyno that is killed", "redis-server is not installed");
    }
    let mut dyno = Command::new(std::env::current_exe().unwrap());
    dyno.args(["killed::a_dyno_that_will_be_killed", "--exact", "--ignored", "--nocapture"]);
    let mut dyno = dyno.env(HOME, folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(dyno.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (mut pids, mut groups) = (Vec::<u32>::new(), Vec::<PathBuf>::new());
    for line in lines.by_ref() {
        if let Some(list) = line.strip_prefix("PIDS ") {
            pids = serde_json::from_str(list).unwrap();
        } else if let Some(list) = line.strip_prefix("GROUPS ") {
            groups = serde_json::from_str(list).unwrap();
        } else if line == "READY" {
            break;
        }
    }
    let journal = folder.join("home/undo.jsonl");
    let early = undo::revert_journal(&journal, &machine);
    dyno.kill().unwrap();
    dyno.wait().unwrap();
    assert_eq!(pids.len(), 2, "the other dyno started its servers");
    assert!(early.unwrap_err().to_string().contains("still runs"));
    let alive = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
    assert!(pids.iter().all(alive), "nothing but the journal ends them");
    assert!(undo::revert_journal(&journal, &machine).unwrap() >= 4);
    // The process that adopted the orphans clears them away.
    assert!(within(5, || (!pids.iter().any(alive)).then_some(())).is_some());
    groups.iter().for_each(|path| assert!(!path.exists(), "{}", path.display()));
    home.assert_clear(&[], &[]);
    assert!(!folder.join("home/image-0").exists() && !folder.join("home/mount").exists());
    assert_eq!(undo::revert_journal(&journal, &machine).unwrap(), 0);
    // And the same home serves again.
    Server::start(&spec(r#"{"kind": "redis"}"#), &folder.join("home"), &machine).unwrap().stop().unwrap();
}
