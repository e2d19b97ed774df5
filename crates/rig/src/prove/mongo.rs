//! MongoDB: a replica set, and write concern `majority`; a single server, for a claim of one copy.

use super::database::{Database, Durability, Fate, Part, PreCheck, Talk};
use super::drive::IngestPlan;
use super::ledger::Ledger;
use super::records::Records;
use crate::mongo::{MongoLine, Unanswered, address};
use crate::probe::resolve;
use dyno_engine::net::{TlsConfig, tls_config};
use dyno_types::bson::{self, kind};
use dyno_wire::mongodb::{Deployment, MongoOptions, put_command};
use dyno_wire::place::Address;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one command may take, beyond what a write waits for its copies.
const COMMAND: Duration = Duration::from_secs(10);
/// Most bytes of documents in one insert: a command ends at 16 MiB.
const INSERT_BYTES: u64 = 12 << 20;

/// A replica set, or one server.
#[derive(Clone)]
pub struct MongoSet {
    options: Arc<MongoOptions>,
    tls: Option<Arc<TlsConfig>>,
}

/// What a server says of itself.
struct Greeted {
    primary: Option<String>,
    set: Option<String>,
    router: bool,
}

impl MongoSet {
    /// From a URI's options; what proofs do not speak is refused.
    pub fn of(options: MongoOptions) -> Result<Self, String> {
        let options = crate::dns::seeds(options).map_err(|e| e.to_string())?;
        let tls = options.tls.as_ref().map(tls_config).transpose().map_err(|refused| refused.0)?;
        Ok(MongoSet { options: Arc::new(options), tls: tls.map(Arc::new) })
    }

    fn line(&self, member: &str) -> Result<MongoLine, String> {
        let endpoint = resolve(&address(member))?;
        let deployment = Deployment::single(endpoint.clone());
        MongoLine::open(&self.options, self.tls.as_ref(), &endpoint, &deployment)
    }

    fn greet(&self, seed: &str) -> Result<Greeted, String> {
        // Servers before 4.4.2 know it by its old name alone.
        let greet = |name: &str| self.ask(seed, &|out| bson::int32(out, name, 1));
        let hello = greet("hello").or_else(|_| greet("isMaster"))?;
        let text = |name: &str| bson::find(&hello, name).and_then(|e| e.as_str()).map(str::to_owned);
        let writable = ["isWritablePrimary", "ismaster"]
            .iter()
            .any(|name| bson::find(&hello, name).is_some_and(|e| e.is_true()));
        let set = text("setName");
        let primary = match &set {
            Some(_) => text("primary"),
            None => writable.then(|| seed.to_owned()),
        };
        Ok(Greeted { primary, set, router: text("msg").is_some_and(|msg| msg == "isdbgrid") })
    }

    /// Whether a member says of itself that it is the primary.
    pub(super) fn is_writable(&self, member: &str) -> bool {
        let reply = self.ask(member, &|out| bson::int32(out, "hello", 1));
        let reply = reply.or_else(|_| self.ask(member, &|out| bson::int32(out, "isMaster", 1)));
        reply.is_ok_and(|hello| {
            let says = |name| bson::find(&hello, name).is_some_and(|e| e.is_true());
            says("isWritablePrimary") || says("ismaster")
        })
    }

    /// A command on `admin` of a member, on a connection of its own.
    pub(super) fn ask(&self, member: &str, fields: &dyn Fn(&mut Vec<u8>)) -> Result<Vec<u8>, String> {
        self.line(member)?.call("admin", COMMAND, fields).map_err(Unanswered::words)
    }

    fn seeds(&self) -> Vec<String> {
        self.options.addresses.iter().map(named).collect()
    }

    /// The greeting of the first seed that answers.
    fn greeted(&self) -> Result<Greeted, String> {
        let mut why = "no seed".to_owned();
        for seed in self.seeds() {
            match self.greet(&seed) {
                Ok(greeted) => return Ok(greeted),
                Err(words) => why = words,
            }
        }
        Err(why)
    }

    /// Members of the configuration that hold data and have a vote: a majority of them is what `majority` means.
    fn voters(&self, primary: &str) -> Result<Vec<String>, String> {
        let told = self.ask(primary, &|out| bson::int32(out, "replSetGetConfig", 1))?;
        let members = bson::path(&told, "config.members").and_then(|e| e.as_document());
        let members = members.ok_or("replSetGetConfig names no members")?;
        Ok(bearing(members))
    }
}

