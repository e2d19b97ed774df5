//! Command lines: precedence, built-in workloads, notes, and refusals in our words and YCSB's.

use crate::bindings::Binding;
use crate::plan::*;
use dyno_config::client::ClientConfig;
use dyno_types::secret::mask_arguments;
use proptest::prelude::*;
use std::path::Path;

fn arguments(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn command(line: &str) -> YcsbCommand {
    match parse(&arguments(line)) {
        Ok(Invocation::Command(command)) => *command,
        other => panic!("{line}: {other:?}"),
    }
}

fn refusal(line: &str) -> YcsbError {
    match parse(&arguments(line)) {
        Err(error) => error,
        Ok(asked) => panic!("{line}: {asked:?}"),
    }
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_usual_command_line() {
    let c = command("run redis -s -threads 8 -target 5000 -P workloads/workloadb -p redis.host=h -l first");
    assert_eq!((c.mode, c.binding), (Mode::Run, Binding::Redis));
    let get = |key| c.settings.get(key).map(|s| format!("{} {}", s.value, s.source)).unwrap_or_default();
    assert_eq!(get("threadcount"), "8 -threads");
    assert_eq!(get("target"), "5000 -target");
    assert_eq!(get("status"), "true -s");
    assert_eq!(get("label"), "first -l");
    assert_eq!(get("redis.host"), "h -p");
    assert_eq!(get("readproportion"), "0.95 built-in workloads/workloadb:6");
    assert_eq!(get("dotransactions"), "true run");
    assert_eq!(get("db"), "site.ycsb.db.RedisClient redis");
    assert_eq!(c.notes, Vec::<String>::new());
    assert_eq!(c.extras, Extras::default());
    let load = command("load basic -P workloads/workloada");
    assert_eq!(ClientConfig::from_settings(&load.settings).unwrap().operations, Some(1000));
    assert_eq!(load.settings.text_of("dotransactions"), Some("false"));
}

#[test]
fn precedence() {
    let folder = tempfile::tempdir().unwrap();
    let one = file(folder.path(), "one", "workload=core\nfieldcount=1\ntarget=1\ntable=one\n");
    let two = file(folder.path(), "two", "fieldcount=2\ntarget=2\n");
    let c = command(&format!("run basic -p target=9 -P {one} -P {two} -p k=a=b -threads 2 -p threadcount=3"));
    let text = |key| c.settings.text_of(key).unwrap();
    assert_eq!((text("fieldcount"), text("target"), text("table")), ("2", "9", "one"));
    assert_eq!((text("k"), text("threadcount")), ("a=b", "3"));
    assert_eq!(c.settings.get("fieldcount").unwrap().source.to_string(), format!("{two}:1"));
    let c = command(&format!("run basic -P {two} -P {one} -p threadcount=3 -threads 2"));
    assert_eq!((c.settings.text_of("fieldcount"), c.settings.text_of("threadcount")), (Some("1"), Some("2")));
}

#[test]
fn files_come_before_built_in_workloads() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("workloads")).unwrap();
    let path = file(folder.path(), "workloads/workloada", "workload=core\nrecordcount=7\n");
    let c = command(&format!("load basic -P {path}"));
    assert_eq!((c.settings.text_of("recordcount"), c.notes.len()), (Some("7"), 0));
    let gone = path.replace("workloada", "workloadb");
    let c = command(&format!("load basic -P {gone}"));
    assert_eq!(c.settings.text_of("recordcount"), Some("1000"));
    assert_eq!(c.notes, [format!("-P {gone}: no such file; the built-in workloads/workloadb is used")]);
    let text = refusal(&format!("load basic -P {}", path.replace("workloada", "workloadz"))).to_string();
    assert!(text.contains("no such file; did you mean workloads/workloada"), "{text}");
}

