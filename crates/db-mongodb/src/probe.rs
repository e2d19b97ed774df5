//! Facts about a MongoDB deployment before a run: who its nodes are, and what they say of themselves.

use crate::protocol::{Deployment, MongoDriver, MongoFacts, MongoOptions, QUESTIONS};
use dyno_db::probe::{
    ProbeFailure, ReadStatus, ResolveError, Stop, first_that_answers, open_conversation, resolve_address,
};
use dyno_db::protocol::MONGODB;
use dyno_db::target_error::TargetError;
use dyno_engine::net::{TlsConfig, monotonic_ns};
use dyno_types::address::Address;
use dyno_types::content::Nothing;
use dyno_types::{Driver, Endpoint, GreetingStep};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pause between two looks for a primary.
const ELECTION: Duration = Duration::from_millis(200);

/// Why a deployment cannot be spoken to.
enum Unready {
    /// It may be elected any moment.
    NoPrimary(String),
    Failed(TargetError),
}

impl From<TargetError> for Unready {
    fn from(error: TargetError) -> Self {
        Unready::Failed(error)
    }
}

/// Options for asking a server: over TLS or not, until the caller stops it.
type ConnectOptions<'a> = (Option<&'a Arc<TlsConfig>>, Stop<'a>);

/// Asks the seeds; the first that answers tells the deployment, and its primary (or a router) the facts. A replica set that
/// elects its primary is waited for, as long as `serverSelectionTimeoutMS` says.
pub fn probe_seeds(
    options: &Arc<MongoOptions>,
    tls: Option<&Arc<TlsConfig>>,
    stop: Stop<'_>,
) -> Result<(Deployment, MongoFacts), TargetError> {
    let patience = Duration::from_millis(options.selection.patience_ms);
    let begun = Instant::now();
    loop {
        match look(options, (tls, stop)) {
            Ok(found) => return Ok(found),
            Err(Unready::NoPrimary(_)) if begun.elapsed() < patience && !stop() => {
                std::thread::sleep(ELECTION)
            }
            Err(Unready::NoPrimary(why)) => return Err(TargetError::Unreachable(why)),
            Err(Unready::Failed(error)) => return Err(error),
        }
    }
}

/// Asks the first seed that answers what it is.
pub(crate) fn ask_first(
    options: &Arc<MongoOptions>,
    tls: Option<&Arc<TlsConfig>>,
    stop: Stop<'_>,
) -> Result<(Endpoint, MongoFacts), TargetError> {
    first_that_answers(&options.addresses, stop, |endpoint| {
        Ok((endpoint.clone(), ask(options, (tls, stop), endpoint)?.facts))
    })
}

fn look(
    options: &Arc<MongoOptions>,
    (tls, stop): ConnectOptions<'_>,
) -> Result<(Deployment, MongoFacts), Unready> {
    let (seed, facts) = ask_first(options, tls, stop)?;
    if let (Some(wanted), false) = (&options.replica_set, facts.is_router()) {
        let found = facts.get("replica_set");
        if found != Some(wanted) {
            let found = found
                .map_or("is a single server".to_owned(), |name| format!("belongs to replica set {name:?}"));
            let why = format!("{seed} {found}, and replicaSet={wanted} was asked for");
            return Err(TargetError::Unreachable(why).into());
        }
    }
    if options.load_balanced {
        return Ok((Deployment::load_balanced(seed), facts));
    }
    if options.is_direct() || (facts.hosts.is_empty() && !facts.is_router()) {
        let mut single = Deployment::single_server(seed);
        if !facts.hello.is_empty() {
            single.learn_hello(0, &facts.hello, None, options);
        }
        return Ok((single, facts));
    }
    if facts.is_router() {
        return Ok(routers(options, (tls, stop), seed, facts)?);
    }
    replica_set(options, (tls, stop), facts)
}

/// The fact that names routers which did not answer before the run, and why.
const ROUTERS_DOWN: &str = "routers_down";

/// The fact that names members of a replica set which did not answer before the run, and why.
const MEMBERS_DOWN: &str = "members_down";

/// What of a deployment did not answer before the run, and why: the run is carried out by the others.
pub(crate) fn describe_missing(facts: &BTreeMap<String, String>) -> Option<String> {
    [ROUTERS_DOWN, MEMBERS_DOWN].iter().find_map(|name| facts.get(*name)).cloned()
}

