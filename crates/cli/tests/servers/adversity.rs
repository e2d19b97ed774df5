//! What goes wrong around an experiment: mistakes in a URI, ports in use, disks that are full, servers that die, control groups
//! that are not to be had. Each is said clearly, and nothing is left.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder with an experiment file.
struct Fixture(tempfile::TempDir);

impl Fixture {
    fn of(text: &str) -> Self {
        let fixture = Fixture(tempfile::tempdir().unwrap());
        std::fs::write(fixture.path("x.yaml"), text).unwrap();
        fixture
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null()).output().unwrap()
    }

    fn dyno(&self, arguments: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_dyno"), arguments)
    }

    fn ended(&self, directory: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(directory).join("journal.jsonl")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["event"] == "ended").collect()
    }

    /// That no process works below the folder.
    fn assert_clear(&self) {
        let home = self.path("");
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let cwd = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            assert!(!cwd.starts_with(&home), "{} is in {}", entry.path().display(), cwd.display());
        }
    }
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn has_redis(what: &str) -> bool {
    let there = dyno_databases::spawn::find_server(Some("redis")).is_some();
    if !there {
        dyno_testkit::skip(what);
    }
    there
}

const SHORT: &str = "workload: {ycsb: {records: 1000}}\nphases: {measure: {operations: 2000, warmup: 0s}}\n";

#[test]
fn mistakes_in_a_uri_are_found_by_the_plan_where_they_were_written() {
    for (text, message) in [
        ("target: 'sim:?servce=1ms'\n", "x.yaml:1:9: target: sim: unknown option \"servce\""),
        ("target: 'sim:?service=soon'\n", "x.yaml:1:9: target: sim: option service"),
        ("target: 'sqlite:{dir}/x?jurnal=wal'\n", "x.yaml:1:9: target: sqlite: unknown option \"jurnal\""),
        (
            "target: 'redb:{dir}/x?cache=much'\n",
            "x.yaml:1:9: target: redb: option cache=much is not accepted",
        ),
        ("target: 'sqlite:'\n", "x.yaml:1:9: target: sqlite: no path given"),
        ("target: 'mongodb://h/?colour=red'\n", "x.yaml:1:9: target: unknown option \"colour\""),
        ("target: 'mongo://u:pl4nted@h'\n", "x.yaml:1:9: target: unknown target \"mongo://u:***@h\""),
        (
            "factors: {target: ['null:', 'fjall:{dir}/x?durabilty=none']}\n",
            "x.yaml:1:29: target: fjall: unknown option \"durabilty\"",
        ),
        (
            "target: 'null:'\nmonitors: {prometheus: {node: 'nonsense'}}\n",
            "x.yaml:2:31: monitors.prometheus.node: ",
        ),
        ("target: 'null:'\nssh: {watched: [db]}\n", "ssh.watched: expected a target whose servers run there"),
        (
            "server: {kind: redis}\nssh: {watched: [db]}\n",
            "ssh.watched: servers that dyno starts are watched where they run",
        ),
        (
            "target: 'redis://h'\nmonitors: {enabled: false}\nssh: {watched: [db]}\n",
            "ssh.watched: nothing is watched there: expected monitors.enabled: true",
        ),
        ("target: 'null:'\nrequire: ['p99(reed) < 5ms']\n", "x.yaml:2:10: require: "),
        (
            "target: 'null:'\nworkload: {ycsb: {workload: q}}\n",
            "x.yaml:2:29: workload.ycsb.workload: \"q\" is no file",
        ),
    ] {
        let fixture = Fixture::of(text);
        for command in ["plan", "run"] {
            let output = fixture.dyno(&[command, "x.yaml"]);
            assert_eq!(output.status.code(), Some(2), "{text}: {}", err(&output));
            assert!(err(&output).contains(message), "{message:?} is not in {}", err(&output));
            assert!(!err(&output).contains("pl4nted"));
        }
    }
    // Options that are right pass, wherever the folder is.
    let fixture = Fixture::of("target: 'sqlite:/no/such/folder/x?journal=delete'\n");
    let plan = fixture.dyno(&["plan", "x.yaml"]);
    assert_eq!(plan.status.code(), Some(0), "{}", err(&plan));
}

