//! Keeps the house in order: which crate may depend on which, how long files and lines may be, where the keyword that
//! switches the compiler's checks off may stand, who prints, and that nothing is left unfinished. Every failure lists
//! file and line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which crates of the workspace each crate may depend on; the architecture's table, which [`ANY`] abbreviates.
/// Dependencies of tests are free.
const ALLOWED: [(&str, &[&str]); 36] = [
    ("types", &[]),
    ("record", &["types"]),
    ("workload", &["types"]),
    ("monitor", &["types"]),
    ("rundir", &["types", "record"]),
    ("engine", &["types", "record", "workload"]),
    ("config", &["types", "workload"]),
    ("analysis", &["types", "record", "rundir"]),
    ("report", &["types", "record", "rundir", "analysis"]),
    ("localhost", &["types", "monitor", "rundir", "engine", "config"]),
    ("db", &["types", "monitor", "engine", "config", "localhost"]),
    ("db-redis", &["types", "workload", "monitor", "engine", "config", "localhost", "db"]),
    ("db-mongodb", &["types", "monitor", "engine", "config", "localhost", "db"]),
    ("db-memcached", &["types", "workload", "monitor", "engine", "config", "localhost", "db"]),
    ("db-embedded", &["types", "engine", "db"]),
    ("recording", &["types", "workload", "engine", "db-redis", "db-mongodb", "db-memcached"]),
    (
        "databases",
        &[
            "types",
            "engine",
            "config",
            "localhost",
            "db",
            "db-redis",
            "db-mongodb",
            "db-memcached",
            "db-embedded",
        ],
    ),
    (
        "session",
        &[
            "types",
            "record",
            "workload",
            "monitor",
            "rundir",
            "engine",
            "config",
            "analysis",
            "db",
            "recording",
            "databases",
        ],
    ),
    (
        "hosts",
        &[
            "types",
            "record",
            "monitor",
            "rundir",
            "engine",
            "config",
            "localhost",
            "db",
            "databases",
            "session",
        ],
    ),
    (
        "experiment",
        &[
            "types",
            "record",
            "monitor",
            "rundir",
            "engine",
            "config",
            "analysis",
            "localhost",
            "db",
            "db-embedded",
            "databases",
            "session",
            "hosts",
        ],
    ),
    (
        "frontend",
        &[
            "types",
            "record",
            "workload",
            "monitor",
            "rundir",
            "engine",
            "config",
            "analysis",
            "report",
            "localhost",
            "db",
            "db-mongodb",
            "databases",
            "session",
            "hosts",
            "experiment",
        ],
    ),
    (
        "compat-ycsb",
        &[
            "types",
            "record",
            "workload",
            "rundir",
            "engine",
            "config",
            "report",
            "db",
            "db-redis",
            "db-mongodb",
            "db-memcached",
            "db-embedded",
            "databases",
            "session",
            "frontend",
        ],
    ),
    (
        "compat-wsf",
        &[
            "types",
            "workload",
            "rundir",
            "engine",
            "config",
            "analysis",
            "localhost",
            "session",
            "hosts",
            "experiment",
            "frontend",
            "compat-ycsb",
        ],
    ),
    (
        "compat-bexhoma",
        &[
            "types",
            "monitor",
            "rundir",
            "engine",
            "config",
            "report",
            "localhost",
            "hosts",
            "experiment",
            "frontend",
            "compat-wsf",
        ],
    ),
    ("presets", &["config", "db-embedded", "compat-wsf"]),
    (
        "compat-sysbench-mongodb",
        &[
            "types",
            "record",
            "workload",
            "rundir",
            "engine",
            "config",
            "report",
            "db",
            "db-mongodb",
            "databases",
            "session",
            "frontend",
            "compat-ycsb",
        ],
    ),
    (
        "compat-pocdriver",
        &[
            "types",
            "record",
            "workload",
            "rundir",
            "engine",
            "config",
            "db",
            "db-mongodb",
            "databases",
            "session",
            "frontend",
        ],
    ),
    (
        "compat-redis-tools",
        &[
            "types",
            "record",
            "workload",
            "rundir",
            "engine",
            "config",
            "db",
            "db-redis",
            "databases",
            "session",
            "frontend",
        ],
    ),
    (
        "exchange",
        &[
            "types",
            "record",
            "rundir",
            "analysis",
            "report",
            "compat-ycsb",
            "compat-wsf",
            "compat-sysbench-mongodb",
            "compat-pocdriver",
        ],
    ),
    (
        "prove",
        &[
            "types",
            "record",
            "workload",
            "rundir",
            "engine",
            "config",
            "report",
            "localhost",
            "db",
            "db-redis",
            "db-mongodb",
            "db-embedded",
            "databases",
            "hosts",
            "experiment",
            "frontend",
            "compat-pocdriver",
        ],
    ),
    (
        "worker",
        &[
            "types",
            "rundir",
            "engine",
            "config",
            "localhost",
            "databases",
            "session",
            "compat-sysbench-mongodb",
            "compat-pocdriver",
            "hosts",
        ],
    ),
    ("cli", &[ANY]),
    ("bench", &[ANY]),
    ("xtask", &["rundir", "config", "cli"]),
    ("fuzz", &[ANY]),
    ("testkit", &[ANY]),
];

