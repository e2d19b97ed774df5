//! Figures in words.

use dyno_types::units::{Rate, ShownLatency};

pub(super) fn rate(value: f64) -> String {
    Rate(value).to_string()
}

pub(super) fn time(seconds: f64) -> String {
    ShownLatency((seconds * 1e9).round() as u64).to_string()
}

/// Half an interval as a share of its middle. Of nothing there is none, nor of runs that are copies of each other, as simulated
/// ones with one seed are; one that is wider than its middle says no more than that.
pub(super) fn half(half: Option<f64>, middle: f64) -> String {
    match half.filter(|half| middle > 0.0 && *half > 0.0) {
        None => "-".to_owned(),
        Some(half) if half > middle => "> 100 %".to_owned(),
        Some(half) => format!("{:.1} %", half / middle * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_wider_than_its_middle_is_not_said_in_figures() {
        let shown = |width: Option<f64>| half(width, 9_060.0);
        assert_eq!([shown(None), shown(Some(90.6)), shown(Some(9_060.0))], ["-", "1.0 %", "100.0 %"]);
        assert_eq!([shown(Some(82_355.0)), half(Some(1.0), 0.0)], ["> 100 %", "-"]);
        assert_eq!(shown(Some(0.0)), "-", "copies");
    }
}
