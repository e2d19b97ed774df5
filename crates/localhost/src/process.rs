//! Processes: starting one so that its end is noted before it begins, ending it, reading what the kernel says of it.

use crate::error::LocalError;
use crate::machine::Machine;
use dyno_types::limits::LOG_END_BYTES;
use dyno_types::{bounded, child};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The kernel's facts about a process that has not ended.
struct ProcessStat {
    /// Group, which has the number of the process that has led it.
    group: u32,
    session: u32,
    /// Start time, in clock ticks since the host's start.
    started: u64,
}

fn stat(machine: &Machine, pid: u32) -> Option<ProcessStat> {
    let stat = dyno_monitor::read(&machine.proc.join(pid.to_string()).join("stat")).ok()?;
    // The name may hold spaces and brackets; what follows its last bracket does not.
    let rest: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().take(20).collect();
    if matches!(*rest.first()?, "Z" | "X") {
        return None;
    }
    let number = |at: usize| rest.get(at)?.parse().ok();
    Some(ProcessStat { group: number(2)?, session: number(3)?, started: rest.get(19)?.parse().ok()? })
}

/// Returns the start time of a process, in clock ticks since the host's start; `None` if there is none or if it has ended.
pub fn start_ticks(machine: &Machine, pid: u32) -> Option<u64> {
    stat(machine, pid).map(|stat| stat.started)
}

/// The session that a process belongs to: what it starts belongs to it too, unless it asks for one of its own.
pub fn session_of(machine: &Machine, pid: u32) -> Option<u32> {
    stat(machine, pid).map(|stat| stat.session)
}

/// The group that a process belongs to: the number of the process that led it first.
pub fn process_group_of(machine: &Machine, pid: u32) -> Option<u32> {
    stat(machine, pid).map(|stat| stat.group)
}

/// Returns the identity of this boot of the host; process numbers begin anew with each.
pub(crate) fn boot(machine: &Machine) -> Option<String> {
    let text = fs::read_to_string(machine.proc.join("sys/kernel/random/boot_id")).ok()?;
    Some(text.trim().to_owned())
}

/// A command of a program that the kernel ends should this thread's process be killed, where `setpriv` is there to ask for it.
pub fn ending_with_dyno(program: &Path) -> Command {
    let Some(setpriv) = Machine::default().find_program("setpriv") else {
        return child::clean_command(program);
    };
    let mut command = child::clean_command(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Returns the identity of this host: a digest, since the kernel's own number is to stay on the host. Where the host has no
/// number it is told by its name.
pub(crate) fn host(machine: &Machine) -> Option<String> {
    let text = |path: &Path| {
        let text = fs::read_to_string(path).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty() && text != "uninitialized")
    };
    let name = || text(&machine.proc.join("sys/kernel/hostname"));
    let host = text(Path::new("/etc/machine-id")).or_else(name)?;
    let digest = Sha256::digest(format!("dyno {host}").as_bytes());
    Some(hex::encode(&digest[..12]))
}

/// Returns the processes that a process has started and that have outlived it: members of its group, in its session,
/// not older than itself. The kernel gives a group's number to no other process while it has members; should it have
/// gone and come again, then its current leader was started later, and everything is left alone.
fn group_of(machine: &Machine, leader: u32, start: u64, session: u32) -> Vec<u32> {
    if start_ticks(machine, leader).is_some_and(|other| other != start) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(&machine.proc) else { return Vec::new() };
    let all = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let ours = |pid: &u32| {
        stat(machine, *pid)
            .is_some_and(|stat| stat.group == leader && stat.session == session && stat.started >= start)
    };
    all.filter(ours).collect()
}

/// Sends a signal; false if there is no such process.
pub fn send_signal(pid: u32, signal: Signal) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Stops a process and the group that it leads (SIGSTOP).
pub fn halt_group(pid: u32) -> bool {
    if let Some(group) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // There is no such group if the process leads none.
        let _ = kill_process_group(group, Signal::STOP);
    }
    send_signal(pid, Signal::STOP)
}

