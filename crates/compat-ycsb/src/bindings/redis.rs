//! The properties of the Redis binding: YCSB's six, and what its binding lacks.
//!
//! `redis.uri` describes the whole target and wins over the properties beside it; only a login that it does not
//! have, the scan window and the time-out are still taken from them.

use crate::bindings::target::BindingTarget;
use crate::property::DescribedProperty;
use dyno_config::client::duration_ns;
use dyno_config::settings::{BadSetting, PropertySettings};
use dyno_db_redis::protocol::RedisOptions;
use dyno_types::address::Address;
use dyno_types::secret::mask_value;
use dyno_workload::ycsb::properties::PropertyReader;

/// Time-out in milliseconds where none is set: Jedis' own.
const TIMEOUT_MS: u64 = 2_000;

/// Longest `redis.timeout` in milliseconds: a day.
const MOST_MS: u64 = 86_400_000;

/// Name, default, what is accepted, what it does.
type RedisProperty = (&'static str, &'static str, &'static str, &'static str);

const HOST: &str =
    "a host name or address, such as -p redis.host=127.0.0.1; several for a cluster: a:7000,b:7000";

const ROWS: [RedisProperty; 21] = [
    ("redis.host", "", HOST, "where the server is; required unless redis.socket or redis.uri is set"),
    ("redis.port", "6379", "a port, 1 to 65535", "port of hosts that name none"),
    ("redis.password", "", "a password", "password for AUTH; safer in a -P file or in $DYNO_REDIS_PASSWORD"),
    (
        "redis.user",
        "",
        "an ACL user name",
        "ACL user for AUTH; without redis.password one that has none (nopass)",
    ),
    ("redis.cluster", "false", "true or false", "whether the server is part of a cluster"),
    ("redis.timeout", "2000", "milliseconds, 0 to 86400000", "how long a reply is awaited; 0 for ever"),
    ("redis.db", "0", "a database number from 0", "database that SELECT selects"),
    ("redis.socket", "", "the path of a Unix socket", "Unix socket instead of host and port"),
    ("redis.uri", "", "redis://, rediss:// or unix:// with all about the target", "wins over the others"),
    ("redis.tls", "false", "true or false", "TLS; on by itself where another redis.tls.* is set"),
    ("redis.tls.ca", "", "a PEM file", "certificates to trust instead of the system's"),
    ("redis.tls.cert", "", "a PEM file, with redis.tls.key", "client certificate"),
    ("redis.tls.key", "", "a PEM file, with redis.tls.cert", "key of the client certificate"),
    ("redis.tls.insecure", "false", "true or false", "accept any certificate"),
    ("redis.tls.servername", "", "a host name", "name to verify, if not redis.host"),
    ("redis.protocol", "2", "2 or 3", "version of RESP"),
    ("redis.layout", "hash", "hash or string", "a record is a hash of its fields, or one string"),
    (
        "redis.index",
        "zset",
        "zset or none",
        "list keys in the sorted set _indices, which scans need, or nowhere",
    ),
    (
        "redis.scan.window",
        "1",
        "a whole number from 1",
        "records a scan asks for at once; YCSB asks one by one",
    ),
    (
        "redis.ttl",
        "",
        "a duration with its unit, such as 60s; 0 keeps records",
        "time to live that every insert and update gives its record",
    ),
    (
        "redis.reads",
        "primary",
        "primary, replica (the copies in turn) or any",
        "where reads go, in a cluster or where a server has copies",
    ),
];

/// The properties for help.
pub(super) fn properties() -> impl Iterator<Item = DescribedProperty> {
    ROWS.iter().map(|&(name, default, accepted, about)| DescribedProperty {
        group: "redis",
        name: name.into(),
        default,
        doc: format!("{about} ({accepted})").into(),
    })
}

/// Properties whose value is handed to [`RedisOptions::set_option`], with the option's name there. The layout comes before
/// the index, which it changes.
const PLAIN: [(&str, &str); 7] = [
    ("redis.layout", "layout"),
    ("redis.index", "index"),
    ("redis.protocol", "protocol"),
    ("redis.reads", "reads"),
    ("redis.db", "db"),
    ("redis.scan.window", "scan-window"),
    ("redis.ttl", "ttl"),
];

