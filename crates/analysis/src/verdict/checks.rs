//! The list of checks made, with the claims that each can speak against.

use dyno_rundir::schema::{Claim, Reason, Trust};

/// Finding of a check: the trust that it leaves, and its text.
pub(crate) type CheckFinding = Option<(Trust, String)>;

/// The claims that a check can speak against.
pub(crate) const EVERY: &[Claim] = &[];
pub(crate) const THROUGHPUT: &[Claim] = &[Claim::Throughput];
pub(crate) const LATENCIES: &[Claim] = &[Claim::Median, Claim::Tail];
pub(crate) const MEDIAN: &[Claim] = &[Claim::Median];
pub(crate) const TAIL: &[Claim] = &[Claim::Tail];
pub(crate) const RATE_AND_TAIL: &[Claim] = &[Claim::Throughput, Claim::Tail];
pub(crate) const FIGURES: &[Claim] = &[Claim::Throughput, Claim::Median, Claim::Tail];
pub(crate) const RESOURCES: &[Claim] = &[Claim::Resources];

/// The checks made so far, and the reasons that they found.
#[derive(Default)]
pub(crate) struct Checks {
    pub(super) reasons: Vec<Reason>,
    pub(super) names: Vec<String>,
}

impl Checks {
    /// A check was made; what it found speaks against these claims.
    pub(crate) fn record_check(&mut self, name: &str, affects: &[Claim], found: CheckFinding) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
        if let Some((trust, text)) = found {
            self.reasons.push(Reason { check: name.to_owned(), trust, affects: affects.to_vec(), text });
        }
    }

    /// As [`Checks::record_check`], with what to do; only what is worse than that has found of these claims by now is said.
    pub(super) fn check_more(&mut self, name: &str, affects: &[Claim], found: CheckFinding, advice: &str) {
        let own = self.reasons.iter().filter(|reason| reason.check == name && reason.is_about(affects));
        let known = own.map(|reason| reason.trust).max();
        let found = found.filter(|(trust, _)| known.is_none_or(|known| *trust > known));
        self.record_check(name, affects, found.map(|(trust, text)| (trust, format!("{text}: {advice}"))));
    }

    /// A lag is compared at p99 for the tail and at p50 for the median; where both are as bad one reason says so. What to do is
    /// said once.
    pub(super) fn record_lag_check(&mut self, name: &str, found: impl Fn(f64) -> CheckFinding, advice: &str) {
        let advised = |(trust, text): (Trust, String)| (trust, format!("{text}: {advice}"));
        let (tail, median) = (found(99.0), found(50.0));
        let as_bad = |one: &CheckFinding| one.as_ref().map(|(trust, _)| *trust);
        if as_bad(&tail) == as_bad(&median) {
            return self.record_check(name, LATENCIES, tail.map(advised));
        }
        let median = if tail.is_none() { median.map(advised) } else { median };
        self.record_check(name, TAIL, tail.map(advised));
        self.record_check(name, MEDIAN, median);
    }
}
