//! Redis or Valkey: a primary, its replicas and three sentinels.
//!
//! Where the primary is cut off, every server and sentinel has a loopback address of its own, which its connections come
//! from, too (`bind-source-addr`); writers come from 127.0.0.1 and reach everyone.

use crate::failover::cluster::{ELECTION, FailoverCluster, FailoverError, await_some, pause};
use crate::failover::partition::Partition;
use crate::failover::plan::{Disruption, FailoverPlan};
use dyno_config::server::{ServerSpec, Setting};
use dyno_db::copies::database::DatabaseError;
use dyno_db::copies::database::{IngestClient, PreCheck, ReplicatedStore};
use dyno_db::copies::ledger::Ledger;
use dyno_db::copies::plan::Durability;
use dyno_db::copies::records::Records;
use dyno_db_redis::client::Client;
use dyno_db_redis::copies::RedisSet;
use dyno_db_redis::protocol::resp::RespReply;
use dyno_engine::Control;
use dyno_hosts::servers::server::Server;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use rustix::process::Signal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const NAME: &str = "proof";
const COMMAND: Duration = Duration::from_secs(5);
const SENTINELS: u8 = 3;
/// The last byte of the first server's address, and of the first sentinel's.
const SERVER: u8 = 11;
const SENTINEL: u8 = 201;

/// The servers.
pub(super) struct SentinelCluster<'a> {
    plan: &'a FailoverPlan,
    control: Arc<Control>,
    work_dir: PathBuf,
    machine: Machine,
    servers: Vec<(SocketAddr, Server)>,
    sentinels: Vec<(SocketAddr, Server)>,
    partition: Option<Partition>,
    version: String,
    made: usize,
}

impl<'a> SentinelCluster<'a> {
    /// Starts everything and waits until the replicas follow and the sentinels know of all.
    pub fn start(
        plan: &'a FailoverPlan,
        work_dir: &Path,
        control: &Arc<Control>,
    ) -> Result<Self, FailoverError> {
        let machine = Machine::default();
        let partition = (plan.by == Disruption::Cut).then(|| Partition::new(&machine)).transpose()?;
        let mut set = SentinelCluster {
            plan,
            control: control.clone(),
            work_dir: work_dir.to_owned(),
            machine,
            servers: Vec::new(),
            sentinels: Vec::new(),
            partition,
            version: String::new(),
            made: 0,
        };
        for number in 0..=plan.replicas {
            set.serve(set.address(SERVER, number as u8), None)?;
        }
        let primary = set.servers[0].0;
        for at in 1..set.servers.len() {
            set.follow(set.servers[at].0, primary)?;
        }
        set.version = version(primary)?;
        for number in 0..SENTINELS {
            set.guard(number, primary)?;
        }
        set.await_healthy()?;
        Ok(set)
    }

    /// Where a server listens: all on one address, or each on its own.
    fn address(&self, first: u8, number: u8) -> IpAddr {
        let last = if self.partition.is_some() { first + number } else { 1 };
        Ipv4Addr::new(127, 0, 0, last).into()
    }

    fn spec(&self, address: IpAddr, port: Option<u16>) -> ServerSpec {
        let mut spec = ServerSpec::of(self.plan.kind);
        (spec.address, spec.port) = (Some(address), port);
        if self.partition.is_some() {
            let own = Setting::Text(address.to_string());
            spec.options.insert("bind-source-addr".into(), own);
            // At its end the server does not wait for a replica that cannot be reached.
            spec.options.insert("shutdown-timeout".into(), Setting::Whole(0));
        }
        spec
    }

    /// Starts a server, on the port that it had before if it had one.
    fn serve(&mut self, address: IpAddr, port: Option<u16>) -> Result<SocketAddr, FailoverError> {
        self.made += 1;
        let work_dir = self.work_dir.join(format!("server-{}", self.made));
        let mut spec = self.spec(address, port);
        if self.partition.is_some() {
            spec.options.insert("replica-announce-ip".into(), Setting::Text(address.to_string()));
        }
        let (socket, server) = self.launch(&spec, &work_dir)?;
        self.servers.push((socket, server));
        Ok(socket)
    }

    fn launch(&self, spec: &ServerSpec, work_dir: &Path) -> Result<(SocketAddr, Server), FailoverError> {
        let server = Server::start_under(spec, work_dir, &self.machine, Some(self.control.clone()));
        let server = server.map_err(|error| match self.partition {
            Some(_) => FailoverError::NoOwnAddress(error),
            None => error.into(),
        })?;
        let nowhere = || LocalError::Failed("a server listens nowhere".into());
        let socket = server.process_sockets().first().copied().ok_or_else(nowhere)?;
        Ok((socket, server))
    }