/// All routers of the list. One that does not answer is left out until it does, and the record says so.
fn routers(
    options: &Arc<MongoOptions>,
    connect: ConnectOptions<'_>,
    seed: Endpoint,
    mut facts: MongoFacts,
) -> Result<(Deployment, MongoFacts), TargetError> {
    let (mut endpoints, mut down) = (Vec::new(), Vec::new());
    for address in &options.addresses {
        match resolve_address(address) {
            Ok(endpoint) => endpoints.push(endpoint),
            Err(error) => down.push(format!("{error} (left out of the whole run)")),
        }
    }
    let mut deployment = Deployment::from_routers(endpoints);
    let endpoints = deployment.endpoints.clone();
    for (node, answer) in ask_all(options, connect, &endpoints).into_iter().enumerate() {
        let endpoint = &endpoints[node];
        match answer {
            Ok(answer) if answer.facts.is_router() => {
                deployment.note_round_trip(node as u16, answer.away_ns / 1_000, options);
            }
            // It has just answered; what has become of it shows in the load.
            _ if *endpoint == seed => {}
            Ok(_) => {
                let why = format!(
                    "{endpoint} is no router (mongos), but {seed} is: name routers or members of one replica set"
                );
                return Err(TargetError::Unreachable(why));
            }
            Err(failure @ (ProbeFailure::Final(_) | ProbeFailure::Own(_))) => {
                return Err(failure.into_target_error(endpoint));
            }
            Err(failure) => {
                deployment.leave_out(node as u16);
                down.push(failure.at_endpoint(endpoint).to_string());
            }
        }
    }
    if !down.is_empty() {
        facts.all.insert(ROUTERS_DOWN.into(), down.join("; "));
    }
    Ok((deployment, facts))
}

fn replica_set(
    options: &Arc<MongoOptions>,
    connect: ConnectOptions<'_>,
    facts: MongoFacts,
) -> Result<(Deployment, MongoFacts), Unready> {
    let unreachable = |text: String| Unready::Failed(TargetError::Unreachable(text));
    let name = facts.get("replica_set").unwrap_or_default().to_owned();
    let none = || {
        let why = "has no primary now (directConnection=true speaks to one member)";
        Unready::NoPrimary(format!("replica set {name:?} {why}"))
    };
    let primary = facts.get("primary").ok_or_else(none)?;
    let found = resolve_all(&facts.hosts);
    let at = facts.hosts.iter().position(|host| host == primary);
    let at =
        at.ok_or_else(|| unreachable(format!("the primary {primary} is not among {:?}", facts.hosts)))?;
    let mut down: BTreeMap<usize, String> = BTreeMap::new();
    let mut endpoints = Vec::new();
    for (node, (found, host)) in found.into_iter().zip(&facts.hosts).enumerate() {
        match found {
            Ok(endpoint) => endpoints.push(endpoint),
            Err(error) if node == at => return Err(TargetError::from(error).into()),
            // The run looks its name up again.
            Err(error) => {
                down.insert(node, format!("{host}: {error}"));
                endpoints
                    .push(Endpoint::unresolved_host(host.rsplit_once(':').map_or(host, |(host, _)| host)));
            }
        }
    }
    let mut set = Deployment::replica_set(&name, endpoints, at as u16);
    let known: Vec<usize> = (0..set.endpoints.len()).filter(|node| !down.contains_key(node)).collect();
    let asked: Vec<Endpoint> = known.iter().map(|node| set.endpoints[*node].clone()).collect();
    let mut answers: BTreeMap<usize, Result<ProbeAnswer, ProbeFailure>> =
        known.into_iter().zip(ask_all(options, connect, &asked)).collect();
    for (&node, answer) in &answers {
        match answer {
            Ok(ProbeAnswer { facts, asked_ns, away_ns }) => {
                set.learn_hello(node as u16, &facts.hello, Some((asked_ns / 1_000_000) as i64), options);
                set.note_round_trip(node as u16, away_ns / 1_000, options);
            }
            // A member that does not answer may come back during the run.
            Err(failure) => drop(down.insert(node, format!("{}: {failure}", set.endpoints[node]))),
        }
    }
    // Distances count once all are known.
    match answers.remove(&at).unwrap_or_else(|| Err(ProbeFailure::Absent("asking it failed".into()))) {
        Ok(mut answer) => {
            let asked_ms = (answer.asked_ns / 1_000_000) as i64;
            set.learn_hello(at as u16, &answer.facts.hello, Some(asked_ms), options);
            // One that has just been elected names itself before it takes writes.
            if set.lacks_primary() {
                return Err(none());
            }
            if !down.is_empty() {
                let words: Vec<String> = down.into_values().collect();
                answer.facts.all.insert(MEMBERS_DOWN.into(), words.join("; "));
            }
            Ok((set, answer.facts))
        }
        // The others may not have noticed yet that it is gone.
        Err(failure @ (ProbeFailure::Final(_) | ProbeFailure::Own(_))) => {
            Err(Unready::Failed(failure.into_target_error(&set.endpoints[at])))
        }
        Err(failure) => Err(Unready::NoPrimary(format!("{primary}: {failure}"))),
    }
}

