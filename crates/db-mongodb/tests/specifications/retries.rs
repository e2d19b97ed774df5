//! Retryable reads and writes: how often a command is sent whose first replies are errors.

use crate::concerns::Records;
use crate::documents::document;
use crate::harness::{Checked, Mismatch, Suite, expect};
use dyno_db_mongodb::protocol::message;
use dyno_db_mongodb::protocol::{Deployment, MongoDriver, MongoExchange, MongoOptions, take_document};
use dyno_types::bson;
use dyno_types::document::{
    Action, AggregationStage, Change, DocumentFilter, Modify, OperationShape, Projection,
};
use dyno_types::{Decoded, Driver, Endpoint, Request, Then, Verb};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Codes that servers label as retryable, where a fail point does not say which labels an error has.
const LABELLED: [i64; 12] = [6, 7, 89, 91, 189, 262, 9_001, 10_107, 11_600, 11_602, 13_435, 13_436];

#[test]
fn commands_are_sent_again() {
    Suite::named("retries").run();
}

/// A case has an operation, the errors that a server answers first, and how often the command is sent.
pub fn check(case: &Value, _data: &Value) -> Checked {
    let failures = case["times"].as_u64().unwrap();
    let mut driver = driver(case)?;
    let mut exchange = MongoExchange::default();
    let request = Request { verb: Verb::Document, ..Request::default() };
    driver.begin(&mut exchange, &request);
    let (mut sent, mut command, mut numbers) = (0, 0, Vec::new());
    let succeeds = loop {
        let mut out = Vec::new();
        driver.encode(&mut exchange, command, &mut out);
        sent += 1;
        let document = take_document(&mut out).unwrap().unwrap();
        numbers.push(bson::find_element(&document, "txnNumber").and_then(|e| e.as_i64()));
        if sent > 5 {
            return Err(Mismatch("is sent without end".into()));
        }
        if sent <= failures && case["closeConnection"] == true {
            match driver.lost_command(&mut exchange, command, true) {
                true => select(&mut driver, &mut exchange, case)?,
                false => break false,
            }
            continue;
        }
        let reply = if sent <= failures { failure(case) } else { success() };
        match driver.decode(&mut exchange, command, &reply) {
            Decoded::Reply { then: Then::Again { .. }, .. } => select(&mut driver, &mut exchange, case)?,
            Decoded::Reply { then: Then::Send { first, .. }, .. } => command = first,
            Decoded::Reply { then: Then::Finish(outcome), .. } => break outcome.is_ok(),
            other => return Err(Mismatch(format!("{other:?}"))),
        }
    };
    let expected = match (case["sent"].as_u64(), case["succeeds"] == true) {
        (Some(sent), _) => sent,
        (None, true) => failures + 1,
        // Fail points that fail twice show that there is a second try and no third.
        (None, false) => failures,
    };
    expect(sent == expected, || format!("is sent {sent} times"))?;
    expect(succeeds == (case["succeeds"] == true), || format!("succeeds: {succeeds}"))?;
    expect(numbers.windows(2).all(|pair| pair[0] == pair[1]), || format!("numbers {numbers:?}"))
}

/// Selects a server for another try, after a check of the only one if its state has changed.
fn select(driver: &mut MongoDriver, exchange: &mut MongoExchange, case: &Value) -> Checked {
    if driver.again(exchange).is_none() {
        let (mut check, request) =
            (MongoExchange::default(), Request { verb: Verb::Topology, ..Request::default() });
        driver.begin_topology(&mut check, &request, 0, 0);
        driver.decode(&mut check, 0, &framed(&hello(case)));
    }
    expect(driver.again(exchange).is_some(), || "no server for another try".into())
}

/// The server's hello: a primary's, or a router's where a case is about routers alone.
fn hello(case: &Value) -> Vec<u8> {
    let mut hello = json!({
        "ismaster": true, "minWireVersion": 0, "maxWireVersion": wire(case), "logicalSessionTimeoutMinutes": 30, "ok": 1
    });
    if is_sharded(case) {
        hello["msg"] = "isdbgrid".into();
    } else {
        hello["setName"] = "rs".into();
        hello["hosts"] = json!(["127.0.0.1:1"]);
    }
    document(&hello)
}

fn is_sharded(case: &Value) -> bool {
    case["topologies"] == json!(["sharded"])
}

fn wire(case: &Value) -> i64 {
    match case["from"].as_str().unwrap() {
        "4.1.7" | "4.1.11" | "4.2" => 8,
        "4.3.1" => 9,
        "6.0" => 17,
        other => panic!("{other}"),
    }
}

fn driver(case: &Value) -> Result<MongoDriver, Mismatch> {
    let mut query = "appName=t".to_owned();
    for option in ["retryReads", "retryWrites"] {
        // Drivers have both on by default.
        let on = case["options"][option].as_bool().unwrap_or(true);
        query += &format!("&{option}={on}");
    }
    let options =
        MongoOptions::from_uri(&format!("mongodb://h/d?{query}")).map_err(|why| Mismatch(why.to_string()))?;
    let endpoint =
        Endpoint::Tcp { host: "127.0.0.1".into(), address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)) };
    let deployment = match is_sharded(case) {
        true => Deployment::from_routers(vec![endpoint]),
        false => Deployment::replica_set("rs", vec![endpoint], 0),
    };
    let shapes = vec![OperationShape { name: "x".into(), action: action(case)? }];
    let mut driver = MongoDriver::new(Arc::new(options), Arc::new(Records(shapes)), deployment).unwrap();
    let mut out = Vec::new();
    driver.hello(0, 0, &mut out);
    driver.greeted(0, 0, 0, &framed(&hello(case)), &mut out);
    Ok(driver)
}

