use super::*;
use ::bson::{Binary, Bson, Document, Regex, doc, oid::ObjectId, spec::BinarySubtype};

fn changed_by(
    words: &mut DocumentWords,
    keep_scripts: bool,
    database: &str,
    body: &Document,
) -> Result<Document, &'static str> {
    let name = body.keys().next().unwrap();
    let bytes = body.to_vec().unwrap();
    let arguments = Arguments::from_words([name.as_bytes(), database.as_bytes(), &bytes]);
    let made = change_words(&arguments, words, keep_scripts, |_, number| Some(number))?;
    bson::check(made.word(2)).unwrap();
    assert_eq!((made.count(), made.word(0)), (3, name.as_bytes()));
    Ok(Document::from_reader(made.word(2)).unwrap())
}

fn new_words() -> DocumentWords {
    DocumentWords::new(b"a key of sixteen bytes")
}

fn changed(body: Document) -> Document {
    changed_by(&mut new_words(), false, "shop", &body).unwrap()
}

fn reason_against(body: Document) -> Option<&'static str> {
    changed_by(&mut new_words(), false, "shop", &body).err()
}

fn path(text: &str) -> String {
    new_words().permute_path(text)
}

fn text(text: &str) -> String {
    new_words().permute_text(text)
}

#[test]
fn a_field_has_one_name_wherever_it_stands() {
    let (customer, address, city) = (path("customer"), path("address"), path("city"));
    assert!(customer.len() == 8 && customer != "customer");
    let inserted = changed(doc! {
        "insert": "orders",
        "ordered": true,
        "documents": [{ "_id": 7, "customer": { "address": { "city": "Lisboa" } }, "tags": ["a", "b"], "n": 2.5 }],
    });
    let document = inserted.get_array("documents").unwrap()[0].as_document().unwrap();
    let expected = doc! {
        "_id": 7,
        &customer: { &address: { &city: text("Lisboa") } },
        path("tags"): [text("a"), text("b")],
        path("n"): 2.5,
    };
    assert_eq!(*document, expected);
    assert!(inserted.get_bool("ordered").unwrap());
    assert_ne!(inserted.get_str("insert").unwrap(), "orders");
    let dotted = format!("{customer}.{address}.{city}");
    let found = changed(doc! {
        "find": "orders",
        "filter": {
            "customer.address.city": { "$in": ["Lisboa", "Porto"] },
            "$or": [{ "n": { "$gt": 1 } }, { "customer": { "city": "x" } }],
        },
        "projection": { "customer.address": 1, "_id": 0, "tags": { "$slice": 2 } },
        "sort": { "customer.address.city": -1 },
        "hint": "customer_1",
        "limit": 5,
        "lsid": { "id": Binary { subtype: BinarySubtype::Uuid, bytes: vec![7; 16] } },
        "$readPreference": { "mode": "secondary", "tags": [{ "room": "Lisboa-cellar" }] },
    });
    let expected = doc! {
        "find": inserted.get_str("insert").unwrap(),
        "filter": {
            &dotted: { "$in": [text("Lisboa"), text("Porto")] },
            "$or": [{ path("n"): { "$gt": 1 } }, { &customer: { &city: text("x") } }],
        },
        "projection": { format!("{customer}.{address}"): 1, "_id": 0, path("tags"): { "$slice": 2 } },
        "sort": { &dotted: -1 },
        "hint": text("customer_1"),
        "limit": 5,
        "lsid": { "id": Binary { subtype: BinarySubtype::Uuid, bytes: vec![7; 16] } },
        "$readPreference": { "mode": "secondary" },
    };
    assert_eq!(found, expected);
}

