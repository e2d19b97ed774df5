use super::*;
use crate::RecordedProtocol;
use crate::entry::{Arguments, RecordedReply};
use crate::format::{Lack, RecordingPoint, RecordingWriter};
use crate::learn::findings::LearnedWorkload;
use crate::replay::survey_file;
use ::bson::{Document, doc, oid::ObjectId};
use dyno_types::rng::{below, mix_bits};

/// What is learned of these commands, a millisecond apart.
fn learned(commands: impl Iterator<Item = (&'static str, Document)>) -> LearnedWorkload {
    let header = RecordingHeader {
        protocol: RecordedProtocol::Mongodb,
        source: "proxy".into(),
        point: RecordingPoint::Proxy,
        begins_ns: None,
        clock_step_ns: 1_000,
        lacks: vec![Lack::ReplyTimes],
        value_limit: 1 << 20,
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.dyno");
    let mut writer = RecordingWriter::create_file(&path, &header).unwrap();
    for (number, (database, body)) in (0u64..).zip(commands) {
        let (name, bytes) = (body.keys().next().unwrap().clone(), body.to_vec().unwrap());
        let kind = RecordedKind::Reply(ReplyKind::Array);
        let entry = Entry {
            at_ns: number * 1_000_000,
            connection: number as u32 % 3,
            arguments: Arguments::from_words([name.as_bytes(), database.as_bytes(), &bytes]),
            reply: Some(RecordedReply { kind, size: 1, error: String::new(), after_ns: None }),
            ..Entry::default()
        };
        writer.push_entry(&entry).unwrap();
    }
    writer.finish().unwrap();
    let options = ReplayOptions::default();
    let (header, survey) = survey_file(&path, &options).unwrap();
    let read = read_documents(&path, (&header, &survey), &options).unwrap();
    write_workload(&read, (&header, &survey), 7)
}

fn id(number: u64) -> ObjectId {
    let mut bytes = [7; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

#[test]
fn a_workload_has_the_mix_the_documents_and_the_fields() {
    let command = |n: u64| {
        let (one, word) = (below(mix_bits(n), 100), ["new", "paid", "sent"][n as usize % 3]);
        let body = match n % 8 {
            0..=2 => doc! { "find": "orders", "filter": { "_id": id(one) }, "limit": 1, "singleBatch": true },
            3 => {
                doc! { "find": "orders", "filter": { "state": word, "customer.mail": format!("c{one}@example.org") } }
            }
            4 => {
                let (some, change) = (vec![id(one), id(99 - one)], doc! { "state": word });
                let change = doc! { "$set": change, "$inc": { "n": 1 } };
                let statement = doc! { "q": { "_id": { "$in": some } }, "u": change, "multi": true };
                doc! { "update": "orders", "updates": [statement] }
            }
            5 => doc! { "aggregate": "orders", "pipeline": [
            { "$match": { "n": { "$gte": (n % 50) as i32 } } }, { "$group": { "_id": "$state", "all": { "$sum": 1 } } }],
            "cursor": { "batchSize": 100 } },
            6 => doc! { "insert": "orders", "documents": [
            { "_id": id(1_000 + n), "state": word, "n": (n % 50) as i32, "note": format!("note {n:06}") }] },
            _ => doc! { "find": "orders", "filter": { "note": { "$regex": "^secret" } } },
        };
        ("shop", body)
    };
    let found = learned((0..8_000).map(command));
    assert_eq!((found.connections, (found.rate.unwrap() - 875.0).abs() < 1.0), (3, true));
    let has = |part: &str| assert!(found.text.contains(part), "{part}\n{}", found.text);
    has(
        "collections:\n  \"orders\":\n    count: 100\n    document: { \"_id\": { $objectId: ~ }, \"customer\": { \"mail\": ",
    );
    has("\"n\": { $int: [0, 48] }, \"note\": { $string: 11 }, \"state\": ");
    has("  find_orders: { weight: 3000, command: { \"find\": \"orders\", \"filter\": { \"_id\": { $key: ");
    has(
        "{ collection: \"orders\", distribution: \"uniform\" } } }, \"limit\": 1, \"singleBatch\": true } }\n",
    );
    has("\"customer.mail\": { $of: { field: \"orders.customer.mail\", distribution: \"uniform\" } } } } }\n");
    has("\"state\": { $oneOf: { values: [\"new\", \"paid\", \"sent\"], weights: [");
    has("\"q\": { \"_id\": { \"$in\": { $array: { length: [2, 2], of: { $key: ");
    has(
        "\"$group\": { \"_id\": \"$state\", \"all\": { \"$sum\": 1 } } }], \"cursor\": { \"batchSize\": 100 } } }\n",
    );
    has("  insert_orders: { weight: 1000, insert: \"orders\", documents: 1 }\n");
    has("# - left out: 1000 commands with patterns, code, places or searches in texts\n");
    assert!(!found.text.contains("secret") && !found.text.contains("example.org"), "{}", found.text);
}

#[test]
fn statements_that_are_alike_are_one_form() {
    let command = |n: u64| {
        let statement = |k: u64| doc! { "q": { "_id": (n + k) as i64 }, "limit": 1 };
        let statements: Vec<Document> = (0..=n % 4).map(statement).collect();
        match n % 2 {
            0 => ("shop", doc! { "delete": "carts", "deletes": statements }),
            _ => ("other", doc! { "count": "lines", "query": {} }),
        }
    };
    let found = learned((0..2_001).map(command));
    let has = |part: &str| assert!(found.text.contains(part), "{part}\n{}", found.text);
    has("# - database shop\n");
    has("# - left out: 1000 commands of other databases than the one with the most commands\n");
    let statement = "{ \"q\": { \"_id\": { $key: { collection: \"carts\", distribution: ";
    let line = |name: &str| {
        let begin = format!("  {name}: {{ weight: ");
        found
            .text
            .lines()
            .find(|line| line.starts_with(&begin))
            .unwrap_or_else(|| panic!("{}", found.text))
            .to_owned()
    };
    // One statement, or three.
    let counts = ["delete_carts", "delete_carts_2"].map(|name| line(name).matches(statement).count());
    assert_eq!(counts, [1, 3]);
    assert!(line("delete_carts").starts_with("  delete_carts: { weight: 501,"), "{}", found.text);
}