#[test]
fn the_command_decides_the_phase() {
    let c = command("load basic -P workloada -t -p dotransactions=true");
    assert_eq!(c.settings.text_of("dotransactions"), Some("false"));
    assert_eq!(c.notes[0], "-t has no effect: the command is load");
    assert_eq!(c.notes[1], "-p: dotransactions=true has no effect: the command is load");
    assert!(command("load basic -P workloada -load").notes.is_empty());
}

#[test]
fn db_wins_over_the_binding_but_not_from_a_file() {
    let c = command("run basic -P workloada -db com.yahoo.ycsb.db.RedisClient");
    assert_eq!(c.binding, Binding::Redis);
    assert!(c.notes[0].contains("wins over the binding basic"), "{:?}", c.notes);
    assert_eq!(command("run basic -P workloada -p db=site.ycsb.db.RedisClient").binding, Binding::Redis);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "w", "workload=core\ndb=site.ycsb.db.RedisClient");
    let c = command(&format!("run basic -P {path}"));
    assert_eq!((c.binding, c.settings.text_of("db")), (Binding::Basic, Some("site.ycsb.BasicDB")));
}

#[test]
fn our_own_options_and_the_wrappers() {
    let c = command(
        "run null -P workloada --out=a=b --json --quiet --compat-exit -cp x.jar -jvm-args=-Xmx4g -jvm-args -Xss1m",
    );
    let out = Some("a=b".into());
    assert_eq!(c.extras, Extras { compat_exit: true, out, json: true, quiet: true, ..Extras::default() });
    assert_eq!(c.notes.len(), 3);
    assert_eq!(c.notes[0], "-cp is ignored: there is no Java here");
    assert!(command("--no-out -s run null -P workloada").extras.no_out);
    assert!(command("--no-monitor run null -P workloada").extras.no_monitor);
    assert!(wants_compat_exit(&arguments("bench x --compat-exit")));
}

#[test]
fn help_and_shell() {
    for line in ["-h", "help", "run --help", "run redis -P workloada -?", "shell basic -help"] {
        assert_eq!(parse(&arguments(line)).unwrap(), Invocation::Help, "{line}");
    }
    let c = command("shell basic -table t -p basicdb.verbose=false");
    assert_eq!((c.mode, c.settings.text_of("table")), (Mode::Shell, Some("t")));
    assert!(c.settings.get("dotransactions").is_none());
    assert_eq!(refusal("shell basic -threads 4").to_string(), "shell does not take -threads");
    assert_eq!(refusal("run basic -P workloada -table t").to_string(), "run does not take -table");
}

#[test]
fn notes_on_properties() {
    let c =
        command("run redis -P workloada -p operations=5 -p mongodb.url=x -p redis.hots=h -p dyno.pipeline=4");
    assert_eq!(
        c.notes,
        [
            "-p: unknown property \"operations\", which has no effect; did you mean operationcount?",
            "-p: unknown property \"redis.hots\", which has no effect; did you mean redis.host?",
        ]
    );
    let c = command("run redis -P workloada -p redis.password=hunter2 -p redis.uri=redis://:hunter3@h");
    assert_eq!(c.notes.len(), 2);
    assert!(c.notes[0].contains("redis.password=***") && c.notes[0].contains("$DYNO_REDIS_PASSWORD"));
    assert!(!c.notes.concat().contains("hunter"));
    let shown =
        mask_arguments(&arguments("run -p redis.password=hunter2 -p redis.uri=redis://:hunter3@h -s"))
            .join(" ");
    assert_eq!(shown, "run -p redis.password=*** -p redis.uri=redis://:***@h -s");
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "w", "workload=core\n\ndelayedSeries=1\nredis.password=x");
    let notes = command(&format!("run redis -P {path}")).notes;
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].starts_with(&format!("{path}:3: unknown property")) && notes[0].ends_with("delayedseries?")
    );
}

