//! Axes of drawings: where ticks stand, and the figures beside them.

/// A step of 1, 2 or 5 times a power of ten that a span has at least `count / 2.5` times.
pub(super) fn nice_step(span: f64, count: f64) -> f64 {
    let raw = (span / count).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|n| *n >= raw * 0.999).unwrap_or(raw)
}

/// Multiples of a step from `low` to `high`.
pub(super) fn even_ticks(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step - 1e-9).ceil() as i64;
    (first..first + 60).map(|n| n as f64 * step).take_while(|tick| *tick <= high + step * 1e-9).collect()
}

/// Ticks of a logarithmic axis from `low`, above 0, to `high`, three or more: at powers of ten, and at 2 and 5 times them where
/// those are few.
pub(super) fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let digits: &[f64] = if (high / low).log10() > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
    let all: Vec<f64> = all.filter(|tick| (low..=high).contains(tick)).collect();
    if all.len() < 3 { even_ticks(low, high, nice_step(high - low, 8.0)) } else { all }
}

/// A figure beside an axis: without zeros at its end, and 0 without a unit.
pub(super) fn round_label(text: &str) -> String {
    let (number, unit) = text.split_once(' ').map_or((text, ""), |(number, unit)| (number, unit));
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => in_millions(number).unwrap_or_else(|| number.to_owned()),
    };
    match (number.as_str(), unit) {
        ("0", _) | (_, "") => number,
        _ => format!("{number} {unit}"),
    }
}

/// A round number of millions as `dyno` takes it: more digits do not fit beside an axis. `None` for any other number.
fn in_millions(number: &str) -> Option<String> {
    let value: u64 = number.replace(',', "").parse().ok()?;
    let tenths = value / 100_000;
    (tenths >= 10 && value.is_multiple_of(100_000)).then(|| match tenths % 10 {
        0 => format!("{}M", tenths / 10),
        rest => format!("{}.{rest}M", tenths / 10),
    })
}

/// A place in a drawing: a tenth of a unit is less than is seen.
pub(super) fn tenths(place: f64) -> String {
    format!("{place:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_beside_an_axis_are_round() {
        for (text, shown) in [
            ("5.00 ms", "5 ms"),
            ("0 ns", "0"),
            ("1.50 s", "1.5 s"),
            ("100 µs", "100 µs"),
            ("150,000", "150,000"),
            ("1,000,000", "1M"),
            ("12,500,000", "12.5M"),
            ("1,250,000", "1,250,000"),
            ("900,000", "900,000"),
            ("+50 %", "+50 %"),
        ] {
            assert_eq!(round_label(text), shown);
        }
    }
}
