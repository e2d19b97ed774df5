//! A player of mongod and mongos: versions that cannot be had as programs, after their published behaviour (manual, release
//! notes, driver specifications, the server's sources). It keeps no data.

use super::fake_mongo::{FakeCommand, Script, cursor, error, serve};
use dyno_types::bson::{self, build_document, kind};
use dyno_types::mongod::MongodVersion;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

/// What is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Standalone,
    Primary,
    Secondary,
    /// A mongos.
    Router,
}

/// A server of a version and a role.
#[derive(Clone, Debug)]
pub struct Player {
    pub version: MongodVersion,
    pub role: Role,
    /// The parameter `requireApiVersion`, from 5.0 on.
    pub require_api: bool,
    /// Whether the user may ask for figures and configurations (the role `clusterMonitor`).
    pub may_monitor: bool,
    /// The code by which every second write is refused.
    pub refuse_writes: Option<i32>,
}

/// Versions that are played: version, what `buildInfo` says, `maxWireVersion`.
pub const RELEASES: [(MongodVersion, &str, i32); 6] = [
    (MongodVersion::new(3, 6), "3.6.23", 6),
    (MongodVersion::new(4, 4), "4.4.29", 9),
    (MongodVersion::new(5, 0), "5.0.31", 13),
    (MongodVersion::new(7, 0), "7.0.16", 21),
    (MongodVersion::new(8, 0), "8.0.4", 25),
    (MongodVersion::new(8, 2), "8.2.1", 27),
];

/// Commands of the Stable API, version 1, as far as they are played.
const STABLE: [&str; 16] = [
    "aggregate",
    "count",
    "create",
    "createIndexes",
    "delete",
    "drop",
    "endSessions",
    "find",
    "findAndModify",
    "getMore",
    "hello",
    "insert",
    "killCursors",
    "listCollections",
    "ping",
    "update",
];

/// Commands that need the role `clusterMonitor`.
const MONITORING: [&str; 7] = [
    "getCmdLineOpts",
    "getDefaultRWConcern",
    "getParameter",
    "hostInfo",
    "replSetGetConfig",
    "replSetGetStatus",
    "serverStatus",
];

/// Codes that get the label `RetryableWriteError` from 4.4 on (driver specification "Retryable Writes").
const RETRYABLE: [i32; 11] = [6, 7, 89, 91, 189, 262, 9_001, 10_107, 11_600, 11_602, 13_436];

/// State of one server.
#[derive(Default)]
struct PlayerState {
    operations: AtomicI64,
    writes: AtomicU32,
}

impl Player {
    /// A server that refuses nothing of what its version knows.
    pub fn new(version: MongodVersion, role: Role) -> Self {
        Player { version, role, require_api: false, may_monitor: true, refuse_writes: None }
    }

    /// Plays on a free port a server whose set, if it has one, is it alone; returns `host:port`.
    pub fn serve(self) -> String {
        serve(move |me| self.script(me.clone(), vec![me]))
    }

    /// The script of a server called `me` of a set with these members, the primary first.
    pub fn script(self, me: String, hosts: Vec<String>) -> Script {
        let state = PlayerState::default();
        Arc::new(move |command, out| self.answer(command, (&me, &hosts), &state, out))
    }

    fn release(&self) -> (&'static str, i32) {
        let found = RELEASES.iter().find(|(version, ..)| *version == self.version);
        let (_, text, wire) = found.unwrap_or_else(|| panic!("{} is not played", self.version));
        (text, *wire)
    }

    fn since(&self, major: u32, minor: u32) -> bool {
        self.version >= MongodVersion::new(major, minor)
    }

    fn is_member(&self) -> bool {
        matches!(self.role, Role::Primary | Role::Secondary)
    }

