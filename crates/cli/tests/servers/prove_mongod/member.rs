//! A program that plays a member of a replica set as far as a proof of failover needs it: it keeps what it is told on disk,
//! fetches from the primary what that has, elects the member that has most, and begins anew when it comes back. Members
//! know each other by files.

use dyno_testkit::fake_mongo::{FakeCommand, error, hello, serve_on};
use dyno_types::bson::{self, kind};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// After how long without the primary the others elect another.
const ELECTION: Duration = Duration::from_millis(300);

struct Member {
    me: String,
    folder: PathBuf,
    /// Inserted documents, one after the other.
    log: Mutex<Vec<u8>>,
    /// What is there more than once, for the test of that.
    twice: bool,
}

impl Member {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.file(name)).ok().filter(|text| !text.is_empty())
    }

    /// Writes elsewhere and moves: a reader sees the whole text.
    fn write(&self, name: &str, text: &str) {
        let part = self.file(&format!("{name}.{}", self.me));
        fs::write(&part, text).unwrap();
        fs::rename(part, self.file(name)).unwrap();
    }

    fn hosts(&self) -> Vec<String> {
        self.read("hosts").map(|text| text.lines().map(str::to_owned).collect()).unwrap_or_default()
    }

    fn primary(&self) -> Option<String> {
        self.read("primary")
    }

    fn is_primary(&self) -> bool {
        self.primary().as_deref() == Some(&self.me)
    }

    fn runs(&self, member: &str) -> bool {
        let stat = self
            .read(&format!("{member}.pid"))
            .and_then(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok());
        stat.is_some_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
    }

    fn length(&self, member: &str) -> u64 {
        fs::metadata(self.file(&format!("{member}.log"))).map_or(0, |found| found.len())
    }

    fn append(&self, bytes: &[u8]) {
        let path = self.file(&format!("{}.log", self.me));
        let mut file = fs::File::options().create(true).append(true).open(path).unwrap();
        file.write_all(bytes).unwrap();
        self.log.lock().unwrap().extend_from_slice(bytes);
    }

    /// What it has, by `_id`.
    fn documents(&self) -> BTreeMap<String, Vec<u8>> {
        let log = self.log.lock().unwrap();
        let (mut all, mut at) = (BTreeMap::new(), 0);
        while let Some(Ok(length)) = bson::document_length(&log[at..]).filter(|_| at < log.len()) {
            let document = log[at..at + length].to_vec();
            let id = bson::find_element(&document, "_id").unwrap().as_str().unwrap().to_owned();
            all.insert(id, document);
            at += length;
        }
        all
    }

    /// Fetches what the primary has more; without one, elects.
    fn follow(&self) {
        let mut seen = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(10));
            let Some(primary) = self.primary().filter(|primary| *primary != self.me) else {
                seen = Instant::now();
                continue;
            };
            if self.runs(&primary) {
                seen = Instant::now();
                let theirs = fs::read(self.file(&format!("{primary}.log"))).unwrap_or_default();
                let own = self.log.lock().unwrap().len();
                // A primary that writes has a part of its last document on disk.
                let mut end = own.min(theirs.len());
                while let Some(Ok(length)) = theirs.get(end..).and_then(bson::document_length) {
                    if end + length > theirs.len() {
                        break;
                    }
                    end += length;
                }
                self.append(&theirs[own.min(end)..end]);
            } else if seen.elapsed() > ELECTION {
                let alive = self.hosts().into_iter().filter(|host| self.runs(host));
                let most = alive.max_by_key(|host| (self.length(host), host.clone()));
                if most.as_deref() == Some(&self.me) {
                    self.write("primary", &self.me);
                }
            }
        }
    }

    fn insert(&self, command: &FakeCommand, out: &mut Vec<u8>) {
        if !self.is_primary() {
            return error(10_107, "not primary (NotWritablePrimary)", out);
        }
        let list = bson::find_element(&command.document, "documents").unwrap().as_document().unwrap();
        let documents: Vec<&[u8]> =
            bson::read_elements(list).unwrap().flatten().filter_map(|e| e.as_document()).collect();
        self.append(&documents.concat());
        let length = self.log.lock().unwrap().len() as u64;
        bson::put_int32(out, "n", documents.len() as i32);
        let concern = |name: &str| bson::element_at_path(&command.document, &format!("writeConcern.{name}"));
        if concern("w").unwrap().as_str() == Some("majority") {
            let patience = concern("wtimeout").unwrap().as_i64().unwrap() as u64;
            let end = Instant::now() + Duration::from_millis(patience);
            let others = || self.hosts().into_iter().filter(|host| *host != self.me);
            let have = || others().any(|host| self.runs(&host) && self.length(&host) >= length);
            while !have() {
                if Instant::now() > end {
                    let at = out.len();
                    bson::put_head(out, kind::DOCUMENT, "writeConcernError");
                    let document = bson::open(out);
                    bson::put_string(out, "errmsg", "waiting for replication timed out");
                    bson::close(out, document);
                    assert!(out.len() > at);
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        bson::put_double(out, "ok", 1.0);
    }

    fn find(&self, command: &FakeCommand, out: &mut Vec<u8>) {
        let ids = bson::element_at_path(&command.document, "filter._id.$in").unwrap().as_document().unwrap();
        let held = self.documents();
        bson::put_head(out, kind::DOCUMENT, "cursor");
        let cursor = bson::open(out);
        bson::put_head(out, kind::ARRAY, "firstBatch");
        let list = bson::open(out);
        let asked = bson::read_elements(ids).unwrap().flatten().filter_map(|id| id.as_str());
        for (at, document) in asked.filter_map(|id| held.get(id)).enumerate() {
            bson::put_document(out, &at.to_string(), document);
        }
        bson::close(out, list);
        bson::put_int64(out, "id", 0);
        bson::put_string(out, "ns", "proofs.x");
        bson::close(out, cursor);
        bson::put_double(out, "ok", 1.0);
    }

    fn status(&self, out: &mut Vec<u8>) {
        let primary = self.primary();
        bson::put_head(out, kind::ARRAY, "members");
        let list = bson::open(out);
        for (at, host) in self.hosts().iter().enumerate() {
            let (state, word) = match (self.runs(host), primary.as_ref() == Some(host)) {
                (false, _) => (8, "(not reachable/healthy)"),
                (true, true) => (1, "PRIMARY"),
                (true, false) => (2, "SECONDARY"),
            };
            bson::put_item_head(out, kind::DOCUMENT, at as u32);
            let member = bson::open(out);
            bson::put_string(out, "name", host);
            bson::put_int32(out, "state", state);
            bson::put_string(out, "stateStr", word);
            bson::close(out, member);
        }
        bson::close(out, list);
        bson::put_head(out, kind::DOCUMENT, "optimes");
        let optimes = bson::open(out);
        bson::put_head(out, kind::DOCUMENT, "appliedOpTime");
        let applied = bson::open(out);
        bson::put_head(out, kind::TIMESTAMP, "ts");
        out.extend_from_slice(&(self.log.lock().unwrap().len() as u64).to_le_bytes());
        bson::close(out, applied);
        bson::close(out, optimes);
        bson::put_double(out, "ok", 1.0);
    }

    fn config(&self, out: &mut Vec<u8>) {
        let version = self.read("version").map_or(1, |text| text.parse().unwrap());
        bson::put_head(out, kind::DOCUMENT, "config");
        let config = bson::open(out);
        bson::put_string(out, "_id", "rs0");
        bson::put_int32(out, "version", version);
        bson::put_head(out, kind::ARRAY, "members");
        let list = bson::open(out);
        for (at, host) in self.hosts().iter().enumerate() {
            bson::put_item_head(out, kind::DOCUMENT, at as u32);
            let member = bson::open(out);
            bson::put_int32(out, "_id", at as i32);
            bson::put_string(out, "host", host);
            bson::close(out, member);
        }
        bson::close(out, list);
        bson::close(out, config);
        bson::put_double(out, "ok", 1.0);
    }

    /// Takes the next version alone, as a server does.
    fn reconfigure(&self, command: &FakeCommand, out: &mut Vec<u8>) {
        let number = |path: &str| bson::element_at_path(&command.document, path).and_then(|e| e.as_i64());
        let (next, election) =
            (number("replSetReconfig.version"), number("replSetReconfig.settings.electionTimeoutMillis"));
        let before: i64 = self.read("version").map_or(1, |text| text.parse().unwrap());
        if !self.is_primary() || next != Some(before + 1) {
            return error(103, "NewReplicaSetConfigurationIncompatible", out);
        }
        self.write("version", &(before + 1).to_string());
        self.write("election", &election.unwrap().to_string());
        bson::put_double(out, "ok", 1.0);
    }

    fn initiate(&self, command: &FakeCommand, out: &mut Vec<u8>) {
        let members = bson::element_at_path(&command.document, "replSetInitiate.members").unwrap();
        let members = bson::read_elements(members.as_document().unwrap()).unwrap().flatten();
        let host = |e: bson::Element<'_>| {
            bson::find_element(e.as_document()?, "host").and_then(|host| host.as_str().map(str::to_owned))
        };
        let hosts: Vec<String> = members.filter_map(host).collect();
        self.write("hosts", &hosts.join("\n"));
        self.write("primary", &self.me);
        bson::put_double(out, "ok", 1.0);
    }

    fn answer(&self, command: &FakeCommand, out: &mut Vec<u8>) {
        match command.name().as_str() {
            "hello" | "isMaster" => {
                bson::put_boolean(out, "isWritablePrimary", self.is_primary());
                hello(&self.primary().unwrap_or_default(), &self.hosts(), &self.me, out);
            }
            "replSetInitiate" => self.initiate(command, out),
            "replSetGetStatus" => self.status(out),
            "replSetGetConfig" => self.config(out),
            "replSetReconfig" => self.reconfigure(command, out),
            "insert" => self.insert(command, out),
            "find" => self.find(command, out),
            "count" => {
                let more = if self.twice { 2 } else { 0 };
                bson::put_int32(out, "n", self.documents().len() as i32 + more);
                bson::put_double(out, "ok", 1.0);
            }
            "buildInfo" => {
                bson::put_string(out, "version", "8.0.0");
                bson::put_double(out, "ok", 1.0);
            }
            other => error(59, &format!("no such command: '{other}'"), out),
        }
    }
}

/// Plays the member that a configuration of mongod describes, until it is ended.
pub fn play(configuration: &str, folder: PathBuf) {
    let text = fs::read_to_string(configuration).unwrap();
    assert!(text.contains("oplogFetcherUsesExhaust: false"), "{text}");
    assert!(text.contains("replSetName: \"rs0\""), "{text}");
    let port = text.lines().find_map(|line| line.trim().strip_prefix("port: ")).unwrap().parse().unwrap();
    let me = format!("127.0.0.1:{port}");
    let twice = folder.join("twice").exists();
    let member = Arc::new(Member { me: me.clone(), folder, log: Mutex::default(), twice });
    // Whatever it had before it was killed is rolled back, and fetched again.
    fs::write(member.file(&format!("{me}.log")), "").unwrap();
    member.write(&format!("{me}.pid"), &std::process::id().to_string());
    let serving = member.clone();
    serve_on(port, move |_| Arc::new(move |command, out| serving.answer(command, out)));
    member.follow();
}
