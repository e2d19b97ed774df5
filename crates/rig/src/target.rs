//! Targets: from a URI to something a job can run against.

use crate::dns;
use crate::mongo::{self, MongoAdmin};
use crate::official::{OfficialDeployment, OfficialTarget};
use crate::probe::{self, Stop};
use dyno_engine::net::{TlsConfig, tls_config};
use dyno_engine::{
    Clock, Control, Finished, Job, RunError, Second, run_blocking, run_null, run_virtual, run_wire,
};
use dyno_types::secret::{mask_value, remember_value};
use dyno_types::units::parse_duration_ns;
use dyno_types::{Content, Outcome, Refused, Store, Verb};
use dyno_wire::mongodb::{Deployment, MongoDriver, MongoOptions};
use dyno_wire::place::{Address, Tls};
use dyno_wire::redis::{Facts, RedisDriver, RedisOptions, Topology};
use dyno_wire::sim::{Service, SimOptions};
use std::collections::BTreeMap;
use std::net::{ToSocketAddrs, UdpSocket};
use std::sync::Arc;

/// Schemes of target URIs, with an example each.
pub const SCHEMES: [(&str, &str); 15] = [
    ("redis", "redis://[user:password@]host:port[/db]"),
    ("rediss", "rediss://host:port?ca=FILE"),
    ("unix", "unix:///run/redis.sock"),
    ("mongodb", "mongodb://[user:password@]host:port/[database][?options]"),
    ("mongodb+srv", "mongodb+srv://[user:password@]name/[database][?options]"),
    ("sqlite", "sqlite:PATH?journal=wal&synchronous=full"),
    ("redb", "redb:PATH"),
    ("fjall", "fjall:PATH"),
    ("lmdb", "lmdb:PATH"),
    ("rocksdb", "rocksdb:PATH"),
    ("wiredtiger", "wiredtiger:PATH"),
    ("basic", "basic:"),
    ("null", "null:"),
    ("sim", "sim:?service=100us&capacity=1"),
    ("spawn", "spawn:redis"),
];

/// Who speaks to MongoDB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Client {
    /// dyno's own codec.
    #[default]
    Wire,
    /// The official driver.
    Official,
}

/// A target as asked for.
#[derive(Clone, Debug)]
pub enum Target {
    /// Redis or what speaks its protocol.
    Redis(RedisOptions),
    /// MongoDB or what speaks its protocol.
    Mongo(Box<MongoOptions>),
    /// The same by the official driver.
    Official(OfficialTarget),
    /// An embedded store, by its URI.
    Store(String),
    /// The engine alone.
    Null,
    /// A simulated server in virtual time.
    Sim(SimOptions),
    /// A server to be started: its kind.
    Spawn(String),
}

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// It cannot be meant.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It does not answer, or not as it should.
    #[error("{0}")]
    Unreachable(String),
}

impl From<dyno_plan::experiment::Driver> for Client {
    fn from(driver: dyno_plan::experiment::Driver) -> Self {
        match driver {
            dyno_plan::experiment::Driver::Wire => Client::Wire,
            dyno_plan::experiment::Driver::Official => Client::Official,
        }
    }
}

impl Target {
    /// Reads a URI.
    pub fn parse(uri: &str) -> Result<Self, Refused> {
        remember_value("target", uri);
        let scheme = uri.split(':').next().unwrap_or_default();
        match scheme {
            "redis" | "rediss" | "unix" => RedisOptions::from_uri(uri).map(Target::Redis),
            "mongodb" | "mongodb+srv" => {
                MongoOptions::from_uri(uri).map(|options| Target::Mongo(Box::new(options)))
            }
            "sqlite" | "redb" | "fjall" | "lmdb" | "rocksdb" | "wiredtiger" | "basic" => {
                dyno_stores::check(uri).map(|()| Target::Store(uri.to_owned()))
            }
            "null" => Ok(Target::Null),
            "sim" => sim_options(uri).map(Target::Sim),
            "spawn" => Ok(Target::Spawn(uri["spawn:".len()..].to_owned())),
            _ => Err(unknown_scheme(uri, scheme)),
        }
    }

    /// Reads a URI for a client.
    pub fn parse_for(uri: &str, client: Client) -> Result<Self, Refused> {
        match client {
            Client::Wire => Target::parse(uri),
            Client::Official => {
                remember_value("target", uri);
                OfficialTarget::parse(uri).map(Target::Official)
            }
        }
    }

    /// Chooses the database, where the target is MongoDB.
    pub fn set_database(&mut self, database: &str) {
        match self {
            Target::Mongo(options) => options.database = database.to_owned(),
            Target::Official(official) => official.set_database(database),
            _ => {}
        }
    }

