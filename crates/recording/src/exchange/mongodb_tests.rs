use super::mongodb::{MongodbExchange, MongodbShared, is_request_head};
use super::reason;
use super::redis_tests::{CollectedExchanges, parts};
use crate::entry::{Entry, LongValue, RecordedKind};
use dyno_db_mongodb::protocol::compress::{Codec, Compressor};
use dyno_db_mongodb::protocol::message::{self, HEADER, MORE_TO_COME, code};
use dyno_types::bson::{self, build_document, put_int32, put_int64, put_string};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

/// Fields of a document: a name, and a number or a text.
fn document(fields: &str) -> Vec<u8> {
    build_document(|out| {
        for field in fields.split(' ').filter(|field| !field.is_empty()) {
            let (name, value) = field.split_once('=').unwrap();
            match value.parse() {
                Ok(number) => put_int64(out, name, number),
                Err(_) => put_string(out, name, value),
            }
        }
    })
}

/// A message of OP_MSG with this body, which answers `to`.
fn msg(id: i32, to: i32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let at = message::begin(&mut out, id);
    out.extend_from_slice(body);
    message::end(&mut out, at);
    out[8..12].copy_from_slice(&to.to_le_bytes());
    out
}

fn command(id: i32, fields: &str) -> Vec<u8> {
    msg(id, 0, &document(fields))
}

fn reply(to: i32, fields: &str) -> Vec<u8> {
    msg(to + 1_000, to, &document(fields))
}

/// A reply with a cursor and so many documents.
fn batch(to: i32, cursor: i64, name: &str, count: u32) -> Vec<u8> {
    let body = build_document(|out| {
        let inner = build_document(|out| {
            bson::put_head(out, bson::kind::ARRAY, name);
            let list = bson::open(out);
            for number in 0..count {
                bson::put_item_head(out, bson::kind::DOCUMENT, number);
                out.extend_from_slice(&document("a=1"));
            }
            bson::close(out, list);
            put_int64(out, "id", cursor);
        });
        bson::put_document(out, "cursor", &inner);
        put_int32(out, "ok", 1);
    });
    msg(to + 1_000, to, &body)
}

/// A command in OP_QUERY.
fn query(id: i32, flags: i32, collection: &str, document: &[u8]) -> Vec<u8> {
    let mut out = vec![0; HEADER];
    out[4..8].copy_from_slice(&id.to_le_bytes());
    out[12..16].copy_from_slice(&code::QUERY.to_le_bytes());
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(collection.as_bytes());
    out.push(0);
    out.extend_from_slice(&[0, 0, 0, 0, 255, 255, 255, 255]);
    out.extend_from_slice(document);
    message::end(&mut out, 0);
    out
}

/// A message of another operation.
fn operation(code: i32, id: i32, to: i32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0; HEADER];
    out[4..8].copy_from_slice(&id.to_le_bytes());
    out[8..12].copy_from_slice(&to.to_le_bytes());
    out[12..16].copy_from_slice(&code.to_le_bytes());
    out.extend_from_slice(body);
    message::end(&mut out, 0);
    out
}

fn old_reply(to: i32, fields: &str) -> Vec<u8> {
    operation(code::REPLY, to + 1_000, to, &[&[0; 20][..], &document(fields)].concat())
}

struct Fed {
    exchange: MongodbExchange,
    kept: CollectedExchanges,
    now_ns: u64,
}

impl Fed {
    fn new(is_begin: bool) -> Self {
        Fed::on_connection(0, is_begin, Arc::default())
    }

    fn on_connection(number: u32, is_begin: bool, shared: Arc<Mutex<MongodbShared>>) -> Self {
        let exchange = MongodbExchange::new(number, 1_000, is_begin, shared);
        Fed { exchange, kept: CollectedExchanges::default(), now_ns: 0 }
    }

    fn client(&mut self, bytes: &[u8]) -> &mut Self {
        self.now_ns += 1_000_000;
        self.exchange.feed_request(self.now_ns, bytes, &mut self.kept).unwrap();
        self
    }

    fn server(&mut self, bytes: &[u8]) -> &mut Self {
        self.now_ns += 1_000_000;
        self.exchange.feed_reply(self.now_ns, bytes, &mut self.kept).unwrap();
        self
    }

