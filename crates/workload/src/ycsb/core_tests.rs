//! Tests of the core workload: keys, fields, metrics, scripts and the mix as a whole.

use super::*;
use crate::distributions::ScrambledZipfian;
use std::collections::{BTreeMap, HashSet};

fn config(properties: &[(&str, &str)]) -> Result<CoreConfig, BadProperty> {
    CoreConfig::from_lookup(&mut |key| {
        properties.iter().rev().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned())
    })
}

fn run(properties: &[(&str, &str)]) -> CoreWorkload {
    CoreWorkload::run(&config(properties).unwrap()).unwrap()
}

/// The requests of `0..n`, each acknowledged at once; scripts included.
fn requests(workload: &CoreWorkload, n: u64) -> Vec<Request> {
    let frontier = workload.frontier();
    let mut all = Vec::new();
    for index in 0..n {
        let mut request = workload.bind(&workload.draw(index), &frontier);
        loop {
            workload.settled(&request, &frontier);
            all.push(request);
            match workload.next(&request, Outcome::Ok) {
                Some(next) => request = next,
                None => break,
            }
        }
    }
    all
}

fn text(workload: &CoreWorkload, request: &Request) -> (String, Vec<(String, String)>) {
    let content = workload.content();
    let string = |f: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).unwrap()
    };
    let fields = (0..content.fields(request)).map(|i| {
        let value = if request.verb.changes_data() {
            let value = string(&|out| content.value(request, i, out));
            assert_eq!(value.len(), content.value_len(request, i));
            value
        } else {
            String::new()
        };
        (string(&|out| content.name(request, i, out)), value)
    });
    (string(&|out| content.key(request, out)), fields.collect())
}

#[test]
fn load_inserts_every_key_once() {
    let c = config(&[("recordcount", "1000"), ("insertstart", "100"), ("insertcount", "300")]).unwrap();
    let load = CoreWorkload::load_phase(&c).unwrap();
    assert_eq!(load.metrics(), ["INSERT", "CLEANUP"]);
    assert_eq!(c.load_operations(), 300);
    let all = requests(&load, 300);
    assert!(all.iter().zip(100..).all(|(r, k)| r.key == k && r.verb == Verb::Insert && r.metric == 0));
    let (key, fields) = text(&load, &all[0]);
    assert_eq!(key, format!("user{}", crate::keys::ycsb_hash(100)));
    assert_eq!(fields.len(), 10);
    assert_eq!((fields[9].0.as_str(), fields[9].1.len()), ("field9", 100));
    assert_ne!(fields[0].1, fields[1].1);
    assert!(load.is_pure() && load.expects().is_none());
    // As YCSB's does: as many as recordcount says, from insertstart on.
    for start in ["10", "30", "200"] {
        let c = config(&[("recordcount", "30"), ("insertstart", start)]).unwrap();
        assert_eq!(c.load_operations(), 30);
        let first = requests(&CoreWorkload::load_phase(&c).unwrap(), 1)[0];
        assert_eq!(first.key.to_string(), start);
    }
    let behind = config(&[("recordcount", "30"), ("insertstart", "200")]).unwrap();
    let refused = CoreWorkload::run(&behind).unwrap_err().to_string();
    assert_eq!(refused, "insertstart=200: expected at most recordcount, which is 30");
}

#[test]
fn workload_a_draws_what_ycsb_draws() {
    let workload = run(&[
        ("recordcount", "1000"),
        ("operationcount", "1000"),
        ("readproportion", "0.5"),
        ("updateproportion", "0.5"),
        ("requestdistribution", "zipfian"),
    ]);
    assert_eq!(workload.metrics(), ["READ", "UPDATE", "CLEANUP"]);
    let all = requests(&workload, 102_400);
    assert_eq!(all.iter().filter(|r| r.verb == Verb::Read).count(), 51_200);
    assert!(all.iter().all(|r| r.key < 1000), "key 1000 is drawn and thrown away");
    let mut counts = BTreeMap::<u64, u32>::new();
    all.iter().for_each(|r| *counts.entry(r.key).or_default() += 1);
    let hottest = counts.iter().max_by_key(|(_, c)| **c).unwrap();
    assert_eq!(*hottest.0, 144, "the hottest key of 1000 in YCSB");
    assert!((f64::from(*hottest.1) / 102_400.0 - 0.039).abs() < 0.003);
    assert!(all.iter().filter(|r| r.verb == Verb::Update).all(|r| matches!(r.fields, Fields::One(0..=9))));
    assert!(all.iter().filter(|r| r.verb == Verb::Read).all(|r| r.fields == Fields::All));
    assert!(workload.is_pure());
    assert_eq!(workload.expects(), Some((1000, 0)));
}

