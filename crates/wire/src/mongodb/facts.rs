//! Facts that a server reports of itself. A command that it does not know leaves its facts out; nothing is taken for zero.

use super::errors::is_ok;
use super::greeting;
use super::message::{self, HEADER, NotMessage};
use dyno_types::bson::{self, Element};
use std::collections::BTreeMap;

/// The questions, in order: command, database (the run's own where empty).
pub const QUESTIONS: [(&str, &str); 8] = [
    ("hello", "admin"),
    ("isMaster", "admin"),
    ("buildInfo", "admin"),
    ("hostInfo", "admin"),
    ("getCmdLineOpts", "admin"),
    ("serverStatus", "admin"),
    ("replSetGetStatus", "admin"),
    ("replSetGetConfig", "admin"),
];

/// Facts that are kept of each answer: its command, a dotted path, and the name of the fact.
const KEPT: [(&str, &str, &str); 23] = [
    ("isMaster", "setName", "replica_set"),
    ("isMaster", "msg", "msg"),
    ("isMaster", "primary", "primary"),
    ("isMaster", "maxWireVersion", "max_wire_version"),
    ("hello", "setName", "replica_set"),
    ("hello", "msg", "msg"),
    ("hello", "primary", "primary"),
    ("hello", "maxWireVersion", "max_wire_version"),
    ("buildInfo", "version", "version"),
    ("buildInfo", "ferretdbVersion", "ferretdb_version"),
    ("buildInfo", "storageEngines", "storage_engines"),
    ("hostInfo", "os.name", "os"),
    ("hostInfo", "system.memLimitMB", "memory_limit_mib"),
    ("hostInfo", "system.numCores", "cores"),
    ("getCmdLineOpts", "parsed.storage.engine", "configured_engine"),
    ("getCmdLineOpts", "parsed.storage.wiredTiger.engineConfig.cacheSizeGB", "configured_cache_gib"),
    ("serverStatus", "process", "process"),
    ("serverStatus", "storageEngine.name", "engine"),
    ("serverStatus", "storageEngine.persistent", "persistent"),
    ("serverStatus", "wiredTiger.cache.maximum bytes configured", "cache_bytes"),
    ("serverStatus", "defaultRWConcern.defaultWriteConcern.w", "default_write_concern"),
    ("replSetGetStatus", "set", "replica_set"),
    ("replSetGetConfig", "config.settings.getLastErrorDefaults.w", "default_write_concern_of_set"),
];

/// Facts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Name and value.
    pub all: BTreeMap<String, String>,
    /// Members of the replica set, `host:port`.
    pub hosts: Vec<String>,
    /// The last answer to hello, whole.
    pub hello: Vec<u8>,
}

impl Facts {
    /// Appends question number `number`.
    pub fn ask(number: usize, out: &mut Vec<u8>) {
        let (command, database) = QUESTIONS[number];
        greeting::command(out, number as i32, database, |out| bson::int32(out, command, 1));
    }

    /// Looks for the answer to question number `number` at the start of `input`; returns the bytes used.
    pub fn take(&mut self, number: usize, input: &[u8]) -> Result<Option<usize>, NotMessage> {
        let Some(header) = message::frame(input)? else { return Ok(None) };
        self.learn(number, message::document(header.code, &input[HEADER..header.bytes])?)?;
        Ok(Some(header.bytes))
    }

    /// Takes what the answer to question number `number`, a document, says.
    pub fn learn(&mut self, number: usize, reply: &[u8]) -> Result<(), NotMessage> {
        let command = QUESTIONS[number].0;
        if is_ok(bson::find(reply, "ok")) {
            for (_, path, name) in KEPT.iter().filter(|(asked, ..)| *asked == command) {
                if let Some(value) = bson::path(reply, path).and_then(shown) {
                    self.all.insert((*name).to_owned(), value);
                }
            }
            if bson::find(reply, "hosts").is_some() {
                self.hosts.clear();
                // Members that cannot become primary are passive.
                for list in ["hosts", "passives"] {
                    let Some(hosts) = bson::find(reply, list).and_then(|e| e.as_document()) else { continue };
                    let hosts = bson::elements(hosts).map_err(|_| NotMessage)?;
                    self.hosts.extend(hosts.flatten().filter_map(|e| e.as_str().map(str::to_owned)));
                }
                self.hello = reply.to_vec();
            }
        }
        Ok(())
    }

    /// A fact.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all.get(name).map(String::as_str)
    }

    /// Product and version.
    pub fn product(&self) -> String {
        match (self.get("ferretdb_version"), self.get("version")) {
            (Some(version), _) => format!("FerretDB {}", version.trim_start_matches('v')),
            (None, Some(version)) => format!("MongoDB {version}"),
            (None, None) => "MongoDB of unknown version".into(),
        }
    }

    /// The `w` of writes that name none: the cluster's default, that of the set before MongoDB 4.4, else 1. A router does not
    /// say what its shards do.
    pub fn default_write_concern(&self) -> Option<&str> {
        let told = self.get("default_write_concern").or(self.get("default_write_concern_of_set"));
        told.or((!self.is_router()).then_some("1"))
    }

    /// Returns whether what answered is a router of a sharded cluster.
    pub fn is_router(&self) -> bool {
        self.get("msg") == Some("isdbgrid")
    }
}

/// A value in words; documents and the like are left out.
fn shown(element: Element<'_>) -> Option<String> {
    if let Some(text) = element.as_str() {
        return Some(text.to_owned());
    }
    if let Some(list) = element.as_document() {
        let words: Vec<&str> = bson::elements(list).ok()?.flatten().filter_map(|e| e.as_str()).collect();
        return Some(words.join(", ")).filter(|words| !words.is_empty());
    }
    match element.as_i64() {
        Some(number) => Some(number.to_string()),
        None => element.as_f64().map(|number| number.to_string()),
    }
}
