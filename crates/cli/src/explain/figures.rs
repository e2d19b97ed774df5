//! Figures in words.

use dyno_types::units::{Latency, Rate};

pub(super) fn rate(value: f64) -> String {
    Rate(value).to_string()
}

pub(super) fn time(seconds: f64) -> String {
    Latency((seconds * 1e9).round() as u64).to_string()
}

/// Half an interval as a share of its middle; of nothing there is none.
pub(super) fn half(half: Option<f64>, middle: f64) -> String {
    half.filter(|_| middle > 0.0).map_or("-".to_owned(), |half| format!("{:.1} %", half / middle * 100.0))
}