/// Hosts of members that hold data and vote, of the array of a configuration.
fn bearing(members: &[u8]) -> Vec<String> {
    let documents = bson::elements(members).into_iter().flatten().flatten().filter_map(|e| e.as_document());
    let bears = |member: &&[u8]| {
        let arbiter = bson::find(member, "arbiterOnly").is_some_and(|e| e.is_true());
        !arbiter && bson::find(member, "votes").and_then(|e| e.as_i64()) != Some(0)
    };
    documents
        .filter(bears)
        .filter_map(|member| bson::find(member, "host")?.as_str().map(str::to_owned))
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
    bson::path(status, path)?.as_timestamp()
}

impl Database for MongoSet {
    fn primary(&self) -> Result<String, String> {
        self.greeted()?.primary.ok_or_else(|| "there is no primary now".to_owned())
    }

    fn replicas(&self) -> Result<Vec<String>, String> {
        let greeted = self.greeted()?;
        let (Some(primary), Some(_)) = (greeted.primary, greeted.set) else { return Ok(Vec::new()) };
        let status = self.ask(&primary, &|out| bson::int32(out, "replSetGetStatus", 1))?;
        let members = bson::find(&status, "members").and_then(|e| e.as_document()).unwrap_or_default();
        let documents =
            bson::elements(members).into_iter().flatten().flatten().filter_map(|e| e.as_document());
        let secondary = |member: &&[u8]| {
            bson::find(member, "stateStr").and_then(|e| e.as_str()).is_some_and(|state| state == "SECONDARY")
        };
        let name = |member: &[u8]| bson::find(member, "name")?.as_str().map(str::to_owned);
        Ok(documents.filter(secondary).filter_map(name).collect())
    }

    fn pre_checks(&self, copies: usize, durability: Durability) -> Result<Vec<PreCheck>, String> {
        let greeted = self.greeted()?;
        let set = greeted.set.clone();
        let mut checks = vec![PreCheck::new("no router", !greeted.router, "members are asked themselves")];
        let primary = greeted.primary.ok_or("there is no primary now")?;
        let told = |command: &str, path: &str| {
            let reply = self.ask(&primary, &|out| bson::int32(out, command, 1)).ok()?;
            bson::path(&reply, path).map(|found| shown(&found))
        };
        let known = |value: Option<String>| value.unwrap_or_else(|| "not told".into());
        checks.push(PreCheck::new("version", true, known(told("buildInfo", "version"))));
        let engine = known(told("serverStatus", "storageEngine.name"));
        let durable =
            durability == Durability::Memory || !["inMemory", "ephemeralForTest"].contains(&engine.as_str());
        checks.push(PreCheck::new("storage engine", durable, engine));
        let replicas = self.replicas()?;
        let found = format!("{} ({})", replicas.len(), replicas.join(", "));
        checks.push(PreCheck::new("secondaries", replicas.len() + 1 >= copies, found));
        if set.is_some() {
            let voters = self.voters(&primary)?;
            let majority = voters.len() / 2 + 1;
            let found = format!("{majority} of {} members with data and a vote", voters.len());
            checks.push(PreCheck::new("w: majority", copies <= majority, found));
            let name = "writeConcernMajorityJournalDefault";
            let journal = told("replSetGetConfig", &format!("config.{name}"));
            checks.push(PreCheck::new(name, true, known(journal)));
            let concern = told("getDefaultRWConcern", "defaultWriteConcern.w");
            checks.push(PreCheck::new("default write concern", true, known(concern)));
        }
        let hosts = replicas.iter().chain([&primary]).map(|member| {
            let host = member.rsplit_once(':').map_or(member.as_str(), |(host, _)| host);
            host.to_owned()
        });
        checks.push(PreCheck::hosts(hosts.collect(), copies));
        Ok(checks)
    }

    fn prepare(&self, plan: &IngestPlan) -> Result<(), String> {
        let records = plan.contents();
        let mut line = self.line(&self.primary()?)?;
        for index in 0..records.indexes {
            let made = line.call(&self.options.database, COMMAND, &|out| {
                bson::string(out, "createIndexes", &records.collection());
                bson::head(out, kind::ARRAY, "indexes");
                let list = bson::open(out);
                bson::item(out, kind::DOCUMENT, 0);
                let one = bson::open(out);
                by(out, "key", index);
                bson::string(out, "name", &name(index));
                bson::close(out, one);
                bson::close(out, list);
            });
            made.map_err(Unanswered::words)?;
        }
        Ok(())
    }

    fn connect(&self, member: &str, _patience: Duration) -> Result<Box<dyn Talk>, String> {
        let line = self.line(member)?;
        Ok(Box::new(MongoTalk { line, database: self.options.database.clone() }))
    }

    fn caught_up(&self, replica: &str) -> Result<bool, String> {
        let of = |member: &str| {
            let status = self.ask(member, &|out| bson::int32(out, "replSetGetStatus", 1))?;
            optime(&status, "optimes.appliedOpTime.ts").ok_or_else(|| format!("{member}: no appliedOpTime"))
        };
        Ok(of(replica)? >= of(&self.primary()?)?)
    }

