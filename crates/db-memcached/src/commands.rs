//! What a workload of commands asks memcached before the load: which keys are there.

use crate::protocol::own::{first_key, put_command};
use crate::protocol::reply::{NotMemcached, Reply, read_reply};
use crate::protocol::traffic::{CommandGroup, ReplyReader, ReplyShape, SkippedReply};
use crate::protocol::{MemcachedFacts, MemcachedOptions};
use crate::target::OpenMemcached;
use dyno_db::command_target::{CommandTarget, Words};
use dyno_db::probe::{FactsStep, NEVER, ProbeConnection, ProbeFailure, ReadStatus};
use dyno_engine::RunError;
use dyno_types::command::CommandFacts;
use dyno_types::{Endpoint, Outcome, RefusalCode, Refused};

/// Time that a question may take.
const PATIENCE_NS: u64 = 30_000_000_000;

/// The servers of an open target.
struct MemcachedCommands<'a>(&'a OpenMemcached);

impl OpenMemcached {
    /// Answers what a workload of commands asks.
    pub(crate) fn ask_commands(&self) -> Box<dyn CommandTarget + '_> {
        Box::new(MemcachedCommands(self))
    }
}

fn refused(text: String) -> RunError {
    Refused::new(RefusalCode::Unsupported, "workload.commands", text).into()
}

impl MemcachedCommands<'_> {
    /// Sends a command for each of these keys to its server, and counts the replies that say yes.
    fn count(&self, name: &str, keys: &[Vec<u8>], yes: impl Fn(&Reply<'_>) -> bool) -> Result<u64, RunError> {
        let mut found = 0;
        for (server, endpoint) in (0..).zip(self.0.servers.server_endpoints()) {
            let own: Vec<&Vec<u8>> =
                keys.iter().filter(|key| self.0.servers.server_of(key) == server).collect();
            if own.is_empty() {
                continue;
            }
            let mut sent = Vec::new();
            for key in &own {
                sent.extend_from_slice(name.as_bytes());
                sent.push(b' ');
                sent.extend_from_slice(key);
                sent.extend_from_slice(b"\r\n");
            }
            let mut left = own.len();
            let mut hear = |received: &mut Vec<u8>, _: &mut Vec<u8>| loop {
                if left == 0 {
                    return ReadStatus::Done;
                }
                match read_reply(received) {
                    Ok(Some((Reply::Error(why), _))) => {
                        return ReadStatus::Refused(format!("{name}: {}", String::from_utf8_lossy(why)));
                    }
                    Ok(Some((reply, used))) => {
                        found += u64::from(yes(&reply));
                        left -= 1;
                        received.drain(..used);
                    }
                    Ok(None) => return ReadStatus::Need,
                    Err(NotMemcached) => {
                        return ReadStatus::Refused(format!("{name}: no reply of memcached"));
                    }
                }
            };
            self.converse(endpoint, sent, &mut hear)?;
        }
        Ok(found)
    }

    /// Sends something to a server, and hears it until `hear` is done.
    fn converse(
        &self,
        endpoint: &Endpoint,
        sent: Vec<u8>,
        hear: &mut dyn FnMut(&mut Vec<u8>, &mut Vec<u8>) -> ReadStatus,
    ) -> Result<(), RunError> {
        let lost = |failure: ProbeFailure| RunError::Unreachable {
            outcome: Outcome::Unreachable,
            message: failure.at_endpoint(endpoint).to_string(),
        };
        let mut line = connect(&self.0.options, self.0, endpoint).map_err(lost)?;
        line.continue_conversation(sent, (PATIENCE_NS, NEVER), hear).map_err(lost)
    }
}

/// Connects to a server, with the login of the options.
fn connect(
    options: &MemcachedOptions,
    target: &OpenMemcached,
    endpoint: &Endpoint,
) -> Result<ProbeConnection, ProbeFailure> {
    let mut line = ProbeConnection::open(target.tls.as_ref(), endpoint)?;
    let (mut facts, mut opening) = (MemcachedFacts::default(), Vec::new());
    MemcachedFacts::ask_all(options, &mut opening);
    let mut hear = |received: &mut Vec<u8>, _: &mut Vec<u8>| match MemcachedFacts::read_answers(
        options, received, &mut facts,
    ) {
        FactsStep::Need => ReadStatus::Need,
        FactsStep::Done => {
            received.clear();
            ReadStatus::Done
        }
        FactsStep::Refused(_, message) => ReadStatus::Refused(message),
    };
    line.continue_conversation(opening, (PATIENCE_NS, NEVER), &mut hear)?;
    Ok(line)
}

