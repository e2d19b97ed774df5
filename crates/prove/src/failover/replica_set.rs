//! MongoDB: a replica set of mongod, which elects a primary by itself.
//!
//! Members fetch the oplog in answers to their own questions, not as a stream (`oplogFetcherUsesExhaust: false`): a stream
//! would fill the sockets of members that stand still, and what they then read after the kill would be on more than one
//! member.
//!
//! Where the primary is cut off, every member has a network namespace of its own: mongod cannot say which address its
//! connections come from.

use crate::failover::cluster::{ELECTION, FailoverCluster, FailoverError, await_some, pause};
use crate::failover::partition::Partition;
use crate::failover::plan::{Disruption, FailoverPlan};
use dyno_config::server::{ServerSpec, Setting, Topology};
use dyno_config::values::Bytes;
use dyno_db::copies::database::DatabaseError;
use dyno_db::copies::database::ReplicatedStore;
use dyno_db_mongodb::copies::MongoSet;
use dyno_db_mongodb::protocol::MongoOptions;
use dyno_engine::Control;
use dyno_hosts::servers::server::faults::ServerFault;
use dyno_hosts::servers::server::{Beginning, Server};
use dyno_localhost::machine::Machine;
use dyno_types::bson::{self, kind};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The least cache that mongod takes.
const CACHE: u64 = 256 << 20;
/// The database of the proof's records.
const DATABASE: &str = "proofs";

/// The members.
pub(super) struct ReplicaSet<'a> {
    plan: &'a FailoverPlan,
    control: Arc<Control>,
    server: Server,
    set: MongoSet,
    /// After the servers: its networks are theirs.
    partition: Option<Partition>,
    /// By what the primary that is frozen goes on.
    frozen: Vec<u64>,
}

impl<'a> ReplicaSet<'a> {
    /// Starts the members, forms the set, and waits until one is primary and all others are secondaries.
    pub fn start(
        plan: &'a FailoverPlan,
        work_dir: &Path,
        control: &Arc<Control>,
    ) -> Result<Self, FailoverError> {
        let machine = Machine::default();
        let mut spec = ServerSpec::of(plan.kind);
        (spec.topology, spec.members) = (Topology::ReplicaSet, Some(plan.replicas + 1));
        spec.cache = Some(Bytes(CACHE));
        let version = dyno_hosts::servers::preflight::version_of(&spec, &machine)?;
        if streams(&version) {
            spec.options.insert("setParameter.oplogFetcherUsesExhaust".into(), Setting::Switch(false));
        }
        let mut partition = (plan.by == Disruption::Cut).then(|| Partition::new(&machine)).transpose()?;
        let ways =
            partition.as_mut().map(|partition| partition.ways(work_dir, plan.replicas + 1)).transpose()?;
        let begin = Beginning { ways: ways.as_deref().unwrap_or_default(), ..Beginning::default() };
        let members = work_dir.join("members");
        let server = Server::start_with(&spec, &begin, &members, &machine, Some(control.clone()))?;
        let uri = server.client_uris().swap_remove(0).replacen("/?", &format!("/{DATABASE}?"), 1);
        let set = MongoSet::from_options(MongoOptions::from_uri(&uri)?)?;
        let set = ReplicaSet { plan, control: control.clone(), server, set, partition, frozen: Vec::new() };
        let primary = set.await_healthy()?;
        set.hurry(&primary)?;
        set.await_healthy()?;
        Ok(set)
    }

    /// Tells the set after how long without a sign a member counts as down.
    fn hurry(&self, primary: &str) -> Result<(), FailoverError> {
        let told = self.set.ask_member(primary, &|out| bson::put_int32(out, "replSetGetConfig", 1));
        let told = told.map_err(DatabaseError::from)?;
        let config = bson::find_element(&told, "config").and_then(|e| e.as_document());
        let config = config.and_then(|config| hurried(config, self.plan.down_after));
        let lacks =
            || DatabaseError::incomplete_reply(format!("{primary}: replSetGetConfig tells no configuration"));
        let config = config.ok_or_else(lacks)?;
        let changed =
            self.set.ask_member(primary, &|out| bson::put_document(out, "replSetReconfig", &config));
        changed.map(drop).map_err(|error| FailoverError::Member {
            step: format!("{primary}: replSetReconfig"),
            source: error.into(),
        })
    }

