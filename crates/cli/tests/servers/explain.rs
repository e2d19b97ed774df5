//! `dyno explain` on runs whose truth is known. The long proof of the diagnosis is in `diagnosis.rs`.

use dyno_testkit::{Dyno, RedisProcess, assert_exit, skip, stderr, stdout};
use serde_json::Value;

fn json(dyno: &Dyno, dir: &str) -> Value {
    let output = dyno.run(&["explain", dir, "--json"]);
    assert_exit(&output, &[0]);
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn a_sweep_on_a_simulated_server_obeys_the_laws() {
    let dyno = Dyno::new();
    let text = "target: \"sim:?service=100us&distribution=exponential&capacity=4\"\n\
                workload: {ycsb: {workload: c, records: 100}}\n\
                phases: {load: {when: never}, measure: {operations: 20000, think: 300us}}\n\
                factors: {users: [1, 2, 4, 8, 16, 32, 64]}\nrepetitions: 2\n";
    std::fs::write(dyno.path("sweep.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "sweep.yaml", "--out", "sweep", "--quiet"]), &[0]);
    let found = json(&dyno, "sweep");
    let sweep = &found["sweeps"][0]["sweep"];
    let levels = sweep["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 7, "{found}");
    for level in levels {
        assert!(level["little"].as_f64().unwrap().abs() < 0.005, "{level}");
    }
    // Four servers of 100 us: 40,000 a second; 16 users saturate them with 300 us of thought.
    let limit = 1.0 / sweep["bottleneck_s"].as_f64().unwrap();
    assert!((limit / 40_000.0 - 1.0).abs() < 0.03, "{limit}");
    assert!((14.0..18.0).contains(&sweep["saturation"].as_f64().unwrap()), "{sweep}");
    assert_eq!(sweep["plateau"], true);
    assert!(sweep["peak"].is_null(), "{sweep}");
    let output = stdout(&dyno.run(&["explain", "sweep"]));
    assert!(
        output.contains("Little's law holds")
            && output.contains("from 32 users on it stays within 5 % of that"),
        "{output}"
    );
}

#[test]
fn levels_of_another_name_are_a_sweep_as_well() {
    let dyno = Dyno::new();
    // As the lab's presets have it: the factor is the test, and some of its levels are rates.
    let text = "target: \"sim:?service=100us\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {load: {when: never}, measure: {operations: 3000}}\nfactors:\n  size: [{label: a, records: 50}, \
                {label: b, records: 60}]\n  test: [{label: r-10, rate: 10}, {label: u-1, users: 1}, {label: u-4, users: 4}]\n";
    std::fs::write(dyno.path("lab.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "lab.yaml", "--out", "lab", "--quiet"]), &[0]);
    let found = json(&dyno, "lab");
    let sweeps = found["sweeps"].as_array().unwrap();
    let what: Vec<&str> = sweeps.iter().map(|one| one["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["size=a", "size=b"], "{found}");
    for one in sweeps {
        let levels = one["sweep"]["levels"].as_array().unwrap().iter();
        assert_eq!(levels.map(|level| level["users"].as_f64().unwrap()).collect::<Vec<_>>(), [1.0, 4.0]);
    }
}

#[test]
fn a_quota_is_found_and_its_command_runs() {
    let Some(_server) = RedisProcess::start(&[]) else { return skip("a quota explained") };
    let dyno = Dyno::new();
    let text = "server: {kind: redis, limits: {cpus: 0.2}}\nworkload: {ycsb: {workload: a, records: 1000}}\n\
                phases: {measure: {duration: 3s, warmup: 0s}}\nfactors: {users: [16], ycsb: [a]}\n";
    std::fs::write(dyno.path("quota.yaml"), text).unwrap();
    let output = dyno.run(&["run", "quota.yaml", "--out", "quota", "--quiet"]);
    if stderr(&output).contains("control group") && !output.status.success() {
        return skip("a quota explained: control groups are not permitted");
    }
    let found = json(&dyno, "quota");
    let finding = &found["runs"][0]["findings"][0];
    assert_eq!(finding["rule"], "cpu_quota", "{found}");
    assert!(
        finding["confidence"].as_f64().unwrap() > 0.8 && !finding["evidence"].as_array().unwrap().is_empty()
    );
    let command: Vec<&str> =
        finding["command"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(command[0], "dyno");
    assert!(command.contains(&"phases.measure.users=8") && command.contains(&"ycsb=a"), "{command:?}");
    // The factor gives way to the value that is proposed.
    let words = command[2..].iter().copied().filter(|word| *word != "--quiet");
    let planned = dyno.run(&std::iter::once("plan").chain(words).collect::<Vec<_>>());
    assert!(stdout(&planned).contains("users=8 ycsb=a"), "{}", stdout(&planned));
    // Whether such a run is valid on a busy host is not the question here.
    dyno.assert_ran(&dyno.run(&command[1..]));
}

#[test]
fn an_unloaded_server_has_no_finding() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("an unloaded server explained") };
    let dyno = Dyno::new();
    let uri = server.uri();
    let run = [
        "run",
        &uri,
        "--records",
        "500",
        "--rate",
        "200",
        "--duration",
        "3s",
        "--warmup",
        "0s",
        "--out",
        "d",
    ];
    // Whether such a run is valid on a busy host is not the question here.
    dyno.assert_ran(&dyno.run(&run));
    let found = json(&dyno, "d");
    // What else the host does may be found, too; the server, the client and its users are idle.
    let others = [
        "steal",
        "others",
        "frequency",
        "interrupts",
        "numa",
        "network_loss",
        "memory_pressure",
        "swap",
        "disk_reads",
        "disk_writes",
        "disk_bandwidth",
    ];
    let findings = found["runs"][0]["findings"].as_array().unwrap();
    let blamed = findings.iter().find(|finding| !others.contains(&finding["rule"].as_str().unwrap()));
    assert_eq!(blamed, None, "{found}");
    assert_eq!(found["runs"][0]["laws"][1]["holds"], "not_testable");
    let output = stdout(&dyno.run(&["explain", "d"]));
    assert!(output.contains("not known: "), "{output}");
    // That nothing is, unless the host is up to something.
    let limits = output.split("what limits it\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    let limits = limits.unwrap_or_else(|| panic!("{output}"));
    let claims: Vec<&str> = findings.iter().map(|finding| finding["claim"].as_str().unwrap()).collect();
    match claims.is_empty() {
        true => assert_eq!(limits, "  nothing that was watched is near a limit"),
        false => assert!(claims.iter().all(|claim| limits.contains(claim)), "{claims:?}: {output}"),
    }
}

#[test]
fn why_the_only_run_failed_is_told() {
    let dyno = Dyno::new();
    let text = "target: \"null:\"\nphases: {measure: {operations: 100}}\nhooks: {after_run: [[sh, -c, 'echo no disk; false']]}\n";
    std::fs::write(dyno.path("f.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "f.yaml", "--out", "f", "--quiet"]), &[5]);
    let explained = dyno.run(&["explain", "f"]);
    assert_exit(&explained, &[2]);
    let sentence = stderr(&explained);
    assert!(sentence.contains("it failed: hooks.after_run: sh -c"), "{sentence}");
    // The file that the words name is where they say.
    let place = sentence.split("its output is in ").nth(1).unwrap();
    let place = place.split_whitespace().next().unwrap().trim_end_matches([')', ',', ';']);
    let log =
        std::fs::read_to_string(dyno.path(place)).unwrap_or_else(|e| panic!("{place}: {e}: {sentence}"));
    assert!(log.contains("no disk"), "{log}");
}

#[test]
fn what_cannot_be_said_is_said() {
    let dyno = Dyno::new();
    // As fast as it goes, the client itself would be a finding.
    let run = ["run", "null:", "--rate", "200", "--duration", "1s", "--no-monitor", "--out", "d"];
    dyno.assert_ran(&dyno.run(&run));
    let output = stdout(&dyno.run(&["explain", "d"]));
    assert!(output.contains("cannot be said: nothing was watched"), "{output}");
    let missing = dyno.run(&["explain", "nothing"]);
    assert_exit(&missing, &[2]);
    std::fs::write(dyno.path("d/run.json"), "{").unwrap();
    let broken = dyno.run(&["explain", "d"]);
    assert_exit(&broken, &[2]);
    assert!(stderr(&broken).contains("run.json:1"), "{}", stderr(&broken));
}

/// What is asked of a real mongod is known to be slow for one reason: no index, or one document for all.
#[test]
fn what_mongod_says_of_itself_names_the_cause() {
    if std::process::Command::new("mongod").arg("--version").output().is_err() {
        return dyno_testkit::skip_because("diagnosis of mongod", "mongod is not on PATH");
    }
    let no_index = "collections:\n  people:\n    count: 10000\n    document: {group: {$int: {min: 1, max: 1000}}}\n\
                    operations:\n  find: {weight: 1, find: people, filter: {group: {$of: people.group}}}\n";
    let one = "collections:\n  counters:\n    count: 1\n    document: {n: 0}\noperations:\n  bump: {weight: 1, \
               update: counters, filter: {_id: {$key: counters}}, change: {$inc: {n: 1}}}\n";
    for (documents, users, cause) in
        [(no_index, 4, "an index is missing"), (one, 32, "hot documents limit it")]
    {
        let dyno = Dyno::new();
        std::fs::write(dyno.path("w.yaml"), documents).unwrap();
        let text = format!(
            "server: {{kind: mongod, cache: 256MiB}}\nworkload: {{documents: w.yaml}}\n\
             phases: {{measure: {{users: {users}, duration: 6s, warmup: 1s}}}}\n"
        );
        std::fs::write(dyno.path("e.yaml"), text).unwrap();
        dyno.assert_ran(&dyno.run(&["run", "e.yaml", "--out", "o", "--quiet"]));
        let runs = std::fs::read_dir(dyno.path("o/runs")).unwrap().flatten();
        let run = runs.map(|entry| entry.path()).find(|path| path.join("summary.json").is_file()).unwrap();
        let explained = stdout(&dyno.run(&["explain", run.to_str().unwrap()]));
        assert!(explained.contains(cause), "{cause}: {explained}");
    }
}
