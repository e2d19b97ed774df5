//! Redis, Valkey and Dragonfly: a primary, its replicas, and WAIT.

use super::records::Records;
use crate::local::{RespClient as Client, RespReply as Reply};
use dyno_wire::redis::{Address, RedisOptions};
use serde::Serialize;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// How long one command may take.
const COMMAND: Duration = Duration::from_secs(10);

/// What an acknowledgement must stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// In the memory of that many machines.
    Memory,
    /// In the append-only files of that many machines (WAITAOF, from Redis 7.2 on).
    Disk,
}

/// A question that is asked before anything is claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreCheck {
    /// What is looked at.
    pub name: String,
    /// Whether it is as the claim needs it.
    pub held: bool,
    /// What was found.
    pub found: String,
}

/// A primary and its replicas.
#[derive(Clone, Debug)]
pub struct RedisSet {
    /// The primary.
    pub primary: SocketAddr,
    /// Its password.
    pub password: Option<String>,
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Acknowledged,
    Indeterminate(String),
    Refused(String),
}

impl RedisSet {
    /// From a URI's options; what proofs do not speak is refused.
    pub fn of(options: &RedisOptions) -> Result<Self, String> {
        if options.tls.is_some() || options.cluster || options.user.is_some() {
            return Err("proofs speak to a primary without TLS and ACL users; no cluster".into());
        }
        let [Address::Tcp(host, port)] = options.addresses.as_slice() else {
            return Err("expected one host and port: the primary".into());
        };
        let found = (host.as_str(), *port).to_socket_addrs().map_err(|e| format!("{host}:{port}: {e}"))?;
        let primary = found.into_iter().next().ok_or_else(|| format!("{host}:{port} has no address"))?;
        Ok(RedisSet { primary, password: options.password.clone() })
    }

    pub(super) fn connect(&self, address: SocketAddr) -> Result<Client, String> {
        Client::connect(address, self.password.as_deref(), COMMAND)
    }

    /// Addresses of the replicas that are online.
    pub fn replicas(&self) -> Result<Vec<SocketAddr>, String> {
        let mut client = self.connect(self.primary)?;
        let told = client.call(&["INFO", "replication"])?;
        let of = |line: &str| {
            let fields = line.split_once(':').filter(|(name, _)| {
                name.strip_prefix("slave").is_some_and(|n| n.bytes().all(|byte| byte.is_ascii_digit()))
            })?;
            let get = |key: &str| {
                fields.1.split(',').find_map(|field| field.split_once('=').filter(|(name, _)| *name == key))
            };
            let online = get("state").is_some_and(|(_, state)| state == "online");
            let address = format!("{}:{}", get("ip")?.1, get("port")?.1);
            address.parse::<SocketAddr>().ok().filter(|_| online)
        };
        Ok(told.text().lines().filter_map(|line| of(line.trim())).collect())
    }

    fn setting(client: &mut Client, name: &str) -> Option<String> {
        match client.call(&["CONFIG", "GET", name]).ok()? {
            Reply::List(all) => all.get(1).map(|value| value.text().to_owned()),
            _ => None,
        }
    }

