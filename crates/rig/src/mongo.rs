//! What there is to know of a MongoDB deployment before a run: who its nodes are, and what they say of themselves.

use crate::official::OfficialDeployment;
use crate::probe::{Failure, Heard, converse, first_that_answers, resolve};
use crate::target::TargetError;
use dyno_engine::net::{TlsConfig, monotonic_ns};
use dyno_types::bson::{self, kind};
use dyno_types::{Content, Driver, Endpoint, Hello, Request};
use dyno_wire::mongodb::{
    Deployment, Facts, MongoDriver, MongoOptions, QUESTIONS, describe, is_ok, put_command, take_document,
};
use dyno_wire::place::Address;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A content of nothing: the questions need none.
pub(crate) struct Nothing;

impl Content for Nothing {
    fn table(&self) -> &str {
        ""
    }

    fn key(&self, _request: &Request, _out: &mut Vec<u8>) {}

    fn fields(&self, _request: &Request) -> usize {
        0
    }

    fn name(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn value_len(&self, _request: &Request, _field: usize) -> usize {
        0
    }

    fn value(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}
}

/// Asks the seeds; the first that answers tells the deployment, and its primary (or a router) the facts.
pub(crate) fn probe(
    options: &Arc<MongoOptions>,
    tls: Option<&Arc<TlsConfig>>,
) -> Result<(Deployment, Facts), TargetError> {
    let (seed, facts) = first_that_answers(&options.addresses, |endpoint| {
        Ok((endpoint.clone(), ask(options, tls, endpoint)?.facts))
    })?;
    if let (Some(wanted), false) = (&options.replica_set, facts.is_router()) {
        let found = facts.get("replica_set");
        if found != Some(wanted) {
            let found = found
                .map_or("is a single server".to_owned(), |name| format!("belongs to replica set {name:?}"));
            return Err(TargetError::Unreachable(format!(
                "{seed} {found}, and replicaSet={wanted} was asked for"
            )));
        }
    }
    if options.direct || (facts.hosts.is_empty() && !facts.is_router()) {
        return Ok((Deployment::single(seed), facts));
    }
    if facts.is_router() {
        let all: Result<Vec<Endpoint>, String> = options.addresses.iter().map(resolve).collect();
        let endpoints = all.map_err(TargetError::Unreachable)?;
        return Ok((Deployment::routers(endpoints), facts));
    }
    replica_set(options, tls, facts)
}

fn replica_set(
    options: &Arc<MongoOptions>,
    tls: Option<&Arc<TlsConfig>>,
    facts: Facts,
) -> Result<(Deployment, Facts), TargetError> {
    let unreachable = |text: String| TargetError::Unreachable(text);
    let name = facts.get("replica_set").unwrap_or_default().to_owned();
    let primary = facts.get("primary").ok_or_else(|| {
        unreachable(format!(
            "replica set {name:?} has no primary now (directConnection=true speaks to one member)"
        ))
    })?;
    let all: Result<Vec<Endpoint>, String> = facts.hosts.iter().map(|host| resolve(&address(host))).collect();
    let endpoints = all.map_err(unreachable)?;
    let at = facts.hosts.iter().position(|host| host == primary);
    let at =
        at.ok_or_else(|| unreachable(format!("the primary {primary} is not among {:?}", facts.hosts)))?;
    let mut set = Deployment::replica_set(&name, endpoints, at as u16);
    // A member that does not answer may come back during the run.
    let mut answers = ask_all(options, tls, &set.endpoints);
    for (node, answer) in answers.iter().enumerate() {
        if let Ok(Answer { facts, asked_ns, away_ns }) = answer {
            set.learn(node as u16, &facts.hello, Some((asked_ns / 1_000_000) as i64), options);
            set.measured(node as u16, away_ns / 1_000);
        }
    }
    // Distances count once all are known.
    match answers.swap_remove(at) {
        Ok(answer) => {
            let asked_ms = (answer.asked_ns / 1_000_000) as i64;
            set.learn(at as u16, &answer.facts.hello, Some(asked_ms), options);
            Ok((set, answer.facts))
        }
        Err(Failure::Absent(why) | Failure::Final(why)) => Err(unreachable(format!("{primary}: {why}"))),
    }
}

/// Asks members at the same time: one that is down takes its time.
fn ask_all(
    options: &Arc<MongoOptions>,
    tls: Option<&Arc<TlsConfig>>,
    endpoints: &[Endpoint],
) -> Vec<Result<Answer, Failure>> {
    std::thread::scope(|scope| {
        let threads = endpoints.iter().map(|endpoint| scope.spawn(move || ask(options, tls, endpoint)));
        let threads: Vec<_> = threads.collect();
        let lost = || Err(Failure::Absent("asking it failed".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
    })
}

/// `host:port` as members name each other.
fn address(text: &str) -> Address {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "27017"));
    Address::Tcp(host.trim_matches(['[', ']']).to_owned(), port.parse().unwrap_or(27017))
}

/// Most collections that are asked for their figures.
const COLLECTIONS: usize = 64;
/// What is kept of `collStats`.
const COLLECTION_STATS: [&str; 8] = [
    "count",
    "size",
    "avgObjSize",
    "storageSize",
    "freeStorageSize",
    "nindexes",
    "totalIndexSize",
    "totalSize",
];

/// Commands that prepare a workload or look after it: indexes, counts, drops.
pub struct MongoAdmin(Way);

/// How they are sent.
enum Way {
    /// Each on a connection of its own, to the primary (or the first router).
    Wire(Box<Direct>),
    /// By the official driver.
    Official(Arc<OfficialDeployment>),
}

struct Direct {
    options: Arc<MongoOptions>,
    tls: Option<Arc<TlsConfig>>,
    endpoint: Endpoint,
    deployment: Deployment,
}

impl MongoAdmin {
    /// For a deployment that has been probed.
    pub(crate) fn new(
        options: &Arc<MongoOptions>,
        tls: Option<&Arc<TlsConfig>>,
        deployment: &Deployment,
    ) -> Self {
        let at = usize::from(deployment.primary.unwrap_or(0));
        MongoAdmin(Way::Wire(Box::new(Direct {
            options: options.clone(),
            tls: tls.cloned(),
            endpoint: deployment.endpoints[at].clone(),
            deployment: Deployment::single(deployment.endpoints[at].clone()),
        })))
    }