/// Stands for every crate.
const ANY: &str = "all";

/// Files that may switch the compiler's checks off, each with a reason beside the code.
const UNCHECKED: [&str; 7] = [
    "crates/engine/src/net/hardware.rs",
    "crates/engine/src/net/stamps.rs",
    "crates/db-embedded/src/lmdb/engine.rs",
    "crates/db-embedded/src/rocksdb/engine.rs",
    "crates/db-embedded/src/rocksdb/sys.rs",
    "crates/db-embedded/src/wiredtiger/engine.rs",
    "crates/db-embedded/src/wiredtiger/sys.rs",
];

/// Longest source file, lines.
const FILE_LINES: usize = 800;

/// Longest line, characters.
const COLUMNS: usize = 130;

/// Files whose text is checked for unfinished work.
const TEXT: [&str; 8] = ["rs", "toml", "md", "sh", "yml", "yaml", "html", "json"];

pub(crate) type Table = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/cli is two below the root")
        .to_owned()
}

/// All files below `folder` whose name ends in one of `ends`, with their path below the root.
pub(crate) fn files(ends: &[&str]) -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') && !path.is_symlink() {
                    folders.push(path);
                }
            } else if ends.iter().any(|end| path.extension().is_some_and(|e| e == *end)) {
                let below = path.strip_prefix(&root).expect("below the root").display().to_string();
                if let Ok(text) = fs::read_to_string(&path) {
                    found.push((below, text));
                }
            }
        }
    }
    found.sort();
    found
}

/// `file:line` and the line, for every line of `files` that `bad` finds something in.
pub(crate) fn lines_with(
    files: &[(String, String)],
    bad: impl Fn(&str, &str) -> Option<String>,
) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files {
        for (i, line) in text.lines().enumerate() {
            if let Some(what) = bad(path, line) {
                found.push(format!("{path}:{}: {what}: {}", i + 1, line.trim()));
            }
        }
    }
    found
}

/// Fails with the list, if there is anything on it.
pub(crate) fn none(rule: &str, found: &[String]) {
    assert!(found.is_empty(), "{rule}\n  {}\n", found.join("\n  "));
}

/// The line without what follows `//`. Good enough for keywords and macros, which do not stand behind a URL.
pub(crate) fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// Whether `word` stands in `text` with no letter, digit or `_` around it.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        !joins(text[..at].chars().next_back()) && !joins(text[at + word.len()..].chars().next())
    })
}

/// The table `| crate | ... | may depend on |` of a document.
fn parse_table(text: &str) -> Table {
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
    };
    let rows = text.lines().skip_while(|line| {
        let header = cells(line);
        header.first().is_none_or(|c| c != "crate") || header.last().is_none_or(|c| c != "may depend on")
    });
    let rows = rows.skip(2).take_while(|line| line.trim_start().starts_with('|'));
    rows.map(|line| {
        let row = cells(line);
        let names = row.last().map_or("", String::as_str);
        let names = names.split(',').map(str::trim).filter(|name| !matches!(*name, "" | "-"));
        (row[0].clone(), names.map(str::to_owned).collect())
    })
    .collect()
}

/// The packages of the workspace.
fn packages() -> Vec<cargo_metadata::Package> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec();
    metadata.expect("cargo metadata").packages
}

