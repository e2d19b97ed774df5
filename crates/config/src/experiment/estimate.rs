//! Time that an experiment takes.

use crate::experiment::{Experiment, ExperimentPlan, Strategy, When};
use dyno_types::units::parse_rate;

/// Start and end of servers and workers of one run, seconds.
const OVERHEAD_S: f64 = 2.0;

/// A duration, as far as it can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DurationEstimate {
    /// Seconds that are known.
    pub seconds: f64,
    /// True if loads add to it: how long they take depends on the target.
    pub loads: bool,
    /// True if runs end by a number of operations, or a search decides how many there are.
    pub open_ended: bool,
}

/// Estimates how long all runs of a plan take.
pub fn estimate_duration(plan: &ExperimentPlan) -> DurationEstimate {
    let mut all = DurationEstimate::default();
    for run in &plan.runs {
        let one = of_run(&plan.cells[run.cell].spec);
        all.seconds += one.seconds;
        all.loads |= one.loads;
        all.open_ended |= one.open_ended;
    }
    all
}

fn of_run(spec: &Experiment) -> DurationEstimate {
    let measure = &spec.phases.measure;
    let seconds = |span: &Option<crate::values::Span>| span.as_ref().map(|span| span.0 as f64 / 1e9);
    let by_time = seconds(&measure.duration).or(measure.operations.is_none().then_some(10.0));
    // A rate that is sustained says how long so many operations take; one that is not takes longer.
    let rate = measure.rate.as_deref().and_then(|text| parse_rate(text).ok());
    let by_rate = measure.operations.as_ref().zip(rate).map_or(0.0, |(count, rate)| count.0 as f64 / rate);
    let own = spec.phases.warmup.as_ref().map(|warmup| warmup.duration.0 as f64 / 1e9);
    let warmup = own.or(seconds(&measure.warmup)).or(by_time.map(|s| (s / 10.0).min(5.0))).unwrap_or(0.0);
    let searched = matches!(spec.strategy, Some(Strategy::Ladder(_) | Strategy::HighestRate(_)));
    DurationEstimate {
        seconds: by_time.unwrap_or(by_rate)
            + warmup
            + seconds(&spec.phases.pause).unwrap_or(0.0)
            + OVERHEAD_S,
        loads: spec.phases.load.when != When::Never,
        open_ended: by_time.is_none() || searched || spec.strategy.is_some(),
    }
}
