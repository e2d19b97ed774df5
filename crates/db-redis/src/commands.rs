//! What a workload of commands asks Redis before the load: what commands are, and which keys are there.
//!
//! `COMMAND INFO` says which arguments are keys: by specifications, else by the first and the last of them, else by the answer of
//! `COMMAND GETKEYS` to one form of the command.

use crate::protocol::resp::{RespReply, put_command, read_reply};
use crate::protocol::{ClusterTopology, ReadFrom, RedisFacts, RedisOptions, key_slot};
use crate::target::OpenRedis;
use dyno_db::command_target::{CommandTarget, Words};
use dyno_db::probe::{FactsStep, NEVER, ProbeConnection, ProbeFailure, ReadStatus};
use dyno_engine::RunError;
use dyno_types::command::CommandFacts;
use dyno_types::key_rule::{KeyBegin, KeyFind, KeyRule, KeySpecification};
use dyno_types::limits::ANSWER_BYTES;
use dyno_types::{Endpoint, Outcome, RefusalCode, Refused};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Time that a question may take: scripts and removals may be slow.
const PATIENCE_NS: u64 = 30_000_000_000;
/// Commands of one message.
const BATCH: usize = 512;

/// Connections to the nodes of an open target, made when they are needed.
struct RedisCommands<'a> {
    target: &'a OpenRedis,
    lines: RefCell<BTreeMap<u16, ProbeConnection>>,
}

/// An answer of `COMMAND INFO`.
#[derive(Clone, Debug, Default, PartialEq)]
struct CommandInfo {
    arity: i64,
    reads: bool,
    blocks: bool,
    /// The keys depend on the arguments.
    movable: bool,
    /// First key, last key and step; the last one counts from the end if it is negative.
    range: (i64, i64, i64),
    keys: Vec<KeySpecification>,
    subcommands: Vec<(String, CommandInfo)>,
}

fn number(reply: Option<&RespReply>) -> i64 {
    reply.and_then(|reply| reply.as_text().parse().ok()).unwrap_or(0)
}

fn parts(reply: Option<&RespReply>) -> &[RespReply] {
    match reply {
        Some(RespReply::List(parts)) => parts,
        _ => &[],
    }
}

/// A value of a list of names and values.
fn field<'a>(list: &'a [RespReply], name: &str) -> Option<&'a RespReply> {
    list.chunks_exact(2).find(|pair| pair[0].as_text() == name).map(|pair| &pair[1])
}

/// Reads where keys of a command are.
fn read_specification(reply: &RespReply) -> KeySpecification {
    let all = parts(Some(reply));
    let part = |name: &str| {
        let part = parts(field(all, name));
        (field(part, "type").map_or("", RespReply::as_text), parts(field(part, "spec")))
    };
    let at = |spec: &[RespReply], name: &str| number(field(spec, name));
    let begin = match part("begin_search") {
        ("index", spec) => KeyBegin::At(at(spec, "index")),
        ("keyword", spec) => {
            let word = field(spec, "keyword").map_or("", RespReply::as_text).to_owned();
            KeyBegin::Word(word, at(spec, "startfrom"))
        }
        _ => KeyBegin::Unknown,
    };
    let find = match part("find_keys") {
        ("range", spec) => KeyFind::Range(at(spec, "lastkey"), at(spec, "keystep"), at(spec, "limit")),
        ("keynum", spec) => KeyFind::Number(at(spec, "keynumidx"), at(spec, "firstkey"), at(spec, "keystep")),
        _ => KeyFind::Unknown,
    };
    KeySpecification { begin, find }
}

/// The words of a command as a specification takes them.
fn as_slices(words: &[Vec<u8>]) -> Vec<&[u8]> {
    words.iter().map(Vec::as_slice).collect()
}

/// Where movable keys are that older servers do not tell.
fn older_keys(name: &str) -> Vec<KeySpecification> {
    let one = |begin: KeyBegin, find: KeyFind| KeySpecification { begin, find };
    let counted = |at: i64| one(KeyBegin::At(at), KeyFind::Number(0, 1, 1));
    match name {
        "EVAL" | "EVALSHA" | "EVAL_RO" | "EVALSHA_RO" | "FCALL" | "FCALL_RO" => vec![counted(2)],
        "ZUNION" | "ZINTER" | "ZDIFF" | "SINTERCARD" | "ZINTERCARD" | "LMPOP" | "ZMPOP" => vec![counted(1)],
        "ZUNIONSTORE" | "ZINTERSTORE" | "ZDIFFSTORE" => {
            vec![one(KeyBegin::At(1), KeyFind::Range(0, 1, 0)), counted(2)]
        }
        "XREAD" | "XREADGROUP" => vec![one(KeyBegin::Word("STREAMS".into(), 1), KeyFind::Range(-1, 1, 2))],
        "BLMPOP" | "BZMPOP" => vec![counted(2)],
        _ => Vec::new(),
    }
}

