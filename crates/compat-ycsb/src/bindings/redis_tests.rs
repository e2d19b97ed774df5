//! Settings of Redis targets, their readings and their refusals.

use crate::bindings::redis::*;
use crate::bindings::{Binding, resolve};
use dyno_config::settings::Source;
use dyno_db_redis::protocol::{Index, RecordLayout};

fn settings(pairs: &[(&str, &str)]) -> PropertySettings {
    let mut settings = PropertySettings::new();
    for (i, (key, value)) in pairs.iter().enumerate() {
        settings.set_property(key, *value, Source::File { path: "w".into(), line: i as u32 + 1 });
    }
    settings
}

fn redis(pairs: &[(&str, &str)]) -> (RedisOptions, Option<u64>, Vec<String>) {
    let bound = resolve(Binding::Redis, &settings(pairs)).unwrap();
    match bound.target {
        BindingTarget::Redis { options, timeout_ns } => (*options, timeout_ns, bound.notes),
        other => panic!("{other:?}"),
    }
}

fn refusal(pairs: &[(&str, &str)]) -> String {
    resolve(Binding::Redis, &settings(pairs)).unwrap_err().to_string()
}

fn tcp(host: &str, port: u16) -> Address {
    Address::Tcp(host.into(), port)
}

#[test]
fn ycsbs_own_properties() {
    let (options, timeout_ns, notes) = redis(&[("redis.host", "db1 ")]);
    assert_eq!(options.addresses, [tcp("db1", 6379)]);
    assert_eq!((options.scan_window, options.layout, options.index), (1, RecordLayout::Hash, Index::Zset));
    assert_eq!((timeout_ns, notes.len()), (Some(2_000_000_000), 0));
    let (options, timeout_ns, _) = redis(&[
        ("redis.host", "a,b:7001,[::1]:7002"),
        ("redis.port", "7000"),
        ("redis.password", " secret "),
        ("redis.cluster", "TRUE"),
        ("redis.timeout", "0"),
    ]);
    assert_eq!(options.addresses, [tcp("a", 7000), tcp("b", 7001), tcp("::1", 7002)]);
    assert_eq!((options.cluster, options.password.as_deref()), (true, Some(" secret ")));
    assert_eq!(timeout_ns, None);
    assert_eq!(redis(&[("redis.host", "fe80::1")]).0.addresses, [tcp("fe80::1", 6379)]);
}

#[test]
fn our_additions() {
    let (options, timeout_ns, _) = redis(&[
        ("redis.socket", "/run/r.sock"),
        ("redis.user", "bob"),
        ("redis.password", "x"),
        ("redis.db", "3"),
        ("redis.protocol", "3"),
        ("redis.layout", "string"),
        ("redis.scan.window", "16"),
        ("dyno.timeout", "50ms"),
    ]);
    assert_eq!(options.addresses, [Address::Unix("/run/r.sock".into())]);
    assert_eq!((options.user.as_deref(), options.database, options.protocol), (Some("bob"), 3, 3));
    assert_eq!((options.layout, options.index, options.scan_window), (RecordLayout::String, Index::None, 16));
    assert_eq!(timeout_ns, Some(50_000_000));
    let tls = |pairs: &[(&str, &str)]| {
        let mut all = vec![("redis.host", "h")];
        all.extend_from_slice(pairs);
        redis(&all).0.tls
    };
    assert_eq!(tls(&[]), None);
    assert_eq!(tls(&[("redis.tls", "true")]), Some(Default::default()));
    let full = tls(&[
        ("redis.tls.ca", "ca.pem"),
        ("redis.tls.cert", "c.pem"),
        ("redis.tls.key", "k.pem"),
        ("redis.tls.insecure", "true"),
        ("redis.tls.servername", "db"),
    ])
    .unwrap();
    assert_eq!((full.ca, full.key), (Some("ca.pem".into()), Some("k.pem".into())));
    assert_eq!((full.insecure, full.server_name.as_deref()), (true, Some("db")));
    assert_eq!(tls(&[("redis.tls.ca", "ca.pem"), ("redis.tls", "false")]), None);
}

