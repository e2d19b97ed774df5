//! Whatever is read or counted has a bound: a file with a hole of gigabytes, a device without an end, a number that the user
//! has typed. Commands run with 3 GiB of address space, so that what is read without a bound ends them.

use dyno_testkit::{Dyno, program};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

/// A command under the limit, for a minute at most.
fn limited(dyno: &Dyno, words: &[&str]) -> Output {
    let script = "ulimit -v 3145728; ulimit -c 0; exec timeout -k 5 60 \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(program()).args(words).current_dir(dyno.folder.path());
    command.env("NO_COLOR", "1").env("DYNO_STATE", dyno.path("state")).output().unwrap()
}

/// A command is refused as a wrong configuration, with words on what was asked for.
fn refused(dyno: &Dyno, words: &[&str], because: &[&str]) {
    let said = ends(dyno, words, &[2]);
    assert!(because.iter().any(|word| said.contains(word)), "{words:?}: {said}");
}

/// A command ends by itself with one of these codes.
fn ends(dyno: &Dyno, words: &[&str], codes: &[i32]) -> String {
    let output = limited(dyno, words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code();
    let told = format!("{words:?}: {code:?} {:?}\n{said}", output.status.signal());
    assert!(code.is_some_and(|code| codes.contains(&code)), "{told}");
    said
}

/// A real run, in folders that are damaged one by one.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

#[test]
fn a_file_with_a_hole_ends_no_command() {
    let dyno = Dyno::new();
    let words = ["run", "null:", "-u", "1", "-d", "1s", "--warmup", "0s", "--out", "run", "--quiet"];
    let ran = dyno.run(&words);
    assert!(matches!(ran.status.code(), Some(0 | 5)), "{}", dyno_testkit::stderr(&ran));
    let mut files: Vec<String> = fs::read_dir(dyno.path("run"))
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    let monitored = fs::read_dir(dyno.path("run/monitor")).into_iter().flatten().flatten();
    files.extend(monitored.map(|entry| format!("monitor/{}", entry.file_name().into_string().unwrap())));
    assert!(
        ["intervals.jsonl", "totals.hlog", "events.jsonl"].iter().all(|file| files.contains(&(*file).into()))
    );
    for (at, file) in files.iter().enumerate() {
        let folder = format!("bad{at}");
        copy(&dyno.path("run"), &dyno.path(&folder));
        let open = fs::OpenOptions::new().write(true).open(dyno.path(&folder).join(file)).unwrap();
        open.set_len(20 << 30).unwrap();
        for words in [
            &["report", &folder][..],
            &["report", &folder, "--format", "html", "--out", "page.html"],
            &["explain", &folder],
            &["compare", "run", &folder],
            &["export", &folder, "--format", "csv", "--out", "out.csv"],
            &["history", &folder],
            &["list", "."],
        ] {
            // What a command does not read does not matter to it. On a busy host the run itself is invalid.
            let said = ends(&dyno, words, &[0, 2, 5]);
            assert!(!said.contains("out of memory"), "{words:?}: {file}: {said}");
        }
        fs::remove_dir_all(dyno.path(&folder)).unwrap();
    }
}

#[test]
fn a_device_without_an_end_is_read_up_to_its_bound() {
    let dyno = Dyno::new();
    fs::write(dyno.path("x.yaml"), "target: 'sim:'\nssh: {inventory: /dev/zero, clients: [a]}\n").unwrap();
    for words in [
        &["run", "redis://127.0.0.1:1", "--password-from", "file:/dev/zero"][..],
        &["run", "rediss://127.0.0.1:1?ca=/dev/zero"],
        &["run", "mongodb://127.0.0.1:1/?tls=true&tlsCAFile=/dev/zero"],
        &["run", "sim:", "-p", "fieldlengthhistogram=/dev/zero", "-p", "fieldlengthdistribution=histogram"],
        &["plan", "/dev/zero"],
        &["sample", "/dev/zero"],
        &["serve", ".", "--token-file", "/dev/zero"],
        &["import", "ycsb", "/dev/zero", "--out", "i"],
        &["import", "csv", "/dev/zero", "--out", "i", "--throughput", "ops", "--duration", "s"],
        &["import", "pocdriver", "/dev/zero", "--out", "i"],
        &["import", "sysbench-mongodb", "/dev/zero", "--out", "i"],
        &["doctor", "--diff", "/dev/zero", "/dev/zero"],
        &["run", "x.yaml", "--out", "o"],
        &["ycsb", "run", "basic", "-P", "/dev/zero"],
        &["sysbench-mongodb", "/dev/zero"],
    ] {
        refused(&dyno, words, &["longer than"]);
    }
}

#[test]
fn a_count_has_a_bound_before_anything_is_made_of_it() {
    let dyno = Dyno::new();
    let yaml = |name: &str, text: &str| {
        let measured = "phases: {measure: {duration: 1s, warmup: 0s}}\n";
        let rest = if text.contains("phases:") { "" } else { measured };
        fs::write(dyno.path(name), format!("target: 'sim:'\n{text}\n{rest}")).unwrap();
    };
    for (at, text) in [
        "client: {workers: 4000000000}",
        "client: {workers: 1025}",
        "client: {threads: 4000000000}",
        "client: {workers: 4000000000}\nphases: {measure: {workers: 1, duration: 1s}, load: {workers: 1}}",
        "phases: {measure: {users: 100001, duration: 1s}}",
        "phases: {measure: {duration: 1s}, load: {users: 4000000000}}",
        "phases: {measure: {duration: 1s}, load: {pipeline: 4000000000}}",
        "phases: {measure: {duration: 1s}, load: {batch: 4000000000}}",
        "strategy: {ladder: {to: 4000000000}}",
        "strategy: {repeat_until: {half_width: 0.01, at_most: 4000000000}}",
        &format!("require: [{}]", vec!["'errors < 1%'"; 10_001].join(", ")),
        &format!(
            "factors: {{seed: [{}]}}",
            (0..10_001).map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
        ),
    ]
    .iter()
    .enumerate()
    {
        let name = format!("x{at}.yaml");
        yaml(&name, text);
        refused(&dyno, &["plan", &name], &["expected", "more than"]);
        refused(&dyno, &["run", &name, "--out", &format!("o{at}")], &["expected", "more than"]);
    }
    let nested = "{$array: {length: 1000, of: ".repeat(8) + "{$int: [1, 9]}" + &"}}".repeat(8);
    let document = |name: &str, fields: &str| {
        let text = format!(
            "collections: {{c: {{count: 10, document: {{{fields}}}}}}}\noperations: {{read: {{find: c}}}}\n"
        );
        fs::write(dyno.path(name), text).unwrap();
    };
    document("nested.yaml", &format!("a: {nested}"));
    let many: Vec<String> = (0..26).map(|at| format!("f{at}: {{$string: 15728640}}")).collect();
    document("long.yaml", &many.join(", "));
    for words in [
        &["run", "sim:", "--threads", "4000000000", "-d", "1s"][..],
        &["run", "sim:?capacity=4000000000", "-d", "1s"],
        &["run", "sim:?capacity=1000001", "-d", "1s"],
        &["run", "sim:?growth=1e308", "-d", "1s"],
        &["run", "sim:?service=0", "-d", "1s"],
        &["run", "sim:", "--workload", "nested.yaml", "-d", "1s"],
        &["sample", "nested.yaml"],
        &["sample", "long.yaml"],
        &["run", "sqlite:a.db", "--field-length", "536870912", "-d", "1s"],
        &["prove", "ingest", "sqlite:a.db", "-t", "4000000000"],
        &["prove", "ingest", "sqlite:a.db", "--record-bytes", "4000000000"],
        &["prove", "ingest", "sqlite:a.db", "--batch", "4000000000"],
        &["prove", "ingest", "sqlite:a.db", "--indexes", "4000000000"],
        &["prove", "failover", "redis", "--threads", "4000000000"],
        &["wsf", "gated", "--dry-run", "--loop", "4000000000"],
        &["wsf", "gated", "--dry-run", "--loop", "1000", "--burst", "1000"],
    ] {
        refused(&dyno, words, &["expected", "at most", "longer than", "more than"]);
    }
    // At the bound it goes.
    ends(
        &dyno,
        &["run", "sim:?capacity=1000000", "-u", "1", "--ops", "2000", "--no-out", "--quiet"],
        &[0, 5],
    );
}
