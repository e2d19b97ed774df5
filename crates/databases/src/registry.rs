//! The list of databases, and the reading of a target's URI by it.

use crate::{null, sim, spawned};
use dyno_config::server::ServerKind;
use dyno_db::servers::DatabaseServer;
use dyno_db::target::{ClientDriver, Database, LoginForm, Scheme, Target};
use dyno_db_embedded::target as embedded;
use dyno_db_memcached as memcached;
use dyno_db_mongodb as mongodb;
use dyno_db_redis as redis;
use dyno_types::secret::{mask_value, remember_value};
use dyno_types::{RefusalCode, Refused};
use std::collections::BTreeMap;

/// The databases, in the order of help and errors.
pub static ALL: [&dyn Database; 13] = [
    &redis::target::RedisDatabase,
    &mongodb::target::MongoDb,
    &memcached::target::MemcachedDatabase,
    &embedded::Embedded([Scheme::store_scheme("sqlite", "sqlite:PATH?journal=wal&synchronous=full")]),
    &embedded::Embedded([Scheme::store_scheme("redb", "redb:PATH")]),
    &embedded::Embedded([Scheme::store_scheme("fjall", "fjall:PATH")]),
    &embedded::Embedded([Scheme::store_scheme("lmdb", "lmdb:PATH")]),
    &embedded::Embedded([Scheme::store_scheme("rocksdb", "rocksdb:PATH")]),
    &embedded::Embedded([Scheme::store_scheme("wiredtiger", "wiredtiger:PATH")]),
    &embedded::Embedded([Scheme::store_scheme("basic", "basic:")]),
    &null::NullDatabase,
    &sim::Sim,
    &spawned::Spawn,
];

/// Starts and asks servers of a kind.
pub fn server(kind: ServerKind) -> &'static dyn DatabaseServer {
    match kind {
        ServerKind::Redis | ServerKind::Valkey | ServerKind::KeyDb => &redis::server::RedisServer,
        ServerKind::Dragonfly => &redis::dragonfly::server::DragonflyServer,
        ServerKind::Mongod => &mongodb::server::MongodServer,
        ServerKind::FerretDb => &mongodb::ferretdb::FerretDbServer,
        ServerKind::Memcached => &memcached::server::MemcachedServer,
    }
}

/// All schemes.
pub fn schemes() -> impl Iterator<Item = &'static Scheme> {
    ALL.iter().flat_map(|database| database.schemes())
}

/// Forms of the URIs of servers, `redis://..., mongodb://... or memcached://...`: one for each database.
pub fn servers_in_words() -> String {
    let servers =
        ALL.iter().filter_map(|one| one.schemes().iter().find(|scheme| scheme.login != LoginForm::None));
    let mut forms: Vec<String> = servers.map(|one| format!("{}://...", one.name)).collect();
    let last = forms.pop().unwrap_or_default();
    format!("{} or {last}", forms.join(", "))
}

/// Parts of a target that did not answer, by the facts that a process elsewhere has of it.
pub fn describe_missing(facts: &BTreeMap<String, String>) -> Option<String> {
    ALL.iter().find_map(|database| database.describe_missing(facts))
}

/// Reads the URI of a target.
///
/// # Errors
/// Names the scheme that may be meant, and all that are accepted; or says which part of the URI is wrong.
pub fn parse(uri: &str) -> Result<Box<dyn Target>, Refused> {
    remember_value("target", uri);
    if let Some(meant) = meant_uri(uri) {
        let (shown, meant) = (mask_value("target", uri), mask_value("target", &meant));
        let message = format!("{shown:?} is no target; did you mean {meant}?");
        return Err(Refused::new(RefusalCode::BadValue, "target", message));
    }
    let scheme = uri.split(':').next().unwrap_or_default();
    let known = |database: &&&dyn Database| database.schemes().iter().any(|one| one.name == scheme);
    match ALL.iter().find(known) {
        Some(database) => database.parse(uri),
        None => Err(unknown_scheme(uri, scheme)),
    }
}

/// Reads the URI of a target for a client.
///
/// # Errors
/// As [`parse`]; the official driver refuses what is not its database's, and a build without it every URI.
pub fn parse_for(uri: &str, client: ClientDriver) -> Result<Box<dyn Target>, Refused> {
    if client == ClientDriver::Wire {
        return parse(uri);
    }
    remember_value("target", uri);
    let official = ALL.iter().find_map(|database| database.parse_official(uri));
    official.unwrap_or_else(|| {
        Err(Refused::new(RefusalCode::NotBuilt, "client.driver", "no database has an official driver"))
    })
}

