use super::*;
use dyno_rundir::monitor::Kind;

/// Four samples, one a second, of two gauges of one name, a gauge with a gap, a counter, and databases of our own.
fn recording() -> Recording {
    let mut all = Recording::new();
    for (at, second) in [0.0, 1.0, 2.0, 3.0].into_iter().enumerate() {
        let gap = [3.0, 5.0, f64::NAN, 7.0][at];
        let row = [
            ("g{a=\"x\", b=\"1\"}", Kind::Gauge, 2.0 + 2.0 * second),
            ("g{a=\"y\"}", Kind::Gauge, 10.0 + 10.0 * second),
            ("gap", Kind::Gauge, gap),
            ("c", Kind::Counter, 10.0 * second),
            ("redis_evicted_keys_total", Kind::Gauge, 1.0),
        ];
        all.push("exporter", second * 1e3, row);
        let ours = |connections: f64| {
            [("connections", Kind::Gauge, connections), ("keyspace.evicted", Kind::Gauge, 9.0)]
        };
        all.push("database-1", second * 1e3, ours(20.0));
        all.push("database-2", second * 1e3, ours(22.0));
        all.push("host", second * 1e3, ours(500.0));
    }
    all
}

/// The figure of the middle two samples.
fn of(query: &str, by: Reduction) -> Result<f64, String> {
    evaluate(query, by, &recording(), PhaseSpan::only(1_000.0, 2_000.0)).map_err(|error| error.to_string())
}

#[test]
fn the_figure_of_a_phase_is_of_the_samples_that_lie_in_it() {
    for (query, greatest, mean) in [
        ("g{a='x'}", 6.0, 5.0),
        ("sum(g)", 36.0, 30.0),
        ("avg(g)", 18.0, 15.0),
        ("max(g)", 30.0, 25.0),
        ("min(g)", 6.0, 5.0),
        ("g{a=\"x\"} - 1", 5.0, 4.0),
        ("10 - g{a=\"x\"}", 6.0, 5.0),
        ("12 / g{a=\"x\"}", 3.0, 2.5),
        ("-g{a=\"x\"}", -4.0, -5.0),
        ("2 * 3 + g{a=\"x\"} / 2 - 1", 8.0, 7.5),
        ("sum(g) - max(g)", 6.0, 5.0),
        ("sum(g) * (1 + min(g) / 2)", 144.0, 108.0),
        // Where a sample is missing the last one before it stands.
        ("gap", 5.0, 5.0),
        // Three of the five samples are of the first second, 25, and two of the next.
        ("gap + max(g)", 35.0, 29.0),
    ] {
        assert_eq!(of(query, Reduction::Greatest), Ok(greatest), "{query}");
        let found = of(query, Reduction::Mean).unwrap();
        assert!((found - mean).abs() < 1e-9, "{query}: {found} instead of {mean}");
    }
    assert_eq!(of("2 * 3 - 4 / 2", Reduction::Increase), Ok(4.0));
    assert_eq!(of("sum(c) * 2", Reduction::Increase), Ok(20.0));
    assert_eq!(of("sum(c) * 2", Reduction::Greatest), Ok(40.0));
}

#[test]
fn rates_and_increases_are_of_the_whole_phase_even_without_a_sample_in_it() {
    let by_all = [Reduction::Greatest, Reduction::Mean, Reduction::Increase];
    for (query, figure, is_a_rate) in [
        ("rate(c[1m])", 10.0, true),
        ("irate(c[1m])", 10.0, true),
        ("1 + sum(rate(c[1m]))", 11.0, true),
        ("rate(c[1m]) - 1", 9.0, true),
        ("increase(c[1m])", 6.0, false),
        ("1 + sum(increase(c[1m]))", 7.0, false),
        ("increase(c[1m]) - 1", 5.0, false),
    ] {
        for by in by_all {
            // Load came before and after.
            let (idle_since_ms, idle_until_ms) = (1_200.0, 1_800.0);
            let span = PhaseSpan { idle_since_ms, idle_until_ms, ..PhaseSpan::only(1_200.0, 1_800.0) };
            let found = evaluate(query, by, &recording(), span).unwrap();
            assert!((found - figure).abs() < 1e-9, "{query}: {found}");
        }
        assert_eq!(is_rate(query), is_a_rate, "{query}");
    }
    assert!(!is_rate("sum(c) + 1") && !is_rate("rate(c[1m]"));
    let none = evaluate("gap", Reduction::Mean, &recording(), PhaseSpan::only(1_200.0, 1_800.0));
    assert_eq!(none, Err(QueryError::NoSample));
}

#[test]
fn labels_are_equal_or_not_and_names_of_exporters_stand_for_our_own() {
    for (query, figure) in [
        ("g{b=\"1\"}", 6.0),
        ("g{b!=\"1\"}", 30.0),
        ("g{a=\"x\",b=\"1\"}", 6.0),
        ("g{a='y', b != '1',}", 30.0),
        // Only of databases, and only where the exporter's own was not recorded.
        ("sum(redis_connected_clients)", 42.0),
        ("sum(dragonfly_connected_clients)", 42.0),
        ("sum(redis_evicted_keys_total)", 1.0),
        ("sum(dragonfly_evicted_keys_total)", 18.0),
    ] {
        assert_eq!(of(query, Reduction::Greatest), Ok(figure), "{query}");
    }
    for name in
        ["g{a=\"x\",b=\"2\"}", "redis_connected_clients{x=\"1\"}", "connected_clients", "redis_nothing", "a"]
    {
        let error = of(name, Reduction::Greatest).unwrap_err();
        assert!(error.ends_with("was not recorded"), "{name}: {error}");
    }
}

#[test]
fn what_has_no_single_figure_says_why() {
    for (query, why) in [
        ("g", "2 series, and no sum or max of them"),
        ("g - g", "several series on both sides"),
        ("sum(g) + g", "several series on both sides"),
        ("g + sum(g)", "several series on both sides"),
        ("sum(3)", "sum: expected a metric, not a number"),
        ("1 / 0", "the figure is divided by nothing"),
        ("c[5m]", "c: a window without rate or increase"),
    ] {
        let error = of(query, Reduction::Increase).unwrap_err();
        assert!(error.contains(why), "{query}: {error}");
    }
    let early = evaluate("rate(c[1m])", Reduction::Mean, &recording(), PhaseSpan::only(-9_000.0, -8_000.0))
        .unwrap_err();
    assert_eq!(early, QueryError::TooFewSamples("c".into()));
    let early = evaluate("sum(c)", Reduction::Increase, &recording(), PhaseSpan::only(-9_000.0, -8_000.0))
        .unwrap_err();
    assert_eq!(early, QueryError::TooFewSamples("c".into()));
}
