//! A directory that another user has made, or has written into: `dyno stop` and `dyno resume` do nothing that it says.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Id of a user who is not root.
const OTHER_USER: u32 = 65534;

/// Number of the journals here.
const ID: &str = "0123456789abcdef0123456789abcdef";

const YAML: &str =
    "target: 'null:'\nworkload: {ycsb: {records: 10}}\nphases: {measure: {duration: 100ms, warmup: 0s}}\n";

/// An experiment that is over, in `o`; beside it a folder that is none of its affairs.
struct Fixture(tempfile::TempDir);

impl Fixture {
    fn new() -> Self {
        let fixture = Fixture(tempfile::tempdir().unwrap());
        fs::write(fixture.path("x.yaml"), YAML).unwrap();
        let made = fixture.dyno(&["run", "x.yaml", "--out", "o", "--quiet"]);
        assert!(fixture.path("o/experiment.json").is_file(), "{}", err(&made));
        fs::create_dir(fixture.path("other")).unwrap();
        fs::write(fixture.path("other/kept"), "kept").unwrap();
        fixture
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    fn dyno(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("DYNO_STATE", self.path("state/dyno")).output().unwrap()
    }

    /// Enters a journal in the list of those that dyno has begun here.
    fn list(&self, id: &str, journal: &Path) {
        let about = fs::metadata(journal).unwrap();
        let entry = serde_json::json!({"journal": journal, "file": [about.dev(), about.ino()]});
        self.private(&format!("state/dyno/journals/{id}"), &entry.to_string());
        for folder in ["state", "state/dyno", "state/dyno/journals"] {
            fs::set_permissions(self.path(folder), Permissions::from_mode(0o700)).unwrap();
        }
    }

    /// A journal of a dyno that is no more, and that has begun here.
    fn listed(&self, below: &str, entries: &[serde_json::Value]) -> PathBuf {
        let journal = self.journal(below, entries);
        self.list(ID, &journal);
        journal
    }

    /// A file that only its owner reads.
    fn private(&self, below: &str, text: &str) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// A journal of a dyno that is no more.
    fn journal(&self, below: &str, entries: &[serde_json::Value]) -> PathBuf {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let owner = serde_json::json!({"owner": 4_194_303, "started": 1, "boot": boot.trim(), "journal": ID});
        let mut lines = vec![owner];
        for (at, entry) in entries.iter().enumerate() {
            let mut entry = entry.clone();
            entry["id"] = (at + 1).into();
            lines.push(entry);
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.private(below, &text)
    }

    fn folder(&self, below: &str) -> serde_json::Value {
        serde_json::json!({"undo": "folder", "path": self.path(below)})
    }

    /// That neither command does anything but say why.
    fn refuses(&self, dir: &str, words: &[&str]) {
        for command in ["stop", "resume"] {
            let told = self.dyno(&[command, dir]);
            assert_eq!(told.status.code(), Some(2), "{command}: {}", err(&told));
            for word in words {
                assert!(err(&told).contains(word), "{command} does not say {word:?}: {}", err(&told));
            }
        }
        assert!(self.path("other/kept").is_file(), "what is none of its affairs is there");
    }

    fn does(&self, dir: &str) -> String {
        let told = self.dyno(&["stop", dir]);
        assert_eq!(told.status.code(), Some(0), "{}", err(&told));
        err(&told)
    }
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Ends with the test.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Self {
        Sleeper(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn started(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat[stat.rfind(')').unwrap() + 1..].split_whitespace().nth(19).unwrap().parse().unwrap()
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether files can be given away here.
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        dyno_testkit::skip_because("files of another user", "only root gives files away");
    }
    root
}

#[test]
fn a_journal_of_another_user_is_not_followed() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    let journal = fixture.journal("o/runs/s/undo.jsonl", &[fixture.folder("o/runs/s/a.data")]);
    fs::create_dir(fixture.path("o/runs/s/a.data")).unwrap();
    chown(&journal, Some(OTHER_USER), None).unwrap();
    fixture.refuses("o", &["undo.jsonl: belongs to user 65534, not to you"]);
    assert!(fixture.path("o/runs/s/a.data").is_dir());
    chown(&journal, Some(0), None).unwrap();
    chown(fixture.path("o/runs/s"), Some(OTHER_USER), None).unwrap();
    fixture.refuses("o", &["runs/s: belongs to user 65534"]);
    chown(fixture.path("o/runs/s"), Some(0), None).unwrap();
    chown(fixture.path("o"), Some(OTHER_USER), None).unwrap();
    fixture.refuses("o", &["belongs to user 65534", "only where they are your own"]);
    chown(fixture.path("o"), Some(0), None).unwrap();
    for name in ["experiment.json", "experiment.yaml", "journal.jsonl", "lock"] {
        chown(fixture.path("o").join(name), Some(OTHER_USER), None).unwrap();
        fixture.refuses("o", &[&format!("{name}: belongs to user 65534")]);
        chown(fixture.path("o").join(name), Some(0), None).unwrap();
    }
    fixture.does("o");
    assert!(!fixture.path("o/runs/s/a.data").exists());
    // Nothing is begun where `dyno stop` would be refused.
    fs::create_dir(fixture.path("theirs")).unwrap();
    chown(fixture.path("theirs"), Some(OTHER_USER), None).unwrap();
    let told = fixture.dyno(&["run", "x.yaml", "--out", "theirs", "--quiet"]);
    assert_eq!(told.status.code(), Some(2), "{}", err(&told));
    assert!(err(&told).contains("choose a new folder"), "{}", err(&told));
    assert_eq!(fs::read_dir(fixture.path("theirs")).unwrap().count(), 0);
}

#[test]
fn what_others_may_write_or_read_is_not_followed() {
    let fixture = Fixture::new();
    let journal = fixture.journal("o/runs/s/undo.jsonl", &[fixture.folder("o/runs/s/a.data")]);
    fs::create_dir(fixture.path("o/runs/s/a.data")).unwrap();
    let set = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(&journal, 0o644);
    fixture.refuses("o", &["undo.jsonl: has mode 0644", "chmod 600"]);
    set(&journal, 0o600);
    for folder in ["o", "o/runs/s"] {
        set(&fixture.path(folder), 0o777);
        fixture.refuses("o", &["others may write into it", "chmod go-w"]);
        set(&fixture.path(folder), 0o700);
    }
    for name in ["experiment.json", "experiment.yaml", "journal.jsonl", "lock"] {
        set(&fixture.path("o").join(name), 0o644);
        fixture.refuses("o", &[&format!("{name}: has mode 0644")]);
        set(&fixture.path("o").join(name), 0o600);
    }
    assert!(fixture.path("o/runs/s/a.data").is_dir());
    assert!(fixture.does("o").contains("1 things put back"));
    assert!(!fixture.path("o/runs/s/a.data").exists());
}

#[test]
fn what_is_reached_through_links_is_not_followed() {
    let fixture = Fixture::new();
    let elsewhere = fixture.journal("there/undo.jsonl", &[fixture.folder("there/a.data")]);
    fs::create_dir(fixture.path("there/a.data")).unwrap();
    fs::create_dir(fixture.path("o/runs/s")).unwrap();
    symlink(&elsewhere, fixture.path("o/runs/s/undo.jsonl")).unwrap();
    fixture.refuses("o", &["undo.jsonl: is a link"]);
    fs::remove_dir_all(fixture.path("o/runs/s")).unwrap();
    symlink(fixture.path("there"), fixture.path("o/runs/s")).unwrap();
    fixture.refuses("o", &["runs/s: is a link"]);
    fs::remove_file(fixture.path("o/runs/s")).unwrap();
    let json = fixture.path("o/experiment.json");
    fs::rename(&json, fixture.path("there/experiment.json")).unwrap();
    symlink(fixture.path("there/experiment.json"), &json).unwrap();
    fixture.refuses("o", &["experiment.json: is a link"]);
    fs::rename(fixture.path("there/experiment.json"), &json).unwrap();
    assert!(fixture.path("there/a.data").is_dir());
    // The directory itself may be named by a link.
    fixture.journal("o/undo.jsonl", &[fixture.folder("o/a.data")]);
    fs::create_dir(fixture.path("o/a.data")).unwrap();
    symlink(fixture.path("o"), fixture.path("link")).unwrap();
    fixture.does("link");
    assert!(!fixture.path("o/a.data").exists());
}

#[test]
fn a_journal_of_another_host_is_not_followed() {
    let fixture = Fixture::new();
    let journal = fixture.journal("o/undo.jsonl", &[fixture.folder("o/a.data")]);
    fs::create_dir(fixture.path("o/a.data")).unwrap();
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replacen("\"boot\":\"", "\"host\":\"0123456789abcdef\",\"boot\":\"other-", 1))
        .unwrap();
    fixture.refuses("o", &["was made on another host"]);
    assert!(fixture.path("o/a.data").is_dir());
    fs::write(&journal, text).unwrap();
    fixture.does("o");
    assert!(!fixture.path("o/a.data").exists());
}

#[test]
fn nothing_outside_the_folders_of_an_experiment_is_touched() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("o/a.data")).unwrap();
    symlink(fixture.path("other"), fixture.path("o/link")).unwrap();
    let file = serde_json::json!({"undo": "file", "path": fixture.path("other/kept")});
    let through = serde_json::json!({"undo": "file", "path": fixture.path("o/link/kept")});
    let up = serde_json::json!({"undo": "folder", "path": fixture.path("o/../other")});
    let root = serde_json::json!({"undo": "folder", "path": "/"});
    let entries =
        [fixture.folder("other"), file, through, up, root, fixture.folder("o/a.data"), fixture.folder("")];
    let journal = fixture.listed("o/undo.jsonl", &entries);
    let told = fixture.dyno(&["stop", "o"]);
    let each = err(&told).matches("is outside the folders that dyno made").count();
    assert_eq!(each, 6, "every one of them: {}", err(&told));
    fixture
        .refuses("o", &["outside the folders that dyno made", "left as it is: look at it, undo it by hand"]);
    assert!(!fixture.path("o/a.data").exists(), "the others are done");
    assert!(fixture.path("o/experiment.json").is_file());
    // What was refused is still to be done.
    let undone = fs::read_to_string(journal).unwrap().matches("undone").count();
    assert_eq!(undone, 1);
}

