//! `dyno record --anonymise` of real captures: what the application said is not in the recording.

use crate::mongod_failover::admin;
use crate::record_proxy::start_proxy;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_recording::{Entry, RecordingReader};
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, RedisProcess, assert_exit, skip, skip_because, stderr, stdout};
use dyno_types::bson::{self, kind};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};

/// Captures the traffic of a port on the loopback; `None` where that cannot be done here.
struct Tcpdump {
    child: Child,
}

impl Tcpdump {
    fn start(dyno: &Dyno, port: u16) -> Option<Self> {
        let file = dyno.path("traffic.pcap");
        let child = Command::new("tcpdump")
            .args(["-i", "lo", "-U", "-s", "0", "-w"])
            .arg(&file)
            .arg(format!("tcp port {port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let capture = Tcpdump { child };
        let begun = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            std::fs::metadata(&file).is_ok_and(|facts| facts.len() >= 24)
        });
        begun.then_some(capture)
    }

    /// Waits until it has seen a text: what is still in the kernel when it ends is lost.
    fn await_text(&self, dyno: &Dyno, text: &[u8]) {
        let seen = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            holds(&std::fs::read(dyno.path("traffic.pcap")).unwrap(), text)
        });
        assert!(seen, "the capture has come to its end");
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        // An interrupt lets it write what it holds.
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

/// All bytes of the words of a recording, one after the other.
fn words(dyno: &Dyno, file: &str) -> Vec<u8> {
    let mut reader = RecordingReader::open_file(&dyno.path(file)).unwrap();
    let (mut all, mut entry) = (Vec::new(), Entry::default());
    while reader.next_event(&mut entry).unwrap().is_some() {
        entry.arguments.words().for_each(|word| {
            all.extend_from_slice(word);
            all.push(0);
        });
    }
    all
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Every eight bytes of a text.
fn assert_gone(bytes: &[u8], text: &str) {
    for part in text.as_bytes().windows(8) {
        assert!(!holds(bytes, part), "{text}: {}", String::from_utf8_lossy(part));
    }
}

#[test]
fn a_capture_of_redis_tells_no_keys_and_no_values() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("anonymising") };
    let dyno = Dyno::new();
    let Some(capture) = Tcpdump::start(&dyno, server.port) else {
        return skip_because("anonymising", "tcpdump cannot capture here");
    };
    let texts =
        ["customer:Almeida-Santos", "Rua-das-Flores-17", "{session-of-Almeida}:cart", "familyname-field"];
    for n in 0..20 {
        let key = format!("{}:{n}", texts[0]);
        server.cli(&["SET", &key, texts[1], "EX", "600"]);
        server.cli(&["GET", &key]);
        server.cli(&["HSET", texts[2], texts[3], &"a long value of many words ".repeat(20)]);
        server.cli(&["ZADD", "scoreboard-of-all", &n.to_string(), texts[1]]);
        server.cli(&["EVAL", "return redis.call('GET', KEYS[1])", "1", &key]);
    }
    server.cli(&["PING", "the-end-of-the-capture"]);
    capture.await_text(&dyno, b"the-end-of-the-capture");
    drop(capture);
    let record = |out: &str, more: &[&str]| {
        let output = dyno.run(&[&["record", "traffic.pcap", "-o", out][..], more].concat());
        assert_exit(&output, &[0]);
        stdout(&output) + &stderr(&output)
    };
    record("plain.dyno", &[]);
    let said = record("other.dyno", &["--anonymise", "key"]);
    assert!(said.contains("key: a new key") && said.contains("left out: 20 commands of scripts"), "{said}");
    let (plain, other) = (words(&dyno, "plain.dyno"), words(&dyno, "other.dyno"));
    for text in texts.into_iter().chain(["a long value of many words", "scoreboard-of-all"]) {
        assert!(holds(&plain, text.as_bytes()), "{text}");
        assert_gone(&other, text);
    }
    // The same key makes the same words.
    record("again.dyno", &["--anonymise", "key"]);
    assert_eq!(words(&dyno, "again.dyno"), other);
    // It behaves as the traffic did: the same commands, and the same replies.
    server.cli(&["FLUSHALL"]);
    server.cli(&["CONFIG", "RESETSTAT"]);
    let replay = dyno.run(&["replay", "other.dyno", &server.uri(), "--out", "run"]);
    assert_exit(&replay, &[0, 5]);
    let replay = dyno.summary("run");
    let replay = &dyno_testkit::phase(&replay, "measure")["replay"];
    for way in ["missing", "error", "kind", "size"] {
        assert_eq!(replay[way].as_u64(), Some(0), "{replay}");
    }
    assert!(replay["compared"].as_u64() >= Some(80), "{replay}");
    assert_eq!(server.cli(&["DBSIZE"]), "22");
    let short = dyno.path("short");
    std::fs::write(&short, "too short").unwrap();
    let refused = dyno.run(&["record", "traffic.pcap", "-o", "no.dyno", "--anonymise", "short"]);
    assert_exit(&refused, &[2]);
    let refused = dyno.run(&["record", "traffic.pcap", "-o", "no.dyno", "--keep-scripts"]);
    assert_exit(&refused, &[2]);
}