    fn finish(&mut self) -> (Vec<String>, Vec<(&str, u64)>) {
        self.exchange.finish(&mut self.kept).unwrap();
        let shown = self.kept.entries.iter().map(|(entry, _)| show(entry)).collect();
        (shown, self.kept.left_out.iter().map(|(name, count)| (name.as_str(), *count)).collect())
    }
}

/// A document in words.
fn words_of(document: &[u8]) -> String {
    bson::check(document).unwrap();
    let mut words = Vec::new();
    for element in bson::read_elements(document).unwrap() {
        let element = element.unwrap();
        let value = match element.as_document() {
            Some(inner) => format!("{{{}}}", words_of(inner)),
            None => element.as_str().map_or_else(|| element.as_i64().unwrap().to_string(), str::to_owned),
        };
        words.push(format!("{}={value}", String::from_utf8_lossy(element.name)));
    }
    words.join(" ")
}

fn show(entry: &Entry) -> String {
    let (arguments, reply) = (&entry.arguments, entry.reply.as_ref());
    assert_eq!(arguments.count(), 3);
    let text = |number| String::from_utf8_lossy(arguments.word(number)).into_owned();
    let body = match arguments.long_value(2) {
        Some(value) => format!("{} bytes", value.length),
        None => words_of(arguments.word(2)),
    };
    let reply = reply.map_or("none".into(), |reply| {
        let kind = match reply.kind {
            RecordedKind::Error => format!("error {}", reply.error),
            RecordedKind::Reply(kind) => format!("{} {}", kind.kind_name(), reply.size),
        };
        format!("{kind} {}", reply.after_ns.unwrap() / 1_000_000)
    });
    let overlaps = if entry.overlaps { "& " } else { "" };
    format!("{overlaps}{} in {}: {body} -> {reply}", text(0), text(1))
}

#[test]
fn requests_have_their_replies_in_any_order() {
    let mut fed = Fed::new(true);
    fed.client(&command(1, "ping=1 $db=admin $clusterTime=5 lsid=x"))
        .server(&reply(1, "ok=1"))
        .client(&[command(2, "insert=c $db=a"), command(7, "count=c $db=a")].concat())
        .server(&[reply(7, "n=12 ok=1"), reply(2, "n=1 ok=1")].concat())
        .client(&command(8, "find=c $db=a"))
        .server(&batch(8, 0, "firstBatch", 3))
        .client(&command(9, "nonsense=1 $db=a"))
        .server(&reply(9, "ok=0 code=59 codeName=CommandNotFound"));
    let (shown, left) = fed.finish();
    assert_eq!(
        shown,
        [
            "ping in admin: ping=1 lsid=x -> status 0 1",
            "insert in a: insert=c -> status 1 1",
            "& count in a: count=c -> status 12 1",
            "find in a: find=c -> array 3 1",
            "nonsense in a: nonsense=1 -> error CommandNotFound 1"
        ]
    );
    assert_eq!(left, []);
}

#[test]
fn sequences_of_documents_become_arrays_of_the_body() {
    let mut insert = command(1, "insert=c $db=a ordered=1");
    let at = message::begin_sequence(&mut insert, "documents");
    insert.extend_from_slice(&[document("_id=1"), document("_id=2 b=x")].concat());
    message::end(&mut insert, at);
    insert[HEADER] |= MORE_TO_COME as u8;
    message::end(&mut insert, 0);
    let mut fed = Fed::new(true);
    fed.client(&insert).client(&command(2, "ping=1 $db=a")).server(&reply(2, "ok=1"));
    let long = "x".repeat(2_000);
    fed.client(&command(3, &format!("insert=c b={long} $db=a"))).server(&reply(3, "ok=1 n=1"));
    assert!(!fed.kept.entries[0].1, "an unacknowledged write awaits nothing");
    let (shown, left) = fed.finish();
    assert_eq!(
        shown,
        [
            "insert in a: insert=c ordered=1 documents={0={_id=1} 1={_id=2 b=x}} -> none",
            "ping in a: ping=1 -> status 0 1",
            "insert in a: 2027 bytes -> status 1 1"
        ]
    );
    assert_eq!(left, []);
    let body = document(&format!("insert=c b={long}"));
    assert_eq!(fed.kept.entries[2].0.arguments.long_value(2), Some(LongValue::of_bytes(&body)));
}

