//! Redis, Valkey and Dragonfly: a primary, its replicas, and WAIT.

use crate::client::{Client, ClientLogin, RespError};
use crate::protocol::RedisOptions;
use crate::protocol::resp::{RespReply, put_command};
use dyno_db::copies::database::{
    DatabaseError, IngestClient, PreCheck, RecordSpan, ReplicatedStore, ReplicationLag, WriteOutcome,
    until_gone,
};
use dyno_db::copies::ledger::Ledger;
use dyno_db::copies::plan::{Durability, IngestPlan};
use dyno_db::copies::records::Records;
use dyno_db::copies::sent::Sent;
use dyno_engine::net::{TlsConfig, tls_config};
use dyno_types::address::Address;
use dyno_types::{RefusalCode, Refused};
use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that one command may take.
const COMMAND: Duration = Duration::from_secs(10);

/// A primary and its replicas.
#[derive(Clone)]
pub struct RedisSet {
    /// The primary.
    pub primary: SocketAddr,
    /// The primary's name, which its certificate is for.
    host: String,
    user: Option<String>,
    password: Option<String>,
    tls: Option<Arc<TlsConfig>>,
}

impl RedisSet {
    /// From a URI's options; what proofs do not speak is refused.
    ///
    /// # Errors
    /// The options ask for what proofs do not speak, or name a host without an address.
    pub fn from_options(options: &RedisOptions) -> Result<Self, Refused> {
        if options.cluster {
            return Err(Refused::new(
                RefusalCode::Unsupported,
                "cluster",
                "proofs speak to a primary and its replicas; no cluster",
            ));
        }
        let [Address::Tcp(host, port)] = options.addresses.as_slice() else {
            return Err(Refused::new(
                RefusalCode::BadValue,
                "target",
                "expected one host and port: the primary",
            ));
        };
        let found = (host.as_str(), *port).to_socket_addrs();
        let mut found = found.map_err(|e| {
            Refused::new(RefusalCode::BadValue, format!("{host}:{port}"), format!("{host}:{port}: {e}"))
        })?;
        let primary = found.next().ok_or_else(|| {
            Refused::new(
                RefusalCode::BadValue,
                format!("{host}:{port}"),
                format!("{host}:{port} has no address"),
            )
        })?;
        let tls = options.tls.as_ref().map(tls_config).transpose()?;
        Ok(RedisSet {
            primary,
            host: host.clone(),
            user: options.user.clone(),
            password: options.password.clone(),
            tls: tls.map(Arc::new),
        })
    }

    /// A set that needs neither a login nor TLS.
    pub fn without_login(primary: SocketAddr) -> Self {
        RedisSet { primary, host: primary.ip().to_string(), user: None, password: None, tls: None }
    }

    fn client(&self, address: SocketAddr) -> Result<Client, RespError> {
        self.patient(address, Duration::ZERO)
    }

    fn patient(&self, address: SocketAddr, patience: Duration) -> Result<Client, RespError> {
        // Replicas are known by their addresses alone.
        let host = if address == self.primary { self.host.clone() } else { address.ip().to_string() };
        let login = ClientLogin {
            user: self.user.as_deref(),
            password: self.password.as_deref(),
            tls: self.tls.as_ref().map(|tls| (tls, host.as_str())),
        };
        Client::log_in(address, &login, COMMAND + patience)
    }

    /// Addresses of the replicas that are online.
    pub fn online_replicas(&self) -> Result<Vec<SocketAddr>, DatabaseError> {
        let mut client = self.client(self.primary)?;
        let told = client.send_command(&["INFO", "replication"])?;
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
        Ok(told.as_text().lines().filter_map(|line| of(line.trim())).collect())
    }

    fn setting(client: &mut Client, name: &str) -> Option<String> {
        match client.send_command(&["CONFIG", "GET", name]).ok()? {
            RespReply::List(all) => all.get(1).map(|value| value.as_text().to_owned()),
            _ => None,
        }
    }
}

/// A line of what INFO says.
fn line(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':').map(str::to_owned))
}

fn parsed(member: &str) -> Result<SocketAddr, DatabaseError> {
    member.parse().map_err(|_| DatabaseError::NoAddress(member.to_owned()))
}

impl ReplicatedStore for RedisSet {
    fn primary(&self) -> Result<String, DatabaseError> {
        Ok(self.primary.to_string())
    }

