//! The greeting of a connection, and the questions asked of a server before a run: who it is and how it is set.

use super::errors::classify_error;
use super::options::{MemcachedOptions, Protocol};
use super::reply::{NotMemcached, Reply, line, read_reply};
use super::{meta, text};
use dyno_db::probe::FactsStep;
use dyno_types::{GreetingStep, Outcome, RefusalCode, Refused};

/// Returns whether the greeting begins with a login.
fn logs_in(options: &MemcachedOptions) -> bool {
    options.password.is_some()
}

/// Appends the greeting: login, and the question whether the meta protocol is known, or only which version answers.
pub(super) fn greeting(options: &MemcachedOptions, out: &mut Vec<u8>) {
    if let (Some(user), Some(password)) = (&options.user, &options.password) {
        text::put_login(user, password, out);
    }
    out.extend_from_slice(if options.protocol == Protocol::Text { text::ASK } else { meta::ASK });
}

/// Reads the greeting's reply number `reply`, and what it says of the protocol.
pub(super) fn greeting_reply(
    options: &MemcachedOptions,
    number: u16,
    input: &[u8],
) -> (GreetingStep, Option<Protocol>) {
    let (found, used) = match read_reply(input) {
        Ok(None) => return (GreetingStep::Need, None),
        Ok(Some(found)) => found,
        Err(NotMemcached) => return (GreetingStep::Refused(Outcome::Protocol, not_memcached(input)), None),
    };
    let login = logs_in(options) && number == 0;
    let good = |protocol| (GreetingStep::Reply { used, more: false }, Some(protocol));
    match (found, options.protocol) {
        (Reply::Done, _) if login => (GreetingStep::Reply { used, more: true }, None),
        (Reply::Fence, Protocol::Auto | Protocol::Meta) if !login => good(Protocol::Meta),
        (Reply::Error(b"ERROR"), Protocol::Auto) if !login => good(Protocol::Text),
        (Reply::Version(_), Protocol::Text) if !login => good(Protocol::Text),
        (Reply::Error(b"ERROR"), Protocol::Meta) if !login => {
            let message = "protocol=meta, but the server does not know the meta protocol: use protocol=text";
            (GreetingStep::Refused(Outcome::NotImplemented, message.into()), None)
        }
        (Reply::Error(text), _) => {
            let mut message = String::from_utf8_lossy(text).into_owned();
            let outcome = classify_error(text);
            if login && outcome == Outcome::Forbidden {
                // A refused login that others follow is answered as if there had been none ("unauthenticated").
                message.push_str(": the server does not accept this user name and password");
            }
            (GreetingStep::Refused(outcome, message), None)
        }
        _ => (GreetingStep::Refused(Outcome::Protocol, not_memcached(input)), None),
    }
}

fn not_memcached(input: &[u8]) -> String {
    let shown: String = String::from_utf8_lossy(&input[..input.len().min(60)]).escape_debug().collect();
    format!("what answered is not a memcached server: \"{shown}\"")
}

/// Facts that a server reports of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemcachedFacts {
    /// Names and values of `stats`, in its order. Empty where the server does not tell.
    pub stats: Vec<(String, String)>,
    /// Names and values of `stats settings`, in its order. Empty where the server does not tell.
    pub settings: Vec<(String, String)>,
    /// The protocol to speak with it; `None` until its greeting was read.
    pub protocol: Option<Protocol>,
}

/// The value of a name.
fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
}

impl MemcachedFacts {
    /// A value of `stats`: `version`, `curr_items`, `bytes`, `limit_maxbytes`, `threads`, `evictions` and so on.
    pub fn get(&self, name: &str) -> Option<&str> {
        value(&self.stats, name)
    }

    /// A value of `stats settings`: `maxconns`, `item_size_max` (bytes), `evictions`, `auth_enabled_ascii` and so on.
    pub fn stats_setting(&self, name: &str) -> Option<&str> {
        value(&self.settings, name)
    }

    /// Product and version: `memcached 1.6.18`.
    pub fn product_name(&self) -> String {
        format!("memcached {}", self.get("version").unwrap_or("of unknown version"))
    }

    /// The number of records that the server holds, where it tells.
    pub fn count_items(&self) -> Option<u64> {
        self.get("curr_items")?.parse().ok()
    }

