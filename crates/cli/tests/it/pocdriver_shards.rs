//! `dyno pocdriver` and a sharded cluster, whose router a script plays: what is sharded, split and moved, what is tried
//! again, and what becomes of the balancer.

use dyno_testkit::fake_mongo::{FakeCommand, Script, cursor, error, serve};
use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
use dyno_types::bson::{self, kind};
use std::sync::{Arc, Mutex};

type Log = Arc<Mutex<Vec<String>>>;

fn text(document: &[u8], path: &str) -> String {
    bson::element_at_path(document, path).and_then(|e| e.as_str()).unwrap_or_default().to_owned()
}

/// `_id` at a path, as `worker:sequence`.
fn id(document: &[u8], path: &str) -> String {
    let part = |name: &str| {
        bson::element_at_path(document, &format!("{path}._id.{name}")).unwrap().as_i64().unwrap()
    };
    format!("{}:{}", part("w"), part("i"))
}

/// How many documents an insert brings.
fn documents(command: &FakeCommand) -> i32 {
    let mut rest = &command.sequences[5..];
    rest = &rest[rest.iter().position(|b| *b == 0).unwrap() + 1..];
    let mut count = 0;
    while let Some(Ok(bytes)) = bson::document_length(rest) {
        count += 1;
        rest = &rest[bytes..];
    }
    count
}

fn list_of_shards(out: &mut Vec<u8>) {
    bson::put_head(out, kind::ARRAY, "shards");
    let list = bson::open(out);
    for (index, name) in ["red", "green"].iter().enumerate() {
        bson::put_item_head(out, kind::DOCUMENT, index as u32);
        let shard = bson::open(out);
        bson::put_string(out, "_id", name);
        bson::close(out, shard);
    }
    bson::close(out, list);
}

/// The newest document of worker 6; the others have none.
fn newest(command: &FakeCommand, out: &mut Vec<u8>) {
    if bson::element_at_path(&command.document, "filter._id.$gte.w").and_then(|e| e.as_i64()) != Some(6) {
        return cursor(0, "firstBatch", 0, out);
    }
    bson::put_head(out, kind::DOCUMENT, "cursor");
    let cursor = bson::open(out);
    bson::put_head(out, kind::ARRAY, "firstBatch");
    let list = bson::open(out);
    bson::put_item_head(out, kind::DOCUMENT, 0);
    let document = bson::open(out);
    bson::put_head(out, kind::DOCUMENT, "_id");
    let id = bson::open(out);
    bson::put_int32(out, "w", 6);
    bson::put_int32(out, "i", 99);
    bson::close(out, id);
    bson::close(out, document);
    bson::close(out, list);
    bson::put_int64(out, "id", 0);
    bson::put_string(out, "ns", "d.c");
    bson::close(out, cursor);
    bson::put_double(out, "ok", 1.0);
}

/// What the routers know of the collection, and of its chunks: that worker 6 begins one of them.
fn known(command: &FakeCommand, key: &str, out: &mut Vec<u8>) {
    let document = &command.document;
    let of_chunks = text(document, "find") == "chunks";
    bson::put_head(out, kind::DOCUMENT, "cursor");
    let cursor = bson::open(out);
    bson::put_head(out, kind::ARRAY, "firstBatch");
    let list = bson::open(out);
    bson::put_item_head(out, kind::DOCUMENT, 0);
    let one = bson::open(out);
    bson::put_head(out, kind::DOCUMENT, if of_chunks { "min" } else { "key" });
    let inner = bson::open(out);
    if of_chunks {
        bson::put_head(out, kind::DOCUMENT, "_id");
        let id = bson::open(out);
        bson::put_int32(out, "w", 6);
        bson::put_int32(out, "i", 0);
        bson::close(out, id);
    } else {
        bson::put_int32(out, key, 1);
    }
    bson::close(out, inner);
    bson::close(out, one);
    bson::close(out, list);
    bson::put_int64(out, "id", 0);
    bson::put_string(out, "ns", "config.x");
    bson::close(out, cursor);
    bson::put_double(out, "ok", 1.0);
}

/// A router of two shards. The first split finds the collection locked, and a boundary is there already.
fn router(log: &Log, balancer: &'static str) -> String {
    router_of(log, balancer, None)
}

