//! Faults of an experiment on the built command and a real redis-server: done in time, judged, undone.

use dyno_databases::spawn::find_server;
use dyno_testkit::signal;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const RUN: &str = "o/runs/cell0001-rep01";

fn dyno(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Runs a small load on a Redis with these faults; `more` are further keys of the file.
fn run(folder: &Path, more: &str, faults: &str) -> Output {
    let text = format!(
        "server: {{kind: redis, journal: true, stop_within: 5s}}\nworkload: {{ycsb: {{workload: a, records: 1000}}}}\n\
         phases: {{measure: {{duration: 10s, warmup: 1s, rate: '2000', interval: 100ms, timeout: 5s}}}}\n{more}\
         faults:\n{faults}"
    );
    std::fs::write(folder.join("x.yaml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(["run", "x.yaml", "--out", "o", "--quiet"]).current_dir(folder).output().unwrap()
}

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn summary(folder: &Path) -> Value {
    json(&folder.join(RUN).join("summary.json"))
}

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_default()
}

fn count(events: &str, kind: &str) -> usize {
    events.matches(&format!("\"event\":\"{kind}\"")).count()
}

fn figure(fault: &Value, key: &str) -> f64 {
    fault[key].as_f64().unwrap_or_else(|| panic!("no {key} in {fault:#}"))
}

fn reason<'a>(summary: &'a Value, check: &str) -> Option<&'a Value> {
    summary["verdict"]["reasons"].as_array().unwrap().iter().find(|reason| reason["check"] == check)
}

#[test]
fn a_pause_is_seen_and_recovered_from() {
    if find_server(Some("redis")).is_none() {
        return dyno_testkit::skip("faults of experiments");
    }
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let done = run(here, "", "- {kind: pause, at: 4s, for: 1s}\n");
    dyno_testkit::assert_ran_in(here, &done, &[]);
    let summary = summary(here);
    let fault = &summary["faults"][0];
    assert_eq!(
        (fault["fault"].as_str(), fault["means"].as_str()),
        (Some("pause on server"), Some("SIGSTOP"))
    );
    let (begin, end) = (figure(fault, "begin_s"), figure(fault, "end_s"));
    // Not before its time; how much later is the host's affair.
    assert!((3.9..9.0).contains(&begin) && (0.9..6.0).contains(&(end - begin)), "{fault:#}");
    assert!(figure(fault, "detect_s") < end - begin + 1.0 && figure(fault, "depth") > 0.7, "{fault:#}");
    assert!(figure(fault, "lost") > 1000.0, "{fault:#}");
    let recovered = figure(fault, "recover_s");
    assert!((0.7..9.0).contains(&recovered), "{fault:#}");
    let told = reason(&summary, "faults").expect("the verdict names it");
    assert_eq!(told["trust"], "valid");
    assert!(reason(&summary, "stalls").is_none() && reason(&summary, "errors").is_none(), "{summary:#}");
    let events = text(here, &format!("{RUN}/events.jsonl"));
    assert_eq!((count(&events, "fault_begin"), count(&events, "fault_end")), (1, 1), "{events}");
    assert!(text(here, &format!("{RUN}/report.html")).contains("Faults that the experiment asked for"));
    assert!(text(here, &format!("{RUN}/summary.md")).contains("### Faults"));
}

/// Shorter than a second and caught up: the depth agrees with the operations that were missing.
#[test]
fn a_short_pause_that_is_caught_up_has_its_depth() {
    if find_server(Some("redis")).is_none() {
        return dyno_testkit::skip("faults of experiments");
    }
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let done = run(here, "", "- {kind: pause, at: 4s, for: 700ms}\n");
    dyno_testkit::assert_ran_in(here, &done, &[]);
    let summary = summary(here);
    let fault = &summary["faults"][0];
    assert!(figure(fault, "lost") > 700.0 && figure(fault, "depth") > 0.7, "{fault:#}");
}

#[test]
fn a_restarted_server_answers_again_and_its_errors_are_told_apart() {
    if find_server(Some("redis")).is_none() {
        return dyno_testkit::skip("faults of experiments");
    }
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let done = run(here, "", "- {kind: restart, at: 4s, for: 1s}\n");
    dyno_testkit::assert_ran_in(here, &done, dyno_testkit::OF_A_LOST_SERVER);
    let journal = text(here, "o/journal.jsonl");
    assert!(
        journal.contains("\"status\":\"complete\"") && !journal.contains("\"status\":\"failed\""),
        "{journal}"
    );
    let summary = summary(here);
    let fault = &summary["faults"][0];
    assert!(figure(fault, "failed") > 0.0 && figure(fault, "depth") > 0.9, "{fault:#}");
    assert!((0.8..5.0).contains(&figure(fault, "recover_s")), "{fault:#}");
    assert!(reason(&summary, "errors").is_none(), "{summary:#}");
    let told = reason(&summary, "faults").expect("the verdict names it")["text"].as_str().unwrap().to_owned();
    assert!(told.contains("failed by them, which are told apart"), "{told}");
}