#[test]
fn a_port_in_use_is_said_and_nothing_is_started() {
    if !has_redis("a port in use") {
        return;
    }
    let port = dyno_testkit::free_port();
    let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let fixture = Fixture::of(&format!("server: {{kind: redis, port: {port}}}\n{SHORT}"));
    let run = fixture.dyno(&["run", "x.yaml", "--out", "o"]);
    assert_eq!(run.status.code(), Some(2), "{}", err(&run));
    assert!(err(&run).contains(&format!("server.port: {port} is in use")), "{}", err(&run));
    fixture.assert_clear();
    drop(taken);
    let again = fixture.dyno(&["run", "x.yaml", "--out", "p"]);
    dyno_testkit::assert_ran_in(fixture.0.path(), &again, &[]);
}

#[test]
fn a_server_that_dies_in_cell_7_of_20_costs_that_cell() {
    if !has_redis("a server that dies in cell 7 of 20") {
        return;
    }
    let fixture = Fixture::of(&format!(
        "server: {{kind: redis}}\n{SHORT}factors: {{seed: {{from: 1, to: 20, step: 1}}}}\norder: file\noverrides:\n  \
         - {{when: {{seed: 7}}, set: {{hooks.after_load: [[/bin/sh, kill.sh]]}}}}\n"
    ));
    let script = "for cwd in /proc/[0-9]*/cwd; do\n\
        case \"$(readlink \"$cwd\")\" in HOME/*) kill -9 \"$(basename \"$(dirname \"$cwd\")\")\";; esac\ndone\nexit 0\n";
    // Commands are run in the folder that dyno was started in; what works below the experiment's is a server.
    let home = fixture.path("o").display().to_string();
    std::fs::write(fixture.path("kill.sh"), script.replace("HOME", &home)).unwrap();
    let run = fixture.dyno(&["run", "x.yaml", "--out", "o", "--quiet"]);
    assert_eq!(run.status.code(), Some(5), "{}", err(&run));
    let ended = fixture.ended("o");
    assert_eq!(ended.len(), 20);
    for run in &ended {
        let status = if run["cell"] == 7 { "failed" } else { "complete" };
        assert_eq!(run["status"], status, "{run}");
    }
    assert!(ended[6]["words"].as_str().unwrap().contains("has ended (signal: 9"), "{}", ended[6]);
    assert!(err(&run).contains("1 of 20 runs failed"), "{}", err(&run));
    fixture.assert_clear();
    // It is known, and not made again.
    let resumed = fixture.dyno(&["resume", "o", "--quiet"]);
    assert_eq!((resumed.status.code(), fixture.ended("o").len()), (Some(5), 20), "{}", err(&resumed));
}

#[test]
fn a_full_disk_ends_an_experiment_and_leaves_no_server() {
    if !has_redis("an experiment on a full disk") {
        return;
    }
    for kib in ["16k", "64k", "160k"] {
        // Where a run finds room it is waited for by the next one.
        let text = format!("server: {{kind: redis}}\n{SHORT}repetitions: 20\noutage: 2s\n");
        let fixture = Fixture::of(&text);
        std::fs::create_dir(fixture.path("disk")).unwrap();
        let mount = ["-t", "tmpfs", "-o", &format!("size={kib}"), "tmpfs", "disk"];
        if !fixture.command("mount", &mount).status.success() {
            return dyno_testkit::skip_because(
                "an experiment on a full disk",
                "a tmpfs cannot be mounted here",
            );
        }
        let run = fixture.dyno(&["run", "x.yaml", "--out", "disk/o", "--quiet"]);
        let left: Vec<_> = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter(|entry| {
                let cwd = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
                cwd.starts_with(fixture.path("disk"))
            })
            .collect();
        let unmounted = fixture.command("umount", &["disk"]);
        assert!(unmounted.status.success(), "{}", err(&unmounted));
        assert!(left.is_empty(), "{kib}: {left:?}");
        assert!(matches!(run.status.code(), Some(1 | 3 | 5)), "{kib}: {:?} {}", run.status, err(&run));
        assert!(err(&run).contains("No space left"), "{kib}: {}", err(&run));
    }
}

