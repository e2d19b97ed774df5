//! Tests of the time-series workload: every point once, queries that hit, and the words of a refusal.

use super::*;
use dyno_types::Outcome;
use std::collections::HashSet;

type Properties<'a> = &'a [(&'a str, &'a str)];

fn config(properties: Properties<'_>, users: u64) -> Result<TimeSeriesConfig, BadProperty> {
    let base = [
        ("recordcount", "6400"),
        ("fieldcount", "5"),
        ("fieldlength", "8"),
        ("insertstart", "1000000"),
        ("delayedseries", "0"),
    ];
    TimeSeriesConfig::from_lookup(
        &mut |key| properties.iter().chain(&base).find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned()),
        users,
        1_700_000_000_000,
    )
}

fn bytes(f: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    f(&mut out);
    String::from_utf8(out).unwrap()
}

/// Key, tags and timestamp of a written point.
fn point(content: &dyn Content, request: &Request) -> (String, Vec<String>, i64) {
    let n = content.fields(request);
    for field in 0..n {
        let value = bytes(|out| content.value(request, field, out));
        assert_eq!(value.len(), content.value_len(request, field));
    }
    assert_eq!(bytes(|out| content.name(request, n - 2, out)), "YCSBTS");
    assert_eq!(bytes(|out| content.name(request, n - 1, out)), "YCSBV");
    let tags = (0..n - 2).map(|f| {
        format!(
            "{}={}",
            bytes(|out| content.name(request, f, out)),
            bytes(|out| content.value(request, f, out))
        )
    });
    let time = bytes(|out| content.value(request, n - 2, out)).parse().unwrap();
    (bytes(|out| content.key(request, out)), tags.collect(), time)
}

fn inserts(workload: &TimeSeriesWorkload, n: u64) -> Vec<Request> {
    let frontier = workload.frontier();
    (0..n).map(|i| workload.bind(&workload.draw(i), &frontier)).filter(|r| r.verb == Verb::Insert).collect()
}

#[test]
fn first_points_in_plain_order() {
    let c = config(&[("randomtimeseriesorder", "false")], 1).unwrap();
    let load = TimeSeriesWorkload::load_phase(&c);
    let content = load.content();
    let all = inserts(&load, 400);
    let (key, tags, time) = point(&*content, &all[0]);
    assert_eq!((key.as_str(), time), ("AAAAAAAA", 1_000_000));
    assert_eq!(tags, ["AAAAAAAA=AAAAAAAA", "AAAAAAAB=AAAAAAAA", "AAAAAAAC=AAAAAAAA", "AAAAAAAD=AAAAAAAA"]);
    let (key, tags, _) = point(&*content, &all[9]);
    assert_eq!(
        (key.as_str(), tags[2].as_str(), tags[3].as_str()),
        ("AAAAAAAA", "AAAAAAAC=AAAAAAAB", "AAAAAAAD=AAAAAAAB")
    );
    assert_eq!(point(&*content, &all[64]).0, "AAAAAAAB");
    assert_eq!(point(&*content, &all[320]).2, 1_000_060);
}

#[test]
fn load_and_run_write_every_point_once() {
    for users in [1, 2, 3, 5] {
        for (random, timestamps, sparsity) in
            [("true", "false", "0"), ("false", "true", "0.5"), ("true", "true", "0.3")]
        {
            let properties = [
                ("randomtimeseriesorder", random),
                ("randomwritetimestamporder", timestamps),
                ("sparsity", sparsity),
                ("readproportion", "0.1"),
                ("updateproportion", "0"),
                ("insertproportion", "0.9"),
            ];
            let c = config(&properties, users).unwrap();
            let mut written = inserts(&TimeSeriesWorkload::load_phase(&c), 6400);
            let loaded = written.len();
            let run = TimeSeriesWorkload::run(&c).unwrap();
            assert!(!run.is_pure(), "which point comes next is decided when it is sent");
            assert_eq!(run.metrics(), ["READ", "INSERT", "CLEANUP"]);
            written.extend(inserts(&run, 4096));
            let codes: HashSet<u64> = written.iter().map(|r| r.key).collect();
            assert_eq!(codes.len(), written.len(), "{users} {random} {timestamps} {sparsity}");
            let latest = |all: &[Request]| all.iter().map(|r| r.key / 320).max().unwrap();
            assert!(latest(&written) > latest(&written[..loaded]), "time goes on");
        }
    }
}

#[test]
fn queries_address_loaded_points() {
    let c = config(
        &[
            ("readproportion", "0.5"),
            ("updateproportion", "0.3"),
            ("deleteproportion", "0.2"),
            ("delayedseries", "0.1"),
        ],
        2,
    )
    .unwrap();
    let loaded: HashSet<u64> =
        inserts(&TimeSeriesWorkload::load_phase(&c), 6400).iter().map(|r| r.key).collect();
    let run = TimeSeriesWorkload::run(&c).unwrap();
    let frontier = run.frontier();
    let content = run.content();
    let mut hits = 0;
    for index in 0..2048 {
        let request = run.bind(&run.draw(index), &frontier);
        hits += u64::from(loaded.contains(&request.key));
        assert_eq!(run.next(&request, Outcome::Ok), None);
        if request.verb == Verb::Delete {
            let key = bytes(|out| content.key(&request, out));
            assert_eq!(key.matches(':').count(), 5);
            assert!(key.contains(":AAAAAAAA=AAAAAAAA:") && key.contains(":YCSBTS="), "{key}");
            assert_eq!(content.fields(&request), 0);
        }
    }
    // 3,200 loads per user are 25 whole rounds of one user's 128 series, and 16 of the other's 192 and a rest.
    assert_eq!(hits, 2048);
}

