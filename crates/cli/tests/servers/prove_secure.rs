//! An ingest proof on servers that admit only a named user, by TLS alone.

use dyno_testkit::cluster::{Certificates, ClusterProcess, PASSWORD, USER, launch};
use dyno_testkit::{Dyno, assert_exit, free_port, skip, stderr};
use serde_json::Value;
use std::time::{Duration, Instant};

/// A primary, or a replica of one that listens on a port.
fn server(dyno: &Dyno, certificates: &Certificates, of: Option<u16>) -> Option<(u16, ClusterProcess)> {
    let port = free_port();
    let folder = dyno.path(&format!("server-{port}"));
    std::fs::create_dir(&folder).unwrap();
    let follows = of.map_or(String::new(), |primary| format!("replicaof 127.0.0.1 {primary}\n"));
    let configuration = format!(
        "bind 127.0.0.1\n{}tls-replication yes\nmasteruser {USER}\nmasterauth {PASSWORD}\nsave \"\"\nrepl-diskless-sync-delay \
         0\ndir {}\nuser {USER} on >{PASSWORD} ~* &* +@all\nuser default off\n{follows}",
        certificates.settings(port, "optional"),
        folder.display()
    );
    let mut process = launch(&folder, &configuration)?;
    assert!(process.listens(port), "a Redis with TLS does not start");
    Some((port, process))
}

#[test]
fn two_copies_by_tls_for_a_user() {
    let what = "an ingest proof by TLS";
    let Some(certificates) = Certificates::make() else { return skip(what) };
    let dyno = Dyno::new();
    let Some((primary, _own)) = server(&dyno, &certificates, None) else { return skip(what) };
    let Some((_, _copy)) = server(&dyno, &certificates, Some(primary)) else { return skip(what) };
    let ca = certificates.path("ca.pem").display().to_string();
    let prove = |login: &str, options: &str, out: &str| {
        let uri = format!("rediss://{login}@127.0.0.1:{primary}?{options}");
        dyno.run(&[
            "prove",
            "ingest",
            &uri,
            "-n",
            "2000",
            "--require-rate",
            "1",
            "--least",
            "0s",
            "--quiet",
            "--out",
            out,
        ])
    };
    let (login, trusted) = (format!("{USER}:{PASSWORD}"), format!("ca={ca}"));
    // The replica needs a moment to come online.
    let end = Instant::now() + Duration::from_secs(30);
    let met = loop {
        let output = prove(&login, &trusted, "met");
        if output.status.code() == Some(0) || Instant::now() > end {
            break output;
        }
        assert!(stderr(&output).contains("replicas online"), "{}", stderr(&output));
        std::thread::sleep(Duration::from_millis(200));
    };
    assert_exit(&met, &[0]);
    let certificate = std::fs::read_to_string(dyno.path("met/proof.json")).unwrap();
    let found: Value = serde_json::from_str(&certificate).unwrap();
    assert_eq!((&found["met"], &found["figures"]["acknowledged"]), (&true.into(), &2_000.into()), "{found}");
    assert_eq!(found["copies"].as_array().unwrap().len(), 2, "{found}");
    assert!(
        !certificate.contains(PASSWORD) && found["target"].as_str().unwrap().contains(USER),
        "{}",
        found["target"]
    );
    for (login, options, word) in [
        (login.as_str(), format!("ca={}", certificates.path("other.pem").display()), "certificate"),
        (login.as_str(), String::new(), "certificate"),
        (&format!("{USER}:wrong"), trusted.clone(), "WRONGPASS"),
        ("default:x", trusted, "WRONGPASS"),
    ] {
        let output = prove(login, &options, "not");
        assert!(
            !output.status.success() && stderr(&output).contains(word),
            "{login} {options}: {}",
            stderr(&output)
        );
    }
}
