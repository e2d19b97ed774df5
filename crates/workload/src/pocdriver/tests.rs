use super::*;
use crate::Workload;
use dyno_types::bson::{self, kind};
use dyno_types::{Outcome, Request, Verb};
use std::collections::BTreeMap;

fn config(change: impl FnOnce(&mut PocConfig)) -> PocConfig {
    let mut config = PocConfig { shares: WeightMeaning::Counts, ..PocConfig::default() };
    change(&mut config);
    config
}

/// Mean and range of the size of documents.
fn sizes(config: &PocConfig) -> (f64, usize, usize) {
    let template = Template::new(config);
    let n = 2_000;
    let (mut sum, mut least, mut most) = (0, usize::MAX, 0);
    for sequence in 0..n {
        let mut out = Vec::new();
        template.render_document(config.seed, 1, sequence, &mut out);
        bson::check(&out).unwrap();
        (sum, least, most) = (sum + out.len(), least.min(out.len()), most.max(out.len()));
    }
    (sum as f64 / n as f64, least, most)
}

#[test]
fn documents_have_the_sizes_of_the_original() {
    for (fields, arrays, depth, mean) in [
        (10, (0, 0), 0, 294.8),
        (25, (5, 5), 2, 1027.3),
        (234, (20, 20), 2, 10_265.7),
        (1692, (10, 10), 2, 51_211.8),
    ] {
        let config = config(|c| (c.fields, c.arrays, c.depth) = (fields, arrays, depth));
        let (found, least, most) = sizes(&config);
        assert!(
            (found / mean - 1.0).abs() < if fields == 10 { 0.003 } else { 0.001 },
            "{fields} fields: {found} bytes, not {mean} ({least}-{most})"
        );
    }
}

#[test]
fn types_and_indexed_fields_are_those_of_the_original() {
    let config = config(|c| (c.fields, c.arrays, c.depth) = (25, (5, 5), 2));
    let template = Template::new(&config);
    let expected =
        ["node0.node0.fld0", "node0.node0.fld1", "node0.node0.fld2", "node0.node0.fld3", "node0.node1.fld4"];
    assert_eq!(&template.leaf_names()[..5], expected);
    assert_eq!((template.leaf_names().len(), template.leaf_names()[24].as_str()), (25, "fld24"));
    let mut out = Vec::new();
    template.render_document(1, 1, 12_345_678, &mut out);
    for (path, code) in [
        ("_id.w", kind::INT32),
        ("_id.i", kind::INT32),
        ("node0.node0.fld0", kind::INT64),
        ("node0.node0.fld1", kind::DATE),
        ("node0.node0.fld2", kind::STRING),
        ("node0.node0.fld3", kind::STRING),
        ("fld24", kind::INT64),
        ("arr.4.4", kind::INT32),
        ("bin", kind::BINARY),
    ] {
        assert_eq!(bson::element_at_path(&out, path).unwrap().kind, code, "{path}");
    }
    assert_eq!(bson::element_at_path(&out, "_id.i").unwrap().as_i64(), Some(12_345_678));
    let mut other = Vec::new();
    template.render_document(1, 1, 12_345_679, &mut other);
    assert_ne!(out[60..], other[60..]);
}

/// Runs arrivals of one user; returns requests by shape with their counts.
fn play(workload: &PocWorkload, arrivals: u64, users: u64) -> Vec<Request> {
    let frontier = workload.frontier();
    let mut all = Vec::new();
    for index in 0..arrivals {
        let mut request = workload.bind(&workload.draw(index * users), &frontier);
        loop {
            let records = workload.content().documents(&request);
            workload.answered(&request, Outcome::Ok, records);
            all.push(request);
            match workload.next(&request, Outcome::Ok) {
                Some(next) => request = next,
                None => break,
            }
        }
    }
    all
}

#[test]
fn inserts_go_out_in_whole_bulks_and_the_rest_at_the_end() {
    let config = config(|c| (c.workers, c.bulk) = (2, 100));
    let workload = PocWorkload::new(&config, &[0, 50]).unwrap();
    let sent = play(&workload, 3, 2);
    let runs: Vec<(u64, u32)> = sent.iter().map(|r| (r.key, r.limit)).collect();
    assert_eq!(runs, [(0, 100), (100, 100), (200, 100)]);
    assert_eq!(workload.acknowledged_counts().count_all(), [300, 0, 0, 0]);
    assert_eq!(workload.queued_writes(0).1, 0);
}

