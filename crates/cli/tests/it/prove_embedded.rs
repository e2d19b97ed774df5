//! Proofs on embedded stores: the process that writes is killed, and what it had called written must be there.

use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
use serde_json::Value;

fn proof(dyno: &Dyno, uri: &str, out: &str) -> (Option<i32>, Value) {
    let words = [
        "--batch",
        "20",
        "--record-bytes",
        "100",
        "--indexes",
        "1",
        "--require-rate",
        "1",
        "--least",
        "0s",
        "--quiet",
    ];
    let output = dyno.run(&[&["prove", "ingest", uri, "-n", "6000", "--out", out][..], &words].concat());
    let path = dyno.path(out).join("proof.json");
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{e}: {}{}", stdout(&output), stderr(&output)));
    (output.status.code(), serde_json::from_slice(&text).unwrap())
}

#[test]
fn nothing_is_lost_when_the_writer_is_killed() {
    // Writers of SQLite that give up at once when another one writes send their batch again.
    for uri in ["sqlite:a.db", "sqlite:a.db?busy_timeout=0s", "redb:a.redb", "fjall:a.fjall"] {
        let dyno = Dyno::new();
        let (code, found) = proof(&dyno, uri, "p");
        assert_eq!(code, Some(0), "{found}");
        let copy = &found["copies"][0];
        assert_eq!((&copy["missing"], &copy["wrong"]), (&0.into(), &0.into()), "{found}");
        let (acknowledged, doubtful) = (
            found["figures"]["acknowledged"].as_u64().unwrap(),
            found["figures"]["indeterminate"].as_u64().unwrap(),
        );
        assert_eq!(acknowledged + doubtful, 6_000, "{found}");
        let kills = found["kills"].as_array().unwrap();
        assert_eq!(kills.len(), 3, "{found}");
        // After a kill with nothing left to be written, no writer came back.
        assert!(kills.iter().all(|kill| kill["back_s"].as_f64().is_none_or(|back| back > 0.0)), "{found}");
        let page = std::fs::read_to_string(dyno.path("p").join("proof.html")).unwrap();
        assert!(page.contains("CLAIM MET") && page.contains("loss of power"));
    }
}

/// A store that calls written what it has not written loses it: the proof can fail.
#[test]
fn what_is_not_durable_is_lost() {
    let dyno = Dyno::new();
    let (code, found) = proof(&dyno, "redb:a.redb?durability=none", "p");
    assert_eq!(code, Some(4), "{found}");
    assert!(found["copies"][0]["missing"].as_u64().unwrap() > 0, "{found}");
}

#[test]
fn what_a_store_cannot_have_is_refused() {
    let dyno = Dyno::new();
    for more in [&["--copies", "2"][..], &["--durable"], &["--duration", "never"]] {
        let output = dyno.run(&[&["prove", "ingest", "sqlite:a.db", "--out", "p"][..], more].concat());
        assert_exit(&output, &[2]);
    }
    let output = dyno.run(&["prove", "ingest", "null:", "--out", "p"]);
    assert_exit(&output, &[2]);
    let output = dyno.run(&["prove", "ingest", "sqlite:no/such/folder/a.db", "-n", "10", "--out", "p"]);
    assert_exit(&output, &[2]);
    assert!(stderr(&output).contains("there is no directory"), "{}", stderr(&output));
}