/// The same, whose collection is sharded already by the key `sharded`.
fn router_of(log: &Log, balancer: &'static str, sharded: Option<&'static str>) -> String {
    let log = log.clone();
    serve(move |_| -> Script {
        Arc::new(move |command, out| {
            let (name, document) = (command.name(), &command.document);
            let line = match name.as_str() {
                "enableSharding" => format!("{name} {}", text(document, &name)),
                "shardCollection" => {
                    let key = bson::element_at_path(document, "key._id").unwrap().as_i64().unwrap();
                    format!("{name} {} {key}", text(document, &name))
                }
                "split" => format!("{name} {} {}", text(document, &name), id(document, "middle")),
                "moveChunk" => {
                    let waits = bson::find_element(document, "_waitForDelete").unwrap().is_true();
                    let to = text(document, "to");
                    let concern = text(document, "writeConcern.w");
                    format!(
                        "{name} {} {} {to} {concern} {waits}",
                        text(document, &name),
                        id(document, "find")
                    )
                }
                "insert" | "hello" | "isMaster" => String::new(),
                _ => name.clone(),
            };
            let mut log = log.lock().unwrap();
            let first_split = name == "split" && !log.iter().any(|line| line.starts_with("split"));
            log.extend((!line.is_empty()).then_some(line));
            match name.as_str() {
                "hello" | "isMaster" => {
                    bson::put_boolean(out, "ismaster", true);
                    bson::put_string(out, "msg", "isdbgrid");
                    bson::put_int32(out, "maxWireVersion", 21);
                }
                "split" if first_split => return error(46, "could not acquire collection lock", out),
                "split" if id(document, "middle") == "6:0" => {
                    return error(2, "whatever a server of this version says of a boundary", out);
                }
                "listShards" => list_of_shards(out),
                "balancerStatus" => bson::put_string(out, "mode", balancer),
                "find" if matches!(text(document, "find").as_str(), "chunks" | "collections") => {
                    return known(command, sharded.unwrap_or("_id"), out);
                }
                "shardCollection" if sharded.is_some() => {
                    return error(23, "sharding already enabled for collection d.c", out);
                }
                "find" => return newest(command, out),
                "count" => bson::put_int32(out, "n", 100),
                "insert" => bson::put_int32(out, "n", documents(command)),
                "enableSharding" | "shardCollection" | "split" | "moveChunk" | "drop" | "balancerStop"
                | "balancerStart" => {}
                _ => return error(59, &format!("no such command: {name}"), out),
            }
            bson::put_double(out, "ok", 1.0);
        })
    })
}

fn run(dyno: &Dyno, router: &str, more: &[&str]) -> std::process::Output {
    let uri = format!("mongodb://{router}/?retryWrites=false");
    let common = [
        "pocdriver",
        "-c",
        &uri,
        "-n",
        "d.c",
        "-d",
        "1",
        "-t",
        "3",
        "--threadIdStart",
        "5",
        "-q",
        "300",
        "-b",
        "20",
    ];
    dyno.run(&[&common[..], more].concat())
}

/// What was said about chunks and the balancer.
fn sharding(log: &Log) -> Vec<String> {
    let about = ["enableSharding", "shardCollection", "split", "moveChunk", "balancer", "drop"];
    let log = log.lock().unwrap();
    log.iter().filter(|line| about.iter().any(|word| line.starts_with(word))).cloned().collect()
}

#[test]
fn every_worker_has_a_chunk_on_the_shard_of_its_number() {
    let (dyno, log) = (Dyno::new(), Log::default());
    let run = run(&dyno, &router(&log, "full"), &["-e"]);
    assert_exit(&run, &[0]);
    assert!(stdout(&run).contains("collection has "), "{}", stdout(&run));
    assert!(stderr(&run).contains("could not acquire collection lock"), "{}", stderr(&run));
    let expected = [
        "drop",
        "enableSharding d",
        "shardCollection d.c 1",
        // Worker 5: the lock was taken, so once more.
        "split d.c 5:0",
        "split d.c 5:0",
        "split d.c 6:0",
        "moveChunk d.c 5:0 green majority true",
        // Worker 6 has documents up to 99.
        "split d.c 6:100",
        "split d.c 7:0",
        "moveChunk d.c 6:100 red majority true",
        "split d.c 7:0",
        "split d.c 8:0",
        "moveChunk d.c 7:0 green majority true",
    ];
    assert_eq!(sharding(&log), expected);
}

/// That it is sharded already is no answer to whether it is as it was asked for.
#[test]
fn a_collection_sharded_by_another_key_is_refused() {
    let (dyno, log) = (Dyno::new(), Log::default());
    let refused = run(&dyno, &router_of(&log, "full", Some("country")), &[]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("d.c is sharded by country, not by _id"), "{}", stderr(&refused));
    assert_exit(&run(&dyno, &router_of(&log, "full", Some("_id")), &[]), &[0]);
}

#[test]
fn nothing_is_sharded_where_that_is_asked() {
    for flags in [&["-w"][..], &["-y", "2"]] {
        let (dyno, log) = (Dyno::new(), Log::default());
        assert_exit(&run(&dyno, &router(&log, "full"), flags), &[0]);
        assert_eq!(sharding(&log), Vec::<String>::new(), "{flags:?}");
    }
}

#[test]
fn the_balancer_is_turned_off_only_where_that_is_asked_and_on_again() {
    for (mode, expected) in
        [("full", &["balancerStatus", "balancerStop", "balancerStart"][..]), ("off", &["balancerStatus"])]
    {
        let (dyno, log) = (Dyno::new(), Log::default());
        assert_exit(&run(&dyno, &router(&log, mode), &["--stop-balancer"]), &[0]);
        let mut said = sharding(&log);
        assert_eq!(said[0], "balancerStatus");
        said.retain(|line| line.starts_with("balancer"));
        assert_eq!(said, expected, "{mode}");
    }
    let (dyno, log) = (Dyno::new(), Log::default());
    let refused = run(&dyno, &router(&log, "full"), &["--stop-balancer", "-w"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("--nosharding"), "{}", stderr(&refused));
}