#[test]
fn nothing_but_settings_that_dyno_changes_is_written() {
    let fixture = Fixture::new();
    let kept = fixture.path("other/kept");
    let value = |path: &Path, old: &str| serde_json::json!({"undo": "value", "path": path, "old": old});
    let lines = value(Path::new("/proc/sys/vm/swappiness"), "60\n1");
    fixture.listed("o/undo.jsonl", &[value(&kept, "overwritten"), lines]);
    fixture.refuses("o", &["kept is no setting that dyno changes", "swappiness is no setting"]);
    assert_eq!(fs::read_to_string(kept).unwrap(), "kept");
}

#[test]
fn processes_of_an_unknown_host_are_left_alone() {
    let fixture = Fixture::new();
    let mut other = Sleeper::new();
    let entry = serde_json::json!({"undo": "process", "pid": other.0.id(), "started": other.started()});
    let journal = fixture.listed("o/undo.jsonl", std::slice::from_ref(&entry));
    let text = fs::read_to_string(&journal).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    fs::write(&journal, format!("{{\"owner\":4194303,\"started\":1,\"journal\":\"{ID}\"}}\n{rest}")).unwrap();
    fixture.refuses("o", &["is not known to be one that dyno has started"]);
    assert!(other.runs());
    fs::write(&journal, text).unwrap();
    fixture.does("o");
    assert!(!other.runs());
}

