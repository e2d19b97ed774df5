//! The verdict: how far each claim of a result can be trusted, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Trust in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Nothing speaks against it.
    Valid,
    /// Something does; the reasons say what and what to do.
    Suspect,
    /// It must not be used.
    Invalid,
}

impl Trust {
    /// Returns the word before a reason: one that takes no trust away is a note.
    pub fn trust_word(self) -> &'static str {
        match self {
            Trust::Valid => "note",
            Trust::Suspect => "suspect",
            Trust::Invalid => "invalid",
        }
    }

    /// The grade itself, as files hold it.
    pub fn name(self) -> &'static str {
        match self {
            Trust::Valid => "valid",
            _ => self.trust_word(),
        }
    }
}

/// A figure that a result states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Operations per second.
    Throughput,
    /// The median of latencies.
    Median,
    /// Percentiles above the median, and the maximum.
    Tail,
    /// Resources that hosts and servers used.
    Resources,
}

impl Claim {
    /// All of them, in the order in which they are told.
    pub const ALL: [Claim; 4] = [Claim::Throughput, Claim::Median, Claim::Tail, Claim::Resources];
    /// What is compared, exported and fitted.
    pub const FIGURES: [Claim; 3] = [Claim::Throughput, Claim::Median, Claim::Tail];

    /// As files hold it.
    pub fn name(self) -> &'static str {
        match self {
            Claim::Throughput => "throughput",
            Claim::Median => "median",
            Claim::Tail => "tail",
            Claim::Resources => "resources",
        }
    }
}

/// Checks whose reasons are told first among equals: what was lost before what was late, what happened before its shape, and the
/// run itself before its host. The first reason is the headline.
const GRAVEST: [&str; 22] = [
    "imported",
    "invariants",
    "data",
    "samples",
    "workers",
    "completed",
    "gone",
    "errors",
    "protocol",
    "load",
    "drops",
    "connections",
    "reconnects",
    "client_share",
    "stalls",
    "overload",
    "offered_rate",
    "level",
    "drift",
    "period",
    "response_level",
    "warm_up",
];

fn rank(check: &str) -> usize {
    GRAVEST.iter().position(|name| *name == check).unwrap_or(GRAVEST.len())
}

/// One thing that speaks against a result, or that its reader must know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Stable name of the check.
    pub check: String,
    /// Trust that it leaves; `valid` is a note.
    pub trust: Trust,
    /// The claims against which it speaks; none named: all of them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub affects: Vec<Claim>,
    /// Finding, with figures, and what to do about it.
    pub text: String,
}

impl Reason {
    /// Against the whole result.
    pub fn of_all(check: &str, trust: Trust, text: String) -> Self {
        Reason { check: check.to_owned(), trust, affects: Vec::new(), text }
    }

    /// Returns whether it says anything of one of these claims. What speaks against the whole result does so even
    /// where none is named: a count of errors is none of them.
    pub fn is_about(&self, claims: &[Claim]) -> bool {
        self.affects.is_empty() || self.affects.iter().any(|claim| claims.contains(claim))
    }
}

/// A claim of the result and how far it can be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grade {
    /// `throughput`, `median`, `tail`, `resources`, or a threshold as written.
    pub claim: String,
    /// Claims that it rests on.
    pub of: Vec<Claim>,
    /// The worst reason that speaks against it; valid without any.
    pub trust: Trust,
    /// True if it was asked for: the verdict on the run is the worst of these.
    pub asked: bool,
    /// Checks that speak against it.
    pub against: Vec<String>,
}

/// The verdict on a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The worst grade of what was asked for: the thresholds, or without any throughput and tail.
    pub trust: Trust,
    /// Reasons against the result: those against the claims that were asked for stand first.
    pub reasons: Vec<Reason>,
    /// Names of the checks that were made.
    pub checks: Vec<String>,
    /// A grade for each claim; none where nothing was judged.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub grades: Vec<Grade>,
}

impl Verdict {
    /// Nothing was judged.
    pub fn nothing_judged(trust: Trust) -> Self {
        Verdict { trust, reasons: Vec::new(), checks: Vec::new(), grades: Vec::new() }
    }