#[test]
fn what_drivers_and_logins_say_is_counted() {
    let mut fed = Fed::new(true);
    let hosts = build_document(|out| {
        bson::put_head(out, bson::kind::ARRAY, "hosts");
        let list = bson::open(out);
        put_string(out, "0", "a:27017");
        bson::close(out, list);
        put_int32(out, "ok", 1);
    });
    fed.client(&query(1, 4, "admin.$cmd", &document("isMaster=1")))
        .server(&old_reply(1, "ok=1 ismaster=1"))
        .client(&command(2, "hello=1 $db=admin speculativeAuthenticate=secret"))
        .server(&msg(3, 2, &hosts))
        .client(&command(3, "saslStart=1 payload=secret $db=admin"))
        .server(&reply(3, "ok=1 payload=secret"))
        .client(&command(4, "createUser=u pwd=secret $db=admin"))
        .server(&reply(4, "ok=1"))
        .client(&query(5, 4, "a.$cmd", &document("count=c")))
        .server(&old_reply(5, "ok=1 n=4"));
    let wrapped = build_document(|out| {
        bson::put_document(out, "$query", &document("count=d"));
        bson::put_document(out, "$readPreference", &document("mode=secondary"));
    });
    fed.client(&query(6, 4, "a.$cmd", &wrapped)).server(&old_reply(6, "ok=0 code=13"));
    // A question of old, the rest of its answer, and writes of old.
    fed.client(&query(7, 0, "a.c", &document("x=1"))).server(&old_reply(7, "x=1"));
    fed.client(&operation(code::GET_MORE, 8, 0, &[0; 30])).server(&old_reply(8, "x=1"));
    fed.client(&operation(code::INSERT, 9, 0, &[0; 30])).client(&operation(code::COMMAND, 10, 0, b"x"));
    fed.server(&operation(code::COMMAND_REPLY, 1, 10, b"x")).server(&reply(77, "ok=1"));
    let (shown, left) = fed.finish();
    assert_eq!(
        shown,
        [
            "count in a: count=c -> status 4 1",
            "count in a: count=d $readPreference={mode=secondary} -> error 13 1"
        ]
    );
    let mut expected =
        vec![("credentials", 2), (reason::SERVER_CHECKS, 2), (reason::LEGACY, 4), (reason::UNAWAITED, 1)];
    expected.sort();
    assert_eq!(left, expected);
    assert_eq!(fed.kept.other_servers, 1);
    let secrets = fed.kept.entries.iter().any(|(entry, _)| format!("{entry:?}").contains("secret"));
    assert!(!secrets);
}

#[test]
fn the_rest_of_a_cursor_names_the_command_that_has_opened_it() {
    let shared: Arc<Mutex<MongodbShared>> = Arc::default();
    let mut one = Fed::on_connection(5, true, shared.clone());
    let mut other = Fed::on_connection(6, true, shared);
    one.client(&command(1, "ping=1 $db=a")).server(&reply(1, "ok=1"));
    one.client(&command(2, "saslStart=1 $db=a")).server(&reply(2, "ok=1"));
    one.client(&command(3, "find=c $db=a")).server(&batch(3, 99, "firstBatch", 2));
    one.client(&command(4, "getMore=99 $db=a")).server(&batch(4, 99, "nextBatch", 1));
    other.client(&command(1, "getMore=99 $db=a")).server(&batch(1, 99, "nextBatch", 0));
    other.client(&command(2, "getMore=98 $db=a")).server(&reply(2, "ok=0 codeName=CursorNotFound"));
    let kill = |id| {
        let body = build_document(|out| {
            put_string(out, "killCursors", "c");
            bson::put_head(out, bson::kind::ARRAY, "cursors");
            let list = bson::open(out);
            put_int64(out, "0", 99);
            bson::close(out, list);
            put_string(out, "$db", "a");
        });
        msg(id, 0, &body)
    };
    other.client(&kill(3)).server(&reply(3, "ok=1")).client(&kill(4)).server(&reply(4, "ok=1"));
    let opened = "_openedBy={connection=5 command=1}";
    assert_eq!(
        one.finish().0[1..],
        [
            "find in a: find=c -> array 2 1".to_owned(),
            format!("getMore in a: getMore=99 {opened} -> array 1 1")
        ]
    );
    assert_eq!(
        other.finish().0,
        [
            format!("getMore in a: getMore=99 {opened} -> array 0 1"),
            "getMore in a: getMore=98 -> error CursorNotFound 1".to_owned(),
            format!("killCursors in a: killCursors=c cursors={{0=99}} {opened} -> status 0 1"),
            "killCursors in a: killCursors=c cursors={0=99} -> status 0 1".to_owned(),
        ]
    );
}

