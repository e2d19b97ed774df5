//! Facts that a server reports of itself. A command that it does not know leaves its facts out; nothing is taken for zero.

use super::errors::{describe_error, is_ok};
use super::greeting;
use super::message::{self, HEADER, NotMessage};
use super::options::MongoOptions;
use dyno_types::bson::{self, Element};
use dyno_types::mongod::MongodVersion;
use dyno_types::mongod::versions::implicit_write_concern;
use std::collections::BTreeMap;
use std::fmt;

/// The questions, in order: command, database (the run's own where empty).
pub const QUESTIONS: [(&str, &str); 9] = [
    ("hello", "admin"),
    ("isMaster", "admin"),
    ("buildInfo", "admin"),
    ("hostInfo", "admin"),
    ("getCmdLineOpts", "admin"),
    ("serverStatus", "admin"),
    ("replSetGetStatus", "admin"),
    ("replSetGetConfig", "admin"),
    // From 4.4 on. Routers say it here alone.
    ("getDefaultRWConcern", "admin"),
];

/// Facts that are kept of each answer: its command, a dotted path, and the name of the fact.
const KEPT: [(&str, &str, &str); 26] = [
    ("isMaster", "arbiters", "arbiters"),
    ("isMaster", "setName", "replica_set"),
    ("isMaster", "msg", "msg"),
    ("isMaster", "primary", "primary"),
    ("isMaster", "maxWireVersion", "max_wire_version"),
    ("hello", "arbiters", "arbiters"),
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
    ("getDefaultRWConcern", "defaultWriteConcern.w", "default_write_concern"),
    ("replSetGetStatus", "set", "replica_set"),
    ("replSetGetConfig", "config.settings.getLastErrorDefaults.w", "default_write_concern_of_set"),
];

/// Codes of a refusal: Unauthorized, AtlasError (a service that does not offer the command).
const REFUSED: [i64; 2] = [13, 8_000];

/// Facts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MongoFacts {
    /// Name and value.
    pub all: BTreeMap<String, String>,
    /// Members of the replica set, `host:port`.
    pub hosts: Vec<String>,
    /// The last answer to hello, whole.
    pub hello: Vec<u8>,
    /// Questions that were refused, and the server's reason.
    pub refused: BTreeMap<&'static str, String>,
    /// Questions that were answered.
    answered: Vec<&'static str>,
    /// The members of the set's configuration, where it can be read.
    members: Option<MemberCounts>,
}

/// Numbers of members of a replica set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MemberCounts {
    arbiters: usize,
    others: usize,
    voters: usize,
}

impl MemberCounts {
    /// Counts the array of a configuration.
    fn count(list: &[u8]) -> Option<Self> {
        let mut all = MemberCounts { arbiters: 0, others: 0, voters: 0 };
        for member in bson::read_elements(list).ok()? {
            let member = member.ok()?.as_document()?;
            let is_arbiter = bson::find_element(member, "arbiterOnly").is_some_and(|e| e.is_true());
            *if is_arbiter { &mut all.arbiters } else { &mut all.others } += 1;
            let votes = bson::find_element(member, "votes").and_then(|e| e.as_i64());
            all.voters += usize::from(votes != Some(0));
        }
        Some(all)
    }
}

/// The write concern of writes that name none, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultWriteConcern {
    /// The server tells its `w`, or it follows from what the server tells.
    Known(String),
    /// The `w` that the version implies; whether another was set for the cluster is not told.
    Implied {
        /// The `w`.
        w: &'static str,
        /// The version that implies it.
        version: MongodVersion,
        /// Why no other default is known.
        why: String,
    },
    /// It is not known, for this reason.
    NotTold(String),
}

impl DefaultWriteConcern {
    /// Its `w`, as far as it is known.
    pub fn write_concern_w(&self) -> Option<&str> {
        match self {
            DefaultWriteConcern::Known(w) => Some(w),
            DefaultWriteConcern::Implied { w, .. } => Some(w),
            DefaultWriteConcern::NotTold(_) => None,
        }
    }
}

impl fmt::Display for DefaultWriteConcern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefaultWriteConcern::Known(w) => write!(f, "write concern w: {w}"),
            DefaultWriteConcern::Implied { w, version, why } => {
                write!(
                    f,
                    "write concern w: {w} (implied by MongoDB {version}, if no other default is set: {why})"
                )
            }
            DefaultWriteConcern::NotTold(why) => write!(f, "write concern: not told by the server ({why})"),
        }
    }
}