#[test]
fn uris() {
    let (options, _, notes) = redis(&[
        ("redis.uri", "rediss://h:7000/2"),
        ("redis.host", "other"),
        ("redis.password", "x"),
        ("redis.timeout", "7"),
    ]);
    assert_eq!((options.addresses, options.database), (vec![tcp("h", 7000)], 2));
    assert_eq!((options.password.as_deref(), options.scan_window), (Some("x"), 1));
    assert!(options.tls.is_some());
    assert_eq!(notes, ["redis.uri describes the whole target: redis.host has no effect"]);
    let window = |pairs: &[(&str, &str)]| redis(pairs).0.scan_window;
    assert_eq!(window(&[("redis.uri", "redis://h?scan_window=16"), ("redis.scan.window", "4")]), 16);
    assert_eq!(window(&[("redis.uri", "redis://h"), ("redis.scan.window", "4")]), 4);
    let own = redis(&[("redis.uri", "redis://:own@h"), ("redis.password", "x")]).0.password;
    assert_eq!(own.as_deref(), Some("own"));
}

#[test]
fn refusals_name_the_place_and_what_is_accepted() {
    let host = ("redis.host", "h");
    assert!(refusal(&[]).starts_with("redis.host is not set: expected a host name"));
    assert!(refusal(&[("redis.host", "h:x")]).starts_with("w:1: redis.host=h:x: expected a host name"));
    assert_eq!(refusal(&[host, ("redis.port", "0")]), "w:2: redis.port=0: expected a port, 1 to 65535");
    assert_eq!(refusal(&[host, ("redis.protocol", "4")]), "w:2: redis.protocol=4: expected 2 or 3");
    assert_eq!(refusal(&[host, ("redis.cluster", "yes")]), "w:2: redis.cluster=yes: expected true or false");
    assert!(refusal(&[host, ("redis.timeout", "2s")]).contains("expected milliseconds"));
    assert!(refusal(&[host, ("redis.reads", "all")]).contains("primary, replica"));
    assert!(refusal(&[host, ("redis.cluster", "true"), ("redis.db", "1")]).contains("only database"));
    assert!(refusal(&[host, ("redis.tls.key", "k")]).contains("with redis.tls.cert"));
    assert!(refusal(&[("redis.host", "a,b")]).contains("several seeds"));
    assert!(refusal(&[("redis.socket", "/s"), ("redis.cluster", "true")]).contains("Unix socket"));
    assert!(refusal(&[host, ("dyno.timeout", "50")]).contains("dyno.timeout=50: expected a duration"));
    assert!(refusal(&[("redis.uri", "redis://h?clutser=true")]).contains("did you mean cluster"));
    assert!(refusal(&[("redis.uri", "redis://h/1?cluster=true")]).contains("database"));
    assert!(refusal(&[("redis.uri", "http://h")]).contains("redis://, rediss:// or unix://"));
    let text = refusal(&[("redis.uri", "redis://bob:hunter2%@h")]);
    assert!(text.contains("two hex digits") && !text.contains("hunter2"), "{text}");
}

#[test]
fn a_user_may_stand_in_the_uri_and_the_password_beside_it() {
    let login = |pairs: &[(&str, &str)]| {
        let (options, ..) = redis(pairs);
        (options.user, options.password)
    };
    let word = |text: &str| Some(text.to_owned());
    let uri = ("redis.uri", "redis://bob@h");
    assert_eq!(login(&[uri, ("redis.password", "pw")]), (word("bob"), word("pw")));
    assert_eq!(login(&[uri]), (word("bob"), None));
    assert_eq!(login(&[("redis.host", "h"), ("redis.user", "bob")]), (word("bob"), None));
    let whole = ("redis.uri", "redis://bob:own@h");
    assert_eq!(login(&[whole, ("redis.password", "pw"), ("redis.user", "eve")]), (word("bob"), word("own")));
}