/// The operation that a case is about; of a bulk the one whose command fails.
fn action(case: &Value) -> Result<Action, Mismatch> {
    let filter = || DocumentFilter::field_equals("_id", 0);
    let change = || Change::Fields(vec![(Modify::Set, "x".into(), 1)]);
    let fails = case["fails"][0].as_str().unwrap_or_default();
    let name = case["operation"].as_str().unwrap();
    Ok(match if name == "bulkWrite" { fails } else { name } {
        "insertOne" | "insertMany" | "insert" => Action::Insert { ordered: true },
        "updateOne" | "replaceOne" | "updateMany" | "update" => {
            let many = name == "updateMany";
            Action::Update { filter: filter(), change: change(), many, upsert: false, ordered: true }
        }
        "deleteOne" | "deleteMany" | "delete" => {
            Action::Delete { filter: filter(), many: name == "deleteMany", ordered: true }
        }
        "findOneAndUpdate" | "findOneAndReplace" | "findOneAndDelete" => Action::FindAndModify {
            filter: filter(),
            change: change(),
            fields: Projection::default(),
            sort: Vec::new(),
            upsert: false,
            returns_new: false,
        },
        "find" | "findOne" => Action::Find {
            filter: filter(),
            fields: Projection::default(),
            sort: Vec::new(),
            limit: Some(1),
            single_batch: true,
        },
        "distinct" => Action::Distinct { filter: filter(), field: "x".into() },
        "aggregate" => {
            let stage = case["last_stage"].as_str().unwrap();
            Action::Aggregate { pipeline: vec![AggregationStage::Raw(document(&json!({ stage: {"x": 1} })))] }
        }
        other => return Err(Mismatch(format!("{other} is no operation of dyno"))),
    })
}

fn failure(case: &Value) -> Vec<u8> {
    let mut reply = match &case["writeConcernError"] {
        Value::Null => json!({ "ok": 0, "errmsg": "failed", "code": case["errorCode"] }),
        error => json!({ "ok": 1, "n": 1, "writeConcernError": error }),
    };
    let codes = [&case["errorCode"], &case["writeConcernError"]["code"]];
    let labelled = codes.iter().any(|code| code.as_i64().is_some_and(|code| LABELLED.contains(&code)));
    match &case["errorLabels"] {
        Value::Array(labels) => reply["errorLabels"] = labels.clone().into(),
        _ if wire(case) >= 9 && labelled => reply["errorLabels"] = json!(["RetryableWriteError"]),
        _ => {}
    }
    framed(&document(&reply))
}

/// A reply that every operation takes for a success.
fn success() -> Vec<u8> {
    framed(&document(&json!({
        "ok": 1, "n": 1, "value": {"_id": 1}, "values": [1],
        "cursor": {"id": 0, "ns": "d.t", "firstBatch": [{"_id": 1}]}
    })))
}

/// A document as the body of an OP_MSG.
fn framed(document: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let at = message::begin(&mut out, 1);
    out.extend_from_slice(document);
    message::end(&mut out, at);
    out
}

/// Compression may not be applied to hello ("OP_COMPRESSED" specification), which goes by its old name until a server says that
/// it knows the new one ("Server Discovery and Monitoring").
#[test]
fn hello_is_never_compressed_and_goes_by_a_name_that_the_server_knows() {
    let options = MongoOptions::from_uri("mongodb://h/d?compressors=zlib&replicaSet=rs").unwrap();
    let endpoint =
        Endpoint::Tcp { host: "127.0.0.1".into(), address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)) };
    let deployment = Deployment::replica_set("rs", vec![endpoint], 0);
    let mut driver = MongoDriver::new(Arc::new(options), Arc::new(Records(Vec::new())), deployment).unwrap();
    for (knows_hello, name) in [(false, "isMaster"), (true, "hello")] {
        let hello = json!({
            "ismaster": true, "helloOk": knows_hello, "setName": "rs", "hosts": ["127.0.0.1:1"], "compression": ["zlib"],
            "maxWireVersion": 9, "ok": 1
        });
        let mut out = Vec::new();
        driver.hello(0, 0, &mut out);
        out.clear();
        driver.greeted(0, 0, 0, &framed(&document(&hello)), &mut out);
        let mut exchange = MongoExchange::default();
        driver.begin(&mut exchange, &Request { verb: Verb::Insert, ..Request::default() });
        driver.encode(&mut exchange, 0, &mut out);
        assert_eq!(message::read_header(&out).unwrap().unwrap().code, message::code::COMPRESSED);
        out.clear();
        let request = Request { verb: Verb::Topology, ..Request::default() };
        driver.begin_topology(&mut exchange, &request, 0, 0);
        driver.encode(&mut exchange, 0, &mut out);
        assert_eq!(message::read_header(&out).unwrap().unwrap().code, message::code::MSG);
        let command = take_document(&mut out).unwrap().unwrap();
        assert_eq!(bson::read_elements(&command).unwrap().next().unwrap().unwrap().name, name.as_bytes());
    }
}
