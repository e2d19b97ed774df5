//! MongoDB's messages.

use crate::common::{Curious, endpoint, spoil, spoils};
use dyno_db_mongodb::protocol::compress::{Codec, Compressor};
use dyno_db_mongodb::protocol::message::{self, HEADER, code};
use dyno_db_mongodb::protocol::{
    Deployment, MongoDriver, MongoExchange, MongoFacts, MongoOptions, QUESTIONS, take_document,
};
use dyno_types::bson::{self, kind};
use dyno_types::document::{Action, Change, DocumentFilter, Modify, OperationShape, Projection};
use dyno_types::driver::NOWHERE;
use dyno_types::{ConnectionStep, Decoded, Driver, GreetingStep, Outcome, Request, Then, Verb};
use proptest::prelude::*;
use std::sync::Arc;

fn shapes() -> Vec<OperationShape> {
    let by_id = || DocumentFilter::field_equals("_id", 0);
    let find = |limit| Action::Find {
        filter: by_id(),
        fields: Projection::default(),
        sort: Vec::new(),
        limit: Some(limit),
        single_batch: limit == 1,
    };
    let change = || Change::Fields(vec![(Modify::Increment, "n".into(), 1)]);
    let actions = [
        find(1),
        find(0),
        Action::Sum { filter: by_id(), field: "k".into(), result: "sum".into() },
        Action::Distinct { filter: by_id(), field: "c".into() },
        Action::Insert { ordered: false },
        Action::Update { filter: by_id(), change: change(), many: true, upsert: false, ordered: false },
        Action::FindAndModify {
            filter: by_id(),
            change: change(),
            fields: Projection::default(),
            sort: Vec::new(),
            upsert: false,
            returns_new: false,
        },
    ];
    actions.into_iter().map(|action| OperationShape { name: "x".into(), action }).collect()
}

fn driver() -> MongoDriver {
    let options = MongoOptions::from_uri("mongodb://127.0.0.1:1/d?compressors=snappy,zlib,zstd").unwrap();
    MongoDriver::new(Arc::new(options), Arc::new(Curious(shapes())), Deployment::single_server(endpoint()))
        .unwrap()
}

fn requests() -> impl Strategy<Value = Request> {
    let document = (0..shapes().len() as u16).prop_map(|shape| Request {
        verb: Verb::Document,
        shape,
        ..Request::default()
    });
    let verbs = [Verb::Read, Verb::Insert, Verb::Update, Verb::Scan, Verb::Delete, Verb::Topology];
    let record = prop::sample::select(verbs.to_vec()).prop_map(|verb| Request {
        verb,
        limit: 9,
        ..Request::default()
    });
    prop_oneof![document, record]
}

/// Appends the elements of a reply that servers really send.
fn reply(which: u8, documents: u32, out: &mut Vec<u8>) {
    let list = |name: &str, out: &mut Vec<u8>, each: &dyn Fn(u32, &mut Vec<u8>)| {
        bson::put_head(out, kind::ARRAY, name);
        let at = bson::open(out);
        for number in 0..documents {
            bson::put_item_head(out, kind::DOCUMENT, number);
            let document = bson::open(out);
            each(number, out);
            bson::close(out, document);
        }
        bson::close(out, at);
    };
    match which {
        0 | 1 => {
            bson::put_head(out, kind::DOCUMENT, "cursor");
            let cursor = bson::open(out);
            bson::put_int64(out, "id", i64::from(which));
            list("firstBatch", out, &|number, out| {
                bson::put_string(out, "_id", &number.to_string());
                bson::put_string(out, "field0", "value");
                bson::put_binary(out, "field1", b"value");
            });
            bson::close(out, cursor);
        }
        2 => list("values", out, &|_, _| {}),
        3 => {
            bson::put_int32(out, "n", documents as i32);
            list("writeErrors", out, &|number, out| {
                bson::put_int32(out, "index", number as i32);
                bson::put_int32(out, "code", 11_000);
                bson::put_string(out, "errmsg", "E11000 duplicate key");
            });
        }
        4 => {
            bson::put_head(out, kind::DOCUMENT, "value");
            let value = bson::open(out);
            bson::put_int32(out, "n", 1);
            bson::close(out, value);
        }
        5 => {
            bson::put_string(out, "errmsg", "not primary");
            bson::put_int32(out, "code", 10_107);
            return bson::put_double(out, "ok", 0.0);
        }
        6 => {
            bson::put_boolean(out, "ismaster", true);
            bson::put_int32(out, "maxWireVersion", 21);
            bson::put_string(out, "primary", "127.0.0.1:1");
            bson::put_string(out, "setName", "rs");
            bson::put_head(out, kind::DOCUMENT, "tags");
            let tags = bson::open(out);
            (0..documents).for_each(|number| bson::put_string(out, &number.to_string(), "here"));
            bson::close(out, tags);
            bson::put_head(out, kind::DOCUMENT, "lastWrite");
            let wrote = bson::open(out);
            bson::put_date(out, "lastWriteDate", i64::MIN >> (4 * documents));
            bson::close(out, wrote);
            bson::put_int32(out, "logicalSessionTimeoutMinutes", 30);
        }
        _ => {
            bson::put_int32(out, "n", documents as i32);
            bson::put_int32(out, "nModified", 1);
        }
    }
    bson::put_double(out, "ok", 1.0);
}

