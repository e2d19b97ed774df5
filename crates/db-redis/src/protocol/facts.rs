//! The greeting of a connection, and the questions asked of a server before a run: who it is, and its slots.

use super::cluster::ClusterTopology;
use super::errors::classify_error;
use super::options::{ReadFrom, RedisOptions};
use super::resp::{Token, put_command, read_token, skip_reply};
use dyno_db::probe::FactsStep;
use dyno_types::limits::GREETING_BYTES;
use dyno_types::{GreetingStep, Outcome};

#[derive(Clone, Copy, PartialEq)]
enum AnswerPart {
    Hello3,
    Auth,
    Select,
    ReadOnly,
    Ping,
}

fn parts(options: &RedisOptions) -> impl Iterator<Item = AnswerPart> {
    let resp3 = options.protocol == 3;
    let (auth, select) = (!resp3 && options.logs_in(), options.database != 0);
    // Copies outside of a cluster need no leave.
    let read_only = options.cluster && options.reads != ReadFrom::Primary;
    let wanted = [
        (AnswerPart::Hello3, resp3),
        (AnswerPart::Auth, auth),
        (AnswerPart::Select, select),
        (AnswerPart::ReadOnly, read_only),
        // A connection is ready when the server has answered on it: it may have too many.
        (AnswerPart::Ping, !(resp3 || auth || select || read_only)),
    ];
    wanted.into_iter().filter(|(_, wanted)| *wanted).map(|(part, _)| part)
}

/// Appends the greeting: version, login, database, leave to read from replicas; PING where it has none of these.
pub(super) fn greeting(options: &RedisOptions, out: &mut Vec<u8>) {
    let user = options.user.as_deref();
    let password = options.password.as_deref().unwrap_or("").as_bytes();
    for part in parts(options) {
        match part {
            AnswerPart::Hello3 if options.logs_in() => {
                put_command(out, &[b"HELLO", b"3", b"AUTH", user.unwrap_or("default").as_bytes(), password]);
            }
            AnswerPart::Hello3 => put_command(out, &[b"HELLO", b"3"]),
            AnswerPart::Auth => match user {
                Some(user) => put_command(out, &[b"AUTH", user.as_bytes(), password]),
                None => put_command(out, &[b"AUTH", password]),
            },
            AnswerPart::Select => put_command(out, &[b"SELECT", options.database.to_string().as_bytes()]),
            AnswerPart::ReadOnly => put_command(out, &[b"READONLY"]),
            AnswerPart::Ping => put_command(out, &[b"PING"]),
        }
    }
}

/// Reads the greeting's reply number `reply`.
pub(super) fn greeting_reply(options: &RedisOptions, reply: u16, input: &[u8]) -> GreetingStep {
    let not_redis = || {
        let shown: String = String::from_utf8_lossy(&input[..input.len().min(60)]).escape_debug().collect();
        GreetingStep::Refused(Outcome::Protocol, format!("what answered is not a Redis server: {shown:?}"))
    };
    // A user who may not send PING, or whose server does not know it, has been answered all the same.
    let is_ping = parts(options).nth(usize::from(reply)) == Some(AnswerPart::Ping);
    let is_answer = |text: &[u8]| text.starts_with(b"NOPERM") || text.starts_with(b"ERR unknown command");
    match skip_reply(input, 0) {
        Err(_) => not_redis(),
        Ok(None) if input.len() > GREETING_BYTES => {
            let message = format!("its reply to the greeting is longer than {GREETING_BYTES} bytes");
            GreetingStep::Refused(Outcome::Protocol, message)
        }
        Ok(None) => GreetingStep::Need,
        Ok(Some(used)) => match read_token(input, 0) {
            Ok(Some((Token::Error(text), _))) if !(is_ping && is_answer(text)) => {
                let message = String::from_utf8_lossy(text).into_owned();
                GreetingStep::Refused(classify_error(text), message)
            }
            _ => GreetingStep::Reply { used, more: usize::from(reply) + 1 < parts(options).count() },
        },
    }
}

