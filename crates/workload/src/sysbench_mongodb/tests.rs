//! Golden documents and the golden transaction: what the original program writes and sends.

use super::*;
use crate::{Frontier, Workload};
use dyno_types::document::{Action, Projection};
use dyno_types::{Content, Outcome, Request, bson};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::fmt::Write;

fn config(documents: u32, collections: u32) -> SysbenchConfig {
    SysbenchConfig { documents, collections, ..SysbenchConfig::default() }
}

/// `id,k,c,pad` of a document, and its number of bytes.
fn row(document: &[u8]) -> (String, usize) {
    bson::check(document).unwrap();
    let names: Vec<_> = bson::read_elements(document).unwrap().map(|e| e.unwrap().name.to_vec()).collect();
    assert_eq!(names, [&b"_id"[..], b"k", b"c", b"pad"]);
    let number = |name| bson::find_element(document, name).unwrap().as_i64().unwrap();
    let text = |name| bson::find_element(document, name).unwrap().as_str().unwrap().to_owned();
    (format!("{},{},{},{}", number("_id"), number("k"), text("c"), text("pad")), document.len())
}

/// The first documents of a collection, as loaded in batches.
fn rows(config: &SysbenchConfig, collection: u32, count: usize) -> Vec<(String, usize)> {
    let load = SysbenchLoad::of_part(config, collection - 1, 1).unwrap();
    let content = load.content();
    let frontier = Frontier::new(0);
    let mut out = Vec::new();
    let mut rows = Vec::new();
    for index in 0.. {
        if rows.len() >= count {
            break;
        }
        let request = load.bind(&load.draw(index), &frontier);
        for number in 0..content.documents(&request) {
            out.clear();
            content.document(&request, number, &mut out);
            rows.push(row(&out));
        }
    }
    rows.truncate(count);
    rows
}