    fn replicas(&self) -> Result<Vec<String>, DatabaseError> {
        Ok(self.online_replicas()?.iter().map(ToString::to_string).collect())
    }

    fn pre_checks(&self, copies: usize, durability: Durability) -> Result<Vec<PreCheck>, DatabaseError> {
        let mut client = self.client(self.primary)?;
        let mut checks = Vec::new();
        let server = client.send_command(&["INFO", "server"])?;
        let known = |text: &str, name: &str| line(text, name).unwrap_or_else(|| "unknown".into());
        // Redis's kin call themselves Redis, too.
        let own = ["dragonfly_version", "valkey_version"]
            .iter()
            .find_map(|name| Some(format!("{} {}", name.split('_').next()?, line(server.as_text(), name)?)));
        let version = own.unwrap_or_else(|| known(server.as_text(), "redis_version"));
        checks.push(PreCheck::new("version", true, version));
        let role = client.send_command(&["INFO", "replication"])?;
        let role = known(role.as_text(), "role");
        checks.push(PreCheck::new("role", role == "master", role));
        let replicas = self.online_replicas()?;
        let list: Vec<String> = replicas.iter().map(ToString::to_string).collect();
        let found = format!("{} ({})", replicas.len(), list.join(", "));
        checks.push(PreCheck::new("replicas online", replicas.len() + 1 >= copies, found));
        // They are known by their addresses alone, which a certificate may not have.
        for replica in replicas.iter().filter(|_| self.tls.is_some()) {
            let told = self.client(*replica).and_then(|mut client| client.send_command(&["PING"]));
            let found = told.as_ref().map_or_else(ToString::to_string, |_| "answers".to_owned());
            checks.push(PreCheck::new(&format!("replica {replica}"), told.is_ok(), found));
        }
        let hosts = replicas.iter().chain([&self.primary]).map(|member| member.ip().to_string());
        checks.push(PreCheck::count_hosts(hosts.collect(), copies));
        for name in ["appendonly", "appendfsync", "save", "min-replicas-to-write"] {
            let found = Self::setting(&mut client, name).unwrap_or_else(|| "not told".into());
            let held = durability == Durability::Memory || name != "appendonly" || found == "yes";
            checks.push(PreCheck::new(name, held, found));
        }
        // Command that waits for copies: Dragonfly has none.
        let wait: Option<&[&str]> = match durability {
            Durability::Disk => Some(&["WAITAOF", "0", "0", "1"]),
            Durability::Memory if copies > 1 => Some(&["WAIT", "0", "1"]),
            Durability::Memory => None,
        };
        if let Some(words) = wait {
            let told = client.send_command(words);
            let found = told.as_ref().map_or_else(ToString::to_string, |_| "understood".to_owned());
            checks.push(PreCheck::new(words[0], told.is_ok(), found));
        }
        Ok(checks)
    }

    fn connect(&self, member: &str, patience: Duration) -> Result<Box<dyn IngestClient>, DatabaseError> {
        Ok(Box::new(RedisTalk(self.patient(parsed(member)?, patience)?, Sent::default())))
    }

    fn caught_up(&self, replica: &str) -> Result<bool, DatabaseError> {
        let offset = |client: &mut Client, name: &str| -> Result<u64, DatabaseError> {
            let told = client.send_command(&["INFO", "replication"])?;
            let value = line(told.as_text(), name).and_then(|value| value.parse().ok());
            value.ok_or_else(|| DatabaseError::incomplete_reply(format!("no {name}")))
        };
        let written = offset(&mut self.client(self.primary)?, "master_repl_offset")?;
        Ok(offset(&mut self.client(parsed(replica)?)?, "slave_repl_offset")? >= written)
    }

    fn clock_ns(&self, member: &str) -> Result<u64, DatabaseError> {
        let told = self.client(parsed(member)?)?.send_command(&["TIME"])?;
        let RespReply::List(parts) = &told else {
            return Err(DatabaseError::incomplete_reply("TIME gives no list"));
        };
        let number = |at: usize| parts.get(at).and_then(|part| part.as_text().parse::<u64>().ok());
        let time = number(0).zip(number(1)).map(|(s, us)| s * 1_000_000_000 + us * 1_000);
        time.ok_or_else(|| DatabaseError::incomplete_reply("TIME gives no time"))
    }

