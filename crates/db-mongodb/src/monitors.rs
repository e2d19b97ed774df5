//! Facts that MongoDB servers report of themselves while the load runs.

use crate::admin::MongoAdmin;
use crate::protocol::{
    Deployment, MongoDriver, MongoOptions, describe_error, is_ok, put_command, take_document,
};
use crate::server_status;
use dyno_db::monitor_connection::{PATIENCE_NS, PolledSource, StatsQuery, poll_endpoint};
use dyno_db::probe::{NEVER, ProbeConnection, ProbeFailure, ReadStatus};
use dyno_engine::net::TlsConfig;
use dyno_monitor::{Sample, Source};
use dyno_types::content::Nothing;
use dyno_types::{Driver, Endpoint, GreetingStep, bson};
use std::sync::Arc;

/// `serverStatus` of a node.
pub(super) fn source(
    name: &str,
    options: &Arc<MongoOptions>,
    tls: Option<Arc<TlsConfig>>,
    endpoint: &Endpoint,
) -> Box<dyn Source> {
    source_of(name, status(options, tls, endpoint))
}

/// `serverStatus` of the deployment, by the official driver.
pub(super) fn official_source(name: &str, admin: MongoAdmin) -> Box<dyn Source> {
    source_of(name, official_status(admin))
}

fn source_of(name: &str, ask: StatsQuery<Vec<u8>>) -> Box<dyn Source> {
    let read = |document: &Vec<u8>, into: &mut Sample| server_status::read(document, into);
    Box::new(PolledSource::new(name, "serverStatus", ask, read))
}

/// Asks one MongoDB server for `serverStatus`.
fn status(
    options: &Arc<MongoOptions>,
    tls: Option<Arc<TlsConfig>>,
    endpoint: &Endpoint,
) -> StatsQuery<Vec<u8>> {
    let (options, deployment) = (options.clone(), Deployment::single_server(endpoint.clone()));
    let own = options.clone();
    let greet = move |line: &mut ProbeConnection| {
        let driver = MongoDriver::new(options.clone(), Arc::new(Nothing), deployment.clone());
        let mut driver = driver.map_err(|refused| ProbeFailure::Final(refused.to_string()))?;
        let mut opening = Vec::new();
        driver.hello(0, 0, &mut opening);
        let mut number = 0;
        line.continue_conversation(opening, (PATIENCE_NS, NEVER), &mut |received, out| {
            loop {
                match driver.greeted(0, 0, number, received, out) {
                    GreetingStep::Need => return ReadStatus::Need,
                    GreetingStep::Refused(_, message) => return ReadStatus::Refused(message),
                    GreetingStep::Reply { used, more } => {
                        received.drain(..used);
                        number += 1;
                        if !more {
                            return ReadStatus::Done;
                        }
                    }
                }
            }
        })
    };
    let question = move |line: &mut ProbeConnection| {
        let (mut words, mut answer) = (Vec::new(), Vec::new());
        put_command(&mut words, &own, "admin", &|out| bson::put_int32(out, "serverStatus", 1));
        line.continue_conversation(words, (PATIENCE_NS, NEVER), &mut |received, _| match take_document(
            received,
        ) {
            Ok(None) => ReadStatus::Need,
            Ok(Some(document)) => {
                answer = document;
                ReadStatus::Done
            }
            Err(_) => ReadStatus::Refused("what answered does not speak MongoDB's protocol".into()),
        })?;
        if is_ok(bson::find_element(&answer, "ok")) {
            Ok(answer)
        } else {
            Err(ProbeFailure::Final(describe_error(&answer).text))
        }
    };
    poll_endpoint(endpoint, tls, Box::new(greet), Box::new(question))
}

/// Asks by the official driver.
fn official_status(admin: MongoAdmin) -> StatsQuery<Vec<u8>> {
    Box::new(move || Ok(admin.run_on("admin", &|out| bson::put_int32(out, "serverStatus", 1))?))
}
