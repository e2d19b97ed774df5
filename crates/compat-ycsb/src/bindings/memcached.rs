//! The properties of the memcached binding: YCSB's eight, and what its binding lacks.
//!
//! `memcached.uri` describes the whole target and wins over the properties beside it, the time-out aside.

use crate::bindings::target::BindingTarget;
use crate::property::DescribedProperty;
use dyno_config::client::duration_ns;
use dyno_config::settings::{BadSetting, PropertySettings};
use dyno_db_memcached::protocol::MemcachedOptions;
use dyno_types::secret::mask_value;
use dyno_workload::ycsb::properties::PropertyReader;

/// Name, default, what is accepted, what it does.
type MemcachedProperty = (&'static str, &'static str, &'static str, &'static str);

const HOSTS: &str = "host[:port], such as -p memcached.hosts=127.0.0.1; several: a:11211,b:11211";

/// Longest `memcached.opTimeoutMillis`: a day.
const MOST_MS: u64 = 86_400_000;

const ROWS: [MemcachedProperty; 11] = [
    ("memcached.hosts", "", HOSTS, "where the servers are; required unless memcached.uri is set"),
    (
        "memcached.opTimeoutMillis",
        "60000",
        "milliseconds, 0 to 86400000",
        "how long a reply is awaited; 0 for ever",
    ),
    (
        "memcached.objectExpirationTime",
        "2147483647",
        "seconds up to 2592000, or a Unix time",
        "when a record expires; 0 never. The default is a day in 2038",
    ),
    (
        "memcached.protocol",
        "text",
        "text or binary",
        "YCSB's choice; dyno speaks the text and meta protocols alone",
    ),
    (
        "memcached.checkOperationStatus",
        "true",
        "true or false",
        "dyno waits for every reply and says how it ended",
    ),
    (
        "memcached.failureMode",
        "Redistribute",
        "Redistribute, Retry or Cancel",
        "without effect: keys of a lost server fail",
    ),
    ("memcached.readBufferSize", "3000000", "bytes", "without effect"),
    ("memcached.shutdownTimeoutMillis", "30000", "milliseconds", "without effect"),
    ("memcached.uri", "", "memcached:// or memcacheds:// with all about the target", "wins over the others"),
    (
        "memcached.hash",
        "modulo",
        "modulo or ketama",
        "which of several servers has a key; YCSB's client counts them off",
    ),
    (
        "memcached.update",
        "merge",
        "merge or replace",
        "an update of some fields keeps the others, or leaves nothing else as YCSB's does",
    ),
];

/// Properties of YCSB's client that mean nothing here.
const IDLE: [&str; 4] = [
    "memcached.checkOperationStatus",
    "memcached.failureMode",
    "memcached.readBufferSize",
    "memcached.shutdownTimeoutMillis",
];

/// The properties for help.
pub(super) fn properties() -> impl Iterator<Item = DescribedProperty> {
    ROWS.iter().map(|&(name, default, accepted, about)| DescribedProperty {
        group: "memcached",
        name: name.into(),
        default,
        doc: format!("{about} ({accepted})").into(),
    })
}

fn row(key: &str) -> MemcachedProperty {
    ROWS.into_iter().find(|(name, ..)| *name == key).unwrap_or((ROWS[0].0, "", "", ""))
}

fn refuse(settings: &PropertySettings, key: &str) -> BadSetting {
    settings.refuse_value(key, row(key).2)
}

/// The value of `key` without surrounding white space, unless nothing is left of it.
fn word<'a>(settings: &'a PropertySettings, key: &str) -> Option<&'a str> {
    settings.text_of(key).map(str::trim).filter(|value| !value.is_empty())
}

/// Reads the target.
pub(super) fn target(
    settings: &PropertySettings,
    notes: &mut Vec<String>,
) -> Result<BindingTarget, BadSetting> {
    for key in IDLE {
        if let Some(value) = word(settings, key).filter(|value| *value != row(key).1) {
            notes.push(format!(
                "{key}={value} has no effect: {}",
                row(key).3.trim_start_matches("without effect: ")
            ));
        }
    }
    match word(settings, "memcached.protocol").unwrap_or("text") {
        "text" => {}
        "binary" => notes.push(
            "memcached.protocol=binary: memcached has deprecated it; the meta or text protocol is spoken"
                .to_owned(),
        ),
        _ => return Err(refuse(settings, "memcached.protocol")),
    }
    let options = match word(settings, "memcached.uri") {
        Some(uri) => {
            let beside =
                ["memcached.hosts", "memcached.objectExpirationTime", "memcached.hash", "memcached.update"];
            let ignored: Vec<&str> = beside.into_iter().filter(|key| settings.get(key).is_some()).collect();
            if !ignored.is_empty() {
                notes.push(format!(
                    "memcached.uri describes the whole target: {} has no effect",
                    ignored.join(", ")
                ));
            }
            from_uri(uri, settings)?
        }
        None => from_properties(settings)?,
    };
    Ok(BindingTarget::Memcached { options: Box::new(options), timeout_ns: timeout_ns(settings)? })
}

fn timeout_ns(settings: &PropertySettings) -> Result<Option<u64>, BadSetting> {
    let key = "memcached.opTimeoutMillis";
    let own = PropertyReader::new(&mut settings.property_lookup()).count(key, 60_000, 0..=MOST_MS);
    let own_ns = own.map_err(|_| refuse(settings, key))? * 1_000_000;
    let ns = match settings.text_of("dyno.timeout") {
        Some(_) => duration_ns(settings, "dyno.timeout")?,
        None => own_ns,
    };
    Ok((ns > 0).then_some(ns))
}

