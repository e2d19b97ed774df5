//! Documents and operations of one's own: `dyno sample` and `dyno run --workload FILE.yaml`.

mod common;

use common::mongo::Mongo;
use common::{Dyno, assert_exit, skip_because, stderr, stdout};

/// The example of the documentation.
const SHOP: &str = include_str!("../../../docs/examples/shop.yaml");

#[test]
fn a_shop_of_ones_own() {
    let Some(server) = Mongo::java() else {
        return skip_because("documents", "mongo-java-server is not there (see scripts/need-mongo.sh)");
    };
    let dyno = Dyno::new();
    std::fs::write(dyno.path("shop.yaml"), SHOP).unwrap();
    let uri = server.uri("shop");
    let run = |more: &[&str]| {
        let common =
            ["run", &uri, "--workload", "shop.yaml", "--users", "4", "--ops", "2000", "--json", "--no-out"];
        dyno.run(&[&common[..], more].concat())
    };
    let first = run(&[]);
    assert_exit(&first, &[0]);
    let summary: serde_json::Value = serde_json::from_str(&stdout(&first)).unwrap();
    let count = |summary: &serde_json::Value, metric: &str| {
        let measured = common::phase(summary, "measure").clone();
        let all = measured["metrics"].as_array().unwrap().clone();
        all.iter().find(|m| m["name"] == metric).map_or(0, |m| m["service"]["count"].as_u64().unwrap())
    };
    let placed = count(&summary, "place");
    // Every operation has found what it asked for, and each kind has its share.
    assert!((295..=305).contains(&placed), "{placed}");
    assert!((795..=805).contains(&count(&summary, "customer")) && count(&summary, "turnover") > 50);
    // The documents stay, new ones get other _ids, and counts add up.
    let second = run(&[]);
    assert_exit(&second, &[0]);
    assert!(stderr(&second).contains("all documents are there already"), "{}", stderr(&second));
    let third = run(&["--reload"]);
    assert_exit(&third, &[0]);
    // Some of the documents are gone: dyno does not guess.
    let other = SHOP.replace("count: 300", "count: 9000");
    std::fs::write(dyno.path("shop.yaml"), other).unwrap();
    let refused = run(&[]);
    assert_exit(&refused, &[2]);
    assert!(
        stderr(&refused).contains("customers holds 300 documents, not 9000: --reload"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn samples_and_refusals_send_nothing() {
    let dyno = Dyno::new();
    std::fs::write(dyno.path("shop.yaml"), SHOP).unwrap();
    let sample = dyno.run(&["sample", "shop.yaml", "-n", "2"]);
    assert_exit(&sample, &[0]);
    let text = stdout(&sample);
    assert!(text.starts_with("# customers\n{\n  \"_id\": 0,\n  \"name\": \""), "{text}");
    assert!(text.contains("700 documents of ") && text.contains("\"$oid\""), "{text}");
    assert_eq!(text, stdout(&dyno.run(&["sample", "shop.yaml", "-n", "2"])), "the same documents each time");
    std::fs::write(dyno.path("bad.yaml"), SHOP.replace("weight: 40", "wieght: 40")).unwrap();
    for (arguments, words) in [
        (&["sample", "bad.yaml"][..], "unknown key \"wieght\"; did you mean weight?"),
        (&["run", "null:", "--workload", "bad.yaml"], "bad.yaml:"),
        (&["run", "null:", "--workload", "none.yaml"], "none.yaml"),
        (&["run", "null:", "--workload", "shop.yaml", "--records", "5"], "--records"),
        (
            &["run", "sqlite:a.db", "--workload", "shop.yaml"],
            "sqlite: \"bump\" cannot be done: find-and-modify",
        ),
    ] {
        let refused = dyno.run(arguments);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(words), "{arguments:?}: {}", stderr(&refused));
    }
    // The engine alone, and tables where they suffice.
    assert_exit(&dyno.run(&["run", "null:", "--workload", "shop.yaml", "--ops", "1000", "--no-out"]), &[0]);
    let flat = "
collections:
  users: { count: 200, document: { name: { $string: 9 }, age: { $int: [1, 99] } }, indexes: [age] }
operations:
  one: { findOne: users, filter: { _id: { $key: users } } }
  young: { find: users, filter: { age: { $lt: 20 } }, sort: { age: 1 } }
  grow: { update: users, filter: { _id: { $key: users } }, change: { $inc: { age: 1 } } }
  add: { insert: users }
";
    std::fs::write(dyno.path("flat.yaml"), flat).unwrap();
    let ran = dyno.run(&[
        "run",
        "sqlite:b.db",
        "--workload",
        "flat.yaml",
        "--ops",
        "1000",
        "--no-out",
        "--users",
        "2",
    ]);
    assert_exit(&ran, &[0]);
    assert!(stdout(&ran).contains("grow"), "{}", stdout(&ran));
}