impl CommandTarget for MemcachedCommands<'_> {
    /// The driver refuses what is none of its commands.
    fn describe(&self, commands: &[Words]) -> Result<Vec<CommandFacts>, (usize, RunError)> {
        let facts = |words: &Words| {
            let group = CommandGroup::of_name(&words[0]).unwrap_or_default();
            let first = first_key(&words[0], group);
            let last = if group == CommandGroup::Get { words.len() } else { 2 };
            CommandFacts {
                keys: first.map_or(Vec::new(), |first| (first as u16..last as u16).collect()),
                reads: matches!(group, CommandGroup::Get | CommandGroup::MetaGet | CommandGroup::MetaDebug),
                blocks: false,
            }
        };
        Ok(commands.iter().map(facts).collect())
    }

    fn existing(&self, keys: &[Vec<u8>]) -> Result<u64, RunError> {
        self.count("get", keys, |reply| matches!(reply, Reply::Value { .. }))
    }

    fn count_keys(&self) -> Result<Option<u64>, RunError> {
        let mut items = Some(0u64);
        for endpoint in self.0.servers.server_endpoints() {
            let mut own = None;
            let mut hear = |received: &mut Vec<u8>, _: &mut Vec<u8>| {
                let text = String::from_utf8_lossy(received);
                if text.starts_with("ERROR") || text.starts_with("CLIENT_ERROR") {
                    return ReadStatus::Refused(format!("stats: {}", text.trim_end()));
                }
                if !text.ends_with("END\r\n") {
                    return ReadStatus::Need;
                }
                own = text
                    .lines()
                    .find_map(|line| line.strip_prefix("STAT curr_items ")?.trim_end().parse().ok());
                ReadStatus::Done
            };
            self.converse(endpoint, b"stats\r\n".to_vec(), &mut hear)?;
            items = items.zip(own).map(|(all, own): (u64, u64)| all + own);
        }
        Ok(items)
    }

    fn remove(&self, keys: &[Vec<u8>]) -> Result<(), RunError> {
        self.count("delete", keys, |_| true).map(drop)
    }

    fn send(&self, words: &Words, key: Option<&[u8]>) -> Result<(), RunError> {
        let name = String::from_utf8_lossy(&words[0]).into_owned();
        let group = CommandGroup::of_name(&words[0]).unwrap_or_default();
        let (mut value, mut sent) = (Vec::new(), Vec::new());
        let mut put = |number: usize, out: &mut Vec<u8>| out.extend_from_slice(&words[number]);
        if put_command(group, words.len(), &mut put, (&mut value, &mut sent)).is_err() {
            let word = String::from_utf8_lossy(&sent).into_owned();
            return Err(refused(format!("memcached: {name}: the word {word:?} cannot stand in a command")));
        }
        let server = key.map_or(0, |key| self.0.servers.server_of(key));
        let endpoint = &self.0.servers.server_endpoints()[usize::from(server)];
        let mut reader = ReplyReader::default();
        let mut hear = |received: &mut Vec<u8>, _: &mut Vec<u8>| {
            reader.reset();
            match reader.read_reply(received, &mut 0) {
                Ok(None) => ReadStatus::Need,
                Ok(Some(SkippedReply { shape: ReplyShape::Error, .. })) => {
                    ReadStatus::Refused(format!("{name}: {}", String::from_utf8_lossy(reader.first_line())))
                }
                Ok(Some(_)) => ReadStatus::Done,
                Err(NotMemcached) => ReadStatus::Refused(format!("{name}: no reply of memcached")),
            }
        };
        self.converse(endpoint, sent, &mut hear)
    }

    fn load_script(&self, _body: &[u8], _function: bool) -> Result<(), RunError> {
        Err(refused("memcached has no scripts".into()))
    }
}