fn from_uri(uri: &str, settings: &PropertySettings) -> Result<MemcachedOptions, BadSetting> {
    if !["memcached:", "memcacheds:"].iter().any(|scheme| uri.starts_with(scheme)) {
        return Err(refuse(settings, "memcached.uri"));
    }
    MemcachedOptions::from_uri(uri).map_err(|_| {
        // The refusal may quote the URI: ask again without the password.
        let why = match MemcachedOptions::from_uri(&mask_value("memcached.uri", uri)) {
            Err(refused) => refused.to_string(),
            Ok(_) => "its password has a % that is not followed by two hex digits".to_owned(),
        };
        settings.refuse_value("memcached.uri", format!("a URI of a memcached target; {why}"))
    })
}

fn from_properties(settings: &PropertySettings) -> Result<MemcachedOptions, BadSetting> {
    let hosts = word(settings, "memcached.hosts").ok_or_else(|| refuse(settings, "memcached.hosts"))?;
    // No login, path or option can stand there.
    let places: String = hosts.split(',').map(str::trim).collect::<Vec<_>>().join(",");
    if places.contains(['/', '?', '@', '#']) {
        return Err(refuse(settings, "memcached.hosts"));
    }
    let uri = format!("memcached://{places}");
    let mut options = MemcachedOptions::from_uri(&uri).map_err(|_| refuse(settings, "memcached.hosts"))?;
    let mut set = |key: &str, option: &str, value: &str| {
        options
            .set_option(option, value)
            .map_err(|refused| settings.refuse_value(key, format!("{}; {refused}", row(key).2)))
    };
    // Keys are the table's name and YCSB's key.
    let table = PropertyReader::new(&mut settings.property_lookup()).read_text("table", "usertable");
    set("table", "prefix", &format!("{table}-"))?;
    for (key, option) in [
        ("memcached.objectExpirationTime", "expiry"),
        ("memcached.hash", "hash"),
        ("memcached.update", "update"),
    ] {
        set(key, option, word(settings, key).unwrap_or(row(key).1))?;
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::{Binding, BoundTarget, resolve};
    use dyno_config::settings::Source;
    use dyno_db_memcached::protocol::{Hash, Update};
    use dyno_types::address::Address;

    fn bound(pairs: &[(&str, &str)]) -> Result<BoundTarget, String> {
        let mut settings = PropertySettings::new();
        for (key, value) in pairs {
            settings.set_property(key, *value, Source::CommandLine);
        }
        resolve(Binding::Memcached, &settings).map_err(|bad| bad.to_string())
    }

    fn options(pairs: &[(&str, &str)]) -> (MemcachedOptions, Option<u64>, Vec<String>) {
        match bound(pairs).unwrap() {
            BoundTarget { target: BindingTarget::Memcached { options, timeout_ns }, notes } => {
                (*options, timeout_ns, notes)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ycsbs_defaults() {
        let (found, timeout_ns, notes) = options(&[("memcached.hosts", "a, b:1234")]);
        let place = |host: &str, port| Address::Tcp(host.into(), port);
        assert_eq!(found.addresses, [place("a", 11211), place("b", 1234)]);
        assert_eq!((found.prefix.as_str(), found.expiry_s), ("usertable-", 2_147_483_647));
        assert_eq!((found.hash, found.update), (Hash::Modulo, Update::Merge));
        assert_eq!((timeout_ns, notes), (Some(60_000_000_000), Vec::new()));
    }

    #[test]
    fn what_is_set() {
        let (found, timeout_ns, notes) = options(&[
            ("memcached.hosts", "a"),
            ("table", "t"),
            ("memcached.opTimeoutMillis", "0"),
            ("memcached.objectExpirationTime", "60"),
            ("memcached.hash", "ketama"),
            ("memcached.update", "replace"),
            ("memcached.protocol", "binary"),
            ("memcached.failureMode", "Retry"),
            ("memcached.readBufferSize", "3000000"),
        ]);
        assert_eq!((found.prefix.as_str(), found.expiry_s, timeout_ns), ("t-", 60, None));
        assert_eq!((found.hash, found.update), (Hash::Ketama, Update::Replace));
        assert!(
            notes.len() == 2 && notes[0].starts_with("memcached.failureMode=Retry has no effect"),
            "{notes:?}"
        );
        assert!(notes[1].starts_with("memcached.protocol=binary: "), "{notes:?}");
        let uri = ("memcached.uri", "memcacheds://u:p@a/?update=replace");
        let (found, _, notes) = options(&[uri, ("memcached.hash", "ketama")]);
        assert!(found.tls.is_some() && found.prefix.is_empty() && found.password.as_deref() == Some("p"));
        assert_eq!(notes, ["memcached.uri describes the whole target: memcached.hash has no effect"]);
    }

    #[test]
    fn refusals() {
        for (pairs, message) in [
            (&[][..], "memcached.hosts"),
            (&[("memcached.hosts", "u:p@a")], "host[:port]"),
            (&[("memcached.hosts", "a:b")], "host[:port]"),
            (&[("memcached.hosts", "a"), ("memcached.protocol", "udp")], "text or binary"),
            (&[("memcached.hosts", "a"), ("memcached.update", "all")], "merge or replace"),
            (&[("memcached.hosts", "a"), ("memcached.opTimeoutMillis", "x")], "milliseconds"),
            (&[("memcached.uri", "redis://a")], "memcached://"),
        ] {
            let why = bound(pairs).unwrap_err();
            assert!(why.contains(message), "{pairs:?}: {why}");
        }
        let why = bound(&[("memcached.uri", "memcached://u:hidden@a/1")]).unwrap_err();
        assert!(why.contains("no databases") && !why.contains("hidden"), "{why}");
    }
}