#[test]
fn a_killed_server_stays_away_and_the_run_is_no_failure() {
    if find_server(Some("redis")).is_none() {
        return dyno_testkit::skip("faults of experiments");
    }
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let done = run(here, "", "- {kind: kill, at: 6s}\n");
    let journal = text(here, "o/journal.jsonl");
    assert!(
        journal.contains("\"status\":\"complete\"") && !journal.contains("\"status\":\"failed\""),
        "{done:?} {journal}"
    );
    let summary = summary(here);
    let fault = &summary["faults"][0];
    assert!(fault["recover_s"].is_null() && fault["end_s"].is_null(), "{fault:#}");
    assert!(fault["note"].as_str().unwrap().contains("had not recovered"), "{fault:#}");
    assert!(reason(&summary, "errors").is_none(), "{summary:#}");
}

#[test]
fn a_server_that_does_not_come_back_is_a_failure() {
    let Some((_, program)) = find_server(Some("redis")) else {
        return dyno_testkit::skip("faults of experiments");
    };
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    // The second start finds that there has been one.
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--version*) exec {0} \"$@\";; esac\n\
         [ -e {1}/once ] && exit 3\ntouch {1}/once\nexec {0} \"$@\"\n",
        program.display(),
        here.display()
    );
    let wrapper = here.join("redis-once");
    std::fs::write(&wrapper, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&wrapper, mode).unwrap();
    let text_of = format!(
        "server: {{kind: redis, program: {}, stop_within: 5s}}\nworkload: {{ycsb: {{records: 100}}}}\n\
         phases: {{measure: {{duration: 5s, warmup: 0s, rate: '200'}}}}\nfaults: [{{kind: restart, at: 2s}}]\n",
        wrapper.display()
    );
    std::fs::write(here.join("x.yaml"), text_of).unwrap();
    let done = dyno(here, &["run", "x.yaml", "--out", "o", "--quiet"]).status().unwrap();
    let journal = text(here, "o/journal.jsonl");
    assert!(!done.success() && journal.contains("\"status\":\"failed\""), "{done:?} {journal}");
    assert!(journal.contains("faults: 1 restart on server"), "{journal}");
}

#[test]
fn a_delay_is_felt_and_the_record_says_who_made_it() {
    if find_server(Some("redis")).is_none() {
        return dyno_testkit::skip("faults of experiments");
    }
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let text_of = "server: {kind: redis, stop_within: 5s}\nworkload: {ycsb: {workload: c, records: 1000}}\n\
                   phases: {measure: {duration: 9s, warmup: 1s, users: 4, interval: 100ms}}\n\
                   faults: [{kind: delay, delay: 100ms, at: 4s, for: 1s}]\n";
    std::fs::write(here.join("x.yaml"), text_of).unwrap();
    let done = dyno(here, &["run", "x.yaml", "--out", "o", "--quiet"]).output().unwrap();
    dyno_testkit::assert_ran_in(here, &done, &[]);
    let summary = summary(here);
    let fault = &summary["faults"][0];
    // The kernel's, where it has one.
    let means = fault["means"].as_str().unwrap();
    let proxied = means.contains("dyno's own TCP proxy");
    assert!(proxied || means.starts_with("netem (tc) on lo: packets of port "), "{fault:#}");
    // Four users with 100 ms to wait for each operation.
    let worst = figure(fault, "worst_per_s");
    assert!(worst < 100.0 && figure(fault, "depth") > 0.9, "{fault:#}");
    assert_eq!(figure(fault, "failed"), 0.0);
    let run = json(&here.join(RUN).join("run.json"));
    let proxy = run["facts"]["proxy.1"].as_str();
    assert_eq!(
        proxy.is_some_and(|proxy| proxy.contains("in the way of every operation")),
        proxied,
        "{run:#}"
    );
    let slowest =
        summary["phases"].as_array().unwrap().last().unwrap()["metrics"][0]["service"]["max_us"].as_f64();
    assert!(slowest.unwrap() >= 100_000.0, "{slowest:?}");
}

#[test]
fn a_quota_of_the_control_group_presses() {
    if find_server(Some("redis")).is_none() {
        return dyno_testkit::skip("faults of experiments");
    }
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let text_of = "server: {kind: redis, stop_within: 5s}\nworkload: {ycsb: {workload: c, records: 1000}}\n\
                   phases: {measure: {duration: 12s, warmup: 1s, connections: 8, rate: '4000'}}\n\
                   faults: [{kind: cpu_pressure, cpus: 0.01, at: 5s, for: 2s}]\n";
    std::fs::write(here.join("x.yaml"), text_of).unwrap();
    let done = run_words(here);
    let refused = text(here, "o/journal.jsonl") + &String::from_utf8_lossy(&done.stderr);
    if refused.contains("cgroup") {
        // Without leave for control groups the run says so, before any load.
        assert!(!done.status.success(), "{refused}");
        return dyno_testkit::skip_because("pressure on CPUs", "there is no leave for control groups");
    }
    let fault = &summary(here)["faults"][0];
    assert_eq!(fault["fault"], "cpu_pressure to 0.01 cores on server");
    assert!(figure(fault, "depth") > 0.3, "{fault:#}");
    // The host may be busy with others, too: a rate far below what it can do comes back on any.
    assert!(figure(fault, "recover_s") < 5.0, "{fault:#}");
}

