//! What a URI may say, and in which words it is refused.

use super::*;

fn refused(uri: &str) -> String {
    MongoOptions::from_uri(uri).unwrap_err().to_string()
}

#[test]
fn a_whole_uri() {
    let uri = "mongodb://us%40er:p%3Ass@a:1,[::1]:2,c/db?replicaSet=rs0&w=majority&journal=true&readPreference=\
               secondaryPreferred&compressors=zstd,snappy&tlsCAFile=/ca.pem&maxPoolSize=7&authSource=users";
    let options = MongoOptions::from_uri(uri).unwrap();
    let tcp = |host: &str, port| Address::Tcp(host.into(), port);
    assert_eq!(options.addresses, [tcp("a", 1), tcp("::1", 2), tcp("c", 27017)]);
    let auth = Auth::Scram { mechanism: None, user: "us@er".into(), password: "p:ss".into() };
    assert_eq!(options.auth, Some(auth));
    assert_eq!((options.database.as_str(), options.auth_source.as_str()), ("db", "users"));
    assert_eq!(options.write_concern.w.as_deref(), Some("majority"));
    assert_eq!(options.read_preference, ReadPreference::SecondaryPreferred);
    assert_eq!(options.compressors, [Compressor::Zstd, Compressor::Snappy]);
    assert_eq!(options.unused, ["maxPoolSize"]);
    assert!(options.tls.is_some());
    assert_eq!(options.redacted(), "mongodb://us@er:***@a:1,[::1]:2,c:27017/db");
}

#[test]
fn defaults() {
    let options = MongoOptions::from_uri("mongodb://localhost").unwrap();
    assert_eq!(options, MongoOptions::default());
    let with_login = MongoOptions::from_uri("mongodb://u:p@h/x").unwrap();
    assert_eq!(with_login.auth_source, "x");
    assert_eq!(MongoOptions::from_uri("mongodb://u:p@h").unwrap().auth_source, "admin");
}

#[test]
fn refusals_name_option_and_accepted_values_and_no_password() {
    for (uri, message) in [
        ("mongodb+srv://h:1", "no port"),
        ("mongodb://h:0", "1 to 65535"),
        ("mongodb://", "missing"),
        ("mongodb://u@h", "no password"),
        ("mongodb://h/?w=0", "use w=1"),
        ("mongodb://h/?readPreference=best", "nearest"),
        ("mongodb://h/?colour=red", "unknown option"),
        ("mongodb://h/?tls=maybe", "true or false"),
        ("mongodb://h/a.b", "63 bytes"),
        ("mongodb://h/?authMechanism=GSSAPI", "MONGODB-X509"),
        ("mongodb://h/?authMechanism=GSSAPI", "--features gssapi"),
        ("mongodb://h/?authMechanism=MONGODB-AWS&authMechanismProperties=A:b", "--features aws"),
        ("mongodb://h/?authMechanism=MONGODB-OIDC", "--features official"),
        ("mongodb://u:p@h/?authMechanismProperties=A:b", "option authMechanismProperties"),
        ("mongodb://h/?authMechanism=MONGODB-X509", "tlsCertificateKeyFile"),
        ("mongodb://a,b/?directConnection=true", "one host"),
        ("mongodb://h/?compressors=lz4", "zstd"),
    ] {
        assert!(refused(uri).contains(message), "{uri}: {}", refused(uri));
    }
    assert!(!refused("mongodb://u:sec%ret@h").contains("sec"));
    for uri in ["u:sec/ret@h/db", "u:sec?ret@h/", "u:1/sec@h", "u:1?sec@h/"] {
        let message = refused(&format!("mongodb://{uri}"));
        assert!(message.contains("%2F") && !message.contains("sec"), "{uri}: {message}");
    }
    assert!(MongoOptions::from_uri("mongodb://h/?appName=a@b").is_ok());
    assert!(refused("mongodb://h/?proxyHost=p").contains("ssh -L"));
    assert!(refused("mongodb://h/?srvMaxHosts=1").contains("mongodb+srv:// alone"));
    let names = MongoOptions::from_uri("mongodb://h/?tlsAllowInvalidHostnames=true").unwrap();
    assert!(names.tls.is_some_and(|tls| tls.any_name && !tls.insecure));
    let old = |uri: &str| MongoOptions::from_uri(uri).unwrap().tls.map(|tls| tls.any_name);
    assert_eq!(old("mongodb://h/?sslInvalidHostNameAllowed=true"), None);
    assert_eq!(old("mongodb://h/?sslInvalidHostNameAllowed=true&ssl=true"), Some(true));
}