impl MongoFacts {
    /// Appends question number `number`.
    pub fn append_question(number: usize, options: &MongoOptions, out: &mut Vec<u8>) {
        let (command, database) = QUESTIONS[number];
        greeting::command(out, number as i32, options, database, |out| bson::put_int32(out, command, 1));
    }

    /// Looks for the answer to question number `number` at the start of `input`; returns the bytes used.
    pub fn read_answer(&mut self, number: usize, input: &[u8]) -> Result<Option<usize>, NotMessage> {
        let Some(header) = message::read_header(input)? else { return Ok(None) };
        self.learn_answer(number, message::read_document(header.code, &input[HEADER..header.bytes])?)?;
        Ok(Some(header.bytes))
    }

    /// Takes what the answer to question number `number`, a document, says.
    pub fn learn_answer(&mut self, number: usize, reply: &[u8]) -> Result<(), NotMessage> {
        let command = QUESTIONS[number].0;
        if is_ok(bson::find_element(reply, "ok")) {
            self.answered.push(command);
            self.refused.remove(command);
            if command == "replSetGetConfig" {
                let list = bson::element_at_path(reply, "config.members").and_then(|e| e.as_document());
                self.members = list.and_then(MemberCounts::count);
            }
            for (_, path, name) in KEPT.iter().filter(|(asked, ..)| *asked == command) {
                if let Some(value) = bson::element_at_path(reply, path).and_then(shown) {
                    self.all.insert((*name).to_owned(), value);
                }
            }
            if bson::find_element(reply, "hosts").is_some() {
                self.hosts.clear();
                // Members that cannot become primary are passive.
                for list in ["hosts", "passives"] {
                    let Some(hosts) = bson::find_element(reply, list).and_then(|e| e.as_document()) else {
                        continue;
                    };
                    let hosts = bson::read_elements(hosts).map_err(|_| NotMessage)?;
                    self.hosts.extend(hosts.flatten().filter_map(|e| e.as_str().map(str::to_owned)));
                }
                self.hello = reply.to_vec();
            }
        } else {
            let error = describe_error(reply);
            if REFUSED.contains(&error.code) {
                self.refused.insert(command, error.text);
            }
        }
        Ok(())
    }

