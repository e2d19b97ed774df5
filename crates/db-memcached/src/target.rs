//! memcached: one server, or several among which the keys are spread.

use crate::monitors;
use crate::protocol::{MemcachedDriver, MemcachedFacts, MemcachedOptions, Servers};
use dyno_db::command_target::CommandTarget;
use dyno_db::probe::FactsStep;
use dyno_db::probe::{ProbeFailure, ReadStatus, STOPPED, Stop, open_conversation, resolve_address};
use dyno_db::protocol::MEMCACHED;
use dyno_db::target::{Database, LoginForm, OpenTarget, Scheme, Target, TargetInfo, WATCHED, tls_words};
use dyno_db::target_error::TargetError;
use dyno_engine::net::{TlsConfig, tls_config};
use dyno_engine::{Control, Finished, Job, Pacing, RunError, Second, run_wire};
use dyno_monitor::Source;
use dyno_types::address::Address;
use dyno_types::{Content, Endpoint, RefusalCode, Refused, Verb};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The database.
pub struct MemcachedDatabase;

impl Database for MemcachedDatabase {
    fn name(&self) -> &'static str {
        "memcached"
    }

    fn schemes(&self) -> &[Scheme] {
        &[
            Scheme {
                name: "memcached",
                form: "memcached://[user:password@]host:port[,host:port...]",
                login: LoginForm::User,
            },
            Scheme {
                name: "memcacheds",
                form: "memcacheds://[user:password@]host:port?ca=FILE",
                login: LoginForm::User,
            },
        ]
    }

    fn parse(&self, uri: &str) -> Result<Box<dyn Target>, Refused> {
        Ok(open_options(MemcachedOptions::from_uri(uri)?))
    }
}

/// A target with these options.
pub fn open_options(options: MemcachedOptions) -> Box<dyn Target> {
    Box::new(MemcachedTarget(Arc::new(options)))
}

#[derive(Debug)]
struct MemcachedTarget(Arc<MemcachedOptions>);

impl Target for MemcachedTarget {
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

    fn open(&self, _content: Arc<dyn Content>, stop: Stop<'_>) -> Result<Box<dyn OpenTarget>, TargetError> {
        let options = self.0.clone();
        let tls = options.tls.as_ref().map(tls_config).transpose()?.map(Arc::new);
        let endpoints: Result<Vec<Endpoint>, _> = options.addresses.iter().map(resolve_address).collect();
        let mut servers = Servers::new(&options, endpoints?)?;
        // Each has keys of its own: all must answer.
        let ask = |endpoint: &Endpoint| {
            if stop() {
                return Err(ProbeFailure::Silent(STOPPED.into()).into_target_error(endpoint));
            }
            probe(&options, (tls.as_ref(), stop), endpoint)
                .map_err(|failure| failure.into_target_error(endpoint))
        };
        let facts = servers
            .server_endpoints()
            .iter()
            .map(ask)
            .collect::<Result<Vec<MemcachedFacts>, TargetError>>()?;
        for (server, facts) in facts.iter().enumerate() {
            if let Some(protocol) = facts.protocol {
                servers.set_protocol(server as u16, protocol);
            }
        }
        Ok(Box::new(OpenMemcached { options, tls, servers, facts }))
    }
}

/// The address of one server, which answers as memcached does.
///
/// # Errors
/// It does not, or cannot be reached.
pub fn ask_endpoint(options: &MemcachedOptions, stop: Stop<'_>) -> Result<Endpoint, TargetError> {
    let tls = options.tls.as_ref().map(tls_config).transpose()?.map(Arc::new);
    let endpoint = resolve_address(&options.addresses[0])?;
    match probe(options, (tls.as_ref(), stop), &endpoint) {
        Ok(_) => Ok(endpoint),
        Err(failure) => Err(failure.into_target_error(&endpoint)),
    }
}