    fn answer(&self, command: &FakeCommand, set: (&str, &[String]), state: &PlayerState, out: &mut Vec<u8>) {
        let name = command.name();
        let greets = ["hello", "isMaster", "ismaster"].contains(&name.as_str());
        // Only OP_MSG names its database in the document. OP_QUERY is left to greetings in 5.1.
        let is_query = bson::find_element(&command.document, "$db").is_none();
        if is_query && !greets && self.since(5, 1) {
            return refusal(
                352,
                "UnsupportedOpQueryCommand",
                &format!("Unsupported OP_QUERY command: {name}"),
                out,
            );
        }
        if self.refuses_api(command, &name, out) {
            return;
        }
        if !self.may_monitor && MONITORING.contains(&name.as_str()) {
            let message = format!("not authorized on admin to execute command {{ {name}: 1 }}");
            return refusal(13, "Unauthorized", &message, out);
        }
        match name.as_str() {
            "hello" if !self.since(4, 4) => unknown(&name, out),
            "hello" | "isMaster" | "ismaster" => self.greet(command, &name, set, out),
            "buildInfo" => {
                bson::put_string(out, "version", self.release().0);
                bson::put_boolean(out, "debug", false);
                done(out);
            }
            "serverStatus" => self.status(state.operations.load(Ordering::Relaxed), out),
            "getParameter" => self.parameters(command, out),
            "getCmdLineOpts" => {
                bson::put_document(out, "parsed", &build_document(|_| {}));
                done(out);
            }
            "getDefaultRWConcern" => self.defaults(out),
            "replSetGetConfig" | "replSetGetStatus" if !self.is_member() => {
                refusal(76, "NoReplicationEnabled", "not running with --replSet", out);
            }
            "replSetGetConfig" => configuration(set.1, out),
            "replSetGetStatus" => {
                bson::put_string(out, "set", "rs0");
                done(out);
            }
            "insert" | "update" | "delete" => self.write(state, out),
            "find" | "aggregate" => {
                state.operations.fetch_add(1, Ordering::Relaxed);
                cursor(0, "firstBatch", 1, out);
            }
            "count" => {
                bson::put_int32(out, "n", 0);
                done(out);
            }
            "ping" | "create" | "createIndexes" | "drop" | "endSessions" | "killCursors" => done(out),
            _ => unknown(&name, out),
        }
    }

    /// Refuses a command that the Stable API does not allow; returns whether it did.
    fn refuses_api(&self, command: &FakeCommand, name: &str, out: &mut Vec<u8>) -> bool {
        if !self.since(5, 0) {
            return false;
        }
        let asked = bson::find_element(&command.document, "apiVersion").and_then(|e| e.as_str());
        let strict = bson::find_element(&command.document, "apiStrict").is_some_and(|e| e.is_true());
        match asked {
            None if self.require_api => {
                let message =
                    "The apiVersion parameter is required, please configure your MongoClient's API version";
                refusal(498_870, "Location498870", message, out);
            }
            Some(version) if version != "1" => {
                refusal(322, "APIVersionError", &format!("API version must be \"1\", not {version:?}"), out);
            }
            Some(_) if strict && !STABLE.contains(&name) => {
                refusal(323, "APIStrictError", &format!("{name} is not in API Version 1"), out);
            }
            _ => return false,
        }
        true
    }

    fn greet(&self, command: &FakeCommand, name: &str, (me, hosts): (&str, &[String]), out: &mut Vec<u8>) {
        if let Some(wait) = bson::find_element(&command.document, "maxAwaitTimeMS").and_then(|e| e.as_i64()) {
            // Nothing changes, so that the question is answered when its time is over.
            std::thread::sleep(Duration::from_millis(wait.clamp(0, 10_000).cast_unsigned()));
        }
        if self.since(4, 4) {
            if bson::find_element(&command.document, "helloOk").is_some_and(|e| e.is_true()) {
                bson::put_boolean(out, "helloOk", true);
            }
            bson::put_head(out, kind::DOCUMENT, "topologyVersion");
            let version = bson::open(out);
            bson::put_head(out, kind::OBJECT_ID, "processId");
            out.extend_from_slice(b"player-of-db");
            bson::put_int64(out, "counter", 1);
            bson::close(out, version);
        }
        let writable = if name == "hello" { "isWritablePrimary" } else { "ismaster" };
        bson::put_boolean(out, writable, self.role != Role::Secondary);
        match self.role {
            Role::Standalone => {}
            Role::Router => bson::put_string(out, "msg", "isdbgrid"),
            Role::Primary | Role::Secondary => {
                bson::put_boolean(out, "secondary", self.role == Role::Secondary);
                bson::put_string(out, "setName", "rs0");
                bson::put_int32(out, "setVersion", 1);
                bson::put_string(out, "primary", &hosts[0]);
                bson::put_string(out, "me", me);
                bson::put_head(out, kind::ARRAY, "hosts");
                let list = bson::open(out);
                for (index, host) in hosts.iter().enumerate() {
                    bson::put_item_head(out, kind::STRING, index as u32);
                    bson::put_text_value(out, host.as_bytes());
                }
                bson::close(out, list);
            }
        }
        bson::put_int32(out, "maxBsonObjectSize", 16 << 20);
        bson::put_int32(out, "maxMessageSizeBytes", 48_000_000);
        bson::put_int32(out, "maxWriteBatchSize", 100_000);
        bson::put_int32(out, "logicalSessionTimeoutMinutes", 30);
        bson::put_int32(out, "minWireVersion", 0);
        bson::put_int32(out, "maxWireVersion", self.release().1);
        bson::put_boolean(out, "readOnly", false);
        done(out);
    }

