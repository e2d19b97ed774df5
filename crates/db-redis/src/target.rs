//! Redis and what speaks its protocol: Valkey, KeyDB, Dragonfly.

use crate::protocol::resp::{self, RespReply};
use crate::protocol::{ClusterTopology, ReadFrom, RedisDriver, RedisFacts, RedisOptions};
use crate::{client, copies};
use dyno_db::command_target::CommandTarget;
use dyno_db::probe::FactsStep;
use dyno_db::probe::{
    ProbeFailure, ReadStatus, Stop, add_login_advice, first_that_answers, open_conversation,
};
use dyno_db::protocol::REDIS;
use dyno_db::target::{Database, LoginForm, OpenTarget, Scheme, Target, TargetInfo, WATCHED, tls_words};
use dyno_db::target_error::TargetError;
use dyno_engine::net::{TlsConfig, tls_config};
use dyno_engine::{Control, Finished, Job, RunError, Second, run_wire};
use dyno_monitor::Source;
use dyno_types::address::Address;
use dyno_types::limits::ANSWER_BYTES;
use dyno_types::{Content, Endpoint, Outcome, RefusalCode, Refused, Verb};
use std::collections::BTreeMap;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::Duration;

/// The database.
pub struct RedisDatabase;

impl Database for RedisDatabase {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn schemes(&self) -> &[Scheme] {
        &[
            Scheme {
                name: "redis",
                form: "redis://[user:password@]host:port[/db]",
                login: LoginForm::Password,
            },
            Scheme { name: "rediss", form: "rediss://host:port?ca=FILE", login: LoginForm::Password },
            Scheme { name: "unix", form: "unix:///run/redis.sock", login: LoginForm::Password },
        ]
    }

    fn parse(&self, uri: &str) -> Result<Box<dyn Target>, Refused> {
        Ok(open_options(RedisOptions::from_uri(uri)?))
    }
}

/// Values of a server's configuration; `None` where it does not tell them, or is reached by TLS or a Unix socket.
pub fn read_configuration<const N: usize>(uri: &str, names: [&str; N]) -> Option<[String; N]> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let options = RedisOptions::from_uri(uri).ok().filter(|options| options.tls.is_none())?;
    let Some(Address::Tcp(host, port)) = options.addresses.first() else { return None };
    let address = (host.as_str(), *port).to_socket_addrs().ok()?.next()?;
    let (user, password) = (options.user.as_deref(), options.password.as_deref());
    let mut client =
        client::Client::log_in(address, &client::ClientLogin { user, password, tls: None }, PATIENCE).ok()?;
    let mut all = Vec::new();
    for name in names {
        match client.send_command(&["CONFIG", "GET", name]).ok()? {
            RespReply::List(parts) => all.push(parts.get(1)?.as_text().to_owned()),
            _ => return None,
        }
    }
    all.try_into().ok()
}

/// How a server works, as it tells itself: `standalone`, `cluster` or `sentinel`; `None` where it does not tell before a login.
/// Beside it the address that has answered.
///
/// # Errors
/// No address answers, or what answers is something else.
pub fn ask_mode(options: &RedisOptions, stop: Stop<'_>) -> Result<(Endpoint, Option<String>), TargetError> {
    let tls = options.tls.as_ref().map(tls_config).transpose()?.map(Arc::new);
    first_that_answers(&options.addresses, stop, |endpoint| {
        let mut questions = Vec::new();
        if let Some(password) = &options.password {
            let user = options.user.as_deref().unwrap_or("default");
            resp::put_command(&mut questions, &[b"AUTH", user.as_bytes(), password.as_bytes()]);
        }
        resp::put_command(&mut questions, &[b"INFO", b"server"]);
        let mut expected = 1 + usize::from(options.password.is_some());
        let mut mode = None;
        let mut take = |received: &mut Vec<u8>, _: &mut Vec<u8>| loop {
            match resp::read_reply(received, ANSWER_BYTES) {
                Ok(Some((reply, length))) => {
                    received.drain(..length);
                    expected -= 1;
                    if expected == 0 {
                        let text = reply.as_text();
                        let found = text.lines().find_map(|line| line.strip_prefix("redis_mode:"));
                        mode = found.map(|mode| mode.trim().to_owned());
                        return ReadStatus::Done;
                    }
                }
                Ok(None) => return ReadStatus::Need,
                Err(error) => return ReadStatus::Refused(error.to_string()),
            }
        };
        open_conversation(&REDIS, (tls.as_ref(), stop), endpoint, questions, &mut take)?;
        Ok((endpoint.clone(), mode))
    })
}

/// A target with these options.
pub fn open_options(options: RedisOptions) -> Box<dyn Target> {
    Box::new(RedisTarget(Arc::new(options)))
}

#[derive(Debug)]
struct RedisTarget(Arc<RedisOptions>);

impl Target for RedisTarget {
    fn redacted(&self) -> String {
        self.0.redacted()
    }

    fn addresses(&self) -> &[Address] {
        &self.0.addresses
    }

    fn has_password(&self) -> bool {
        self.0.password.is_some()
    }

    fn is_watched(&self) -> bool {
        true
    }

    fn copies(&self) -> Option<Result<Box<dyn dyno_db::copies::database::ReplicatedStore>, Refused>> {
        Some(
            copies::RedisSet::from_options(&self.0)
                .map(|set| Box::new(set) as Box<dyn dyno_db::copies::database::ReplicatedStore>),
        )
    }

    fn open(&self, _content: Arc<dyn Content>, stop: Stop<'_>) -> Result<Box<dyn OpenTarget>, TargetError> {
        let options = self.0.clone();
        let tls = options.tls.as_ref().map(tls_config).transpose()?.map(Arc::new);
        let (topology, facts) = probe(&options, tls.as_ref(), stop)?;
        Ok(Box::new(OpenRedis { options, tls, topology, facts }))
    }
}