/// Each crate of the workspace, and the crates of the workspace that it depends on outside its tests.
pub(crate) fn workspace() -> Table {
    let all = packages();
    let noun = |name: &str| name.strip_prefix("dyno-").unwrap_or(name).to_owned();
    let own: BTreeSet<String> = all.iter().map(|p| noun(&p.name)).collect();
    let packages = all.iter().map(|package| {
        let used =
            package.dependencies.iter().filter(|d| d.kind != cargo_metadata::DependencyKind::Development);
        let inside =
            used.filter(|d| d.path.is_some()).map(|d| noun(&d.name)).filter(|name| own.contains(name));
        (noun(&package.name), inside.collect())
    });
    packages.collect()
}

/// Dependencies that no line of their crate names, as `cargo machete` finds them; a library's name may be another than its
/// package's.
fn unused() -> Vec<String> {
    const LIBRARIES: [(&str, &str); 1] = [("md-5", "md5")];
    let mut found = Vec::new();
    for package in packages() {
        let folder = package.manifest_path.parent().expect("a manifest is in a folder").as_std_path();
        let text: String =
            rust_below(folder).iter().flat_map(|text| text.lines().map(code)).collect::<Vec<_>>().join("\n");
        for dependency in &package.dependencies {
            let name = dependency.rename.as_ref().unwrap_or(&dependency.name);
            let library =
                LIBRARIES.iter().find(|(package, _)| package == name).map_or(name.as_str(), |(_, name)| name);
            let forwards = |value: &String| value.starts_with(&format!("{name}/"));
            let is_forwarded = package.features.values().flatten().any(forwards);
            if !is_forwarded && !has_word(&text, &library.replace('-', "_")) {
                found.push(format!("crates/{}: {name}", package.name));
            }
        }
    }
    found
}

/// The sources below a folder.
fn rust_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(rust_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(fs::read_to_string(&path));
        }
    }
    found
}

fn allowed() -> Table {
    let row = |(name, list): &(&str, &[&str])| {
        ((*name).to_owned(), list.iter().map(|name| (*name).to_owned()).collect())
    };
    ALLOWED.iter().map(row).collect()
}

/// Every arrow of `workspace` that `allowed` does not have.
fn forbidden(workspace: &Table, allowed: &Table) -> Vec<String> {
    let mut found = Vec::new();
    for (name, uses) in workspace {
        let place = format!("crates/{name}/Cargo.toml");
        let Some(may) = allowed.get(name) else {
            found.push(format!("{place}: the table of allowed dependencies has no row for {name}"));
            continue;
        };
        let wrong = uses.iter().filter(|used| !may.contains(ANY) && !may.contains(*used));
        found.extend(wrong.map(|used| format!("{place}: {name} must not depend on {used}")));
    }
    found
}

/// Where the two tables disagree about crates that exist. A document may leave out the rows of `bench` and of crates
/// that are not built yet.
fn disagreements(ours: &Table, theirs: &Table, workspace: &Table) -> Vec<String> {
    let exists = |name: &&String| workspace.contains_key(*name) || *name == ANY;
    let mut found = Vec::new();
    for name in workspace.keys().filter(|name| *name != "bench") {
        let existing = |table: &Table| -> Option<BTreeSet<String>> {
            table.get(name).map(|list| list.iter().filter(exists).cloned().collect())
        };
        let (ours, theirs) = (existing(ours), existing(theirs));
        if ours != theirs {
            found.push(format!("docs/architecture.md: {name}: {theirs:?}, but tidy.rs has {ours:?}"));
        }
    }
    found
}

#[test]
fn crates_depend_only_on_what_the_table_allows() {
    none("a dependency that the architecture does not allow", &forbidden(&workspace(), &allowed()));
}

#[test]
fn every_dependency_is_used() {
    none("dependencies that nothing names; remove them", &unused());
}

#[test]
fn the_document_has_the_same_table() {
    if let Ok(text) = fs::read_to_string(root().join("docs/architecture.md")) {
        none("two tables", &disagreements(&allowed(), &parse_table(&text), &workspace()));
    }
}

