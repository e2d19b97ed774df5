//! What is refused when a store is opened, and in which words.

use crate::content::Sample;
use dyno_db_embedded::KINDS;
use std::path::Path;

fn refusal(uri: &str) -> String {
    refusal_of(uri, Sample::new())
}

fn refusal_of(uri: &str, sample: Sample) -> String {
    match dyno_db_embedded::open(uri, sample.arc()) {
        Ok(store) => panic!("{uri} was opened: {}", store.engine()),
        Err(error) => error.to_string(),
    }
}

fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[test]
fn unknown_stores() {
    has(&refusal("sqlit:x"), &["\"sqlit\"", "did you mean \"sqlite\"?", "redb:PATH", "fjall:PATH", "null:"]);
    has(&refusal("x.db"), &["expected SCHEME:PATH"]);
}

#[test]
fn stores_that_this_build_does_not_have_are_known() {
    for kind in KINDS.iter().filter(|kind| !kind.built) {
        let message = format!("build with --features {} (lib{}-dev)", kind.scheme, kind.scheme);
        has(&refusal(&format!("{}:/tmp/x", kind.scheme)), &["this build has no", &message]);
    }
}

#[test]
fn unknown_options_name_the_accepted_ones() {
    has(
        &refusal("sqlite:/tmp/x?jurnal=wal"),
        &[
            "\"jurnal\"",
            "did you mean \"journal\"?",
            "journal=wal|delete|memory|off",
            "synchronous=full|",
            "busy_timeout=",
        ],
    );
    has(&refusal("redb:/tmp/x?journal=wal"), &["\"journal\"", "durability=immediate|none", "cache=SIZE"]);
    has(&refusal("fjall:/tmp/x?durabilty=none"), &["did you mean \"durability\"?", "fsync|fdatasync|none"]);
    has(&refusal("null:?x=y"), &["it accepts none"]);
}

#[test]
fn unaccepted_values_name_the_accepted_ones() {
    has(
        &refusal("sqlite:/tmp/x?journal=wall"),
        &["journal=wall", "did you mean \"wal\"?", "wal|delete|memory|off"],
    );
    has(&refusal("sqlite:/tmp/x?synchronous=2"), &["accepted: synchronous=full|extra|normal|off"]);
    has(&refusal("sqlite:/tmp/x?cache=lots"), &["cache=lots", "64MiB"]);
    has(&refusal("sqlite:/tmp/x?busy_timeout=1us"), &["whole milliseconds"]);
    has(&refusal("sqlite:/tmp/x?busy_timeout=90d"), &["500ms"]);
    has(&refusal("sqlite:/tmp/x?busy_timeout=9999h"), &["2147483647"]);
    has(&refusal("redb:/tmp/x?durability=eventual"), &["immediate|none"]);
    has(&refusal("redb:/tmp/x?insert=maybe"), &["replace|fail"]);
    has(&refusal("basic:?verbose=yes"), &["true|false"]);
    has(&refusal("sqlite:/tmp/x?journal=wal&journal=wal"), &["twice"]);
}

#[test]
fn paths_that_cannot_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().to_str().unwrap();
    std::fs::write(format!("{at}/file"), "this is no database, but a text that is longer than a header")
        .unwrap();
    for scheme in ["sqlite", "redb", "fjall"] {
        has(&refusal(&format!("{scheme}:")), &["no path given", &format!("{scheme}:PATH")]);
        has(&refusal(&format!("{scheme}:{at}/none/x")), &["there is no directory", "/none"]);
        has(&refusal(&format!("{scheme}:{at}/file/x")), &["there is no directory", "/file"]);
        has(&refusal(&format!("{scheme}:{at}/file")), &[&format!("{at}/file")]);
        has(&refusal(&format!("{scheme}:/proc/dyno")), &["cannot open /proc/dyno"]);
        has(
            &refusal_of(&format!("{scheme}:{at}/x"), Sample { table: String::new(), ..Sample::new() }),
            &["no name"],
        );
    }
    for scheme in ["sqlite", "redb"] {
        has(&refusal(&format!("{scheme}:{at}")), &["cannot open", "directory"]);
    }
    for scheme in ["redb", "fjall"] {
        let _open = dyno_db_embedded::open(&format!("{scheme}:{at}/{scheme}"), Sample::new().arc()).unwrap();
        has(&refusal(&format!("{scheme}:{at}/{scheme}")), &["cannot open"]);
    }
    has(&refusal("sqlite::memory:"), &[":memory:", "/dev/shm"]);
    has(&refusal("null:x"), &["takes no path"]);
}

#[test]
fn paths_are_decoded() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().to_str().unwrap();
    drop(dyno_db_embedded::open(&format!("sqlite:{at}/a%20b%3F%23.db"), Sample::new().arc()).unwrap());
    assert!(directory.path().join("a b?#.db").is_file());
    // SQLite would take this for a URI of its own.
    drop(dyno_db_embedded::open(&format!("sqlite:{at}/file%3Ax"), Sample::new().arc()).unwrap());
    assert!(directory.path().join("file:x").is_file());
}

#[test]
fn nothing_is_created_when_an_option_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().to_str().unwrap();
    for scheme in ["sqlite", "redb", "fjall"] {
        refusal(&format!("{scheme}:{at}/x?cache=many"));
        assert!(!Path::new(at).join("x").exists(), "{scheme}");
    }
}

#[test]
fn defaults_and_values_told_are_accepted() {
    for kind in KINDS.iter().filter(|kind| kind.built) {
        for option in kind.options {
            let first = option.values.split([' ', '|']).next().unwrap();
            for value in option.values.split(" (").next().unwrap().split('|') {
                let value = match first {
                    "SIZE" => "64MiB",
                    "DURATION" => "5s",
                    _ => value,
                };
                let directory = tempfile::tempdir().unwrap();
                let path = if kind.form.ends_with("PATH") { directory.path().join("x") } else { "".into() };
                let uri = format!("{}:{}?{}={value}", kind.scheme, path.display(), option.name);
                let store = dyno_db_embedded::open(&uri, Sample::new().arc());
                assert!(store.is_ok(), "{uri}: {}", store.err().unwrap());
            }
        }
    }
}

#[test]
fn what_a_uri_says_is_checked_without_touching_anything() {
    for uri in [
        "sqlit:x",
        "sqlite:",
        "sqlite:/no/such/x?jurnal=wal",
        "sqlite:/no/such/x?journal=wall",
        "sqlite:/no/such/x?cache=2PiB",
        "sqlite::memory:",
        "redb:/no/such/x?durability=maybe",
        "redb:/no/such/x?insert=perhaps",
        "fjall:/no/such/x?cache=much",
        "basic:x",
        "basic:?simulatedelay=soon",
        "null:?x=y",
        "x.db",
    ] {
        let found = dyno_db_embedded::check(uri).expect_err(uri).to_string();
        assert_eq!(found, refusal(uri), "{uri}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    for kind in KINDS.iter().filter(|kind| !["basic", "null"].contains(&kind.scheme)) {
        // Whether its folder is there is not asked.
        for path in [path.display().to_string(), "/no/such/x".into()] {
            dyno_db_embedded::check(&format!("{}:{path}?insert=fail", kind.scheme)).unwrap();
        }
    }
    dyno_db_embedded::check("null:").unwrap();
    dyno_db_embedded::check("basic:?verbose=false").unwrap();
    assert!(!path.exists());
}