    /// Facts of a server for a report, by name: memory limit and largest value in bytes, threads, connections, evictions, login
    /// and protocol.
    pub fn report_facts(&self) -> Vec<(String, String)> {
        let known = [
            ("limit_maxbytes", self.get("limit_maxbytes")),
            ("threads", self.get("threads")),
            ("maxconns", self.stats_setting("maxconns")),
            ("item_size_max", self.stats_setting("item_size_max")),
            ("evictions_allowed", self.stats_setting("evictions")),
            ("auth_enabled_ascii", self.stats_setting("auth_enabled_ascii")),
            ("auth_enabled_sasl", self.stats_setting("auth_enabled_sasl")),
            ("ssl_enabled", self.stats_setting("ssl_enabled")),
            (
                "protocol",
                self.protocol.map(|protocol| if protocol == Protocol::Text { "text" } else { "meta" }),
            ),
        ];
        known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect()
    }

    /// Appends the greeting and the questions that follow it. Every server of a target is asked.
    pub fn ask_all(options: &MemcachedOptions, out: &mut Vec<u8>) {
        greeting(options, out);
        out.extend_from_slice(b"stats\r\nstats settings\r\n");
    }

    /// Reads greeting and answers from the start of everything received.
    pub fn read_answers(options: &MemcachedOptions, input: &[u8], facts: &mut MemcachedFacts) -> FactsStep {
        let mut at = 0;
        for number in 0..=u16::from(logs_in(options)) {
            let (hello, protocol) = greeting_reply(options, number, &input[at..]);
            facts.protocol = protocol.or(facts.protocol);
            match hello {
                GreetingStep::Need => return FactsStep::Need,
                GreetingStep::Refused(outcome, message) => return FactsStep::Refused(outcome, message),
                GreetingStep::Reply { used, .. } => at += used,
            }
        }
        for pairs in [&mut facts.stats, &mut facts.settings] {
            match stats(&input[at..]) {
                Ok(Some((found, used))) => {
                    *pairs = found;
                    at += used;
                }
                Ok(None) => return FactsStep::Need,
                Err(NotMemcached) => {
                    return FactsStep::Refused(Outcome::Protocol, not_memcached(&input[at..]));
                }
            }
        }
        FactsStep::Done
    }

    /// Appends the question that brings what a monitor wants to know; [`MemcachedFacts::read_stats_text`] reads its answer.
    pub fn ask_stats(out: &mut Vec<u8>) {
        out.extend_from_slice(b"stats\r\n");
    }

    /// The answer to [`MemcachedFacts::ask_stats`] at the start of `input`: its lines, and how many bytes it has; `None` if it
    /// is not
    /// complete. An error is no lines. Refuses what is no such answer.
    pub fn read_stats_text(input: &[u8]) -> Result<Option<(String, usize)>, Refused> {
        match stats(input) {
            Ok(found) => {
                Ok(found.map(|(_, used)| (String::from_utf8_lossy(&input[..used]).into_owned(), used)))
            }
            Err(NotMemcached) => Err(Refused::new(RefusalCode::Unsupported, "target", not_memcached(input))),
        }
    }
}

/// Names and values, and how many bytes said them.
type Stats = (Vec<(String, String)>, usize);