#[test]
fn files_and_lines_are_short() {
    let sources = files(&["rs"]);
    let long = sources.iter().map(|(path, text)| (path, text.lines().count()));
    let mut found: Vec<String> = long
        .filter(|(_, lines)| *lines > FILE_LINES)
        .map(|(path, lines)| format!("{path}:{lines}: more than {FILE_LINES} lines"))
        .collect();
    found.extend(lines_with(&sources, |_, line| {
        let columns = line.chars().count();
        (columns > COLUMNS).then(|| format!("{columns} columns, at most {COLUMNS}"))
    }));
    none("too long", &found);
}

#[test]
fn the_compiler_checks_nearly_everything() {
    let keyword = concat!("un", "safe");
    let found = lines_with(&files(&["rs"]), |path, line| {
        (!UNCHECKED.contains(&path) && has_word(code(line), keyword))
            .then(|| format!("{keyword} outside the list"))
    });
    none("code that the compiler does not check; only these may have it: UNCHECKED in tidy.rs", &found);
}

#[test]
fn only_the_command_prints() {
    let macros = ["println", "eprintln", "print", "eprint"];
    let found = lines_with(&files(&["rs"]), |path, line| {
        // What build scripts print is read by cargo.
        let may = ["crates/cli/", "crates/frontend/", "crates/bench/", "crates/xtask/"]
            .iter()
            .any(|own| path.starts_with(own))
            || path.ends_with("/build.rs")
            || is_of_tests(path);
        let used = macros.iter().find(|name| has_call(code(line), name));
        used.filter(|_| !may).map(|name| format!("{name}! outside the commands"))
    });
    none("printing is the command's affair", &found);
}

/// Files that start programs by themselves: where password variables are taken away, and dyno as it was started, again.
const STARTS: [&str; 3] =
    ["crates/types/src/child.rs", "crates/compat-wsf/src/front/ctest.rs", "crates/cli/src/run/versus.rs"];

#[test]
fn programs_are_started_without_password_variables() {
    let mut found = Vec::new();
    for (path, text) in files(&["rs"]) {
        let is_source = path.contains("/src/") && !is_of_tests(&path) && !path.starts_with("crates/bench/");
        // Not of this kind: commands of the command line's parser.
        let own = text.split("#[cfg(test)]").next().unwrap_or_default();
        if is_source && !STARTS.contains(&path.as_str()) && !own.contains("augment_args") {
            found.extend(lines_with(&[(path, own.to_owned())], |_, line| {
                code(line).contains("Command::new(").then(|| "use dyno_types::child::command".to_owned())
            }));
        }
    }
    none("programs that dyno starts do not inherit its password variables", &found);
}

/// Whether `path` belongs to tests alone.
pub(crate) fn is_of_tests(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("tests.rs") || path.starts_with("crates/testkit/")
}

/// Whether the macro `name` is called.
fn has_call(text: &str, name: &str) -> bool {
    has_word(text, name) && text.replace(' ', "").contains(&format!("{name}!("))
}

/// Where databases may be told apart by their names: their modules, codecs and stores, and what other tools call them.
const NAMED: [&str; 8] = [
    "crates/db/src/protocol",
    "crates/db-",
    "crates/databases/src/",
    "crates/config/src/server/kind/",
    "crates/compat-",
    "crates/bench/",
    "crates/fuzz/",
    "fuzz/",
];

/// Whether a line decides by the name of a database: a pattern of `match`, a comparison, or the beginning of a URI.
fn decides_by_name(line: &str, names: &BTreeSet<String>) -> bool {
    let kind = "ServerKind::";
    let (before, after) = line.split_once("=>").unwrap_or(("", line));
    let compares =
        [" == ", " != ", "| ", "matches!("].iter().any(|sign| line.contains(&format!("{sign}{kind}")));
    let is_kind = before.contains(kind) || compares || after.contains("matches!(") && after.contains(kind);
    let literal = names.iter().any(|name| {
        ["", ":", "://"].iter().any(|end| {
            let word = format!("\"{name}{end}\"");
            let near = ["== ", "!= ", "starts_with(", "strip_prefix("];
            before.contains(&word) || near.iter().any(|near| line.contains(&format!("{near}{word}")))
        })
    });
    is_kind || literal
}