/// Reads the target.
pub(super) fn target(
    settings: &PropertySettings,
    notes: &mut Vec<String>,
) -> Result<BindingTarget, BadSetting> {
    let options = match settings.text_of("redis.uri") {
        Some(uri) => from_uri(uri.trim(), settings, notes)?,
        None => from_properties(settings, notes)?,
    };
    Ok(BindingTarget::Redis { options: Box::new(options), timeout_ns: timeout_ns(settings)? })
}

fn refuse(settings: &PropertySettings, key: &str) -> BadSetting {
    let accepted = ROWS.iter().find(|(name, ..)| *name == key).map_or("", |(_, _, accepted, _)| accepted);
    settings.refuse_value(key, accepted)
}

fn timeout_ns(settings: &PropertySettings) -> Result<Option<u64>, BadSetting> {
    let own =
        PropertyReader::new(&mut settings.property_lookup()).count("redis.timeout", TIMEOUT_MS, 0..=MOST_MS);
    let own_ns = own.map_err(|_| refuse(settings, "redis.timeout"))? * 1_000_000;
    let ns = match settings.text_of("dyno.timeout") {
        Some(_) => duration_ns(settings, "dyno.timeout")?,
        None => own_ns,
    };
    Ok((ns > 0).then_some(ns))
}

/// The value of `key` without surrounding white space, unless nothing is left of it.
fn word<'a>(settings: &'a PropertySettings, key: &str) -> Option<&'a str> {
    settings.text_of(key).map(str::trim).filter(|value| !value.is_empty())
}

fn flag(settings: &PropertySettings, key: &str) -> Result<bool, BadSetting> {
    PropertyReader::new(&mut settings.property_lookup())
        .read_flag(key, false)
        .map_err(|bad| settings.blame_source(bad))
}

fn from_uri(
    uri: &str,
    settings: &PropertySettings,
    notes: &mut Vec<String>,
) -> Result<RedisOptions, BadSetting> {
    let scheme = uri.split(':').next().unwrap_or_default();
    if !["redis", "rediss", "unix"].contains(&scheme) {
        return Err(refuse(settings, "redis.uri"));
    }
    let mut options = RedisOptions::from_uri(uri).map_err(|_| {
        // The refusal may quote the URI: ask again without the password.
        let why = match RedisOptions::from_uri(&mask_value("redis.uri", uri)) {
            Err(refused) => refused.to_string(),
            Ok(_) => "its password has a % that is not followed by two hex digits".to_owned(),
        };
        settings.refuse_value("redis.uri", format!("a URI of a Redis target; {why}"))
    })?;
    let query = uri.split_once('?').map_or("", |(_, query)| query);
    let windowed = query.split('&').any(|pair| pair.replace('_', "-").starts_with("scan-window="));
    if !windowed {
        options.scan_window = 1;
        set_plain(&mut options, settings, "redis.scan.window", "scan-window")?;
    }
    if options.password.is_none() {
        let user = options.user.take();
        take_login(&mut options, settings);
        options.user = user.or(options.user);
    }
    let read = ["redis.uri", "redis.timeout", "redis.scan.window", "redis.user", "redis.password"];
    let ignored: Vec<&str> =
        ROWS.iter().map(|row| row.0).filter(|n| !read.contains(n) && settings.get(n).is_some()).collect();
    if !ignored.is_empty() {
        notes.push(format!("redis.uri describes the whole target: {} has no effect", ignored.join(", ")));
    }
    check(&options, settings)?;
    Ok(options)
}

fn from_properties(settings: &PropertySettings, notes: &mut Vec<String>) -> Result<RedisOptions, BadSetting> {
    let mut options =
        RedisOptions { addresses: addresses(settings, notes)?, scan_window: 1, ..RedisOptions::default() };
    options.cluster = flag(settings, "redis.cluster")?;
    for (key, name) in PLAIN {
        set_plain(&mut options, settings, key, name)?;
    }
    take_login(&mut options, settings);
    take_tls(&mut options, settings)?;
    check(&options, settings)?;
    Ok(options)
}

fn set_plain(
    options: &mut RedisOptions,
    settings: &PropertySettings,
    key: &str,
    name: &str,
) -> Result<(), BadSetting> {
    match settings.text_of(key) {
        Some(value) => options.set_option(name, value.trim()).map_err(|_| refuse(settings, key)),
        None => Ok(()),
    }
}