/// A reply's message, in one of the forms that the protocol has.
fn whole(which: u8, documents: u32, form: u8) -> Vec<u8> {
    let mut out = Vec::new();
    if form == 0 {
        // OP_REPLY.
        out.extend_from_slice(&[0; 12]);
        out.extend_from_slice(&code::REPLY.to_le_bytes());
        out.extend_from_slice(&[0; 16]);
        out.extend_from_slice(&1i32.to_le_bytes());
    } else {
        message::begin(&mut out, 1);
    }
    let document = bson::open(&mut out);
    reply(which, documents, &mut out);
    bson::close(&mut out, document);
    if form == 1 {
        // A sequence behind the document, and a checksum.
        out[HEADER] |= message::CHECKSUM as u8;
        out.push(1);
        out.extend_from_slice(&11i32.to_le_bytes());
        out.extend_from_slice(b"s\0\x05\0\0\0\0");
        out.extend_from_slice(&[1, 2, 3, 4]);
    }
    message::end(&mut out, 0);
    let Some(by) = form.checked_sub(3).and_then(|number| Compressor::ALL.get(usize::from(number))) else {
        return out;
    };
    let mut packed = Vec::new();
    Codec::new(-1).compress_message(*by, &out, &mut packed);
    packed
}

fn messages() -> impl Strategy<Value = Vec<u8>> {
    (0..8u8, 0..12u32, 0..6u8).prop_map(|(which, documents, form)| whole(which, documents, form))
}

fn decode(request: &Request, bytes: &[u8]) -> (Decoded, u32) {
    let (mut driver, mut x) = (driver(), MongoExchange::default());
    driver.begin(&mut x, request);
    let decoded = driver.decode(&mut x, 0, bytes);
    (decoded, driver.records(&x))
}

