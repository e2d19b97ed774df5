//! Kinds of faults that need the kernel's or a library's help, each in a whole run on a real redis-server: it takes place, by
//! the counters of the kernel or the library, it ends, and the record says what it did to the load.

use dyno_databases::spawn::find_server;
use dyno_testkit::{signal, skip, skip_because};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const RUN: &str = "o/runs/cell0001-rep01";

/// A run in a folder of its own.
struct Run {
    folder: tempfile::TempDir,
    said: String,
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command
}

/// An experiment: further keys of the server, the workload's letter, of the measured phase, and the faults.
fn text(server: &str, workload: &str, measure: &str, fault: &str) -> String {
    format!(
        "server: {{kind: redis, stop_within: 10s{server}}}\nworkload: {{ycsb: {{workload: {workload}}}}}\n\
         phases: {{measure: {{warmup: 1s, interval: 100ms, timeout: 8s, {measure}}}}}\nfaults:\n- {{{fault}}}\n"
    )
}

impl Run {
    fn new(text: &str) -> Run {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.yaml"), text).unwrap();
        Run { folder, said: String::new() }
    }

    /// The whole of it.
    fn made(text: &str) -> Run {
        let mut run = Run::new(text);
        let done = command(run.folder.path(), &["run", "x.yaml", "--out", "o", "--quiet"]).output().unwrap();
        run.said = String::from_utf8_lossy(&done.stderr).into_owned() + &run.file("o/journal.jsonl");
        run
    }