/// Reads `STAT name value` lines up to `END`. A server or proxy that knows no such question has none.
fn stats(input: &[u8]) -> Result<Option<Stats>, NotMemcached> {
    let (mut pairs, mut at) = (Vec::new(), 0);
    while let Some((found, next)) = line(input, at)? {
        at = next;
        if found == b"END" {
            return Ok(Some((pairs, at)));
        }
        let text = String::from_utf8_lossy(found);
        let message = text.split(' ').next().unwrap_or_default();
        if pairs.is_empty() && ["ERROR", "CLIENT_ERROR", "SERVER_ERROR"].contains(&message) {
            return Ok(Some((pairs, at)));
        }
        let pair = text.strip_prefix("STAT ").ok_or(NotMemcached)?;
        let (name, value) = pair.split_once(' ').unwrap_or((pair, ""));
        pairs.push((name.to_owned(), value.to_owned()));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(uri: &str) -> MemcachedOptions {
        MemcachedOptions::from_uri(uri).unwrap()
    }

    const STATS: &str = "STAT pid 7\r\nSTAT version 1.6.18\r\nSTAT curr_items 4\r\nSTAT threads 1\r\nEND\r\n\
                         STAT maxconns 1024\r\nSTAT domain_socket NULL\r\nSTAT stat_key_prefix :\r\nSTAT inter \r\nEND\r\n";

    #[test]
    fn greetings() {
        let greeted = |uri: &str| {
            let mut out = Vec::new();
            greeting(&options(uri), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(greeted("memcached://h"), "mn\r\n");
        assert_eq!(greeted("memcached://h?protocol=text"), "version\r\n");
        assert_eq!(greeted("memcached://me:secret@h"), "set dyno-login 0 -1 9\r\nme secret\r\nmn\r\n");
    }

    #[test]
    fn replies_to_the_greeting() {
        let reply =
            |uri: &str, number: u16, input: &str| greeting_reply(&options(uri), number, input.as_bytes());
        let done = |used, protocol| (GreetingStep::Reply { used, more: false }, Some(protocol));
        assert_eq!(reply("memcached://h", 0, "MN\r\n"), done(4, Protocol::Meta));
        assert_eq!(reply("memcached://h", 0, "ERROR\r\n"), done(7, Protocol::Text));
        assert_eq!(reply("memcached://h?protocol=text", 0, "VERSION 1.4.5\r\n"), done(15, Protocol::Text));
        assert_eq!(reply("memcached://h", 0, "ERR"), (GreetingStep::Need, None));
        let login = "memcached://me:secret@h";
        assert_eq!(reply(login, 0, "STORED\r\nMN\r\n"), (GreetingStep::Reply { used: 8, more: true }, None));
        assert_eq!(reply(login, 1, "MN\r\n"), done(4, Protocol::Meta));
        let refused = [
            ("memcached://h?protocol=meta", "ERROR\r\n", Outcome::NotImplemented, "protocol=text"),
            (login, "ERROR\r\n", Outcome::NotImplemented, "ERROR"),
            (login, "MN\r\n", Outcome::Protocol, "not a memcached server"),
            (
                login,
                "CLIENT_ERROR authentication failure\r\n",
                Outcome::Forbidden,
                "failure: the server does not accept",
            ),
            (login, "CLIENT_ERROR unauthenticated\r\n", Outcome::Forbidden, "does not accept this user name"),
            ("memcached://h", "CLIENT_ERROR unauthenticated\r\n", Outcome::Forbidden, "unauthenticated"),
            ("memcached://h", "ERROR Too many open connections\r\n", Outcome::Unreachable, "Too many"),
            ("memcached://h", "-ERR unknown command 'mn'\r\n", Outcome::Protocol, "-ERR unknown"),
            ("memcached://h", "STORED\r\n", Outcome::Protocol, "not a memcached server"),
        ];
        for (uri, input, outcome, message) in refused {
            match reply(uri, 0, input) {
                (GreetingStep::Refused(found, said), None) => {
                    assert!(found == outcome && said.contains(message), "{uri} {input:?}: {found:?} {said}");
                }
                other => panic!("{uri} {input:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn facts_are_read_whole_or_waited_for() {
        let login = options("memcached://me:secret@h");
        let input = format!("STORED\r\nMN\r\n{STATS}");
        for cut in 0..input.len() {
            let step = MemcachedFacts::read_answers(
                &login,
                &input.as_bytes()[..cut],
                &mut MemcachedFacts::default(),
            );
            assert_eq!(step, FactsStep::Need, "cut at {cut}");
        }
        let mut facts = MemcachedFacts::default();
        assert_eq!(MemcachedFacts::read_answers(&login, input.as_bytes(), &mut facts), FactsStep::Done);
        assert_eq!((facts.product_name().as_str(), facts.count_items()), ("memcached 1.6.18", Some(4)));
        assert_eq!((facts.stats_setting("maxconns"), facts.stats_setting("inter")), (Some("1024"), Some("")));
        assert_eq!(facts.protocol, Some(Protocol::Meta));
        let summary = facts
            .report_facts()
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>();
        assert_eq!(summary, ["threads=1", "maxconns=1024", "protocol=meta"]);
    }

    #[test]
    fn who_does_not_tell_may_be_used_all_the_same() {
        let mut facts = MemcachedFacts::default();
        let input = b"ERROR\r\nERROR\r\nSERVER_ERROR no\r\n";
        assert_eq!(
            MemcachedFacts::read_answers(&options("memcached://h"), input, &mut facts),
            FactsStep::Done
        );
        assert_eq!(
            (facts.product_name().as_str(), facts.count_items()),
            ("memcached of unknown version", None)
        );
        assert_eq!(facts.protocol, Some(Protocol::Text));
        let wrong =
            MemcachedFacts::read_answers(&options("memcached://h"), b"MN\r\nHTTP/1.1 200\r\n", &mut facts);
        assert!(matches!(wrong, FactsStep::Refused(Outcome::Protocol, _)), "{wrong:?}");
    }

    #[test]
    fn stats_for_a_monitor() {
        let (text, used) = MemcachedFacts::read_stats_text(STATS.as_bytes()).unwrap().unwrap();
        assert!(text.contains("STAT pid 7\r\n") && text.ends_with("END\r\n") && used == text.len());
        assert_eq!(MemcachedFacts::read_stats_text(b"STAT pid"), Ok(None));
        assert!(MemcachedFacts::read_stats_text(b"NO\r\n").is_err());
    }
}