/// Asks one server what it is.
pub(crate) fn probe(
    options: &MemcachedOptions,
    asked_by: (Option<&Arc<TlsConfig>>, Stop<'_>),
    endpoint: &Endpoint,
) -> Result<MemcachedFacts, ProbeFailure> {
    let mut facts = MemcachedFacts::default();
    let mut questions = Vec::new();
    MemcachedFacts::ask_all(options, &mut questions);
    open_conversation(&MEMCACHED, asked_by, endpoint, questions, &mut |received, _| {
        match MemcachedFacts::read_answers(options, received, &mut facts) {
            FactsStep::Need => ReadStatus::Need,
            FactsStep::Done => ReadStatus::Done,
            FactsStep::Refused(_, message) => ReadStatus::Refused(message),
        }
    })?;
    Ok(facts)
}

/// Servers that have answered.
pub(crate) struct OpenMemcached {
    pub(crate) options: Arc<MemcachedOptions>,
    /// TLS made ready.
    pub(crate) tls: Option<Arc<TlsConfig>>,
    pub(crate) servers: Servers,
    /// Facts that each server reports of itself, in the order of the URI.
    facts: Vec<MemcachedFacts>,
}

impl OpenTarget for OpenMemcached {
    fn takes_commands(&self) -> bool {
        true
    }

    fn recorded_protocol(&self) -> Option<(&'static str, u32)> {
        Some(("memcached", 0))
    }

    fn check_replay(&self, _numbered: u64) -> Result<Vec<String>, Refused> {
        let servers = self.servers.server_endpoints().len();
        if servers > 1 {
            let message = format!("memcached: a recording is replayed on one server, not on {servers}");
            return Err(Refused::new(RefusalCode::Unsupported, "target", message));
        }
        Ok(Vec::new())
    }

    fn command_target(&self) -> Option<Box<dyn CommandTarget + '_>> {
        Some(self.ask_commands())
    }

    fn info(&self) -> TargetInfo {
        let batches = self.pipelines();
        TargetInfo { database: self.facts[0].product_name(), wire: true, batches, ..TargetInfo::default() }
    }

    fn redacted(&self) -> String {
        self.options.redacted()
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let mut out: BTreeMap<String, String> = self.facts[0].report_facts().into_iter().collect();
        out.insert(
            "durability".into(),
            "none: records live in memory, and are evicted when it is full".into(),
        );
        out.insert("servers".into(), self.servers.server_endpoints().len().to_string());
        if let Some(tls) = &self.options.tls {
            out.insert("tls".into(), tls_words(tls).into());
        }
        out
    }

    fn check(&self, content: &Arc<dyn Content>, verbs: &[Verb]) -> Result<(), Refused> {
        MemcachedDriver::new(self.options.clone(), content.clone(), self.servers.clone(), verbs).map(drop)
    }

    fn apply(
        &self,
        job: Job,
        control: Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError> {
        let content = job.workload.content();
        let verbs: &[Verb] = if job.pacing == Pacing::Recorded { &[Verb::Recorded] } else { &[] };
        let make =
            || MemcachedDriver::new(self.options.clone(), content.clone(), self.servers.clone(), verbs);
        let batch = if self.pipelines() { job.batch } else { 1 };
        run_wire(Job { batch, ..job }, control, self.tls.clone(), make, on_second)
    }

    fn has_sockets(&self) -> bool {
        true
    }

    /// memcached reads 16 KiB at a time and does not look for what TLS has left over: requests behind the first one may lie
    /// there until something else comes (seen with 1.6.18).
    fn pipelines(&self) -> bool {
        self.tls.is_none()
    }

    fn nodes(&self) -> Vec<&Endpoint> {
        self.servers.server_endpoints().iter().take(WATCHED).collect()
    }

    fn sources(&self, name: &dyn Fn(Option<&Endpoint>) -> String) -> Vec<Box<dyn Source>> {
        let source =
            |endpoint| monitors::source(&name(Some(endpoint)), &self.options, self.tls.clone(), endpoint);
        self.nodes().into_iter().map(source).collect()
    }

    fn process(&self) -> Option<(u32, String, &Endpoint)> {
        let [endpoint] = self.servers.server_endpoints() else { return None };
        Some((self.facts[0].get("pid")?.parse().ok()?, "memcached".into(), endpoint))
    }
}
