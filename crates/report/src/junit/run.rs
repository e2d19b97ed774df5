//! One run as a suite: a case for the run itself, for each threshold, and for each claim of the verdict.

use super::{Case, End, Suite};
use crate::summary::measured_of;
use dyno_rundir::schema::{Claim, Decision, Grade, Reason, Status, Summary, Threshold, Trust, Verdict};

/// The suite of a run that has a summary. `pardoned`: why nothing that it has missed counts, if that is so.
pub fn of_run(name: String, summary: &Summary, pardoned: Option<&str>) -> Suite {
    let verdict = &summary.verdict;
    let mut cases = vec![itself(summary)];
    cases.extend(summary.thresholds.iter().map(|one| threshold(one, summary.strict, verdict)));
    let is_claim = |grade: &&Grade| Claim::ALL.iter().any(|claim| claim.name() == grade.claim);
    cases.extend(verdict.grades.iter().filter(is_claim).map(|grade| claim(grade, verdict)));
    if verdict.grades.is_empty() {
        cases.push(whole(verdict));
    }
    if let Some(why) = pardoned {
        cases.iter_mut().for_each(|case| pardon(case, why));
    }
    let properties = vec![
        ("target", summary.target.clone()),
        ("database", summary.database.clone()),
        ("title", summary.title.clone()),
        ("verdict", verdict.trust.name().to_owned()),
        ("dyno", summary.dyno.clone()),
    ];
    Suite { name, started: summary.started.clone(), properties, cases }
}

/// The suite of a run that has no summary.
pub fn failed_suite(name: String, why: String) -> Suite {
    let case = Case::new("run".into(), End::Error("failed", why));
    Suite { name, cases: vec![case], ..Suite::default() }
}

fn pardon(case: &mut Case, why: &str) {
    if let End::Failure(_, message) = &case.end {
        case.end = End::Skipped(format!("{why}: {message}"));
    }
}

fn itself(summary: &Summary) -> Case {
    let end = match summary.status {
        Status::Complete => End::Passed,
        Status::Interrupted => End::Error("interrupted", "the run was interrupted".into()),
        Status::Failed => End::Error("failed", "the run failed".into()),
        Status::Running => End::Error("running", "the run has not ended".into()),
    };
    let seconds = summary.phases.iter().map(|phase| phase.seconds).sum();
    let lines = summary.phases.iter().map(|phase| {
        let rate = dyno_types::units::Rate(phase.throughput);
        format!("{}: {rate} operations/s in {:.3} s", phase.name, phase.seconds)
    });
    Case { seconds, output: lines.collect::<Vec<_>>().join("\n"), ..Case::new("run".into(), end) }
}

fn threshold(one: &Threshold, strict: bool, verdict: &Verdict) -> Case {
    let measured = measured_of(one, true);
    let grade = verdict.grades.iter().find(|grade| grade.claim == one.expression);
    let trust = grade.map_or(verdict.trust, |grade| grade.trust);
    let reasons = grade.map_or_else(|| whole_reasons(verdict), |grade| against(grade, verdict));
    let decision = one.threshold_answer();
    let message = format!("{}: {measured}", one.expression);
    let end = match (trust, decision) {
        (Trust::Invalid, _) => {
            End::Failure("invalid", format!("{measured}, which must not be used\n{reasons}"))
        }
        (_, Decision::Pass) => End::Passed,
        (_, Decision::TooClose) if !strict => End::Skipped(format!("too close to call: {message}")),
        (_, Decision::TooClose) => End::Failure("threshold", format!("too close to call: {message}")),
        (_, Decision::Fail) => End::Failure("threshold", message),
    };
    let output = if trust == Trust::Invalid || reasons.is_empty() {
        measured
    } else {
        format!("{measured}\n{reasons}")
    };
    Case { output, ..Case::new(format!("threshold {}", one.expression), end) }
}

fn claim(grade: &Grade, verdict: &Verdict) -> Case {
    let reasons = against(grade, verdict);
    let name = format!("claim {}", grade.claim);
    match (grade.trust, grade.asked) {
        (Trust::Invalid, true) => Case::new(name, End::Failure("invalid", reasons)),
        // The exit code says nothing of it either.
        (Trust::Invalid, false) => {
            let message = "invalid, and no threshold asks for it";
            Case { output: reasons, ..Case::new(name, End::Skipped(message.into())) }
        }
        _ => Case { output: reasons, ..Case::new(name, End::Passed) },
    }
}

/// A result that was judged as a whole.
fn whole(verdict: &Verdict) -> Case {
    let reasons = whole_reasons(verdict);
    match verdict.trust {
        Trust::Invalid => Case::new("verdict".into(), End::Failure("invalid", reasons)),
        _ => Case { output: reasons, ..Case::new("verdict".into(), End::Passed) },
    }
}

fn against(grade: &Grade, verdict: &Verdict) -> String {
    lines(verdict.reasons.iter().filter(|reason| reason.trust != Trust::Valid && reason.is_about(&grade.of)))
}

fn whole_reasons(verdict: &Verdict) -> String {
    lines(verdict.reasons.iter().filter(|reason| reason.trust != Trust::Valid))
}

/// A line for each reason, the worst first.
fn lines<'a>(reasons: impl Iterator<Item = &'a Reason>) -> String {
    let mut reasons: Vec<&Reason> = reasons.collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.trust));
    let line = |reason: &&Reason| format!("{}: {}", reason.trust.trust_word(), reason.text);
    reasons.iter().map(line).collect::<Vec<_>>().join("\n")
}