#[test]
fn updates_keep_their_operators() {
    let made = changed(doc! {
        "update": "orders",
        "updates": [
            { "q": { "_id": 1 }, "u": { "$set": { "items.$[item].price": 3, "state": "packed" }, "$inc": { "n": 1 } },
              "arrayFilters": [{ "item.price": { "$gte": 2 } }], "upsert": false },
            { "q": { "_id": 2 }, "u": {
              "$push": { "log": { "$each": ["sent"], "$slice": -5 } }, "$pull": { "tags": { "name": "x" } },
              "$rename": { "state": "phase" }, "$currentDate": { "seen": { "$type": "date" } } }, "multi": true },
            { "q": { "_id": 3 }, "u": { "state": "lost" } },
            { "q": { "_id": 4 }, "u": [{ "$set": { "total": { "$add": ["$n", 1] } } }] },
        ],
    });
    let variable = new_words().permute_variable("item");
    let expected = Bson::from(vec![
        doc! { "q": { "_id": 1 }, "u": {
          "$set": { format!("{}.$[{variable}].{}", path("items"), path("price")): 3, path("state"): text("packed") },
          "$inc": { path("n"): 1 } },
        "arrayFilters": [{ format!("{variable}.{}", path("price")): { "$gte": 2 } }], "upsert": false },
        doc! { "q": { "_id": 2 }, "u": {
        "$push": { path("log"): { "$each": [text("sent")], "$slice": -5 } },
        "$pull": { path("tags"): { path("name"): text("x") } },
        "$rename": { path("state"): path("phase") },
        "$currentDate": { path("seen"): { "$type": "date" } } }, "multi": true },
        doc! { "q": { "_id": 3 }, "u": { path("state"): text("lost") } },
        doc! { "q": { "_id": 4 }, "u": [{ "$set": { path("total"): { "$add": [format!("${}", path("n")), 1] } } }] },
    ]);
    assert_eq!(made.get("updates"), Some(&expected));
}

#[test]
fn expressions_follow_their_fields() {
    let made = changed(doc! {
        "aggregate": "orders",
        "pipeline": [
            { "$match": { "state": { "$ne": "lost" }, "$expr": { "$gt": ["$n", "$$NOW"] } } },
            { "$lookup": { "from": "customers", "localField": "customer.id", "foreignField": "_id", "as": "who" } },
            { "$unwind": "$who" },
            { "$group": { "_id": { "city": "$who.city", "day": { "$dateToString": {
                "format": "%Y-%m-%d", "date": "$at", "timezone": "UTC" } } },
                "count": { "$sum": 1 }, "names": { "$push": { "name": "$who.name" } } } },
            { "$project": { "top": { "$filter": {
                "input": "$names", "as": "one", "cond": { "$eq": ["$$one.name", "Almeida"] } } } } },
            { "$sort": { "count": -1 } },
            { "$out": "report" },
        ],
        "cursor": { "batchSize": 100 },
    });
    let [state, n, who, city, name, count] = ["state", "n", "who", "city", "name", "count"].map(path);
    let one = new_words().permute_variable("one");
    let expected = Bson::from(vec![
        doc! { "$match": { &state: { "$ne": text("lost") }, "$expr": { "$gt": [format!("${n}"), "$$NOW"] } } },
        doc! { "$lookup": { "from": path("customers"), "localField": path("customer.id"), "foreignField": "_id", "as": &who } },
        doc! { "$unwind": format!("${who}") },
        doc! { "$group": {
        "_id": { &city: format!("${who}.{city}"), path("day"): { "$dateToString": {
            "format": "%Y-%m-%d", "date": format!("${}", path("at")), "timezone": "UTC" } } },
        &count: { "$sum": 1 }, path("names"): { "$push": { &name: format!("${who}.{name}") } } } },
        doc! { "$project": { path("top"): { "$filter": {
        "input": format!("${}", path("names")), "as": &one,
        "cond": { "$eq": [format!("$${one}.{name}"), text("Almeida")] } } } } },
        doc! { "$sort": { &count: -1 } },
        doc! { "$out": path("report") },
    ]);
    assert_eq!(made.get("pipeline"), Some(&expected));
    assert_eq!(made.get_document("cursor").unwrap(), &doc! { "batchSize": 100 });
}

