//! Journals that a grammar makes: what `dyno stop` and `dyno resume` do of them touches nothing of the user's.
//!
//! `DYNO_JOURNALS=100000 cargo nextest run -p dyno-cli --test it journals_that_a_grammar_makes` tries so many; usually 2,000 are.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Tells the test that it runs in the namespaces.
const INSIDE: &str = "DYNO_JOURNALS_INSIDE";

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Things of the user's that no journal is to reach.
struct Canaries {
    root: PathBuf,
    processes: Vec<(Child, u64)>,
    /// A session whose leader has ended, and a process of it.
    orphan: (u32, u32),
}

/// Settings of the kernel that dyno knows how to put back.
const SETTINGS: [&str; 3] =
    ["/proc/sys/vm/swappiness", "/proc/sys/vm/dirty_ratio", "/proc/sys/net/core/somaxconn"];

impl Canaries {
    fn new(root: &Path) -> Canaries {
        for name in ["customers.data", "x.snapshot", "image-1", "y.new-7", "plain", "link-to"] {
            fs::create_dir_all(root.join("home").join(name)).unwrap();
            fs::write(root.join("home").join(name).join("kept"), name).unwrap();
        }
        fs::write(root.join("home/image-0"), "kept").unwrap();
        let sleeper = || Command::new("sleep").arg("3600").stdin(Stdio::null()).spawn().unwrap();
        let processes = (0..3).map(|_| sleeper()).map(|child| (started(child.id()), child));
        let script = "setsid sh -c 'sleep 3600 >/dev/null 2>&1 & echo $$ $!'";
        let told = Command::new("sh").args(["-c", script]).output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        let mut numbers = told.split_whitespace().map(|number| number.parse().unwrap());
        let orphan = (numbers.next().unwrap(), numbers.next().unwrap());
        let processes = processes.map(|(at, child)| (child, at)).collect();
        Canaries { root: root.to_owned(), processes, orphan }
    }

