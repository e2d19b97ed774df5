//! TLS and logins by certificate: FerretDB behind TLS, and a scripted server that knows its clients by X.509.

use dyno_testkit::cluster::Certificates;
use dyno_testkit::fake_mongo::{FakeCommand, cursor, error, hello, serve_tls};
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, assert_exit, await_port, free_port, outcome, phase, skip_because, stderr};
use dyno_types::bson;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn certificates(what: &str) -> Option<Certificates> {
    let made = Certificates::make();
    if made.is_none() {
        skip_because(what, "openssl is not installed");
    }
    made
}

#[test]
fn tls_holds_against_a_real_server_and_every_mismatch_is_said() {
    let Some(certificates) = certificates("MongoDB by TLS") else { return };
    let path = |name: &str| certificates.path(name).display().to_string();
    let (port, cert, key) = (free_port(), path("server.pem"), path("server.key"));
    let options = [
        format!("--listen-tls=127.0.0.1:{port}"),
        format!("--listen-tls-cert-file={cert}"),
        format!("--listen-tls-key-file={key}"),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let Some(server) = Mongo::ferretdb(&options) else {
        return skip_because("MongoDB by TLS", "FerretDB is not there (see scripts/need mongo)");
    };
    await_port(port);
    let dyno = Dyno::new();
    let run = |port: u16, query: &str| {
        let uri = format!("mongodb://127.0.0.1:{port}/t{query}");
        let _ = std::fs::remove_dir_all(dyno.path("d"));
        dyno.run(&["run", &uri, "--records", "100", "--reload", "--ops", "200", "--out", "d"])
    };
    for query in [format!("?tlsCAFile={}", path("ca.pem")), "?tls=true&tlsInsecure=true".into()] {
        dyno.assert_ran(&run(port, &query));
        assert_eq!(outcome(phase(&dyno.summary("d"), "measure"), "ok"), 200);
    }
    for (port, query, message) in [
        (port, String::new(), "does it expect TLS?"),
        (server.port, "?tls=true&tlsInsecure=true".into(), "does it speak TLS"),
        (port, format!("?tlsCAFile={}", path("other.pem")), "UnknownIssuer"),
        (port, "?tlsCAFile=/nowhere.pem".into(), "/nowhere.pem"),
    ] {
        let refused = run(port, &query);
        assert_exit(&refused, &[2, 3]);
        assert!(stderr(&refused).contains(message), "{query}: {}", stderr(&refused));
    }
}

#[test]
fn a_certificate_of_another_name_is_refused_unless_its_name_is_not_looked_at() {
    let Some(certificates) = certificates("names of certificates") else { return };
    let path = |name: &str| certificates.path(name).display().to_string();
    let (port, cert, key) = (free_port(), path("server.pem"), path("server.key"));
    // The certificate is of 127.0.0.1.
    let options = [
        format!("--listen-tls=127.0.0.2:{port}"),
        format!("--listen-tls-cert-file={cert}"),
        format!("--listen-tls-key-file={key}"),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let Some(_server) = Mongo::ferretdb(&options) else {
        return skip_because("names of certificates", "FerretDB is not there (see scripts/need mongo)");
    };
    let end = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(("127.0.0.2", port)).is_err() {
        assert!(Instant::now() < end, "nothing listens on 127.0.0.2:{port}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let dyno = Dyno::new();
    for (query, exits, message) in [
        (format!("?tlsCAFile={}", path("ca.pem")), &[2, 3][..], "not valid for name"),
        (format!("?tlsCAFile={}&tlsAllowInvalidHostnames=true", path("ca.pem")), &[0], ""),
        // A trusted authority must have signed it all the same.
        (format!("?tlsCAFile={}&tlsAllowInvalidHostnames=true", path("other.pem")), &[2, 3], "UnknownIssuer"),
    ] {
        let uri = format!("mongodb://127.0.0.2:{port}/t{query}");
        let ran = dyno.run(&["run", &uri, "--records", "20", "--ops", "50", "--no-out"]);
        assert_exit(&ran, exits);
        assert!(stderr(&ran).contains(message), "{query}: {}", stderr(&ran));
    }
}

fn configuration(certificates: &Certificates) -> Arc<rustls::ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificates.path("ca.pem")).unwrap()).unwrap();
    let clients =
        WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build().unwrap();
    let chain = vec![CertificateDer::from_pem_file(certificates.path("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(certificates.path("server.key")).unwrap();
    let builder =
        rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(builder.with_client_cert_verifier(clients).with_single_cert(chain, key).unwrap())
}

#[test]
fn a_certificate_logs_in() {
    let Some(certificates) = certificates("logins by X.509") else { return };
    let logins = Arc::new(AtomicU64::new(0));
    let count = logins.clone();
    let script = move |command: &FakeCommand, me: &str, out: &mut Vec<u8>| {
        let text = |name: &str| {
            bson::find_element(&command.document, name).and_then(|e| e.as_str().map(str::to_owned))
        };
        match command.name().as_str() {
            "hello" | "isMaster" => hello(me, &[], me, out),
            "authenticate" => {
                assert_eq!(text("mechanism").as_deref(), Some("MONGODB-X509"));
                assert_eq!(text("$db").as_deref(), Some("$external"));
                if text("user").is_some_and(|user| user != "CN=localhost") {
                    return error(18, "Authentication failed.", out);
                }
                count.fetch_add(1, Ordering::Relaxed);
                bson::put_double(out, "ok", 1.0);
            }
            "find" if count.load(Ordering::Relaxed) == 0 => error(13, "not logged in", out),
            "find" => cursor(0, "firstBatch", 1, out),
            name => error(59, &format!("no such command: {name}"), out),
        }
    };
    let tls = configuration(&certificates);
    let server = serve_tls(|me| Arc::new(move |command, out| script(command, &me, out)), tls);
    let dyno = Dyno::new();
    // Certificate and key in one file, as drivers want them.
    let both =
        ["client.pem", "client.key"].map(|name| std::fs::read(certificates.path(name)).unwrap()).concat();
    std::fs::write(dyno.path("both.pem"), both).unwrap();
    let ca = certificates.path("ca.pem").display().to_string();
    let own = dyno.path("both.pem").display().to_string();
    let run = |user: &str, query: &str| {
        let uri = format!("mongodb://{user}{server}/t?tlsCAFile={ca}{query}");
        let _ = std::fs::remove_dir_all(dyno.path("d"));
        let more = [
            "--no-load",
            "--records",
            "100",
            "--workload",
            "c",
            "--ops",
            "100",
            "--users",
            "2",
            "--out",
            "d",
        ];
        dyno.run(&[&["run", &uri][..], &more].concat())
    };
    let x509 = format!("&tlsCertificateKeyFile={own}&authMechanism=MONGODB-X509");
    for user in ["", "CN%3Dlocalhost@"] {
        logins.store(0, Ordering::Relaxed);
        dyno.assert_ran(&run(user, &x509));
        assert_eq!(outcome(phase(&dyno.summary("d"), "measure"), "ok"), 100);
        // Every connection logs in.
        assert!(logins.load(Ordering::Relaxed) >= 3);
    }
    for (user, query, message) in [
        ("CN%3Dsomebody@", x509.as_str(), "Authentication failed"),
        ("", "&authMechanism=MONGODB-X509", "tlsCertificateKeyFile"),
        ("", "", "CertificateRequired"),
    ] {
        let refused = run(user, query);
        assert_exit(&refused, &[2, 3]);
        assert!(stderr(&refused).contains(message), "{query}: {}", stderr(&refused));
    }
}