#[test]
fn after_a_gap_each_direction_is_read_from_the_begin_of_a_message_on() {
    let mut fed = Fed::new(true);
    fed.client(&command(1, "ping=1 $db=a")).server(&reply(1, "ok=1")).client(&command(2, "ping=2 $db=a"));
    fed.exchange.note_gap(&mut fed.kept);
    assert!(!fed.exchange.is_idle());
    let lost = command(3, "ping=3 $db=a");
    fed.client(&lost[20..]).server(&reply(2, "ok=1")).client(&command(4, "ping=4 $db=a"));
    fed.server(&[reply(3, "ok=1"), reply(4, "ok=1")].concat());
    assert!(fed.exchange.is_idle());
    // What is no message loses track, and so does a message whose content is none.
    fed.server(b"HTTP/1.1 400 Bad Request").client(&command(5, "ping=5 $db=a")).server(&reply(5, "ok=1"));
    fed.client(&msg(6, 0, b"\x09\0\0\0\x99a\0b\0"));
    let (shown, left) = fed.finish();
    assert_eq!(
        shown,
        [
            "ping in a: ping=1 -> status 0 1",
            "ping in a: ping=2 -> none",
            "ping in a: ping=4 -> status 0 1",
            "ping in a: ping=5 -> status 0 1"
        ]
    );
    let mut expected = vec![
        (reason::GAPS, 3),
        (reason::BYTES_AFTER_MONGODB_GAPS, lost.len() as u64 - 20 + 24),
        (reason::UNAWAITED, 2),
    ];
    expected.sort();
    assert_eq!(left, expected);
}

#[test]
fn a_connection_that_began_before_is_read_from_a_message_on() {
    let mut fed = Fed::new(false);
    let long = command(1, &format!("insert=c b={} $db=a", "x".repeat(500)));
    fed.client(&long[100..300]).client(&long[300..]).server(&reply(1, "ok=1"));
    fed.client(&command(2, "ping=1 $db=a")).server(&reply(2, "ok=1"));
    assert_eq!(fed.finish().0, ["ping in a: ping=1 -> status 0 1"]);
    assert!(is_request_head(&command(1, "ping=1 $db=a")) && is_request_head(&command(1, "ping=1")[..16]));
    let good = command(1, "ping=1 $db=a");
    assert!(!is_request_head(&good[..15]) && !is_request_head(&reply(1, "ok=1")));
    for (at, value) in [(0, 15), (3, 0x7F), (8, 1), (12, 0), (13, 0), (16, 4), (20, 2), (23, 1), (21, 1)] {
        let mut bad = good.clone();
        bad[at] = value;
        assert!(!is_request_head(&bad), "{at}");
    }
}

#[test]
fn streams_of_answers_are_left_out() {
    let mut fed = Fed::new(true);
    fed.client(&command(1, "ping=1 $db=a")).server(&reply(1, "ok=1"));
    fed.client(&command(2, "hello=1 maxAwaitTimeMS=1000 $db=admin"));
    let mut going_on = reply(2, "ok=1");
    going_on[HEADER] |= MORE_TO_COME as u8;
    fed.server(&going_on).server(&going_on).client(&command(3, "ping=1 $db=a"));
    let (shown, left) = fed.finish();
    assert_eq!(shown, ["ping in a: ping=1 -> status 0 1"]);
    let mut expected = vec![(reason::SERVER_CHECKS, 1), (reason::UNASKED_STREAMS, 1)];
    expected.sort();
    assert_eq!(left, expected);
    let mut fed = Fed::new(true);
    fed.client(&query(1, 1 << 6, "a.c", &document("x=1")));
    assert_eq!(fed.finish().1, [(reason::UNASKED_STREAMS, 1)]);
}