    /// What there is of them, to be compared.
    fn state(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        let mut folders = vec![self.root.join("home")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap().flatten() {
                let about = entry.metadata().unwrap();
                all.push(format!("{} {} {:o}", entry.path().display(), about.ino(), about.mode()));
                if about.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        all.sort();
        all.extend(self.processes.iter_mut().map(|(child, _)| format!("{:?}", child.try_wait().unwrap())));
        all.push(format!("{}", Path::new(&format!("/proc/{}/stat", self.orphan.1)).exists()));
        all.extend(SETTINGS.iter().map(|path| fs::read_to_string(path).unwrap_or_default()));
        all
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        for (child, _) in &mut self.processes {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn started(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat[stat.rfind(')').unwrap() + 1..].split_whitespace().nth(19).unwrap().parse().unwrap()
}

/// A path that a journal names: of the canaries, of the directory, or of neither, with detours.
fn path(random: &mut Random, canaries: &Canaries, directory: &Path) -> String {
    let home = canaries.root.join("home");
    let names = ["customers.data", "x.snapshot", "image-0", "image-1", "y.new-7", "plain", "plain/kept", ""];
    let plain = home.join(random.one_of(&names));
    let shown = |path: PathBuf| path.display().to_string();
    match random.below(9) {
        0 => shown(directory.join("link").join(random.one_of(&names))),
        1 => format!("{}/../home/{}", directory.display(), random.one_of(&names)),
        2 => shown(home.join("link-to").join("..").join(random.one_of(&names))),
        3 => (*random.one_of(&[
            "/",
            "/etc",
            "/dev/shm",
            "relative",
            "",
            "/proc/1",
            "/sys/fs/cgroup/dyno/1-redis-2",
        ]))
        .into(),
        4 => shown(directory.join("link")),
        5 => shown(canaries.root.clone()),
        _ => shown(plain),
    }
}

/// A line of a journal.
fn line(random: &mut Random, canaries: &Canaries, directory: &Path, id: usize) -> serde_json::Value {
    let (child, at) = random.one_of(&canaries.processes);
    let pid = *random.one_of(&[child.id(), canaries.orphan.0, std::process::id(), 1, 2, 0, u32::MAX]);
    let session = *random.one_of(&[child.id(), pid]);
    let at = *random.one_of(&[*at, 0, u64::MAX, started(std::process::id())]);
    let path = path(random, canaries, directory);
    let mut line = match random.below(12) {
        0 => serde_json::json!({"undo": "process", "pid": pid, "started": at, "session": session}),
        1 => serde_json::json!({"undo": "continue", "pid": pid, "started": at}),
        2 => serde_json::json!({"undo": "cgroup", "path": path}),
        3 => serde_json::json!({"undo": "mount", "path": path}),
        4 => serde_json::json!({"undo": "loop", "file": path}),
        5 => {
            serde_json::json!({"undo": "array", "device": *random.one_of(&["/dev/md/dyno-1", "/dev/md0", &path])})
        }
        6 => serde_json::json!({"undo": "table", "name": *random.one_of(&["dyno-1-2-3", "filter"])}),
        7 => serde_json::json!({"undo": "device", "name": "lo", "handle": *random.one_of(&["7abc:", "1:"])}),
        8 => serde_json::json!({"undo": "value", "path": *random.one_of(&SETTINGS), "old": "7"}),
        9 => return serde_json::json!({"data": path}),
        10 => serde_json::json!({"undo": "file", "path": path}),
        _ => serde_json::json!({"undo": "folder", "path": path}),
    };
    line["id"] = id.into();
    line
}

/// A journal's first line: a dyno that is no more, by whatever it says of host and boot.
fn owner(random: &mut Random, boot: &str) -> serde_json::Value {
    let mut owner = serde_json::json!({"owner": 4_194_302, "started": *random.one_of(&[1_u64, 77])});
    match random.below(5) {
        0 => {}
        1 => owner["boot"] = "another".into(),
        2 => owner["host"] = "0123456789abcdef01234567".into(),
        _ => owner["boot"] = boot.into(),
    }
    if random.below(3) > 0 {
        owner["journal"] = (*random.one_of(&["0123456789abcdef0123456789abcdef", "../../x", ""])).into();
    }
    owner
}

#[test]
fn journals_that_a_grammar_makes_reach_nothing() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let me = std::env::current_exe().unwrap();
    let namespaces = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let possible = Command::new("unshare").args(namespaces).arg("true").output();
    if !possible.is_ok_and(|told| told.status.success()) {
        return dyno_testkit::skip_because("journals that a grammar makes", "no namespaces can be made here");
    }
    let told = Command::new("unshare")
        .args(namespaces)
        .arg(me)
        .args(["--exact", "untrusted_journals::journals_that_a_grammar_makes_reach_nothing", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&told.stdout).into_owned() + &String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success() && said.contains("1 passed"), "{said}");
}

fn inside() {
    let count: usize = std::env::var("DYNO_JOURNALS").map_or(2_000, |count| count.parse().unwrap());
    let all = tempfile::tempdir().unwrap();
    let root = all.path().canonicalize().unwrap();
    let mut canaries = Canaries::new(&root);
    let directory = root.join("o");
    let made = dyno(&root, &["run", "x.yaml", "--out", "o", "--quiet"]);
    assert!(directory.join("experiment.json").is_file(), "{made}");
    symlink(root.join("home"), directory.join("link")).unwrap();
    symlink(root.join("home/plain"), root.join("home/link-to/plain")).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let before = canaries.state();
    let mut random = Random(20_261_128);
    let mut refused = 0;
    for round in 0..count {
        let lines = 1 + random.below(8);
        let below = *random.one_of(&["undo.jsonl", "runs/undo.jsonl", "hooks/undo.jsonl"]);
        let mut text = format!("{}\n", owner(&mut random, boot.trim()));
        for id in 1..=lines {
            text += &format!("{}\n", line(&mut random, &canaries, &directory, id));
        }
        let journal = directory.join(below);
        fs::create_dir_all(journal.parent().unwrap()).unwrap();
        fs::write(&journal, &text).unwrap();
        fs::set_permissions(&journal, Permissions::from_mode(0o600)).unwrap();
        // Both commands do this first; now and then the whole command is typed.
        match round % 200 {
            0 => drop(dyno(&root, &["stop", "o"])),
            100 => drop(dyno(&root, &["resume", "o"])),
            _ => {
                let report = dyno_experiment::clean_up(&directory);
                refused += report.refused.len();
            }
        }
        assert_eq!(canaries.state(), before, "round {round}:\n{text}");
        fs::remove_file(&journal).unwrap();
    }
    // The grammar reaches what is refused.
    assert!(refused > count / 4, "{refused} refused of {count}");
}

fn dyno(root: &Path, arguments: &[&str]) -> String {
    if !root.join("x.yaml").exists() {
        let text = "target: 'null:'\nworkload: {ycsb: {records: 10}}\nphases: {measure: {duration: 100ms, warmup: 0s}}\n";
        fs::write(root.join("x.yaml"), text).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(arguments).current_dir(root).env("DYNO_STATE", root.join("state/dyno")).stdin(Stdio::null());
    let told = command.output().unwrap();
    String::from_utf8_lossy(&told.stderr).into_owned()
}
