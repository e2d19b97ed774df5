//! A planted password, searched for in all that dyno writes, prints and hands to its children.
//!
//! The user's own words are the user's: a URI on dyno's command line is there for all to see, which is why a password can come
//! from a file or the environment. No other user may see what dyno makes of it.

use dyno_databases::registry;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_testkit::{Dyno, RedisProcess, finish, skip, stderr, stdout};
use dyno_types::bson::{self, kind};
use dyno_workload::Workload;
use dyno_workload::sysbench_mongodb::{SysbenchConfig, SysbenchRun};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SECRET: &str = "pl4nted-Pa55word";

/// Files below a folder that hold the secret, but for those that the user wrote.
fn holding(folder: &Path, own: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let users = path.file_name().is_some_and(|name| own.iter().any(|own| name == *own));
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && !users {
                let bytes = std::fs::read(&path).unwrap();
                if bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
                    found.push(path.display().to_string());
                }
            }
        }
    }
    found
}

/// Command lines and environments of processes below `parent` that have the secret. Between fork and exec a child still has the
/// line of its parent: that is nothing it was told.
fn told(parent: u32) -> Vec<String> {
    let mut parents = BTreeMap::new();
    for pid in std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok())
    {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let of = stat.rfind(')').and_then(|at| stat[at + 2..].split(' ').nth(1)?.parse::<u32>().ok());
        parents.insert(pid, of.unwrap_or(0));
    }
    let below = |pid: &u32| {
        let mut at = *pid;
        for _ in 0..32 {
            at = *parents.get(&at).unwrap_or(&0);
            if at == parent {
                return true;
            }
        }
        false
    };
    let line = |pid: u32| {
        let read = |name| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let words = read("cmdline");
        // A hook has the words that its file gives it.
        let is_hook = [&b"sh\0-c\0"[..], b"test\0"].iter().any(|hook| words.starts_with(hook));
        let words = if is_hook { Vec::new() } else { words };
        String::from_utf8_lossy(&[words, read("environ")].concat()).into_owned()
    };
    parents
        .iter()
        .filter(|(pid, _)| below(pid))
        .map(|(pid, of)| (line(*pid), of))
        .filter(|(told, of)| told.contains(SECRET) && *told != line(**of))
        .map(|(told, _)| told)
        .collect()
}

/// A command that ends with one of `codes`.
fn run(dyno: &Dyno, words: &[&str], codes: &[i32]) -> Output {
    let output = typed(dyno, words);
    dyno_testkit::assert_exit(&output, codes);
    output
}

/// A command that applies a load.
fn ran(dyno: &Dyno, words: &[&str]) -> Output {
    let output = typed(dyno, words);
    dyno.assert_ran(&output);
    output
}

/// Runs to the end, and looks at children meanwhile and at all words afterwards.
fn typed(dyno: &Dyno, words: &[&str]) -> Output {
    let mut command = dyno.command(words);
    command
        .env("DYNO_TEST_SECRET", SECRET)
        .env("DYNO_REDIS_PASSWORD", SECRET)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let (pid, over) = (child.id(), Arc::new(AtomicBool::new(false)));
    let ends = over.clone();
    let watch = std::thread::spawn(move || {
        let mut seen = Vec::new();
        while !ends.load(Ordering::Relaxed) {
            seen.extend(told(pid));
            std::thread::sleep(Duration::from_millis(10));
        }
        seen
    });
    let output = finish(child);
    over.store(true, Ordering::Relaxed);
    assert_eq!(watch.join().unwrap(), Vec::<String>::new(), "{words:?}: a child was told");
    for text in [stdout(&output), stderr(&output)] {
        assert!(!text.contains(SECRET), "{words:?}: {text}");
    }
    output
}