    fn write(&self, state: &PlayerState, out: &mut Vec<u8>) {
        let number = state.writes.fetch_add(1, Ordering::Relaxed);
        if let Some(code) = self.refuse_writes.filter(|_| number.is_multiple_of(2)) {
            error(code, "the write is refused", out);
            if self.since(4, 4) && RETRYABLE.contains(&code) {
                bson::put_head(out, kind::ARRAY, "errorLabels");
                let list = bson::open(out);
                bson::put_item_head(out, kind::STRING, 0);
                bson::put_text_value(out, b"RetryableWriteError");
                bson::close(out, list);
            }
            return;
        }
        state.operations.fetch_add(1, Ordering::Relaxed);
        bson::put_int32(out, "n", 1);
        bson::put_int32(out, "nModified", 1);
        done(out);
    }

    /// The implicit default of a set without arbiters; a single server has none to tell.
    fn defaults(&self, out: &mut Vec<u8>) {
        if !self.since(4, 4) {
            return unknown("getDefaultRWConcern", out);
        }
        if self.role == Role::Standalone {
            return refusal(
                51_300,
                "Location51300",
                "getDefaultRWConcern is not supported on standalone nodes",
                out,
            );
        }
        if self.since(5, 0) {
            bson::put_document(out, "defaultWriteConcern", &majority());
            bson::put_string(out, "defaultWriteConcernSource", "implicit");
        }
        done(out);
    }

    fn parameters(&self, command: &FakeCommand, out: &mut Vec<u8>) {
        let asked = |name: &str| bson::find_element(&command.document, name).is_some();
        if asked("storageEngineConcurrencyAdjustmentAlgorithm") && self.version.adjusts_tickets() {
            bson::put_string(out, "storageEngineConcurrencyAdjustmentAlgorithm", "throughputProbing");
        } else if asked("wiredTigerConcurrentReadTransactions") {
            // 0 stands for a number that the server chooses.
            let tickets = if self.version.adjusts_tickets() { 0 } else { 128 };
            bson::put_int32(out, "wiredTigerConcurrentReadTransactions", tickets);
        } else {
            return refusal(72, "InvalidOptions", "no option found to get", out);
        }
        done(out);
    }

    /// The sections that dyno's monitor reads, under this version's names.
    fn status(&self, operations: i64, out: &mut Vec<u8>) {
        let router = self.role == Role::Router;
        bson::put_string(out, "version", self.release().0);
        bson::put_string(out, "process", if router { "mongos" } else { "mongod" });
        bson::put_double(out, "uptime", 60.0);
        bson::put_document(
            out,
            "opcounters",
            &build_document(|out| bson::put_int64(out, "query", operations)),
        );
        let counted = |name: &'static str| build_document(|out| bson::put_int32(out, name, 1));
        bson::put_document(out, "connections", &counted("current"));
        if !router {
            let queue = build_document(|out| bson::put_int32(out, "total", 0));
            bson::put_document(
                out,
                "globalLock",
                &build_document(|out| bson::put_document(out, "currentQueue", &queue)),
            );
            let metrics = build_document(|out| {
                bson::put_document(out, "document", &counted("returned"));
                bson::put_document(out, "operation", &counted("writeConflicts"));
                bson::put_document(out, "queryExecutor", &counted("scannedObjects"));
            });
            bson::put_document(out, "metrics", &metrics);
            if self.since(4, 2) {
                bson::put_document(
                    out,
                    "flowControl",
                    &build_document(|out| bson::put_int64(out, "timeAcquiringMicros", 0)),
                );
            }
            bson::put_document(
                out,
                "storageEngine",
                &build_document(|out| bson::put_string(out, "name", "wiredTiger")),
            );
            self.engine(out);
        }
        if self.since(4, 4) && self.role != Role::Standalone {
            let defaults = build_document(|out| {
                if self.since(5, 0) {
                    bson::put_document(out, "defaultWriteConcern", &majority());
                }
            });
            bson::put_document(out, "defaultRWConcern", &defaults);
        }
        done(out);
    }

    fn engine(&self, out: &mut Vec<u8>) {
        let pool = build_document(|out| {
            bson::put_int32(out, "out", 2);
            bson::put_int32(out, "available", 126);
            bson::put_int32(out, "totalTickets", 128);
        });
        let pools = build_document(|out| {
            bson::put_document(out, "read", &pool);
            bson::put_document(out, "write", &pool);
        });
        let cache = build_document(|out| {
            bson::put_int64(out, "maximum bytes configured", 1 << 30);
            bson::put_int64(out, "bytes currently in the cache", 1 << 20);
            bson::put_int64(out, "tracked dirty bytes in the cache", 1 << 10);
            if self.since(8, 1) {
                bson::put_int64(out, "page evict attempts by application threads", 5);
                bson::put_int64(out, "page evict failures by application threads", 1);
            } else {
                bson::put_int64(out, "pages evicted by application threads", 5);
            }
        });
        let log = build_document(|out| bson::put_int64(out, "log sync time duration (usecs)", 1));
        let engine = build_document(|out| {
            bson::put_document(out, "cache", &cache);
            bson::put_document(out, "log", &log);
            if !self.since(8, 0) {
                bson::put_document(out, "concurrentTransactions", &pools);
            }
        });
        bson::put_document(out, "wiredTiger", &engine);
        if self.since(8, 0) {
            bson::put_document(
                out,
                "queues",
                &build_document(|out| bson::put_document(out, "execution", &pools)),
            );
        }
    }
}