#[test]
fn databases_are_told_apart_in_their_modules_alone() {
    let known = dyno_databases::registry::ALL.iter();
    let mut names: BTreeSet<String> = known.map(|database| database.name().to_owned()).collect();
    names.extend(dyno_databases::registry::schemes().map(|scheme| scheme.name.to_owned()));
    names.extend(dyno_config::server::ServerKind::ALL.iter().map(ToString::to_string));
    // A value of JSON, and a target that is started.
    names.retain(|name| !["null", "spawn"].contains(&name.as_str()));
    let found = lines_with(&files(&["rs"]), |path, line| {
        let may = NAMED.iter().any(|own| path.starts_with(own)) || is_of_tests(path);
        (!may && decides_by_name(code(line), &names)).then(|| "decides by a database's name".to_owned())
    });
    none("what a database can do is asked of its module (docs/contributing/add-a-database.md)", &found);
    for line in [
        "    ServerKind::Redis => 1,",
        "if kind == ServerKind::Mongod {",
        "| ServerKind::KeyDb",
        "    \"redis\" | \"unix\" => false,",
        "uri.starts_with(\"mongodb://\")",
        "matches!(kind, ServerKind::Redis)",
    ] {
        assert!(decides_by_name(line, &names), "{line}");
    }
    for line in
        ["    Arg::Redis => ServerKind::Redis,", "let kind = \"redis\";", "ServerSpec::of(ServerKind::Redis)"]
    {
        assert!(!decides_by_name(line, &names), "{line}");
    }
}

#[test]
fn nothing_is_left_unfinished() {
    let words =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("unimplemented", "!"), concat!("to", "do!(")];
    let found = lines_with(&files(&TEXT), |_, line| {
        words.iter().find(|word| line.contains(*word)).map(|word| (*word).to_owned())
    });
    none("unfinished work", &found);
}

#[test]
fn these_checks_find_what_they_look_for() {
    let text = "x\n| crate | holds | may depend on |\n|---|---|---|\n| `a` | x \\| y | - |\n| `b` | | a, types |\n\n| c | | a |";
    let table = parse_table(text);
    let set = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|n| (*n).to_owned()).collect() };
    assert_eq!(table, Table::from([("a".into(), set(&[])), ("b".into(), set(&["a", "types"]))]));
    let uses = Table::from([("a".into(), set(&["b"])), ("b".into(), set(&["a"])), ("c".into(), set(&[]))]);
    let found = forbidden(&uses, &table);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], "crates/a/Cargo.toml: a must not depend on b");
    assert!(found[1].ends_with("no row for c"));
    assert_eq!(disagreements(&table, &table, &uses), Vec::<String>::new());
    assert_eq!(disagreements(&table, &Table::from([("a".into(), set(&[]))]), &uses).len(), 1);
    assert!(has_word("let x = ab {", "ab") && !has_word("ab_code", "ab") && !has_word("cab", "ab"));
    assert!(has_call("  println!(\"x\")", "println") && !has_call("eprintln!()", "println"));
    let found = lines_with(&[("f.rs".into(), "a\nbad".into())], |_, l| (l == "bad").then(|| "why".into()));
    assert_eq!(found, ["f.rs:2: why: bad"]);
}

/// The official MongoDB driver doubles the build: only who asks for it compiles it.
#[test]
fn the_official_driver_is_compiled_on_request() {
    let names = |line: &str| line.starts_with("mongodb.workspace") || line.starts_with("mongodb =");
    let used = files(&["toml"])
        .into_iter()
        .filter(|(path, text)| path.starts_with("crates/") && text.lines().any(names));
    let used: Vec<String> = used.map(|(path, _)| path).collect();
    assert_eq!(used, ["crates/bench/Cargo.toml", "crates/db-mongodb/Cargo.toml"]);
}