    fn members(&self) -> Vec<String> {
        self.server.process_sockets().iter().map(ToString::to_string).collect()
    }

    fn number(&self, member: &str) -> Result<usize, FailoverError> {
        let at = self.members().iter().position(|one| one == member);
        at.ok_or_else(|| FailoverError::UnknownMember(member.to_owned()))
    }

    /// Stops the others, waits, kills or freezes.
    fn isolate(&mut self, at: usize, halted: &mut Vec<u64>) -> Result<Instant, FailoverError> {
        for other in (0..self.server.count()).filter(|other| *other != at) {
            halted.extend(self.inject(other, &ServerFault::Pause)?);
        }
        pause(self.plan.isolate, &self.control);
        match self.plan.by {
            Disruption::Freeze => self.frozen = self.inject(at, &ServerFault::Pause)?,
            Disruption::Kill | Disruption::Cut => drop(self.inject(at, &ServerFault::Restart)?),
        }
        Ok(Instant::now())
    }

    /// Does it to one member; what takes it back.
    fn inject(&mut self, member: usize, fault: &ServerFault) -> Result<Vec<u64>, FailoverError> {
        let done = self.server.inject_fault(member..member + 1, fault);
        done.failed.map_or(Ok(done.noted), |why| Err(FailoverError::Fault(why)))
    }
}

impl FailoverCluster for ReplicaSet<'_> {
    fn version(&self) -> String {
        self.server.server_facts().get("version").cloned().unwrap_or_else(|| "unknown".into())
    }

    fn database(&self) -> Arc<dyn ReplicatedStore> {
        Arc::new(self.set.clone())
    }

    fn inject(&mut self, primary: &str) -> Result<Instant, FailoverError> {
        let at = self.number(primary)?;
        if let Some(partition) = &self.partition {
            let sockets = self.server.process_sockets();
            let others = sockets.iter().enumerate().filter(|(other, _)| *other != at);
            let others: Vec<IpAddr> = others.map(|(_, socket)| socket.ip()).collect();
            partition.cut(sockets[at].ip(), &others)?;
            return Ok(Instant::now());
        }
        let mut halted = Vec::new();
        let gone = self.isolate(at, &mut halted);
        self.server.heal_fault(&[], &ServerFault::Pause, &halted)?;
        gone
    }

    fn new_primary(&self, of: &str) -> Option<String> {
        self.members().into_iter().find(|member| member != of && self.set.is_writable(member))
    }

    fn heal(&mut self, old: &str, _new: &str) -> Result<Instant, FailoverError> {
        let at = self.number(old)?;
        let begun = Instant::now();
        if let Some(partition) = &self.partition {
            partition.heal()?;
            return Ok(begun);
        }
        match self.plan.by {
            Disruption::Freeze => {
                let frozen = std::mem::take(&mut self.frozen);
                self.server.heal_fault(&[], &ServerFault::Pause, &frozen)?;
            }
            Disruption::Kill | Disruption::Cut => {
                drop(self.server.heal_fault(&[at], &ServerFault::Restart, &[])?)
            }
        }
        Ok(begun)
    }

    fn is_replica(&self, old: &str, _new: &str) -> bool {
        self.set.replicas().is_ok_and(|all| all.iter().any(|one| one == old))
    }

    fn await_healthy(&self) -> Result<String, FailoverError> {
        let whole = || {
            let primary = self.set.primary().ok().filter(|primary| self.set.is_writable(primary))?;
            let replicas = self.set.replicas().ok()?;
            (replicas.len() == self.plan.replicas as usize && !replicas.contains(&primary)).then_some(primary)
        };
        await_some(ELECTION, &self.control, "one primary, and all others secondaries: not", whole)
    }
}