    /// Whether it runs on this host, so that a core must be left to it.
    pub fn is_local(&self) -> bool {
        let here = |address: &Address| match address {
            Address::Tcp(host, _) => matches!(host.as_str(), "localhost" | "::1") || host.starts_with("127."),
            Address::Unix(_) => true,
        };
        match self {
            Target::Redis(options) => options.addresses.iter().all(here),
            Target::Mongo(options) => options.srv.is_none() && options.addresses.iter().all(here),
            Target::Official(official) => official.is_local(),
            _ => false,
        }
    }

    /// Whether the servers are known to be on another host: not one of their addresses is this host's.
    pub fn is_elsewhere(&self) -> bool {
        let addresses = match self {
            Target::Redis(options) => &options.addresses,
            Target::Mongo(options) if options.srv.is_none() => &options.addresses,
            _ => return false,
        };
        let elsewhere = |address: &Address| match address {
            Address::Unix(_) => false,
            Address::Tcp(host, port) => {
                let found = (host.as_str(), *port).to_socket_addrs();
                // An address that can be bound is this host's own.
                found.is_ok_and(|mut all| all.all(|one| UdpSocket::bind((one.ip(), 0)).is_err()))
            }
        };
        !addresses.is_empty() && addresses.iter().all(elsewhere)
    }

    /// The URI without secrets.
    pub fn redacted(&self) -> String {
        match self {
            Target::Redis(options) => options.redacted(),
            Target::Mongo(options) => options.redacted(),
            Target::Official(official) => official.redacted(),
            Target::Store(uri) => uri.clone(),
            Target::Null => "null:".into(),
            Target::Sim(_) => "sim:".into(),
            Target::Spawn(kind) => format!("spawn:{kind}"),
        }
    }

    /// Connects once to look at the target: no operation of a workload can be applied to it. Nobody waits once `stop` says so.
    pub fn look(&self, stop: Stop<'_>) -> Result<Opened, TargetError> {
        self.open(Arc::new(mongo::Nothing), stop)
    }

    /// Connects once (or opens the store) and learns what the target is. Nobody waits for a server once `stop` says so.
    pub fn open(&self, content: Arc<dyn Content>, stop: Stop<'_>) -> Result<Opened, TargetError> {
        match self {
            Target::Redis(options) => {
                let tls = options.tls.as_ref().map(tls_config).transpose()?.map(Arc::new);
                let (topology, facts) = probe::redis(options, tls.as_ref(), stop)?;
                Ok(Opened::Redis { options: Arc::new(options.clone()), tls, topology, facts, content })
            }
            Target::Mongo(options) => {
                let tls = options.tls.as_ref().map(tls_config).transpose()?.map(Arc::new);
                let options = Arc::new(dns::seeds(options.as_ref().clone())?);
                let (deployment, facts) = mongo::probe(&options, tls.as_ref(), stop)?;
                Ok(Opened::Mongo { options, tls, deployment, facts, content })
            }
            Target::Official(official) => Ok(Opened::Official(official.open()?)),
            Target::Store(uri) => Ok(Opened::Store(dyno_stores::open(uri, content)?)),
            Target::Null => Ok(Opened::Null),
            Target::Sim(options) => Ok(Opened::Sim(options.clone())),
            Target::Spawn(kind) => Err(Refused(format!("spawn:{kind} must be started first")).into()),
        }
    }
}

fn tls_words(tls: &Tls) -> &'static str {
    match (tls.insecure, tls.any_name) {
        (true, _) => "on, certificates NOT verified",
        (_, true) => "on, certificates verified, their names NOT",
        _ => "on, certificates verified",
    }
}

fn unknown_scheme(uri: &str, scheme: &str) -> Refused {
    let near = SCHEMES.iter().map(|(s, _)| *s).find(|s| {
        s.len().abs_diff(scheme.len()) <= 2
            && s.chars().zip(scheme.chars()).filter(|(a, b)| a == b).count() + 2 >= s.len()
    });
    let hint = near.map_or(String::new(), |n| format!("; did you mean {n}:?"));
    let known: Vec<String> = SCHEMES.iter().map(|(s, _)| format!("{s}:")).collect();
    let shown = mask_value("target", uri);
    Refused(format!("unknown target {shown:?}{hint}; known schemes: {}", known.join(" ")))
}