    /// A fact.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all.get(name).map(String::as_str)
    }

    /// Product and version.
    pub fn product_name(&self) -> String {
        match (self.get("ferretdb_version"), self.get("version")) {
            (Some(version), _) => format!("FerretDB {}", version.trim_start_matches('v')),
            (None, Some(version)) => format!("MongoDB {version}"),
            (None, None) => "MongoDB of unknown version".into(),
        }
    }

    /// Names the questions that were refused, with the server's reason; `None` if there are none.
    pub fn refused_questions(&self) -> Option<String> {
        let all: Vec<String> =
            self.refused.iter().map(|(command, why)| format!("{command}: {why}")).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// The version of mongod or mongos; `None` for other servers and where it is not told.
    pub fn mongod_version(&self) -> Option<MongodVersion> {
        if self.get("ferretdb_version").is_some() {
            return None;
        }
        MongodVersion::parse(self.get("version")?)
    }

    /// The write concern of writes that name none: the cluster's default, that of the set before 5.0, or what the version
    /// implies. What was not answered is not taken for 1.
    pub fn default_write_concern(&self) -> DefaultWriteConcern {
        let known = |w: &str| DefaultWriteConcern::Known(w.to_owned());
        if let Some(w) = self.get("default_write_concern").or(self.get("default_write_concern_of_set")) {
            return known(w);
        }
        let is_set = self.get("replica_set").is_some();
        let has_greeted = self.has_answered("hello") || self.has_answered("isMaster");
        if has_greeted && !is_set && !self.is_router() {
            // A single server has no other copy to wait for.
            return known("1");
        }
        let Some(version) = self.mongod_version().filter(|_| has_greeted) else {
            return DefaultWriteConcern::NotTold(self.unanswered(&["hello", "buildInfo"]));
        };
        // Either of them names a default of the cluster, if there is one.
        let defaults = ["serverStatus", "getDefaultRWConcern"];
        let none_set = !version.has_cluster_defaults() || defaults.iter().any(|name| self.has_answered(name));
        if version.defaults_to_majority() {
            let implied = match self.members {
                Some(members) => {
                    Some(implicit_write_concern(members.arbiters, members.others, members.voters))
                }
                None => self.get("arbiters").is_none().then_some("majority"),
            };
            return match implied {
                None => {
                    let why = self.unanswered(&["replSetGetConfig"]);
                    DefaultWriteConcern::NotTold(format!("the set has arbiters; {why}"))
                }
                Some(w) if none_set => known(w),
                Some(w) => DefaultWriteConcern::Implied { w, version, why: self.unanswered(&defaults) },
            };
        }
        if self.is_router() {
            // Its shards decide.
            return DefaultWriteConcern::NotTold("a router does not tell the default of its shards".into());
        }
        match (none_set, self.has_answered("replSetGetConfig")) {
            (true, true) => known("1"),
            (false, true) => DefaultWriteConcern::NotTold(self.unanswered(&defaults)),
            (_, false) => DefaultWriteConcern::NotTold(self.unanswered(&["replSetGetConfig"])),
        }
    }

    fn has_answered(&self, command: &str) -> bool {
        self.answered.contains(&command)
    }

    /// Says of questions that were not answered whether they were refused.
    fn unanswered(&self, commands: &[&str]) -> String {
        let of = |command: &&str| match self.refused.get(*command) {
            Some(why) => format!("{command} was refused, {why}"),
            None => format!("{command} was not answered"),
        };
        let all: Vec<String> =
            commands.iter().filter(|command| !self.has_answered(command)).map(of).collect();
        all.join("; ")
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
        let words: Vec<&str> = bson::read_elements(list).ok()?.flatten().filter_map(|e| e.as_str()).collect();
        return Some(words.join(", ")).filter(|message| !message.is_empty());
    }
    match element.as_i64() {
        Some(number) => Some(number.to_string()),
        None => element.as_f64().map(|number| number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::bson::build_document;

    fn number_of(command: &str) -> usize {
        QUESTIONS.iter().position(|(asked, _)| *asked == command).unwrap()
    }

    fn answer(facts: &mut MongoFacts, command: &str, fields: impl FnOnce(&mut Vec<u8>)) {
        let reply = build_document(|out| {
            fields(out);
            bson::put_double(out, "ok", 1.0);
        });
        facts.learn_answer(number_of(command), &reply).unwrap();
    }

    fn refuse(facts: &mut MongoFacts, command: &str) {
        let reply = build_document(|out| {
            bson::put_double(out, "ok", 0.0);
            bson::put_string(out, "errmsg", "not authorized on admin");
            bson::put_int32(out, "code", 13);
            bson::put_string(out, "codeName", "Unauthorized");
        });
        facts.learn_answer(number_of(command), &reply).unwrap();
    }

    fn list(out: &mut Vec<u8>, name: &str, items: &[&str]) {
        bson::put_head(out, bson::kind::ARRAY, name);
        let at = bson::open(out);
        for (index, item) in items.iter().enumerate() {
            bson::put_item_head(out, bson::kind::STRING, index as u32);
            bson::put_text_value(out, item.as_bytes());
        }
        bson::close(out, at);
    }

    /// A member of a set of this version, with these arbiters.
    fn member(version: &str, arbiters: &[&str]) -> MongoFacts {
        let mut facts = MongoFacts::default();
        answer(&mut facts, "isMaster", |out| {
            bson::put_string(out, "setName", "rs0");
            list(out, "hosts", &["a:1", "b:1"]);
            if !arbiters.is_empty() {
                list(out, "arbiters", arbiters);
            }
        });
        answer(&mut facts, "buildInfo", |out| bson::put_string(out, "version", version));
        facts
    }

    /// A readable configuration of so many arbiters and others.
    fn configure(facts: &mut MongoFacts, arbiters: u32, others: u32) {
        answer(facts, "replSetGetConfig", |out| {
            let members = build_document(|out| {
                for index in 0..arbiters + others {
                    bson::put_item_head(out, bson::kind::DOCUMENT, index);
                    let at = bson::open(out);
                    bson::put_boolean(out, "arbiterOnly", index < arbiters);
                    bson::close(out, at);
                }
            });
            let config = build_document(|out| {
                bson::put_head(out, bson::kind::ARRAY, "members");
                out.extend_from_slice(&members);
            });
            bson::put_document(out, "config", &config);
        });
    }

    fn describe_facts(facts: &MongoFacts) -> String {
        facts.default_write_concern().to_string()
    }

    #[test]
    fn a_default_that_is_told_is_taken() {
        let mut facts = member("4.4.29", &[]);
        answer(&mut facts, "getDefaultRWConcern", |out| {
            bson::put_document(
                out,
                "defaultWriteConcern",
                &build_document(|out| bson::put_string(out, "w", "majority")),
            );
        });
        assert_eq!(describe_facts(&facts), "write concern w: majority");
    }

    #[test]
    fn a_single_server_acknowledges_alone() {
        for version in ["3.6.8", "8.2.0"] {
            let mut facts = MongoFacts::default();
            answer(&mut facts, "isMaster", |out| bson::put_boolean(out, "ismaster", true));
            answer(&mut facts, "buildInfo", |out| bson::put_string(out, "version", version));
            refuse(&mut facts, "serverStatus");
            assert_eq!(describe_facts(&facts), "write concern w: 1", "{version}");
        }
    }

    #[test]
    fn a_set_of_old_is_1_only_where_its_configuration_says_so() {
        for version in ["3.6.8", "4.0.28", "4.2.24"] {
            let mut facts = member(version, &[]);
            refuse(&mut facts, "replSetGetConfig");
            assert_eq!(
                describe_facts(&facts),
                "write concern: not told by the server (replSetGetConfig was refused, Unauthorized (13): not authorized \
                 on admin)",
                "{version}"
            );
            configure(&mut facts, 0, 3);
            assert_eq!(describe_facts(&facts), "write concern w: 1", "{version}");
        }
        // From 4.4 on the cluster may have a default of its own.
        let mut facts = member("4.4.29", &[]);
        configure(&mut facts, 0, 3);
        assert!(
            describe_facts(&facts).contains("not told by the server (serverStatus was not answered"),
            "{}",
            describe_facts(&facts)
        );
        answer(&mut facts, "serverStatus", |_| {});
        assert_eq!(describe_facts(&facts), "write concern w: 1");
    }

    #[test]
    fn a_new_set_is_majority_unless_it_has_arbiters() {
        for version in ["5.0.31", "6.0.20", "7.0.16", "8.0.4", "8.2.1"] {
            let mut facts = member(version, &[]);
            refuse(&mut facts, "serverStatus");
            refuse(&mut facts, "getDefaultRWConcern");
            let said = describe_facts(&facts);
            assert!(said.starts_with("write concern w: majority (implied by MongoDB "), "{said}");
            assert!(said.contains("serverStatus was refused, Unauthorized (13)"), "{said}");
            answer(&mut facts, "serverStatus", |_| {});
            assert_eq!(describe_facts(&facts), "write concern w: majority", "{version}");

            let mut facts = member(version, &["c:1"]);
            answer(&mut facts, "serverStatus", |_| {});
            let said = describe_facts(&facts);
            assert!(
                said.starts_with("write concern: not told by the server (the set has arbiters; "),
                "{said}"
            );
            configure(&mut facts, 1, 2);
            assert_eq!(describe_facts(&facts), "write concern w: 1", "{version}");
            configure(&mut facts, 1, 4);
            assert_eq!(describe_facts(&facts), "write concern w: majority", "{version}");
        }
    }

    #[test]
    fn a_router_of_old_and_a_server_without_a_version_do_not_tell() {
        let router = |version: Option<&str>| {
            let mut facts = MongoFacts::default();
            answer(&mut facts, "isMaster", |out| bson::put_string(out, "msg", "isdbgrid"));
            if let Some(version) = version {
                answer(&mut facts, "buildInfo", |out| bson::put_string(out, "version", version));
            }
            describe_facts(&facts)
        };
        assert!(router(Some("4.2.24")).contains("a router does not tell"));
        assert!(router(Some("7.0.1")).starts_with("write concern w: majority (implied by MongoDB 7.0"));
        assert_eq!(
            router(None),
            "write concern: not told by the server (hello was not answered; buildInfo was not answered)"
        );
        assert!(describe_facts(&MongoFacts::default()).contains("not told by the server"));
    }
}