impl CommandInfo {
    /// Reads an answer; `None` for a command that the server lacks.
    fn read(reply: &RespReply) -> Option<CommandInfo> {
        let all = parts(Some(reply));
        if all.len() < 6 {
            return None;
        }
        let has =
            |flag: &str| parts(all.get(2)).iter().any(|one| one.as_text().trim_start_matches('+') == flag);
        let subcommands = parts(all.get(9)).iter().filter_map(|one| {
            let name = parts(Some(one)).first()?.as_text();
            Some((name.rsplit('|').next()?.to_ascii_lowercase(), CommandInfo::read(one)?))
        });
        Some(CommandInfo {
            arity: number(all.get(1)),
            reads: has("readonly"),
            blocks: has("blocking"),
            movable: has("movablekeys"),
            range: (number(all.get(3)), number(all.get(4)), number(all.get(5))),
            keys: parts(all.get(8)).iter().map(read_specification).collect(),
            subcommands: subcommands.collect(),
        })
    }

    /// The same of the subcommand that a command is.
    fn of_words(&self, words: &[Vec<u8>]) -> Option<&CommandInfo> {
        let Some(name) = words.get(1).filter(|_| !self.subcommands.is_empty()) else { return Some(self) };
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        self.subcommands.iter().find(|(known, _)| *known == name).map(|(_, info)| info)
    }

    /// Numbers of the keys of a command; `None`: they must be asked for.
    fn keys(&self, words: &[Vec<u8>]) -> Option<Vec<u16>> {
        if !self.keys.is_empty() {
            let words = as_slices(words);
            let mut all = Vec::new();
            for one in &self.keys {
                // Templates have few words.
                all.extend(one.find_keys(&words)?.into_iter().map(|at| at as u16));
            }
            all.sort_unstable();
            all.dedup();
            return Some(all);
        }
        let (first, last, step) = self.range;
        if self.movable || first <= 0 {
            return if self.movable { None } else { Some(Vec::new()) };
        }
        let end = words.len() as i64;
        let last = if last < 0 { end + last } else { last };
        Some((first..=last.min(end - 1)).step_by(step.max(1) as usize).map(|at| at as u16).collect())
    }
}

impl CommandInfo {
    /// The same as a rule for all commands of this name.
    fn into_rule(self, name: &str) -> KeyRule {
        let subcommands = self.subcommands.into_iter().map(|(sub, info)| (sub, info.into_rule("")));
        let (first, last, step) = self.range;
        let keys = match self.keys.is_empty() {
            false => self.keys,
            true if self.movable => older_keys(name),
            true if first <= 0 => Vec::new(),
            true => {
                // The last one is counted from the first here, and from the begin of the command there.
                let last = if last < 0 { last } else { last - first };
                let find = KeyFind::Range(last, step, 0);
                vec![KeySpecification { begin: KeyBegin::At(first), find }]
            }
        };
        KeyRule { keys, subcommands: subcommands.collect() }
    }
}

/// Which arguments these keys are: the first ones that follow each other so, else each the first one after the one before.
fn places_of(keys: &[RespReply], words: &[Vec<u8>]) -> Vec<u16> {
    let is_key = |(key, word): (&RespReply, &Vec<u8>)| key.as_text().as_bytes() == word;
    let together = |at: &usize| keys.iter().zip(&words[*at..]).all(is_key);
    if let Some(first) = (1..=words.len().saturating_sub(keys.len())).find(together) {
        return (first..first + keys.len()).map(|at| at as u16).collect();
    }
    let mut at = 1;
    let mut all = Vec::new();
    for key in keys {
        let text = key.as_text().as_bytes();
        if let Some(found) = (at..words.len()).find(|place| words[*place] == text) {
            all.push(found as u16);
            at = found + 1;
        }
    }
    all
}

/// Returns whether the replies behind a command no longer belong to commands, and are no messages either.
fn turns_connection(words: &Words) -> bool {
    let is =
        |at: usize, name: &str| words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let alone = ["MONITOR", "SYNC", "PSYNC", "QUIT", "RESET", "HELLO"];
    alone.iter().any(|name| is(0, name)) || is(0, "CLIENT") && is(1, "REPLY")
}

