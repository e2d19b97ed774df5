use super::*;

fn told(found: Stability) -> SeriesStability {
    SeriesStability { found, what: "throughput", time: Time { step_s: 1.0, from_s: 0.0 } }
}

fn segment(from: usize, to: usize, rate: f64, label: SegmentLabel) -> Segment {
    Segment { range: (from, to), mean: rate, label }
}

fn found(segments: Vec<Segment>) -> Stability {
    Stability {
        answer: StabilityAnswer::NotSteady,
        segments,
        alarm: None,
        steady: None,
        warm_up: 0,
        period: None,
        drift: None,
        variation: (0.0, 0.0),
        correlation: 0.0,
        detectable: 0.0,
        stalls: Vec::new(),
    }
}

#[test]
fn levels_are_named_up_to_four() {
    let levels = |count: usize| {
        let each = (0..count)
            .map(|at| segment(at * 10, at * 10 + 10, 1_000.0 - 100.0 * at as f64, SegmentLabel::Level));
        let found = Stability { alarm: Some(1), ..found(each.collect()) };
        told(found).level().unwrap().1
    };
    assert!(levels(2).contains("1,000/s until 10 s, 900/s to the end:"), "{}", levels(2));
    assert!(levels(4).contains("800/s until 30 s, 700/s to the end:"), "{}", levels(4));
    assert!(levels(5).contains("700/s until 40 s, and so on:"), "{}", levels(5));
}

#[test]
fn a_warm_up_is_told_with_what_came_after_it() {
    let parts =
        vec![segment(0, 10, 500.0, SegmentLabel::WarmUp), segment(10, 60, 1_100.0, SegmentLabel::Level)];
    let warming = Stability { warm_up: 10, ..found(parts) };
    let text = told(warming.clone()).warm_up().unwrap().1;
    assert!(text.contains("the first 10 s run at 500/s, the rest at 1,100/s"), "{text}");
    let mut level = warming.clone();
    level.segments[0].label = SegmentLabel::Level;
    assert_eq!(told(level).warm_up(), None);
    // The rest is the mean over its seconds, not over its levels.
    let mut two = warming;
    two.segments[1].range.1 = 20;
    two.segments.push(segment(20, 30, 2_000.0, SegmentLabel::Level));
    let text = told(two).warm_up().unwrap().1;
    assert!(text.contains("the rest at 1,550/s"), "{text}");
}

#[test]
fn a_drift_counts_from_its_limit_on() {
    let of = |share: f64| told(Stability { drift: Some(share), ..found(Vec::new()) }).drift().is_some();
    assert_eq!([0.999 * ALARMING, ALARMING, -ALARMING].map(of), [false, true, true]);
}

#[test]
fn stalls_of_a_warm_up_or_of_a_level_that_is_named_are_not_told_again() {
    let stall = |at: usize, intervals: usize, least: f64| Stall { at, intervals, least };
    let stalls = |stalls: Vec<Stall>, change: fn(&mut Stability)| {
        let parts = vec![
            segment(0, 30, 1_000.0, SegmentLabel::Level),
            segment(30, 60, 499.0, SegmentLabel::Collapse),
        ];
        let mut found = Stability { stalls, ..found(parts) };
        change(&mut found);
        told(found).stalls(&[]).map(|(_, text)| text)
    };
    // The longest is shown, of equals the first; all are counted.
    let three = stalls(vec![stall(3, 1, 9.0), stall(10, 2, 7.0), stall(20, 2, 5.0)], |_| ()).unwrap();
    assert!(three.contains("for 5 s (3 times, the longest 10 to 12 s, down to 7/s)"), "{three}");
    let one = stalls(vec![stall(29, 1, 9.0)], |_| ()).unwrap();
    assert!(one.contains("for 1 s (29 to 30 s, down to 9/s)"), "{one}");
    // A level below half of the one before it, where levels are told.
    let alarmed = |found: &mut Stability| found.alarm = Some(1);
    assert_eq!(stalls(vec![stall(30, 5, 300.0)], alarmed), None);
    assert_eq!(stalls(vec![stall(25, 6, 300.0)], alarmed), None, "it reaches into the level");
    assert!(stalls(vec![stall(25, 5, 300.0)], alarmed).is_some(), "it ends where the level begins");
    assert_eq!(stalls(vec![stall(30, 5, 249.5)], alarmed), None, "half of the level is the level");
    assert!(stalls(vec![stall(30, 5, 249.4)], alarmed).is_some(), "it is below half of the level, too");
    let back = |found: &mut Stability| {
        found.alarm = Some(1);
        found.segments.push(segment(60, 90, 1_000.0, SegmentLabel::Recovery));
    };
    assert_eq!(stalls(vec![stall(59, 5, 300.0)], back), None, "it begins in the level");
    assert!(stalls(vec![stall(60, 5, 300.0)], back).is_some(), "it begins where the level ends");
    assert!(stalls(vec![stall(30, 5, 0.0)], |_| ()).is_some(), "no level was told");
    let half = |found: &mut Stability| (found.alarm, found.segments[1].mean) = (Some(1), 500.0);
    assert!(stalls(vec![stall(30, 5, 0.0)], half).is_some(), "half is not below half");
    let warming = |found: &mut Stability| found.warm_up = 10;
    assert_eq!(stalls(vec![stall(5, 5, 0.0)], warming), None);
    assert!(stalls(vec![stall(5, 6, 0.0)], warming).is_some());
}
