//! A comparison: what was found, as data, as text for a terminal and as Markdown. Its page is in `html`.

pub mod junit;
pub mod markdown;
mod number;
pub mod replays;
pub mod text;

use crate::html::text::format_timestamp;
use crate::html::workload::describe_workload;
use dyno_analysis::ArrivalLatency;
use dyno_analysis::compare::{Comparison, Conclusion, Shift, rank};
use dyno_rundir::RunDir;
use dyno_types::shell::{again, quoted};
use dyno_types::units::{Change, counted, symbol};
pub(crate) use number::format_number;
use replays::ComparedReplays;

/// One figure of two groups.
#[derive(Debug, serde::Serialize)]
pub struct ComparedFigure {
    /// Name: `throughput`, `READ p99`.
    pub name: String,
    /// Unit.
    pub unit: &'static str,
    /// The comparison.
    #[serde(flatten)]
    pub found: Comparison,
    /// The noise floor it was held against, as a share; 0 if none is known.
    pub noise: f64,
    /// The figure of every run of each; nothing for quantiles, which are of merged histograms.
    #[serde(skip_serializing_if = "nothing")]
    pub each: (Vec<f64>, Vec<f64>),
}

impl ComparedFigure {
    /// Size of the effect in words; `-` for one run a side, whose order says nothing.
    pub(crate) fn describe_effect_size(&self) -> &'static str {
        if self.found.is_one_pair() { "-" } else { rank::describe_effect_size(self.found.delta) }
    }

    /// Returns the unit as people read it.
    pub fn shown_unit(&self) -> &'static str {
        symbol(self.unit)
    }
}

fn nothing(each: &(Vec<f64>, Vec<f64>)) -> bool {
    each.0.is_empty() && each.1.is_empty()
}

/// Response times of one operation on both sides.
#[derive(Debug, serde::Serialize)]
pub struct Responses {
    /// The operation.
    pub metric: String,
    /// The shift function, as far as samples support it.
    pub shifts: Vec<Shift>,
    /// Merged histograms.
    #[serde(skip)]
    pub merged: (ArrivalLatency, ArrivalLatency),
}

/// One cell of the baseline beside that of another side.
#[derive(Debug, serde::Serialize)]
pub struct Pairing {
    /// Name of the experiment that both sides are levels of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// Levels of factors that they have in common, if any.
    pub cell: String,
    /// Name of the baseline.
    pub first: String,
    /// Name of the other.
    pub second: String,
    /// Every figure that both have.
    pub figures: Vec<ComparedFigure>,
    /// Response times of the operations that both have.
    pub responses: Vec<Responses>,
    /// What both have made of the same recording, if they are replays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replays: Option<ComparedReplays>,
    /// Settings that differ: key, first, second.
    pub settings: Vec<(String, String, String)>,
    /// Facts of the environment that differ: name, first, second.
    pub environment: Vec<(String, String, String)>,
    /// Reasons against a comparison.
    pub warnings: Vec<String>,
    /// What is compared: name of a fact, and what it is on both sides.
    #[serde(skip)]
    pub about: Vec<(String, String, String)>,
    /// Reports of the runs of each, as far as there are any.
    #[serde(skip)]
    pub reports: (Vec<ReportLink>, Vec<ReportLink>),
}

/// What two runs measured, on what, when and how.
pub fn describe_sides(first: &RunDir, second: &RunDir) -> Vec<(String, String, String)> {
    let facts = |dir: &RunDir| {
        let phase = dir.summary.as_ref().and_then(|summary| summary.measured_phase());
        let required = dir.summary.iter().flat_map(|summary| &summary.thresholds);
        let required: Vec<&str> = required.map(|one| one.expression.as_str()).collect();
        let host = &dir.environment;
        [
            dir.run.database.clone(),
            describe_workload(&dir.run.settings, phase),
            dir.run.target.clone(),
            required.join(", "),
            format!("{}: {}, {}", host.host, host.cpu, counted(host.cores.len(), "core")),
            format!("{}, dyno {}", format_timestamp(&dir.run.started), dir.run.dyno),
            quoted(&again(&dir.run.command)),
        ]
    };
    let names = [
        "database",
        "workload",
        "target",
        "thresholds",
        "client's host",
        "first run begun",
        "command of the first run",
    ];
    let rows = names.into_iter().zip(facts(first)).zip(facts(second));
    let rows = rows.map(|((name, first), second)| (name.to_owned(), first, second));
    rows.filter(|(_, first, second)| !first.is_empty() || !second.is_empty()).collect()
}