/// Looks up all members at the same time: a name that leads nowhere takes its time.
fn resolve_all(hosts: &[String]) -> Vec<Result<Endpoint, ResolveError>> {
    std::thread::scope(|scope| {
        let threads = hosts.iter().map(|host| scope.spawn(move || resolve_address(&address(host))));
        let threads: Vec<_> = threads.collect();
        let lost = || Err(ResolveError::NoAddress("a name".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
    })
}

/// Asks members at the same time: one that is down takes its time.
fn ask_all(
    options: &Arc<MongoOptions>,
    connect: ConnectOptions<'_>,
    endpoints: &[Endpoint],
) -> Vec<Result<ProbeAnswer, ProbeFailure>> {
    std::thread::scope(|scope| {
        let threads = endpoints.iter().map(|endpoint| scope.spawn(move || ask(options, connect, endpoint)));
        let threads: Vec<_> = threads.collect();
        let lost = || Err(ProbeFailure::Absent("asking it failed".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
    })
}

/// `host:port` as members name each other.
pub(crate) fn address(text: &str) -> Address {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "27017"));
    Address::Tcp(host.trim_matches(['[', ']']).to_owned(), port.parse().unwrap_or(27017))
}

/// Answer of one server.
struct ProbeAnswer {
    facts: MongoFacts,
    /// When it was asked what it is.
    asked_ns: u64,
    /// The shortest time from a question to its answer.
    away_ns: u64,
}

/// Greets one server and asks all questions, one after the other.
fn ask(
    options: &Arc<MongoOptions>,
    connect: ConnectOptions<'_>,
    endpoint: &Endpoint,
) -> Result<ProbeAnswer, ProbeFailure> {
    let driver =
        MongoDriver::new(options.clone(), Arc::new(Nothing), Deployment::single_server(endpoint.clone()));
    let mut driver = driver.map_err(|refused| ProbeFailure::Final(refused.to_string()))?;
    let mut facts = MongoFacts::default();
    let mut opening = Vec::new();
    driver.hello(0, 0, &mut opening);
    // Replies of the greeting, then questions answered.
    let (mut greeted, mut asked) = (Some(0u16), 0usize);
    let (mut begun_ns, mut put_ns, mut away_ns) = (0, 0, u64::MAX);
    open_conversation(&MONGODB, connect, endpoint, opening, &mut |received, out| {
        loop {
            if let Some(reply) = greeted {
                match driver.greeted(0, 0, reply, received, out) {
                    GreetingStep::Need => return ReadStatus::Need,
                    GreetingStep::Refused(_, message) => return ReadStatus::Refused(message),
                    GreetingStep::Reply { used, more } => {
                        received.drain(..used);
                        greeted = more.then_some(reply + 1);
                        if !more {
                            begun_ns = monotonic_ns();
                            put_ns = begun_ns;
                            MongoFacts::append_question(0, options, out);
                        }
                    }
                }
                continue;
            }
            match facts.read_answer(asked, received) {
                Ok(None) => return ReadStatus::Need,
                Err(_) => {
                    return ReadStatus::Refused("what answered does not speak MongoDB's protocol".into());
                }
                Ok(Some(used)) => {
                    received.drain(..used);
                    let now_ns = monotonic_ns();
                    away_ns = away_ns.min(now_ns - put_ns);
                    put_ns = now_ns;
                    asked += 1;
                    if asked == QUESTIONS.len() {
                        return ReadStatus::Done;
                    }
                    MongoFacts::append_question(asked, options, out);
                }
            }
        }
    })?;
    Ok(ProbeAnswer { facts, asked_ns: begun_ns, away_ns })
}
