//! MongoDB: a replica set, and write concern `majority`; a single server, for a claim of one copy.

pub mod ingest_client;

use crate::command_error::CommandError;
use crate::connection::{GREETING, MongoConnection};
use crate::copies::ingest_client::{COMMAND, MongoIngestClient, counted, index_of};
use crate::probe::address;
use crate::protocol::{Deployment, MongoOptions};
use dyno_db::copies::database::{
    DatabaseError, IngestClient, PreCheck, ReplicatedStore, ReplicationLag, until_gone,
};
use dyno_db::copies::ledger::Ledger;
use dyno_db::copies::plan::{Durability, IngestPlan};
use dyno_db::copies::records::Records;
use dyno_db::copies::sent::Sent;
use dyno_db::probe::resolve_address;
use dyno_db::target_error::TargetError;
use dyno_engine::net::{TlsConfig, tls_config};
use dyno_types::address::Address;
use dyno_types::bson::{self, kind};
use dyno_types::mongod::MongodVersion;
use dyno_types::{RefusalCode, Refused};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The code by which a server says that there is no such collection.
const NAMESPACE_NOT_FOUND: i64 = 26;

/// Time that a member has for its greeting while others may answer.
const SOON: Duration = Duration::from_secs(1);

const NO_PRIMARY: DatabaseError = DatabaseError::NoPrimary("there is no primary now");

/// A replica set, or one server.
#[derive(Clone)]
pub struct MongoSet {
    options: Arc<MongoOptions>,
    tls: Option<Arc<TlsConfig>>,
    /// Members that a majority has.
    majority: Arc<OnceLock<usize>>,
    /// The primary's last write before the proof's first, ms since 1970: what copies were behind by then is not of the load.
    begun_ms: Arc<OnceLock<i64>>,
}

/// Facts that a server reports of itself.
struct Greeted {
    primary: Option<String>,
    set: Option<String>,
    router: bool,
}

impl MongoSet {
    /// From a URI's options; what proofs do not speak is refused.
    ///
    /// # Errors
    /// DNS has no seeds for the options, or TLS cannot be made ready.
    pub fn from_options(options: MongoOptions) -> Result<Self, Refused> {
        let options = crate::dns::seeds(options).map_err(|error| match error {
            TargetError::Refused(refused) => refused,
            TargetError::Unreachable(message) => Refused::new(RefusalCode::BadValue, "target", message),
        })?;
        let tls = options.tls.as_ref().map(tls_config).transpose()?;
        Ok(MongoSet {
            options: Arc::new(options),
            tls: tls.map(Arc::new),
            majority: Arc::default(),
            begun_ms: Arc::default(),
        })
    }

    fn line(&self, member: &str) -> Result<MongoConnection, CommandError> {
        self.line_within(GREETING, member)
    }

    fn line_within(&self, patience: Duration, member: &str) -> Result<MongoConnection, CommandError> {
        let endpoint = resolve_address(&address(member))?;
        let deployment = Deployment::single_server(endpoint.clone());
        MongoConnection::open_within(patience, &self.options, self.tls.as_ref(), &endpoint, &deployment)
    }

    /// Asks a member what it is.
    fn hello(&self, patience: Duration, member: &str) -> Result<Vec<u8>, CommandError> {
        let mut line = self.line_within(patience, member)?;
        let mut ask = |name: &str| line.send_command("admin", COMMAND, &|out| bson::put_int32(out, name, 1));
        match ask("hello") {
            // Servers before 4.4.2 know it by its old name alone.
            Err(CommandError::Refused(_)) => ask("isMaster"),
            answered => answered,
        }
    }

    fn greet(&self, patience: Duration, seed: &str) -> Result<Greeted, CommandError> {
        let hello = self.hello(patience, seed)?;
        let text = |name: &str| bson::find_element(&hello, name).and_then(|e| e.as_str()).map(str::to_owned);
        let writable = ["isWritablePrimary", "ismaster"]
            .iter()
            .any(|name| bson::find_element(&hello, name).is_some_and(|e| e.is_true()));
        let set = text("setName");
        let primary = match &set {
            Some(_) => text("primary"),
            None => writable.then(|| seed.to_owned()),
        };
        Ok(Greeted { primary, set, router: text("msg").is_some_and(|msg| msg == "isdbgrid") })
    }