/// Tries the seed addresses in order; the first that answers tells facts and topology.
fn probe(
    options: &RedisOptions,
    tls: Option<&Arc<TlsConfig>>,
    stop: Stop<'_>,
) -> Result<(ClusterTopology, RedisFacts), TargetError> {
    first_that_answers(&options.addresses, stop, |endpoint| {
        let (mut topology, mut facts) =
            (ClusterTopology::single_node(endpoint.clone()), RedisFacts::default());
        let mut questions = Vec::new();
        RedisFacts::ask_all(options, &mut questions);
        let mut is_no_cluster = false;
        let mut take = |received: &mut Vec<u8>, _: &mut Vec<u8>| match RedisFacts::read_answers(
            options,
            &mut topology,
            received,
            &mut facts,
        ) {
            FactsStep::Need => ReadStatus::Need,
            FactsStep::Done => ReadStatus::Done,
            FactsStep::Refused(outcome, message) => {
                is_no_cluster = outcome == Outcome::ClusterDown;
                ReadStatus::Refused(add_login_advice(outcome, &message))
            }
        };
        match open_conversation(&REDIS, (tls, stop), endpoint, questions, &mut take) {
            Ok(()) => Ok((topology, facts)),
            // A node that was taken out of its cluster: the other seeds may be in it.
            Err(ProbeFailure::Final(message)) if is_no_cluster => Err(ProbeFailure::Absent(message)),
            Err(failure) => Err(failure),
        }
    })
}

/// Servers that have answered.
pub(crate) struct OpenRedis {
    pub(crate) options: Arc<RedisOptions>,
    /// TLS made ready.
    pub(crate) tls: Option<Arc<TlsConfig>>,
    /// Nodes and slots.
    pub(crate) topology: ClusterTopology,
    /// Facts that the first of them reports of itself.
    pub(crate) facts: RedisFacts,
}

impl OpenRedis {
    /// Nodes that serve what the load asks, as many as are watched.
    pub(crate) fn serving(&self) -> Vec<&Endpoint> {
        let all = self.topology.known_endpoints();
        let serving = self.topology.serving_nodes(self.options.reads != ReadFrom::Primary);
        serving.iter().filter_map(|node| all.get(usize::from(*node))).take(WATCHED).collect()
    }
}

impl OpenTarget for OpenRedis {
    fn info(&self) -> TargetInfo {
        TargetInfo { database: self.facts.product_name(), wire: true, batches: true, ..TargetInfo::default() }
    }

    fn redacted(&self) -> String {
        self.options.redacted()
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let kept = [
            "redis_mode",
            "os",
            "maxmemory_human",
            "maxmemory_policy",
            "aof_enabled",
            "io_threads_active",
            "role",
        ];
        let kept =
            kept.into_iter().filter_map(|name| Some((name.to_owned(), self.facts.get(name)?.to_owned())));
        let mut out: BTreeMap<String, String> = kept.collect();
        let durability = if self.facts.get("aof_enabled") == Some("1") {
            "append-only file on (see appendfsync)"
        } else {
            "no append-only file: writes live in memory until the next snapshot, if any"
        };
        out.insert("durability".into(), durability.into());
        out.insert("protocol".into(), format!("RESP{}", self.options.protocol));
        if let Some(primaries) = self.facts.primaries {
            out.insert("cluster_primaries".into(), primaries.to_string());
        }
        if let Some(copies) = self.facts.copies {
            out.insert("copies_read".into(), copies.to_string());
        }
        if let Some(tls) = &self.options.tls {
            out.insert("tls".into(), tls_words(tls).into());
        }
        out
    }

    fn takes_commands(&self) -> bool {
        true
    }

    fn recorded_protocol(&self) -> Option<(&'static str, u32)> {
        Some(("redis", self.options.database))
    }

    fn check_replay(&self, _numbered: u64) -> Result<Vec<String>, Refused> {
        if self.facts.get("redis_mode") == Some("cluster") && !self.topology.is_cluster() {
            let message = format!(
                "{} is a node of a cluster: a replay needs to know its slots: add `cluster=true` to the URI",
                self.redacted()
            );
            return Err(Refused::new(RefusalCode::Unsupported, "target", message));
        }
        Ok(Vec::new())
    }

    fn command_target(&self) -> Option<Box<dyn CommandTarget + '_>> {
        Some(self.ask_commands())
    }

    fn check(&self, content: &Arc<dyn Content>, verbs: &[Verb]) -> Result<(), Refused> {
        RedisDriver::new(self.options.clone(), content.clone(), self.topology.clone(), verbs).map(drop)
    }

    fn apply(
        &self,
        job: Job,
        control: Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError> {
        let content = job.workload.content();
        let make = || RedisDriver::new(self.options.clone(), content.clone(), self.topology.clone(), &[]);
        run_wire(job, control, self.tls.clone(), make, on_second)
    }

    fn has_sockets(&self) -> bool {
        true
    }

    fn nodes(&self) -> Vec<&Endpoint> {
        self.serving()
    }

    fn sources(&self, name: &dyn Fn(Option<&Endpoint>) -> String) -> Vec<Box<dyn Source>> {
        self.all_sources(name)
    }

    fn process(&self) -> Option<(u32, String, &Endpoint)> {
        let [endpoint] = self.topology.known_endpoints() else { return None };
        let program = self.facts.get("executable").and_then(|path| path.rsplit('/').next());
        let program = program.unwrap_or("redis-server").to_owned();
        Some((self.facts.get("process_id")?.parse().ok()?, program, endpoint))
    }
}