#[test]
fn a_partition_uses_the_one_key_past_its_end() {
    let workload = run(&[
        ("recordcount", "100"),
        ("insertstart", "10"),
        ("insertcount", "20"),
        ("requestdistribution", "zipfian"),
    ]);
    let keys: HashSet<u64> = requests(&workload, 10_000).iter().map(|r| r.key).collect();
    assert_eq!(keys.len(), 21);
    assert!(keys.contains(&30) && keys.iter().all(|k| (10..=30).contains(k)));
}

#[test]
fn inserts_are_dense_and_reads_stay_behind_them() {
    for distribution in
        ["latest", "zipfian", "exponential", "uniform", "zipfian:0.7", "latest:1.1", "sequential"]
    {
        for mode in ["stratified", "iid"] {
            let workload = run(&[
                ("recordcount", "1000"),
                ("operationcount", "20480"),
                ("updateproportion", "0"),
                ("insertproportion", "0.05"),
                ("requestdistribution", distribution),
                ("dyno.mix", mode),
            ]);
            assert_eq!(workload.metrics(), ["READ", "INSERT", "CLEANUP"]);
            assert!(!workload.is_pure());
            let frontier = workload.frontier();
            let mut inserted = Vec::new();
            for index in 0..20_480 {
                let request = workload.bind(&workload.draw(index), &frontier);
                if request.verb == Verb::Insert {
                    inserted.push(request.key);
                } else {
                    assert!(request.key <= frontier.last().unwrap(), "{distribution}");
                }
                workload.settled(&request, &frontier);
            }
            let n = inserted.len() as u64;
            assert_eq!(inserted, (1000..1000 + n).collect::<Vec<_>>());
            assert_eq!(frontier.last(), Some(999 + n));
            assert!(n == 1024 || (mode == "iid" && (900..1150).contains(&n)));
        }
    }
}

#[test]
fn clients_never_collide() {
    let mut all = HashSet::new();
    let mut total = 0;
    for id in ["0", "1", "2"] {
        let workload = run(&[
            ("recordcount", "1000"),
            ("operationcount", "4096"),
            ("insertproportion", "0.5"),
            ("requestdistribution", "latest"),
            ("dyno.client.id", id),
            ("dyno.client.count", "3"),
        ]);
        let own: HashSet<u64> =
            requests(&workload, 4096).iter().filter(|r| r.verb == Verb::Insert).map(|r| r.key).collect();
        assert!(own.iter().all(|k| (k - 1000) % 3 == id.parse().unwrap()));
        let read: Vec<u64> =
            requests(&workload, 4096).iter().filter(|r| r.verb != Verb::Insert).map(|r| r.key).collect();
        assert!(read.iter().all(|k| *k < 1000 || own.contains(k)), "only own inserts are read");
        assert!(read.iter().any(|k| *k > 1000));
        total += own.len();
        all.extend(own);
    }
    assert_eq!(all.len(), total);
}

#[test]
fn sequential_visits_every_key_in_order() {
    let workload =
        run(&[("recordcount", "100"), ("insertstart", "40"), ("requestdistribution", "sequential")]);
    let keys: Vec<u64> = requests(&workload, 200).iter().map(|r| r.key).collect();
    assert!(keys.iter().enumerate().all(|(i, k)| *k == 40 + i as u64 % 60));
}

#[test]
fn read_modify_write_is_a_script_of_two() {
    let workload = run(&[
        ("recordcount", "1000"),
        ("readproportion", "0"),
        ("updateproportion", "0"),
        ("readmodifywriteproportion", "1"),
        ("readallfields", "false"),
        ("requestdistribution", "zipfian"),
    ]);
    assert_eq!(workload.metrics(), ["READ", "UPDATE", "READ-MODIFY-WRITE", "CLEANUP"]);
    let draw = workload.draw(5);
    assert_eq!(draw.kind, 2);
    let frontier = workload.frontier();
    let read = workload.bind(&draw, &frontier);
    assert_eq!((read.verb, read.metric, read.step, workload.script(&read)), (Verb::Read, 0, 0, Some(2)));
    let update = workload.next(&read, Outcome::NotFound).unwrap();
    assert_eq!((update.verb, update.metric, update.step, update.key), (Verb::Update, 1, 1, read.key));
    assert_eq!(workload.script(&update), Some(2));
    assert_eq!(workload.next(&update, Outcome::Ok), None);
    assert_eq!(workload.next(&read, Outcome::Aborted), None);
    let independent = (0..1000)
        .map(|i| workload.bind(&workload.draw(i), &frontier))
        .filter(|r| r.fields == workload.next(r, Outcome::Ok).unwrap().fields)
        .count();
    assert!((60..140).contains(&independent), "the two fields are drawn independently: {independent}");
}