    /// The verdict on a run of which this was asked: thresholds as written or names of claims, each with the claims that it rests
    /// on. Nothing asked means throughput and tail.
    pub fn new(reasons: Vec<Reason>, checks: Vec<String>, asked: &[(String, Vec<Claim>)]) -> Self {
        let grade = |claim: &str, of: &[Claim], asked: bool| Grade {
            claim: claim.to_owned(),
            of: of.to_vec(),
            trust: Trust::Valid,
            asked,
            against: Vec::new(),
        };
        let usual = |claim: Claim| asked.is_empty() && matches!(claim, Claim::Throughput | Claim::Tail);
        let claims = Claim::ALL.into_iter().map(|claim| grade(claim.name(), &[claim], usual(claim)));
        let mut verdict = Verdict { trust: Trust::Valid, reasons, checks, grades: claims.collect() };
        verdict.ask(asked.iter().map(|(claim, of)| grade(claim, of, true)));
        verdict.grade_claims();
        verdict
    }

    /// Asks for these as well.
    fn ask(&mut self, asked: impl Iterator<Item = Grade>) {
        for grade in asked {
            match self.grades.iter_mut().find(|own| own.claim == grade.claim) {
                Some(own) => own.asked = true,
                None => self.grades.push(grade),
            }
        }
    }

    /// Gives grades by the reasons as they are now, and sorts these.
    pub fn grade_claims(&mut self) {
        let asked: Vec<Vec<Claim>> = self.asked_grades().map(|grade| grade.of.clone()).collect();
        let is_asked = |reason: &Reason| asked.is_empty() || asked.iter().any(|of| reason.is_about(of));
        self.reasons
            .sort_by_key(|reason| (std::cmp::Reverse((is_asked(reason), reason.trust)), rank(&reason.check)));
        for grade in &mut self.grades {
            let against = self.reasons.iter().filter(|r| r.trust != Trust::Valid && r.is_about(&grade.of));
            grade.trust = against.clone().map(|reason| reason.trust).max().unwrap_or(Trust::Valid);
            grade.against.clear();
            for reason in against {
                if !grade.against.contains(&reason.check) {
                    grade.against.push(reason.check.clone());
                }
            }
        }
        let worst = match self.grades.is_empty() {
            true => self.reasons.iter().map(|reason| reason.trust).chain([self.trust]).max(),
            false => self.asked_grades().map(|grade| grade.trust).max(),
        };
        self.trust = worst.unwrap_or(Trust::Valid);
    }

    /// Returns the grades that were asked for.
    pub fn asked_grades(&self) -> impl Iterator<Item = &Grade> {
        self.grades.iter().filter(|grade| grade.asked)
    }

    /// Asks for all that was asked of others, and for nothing else; for the same as before where nothing was.
    pub fn ask_as<'a>(&mut self, others: impl Iterator<Item = &'a Verdict>) {
        let asked: Vec<Grade> = others.flat_map(Verdict::asked_grades).cloned().collect();
        if !asked.is_empty() {
            self.grades.iter_mut().for_each(|grade| grade.asked = false);
            self.ask(asked.into_iter());
        }
    }

    /// Returns whether a reason speaks against what was asked for. Runs that were judged as a whole asked for everything.
    pub fn is_asked(&self, reason: &Reason) -> bool {
        self.grades.is_empty() || self.asked_grades().any(|grade| reason.is_about(&grade.of))
    }

    /// The trust that is left in a figure that rests on these claims, whatever was asked for; on none of them: a count. A run of
    /// which one claim is invalid still has the others.
    pub fn trust_in(&self, claims: &[Claim]) -> Trust {
        if self.grades.is_empty() {
            return self.trust;
        }
        let against = self.reasons.iter().filter(|reason| reason.is_about(claims));
        against.map(|reason| reason.trust).max().unwrap_or(Trust::Valid)
    }

    /// Returns whether this check speaks against any claim of the run.
    pub fn speaks_against(&self, check: &str) -> bool {
        self.reasons.iter().any(|reason| reason.check == check && reason.trust != Trust::Valid)
    }

    /// The first of the reasons that take trust away.
    pub fn worst_reason(&self) -> Option<&Reason> {
        self.reasons
            .iter()
            .find(|reason| reason.trust == self.trust && self.trust != Trust::Valid && self.is_asked(reason))
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