/// Returns whether members of this version stream the oplog unless told otherwise: 4.4 and later; an unknown one is
/// taken for a new one.
fn streams(version: &str) -> bool {
    let number = version.split(['v', ' ', ',']).find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let mut parts = number.unwrap_or_default().split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (4, 4),
        _ => true,
    }
}

/// A configuration with its next version, by which a member counts as down after `down_after`; signs of life go four times
/// as often.
fn hurried(config: &[u8], down_after: Duration) -> Option<Vec<u8>> {
    let version = bson::find_element(config, "version")?.as_i64()?;
    let down_ms = i32::try_from(down_after.as_millis()).ok()?.max(4);
    let own = [("electionTimeoutMillis", down_ms), ("heartbeatIntervalMillis", down_ms / 4)];
    let settings = bson::find_element(config, "settings").and_then(|e| e.as_document());
    let mut out = Vec::new();
    let whole = bson::open(&mut out);
    copy(&mut out, config, &["version", "settings", "term"])?;
    bson::put_int32(&mut out, "version", i32::try_from(version + 1).ok()?);
    bson::put_head(&mut out, kind::DOCUMENT, "settings");
    let at = bson::open(&mut out);
    settings.map_or(Some(()), |all| copy(&mut out, all, &own.map(|(name, _)| name)))?;
    own.iter().for_each(|(name, value)| bson::put_int32(&mut out, name, *value));
    bson::close(&mut out, at);
    bson::close(&mut out, whole);
    Some(out)
}

/// Copies the elements of a document but those of some names.
fn copy(out: &mut Vec<u8>, document: &[u8], without: &[&str]) -> Option<()> {
    for element in bson::read_elements(document).ok()? {
        let element = element.ok()?;
        let name = std::str::from_utf8(element.name).ok()?;
        if !without.contains(&name) {
            bson::put_head(out, element.kind, name);
            out.extend_from_slice(element.value);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::bson::build_document as document;

    #[test]
    fn a_configuration_keeps_what_it_does_not_change() {
        let config = document(|out| {
            bson::put_string(out, "_id", "rs0");
            bson::put_int32(out, "version", 3);
            bson::put_int64(out, "term", 7);
            let members = document(|out| bson::put_string(out, "0", "a:1"));
            bson::put_head(out, kind::ARRAY, "members");
            out.extend_from_slice(&members);
            let settings = document(|out| {
                bson::put_boolean(out, "chainingAllowed", true);
                bson::put_int32(out, "electionTimeoutMillis", 10_000);
            });
            bson::put_document(out, "settings", &settings);
        });
        let found = hurried(&config, Duration::from_secs(2)).unwrap();
        bson::check(&found).unwrap();
        let number = |path: &str| bson::element_at_path(&found, path).and_then(|e| e.as_i64());
        assert_eq!(number("version"), Some(4));
        assert_eq!(number("settings.electionTimeoutMillis"), Some(2_000));
        assert_eq!(number("settings.heartbeatIntervalMillis"), Some(500));
        assert!(bson::element_at_path(&found, "settings.chainingAllowed").unwrap().is_true());
        assert_eq!(bson::element_at_path(&found, "members.0").unwrap().as_str(), Some("a:1"));
        assert_eq!(bson::find_element(&found, "_id").unwrap().as_str(), Some("rs0"));
        // The server knows its term itself.
        assert!(bson::find_element(&found, "term").is_none());
        assert_eq!(hurried(&document(|_| ()), Duration::from_secs(1)), None);
    }

    #[test]
    fn what_streams_is_told_not_to() {
        assert!(!streams("db version v4.2.24"));
        assert!(streams("db version v4.4.0") && streams("db version v8.0.4") && streams("unknown"));
    }
}