fn majority() -> Vec<u8> {
    build_document(|out| {
        bson::put_string(out, "w", "majority");
        bson::put_int32(out, "wtimeout", 0);
    })
}

fn configuration(hosts: &[String], out: &mut Vec<u8>) {
    let config = build_document(|out| {
        bson::put_string(out, "_id", "rs0");
        bson::put_int64(out, "protocolVersion", 1);
        bson::put_head(out, kind::ARRAY, "members");
        let members = bson::open(out);
        for (index, host) in hosts.iter().enumerate() {
            bson::put_item_head(out, kind::DOCUMENT, index as u32);
            let member = bson::open(out);
            bson::put_string(out, "host", host);
            bson::put_boolean(out, "arbiterOnly", false);
            bson::put_int32(out, "votes", 1);
            bson::close(out, member);
        }
        bson::close(out, members);
    });
    bson::put_document(out, "config", &config);
    done(out);
}

fn done(out: &mut Vec<u8>) {
    bson::put_double(out, "ok", 1.0);
}

fn unknown(name: &str, out: &mut Vec<u8>) {
    refusal(59, "CommandNotFound", &format!("no such command: '{name}'"), out);
}

fn refusal(code: i32, name: &str, message: &str, out: &mut Vec<u8>) {
    error(code, message, out);
    bson::put_string(out, "codeName", name);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(player: &Player, fields: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let document = build_document(fields);
        let command = FakeCommand { document, sequences: Vec::new(), packed: None };
        let script = player.clone().script("a:1".into(), vec!["a:1".into()]);
        build_document(|out| script(&command, out))
    }

    /// A command in OP_MSG.
    fn message(player: &Player, name: &str) -> Vec<u8> {
        ask(player, |out| {
            bson::put_int32(out, name, 1);
            bson::put_string(out, "$db", "admin");
        })
    }

    fn code(reply: &[u8]) -> Option<i64> {
        bson::find_element(reply, "code").and_then(|e| e.as_i64())
    }

    #[test]
    fn greetings_are_of_their_version() {
        for (version, _, wire) in RELEASES {
            let player = Player::new(version, Role::Primary);
            let told = message(&player, "isMaster");
            assert_eq!(bson::find_element(&told, "maxWireVersion").unwrap().as_i64(), Some(wire.into()));
            let new = version >= MongodVersion::new(4, 4);
            assert_eq!(bson::find_element(&told, "topologyVersion").is_some(), new, "{version}");
            assert_eq!(code(&message(&player, "hello")), (!new).then_some(59), "{version}");
        }
    }

    #[test]
    fn old_messages_and_calls_without_an_api_version_are_refused_from_their_version_on() {
        for (version, ..) in RELEASES {
            let player = Player::new(version, Role::Standalone);
            let query = ask(&player, |out| bson::put_int32(out, "ping", 1));
            let expected = (version > MongodVersion::new(5, 0)).then_some(352);
            assert_eq!(code(&query), expected, "{version}");
            let strict = Player { require_api: true, ..player.clone() };
            let expected = (version >= MongodVersion::new(5, 0)).then_some(498_870);
            assert_eq!(code(&message(&strict, "ping")), expected, "{version}");
        }
        let player = Player::new(MongodVersion::new(8, 0), Role::Standalone);
        let with_api = |command: &str, version: &str| {
            code(&ask(&player, |out| {
                bson::put_int32(out, command, 1);
                bson::put_string(out, "$db", "admin");
                bson::put_string(out, "apiVersion", version);
                bson::put_boolean(out, "apiStrict", true);
            }))
        };
        assert_eq!(
            (with_api("ping", "1"), with_api("ping", "2"), with_api("serverStatus", "1")),
            (None, Some(322), Some(323))
        );
    }

    #[test]
    fn a_write_that_may_be_repeated_has_a_label_from_4_4_on() {
        for (version, labelled) in [(MongodVersion::new(3, 6), false), (MongodVersion::new(4, 4), true)] {
            let player = Player { refuse_writes: Some(189), ..Player::new(version, Role::Primary) };
            let told = message(&player, "insert");
            assert_eq!(
                (code(&told), bson::find_element(&told, "errorLabels").is_some()),
                (Some(189), labelled)
            );
        }
    }
}
