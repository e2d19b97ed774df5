//! What the documentation says holds: every command that it shows is typed here or named with the test that types its like, and
//! the published schemas are current.

#[path = "docs/commands.rs"]
mod commands_of;
#[path = "docs/recordings.rs"]
mod recordings;
use commands_of::{Row, Trial, Typed, documents};
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, RedisProcess};
use std::path::Path;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Splits a command line at blanks; single quotes hold words together; `#` begins a comment.
fn split_words(line: &str) -> Vec<String> {
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

/// The commands that a document shows, each as its words: lines of code that begin with `dyno`, or go on with it behind `; `.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let (mut fenced, mut lines) = (false, text.lines());
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let code = if fenced { Some(line) } else { line.strip_prefix("    ") };
        let Some(code) = code.map(|code| code.trim_start().trim_start_matches("$ ")) else { continue };
        let Some(command) =
            code.strip_prefix("dyno ").or_else(|| code.split_once("; dyno ").map(|(_, command)| command))
        else {
            continue;
        };
        let mut command = command.to_owned();
        while command.ends_with('\\') {
            command.pop();
            command.push_str(lines.next().unwrap_or_default());
        }
        found.push(split_words(&command));
    }
    found
}

/// The servers of this test: what a reader's addresses stand for.
struct Servers {
    redis: u16,
    mongo: Option<u16>,
}

impl Servers {
    /// The command's words on these servers; `None` where one of them is not there.
    fn typed(&self, row: &Typed, command: &str) -> Option<Vec<String>> {
        let mut all = split_words(command);
        for (of, word) in &row.instead {
            let mut met = false;
            for own in all.iter_mut().filter(|own| own.contains(of)) {
                *own = own.replace(of, word);
                met = true;
            }
            assert!(met, "dyno {command}: it has no {of}");
        }
        all.extend(split_words(row.more));
        let redis = format!("127.0.0.1:{}", self.redis);
        for word in &mut all {
            *word = word.replace("127.0.0.1:6379", &redis).replace("db:6379", &redis);
            *word = word.replace("redis.port=REDIS", &format!("redis.port={}", self.redis));
            // Files are named from the root of the repository.
            let (kind, path) = word.strip_prefix("file:").map_or(("", word.as_str()), |path| ("file:", path));
            if path.starts_with("docs/") {
                *word = format!("{kind}{}", root().join(path).display());
            }
            for (there, behind) in
                [("mongodb://127.0.0.1:27017", ""), ("mongodb://127.0.0.1/", "/"), ("mongodb://host", "")]
            {
                if word.contains(there) {
                    *word = word.replace(there, &format!("mongodb://127.0.0.1:{}{behind}", self.mongo?));
                }
            }
        }
        Some(all)
    }
}

/// A command that is not typed here has no flag but those of the published reference, which is made of the program.
fn assert_flags(command: &str) {
    let reference = std::fs::read_to_string(root().join("docs/reference/commands.md")).unwrap();
    let of = split_words(command)[0].clone();
    let flags = split_words(command).into_iter().filter(|word| word.starts_with("--"));
    for flag in flags {
        // The front ends of other tools have those tools' flags; their tests compare them with the originals'.
        let known = of == "bexhoma" || reference.contains(&format!("`{flag}"));
        assert!(known, "dyno {command}: the reference knows no {flag}");
    }
}

/// Types the commands of a document one after the other, in a folder of their own.
fn type_all(document: &str, rows: &[Row], servers: &Servers) {
    let dyno = Dyno::new();
    let mut beside = Vec::new();
    // A busy host makes runs invalid: what is made of their results has nothing to take then, and says so.
    let mut invalid = false;
    for row in rows {
        match &row.way {
            Trial::There(file, function) => {
                let folders = ["it", "servers", "alone", "official", "."]
                    .map(|one| root().join("crates/cli/tests").join(one));
                let text = folders.iter().find_map(|folder| std::fs::read_to_string(folder.join(file)).ok());
                let text = text.unwrap_or_else(|| panic!("{file} is in none of {folders:?}"));
                assert!(
                    text.contains(&format!("fn {function}(")),
                    "{file} has no test {function}: {}",
                    row.command
                );
                assert_flags(row.command);
            }
            Trial::NotHere(why) => {
                assert!(!why.is_empty());
                assert_flags(row.command);
            }
            Trial::Here(typed) => {
                let Some(words) = servers.typed(typed, row.command) else {
                    dyno_testkit::skip_because(
                        &format!("dyno {} ({document})", row.command),
                        "no MongoDB is there",
                    );
                    continue;
                };
                let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
                let into = words.iter().position(|word| *word == ">").map(|at| words.split_off(at)[1]);
                let accepted = |output: &std::process::Output| match (typed.load, words.first()) {
                    (true, Some(&"bexhoma")) => dyno.assert_bexhoma_ran(output),
                    (true, _) | (_, Some(&"report")) => dyno.assert_ran(output),
                    _ if invalid
                        && dyno_testkit::stderr(output).contains(" is left out: it is invalid: ") =>
                    {
                        dyno_testkit::assert_exit(output, &[0, 2, 5]);
                    }
                    _ => dyno_testkit::assert_exit(output, &[0]),
                };
                let started = dyno.start(&words);
                if typed.beside {
                    beside.push(started);
                    continue;
                }
                let ended = dyno_testkit::finish(started);
                accepted(&ended);
                invalid |= ended.status.code() == Some(5);
                if let Some(name) = into {
                    std::fs::write(dyno.path(name), &ended.stdout).unwrap();
                }
                for other in beside.drain(..) {
                    dyno.assert_ran(&dyno_testkit::finish(other));
                }
            }
        }
    }
}

#[test]
fn every_command_of_the_documents_is_tried() {
    let mut texts = vec![root().join("README.md")];
    texts.extend(std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    texts.retain(|path| path.extension().is_some_and(|kind| kind == "md"));
    let documents = documents();
    for path in &texts {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let shown = commands(&std::fs::read_to_string(path).unwrap());
        let rows = documents.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, rows)| rows);
        let known: Vec<Vec<String>> =
            rows.iter().filter(|row| row.shown).map(|row| split_words(row.command)).collect();
        assert_eq!(shown, known, "{name}: what it shows, and what docs/commands.rs tries, in this order");
    }
    let Some(server) = RedisProcess::start(&[]) else {
        return dyno_testkit::skip("commands of the documents");
    };
    let mongo = Mongo::mongod().or_else(|| Mongo::ferretdb(&[]));
    let servers = Servers { redis: server.port, mongo: mongo.as_ref().map(|mongo| mongo.port) };
    for (name, rows) in &documents {
        server.cli(&["FLUSHALL"]);
        type_all(name, rows, &servers);
    }
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn what_the_documentation_says_of_experiments_is_understood() {
    let understood = |text: &str, place: &str| {
        let planned = dyno_config::experiment::read_plan(text, "x.yaml", &[]);
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