    /// By the official driver.
    pub(crate) fn official(deployment: &Arc<OfficialDeployment>) -> Self {
        MongoAdmin(Way::Official(deployment.clone()))
    }

    fn database(&self) -> &str {
        match &self.0 {
            Way::Wire(direct) => &direct.options.database,
            Way::Official(official) => official.database(),
        }
    }

    /// Runs one command on the run's database; `fields` appends its elements. Returns the reply, or the server's words.
    pub fn run(&self, fields: &dyn Fn(&mut Vec<u8>)) -> Result<Vec<u8>, String> {
        self.run_on(self.database(), fields)
    }

    /// The same on another database, such as `admin`.
    pub fn run_on(&self, database: &str, fields: &dyn Fn(&mut Vec<u8>)) -> Result<Vec<u8>, String> {
        match &self.0 {
            Way::Wire(direct) => direct.run_on(database, fields),
            Way::Official(official) => {
                let mut command = Vec::new();
                let at = bson::open(&mut command);
                fields(&mut command);
                bson::close(&mut command, at);
                official.command(database, &command)
            }
        }
    }
    /// Creates an ascending index on one field where it is not there yet.
    pub fn create_index(&self, collection: &str, name: &str, field: &str) -> Result<(), String> {
        self.create_compound_index(collection, name, &[(field.to_owned(), 1)])
    }

    /// Creates an index on several fields, each ascending (1) or descending (-1), where it is not there yet.
    pub fn create_compound_index(
        &self,
        collection: &str,
        name: &str,
        fields: &[(String, i32)],
    ) -> Result<(), String> {
        let made = self.run(&|out| {
            bson::string(out, "createIndexes", collection);
            bson::head(out, kind::ARRAY, "indexes");
            let list = bson::open(out);
            bson::item(out, kind::DOCUMENT, 0);
            let index = bson::open(out);
            bson::head(out, kind::DOCUMENT, "key");
            let key = bson::open(out);
            fields.iter().for_each(|(field, way)| bson::int32(out, field, *way));
            bson::close(out, key);
            bson::string(out, "name", name);
            bson::close(out, index);
            bson::close(out, list);
        });
        made.map(drop)
    }

    /// Shards a collection of the run's database by `_id`; one that is sharded so already is no error.
    pub fn shard(&self, collection: &str) -> Result<(), String> {
        let database = self.database();
        let already = |made: Result<Vec<u8>, String>| match made {
            Err(words) if !words.contains("already") => Err(words),
            _ => Ok(()),
        };
        already(self.run_on("admin", &|out| bson::string(out, "enableSharding", database)))?;
        already(self.run_on("admin", &|out| {
            bson::string(out, "shardCollection", &format!("{database}.{collection}"));
            bson::head(out, kind::DOCUMENT, "key");
            let key = bson::open(out);
            bson::int32(out, "_id", 1);
            bson::close(out, key);
        }))
    }

