//! Grades of claims, and the verdict that follows from those that were asked for.

use super::*;

fn reason(check: &str, trust: Trust, affects: &[Claim]) -> Reason {
    Reason { affects: affects.to_vec(), ..Reason::of_all(check, trust, String::new()) }
}

fn grades(verdict: &Verdict) -> Vec<(&str, Trust)> {
    verdict.grades.iter().map(|grade| (grade.claim.as_str(), grade.trust)).collect()
}

#[test]
fn a_verdict_names_what_takes_trust_away() {
    let reasons = vec![
        reason("note", Trust::Valid, &[]),
        reason("lag", Trust::Suspect, &[Claim::Tail]),
        reason("errors", Trust::Invalid, &[]),
    ];
    let verdict = Verdict::new(reasons, Vec::new(), &[]);
    assert!(verdict.speaks_against("lag") && verdict.speaks_against("errors"));
    assert!(!verdict.speaks_against("note") && !verdict.speaks_against("drops"));
    assert_eq!(verdict.worst_reason().map(|reason| reason.check.as_str()), Some("errors"));
    assert_eq!(Verdict::new(vec![reason("note", Trust::Valid, &[])], Vec::new(), &[]).worst_reason(), None);
    assert_eq!(
        [Trust::Valid, Trust::Suspect, Trust::Invalid].map(Trust::trust_word),
        ["note", "suspect", "invalid"]
    );
}

#[test]
fn each_claim_has_the_worst_grade_of_what_affects_it() {
    let reasons = vec![
        reason("neighbours", Trust::Suspect, &[Claim::Tail]),
        reason("lag", Trust::Invalid, &[Claim::Tail]),
        reason("level", Trust::Suspect, &[Claim::Throughput]),
        reason("cache", Trust::Valid, &[]),
    ];
    let verdict = Verdict::new(reasons, Vec::new(), &[]);
    let [throughput, median, tail, resources] = verdict.grades.as_slice() else { panic!("{verdict:?}") };
    assert_eq!((throughput.trust, &throughput.against[..]), (Trust::Suspect, &["level".to_owned()][..]));
    assert_eq!((median.trust, resources.trust), (Trust::Valid, Trust::Valid));
    assert_eq!((tail.trust, tail.against.join(" ")), (Trust::Invalid, "lag neighbours".into()));
    assert_eq!(verdict.trust, Trust::Invalid);
    assert_eq!([throughput.asked, median.asked, tail.asked, resources.asked], [true, false, true, false]);
}

#[test]
fn the_run_is_as_bad_as_what_was_asked_for() {
    let bad_tail = || vec![reason("lag", Trust::Invalid, &[Claim::Tail])];
    let of = |claims: &[Claim]| Verdict::new(bad_tail(), Vec::new(), &[("a > b".into(), claims.to_vec())]);
    let throughput = of(&[Claim::Throughput]);
    assert_eq!(throughput.trust, Trust::Valid);
    assert_eq!(throughput.worst_reason(), None);
    assert_eq!(grades(&throughput)[4], ("a > b", Trust::Valid));
    assert_eq!(grades(&throughput)[2], ("tail", Trust::Invalid));
    assert!(!throughput.is_asked(&throughput.reasons[0]));
    assert_eq!(throughput.trust_in(&Claim::FIGURES), Trust::Invalid, "who compares all of them asks for all");
    assert_eq!(of(&[Claim::Median, Claim::Tail]).trust, Trust::Invalid);
    // A count of errors is touched by what speaks against the whole alone.
    assert_eq!(of(&[]).trust, Trust::Valid);
    let lost =
        Verdict::new(vec![reason("data", Trust::Invalid, &[])], Vec::new(), &[("a".into(), Vec::new())]);
    assert_eq!(lost.trust, Trust::Invalid);
}

#[test]
fn a_claim_can_be_asked_for_without_a_threshold() {
    let reasons = vec![reason("lag", Trust::Invalid, &[Claim::Tail])];
    let verdict = Verdict::new(reasons, Vec::new(), &[("throughput".into(), vec![Claim::Throughput])]);
    assert_eq!((verdict.trust, verdict.grades.len()), (Trust::Valid, Claim::ALL.len()));
    assert_eq!(verdict.asked_grades().map(|grade| grade.claim.as_str()).collect::<Vec<_>>(), ["throughput"]);
}

