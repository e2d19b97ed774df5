//! Failover: a primary with replicas and three sentinels on this host, whose primary is killed at random moments under load.
//!
//! Before each kill the replicas stand still for a moment, so that what is in one place only is surely lost with it: a
//! proof that cannot fail proves nothing. With one copy asked for, records are lost; with two, none.

use super::database::{Database, Durability, PreCheck, Talk};
use super::drive::{Course, IngestPlan, Written, ingest};
use super::ledger::{Ledger, Status};
use super::redis::RedisSet;
use super::verify::{Copy, verify};
use crate::local::{Machine, RespClient as Client, RespReply as Reply, Server};
use dyno_engine::Control;
use dyno_plan::server::{ServerKind, ServerSpec};
use dyno_types::rng::{Purpose, Stream};
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const NAME: &str = "proof";
const COMMAND: Duration = Duration::from_secs(5);
/// How long an election may take.
const ELECTION: Duration = Duration::from_secs(60);

/// What is to be proven.
#[derive(Clone, Debug)]
pub struct FailoverPlan {
    /// What is written meanwhile.
    pub ingest: IngestPlan,
    /// Kills.
    pub rounds: u32,
    /// Replicas of the primary.
    pub replicas: u32,
    /// How long replicas stand still before a kill.
    pub isolate: Duration,
    /// After how long without a sign sentinels call a server down.
    pub down_after: Duration,
    /// Between two kills, at least; up to as long again at random.
    pub between: Duration,
    /// Redis or Valkey.
    pub kind: ServerKind,
}

/// A kill.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// When, seconds after the first sending.
    pub at_s: f64,
    /// Who was primary.
    pub killed: String,
    /// Who is now.
    pub promoted: String,
    /// Until the sentinels said so, seconds.
    pub elected_s: f64,
    /// Longest time without an acknowledgement around it, seconds.
    pub without_acks_s: f64,
}

/// How it went.
#[derive(Clone, Debug)]
pub struct FailoverProof {
    /// What was written.
    pub written: Written,
    /// The kills.
    pub rounds: Vec<Round>,
    /// What the last primary and its replicas hold.
    pub copies: Vec<Copy>,
    /// Version of the servers.
    pub version: String,
}

/// Servers of the proof, which end with it.
struct Set<'a> {
    plan: &'a FailoverPlan,
    home: PathBuf,
    machine: Machine,
    servers: Vec<(SocketAddr, Server)>,
    sentinels: Vec<SocketAddr>,
    _guards: Option<Server>,
    made: usize,
}

impl<'a> Set<'a> {
    fn spec(plan: &FailoverPlan, instances: u32, port: Option<u16>) -> ServerSpec {
        let mut spec = ServerSpec::of(plan.kind);
        (spec.instances, spec.port) = (instances, port);
        spec
    }

    fn start(plan: &'a FailoverPlan, home: &Path) -> Result<Self, String> {
        let machine = Machine::default();
        let mut set = Set {
            plan,
            home: home.to_owned(),
            machine,
            servers: Vec::new(),
            sentinels: Vec::new(),
            _guards: None,
            made: 0,
        };
        for _ in 0..=plan.replicas {
            set.serve(None)?;
        }
        let primary = set.servers[0].0;
        for at in 1..set.servers.len() {
            set.follow(set.servers[at].0, primary)?;
        }
        set.guard(primary)?;
        set.settle()?;
        Ok(set)
    }

    /// Starts a server, on the port that it had before if it had one.
    fn serve(&mut self, port: Option<u16>) -> Result<SocketAddr, String> {
        self.made += 1;
        let home = self.home.join(format!("server-{}", self.made));
        let spec = Self::spec(self.plan, 1, port);
        let server = Server::start(&spec, &home, &self.machine).map_err(|e| e.to_string())?;
        let address = address(&server.uris()[0])?;
        self.servers.push((address, server));
        Ok(address)
    }

