//! Read and write concerns (suite `read-write-concern`): in URIs, in commands, and left out of commands by default.

use crate::harness::{Checked, Mismatch, Suite, expect};
use dyno_db_mongodb::protocol::{Deployment, MongoDriver, MongoExchange, MongoOptions, take_document};
use dyno_types::bson::{self, kind};
use dyno_types::document::{Action, Change, DocumentFilter, Modify, Operand, OperationShape};
use dyno_types::{Content, Driver, Endpoint, Request, Verb};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

#[test]
fn concerns() {
    Suite::named("read-write-concern").run();
}

/// A case has a URI, a concern that becomes an element of a command, or operations.
pub fn check(case: &Value, data: &Value) -> Checked {
    match (&case["uri"], &case["operations"]) {
        (Value::String(_), _) => crate::uris::check(case, data),
        (_, Value::Array(operations)) => {
            operations.iter().try_for_each(|operation| check_default(operation.as_str().unwrap()))
        }
        _ => check_element(case),
    }
}

/// The concern is given as options of the URI, since dyno has no other form of it.
fn check_element(case: &Value) -> Checked {
    let given = case["given"].as_object().unwrap().iter().map(|(name, value)| {
        let name = if name == "level" { "readConcernLevel" } else { name };
        format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    });
    let uri = format!("mongodb://h/d?{}", given.collect::<Vec<_>>().join("&"));
    let options = match (MongoOptions::from_uri(&uri), case["valid"].as_bool().unwrap()) {
        (Ok(options), true) => options,
        (Err(_), false) => return Ok(()),
        (Ok(_), false) => return expect(false, || "is accepted".into()),
        (Err(why), true) => return expect(false, || why.to_string()),
    };
    let name = case["element"].as_str().unwrap();
    let verb = if name == "readConcern" { Verb::Read } else { Verb::Insert };
    let command = command(options, Vec::new(), Request { verb, ..Request::default() });
    let found = bson::find_element(&command, name)
        .map_or(Value::Null, |element| as_json(element.as_document().unwrap()));
    expect(found == case["document"], || format!("{name}: {found}"))
}

/// The texts, flags and whole numbers of a document.
fn as_json(document: &[u8]) -> Value {
    let fields = bson::read_elements(document).unwrap().map(|element| {
        let element = element.unwrap();
        let value = match element.kind {
            kind::STRING => json!(element.as_str()),
            kind::BOOLEAN => json!(element.is_true()),
            _ => json!(element.as_i64()),
        };
        (String::from_utf8(element.name.to_vec()).unwrap(), value)
    });
    fields.collect()
}

/// The command of the operation has no write concern where none is set.
fn check_default(operation: &str) -> Checked {
    let by_id = || DocumentFilter::field_equals("_id", 0);
    let change = || Change::Fields(vec![(Modify::Set, "x".into(), 1)]);
    let update =
        |many| Action::Update { filter: by_id(), change: change(), many, upsert: false, ordered: true };
    let action = match operation {
        "insertOne" | "insertMany" => Action::Insert { ordered: true },
        "updateOne" => update(false),
        "updateMany" => update(true),
        "deleteOne" | "deleteMany" => {
            Action::Delete { filter: by_id(), many: operation == "deleteMany", ordered: true }
        }
        other => return Err(Mismatch(format!("{other} is no operation of dyno"))),
    };
    let request = Request { verb: Verb::Document, ..Request::default() };
    let command =
        command(MongoOptions::default(), vec![OperationShape { name: "x".into(), action }], request);
    expect(bson::find_element(&command, "writeConcern").is_none(), || {
        format!("{operation} has a write concern")
    })
}

/// The command that a request becomes.
fn command(options: MongoOptions, shapes: Vec<OperationShape>, request: Request) -> Vec<u8> {
    let mut driver = driver(options, shapes);
    let mut exchange = MongoExchange::default();
    driver.begin(&mut exchange, &request);
    let mut out = Vec::new();
    driver.encode(&mut exchange, 0, &mut out);
    take_document(&mut out).unwrap().unwrap()
}

/// A driver that no server answers.
pub fn driver(options: MongoOptions, shapes: Vec<OperationShape>) -> MongoDriver {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let endpoint = Endpoint::Tcp { host: "127.0.0.1".into(), address };
    MongoDriver::new(Arc::new(options), Arc::new(Records(shapes)), Deployment::single_server(endpoint))
        .unwrap()
}

/// Records without fields, and documents of these shapes.
pub struct Records(pub Vec<OperationShape>);

impl Content for Records {
    fn table(&self) -> &str {
        "t"
    }

    fn key(&self, _request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(b"key");
    }

    fn fields(&self, _request: &Request) -> usize {
        0
    }

    fn name(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn value_len(&self, _request: &Request, _field: usize) -> usize {
        0
    }

    fn value(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn document(&self, _request: &Request, _number: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&bson::build_document(|out| bson::put_int32(out, "_id", 1)));
    }

    fn operand(&self, _request: &Request, _number: u32, _operand: Operand, name: &str, out: &mut Vec<u8>) {
        bson::put_int32(out, name, 1);
    }

    fn shapes(&self) -> &[OperationShape] {
        &self.0
    }
}