/// Fills a disk to its last byte.
fn fill_disk(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    for size in [1 << 16, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}

/// After the first run the disk is full, which is waited for; freed, the night goes on: each run is there once, and whole.
#[test]
fn a_disk_that_is_full_and_freed_again_loses_no_run() {
    let fixture = Fixture::of(&format!("target: 'null:'\n{SHORT}repetitions: 4\n"));
    std::fs::create_dir(fixture.path("disk")).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=16m", "tmpfs", "disk"];
    if !fixture.command("mount", &mount).status.success() {
        return dyno_testkit::skip_because(
            "a disk that is full and freed again",
            "a tmpfs cannot be mounted here",
        );
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(["run", "x.yaml", "--out", "disk/o", "--quiet"]).current_dir(fixture.0.path());
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let journal = fixture.path("disk/o/journal.jsonl");
    let begun = Instant::now();
    while !std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("\"ended\"")) {
        assert!(begun.elapsed() < Duration::from_secs(60), "no run has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    let filler = fixture.path("disk/filler");
    fill_disk(&filler);
    let mut said = String::new();
    let mut freed = false;
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        said += &(line.unwrap() + "\n");
        if !freed && said.contains("no room on the disk for results; waits for 600 s (outage)") {
            std::fs::remove_file(&filler).unwrap();
            freed = true;
        }
    }
    let status = child.wait().unwrap();
    let ended = fixture.ended("disk/o");
    let whole = ended.iter().filter(|run| {
        let folder = fixture.path("disk/o").join(run["dir"].as_str().unwrap());
        run["status"] == "complete" && folder.join("summary.json").is_file()
    });
    let (whole, resumed) = (whole.count(), fixture.dyno(&["resume", "disk/o", "--quiet"]));
    let unmounted = fixture.command("umount", &["disk"]);
    assert!(unmounted.status.success(), "{}", err(&unmounted));
    assert!(freed && said.contains("there is room again"), "{said}");
    assert!(matches!(status.code(), Some(0 | 5)), "{status}: {said}");
    assert_eq!((ended.len(), whole), (4, 4), "{ended:#?}");
    assert_eq!(resumed.status.code(), status.code(), "nothing is left to do: {}", err(&resumed));
}

#[test]
fn without_control_groups_the_file_decides() {
    if !has_redis("no control groups") {
        return;
    }
    let text = |word: &str| {
        format!("server: {{kind: redis, limits: {{memory: 64MiB}}, if_not_permitted: {word}}}\n{SHORT}")
    };
    // A host whose control groups are out of sight.
    let hidden = "mount -t tmpfs none /sys/fs/cgroup && exec \"$0\" run x.yaml --out o --quiet";
    let run = |fixture: &Fixture| {
        fixture.command("unshare", &["--mount", "/bin/sh", "-c", hidden, env!("CARGO_BIN_EXE_dyno")])
    };
    let fixture = Fixture::of(&text("fail"));
    let refused = run(&fixture);
    if !fixture.path("o").exists() {
        return dyno_testkit::skip_because(
            "no control groups",
            &format!("unshare or mount: {}", err(&refused)),
        );
    }
    assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
    assert!(err(&refused).contains("limits.memory") || err(&refused).contains("cgroup"), "{}", err(&refused));
    fixture.assert_clear();
    let fixture = Fixture::of(&text("continue"));
    let done = run(&fixture);
    dyno_testkit::assert_ran_in(fixture.0.path(), &done, &[]);
    let dir = fixture.ended("o")[0]["dir"].as_str().unwrap().to_owned();
    let facts = std::fs::read_to_string(fixture.path("o").join(dir).join("run.json")).unwrap();
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let lost = facts["facts"]["server.note.1"].as_str().unwrap_or_default();
    assert!(lost.contains("memory"), "{}", facts["facts"]);
    fixture.assert_clear();
}

#[test]
fn a_directory_that_is_there_is_left_as_it_is() {
    let fixture = Fixture::of(&format!("target: 'null:'\n{SHORT}"));
    std::fs::create_dir(fixture.path("o")).unwrap();
    std::fs::write(fixture.path("o/mine"), "mine").unwrap();
    let run = fixture.dyno(&["run", "x.yaml", "--out", "o"]);
    assert_eq!(run.status.code(), Some(2), "{}", err(&run));
    assert!(err(&run).contains("o: not empty"), "{}", err(&run));
    assert_eq!(std::fs::read_dir(fixture.path("o")).unwrap().count(), 1);
    // A place where nothing can be written.
    let run = fixture.dyno(&["run", "x.yaml", "--out", "/proc/dyno"]);
    assert!(matches!(run.status.code(), Some(1 | 2)) && err(&run).contains("/proc/dyno"), "{}", err(&run));
}

/// Runs dyno under a limit of its shell.
fn limited(fixture: &Fixture, limit: &str, message: &str) -> (i32, String) {
    let line = format!("{limit} && exec {} {message}", env!("CARGO_BIN_EXE_dyno"));
    let output = fixture.command("/bin/sh", &["-c", &line]);
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), err(&output));
    (output.status.code().unwrap_or(-1), said)
}