/// `sim:?service=100us&distribution=exponential&capacity=4&growth=0.01&stall=1s@10s&seed=7`
fn sim_options(uri: &str) -> Result<SimOptions, Refused> {
    let mut options = SimOptions::default();
    let (mut service_ns, mut exponential) = (100_000, false);
    let query = uri.split_once('?').map_or("", |(_, q)| q);
    for pair in query.split('&').filter(|p| !p.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let bad = |expected: &str| Refused(format!("sim: option {key}={value}: expected {expected}"));
        let duration =
            |v: &str| parse_duration_ns(v, 1_000).map_err(|e| Refused(format!("sim: option {key}: {e}")));
        match key {
            "service" => service_ns = duration(value)?,
            "distribution" => match value {
                "constant" => exponential = false,
                "exponential" => exponential = true,
                _ => return Err(bad("constant or exponential")),
            },
            "capacity" => {
                options.capacity = match value {
                    "unbounded" => None,
                    n => Some(
                        n.parse()
                            .ok()
                            .filter(|&n| n > 0)
                            .ok_or_else(|| bad("a number from 1, or unbounded"))?,
                    ),
                }
            }
            "stall" => {
                let (length, begin) =
                    value.split_once('@').ok_or_else(|| bad("LENGTH@BEGIN such as 1s@10s"))?;
                options.stalls.push((duration(begin)?, duration(length)?));
            }
            "growth" => {
                let growth = value.parse::<f64>().ok().filter(|growth| growth.is_finite());
                options.growth =
                    growth.ok_or_else(|| bad("the part by which service grows each second: 0.01"))?;
            }
            "seed" => options.seed = value.parse().map_err(|_| bad("a whole number"))?,
            _ => {
                return Err(Refused(format!(
                    "sim: unknown option {key:?}; known: service, distribution, capacity, growth, stall, seed"
                )));
            }
        }
    }
    options.stalls.sort_unstable();
    options.service =
        if exponential { Service::Exponential(service_ns as f64) } else { Service::Constant(service_ns) };
    Ok(options)
}

/// A target that answers.
pub enum Opened {
    /// Redis.
    Redis {
        /// As asked for.
        options: Arc<RedisOptions>,
        /// TLS made ready.
        tls: Option<Arc<TlsConfig>>,
        /// Nodes and slots.
        topology: Topology,
        /// What it says of itself.
        facts: Facts,
        /// Renders requests.
        content: Arc<dyn Content>,
    },
    /// MongoDB.
    Mongo {
        /// As asked for.
        options: Arc<MongoOptions>,
        /// TLS made ready.
        tls: Option<Arc<TlsConfig>>,
        /// Nodes and roles.
        deployment: Deployment,
        /// What it says of itself.
        facts: dyno_wire::mongodb::Facts,
        /// Renders requests.
        content: Arc<dyn Content>,
    },
    /// MongoDB by the official driver.
    Official(Arc<OfficialDeployment>),
    /// An embedded store.
    Store(Arc<dyn Store>),
    /// The engine alone.
    Null,
    /// A simulated server.
    Sim(SimOptions),
}

impl Opened {
    /// Product and version.
    pub fn database(&self) -> String {
        match self {
            Opened::Redis { facts, .. } => facts.product(),
            Opened::Mongo { facts, .. } => facts.product(),
            Opened::Official(official) => official.product(),
            Opened::Store(store) => store.engine(),
            Opened::Null => "null".into(),
            Opened::Sim(_) => "simulated server (virtual time)".into(),
        }
    }

    /// The URI without secrets, or what it is.
    pub(crate) fn redacted(&self) -> String {
        match self {
            Opened::Redis { options, .. } => options.redacted(),
            Opened::Mongo { options, .. } => options.redacted(),
            other => other.database(),
        }
    }

    /// Whether its data belong on a disk, not in memory alone.
    pub fn is_on_disk(&self) -> bool {
        match self {
            Opened::Mongo { .. } | Opened::Official(_) => true,
            Opened::Store(store) => !store.engine().starts_with("null"),
            Opened::Redis { .. } | Opened::Null | Opened::Sim(_) => false,
        }
    }

