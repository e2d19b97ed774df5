//! Limits of a run, and how sure they are.
//!
//! [`collect_facts`] turns a run directory into named figures, [`rules`] is the table that looks at them, and [`diagnose_run`]
//! makes
//! findings: a claim, the evidence for it and against it, a confidence, and a command whose result would settle it.
//! A figure that was not measured is no evidence either way. Where nothing is near a limit there is no finding.
//!
//! The rules follow Gregg's USE method (utilisation, saturation, errors) and the kernel's documentation of pressure (PSI);
//! utilisation of a disk by busy time, and iowait, are never evidence alone.

mod command;
mod facts;
mod rules;
mod unreported;

pub use facts::change::{Moved, ThroughputChange};
pub use facts::{Facts, collect_facts};
pub use unreported::unreported_figures;

use dyno_rundir::RunDir;
use dyno_rundir::monitor::Recording;
use facts::change::{BeforeAfter, before_after};
use rules::rule::{FactTest, Rule, SECOND};
use serde::Serialize;

/// One thing that limits a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiagnosisFinding {
    /// Stable name of the rule.
    pub rule: &'static str,
    /// The claim, in words.
    pub claim: String,
    /// 0 to 1.
    pub confidence: f64,
    /// Evidence for it, with figures.
    pub evidence: Vec<String>,
    /// Evidence against it.
    pub against: Vec<String>,
    /// Advice.
    pub advice: &'static str,
    /// Experiment that settles it, and what to expect.
    pub experiment: String,
    /// The command, word by word; empty where the run's own is not known.
    pub command: Vec<String>,
}

impl DiagnosisFinding {
    /// Returns how sure it is, in words.
    pub fn confidence_word(&self) -> &'static str {
        match self.confidence {
            c if c >= 0.8 => "very likely",
            c if c >= 0.5 => "likely",
            _ => "possible",
        }
    }
}

/// What limits a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The greatest change of throughput, where it does not keep its level and monitors looked on.
    pub change: Option<ThroughputChange>,
    /// The findings, the surest first.
    pub findings: Vec<DiagnosisFinding>,
}

/// A limit that there was before a change and is after it does not explain the change.
const THROUGHOUT: f64 = 0.5;

/// Diagnoses a run. Where its throughput changes, figures before and after the change are held against each other.
pub fn diagnose_run(run: &RunDir, recording: Option<&Recording>) -> Diagnosis {
    let whole = collect_facts(run, recording);
    let sides = recording.and_then(|recording| {
        let phase = run.summary.as_ref()?.measured_phase()?;
        let (begin_ms, _) = facts::measured_boundaries(run, phase)?;
        before_after(run, phase, recording, begin_ms)
    });
    let mut found: Vec<DiagnosisFinding> = rules::all_rules()
        .filter_map(|rule| match &sides {
            Some(sides) if !OF_THE_WHOLE.contains(&rule.name) => around(rule, sides, run),
            _ => apply(rule, &whole, run),
        })
        .collect();
    found.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let explained = found.iter().any(|finding| finding.rule != "few_users" && finding.confidence >= 0.5);
    // Too few users is what is left when nothing else explains the throughput.
    found.retain(|finding| finding.rule != "few_users" || !explained);
    Diagnosis { change: sides.map(|sides| sides.change), findings: found }
}

/// Rules that look at the course of a run themselves, or at what is known of all of it only.
const OF_THE_WHOLE: [&str; 5] = ["gone", "client", "few_users", "burst_credits", "burst_credits_unseen"];

/// What a rule says around a change: of what came with it more than of what was there before.
fn around(rule: &Rule, sides: &BeforeAfter, run: &RunDir) -> Option<DiagnosisFinding> {
    let at = sides.change.at_s;
    let (was, is) = (apply(rule, &sides.before, run), apply(rule, &sides.after, run));
    match (was, is) {
        (None, Some(is)) => Some(DiagnosisFinding { claim: format!("from {at} s on: {}", is.claim), ..is }),
        (Some(_), Some(is)) => {
            let confidence = is.confidence * THROUGHOUT;
            Some(DiagnosisFinding {
                claim: format!("before {at} s and after: {}", is.claim),
                confidence,
                ..is
            })
        }
        (Some(was), None) => {
            let confidence = was.confidence * THROUGHOUT;
            Some(DiagnosisFinding { claim: format!("until {at} s: {}", was.claim), confidence, ..was })
        }
        (None, None) => None,
    }
}

fn describe_test(test: &FactTest, value: f64) -> String {
    test.message.replace("{}", &test.unit.format_value(value))
}

/// The advice of a rule, as the server's version allows it.
fn advice_of(rule: &Rule, facts: &Facts) -> &'static str {
    if rule.name == "tickets" && facts.get("tickets.adjusted_by").is_some() {
        rules::ADVICE_ADJUSTED
    } else {
        rule.advice
    }
}

fn apply(rule: &Rule, facts: &Facts, run: &RunDir) -> Option<DiagnosisFinding> {
    let mut evidence = Vec::new();
    for test in rule.needs {
        let value = facts.get(test.fact)?;
        if !test.is_met_by(value) {
            return None;
        }
        evidence.push(describe_test(test, value));
    }
    let mut confidence = rule.confidence;
    for test in rule.supports {
        if let Some(value) = facts.get(test.fact).filter(|value| test.is_met_by(*value)) {
            evidence.push(describe_test(test, value));
            confidence += (1.0 - confidence) * 0.4;
        }
    }
    let mut against = Vec::new();
    for test in rule.against {
        if let Some(value) = facts.get(test.fact).filter(|value| test.is_met_by(*value)) {
            against.push(describe_test(test, value));
            confidence *= 0.5;
        }
    }
    let phase = run.summary.as_ref().and_then(|summary| summary.measured_phase());
    let others = phase.and_then(|phase| match facts::server_host(phase) {
        Some(host) => host.others.as_ref(),
        None => phase.monitor.as_ref()?.others.as_ref(),
    });
    if let Some(others) = others.filter(|others| rule.name == "others" && !others.programs.is_empty()) {
        evidence.push(format!("most of it: {}", others.describe_programs()));
    }
    let fewer = rule.experiment.option == "--users" && rule.experiment.factor < 1.0;
    let alone = fewer && facts.get("closed.users").is_some_and(|users| users <= 1.0);
    let experiment = if alone { &SECOND } else { &rule.experiment };
    Some(DiagnosisFinding {
        rule: rule.name,
        claim: rule.claim.to_owned(),
        confidence,
        evidence,
        against,
        advice: advice_of(rule, facts),
        experiment: experiment.expect.to_owned(),
        command: command::build_varied_command(run, experiment),
    })
}

#[cfg(test)]
#[path = "made_tests.rs"]
pub(crate) mod made;

#[cfg(test)]
#[path = "change_tests.rs"]
mod change_tests;

#[cfg(test)]
#[path = "diagnose_tests.rs"]
mod tests;