    /// Names of the shards behind a router.
    pub fn shards(&self) -> Result<Vec<String>, String> {
        let reply = self.run_on("admin", &|out| bson::int32(out, "listShards", 1))?;
        let list = bson::find(&reply, "shards").and_then(|e| e.as_document().map(<[u8]>::to_vec));
        let list = list.ok_or_else(|| "the router's list of shards is no list".to_owned())?;
        let shards = bson::elements(&list).map_err(|e| e.to_string())?.flatten();
        let name = |shard: bson::Element<'_>| {
            let name = bson::find(shard.as_document()?, "_id")?;
            name.as_str().map(str::to_owned)
        };
        shards.map(|shard| name(shard).ok_or_else(|| "a shard has no name".to_owned())).collect()
    }

    /// Splits a sharded collection's chunk at an `_id`, which `id` appends; a boundary that is there is no error.
    pub fn split(&self, collection: &str, id: &dyn Fn(&mut Vec<u8>)) -> Result<(), String> {
        let split = self.run_on("admin", &|out| {
            bson::string(out, "split", &format!("{}.{collection}", self.database()));
            bson::head(out, kind::DOCUMENT, "middle");
            let middle = bson::open(out);
            id(out);
            bson::close(out, middle);
        });
        match split {
            Err(words) if !words.contains("boundary key") => Err(words),
            _ => Ok(()),
        }
    }

    /// Moves the chunk that holds an `_id` to a shard, waits for a majority there and for the documents' removal where they
    /// were; a chunk that is there already is no error.
    pub fn move_chunk(&self, collection: &str, id: &dyn Fn(&mut Vec<u8>), shard: &str) -> Result<(), String> {
        let moved = self.run_on("admin", &|out| {
            bson::string(out, "moveChunk", &format!("{}.{collection}", self.database()));
            bson::head(out, kind::DOCUMENT, "find");
            let find = bson::open(out);
            id(out);
            bson::close(out, find);
            bson::string(out, "to", shard);
            bson::boolean(out, "_secondaryThrottle", true);
            bson::head(out, kind::DOCUMENT, "writeConcern");
            let concern = bson::open(out);
            bson::string(out, "w", "majority");
            bson::close(out, concern);
            bson::boolean(out, "_waitForDelete", true);
        });
        match moved {
            Err(words) if !words.contains("already on that shard") => Err(words),
            _ => Ok(()),
        }
    }

    /// Whether the balancer is on.
    pub fn balances(&self) -> Result<bool, String> {
        let reply = self.run_on("admin", &|out| bson::int32(out, "balancerStatus", 1))?;
        let mode = bson::find(&reply, "mode").and_then(|mode| mode.as_str().map(str::to_owned));
        mode.map(|mode| mode != "off").ok_or_else(|| "the balancer's status has no mode".to_owned())
    }

    /// Turns the balancer on or off.
    pub fn balance(&self, on: bool) -> Result<(), String> {
        let command = if on { "balancerStart" } else { "balancerStop" };
        self.run_on("admin", &|out| bson::int32(out, command, 1)).map(drop)
    }

    /// Drops a collection; one that is not there is no error.
    pub fn drop_collection(&self, collection: &str) -> Result<(), String> {
        match self.run(&|out| bson::string(out, "drop", collection)) {
            Err(words) if !words.contains("(26)") && !words.contains("ns not found") => Err(words),
            _ => Ok(()),
        }
    }

    /// How many documents a collection has, by its metadata.
    pub fn count(&self, collection: &str) -> Result<u64, String> {
        let reply = self.run(&|out| bson::string(out, "count", collection))?;
        let n = bson::find(&reply, "n").and_then(|e| e.as_i64());
        n.and_then(|n| u64::try_from(n).ok()).ok_or_else(|| "the server's count is no number".to_owned())
    }

    /// What the server says of each collection (`collStats`): name, figure, value. What it does not say is not there.
    pub fn collections(&self) -> BTreeMap<String, BTreeMap<String, f64>> {
        let listed = self.run(&|out| {
            bson::int32(out, "listCollections", 1);
            bson::boolean(out, "nameOnly", true);
        });
        let Ok(listed) = listed else { return BTreeMap::new() };
        let batch =
            bson::path(&listed, "cursor.firstBatch").and_then(|e| e.as_document()).unwrap_or_default();
        let documents = bson::elements(batch).into_iter().flatten().flatten().filter_map(|e| e.as_document());
        let names = documents.filter_map(|one| bson::find(one, "name").and_then(|e| e.as_str()));
        let names = names.filter(|name| !name.starts_with("system.")).take(COLLECTIONS);
        let figures = |name: &str| {
            let stats = self.run(&|out| bson::string(out, "collStats", name)).ok()?;
            let figure = |figure: &str| Some((figure.to_owned(), bson::find(&stats, figure)?.as_f64()?));
            Some(COLLECTION_STATS.iter().filter_map(|name| figure(name)).collect::<BTreeMap<_, _>>())
        };
        names.filter_map(|name| Some((name.to_owned(), figures(name)?))).collect()
    }