#[test]
fn a_mix_keeps_its_weights_and_leaves_nothing_queued() {
    let config = config(|c| {
        (c.workers, c.bulk, c.arrays) = (1, 50, (3, 3));
        c.weights =
            Weights { inserts: 40, key_queries: 30, range_queries: 10, updates: 15, array_updates: 5 };
    });
    let workload = PocWorkload::new(&config, &[]).unwrap();
    let sent = play(&workload, 20_000, 1);
    let mut by_metric: BTreeMap<&str, u64> = BTreeMap::new();
    for request in &sent {
        let n = u64::from(workload.content().documents(request));
        *by_metric.entry(workload.metrics()[usize::from(request.metric)].as_str()).or_default() += n;
    }
    let total: u64 = by_metric.values().sum();
    for (name, share) in
        [("INSERT", 0.40), ("KEYQUERY", 0.30), ("RANGEQUERY", 0.10), ("UPDATE", 0.15), ("ARRAYUPDATE", 0.05)]
    {
        let found = by_metric[name] as f64 / total as f64;
        assert!((found - share).abs() < 0.01, "{name}: {found} of {share}");
    }
    // Keys that are asked for have been sent.
    let newest = sent.iter().filter(|r| r.shape == 0).map(|r| r.key + u64::from(r.limit)).max().unwrap();
    assert!(sent.iter().filter(|r| r.metric == 1).all(|r| r.key < newest));
    let (rest, bulks) = workload.queued_writes(0);
    assert!(bulks <= 1);
    if bulks == 1 {
        play(&rest, 1, 1);
        assert_eq!(workload.queued_writes(0).1, 0);
    }
    let acknowledged = workload.acknowledged_counts().count_all()[0];
    assert!(acknowledged >= sent.iter().filter(|r| r.shape == 0).map(|r| u64::from(r.limit)).sum::<u64>());
}

#[test]
fn workflows_follow_their_letters() {
    let steps: Vec<Step> = "iKuIpk".chars().map(|c| Step::from_letter(c).unwrap()).collect();
    let config = config(|c| (c.workers, c.bulk, c.workflow, c.find_and_modify) = (1, 6, steps, true));
    let workload = PocWorkload::new(&config, &[]).unwrap();
    let sent = play(&workload, 8, 1);
    let shapes: Vec<u16> = sent.iter().map(|r| r.shape).collect();
    // Update and increment at once, the query, then the bulk with the insert.
    assert_eq!(shapes, [6, 8, 1, 0, 6, 8, 1, 0]);
    assert!(PocWorkload::new(&PocConfig { workflow: vec![Step::Pop], ..config }, &[]).is_err());
}

/// Weights are milliseconds: a worker with a thousand iterations a second does sixty of one kind, then forty of the other.
#[test]
fn weights_are_shares_of_each_workers_time() {
    let config = config(|c| {
        (c.shares, c.workers, c.bulk, c.per_second) = (WeightMeaning::Time, 2, 1, 2_000);
        c.weights = Weights { inserts: 60, key_queries: 40, ..Weights::default() };
    });
    let workload = PocWorkload::new(&config, &[10, 10]).unwrap();
    let kinds = |user: u64| -> Vec<bool> {
        let one = |_| {
            let request = workload.bind(&workload.draw(user), &workload.frontier());
            workload.answered(&request, Outcome::Ok, 1);
            request.shape == 0
        };
        (0..1_000).map(one).collect()
    };
    let all = [kinds(0), kinds(1)];
    for kinds in &all {
        assert_eq!(kinds.iter().filter(|is_insert| **is_insert).count(), 600);
        let runs: Vec<usize> = kinds.chunk_by(|a, b| a == b).map(<[bool]>::len).collect();
        let whole = &runs[1..runs.len() - 1];
        assert!(whole.iter().all(|length| [60, 40].contains(length)), "{runs:?}");
    }
    // Each from a place of its own on.
    assert_ne!(all[0], all[1]);
    let again = PocWorkload::new(&PocConfig { first_worker: 2, ..config }, &[10, 10]).unwrap();
    let places: Vec<u64> =
        (0..2).flat_map(|user| [&workload, &again].map(|of| of.place_in_cycle(user, 0, 1_000_000))).collect();
    assert!(places.iter().enumerate().all(|(at, place)| !places[..at].contains(place)), "{places:?}");
}

