//! Facts that Redis servers report of themselves while the load runs.

use crate::info;
use crate::protocol::resp::{self, RespReply};
use crate::protocol::{ClusterTopology, ReadFrom, RedisFacts, RedisOptions};
use crate::target::OpenRedis;
use dyno_db::monitor_connection::{PATIENCE_NS, PolledSource, StatsQuery, poll_endpoint};
use dyno_db::probe::FactsStep;
use dyno_db::probe::{NEVER, ProbeConnection, ReadStatus};
use dyno_db::target::WATCHED;
use dyno_engine::net::TlsConfig;
use dyno_monitor::prometheus::{PrometheusSource, Url};
use dyno_monitor::{Sample, Source};
use dyno_types::Endpoint;
use dyno_types::limits::ANSWER_BYTES;
use std::sync::Arc;

impl OpenRedis {
    /// `INFO` of the nodes that serve, and `/metrics` of Dragonfly's.
    pub(super) fn all_sources(&self, name: &dyn Fn(Option<&Endpoint>) -> String) -> Vec<Box<dyn Source>> {
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        for endpoint in self.serving() {
            let ask = ask_info(&self.options, self.tls.clone(), endpoint);
            let read = |text: &String, into: &mut Sample| info::read(text, into);
            sources.push(Box::new(PolledSource::new(&name(Some(endpoint)), "INFO", ask, read)));
        }
        // Every node has its own: what is asked of all of them is summed.
        let all = self.topology.known_endpoints();
        let metrics = self.tls.is_none() && self.facts.product_name().starts_with("Dragonfly");
        for endpoint in all.iter().filter(|_| metrics).take(WATCHED) {
            let Endpoint::Tcp { address, .. } = endpoint else { continue };
            let Ok(url) = Url::parse(&format!("http://{address}/metrics")) else { continue };
            let name = if all.len() == 1 { "dragonfly".into() } else { format!("dragonfly-{address}") };
            sources.push(Box::new(PrometheusSource::new(&name, url)));
        }
        sources
    }
}

/// Asks one server for `INFO all`.
fn ask_info(
    options: &Arc<RedisOptions>,
    tls: Option<Arc<TlsConfig>>,
    endpoint: &Endpoint,
) -> StatsQuery<String> {
    // It is this one that is asked: slots and copies are nothing to it.
    let options = RedisOptions { cluster: false, reads: ReadFrom::Primary, ..options.as_ref().clone() };
    let single = ClusterTopology::single_node(endpoint.clone());
    let greet = move |line: &mut ProbeConnection| {
        let mut opening = Vec::new();
        RedisFacts::ask_all(&options, &mut opening);
        line.continue_conversation(opening, (PATIENCE_NS, NEVER), &mut |received, _| {
            let (mut topology, mut facts) = (single.clone(), RedisFacts::default());
            match RedisFacts::read_answers(&options, &mut topology, received, &mut facts) {
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
        resp::put_command(&mut words, &[b"INFO", b"all"]);
        line.continue_conversation(words, (PATIENCE_NS, NEVER), &mut |received, _| {
            let heard = match resp::read_reply(received, ANSWER_BYTES) {
                Ok(None) => return ReadStatus::Need,
                Ok(Some((RespReply::Text(info), _))) => {
                    text = info;
                    ReadStatus::Done
                }
                Ok(Some((RespReply::Error(words), _))) => ReadStatus::Refused(words.to_string()),
                _ => ReadStatus::Refused("the answer to INFO is no text".into()),
            };
            received.clear();
            heard
        })?;
        Ok(text)
    };
    poll_endpoint(endpoint, tls, Box::new(greet), Box::new(question))
}