fn refused(text: String) -> RunError {
    Refused::new(RefusalCode::Unsupported, "workload.commands", text).into()
}

impl OpenRedis {
    /// Answers what a workload of commands asks.
    pub(crate) fn ask_commands(&self) -> Box<dyn CommandTarget + '_> {
        Box::new(RedisCommands { target: self, lines: RefCell::default() })
    }
}

impl RedisCommands<'_> {
    fn endpoint(&self, node: u16) -> &Endpoint {
        &self.target.topology.known_endpoints()[usize::from(node)]
    }

    /// Sends commands to a node and takes their replies, which may be errors.
    fn ask(&self, node: u16, commands: &[Words]) -> Result<Vec<RespReply>, RunError> {
        let lost = |failure: ProbeFailure| RunError::Unreachable {
            outcome: Outcome::Unreachable,
            message: failure.at_endpoint(self.endpoint(node)).to_string(),
        };
        let mut lines = self.lines.borrow_mut();
        let line = match lines.entry(node) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => new.insert(self.connect(node).map_err(lost)?),
        };
        let mut replies = Vec::with_capacity(commands.len());
        for batch in commands.chunks(BATCH) {
            let mut sent = Vec::new();
            for words in batch {
                put_command(&mut sent, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            }
            let wanted = replies.len() + batch.len();
            let mut hear = |received: &mut Vec<u8>, _: &mut Vec<u8>| loop {
                if replies.len() == wanted {
                    return ReadStatus::Done;
                }
                match read_reply(received, ANSWER_BYTES) {
                    Ok(Some((reply, used))) => {
                        replies.push(reply);
                        received.drain(..used);
                    }
                    Ok(None) => return ReadStatus::Need,
                    Err(why) => return ReadStatus::Refused(why.to_string()),
                }
            };
            line.continue_conversation(sent, (PATIENCE_NS, NEVER), &mut hear).map_err(lost)?;
        }
        Ok(replies)
    }

    /// Connects, with login and database as the load has them.
    fn connect(&self, node: u16) -> Result<ProbeConnection, ProbeFailure> {
        let options =
            RedisOptions { cluster: false, reads: ReadFrom::Primary, ..self.target.options.as_ref().clone() };
        let endpoint = self.endpoint(node);
        let mut line = ProbeConnection::open(self.target.tls.as_ref(), endpoint)?;
        let mut opening = Vec::new();
        RedisFacts::ask_all(&options, &mut opening);
        let mut hear = |received: &mut Vec<u8>, _: &mut Vec<u8>| {
            let (mut topology, mut facts) =
                (ClusterTopology::single_node(endpoint.clone()), RedisFacts::default());
            match RedisFacts::read_answers(&options, &mut topology, received, &mut facts) {
                FactsStep::Need => ReadStatus::Need,
                FactsStep::Done => {
                    received.clear();
                    ReadStatus::Done
                }
                FactsStep::Refused(_, message) => ReadStatus::Refused(message),
            }
        };
        line.continue_conversation(opening, (PATIENCE_NS, NEVER), &mut hear)?;
        Ok(line)
    }

    fn ask_one(&self, node: u16, words: &[&[u8]]) -> Result<RespReply, RunError> {
        let words = words.iter().map(|word| word.to_vec()).collect();
        Ok(self.ask(node, &[words])?.pop().unwrap_or(RespReply::Null))
    }

    fn node_of(&self, key: &[u8]) -> u16 {
        match self.target.topology.is_cluster() {
            true => self.target.topology.primary_of(key_slot(key)),
            false => 0,
        }
    }

    /// Sends a command for each key to its node.
    fn ask_keys(&self, name: &[u8], keys: &[Vec<u8>]) -> Result<Vec<RespReply>, RunError> {
        let mut nodes: BTreeMap<u16, Vec<Words>> = BTreeMap::new();
        for key in keys {
            nodes.entry(self.node_of(key)).or_default().push(vec![name.to_vec(), key.clone()]);
        }
        let mut all = Vec::new();
        for (node, commands) in nodes {
            all.extend(self.ask(node, &commands)?);
        }
        match all.iter().find(|reply| matches!(reply, RespReply::Error(_))) {
            Some(RespReply::Error(why)) => Err(refused(format!("{}: {why}", String::from_utf8_lossy(name)))),
            _ => Ok(all),
        }
    }

    fn describe_one(&self, info: Option<&RespReply>, words: &Words) -> Result<CommandFacts, RunError> {
        let name = String::from_utf8_lossy(&words[0]).into_owned();
        let subscribes = ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"]
            .iter()
            .any(|name| words[0].eq_ignore_ascii_case(name.as_bytes()));
        if turns_connection(words) {
            let why = "changes how its connection answers: expected a command with one reply";
            return Err(refused(format!("{name} {why}")));
        }
        let info = match info {
            // The server does not say what commands are: they are sent as they stand.
            Some(RespReply::Error(_)) | None => return Ok(CommandFacts::default()),
            Some(reply) => CommandInfo::read(reply),
        };
        let Some(whole) = info else {
            // What the server lacks does nothing: it says so in its words.
            return match self.ask_one(0, &[&words[0]])? {
                RespReply::Error(why) => Err(refused(format!("the server has no command {name}: {why}"))),
                _ => Ok(CommandFacts::default()),
            };
        };
        let Some(info) = whole.of_words(words) else {
            let sub = String::from_utf8_lossy(&words[1]).into_owned();
            let known: Vec<&str> = whole.subcommands.iter().map(|(name, _)| name.as_str()).collect();
            return Err(refused(format!(
                "the server has no command {name} {sub}; {name} has {}",
                known.join(", ")
            )));
        };
        let (count, arity) = (words.len() as i64, info.arity);
        if (arity > 0 && count != arity) || count < -arity {
            let least = if arity > 0 { "" } else { "at least " };
            let given = count - 1;
            return Err(refused(format!("{name} takes {least}{} arguments, not {given}", arity.abs() - 1)));
        }
        let keys = match info.keys(words) {
            Some(keys) => keys,
            None => {
                let mut question: Words = vec![b"COMMAND".to_vec(), b"GETKEYS".to_vec()];
                question.extend(words.iter().cloned());
                match self.ask(0, &[question])?.pop() {
                    Some(RespReply::List(keys)) => places_of(&keys, words),
                    _ => Vec::new(),
                }
            }
        };
        Ok(CommandFacts { keys, reads: info.reads, blocks: info.blocks || subscribes })
    }
}