    fn follow(&self, replica: SocketAddr, primary: SocketAddr) -> Result<(), DatabaseError> {
        let mut client = Client::connect(replica, None, COMMAND)?;
        // A server without a disk needs no wait before a copy is sent.
        client.send_command(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"])?;
        client.send_command(&["REPLICAOF", &primary.ip().to_string(), &primary.port().to_string()])?;
        Ok(())
    }

    /// Starts a sentinel and tells it whom to guard.
    fn guard(&mut self, number: u8, primary: SocketAddr) -> Result<(), FailoverError> {
        let mut spec = self.spec(self.address(SENTINEL, number), None);
        spec.arguments.push("--sentinel".into());
        let work_dir = self.work_dir.join(format!("sentinel-{}", number + 1));
        let (sentinel, server) = self.launch(&spec, &work_dir)?;
        self.sentinels.push((sentinel, server));
        Ok(self.monitor(sentinel, primary)?)
    }

    /// Tells a sentinel which primary to guard.
    fn monitor(&self, sentinel: SocketAddr, primary: SocketAddr) -> Result<(), DatabaseError> {
        let ms = self.plan.down_after.as_millis().to_string();
        let mut client = Client::connect(sentinel, None, COMMAND)?;
        let (ip, port) = (primary.ip().to_string(), primary.port().to_string());
        client.send_command(&["SENTINEL", "MONITOR", NAME, &ip, &port, "2"])?;
        client.send_command(&["SENTINEL", "SET", NAME, "down-after-milliseconds", &ms])?;
        client.send_command(&["SENTINEL", "SET", NAME, "failover-timeout", "5000"])?;
        Ok(())
    }

    fn guards(&self) -> Vec<SocketAddr> {
        self.sentinels.iter().map(|(one, _)| *one).collect()
    }

    /// Returns whether a sentinel knows of the other sentinels and all replicas, and sees the primary well.
    fn knows_all(&self, sentinel: SocketAddr) -> Option<bool> {
        let mut client = Client::connect(sentinel, None, COMMAND).ok()?;
        let RespReply::List(fields) = client.send_command(&["SENTINEL", "MASTER", NAME]).ok()? else {
            return None;
        };
        let get = |name: &str| {
            let at = fields.iter().step_by(2).position(|field| field.as_text() == name)?;
            Some(fields.get(2 * at + 1)?.as_text().to_owned())
        };
        let replicas: u32 = get("num-slaves")?.parse().ok()?;
        Some(
            get("num-other-sentinels")? == "2" && replicas >= self.plan.replicas && get("flags")? == "master",
        )
    }

    fn signal(&self, address: SocketAddr, signal: Signal) {
        for (_, server) in self.servers.iter().filter(|(one, _)| *one == address) {
            for (_, pid) in server.running_processes() {
                dyno_localhost::process::send_signal(pid, signal);
            }
        }
    }

    /// Everyone but one: the other servers, and the sentinels.
    fn others(&self, than: SocketAddr) -> Vec<SocketAddr> {
        self.servers.iter().map(|(one, _)| *one).filter(|one| *one != than).collect()
    }

    /// Sends the primary a signal, right after the others have stood still.
    fn signal_alone(&self, primary: SocketAddr, signal: Signal) -> Result<Instant, FailoverError> {
        let others = self.others(primary);
        others.iter().for_each(|one| self.signal(*one, Signal::STOP));
        // Their sockets would take what they themselves cannot: the links are cut, too, and who stands still makes no new
        // one.
        let cut = Client::connect(primary, None, COMMAND)
            .and_then(|mut client| client.send_command(&["CLIENT", "KILL", "TYPE", "replica"]));
        if cut.is_ok() {
            pause(self.plan.isolate, &self.control);
            self.signal(primary, signal);
        }
        let gone = Instant::now();
        others.iter().for_each(|one| self.signal(*one, Signal::CONT));
        match cut {
            Ok(_) => Ok(gone),
            Err(error) => Err(FailoverError::Member { step: primary.to_string(), source: error.into() }),
        }
    }
}

impl FailoverCluster for SentinelCluster<'_> {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn database(&self) -> Arc<dyn ReplicatedStore> {
        Arc::new(Writers(self.guards()))
    }

    fn inject(&mut self, primary: &str) -> Result<Instant, FailoverError> {
        let primary = parsed(primary)?;
        match &self.partition {
            None if self.plan.by == Disruption::Freeze => self.signal_alone(primary, Signal::STOP),
            None => self.signal_alone(primary, Signal::KILL),
            Some(partition) => {
                let others = self.others(primary).into_iter().chain(self.guards());
                let others: Vec<IpAddr> = others.map(|one| one.ip()).collect();
                partition.cut(primary.ip(), &others)?;
                Ok(Instant::now())
            }
        }
    }

    fn new_primary(&self, of: &str) -> Option<String> {
        let now = asked(&self.guards()).ok()?;
        (now.to_string() != of && is_primary(now)).then(|| now.to_string())
    }

    /// A server that was killed begins anew and is told whom to follow; one that was cut off or frozen is told by the sentinels.
    fn heal(&mut self, old: &str, new: &str) -> Result<Instant, FailoverError> {
        let old = parsed(old)?;
        match &self.partition {
            Some(partition) => partition.heal()?,
            None if self.plan.by == Disruption::Freeze => self.signal(old, Signal::CONT),
            None => {
                self.servers.retain(|(one, _)| *one != old);
                self.serve(old.ip(), Some(old.port()))?;
                self.follow(old, parsed(new)?)?;
            }
        }
        Ok(Instant::now())
    }

    fn is_replica(&self, old: &str, _new: &str) -> bool {
        let online = |primary| RedisSet::without_login(primary).online_replicas();
        // Asks the current primary: on a busy host it may be another one by now.
        let all = asked(&self.guards()).and_then(online);
        all.is_ok_and(|all| all.iter().any(|one| one.to_string() == old))
    }

    fn await_healthy(&self) -> Result<String, FailoverError> {
        let guards = self.guards();
        let mut helped = Instant::now();
        let whole = || {
            let primary = asked(&guards).ok()?;
            let online = RedisSet::without_login(primary).online_replicas().map_or(0, |all| all.len());
            let known = guards.iter().all(|sentinel| self.knows_all(*sentinel) == Some(true));
            if online == self.plan.replicas as usize && known && is_primary(primary) {
                return Some(primary.to_string());
            }
            if helped.elapsed() > Duration::from_secs(3) {
                // One that was primary and was not killed waits long for the sentinels to tell it.
                for other in self.others(primary).into_iter().filter(|one| is_primary(*one)) {
                    let _ = self.follow(other, primary);
                }
                helped = Instant::now();
            }
            None
        };
        await_some(ELECTION, &self.control, "not all replicas are online, or not all sentinels agree", whole)
    }
}