#[test]
fn what_cannot_be_anonymised_is_refused() {
    let dyno = Dyno::new();
    let Some(server) = RedisProcess::start(&[]) else { return skip("anonymising a snapshot") };
    server.cli(&["SET", "key", "value"]);
    let snapshot = dyno.path("shop.rdb");
    let status = Command::new("redis-cli")
        .args(["-p", &server.port.to_string(), "--rdb"])
        .arg(&snapshot)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    let output = dyno.run(&["record", "shop.rdb", "-o", "other.dyno", "--anonymise", "key"]);
    assert_exit(&output, &[2]);
    assert!(stderr(&output).contains("snapshots of Redis cannot"), "{}", stderr(&output));
    assert!(!dyno.path("other.dyno").exists());
}

/// Appends a value under a name. Objects with `$oid` are ids of documents.
fn put_value(out: &mut Vec<u8>, name: &str, value: &Value) {
    match value {
        Value::String(text) => bson::put_string(out, name, text),
        Value::Bool(yes) => bson::put_boolean(out, name, *yes),
        Value::Number(number) => bson::put_int32(out, name, number.as_i64().unwrap() as i32),
        Value::Null => bson::put_null(out, name),
        Value::Array(items) => {
            bson::put_head(out, kind::ARRAY, name);
            let at = bson::open(out);
            items.iter().enumerate().for_each(|(n, item)| put_value(out, &n.to_string(), item));
            bson::close(out, at);
        }
        Value::Object(fields) if fields.contains_key("$oid") => {
            bson::put_head(out, kind::OBJECT_ID, name);
            out.extend_from_slice(&hex::decode(fields["$oid"].as_str().unwrap()).unwrap());
        }
        Value::Object(_) => bson::put_document(out, name, &document_of(value)),
    }
}

fn document_of(value: &Value) -> Vec<u8> {
    let fields = value.as_object().unwrap();
    bson::build_document(|out| fields.iter().for_each(|(name, value)| put_value(out, name, value)))
}

/// Sends a command on a collection of the shop.
fn send(admin: &MongoAdmin, name: &str, collection: &str, more: &Value) -> Vec<u8> {
    let sent = admin.run_on("warehouse", &|out| {
        bson::put_string(out, name, collection);
        more.as_object().unwrap().iter().for_each(|(name, value)| put_value(out, name, value));
    });
    sent.unwrap_or_else(|why| panic!("{name} {more}: {why}"))
}

/// Texts of the application's: names of a database, a collection and fields, and values.
const SAID: [&str; 12] = [
    "warehouse",
    "customers-of-the-north",
    "familyname",
    "home-address",
    "postal-city",
    "ordered-items",
    "Almeida-Santos",
    "Lisboa-Ocidental",
    "sku-hammer",
    "visited-by",
    "note-of-the-clerk",
    "all words of a long note, ",
];

/// A document of the application's.
fn customer(number: u32) -> Value {
    let city = ["Lisboa-Ocidental", "Porto-Campanha"][number as usize % 2];
    json!({
        "_id": { "$oid": format!("650000{:02x}436c69656e74733a", number % 256) },
        "number": number,
        "familyname": format!("Almeida-Santos-{number}"),
        "home-address": { "postal-city": city },
        "ordered-items": ["sku-hammer", format!("sku-hammer-{}", number % 7)],
        "note-of-the-clerk": "all words of a long note, ".repeat(8),
    })
}

