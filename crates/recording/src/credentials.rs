//! What never enters a recording: passwords, and commands that carry them.

use crate::entry::Arguments;
use crate::protocol::RecordedProtocol;
use dyno_types::bson;

/// Reason for which such a command is not in a recording.
pub const CREDENTIALS: &str = "credentials";

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

/// Commands of MongoDB that carry passwords, or what stands for them.
const SECRET_COMMANDS: [&str; 9] = [
    "saslStart",
    "saslContinue",
    "authenticate",
    "getnonce",
    "copydbgetnonce",
    "copydbsaslstart",
    "copydb",
    "createUser",
    "updateUser",
];

/// Collections of MongoDB's database `admin` that hold what users log in with.
const SECRET_COLLECTIONS: [&str; 3] = ["system.users", "system.backup_users", "tempusers"];

/// Looks for credentials in a command.
pub fn of_command(protocol: RecordedProtocol, arguments: &Arguments) -> Credentials {
    match protocol {
        RecordedProtocol::Redis => of_redis(arguments),
        RecordedProtocol::Mongodb => of_mongodb(arguments),
        RecordedProtocol::Memcached => Credentials::None,
    }
}

/// Looks for credentials in a command of Redis.
fn of_redis(arguments: &Arguments) -> Credentials {
    let is = |number: usize, text: &str| {
        number < arguments.count() && arguments.word(number).eq_ignore_ascii_case(text.as_bytes())
    };
    if is(0, "AUTH") || (is(0, "ACL") && is(1, "SETUSER")) {
        return Credentials::LeftOut;
    }
    if is(0, "CONFIG") && is(1, "SET") {
        let secret =
            (2..arguments.count()).step_by(2).any(|at| SECRET_SETTINGS.iter().any(|name| is(at, name)));
        return if secret { Credentials::LeftOut } else { Credentials::None };
    }
    if is(0, "SENTINEL") && is(1, "SET") || is(0, "SENTINEL") && is(1, "CONFIG") && is(2, "SET") {
        let secret = (2..arguments.count()).any(|at| SECRET_SETTINGS.iter().any(|name| is(at, name)));
        return if secret { Credentials::LeftOut } else { Credentials::None };
    }
    if is(0, "HELLO") {
        return of_hello(arguments);
    }
    if is(0, "MIGRATE") {
        let found = (6..arguments.count()).find_map(|at| match (is(at, "AUTH"), is(at, "AUTH2")) {
            (true, _) => Some((at, 2)),
            (_, true) => Some((at, 3)),
            _ => None,
        });
        // What stands behind KEYS are keys, whatever they are called.
        let keys = (6..arguments.count()).find(|at| is(*at, "KEYS")).unwrap_or(usize::MAX);
        return found
            .filter(|(at, _)| *at < keys)
            .map_or(Credentials::None, |(at, count)| without(arguments, at, count));
    }
    Credentials::None
}

/// Looks for credentials in a command of MongoDB: its name, its database and its body.
fn of_mongodb(arguments: &Arguments) -> Credentials {
    let is_one_of = |names: &[&str]| arguments.is_one_of(names);
    // Code that runs on the server may make users.
    if is_one_of(&SECRET_COMMANDS) || is_one_of(&["eval", "$eval"]) {
        return Credentials::LeftOut;
    }
    let body = if arguments.count() > 2 { arguments.word(2) } else { &[] };
    let is_secret = if is_one_of(&["insert", "update", "delete", "findAndModify"]) {
        let collection = bson::find_element(body, &String::from_utf8_lossy(arguments.word(0)));
        let collection = collection.and_then(|element| element.as_str()).unwrap_or_default();
        arguments.word(1) == b"admin" && SECRET_COLLECTIONS.contains(&collection)
    } else if is_one_of(&["applyOps", "bulkWrite", "explain"]) {
        SECRET_COLLECTIONS.iter().any(|name| contains(body, name.as_bytes()))
    } else if is_one_of(&["setParameter"]) {
        ["password", "secret"].iter().any(|part| contains(&body.to_ascii_lowercase(), part.as_bytes()))
    } else {
        is_one_of(&["hello", "isMaster"]) && bson::find_element(body, "speculativeAuthenticate").is_some()
    };
    if is_secret { Credentials::LeftOut } else { Credentials::None }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// `HELLO VERSION [AUTH NAME PASSWORD] [SETNAME NAME]`, without its logins. One that is written otherwise is not kept.
fn of_hello(arguments: &Arguments) -> Credentials {
    let mut kept = Arguments::default();
    let (mut at, mut has_login) = (0, false);
    while at < arguments.count() {
        let is = |text: &str| at >= 2 && arguments.word(at).eq_ignore_ascii_case(text.as_bytes());
        let length = match (is("AUTH"), is("SETNAME")) {
            (true, _) => 3,
            (_, true) => 2,
            _ if at < 2 => 1,
            _ => return Credentials::LeftOut,
        };
        if at + length > arguments.count() {
            return Credentials::LeftOut;
        }
        if length == 3 {
            has_login = true;
        } else {
            (at..at + length).for_each(|number| kept.push_word(arguments.word(number)));
        }
        at += length;
    }
    if has_login { Credentials::Without(kept) } else { Credentials::None }
}

/// The same command without `count` words from number `at` on.
fn without(arguments: &Arguments, at: usize, count: usize) -> Credentials {
    let kept = arguments.words().enumerate().filter(|(number, _)| !(at..at + count).contains(number));
    Credentials::Without(Arguments::from_words(kept.map(|(_, word)| word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(line: &str) -> Option<String> {
        let arguments = Arguments::from_words(line.split(' '));
        let text = |all: &Arguments| {
            all.words().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join(" ")
        };
        match of_redis(&arguments) {
            Credentials::None => Some(line.to_owned()),
            Credentials::Without(arguments) => Some(text(&arguments)),
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

    #[test]
    fn logins_and_users_of_mongodb_stay_out() {
        let command = |name: &str, database: &str, field: &str, value: &str| {
            let body = bson::build_document(|out| {
                bson::put_string(out, name, value);
                bson::put_string(out, field, "x");
            });
            of_mongodb(&Arguments::from_words([name.as_bytes(), database.as_bytes(), &body]))
        };
        for name in SECRET_COMMANDS {
            assert_eq!(command(name, "admin", "payload", "1"), Credentials::LeftOut, "{name}");
            assert_eq!(of_mongodb(&Arguments::from_words([name.to_uppercase()])), Credentials::LeftOut);
        }
        for (name, database, field, value, expected) in [
            ("insert", "admin", "ordered", "system.users", Credentials::LeftOut),
            ("update", "admin", "ordered", "tempusers", Credentials::LeftOut),
            ("insert", "shop", "ordered", "system.users", Credentials::None),
            ("insert", "admin", "ordered", "users", Credentials::None),
            ("find", "admin", "filter", "system.users", Credentials::None),
            ("applyOps", "admin", "ns", "admin.system.users", Credentials::LeftOut),
            ("applyOps", "admin", "ns", "shop.users", Credentials::None),
            ("setParameter", "admin", "ldapQueryPassword", "1", Credentials::LeftOut),
            ("setParameter", "admin", "logLevel", "1", Credentials::None),
            ("hello", "admin", "speculativeAuthenticate", "1", Credentials::LeftOut),
            ("isMaster", "admin", "client", "1", Credentials::None),
            ("dropUser", "admin", "comment", "u", Credentials::None),
        ] {
            assert_eq!(command(name, database, field, value), expected, "{name} {value}");
        }
    }
}