fn run_words(here: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(["run", "x.yaml", "--out", "o", "--quiet"]).current_dir(here).output().unwrap()
}

#[test]
fn what_cannot_be_done_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (faults, message) in [
        ("- {kind: explode, at: 1s}\n", "explode"),
        ("- {kind: disk_full, at: 1s, for: 1s}\n", "expected server.data.image"),
        ("- {kind: loss, at: 1s, for: 1s}\n", "expected percent"),
        ("- {kind: pause, on: server 2, at: 1s, for: 1s}\n", "server 2: there are 1"),
    ] {
        let done = run(here, "", faults);
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(
            !done.status.success() && told.contains(message) && told.contains("x.yaml:5:"),
            "{faults}: {told}"
        );
    }
    assert!(!here.join("o").exists(), "nothing has begun");
}

/// The state of each process of a command: `S`, `R`, `T` (stopped), ...
fn states(here: &Path) -> Vec<char> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let own = here.display().to_string();
    let of = |path: std::path::PathBuf| {
        let cwd = std::fs::read_link(path.join("cwd")).ok()?;
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        let stat = std::fs::read_to_string(path.join("stat")).ok()?;
        let state = stat[stat.rfind(')')? + 2..].chars().next()?;
        (cwd.display().to_string().starts_with(&own) && name.starts_with("redis")).then_some(state)
    };
    entries.filter_map(|entry| of(entry.path())).collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what} did not happen within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A run whose server is stopped for a minute.
fn paused(here: &Path) -> std::process::Child {
    let text_of = "server: {kind: redis, stop_within: 5s}\nworkload: {ycsb: {records: 1000}}\n\
                   phases: {measure: {duration: 90s, warmup: 0s, rate: '200', timeout: 5s}}\n\
                   faults: [{kind: pause, at: 1s, for: 60s}]\n";
    std::fs::write(here.join("x.yaml"), text_of).unwrap();
    let child = dyno(here, &["run", "x.yaml", "--out", "o", "--quiet"]).spawn().unwrap();
    wait_until("the pause", || states(here).contains(&'T'));
    child
}

#[test]
fn ctrl_c_in_the_middle_of_a_pause_leaves_no_stopped_server() {
    if find_server(Some("redis")).is_none() {
        return dyno_testkit::skip("faults of experiments");
    }
    let folder = tempfile::tempdir().unwrap();
    let here = &folder.path().canonicalize().unwrap();
    let mut child = paused(here);
    let begun = Instant::now();
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(states(here), Vec::<char>::new());
    let events = text(here, &format!("{RUN}/events.jsonl"));
    assert_eq!((count(&events, "fault_begin"), count(&events, "fault_end")), (1, 1), "{events}");
}

#[test]
fn stop_undoes_what_a_killed_dyno_had_begun() {
    if find_server(Some("redis")).is_none() {
        return dyno_testkit::skip("faults of experiments");
    }
    let folder = tempfile::tempdir().unwrap();
    let here = &folder.path().canonicalize().unwrap();
    let mut child = paused(here);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(dyno(here, &["stop", "o"]).status().unwrap().success());
    assert_eq!(states(here), Vec::<char>::new());
}

#[test]
fn a_paused_worker_goes_on_after_stop() {
    if find_server(Some("redis")).is_none() {
        return dyno_testkit::skip("faults of experiments");
    }
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let text_of = "target: 'null:'\nworkload: {ycsb: {records: 1000}}\nclient: {workers: 2}\n\
                   phases: {measure: {duration: 90s, warmup: 0s, rate: '200'}}\n\
                   faults: [{kind: pause, on: worker 2, at: 1s, for: 60s}]\n";
    std::fs::write(here.join("x.yaml"), text_of).unwrap();
    let mut child = dyno(here, &["run", "x.yaml", "--out", "o", "--quiet"]).spawn().unwrap();
    let journal = here.join("o/runs/cell0001-rep01.server/faults/undo.jsonl");
    let noted = || {
        let text = std::fs::read_to_string(&journal).unwrap_or_default();
        let line = text.lines().find(|line| line.contains("\"continue\""))?.to_owned();
        serde_json::from_str::<Value>(&line).ok()?["pid"].as_u64()
    };
    wait_until("the pause", || noted().is_some());
    let pid = noted().unwrap();
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat[stat.rfind(')')? + 2..].chars().next()
    };
    wait_until("the stop", || state() == Some('T'));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(dyno(here, &["stop", "o"]).status().unwrap().success());
    // Its pipe is closed: once it goes on it ends by itself.
    wait_until("the worker's end", || matches!(state(), None | Some('Z')));
}