    /// The first document of a find whose elements beside `find` are appended by `fields`.
    pub fn find_one(
        &self,
        collection: &str,
        fields: &dyn Fn(&mut Vec<u8>),
    ) -> Result<Option<Vec<u8>>, String> {
        let reply = self.run(&|out| {
            bson::string(out, "find", collection);
            fields(out);
            bson::int32(out, "limit", 1);
            bson::boolean(out, "singleBatch", true);
        })?;
        let first = bson::path(&reply, "cursor.firstBatch.0");
        Ok(first.and_then(|e| e.as_document()).map(<[u8]>::to_vec))
    }
}

impl Direct {
    fn run_on(&self, database: &str, fields: &dyn Fn(&mut Vec<u8>)) -> Result<Vec<u8>, String> {
        let driver = MongoDriver::new(self.options.clone(), Arc::new(Nothing), self.deployment.clone());
        let mut driver = driver.map_err(|refused| refused.0)?;
        let (mut opening, mut answer) = (Vec::new(), Vec::new());
        driver.hello(0, 0, &mut opening);
        let mut greeted = Some(0u16);
        let talk = converse(self.tls.as_ref(), &self.endpoint, opening, &mut |received, out| {
            loop {
                let Some(reply) = greeted else {
                    return match take_document(received) {
                        Ok(None) => Heard::Need,
                        Ok(Some(document)) => {
                            answer = document;
                            Heard::Done
                        }
                        Err(_) => Heard::Refused("what answered does not speak MongoDB's protocol".into()),
                    };
                };
                match driver.greeted(0, 0, reply, received, out) {
                    Hello::Need => return Heard::Need,
                    Hello::Refused(_, words) => return Heard::Refused(words),
                    Hello::Reply { used, more } => {
                        received.drain(..used);
                        greeted = more.then_some(reply + 1);
                        if !more {
                            put_command(out, database, fields);
                        }
                    }
                }
            }
        });
        match talk {
            Ok(()) if is_ok(bson::find(&answer, "ok")) => Ok(answer),
            Ok(()) => Err(describe(&answer).1),
            Err(Failure::Absent(why) | Failure::Final(why)) => Err(format!("{}: {why}", self.endpoint)),
        }
    }
}

/// What one server has answered.
struct Answer {
    facts: Facts,
    /// When it was asked what it is.
    asked_ns: u64,
    /// The shortest time from a question to its answer.
    away_ns: u64,
}

/// Greets one server and asks all questions, one after the other.
fn ask(
    options: &Arc<MongoOptions>,
    tls: Option<&Arc<TlsConfig>>,
    endpoint: &Endpoint,
) -> Result<Answer, Failure> {
    let driver = MongoDriver::new(options.clone(), Arc::new(Nothing), Deployment::single(endpoint.clone()));
    let mut driver = driver.map_err(|refused| Failure::Final(refused.0))?;
    let mut facts = Facts::default();
    let mut opening = Vec::new();
    driver.hello(0, 0, &mut opening);
    // Replies of the greeting, then questions answered.
    let (mut greeted, mut asked) = (Some(0u16), 0usize);
    let (mut begun_ns, mut put_ns, mut away_ns) = (0, 0, u64::MAX);
    converse(tls, endpoint, opening, &mut |received, out| {
        loop {
            if let Some(reply) = greeted {
                match driver.greeted(0, 0, reply, received, out) {
                    Hello::Need => return Heard::Need,
                    Hello::Refused(_, words) => return Heard::Refused(words),
                    Hello::Reply { used, more } => {
                        received.drain(..used);
                        greeted = more.then_some(reply + 1);
                        if !more {
                            begun_ns = monotonic_ns();
                            put_ns = begun_ns;
                            Facts::ask(0, out);
                        }
                    }
                }
                continue;
            }
            match facts.take(asked, received) {
                Ok(None) => return Heard::Need,
                Err(_) => return Heard::Refused("what answered does not speak MongoDB's protocol".into()),
                Ok(Some(used)) => {
                    received.drain(..used);
                    let now_ns = monotonic_ns();
                    away_ns = away_ns.min(now_ns - put_ns);
                    put_ns = now_ns;
                    asked += 1;
                    if asked == QUESTIONS.len() {
                        return Heard::Done;
                    }
                    Facts::ask(asked, out);
                }
            }
        }
    })?;
    Ok(Answer { facts, asked_ns: begun_ns, away_ns })
}
