//! `dyno record` of captures that tcpdump writes: what is recorded is what the server has counted.

use crate::record_proxy::{benchmark, calls, cli, read_recording};
use dyno_testkit::{Dyno, RedisProcess, assert_exit, free_port, signal, skip, skip_because, stderr, stdout};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// tcpdump on loopback, writing to a file; ended when dropped.
pub(crate) struct Tcpdump {
    child: Child,
}

impl Tcpdump {
    /// `None` where it is not installed, or may not capture.
    pub fn start(interface: &str, port: u16, file: &Path, more: &[&str]) -> Option<Tcpdump> {
        let mut command = Command::new("tcpdump");
        // Packets are written as they come, and the buffer takes what a burst brings.
        command.args(["-i", interface, "-U", "-B", "65536", "-Z", "root", "-w"]).arg(file).args(more);
        command.args(["tcp", "and", "port", &port.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().ok()?;
        let mut dump = Tcpdump { child };
        // The head of the file is written when it listens.
        let begun = Instant::now();
        while std::fs::metadata(file).map_or(0, |facts| facts.len()) == 0 {
            if dump.child.try_wait().unwrap().is_some() || begun.elapsed() > Duration::from_secs(10) {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(dump)
    }

    /// Ends it, once its file has grown no more; returns the packets that the kernel has dropped.
    pub fn end(mut self, file: &Path) -> u64 {
        let size = || std::fs::metadata(file).unwrap().len();
        let mut before = 0;
        while before != size() {
            before = size();
            // The kernel hands packets over within a second.
            std::thread::sleep(Duration::from_millis(1_500));
        }
        signal(self.child.id(), "INT");
        let mut text = String::new();
        if let Some(mut stream) = self.child.stderr.take() {
            std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
        }
        self.child.wait().unwrap();
        let dropped = text.lines().find_map(|line| line.strip_suffix(" packets dropped by kernel"));
        dropped.map_or(0, |count| count.trim().parse().unwrap())
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn skip_capture(what: &str) {
    skip_because(what, "tcpdump is not installed, or may not capture");
}

#[test]
fn counts_of_a_capture_are_those_of_the_server() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("a capture") };
    for (interface, more) in [("lo", &[][..]), ("any", &["--nano"])] {
        let dyno = Dyno::new();
        let file = dyno.path("traffic.pcap");
        let Some(dump) = Tcpdump::start(interface, server.port, &file, more) else {
            return skip_capture("a capture of real traffic");
        };
        cli(server.port, &["CONFIG", "RESETSTAT"]);
        benchmark(
            server.port,
            &["-t", "set,get,incr,lrange_100,mset", "-n", "2000", "-c", "10", "-d", "100"],
        );
        benchmark(server.port, &["-t", "set,get", "-n", "1000", "-c", "5", "-P", "16", "-d", "30000", "-3"]);
        cli(server.port, &["INCR", "no", "such", "form"]);
        let counted = calls(&server);
        let dropped = dump.end(&file);
        if dropped > 0 {
            return skip_because("a capture of real traffic", "the host is too busy: packets were dropped");
        }
        let output = dyno.run(&["record", "traffic.pcap", "--point", "server"]);
        assert_exit(&output, &[0]);
        let (entries, totals) = read_recording(&dyno.path("traffic.dyno"));
        // Packets of two processors may be written in another order than that of their times.
        let left: Vec<&String> = totals.left_out.keys().filter(|name| !name.starts_with("times")).collect();
        assert!(left.is_empty(), "{interface}: {:?}", totals.left_out);
        assert!(totals.by_name["SET"] >= 3_000, "{:?}", totals.by_name);
        for (name, count) in &totals.by_name {
            // RESETSTAT was counted before it reset, and the statistics are asked for behind the last command.
            let expected = counted.get(name).copied().unwrap_or(0);
            if !["CONFIG", "INFO", "COMMAND"].contains(&name.as_str()) {
                assert_eq!(*count, expected, "{interface}: {name}");
            }
        }
        // All have replies but the last INFO, which tcpdump may end before.
        assert!(totals.replies + 1 >= totals.commands, "{} of {}", totals.replies, totals.commands);
        let large = entries.iter().filter(|entry| {
            entry.arguments.is_named("GET") && entry.reply.as_ref().is_some_and(|reply| reply.size == 30_000)
        });
        assert!(large.count() >= 1_000);
    }
}

#[test]
fn captures_that_cannot_be_read_are_told() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("captures that cannot be read") };
    let dyno = Dyno::new();
    let file = dyno.path("cut.pcap");
    let Some(dump) = Tcpdump::start("lo", server.port, &file, &["-s", "90"]) else {
        return skip_capture("a capture that cuts packets");
    };
    benchmark(server.port, &["-t", "set", "-n", "200", "-c", "2", "-d", "500"]);
    dump.end(&file);
    let output = dyno.run(&["record", "cut.pcap"]);
    let told = format!("{}{}", stdout(&output), stderr(&output));
    assert!(told.contains("were cut by the capture"), "{told}");
    let wrong = free_port().to_string();
    for (words, part) in [
        (&["record", "cut.pcap", "-o", "x", "--port", &wrong][..], "carries no commands of Redis"),
        (&["record", "cut.pcap", "-o", "x", "--kind", "monitor"], "no lines of MONITOR"),
        (&["record", "cut.pcap", "absent.pcap", "-o", "x"], "absent.pcap"),
        (&["record", "cut.pcap", "--listen", "127.0.0.1:0", "--to", "redis://h"], "exclude each other"),
    ] {
        let output = dyno.run(words);
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains(part), "{words:?}: {}", stderr(&output));
        assert!(!dyno.path("x").exists());
    }
}
