//! What comes from servers, workers and agents.

use dyno_db_memcached::protocol::{
    self as memcached_protocol, Exchange, MemcachedDriver, MemcachedOptions, Servers,
};
use dyno_db_memcached::stats;
use dyno_db_mongodb::protocol::compress::Codec;
use dyno_db_mongodb::protocol::message::{self, HEADER, code};
use dyno_db_mongodb::protocol::scram::{Conversation, Login};
use dyno_db_mongodb::protocol::{Mechanism, describe_error, is_ok, take_document};
use dyno_db_redis::protocol::{ClusterTopology, RedisFacts, RedisOptions, resp as redis};
use dyno_hosts::protocol::agent::{FromHost, ToHost};
use dyno_hosts::protocol::frame::{Frame, read_frame};
use dyno_hosts::protocol::worker::{FromWorker, ToWorker};
use dyno_monitor::Sample;
use dyno_record::codec;
use dyno_types::bson as doc;
use dyno_types::{Content, Decoded, Driver, Fields, Request, Verb};
use serde::de::DeserializeOwned;

/// Replies to the client that sets servers of Redis up: each is as long as it is to those that skip it.
pub fn redis_replies(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some((_, used))) = redis::read_reply(rest, 1 << 20) {
        assert_eq!(redis::skip_reply(rest, 0), Ok(Some(used)));
        rest = &rest[used..];
    }
}

/// A reply of Redis: what is whole stays so, whatever follows, and no part of it is whole.
pub fn resp(data: &[u8]) {
    let Ok(Some(used)) = redis::skip_reply(data, 0) else { return };
    assert!(used <= data.len() && used > 0);
    assert_eq!(redis::skip_reply(&data[..used], 0), Ok(Some(used)));
    for part in [1, used / 2, used - 1] {
        assert!(part == used || redis::skip_reply(&data[..part], 0) != Ok(Some(part)) || part == 0);
    }
    let mut at = 0;
    while at < used && redis::read_token(data, at).is_ok_and(|found| found.is_some_and(|(_, next)| next > at))
    {
        at = redis::read_token(data, at).ok().flatten().map_or(used, |(_, next)| next);
    }
}

/// What a server of Redis says of itself and of its cluster; the first byte chooses the options.
pub fn redis_facts(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let uri = ["redis://h:1", "redis://u:p@h:1/3", "redis://h:1?cluster=true"][usize::from(first % 3)];
    let options = RedisOptions::from_uri(uri).expect("the URI is right");
    let endpoint = dyno_types::Endpoint::Unix("/s".into());
    let (mut topology, mut facts) = (ClusterTopology::single_node(endpoint), RedisFacts::default());
    let _ = RedisFacts::read_answers(&options, &mut topology, rest, &mut facts);
}

/// Replies of memcached, to commands of every kind, and what a server says of itself; the first byte chooses the options.
pub fn memcached(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let uri =
        ["memcached://h", "memcached://u:p@h", "memcached://h?protocol=text", "memcached://h?layout=string"];
    let options = MemcachedOptions::from_uri(uri[usize::from(first % 4)]).expect("the URI is right");
    let _ = memcached_protocol::MemcachedFacts::read_answers(
        &options,
        rest,
        &mut memcached_protocol::MemcachedFacts::default(),
    );
    if let Ok(text) = std::str::from_utf8(rest) {
        stats::read(text, &mut Sample::default());
    }
    let servers = Servers::new(&options, vec![dyno_types::Endpoint::Unix("/s".into())]).expect("one server");
    let content = std::sync::Arc::new(OneField);
    let mut driver = MemcachedDriver::new(options.into(), content, servers, &[]).expect("a driver");
    let mut x = Exchange::default();
    for verb in [Verb::Read, Verb::Insert, Verb::Update, Verb::Delete] {
        let (mut at, mut out) = (0, Vec::new());
        // Each reply belongs to an exchange of its own.
        loop {
            driver.begin(&mut x, &Request { verb, fields: Fields::One(0), ..Request::default() });
            let Decoded::Reply { used, then } = driver.decode(&mut x, 0, &rest[at..]) else { break };
            assert!(used > 0 && at + used <= rest.len());
            assert!(
                driver.decode(&mut x, 0, &rest[at..at + used - 1]) == Decoded::Need,
                "not whole, and taken"
            );
            if let dyno_types::Then::Send { first: 1, count: 1 } = then {
                out.clear();
                driver.encode(&mut x, 1, &mut out);
                assert!(out.ends_with(b"}\r\n"), "an object was merged");
            }
            at += used;
        }
    }
}