#[test]
fn a_planted_password_is_nowhere() {
    let Some(server) = RedisProcess::start(&[&format!("--requirepass {SECRET}")]) else {
        return skip("planted secrets");
    };
    let port = server.uri().rsplit(':').next().unwrap().to_owned();
    let uri = format!("redis://:{SECRET}@127.0.0.1:{port}");
    let wrong = format!("redis://:{SECRET}-not@127.0.0.1:{port}");
    let dyno = Dyno::new();
    let base = ["--records", "100", "--duration", "500ms", "--warmup", "0s", "--quiet"];
    ran(&dyno, &[&["run", &uri, "--out", "run"][..], &base].concat());
    run(&dyno, &[&["run", &wrong, "--out", "wrong"][..], &base].concat(), &[3]);
    let file = format!(
        "target: {uri}\nworkload: {{ycsb: {{records: 100}}}}\nclient: {{workers: 2}}\n\
         hooks: {{before_run: [[sh, -c, 'test -z \"$DYNO_REDIS_PASSWORD\"']]}}\n\
         phases: {{measure: {{duration: 400ms, warmup: 0s, users: 4}}}}\nrepetitions: 2\n"
    );
    std::fs::write(dyno.path("x.yaml"), file).unwrap();
    run(&dyno, &["plan", "x.yaml"], &[0]);
    ran(&dyno, &["run", "x.yaml", "--out", "experiment", "--quiet"]);
    std::fs::write(dyno.path("y.yaml"), format!("target: {wrong}\nworkload: {{ycsb: {{records: 100}}}}\n"))
        .unwrap();
    run(&dyno, &["run", "y.yaml", "--out", "failed", "--quiet"], &[1, 3, 5]);
    std::fs::write(
        dyno.path("w.properties"),
        format!("redis.password={SECRET}\nworkload=core\nrecordcount=100\noperationcount=200\n"),
    )
    .unwrap();
    let host = format!("redis.port={port}");
    for phase in ["load", "run"] {
        let words =
            ["ycsb", phase, "redis", "-P", "w.properties", "-p", "redis.host=127.0.0.1", "-p", &host, "-s"];
        run(&dyno, &words, &[0]);
    }
    run(
        &dyno,
        &[
            "prove",
            "ingest",
            &uri,
            "-n",
            "200",
            "--copies",
            "1",
            "--require-rate",
            "1",
            "--least",
            "0s",
            "--quiet",
            "--out",
            "proof",
        ],
        &[0],
    );
    run(
        &dyno,
        &["prove", "ingest", &wrong, "-n", "200", "--copies", "1", "--quiet", "--out", "no-proof"],
        &[3],
    );
    run(&dyno, &["run", &format!("rdis://:{SECRET}@h"), "--out", "scheme"], &[2]);
    run(&dyno, &["run", &format!("{uri}?nothing=1"), "--out", "option"], &[2]);
    for format in ["text", "html", "md", "json", "csv", "ycsb"] {
        ran(&dyno, &["report", "run", "--format", format]);
    }
    ran(&dyno, &["report", "experiment", "--format", "html"]);
    ran(&dyno, &["explain", "run"]);
    run(&dyno, &["compare", "run", "experiment"], &[0, 1, 2, 4, 5]);
    run(&dyno, &["list", "."], &[0]);
    run(&dyno, &["status", "experiment"], &[0]);
    assert_eq!(holding(dyno.folder.path(), &["x.yaml", "y.yaml", "w.properties"]), Vec::<String>::new());
    // The search finds what there is to be found.
    std::fs::write(dyno.path("z"), format!("a{SECRET}b")).unwrap();
    assert_eq!(holding(dyno.folder.path(), &["x.yaml", "y.yaml", "w.properties"]).len(), 1);
}