#[test]
fn operands_name_the_documents_that_were_meant() {
    let config = config(|c| {
        (c.workers, c.bulk, c.first_worker, c.update_fields) = (1, 10, 7, 3);
        c.weights = Weights { inserts: 1, updates: 1, ..Weights::default() };
    });
    let workload = PocWorkload::new(&config, &[100]).unwrap();
    let content = workload.content();
    let sent = play(&workload, 4, 1);
    let updates: Vec<&Request> = sent.iter().filter(|r| r.shape == 3).collect();
    assert!(!updates.is_empty());
    let mut out = Vec::new();
    let last = updates[updates.len() - 1];
    assert_eq!(last.verb, Verb::Document);
    let at = bson::open(&mut out);
    content.operand(last, 0, 0, "_id", &mut out);
    content.operand(last, 0, 16, "fld0", &mut out);
    content.operand(last, 0, 17, "fld1", &mut out);
    bson::close(&mut out, at);
    assert_eq!(bson::element_at_path(&out, "_id.w").unwrap().as_i64(), Some(7));
    let key = bson::element_at_path(&out, "_id.i").unwrap().as_i64().unwrap();
    assert!((0..140).contains(&key));
    assert_eq!(bson::find_element(&out, "fld0").unwrap().kind, kind::INT64);
    assert_eq!(bson::find_element(&out, "fld1").unwrap().kind, kind::DATE);
}

#[test]
fn what_cannot_be_done_is_refused_by_its_flag() {
    for (change, flag) in [
        (Box::new(|c: &mut PocConfig| c.text_chars = 10) as Box<dyn Fn(&mut PocConfig)>, "--textfieldsize"),
        (Box::new(|c: &mut PocConfig| c.indexes = 11), "--indexes"),
        (Box::new(|c: &mut PocConfig| c.weights.array_updates = 1), "--arrayupdates"),
        (Box::new(|c: &mut PocConfig| c.weights = Weights::default()), "--inserts"),
        (Box::new(|c: &mut PocConfig| c.bulk = 0), "--bulksize"),
        (Box::new(|c: &mut PocConfig| c.working_set = 0), "--workingset"),
    ] {
        let error = config(change).check().unwrap_err().to_string();
        assert!(error.starts_with(flag), "{error}");
    }
}

/// Names of the collections that requests go to.
fn collections(workload: &PocWorkload, sent: &[Request]) -> BTreeMap<String, u64> {
    let mut names = BTreeMap::new();
    for request in sent {
        let mut name = Vec::new();
        workload.content().collection(request, &mut name);
        *names.entry(String::from_utf8(name).unwrap()).or_default() += 1;
    }
    names
}

#[test]
fn several_collections_are_numbered_and_documents_found_where_they_went() {
    let config = config(|c| {
        (c.workers, c.bulk, c.collections, c.collection) = (1, 20, 3, "COLL".into());
        c.weights = Weights { inserts: 4, key_queries: 2, updates: 2, ..Weights::default() };
    });
    let workload = PocWorkload::new(&config, &[]).unwrap();
    assert_eq!(workload.poc_content().collections(), ["COLL0", "COLL1", "COLL2"]);
    let sent = play(&workload, 2_000, 1);
    let names = collections(&workload, &sent);
    assert_eq!(names.keys().collect::<Vec<_>>(), ["COLL0", "COLL1", "COLL2"]);
    let mut home = BTreeMap::new();
    for request in sent.iter().filter(|r| r.shape == 0) {
        (request.key..request.key + u64::from(request.limit)).for_each(|key| {
            home.insert(key, request.collection);
        });
    }
    let asked: Vec<&Request> = sent.iter().filter(|r| r.shape == 1 && home.contains_key(&r.key)).collect();
    assert!(asked.len() > 500 && asked.iter().all(|r| home[&r.key] == r.collection));
}

#[test]
fn large_documents_are_divided_among_commands_that_fit() {
    let large = config(|c| (c.workers, c.bulk, c.binary_bytes) = (1, 100, 1 << 20));
    let workload = PocWorkload::new(&large, &[]).unwrap();
    let counts: Vec<u32> = play(&workload, 1, 1).iter().map(|r| r.limit).collect();
    assert_eq!(counts, [45, 45, 10]);
    // The largest of the three shapes of the proof of ingest goes out in one command.
    let proof = config(|c| (c.workers, c.fields, c.arrays, c.depth) = (1, 1_692, (10, 10), 2));
    let counts: Vec<u32> =
        play(&PocWorkload::new(&proof, &[]).unwrap(), 1, 1).iter().map(|r| r.limit).collect();
    assert_eq!(counts, [512]);
    let refused =
        PocWorkload::new(&PocConfig { binary_bytes: 16 << 20, ..large }, &[]).unwrap_err().to_string();
    assert!(refused.starts_with("--binary 16384") || refused.contains("16777216"), "{refused}");
}