    fn remove(&self, plan: &IngestPlan, _: &Ledger) -> Result<(), String> {
        let collection = plan.contents().collection();
        let mut line = self.line(&self.primary()?)?;
        let dropped =
            line.call(&self.options.database, COMMAND, &|out| bson::string(out, "drop", &collection));
        dropped.map(drop).map_err(Unanswered::words)
    }
}

/// The name of an index, which is that of its field.
fn name(index: usize) -> String {
    format!("i{index}")
}

/// A document of one index's field.
fn by(out: &mut Vec<u8>, element: &str, index: usize) {
    bson::head(out, kind::DOCUMENT, element);
    let at = bson::open(out);
    bson::int32(out, &name(index), 1);
    bson::close(out, at);
}

/// Members that are no primary answer only those who say that they may.
fn from_anyone(out: &mut Vec<u8>) {
    bson::head(out, kind::DOCUMENT, "$readPreference");
    let at = bson::open(out);
    bson::string(out, "mode", "primaryPreferred");
    bson::close(out, at);
}

struct MongoTalk {
    line: MongoLine,
    database: String,
}

impl MongoTalk {
    /// The command that inserts records.
    fn insert(&self, records: &Records, part: Part, plan: &IngestPlan) -> Vec<u8> {
        let ms = i32::try_from(plan.patience.as_millis()).unwrap_or(i32::MAX);
        let mut words = Vec::new();
        put_command(&mut words, &self.database, &|out| {
            bson::string(out, "insert", &records.collection());
            bson::head(out, kind::ARRAY, "documents");
            let list = bson::open(out);
            for number in part.from..part.to {
                bson::item(out, kind::DOCUMENT, (number - part.from) as u32);
                let at = bson::open(out);
                bson::string(out, "_id", &records.key(part.worker, number));
                for index in 0..records.indexes {
                    let score = records.score(part.worker, number, index);
                    bson::int64(out, &name(index), score.cast_signed());
                }
                bson::string(out, "v", &records.value(part.worker, number));
                bson::close(out, at);
            }
            bson::close(out, list);
            bson::boolean(out, "ordered", false);
            bson::head(out, kind::DOCUMENT, "writeConcern");
            let concern = bson::open(out);
            match plan.copies {
                0 | 1 => bson::int32(out, "w", 1),
                _ => bson::string(out, "w", "majority"),
            }
            if plan.durability == Durability::Disk {
                bson::boolean(out, "j", true);
            }
            bson::int32(out, "wtimeout", ms);
            bson::close(out, concern);
        });
        words
    }
}

/// What a reply to an insert of `count` documents says, if it is not that all are where they are to be.
fn trouble(reply: &[u8], count: u64) -> Option<String> {
    let words = |path: &str| {
        let text = bson::path(reply, path).and_then(|e| e.as_str().map(str::to_owned));
        text.unwrap_or_else(|| path.to_owned())
    };
    if bson::find(reply, "writeErrors").is_some() {
        return Some(words("writeErrors.0.errmsg"));
    }
    if bson::find(reply, "writeConcernError").is_some() {
        return Some(words("writeConcernError.errmsg"));
    }
    match bson::find(reply, "n").and_then(|n| n.as_i64()) {
        Some(n) if n.cast_unsigned() == count => None,
        n => Some(format!("{} of {count} documents inserted", n.unwrap_or(0))),
    }
}

impl Talk for MongoTalk {
    fn put(&mut self, records: &Records, part: Part, plan: &IngestPlan) -> Fate {
        let step = (INSERT_BYTES / (plan.record_bytes as u64 + 200)).max(1);
        let pieces = (part.from..part.to).step_by(step as usize);
        let pieces: Vec<_> = pieces
            .map(|from| {
                let piece = Part { from, to: (from + step).min(part.to), ..part };
                (piece.to - piece.from, self.insert(records, piece, plan))
            })
            .collect();
        let (sent, mut begun) = (Instant::now(), false);
        for (count, words) in pieces {
            match self.line.send(words, plan.patience + COMMAND) {
                Ok(reply) => {
                    if let Some(why) = trouble(&reply, count) {
                        return Fate::Indeterminate(why);
                    }
                }
                // Nothing of what a server that is no primary refuses is done; what came before it is.
                Err(Unanswered::Refused(why)) if !begun && why.contains("NotWritablePrimary") => {
                    return Fate::Refused(why);
                }
                Err(why) => return Fate::Indeterminate(why.words()),
            }
            begun = true;
        }
        Fate::Acknowledged(sent)
    }

