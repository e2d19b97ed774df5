//! Facts that memcached reports of itself while the load runs.

use crate::protocol::{MemcachedFacts, MemcachedOptions};
use crate::stats;
use dyno_db::monitor_connection::{PATIENCE_NS, PolledSource, poll_endpoint};
use dyno_db::probe::FactsStep;
use dyno_db::probe::{NEVER, ProbeConnection, ReadStatus};
use dyno_engine::net::TlsConfig;
use dyno_monitor::{Sample, Source};
use dyno_types::Endpoint;
use std::sync::Arc;

/// `stats` of one server.
pub(super) fn source(
    name: &str,
    options: &Arc<MemcachedOptions>,
    tls: Option<Arc<TlsConfig>>,
    endpoint: &Endpoint,
) -> Box<dyn Source> {
    let options = options.clone();
    let greet = move |line: &mut ProbeConnection| {
        let mut opening = Vec::new();
        MemcachedFacts::ask_all(&options, &mut opening);
        line.continue_conversation(opening, (PATIENCE_NS, NEVER), &mut |received, _| {
            match MemcachedFacts::read_answers(&options, received, &mut MemcachedFacts::default()) {
                FactsStep::Need => ReadStatus::Need,
                FactsStep::Done => {
                    received.clear();
                    ReadStatus::Done
                }
                FactsStep::Refused(_, message) => ReadStatus::Refused(message),
            }
        })
    };
    let question = |line: &mut ProbeConnection| {
        let (mut words, mut text) = (Vec::new(), String::new());
        MemcachedFacts::ask_stats(&mut words);
        line.continue_conversation(words, (PATIENCE_NS, NEVER), &mut |received, _| {
            match MemcachedFacts::read_stats_text(received) {
                Ok(None) => ReadStatus::Need,
                Ok(Some((told, used))) => {
                    received.drain(..used);
                    text = told;
                    ReadStatus::Done
                }
                Err(refused) => ReadStatus::Refused(refused.to_string()),
            }
        })?;
        Ok(text)
    };
    let ask = poll_endpoint(endpoint, tls, Box::new(greet), Box::new(question));
    let read = |text: &String, into: &mut Sample| stats::read(text, into);
    Box::new(PolledSource::new(name, "stats", ask, read))
}