#[test]
fn the_login_is_complete_or_refused() {
    for (uri, message) in [
        ("mongodb://@h", "no user before the @"),
        ("mongodb://:secret@h", "no user before the @"),
        ("mongodb://a:b:secret@h", "%3A"),
        ("mongodb://a@b:secret@h", "%40"),
        ("mongodb://a@@h", "%40"),
        ("mongodb://h/?authMechanism=PLAIN", "no user to log in"),
        ("mongodb://u:sec%00ret@h/?authMechanism=PLAIN", "byte 0"),
        ("mongodb://u:secret@h/?authMechanism=MONGODB-X509", "leave the password out"),
        ("mongodb://h/?authMechanism=MONGODB-X509&tlsCertificateKeyFile=c&authSource=d", "$external"),
        ("mongodb://u:secret@h/?authSource=", "option authSource: the value"),
    ] {
        let why = refused(uri);
        assert!(why.contains(message) && !why.contains("secret"), "{uri}: {why}");
    }
    let plain = MongoOptions::from_uri("mongodb://u:p@h/?authMechanism=PLAIN").unwrap();
    assert_eq!(plain.auth, Some(Auth::Plain { user: "u".into(), password: "p".into() }));
    assert_eq!(
        (plain.auth_source.as_str(), plain.redacted().as_str()),
        ("$external", "mongodb://u:***@h:27017/ycsb")
    );
    let empty = MongoOptions::from_uri("mongodb://u:@h").unwrap();
    let scram = Auth::Scram { mechanism: None, user: "u".into(), password: String::new() };
    assert_eq!(empty.auth, Some(scram));
    let own = "mongodb://CN%3Dme@h/d?authMechanism=MONGODB-X509&tlsCertificateKeyFile=c";
    let own = MongoOptions::from_uri(own).unwrap();
    assert_eq!(
        (own.auth, own.auth_source.as_str()),
        (Some(Auth::X509 { user: Some("CN=me".into()) }), "$external")
    );
}

#[test]
fn hosts_ports_and_sockets() {
    let read =
        |hosts: &str| MongoOptions::from_uri(&format!("mongodb://{hosts}/")).map(|options| options.addresses);
    let tcp = |host: &str| Address::Tcp(host.into(), 27017);
    assert_eq!(read("h%2Dx,[fe80::1%25eth0]").unwrap(), [tcp("h-x"), tcp("fe80::1%eth0")]);
    assert_eq!(read("%2Ftmp%2Fm.sock,m.sock").unwrap(), [Address::Unix("/tmp/m.sock".into()), tcp("m.sock")]);
    for (hosts, message) in [
        ("h:", "1 to 65535"),
        ("h:+1", "1 to 65535"),
        ("h:65536", "1 to 65535"),
        ("a,,b", "missing"),
        ("a,", "missing"),
        (":27017", "missing"),
        ("[::1", "no ]"),
        ("[::1]x", "nothing after the ]"),
        ("[h]", "IPv6"),
        ("[::1%25]", "IPv6"),
        ("::1", "1 to 65535"),
        ("%2Ftmp%2Fm", ".sock"),
        ("%2Ftmp%2Fm.sock:1", "no port"),
        ("a%20b", "spaces"),
        ("a%zz", "two hex digits"),
    ] {
        let why = read(hosts).unwrap_err().to_string();
        assert!(why.contains(message), "{hosts}: {why}");
    }
}

