//! What never enters a recording: passwords, and commands that carry them.

use crate::entry::Arguments;
use crate::protocol::RecordedProtocol;

/// What becomes of a command that may carry a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// It carries none.
    None,
    /// It is recorded without them: these are its words.
    Without(Arguments),
    /// It is not recorded at all, but counted.
    LeftOut,
}

/// Settings whose values are credentials: Redis', Valkey's and a sentinel's.
const SECRET_SETTINGS: [&str; 11] = [
    "requirepass",
    "masterauth",
    "masteruser",
    "primaryauth",
    "primaryuser",
    "tls-key-file-pass",
    "tls-client-key-file-pass",
    "auth-pass",
    "auth-user",
    "sentinel-pass",
    "sentinel-user",
];

/// Looks for credentials in a command.
pub fn of_command(protocol: RecordedProtocol, words: &Arguments) -> Credentials {
    match protocol {
        RecordedProtocol::Redis => of_redis(words),
        RecordedProtocol::Memcached | RecordedProtocol::Mongodb => Credentials::None,
    }
}

/// Looks for credentials in a command of Redis.
fn of_redis(words: &Arguments) -> Credentials {
    let is = |number: usize, text: &str| {
        number < words.count() && words.word(number).eq_ignore_ascii_case(text.as_bytes())
    };
    if is(0, "AUTH") || (is(0, "ACL") && is(1, "SETUSER")) {
        return Credentials::LeftOut;
    }
    if is(0, "CONFIG") && is(1, "SET") {
        let secret = (2..words.count()).step_by(2).any(|at| SECRET_SETTINGS.iter().any(|name| is(at, name)));
        return if secret { Credentials::LeftOut } else { Credentials::None };
    }
    if is(0, "SENTINEL") && is(1, "SET") || is(0, "SENTINEL") && is(1, "CONFIG") && is(2, "SET") {
        let secret = (2..words.count()).any(|at| SECRET_SETTINGS.iter().any(|name| is(at, name)));
        return if secret { Credentials::LeftOut } else { Credentials::None };
    }
    if is(0, "HELLO") {
        return of_hello(words);
    }
    if is(0, "MIGRATE") {
        let found = (6..words.count()).find_map(|at| match (is(at, "AUTH"), is(at, "AUTH2")) {
            (true, _) => Some((at, 2)),
            (_, true) => Some((at, 3)),
            _ => None,
        });
        // What stands behind KEYS are keys, whatever they are called.
        let keys = (6..words.count()).find(|at| is(*at, "KEYS")).unwrap_or(usize::MAX);
        return found
            .filter(|(at, _)| *at < keys)
            .map_or(Credentials::None, |(at, count)| without(words, at, count));
    }
    Credentials::None
}

/// `HELLO VERSION [AUTH NAME PASSWORD] [SETNAME NAME]`, without its logins. One that is written otherwise is not kept.
fn of_hello(words: &Arguments) -> Credentials {
    let mut kept = Arguments::default();
    let (mut at, mut has_login) = (0, false);
    while at < words.count() {
        let is = |text: &str| at >= 2 && words.word(at).eq_ignore_ascii_case(text.as_bytes());
        let length = match (is("AUTH"), is("SETNAME")) {
            (true, _) => 3,
            (_, true) => 2,
            _ if at < 2 => 1,
            _ => return Credentials::LeftOut,
        };
        if at + length > words.count() {
            return Credentials::LeftOut;
        }
        if length == 3 {
            has_login = true;
        } else {
            (at..at + length).for_each(|number| kept.push_word(words.word(number)));
        }
        at += length;
    }
    if has_login { Credentials::Without(kept) } else { Credentials::None }
}

/// The same command without `count` words from number `at` on.
fn without(words: &Arguments, at: usize, count: usize) -> Credentials {
    let kept = words.words().enumerate().filter(|(number, _)| !(at..at + count).contains(number));
    Credentials::Without(Arguments::from_words(kept.map(|(_, word)| word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(line: &str) -> Option<String> {
        let words = Arguments::from_words(line.split(' '));
        let text = |all: &Arguments| {
            all.words().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join(" ")
        };
        match of_redis(&words) {
            Credentials::None => Some(line.to_owned()),
            Credentials::Without(words) => Some(text(&words)),
            Credentials::LeftOut => None,
        }
    }

    #[test]
    fn credentials_stay_out() {
        for line in [
            "AUTH secret",
            "auth user secret",
            "ACL SETUSER u on >secret",
            "acl setuser u",
            "CONFIG SET requirepass secret",
            "config set maxmemory 1 MASTERAUTH secret",
            "CONFIG SET primaryauth secret",
            "SENTINEL SET m auth-pass secret",
            "SENTINEL CONFIG SET sentinel-pass secret",
            "HELLO 3 WHAT secret",
            "HELLO 3 AUTH u",
        ] {
            assert_eq!(kept(line), None, "{line}");
        }
        for (line, left) in [
            ("HELLO 3 AUTH u secret SETNAME n", "HELLO 3 SETNAME n"),
            ("hello 3", "hello 3"),
            ("HELLO 3 SETNAME auth AUTH bob secret", "HELLO 3 SETNAME auth"),
            ("HELLO 3 AUTH u secret AUTH u secret", "HELLO 3"),
            ("SENTINEL MASTERS", "SENTINEL MASTERS"),
            ("MIGRATE h 1 k 0 10 AUTH secret", "MIGRATE h 1 k 0 10"),
            ("MIGRATE h 1 \"\" 0 10 COPY AUTH2 u secret KEYS a b", "MIGRATE h 1 \"\" 0 10 COPY KEYS a b"),
            ("MIGRATE h 1 \"\" 0 10 KEYS AUTH b", "MIGRATE h 1 \"\" 0 10 KEYS AUTH b"),
            ("SET AUTH secret", "SET AUTH secret"),
            ("CONFIG GET requirepass", "CONFIG GET requirepass"),
            ("CONFIG SET maxmemory requirepass", "CONFIG SET maxmemory requirepass"),
            ("ACL WHOAMI", "ACL WHOAMI"),
        ] {
            assert_eq!(kept(line).as_deref(), Some(left), "{line}");
        }
    }
}