/// Forms of a password that no name gives away, or that no reader understands: nothing of it reaches a directory, a page,
/// a plan, an error or a child.
#[test]
fn a_password_is_hidden_however_it_is_given() {
    let Some(server) = RedisProcess::start(&[&format!("--requirepass {SECRET}")]) else {
        return skip("forms of secrets");
    };
    let port = server.uri().rsplit(':').next().unwrap().to_owned();
    let dyno = Dyno::new();
    let place = format!("@127.0.0.1:{port}");
    let rest =
        "workload: {ycsb: {records: 100}}\nphases: {measure: {duration: 300ms, warmup: 0s, users: 2}}\n";
    let escaped: String = SECRET.chars().map(|c| format!("\\x{:02x}", c as u32)).collect();
    let forms = [
        ("quoted", format!("target: \"redis://:{SECRET}{place}\"\n{rest}")),
        ("folded", format!("target: >-\n  redis://:{SECRET}{place}\n{rest}")),
        ("escaped", format!("target: \"redis://:{escaped}{place}\"\n{rest}")),
        ("variables", format!("variables: {{pw: {SECRET}}}\ntarget: 'redis://:{{pw}}{place}'\n{rest}")),
        (
            "anchor",
            format!(
                "name: x\nvariables: {{pw: &it {SECRET}, other: *it}}\ntarget: 'redis://:{{other}}{place}'\n{rest}"
            ),
        ),
        (
            "hooks",
            format!(
                "# {SECRET}\ntarget: 'redis://:{SECRET}{place}'\nhooks: {{before_run: [[test, {SECRET}, '=', {SECRET}]], \
                 after_run: [[sh, -c, 'exit 3', '-x{SECRET}']]}}\n{rest}"
            ),
        ),
    ];
    let mut own = Vec::new();
    for (name, text) in &forms {
        let file = format!("{name}.yaml");
        std::fs::write(dyno.path(&file), text).unwrap();
        for words in [&["plan", &file][..], &["plan", &file, "--json"]] {
            run(&dyno, words, &[0]);
        }
        run_hooks(&dyno, &file, name);
        run(&dyno, &["report", name, "--format", "html", "--out", &format!("{name}.html")], &[0, 1, 2]);
        run(&dyno, &["status", name], &[0]);
        own.push(file);
    }
    // A mapping of `--set`, whole, broken, and with an error in it.
    std::fs::write(dyno.path("own.yaml"), format!("server: {{kind: redis}}\n{rest}")).unwrap();
    let options = format!("server.options={{requirepass: \"{SECRET}\", masterauth: {SECRET}}}");
    run(&dyno, &["plan", "own.yaml", "--json", "--set", &options], &[0]);
    ran(&dyno, &["run", "own.yaml", "--quiet", "--out", "mapping", "--set", &options]);
    let wrong = |words: &[&str]| {
        let output = run(&dyno, words, &[2, 3]);
        assert!(!stderr(&output).is_empty(), "{words:?}: nothing is said");
    };
    wrong(&["plan", "own.yaml", "--set", &options.replace('}', "")]);
    wrong(&["plan", "own.yaml", "--set", &format!("server.options={{requirepass: [{SECRET}]}}")]);
    wrong(&["plan", "own.yaml", "--set", &format!("server.optoins={{requirepass: {SECRET}}}")]);
    wrong(&["plan", "own.yaml", "--set", &format!("target=redis:/:{SECRET}@h")]);
    // What is meant as a URI and is none.
    for broken in [
        "redis:/:S@h:1",
        "redis//:S@h:1",
        "me:S@h:1",
        "redis:\\\\:S@h:1",
        "rediss:me:S@h:x",
        "mongodb//me:S@h:1/d",
    ] {
        let uri = broken.replace('S', SECRET);
        wrong(&["run", &uri, "--out", "broken"]);
        wrong(&["top", &uri]);
        wrong(&["prove", "ingest", &uri, "--out", "broken"]);
        wrong(&["pocdriver", "-c", &uri]);
        wrong(&["ycsb", "load", "mongodb", "-p", &format!("mongodb.url={uri}"), "-P", "workloads/workloada"]);
        wrong(&["ycsb", "load", "redis", "-p", &format!("redis.uri={uri}"), "-P", "workloads/workloada"]);
    }
    // A property without `=`, an unknown option, and a word where none belongs.
    wrong(&["ycsb", "load", "redis", "-P", "workloads/workloada", "-p", &format!("redis.password {SECRET}")]);
    wrong(&["run", "--property", &format!("redis.password {SECRET}"), "null:"]);
    wrong(&["run", "null:", &format!("--pasword={SECRET}")]);
    wrong(&["run", "null:", &format!("redis://:{SECRET}{place}")]);
    let files: Vec<&str> = own.iter().map(String::as_str).collect();
    assert_eq!(holding(dyno.folder.path(), &files), Vec::<String>::new());
}

/// Runs an experiment; the one whose last hook fails, fails.
fn run_hooks(dyno: &Dyno, file: &str, out: &str) {
    let words = ["run", file, "--out", out, "--quiet"];
    if out == "hooks" {
        run(dyno, &words, &[5])
    } else {
        ran(dyno, &words)
    };
}

/// Types `types` when the password is asked for; the exit code, and all that the terminal showed.
fn asked(dyno: &Dyno, words: &[&str], types: &str) -> (u32, String) {
    let size = PtySize { rows: 24, cols: 120, pixel_width: 0, pixel_height: 0 };
    let pty = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(words);
    command.cwd(dyno.folder.path());
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let (mut reader, mut writer) =
        (pty.master.try_clone_reader().unwrap(), pty.master.take_writer().unwrap());
    let (mut shown, mut typed, mut buffer) = (Vec::new(), false, [0; 4096]);
    while let Ok(n @ 1..) = reader.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..n]);
        if !typed && String::from_utf8_lossy(&shown).contains("password of redis://") {
            typed = true;
            writer.write_all(types.as_bytes()).unwrap();
        }
    }
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(typed, "no password was asked for: {shown}");
    (child.wait().unwrap().exit_code(), shown)
}