#[test]
fn messages_above_the_bound_are_skipped() {
    let length = 60 << 20;
    let mut head = command(1, "ping=1 $db=a")[..HEADER].to_vec();
    head[..4].copy_from_slice(&(length as i32).to_le_bytes());
    for cut in [1, 9, HEADER] {
        let mut fed = Fed::new(true);
        fed.client(&head[..cut]).client(&head[cut..]);
        let part = vec![7; 1 << 20];
        let mut left = length - HEADER;
        while left > 0 {
            let taken = left.min(part.len());
            fed.client(&part[..taken]);
            left -= taken;
        }
        fed.server(&reply(1, "ok=0")).client(&command(2, "ping=2 $db=a")).server(&reply(2, "ok=1"));
        let (shown, left) = fed.finish();
        assert_eq!(shown, ["ping in a: ping=2 -> status 0 1"]);
        let mut expected = vec![(reason::TOO_LONG, 1), (reason::UNAWAITED, 1)];
        expected.sort();
        assert_eq!(left, expected);
    }
}

/// A unit of traffic: what the client sends, and what the server answers.
fn units() -> impl Strategy<Value = (String, u32, Option<Compressor>, u8)> {
    let by = prop_oneof![
        Just(None),
        Just(Some(Compressor::Snappy)),
        Just(Some(Compressor::Zlib)),
        Just(Some(Compressor::Zstd))
    ];
    ("[a-z]{1,200}", 0u32..20, by, 0u8..4)
}

fn packed(by: Option<Compressor>, message: Vec<u8>) -> Vec<u8> {
    let Some(by) = by else { return message };
    let mut out = Vec::new();
    Codec::new(1).compress_message(by, &message, &mut out);
    out
}

proptest! {
    #[test]
    fn any_cut_and_compression_give_the_same(
        units in prop::collection::vec(units(), 1..10),
        lengths in prop::collection::vec(1usize..60, 1..5),
        pipelined in 1usize..4,
    ) {
        let mut turns = Vec::new();
        for some in units.iter().zip(1..).collect::<Vec<_>>().chunks(pipelined) {
            let (mut client, mut server) = (Vec::new(), Vec::new());
            let (mut plain_client, mut plain_server) = (Vec::new(), Vec::new());
            for ((text, count, by, form), id) in some {
                let request = match form {
                    0 => command(*id, &format!("find={text} $db=a")),
                    1 => query(*id, 4, "a.$cmd", &document(&format!("find={text}"))),
                    2 => command(*id, &format!("getMore=5 collection={text} $db=a")),
                    _ => command(*id, "hello=1 $db=admin"),
                };
                let answer = match form {
                    1 => old_reply(*id, &format!("ok=1 n={count}")),
                    _ => batch(*id, 5, "firstBatch", *count),
                };
                client.extend(packed(*by, request.clone()));
                plain_client.extend(request);
                // Replies in the other order.
                server.splice(..0, packed(*by, answer.clone()));
                plain_server.splice(..0, answer);
            }
            turns.push((client, server, plain_client, plain_server));
        }
        let feed = |is_plain: bool, lengths: &[usize]| {
            let mut exchange = MongodbExchange::new(3, 100, true, Arc::default());
            let mut kept = CollectedExchanges::default();
            for (turn, (client, server, plain_client, plain_server)) in turns.iter().enumerate() {
                let at_ns = 1_000 * turn as u64;
                let (client, server) = if is_plain { (plain_client, plain_server) } else { (client, server) };
                for part in parts(client, lengths) {
                    exchange.feed_request(at_ns, part, &mut kept).unwrap();
                }
                for part in parts(server, lengths) {
                    exchange.feed_reply(at_ns + 7, part, &mut kept).unwrap();
                }
            }
            assert!(exchange.is_idle());
            exchange.finish(&mut kept).unwrap();
            kept
        };
        let whole = feed(true, &[usize::MAX]);
        prop_assert!(whole.entries.iter().all(|(entry, _)| entry.reply.is_some()));
        prop_assert_eq!(&whole, &feed(false, &[usize::MAX]));
        prop_assert_eq!(&whole, &feed(false, &lengths));
    }

    #[test]
    fn any_bytes_are_taken(
        parts in prop::collection::vec((any::<bool>(), 0u8..3, prop::collection::vec(any::<u8>(), 1..60)), 0..12),
        is_begin in any::<bool>(),
    ) {
        let mut fed = Fed::new(is_begin);
        for (is_client, form, bytes) in parts {
            let codes = [code::MSG, code::QUERY, code::COMPRESSED];
            let whole = operation(codes[usize::from(form)], 1, if is_client { 0 } else { 1 }, &bytes);
            if is_client { fed.client(&whole) } else { fed.server(&whole) };
        }
        fed.finish();
    }
}
