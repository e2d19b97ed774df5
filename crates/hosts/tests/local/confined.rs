//! Placement, limits and storage, by the kernel of this machine.

use super::common::{Home, failure, redis, skip, spec, start, within};
use dyno_config::server::placement::{Limits, Placement};
use dyno_hosts::servers::launch::Confinement;
use dyno_hosts::servers::server::Server;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Starts a server with something that this system may not permit.
fn permitted(home: &Home, json: &str) -> Option<Server> {
    match Server::start(&spec(json), &home.path(), &Machine::default()) {
        Ok(server) => Some(server),
        Err(error @ (LocalError::NotPermitted { .. } | LocalError::Absent(_))) => {
            skip(json, &error.to_string());
            None
        }
        Err(error) => panic!("{json}: {error}"),
    }
}

fn name(server: &Server) -> String {
    server.running_processes()[0].0.clone()
}

#[test]
fn cores_are_read_back_from_the_kernel() {
    let home = Home::new();
    let Some(server) = start(&home, r#"{"kind": "redis", "placement": {"policy": 3, "cores_each": 1}}"#)
    else {
        return;
    };
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", server.running_processes()[0].1)).unwrap();
    assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
    assert_eq!(server.server_facts()[&format!("{}.cpus_allowed", name(&server))], "0");
    assert_eq!(server.given_cores(), [0]);
    let facts = server.stop().unwrap();
    // The last word on a process stays.
    let place = facts.iter().find(|(key, _)| key.ends_with(".placement")).unwrap().1;
    assert!(place.starts_with("cores 0, memory local"), "{place}");
    assert!(facts.keys().any(|key| key.ends_with(".memory_by_node")), "{facts:?}");
    let error = failure(&home, r#"{"kind": "redis", "placement": {"cores": "0,65000"}}"#);
    assert!(error.contains("core 65000 is not there; this machine has 0-"), "{error}");
    home.assert_clear(&[], &[]);
}

#[test]
fn numactl_decides_over_memory() {
    let home = Home::new();
    let json = r#"{"kind": "redis", "placement": {"numactl": "--interleave=all --physcpubind=0"}}"#;
    let Some(server) = permitted(&home, json) else { return };
    let facts = server.server_facts();
    let own = name(&server);
    assert!(facts[&format!("{own}.memory_policy")].contains("interleave:0"), "{facts:?}");
    assert!(
        facts[&format!("{own}.command")].contains("numactl --interleave=all --physcpubind=0 "),
        "{facts:?}"
    );
    assert_eq!(facts[&format!("{own}.cpus_allowed")], "0");
}

#[test]
fn a_server_over_its_memory_is_killed_and_that_is_said() {
    let home = Home::new();
    let Some(mut server) = permitted(&home, r#"{"kind": "redis", "limits": {"memory": "24MiB", "cpus": 1}}"#)
    else {
        return;
    };
    let groups = server.cgroups();
    assert!(groups.iter().any(|(name, path)| name.contains('.') && path.is_dir()), "{groups:?}");
    let port = home.ports(&server)[0];
    let value = "x".repeat(100_000);
    let died = within(20, || {
        for i in 0..100 {
            redis(port, &["SET", &format!("k{i}"), &value]);
            if let Some(died) = server.describe_death() {
                return Some(died);
            }
        }
        redis(port, &["SETRANGE", "big", "60000000", "x"]);
        server.describe_death()
    });
    let died = died.unwrap();
    assert!(died.contains("want of memory (limits.memory)"), "{died}");
    let facts = server.server_facts();
    let fact = |end: &str| facts.iter().find(|(key, _)| key.ends_with(end)).map(|(_, value)| value.clone());
    let hits = fact(".memory.failcnt").or(fact(".memory.events.max")).unwrap();
    assert!(hits.parse::<u64>().unwrap() > 0, "{facts:?}");
    let most = fact(".memory.max_usage_in_bytes").or(fact(".memory.peak")).unwrap();
    assert!(most.parse::<u64>().unwrap() <= 24 << 20, "{most}");
    server.stop().unwrap();
    groups.iter().for_each(|(_, path)| assert!(!path.exists(), "{}", path.display()));
    home.assert_clear(&[], &[]);
}

fn confined(home: &Home, limits: &str, placement: &str) -> Option<Confinement> {
    let limits: Limits = serde_json::from_str(limits).unwrap();
    let placement: Placement = serde_json::from_str(placement).unwrap();
    std::fs::create_dir_all(home.path()).unwrap();
    let folders = (home.path(), home.path());
    let machine = Machine::default();
    match Confinement::new((&placement, &limits), (0, 1), (&folders.0, &folders.1), &machine, false) {
        Ok(confinement) => Some(confinement),
        Err(error @ LocalError::NotPermitted { .. }) => {
            skip("a confined process", &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_worker_is_inside_from_its_first_page_on() {
    let home = Home::new();
    let Some(confinement) = confined(&home, r#"{"memory": "32MiB"}"#, r#"{"cores": 0}"#) else { return };
    let odd = "$(id) 'a' \"b\" ; c\n";
    let text = r#"cat /proc/self/cgroup /proc/self/status; printf %s "$1""#;
    let output =
        confinement.confined_command(Path::new("/bin/sh"), &["-c", text, "sh", odd]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("/dyno/worker-") && said.contains("Cpus_allowed_list:\t0\n"), "{said}");
    assert!(said.ends_with(odd), "arguments arrive as they are: {said}");
    assert_eq!(confinement.confined_cores(), [0]);
    // It may not have more than its limit.
    let mut greedy = confinement
        .confined_command(Path::new("/bin/sh"), &["-c", "x=$(head -c 100000000 /dev/zero | tr '\\0' x)"]);
    assert!(!greedy.status().unwrap().success());
    let groups = confinement.cgroups();
    assert!(groups.iter().all(|(_, path)| path.is_dir()));
    let mut sleeper = confinement.confined_command(Path::new("/bin/sleep"), &["600"]).spawn().unwrap();
    let pid = sleeper.id();
    let facts = within(5, || confinement.kernel_facts(pid).ok()).unwrap();
    assert_eq!(facts["cpus_allowed"], "0");
    // What still runs in the group ends with it.
    confinement.end().unwrap();
    assert!(!sleeper.wait().unwrap().success());
    groups.iter().for_each(|(_, path)| assert!(!path.exists(), "{}", path.display()));
}

#[test]
fn io_and_processor_time_are_limited_and_counted() {
    let home = Home::new();
    let limits = r#"{"read_bytes_per_s": "4MiB", "write_bytes_per_s": "4MiB", "cpus": 0.2}"#;
    let made = std::panic::catch_unwind(|| confined(&home, limits, "{}"));
    let Ok(Some(confinement)) = made else {
        return skip("limits of I/O", "the temporary folder is on no disk, or limits are not permitted");
    };
    let file = home.path().join("file");
    let target = format!("of={}", file.display());
    let begun = Instant::now();
    let words = ["if=/dev/zero", &target, "bs=1M", "count=6", "oflag=direct", "status=none"];
    if !confinement.confined_command(Path::new("/bin/dd"), &words).status().unwrap().success() {
        return skip("limits of I/O", "the temporary folder's filesystem has no direct I/O");
    }
    let source = format!("if={}", file.display());
    let words = [source.as_str(), "of=/dev/null", "bs=1M", "iflag=direct", "status=none"];
    assert!(confinement.confined_command(Path::new("/bin/dd"), &words).status().unwrap().success());
    assert!(begun.elapsed().as_secs_f64() > 2.0, "12 MiB at 4 MiB/s: {:?}", begun.elapsed());
    let busy = ["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"];
    assert!(confinement.confined_command(Path::new("/bin/sh"), &busy).status().unwrap().success());
    let mut sleeper = confinement.confined_command(Path::new("/bin/sleep"), &["600"]).spawn().unwrap();
    let facts = confinement.kernel_facts(sleeper.id()).unwrap();
    assert!(facts["cpu.stat.nr_throttled"].parse::<u64>().unwrap() > 0, "{facts:?}");
    match facts.get("blkio.throttle.io_service_bytes") {
        Some(bytes) => {
            let read =
                bytes.split_once("Read ").and_then(|(_, rest)| rest.split(';').next()?.parse::<u64>().ok());
            // The programs themselves may have been read too.
            assert!(read.is_some_and(|read| read >= 6 << 20) && bytes.contains("Write 6291456"), "{bytes}");
            assert!(facts["limits.writes"].contains("direct I/O only"));
        }
        None => assert!(facts["io.stat"].contains("rbytes=6291456"), "{facts:?}"),
    }
    confinement.end().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn without_leave_the_file_decides() {
    let home = Home::new();
    if start(&home, r#"{"kind": "redis"}"#).is_none() {
        return;
    }
    let machine = Machine { cgroup_parent: Some("/no-such-group-here".into()), ..Machine::default() };
    let json = |word: &str| {
        format!(r#"{{"kind": "redis", "limits": {{"memory": "64MiB"}}, "if_not_permitted": "{word}"}}"#)
    };
    let error = Server::start(&spec(&json("fail")), &home.path(), &machine).unwrap_err().to_string();
    assert!(error.contains("cgroup") && error.contains("limits of memory"), "{error}");
    home.assert_clear(&[], &[]);
    let server = Server::start(&spec(&json("continue")), &home.path(), &machine).unwrap();
    assert!(
        server.user_notes()[0].contains("limits of memory, processor time and I/O do not hold"),
        "{:?}",
        server.user_notes()
    );
    assert!(server.server_facts()["note.1"].contains("cgroup") && server.cgroups().is_empty());
    server.stop().unwrap();
    home.assert_clear(&[], &[]);
}

#[test]
fn data_on_an_image_with_limits_and_snapshots() {
    for (filesystem, size, members) in [("btrfs", "160MiB", 2), ("xfs", "320MiB", 1), ("ext4", "64MiB", 1)] {
        let home = Home::new();
        let json = format!(
            r#"{{"kind": "redis", "instances": 2, "journal": true, "drop_caches": true,
            "limits": {{"memory": "128MiB", "read_bytes_per_s": "50MiB"}},
            "data": {{"image": {{"filesystem": "{filesystem}", "size": "{size}", "members": {members}}}, "snapshot": true}}}}"#
        );
        let Some(mut server) = permitted(&home, &json) else { continue };
        let (ports, data) = (home.ports(&server), server.data_folders());
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let own = home.path().canonicalize().unwrap().join("mount").display().to_string();
        let line = mounts.lines().find(|line| line.contains(&own)).unwrap();
        assert!(line.contains("noatime") && line.contains(&format!(" - {filesystem} ")), "{line}");
        assert!(data.iter().all(|folder| folder.starts_with(&own)), "{data:?}");
        redis(ports[1], &["SET", "k", "loaded"]);
        server.take_snapshot().unwrap();
        redis(ports[1], &["SET", "k", "changed"]);
        server.restore_snapshot().unwrap();
        assert_eq!(redis(ports[1], &["GET", "k"]), "loaded");
        let facts = server.server_facts();
        assert!(facts["data"].starts_with(&format!("{filesystem} (noatime) on /dev/loop")), "{facts:?}");
        let limit = facts
            .iter()
            .find(|(key, _)| key.ends_with(".blkio.throttle.read_bps_device") || key.ends_with(".io.max"));
        assert_eq!(limit.unwrap().1.matches("52428800").count(), members, "on each device: {limit:?}");
        server.stop().unwrap();
        home.assert_clear(&[], &data);
        let left =
            std::fs::read_dir(home.path()).unwrap().flatten().map(|e| e.file_name()).collect::<Vec<_>>();
        assert!(
            !left.iter().any(|name| name == "mount" || name.to_string_lossy().starts_with("image")),
            "{left:?}"
        );
        let loops = Command::new("losetup")
            .args(["--list", "--noheadings", "--output", "BACK-FILE"])
            .output()
            .unwrap();
        assert!(!String::from_utf8_lossy(&loops.stdout).contains(&home.path().display().to_string()));
    }
}
