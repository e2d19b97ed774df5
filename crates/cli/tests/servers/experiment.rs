//! Experiments, end to end on the built command: matrices, journal, resume after Ctrl-C and SIGKILL, servers that die, worker
//! processes, thresholds, presets.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const DYNO: &str = env!("CARGO_BIN_EXE_dyno");

/// A folder with an experiment file.
struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn of(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.yaml"), text).unwrap();
        Fixture { folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(DYNO);
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn dyno(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn run(&self, more: &[&str]) -> Output {
        self.dyno(&[&["run", "x.yaml", "--out", "o"], more].concat())
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn journal(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("o/journal.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn ended(&self) -> Vec<Value> {
        self.journal().into_iter().filter(|line| line["event"] == "ended").collect()
    }
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        .unwrap()
}

/// Waits until `holds`, for at most a minute.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what} did not happen within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, name: &str) {
    let status =
        Command::new("/bin/sh").args(["-c", &format!("kill -{name} {}", child.id())]).status().unwrap();
    assert!(status.success());
}

/// Processes whose command line or working folder holds `words` (redis-server writes over its command line).
fn processes(message: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let numbered = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    let is = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        *pid != own && (line.contains(message) || folder.display().to_string().contains(message))
    };
    numbered.filter(is).collect()
}

const SIM: &str = "\
target: \"null:\"
workload: {ycsb: {records: 1000}}
phases: {measure: {operations: 20000}}
";

#[test]
fn a_matrix_runs_every_cell_in_every_repetition() {
    let fixture = Fixture::of(&format!("{SIM}factors: {{users: [1, 4], ycsb: [a, c]}}\nrepetitions: 2\n"));
    let done = fixture.run(&["--json"]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let rows: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 4);
    for row in rows.as_array().unwrap() {
        assert_eq!(row["runs"], 2, "{row}");
        assert_eq!(row["throughputs"].as_array().unwrap().len(), 2);
    }
    let ended = fixture.ended();
    assert_eq!(ended.len(), 8);
    for run in &ended {
        let summary = json(&fixture.path("o").join(run["dir"].as_str().unwrap()).join("summary.json"));
        let measured = &summary["phases"][0];
        assert_eq!(measured["name"], "measure");
        assert_eq!(measured["outcomes"]["ok"], 20_000, "{measured}");
    }
    let csv = std::fs::read_to_string(fixture.path("o/results.csv")).unwrap();
    assert_eq!(csv.lines().count(), 9);
    let listed = fixture.dyno(&["list", "."]);
    assert!(out(&listed).contains("complete, 8 of 8 runs ended"), "{}", out(&listed));
    let again = fixture.run(&[]);
    assert_eq!(again.status.code(), Some(2));
    assert!(err(&again).contains("dyno resume"), "{}", err(&again));
}

#[test]
fn workers_together_do_exactly_what_is_asked() {
    let fixture = Fixture::of(
        &format!("{SIM}client: {{workers: 3, pin: false}}\nphases: {{measure: {{operations: 30001}}}}\n")
            .replacen("phases: {measure: {operations: 20000}}\n", "", 1),
    );
    let done = fixture.run(&[]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let run = &fixture.ended()[0];
    let summary = json(&fixture.path("o").join(run["dir"].as_str().unwrap()).join("summary.json"));
    assert_eq!(summary["phases"][0]["arrivals"], 30_001);
    assert_eq!(summary["phases"][0]["outcomes"]["ok"], 30_001);
}

#[test]
fn a_plan_touches_nothing() {
    let fixture = Fixture::of(
        "target: redis://127.0.0.1:1\nfactors: {users: {from: 1, to: 64, times: 2}}\nrepetitions: 3\n",
    );
    let plan = fixture.dyno(&["plan", "x.yaml"]);
    assert_eq!(plan.status.code(), Some(0), "{}", err(&plan));
    let text = out(&plan);
    assert!(text.contains("7 cells, 3 repetitions, 21 runs"), "{text}");
    assert!(text.contains("users=64") && text.contains("duration: about"), "{text}");
    let json: Value = serde_json::from_slice(&fixture.dyno(&["plan", "x.yaml", "--json"]).stdout).unwrap();
    assert_eq!(json["runs"].as_array().unwrap().len(), 21);
    let entries = std::fs::read_dir(fixture.folder.path()).unwrap().count();
    assert_eq!(entries, 1, "only the file is there");
}

#[test]
fn mistakes_are_told_before_anything_is_started() {
    let cases = [
        (
            "factors: {usres: [1]}\n",
            "x.yaml:1:18: factors.usres: \"usres\" is no key of an experiment; did you mean users?",
        ),
        ("phases: {measure: {users: many}}\n", "x.yaml:1:27: phases.measure.users: \"many\""),
        ("workload: {ycsb: {workload: q}}\n", "is no file and no built-in workload"),
        ("require: ['p99(reed) < 5ms']\n", "p99(reed)"),
        ("workload: {pocdriver: '--nonsense 3'}\n", "workload.pocdriver: unexpected argument '--nonsense'"),
        ("workload: {sysbench: {NUM_COLECTIONS: 3}}\n", "did you mean NUM_COLLECTIONS?"),
        ("workload: {documents: none.yaml}\n", "none.yaml"),
        ("server: {kind: redis, limits: {memory: 1MiB}}\n", "server.limits.memory"),
        ("server: {kind: rediss}\n", "did you mean redis?"),
        ("factors: {users: []}\n", "an empty list"),
        ("phases: {measure: {rate: fast}}\n", "phases.measure.rate"),
    ];
    for (text, expected) in cases {
        let fixture = Fixture::of(text);
        let done = fixture.run(&[]);
        assert_eq!(done.status.code(), Some(2), "{text}: {}", err(&done));
        assert!(err(&done).contains(expected), "{text}: {}", err(&done));
        assert!(!fixture.path("o").exists(), "{text}");
    }
    let fixture = Fixture::of(SIM);
    let done = fixture.run(&["--users", "3"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(err(&done).contains("--set users=..."), "{}", err(&done));
    let done = fixture.dyno(&["run", "lab/operational-law"]);
    assert!(err(&done).contains("lab/operational-laws"), "{}", err(&done));
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_resume_makes_the_rest() {
    let Some(_) = dyno_testkit::RedisProcess::start(&[]) else {
        return dyno_testkit::skip("an experiment on redis");
    };
    let text =
        "workload: {ycsb: {records: 1000}}\nphases: {measure: {duration: 1s, warmup: 0s}}\nrepetitions: 4\n";
    let fixture = Fixture::of(text);
    let child =
        fixture.command(&["run", "x.yaml", "--out", "o", "--quiet"]).stderr(Stdio::null()).spawn().unwrap();
    let journal = fixture.path("o/journal.jsonl");
    let count = |what: &str| std::fs::read_to_string(&journal).unwrap_or_default().matches(what).count();
    wait_until("the second run", || count("\"event\":\"run\"") >= 2);
    signal(&child, "INT");
    let done = dyno_testkit::finish(child);
    assert_eq!(done.status.code(), Some(130));
    let before = fixture.journal();
    let complete = |journal: &[Value]| {
        journal.iter().filter(|l| l["status"] == "complete" && l["event"] == "ended").count()
    };
    let made = complete(&before);
    assert!((1..4).contains(&made), "{before:?}");
    let status = fixture.dyno(&["status", "o"]);
    assert!(out(&status).contains(&format!("interrupted, {made} of 4 runs ended")), "{}", out(&status));
    let resumed = fixture.dyno(&["resume", "o"]);
    assert!([Some(0), Some(5)].contains(&resumed.status.code()), "{}", err(&resumed));
    let after = fixture.journal();
    assert_eq!(complete(&after), 4, "{after:?}");
    // None was made twice.
    let mut repetitions: Vec<u64> = after
        .iter()
        .filter(|l| l["event"] == "ended" && l["status"] == "complete")
        .map(|l| l["repetition"].as_u64().unwrap())
        .collect();
    repetitions.sort_unstable();
    assert_eq!(repetitions, [1, 2, 3, 4]);
}

#[test]
fn a_killed_dyno_leaves_no_process_and_can_be_resumed() {
    let Some(_) = dyno_testkit::RedisProcess::start(&[]) else {
        return dyno_testkit::skip("an experiment on redis");
    };
    let text = "\
server: {kind: redis}
workload: {ycsb: {records: 1000}}
phases: {measure: {duration: 2s, warmup: 0s}}
repetitions: 2
";
    let fixture = Fixture::of(text);
    let mut child =
        fixture.command(&["run", "x.yaml", "--out", "o", "--quiet"]).stderr(Stdio::null()).spawn().unwrap();
    // Its configuration is named on its command line.
    let home = fixture.path("o").display().to_string();
    wait_until("the server", || !processes(&home).is_empty());
    wait_until("the load", || {
        std::fs::read_dir(fixture.path("o/runs"))
            .is_ok_and(|all| all.flatten().any(|entry| entry.path().join("run.json").is_file()))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the end of server and worker", || processes(&home).is_empty());
    let stopped = fixture.dyno(&["stop", "o"]);
    assert_eq!(stopped.status.code(), Some(0), "{}", err(&stopped));
    let status = fixture.dyno(&["status", "o"]);
    assert!(out(&status).contains("cut off, 0 of 2 runs ended"), "{}", out(&status));
    let resumed = fixture.dyno(&["resume", "o", "--quiet"]);
    assert!([Some(0), Some(5)].contains(&resumed.status.code()), "{}", err(&resumed));
    assert_eq!(fixture.ended().len(), 2);
    assert!(processes(&home).is_empty());
}

#[test]
fn two_dynos_do_not_work_on_one_directory() {
    let fixture = Fixture::of(&SIM.replace("operations: 20000", "duration: 20s"));
    let mut child =
        fixture.command(&["run", "x.yaml", "--out", "o", "--quiet"]).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the journal", || fixture.path("o/journal.jsonl").is_file());
    let other = fixture.dyno(&["resume", "o"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(err(&other).contains(&format!("process {} is at work on it", child.id())), "{}", err(&other));
    let stopped = fixture.dyno(&["stop", "o"]);
    assert_eq!(stopped.status.code(), Some(0), "{}", err(&stopped));
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_server_that_dies_fails_its_run_and_the_rest_goes_on() {
    let Some(_) = dyno_testkit::RedisProcess::start(&[]) else {
        return dyno_testkit::skip("an experiment on redis");
    };
    // The command after the load of the first run ends the server.
    let text = "\
server: {kind: redis}
workload: {ycsb: {records: 1000}}
phases: {measure: {duration: 1s, warmup: 0s, timeout: 200ms, drain: 200ms}}
factors: {test: [{hooks.before_measure: [[/bin/sh, kill.sh]], label: killed}, {hooks.before_measure: [], label: left}]}
order: file
";
    let fixture = Fixture::of(text);
    let script = "for cwd in /proc/[0-9]*/cwd; do\n\
        case \"$(readlink \"$cwd\")\" in HOME/*) kill -9 \"$(basename \"$(dirname \"$cwd\")\")\";; esac\ndone\nexit 0\n";
    let home = fixture.path("o").display().to_string();
    std::fs::write(fixture.path("kill.sh"), script.replace("HOME", &home)).unwrap();
    let done = fixture.run(&[]);
    assert_eq!(done.status.code(), Some(5), "{}", err(&done));
    let ended = fixture.ended();
    assert_eq!(
        (&ended[0]["status"], &ended[1]["status"]),
        (&"failed".into(), &"complete".into()),
        "{ended:?}"
    );
    let message = ended[0]["words"].as_str().unwrap();
    assert!(message.contains("redis") && message.contains("ended"), "{message}");
}

#[test]
fn a_worker_that_is_lost_makes_the_run_invalid_and_keeps_what_arrived() {
    let fixture =
        Fixture::of(&SIM.replace("operations: 20000", "duration: 4s, warmup: 0s, rate: 2000").replacen(
            "phases",
            "client: {workers: 2, pin: false}\nphases",
            1,
        ));
    let child =
        fixture.command(&["run", "x.yaml", "--out", "o", "--quiet"]).stderr(Stdio::null()).spawn().unwrap();
    let series = || {
        let runs = std::fs::read_dir(fixture.path("o/runs")).ok()?;
        let dir = runs.flatten().map(|entry| entry.path()).find(|path| path.join("series.csv").is_file())?;
        std::fs::read_to_string(dir.join("series.csv")).ok()
    };
    wait_until("the second second", || series().is_some_and(|text| text.lines().count() > 6));
    let parent = child.id();
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok()) == Some(parent)
    };
    let workers: Vec<u32> = processes("worker --stdio").into_iter().filter(is_child).collect();
    assert_eq!(workers.len(), 2);
    assert!(
        Command::new("/bin/sh").args(["-c", &format!("kill -9 {}", workers[0])]).status().unwrap().success()
    );
    let done = dyno_testkit::finish(child);
    assert_eq!(done.status.code(), Some(5));
    let run = &fixture.ended()[0];
    assert_eq!((&run["status"], &run["trust"]), (&"complete".into(), &"invalid".into()), "{run}");
    assert!(run["words"].as_str().unwrap().contains("was lost"), "{run}");
    let summary = json(&fixture.path("o").join(run["dir"].as_str().unwrap()).join("summary.json"));
    assert!(summary["phases"][0]["arrivals"].as_u64().unwrap() > 1_000, "{summary}");
}

#[test]
fn searches_go_where_the_answers_lead() {
    // A simulated server of one millisecond: 1,000 operations per second at most.
    let text = "\
target: \"sim:?service=1ms\"
workload: {ycsb: {workload: c, records: 1000}}
phases: {load: {when: never}, measure: {duration: 20s, warmup: 2s, rate: 100}}
strategy: {highest_rate: {objectives: [\"p99(read) < 20ms\"], from: 100, to: 5000, precision: 0.1}}
";
    let fixture = Fixture::of(text);
    let done = fixture.run(&[]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let runs = fixture.ended();
    let kept: Vec<f64> = runs
        .iter()
        .filter(|run| {
            run["passed"] == true && run["throughput"].as_f64() >= run["offered"].as_f64().map(|n| n * 0.99)
        })
        .map(|run| run["value"].as_f64().unwrap())
        .collect();
    let best = kept.iter().copied().fold(0.0, f64::max);
    // M/D/1: p99 of 20 ms lies near nine tenths of the capacity.
    assert!((600.0..1_000.0).contains(&best), "{runs:?}");
    assert!(runs.len() > 4, "{runs:?}");

    let ladder = "\
target: \"sim:?service=1ms&capacity=4\"
workload: {ycsb: {workload: c, records: 1000}}
phases: {load: {when: never}, measure: {duration: 5s, warmup: 0s}}
strategy: {ladder: {to: 64}}
";
    let fixture = Fixture::of(ladder);
    let done = fixture.run(&[]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let users: Vec<u64> = fixture.ended().iter().map(|run| run["value"].as_f64().unwrap() as u64).collect();
    assert_eq!(users, [1, 2, 4, 8, 16], "throughput ends to grow at four users");
}

#[test]
fn a_threshold_that_is_missed_is_exit_code_4() {
    let fixture = Fixture::of(&format!("{SIM}require: ['throughput > 1000000000']\n"));
    let done = fixture.run(&[]);
    assert_eq!(done.status.code(), Some(4), "{}", err(&done));
    assert!(out(&done).contains("1 missed a threshold"), "{}", out(&done));
}

#[test]
fn presets_can_be_listed_printed_planned_and_run() {
    let fixture = Fixture::of("");
    let list = out(&fixture.dyno(&["presets"]));
    for name in ["lab/operational-laws", "percona/engines-embedded", "bexhoma/dragonfly-1", "ingest/small"] {
        assert!(list.contains(name), "{list}");
    }
    let printed = fixture.dyno(&["presets", "percona/engines-embedded", "--scale", "512"]);
    assert!(out(&printed).contains("{cache}") && out(&printed).contains("label: 8/16"), "{}", out(&printed));
    std::fs::write(fixture.path("mine.yaml"), &printed.stdout).unwrap();
    let planned = fixture.dyno(&["plan", "mine.yaml"]);
    assert!(out(&planned).contains("engine=redb memory=8/16"), "{}", out(&planned));
    assert!(err(&fixture.dyno(&["presets", "lab"])).contains("Presets: "));
    // The ingest proof with a claim that nothing keeps: complete data, and exit code 4; 5 where a busy host held the users up,
    // as nothing but the client takes time here.
    let claim =
        ["--set", "target=null:", "--set", "duration=1s", "--set", "require=[throughput > 1000000000]"];
    let done = fixture.dyno(&[&["run", "ingest/small", "--out", "p"][..], &claim].concat());
    assert!(matches!(done.status.code(), Some(4 | 5)), "{}", err(&done));
}

#[test]
fn perconas_matrix_runs_on_embedded_engines_from_one_load() {
    let fixture = Fixture::of("");
    let small = [
        "workload.sysbench.NUM_COLLECTIONS=1",
        "workload.sysbench.NUM_DOCUMENTS_PER_COLLECTION=2000",
        "workload.sysbench.NUM_WRITER_THREADS=2",
        "client.if_not_permitted=continue",
        "duration=1s",
        "window={}",
        "factors.engine=[{label: redb, target: 'redb:{dir}/x?cache={cache}'}]",
    ];
    let mut arguments = vec!["run", "percona/engines-embedded", "--scale", "512", "--out", "o"];
    small.iter().for_each(|set| arguments.extend(["--set", set]));
    let done = fixture.dyno(&arguments);
    assert!([Some(0), Some(5)].contains(&done.status.code()), "{}", err(&done));
    let ended = fixture.ended();
    assert_eq!(ended.len(), 3, "{ended:?}");
    assert!(ended.iter().all(|run| run["status"] == "complete"), "{ended:?}");
    assert_eq!(err(&done).matches("load: ").count(), 2, "loaded once, from a copy then: {}", err(&done));
    // The limit is the kernel's, where control groups are to be had.
    let facts =
        json(&fixture.path("o").join(ended[0]["dir"].as_str().unwrap()).join("run.json"))["facts"].clone();
    let limit = facts.get("worker-0.memory.limit_in_bytes").or(facts.get("worker-0.memory.max"));
    match limit {
        Some(limit) => {
            let bytes: u64 = limit.as_str().unwrap().parse().unwrap();
            assert!([96 << 20, 128 << 20, 160 << 20].contains(&bytes), "{bytes}");
        }
        None => {
            dyno_testkit::skip_because("memory limits of workers", "control groups are not permitted here")
        }
    }
    assert!(!fixture.path("o/data-001").exists(), "copies go at the end");
}

/// Files below a folder that hold `words`.
fn holding(folder: &Path, message: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, message));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(message) {
            found.push(path);
        }
    }
    found
}

#[test]
fn secrets_are_not_kept_and_resume_asks_for_them() {
    let Some(server) = dyno_testkit::RedisProcess::start(&["--requirepass", "pl4nted"]) else {
        return dyno_testkit::skip("secrets of an experiment");
    };
    let target = format!("target=redis://:pl4nted@127.0.0.1:{}", server.port);
    let text = "workload: {ycsb: {records: 100}}\nphases: {measure: {operations: 1000, warmup: 0s}}\n";
    let fixture = Fixture::of(&format!(
        "{text}factors: {{{}}}\n",
        target.replacen("target=", "target: [\"", 1) + "\"]"
    ));
    let done = fixture.run(&[]);
    assert!([Some(0), Some(5)].contains(&done.status.code()), "{}", err(&done));
    assert_eq!(holding(&fixture.path("o"), "pl4nted"), Vec::<PathBuf>::new());
    assert!(!err(&done).contains("pl4nted") && !out(&done).contains("pl4nted"), "{}", err(&done));
    // The file that was given is there still.
    assert!([Some(0), Some(5)].contains(&fixture.dyno(&["resume", "o"]).status.code()));

    let fixture = Fixture::of(text);
    let done = fixture.run(&["--set", &target]);
    assert!([Some(0), Some(5)].contains(&done.status.code()), "{}", err(&done));
    assert_eq!(holding(&fixture.path("o"), "pl4nted"), Vec::<PathBuf>::new());
    let asked = fixture.dyno(&["resume", "o"]);
    assert_eq!(asked.status.code(), Some(2));
    assert!(err(&asked).contains("give it again"), "{}", err(&asked));
    let again = fixture.dyno(&["resume", "o", "--set", &target]);
    assert!([Some(0), Some(5)].contains(&again.status.code()), "{}", err(&again));
}

#[test]
fn no_target_is_exit_code_3_in_searches_too() {
    let text = "target: redis://127.0.0.1:1\nworkload: {ycsb: {records: 100}}\n";
    for strategy in ["", "strategy: {ladder: {to: 4}}\n"] {
        let fixture = Fixture::of(&format!("{text}{strategy}"));
        let done = fixture.run(&[]);
        assert_eq!(done.status.code(), Some(3), "{strategy}: {}", err(&done));
        assert!(err(&done).contains("connection refused"), "{}", err(&done));
    }
}