/// Each kind of line, with something of the user's that it names: nothing of it is touched, because dyno has not begun that
/// journal here.
#[test]
fn a_journal_that_dyno_has_not_begun_here_reaches_nothing_of_the_users() {
    let fixture = Fixture::new();
    let (mut ended, halted) = (Sleeper::new(), Sleeper::new());
    dyno_testkit::signal(halted.0.id(), "STOP");
    let named: Vec<PathBuf> = ["customers.data", "x.snapshot", "y.new-12"]
        .iter()
        .map(|name| fixture.path("other").join(name))
        .collect();
    named.iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let image = fixture.path("other/image-0");
    fs::write(&image, "kept").unwrap();
    let group = Group::new();
    let process = |undo: &str, one: &Sleeper| serde_json::json!({"undo": undo, "pid": one.0.id(), "started": one.started()});
    let mut entries: Vec<serde_json::Value> =
        named.iter().map(|path| serde_json::json!({"undo": "folder", "path": path})).collect();
    entries.extend([
        serde_json::json!({"undo": "file", "path": image}),
        serde_json::json!({"undo": "loop", "file": image}),
        serde_json::json!({"undo": "mount", "path": fixture.path("o/runs")}),
        serde_json::json!({"undo": "array", "device": "/dev/md/dyno-1"}),
        serde_json::json!({"undo": "table", "name": "dyno-1-2-3"}),
        serde_json::json!({"undo": "device", "name": "lo", "handle": "7abc:"}),
        serde_json::json!({"undo": "value", "path": "/proc/sys/vm/swappiness", "old": "1"}),
        process("process", &ended),
        process("continue", &halted),
    ]);
    entries.extend(group.iter().map(|group| serde_json::json!({"undo": "cgroup", "path": group.path})));
    let before = fs::read_to_string("/proc/sys/vm/swappiness").unwrap();
    // There is no such array: an entry for what is gone already does no harm.
    let count = entries.len() - usize::from(!Path::new("/dev/md/dyno-1").exists());
    let journal = fixture.journal("o/undo.jsonl", &entries);
    // Old journals had lines of this kind.
    let text = fs::read_to_string(&journal).unwrap();
    let (owner, rest) = text.split_once('\n').unwrap();
    let data = serde_json::json!({"data": fixture.path("other")});
    fs::write(&journal, format!("{owner}\n{data}\n{rest}")).unwrap();
    let untouched = |told: &Output, ended: &mut Sleeper| {
        assert_eq!(err(told).matches("is not in the list of journals").count(), count, "{}", err(told));
        assert!(named.iter().all(|folder| folder.is_dir()) && image.is_file(), "{}", err(told));
        assert!(ended.runs());
        let state = fs::read_to_string(format!("/proc/{}/stat", halted.0.id())).unwrap();
        assert!(state.contains(") T "), "{state}");
        assert_eq!(fs::read_to_string("/proc/sys/vm/swappiness").unwrap(), before);
        assert!(group.as_ref().is_none_or(|group| group.path.is_dir()));
    };
    untouched(&fixture.dyno(&["stop", "o"]), &mut ended);
    untouched(&fixture.dyno(&["resume", "o"]), &mut ended);
    // A copy of a journal that dyno has begun is not that journal.
    let own = fixture.listed("there/undo.jsonl", &[]);
    untouched(&fixture.dyno(&["stop", "o"]), &mut ended);
    // Nor is one whose list others may write into.
    fixture.list(ID, &journal);
    fs::set_permissions(fixture.path("state/dyno/journals"), Permissions::from_mode(0o777)).unwrap();
    untouched(&fixture.dyno(&["stop", "o"]), &mut ended);
    fs::set_permissions(fixture.path("state/dyno/journals"), Permissions::from_mode(0o700)).unwrap();
    // In the list, what carries no mark of this journal stays, whatever its name.
    fs::remove_file(own).unwrap();
    let told = fixture.journal("o/undo.jsonl", &entries[..4]);
    fixture.list(ID, &told);
    let marks =
        ["customers.data", "x.snapshot"].map(|name| fixture.private(&format!("other/.{name}.dyno"), ID));
    fixture.private("other/.y.new-12.dyno", &ID.replace('0', "1"));
    let told = fixture.dyno(&["stop", "o"]);
    assert_eq!(err(&told).matches("is outside the folders that dyno made").count(), 2, "{}", err(&told));
    assert_eq!(named.iter().map(|folder| folder.is_dir()).collect::<Vec<_>>(), [false, false, true]);
    assert!(image.is_file() && marks.iter().all(|mark| !mark.exists()));
    assert!(fixture.path("other/kept").is_file());
}