    fn start(text: &str) -> (Run, Child) {
        let run = Run::new(text);
        let mut command = command(run.folder.path(), &["run", "x.yaml", "--out", "o", "--quiet"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        (run, child)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.file(&format!("{RUN}/{name}")))
            .unwrap_or_else(|e| panic!("{e}: {}", self.said))
    }

    /// A fact of the server, whatever its port.
    fn fact(&self, end: &str) -> Option<String> {
        let run = self.json("run.json");
        let facts = run["facts"].as_object().unwrap();
        let found = facts.iter().find(|(key, _)| key.starts_with("server.redis-") && key.ends_with(end));
        found.map(|(_, value)| value.as_str().unwrap().to_owned())
    }

    /// Why this host does not let the fault happen, if it is the kernel that does not.
    fn refused(&self) -> Option<&str> {
        self.said.contains("if_not_permitted").then_some(self.said.as_str())
    }

    /// The fault's figures, after what every fault that took place leaves behind.
    fn fault(&self, name: &str) -> Value {
        let complete =
            self.said.contains("\"status\":\"complete\"") && !self.said.contains("\"status\":\"failed\"");
        assert!(complete, "{}", self.said);
        let summary = self.json("summary.json");
        let fault = summary["faults"][0].clone();
        assert_eq!(fault["fault"], name, "{fault:#}");
        let events = self.file(&format!("{RUN}/events.jsonl"));
        for kind in ["fault_begin", "fault_end"] {
            assert_eq!(events.matches(&format!("\"event\":\"{kind}\"")).count(), 1, "{events}");
        }
        assert!(!events.contains("fault_failed"), "{events}");
        let page = self.file(&format!("{RUN}/report.html"));
        assert!(page.contains("fault_begin") && page.contains("fault_end"), "the time axis has it");
        assert!(page.contains("Faults that the experiment asked for"));
        assert!(figure(&fault, "end_s") > figure(&fault, "begin_s"), "{fault:#}");
        assert!(figure(&fault, "before_per_s") > 0.0, "{fault:#}");
        fault
    }

    fn slowest_us(&self) -> f64 {
        let summary = self.json("summary.json");
        let measured = summary["phases"].as_array().unwrap().last().unwrap().clone();
        measured["metrics"][0]["service"]["max_us"].as_f64().unwrap()
    }
}

fn figure(fault: &Value, key: &str) -> f64 {
    fault[key].as_f64().unwrap_or_else(|| panic!("no {key} in {fault:#}"))
}

fn without_redis(what: &str) -> bool {
    let absent = find_server(Some("redis")).is_none();
    if absent {
        skip(what);
    }
    absent
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what} did not happen within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn nothing_passes_a_partition() {
    if without_redis("partition") {
        return;
    }
    // A host that stands still as long by itself is told from it by nothing, and that is what is said then: of three runs
    // one is not so.
    assert!((0..3).any(|_| a_partition_is_detected()), "no partition is told from what was usual before");
}

/// Whether a partition stood out from what was before.
fn a_partition_is_detected() -> bool {
    let fault = "kind: partition, at: 4s, for: 1500ms";
    let run = Run::made(&text("", "c, records: 1000", "duration: 14s, connections: 4, rate: '400'", fault));
    let figures = run.fault("partition on server");
    assert!(figures["means"].as_str().unwrap().contains("dyno's own TCP proxy"), "{figures:#}");
    // Whole seconds lie in it.
    assert!(figure(&figures, "depth") > 0.9, "{figures:#}");
    let stood_out =
        !figures["note"].as_str().is_some_and(|note| note.contains("beyond what was usual before"));
    if stood_out {
        assert!(figure(&figures, "detect_s") > 0.0, "{figures:#}");
        assert!(figure(&figures, "recover_s") > 1.0 && figure(&figures, "lost") > 0.0, "{figures:#}");
    }
    assert_eq!(figure(&figures, "failed"), 0.0, "connections stay");
    let held = figure(&figures, "end_s") - figure(&figures, "begin_s");
    assert!(run.slowest_us() > (held - 0.4) * 1e6, "an operation was held: {} us", run.slowest_us());
    stood_out
}

#[test]
fn a_bandwidth_is_what_is_left() {
    if without_redis("bandwidth") {
        return;
    }
    // A read brings a kilobyte: about twenty of them a second.
    let fault = "kind: bandwidth, bytes_per_s: 20k, at: 4s, for: 2s";
    let run = Run::made(&text("", "c, records: 1000", "duration: 15s, connections: 4, rate: '400'", fault));
    let figures = run.fault("bandwidth to 20000 a second on server");
    assert!(figures["means"].as_str().unwrap().contains("dyno's own TCP proxy"), "{figures:#}");
    let worst = figure(&figures, "worst_per_s");
    assert!(worst < 60.0 && figure(&figures, "depth") > 0.8, "{figures:#}");
    assert!(figure(&figures, "detect_s") > 0.0 && figure(&figures, "recover_s") > 1.0, "{figures:#}");
}

/// Tables of the packet filter that a dyno has made; none where nft does not answer.
fn tables(pid: Option<u32>) -> Option<Vec<String>> {
    let told = Command::new("nft").args(["list", "tables"]).output().ok()?;
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let name = pid.map_or("dyno-".to_owned(), |pid| format!("dyno-{pid}-"));
    let of =
        |line: &str| line.split_whitespace().last().filter(|last| last.starts_with(&name)).map(str::to_owned);
    told.status.success().then(|| text.lines().filter_map(of).collect())
}

fn without_nft() -> bool {
    let absent = tables(None).is_none();
    if absent {
        skip_because("loss", "nft is not installed, or not permitted (Debian: apt-get install nftables)");
    }
    absent || without_redis("loss")
}

#[test]
fn packets_are_lost_and_counted() {
    if without_nft() {
        return;
    }
    let fault = "kind: loss, percent: 40, at: 4s, for: 3s";
    let whole = text("", "c, records: 1000", "duration: 20s, connections: 4, rate: '400'", fault);
    let (mut run, mut child) = Run::start(&whole);
    until("the loss", || tables(Some(child.id())).is_some_and(|tables| tables.len() == 1));
    child.wait().unwrap();
    assert_eq!(tables(Some(child.id())), Some(Vec::new()), "the table is gone");
    run.said = run.file("o/journal.jsonl");
    if let Some(why) = run.refused() {
        return skip_because("loss", why);
    }
    let figures = run.fault("loss of 40 % on server");
    let means = figures["means"].as_str().unwrap();
    assert!(means.starts_with("nftables, table inet dyno-"), "{means}");
    // `... on the loopback: 12 of 34 packets dropped`
    let counts = means.rsplit(": ").next().unwrap().split(' ').filter_map(|word| word.parse::<f64>().ok());
    let [dropped, seen] = counts.collect::<Vec<_>>()[..] else { panic!("no counts: {means}") };
    assert!(dropped > 0.0 && seen > 10.0 && (0.1..0.8).contains(&(dropped / seen)), "{means}");
    let events = run.file(&format!("{RUN}/events.jsonl"));
    assert!(events.contains(&format!("{dropped} of {seen} packets dropped")), "{events}");
    // The kernel's least time until it sends again is 200 ms: 100 operations a second of each user are not to be had.
    assert!(figure(&figures, "depth") > 0.2 && figure(&figures, "detect_s") > 0.0, "{figures:#}");
    assert!(run.slowest_us() > 150_000.0, "something was sent again: {} us", run.slowest_us());
}

#[test]
fn a_dyno_that_is_interrupted_or_killed_leaves_no_table() {
    if without_nft() {
        return;
    }
    for how in ["INT", "KILL"] {
        let fault = "kind: loss, percent: 1, at: 1s, for: 60s";
        let (run, mut child) = Run::start(&text("", "c, records: 100", "duration: 90s, rate: '100'", fault));
        let pid = child.id();
        until("the loss", || tables(Some(pid)).is_some_and(|tables| tables.len() == 1));
        signal(pid, how);
        child.wait().unwrap();
        if how == "KILL" {
            assert_eq!(tables(Some(pid)).unwrap().len(), 1, "no dyno was left to remove it");
            let stopped = command(run.folder.path(), &["stop", "o"]).output().unwrap();
            assert!(stopped.status.success(), "{stopped:?}");
        }
        assert_eq!(tables(Some(pid)), Some(Vec::new()), "{how}");
    }
}

/// Root without leave to change the network.
fn without_leave(run: &Run) -> Option<std::process::Output> {
    let words = ["--bounding-set", "-net_admin", "--", env!("CARGO_BIN_EXE_dyno")];
    let words = [&words[..], &["run", "x.yaml", "--out", "o", "--quiet"]].concat();
    let mut command = Command::new("setpriv");
    command.args(words).current_dir(run.folder.path()).stdin(Stdio::null()).output().ok()
}

#[test]
fn where_packets_may_not_be_dropped_it_is_said_before_the_load() {
    if without_nft() {
        return;
    }
    let fault = "kind: loss, percent: 10, at: 4s, for: 1s";
    let whole = |server: &str| text(server, "c, records: 100", "duration: 6s, rate: '100'", fault);
    let run = Run::new(&whole(""));
    let Some(done) = without_leave(&run) else {
        return skip_because("loss without leave", "setpriv is not installed");
    };
    let said = String::from_utf8_lossy(&done.stderr).into_owned() + &run.file("o/journal.jsonl");
    assert!(!done.status.success() && said.contains("nftables: nft: "), "{said}");
    assert!(said.contains("Operation not permitted") && said.contains("no packets are dropped"), "{said}");
    assert!(!run.path(RUN).join("intervals.jsonl").exists(), "there was no load");
    let run = Run::new(&whole(", if_not_permitted: continue"));
    let done = without_leave(&run).unwrap();
    dyno_testkit::assert_ran_in(&run.path(""), &done, &[]);
    let journal = run.file("o/journal.jsonl");
    assert!(
        ["suspect", "invalid"].iter().any(|t| journal.contains(&format!("\"trust\":\"{t}\""))),
        "{journal}"
    );
    let summary = run.json("summary.json");
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    let told = reasons.iter().find(|reason| reason["check"] == "faults_carried_out").expect("a reason");
    assert!(told["text"].as_str().unwrap().contains("1 loss of 10 % on server: nftables: "), "{told}");
    assert!(run.file(&format!("{RUN}/events.jsonl")).contains("fault_failed"));
}

/// A server's clock less this machine's, seconds.
fn ahead_s(port: u16) -> Option<f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(b"TIME\r\n").ok()?;
    let lines: Vec<String> = BufReader::new(stream).lines().take(3).map_while(Result::ok).collect();
    let theirs = lines.get(2)?.parse::<f64>().ok()?;
    Some(theirs - SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64())
}

