//! What the documentation says holds: every `$ dyno` command of the README runs, and the published schema is current.

mod common;

use dyno_rig::{find_server, spawn};
use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Splits a command line at blanks; single quotes hold a word together; `#` begins a comment.
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            '#' if !quoted && word.is_empty() => break,
            c if c.is_whitespace() && !quoted => {
                if !word.is_empty() {
                    all.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    all.extend((!word.is_empty()).then_some(word));
    all
}

/// Smaller figures, the test's own server and folder instead of the reader's.
fn adapt(words: &[String], port: u16, folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let mut all: Vec<String> = words
        .iter()
        .map(|w| {
            w.replace("127.0.0.1:6379", &format!("127.0.0.1:{port}"))
                .replace("/tmp/bench.db", &format!("{folder}/bench.db"))
                .replace("1M", "2k")
                .replace("1m", "1s")
                .replace("recordcount=100000", "recordcount=1000")
                .replace("operationcount=1000000", "operationcount=2000")
        })
        .collect();
    for word in &mut all {
        // Files are named from the root of the repository.
        if word.starts_with("docs/") {
            *word = root().join(&*word).display().to_string();
        }
    }
    let experiment = all.iter().any(|word| word.ends_with(".yaml"));
    match all.first().map(String::as_str) {
        Some("run") if experiment => {
            all.extend(
                ["--set", "duration=1s", "--set", "records=1000", "--set", "repetitions=1"].map(String::from),
            );
        }
        Some("run") => {
            if !all.iter().any(|w| w == "--duration") {
                all.extend(["--duration".into(), "1s".into()]);
            }
            if !all.iter().any(|w| w == "--records") {
                all.extend(["--records".into(), "2000".into()]);
            }
            // What is tested is that the command runs, not how fast this machine is.
            for word in &mut all {
                if word.starts_with("p99(read)") {
                    *word = "p99(read) < 60s".into();
                }
                if word == "20k" {
                    // Enough reads for a p99.
                    *word = "5k".into();
                }
            }
        }
        Some("ycsb") if words.get(2).is_some_and(|w| w == "redis") => {
            all.extend(["-p".into(), format!("redis.port={port}")]);
        }
        Some("ycsb") => all.extend(["-p".into(), "operationcount=200".into()]),
        Some("pocdriver" | "sysbench-mongodb") => {
            for word in &mut all {
                *word = word.replace("RUN_TIME_SECONDS=10", "RUN_TIME_SECONDS=2");
                if word == "10" {
                    *word = "2".into();
                }
            }
        }
        _ => {}
    }
    all
}

/// Whether a command of the README wants MongoDB.
fn wants_mongodb(command: &[String]) -> bool {
    command.iter().any(|word| word.contains("mongodb:"))
}

/// Two load generators of one load at once, for what merges their runs.
fn side_by_side(port: u16, directories: &[String]) {
    let uri = format!("redis://127.0.0.1:{port}");
    let start = |out: &String| {
        let words =
            ["run", &uri, "-n", "100", "--rate", "500", "--duration", "2s", "--warmup", "0s", "--quiet"];
        Command::new(env!("CARGO_BIN_EXE_dyno"))
            .args(words)
            .args(["--no-load", "--out", out])
            .spawn()
            .unwrap()
    };
    let running: Vec<_> = directories.iter().map(start).collect();
    for mut run in running {
        run.wait().unwrap();
    }
}

#[test]
fn every_command_of_the_readme_runs() {
    let Some((kind, program)) = find_server(Some("redis")) else {
        return common::skip("README commands");
    };
    let server = spawn(kind, &program).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let commands: Vec<Vec<String>> =
        readme.lines().filter_map(|l| l.strip_prefix("$ dyno ")).map(words).collect();
    assert!(commands.len() >= 8, "the README has lost its commands");
    let mut made: Vec<String> = Vec::new();
    let mongo = common::mongo::Mongo::ferretdb(&[]);
    if mongo.is_none() {
        common::skip_because(
            "README commands for MongoDB",
            "FerretDB is not there (see scripts/need-mongo.sh)",
        );
    }
    for mut command in commands {
        if wants_mongodb(&command) {
            let Some(mongo) = &mongo else { continue };
            let there = format!("127.0.0.1:{}", mongo.port);
            command.iter_mut().for_each(|word| *word = word.replace("127.0.0.1:27017", &there));
        }
        let mut arguments = adapt(&command, server.port, folder.path());
        let place = |name: &str| folder.path().join(name).display().to_string();
        match arguments[0].as_str() {
            "run" => {
                made.push(place(&format!("run-{}", made.len())));
                arguments.extend(["--out".into(), made.last().unwrap().clone()]);
            }
            "report" => arguments[1] = made[0].clone(),
            "merge" => {
                let both =
                    ["merged-1", "merged-2"].map(|name| folder.path().join(name).display().to_string());
                arguments[1..].clone_from_slice(&both);
                side_by_side(server.port, &both);
            }
            _ => {}
        }
        let output = Command::new(env!("CARGO_BIN_EXE_dyno"))
            .args(&arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        // 5 is a verdict on this machine, not on the command.
        let code = output.status.code();
        assert!(
            matches!(code, Some(0 | 5)),
            "dyno {}: {code:?}\n{}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn the_published_schemas_are_current() {
    let schemas =
        [("summary", dyno_rundir::schema::summary_schema()), ("experiment", dyno_plan::experiment::schema())];
    for (name, current) in schemas {
        let path = root().join(format!("docs/schema/{name}.schema.json"));
        let published = std::fs::read_to_string(&path).unwrap();
        let hint = format!("write it anew with `dyno schema {name}`");
        assert_eq!(published, current, "{}: out of date; {hint}", path.display());
    }
}

#[test]
fn the_published_reference_is_current() {
    let folder = tempfile::tempdir().unwrap();
    let made =
        Command::new(env!("CARGO_BIN_EXE_dyno")).args(["manual", "--reference"]).arg(folder.path()).status();
    assert!(made.unwrap().success());
    let (mut pages, published) = (0, root().join("docs/reference"));
    for entry in std::fs::read_dir(folder.path()).unwrap().flatten() {
        let current = std::fs::read_to_string(entry.path()).unwrap();
        let page = std::fs::read_to_string(published.join(entry.file_name())).unwrap();
        assert!(
            page == current,
            "{:?}: out of date; write it anew with `dyno manual --reference docs/reference`",
            entry.file_name()
        );
        pages += 1;
    }
    assert_eq!(std::fs::read_dir(published).unwrap().count(), pages, "a page that nobody makes");
    let experiment = std::fs::read_to_string(root().join("docs/reference/experiment.md")).unwrap();
    for row in [
        "## `phases.measure`",
        "## `faults[]`",
        "`replica_set`: A replica",
        "| `ladder` | mapping, see below |",
    ] {
        assert!(experiment.contains(row), "{row}");
    }
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn what_the_documentation_says_of_experiments_is_understood() {
    let understood = |text: &str, place: &str| {
        let planned = dyno_plan::experiment::plan(text, "x.yaml", &[]);
        planned.unwrap_or_else(|error| panic!("{place}: {error}\n{text}"));
    };
    let mut blocks = 0;
    for entry in std::fs::read_dir(root().join("docs")).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for block in text.split("```yaml\n").skip(1) {
            understood(block.split("```").next().unwrap(), &path.display().to_string());
            blocks += 1;
        }
    }
    assert!(blocks >= 5, "{blocks} blocks: the documentation has lost its examples");
    let text = std::fs::read_to_string(root().join("docs/experiments.md")).unwrap();
    // What is left to the reader is left out.
    let short = |snippet: &str| snippet.replace(", ...", "").replace("[...]", "[]");
    let searches = text.split("## Searches").nth(1).and_then(|rest| rest.split("## ").next()).unwrap();
    let begins = |snippet: &&str| {
        ["ladder:", "highest_rate:", "repeat_until:", "tune:"].iter().any(|b| snippet.starts_with(b))
    };
    let strategies: Vec<String> = quoted(searches).filter(begins).map(short).collect();
    assert_eq!(strategies.len(), 4, "{strategies:?}");
    for strategy in strategies {
        understood(&format!("server: {{kind: redis}}\nstrategy:\n  {strategy}\n"), "Searches");
    }
    let factors = text.split("## Factors").nth(1).and_then(|rest| rest.split("## ").next()).unwrap();
    let rows: Vec<&str> =
        factors.lines().filter(|line| line.starts_with("| ") && line.contains('`')).collect();
    assert!(rows.len() >= 6, "{rows:?}");
    for row in rows {
        let factor = short(quoted(row).next().unwrap());
        understood(&format!("server: {{kind: redis}}\nfactors:\n  {factor}\n"), "Factors");
    }
}
