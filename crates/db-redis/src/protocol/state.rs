//! State of one load thread: options and content, the map of the nodes, and the last error.

use super::cluster::ClusterTopology;
use super::command_templates::CompiledTemplate;
use super::errors::classify_error;
use super::options::RedisOptions;
use dyno_db::command_traffic::Unreported;
use dyno_types::command::SentStamp;
use dyno_types::{Content, Outcome, ReceivedMessage};
use std::collections::HashSet;
use std::sync::Arc;

/// The Redis protocol of one load thread.
pub struct RedisDriver {
    pub(super) options: Arc<RedisOptions>,
    pub(super) content: Arc<dyn Content>,
    pub(super) topology: ClusterTopology,
    pub(super) stale: bool,
    pub(super) error: String,
    pub(super) scratch: Vec<u8>,
    pub(super) batch_key: Vec<u8>,
    pub(super) index_slot: u16,
    /// Commands of one's own, by the number of their template.
    pub(super) commands: Vec<CompiledTemplate>,
    pub(super) traffic: Unreported,
    /// Users whose connection has subscribed.
    pub(super) subscribed: HashSet<u32>,
    /// Where messages have the time at which they were sent.
    pub(super) stamp: Option<SentStamp>,
    /// Messages that were not handed over yet.
    pub(super) messages: Vec<ReceivedMessage>,
}

impl RedisDriver {
    /// Records what went wrong, in our own words.
    pub(super) fn say(&mut self, message: &str) {
        self.error.clear();
        self.error.push_str(message);
    }

    pub(super) fn fail(&mut self, text: &[u8]) -> Outcome {
        self.error.clear();
        self.error.push_str(&String::from_utf8_lossy(&text[..text.len().min(400)]));
        let outcome = classify_error(text);
        // A demoted primary and a torn cluster both mean that the map is out of date.
        self.stale |=
            self.topology.is_cluster() && matches!(outcome, Outcome::ClusterDown | Outcome::ReadOnly);
        outcome
    }
}