/// The port of the only server of a run under way.
fn port(run: &Run) -> Option<u16> {
    let entries = std::fs::read_dir(run.path(&format!("{RUN}.server"))).ok()?.flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter_map(|name| name.strip_prefix("redis-")?.parse().ok()).next()
}

/// The process of the only server of a run under way, by its journal.
fn server(run: &Run) -> Option<u64> {
    let journal = run.file(&format!("{RUN}.server/undo.jsonl"));
    let line = journal.lines().find(|line| line.contains("\"process\""))?.to_owned();
    serde_json::from_str::<Value>(&line).ok()?["pid"].as_u64()
}

#[test]
fn a_clock_is_ahead_for_a_time_and_the_machines_own_stays() {
    if without_redis("clock_step") {
        return;
    }
    let fault = "kind: clock_step, step: 1h, at: 4s, for: 4s";
    let (mut run, mut child) = Run::start(&text("", "c, records: 1000", "duration: 14s, rate: '400'", fault));
    let (wall, steady) = (SystemTime::now(), Instant::now());
    let (mut seen, mut pids) = (Vec::new(), Vec::new());
    while child.try_wait().unwrap().is_none() {
        if let Some(ahead) = port(&run).and_then(ahead_s) {
            let hours = (ahead / 3600.0).round();
            assert!((ahead - hours * 3600.0).abs() < 60.0, "{ahead} s ahead");
            if seen.last() != Some(&hours) {
                pids.extend(server(&run));
                seen.push(hours);
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let passed = SystemTime::now().duration_since(wall).unwrap_or_default().as_secs_f64();
    assert!((passed - steady.elapsed().as_secs_f64()).abs() < 60.0, "the machine's clock is as it was");
    run.said = run.file("o/journal.jsonl");
    if run.refused().is_some() {
        return skip_because(
            "clock_step",
            "libfaketime is not installed (Debian: apt-get install libfaketime)",
        );
    }
    let figures = run.fault("clock_step by 1h on server");
    assert_eq!(seen, [0.0, 1.0, 0.0], "as it was, an hour ahead, as it was");
    assert!(!pids.is_empty());
    assert!(figures["means"].as_str().unwrap().starts_with("libfaketime"), "{figures:#}");
    assert!(run.fact(".command").unwrap().contains("LD_PRELOAD="), "the command line says that it is there");
    assert!(figure(&figures, "depth") >= 0.0, "{figures:#}");
    let left = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let left = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let left: Vec<String> =
        left.filter(|name| pids.iter().any(|pid| name.ends_with(&format!("_{pid}")))).collect();
    assert_eq!(left, Vec::<String>::new(), "the library's own files are gone, too");
}

/// The largest of a counter's values in the facts, under the names of both versions of control groups.
fn counter(run: &Run, names: [&str; 2]) -> u64 {
    let values = names.iter().filter_map(|name| run.fact(name)?.parse::<u64>().ok());
    values.max().unwrap_or_else(|| panic!("none of {names:?} in {:#}", run.json("run.json")["facts"]))
}

#[test]
fn memory_is_short_for_what_the_server_writes() {
    if without_redis("memory_pressure") {
        return;
    }
    // The append-only file grows in the page cache, which is the server's memory, too, and can be given back.
    let fault = "kind: memory_pressure, memory: 40MiB, at: 4s, for: 4s";
    let load =
        "a, records: 10000, properties: {readproportion: '0', updateproportion: '1', writeallfields: 'true'}";
    let run = Run::made(&text(
        ", journal: true, options: {auto-aof-rewrite-percentage: 0}",
        load,
        "duration: 14s, connections: 4, rate: '1500'",
        fault,
    ));
    if let Some(why) = run.refused() {
        return skip_because("memory_pressure", why);
    }
    let figures = run.fault("memory_pressure to 40MiB on server");
    assert_eq!(figures["means"], "its control group");
    assert!(figure(&figures, "depth") >= 0.0, "{figures:#}");
    let hits = counter(&run, [".memory.failcnt", ".memory.events.max"]);
    assert!(hits > 0, "the kernel has counted no attempt beyond the limit");
}

/// A server whose data are in an image of their own, each write of which is on its disk before it is answered.
const IMAGE: &str =
    ", journal: true, data: {image: {filesystem: ext4, size: 256MiB}}, options: {appendfsync: always}";

#[test]
fn a_disk_is_slow_for_a_time() {
    if without_redis("io_limit") {
        return;
    }
    let fault = "kind: io_limit, bytes_per_s: 10k, at: 5s, for: 3s";
    let load = "a, records: 500, properties: {readproportion: '0', updateproportion: '1'}";
    let run = Run::made(&text(IMAGE, load, "duration: 20s, connections: 2, rate: '100'", fault));
    if let Some(why) = run.refused() {
        return skip_because("io_limit", why);
    }
    let figures = run.fault("io_limit to 10000 a second on server");
    assert_eq!(figures["means"], "its control group");
    let serviced = run.fact(".blkio.throttle.io_service_bytes").or_else(|| run.fact(".io.stat"));
    assert!(
        serviced.is_some_and(|text| text.contains("Write") || text.contains("wbytes")),
        "its disk was written"
    );
    // Each write is some blocks of 4 KiB: a few of them a second. Intervals without any are usual on a slow disk, so that
    // it need not be seen by an interval.
    assert!(figure(&figures, "depth") > 0.3 && figure(&figures, "worst_per_s") < 70.0, "{figures:#}");
}

#[test]
fn a_disk_is_full_for_a_time() {
    if without_redis("disk_full") {
        return;
    }
    let fault = "kind: disk_full, at: 4s, for: 2s";
    let load = "a, records: 500, properties: {readproportion: '0', updateproportion: '1'}";
    let run = Run::made(&text(
        &IMAGE.replace("always", "everysec"),
        load,
        "duration: 16s, connections: 2, rate: '200'",
        fault,
    ));
    if let Some(why) = run.refused() {
        return skip_because("disk_full", why);
    }
    let figures = run.fault("disk_full on server");
    assert_eq!(figures["means"], "a file that fills the image of the data");
    assert!(
        figure(&figures, "failed") > 0.0,
        "a Redis that cannot write its file refuses writes: {figures:#}"
    );
    assert!(figure(&figures, "depth") > 0.5 && figure(&figures, "detect_s") > 0.0, "{figures:#}");
    assert!(figure(&figures, "recover_s") > 0.0, "{figures:#}");
    let logs = run.path(&format!("{RUN}/server"));
    let log = std::fs::read_dir(logs).unwrap().flatten().map(|entry| entry.path().join("log"));
    let said: String = log.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    // What of a write still fitted was written.
    let full = ["No space left on device", "Short write while writing to the AOF file"];
    assert!(full.iter().any(|message| said.contains(message)), "{said}");
}