#[test]
fn a_limit_of_open_files_is_the_clients() {
    let Some(server) = dyno_testkit::RedisProcess::start(&[]) else {
        return dyno_testkit::skip("a limit of open files");
    };
    let fixture = Fixture::of("");
    let words = |users: u32, out: &str| {
        format!(
            "run {} --connections {users} --records 100 --rate 500 --duration 1s --warmup 0s --quiet --out {out}",
            server.uri()
        )
    };
    // The soft limit is dyno's to raise.
    let (code, said) = limited(&fixture, "ulimit -Sn 40", &words(100, "soft"));
    assert_eq!(code, 0, "{said}");
    // A privileged user may have more than the hard limit: then there is nothing to refuse.
    let privileged = fixture.command("/bin/sh", &["-c", "ulimit -n 40 && ulimit -n 200"]).status.success();
    let (code, said) = limited(&fixture, "ulimit -n 40", &words(100, "hard"));
    if !privileged {
        assert_eq!(code, 2, "{said}");
        let told = "100 connections: this process may open 40 files (`ulimit -Hn`)";
        assert!(said.contains(told) && said.contains("`ulimit -n 164`"), "{said}");
        for (files, out) in [(6, "six"), (8, "eight"), (10, "ten"), (12, "twelve")] {
            let (code, said) = limited(&fixture, &format!("ulimit -n {files}"), &words(4, out));
            assert!(code != 3 && !said.contains("unreachable"), "{files}: {code}: {said}");
        }
    }
}

#[test]
fn a_limit_of_file_sizes_is_the_clients() {
    let fixture = Fixture::of("");
    // Blocks of 512 bytes or of 1,024, as the shell has it.
    for (blocks, codes) in [(1, &[2][..]), (12, &[0, 1, 2])] {
        let message = format!("run null: --rate 5000 --duration 2s --warmup 0s --quiet --out at-{blocks}");
        let (code, said) = limited(&fixture, &format!("ulimit -f {blocks}"), &message);
        assert!(codes.contains(&code), "{blocks}: {code}: {said}");
        assert!(said.contains("dyno itself may write no file longer than"), "{blocks}: {code}: {said}");
        assert!(said.contains("(`ulimit -f`)"), "{said}");
    }
}
