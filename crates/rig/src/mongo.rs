//! What there is to know of a MongoDB deployment before a run: who its nodes are, and what they say of themselves.

use crate::probe::{Failure, Heard, converse, first_that_answers, resolve};
use crate::target::TargetError;
use dyno_engine::net::TlsConfig;
use dyno_types::{Content, Driver, Endpoint, Hello, Request};
use dyno_wire::mongodb::{Deployment, Facts, MongoDriver, MongoOptions, QUESTIONS};
use dyno_wire::place::Address;
use std::sync::Arc;

/// A content of nothing: the questions need none.
struct Nothing;

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
        Ok((endpoint.clone(), ask(options, tls, endpoint)?))
    })?;
    if options.direct || (facts.hosts.is_empty() && !facts.is_router()) {
        return Ok((Deployment::single(seed), facts));
    }
    if facts.is_router() {
        let all: Result<Vec<Endpoint>, String> = options.addresses.iter().map(resolve).collect();
        let endpoints = all.map_err(TargetError::Unreachable)?;
        return Ok((Deployment { endpoints, primary: None }, facts));
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
    if let Some(wanted) = options.replica_set.as_ref().filter(|wanted| **wanted != name) {
        return Err(unreachable(format!(
            "the servers belong to replica set {name:?}, not to {wanted:?} (replicaSet)"
        )));
    }
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
    let facts = match ask(options, tls, &endpoints[at]) {
        Ok(facts) => facts,
        Err(Failure::Absent(why) | Failure::Final(why)) => {
            return Err(unreachable(format!("{primary}: {why}")));
        }
    };
    Ok((Deployment { endpoints, primary: Some(at as u16) }, facts))
}

/// `host:port` as members name each other.
fn address(text: &str) -> Address {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "27017"));
    Address::Tcp(host.trim_matches(['[', ']']).to_owned(), port.parse().unwrap_or(27017))
}

/// Greets one server and asks all questions, one after the other.
fn ask(
    options: &Arc<MongoOptions>,
    tls: Option<&Arc<TlsConfig>>,
    endpoint: &Endpoint,
) -> Result<Facts, Failure> {
    let driver = MongoDriver::new(options.clone(), Arc::new(Nothing), Deployment::single(endpoint.clone()));
    let mut driver = driver.map_err(|refused| Failure::Final(refused.0))?;
    let mut facts = Facts::default();
    let mut opening = Vec::new();
    driver.hello(0, 0, &mut opening);
    // Replies of the greeting, then questions answered.
    let (mut greeted, mut asked) = (Some(0u16), 0usize);
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
                    asked += 1;
                    if asked == QUESTIONS.len() {
                        return Heard::Done;
                    }
                    Facts::ask(asked, out);
                }
            }
        }
    })?;
    Ok(facts)
}