/// Facts that a server reports of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedisFacts {
    /// `name value` pairs of INFO, in its order.
    pub info: Vec<(String, String)>,
    /// Number of primaries, if it is a cluster.
    pub primaries: Option<usize>,
    /// Number of its copies, if they are read from.
    pub copies: Option<usize>,
}

impl RedisFacts {
    /// A value of INFO.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.info.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Product and version: `Redis 7.0.15`, `Valkey 8.0.1`, `Dragonfly 1.2.3`.
    pub fn product_name(&self) -> String {
        for (key, name) in [("dragonfly_version", "Dragonfly"), ("valkey_version", "Valkey")] {
            if let Some(version) = self.get(key) {
                return format!("{name} {}", version.trim_start_matches("df-"));
            }
        }
        format!("Redis {}", self.get("redis_version").unwrap_or("of unknown version"))
    }
}

impl RedisFacts {
    /// Appends the greeting and the questions that follow it.
    pub fn ask_all(options: &RedisOptions, out: &mut Vec<u8>) {
        greeting(options, out);
        put_command(out, &[b"INFO"]);
        if options.cluster {
            put_command(out, &[b"CLUSTER", b"SLOTS"]);
        }
    }

    /// Reads greeting and answers from the start of everything received; fills `topology` for a cluster.
    pub fn read_answers(
        options: &RedisOptions,
        topology: &mut ClusterTopology,
        input: &[u8],
        facts: &mut RedisFacts,
    ) -> FactsStep {
        let mut at = 0;
        for reply in 0..parts(options).count() {
            match greeting_reply(options, reply as u16, &input[at..]) {
                GreetingStep::Need => return FactsStep::Need,
                GreetingStep::Refused(outcome, message) => return FactsStep::Refused(outcome, message),
                GreetingStep::Reply { used, .. } => at += used,
            }
        }
        let info = match (skip_reply(input, at), read_token(input, at)) {
            (Err(_), _) | (_, Err(_)) => return Self::not_redis(&input[at..]),
            (Ok(Some(end)), Ok(Some((Token::Bulk(text), _)))) => {
                (String::from_utf8_lossy(text).into_owned(), end)
            }
            (Ok(Some(end)), Ok(Some((Token::Error(text), _)))) => match classify_error(text) {
                // A user without the right to ask for INFO may still run the workload.
                Outcome::Forbidden if text.starts_with(b"NOPERM") => (String::new(), end),
                outcome => return FactsStep::Refused(outcome, String::from_utf8_lossy(text).into_owned()),
            },
            (Ok(Some(_)), _) => return Self::not_redis(&input[at..]),
            (Ok(None), _) => return FactsStep::Need,
        };
        facts.info = info
            .0
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(k, v)| (k.to_owned(), v.trim().to_owned()))
            .collect();
        match (options.cluster, options.reads) {
            (true, _) => Self::take_slots(topology, &input[info.1..], facts),
            (false, ReadFrom::Primary) => FactsStep::Done,
            (false, _) => Self::take_copies(topology, facts),
        }
    }

    /// Which nodes copy the server, by its own words: `slave0:ip=...,port=...,state=online`.
    fn take_copies(topology: &mut ClusterTopology, facts: &mut RedisFacts) -> FactsStep {
        if facts.info.is_empty() {
            let text = "reads from replicas: it does not let us ask which it has (INFO replication)".into();
            return FactsStep::Refused(Outcome::Forbidden, text);
        }
        if let Some(role) = facts.get("role").filter(|role| *role != "master") {
            let of = [facts.get("master_host"), facts.get("master_port")].map(|part| part.unwrap_or("?"));
            let text = format!("reads from replicas: it is a {role} of {}; name that one", of.join(":"));
            return FactsStep::Refused(Outcome::ReadOnly, text);
        }
        let listed = facts.info.iter().filter(|(name, _)| {
            name.strip_prefix("slave").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        });
        let copies: Vec<(String, u16)> = listed
            .filter_map(|(_, text)| {
                let part = |name: &str| {
                    text.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')).map(str::trim)
                };
                // Dragonfly has names of its own for one that is in step.
                let state = part("state")?;
                ["online", "stable_sync"].contains(&state).then_some(())?;
                Some((part("ip")?.to_owned(), part("port")?.parse().ok()?))
            })
            .collect();
        match topology.take_copies(copies.iter().map(|(host, port)| (host.as_str(), *port))) {
            0 => FactsStep::Refused(
                Outcome::Unreachable,
                "reads from replicas: the server has no replica that is in step with it (INFO replication)"
                    .into(),
            ),
            count => {
                facts.copies = Some(count);
                FactsStep::Done
            }
        }
    }

    fn take_slots(topology: &mut ClusterTopology, input: &[u8], facts: &mut RedisFacts) -> FactsStep {
        match skip_reply(input, 0) {
            Ok(None) => FactsStep::Need,
            Err(_) => Self::not_redis(input),
            Ok(Some(end)) => match topology.take_slots(&input[..end], 0) {
                Ok(true) => {
                    facts.primaries = Some(topology.count_primaries());
                    FactsStep::Done
                }
                _ => {
                    let message = match read_token(input, 0) {
                        Ok(Some((Token::Error(text), _))) => String::from_utf8_lossy(text).into_owned(),
                        _ => "it has no slots assigned".into(),
                    };
                    FactsStep::Refused(
                        Outcome::ClusterDown,
                        format!("cluster=true, but the server is not a working cluster: {message}"),
                    )
                }
            },
        }
    }

    fn not_redis(input: &[u8]) -> FactsStep {
        let shown: String = String::from_utf8_lossy(&input[..input.len().min(60)]).escape_debug().collect();
        FactsStep::Refused(Outcome::Protocol, format!("what answered is not a Redis server: \"{shown}\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_has_an_end() {
        let options = RedisOptions::from_uri("redis://h:1/1").unwrap();
        let begun = [b"*500000000\r\n".as_slice(), &b":1\r\n".repeat(GREETING_BYTES / 4)].concat();
        assert_eq!(greeting_reply(&options, 0, &begun[..GREETING_BYTES]), GreetingStep::Need);
        match greeting_reply(&options, 0, &begun) {
            GreetingStep::Refused(Outcome::Protocol, message) => {
                assert!(message.contains("longer than"), "{message}")
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_server_without_ping_has_answered() {
        let options = RedisOptions::from_uri("redis://h:1").unwrap();
        let took = |text: &str| greeting_reply(&options, 0, format!("-{text}\r\n").as_bytes());
        for text in ["ERR unknown command 'PING'", "NOPERM this user has no permissions"] {
            assert_eq!(took(text), GreetingStep::Reply { used: text.len() + 3, more: false });
        }
        assert!(matches!(took("ERR max number of clients reached"), GreetingStep::Refused(..)));
    }

    #[test]
    fn who_may_not_ask_is_told_so() {
        let took = |uri: &str| {
            let options = RedisOptions::from_uri(uri).unwrap();
            let input =
                "+OK\r\n".repeat(parts(&options).count()) + "-NOPERM this user has no permissions\r\n";
            let endpoint = dyno_types::Endpoint::Unix("/s".into());
            let (mut topology, mut facts) = (ClusterTopology::single_node(endpoint), RedisFacts::default());
            RedisFacts::read_answers(&options, &mut topology, input.as_bytes(), &mut facts)
        };
        assert_eq!(took("redis://h:1"), FactsStep::Done);
        match took("redis://h:1?reads=replica") {
            FactsStep::Refused(Outcome::Forbidden, message) => {
                assert!(message.contains("INFO replication"), "{message}")
            }
            other => panic!("{other:?}"),
        }
    }
}
