use super::*;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;

const SECOND: u64 = 1_000_000_000;

#[test]
fn rows_are_read_as_they_were_written() {
    let run = tempfile::tempdir().unwrap();
    let mut writer = MonitorWriter::create_in(run.path(), 1_000.0).unwrap();
    let labelled = "a_total{x=\"1\",y=\"2\"}";
    writer.write_row("never", SECOND, []);
    writer.write_row("s", SECOND + 1_234_567, [(labelled, Kind::Counter, 1e15), ("b", Kind::Gauge, -0.125)]);
    writer.write_row("s", 2 * SECOND, []);
    writer.write_row("s", 3 * SECOND, [("b", Kind::Gauge, 0.1)]);
    // The set grows: another file.
    writer.write_row("s", 4 * SECOND, [("c", Kind::Gauge, 7.0), ("b", Kind::Gauge, 0.2)]);
    writer.write_row("a/b", SECOND, [("x", Kind::Gauge, 1.0)]);
    writer.write_row("a_b", SECOND, [("x", Kind::Gauge, 2.0)]);
    assert_eq!(writer.first_failure(), None);
    let folder = run.path().join("monitor");
    let text = std::fs::read_to_string(folder.join("s.csv")).unwrap();
    let header = "time_ms,\"a_total{x=\"\"1\"\",y=\"\"2\"\"}\",b\n";
    let expected = format!("{header}1001.234,1000000000000000,-0.125\n2000.000,,\n3000.000,,0.1\n");
    assert_eq!(text, expected);
    assert!(folder.join("s.2.csv").is_file());
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);

    let recording = Recording::open(run.path()).unwrap().unwrap();
    assert_eq!(recording.source_names().collect::<Vec<_>>(), ["a/b", "a_b", "s"]);
    let points = |source: &str, name: &str| recording.find_series(source, name).unwrap().points;
    assert_eq!(
        points("s", "b"),
        [(1_001.234, Some(-0.125)), (2_000.0, None), (3_000.0, Some(0.1)), (4_000.0, Some(0.2))]
    );
    assert_eq!(points("s", labelled)[0].1, Some(1e15));
    assert_eq!(points("s", "c"), [(1_001.234, None), (2_000.0, None), (3_000.0, None), (4_000.0, Some(7.0))]);
    assert_eq!(recording.find_series("s", labelled).unwrap().kind, Kind::Counter);
    assert_eq!((points("a/b", "x")[0].1, points("a_b", "x")[0].1), (Some(1.0), Some(2.0)));
}

#[test]
fn a_part_is_what_the_whole_has_of_it() {
    let run = tempfile::tempdir().unwrap();
    let mut writer = MonitorWriter::create_in(run.path(), 1_000.0).unwrap();
    for second in 1..=9 {
        let value = second as f64;
        let later = (second > 5).then_some(("later", Kind::Gauge, value));
        let row = [("a", Kind::Counter, value), ("b", Kind::Gauge, -value)];
        writer.write_row("s", second * SECOND, row.into_iter().chain(later));
        writer.write_row("other", second * SECOND, [("a", Kind::Gauge, 1.0)]);
    }
    let part = |from_ms: f64| {
        let wanted = |source: &str, name: &str| source == "s" && name != "a";
        Recording::open_part(run.path(), from_ms, &wanted).unwrap().unwrap()
    };
    let some = part(3_500.0);
    assert_eq!(some.series_names("s").collect::<Vec<_>>(), ["b", "later"]);
    assert_eq!(some.series_names("other").count(), 0);
    let mut whole = Recording::open(run.path()).unwrap().unwrap();
    whole.forget_before(3_500.0);
    for name in ["b", "later"] {
        assert_eq!(some.find_series("s", name), whole.find_series("s", name));
    }
    assert_eq!(part(3_000.0).find_series("s", "b").unwrap().points[0], (2_000.0, Some(-2.0)));
    assert_eq!(
        some.find_series("s", "b").unwrap().points[0],
        (3_000.0, Some(-3.0)),
        "the last one before it"
    );
    assert_eq!(
        part(1e9).find_series("s", "b").unwrap().points,
        [(5_000.0, Some(-5.0)), (9_000.0, Some(-9.0))]
    );
    writer.write_row("s", 2 * SECOND, [("b", Kind::Gauge, -10.0)]);
    assert_eq!(part(8_500.0).find_series("s", "b").unwrap().points.len(), 4, "a clock that was set back");
    assert_eq!(part(f64::NEG_INFINITY).find_series("s", "b").unwrap().points.len(), 10);
}

#[test]
fn a_torn_line_is_left_out_and_a_wrong_one_named() {
    let run = tempfile::tempdir().unwrap();
    assert!(Recording::open(run.path()).unwrap().is_none());
    let mut writer = MonitorWriter::create_in(run.path(), 1_000.0).unwrap();
    writer.write_row("s", SECOND, [("a", Kind::Gauge, 1.0)]);
    let path = run.path().join("monitor/s.csv");
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"2000.000,").unwrap();
    let recording = Recording::open(run.path()).unwrap().unwrap();
    assert_eq!(recording.find_series("s", "a").unwrap().points, [(1_000.0, Some(1.0))]);
    file.write_all(b"x\n").unwrap();
    let message = Recording::open(run.path()).unwrap_err().to_string();
    assert!(message.ends_with("s.csv:3: a: \"x\" is no number"), "{message}");
}