    /// Returns whether a member says of itself that it is the primary.
    pub fn is_writable(&self, member: &str) -> bool {
        self.hello(GREETING, member).is_ok_and(|hello| {
            let says = |name| bson::find_element(&hello, name).is_some_and(|e| e.is_true());
            says("isWritablePrimary") || says("ismaster")
        })
    }

    /// A command on `admin` of a member, on a connection of its own.
    pub fn ask_member(&self, member: &str, fields: &dyn Fn(&mut Vec<u8>)) -> Result<Vec<u8>, CommandError> {
        self.line(member)?.send_command("admin", COMMAND, fields)
    }

    fn seeds(&self) -> Vec<String> {
        self.options.addresses.iter().map(named).collect()
    }

    /// The greeting of the first seed that names a primary, else of the first that answers: a member that is cut off from the
    /// others knows of none. One that is frozen is waited for only if no other answers.
    fn greeted(&self) -> Result<Greeted, DatabaseError> {
        self.greeted_within(SOON).or_else(|_| self.greeted_within(GREETING))
    }

    fn greeted_within(&self, patience: Duration) -> Result<Greeted, DatabaseError> {
        let mut without = Err(DatabaseError::NoPrimary("no seed"));
        for seed in self.seeds() {
            match self.greet(patience, &seed) {
                Ok(greeted) if greeted.primary.is_some() => return Ok(greeted),
                Ok(greeted) => without = without.or(Ok(greeted)),
                Err(error) => without = without.map_err(|_| error.into()),
            }
        }
        without
    }

    /// Returns the size of a majority; `None` where the configuration cannot be read. Only what was read is kept.
    fn majority(&self, primary: &str) -> Option<usize> {
        if let Some(known) = self.majority.get() {
            return Some(*known);
        }
        let majority = self.voters(primary).ok()?.len() / 2 + 1;
        Some(*self.majority.get_or_init(|| majority))
    }

    /// Value that the primary reports: a command's name, and a path in its reply.
    fn told(&self, primary: &str, command: &str, path: &str) -> Option<String> {
        let reply = self.ask_member(primary, &|out| bson::put_int32(out, command, 1)).ok()?;
        bson::element_at_path(&reply, path).map(|found| shown(&found))
    }

    /// Returns whether a member keeps a journal; `None` where its options cannot be read and its version does not decide it.
    fn is_journaled(&self, primary: &str) -> Option<bool> {
        let version = self.told(primary, "buildInfo", "version").and_then(|text| MongodVersion::parse(&text));
        if version.is_some_and(MongodVersion::always_journals) {
            return Some(true);
        }
        let options = self.ask_member(primary, &|out| bson::put_int32(out, "getCmdLineOpts", 1)).ok()?;
        // A journal is on where no option switches it off.
        Some(
            bson::element_at_path(&options, "parsed.storage.journal.enabled")
                .is_none_or(|enabled| enabled.is_true()),
        )
    }

    /// Returns whether the set's configuration has a majority write to its journals. Servers before 4.4 leave out what is the
    /// default of their protocol: of version 1 it is true.
    fn majority_is_journaled(&self, primary: &str) -> Option<bool> {
        let told = |name: &str| self.told(primary, "replSetGetConfig", &format!("config.{name}"));
        match told("writeConcernMajorityJournalDefault").as_deref() {
            Some(text) => Some(text == "true"),
            None => told("protocolVersion").map(|version| version == "1"),
        }
    }

    /// State and last write (ms since 1970) of every member, by the primary.
    fn states(&self, primary: &str) -> Result<Vec<(String, String, i64)>, CommandError> {
        let status = self.ask_member(primary, &|out| bson::put_int32(out, "replSetGetStatus", 1))?;
        let members =
            bson::find_element(&status, "members").and_then(|e| e.as_document()).unwrap_or_default();
        let all =
            bson::read_elements(members).into_iter().flatten().flatten().filter_map(|e| e.as_document());
        let of = |member: &[u8]| {
            let text = |name: &str| bson::find_element(member, name)?.as_str().map(str::to_owned);
            let at = bson::find_element(member, "optimeDate").and_then(|at| at.as_i64()).unwrap_or_default();
            Some((text("name")?, text("stateStr")?, at))
        };
        Ok(all.filter_map(of).collect())
    }