fn take_login(options: &mut RedisOptions, settings: &PropertySettings) {
    let text = |key| settings.text_of(key).filter(|value| !value.is_empty()).map(str::to_owned);
    options.password = text("redis.password");
    options.user = text("redis.user");
}

fn take_tls(options: &mut RedisOptions, settings: &PropertySettings) -> Result<(), BadSetting> {
    let wanted = flag(settings, "redis.tls")?;
    if settings.get("redis.tls").is_some() && !wanted {
        return Ok(());
    }
    let files = [("redis.tls.ca", "ca"), ("redis.tls.cert", "cert"), ("redis.tls.key", "key")];
    let names = [("redis.tls.servername", "server-name")];
    for (key, name) in files.into_iter().chain(names) {
        if word(settings, key).is_some() {
            set_plain(options, settings, key, name)?;
        }
    }
    if flag(settings, "redis.tls.insecure")? {
        options.tls.get_or_insert_default().insecure = true;
    }
    if wanted {
        options.tls.get_or_insert_default();
    }
    match &options.tls {
        Some(tls) if tls.cert.is_some() && tls.key.is_none() => Err(refuse(settings, "redis.tls.cert")),
        Some(tls) if tls.key.is_some() && tls.cert.is_none() => Err(refuse(settings, "redis.tls.key")),
        _ => Ok(()),
    }
}

fn check(options: &RedisOptions, settings: &PropertySettings) -> Result<(), BadSetting> {
    let by_uri = settings.get("redis.uri").is_some();
    let refuse_part = |key: &str, why: &str| match by_uri {
        true => settings.refuse_value("redis.uri", format!("a URI that agrees with itself; {why}")),
        false => settings.refuse_value(key, why),
    };
    if options.cluster && options.database != 0 {
        return Err(refuse_part("redis.db", "0, the only database of a cluster (redis.cluster=true)"));
    }
    if options.cluster && options.addresses.iter().any(|a| matches!(a, Address::Unix(_))) {
        return Err(refuse_part("redis.cluster", "false together with a Unix socket"));
    }
    if !options.cluster && options.addresses.len() > 1 {
        return Err(refuse_part("redis.host", "one host, or redis.cluster=true with several seeds"));
    }
    options.check().map_err(|refused| refuse_part("redis.host", &refused.to_string()))
}

fn addresses(settings: &PropertySettings, notes: &mut Vec<String>) -> Result<Vec<Address>, BadSetting> {
    if let Some(path) = word(settings, "redis.socket") {
        if settings.get("redis.host").is_some() {
            notes.push("redis.socket is set: redis.host has no effect".to_owned());
        }
        return Ok(vec![Address::Unix(path.into())]);
    }
    let port = PropertyReader::new(&mut settings.property_lookup()).count("redis.port", 6379, 1..=65_535);
    let port = port.map_err(|_| refuse(settings, "redis.port"))? as u16;
    let hosts = word(settings, "redis.host").ok_or_else(|| refuse(settings, "redis.host"))?;
    let all: Option<Vec<Address>> = hosts.split(',').map(|host| address(host.trim(), port)).collect();
    all.ok_or_else(|| refuse(settings, "redis.host"))
}

/// `host`, `host:port`, `[IPv6]:port` or a bare IPv6 address.
fn address(text: &str, port: u16) -> Option<Address> {
    let number = |text: &str| text.parse().ok().filter(|&port: &u16| port > 0);
    let (host, port) = match (text.strip_prefix('['), text.matches(':').count()) {
        (Some(rest), _) => {
            let (host, tail) = rest.split_once(']')?;
            (host, if tail.is_empty() { port } else { number(tail.strip_prefix(':')?)? })
        }
        (None, 1) => {
            let (host, port) = text.split_once(':')?;
            (host, number(port)?)
        }
        (None, _) => (text, port),
    };
    let bad = |c: char| c.is_whitespace() || matches!(c, '/' | '@' | '?');
    (!host.is_empty() && !host.contains(bad)).then(|| Address::Tcp(host.to_owned(), port))
}

#[cfg(test)]
#[path = "redis_tests.rs"]
mod tests;