#[test]
fn query_fields() {
    let c = config(
        &[
            ("querytimespan", "3600"),
            ("groupbyfunction", "sum"),
            ("groupbykeys", "0,0,1,1"),
            ("downsamplingfunction", "avg"),
            ("downsamplinginterval", "60"),
        ],
        1,
    )
    .unwrap();
    let content = TimeSeriesContent::new(&c);
    let fields = |verb| {
        let request = Request { verb, key: 320 * 2, ..Request::default() };
        (0..content.fields(&request)).map(|f| bytes(|out| content.name(&request, f, out))).collect::<Vec<_>>()
    };
    let tags = [
        "AAAAAAAA=AAAAAAAA",
        "AAAAAAAB=AAAAAAAA",
        "AAAAAAAC",
        "AAAAAAAD",
        "YCSBTS=1000120,1003720",
        "YCSBGB=sum",
    ];
    let read = fields(Verb::Read);
    assert_eq!(read[..6], tags);
    assert_eq!(read[6], "YCSBDS=avg60");
    assert_eq!(fields(Verb::Scan)[6], "YCSBDS=avg=60");
    let c = config(&[("querytimespan", "3600"), ("queryrandomtimespan", "true")], 1).unwrap();
    let content = TimeSeriesContent::new(&c);
    for seed in 0..100 {
        let request = Request { seed, ..Request::default() };
        let text = bytes(|out| content.name(&request, 4, out));
        let mut ends = text.trim_start_matches("YCSBTS=").split(',').map(|t| t.parse::<i64>().unwrap());
        let from = ends.next().unwrap();
        let to = ends.next().unwrap_or(from);
        assert!((0..=3600).contains(&(to - from)) && (to - from) % 60 == 0);
    }
}

#[test]
fn integrity_and_delays() {
    let c =
        config(&[("dataintegrity", "true"), ("delayedseries", "0.1"), ("randomtimeseriesorder", "false")], 1)
            .unwrap();
    let load = TimeSeriesWorkload::load_phase(&c);
    let content = load.content();
    let all = inserts(&load, 320);
    let request = &all[37];
    let value = bytes(|out| content.value(request, 5, out));
    assert_eq!(value.len(), content.value_len(request, 5));
    assert!(content.verify(request, b"YCSBV", value.as_bytes()));
    assert!(!content.verify(request, b"YCSBV", b"1"));
    // A tenth of 320 series lag behind by their number modulo 5 intervals.
    assert_eq!(point(&*content, &all[4]).2, 1_000_000 - 4 * 60);
    assert_eq!(point(&*content, &all[31]).2, 1_000_000 - 60);
    assert_eq!(point(&*content, &all[34]).2, 1_000_000);
}

#[test]
fn numbers() {
    for (kind, float) in [("floats", Some(true)), ("integers", Some(false)), ("mixednumbers", None)] {
        let c = config(&[("valuetype", kind)], 1).unwrap();
        let content = TimeSeriesContent::new(&c);
        let request = |seed| Request { verb: Verb::Insert, seed, ..Request::default() };
        let texts: Vec<String> = (0..200).map(|s| bytes(|out| content.value(&request(s), 5, out))).collect();
        let floats = texts.iter().filter(|t| t.parse::<i64>().is_err()).count();
        match float {
            Some(true) => assert!(
                floats == 200 && texts.iter().all(|t| (0.0..1e5).contains(&t.parse::<f64>().unwrap()))
            ),
            Some(false) => assert_eq!(floats, 0),
            None => assert!((60..140).contains(&floats)),
        }
    }
}

#[test]
fn few_records_and_faults() {
    // Fewer points than series: queries still work, some of them miss.
    let c =
        config(&[("recordcount", "10"), ("readproportion", "0.5"), ("updateproportion", "0.5")], 5).unwrap();
    let run = TimeSeriesWorkload::run(&c).unwrap();
    let frontier = run.frontier();
    assert!((0..100).all(|i| run.bind(&run.draw(i), &frontier).key < 320));
    let fault = |properties: Properties<'_>, users| config(properties, users).unwrap_err().to_string();
    assert!(fault(&[], 6).contains("one key for each of the 6 threads"));
    assert!(
        fault(&[("requestdistribution", "latest")], 1).contains("uniform, zipfian, hotspot or sequential")
    );
    assert!(fault(&[("timestampunits", "NANOSECONDS")], 1).contains("MILLISECONDS, SECONDS"));
    assert!(fault(&[("tagcardinality", "1,x")], 1).contains("whole numbers above 0"));
    assert!(fault(&[("groupbyfunction", "sum"), ("groupbykeys", "1")], 1).contains("each of the 4 tags"));
    assert!(fault(&[("fieldcount", "30"), ("fieldlength", "1")], 1).contains("enough letters for 30"));
    assert!(fault(&[("dataintegrity", "true"), ("querytimespan", "5")], 1).contains("querytimespan"));
    assert!(fault(&[("recordcount", "0")], 1).contains("1 or more"));
    let unset = TimeSeriesConfig::from_lookup(&mut |_| None, 1, 0).unwrap_err();
    assert_eq!(unset.key, "recordcount");
    assert_eq!(config(&[("tagcardinality", "3")], 1).unwrap().cardinalities, [3, 1, 1, 1]);
    let now = config(&[("insertstart", "1700000000")], 1).unwrap();
    assert_eq!(now.start, 1_700_000_000);
}
