//! What memcached says of itself while the load runs.

use crate::ask::{PATIENCE_NS, ask};
use crate::probe::{Heard, Line, NEVER};
use dyno_engine::net::TlsConfig;
use dyno_monitor::Source;
use dyno_monitor::database::MemcachedSource;
use dyno_types::Endpoint;
use dyno_wire::memcached::{Facts, FactsStep, MemcachedOptions};
use std::sync::Arc;

/// `stats` of one server.
pub(super) fn source(
    name: &str,
    options: &Arc<MemcachedOptions>,
    tls: Option<Arc<TlsConfig>>,
    endpoint: &Endpoint,
) -> Box<dyn Source> {
    let options = options.clone();
    let greet = move |line: &mut Line| {
        let mut opening = Vec::new();
        Facts::ask_all(&options, &mut opening);
        line.converse(opening, (PATIENCE_NS, NEVER), &mut |received, _| match Facts::take(
            &options,
            received,
            &mut Facts::default(),
        ) {
            FactsStep::Need => Heard::Need,
            FactsStep::Done => {
                received.clear();
                Heard::Done
            }
            FactsStep::Refused(_, words) => Heard::Refused(words),
        })
    };
    let question = |line: &mut Line| {
        let (mut words, mut text) = (Vec::new(), String::new());
        Facts::ask_stats(&mut words);
        line.converse(words, (PATIENCE_NS, NEVER), &mut |received, _| match Facts::text(received) {
            Ok(None) => Heard::Need,
            Ok(Some((told, used))) => {
                received.drain(..used);
                text = told;
                Heard::Done
            }
            Err(refused) => Heard::Refused(refused.0),
        })?;
        Ok(text)
    };
    Box::new(MemcachedSource::new(name, ask(endpoint, tls, Box::new(greet), Box::new(question))))
}