#[test]
fn a_part_is_asked_for_what_the_others_were_and_for_nothing_else() {
    let asked = |verdict: &Verdict| -> Vec<String> {
        verdict.asked_grades().map(|grade| grade.claim.clone()).collect()
    };
    let other = |asked: &[(&str, Claim)]| {
        let asked: Vec<_> = asked.iter().map(|(claim, of)| ((*claim).to_owned(), vec![*of])).collect();
        Verdict::new(Vec::new(), Vec::new(), &asked)
    };
    let mut own = Verdict::new(vec![reason("lag", Trust::Invalid, &[Claim::Tail])], Vec::new(), &[]);
    assert_eq!(asked(&own), ["throughput", "tail"]);
    // Others that asked for nothing change nothing.
    own.ask_as([Verdict::nothing_judged(Trust::Valid)].iter());
    assert_eq!(asked(&own), ["throughput", "tail"]);
    let others = [
        other(&[("median", Claim::Median)]),
        other(&[("p99 < 1ms", Claim::Tail), ("median", Claim::Median)]),
    ];
    own.ask_as(others[..1].iter());
    own.grade_claims();
    assert_eq!((asked(&own), own.trust), (vec!["median".to_owned()], Trust::Valid));
    own.ask_as(others.iter());
    own.grade_claims();
    assert_eq!((asked(&own), own.trust), (vec!["median".to_owned(), "p99 < 1ms".to_owned()], Trust::Invalid));
    assert_eq!(own.grades.len(), Claim::ALL.len() + 1);
}

#[test]
fn resources_are_no_figure() {
    let reasons = vec![reason("monitors", Trust::Suspect, &[Claim::Resources])];
    assert_eq!(Verdict::new(reasons, Vec::new(), &[]).trust_in(&Claim::FIGURES), Trust::Valid);
}

#[test]
fn what_affects_what_was_asked_for_stands_first() {
    let reasons = vec![
        reason("lag", Trust::Invalid, &[Claim::Tail]),
        reason("level", Trust::Suspect, &[Claim::Throughput]),
        reason("errors", Trust::Suspect, &[]),
    ];
    let verdict = Verdict::new(reasons, Vec::new(), &[("throughput > 1".into(), vec![Claim::Throughput])]);
    let order: Vec<&str> = verdict.reasons.iter().map(|reason| reason.check.as_str()).collect();
    // Of equals the gravest: what was lost before how it was spread.
    assert_eq!(order, ["errors", "level", "lag"]);
    assert_eq!((verdict.trust, verdict.worst_reason().unwrap().check.as_str()), (Trust::Suspect, "errors"));
}

#[test]
fn the_headline_is_the_gravest_reason_and_not_the_first() {
    let all = |trust, checks: &[&str]| {
        let reasons = checks.iter().map(|check| reason(check, trust, &[Claim::Throughput])).collect();
        let verdict = Verdict::new(reasons, Vec::new(), &[]);
        verdict.reasons.into_iter().map(|reason| reason.check).collect::<Vec<_>>()
    };
    let found = all(Trust::Suspect, &["neighbours", "level", "stalls", "gone", "steal"]);
    // What has no rank keeps its order.
    assert_eq!(found, ["gone", "stalls", "level", "neighbours", "steal"]);
    let mut reasons = vec![reason("gone", Trust::Suspect, &[]), reason("pinning", Trust::Invalid, &[])];
    assert_eq!(Verdict::new(reasons.clone(), Vec::new(), &[]).worst_reason().unwrap().check, "pinning");
    reasons[1].trust = Trust::Valid;
    assert_eq!(Verdict::new(reasons, Vec::new(), &[]).worst_reason().unwrap().check, "gone");
}

#[test]
fn summaries_of_earlier_versions_were_judged_as_a_whole() {
    let text = r#"{"trust": "suspect", "checks": ["lag"],
        "reasons": [{"check": "lag", "trust": "suspect", "text": "late"}]}"#;
    let mut verdict: Verdict = serde_json::from_str(text).unwrap();
    assert!(verdict.grades.is_empty() && verdict.is_asked(&verdict.reasons[0]));
    assert_eq!(verdict.trust_in(&Claim::FIGURES), Trust::Suspect);
    assert_eq!(verdict.worst_reason().map(|reason| reason.text.as_str()), Some("late"));
    // It never becomes better than it was.
    verdict.grade_claims();
    assert_eq!(verdict.trust, Trust::Suspect);
    verdict.reasons.push(reason("data", Trust::Invalid, &[]));
    verdict.grade_claims();
    assert_eq!((verdict.trust, verdict.reasons[0].check.as_str()), (Trust::Invalid, "data"));
    let again = serde_json::to_string(&verdict).unwrap();
    assert_eq!(serde_json::from_str::<Verdict>(&again).unwrap(), verdict);
    assert!(!again.contains("grades") && !again.contains("affects"), "{again}");
}

#[test]
fn names_are_those_of_files() {
    for trust in [Trust::Valid, Trust::Suspect, Trust::Invalid] {
        assert_eq!(serde_json::to_value(trust).unwrap(), trust.name());
    }
    for claim in Claim::ALL {
        assert_eq!(serde_json::to_value(claim).unwrap(), claim.name());
    }
}
