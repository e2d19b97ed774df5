//! A rule: figures held against limits, a claim, and the experiment that settles it.

use super::super::facts::change::GREATEST;

/// Unit in which a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A share: `12.3 %`.
    Share,
    /// A plain number.
    Number,
    /// A figure after a change by that before it, in front of "times": one that was next to nothing has no greater factor than
    /// [`GREATEST`].
    Factor,
}

impl Unit {
    pub fn format_value(self, value: f64) -> String {
        match self {
            Unit::Share => format!("{:.1} %", value * 100.0),
            // Whole numbers are counts.
            Unit::Number if value.abs() >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
            Unit::Number => format!("{value:.2}"),
            Unit::Factor if value >= GREATEST => format!("more than {GREATEST:.0}"),
            Unit::Factor => Unit::Number.format_value(value),
        }
    }
}

/// Side of a limit on which a figure must lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    Above(f64),
    Below(f64),
}

/// One figure against its limit.
#[derive(Clone, Copy, Debug)]
pub struct FactTest {
    pub fact: &'static str,
    pub limit: Limit,
    pub unit: Unit,
    /// With `{}` for the figure.
    pub message: &'static str,
}

impl FactTest {
    pub fn is_met_by(&self, value: f64) -> bool {
        match self.limit {
            Limit::Above(limit) => value > limit,
            Limit::Below(limit) => value < limit,
        }
    }
}

/// Variation of the run that settles a claim.
#[derive(Clone, Copy, Debug)]
pub struct SuggestedExperiment {
    /// The option that changes, and by which factor its value.
    pub option: &'static str,
    pub factor: f64,
    /// Expected result.
    pub expect: &'static str,
}

/// A rule: all of `needs` must hold; each of `supports` raises the confidence, each of `against` halves it.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub name: &'static str,
    pub claim: &'static str,
    pub needs: &'static [FactTest],
    pub supports: &'static [FactTest],
    pub against: &'static [FactTest],
    pub confidence: f64,
    pub advice: &'static str,
    pub experiment: SuggestedExperiment,
}

pub(super) const fn fact_above(
    fact: &'static str,
    limit: f64,
    unit: Unit,
    message: &'static str,
) -> FactTest {
    FactTest { fact, limit: Limit::Above(limit), unit, message }
}

pub(super) const fn fact_below(
    fact: &'static str,
    limit: f64,
    unit: Unit,
    message: &'static str,
) -> FactTest {
    FactTest { fact, limit: Limit::Below(limit), unit, message }
}

pub(super) const FEWER: SuggestedExperiment = SuggestedExperiment {
    option: "--users",
    factor: 0.5,
    expect: "with half the users throughput stays and response time halves, if this is the limit",
};

/// Experiment instead of [`FEWER`] where there is one user.
pub const SECOND: SuggestedExperiment = SuggestedExperiment {
    option: "--users",
    factor: 2.0,
    expect: "with two users throughput stays and response time doubles, if this is the limit",
};

pub(super) const MORE: SuggestedExperiment = SuggestedExperiment {
    option: "--users",
    factor: 2.0,
    expect: "with twice the users throughput grows, nearly twofold, if nothing is saturated",
};

pub(super) const SMALLER: SuggestedExperiment = SuggestedExperiment {
    option: "--field-length",
    factor: 0.5,
    expect: "with records of half the size throughput grows, nearly twofold, if bytes are the limit",
};

pub(super) const THREADS: SuggestedExperiment = SuggestedExperiment {
    option: "--threads",
    factor: 2.0,
    expect: "with twice the load threads throughput grows by more than 3 %, if the client is the limit",
};

pub(super) const AGAIN: SuggestedExperiment = SuggestedExperiment {
    option: "--duration",
    factor: 0.5,
    expect: "run again at once: if this is the cause, it begins at the low level",
};

pub(super) const STAYS: SuggestedExperiment = SuggestedExperiment {
    option: "--duration",
    factor: 1.0,
    expect: "the same run again: every second has operations if the server stays up",
};

pub(super) const CPU_IDLE: FactTest =
    fact_below("host.cpu.busy", 0.6, Unit::Share, "the host's CPU is busy no more than {} of the time");