/// The URI that is meant where the slashes or the colon behind the scheme of a server are not all there: `redis:/h`, `redis//h`.
pub fn meant_uri(text: &str) -> Option<String> {
    // A socket is a path: its slash is no host's.
    let of_hosts =
        schemes().filter(|scheme| scheme.login != LoginForm::None && !scheme.form.contains(":///"));
    of_hosts.into_iter().find_map(|scheme| {
        let rest = text.strip_prefix(scheme.name)?;
        let wrong = rest.starts_with(":/") && !rest.starts_with("://") || rest.starts_with("//");
        let place = rest.trim_start_matches([':', '/']);
        (wrong && !place.is_empty()).then(|| format!("{}://{place}", scheme.name))
    })
}

/// What to say of a host with or without a port that is no target: it does not say how to speak to it.
pub fn protocol_hint(host: &str) -> String {
    format!(": a target begins with its protocol, such as redis://{}", mask_value("target", host))
}

/// Returns whether a text is a host and a port.
pub fn is_host_and_port(text: &str) -> bool {
    text.split_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// Databases that users look for and that dyno does not speak to yet.
const NOT_YET: [&str; 6] = ["postgres", "postgresql", "cassandra", "mysql", "scylla", "dynamodb"];

fn unknown_scheme(uri: &str, scheme: &str) -> Refused {
    if NOT_YET.contains(&scheme) {
        let message =
            format!("dyno has no driver for {scheme} yet: docs/not-yet.md says what to use until then");
        return Refused::new(RefusalCode::UnknownName, "target", message);
    }
    if ["http", "https"].contains(&scheme) {
        let message = format!(
            "{:?} is an HTTP server: dyno loads databases in their own protocols, such as redis://HOST:PORT",
            mask_value("target", uri)
        );
        return Refused::new(RefusalCode::UnknownName, "target", message);
    }
    let near = schemes().map(|one| one.name).find(|s| {
        s.len().abs_diff(scheme.len()) <= 2
            && s.chars().zip(scheme.chars()).filter(|(a, b)| a == b).count() + 2 >= s.len()
    });
    let hint = match near {
        _ if is_host_and_port(uri) => protocol_hint(uri),
        near => near.map_or(String::new(), |n| format!("; did you mean {n}:?")),
    };
    let known: Vec<String> = schemes().map(|one| format!("{}:", one.name)).collect();
    let shown = mask_value("target", uri);
    Refused::new(
        RefusalCode::UnknownName,
        "target",
        format!("unknown target {shown:?}{hint}; known schemes: {}", known.join(" ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_db::probe::NEVER;
    use std::net::TcpListener;

    #[test]
    fn slashes_that_are_missing_are_named() {
        let meant = |text: &str| meant_uri(text).unwrap_or_default();
        assert_eq!(meant("redis:/h:6379"), "redis://h:6379");
        assert_eq!(meant("rediss//h"), "rediss://h");
        assert_eq!(meant("mongodb+srv:/name/db"), "mongodb+srv://name/db");
        for right in ["redis://h", "redis:", "unix:/run/s", "sqlite:/a", "sqlite://a", "redis"] {
            assert_eq!(meant_uri(right), None, "{right}");
        }
        let why = parse("redis:/me:hunter2@h").err().map(|refused| refused.to_string()).unwrap_or_default();
        assert!(why.contains("did you mean redis://me:***@h?") && !why.contains("hunter2"), "{why}");
        let why = parse("localhost:6379").err().map(|refused| refused.to_string()).unwrap_or_default();
        assert!(why.contains("such as redis://localhost:6379"), "{why}");
    }

    #[test]
    fn an_answer_without_end_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            use std::io::Write as _;
            for mut stream in listener.incoming().flatten() {
                let endless = b":1\r\n".repeat(10_000);
                // Until the other side has had enough.
                std::thread::spawn(move || {
                    let begun = stream.write_all(b"*500000000\r\n");
                    begun
                        .and_then(|()| {
                            loop {
                                stream.write_all(&endless)?;
                            }
                        })
                        .unwrap_or(())
                });
            }
        });
        let target = parse(&format!("redis://{address}")).unwrap();
        let told = target.open_for_look(NEVER).err().unwrap().to_string();
        assert!(told.contains(&address.to_string()), "{told}");
        assert!(told.contains("longer than") || told.contains("no answer within"), "{told}");
    }
}