    fn behind(&self) -> Result<ReplicationLag, DatabaseError> {
        let told = self.client(self.primary)?.send_command(&["INFO", "replication"])?;
        let written: Option<f64> =
            line(told.as_text(), "master_repl_offset").and_then(|value| value.parse().ok());
        let written = written.ok_or_else(|| DatabaseError::incomplete_reply("no master_repl_offset"))?;
        let of = |text: &str| {
            let field =
                |key: &str| text.split([',', ':']).find_map(|part| part.strip_prefix(key)?.strip_prefix('='));
            let offset: f64 = field("offset")?.parse().ok()?;
            Some((format!("{}:{}", field("ip")?, field("port")?), (written - offset).max(0.0)))
        };
        Ok(("bytes of the replication stream", told.as_text().lines().filter_map(of).collect()))
    }

    fn existing(&self, plan: &IngestPlan) -> Result<u64, DatabaseError> {
        let records = plan.record_recipe();
        let first = (0..plan.workers).map(|worker| records.record_key(worker, 0));
        let names = (0..records.indexes).map(|index| records.index_name(index)).chain(first);
        let words: Vec<String> = std::iter::once("EXISTS".to_owned()).chain(names).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let told = self.client(self.primary)?.send_command(&words)?;
        told.as_text()
            .parse()
            .map_err(|_| DatabaseError::incomplete_reply(format!("EXISTS gives {:?}", told.as_text())))
    }

    fn storage(&self, plan: &IngestPlan) -> Result<BTreeMap<String, f64>, DatabaseError> {
        let mut client = self.client(self.primary)?;
        let memory = client.send_command(&["INFO", "memory"])?;
        let mut all = BTreeMap::new();
        for name in ["used_memory", "used_memory_dataset"] {
            all.extend(
                line(memory.as_text(), name).and_then(|value| Some((name.to_owned(), value.parse().ok()?))),
            );
        }
        let records = plan.record_recipe();
        // Keys that are not there, or not known, are left out.
        let mut of = |name: &str, key: String| -> Option<(String, f64)> {
            let told = client.send_command(&["MEMORY", "USAGE", &key, "SAMPLES", "0"]).ok()?;
            Some((name.to_owned(), told.as_text().parse().ok()?))
        };
        all.extend(of("memory_of_the_first_record", records.record_key(0, 0)));
        if records.indexes > 0 {
            all.extend(of("memory_of_the_first_index", records.index_name(0)));
        }
        Ok(all)
    }

