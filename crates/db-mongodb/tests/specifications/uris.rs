//! Connection strings and their options (suites `connection-string` and `uri-options`).

use crate::harness::{Checked, Suite, expect};
use dyno_db_mongodb::protocol::{Auth, MongoOptions};
use dyno_types::address::{Address, Tls};
use serde_json::{Value, json};

#[test]
fn connection_strings() {
    Suite::named("connection-string").run();
}

#[test]
fn uri_options() {
    Suite::named("uri-options").run();
}

/// A URI is read as expected or refused.
pub fn check(case: &Value, _data: &Value) -> Checked {
    let uri = case["uri"].as_str().unwrap();
    let options = match (MongoOptions::from_uri(uri), case["valid"].as_bool().unwrap()) {
        (Ok(options), true) => options,
        (Err(_), false) => return Ok(()),
        (Ok(_), false) => return expect(false, || "is accepted".into()),
        (Err(why), true) => return expect(false, || why.to_string()),
    };
    check_hosts(&options, &case["hosts"])?;
    check_login(&options, &case["login"])?;
    check_options(&options, &case["options"])
}

fn check_hosts(options: &MongoOptions, expected: &Value) -> Checked {
    let Some(expected) = expected.as_array() else { return Ok(()) };
    let address = |host: &Value| match (host[0].as_bool().unwrap(), host[1].as_str().unwrap()) {
        (true, path) => Address::Unix(path.into()),
        (false, name) => Address::Tcp(name.into(), host[2].as_u64().unwrap_or(27017) as u16),
    };
    let expected: Vec<Address> = expected.iter().map(address).collect();
    expect(options.addresses == expected, || format!("hosts: {:?}, not {expected:?}", options.addresses))
}

/// User, password and database, as far as they are given.
pub fn check_login(options: &MongoOptions, expected: &Value) -> Checked {
    let found = json!({
        "username": user(options),
        "password": password(options),
        "db": options.database,
    });
    for (name, value) in expected.as_object().into_iter().flatten() {
        expect(found[name] == *value, || format!("{name}: {}, not {value}", found[name]))?;
    }
    Ok(())
}

/// User who logs in.
pub fn user(options: &MongoOptions) -> Option<&str> {
    match options.auth.as_ref()? {
        Auth::Scram { user, .. } | Auth::Plain { user, .. } => Some(user),
        Auth::X509 { user } => user.as_deref(),
    }
}

/// The user's password.
pub fn password(options: &MongoOptions) -> Option<&str> {
    match options.auth.as_ref()? {
        Auth::Scram { password, .. } | Auth::Plain { password, .. } => Some(password),
        Auth::X509 { .. } => None,
    }
}

/// Name of the mechanism, if the URI names one.
pub fn mechanism(options: &MongoOptions) -> Option<&'static str> {
    match options.auth.as_ref()? {
        Auth::Scram { mechanism, .. } => mechanism.map(|mechanism| mechanism.name()),
        Auth::Plain { .. } => Some("PLAIN"),
        Auth::X509 { .. } => Some("MONGODB-X509"),
    }
}

/// Options, as far as they are given; null stands for one that must not be set.
pub fn check_options(options: &MongoOptions, expected: &Value) -> Checked {
    for (name, value) in expected.as_object().into_iter().flatten() {
        // Options without effect have been read; their values are not kept.
        if options.unused.iter().any(|unused| unused.eq_ignore_ascii_case(name)) {
            continue;
        }
        let found = option(options, &name.to_ascii_lowercase());
        expect(found == *value, || format!("{name}: {found}, not {value}"))?;
    }
    Ok(())
}

/// Value of an option, whose name is in lower case.
fn option(options: &MongoOptions, name: &str) -> Value {
    let tls = |of: fn(&Tls) -> Value| options.tls.as_ref().map_or(Value::Null, of);
    let concern = &options.write_concern;
    let selection = &options.selection;
    match name {
        "appname" => json!(options.app_name),
        "authmechanism" => json!(mechanism(options)),
        "authsource" => json!(options.auth_source),
        "compressors" => {
            json!(options.compressors.iter().map(|one| format!("{one:?}").to_lowercase()).collect::<Vec<_>>())
        }
        "connecttimeoutms" => json!(options.connect_timeout_ms),
        "directconnection" => json!(options.direct),
        "enableoverloadretargeting" => json!(options.overload_retargeting),
        "heartbeatfrequencyms" => json!(selection.heartbeat_ms),
        "journal" => json!(concern.journal),
        "loadbalanced" => json!(options.load_balanced),
        "localthresholdms" => json!(selection.threshold_ms),
        "maxadaptiveretries" => json!(options.max_adaptive_retries),
        "maxstalenessseconds" => json!(selection.staleness_s),
        "readconcernlevel" => json!(options.read_concern),
        "readpreference" => json!(options.read_preference.name()),
        "readpreferencetags" => {
            let set = |tags: &Vec<(String, String)>| {
                tags.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Value>()
            };
            selection.tags.iter().map(set).collect()
        }
        "replicaset" => json!(options.replica_set),
        "retrywrites" => json!(options.retry_writes),
        "serverselectiontimeoutms" => json!(selection.patience_ms),
        "srvmaxhosts" => json!(options.srv.as_ref().map(|srv| srv.max_hosts)),
        "srvservicename" => json!(options.srv.as_ref().map(|srv| &srv.service)),
        "tls" | "ssl" => json!(options.tls.is_some()),
        "tlsinsecure" | "tlsallowinvalidcertificates" => tls(|tls| json!(tls.insecure)),
        "tlsallowinvalidhostnames" => tls(|tls| json!(tls.any_name)),
        "tlscafile" => tls(|tls| json!(tls.ca)),
        "tlscertificatekeyfile" => tls(|tls| json!(tls.cert)),
        "w" => match concern.w.as_deref().map(|w| (w, w.parse::<i32>())) {
            Some((_, Ok(members))) => json!(members),
            w => json!(w.map(|(tag, _)| tag)),
        },
        "wtimeoutms" => json!(concern.timeout_ms),
        "zlibcompressionlevel" => json!(options.zlib_level),
        other => json!(format!("{other} is not known")),
    }
}