#[test]
fn refusals_in_both_languages() {
    for (line, ours, original, exit) in [
        (
            "",
            "no command: expected load",
            Some("At least one argument specifying a workload is required."),
            0,
        ),
        ("rnu redis", "unknown command \"rnu\"; did you mean run?", None, 2),
        ("run", "run needs a binding, as in: run redis; accepted: redis, mongodb", None, 2),
        ("run reddis", "unknown binding \"reddis\"; did you mean redis?", None, 2),
        ("run mongdb", "unknown binding \"mongdb\"; did you mean mongodb?", None, 2),
        (
            "run redis -db site.ycsb.db.MongoDbCleint",
            "-db: unknown binding \"site.ycsb.db.MongoDbCleint\"; did",
            None,
            0,
        ),
        (
            "run redis -threads",
            "-threads needs a value: a whole",
            Some("Missing argument value for -threads."),
            0,
        ),
        ("run redis -p", "-p needs a value: key=value", Some("Missing argument value for -p"), 0),
        ("run redis -threads four", "-threads four: expected a whole number, 1 to 100000", None, 1),
        ("run redis -threads 0", "-threads 0: expected", None, 1),
        ("run redis -target 0.5", "-target 0.5: expected a whole number of operations", None, 1),
        ("run redis -target -s", "-target -s: expected", None, 1),
        (
            "run redis -p x",
            "-p x: expected key=value",
            Some("Argument '-p' expected to be in key=value format (e.g., -p operationcount=99999)"),
            0,
        ),
        (
            "run redis -thread 4",
            "unknown option \"-thread\"; did you mean -threads?",
            Some("Unknown option -thread"),
            0,
        ),
        (
            "run redis --jsn",
            "unknown option \"--jsn\"; did you mean --json?",
            Some("Unknown option --jsn"),
            0,
        ),
        (
            "run redis workloada",
            "\"workloada\" belongs to no option",
            Some(
                "An argument value without corresponding argument specifier (e.g., -p, -s) was found. \
                 We expected an argument specifier and instead found workloada",
            ),
            0,
        ),
        ("run redis -P none", "-P none: no such file", Some("Unable to open the properties file none"), 0),
        ("run redis -P /", "-P /: ", Some("Unable to open the properties file /"), 0),
        (
            "run redis -p redis.host=h",
            "workload is not set: give -P FILE",
            Some("Missing property: workload\nFailed check required properties."),
            0,
        ),
    ] {
        let error = refusal(line);
        let text = error.to_string();
        assert!(text.starts_with(ours), "{line}: {text}");
        assert_eq!(error.original().as_deref(), original, "{line}");
        assert_eq!(error.as_original().exit, exit, "{line}");
    }
}

#[test]
fn refusals_that_ycsb_does_not_word() {
    for (rest, ours) in [
        ("--out x --no-out", "--out and --no-out exclude each other"),
        ("--out=", "--out needs a value: a directory"),
        ("-p workload=Rest", "-p workload=Rest: expected site.ycsb.workloads.CoreWorkload"),
    ] {
        let error = refusal(&format!("run redis -P workloada {rest}"));
        assert!(error.to_string().starts_with(ours), "{error}");
        let original = error.as_original();
        assert!(original.exit == 0 && original.message.is_none_or(|m| m.contains("--out")), "{rest}");
    }
}

#[test]
fn faults_of_files_name_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "w", "a=1\nb=\\u12");
    assert!(
        refusal(&format!("run basic -P {path}")).to_string().starts_with(&format!("{path}:2: \\u without"))
    );
}

fn word() -> impl Strategy<Value = String> {
    "(load|run|shell|redis|basic|-p|-P|-t|-s|a=b|workloada|--out|.{0,6})"
}

proptest! {
    #[test]
    fn no_arguments_panic(words in proptest::collection::vec(word(), 0..9)) {
        if let Err(error) = parse(&words) {
            prop_assert!(!error.to_string().is_empty());
            let _ = error.as_original();
        }
        let _ = mask_arguments(&words);
    }
}
