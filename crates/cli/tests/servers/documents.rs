//! Documents and operations of one's own: `dyno sample` and `dyno run --workload FILE.yaml`.

use dyno_testkit::cluster::RedisCluster;
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, RedisProcess, assert_exit, outcome, phase, skip, skip_because, stderr, stdout};

/// The example of the documentation.
const SHOP: &str = include_str!("../../../../docs/examples/shop.yaml");

#[test]
fn a_shop_of_ones_own() {
    let Some(server) = Mongo::java() else {
        return skip_because("documents", "mongo-java-server is not there (see scripts/need mongo)");
    };
    let dyno = Dyno::new();
    std::fs::write(dyno.path("shop.yaml"), SHOP).unwrap();
    let uri = server.uri("shop");
    let run = |more: &[&str]| {
        let common =
            ["run", &uri, "--workload", "shop.yaml", "--users", "4", "--ops", "2000", "--json", "--no-out"];
        dyno.run(&[&common[..], more].concat())
    };
    // A busy host makes so short a run invalid; the counts hold none the less.
    let first = run(&[]);
    dyno.assert_ran(&first);
    let summary: serde_json::Value = serde_json::from_str(&stdout(&first)).unwrap();
    let count = |summary: &serde_json::Value, metric: &str| {
        let measured = dyno_testkit::phase(summary, "measure").clone();
        let all = measured["metrics"].as_array().unwrap().clone();
        all.iter().find(|m| m["name"] == metric).map_or(0, |m| m["service"]["count"].as_u64().unwrap())
    };
    let placed = count(&summary, "place");
    // Every operation has found what it asked for, and each kind has its share.
    assert!((295..=305).contains(&placed), "{placed}");
    assert!((795..=805).contains(&count(&summary, "customer")) && count(&summary, "turnover") > 50);
    // The documents stay, new ones get other _ids, and counts add up.
    let second = run(&[]);
    dyno.assert_ran(&second);
    assert!(stderr(&second).contains("all documents are there already"), "{}", stderr(&second));
    let third = run(&["--reload"]);
    dyno.assert_ran(&third);
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
    for (arguments, message) in [
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
        assert!(stderr(&refused).contains(message), "{arguments:?}: {}", stderr(&refused));
    }
    // The engine alone, and tables where they suffice.
    dyno.assert_ran(&dyno.run(&["run", "null:", "--workload", "shop.yaml", "--ops", "1000", "--no-out"]));
    let flat = "
collections:
  users: { count: 200, document: { name: { $string: 9 }, age: { $int: [1, 99] } }, indexes: [age] }
operations:
  one: { findOne: users, filter: { _id: { $key: users } } }
  young: { find: users, filter: { age: { $lt: 20 } }, sort: { age: 1 } }
  grow: { update: users, filter: { _id: { $key: users } }, change: { $inc: { age: 1 } } }
  add: { insert: users }
  pair:
    transaction:
      - { name: take, update: users, filter: { _id: { $key: users } }, change: { $inc: { age: -1 } } }
      - { name: note, insert: users, documents: 2 }
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
    dyno.assert_ran(&ran);
    let text = stdout(&ran);
    for metric in ["grow", "pair", "pair.take", "pair.note", "pair.commit"] {
        assert!(text.contains(metric), "{metric}: {text}");
    }
}

#[test]
fn redis_keeps_documents_by_their_id_and_refuses_the_rest() {
    let (Some(server), Some(cluster)) = (RedisProcess::start(&[]), RedisCluster::start(None)) else {
        return skip("documents in Redis");
    };
    let dyno = Dyno::new();
    let file = "
collections:
  users: { count: 900, document: { _id: { $objectId: }, name: { $string: 9 }, age: { $int: [1, 99] } } }
operations:
  one: { weight: 8, findOne: users, filter: { _id: { $key: users } } }
  add: { weight: 2, insert: users, documents: 3 }
";
    std::fs::write(dyno.path("kv.yaml"), file).unwrap();
    for uri in [server.uri(), cluster.uri("")] {
        let run = |more: &[&str]| {
            let common =
                ["run", &uri, "--workload", "kv.yaml", "--ops", "2048", "--warmup", "0", "--out", "d"];
            dyno.run(&[&common[..], more].concat())
        };
        dyno.assert_ran(&run(&[]));
        let summary = dyno.summary("d");
        assert_eq!(outcome(phase(&summary, "load"), "ok"), 1, "one insert of 900 documents");
        assert_eq!(outcome(phase(&summary, "measure"), "ok"), 2_048);
        std::fs::remove_dir_all(dyno.path("d")).unwrap();
        // The same documents once more: all of them are there, and so are those of the run.
        let again = run(&[]);
        assert_exit(&again, &[5]);
        let summary = dyno.summary("d");
        assert_eq!(outcome(phase(&summary, "load"), "duplicate"), 1);
        let measured = phase(&summary, "measure");
        assert!(outcome(measured, "duplicate") >= 400 && outcome(measured, "ok") >= 1_600, "{measured}");
        std::fs::remove_dir_all(dyno.path("d")).unwrap();
    }
    let poc = dyno.run(&["pocdriver", "-c", &server.uri(), "-d", "1", "-t", "2", "-k", "20", "-b", "16"]);
    // Replies are handled late on a busy host.
    dyno.assert_ran(&poc);
    assert!(stdout(&poc).contains("keyqueries per second on average"), "{}", stdout(&poc));
    let uri = server.uri();
    for (arguments, message) in [
        (&["pocdriver", "-c", &uri, "-u", "5"][..], "cannot do \"update\" (changes of single fields)"),
        (&["pocdriver", "-c", &uri, "-r", "5"], "(searches of a range or a list)"),
        (&["sysbench-mongodb", "--target", &uri], "(single fields of a document)"),
    ] {
        let refused = dyno.run(arguments);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(message), "{arguments:?}: {}", stderr(&refused));
    }
}