    /// Members of the configuration that hold data and have a vote: a majority of them is what `majority` means.
    fn voters(&self, primary: &str) -> Result<Vec<String>, DatabaseError> {
        let told = self.ask_member(primary, &|out| bson::put_int32(out, "replSetGetConfig", 1))?;
        let members = bson::element_at_path(&told, "config.members").and_then(|e| e.as_document());
        let members =
            members.ok_or_else(|| DatabaseError::incomplete_reply("replSetGetConfig names no members"))?;
        Ok(bearing(members))
    }
}

/// Hosts of members that hold data and vote, of the array of a configuration.
fn bearing(members: &[u8]) -> Vec<String> {
    let documents =
        bson::read_elements(members).into_iter().flatten().flatten().filter_map(|e| e.as_document());
    let bears = |member: &&[u8]| {
        let arbiter = bson::find_element(member, "arbiterOnly").is_some_and(|e| e.is_true());
        !arbiter && bson::find_element(member, "votes").and_then(|e| e.as_i64()) != Some(0)
    };
    documents
        .filter(bears)
        .filter_map(|member| bson::find_element(member, "host")?.as_str().map(str::to_owned))
        .collect()
}

/// `host:port`, or a socket's path.
fn named(address: &Address) -> String {
    match address {
        Address::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
        Address::Tcp(host, port) => format!("{host}:{port}"),
        Address::Unix(path) => path.display().to_string(),
    }
}

/// A value for a reader.
fn shown(found: &bson::Element<'_>) -> String {
    match (found.as_str(), found.kind, found.as_f64()) {
        (Some(text), ..) => text.to_owned(),
        (_, kind::BOOLEAN, _) => found.is_true().to_string(),
        (_, _, Some(number)) => number.to_string(),
        _ => "told, but no value".into(),
    }
}

/// Seconds and order of an optime, which compare as they stand.
fn optime(status: &[u8], path: &str) -> Option<u64> {
    bson::element_at_path(status, path)?.as_timestamp()
}

impl ReplicatedStore for MongoSet {
    fn keeps_documents(&self) -> bool {
        true
    }

    fn primary(&self) -> Result<String, DatabaseError> {
        self.greeted()?.primary.ok_or(NO_PRIMARY)
    }

    fn replicas(&self) -> Result<Vec<String>, DatabaseError> {
        let greeted = self.greeted()?;
        let (Some(primary), Some(_)) = (greeted.primary, greeted.set) else { return Ok(Vec::new()) };
        let all = self.states(&primary)?.into_iter();
        Ok(all.filter(|(_, state, _)| state == "SECONDARY").map(|(name, ..)| name).collect())
    }

    fn pre_checks(&self, copies: usize, durability: Durability) -> Result<Vec<PreCheck>, DatabaseError> {
        let greeted = self.greeted()?;
        let set = greeted.set.clone();
        let mut checks = vec![PreCheck::new("no router", !greeted.router, "members are asked themselves")];
        let primary = greeted.primary.ok_or(NO_PRIMARY)?;
        let told = |command: &str, path: &str| self.told(&primary, command, path);
        let known = |value: Option<String>| value.unwrap_or_else(|| "not told".into());
        checks.push(PreCheck::new("version", true, known(told("buildInfo", "version"))));
        let engine = known(told("serverStatus", "storageEngine.name"));
        let durable =
            durability == Durability::Memory || !["inMemory", "ephemeralForTest"].contains(&engine.as_str());
        checks.push(PreCheck::new("storage engine", durable, engine));
        let replicas = self.replicas()?;
        let away: Vec<String> = self
            .states(&primary)
            .unwrap_or_default()
            .into_iter()
            .filter(|(_, state, _)| !["PRIMARY", "SECONDARY", "ARBITER"].contains(&state.as_str()))
            .map(|(name, state, _)| format!("{name} is {state}"))
            .collect();
        let away = if away.is_empty() { String::new() } else { format!("; no copy: {}", away.join(", ")) };
        let found = format!("{} ({}){away}", replicas.len(), replicas.join(", "));
        checks.push(PreCheck::new("secondaries", replicas.len() + 1 >= copies, found));
        if set.is_some() {
            let voters = self.voters(&primary)?;
            let majority = voters.len() / 2 + 1;
            let (name, waited) = if copies <= majority {
                ("w: majority".to_owned(), majority)
            } else {
                (format!("w: {copies}"), copies)
            };
            let found = format!("{waited} of {} members with data and a vote", voters.len());
            checks.push(PreCheck::new(&name, waited <= voters.len(), found));
            let journal = self.majority_is_journaled(&primary).map(|journaled| journaled.to_string());
            checks.push(PreCheck::new("writeConcernMajorityJournalDefault", true, known(journal)));
            let concern = told("getDefaultRWConcern", "defaultWriteConcern.w");
            checks.push(PreCheck::new("default write concern", true, known(concern)));
        }
        let hosts = replicas.iter().chain([&primary]).map(|member| {
            let host = member.rsplit_once(':').map_or(member.as_str(), |(host, _)| host);
            host.to_owned()
        });
        checks.push(PreCheck::count_hosts(hosts.collect(), copies));
        Ok(checks)
    }