fn hash(rows: &[(String, usize)]) -> String {
    let mut sha = Sha256::new();
    for (row, _) in rows {
        sha.update(format!("{row}\n"));
    }
    sha.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn k(row: &(String, usize)) -> &str {
    row.0.split(',').nth(1).unwrap()
}

#[test]
fn golden_documents() {
    let million = rows(&config(1_000_000, 640), 1, 1_000);
    let first = "1,548986,87344468893-73242269620-94983725406-35905450777-20807236565-89440163868-45896582721-\
                 17821859959-07640351160-42454483377,01376750983-06661949810-55641668812-30952342371-57477967936";
    assert_eq!(million[0], (first.to_owned(), 221));
    assert_eq!((k(&million[1]), k(&million[999])), ("552892", "351398"));
    assert_eq!(hash(&million), "2da910f83312503ac3d8cecb4469884039d1c5da93ae0e397c821e7c7a562e1c");

    let last = rows(&config(1_000_000, 640), 640, 1_000);
    assert!(last[0].0.starts_with("1,869572,07793105847-58241222443"));
    assert_eq!(k(&last[999]), "430510");
    assert_eq!(hash(&last), "5f59e0e838267f3f7e636732a2faa92845efbf0a6a5b318e23c758af332b1507");

    let ten = rows(&config(10_000_000, 1), 1, 1_000);
    assert_eq!((k(&ten[0]), k(&ten[999])), ("9548986", "6942285"));
    assert_eq!(hash(&ten), "2bb5472f72a9b6ce2c901b6de4c4df4568cf2ef80e4361450bc94f038b748884");
}

#[test]
fn the_dialects_differ_in_the_type_of_the_id() {
    let mut config = config(1_000_000, 1);
    let head = rows(&config, 1, 3);
    config.dialect = Dialect::Y2015;
    let old = rows(&config, 1, 3);
    assert!(head.iter().all(|row| row.1 == 221) && old.iter().all(|row| row.1 == 217));
    assert_eq!(hash(&head), hash(&old));
}

/// All requests of a user's transactions, each with an outcome of `outcome(step)`.
fn transaction(run: &SysbenchRun, index: u64, outcome: impl Fn(u16) -> Outcome) -> Vec<Request> {
    let mut requests = vec![run.bind(&run.draw(index), &Frontier::new(0))];
    while let Some(next) = run.next(requests.last().unwrap(), outcome(requests.last().unwrap().step)) {
        requests.push(next);
    }
    requests
}

fn ok(_: u16) -> Outcome {
    Outcome::Ok
}

fn operand(content: &dyn Content, request: &Request, number: u16) -> Vec<u8> {
    let mut out = Vec::new();
    let at = bson::open(&mut out);
    content.operand(request, 0, number, "x", &mut out);
    bson::close(&mut out, at);
    out
}

#[test]
fn golden_transaction() {
    let config = SysbenchConfig { seed: 1_435_936_321, ..config(1_000_000, 640) };
    let run = SysbenchRun::new(&config).unwrap();
    let requests = transaction(&run, 0, ok);
    let content = run.content();
    assert_eq!(requests.len(), 18);
    let mut name = Vec::new();
    content.collection(&requests[5], &mut name);
    assert_eq!(name, b"sbtest163");
    let ids: Vec<u64> = requests.iter().map(|r| r.key).collect();
    assert_eq!(
        ids,
        [
            197418, 407948, 107426, 415070, 719453, 764076, 639371, 793296, 853643, 969254, 332999, 500782,
            201331, 584144, 149246, 259248, 955578, 955578
        ]
    );
    let names: Vec<&str> = requests.iter().map(|r| run.metrics()[usize::from(r.metric)].as_str()).collect();
    assert!(names[..10].iter().all(|name| *name == "POINT-SELECT"));
    let rest =
        "SIMPLE-RANGE SUM-RANGE ORDER-RANGE DISTINCT-RANGE INDEX-UPDATE NON-INDEX-UPDATE DELETE INSERT";
    assert_eq!(names[10..].join(" "), rest);
    assert!(requests.iter().all(|r| run.metrics()[usize::from(run.script(r).unwrap())] == TRANSACTION));

    let x = |request: &Request, number| operand(content.as_ref(), request, number);
    let last = x(&requests[10], 1);
    assert_eq!(bson::find_element(&last, "x").unwrap().as_i64(), Some(332_999 + 99));
    assert_eq!(bson::find_element(&last, "x").unwrap().kind, bson::kind::INT32);
    let one = x(&requests[14], 2);
    assert_eq!(bson::find_element(&one, "x").unwrap().as_i64(), Some(1));
    let c = x(&requests[15], 3);
    let c = bson::find_element(&c, "x").unwrap();
    assert!(c.as_str().unwrap().starts_with("95237247054-") && c.as_str().unwrap().len() == 119);
    let mut document = Vec::new();
    content.document(&requests[17], 0, &mut document);
    let (text, bytes) = row(&document);
    assert!(text.starts_with("955578,286008,") && bytes == 217, "{text}");

    // The next transaction goes on where this one has ended, 294 draws on.
    let mut random = crate::java_random::JavaRandom::new(1_435_936_321);
    let any = crate::java_random::Bound::new(7);
    for _ in 0..294 {
        random.below(any);
    }
    let again = run.bind(&run.draw(10), &Frontier::new(0));
    assert_eq!(u64::from(again.collection), u64::from(random.below(crate::java_random::Bound::new(640))));
}

#[test]
fn shapes_are_those_of_the_original() {
    let run = SysbenchRun::new(&config(1_000, 1)).unwrap();
    let content = run.content();
    let shape = |command: Command| &content.shapes()[command as usize].action;
    let Action::Find { fields, limit: Some(1), single_batch: true, sort, .. } = shape(Command::PointSelect)
    else {
        panic!("a find of one document");
    };
    assert_eq!(*fields, Projection(vec![("c".into(), true), ("_id".into(), false)]));
    assert!(sort.is_empty());
    assert!(matches!(shape(Command::Delete), Action::Delete { many: true, .. }));
    assert!(
        matches!(shape(Command::SumRange), Action::Sum { field, result, .. } if field == "k" && result == "average")
    );
    assert!(matches!(shape(Command::IndexUpdate), Action::Update { many: false, upsert: false, .. }));
    for (number, command) in Command::ALL.into_iter().enumerate() {
        assert_eq!((command as usize, Command::of_shape(number as u16)), (number, command));
    }
}

#[test]
fn a_failed_command_ends_the_transaction_and_the_draws_go_on_behind_it() {
    let run = SysbenchRun::new(&config(1_000, 4)).unwrap();
    let twin = SysbenchRun::new(&config(1_000, 4)).unwrap();
    let failed = transaction(&run, 3, |step| if step == 15 { Outcome::ServerError } else { Outcome::Ok });
    assert_eq!(failed.len(), 16);
    let whole = transaction(&twin, 3, ok);
    assert_eq!(failed, whole[..16]);
    // The delete's draw becomes the choice of the next collection.
    let next = run.bind(&run.draw(13), &Frontier::new(0));
    let mut random = crate::java_random::JavaRandom::from_state(whole[16].seed);
    assert_eq!(next.collection, random.below(crate::java_random::Bound::new(4)));
    assert_eq!(run.resume_ns(&failed[0], 5), 5);
    // A document that is not there fails nothing.
    assert_eq!(transaction(&run, 4, |_| Outcome::NotFound).len(), 18);
    assert_eq!(transaction(&run, 5, |_| Outcome::Aborted).len(), 1);
}

#[test]
fn faithful_defects() {
    let old = SysbenchConfig { dialect: Dialect::Y2015, faithful: true, ..config(1_000, 4) };
    let run = SysbenchRun::new(&old).unwrap();
    let failed = transaction(&run, 3, |_| Outcome::ServerError);
    assert_eq!(run.resume_ns(&failed[0], 5), u64::MAX);
    assert_eq!(run.resume_ns(&transaction(&run, 4, ok)[0], 5), 5);

    let mut odd = SysbenchConfig { batch: 300, ..config(1_000, 4) };
    assert_eq!((odd.loaded_documents(), odd.count_batches(), rows(&odd, 2, 1_000).len()), (1_000, 4, 1_000));
    odd.faithful = true;
    assert_eq!((odd.loaded_documents(), odd.count_batches()), (900, 3));
    odd.batch = 1_001;
    assert!(SysbenchLoad::new(&odd).is_err());
}

#[test]
fn every_document_is_loaded_once_whatever_the_threads() {
    for (collections, loaders, batch) in [(1, 8, 100), (7, 3, 33), (3, 10, 1_000), (5, 5, 7)] {
        let config = SysbenchConfig { loaders, batch, ..config(1_000, collections) };
        let load = SysbenchLoad::new(&config).unwrap();
        let requests: Vec<Request> = std::thread::scope(|scope| {
            let part = |thread: u64| {
                let load = &load;
                move || {
                    let frontier = Frontier::new(0);
                    let indexes = (0..load.count_inserts()).filter(|index| index % 3 == thread);
                    indexes.map(|index| load.bind(&load.draw(index), &frontier)).collect::<Vec<_>>()
                }
            };
            let threads: Vec<_> = (0..3).map(|thread| scope.spawn(part(thread))).collect();
            threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
        });
        let mut ids: Vec<(u32, u64)> = Vec::new();
        for request in &requests {
            ids.extend((0..u64::from(request.limit)).map(|n| (request.collection, request.key + n)));
            load.next(request, Outcome::Ok);
        }
        ids.sort_unstable();
        let all: Vec<(u32, u64)> =
            (0..collections).flat_map(|c| (1..=1_000).map(move |id| (c, id))).collect();
        assert!(ids == all, "{collections} collections, {loaders} loaders, batches of {batch}");
        assert_eq!(load.acknowledged_documents(), all.len() as u64);
    }
}

#[test]
fn independent_transactions_are_functions_of_their_index() {
    let config = SysbenchConfig { streams: Streams::Transactions, ..config(1_000_000, 100) };
    let (one, other) = (SysbenchRun::new(&config).unwrap(), SysbenchRun::new(&config).unwrap());
    transaction(&one, 3, ok);
    assert_eq!(transaction(&one, 13, ok), transaction(&other, 13, ok));
    assert!(!one.is_per_user() && one.is_pure());
}

#[test]
fn what_cannot_be_done_is_refused() {
    let text = |change: &dyn Fn(&mut SysbenchConfig)| {
        let mut config = config(1_000, 1);
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    assert!(text(&|c| c.collections = 0).starts_with("NUM_COLLECTIONS=0: expected"));
    assert!(text(&|c| c.documents = u32::MAX).starts_with("NUM_DOCUMENTS_PER_COLLECTION=4294967295"));
    assert!(text(&|c| c.range_size = i32::MAX as u32).contains("a range that ends below"));
    assert!(text(&|c| c.counts.point_selects = 100_000).contains("100008"));
    let none =
        Counts { point_selects: 0, simple_ranges: 0, sum_ranges: 0, order_ranges: 0, ..Counts::default() };
    let none = Counts { distinct_ranges: 0, index_updates: 0, non_index_updates: 0, inserts: 0, ..none };
    assert!(text(&|c| c.counts = none).contains("at least one command"));
}

proptest! {
    /// Documents are the same in whatever order and by whatever thread they are rendered.
    #[test]
    fn rendering_is_pure(documents in 1u32..5_000, order in proptest::collection::vec(0u32..40, 1..20)) {
        let config = SysbenchConfig { batch: 40, ..config(documents.max(40), 1) };
        let load = SysbenchLoad::new(&config).unwrap();
        let content = load.content();
        let request = load.bind(&load.draw(0), &Frontier::new(0));
        let render = |number| {
            let mut out = Vec::new();
            content.document(&request, number, &mut out);
            out
        };
        let straight: Vec<Vec<u8>> = (0..40).map(render).collect();
        for number in order {
            prop_assert_eq!(&render(number), &straight[number as usize]);
        }
    }
}

/// A loaded document as numbers: `_id`, `shardKey`, `orderId`, `k`.
fn numbers(document: &[u8]) -> [i64; 4] {
    bson::check(document).unwrap();
    ["_id", "shardKey", "orderId", "k"]
        .map(|name| bson::find_element(document, name).unwrap().as_i64().unwrap())
}

#[test]
fn sharded_documents_and_transactions_keep_to_their_shard_key() {
    let sharding = Sharding { keys: 40, each: 250 };
    let config = SysbenchConfig { sharding: Some(sharding), batch: 250, seed: 9, ..config(10_000, 3) };
    let load = SysbenchLoad::new(&config).unwrap();
    let batches: Vec<Request> =
        (0..=6).map(|index| load.bind(&load.draw(index), &Frontier::new(0))).collect();
    let request = batches[6];
    let mut last = Vec::new();
    load.content().document(&request, 249, &mut last);
    let names: Vec<_> = bson::read_elements(&last).unwrap().map(|e| e.unwrap().name.to_vec()).collect();
    assert_eq!(names, [&b"_id"[..], b"shardKey", b"orderId", b"k", b"c", b"pad"]);
    // The third shard key of the first collection.
    assert_eq!(numbers(&last)[..3], [750, 2, 250]);
    assert_eq!(bson::find_element(&last, "_id").unwrap().kind, bson::kind::INT64);
    // Values are those of a collection that is not sharded.
    let plain = rows(&SysbenchConfig { sharding: None, ..config.clone() }, 1, 750);
    assert_eq!(k(&plain[749]), numbers(&last)[3].to_string());

    let run = SysbenchRun::new(&config).unwrap();
    let content = run.content();
    let mut random = crate::java_random::JavaRandom::new(9);
    let below =
        |random: &mut crate::java_random::JavaRandom, n| random.below(crate::java_random::Bound::new(n));
    assert_eq!(run.bind(&run.draw(0), &Frontier::new(0)).collection, below(&mut random, 3));
    let shard = u64::from(below(&mut random, 40));
    let first = u64::from(below(&mut random, 250)) + 1;
    let requests = transaction(&run, 0, ok);
    assert_eq!((requests.len(), requests[0].key), (18, shard * 250 + first));
    let x = |request: &Request, number| {
        bson::find_element(&operand(content.as_ref(), request, number), "x").unwrap().as_i64().unwrap() as u64
    };
    for request in &requests {
        assert_eq!(x(request, 4), shard);
        assert!((1..=250).contains(&x(request, 0)));
        assert_eq!((request.key - 1) / 250, shard);
    }
    assert_eq!(x(&requests[10], 1), x(&requests[10], 0) + 99);
    let mut new = Vec::new();
    content.document(&requests[17], 0, &mut new);
    let [id, key, order, k] = numbers(&new);
    assert_eq!((id, key, order), (requests[16].key as i64, shard as i64, x(&requests[16], 0) as i64));
    assert!((1..=250).contains(&k) && bson::find_element(&new, "_id").unwrap().kind == bson::kind::INT64);
    // Commands ask by both fields.
    for shape in content.shapes().iter().take(8) {
        let text = format!("{:?}", shape.action);
        assert!(
            text.contains("shardKey") && text.contains("orderId") && !text.contains("\"_id\", test"),
            "{text}"
        );
    }
    let wrong = SysbenchConfig { documents: 9_999, ..config };
    assert!(wrong.check().unwrap_err().to_string().starts_with("MAX_SHARD_KEY"));
}