/// What the application does. Of its commands 21 hold patterns, and one goes on with such a one's cursor.
fn work_as_shop(admin: &MongoAdmin) {
    let customers = "customers-of-the-north";
    for n in 0..20 {
        let name = format!("Almeida-Santos-{n}");
        send(admin, "find", customers, &json!({ "filter": { "familyname": name } }));
        let city = json!({ "home-address.postal-city": "Lisboa-Ocidental", "ordered-items": { "$in": ["sku-hammer-3"] } });
        send(
            admin,
            "find",
            customers,
            &json!({ "filter": city, "sort": { "number": -1 }, "limit": 5, "projection": { "familyname": 1 } }),
        );
        send(
            admin,
            "find",
            customers,
            &json!({ "filter": { "familyname": { "$regex": "^Almeida-Santos-1" } } }),
        );
        let visit = json!({ "visited-by": { "$each": [name], "$slice": -3 } });
        let change = json!({ "$set": { "home-address.postal-city": "Braga-Central" }, "$push": visit });
        send(admin, "update", customers, &json!({ "updates": [{ "q": { "number": n }, "u": change }] }));
        // What is counted is not changed: several connections of a replay race by some microseconds.
        let totals = json!([
            { "$match": { "ordered-items": "sku-hammer", "home-address.postal-city": { "$ne": "Faro-Oriental" } } },
            { "$group": { "_id": "$ordered-items", "all": { "$sum": 1 }, "last-familyname": { "$max": "$familyname" } } },
            { "$sort": { "all": -1 } },
        ]);
        send(admin, "aggregate", customers, &json!({ "pipeline": totals, "cursor": {} }));
        let newcomer = json!({ "familyname": format!("Pereira-Costa-{n}") });
        let one_more = json!({ "query": newcomer, "update": { "$inc": { "number": 1 } }, "upsert": true });
        send(admin, "findAndModify", customers, &one_more);
        let (home, numbers) =
            (json!({ "postal-city": "Porto-Campanha" }), json!({ "$gte": 100, "$lt": 200 }));
        let unchanged = json!({ "query": { "home-address": home, "number": numbers } });
        send(admin, "count", customers, &unchanged);
        send(admin, "distinct", customers, &json!({ "key": "ordered-items" }));
        send(admin, "insert", customers, &json!({ "documents": [customer(1_000 + n)] }));
    }
    send(
        admin,
        "delete",
        customers,
        &json!({ "deletes": [{ "q": { "familyname": "Almeida-Santos-7" }, "limit": 1 }] }),
    );
    // Cursors: of what is left out, and of what is not.
    for (filter, batches) in
        [(json!({ "familyname": { "$regex": "Almeida" } }), 1), (json!({ "number": { "$gte": 0 } }), 3)]
    {
        let first = send(admin, "find", customers, &json!({ "filter": filter, "batchSize": 10 }));
        let id = bson::element_at_path(&first, "cursor.id").unwrap().as_i64().unwrap();
        for _ in 0..batches {
            let more = |out: &mut Vec<u8>| {
                bson::put_int64(out, "getMore", id);
                bson::put_string(out, "collection", customers);
                bson::put_int32(out, "batchSize", 20);
            };
            admin.run_on("warehouse", &more).unwrap();
        }
    }
}

#[test]
fn a_proxy_before_mongod_tells_no_names_and_no_values() {
    let (Some(then), Some(now)) = (Mongo::mongod(), Mongo::mongod()) else {
        return skip_because("anonymising traffic of MongoDB", "mongod is not on PATH");
    };
    let dyno = Dyno::new();
    let documents: Vec<Value> = (0..200).map(customer).collect();
    let direct = admin(&then.uri("warehouse")).unwrap();
    send(&direct, "insert", "customers-of-the-north", &json!({ "documents": documents }));
    std::fs::create_dir_all(dyno.path("dump/warehouse")).unwrap();
    let dumped: Vec<u8> = documents.iter().flat_map(document_of).collect();
    std::fs::write(dyno.path("dump/warehouse/customers-of-the-north.bson"), dumped).unwrap();
    let record = |more: &[&str], out: &str| {
        let proxy = start_proxy(&dyno, &then.uri("warehouse"), more);
        work_as_shop(&admin(&format!("mongodb://127.0.0.1:{}/warehouse", proxy.port)).unwrap());
        let output = proxy.end();
        assert_exit(&output, &[0]);
        std::fs::rename(dyno.path("traffic.dyno"), dyno.path(out)).unwrap();
        stdout(&output) + &stderr(&output)
    };
    let said = record(&["--anonymise", "key"], "other.dyno");
    assert!(said.contains("21 commands with code, patterns"), "{said}");
    assert!(said.contains("1 getMore and killCursors of commands that anonymising has left out"), "{said}");
    let dump = dyno.run(&["record", "dump", "--anonymise", "key", "-o", "data.dyno"]);
    assert_exit(&dump, &[0]);
    // The same documents once more: what was inserted by the first round goes first.
    let inserted = json!([{ "q": { "number": { "$gte": 1_000 } }, "limit": 0 }]);
    send(&direct, "delete", "customers-of-the-north", &json!({ "deletes": inserted }));
    record(&[], "plain.dyno");
    let [plain, other, data] = ["plain.dyno", "other.dyno", "data.dyno"].map(|file| words(&dyno, file));
    for text in SAID {
        assert!(holds(&plain, text.as_bytes()), "{text}");
        assert_gone(&other, text);
        assert_gone(&data, text);
    }
    // All that is not permuted is commands, options and numbers: no other text of so many letters is in both.
    assert_gone(&other, "Clients:");
    // It behaves as the traffic did, on data that were dumped and anonymised by the same key.
    let replay = ["replay", "other.dyno", &now.uri("warehouse"), "--load-from", "data.dyno", "--out", "run"];
    assert_exit(&dyno.run(&replay), &[0, 5]);
    let summary = dyno.summary("run");
    let replay = &dyno_testkit::phase(&summary, "measure")["replay"];
    for way in ["missing", "error", "kind", "size"] {
        assert_eq!(replay[way].as_u64(), Some(0), "{replay}");
    }
    assert!(replay["compared"].as_u64() >= Some(165), "{replay}");
}