    fn acknowledges(&self, plan: &IngestPlan) -> (Durability, String) {
        let primary = self.primary().unwrap_or_default();
        let journaled = plan.copies > 1
            && self.majority(&primary).is_some_and(|majority| plan.copies <= majority)
            && self.majority_is_journaled(&primary) == Some(true)
            && self.is_journaled(&primary) == Some(true);
        match (plan.durability, journaled) {
            (Durability::Disk, _) => (Durability::Disk, "in a journal on disk (j: true)".into()),
            (_, true) => {
                (Durability::Disk, "in a journal on disk (writeConcernMajorityJournalDefault)".into())
            }
            (Durability::Memory, false) => (Durability::Memory, "in memory".into()),
        }
    }

    fn prepare(&self, plan: &IngestPlan) -> Result<(), DatabaseError> {
        let records = plan.record_recipe();
        let primary = self.primary()?;
        let mut line = self.line(&primary)?;
        for index in 0..records.indexes {
            let (name, field) = index_of(&records, index);
            let made = line.send_command(&self.options.database, COMMAND, &|out| {
                bson::put_string(out, "createIndexes", &records.run_collection());
                bson::put_head(out, kind::ARRAY, "indexes");
                let list = bson::open(out);
                bson::put_item_head(out, kind::DOCUMENT, 0);
                let one = bson::open(out);
                bson::put_head(out, kind::DOCUMENT, "key");
                let key = bson::open(out);
                bson::put_int32(out, &field, 1);
                bson::close(out, key);
                bson::put_string(out, "name", &name);
                bson::close(out, one);
                bson::close(out, list);
            });
            made?;
        }
        let written = self.states(&primary).unwrap_or_default();
        if let Some((.., at)) = written.into_iter().find(|(name, ..)| *name == primary) {
            self.begun_ms.get_or_init(|| at);
        }
        Ok(())
    }

    fn connect(&self, member: &str, patience: Duration) -> Result<Box<dyn IngestClient>, DatabaseError> {
        // A writer whose primary is frozen looks for another soon.
        let greeting = if patience.is_zero() { GREETING } else { patience.max(SOON) };
        let line = self.line_within(greeting, member)?;
        let majority = self.majority(member);
        let (database, sent) = (self.options.database.clone(), Sent::default());
        Ok(Box::new(MongoIngestClient { line, database, majority, sent }))
    }

    fn caught_up(&self, replica: &str) -> Result<bool, DatabaseError> {
        let of = |member: &str| {
            let status = self.ask_member(member, &|out| bson::put_int32(out, "replSetGetStatus", 1))?;
            optime(&status, "optimes.appliedOpTime.ts")
                .ok_or_else(|| DatabaseError::incomplete_reply(format!("{member}: no appliedOpTime")))
        };
        Ok(of(replica)? >= of(&self.primary()?)?)
    }