    /// Who speaks to the database, where there is a choice.
    pub fn driver(&self) -> Option<&'static str> {
        match self {
            Opened::Mongo { .. } => Some("wire"),
            Opened::Official(official) => Some(official.driver()),
            _ => None,
        }
    }

    /// Facts for the report.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        match self {
            Opened::Redis { options, facts, .. } => {
                let kept = [
                    "redis_mode",
                    "os",
                    "maxmemory_human",
                    "maxmemory_policy",
                    "aof_enabled",
                    "io_threads_active",
                    "role",
                ];
                for name in kept {
                    if let Some(value) = facts.get(name) {
                        out.insert(name.to_owned(), value.to_owned());
                    }
                }
                let aof = facts.get("aof_enabled") == Some("1");
                let durability = if aof {
                    "append-only file on (see appendfsync)"
                } else {
                    "no append-only file: writes live in memory until the next snapshot, if any"
                };
                out.insert("durability".into(), durability.into());
                out.insert("protocol".into(), format!("RESP{}", options.protocol));
                if let Some(primaries) = facts.primaries {
                    out.insert("cluster_primaries".into(), primaries.to_string());
                }
                if let Some(copies) = facts.copies {
                    out.insert("copies_read".into(), copies.to_string());
                }
                if let Some(tls) = &options.tls {
                    out.insert("tls".into(), tls_words(tls).into());
                }
            }
            Opened::Mongo { options, deployment, facts, .. } => {
                out.extend(facts.all.clone());
                let concern = &options.write_concern;
                let w =
                    concern.w.as_deref().or(facts.default_write_concern()).unwrap_or("the server's default");
                let journal = concern.journal.map_or(String::new(), |j| format!(", journal {j}"));
                out.insert("durability".into(), format!("write concern w: {w}{journal}"));
                out.insert("nodes".into(), deployment.endpoints.len().to_string());
                if let Some(tls) = &options.tls {
                    out.insert("tls".into(), tls_words(tls).into());
                }
            }
            Opened::Official(official) => out = official.facts(),
            Opened::Store(store) => {
                out.extend(store.facts());
                out.insert("durability".into(), store.durability());
            }
            Opened::Null | Opened::Sim(_) => {}
        }
        if let Some(driver) = self.driver() {
            out.insert("client".into(), driver.into());
        }
        out
    }

    /// Whether load threads of the engine apply the load (not users that block inside a store).
    pub fn is_wire(&self) -> bool {
        !matches!(self, Opened::Store(_) | Opened::Official(_))
    }

    /// Whether several inserts can go out as one batch.
    pub fn batches(&self) -> bool {
        matches!(self, Opened::Redis { .. } | Opened::Mongo { .. } | Opened::Store(_))
    }

    /// Commands beside the load, where the target is MongoDB.
    pub fn mongo_admin(&self) -> Option<MongoAdmin> {
        match self {
            Opened::Mongo { options, tls, deployment, .. } => {
                Some(MongoAdmin::new(options, tls.as_ref(), deployment))
            }
            Opened::Official(official) => Some(MongoAdmin::official(official)),
            _ => None,
        }
    }

    /// Whether time is virtual.
    pub fn is_virtual(&self) -> bool {
        matches!(self, Opened::Sim(_))
    }

    /// Refuses a workload that the target cannot hold.
    pub fn check(&self, content: &Arc<dyn Content>, verbs: &[Verb]) -> Result<(), Refused> {
        match self {
            Opened::Redis { options, topology, .. } => {
                RedisDriver::new(options.clone(), content.clone(), topology.clone(), verbs).map(drop)
            }
            Opened::Mongo { options, deployment, facts, .. } => {
                let transaction = content.shapes().iter().find(|shape| shape.action.ends_transaction());
                if let (Some(_), None, false) = (transaction, facts.get("replica_set"), facts.is_router()) {
                    let why = "transactions of several documents need a replica set or a router; this is a single server";
                    return Err(Refused(why.into()));
                }
                MongoDriver::new(options.clone(), content.clone(), deployment.clone()).map(drop)
            }
            Opened::Official(official) => official.check(content.as_ref()),
            _ => Ok(()),
        }
    }

    /// Runs a job.
    pub fn run(
        &self,
        job: Job,
        control: Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError> {
        if job.stamps == Clock::Hardware && !matches!(self, Opened::Redis { .. } | Opened::Mongo { .. }) {
            let words = "--stamps hardware: this target has no network connections of dyno's own; use --stamps client";
            return Err(Refused(words.into()).into());
        }
        match self {
            Opened::Redis { options, tls, topology, .. } => {
                let content = job.workload.content();
                let make = || RedisDriver::new(options.clone(), content.clone(), topology.clone(), &[]);
                run_wire(job, control, tls.clone(), make, on_second)
            }
            Opened::Mongo { options, tls, deployment, .. } => {
                let content = job.workload.content();
                let make = || MongoDriver::new(options.clone(), content.clone(), deployment.clone());
                run_wire(job, control, tls.clone(), make, on_second)
            }
            Opened::Official(official) => official.run(job, control, on_second),
            Opened::Store(store) => run_blocking(job, control, store.as_ref(), on_second),
            Opened::Null => run_null(job, control, on_second),
            Opened::Sim(options) => run_virtual(job, control, options.clone(), on_second),
        }
    }
}

impl From<RunError> for TargetError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Refused(refused) => TargetError::Refused(refused),
            RunError::Unreachable { outcome: Outcome::Aborted, words } => TargetError::Unreachable(words),
            other => TargetError::Unreachable(other.to_string()),
        }
    }
}