/// Servers whose primary is who the sentinels say.
struct Writers(Vec<SocketAddr>);

impl Writers {
    fn now(&self) -> Result<RedisSet, DatabaseError> {
        Ok(RedisSet::without_login(asked(&self.0)?))
    }
}

impl ReplicatedStore for Writers {
    fn primary(&self) -> Result<String, DatabaseError> {
        self.now()?.primary()
    }

    fn replicas(&self) -> Result<Vec<String>, DatabaseError> {
        self.now()?.replicas()
    }

    fn pre_checks(&self, copies: usize, durability: Durability) -> Result<Vec<PreCheck>, DatabaseError> {
        self.now()?.pre_checks(copies, durability)
    }

    fn connect(&self, member: &str, patience: Duration) -> Result<Box<dyn IngestClient>, DatabaseError> {
        self.now()?.connect(member, patience)
    }

    fn caught_up(&self, replica: &str) -> Result<bool, DatabaseError> {
        self.now()?.caught_up(replica)
    }

    fn remove(&self, records: &Records, ledger: Option<&Ledger>) -> Result<(), DatabaseError> {
        self.now()?.remove(records, ledger)
    }
}

fn parsed(member: &str) -> Result<SocketAddr, DatabaseError> {
    member.parse().map_err(|_| DatabaseError::NoAddress(member.to_owned()))
}

fn version(server: SocketAddr) -> Result<String, DatabaseError> {
    let told = Client::connect(server, None, COMMAND)?.send_command(&["INFO", "server"])?;
    let of = |name: &str| {
        told.as_text().lines().find_map(|line| line.trim().strip_prefix(name).map(str::to_owned))
    };
    Ok(of("valkey_version:").or_else(|| of("redis_version:")).unwrap_or_else(|| "unknown".into()))
}

/// Whom the first of the sentinels that answers calls primary.
fn asked(sentinels: &[SocketAddr]) -> Result<SocketAddr, DatabaseError> {
    let ask = |sentinel: &SocketAddr| {
        let mut client = Client::connect(*sentinel, None, COMMAND).ok()?;
        match client.send_command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]).ok()? {
            RespReply::List(both) => {
                format!("{}:{}", both.first()?.as_text(), both.get(1)?.as_text()).parse().ok()
            }
            _ => None,
        }
    };
    sentinels.iter().find_map(ask).ok_or(DatabaseError::NoPrimary("no sentinel names a primary"))
}

fn is_primary(address: SocketAddr) -> bool {
    let role = Client::connect(address, None, COMMAND).and_then(|mut client| client.send_command(&["ROLE"]));
    matches!(role, Ok(RespReply::List(all)) if all.first().is_some_and(|role| role.as_text() == "master"))
}