#[test]
fn scans_and_deletes() {
    let workload = run(&[
        ("recordcount", "1000"),
        ("readproportion", "0"),
        ("updateproportion", "0"),
        ("scanproportion", "0.5"),
        ("deleteproportion", "0.5"),
        ("maxscanlength", "5"),
        ("minscanlength", "2"),
    ]);
    assert_eq!(workload.metrics(), ["SCAN", "DELETE", "SCAN-LATENCY-PER-RECORD", "CLEANUP"]);
    let all = requests(&workload, 4096);
    let lengths: HashSet<u32> = all.iter().filter(|r| r.verb == Verb::Scan).map(|r| r.limit).collect();
    assert_eq!(lengths, HashSet::from([2, 3, 4, 5]));
    let delete = all.iter().find(|r| r.verb == Verb::Delete).unwrap();
    assert_eq!(text(&workload, delete).1, []);
    let zipfian = run(&[
        ("recordcount", "1000"),
        ("readproportion", "0"),
        ("updateproportion", "0"),
        ("scanproportion", "1"),
        ("scanlengthdistribution", "zipfian"),
    ]);
    let all = requests(&zipfian, 4096);
    assert!(all.iter().all(|r| (1..=1000).contains(&r.limit)));
    assert!(all.iter().filter(|r| r.limit == 1).count() > 400);
}

#[test]
fn integrity_is_checked_by_any_client() {
    let workload = run(&[("recordcount", "10"), ("dataintegrity", "true"), ("writeallfields", "true")]);
    assert_eq!(workload.metrics(), ["READ", "UPDATE", "VERIFY", "CLEANUP"]);
    let content = workload.content();
    assert!(content.verifies());
    let update = Request { verb: Verb::Update, key: 0, ..Request::default() };
    let (_, fields) = text(&workload, &update);
    assert_eq!(
        fields[0].1,
        "user6284781860667377211:field0:-56807877:2032869390:-165488160:1762371712:-169193395:-1039977118:-10"
    );
    let read = Request { key: 0, seed: 99, ..Request::default() };
    assert!(content.verify(&read, b"field0", fields[0].1.as_bytes()));
    assert!(!content.verify(&read, b"field1", fields[0].1.as_bytes()));
    assert!(!content.verify(&read, b"field0", b""));
    let bound = requests(&workload, 1024);
    let bound_read = bound.iter().find(|r| r.verb == Verb::Read).unwrap();
    assert_eq!(bound_read.fields, Fields::Named);
    assert_eq!(text(&workload, bound_read).1.len(), 10);
}

#[test]
fn field_lengths_follow_their_distribution() {
    let base = [("recordcount", "10"), ("fieldlength", "20"), ("minfieldlength", "5")];
    for (distribution, range) in [("uniform", 5..=20), ("zipfian", 5..=20), ("histogram", 10..=30)] {
        let mut properties = base.to_vec();
        properties.push(("fieldlengthdistribution", distribution));
        let mut c = config(&properties).unwrap();
        if distribution == "histogram" {
            assert_eq!(c.needs_histogram(), Some("hist.txt"));
            assert_eq!(CoreWorkload::load_phase(&c).unwrap_err().key, "fieldlengthhistogram");
            c.set_histogram("BlockSize\t10\n0\t1\n1\t0\n2\t3\n").unwrap();
            assert_eq!(c.needs_histogram(), None);
        }
        let load = CoreWorkload::load_phase(&c).unwrap();
        let lengths: HashSet<usize> =
            requests(&load, 200).iter().flat_map(|r| text(&load, r).1).map(|(_, v)| v.len()).collect();
        assert!(lengths.iter().all(|l| range.contains(l)), "{distribution}");
        assert!(lengths.contains(range.start()) && lengths.contains(range.end()), "{distribution}");
    }
}