/// A control group of another dyno, where one can be made.
struct Group {
    path: PathBuf,
}

impl Group {
    fn new() -> Option<Group> {
        let trees = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"].map(Path::new);
        let name = format!("dyno/{}-redis-22100", std::process::id());
        let path = trees.iter().map(|tree| tree.join(&name)).find(|path| fs::create_dir_all(path).is_ok());
        path.map(|path| Group { path })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

/// What killed dynos have left is found without their directories.
#[test]
fn what_is_left_is_found_without_a_directory() {
    let fixture = Fixture::new();
    let told = |arguments: &[&str]| {
        let told = fixture.dyno(arguments);
        assert_eq!(told.status.code(), Some(0), "{}", err(&told));
        err(&told) + &String::from_utf8_lossy(&told.stdout)
    };
    assert!(told(&["stop", "--left"]).contains("has left anything"));
    let mut other = Sleeper::new();
    let entry = serde_json::json!({"undo": "process", "pid": other.0.id(), "started": other.started()});
    let journal = fixture.listed("far/away/undo.jsonl", &[entry, fixture.folder("far/away/a.data")]);
    fs::create_dir(fixture.path("far/away/a.data")).unwrap();
    let doctor = told(&["doctor"]);
    assert!(doctor.contains(&format!("{}: 2 things", journal.display())), "{doctor}");
    let json: serde_json::Value = serde_json::from_str(&told(&["doctor", "--json"])).unwrap();
    assert_eq!(json["left"][0]["things"], 2, "{}", json["left"]);
    assert!(told(&["stop", "--left"]).contains("2 things put back"));
    assert!(!other.runs() && !fixture.path("far/away/a.data").exists());
    assert!(told(&["stop", "--left"]).contains("has left anything"));
    assert_eq!(fs::read_dir(fixture.path("state/dyno/journals")).unwrap().count(), 0);
    // One that runs has left nothing.
    let me = fs::read_to_string("/proc/self/stat").unwrap();
    let started = me[me.rfind(')').unwrap() + 1..].split_whitespace().nth(19).unwrap().to_owned();
    let journal = fixture.listed("far/away/undo.jsonl", &[fixture.folder("far/away")]);
    let text = fs::read_to_string(&journal).unwrap().replace("4194303", &std::process::id().to_string());
    fs::write(&journal, text.replace("\"started\":1", &format!("\"started\":{started}"))).unwrap();
    assert!(told(&["stop", "--left"]).contains("has left anything"));
    // Servers that stand on purpose stay.
    let mut stands = Sleeper::new();
    let entry = serde_json::json!({"undo": "process", "pid": stands.0.id(), "started": stands.started()});
    fixture.listed("o/standing/undo.jsonl", &[entry]);
    fixture.private("o/standing.json", "{}");
    let left = told(&["stop", "--left"]);
    assert!(left.contains("its servers stand on purpose; `dyno stop") && stands.runs(), "{left}");
    // Neither a directory nor the option, or both.
    for arguments in [&["stop"][..], &["stop", "o", "--left"]] {
        assert_eq!(fixture.dyno(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn no_program_and_no_credentials_come_from_a_journal() {
    let fixture = Fixture::new();
    let program = fixture.path("kubectl.sh");
    let ran = fixture.path("ran");
    fs::write(&program, format!("#!/bin/sh\necho \"$@\" >> {}\n", ran.display())).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    // A journal that dyno has not begun here asks nothing of any cluster.
    let whole = serde_json::json!({"asked": {}, "selector": "dyno.run=dyno-12"}).to_string();
    fixture.private("o/kubernetes-dyno-12.json", &whole);
    fixture.refuses("o", &["is not in the list of journals"]);
    let entry = serde_json::json!({"journal": fixture.path("o/kubernetes-dyno-12.json")});
    fixture.private(&format!("state/dyno/journals/{ID}"), &entry.to_string());
    ["state", "state/dyno", "state/dyno/journals"]
        .iter()
        .for_each(|folder| fs::set_permissions(fixture.path(folder), Permissions::from_mode(0o700)).unwrap());
    for asked in
        [serde_json::json!({"kubectl": program}), serde_json::json!({"kubeconfig": fixture.path("config")})]
    {
        let text = serde_json::json!({"asked": asked, "selector": "dyno.run=dyno-12"}).to_string();
        fixture.private("o/kubernetes-dyno-12.json", &text);
        fixture.refuses(
            "o",
            &["kubernetes-dyno-12.json: names a program, a kubeconfig, a context or a namespace"],
        );
    }
    for text in
        [serde_json::json!({"selector": "dyno.run=a,b!=c"}), serde_json::json!({"selector": "app=other"})]
    {
        fixture.private("o/kubernetes-dyno-12.json", &text.to_string());
        fixture.refuses("o", &["none that dyno writes"]);
    }
    assert!(!ran.exists());
    // The experiment's own text names the program.
    let yaml = fixture.path("o/experiment.yaml");
    // Relative paths are meant where the experiment was begun.
    let own = "kubectl: ./kubectl.sh, context: me@there, namespace: bench";
    let with = format!("{}# requirepass: ***\nkubernetes: {{{own}}}\n", fs::read_to_string(&yaml).unwrap());
    fs::write(&yaml, with).unwrap();
    let asked =
        serde_json::json!({"kubectl": "./kubectl.sh", "context": "me@there", "namespace": "elsewhere"});
    fixture.private(
        "o/kubernetes-dyno-12.json",
        &serde_json::json!({"asked": asked, "selector": "dyno.run=dyno-12"}).to_string(),
    );
    let told = fixture.dyno(&["stop", "o"]);
    assert_eq!(told.status.code(), Some(2), "{}", err(&told));
    let asked = serde_json::json!({"kubectl": "./kubectl.sh", "context": "me@there", "namespace": "bench"});
    let text = serde_json::json!({"asked": asked, "selector": "dyno.run=dyno-12"});
    fixture.private("o/kubernetes-dyno-12.json", &text.to_string());
    // A cluster that does not answer has still what it had.
    let answers = fs::read_to_string(&program).unwrap();
    fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    assert_eq!(fixture.dyno(&["stop", "o"]).status.code(), Some(3));
    fs::write(&program, answers).unwrap();
    let elsewhere = Command::new(env!("CARGO_BIN_EXE_dyno"))
        .args(["stop".as_ref(), fixture.path("o").as_os_str()])
        .env("DYNO_STATE", fixture.path("state/dyno"))
        .current_dir("/")
        .output()
        .unwrap();
    assert_eq!(elsewhere.status.code(), Some(0), "{}", err(&elsewhere));
    assert!(err(&elsewhere).contains("dyno.run=dyno-12: removed from the cluster"));
    let ran = fs::read_to_string(ran).unwrap();
    assert!(ran.contains("--context=me@there --namespace=bench") && ran.contains("delete"), "{ran}");
}

#[test]
fn a_lock_names_a_process_by_its_start() {
    use rustix::fs::{FlockOperation, flock};
    let fixture = Fixture::new();
    let mut other = Sleeper::new();
    let lock = fixture.private("o/lock", &format!("{} {}\n", other.0.id(), other.started() - 1));
    let held = fs::File::open(&lock).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let entry = fixture.folder("o/a.data");
    fixture.journal("o/undo.jsonl", &[entry]);
    fs::create_dir(fixture.path("o/a.data")).unwrap();
    let told = fixture.dyno(&["stop", "o"]);
    assert_eq!(told.status.code(), Some(2), "{}", err(&told));
    assert!(err(&told).contains("held by a process other than the one it names"), "{}", err(&told));
    assert!(
        other.runs() && fixture.path("o/a.data").is_dir(),
        "no process is signalled, nothing is put back"
    );
    drop(held);
    fixture.does("o");
    assert!(other.runs() && !fixture.path("o/a.data").exists());
    // A lock of an older dyno has the number alone, and is read as before.
    let held = fs::File::open(fixture.private("o/lock", &format!("{}\n", other.0.id()))).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let told = fixture.dyno(&["status", "o"]);
    assert!(String::from_utf8_lossy(&told.stdout).contains(&format!("process {}", other.0.id())), "{told:?}");
}

#[test]
fn what_dyno_writes_itself_is_private() {
    let fixture = Fixture(tempfile::tempdir().unwrap());
    fs::write(fixture.path("x.yaml"), format!("{YAML}hooks: {{before_experiment: [['true']]}}\n")).unwrap();
    fs::create_dir(fixture.path("o")).unwrap();
    fs::set_permissions(fixture.path("o"), Permissions::from_mode(0o777)).unwrap();
    let script = format!("umask 0; exec {} run x.yaml --out o --quiet", env!("CARGO_BIN_EXE_dyno"));
    let made = Command::new("sh").args(["-c", &script]).current_dir(fixture.0.path()).output().unwrap();
    dyno_testkit::assert_ran_in(fixture.0.path(), &made, &[]);
    let mode = |below: &str| fs::metadata(fixture.path(below)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("o/hooks/undo.jsonl"), 0o600, "{}", err(&made));
    assert_eq!((mode("o") & 0o022, mode("o/hooks") & 0o022), (0, 0));
    for name in ["experiment.json", "experiment.yaml", "journal.jsonl", "lock"] {
        assert_eq!(mode(&format!("o/{name}")), 0o600, "{name}");
    }
    let lock = fs::read_to_string(fixture.path("o/lock")).unwrap();
    assert_eq!(lock.split_whitespace().count(), 2, "{lock}");
    fixture.does("o");
}

#[test]
fn pipes_and_links_in_a_directory_are_refused_and_not_waited_for() {
    let fixture = Fixture::new();
    let make = |folder: &str, file: &str| {
        fs::create_dir(fixture.path(folder)).unwrap();
        let pipe = fixture.path(folder).join(file);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
    };
    make("run", "run.json");
    make("experiment", "experiment.json");
    for words in [["report", "run"], ["status", "experiment"], ["stop", "experiment"]] {
        // A command that waits for the pipe's other end is ended by `timeout`, with another code.
        let mut limited = Command::new("timeout");
        limited.arg("20").arg(env!("CARGO_BIN_EXE_dyno")).args(words).current_dir(fixture.0.path());
        let told = limited.output().unwrap();
        assert_eq!(told.status.code(), Some(2), "{words:?}: {}", err(&told));
        assert!(err(&told).contains("is no regular file"), "{words:?}: {}", err(&told));
    }
    // A link in the place of a file may lead to a private file.
    let run = fixture.path("o/runs/cell0001-rep01/run.json");
    fs::rename(&run, fixture.path("elsewhere")).unwrap();
    symlink(fixture.path("elsewhere"), &run).unwrap();
    let told = fixture.dyno(&["report", "o/runs/cell0001-rep01"]);
    assert_eq!(told.status.code(), Some(2), "{}", err(&told));
    assert!(err(&told).contains("is a link, which is not followed here"), "{}", err(&told));
}