/// Has it go on, if it is still the one that was started then.
pub(crate) fn go_on(machine: &Machine, pid: u32, start: u64) {
    if start_ticks(machine, pid) != Some(start) {
        return;
    }
    if let Some(group) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::CONT);
    }
    send_signal(pid, Signal::CONT);
}

/// Kills a process if it is still the one that was started then, with the children that it has forked (a Redis that is
/// saving has one), and waits until it is gone. Servers lead groups of their own; no other group has their number. With the
/// session it was started in, those of its group that have outlived it end too: the server of a wrapper that was killed.
pub(crate) fn end(
    machine: &Machine,
    (pid, start, session): (u32, u64, Option<u32>),
    patience: Duration,
) -> Result<(), LocalError> {
    let begun = Instant::now();
    while start_ticks(machine, pid) == Some(start) {
        if let Some(group) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // There is no such group if the process leads none.
            let _ = kill_process_group(group, Signal::KILL);
        }
        send_signal(pid, Signal::KILL);
        if begun.elapsed() > patience {
            return Err(LocalError::Failed(format!("process {pid} does not end after SIGKILL")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let Some(session) = session else { return Ok(()) };
    loop {
        let left = group_of(machine, pid, start, session);
        if left.is_empty() {
            return Ok(());
        }
        for member in &left {
            send_signal(*member, Signal::KILL);
        }
        if begun.elapsed() > patience {
            return Err(LocalError::Failed(format!("processes {left:?} do not end after SIGKILL")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills what is left of a group after its leader: a wrapper's server, a Redis' child that saves.
pub fn end_group(leader: u32) {
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        // Most servers leave nothing.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Returns the cores and memory nodes that the kernel allows a process.
pub fn effective_placement(machine: &Machine, pid: u32) -> BTreeMap<String, String> {
    let folder = machine.proc.join(pid.to_string());
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.trim().to_owned())
    };
    let mut facts = BTreeMap::new();
    for (name, key) in [("Cpus_allowed_list", "cpus_allowed"), ("Mems_allowed_list", "mems_allowed")] {
        if let Some(value) = value(name) {
            facts.insert(key.to_owned(), value);
        }
    }
    facts.extend(numa_maps(&folder.join("numa_maps")));
    facts
}

/// Pages by node and the policies of a process' mappings.
fn numa_maps(path: &Path) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let Ok(text) = fs::read_to_string(path) else { return facts };
    let (mut nodes, mut policies) = (BTreeMap::<usize, u64>::new(), BTreeMap::<String, usize>::new());
    for line in text.lines() {
        let mut words = line.split(' ').skip(1);
        if let Some(policy) = words.next() {
            *policies.entry(policy.to_owned()).or_default() += 1;
        }
        let words: Vec<&str> = words.collect();
        let page = words.iter().find_map(|w| w.strip_prefix("kernelpagesize_kB=")?.parse::<u64>().ok());
        for word in words {
            let number = word.strip_prefix('N').and_then(|rest| rest.split_once('='));
            if let Some((node, pages)) = number
                && let (Ok(node), Ok(pages)) = (node.parse(), pages.parse::<u64>())
            {
                *nodes.entry(node).or_default() += pages * page.unwrap_or(4);
            }
        }
    }
    let join = |parts: Vec<String>| parts.join(", ");
    if !nodes.is_empty() {
        let parts = nodes.iter().map(|(node, kib)| format!("node {node}: {} MiB", kib >> 10)).collect();
        facts.insert("memory_by_node".to_owned(), join(parts));
    }
    if !policies.is_empty() {
        let parts = policies.iter().map(|(policy, count)| format!("{policy} ({count} mappings)")).collect();
        facts.insert("memory_policy".to_owned(), join(parts));
    }
    facts
}

/// The last lines of a log, for a message.
pub fn last_lines(log: &Path, count: usize) -> String {
    let text = bounded::end_of(log, LOG_END_BYTES).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.len() {
        0 => "its log is empty".to_owned(),
        n => format!("its log ends: {}", lines[n.saturating_sub(count)..].join(" | ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_by_its_start() {
        let machine = Machine::default();
        let own = std::process::id();
        let start = start_ticks(&machine, own).unwrap();
        // Another process of that number is left alone.
        end(&machine, (own, start + 1, session_of(&machine, own)), Duration::ZERO).unwrap();
        assert_eq!(start_ticks(&machine, own), Some(start));
        assert_eq!(start_ticks(&machine, 0), None);
        let allowed = &effective_placement(&machine, own)["cpus_allowed"];
        assert!(dyno_monitor::topology::parse_list(allowed).is_some_and(|cpus| !cpus.is_empty()));
    }

    #[test]
    fn forked_children_end_with_their_leader() {
        use std::io::{BufRead, BufReader};
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("/bin/sh");
        command
            .args(["-c", "sleep 600 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .process_group(0);
        let mut leader = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(leader.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let child: u32 = line.trim().parse().unwrap();
        let machine = Machine::default();
        assert!(start_ticks(&machine, child).is_some());
        let start = start_ticks(&machine, leader.id()).unwrap();
        end(&machine, (leader.id(), start, None), Duration::from_secs(5)).unwrap();
        leader.wait().unwrap();
        let begun = Instant::now();
        while start_ticks(&machine, child).is_some() {
            assert!(begun.elapsed().as_secs() < 5, "the child lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_outlives_a_wrapper_ends_by_its_group() {
        use std::io::{BufRead, BufReader};
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("/bin/sh");
        command
            .args(["-c", "sleep 600 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .process_group(0);
        let mut leader = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(leader.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let child: u32 = line.trim().parse().unwrap();
        let machine = Machine::default();
        let start = start_ticks(&machine, leader.id()).unwrap();
        let session = session_of(&machine, leader.id());
        assert_eq!(session, crate::process::session_of(&machine, std::process::id()));
        leader.kill().unwrap();
        leader.wait().unwrap();
        assert!(start_ticks(&machine, child).is_some(), "the kernel ends the wrapper alone");
        // Of another session, or older than their leader: they are another program's.
        let patience = Duration::from_secs(5);
        end(&machine, (leader.id(), start, session.map(|number| number + 1)), patience).unwrap();
        end(&machine, (leader.id(), u64::MAX, session), patience).unwrap();
        assert!(start_ticks(&machine, child).is_some());
        end(&machine, (leader.id(), start, session), patience).unwrap();
        assert_eq!(start_ticks(&machine, child), None);
    }

    #[test]
    fn maps_are_added_up_by_node() {
        let proc = tempfile::tempdir().unwrap();
        let own = proc.path().join("7");
        fs::create_dir_all(&own).unwrap();
        let maps = "00400000 bind:1 file=/bin/x mapped=3 N1=3 kernelpagesize_kB=4\n\
                    7f0000 bind:1 anon=600 dirty=600 N0=88 N1=512 kernelpagesize_kB=4\n\
                    7f8000 default anon=2 N1=2 kernelpagesize_kB=2048\n";
        fs::write(own.join("numa_maps"), maps).unwrap();
        fs::write(own.join("status"), "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n").unwrap();
        let machine = Machine { proc: proc.path().to_owned(), ..Machine::default() };
        let facts = effective_placement(&machine, 7);
        assert_eq!(facts["memory_by_node"], "node 0: 0 MiB, node 1: 6 MiB");
        assert_eq!(facts["memory_policy"], "bind:1 (2 mappings), default (1 mappings)");
        assert_eq!(facts["cpus_allowed"], "0-3");
    }

    #[test]
    fn logs_end_with_their_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert_eq!(last_lines(&log, 2), "its log is empty");
        fs::write(&log, "one\n\ntwo\nthree\n").unwrap();
        assert_eq!(last_lines(&log, 2), "its log ends: two | three");
    }
}
