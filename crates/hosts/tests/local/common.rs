//! What these tests share.

use dyno_config::server::ServerSpec;
use dyno_databases::registry;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_hosts::servers::server::Server;
use dyno_localhost::machine::Machine;
use dyno_types::bson::{self, kind};
use dyno_workload::Workload;
use dyno_workload::sysbench_mongodb::{SysbenchConfig, SysbenchRun};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Says that a test is skipped, and why; the test script counts these lines.
#[expect(clippy::print_stderr, reason = "the test script counts these lines")]
pub fn skip(what: &str, why: &str) {
    // One line, whatever is in it.
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!("SKIPPED: {what}: {why}");
}

/// A folder for a server.
pub struct Home(tempfile::TempDir);

impl Home {
    pub fn new() -> Self {
        Home(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().join("home")
    }

    /// Ports of a server's processes, by their names.
    pub fn ports(&self, server: &Server) -> Vec<u16> {
        let ports = server.running_processes().into_iter();
        ports.map(|(name, _)| name.rsplit('-').next().unwrap().parse().unwrap()).collect()
    }

    /// A program of one's own.
    pub fn program(&self, text: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.path().join("program");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// That nothing is left of servers started here: no process, no mount, no data, nothing in the journal.
    pub fn assert_clear(&self, pids: &[u32], data: &[PathBuf]) {
        pids.iter().for_each(|pid| assert!(!Path::new(&format!("/proc/{pid}")).exists(), "process {pid}"));
        data.iter().for_each(|folder| assert!(!folder.exists(), "{}", folder.display()));
        let own = self.0.path().display().to_string();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let command = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            assert!(!command.contains(&own), "{}: {command}", entry.path().display());
        }
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&own), "{mounts}");
        let journal = self.path().join("undo.jsonl");
        assert_eq!(dyno_localhost::undo::revert_journal(&journal, &Machine::default()).unwrap(), 0);
        assert_eq!(files_named(&self.path(), ".data") + files_named(&self.path(), ".snapshot"), 0);
    }
}

fn files_named(folder: &Path, end: &str) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(end)).count()
}

pub fn spec(json: &str) -> ServerSpec {
    serde_json::from_str(json).unwrap()
}

/// Starts a server; `None`, loudly, where its program is not installed.
pub fn start(home: &Home, json: &str) -> Option<Server> {
    let spec = spec(json);
    match Server::start(&spec, &home.path(), &Machine::default()) {
        Ok(server) => Some(server),
        Err(dyno_localhost::error::LocalError::Absent(why)) => {
            skip(json, &why);
            None
        }
        Err(error) => panic!("{json}: {error}"),
    }
}

/// Why a server does not start.
pub fn failure(home: &Home, json: &str) -> String {
    Server::start(&spec(json), &home.path(), &Machine::default()).unwrap_err().to_string()
}

/// What redis-cli prints.
pub fn redis(port: u16, words: &[&str]) -> String {
    let output = Command::new("redis-cli").args(["-p", &port.to_string()]).args(words).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// SIGKILL.
pub fn kill(pid: u32) {
    assert!(Command::new("/bin/sh").args(["-c", &format!("kill -KILL {pid}")]).status().unwrap().success());
}

/// Tries for some seconds until there is an answer.
pub fn within<T>(seconds: u64, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        match ask() {
            None if begun.elapsed().as_secs() < seconds => std::thread::sleep(Duration::from_millis(20)),
            answer => return answer,
        }
    }
}

/// FerretDB from the user's cache.
pub fn ferretdb() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    Some(base.unwrap_or_else(home).join("dyno-mongo/ferretdb-1.24.2")).filter(|path| path.is_file())
}

/// Opens a target, which must answer.
pub fn open(uri: &str) -> Box<dyn dyno_db::target::OpenTarget> {
    let content = SysbenchRun::new(&SysbenchConfig::default()).unwrap().content();
    registry::parse(uri).unwrap().open(content, &|| false).unwrap()
}

fn admin(uri: &str) -> MongoAdmin {
    MongoAdmin::from_target(open(uri).as_ref()).unwrap()
}

/// Inserts documents.
pub fn insert(uri: &str, count: u32) {
    let inserted = admin(uri).run_on("lab", &|out| {
        bson::put_string(out, "insert", "c");
        bson::put_head(out, kind::ARRAY, "documents");
        let list = bson::open(out);
        for i in 0..count {
            bson::put_item_head(out, kind::DOCUMENT, i);
            let document = bson::open(out);
            bson::put_int32(out, "n", i as i32);
            bson::close(out, document);
        }
        bson::close(out, list);
    });
    inserted.unwrap();
}

/// Counts them.
pub fn count(uri: &str) -> i64 {
    let reply = admin(uri).run_on("lab", &|out| bson::put_string(out, "count", "c")).unwrap();
    bson::find_element(&reply, "n").unwrap().as_i64().unwrap()
}

/// The names of the shards that a router knows.
pub fn shards(uri: &str) -> Vec<String> {
    let reply = admin(uri).run_on("admin", &|out| bson::put_int32(out, "listShards", 1)).unwrap();
    let listed = bson::find_element(&reply, "shards").unwrap().as_document().unwrap().to_vec();
    let documents =
        bson::read_elements(&listed).unwrap().map(|element| element.unwrap().as_document().unwrap());
    documents.map(|shard| bson::find_element(shard, "_id").unwrap().as_str().unwrap().to_owned()).collect()
}