    fn get(&mut self, records: &Records, part: Part) -> Result<Vec<Option<String>>, String> {
        let count = i32::try_from(part.to - part.from).unwrap_or(i32::MAX);
        let reply = self.line.call(&self.database, COMMAND, &|out| {
            bson::string(out, "find", &records.collection());
            bson::head(out, kind::DOCUMENT, "filter");
            let filter = bson::open(out);
            bson::head(out, kind::DOCUMENT, "_id");
            let id = bson::open(out);
            bson::head(out, kind::ARRAY, "$in");
            let list = bson::open(out);
            for number in part.from..part.to {
                bson::item(out, kind::STRING, (number - part.from) as u32);
                bson::text(out, records.key(part.worker, number).as_bytes());
            }
            bson::close(out, list);
            bson::close(out, id);
            bson::close(out, filter);
            bson::int32(out, "batchSize", count);
            bson::int32(out, "limit", count);
            bson::boolean(out, "singleBatch", true);
            from_anyone(out);
        });
        let reply = reply.map_err(Unanswered::words)?;
        let batch = bson::path(&reply, "cursor.firstBatch").and_then(|e| e.as_document());
        let batch = batch.ok_or("find gives no cursor")?;
        let mut found = HashMap::new();
        for document in bson::elements(batch).map_err(|e| e.to_string())?.flatten() {
            let document = document.as_document().unwrap_or_default();
            let text = |name: &str| bson::find(document, name).and_then(|e| e.as_str().map(str::to_owned));
            if let Some(id) = text("_id") {
                found.insert(id, text("v").unwrap_or_default());
            }
        }
        Ok((part.from..part.to).map(|number| found.remove(&records.key(part.worker, number))).collect())
    }

    fn indexed(&mut self, records: &Records, index: usize) -> Result<u64, String> {
        let reply = self.line.call(&self.database, 30 * COMMAND, &|out| {
            bson::string(out, "count", &records.collection());
            bson::head(out, kind::DOCUMENT, "query");
            let query = bson::open(out);
            bson::head(out, kind::DOCUMENT, &name(index));
            let from = bson::open(out);
            bson::int64(out, "$gte", 0);
            bson::close(out, from);
            bson::close(out, query);
            bson::string(out, "hint", &name(index));
            from_anyone(out);
        });
        counted(reply)
    }

    /// Looks at every document: `_id` is unique by its index, which is not asked here.
    fn held(&mut self, records: &Records) -> Result<Option<u64>, String> {
        let reply = self.line.call(&self.database, 30 * COMMAND, &|out| {
            bson::string(out, "count", &records.collection());
            bson::head(out, kind::DOCUMENT, "query");
            let query = bson::open(out);
            bson::head(out, kind::DOCUMENT, "v");
            let from = bson::open(out);
            bson::string(out, "$gte", "");
            bson::close(out, from);
            bson::close(out, query);
            from_anyone(out);
        });
        counted(reply).map(Some)
    }
}

/// What a count has come to.
fn counted(reply: Result<Vec<u8>, Unanswered>) -> Result<u64, String> {
    let reply = reply.map_err(Unanswered::words)?;
    let n = bson::find(&reply, "n").and_then(|n| n.as_i64()).and_then(|n| u64::try_from(n).ok());
    n.ok_or_else(|| "count gives no number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(fields: &dyn Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        let at = bson::open(&mut out);
        fields(&mut out);
        bson::close(&mut out, at);
        out
    }

    #[test]
    fn an_insert_is_acknowledged_only_without_any_error() {
        assert_eq!(trouble(&document(&|out| bson::int32(out, "n", 5)), 5), None);
        assert!(trouble(&document(&|out| bson::int32(out, "n", 4)), 5).is_some());
        let late = document(&|out| {
            bson::int32(out, "n", 5);
            let error = document(&|out| bson::string(out, "errmsg", "waiting for replication timed out"));
            bson::document(out, "writeConcernError", &error);
        });
        let words = "waiting for replication timed out";
        assert_eq!(trouble(&late, 5), Some(words.into()));
    }

    #[test]
    fn arbiters_and_members_without_a_vote_make_no_majority() {
        let member = |host: &str, arbiter: bool, votes: i32| {
            document(&|out| {
                bson::string(out, "host", host);
                bson::boolean(out, "arbiterOnly", arbiter);
                bson::int32(out, "votes", votes);
            })
        };
        let members = document(&|out| {
            bson::document(out, "0", &member("a:1", false, 1));
            bson::document(out, "1", &member("b:1", true, 1));
            bson::document(out, "2", &member("c:1", false, 0));
            bson::document(out, "3", &member("d:1", false, 1));
        });
        assert_eq!(bearing(&members), ["a:1", "d:1"]);
    }
}