    /// What must be so that the claim means anything.
    pub fn pre_checks(&self, copies: usize, durability: Durability) -> Result<Vec<PreCheck>, String> {
        let mut client = self.connect(self.primary)?;
        let check = |name: &str, held: bool, found: String| PreCheck { name: name.into(), held, found };
        let mut checks = Vec::new();
        let server = client.call(&["INFO", "server"])?;
        let line = |text: &str, name: &str| {
            let value = text
                .lines()
                .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':').map(str::to_owned));
            value.unwrap_or_else(|| "unknown".into())
        };
        checks.push(check("version", true, line(server.text(), "redis_version")));
        let role = client.call(&["INFO", "replication"])?;
        let role = line(role.text(), "role");
        checks.push(check("role", role == "master", role));
        let replicas = self.replicas()?;
        let list: Vec<String> = replicas.iter().map(ToString::to_string).collect();
        let enough = replicas.len() + 1 >= copies;
        checks.push(check("replicas online", enough, format!("{} ({})", replicas.len(), list.join(", "))));
        let mut hosts: Vec<_> = replicas.iter().map(SocketAddr::ip).chain([self.primary.ip()]).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let words = match hosts.len() >= copies {
            true => format!("{} hosts", hosts.len()),
            false => format!("{} host: what takes it takes all copies", hosts.len()),
        };
        // Said, not demanded: a demonstration runs on one machine.
        checks.push(check("distinct hosts", true, words));
        for name in ["appendonly", "appendfsync", "save", "min-replicas-to-write"] {
            let found = Self::setting(&mut client, name).unwrap_or_else(|| "not told".into());
            let held = durability == Durability::Memory || name != "appendonly" || found == "yes";
            checks.push(check(name, held, found));
        }
        if durability == Durability::Disk {
            let told = client.call(&["WAITAOF", "0", "0", "1"]);
            let found = told.as_ref().map_or_else(Clone::clone, |_| "understood".to_owned());
            checks.push(check("WAITAOF", told.is_ok(), found));
        }
        Ok(checks)
    }

    /// Writes records of a worker in one go and waits until the copies are there.
    pub(super) fn put(
        client: &mut Client,
        records: &Records,
        (worker, from, to): (u32, u64, u64),
        (copies, durability, patience): (usize, Durability, Duration),
    ) -> Fate {
        let mut words: Vec<Vec<String>> =
            Vec::with_capacity((to - from) as usize * (records.indexes + 1) + 1);
        for number in from..to {
            let key = records.key(worker, number);
            for index in 0..records.indexes {
                let score = records.score(worker, number, index).to_string();
                words.push(vec!["ZADD".into(), records.index(index), score, key.clone()]);
            }
            words.push(vec!["SET".into(), key, records.value(worker, number)]);
        }
        let ms = patience.as_millis().to_string();
        let wanted = (copies.saturating_sub(1)).to_string();
        match durability {
            Durability::Memory if copies > 1 => words.push(vec!["WAIT".into(), wanted.clone(), ms]),
            Durability::Memory => {}
            Durability::Disk => words.push(vec!["WAITAOF".into(), "1".into(), wanted.clone(), ms]),
        }
        if let Err(why) = client.send_all(&words) {
            return Fate::Indeterminate(why);
        }
        let mut refused = None;
        let mut last = Reply::Null;
        for _ in &words {
            match client.next() {
                Ok(reply) => last = reply,
                Err(why)
                    if why.starts_with(|c: char| c.is_ascii_uppercase()) && !why.contains("connection") =>
                {
                    refused = refused.or(Some(why));
                }
                Err(why) => return Fate::Indeterminate(why),
            }
        }
        if let Some(why) = refused {
            // A part may have been done.
            return if why.starts_with("READONLY") { Fate::Refused(why) } else { Fate::Indeterminate(why) };
        }
        let number = |reply: &Reply| reply.text().parse::<usize>().unwrap_or(0);
        let there = match (durability, &last) {
            (Durability::Memory, _) if copies <= 1 => true,
            (Durability::Memory, reply) => number(reply) + 1 >= copies,
            (Durability::Disk, Reply::List(both)) => {
                both.first().is_some_and(|own| number(own) >= 1)
                    && both.get(1).is_some_and(|others| number(others) + 1 >= copies)
            }
            (Durability::Disk, _) => false,
        };
        match there {
            true => Fate::Acknowledged,
            false => Fate::Indeterminate(format!(
                "fewer than {copies} copies after {ms} ms",
                ms = patience.as_millis()
            )),
        }
    }

    /// Whether a replica has everything that the primary has written.
    pub(super) fn caught_up(&self, replica: SocketAddr) -> Result<bool, String> {
        let offset = |client: &mut Client, name: &str| -> Result<u64, String> {
            let told = client.call(&["INFO", "replication"])?;
            let value = told
                .text()
                .lines()
                .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':')?.parse().ok());
            value.ok_or_else(|| format!("no {name}"))
        };
        let written = offset(&mut self.connect(self.primary)?, "master_repl_offset")?;
        Ok(offset(&mut self.connect(replica)?, "slave_repl_offset")? >= written)
    }

    /// Removes a run's records and indexes from the primary.
    pub fn remove(&self, plan: &super::IngestPlan, ledger: &super::Ledger) -> Result<(), String> {
        let (records, ranges) = (plan.contents(), ledger.ranges());
        let mut client = self.connect(self.primary)?;
        for index in 0..records.indexes {
            client.call(&["UNLINK", &records.index(index)])?;
        }
        for range in ranges {
            for from in (range.from..range.to).step_by(500) {
                let keys = (from..(from + 500).min(range.to)).map(|number| records.key(range.worker, number));
                let words: Vec<String> = std::iter::once("UNLINK".to_owned()).chain(keys).collect();
                client.call(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }
}
