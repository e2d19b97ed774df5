//! Commands that are killed at random moments: once `dyno stop --left` has looked after them, nothing of theirs is left.
//! `KILLS=20` kills each of them so many times.

use dyno_testkit::program;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const COMMANDS: [&str; 6] = [
    "run spawn:redis --records 500 -d 3s --warmup 0s --out run",
    "run sqlite: --records 500 -d 3s --warmup 0s --out run",
    "run x.yaml --out o",
    "prove failover redis --rounds 1 --out proof",
    "prove ingest sqlite:a.db --duration 3s --out proof",
    "run null: --versus null: -u 1 -d 2s --warmup 0s --out v",
];

const YAML: &str = "server: {kind: redis, topology: replicated, replicas: 1, data: {path: data}}\n\
                    workload: {ycsb: {records: 500}}\nphases: {measure: {duration: 3s, warmup: 0s}}\n";

/// Folders of one command: what it writes, its temporary files, and what it keeps of its own.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        ["tmp", "work", "work/data", "state"]
            .iter()
            .for_each(|name| fs::create_dir(place.path(name)).unwrap());
        fs::write(place.path("work/x.yaml"), YAML).unwrap();
        place
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    fn command(&self, text: &str) -> Command {
        let mut command = Command::new(program());
        command.args(text.split(' ')).current_dir(self.path("work")).stdin(Stdio::null());
        command.env("TMPDIR", self.path("tmp")).env("DYNO_STATE", self.path("state/dyno"));
        command
    }

    fn run(&self, message: &str) -> Output {
        self.command(message).output().unwrap()
    }

    /// Processes that work in its folders, or have one in their command line or environment, with their command lines.
    fn processes(&self) -> Vec<String> {
        let root = self.path("").to_string_lossy().trim_end_matches('/').to_owned();
        let mut found = Vec::new();
        for pid in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = pid.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let text = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let of = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', " ");
            let own = fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&root));
            let (message, environment) = (of(&text("cmdline")), of(&text("environ")));
            // What has ended and waits to be looked after has no command line.
            if (own || message.contains(&root) || environment.contains(&root)) && !message.is_empty() {
                found.push(format!("{pid} {message}"));
            }
        }
        found
    }

    /// Temporary folders, data folders and marks, and entries of the list of journals.
    fn left(&self) -> Vec<String> {
        let listed =
            |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let named = |path: PathBuf| path.display().to_string();
        let mut left: Vec<String> = listed(&self.path("tmp")).map(named).collect();
        left.extend(listed(&self.path("work/data")).map(named));
        left.extend(listed(&self.path("state/dyno/journals")).map(named));
        left
    }
}

#[test]
fn nothing_is_left_of_a_command_that_is_killed() {
    if dyno_databases::spawn::find_server(Some("redis")).is_none() {
        return dyno_testkit::skip("kill_sweep");
    }
    let kills: u64 = std::env::var("KILLS").map_or(2, |kills| kills.parse().unwrap());
    let mut put_back = 0;
    for (number, message) in COMMANDS.into_iter().enumerate() {
        for kill in 0..kills {
            let place = Place::new();
            // From before the first change to the middle of the load, spread evenly.
            let after = Duration::from_millis(40 + (kill * 1_900 / kills) + 37 * number as u64);
            let mut command = place.command(message);
            let mut child =
                command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
            std::thread::sleep(after);
            let _ = child.kill();
            child.wait().unwrap();
            let told = place.run("stop --left");
            let said = String::from_utf8_lossy(&told.stderr).into_owned();
            let context = format!("{message}, killed after {after:?}: {:?}\n{said}", told.status.code());
            assert_eq!(told.status.code(), Some(0), "{context}");
            put_back += said.matches("put back").count() + said.matches(": removed").count();
            let begun = Instant::now();
            // The kernel ends what it was asked to end with dyno; that takes a moment.
            while !place.processes().is_empty() && begun.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(20));
            }
            assert_eq!(place.processes(), Vec::<String>::new(), "{context}");
            // A temporary folder that does not say yet whose it is stays for a minute.
            let said_nothing = |path: &String| {
                let journal = fs::read_to_string(Path::new(path).join("undo.jsonl")).unwrap_or_default();
                Path::new(path).starts_with(place.path("tmp")) && !journal.contains("\"undo\"")
            };
            let left: Vec<String> = place.left().into_iter().filter(|path| !said_nothing(path)).collect();
            assert_eq!(left, Vec::<String>::new(), "{context}");
        }
    }
    assert!(put_back > 0, "every command was killed before it had changed anything");
}
