//! Figures of comparisons as numbers.

use dyno_types::units::Thousands;

/// A figure as a number.
pub(crate) fn format_number(value: f64) -> String {
    match value.abs() {
        v if v >= 1_000.0 && value < 0.0 => format!("-{}", Thousands(v.round() as u64)),
        v if v >= 1_000.0 => Thousands(v.round() as u64).to_string(),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