#[test]
fn numbers_and_times_stay_and_other_values_do_not() {
    let id = ObjectId::from_bytes([0x65, 1, 2, 3, b'S', b'e', b'c', b'r', b'e', b't', b's', b'!']);
    let old = Binary { subtype: BinarySubtype::BinaryOld, bytes: b"twelve-bytes".to_vec() };
    let new = Binary { subtype: BinarySubtype::Generic, bytes: b"Almeida-Santos".to_vec() };
    let long = Binary { subtype: BinarySubtype::UserDefined(0x80), bytes: b"Almeida-Santos".repeat(40) };
    let at = ::bson::DateTime::from_millis(1_700_000_000_000);
    let body = doc! { "insert": "c", "documents": [{
        "a": id, "b": old.clone(), "c": new.clone(), "d": long.clone(), "e": at, "f": true, "g": Bson::Null, "h": 7i64,
        "i": Bson::Symbol("Almeida-Santos".into()), "j": "", "k": { "$ref": "people", "$id": 7, "$db": "crm" },
    }] };
    let made = changed(body);
    let made = made.get_array("documents").unwrap()[0].as_document().unwrap();
    let get = |name: &str| made.get(path(name)).unwrap().clone();
    let Bson::ObjectId(other) = get("a") else { panic!("{made}") };
    assert_eq!(other.bytes()[..4], id.bytes()[..4]);
    assert_ne!(other.bytes()[4..], id.bytes()[4..]);
    for (name, then) in [("b", old), ("c", new), ("d", long)] {
        let Bson::Binary(now) = get(name) else { panic!("{made}") };
        assert_eq!((now.subtype, now.bytes.len()), (then.subtype, then.bytes.len()), "{name}");
        assert_ne!(now.bytes, then.bytes);
    }
    assert_eq!((get("e"), get("f"), get("g"), get("h")), (at.into(), true.into(), Bson::Null, 7i64.into()));
    assert_eq!(get("i"), Bson::Symbol(text("Almeida-Santos")));
    assert_eq!(get("j"), "".into());
    let database = new_words().permute_database("crm");
    assert_eq!(get("k"), doc! { "$ref": path("people"), "$id": 7, "$db": database }.into());
}

#[test]
fn what_may_say_anything_is_left_out() {
    let pattern = Regex { pattern: "^Alm".try_into().unwrap(), options: "i".try_into().unwrap() };
    for body in [
        doc! { "find": "c", "filter": { "name": pattern.clone() } },
        doc! { "find": "c", "filter": { "name": { "$in": [pattern.clone()] } } },
        doc! { "find": "c", "filter": { "name": { "$regex": "^Alm" } } },
        doc! { "find": "c", "filter": { "$where": "this.name == 'Almeida'" } },
        doc! { "find": "c", "filter": { "$and": [{ "$text": { "$search": "Almeida" } }] } },
        doc! { "insert": "c", "documents": [{ "f": Bson::JavaScriptCode("return 1".into()) }] },
        doc! { "mapReduce": "c", "map": "function() {}", "reduce": "function() {}", "out": "x" },
        doc! { "aggregate": "c", "pipeline": [{ "$project": {
        "x": { "$function": { "body": "f", "args": [], "lang": "js" } } } }] },
    ] {
        assert_eq!(reason_against(body.clone()), Some(reason::SCRIPTS), "{body}");
        assert!(changed_by(&mut new_words(), true, "shop", &body).is_ok(), "{body}");
    }
    for body in [
        doc! { "noSuchCommand": 1 },
        doc! { "find": "c", "secretOption": "Almeida" },
        doc! { "find": "c", "limit": "Almeida" },
        doc! { "find": "c", "filter": { "a": { "$near": [1, 2] } } },
        doc! { "find": "c", "filter": { "a": { "$gt": 1, "Almeida": 1 } } },
        doc! { "find": "c", "collation": { "locale": "Almeida-Santos" } },
        doc! { "find": "c", "readConcern": { "level": "Almeida" } },
        doc! { "update": "c", "updates": [{ "q": {}, "u": { "$almeida": { "a": 1 } } }] },
        doc! { "aggregate": "c", "pipeline": [{ "$vectorSearch": { "path": "Almeida" } }] },
        doc! { "aggregate": "c", "pipeline": [{ "$project": { "a": { "$arrayToObject": "$b" } } }] },
        doc! { "aggregate": "c", "pipeline": [{ "$project": {
        "a": { "$dateToString": { "date": "$b", "format": "Almeida" } } } }] },
        doc! { "createIndexes": "c", "indexes": [{ "key": { "a": "2dsphere" }, "name": "a" }] },
        doc! { "serverStatus": 1, "repl": "Almeida" },
    ] {
        assert_eq!(reason_against(body.clone()), Some(reason::UNKNOWN), "{body}");
    }
    let damaged = Arguments::from_words(["find", "shop", "no document"]);
    let made = change_words(&damaged, &mut new_words(), true, |_, number| Some(number));
    assert_eq!(made.err(), Some(reason::DAMAGED));
}