/// The length that a message gives itself.
fn declared(bytes: &[u8]) -> Option<i64> {
    bytes.first_chunk::<4>().map(|length| i64::from(i32::from_le_bytes(*length)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_reply_leads_beyond_itself(request in requests(), mut bytes in messages(), spoils in spoils()) {
        spoil(&mut bytes, &spoils);
        let (decoded, records) = decode(&request, &bytes);
        match &decoded {
            Decoded::Need => {
                let more = declared(&bytes).is_none_or(|length| length > bytes.len() as i64) || bytes.len() < HEADER;
                prop_assert!(more, "a complete message is waited for");
            }
            Decoded::Reply { used, then } => {
                prop_assert!((HEADER..=bytes.len()).contains(used));
                prop_assert_eq!(Some(*used as i64), declared(&bytes));
                let sends = matches!(then, Then::Finish(_) | Then::Send { first: 1, count: 1 });
                prop_assert!(sends, "{:?}", then);
            }
            Decoded::Broken | Decoded::Unexpected => {}
            Decoded::Push { .. } => prop_assert!(false, "MongoDB pushes nothing"),
        }
        if decoded != Decoded::Need {
            // What comes behind it changes nothing.
            let mut longer = bytes.clone();
            longer.extend_from_slice(&[0xDB; 64]);
            longer.extend_from_slice(&whole(0, 3, 2));
            prop_assert_eq!(decode(&request, &longer), (decoded, records));
        }
    }

    #[test]
    fn a_good_reply_is_waited_for_to_its_last_byte(
        request in requests(), which in 0..8u8, documents in 0..12u32, form in 0..6u8, cut in any::<prop::sample::Index>(),
    ) {
        let bytes = whole(which, documents, form);
        let cut = cut.index(bytes.len());
        prop_assert_eq!(decode(&request, &bytes[..cut]).0, Decoded::Need);
        if which == 5 && request.verb != Verb::Topology {
            let expected = Decoded::Reply { used: bytes.len(), then: Then::Finish(Outcome::ReadOnly) };
            prop_assert_eq!(decode(&request, &bytes).0, expected);
        }
        let reads = request.verb == Verb::Read;
        if reads && which == 0 {
            let outcome = if documents == 0 { Outcome::NotFound } else { Outcome::Ok };
            let expected = Decoded::Reply { used: bytes.len(), then: Then::Finish(outcome) };
            prop_assert_eq!(decode(&request, &bytes), (expected, documents));
        }
    }

    #[test]
    fn a_stream_of_replies_comes_to_an_end(parts in prop::collection::vec((messages(), spoils()), 1..6)) {
        let mut stream = Vec::new();
        for (mut bytes, spoils) in parts {
            spoil(&mut bytes, &spoils);
            stream.extend_from_slice(&bytes);
        }
        let (mut driver, mut at, mut replies) = (driver(), 0, 0);
        while let Decoded::Reply { used, .. } = driver.skip(&stream[at..]) {
            prop_assert!(used >= HEADER && at + used <= stream.len());
            (at, replies) = (at + used, replies + 1);
        }
        prop_assert!(replies * HEADER <= stream.len());
    }

    #[test]
    fn greetings_and_questions_stand_it_too(mut bytes in messages(), spoils in spoils(), question in 0..QUESTIONS.len()) {
        spoil(&mut bytes, &spoils);
        let (mut driver, mut out) = (driver(), Vec::new());
        driver.hello(0, 7, &mut out);
        out.clear();
        if let GreetingStep::Reply { used, .. } = driver.greeted(0, 7, 0, &bytes, &mut out) {
            prop_assert!((HEADER..=bytes.len()).contains(&used));
        }
        prop_assert!(out.len() < 4_096);
        if let Ok(Some(used)) = MongoFacts::default().read_answer(question, &bytes) {
            prop_assert!((HEADER..=bytes.len()).contains(&used));
        }
        let (mut rest, before) = (bytes.clone(), bytes.len());
        match take_document(&mut rest) {
            Ok(Some(document)) => prop_assert!(!document.is_empty() && rest.len() + HEADER <= before),
            _ => prop_assert_eq!(rest.len(), before),
        }
    }

    #[test]
    fn what_members_say_of_themselves_is_borne(
        told in prop::collection::vec((0..2u16, 0..12u32, spoils(), any::<bool>()), 1..8),
    ) {
        let uri = "mongodb://h/?readPreference=nearest&maxStalenessSeconds=90&readPreferenceTags=1:here&readPreferenceTags=";
        let options = Arc::new(MongoOptions::from_uri(uri).unwrap());
        let set = Deployment::replica_set("rs", vec![endpoint(), endpoint()], 0);
        let mut driver = MongoDriver::new(options, Arc::new(Curious(shapes())), set).unwrap();
        let (mut asked, mut x) = (MongoExchange::default(), MongoExchange::default());
        let topology = Request { verb: Verb::Topology, ..Request::default() };
        for (node, documents, spoils, lost) in told {
            let mut bytes = whole(6, documents, 2);
            spoil(&mut bytes, &spoils);
            driver.begin_topology(&mut asked, &topology, node, u64::MAX);
            let _ = driver.decode(&mut asked, 0, &bytes);
            if lost {
                driver.lost(node, 0, ConnectionStep::Ready);
            }
            driver.begin(&mut x, &Request::default());
            let to = driver.route(&x, 0);
            prop_assert!(to < 2 || to == NOWHERE);
            prop_assert_eq!(driver.endpoints().len(), 2);
        }
    }

    #[test]
    fn lies_about_sizes_cost_no_memory(
        which in 0..8u8, documents in 0..12u32, form in 3..6u8, size in any::<i32>(), by in any::<u8>(),
    ) {
        let mut bytes = whole(which, documents, form);
        let honest = bytes[HEADER + 4..HEADER + 8].to_vec();
        bytes[HEADER + 4..HEADER + 8].copy_from_slice(&size.to_le_bytes());
        let header = message::read_header(&bytes).unwrap().unwrap();
        let mut into = Vec::new();
        let told = Codec::new(-1).expand_body(header, &bytes[HEADER..], &mut into);
        prop_assert_eq!(told.is_ok(), size.to_le_bytes()[..] == honest[..]);
        prop_assert!(into.len() <= 66_001 * bytes.len(), "{} bytes for a message of {}", into.len(), bytes.len());
        // Another compressor than the one that packed it.
        bytes[HEADER + 4..HEADER + 8].copy_from_slice(&honest);
        let real = std::mem::replace(&mut bytes[HEADER + 8], by);
        let told = Codec::new(-1).expand_body(header, &bytes[HEADER..], &mut into);
        prop_assert!(by != real || told.is_ok());
        prop_assert!(by == real || by < 4 || told.is_err());
    }
}
