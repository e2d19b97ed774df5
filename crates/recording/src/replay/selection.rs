//! Which commands of a recording are sent.

use super::memcached::memcached_rules;
use super::mongodb::mongodb_rules;
use super::options::ReplayOptions;
use super::{redis_rules, slots};
use crate::entry::Entry;
use crate::protocol::RecordedProtocol;
use std::collections::HashMap;

/// Most names that are remembered: names are few, and what is none fills no memory.
const NAMES: usize = 10_000;

/// What the name of a command decides, or that its arguments do, too.
#[derive(Clone, Copy, Debug)]
enum Decided {
    ByName(Option<&'static str>),
    ByArguments,
}

/// Decides which commands are sent, once for each name as far as that is enough.
pub(crate) struct Chooser<'a> {
    options: &'a ReplayOptions,
    protocol: RecordedProtocol,
    known: HashMap<Vec<u8>, Decided>,
}

impl<'a> Chooser<'a> {
    /// As these options say, of a recording of this protocol.
    pub fn new(options: &'a ReplayOptions, protocol: RecordedProtocol) -> Self {
        Chooser { options, protocol, known: HashMap::new() }
    }

    /// Why a command is not sent; `None` if it is.
    pub fn reason_against(&mut self, entry: &Entry) -> Option<&'static str> {
        let arguments = &entry.arguments;
        match self.protocol {
            // What a command does stands in its body.
            RecordedProtocol::Mongodb => return mongodb_rules::reason_against(self.options, arguments),
            RecordedProtocol::Memcached => return memcached_rules::reason_against(self.options, arguments),
            _ if arguments.is_empty() => return redis_rules::reason_against(self.options, arguments),
            _ => {}
        }
        if slots::was_sent_again(entry) {
            return Some("commands that the cluster of then had sent again: those are sent");
        }
        match self.known.get(arguments.word(0)) {
            Some(Decided::ByName(reason)) => return *reason,
            Some(Decided::ByArguments) => return redis_rules::reason_against(self.options, arguments),
            None => {}
        }
        let reason = redis_rules::reason_against(self.options, arguments);
        let decided = match redis_rules::has_subcommands(&arguments.command_name()) {
            true => Decided::ByArguments,
            false => Decided::ByName(reason),
        };
        if self.known.len() < NAMES {
            self.known.insert(arguments.word(0).to_vec(), decided);
        }
        reason
    }
}