#[test]
fn a_slow_bulk_makes_all_its_writes_slow() {
    let config = config(|c| {
        (c.workers, c.bulk, c.thresholds_ms) = (1, 40, vec![5, 100_000]);
        c.weights = Weights { inserts: 1, updates: 1, ..Weights::default() };
    });
    let workload = PocWorkload::new(&config, &[100]).unwrap();
    // A quick bulk, then one whose first command takes long and whose other ones are quick.
    for slow in [false, true] {
        let mut request = workload.bind(&workload.draw(0), &workload.frontier());
        std::thread::sleep(std::time::Duration::from_millis(if slow { 10 } else { 0 }));
        let (mut inserts, mut updates) = (0, 0);
        loop {
            let n = workload.content().documents(&request);
            *(if request.shape == 0 { &mut inserts } else { &mut updates }) += u64::from(n);
            workload.answered(&request, Outcome::Ok, n);
            match workload.next(&request, Outcome::Ok) {
                Some(next) => request = next,
                None => break,
            }
        }
        assert!(inserts > 0 && updates > 0 && inserts + updates == 40);
        if slow {
            assert_eq!(workload.acknowledged_counts().count_slow(), [[inserts, 0, updates, 0], [0; 4]]);
        }
    }
}

#[test]
fn a_bulk_that_fails_half_way_counts_what_was_written() {
    let config = config(|c| (c.workers, c.bulk, c.thresholds_ms) = (1, 40, vec![0]));
    let workload = PocWorkload::new(&config, &[]).unwrap();
    let request = workload.bind(&workload.draw(0), &workload.frontier());
    workload.answered(&request, Outcome::Duplicate, 7);
    assert!(workload.next(&request, Outcome::Duplicate).is_none());
    assert_eq!(
        (workload.acknowledged_counts().count_all()[0], workload.acknowledged_counts().count_slow()[0][0]),
        (7, 7)
    );
}

#[test]
fn a_range_without_documents_is_a_query_too_but_a_miss_of_a_key_is_none() {
    for (weights, place, counted) in [
        (Weights { range_queries: 1, ..Weights::default() }, 3, 1),
        (Weights { key_queries: 1, ..Weights::default() }, 1, 0),
    ] {
        let config = config(|c| (c.workers, c.weights) = (1, weights));
        let workload = PocWorkload::new(&config, &[]).unwrap();
        let request = workload.bind(&workload.draw(0), &workload.frontier());
        workload.answered(&request, Outcome::NotFound, 0);
        assert_eq!(workload.acknowledged_counts().count_all()[place], counted);
        workload.answered(&request, Outcome::ServerError, 0);
        assert_eq!(workload.acknowledged_counts().count_all()[place], counted);
    }
}

#[test]
fn working_set_and_zipfian_choose_among_the_documents_that_are_there() {
    let keys = |change: &dyn Fn(&mut PocConfig)| -> Vec<u64> {
        let mut config =
            config(|c| (c.workers, c.weights) = (1, Weights { key_queries: 1, ..Weights::default() }));
        change(&mut config);
        // Above 21.4 million a worker the original's share of the working set overflows.
        let workload = PocWorkload::new(&config, &[2_000_000_000]).unwrap();
        play(&workload, 5_000, 1).iter().map(|r| r.key).collect()
    };
    let newest = keys(&|c| c.working_set = 10);
    assert!(newest.iter().all(|k| (1_800_000_000..2_000_000_000).contains(k)));
    assert!(newest.iter().any(|k| *k < 1_801_000_000) && newest.iter().any(|k| *k > 1_999_000_000));
    let hot = keys(&|c| c.choice = Choice::Zipfian(1_000));
    let first = hot.iter().filter(|k| **k == 0).count() as f64 / hot.len() as f64;
    assert!((0.11..0.15).contains(&first), "{first}");
    // By the clock all keys of a millisecond are one.
    let walk = keys(&|c| c.choice = Choice::Clock);
    let different: std::collections::BTreeSet<&u64> = walk.iter().collect();
    assert!(different.len() < 500, "{}", different.len());
}