    fn clock_ns(&self, member: &str) -> Result<u64, DatabaseError> {
        let told = self.ask_member(member, &|out| bson::put_int32(out, "isMaster", 1))?;
        let ms = bson::find_element(&told, "localTime").and_then(|time| time.as_i64());
        ms.map(|ms| ms.cast_unsigned() * 1_000_000)
            .ok_or_else(|| DatabaseError::incomplete_reply("it says no time"))
    }

    fn behind(&self) -> Result<ReplicationLag, DatabaseError> {
        let all = self.states(&self.primary()?)?;
        let written = all.iter().find(|(_, state, _)| state == "PRIMARY").map(|(.., at)| *at);
        let written = written.ok_or(DatabaseError::NoPrimary("no member is primary"))?;
        let begun = self.begun_ms.get().copied().unwrap_or(i64::MIN);
        let copies = all.into_iter().filter(|(_, state, _)| state == "SECONDARY");
        // Optimes have whole seconds. A copy that has nothing of the load yet is behind by the load alone.
        let behind = copies.map(|(name, _, at)| (name, ((written - at.max(begun)) as f64 / 1e3).max(0.0)));
        Ok(("s of the oplog", behind.collect()))
    }

    fn existing(&self, plan: &IngestPlan) -> Result<u64, DatabaseError> {
        let mut line = self.line(&self.primary()?)?;
        let collection = plan.record_recipe().run_collection();
        counted(line.send_command(&self.options.database, COMMAND, &|out| {
            bson::put_string(out, "count", &collection)
        }))
    }

    fn storage(&self, plan: &IngestPlan) -> Result<BTreeMap<String, f64>, DatabaseError> {
        let mut line = self.line(&self.primary()?)?;
        let collection = plan.record_recipe().run_collection();
        let told = line.send_command(&self.options.database, COMMAND, &|out| {
            bson::put_string(out, "collStats", &collection)
        });
        let told = told?;
        let names = ["count", "size", "avgObjSize", "storageSize", "nindexes", "totalIndexSize"];
        let of = |name: &str| Some((name.to_owned(), bson::find_element(&told, name)?.as_f64()?));
        Ok(names.into_iter().filter_map(of).collect())
    }

    fn remove(&self, records: &Records, _: Option<&Ledger>) -> Result<(), DatabaseError> {
        let collection = records.run_collection();
        let mut line = self.line(&self.primary()?)?;
        until_gone(|| {
            let writes = is_written_to(&mut line, &collection);
            let dropped = line.send_command(&self.options.database, COMMAND, &|out| {
                bson::put_string(out, "drop", &collection)
            });
            match dropped {
                // Servers from 7.0 on have dropped a collection that is not there, too, but none of its indexes.
                Ok(told) => Ok(writes || bson::find_element(&told, "nIndexesWas").is_some()),
                Err(error) if error.server_code() == Some(NAMESPACE_NOT_FOUND) => Ok(writes),
                Err(error) => Err(error.into()),
            }
        })
    }
}

/// Returns whether an operation that the server has begun names a collection. An insert whose client is gone goes on, and would
/// make the collection again after its drop. A server that does not tell its operations counts as one without any.
fn is_written_to(line: &mut MongoConnection, collection: &str) -> bool {
    let told = line.send_command("admin", COMMAND, &|out| {
        bson::put_int32(out, "currentOp", 1);
        bson::put_boolean(out, "$ownOps", true);
    });
    told.is_ok_and(|told| told.windows(collection.len()).any(|part| part == collection.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::bson::build_document as document;

    #[test]
    fn arbiters_and_members_without_a_vote_make_no_majority() {
        let member = |host: &str, arbiter: bool, votes: i32| {
            document(|out| {
                bson::put_string(out, "host", host);
                bson::put_boolean(out, "arbiterOnly", arbiter);
                bson::put_int32(out, "votes", votes);
            })
        };
        let members = document(|out| {
            bson::put_document(out, "0", &member("a:1", false, 1));
            bson::put_document(out, "1", &member("b:1", true, 1));
            bson::put_document(out, "2", &member("c:1", false, 0));
            bson::put_document(out, "3", &member("d:1", false, 1));
        });
        assert_eq!(bearing(&members), ["a:1", "d:1"]);
    }
}