/// Words of our own that a newcomer could not guess, and the word of the field that took their place. As names of types
/// and of modules they do not come back. The list only gets longer.
const COINED: [(&str, &str); 34] = [
    ("Apparatus", "LoadGenerator"),
    ("Asked", "the question's own name, such as Query"),
    ("Course", "IntervalHistory"),
    ("Crew", "WorkerPool"),
    ("Edges", "PhaseBoundaries"),
    ("Elects", "FailoverCluster"),
    ("Far", "RemoteAgent"),
    ("Fates", "OutcomeCounts"),
    ("Felt", "ArrivalLatency"),
    ("Further", "RunObservations"),
    ("Guard", "PodWatchdog, Auth"),
    ("Harm", "ServerFault"),
    ("Harmed", "FaultOutcome"),
    ("Heard", "ReadStatus"),
    ("Held", "OwnedResources"),
    ("Judged", "AnalysisSections"),
    ("Kept", "DatasetCache"),
    ("Lacking", "MissingProgram"),
    ("Lane", "VirtualUser"),
    ("Link", "Channel"),
    ("Means", "ExperimentContext"),
    ("Nature", "TargetInfo"),
    ("Near", "Controller"),
    ("Opened", "OpenTarget"),
    ("Recruit", "WorkerSpec"),
    ("Room", "FaultPreparation"),
    ("Seat", "ConnectionPermit"),
    ("Standing", "PersistentServers"),
    ("Stood", "PersistentPods"),
    ("Stored", "VolumeInfo"),
    ("Strangers", "FuzzEntry"),
    ("Suits", "Preflight"),
    ("Unfit", "UnmetRequirement"),
    ("Victims", "FaultTargets"),
];

/// The coined word that a line makes the name of a type or of a module, with the word to use.
fn coins(line: &str) -> Option<String> {
    let mut words =
        code(line).split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let kind = words.find(|word| matches!(*word, "struct" | "enum" | "trait" | "type" | "mod"))?;
    let name = words.next()?;
    let is = |coined: &str| if kind == "mod" { name == coined.to_lowercase() } else { name == coined };
    COINED.iter().find(|(coined, _)| is(coined)).map(|(_, word)| format!("{name}: use {word}"))
}

#[test]
fn coined_words_do_not_come_back() {
    none("names that only we understand", &lines_with(&files(&["rs"]), |_, line| coins(line)));
    let (ty, module) = ("struct", "mod");
    let named = |kind: &str, name: &str| coins(&format!("    pub(crate) {kind} {name};"));
    assert_eq!(named(ty, "Room").as_deref(), Some("Room: use FaultPreparation"));
    assert_eq!(named(module, "edges").as_deref(), Some("edges: use PhaseBoundaries"));
    assert_eq!((named(ty, "Rooms"), named("fn", "Room"), named(module, "Edges")), (None, None, None));
}

/// Words that name no actor: a reader has to guess who waits, asks or is asked.
const NO_ACTOR: [&str; 5] = ["nobody", "somebody", "whoever", "anybody", "everybody"];

#[test]
fn sentences_name_who_acts() {
    let bad = |_: &str, line: &str| {
        let line = line.to_lowercase();
        NO_ACTOR.iter().find(|word| has_word(&line, word)).map(|word| format!("{word}: name the actor"))
    };
    let sources = files(&["rs", "js", "md"]).into_iter();
    let sources: Vec<_> = sources
        .filter(|(path, _)| !path.contains("/tests/") && !path.ends_with("tests/it/tidy.rs"))
        .collect();
    none("sentences name who acts", &lines_with(&sources, bad));
    assert_eq!(bad("", "/// Somebody else's.").as_deref(), Some("somebody: name the actor"));
    assert_eq!(bad("", "fn no_body() {}"), None);
}

/// Public functions that are called as one of these, which say nothing without their type, and how many are left. A name of
/// this kind is not added; where one goes, the number goes down.
const LONE_VERBS: ([&str; 8], usize) = (["told", "asked", "shown", "wanted", "one", "of", "take", "put"], 25);

#[test]
fn public_functions_are_a_verb_and_its_object() {
    let is_lone = |line: &str| {
        let name = line.trim_start().strip_prefix("pub ").map(|rest| rest.trim_start_matches("const "));
        let name =
            name.and_then(|rest| rest.strip_prefix("fn ")).and_then(|rest| rest.split(['(', '<']).next());
        name.is_some_and(|name| LONE_VERBS.0.contains(&name))
    };
    let sources = files(&["rs"]).into_iter().filter(|(path, _)| path.contains("/src/"));
    let found =
        lines_with(&sources.collect::<Vec<_>>(), |_, line| is_lone(line).then(|| "a lone verb".to_owned()));
    assert!(is_lone("    pub const fn of(x: u8) -> Self {") && !is_lone("pub fn take_record("));
    assert!(found.len() <= LONE_VERBS.1, "name the object too\n  {}", found.join("\n  "));
    assert_eq!(found.len(), LONE_VERBS.1, "fewer than before: lower the number in LONE_VERBS");
}