#[test]
fn what_stays_of_other_commands() {
    for body in [
        doc! { "ping": 1 },
        doc! { "serverStatus": 1, "repl": 0 },
        doc! { "listDatabases": 1, "nameOnly": true },
        doc! { "commitTransaction": 1, "txnNumber": 3i64, "autocommit": false, "writeConcern": { "w": "majority" } },
        doc! { "endSessions": [{ "id": Binary { subtype: BinarySubtype::Uuid, bytes: vec![9; 16] } }] },
        doc! { "find": "$cmd.aggregate", "collation": { "locale": "de@collation=phonebook", "strength": 2 } },
        doc! { "getMore": 77i64, "collection": "$cmd.aggregate", "batchSize": 3 },
    ] {
        assert_eq!(changed(body.clone()), body);
    }
    let explained =
        changed(doc! { "explain": { "find": "orders", "filter": { "n": 1 } }, "verbosity": "queryPlanner" });
    let inner = doc! { "find": path("orders"), "filter": { path("n"): 1 } };
    assert_eq!(explained, doc! { "explain": inner, "verbosity": "queryPlanner" });
    let index = changed(
        doc! { "createIndexes": "orders", "indexes": [{ "key": { "a.b": 1, "c": "hashed" }, "name": "mine", "unique": true }] },
    );
    let expected =
        doc! { "key": { path("a.b"): 1, path("c"): "hashed" }, "name": text("mine"), "unique": true };
    assert_eq!(index, doc! { "createIndexes": path("orders"), "indexes": [expected] });
}

#[test]
fn cursors_are_told_by_the_numbers_of_now() {
    let body = doc! { "getMore": 7i64, "collection": "c", "_openedBy": { "connection": 3, "command": 5i64 } };
    let bytes = body.to_vec().unwrap();
    let arguments = Arguments::from_words([b"getMore".as_slice(), b"shop", &bytes]);
    let made = change_words(&arguments, &mut new_words(), false, |connection, number| {
        (connection == 3).then_some(number - 2)
    });
    let made = Document::from_reader(made.unwrap().word(2)).unwrap();
    assert_eq!(made.get_document("_openedBy").unwrap(), &doc! { "connection": 3, "command": 3i64 });
    let made = change_words(&arguments, &mut new_words(), false, |_, _| None);
    assert_eq!(made.err(), Some(reason::CURSOR));
}

#[test]
fn long_bodies_keep_their_length_alone() {
    let mut arguments = Arguments::from_words(["insert", "shop"]);
    arguments.push_long(LongValue { length: 70_000, hash: 7, compressed: 40 });
    let made = change_words(&arguments, &mut new_words(), false, |_, number| Some(number)).unwrap();
    let long = made.long_value(2).unwrap();
    assert_eq!((long.length, long.compressed, made.word(0)), (70_000, 40, &b"insert"[..]));
    assert!(long.hash != 7 && made.word(1) != b"shop");
}