/// The range that YCSB's zipfian draws from: insertcount, what inserts are expected to make, and one more.
#[test]
fn the_key_space_is_ycsbs() {
    let chooser = |properties: &[(&str, &str)]| {
        let all =
            [&[("recordcount", "4000000"), ("requestdistribution", "zipfian")][..], properties].concat();
        Chooser::new(&config(&all).unwrap())
    };
    let of = |items: u64| Chooser::Scrambled(ScrambledZipfian::new(0, items));
    let mix = |read: &'static str, update: &'static str, insert: &'static str| {
        [("readproportion", read), ("updateproportion", update), ("insertproportion", insert)]
    };
    let none = [("insertcount", "0"), ("operationcount", "4000000")];
    assert_eq!(chooser(&[&none[..], &mix("0.9", "0.1", "0")].concat()), of(1));
    assert_eq!(chooser(&[&none[..], &mix("0.7", "0", "0.3")].concat()), of(2_400_001));
    assert_eq!(chooser(&mix("0.5", "0.5", "0")), of(4_000_001));
    // A draw of the key behind the last one is repeated.
    let few = chooser(&[("recordcount", "10"), ("insertcount", "10")]);
    let choose = |place: u64| few.choose_key(&mut Stream::new(7, place, Purpose::Choice), || place, 9);
    let keys: HashSet<u64> = (0..2_000).map(choose).collect();
    assert_eq!(keys, (0..10).collect());
}

#[test]
fn bad_combinations_are_refused_with_words() {
    let fault = |properties: &[(&str, &str)]| {
        let mut all = vec![("recordcount", "1000")];
        all.extend(properties);
        config(&all).unwrap_err().to_string()
    };
    let cases: [(&[(&str, &str)], &str); 16] = [
        (&[("insertstart", "600"), ("insertcount", "500")], "which is 400"),
        (&[("recordcount", "-5")], "recordcount=-5: expected a whole number"),
        (&[("recordcount", "0"), ("requestdistribution", "zipfian")], "recordcount=0: expected"),
        (&[("readproportion", "0"), ("updateproportion", "0")], "above 0 for at least one operation"),
        (&[("readproportion", "-1")], "readproportion=-1: expected a number from 0 on"),
        (&[("requestdistribution", "hotspot"), ("hotspotdatafraction", "0")], "above 0 and below 1"),
        (&[("requestdistribution", "hotspot"), ("hotspotdatafraction", "1")], "above 0 and below 1"),
        (&[("requestdistribution", "hotspot"), ("hotspotdatafraction", "0.0001")], "1000 keys hot"),
        (&[("requestdistribution", "Zipfian")], "uniform, zipfian, latest"),
        (&[("requestdistribution", "zipfian:x")], "uniform, zipfian, latest"),
        (&[("requestdistribution", "zipfian:1.2"), ("dyno.zipfian", "ycsb")], "between 0 and 1"),
        (
            &[("fieldlengthdistribution", "uniform"), ("minfieldlength", "200")],
            "at most fieldlength, which is 100",
        ),
        (&[("minscanlength", "2000")], "at most maxscanlength, which is 1000"),
        (&[("fieldlengthdistribution", "uniform"), ("dataintegrity", "true")], "constant"),
        (&[("dyno.client.id", "2"), ("dyno.client.count", "2")], "0 to 1"),
        (
            &[("insertcount", "0"), ("requestdistribution", "uniform")],
            "insertcount=0: expected a range of at least one key",
        ),
    ];
    for (properties, expected) in cases {
        let text = fault(properties);
        assert!(text.contains(expected), "{properties:?}: {text}");
    }
    assert!(fault(&[("dyno.value", "compressible:0")]).contains("compressible:N"));
    assert!(fault(&[("dyno.seed", "x")]).contains("0x"));
    let insert_only =
        [("recordcount", "0"), ("readproportion", "0"), ("updateproportion", "0"), ("insertproportion", "1")];
    let c = config(&insert_only).unwrap();
    assert!(CoreWorkload::run(&c).is_ok());
    assert_eq!(CoreWorkload::load_phase(&c).unwrap_err().key, "recordcount");
}

#[test]
fn zipfian_flavours() {
    use crate::ycsb::request_distribution::{Flavour, RequestDistribution};
    let requests = |properties: &[(&str, &str)]| {
        let mut all = vec![("recordcount", "1000")];
        all.extend(properties);
        config(&all).unwrap().requests
    };
    let zipfian = |flavour, theta| RequestDistribution::Zipfian { flavour, theta };
    assert_eq!(requests(&[("requestdistribution", "zipfian")]), zipfian(Flavour::Ycsb, 0.99));
    assert_eq!(requests(&[("requestdistribution", "zipfian:0.8")]), zipfian(Flavour::True, 0.8));
    let both = [("requestdistribution", "zipfian"), ("dyno.zipfian.theta", "1.5")];
    assert_eq!(requests(&both), zipfian(Flavour::True, 1.5));
    let ycsb = [("requestdistribution", "zipfian:0.5"), ("dyno.zipfian", "ycsb")];
    assert_eq!(requests(&ycsb), zipfian(Flavour::Ycsb, 0.5));
    let exact = [("requestdistribution", "zipfian"), ("dyno.zipfian", "true")];
    assert_eq!(requests(&exact), zipfian(Flavour::True, 0.99));
}