    fn remove(&self, records: &Records, ledger: Option<&Ledger>) -> Result<(), DatabaseError> {
        let mut client = self.client(self.primary)?;
        let Some(ledger) = ledger else { return until_gone(|| sweep(&mut client, &records.key_pattern())) };
        for index in 0..records.indexes {
            client.send_command(&["UNLINK", &records.index_name(index)])?;
        }
        for range in ledger.merged_ranges() {
            for from in (range.from..range.to).step_by(500) {
                let keys =
                    (from..(from + 500).min(range.to)).map(|number| records.record_key(range.worker, number));
                let words: Vec<String> = std::iter::once("UNLINK".to_owned()).chain(keys).collect();
                client.send_command(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }
}

/// Removes all keys that a pattern matches; returns whether there was any.
fn sweep(client: &mut Client, pattern: &str) -> Result<bool, DatabaseError> {
    let mut cursor = "0".to_owned();
    let mut found = false;
    loop {
        let RespReply::List(mut told) =
            client.send_command(&["SCAN", &cursor, "MATCH", pattern, "COUNT", "1000"])?
        else {
            return Err(DatabaseError::incomplete_reply("SCAN gives no list"));
        };
        let keys = match told.pop() {
            Some(RespReply::List(keys)) => keys,
            _ => return Err(DatabaseError::incomplete_reply("SCAN gives no keys")),
        };
        cursor = told.pop().map(|cursor| cursor.as_text().to_owned()).unwrap_or_default();
        if !keys.is_empty() {
            found = true;
            let words: Vec<&str> =
                std::iter::once("UNLINK").chain(keys.iter().map(RespReply::as_text)).collect();
            client.send_command(&words)?;
        }
        if cursor == "0" {
            return Ok(found);
        }
    }
}

/// A connection, and what has gone out on it.
struct RedisTalk(Client, Sent);

impl IngestClient for RedisTalk {
    fn put(&mut self, records: &Records, part: RecordSpan, plan: &IngestPlan) -> WriteOutcome {
        let all = commands(records, part, plan);
        let mut bytes = Vec::new();
        for words in &all {
            put_command(&mut bytes, &words.iter().map(String::as_bytes).collect::<Vec<_>>());
        }
        let (sent, wire_bytes) = (Instant::now(), bytes.len() as u64);
        let replies = match self.0.pipeline(bytes, all.len()) {
            Ok(replies) => replies,
            Err(lost) => return WriteOutcome::Indeterminate(lost.to_string()),
        };
        self.1.wire_bytes += wire_bytes;
        all.iter()
            .filter(|words| words[0] == "SET")
            .for_each(|words| self.1.record_sent(words[2].len() as u64));
        let refusals = || {
            replies.iter().filter_map(|reply| match reply {
                RespReply::Error(refused) => Some(refused),
                _ => None,
            })
        };
        if let Some(why) = refusals().next().map(ToString::to_string) {
            // One that was a replica all the while has done nothing; otherwise a part may have been done.
            let read_only = refusals().filter(|refused| refused.error_code() == "READONLY").count();
            let writes = (part.to - part.from) as usize * (records.indexes + 1);
            return if read_only == writes {
                WriteOutcome::Refused(why)
            } else {
                WriteOutcome::Indeterminate(why)
            };
        }
        let number = |reply: &RespReply| reply.as_text().parse::<usize>().unwrap_or(0);
        let there = match (plan.durability, replies.last()) {
            (Durability::Memory, _) if plan.copies <= 1 => true,
            (Durability::Memory, Some(reply)) => number(reply) + 1 >= plan.copies,
            (Durability::Disk, Some(RespReply::List(both))) => {
                both.first().is_some_and(|own| number(own) >= 1)
                    && both.get(1).is_some_and(|others| number(others) + 1 >= plan.copies)
            }
            _ => false,
        };
        match there {
            true => WriteOutcome::Acknowledged(sent),
            false => {
                let ms = plan.patience.as_millis();
                WriteOutcome::Indeterminate(format!("fewer than {} copies after {ms} ms", plan.copies))
            }
        }
    }

    fn take_sent(&mut self) -> Sent {
        std::mem::take(&mut self.1)
    }

    fn get(&mut self, records: &Records, part: RecordSpan) -> Result<Vec<Option<Vec<u8>>>, DatabaseError> {
        let keys = (part.from..part.to).map(|number| records.record_key(part.worker, number));
        let words: Vec<String> = std::iter::once("MGET".to_owned()).chain(keys).collect();
        let RespReply::List(values) =
            self.0.send_command(&words.iter().map(String::as_str).collect::<Vec<_>>())?
        else {
            return Err(DatabaseError::incomplete_reply("MGET gives no list"));
        };
        let value = |reply: RespReply| match reply {
            RespReply::Text(text) => Some(text.into_bytes()),
            _ => None,
        };
        Ok(values.into_iter().map(value).collect())
    }

    fn indexed(&mut self, records: &Records, index: usize) -> Result<u64, DatabaseError> {
        let count = self.0.send_command(&["ZCARD", &records.index_name(index)])?;
        count
            .as_text()
            .parse()
            .map_err(|_| DatabaseError::incomplete_reply(format!("ZCARD gives {:?}", count.as_text())))
    }
}

/// Records, entries of their indexes, and the question for copies.
fn commands(records: &Records, part: RecordSpan, plan: &IngestPlan) -> Vec<Vec<String>> {
    let mut words: Vec<Vec<String>> =
        Vec::with_capacity((part.to - part.from) as usize * (records.indexes + 1) + 1);
    for number in part.from..part.to {
        let key = records.record_key(part.worker, number);
        for index in 0..records.indexes {
            let score = records.index_score(part.worker, number, index).to_string();
            words.push(vec!["ZADD".into(), records.index_name(index), score, key.clone()]);
        }
        words.push(vec!["SET".into(), key, records.record_value(part.worker, number)]);
    }
    let ms = plan.patience.as_millis().to_string();
    let wanted = (plan.copies.saturating_sub(1)).to_string();
    match plan.durability {
        Durability::Memory if plan.copies > 1 => words.push(vec!["WAIT".into(), wanted, ms]),
        Durability::Memory => {}
        Durability::Disk => words.push(vec!["WAITAOF".into(), "1".into(), wanted, ms]),
    }
    words
}