/// Records with two fields, of which one is asked for.
struct OneField;

impl Content for OneField {
    fn table(&self) -> &str {
        "t"
    }

    fn key(&self, _request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(b"key");
    }

    fn fields(&self, request: &Request) -> usize {
        if request.fields == Fields::All { 2 } else { 1 }
    }

    fn name(&self, _request: &Request, field: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(if field == 0 { b"a" } else { b"b" });
    }

    fn value_len(&self, _request: &Request, _field: usize) -> usize {
        1
    }

    fn value(&self, _request: &Request, _field: usize, out: &mut Vec<u8>) {
        out.push(b'"');
    }

    fn verifies(&self) -> bool {
        true
    }
}

/// A document: what passes the check can be read to its end, and a reader never leaves it.
pub fn bson(data: &[u8]) {
    let whole = doc::check(data).is_ok();
    walk(data, 0, whole);
    for path in ["a", "ok", "cursor.firstBatch.0", "writeErrors.0.errmsg"] {
        if let Some(found) = doc::element_at_path(data, path) {
            let _ = (found.as_i64(), found.as_f64(), found.as_str(), found.as_bytes(), found.as_timestamp());
        }
    }
}

fn walk(data: &[u8], depth: usize, whole: bool) {
    let Ok(elements) = doc::read_elements(data) else {
        assert!(!whole, "checked, and not readable");
        return;
    };
    for element in elements {
        let Ok(element) = element else {
            assert!(!whole, "checked, and not readable");
            return;
        };
        let _ = (element.as_str(), element.as_i64(), element.is_true());
        if let Some(inside) = element.as_document().filter(|_| depth < dyno_types::limits::BSON_DEPTH) {
            walk(inside, depth + 1, whole);
        }
    }
}

/// A message of MongoDB, packed or not.
pub fn mongodb(data: &[u8]) {
    if let Ok(Some(header)) = message::read_header(data)
        && header.code == code::COMPRESSED
        && let Some(body) = data.get(HEADER..header.bytes)
    {
        let (mut codec, mut plain) = (Codec::new(-1), Vec::new());
        if let Ok(inner) = codec.expand_body(header, body, &mut plain) {
            let _ = message::read_document(inner, &plain).map(doc::check);
        }
    }
    let mut received = data.to_vec();
    while let Ok(Some(document)) = take_document(&mut received) {
        let _ = (is_ok(doc::find_element(&document, "ok")), describe_error(&document));
    }
}

/// A server's messages while a user logs in. Salts and iterations are read only: mixing them takes milliseconds.
pub fn scram(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let login = Login::new(Mechanism::Sha256, "user", "pencil").expect("a password");
    let (talk, _) = Conversation::with_nonce(&login, "rOprNGfwEbeRWgbNEkqO".into());
    let _ = talk.read_first(text);
    assert!(talk.check(text).is_err(), "nothing was proven yet");
}

/// A page of an exporter.
pub fn prometheus(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = dyno_monitor::prometheus::parse(text, &mut Sample::default());
}

/// Frames between controller and workers.
pub fn worker_frame(data: &[u8]) {
    frames::<FromWorker, ToWorker>(data);
}

/// Frames between controller and agents.
pub fn host_frame(data: &[u8]) {
    frames::<FromHost, ToHost>(data);
}

/// Reads a frame as each side would; a second of load is the same to both, and is read once.
fn frames<There: DeserializeOwned, Here: DeserializeOwned>(data: &[u8]) {
    if !matches!(read_frame::<There>(&mut &data[..]), Ok(Frame::Second(_))) {
        let _ = read_frame::<Here>(&mut &data[..]);
    }
}

/// Histograms of an interval: what can be read is written as it was read.
pub fn totals(data: &[u8]) {
    let Ok(totals) = codec::decode_totals(data).map(|totals| totals.to_dense()) else { return };
    let mut out = Vec::new();
    codec::encode_totals(&totals, &mut out);
    assert_eq!(codec::decode_totals(&out).map(|totals| totals.to_dense()).as_ref(), Ok(&totals));
}