/// Where a run's report is.
#[derive(Clone, Debug)]
pub struct ReportLink {
    /// The run directory's name.
    pub name: String,
    /// Address for a page of the comparison, encoded.
    pub address: String,
}

/// Names what all pairs are of in a title: one pair, the levels of an experiment, or neither.
pub(crate) fn title_of_all(all: &[Pairing]) -> String {
    let experiment = all.first().and_then(|one| one.experiment.as_ref());
    match (all, experiment) {
        ([one], None) => one.title(),
        ([one], Some(name)) => format!("{name}: {}", one.title()),
        (_, Some(name)) => format!("{name}: levels compared"),
        (_, None) => "Comparison".to_owned(),
    }
}

impl Pairing {
    /// Describes what is compared.
    pub fn title(&self) -> String {
        let cell = if self.cell.is_empty() { String::new() } else { format!(" [{}]", self.cell) };
        format!("{} against {}{cell}", self.second, self.first)
    }

    /// Names of the figures that lead to a conclusion.
    pub fn figures_where(&self, holds: impl Fn(Conclusion) -> bool) -> Vec<&ComparedFigure> {
        self.figures.iter().filter(|figure| holds(figure.found.decision.conclusion)).collect()
    }

    /// The verdict in one sentence.
    pub fn verdict_sentence(&self) -> String {
        let (first, second) = (&self.first, &self.second);
        if self.figures.is_empty() {
            return "Nothing can be compared: there is no figure that both have.".into();
        }
        if self.is_one_pair() {
            return self.describe_one_pair();
        }
        let names = |which: Vec<&ComparedFigure>| {
            which.iter().map(|figure| figure.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let better = names(self.figures_where(|c| c == Conclusion::Better));
        let worse = names(self.figures_where(|c| c == Conclusion::Worse));
        let unclear = names(self.figures_where(|c| matches!(c, Conclusion::Unclear(_))));
        let mut parts = Vec::new();
        for (word, which) in [("better in", better), ("worse in", worse), ("nothing can be said of", unclear)]
        {
            if !which.is_empty() {
                parts.push(format!("{word} {which}"));
            }
        }
        if parts.is_empty() {
            return format!("{second} and {first} do not differ by more than matters.");
        }
        format!("{second} against {first}: {}.", parts.join("; "))
    }
}

/// Figures of one pair that are named in a sentence.
const NAMED: usize = 3;

impl Pairing {
    /// Returns whether each side has one run, of all figures.
    pub(crate) fn is_one_pair(&self) -> bool {
        !self.figures.is_empty() && self.figures.iter().all(|figure| figure.found.is_one_pair())
    }

    /// What one run of each says, and what it does not.
    fn describe_one_pair(&self) -> String {
        let (first, second) = (&self.first, &self.second);
        let named = self.figures.iter().take(NAMED);
        let named =
            named.map(|figure| format!("{} {}", figure.name, Change(figure.found.decision.ratio.value)));
        let mut named = named.collect::<Vec<_>>().join(", ");
        if self.figures.len() > NAMED {
            named += &format!(" and {} more", counted(self.figures.len() - NAMED, "figure"));
        }
        format!(
            "{second} against {first}, one run of each: {named}. Whether that is more than two runs of the same thing \
             differ is not known."
        )
    }
}

/// Text below comparisons.
pub(crate) fn describe_columns(all: &[Pairing]) -> &'static str {
    match all.iter().all(Pairing::is_one_pair) && !all.is_empty() {
        true => {
            "One run of each side: there is no interval, no p and no size of an effect. Four a side are the least."
        }
        false => {
            "Intervals hold 95 %; runs are the unit. p: by the test of the interval; effect: Cliff's delta."
        }
    }
}