#[test]
fn a_password_comes_from_environment_file_or_prompt() {
    let Some(server) = RedisProcess::start(&[&format!("--requirepass {SECRET}")]) else {
        return skip("sources of secrets");
    };
    let uri = server.uri();
    let dyno = Dyno::new();
    std::fs::write(dyno.path("pw"), format!("{SECRET}\n")).unwrap();
    let (env, file) = ("env:DYNO_TEST_SECRET", "file:pw");
    let base = ["--records", "100", "--duration", "500ms", "--warmup", "0s", "--quiet"];
    for (from, out) in [(env, "by-env"), (file, "by-file")] {
        let run_words = ["run", &uri, "--password-from", from, "--out", out];
        let output = ran(&dyno, &[&run_words[..], &base].concat());
        assert!(!stderr(&output).contains("command line"), "{}", stderr(&output));
    }
    let by_prompt = [&["run", &uri, "--password-from", "prompt", "--out", "by-prompt"][..], &base].concat();
    assert_eq!(asked(&dyno, &by_prompt, "\x03").0, 130, "Ctrl-C at the prompt");
    let (code, shown) = asked(&dyno, &by_prompt, &format!("{SECRET}\n"));
    assert!(!shown.contains(SECRET), "{shown}");
    let status =
        <std::process::ExitStatus as std::os::unix::process::ExitStatusExt>::from_raw((code as i32) << 8);
    dyno.assert_ran(&Output { status, stdout: shown.into_bytes(), stderr: Vec::new() });
    run(&dyno, &["top", &uri, "--password-from", env, "-n", "1", "--interval", "100ms"], &[0]);
    let claim =
        ["-n", "200", "--copies", "1", "--require-rate", "1", "--least", "0s", "--quiet", "--out", "proof"];
    run(&dyno, &[&["prove", "ingest", &uri, "--password-from", file][..], &claim].concat(), &[0]);
    let port = format!("redis.port={}", uri.rsplit(':').next().unwrap());
    let mix = ["-p", "redis.host=127.0.0.1", "-p", &port, "-p", "recordcount=50", "-p", "workload=core"];
    run(&dyno, &[&["ycsb", "load", "redis"][..], &mix].concat(), &[0]);
    for (format, name) in [("csv", "r.csv"), ("xlsx", "r.xlsx"), ("ycsb", "r.txt")] {
        run(&dyno, &["export", "by-env", "--format", format, "--out", name], &[0]);
    }
    // No server listens there: no server is told.
    let absent = ["run", "mongodb://me@127.0.0.1:1/db", "--password-from", env, "--out", "nobody"];
    run(&dyno, &absent, &[3]);
    for (words, why) in [
        (&["run", &uri, "--password-from", "env:DYNO_NOT_THERE"][..], "no such variable"),
        (&["run", &uri, "--password-from", "hunter2"], "expected env:NAME, file:PATH or prompt"),
        (&["run", "sqlite:x.db", "--password-from", env], "expected a target that takes a login"),
        (&["run", "--password-from", env], "expected a target"),
        (&["run", "lab/operational-laws", "--password-from", env], "has its own"),
        (&["run", "mongodb://127.0.0.1:1/db", "--password-from", env], "mongodb://USER@HOST"),
    ] {
        let said = stderr(&run(&dyno, words, &[2]));
        assert!(said.contains(why), "{words:?}: {said}");
    }
    assert_eq!(holding(dyno.folder.path(), &["pw"]), Vec::<String>::new());
}

/// A user who ends dyno at the prompt gets a terminal back that shows what is typed.
#[test]
fn a_signal_at_the_prompt_leaves_the_terminal_as_it_was() {
    use rustix::termios::{LocalModes, tcgetattr};
    let dyno = Dyno::new();
    for name in ["TERM", "INT", "HUP"] {
        let pty = native_pty_system().openpty(PtySize::default()).unwrap();
        let terminal = std::fs::File::open(pty.master.tty_name().unwrap()).unwrap();
        let shows = || tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ECHO);
        assert!(shows());
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_dyno"));
        command.args(["run", "redis://127.0.0.1:1", "--password-from", "prompt"]);
        command.cwd(dyno.folder.path());
        let mut child = pty.slave.spawn_command(command).unwrap();
        let begun = Instant::now();
        while shows() {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing is asked for");
            std::thread::sleep(Duration::from_millis(5));
        }
        dyno_testkit::signal(child.process_id().unwrap(), name);
        assert_eq!(child.wait().unwrap().exit_code(), 130, "{name}");
        assert!(shows(), "{name}");
    }
}

