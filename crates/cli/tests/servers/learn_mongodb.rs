//! `dyno learn` of MongoDB's traffic: what a server counts of the learned workload is what was recorded.

use crate::mongod_failover::admin;
use crate::record_proxy::{read_recording, start_proxy};
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, arrivals, assert_exit, outcome, phase, skip_because, stderr, stdout};
use dyno_types::bson;
use std::collections::BTreeMap;

/// What an application does.
const APPLICATION: &str = "
collections:
  c: { count: 300, document: { n: { $int: [0, 9] }, city: { $oneOf: [Lisboa, Porto, Braga] }, mail: { $string: 20 } } }
operations:
  some: { weight: 4, find: c, filter: { n: { $int: [0, 9] } }, limit: 7 }
  one: { weight: 6, findOne: c, filter: { _id: { $key: { collection: c, distribution: zipfian } } } }
  by_mail: { weight: 2, find: c, filter: { mail: { $of: c.mail } } }
  both: { weight: 2, findAndModify: c, filter: { _id: { $key: c } }, change: { $inc: { n: 1 } } }
  put: { weight: 2, insert: c }
  take: { weight: 3, update: c, filter: { _id: { $key: c } }, change: { $inc: { n: 1 }, $set: { city: Faro } } }
  sums: { weight: 2, aggregate: c, pipeline: [{ $match: { n: { $gt: 3 } } }, { $group: { _id: $city, all: { $sum: 1 } } }] }
  cities: { weight: 1, distinct: c, field: city, filter: { n: { $lt: 5 } } }
";

/// What a server has counted: commands by name, and documents that were updated.
fn counts(mongod: &Mongo) -> (BTreeMap<String, i64>, i64) {
    let direct = admin(&mongod.uri("t")).unwrap();
    let status = direct.run_on("admin", &|out| bson::put_int32(out, "serverStatus", 1)).unwrap();
    let commands = bson::element_at_path(&status, "metrics.commands").unwrap().as_document().unwrap();
    let of = |element: bson::Element<'_>| {
        let total = bson::find_element(element.as_document()?, "total")?.as_i64()?;
        Some((String::from_utf8_lossy(element.name).to_uppercase(), total))
    };
    let all = bson::read_elements(commands).unwrap().filter_map(|element| of(element.unwrap())).collect();
    let updated = bson::element_at_path(&status, "metrics.document.updated").unwrap().as_i64().unwrap();
    (all, updated)
}

#[test]
fn a_learned_workload_sends_the_mix_that_was_recorded() {
    let (Some(then), Some(now)) = (Mongo::mongod(), Mongo::mongod()) else {
        return skip_because("learning from MongoDB", "mongod is not on PATH");
    };
    let dyno = Dyno::new();
    std::fs::write(dyno.path("app.yaml"), APPLICATION).unwrap();
    let load = ["run", &then.uri("t"), "--workload", "app.yaml", "--ops", "22", "--users", "1", "--no-out"];
    dyno.assert_ran(&dyno.run(&load));
    let proxy = start_proxy(&dyno, &then.uri("t"), &[]);
    let through = format!("mongodb://127.0.0.1:{}/t", proxy.port);
    let words =
        ["run", &through, "--workload", "app.yaml", "--ops", "4096", "--users", "4", "--no-load", "--no-out"];
    dyno.assert_ran(&dyno.run(&words));
    assert_exit(&proxy.end(), &[0]);
    let learned = dyno.run(&["learn", "traffic.dyno", "-o", "work.yaml"]);
    assert_exit(&learned, &[0]);
    let text = std::fs::read_to_string(dyno.path("work.yaml")).unwrap();
    // Values that are few are learned as they are, others by their form.
    assert!(text.contains("\"Faro\"") && text.contains("{ $of: { field: \"c.mail\""), "{text}");
    assert!(text.contains("{ $key: { collection: \"c\", distribution: \"zipfian:"), "{text}");
    let before = counts(&now);
    let uri = now.uri("t");
    let run = ["run", &uri, "--workload", "work.yaml", "--ops", "4096", "--users", "4", "--out", "run"];
    let output = dyno.run(&run);
    assert_exit(&output, &[0, 5]);
    let after = counts(&now);
    let summary = dyno.summary("run");
    let measured = phase(&summary, "measure");
    assert_eq!(arrivals(measured), 4_096, "{}", stdout(&output));
    assert_eq!(outcome(measured, "ok"), 4_096, "{}{}", stdout(&output), stderr(&output));
    let recorded = read_recording(&dyno.path("traffic.dyno")).1.by_name;
    let grown = |name: &str| after.0.get(name).unwrap_or(&0) - before.0.get(name).unwrap_or(&0);
    let names = ["FIND", "UPDATE", "FINDANDMODIFY", "AGGREGATE", "DISTINCT"];
    let all: u64 = names.iter().chain(&["INSERT"]).map(|name| recorded[*name]).sum();
    for name in names {
        // A stratified mix: off by an operation of each form in 1,024.
        let expected = recorded[name] as f64 * 4_096.0 / all as f64;
        let off = (grown(name) as f64 - expected).abs();
        assert!(recorded[name] > 50 && off <= 16.0, "{name}: {} for {expected}\n{text}", grown(name));
    }
    // The documents that are asked for are there: each update of one has changed it.
    let changed = after.1 - before.1;
    assert_eq!(changed, grown("UPDATE") + grown("FINDANDMODIFY"), "{text}");
    // What no other target can do is refused before anything is sent.
    let refused = dyno.run(&["run", "sqlite:t.db", "--workload", "work.yaml", "--ops", "10"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("commands of MongoDB"), "{}", stderr(&refused));
}