#[test]
fn a_failing_write_is_remembered_and_stops_nothing() {
    let run = tempfile::tempdir().unwrap();
    let mut writer = MonitorWriter::create_in(run.path(), 1_000.0).unwrap();
    writer.write_row("s", SECOND, [("a", Kind::Gauge, 1.0)]);
    std::fs::remove_dir_all(run.path().join("monitor")).unwrap();
    writer.write_row("t", SECOND, [("a", Kind::Gauge, 1.0)]);
    writer.write_row("s", 2 * SECOND, [("a", Kind::Gauge, 1.0)]);
    assert!(writer.first_failure().unwrap().contains("No such file"));
}

/// An hour at one second with 200 series, half of them counters that grow fast.
fn an_hour(run: &std::path::Path) -> u64 {
    let mut writer = MonitorWriter::create_in(run, 1_000.0).unwrap();
    let names: Vec<String> = (0..200).map(|i| format!("series.number.{i}_bytes")).collect();
    for second in 0..3_600u64 {
        let row = names.iter().enumerate().map(|(i, name)| {
            let grown = (second * (i as u64 + 1) * 1_234_567) as f64;
            if i % 2 == 0 {
                (name.as_str(), Kind::Counter, grown)
            } else {
                (name.as_str(), Kind::Gauge, grown / 1024.0)
            }
        });
        writer.write_row("host", 1_763_700_000 * SECOND + second * SECOND + 12_345, row);
    }
    assert_eq!(writer.first_failure(), None);
    let files = std::fs::read_dir(run.join("monitor")).unwrap();
    files.map(|f| f.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn an_hour_is_small_and_complete() {
    let run = tempfile::tempdir().unwrap();
    let bytes = an_hour(run.path());
    assert!(bytes < 30 << 20, "{bytes} bytes");
    let recording = Recording::open(run.path()).unwrap().unwrap();
    assert_eq!(recording.series_names("host").count(), 200);
    let series = recording.find_series("host", "series.number.198_bytes").unwrap();
    assert_eq!(series.points.len(), 3_600);
    let from = 1_763_700_000_000.0;
    let rate = series.rate_between(from + 500.5, from + 3_000_000.25).unwrap();
    assert!((rate / (199.0 * 1_234_567.0) - 1.0).abs() < 1e-9, "{rate}");
}

/// Checks that what a load generator saw of its own host says nothing of a server on another one.
#[test]
fn the_host_of_a_server_elsewhere_is_unknown_unless_it_was_watched() {
    let run = tempfile::tempdir().unwrap();
    let mut writer = MonitorWriter::create_in(run.path(), 1_000.0).unwrap();
    writer.write_row("host", SECOND, [("cpu.idle_s", Kind::Counter, 1.0)]);
    let host = || Recording::open(run.path()).unwrap().unwrap().host_source().to_owned();
    assert_eq!(host(), "host");
    std::fs::write(run.path().join("run.json"), "{\"facts\": {\"target.elsewhere\": \"true\"}}").unwrap();
    assert_eq!(host(), "");
    writer.write_row("host-db", SECOND, [("cpu.idle_s", Kind::Counter, 1.0)]);
    writer.write_row("server-db-redis-1", SECOND, [("cpu.user_s", Kind::Counter, 1.0)]);
    assert_eq!(host(), "host-db");
}

/// Hosts that were named are those of the target, whether their server's process was found or not, and before any sample.
#[test]
fn the_host_that_was_named_is_the_target_s() {
    let run = tempfile::tempdir().unwrap();
    let mut writer = MonitorWriter::create_in(run.path(), 1_000.0).unwrap();
    writer.write_row("host", SECOND, [("cpu.idle_s", Kind::Counter, 1.0)]);
    writer.write_row("host-load", SECOND, [("cpu.idle_s", Kind::Counter, 1.0)]);
    std::fs::write(run.path().join("run.json"), "{\"facts\": {\"target.hosts\": \"db, db2\"}}").unwrap();
    let open = || Recording::open(run.path()).unwrap().unwrap();
    assert_eq!(open().host_source(), "host-db");
    assert_eq!(
        open().find_series(open().host_source(), "cpu.idle_s"),
        None,
        "nothing of another host stands in"
    );
    writer.write_row("host-db", SECOND, [("cpu.idle_s", Kind::Counter, 2.0)]);
    assert_eq!(open().find_series(open().host_source(), "cpu.idle_s").unwrap().points[0].1, Some(2.0));
}

#[test]
fn any_name_of_a_source_or_a_series_is_found_again() {
    let run = tempfile::tempdir().unwrap();
    let mut writer = MonitorWriter::create_in(run.path(), 1_000.0).unwrap();
    let names = ["a,b", "\"", "two\nlines, \"quoted\"\n", "\r", "", "a b", "\"\",\""];
    for (number, source) in ["..hidden", "UPPER-1_2.3", "ä/ö"].into_iter().enumerate() {
        let row = names.iter().enumerate().map(|(at, name)| (*name, Kind::Gauge, (10 * number + at) as f64));
        writer.write_row(source, SECOND, row);
    }
    assert_eq!(writer.first_failure(), None);
    let mut files: Vec<String> = std::fs::read_dir(run.path().join("monitor"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["UPPER-1_2.3.csv", "___.csv", "hidden.csv", "series.json"]);
    let recording = Recording::open(run.path()).unwrap().unwrap();
    let mut sorted = names;
    sorted.sort();
    for (number, source) in ["..hidden", "UPPER-1_2.3", "ä/ö"].into_iter().enumerate() {
        assert_eq!(recording.series_names(source).collect::<Vec<_>>(), sorted);
        for (at, name) in names.iter().enumerate() {
            let points = recording.find_series(source, name).unwrap().points;
            assert_eq!(points, [(1_000.0, Some((10 * number + at) as f64))], "{name:?}");
        }
    }
}

#[test]
fn a_source_whose_series_grow_without_end_keeps_those_of_64_files() {
    let run = tempfile::tempdir().unwrap();
    let mut writer = MonitorWriter::create_in(run.path(), 1_000.0).unwrap();
    let names: Vec<String> = (0..66).map(|number| format!("n{number}")).collect();
    for (second, name) in names.iter().enumerate() {
        writer.write_row(
            "s",
            second as u64 * SECOND,
            [(name.as_str(), Kind::Gauge, 1.0), ("n0", Kind::Gauge, 2.0)],
        );
    }
    assert_eq!(writer.first_failure(), None);
    let files = std::fs::read_dir(run.path().join("monitor")).unwrap().count();
    assert_eq!(files, 64 + 1, "and the index");
    let recording = Recording::open(run.path()).unwrap().unwrap();
    let last = |name: &str| recording.find_series("s", name).map(|series| series.points[65].1);
    assert_eq!((recording.series_names("s").count(), last("n63"), last("n64")), (64, Some(None), None));
    let first = recording.find_series("s", "n0").unwrap().points;
    assert_eq!(
        (first[0], first[65]),
        ((0.0, Some(1.0)), (65_000.0, Some(2.0))),
        "named twice: the first counts"
    );
}

#[test]
fn what_is_wrong_in_a_file_of_a_monitor_is_named_by_its_line() {
    let run = tempfile::tempdir().unwrap();
    let mut writer = MonitorWriter::create_in(run.path(), 1_000.0).unwrap();
    writer.write_row("s", SECOND, [("a\nb", Kind::Gauge, 1.0), ("c", Kind::Gauge, 2.0)]);
    let path = run.path().join("monitor/s.csv");
    let head = "time_ms,\"a\nb\",c\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{head}1000.000,1,2\n"));
    // The header has two lines, and a good row follows.
    for (row, message) in [
        ("2000.0,1", "there is no cell for c"),
        ("2000.0", "there is no cell for a\nb"),
        ("2000.0,1,2,3", "there are more cells than names"),
        (",1,2", "the time is missing"),
        ("NaN,1,2", "the time is missing"),
        ("x,1,2", "time_ms: \"x\" is no number"),
        ("2000.0,1,y", "c: \"y\" is no number"),
    ] {
        std::fs::write(&path, format!("{head}1000.000,1,2\n{row}\n3000.000,1,2\n")).unwrap();
        let error = Recording::open(run.path()).unwrap_err().to_string();
        assert!(error.ends_with(&format!("s.csv:4: {message}")), "{error}");
    }
    let some = |_: &str, name: &str| name != "c";
    assert!(
        Recording::open_part(run.path(), 0.0, &some).unwrap().is_some(),
        "what is not wanted is not looked at"
    );
    std::fs::write(&path, format!("{head}1000.000,NaN,2\n")).unwrap();
    let missing = Recording::open(run.path()).unwrap().unwrap().find_series("s", "a\nb").unwrap();
    assert_eq!(missing.points, [(1_000.0, None)]);
    std::fs::write(&path, b"time_ms,\"a\nb\",c\n1000.000,1,2\n\xff\n").unwrap();
    let error = Recording::open(run.path()).unwrap_err().to_string();
    assert!(error.contains("s.csv:4: invalid utf-8"), "{error}");
    for torn in ["", "time_ms,\"a", "time_ms,\"a\nb"] {
        std::fs::write(&path, torn).unwrap();
        assert_eq!(Recording::open(run.path()).unwrap().unwrap().find_series("s", "c").unwrap().points, []);
    }
    std::fs::write(run.path().join("monitor/series.json"), "{\n]").unwrap();
    assert!(Recording::open(run.path()).unwrap_err().to_string().contains("series.json:2: "));
}