impl CommandTarget for RedisCommands<'_> {
    fn describe(&self, commands: &[Words]) -> Result<Vec<CommandFacts>, (usize, RunError)> {
        // Each name is asked for once: a file may have thousands of lines of few commands.
        let mut names: BTreeMap<&[u8], usize> = BTreeMap::new();
        for words in commands {
            let next = names.len();
            names.entry(&words[0]).or_insert(next);
        }
        let mut questions: Vec<Words> = vec![Words::new(); names.len()];
        for (name, number) in &names {
            questions[*number] = vec![b"COMMAND".to_vec(), b"INFO".to_vec(), name.to_vec()];
        }
        let answers = self.ask(0, &questions).map_err(|error| (0, error))?;
        let one = |(number, words): (usize, &Words)| {
            let own = match answers.get(names[words[0].as_slice()]) {
                Some(RespReply::List(own)) => own.first(),
                other => other,
            };
            self.describe_one(own, words).map_err(|error| (number, error))
        };
        commands.iter().enumerate().map(one).collect()
    }

    fn key_rules(&self, names: &[String]) -> Result<BTreeMap<String, KeyRule>, RunError> {
        let question = |name: &String| vec![b"COMMAND".to_vec(), b"INFO".to_vec(), name.clone().into_bytes()];
        let answers = self.ask(0, &names.iter().map(question).collect::<Vec<_>>())?;
        let rule = |(name, answer): (&String, &RespReply)| {
            let info = CommandInfo::read(parts(Some(answer)).first()?)?;
            Some((name.clone(), info.into_rule(name)))
        };
        Ok(names.iter().zip(&answers).filter_map(rule).collect())
    }

    fn slot(&self, key: &[u8]) -> Option<u16> {
        self.target.topology.is_cluster().then(|| key_slot(key))
    }

    fn existing(&self, keys: &[Vec<u8>]) -> Result<u64, RunError> {
        let replies = self.ask_keys(b"EXISTS", keys)?;
        Ok(replies.iter().filter(|reply| reply.as_text() == "1").count() as u64)
    }

    fn size(&self, key: &[u8]) -> Result<Option<u64>, RunError> {
        let node = self.node_of(key);
        let kind = self.ask_one(node, &[b"TYPE", key])?;
        let question: &[u8] = match kind.as_text() {
            "none" => return Ok(Some(0)),
            "zset" => b"ZCARD",
            "set" => b"SCARD",
            "list" => b"LLEN",
            "hash" => b"HLEN",
            "stream" => b"XLEN",
            _ => return Ok(None),
        };
        Ok(self.ask_one(node, &[question, key])?.as_text().parse().ok())
    }

    fn count_keys(&self) -> Result<Option<u64>, RunError> {
        let mut sum = 0;
        for node in self.target.topology.serving_nodes(false) {
            // `db0:keys=12,expires=0,...` for each database that has any.
            let reply = self.ask_one(node, &[b"INFO", b"keyspace"])?;
            if let RespReply::Error(_) = reply {
                return Ok(None);
            }
            let text = reply.as_text();
            let counts = text.lines().filter_map(|line| line.strip_prefix("db")?.split_once(":keys="));
            let number = |(_, rest): (&str, &str)| rest.split(',').next().and_then(|n| n.parse::<u64>().ok());
            sum += counts.filter_map(number).sum::<u64>();
        }
        Ok(Some(sum))
    }

    fn remove(&self, keys: &[Vec<u8>]) -> Result<(), RunError> {
        self.ask_keys(b"DEL", keys).map(drop)
    }

    fn send(&self, words: &Words, key: Option<&[u8]>) -> Result<(), RunError> {
        let node = key.map_or(0, |key| self.node_of(key));
        match self.ask(node, std::slice::from_ref(words))?.pop() {
            Some(RespReply::Error(why)) => {
                let shown: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
                let line: String = shown.join(" ").chars().take(200).collect();
                Err(refused(format!("{line}: {why}")))
            }
            _ => Ok(()),
        }
    }

    fn load_script(&self, body: &[u8], function: bool) -> Result<(), RunError> {
        let words: &[&[u8]] = match function {
            true => &[b"FUNCTION", b"LOAD", b"REPLACE", body],
            false => &[b"SCRIPT", b"LOAD", body],
        };
        for node in self.target.topology.serving_nodes(false) {
            if let RespReply::Error(why) = self.ask_one(node, words)? {
                return Err(refused(why.to_string()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Words {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn specification(begin: KeyBegin, find: KeyFind) -> CommandInfo {
        CommandInfo { keys: vec![KeySpecification { begin, find }], ..CommandInfo::default() }
    }

    /// As the documentation of Redis has them.
    #[test]
    fn keys_are_where_specifications_say() {
        let streams = specification(KeyBegin::Word("STREAMS".into(), 4), KeyFind::Range(-1, 1, 2));
        let line = words("XREADGROUP GROUP g c COUNT 1 STREAMS a b > >");
        assert_eq!(streams.keys(&line), Some(vec![7, 8]));
        let eval = specification(KeyBegin::At(2), KeyFind::Number(0, 1, 1));
        assert_eq!(eval.keys(&words("EVAL x 2 a b c")), Some(vec![3, 4]));
        assert_eq!(eval.keys(&words("EVAL x 0 c")), Some(vec![]));
        let mset = specification(KeyBegin::At(1), KeyFind::Range(-1, 2, 0));
        assert_eq!(mset.keys(&words("MSET a 1 b 2")), Some(vec![1, 3]));
        let blpop = specification(KeyBegin::At(1), KeyFind::Range(-2, 1, 0));
        assert_eq!(blpop.keys(&words("BLPOP a b 0")), Some(vec![1, 2]));
        let get = specification(KeyBegin::At(1), KeyFind::Range(0, 1, 0));
        assert_eq!(get.keys(&words("GET a")), Some(vec![1]));
        let migrate = specification(KeyBegin::Word("KEYS".into(), -2), KeyFind::Range(-1, 1, 0));
        assert_eq!(migrate.keys(&words("MIGRATE h 1 x 0 5 KEYS a b")), Some(vec![7, 8]));
        assert_eq!(specification(KeyBegin::Unknown, KeyFind::Unknown).keys(&words("SORT a")), None);
    }

    #[test]
    fn older_servers_tell_the_first_and_the_last() {
        let info = |range| CommandInfo { range, ..CommandInfo::default() };
        assert_eq!(info((1, -1, 2)).keys(&words("MSET a 1 b 2")), Some(vec![1, 3]));
        assert_eq!(info((1, 1, 1)).keys(&words("GET a")), Some(vec![1]));
        assert_eq!(info((0, 0, 0)).keys(&words("PING")), Some(vec![]));
        assert_eq!(CommandInfo { movable: true, ..CommandInfo::default() }.keys(&words("EVAL x 1 a")), None);
        let keys = [RespReply::Text("a".into()), RespReply::Text("b".into())];
        assert_eq!(places_of(&keys, &words("EVAL a 2 a b a")), [3, 4]);
    }
}