    fn follow(&self, replica: SocketAddr, primary: SocketAddr) -> Result<(), String> {
        let mut client = Client::connect(replica, None, COMMAND)?;
        // What has no disk needs no wait before a copy is sent.
        client.call(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"])?;
        client.call(&["REPLICAOF", &primary.ip().to_string(), &primary.port().to_string()]).map(drop)
    }

    /// Starts three sentinels and tells them whom to guard.
    fn guard(&mut self, primary: SocketAddr) -> Result<(), String> {
        let mut spec = Self::spec(self.plan, 3, None);
        spec.arguments.push("--sentinel".into());

        let guards =
            Server::start(&spec, &self.home.join("sentinels"), &self.machine).map_err(|e| e.to_string())?;
        self.sentinels = guards.uris().iter().map(|uri| address(uri)).collect::<Result<_, _>>()?;
        let ms = self.plan.down_after.as_millis().to_string();
        for sentinel in &self.sentinels {
            let mut client = Client::connect(*sentinel, None, COMMAND)?;
            let (ip, port) = (primary.ip().to_string(), primary.port().to_string());
            client.call(&["SENTINEL", "MONITOR", NAME, &ip, &port, "2"])?;
            client.call(&["SENTINEL", "SET", NAME, "down-after-milliseconds", &ms])?;
            client.call(&["SENTINEL", "SET", NAME, "failover-timeout", "5000"])?;
        }
        self._guards = Some(guards);
        Ok(())
    }

    /// Waits until the sentinels know of all servers, and all others follow the one that they call primary: on a busy host they
    /// may elect another without being asked to.
    fn settle(&self) -> Result<SocketAddr, String> {
        let end = Instant::now() + ELECTION;
        let mut helped = Instant::now();
        loop {
            let primary = self.primary()?;
            let online = RedisSet { primary, password: None }.online().map_or(0, |all| all.len());
            let known = self.sentinels.iter().all(|sentinel| self.knows_all(*sentinel) == Some(true));
            if online == self.plan.replicas as usize && known && is_primary(primary) {
                return Ok(primary);
            }
            if helped.elapsed() > Duration::from_secs(3) {
                // One that was primary and was not killed waits long for the sentinels to tell it.
                for (other, _) in self.servers.iter().filter(|(one, _)| *one != primary && is_primary(*one)) {
                    self.follow(*other, primary)?;
                }
                helped = Instant::now();
            }
            if Instant::now() > end {
                let (all, seconds) = (self.plan.replicas, ELECTION.as_secs());
                return Err(format!("{online} of {all} replicas are online after {seconds} s"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether a sentinel knows of the other sentinels and all replicas, and sees the primary well.
    fn knows_all(&self, sentinel: SocketAddr) -> Option<bool> {
        let mut client = Client::connect(sentinel, None, COMMAND).ok()?;
        let Reply::List(fields) = client.call(&["SENTINEL", "MASTER", NAME]).ok()? else { return None };
        let get = |name: &str| {
            let at = fields.iter().step_by(2).position(|field| field.text() == name)?;
            Some(fields.get(2 * at + 1)?.text().to_owned())
        };
        let replicas: u32 = get("num-slaves")?.parse().ok()?;
        Some(
            get("num-other-sentinels")? == "2" && replicas >= self.plan.replicas && get("flags")? == "master",
        )
    }

    fn signal(&self, address: SocketAddr, signal: rustix::process::Signal) {
        for (one, server) in &self.servers {
            if *one == address {
                for (_, pid) in server.processes() {
                    crate::local::process::signal(pid, signal);
                }
            }
        }
    }

    /// Kills the primary and has it come back as a replica of the new one.
    fn kill(&mut self, primary: SocketAddr) -> Result<(SocketAddr, Duration), String> {
        use rustix::process::Signal;
        let others: Vec<SocketAddr> =
            self.servers.iter().map(|(one, _)| *one).filter(|one| *one != primary).collect();
        others.iter().for_each(|one| self.signal(*one, Signal::STOP));
        // Their sockets would take what they themselves cannot: the links are cut, too, and who stands still makes no new one.
        let cut = Client::connect(primary, None, COMMAND)
            .and_then(|mut client| client.call(&["CLIENT", "KILL", "TYPE", "replica"]));
        cut.map_err(|why| format!("{primary}: {why}"))?;
        std::thread::sleep(self.plan.isolate);
        self.signal(primary, Signal::KILL);
        let killed = Instant::now();
        others.iter().for_each(|one| self.signal(*one, Signal::CONT));
        let promoted = loop {
            match self.primary() {
                Ok(now) if now != primary && is_primary(now) => break now,
                _ if killed.elapsed() > ELECTION => {
                    return Err(format!("no other primary after {} s", ELECTION.as_secs()));
                }
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let elected = killed.elapsed();
        self.servers.retain(|(one, _)| *one != primary);
        let back = self.serve(Some(primary.port()))?;
        self.follow(back, promoted)?;
        self.settle()?;
        Ok((promoted, elected))
    }

    /// Kills primary after primary, at random moments, and leaves the writers some time after the last.
    fn rounds(
        &mut self,
        control: &Control,
        on_round: &mut (dyn FnMut(&Round) + Send),
    ) -> Result<Vec<Round>, String> {
        let begun = Instant::now();
        let mut moments = Stream::new(self.plan.ingest.seed, 0, Purpose::Key);
        let wait = |length: Duration| {
            let until = Instant::now() + length;
            while Instant::now() < until && !control.stopping() {
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        let mut rounds = Vec::new();
        for _ in 0..self.plan.rounds {
            wait(self.plan.between.mul_f64(1.0 + moments.next_unit()));
            if control.stopping() {
                return Ok(rounds);
            }
            let (at_s, killed) = (begun.elapsed().as_secs_f64(), self.primary()?);
            let (promoted, elected) = self.kill(killed)?;
            let round = Round {
                at_s,
                killed: killed.to_string(),
                promoted: promoted.to_string(),
                elected_s: elected.as_secs_f64(),
                without_acks_s: 0.0,
            };
            on_round(&round);
            rounds.push(round);
        }
        wait(self.plan.between);
        Ok(rounds)
    }

    fn primary(&self) -> Result<SocketAddr, String> {
        asked(&self.sentinels)
    }
}

/// Servers whose primary is who the sentinels say.
struct Guarded(Vec<SocketAddr>);

impl Guarded {
    fn now(&self) -> Result<RedisSet, String> {
        Ok(RedisSet { primary: asked(&self.0)?, password: None })
    }
}

impl Database for Guarded {
    fn primary(&self) -> Result<String, String> {
        self.now()?.primary()
    }

    fn replicas(&self) -> Result<Vec<String>, String> {
        self.now()?.replicas()
    }

    fn pre_checks(&self, copies: usize, durability: Durability) -> Result<Vec<PreCheck>, String> {
        self.now()?.pre_checks(copies, durability)
    }

    fn connect(&self, member: &str, patience: Duration) -> Result<Box<dyn Talk>, String> {
        self.now()?.connect(member, patience)
    }

    fn caught_up(&self, replica: &str) -> Result<bool, String> {
        self.now()?.caught_up(replica)
    }

    fn remove(&self, plan: &IngestPlan, ledger: &Ledger) -> Result<(), String> {
        self.now()?.remove(plan, ledger)
    }
}

/// Whom the first of the sentinels that answers calls primary.
fn asked(sentinels: &[SocketAddr]) -> Result<SocketAddr, String> {
    let ask = |sentinel: &SocketAddr| {
        let mut client = Client::connect(*sentinel, None, COMMAND).ok()?;
        match client.call(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]).ok()? {
            Reply::List(both) => format!("{}:{}", both.first()?.text(), both.get(1)?.text()).parse().ok(),
            _ => None,
        }
    };
    sentinels.iter().find_map(ask).ok_or_else(|| "no sentinel names a primary".into())
}

fn is_primary(address: SocketAddr) -> bool {
    let role = Client::connect(address, None, COMMAND).and_then(|mut client| client.call(&["ROLE"]));
    matches!(role, Ok(Reply::List(all)) if all.first().is_some_and(|role| role.text() == "master"))
}

fn address(uri: &str) -> Result<SocketAddr, String> {
    let port = uri.rsplit(':').next().and_then(|port| port.trim_end_matches('/').parse().ok());
    port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok_or_else(|| format!("{uri}: no port"))
}

/// Carries out a proof; `home` is an empty folder for the servers' files.
pub fn failover(
    plan: &FailoverPlan,
    home: &Path,
    control: &Control,
    on_round: &mut (dyn FnMut(&Round) + Send),
) -> Result<FailoverProof, String> {
    let mut set = Set::start(plan, home)?;
    let version = {
        let mut client = Client::connect(set.servers[0].0, None, COMMAND)?;
        let told = client.call(&["INFO", "server"])?;
        let line = told
            .text()
            .lines()
            .find_map(|line| line.trim().strip_prefix("redis_version:").map(str::to_owned));
        line.unwrap_or_else(|| "unknown".into())
    };
    let guarded = Guarded(set.sentinels.clone());
    let enough = Control::default();
    let (written, rounds) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| ingest(&guarded, &plan.ingest, &enough, &mut |_, _| ()));
        let rounds = set.rounds(control, on_round);
        enough.stop();
        (writer.join(), rounds)
    });
    let (written, mut rounds) = (written.map_err(|_| "a writer has panicked")?, rounds?);
    for round in &mut rounds {
        round.without_acks_s = longest_gap(&written.course, round.at_s);
    }
    let last = guarded.now()?;
    let replicas = last.replicas()?;
    let copies = verify(&last, &replicas, &plan.ingest, &written.ledger, ELECTION);
    Ok(FailoverProof { written, rounds, copies, version })
}

/// The longest time without an acknowledgement that ends after `at_s` and begins before half a minute later.
fn longest_gap(course: &Course, at_s: f64) -> f64 {
    let near = |(begin, length): &(f64, f64)| begin + length >= at_s && *begin <= at_s + 30.0;
    course.stalls(Duration::ZERO).into_iter().filter(near).map(|(_, length)| length).fold(0.0, f64::max)
}

impl FailoverProof {
    /// Acknowledged records that the last primary does not have as they were sent.
    pub fn lost(&self) -> u64 {
        self.copies.iter().filter(|copy| copy.primary).map(|copy| copy.missing + copy.wrong).sum()
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.written.ledger
    }

    /// Acknowledged records.
    pub fn acknowledged(&self) -> u64 {
        self.written.ledger.count(Status::Acknowledged)
    }
}