#[test]
fn options_stand_once_and_have_a_value() {
    for (query, message) in [
        ("w=1&w=1", "option w: stands twice"),
        ("j=true&journal=false", "option journal: stands twice in the URI, before as j;"),
        ("wtimeout=5&wTimeoutMS=10", "before as wtimeout"),
        ("w", "option \"w\" has no value"),
        ("appName=", "option appName: the value behind the = is missing"),
        ("retyWrites=true", "did you mean retryWrites?"),
        ("w=-2", "w=-2: expected a number of members"),
        ("w=2147483648", "expected a number of members"),
        ("wTimeoutMS=-1", "milliseconds, 0 to"),
        ("wTimeoutMS=9223372036854775808", "milliseconds, 0 to"),
        ("maxPoolSize=-1", "option maxPoolSize=-1: expected a number, 0 to"),
        ("maxConnecting=0", "a number, 1 to"),
        ("serverMonitoringMode=push", "auto, poll, stream"),
        ("uuidRepresentation=x", "standard"),
        ("maxAdaptiveRetries=-1", "0 to"),
        ("apiVersion=2", "option apiVersion=2: expected 1"),
        ("apiStrict=true", "option apiStrict: needs apiVersion=1"),
        ("loadBalanced=true&replicaSet=rs", "not together with replicaSet"),
        ("loadBalanced=true&directConnection=true", "give one"),
        ("safe=false", "use w=1"),
        ("proxyPassword=secret", "option proxyPassword: dyno has no proxies"),
    ] {
        let why = refused(&format!("mongodb://h/?{query}"));
        assert!(why.contains(message) && !why.contains("secret"), "{query}: {why}");
    }
    assert!(refused("mongodb://a,b/?loadBalanced=true").contains("there are 2"));
    let read = |query: &str| MongoOptions::from_uri(&format!("mongodb://h/?{query}")).unwrap();
    assert_eq!(read("&w=2&safe=true&").write_concern.w.as_deref(), Some("2"));
    let all = read(
        "apiVersion=1&apiStrict=true&connectTimeoutMS=0&maxAdaptiveRetries=0&enableOverloadRetargeting=true&\
         loadBalanced=true",
    );
    let api = ServerApi { version: "1".into(), strict: Some(true), deprecation_errors: None };
    assert_eq!((all.server_api, all.connect_timeout_ms, all.max_adaptive_retries), (Some(api), 0, 0));
    assert!(all.load_balanced && all.overload_retargeting);
}

#[test]
fn tls_is_on_or_off_whatever_the_order_of_the_options() {
    let tls = |query: &str| MongoOptions::from_uri(&format!("mongodb://h/?{query}")).unwrap().tls;
    assert!(tls("tls=true&ssl=true").is_some() && tls("tls=false&tls=false").is_none());
    assert!(tls("tlsCAFile=c").is_some() && tls("tlsInsecure=false").is_none());
    assert!(tls("tls=false&tlsInsecure=false").is_none());
    for query in ["tls=false&tlsCAFile=c", "tlsCAFile=c&tls=false"] {
        let why = refused(&format!("mongodb://h/?{query}"));
        assert_eq!(why, "option tls=false: expected true beside tlsCAFile");
    }
    let why = refused("mongodb://h/?tls=true&SSL=false");
    assert_eq!(why, "options tls=true and SSL=false contradict each other: give tls alone");
    let why = refused("mongodb://h/?tlsAllowInvalidHostnames=false&tlsInsecure=false");
    assert_eq!(
        why,
        "options tlsInsecure and tlsAllowInvalidHostnames must not stand together, whatever their values: give one"
    );
}

/// The page names the same options.
#[test]
fn the_documentation_has_the_same_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mongodb.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |begins: &str| {
        let line =
            page.lines().find(|line| line.starts_with(begins)).unwrap_or_else(|| panic!("no row {begins}"));
        let mut names: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        names.sort_unstable();
        names
    };
    let sorted = |mut names: Vec<&'static str>| {
        names.sort_unstable();
        names
    };
    assert_eq!(row("| takes |"), sorted(TAKEN.to_vec()));
    assert_eq!(row("| ignores, with a note |"), sorted(UNUSED.iter().map(|(name, _)| *name).collect()));
    let refused = row("| refuses |");
    assert!(REFUSED.iter().all(|(name, _)| refused.contains(name)), "{refused:?}");
}
