//! Series of numbers: arithmetic, geometric, or evenly spaced.

use dyno_types::limits::SERIES_VALUES;

/// Form that a series must have.
pub(super) const SERIES: &str = "expected one of step (not 0, towards `to`), times (above 0, not 1, towards `to`) and count \
                                 (2 or more), and at most 10000 values";

/// The values of a series.
pub(super) fn series(
    from: f64,
    to: f64,
    step: Option<f64>,
    times: Option<f64>,
    count: Option<f64>,
) -> Option<Vec<f64>> {
    let values = match (step, times, count) {
        (Some(step), None, None) => arithmetic(from, to, step),
        (None, Some(times), None) => geometric(from, to, times),
        (None, None, Some(count))
            if count >= 2.0 && count.fract() == 0.0 && count <= SERIES_VALUES as f64 =>
        {
            Some((0..count as usize).map(|i| from + (to - from) * i as f64 / (count - 1.0)).collect())
        }
        (None, None, None) => arithmetic(from, to, if to >= from { 1.0 } else { -1.0 }),
        _ => None,
    };
    values.filter(|all| all.len() <= SERIES_VALUES)
}

/// Slack for sums of steps that are no binary fractions.
const SLACK: f64 = 1e-9;

fn arithmetic(from: f64, to: f64, step: f64) -> Option<Vec<f64>> {
    if step == 0.0 || (to - from) * step < 0.0 {
        return None;
    }
    let steps = ((to - from) / step + SLACK).floor();
    (steps <= SERIES_VALUES as f64).then(|| (0..=steps as usize).map(|i| from + step * i as f64).collect())
}

fn geometric(from: f64, to: f64, times: f64) -> Option<Vec<f64>> {
    let towards = times > 0.0 && from > 0.0 && to > 0.0 && (times > 1.0) == (to >= from) && times != 1.0;
    if !towards {
        return None;
    }
    let steps = ((to / from).ln() / times.ln() + SLACK).floor();
    (steps <= SERIES_VALUES as f64)
        .then(|| (0..=steps as usize).map(|i| from * times.powi(i as i32)).collect())
}