/// Passwords of servers that an experiment describes: of a cluster with a fault, and of bexhoma's flags.
#[test]
fn passwords_of_servers_that_dyno_starts_are_nowhere() {
    if dyno_databases::spawn::find_server(Some("redis")).is_none() {
        return skip("planted secrets of servers that dyno starts");
    }
    let dyno = Dyno::new();
    let file = format!(
        "server: {{kind: redis, topology: cluster, members: 3, stop_within: 5s, options: {{requirepass: {SECRET}, \
         masterauth: {SECRET}, user: 'other on >{SECRET} ~* +@all'}}}}\nworkload: {{ycsb: {{records: 100}}}}\n\
         phases: {{measure: {{duration: 2s, warmup: 0s, users: 4}}}}\n\
         faults:\n- {{kind: pause, on: server 1, at: 500ms, for: 200ms}}\n"
    );
    std::fs::write(dyno.path("x.yaml"), file).unwrap();
    run(&dyno, &["plan", "x.yaml"], &[0]);
    let told = dyno.run(&["plan", "x.yaml", "--json"]);
    assert!(!stdout(&told).contains(SECRET), "{}", stdout(&told));
    ran(&dyno, &["run", "x.yaml", "--out", "cluster", "--quiet"]);
    let set = format!("server.options.requirepass={SECRET}");
    let flags = [
        "bexhoma",
        "ycsb",
        "-dbms",
        "Redis",
        "-xwl",
        "a",
        "-xtb",
        "500",
        "-nlt",
        "2",
        "-nbt",
        "2",
        "-m",
        "--local",
        "--scale",
        "1000",
        "--resultfolder",
        "results",
        "-q",
        "--set",
        &set,
    ];
    for mode in ["run", "load"] {
        dyno.assert_bexhoma_ran(&typed(&dyno, &[&flags[..], &[mode]].concat()));
    }
    for command in ["status", "localresults", "stop"] {
        run(&dyno, &["bexhoma", command, "--resultfolder", "results"], &[0]);
    }
    assert_eq!(holding(dyno.folder.path(), &["x.yaml"]), Vec::<String>::new());
}

/// A password in MongoDB's URI, right and wrong, through everything that takes one.
#[test]
fn a_password_of_mongod_is_nowhere() {
    let Some(mongod) = dyno_testkit::mongo::Mongo::from_path("mongod", &["--auth"]) else {
        return dyno_testkit::skip_because("planted secrets of mongod", "mongod is not on PATH");
    };
    let place = mongod.uri("test").trim_start_matches("mongodb://").split('/').next().unwrap().to_owned();
    let dyno = Dyno::new();
    // The first user is made without one.
    let content = SysbenchRun::new(&SysbenchConfig::default()).unwrap().content();
    let opened =
        registry::parse(&format!("mongodb://{place}/test")).unwrap().open(content, &|| false).unwrap();
    let admin = MongoAdmin::from_target(opened.as_ref()).unwrap();
    let made = admin.run_on("admin", &|out| {
        bson::put_string(out, "createUser", "me");
        bson::put_string(out, "pwd", SECRET);
        bson::put_head(out, kind::ARRAY, "roles");
        let list = bson::open(out);
        bson::put_item_head(out, kind::STRING, 0);
        out.extend_from_slice(&5_i32.to_le_bytes());
        out.extend_from_slice(b"root\0");
        bson::close(out, list);
    });
    made.unwrap();
    let uri = format!("mongodb://me:{SECRET}@{place}/bench?authSource=admin");
    let wrong = format!("mongodb://me:{SECRET}-not@{place}/bench?authSource=admin");
    let base = ["--records", "100", "--duration", "500ms", "--warmup", "0s", "--quiet"];
    ran(&dyno, &[&["run", &uri, "--out", "run"][..], &base].concat());
    run(&dyno, &[&["run", &wrong, "--out", "wrong"][..], &base].concat(), &[3]);
    let url = format!("mongodb.url={uri}");
    for phase in ["load", "run"] {
        let mix = [
            "-p",
            &url,
            "-p",
            "table=other",
            "-p",
            "recordcount=100",
            "-p",
            "operationcount=200",
            "-p",
            "workload=core",
        ];
        run(&dyno, &[&["ycsb", phase, "mongodb", "-s"][..], &mix].concat(), &[0]);
    }
    ran(&dyno, &["pocdriver", "-c", &uri, "-d", "2", "-t", "2", "-b", "20"]);
    let claim = ["-n", "200", "--copies", "1", "--require-rate", "1", "--least", "0s", "--quiet"];
    run(&dyno, &[&["prove", "ingest", &uri, "--out", "proof"][..], &claim].concat(), &[0]);
    run(&dyno, &[&["prove", "ingest", &wrong, "--out", "no-proof"][..], &claim].concat(), &[3]);
    run(&dyno, &["top", &uri, "-n", "1", "--interval", "100ms"], &[0]);
    assert_eq!(holding(dyno.folder.path(), &[]), Vec::<String>::new());
}
