//! Durations, rates and sizes as a person types and reads them.

use std::fmt;

/// Why a quantity could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {what}: expected {expected}")]
pub struct BadUnit {
    /// Text as it was typed.
    pub text: String,
    /// Expected form.
    pub what: &'static str,
    /// Accepted forms.
    pub expected: &'static str,
}

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let number: f64 = text[..at].replace('_', "").parse().ok()?;
    Some((number, text[at..].trim()))
}

/// Reads a duration such as `5ms`, `1.5s`, `2m`, `1h`; a bare number counts in `bare_ns` nanoseconds.
pub fn parse_duration_ns(text: &str, bare_ns: u64) -> Result<u64, BadUnit> {
    let bad = || BadUnit {
        text: text.to_owned(),
        what: "a duration",
        expected: "a number with ns, us, ms, s, m or h, such as 500ms",
    };
    let (number, unit) = split(text).ok_or_else(bad)?;
    let scale = match unit {
        "" => bare_ns,
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(bad()),
    };
    let ns = number * scale as f64;
    if ns.is_finite() && ns <= u64::MAX as f64 / 4.0 { Ok(ns.round() as u64) } else { Err(bad()) }
}

/// Reads a count such as `1000`, `10k`, `2.5M`, `1_000_000`.
pub fn parse_count(text: &str) -> Result<u64, BadUnit> {
    let bad = || BadUnit {
        text: text.to_owned(),
        what: "a count",
        expected: "a whole number, also 10k, 2.5M or 1G",
    };
    let (number, unit) = split(text).ok_or_else(bad)?;
    let scale = match unit {
        "" => {
            // Plain integers keep all 64 bits.
            if let Ok(n) = text.trim().replace('_', "").parse::<u64>() {
                return Ok(n);
            }
            1.0
        }
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        "g" | "G" => 1e9,
        _ => return Err(bad()),
    };
    let n = number * scale;
    if n.fract() == 0.0 && n < 2f64.powi(63) { Ok(n as u64) } else { Err(bad()) }
}

/// Reads a number such as `0.5`, `-3`, `2000`, `2k` or `2.5M`.
pub fn parse_number(text: &str) -> Result<f64, BadUnit> {
    let plain = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    plain.map_or_else(|| parse_count(text).map(|count| count as f64), Ok)
}

/// Reads a share such as `0.02` or `2%`.
pub fn parse_share(text: &str) -> Result<f64, BadUnit> {
    let (number, scale) = text.trim().strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().ok().map(|number| number / scale);
    share.filter(|share| share.is_finite() && *share >= 0.0).ok_or_else(|| BadUnit {
        text: text.to_owned(),
        what: "a share",
        expected: "a number, or a percentage such as 2%",
    })
}

/// Reads a size such as `4096`, `512MiB`, `8GiB`, `10 GB`: `k`, `M`, `G`, `T` (also with `B`) are powers of 1000, `Ki`,
/// `Mi`, `Gi`, `Ti` of 1024.
pub fn parse_bytes(text: &str) -> Result<u64, BadUnit> {
    let bad = || BadUnit {
        text: text.to_owned(),
        what: "a size",
        expected: "bytes, or a number with KiB, MiB, GiB, TiB (1024) or kB, MB, GB, TB (1000)",
    };
    let (number, unit) = split(text).ok_or_else(bad)?;
    let scale = match unit.to_ascii_lowercase().trim_end_matches('b') {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024f64.powi(2),
        "gi" => 1024f64.powi(3),
        "ti" => 1024f64.powi(4),
        _ => return Err(bad()),
    };
    let bytes = number * scale;
    if bytes < 2f64.powi(63) { Ok(bytes.round() as u64) } else { Err(bad()) }
}

/// Reads a rate in operations per second such as `20000`, `20k`, `0.5`, `20k/s`.
pub fn parse_rate(text: &str) -> Result<f64, BadUnit> {
    let expected = "operations per second above 0, such as 20000 or 20k";
    rate_of(text, expected).and_then(|rate| match rate > 0.0 {
        true => Ok(rate),
        false => Err(BadUnit { text: text.to_owned(), what: "a rate", expected }),
    })
}

/// Reads a rate as [`parse_rate`], or 0: nothing for a while.
pub fn parse_rate_or_zero(text: &str) -> Result<f64, BadUnit> {
    rate_of(text, "operations per second, 0 or more, such as 20000 or 20k")
}

fn rate_of(text: &str, expected: &'static str) -> Result<f64, BadUnit> {
    let bad = || BadUnit { text: text.to_owned(), what: "a rate", expected };
    let (number, unit) = split(text.trim().trim_end_matches("/s")).ok_or_else(bad)?;
    let scale = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        _ => return Err(bad()),
    };
    let rate = number * scale;
    if (0.0..=1e9).contains(&rate) { Ok(rate) } else { Err(bad()) }
}

/// Writes a duration as [`parse_duration_ns`] reads it, in the largest unit that divides it: `90s`, `500ms`, `2h`.
pub fn written_duration(ns: u64) -> String {
    let units = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    match units.iter().find(|(size, _)| ns > 0 && ns.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", ns / size),
        None if ns == 0 => "0s".into(),
        None => format!("{ns}ns"),
    }
}

/// Reads a list of cores such as `0-3,8`; numbers are kept in their order. `None` where the text is no such list.
pub fn parse_cores(text: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let from: usize = from.trim().parse().ok()?;
        let to: usize = to.trim().parse().ok()?;
        if from > to || to > 65_535 {
            return None;
        }
        cores.extend(from..=to);
    }
    Some(cores)
}

/// Writes a list of cores as [`parse_cores`] reads it: `0-3,8`.
pub fn written_cores(cores: &[usize]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < cores.len() {
        let mut end = at;
        while end + 1 < cores.len() && cores[end + 1] == cores[end] + 1 {
            end += 1;
        }
        if !out.is_empty() {
            out.push(',');
        }
        match end - at {
            0 => out.push_str(&cores[at].to_string()),
            _ => out.push_str(&format!("{}-{}", cores[at], cores[end])),
        }
        at = end + 1;
    }
    out
}

/// Nanoseconds for a person: three significant digits and the unit that suits them.
#[derive(Clone, Copy, Debug)]
pub struct ShownLatency(pub u64);

impl fmt::Display for ShownLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => return f.pad(&format!("{} ns", self.0)),
            1_000..999_500 => (ns / 1e3, "µs"),
            999_500..999_500_000 => (ns / 1e6, "ms"),
            _ => (ns / 1e9, "s"),
        };
        let decimals = if value >= 99.95 {
            0
        } else if value >= 9.995 {
            1
        } else {
            2
        };
        f.pad(&format!("{value:.decimals$} {unit}"))
    }
}

/// Bytes in units of 1024: `3.0 MiB`.
#[derive(Clone, Copy, Debug)]
pub struct BinaryBytes(pub f64);

impl fmt::Display for BinaryBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0;
        for unit in ["B", "KiB", "MiB", "GiB"] {
            if value < 1_000.0 {
                let decimals = usize::from(unit != "B");
                return f.pad(&format!("{value:.decimals$} {unit}"));
            }
            value /= 1_024.0;
        }
        f.pad(&format!("{value:.1} TiB"))
    }
}

/// A count with thin thousands: `1,234,567`.
#[derive(Clone, Copy, Debug)]
pub struct Thousands(pub u64);

impl fmt::Display for Thousands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
        for (i, c) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                text.push(',');
            }
            text.push(c);
        }
        f.pad(&text)
    }
}

/// A rate with the digits that it needs: grouped and whole from 1,000 on, four significant ones below, as few as say it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = match self.0.abs() {
            v if v >= 999.95 => {
                let sign = if self.0 < 0.0 { "-" } else { "" };
                return f.pad(&format!("{sign}{}", Thousands(v.round() as u64)));
            }
            v if v >= 100.0 => 1,
            v if v >= 10.0 => 2,
            _ => 3,
        };
        let text = format!("{:.decimals$}", self.0);
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A number to three significant digits: `0.0421`, `12.3`, `1,235`, `1.23e-5`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Significant(pub f64);

impl fmt::Display for Significant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scientific = format!("{:.2e}", self.0);
        // The exponent of what is shown: 9.999 is 10.0.
        let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
        match exponent {
            _ if self.0 == 0.0 => f.pad("0"),
            None => f.pad(&self.0.to_string()),
            Some(3..=8) => f.pad(&Rate(self.0).to_string()),
            Some(exponent @ -3..=2) => f.pad(&format!("{:.*}", (2 - exponent) as usize, self.0)),
            Some(_) => f.pad(&scientific),
        }
    }
}

/// The ratio of a figure to what it was before, as people read it: a change in per cent up to twice as much, beyond that a
/// factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change(pub f64);

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ratio if ratio.is_finite() && ratio > 2.0 => f.pad(&format!("{} times as much", factor(ratio))),
            ratio => f.pad(&format!("{:+.1} %", (ratio - 1.0) * 100.0)),
        }
    }
}

/// An error against what is expected, `+1.25 %`: beyond twice as much a factor.
pub fn format_error(error: f64) -> String {
    match error > 1.0 {
        true => Change(1.0 + error).to_string(),
        false => format!("{:+.2} %", error * 100.0),
    }
}

/// Three significant digits without those that say nothing: `24`, `2.5`.
fn factor(ratio: f64) -> String {
    let text = Significant(ratio).to_string();
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The interval of a ratio in the words of [`Change`] for `ratio`: `+3.1 to +5.2 %`, `3.93 to 4.5 times`.
pub fn change_span(ratio: f64, (low, high): (f64, f64)) -> String {
    match ratio.is_finite() && ratio > 2.0 {
        true => span((factor(low), factor(high)), " times"),
        false => {
            span((format!("{:+.1}", (low - 1.0) * 100.0), format!("{:+.1}", (high - 1.0) * 100.0)), " %")
        }
    }
}

/// A unit as people read it: `us` in files and names of figures is µs.
pub fn symbol(unit: &'static str) -> &'static str {
    if unit == "us" { "µs" } else { unit }
}

/// Counts in words: `1 user`, `8 users`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The ends of an interval with so many digits behind the point, and more where both would read alike.
pub fn ends(low: f64, high: f64, digits: usize) -> (String, String) {
    let shown = |value: f64, digits: usize| match value.is_finite() {
        true => format!("{value:.digits$}"),
        false => "infinity".to_owned(),
    };
    let enough = (digits..digits + 3).find(|digits| shown(low, *digits) != shown(high, *digits));
    let digits = enough.unwrap_or(digits);
    (shown(low, digits), shown(high, digits))
}

/// An interval by its ends, `12 to 40 ms` where `unit` is ` ms`; where both read alike the value and that there is more to it.
pub fn span((low, high): (String, String), unit: &str) -> String {
    match low == high {
        true => format!("{low}{unit}, narrower than shown"),
        false => format!("{low} to {high}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_keep_their_digits() {
        for (rate, shown) in [
            (53.95, "53.95"),
            (54.0, "54"),
            (0.0, "0"),
            (7.125, "7.125"),
            (842.66, "842.7"),
            (99_999.6, "100,000"),
        ] {
            assert_eq!(Rate(rate).to_string(), shown);
        }
        assert_eq!(format!("{:>8}", Rate(1_234.0)), "   1,234");
    }

    #[test]
    fn small_numbers_keep_three_digits() {
        for (value, shown) in [
            (0.0, "0"),
            (1.234_5e-5, "1.23e-5"),
            (0.000_999_9, "0.00100"),
            (0.042_13, "0.0421"),
            (9.999, "10.0"),
            (123.4, "123"),
            (1_234.6, "1,235"),
        ] {
            assert_eq!(Significant(value).to_string(), shown);
        }
    }

    #[test]
    fn more_than_twice_as_much_is_a_factor() {
        for (ratio, shown) in [
            (1.052, "+5.2 %"),
            (0.25, "-75.0 %"),
            (2.0, "+100.0 %"),
            (2.5, "2.5 times as much"),
            (24.0, "24 times as much"),
            (1_234.6, "1,235 times as much"),
        ] {
            assert_eq!(Change(ratio).to_string(), shown);
        }
        assert_eq!(
            (format_error(0.0125), format_error(23.0)),
            ("+1.25 %".into(), "24 times as much".to_owned())
        );
        assert_eq!(change_span(1.05, (1.031, 1.07)), "+3.1 to +7.0 %");
        assert_eq!(change_span(4.2, (3.93, 4.5)), "3.93 to 4.5 times");
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!((counted(1, "user"), counted(8, "user")), ("1 user".to_owned(), "8 users".to_owned()));
    }

    #[test]
    fn ends_that_differ_are_shown_to_differ() {
        let ends = |low, high| super::ends(low, high, 0);
        assert_eq!(ends(12.4, 40.0), ("12".to_owned(), "40".to_owned()));
        assert_eq!(ends(33.96, 34.04), ("33.96".to_owned(), "34.04".to_owned()));
        assert_eq!(ends(34.0, f64::INFINITY), ("34".to_owned(), "infinity".to_owned()));
        assert_eq!(span(ends(12.4, 40.0), " ms"), "12 to 40 ms");
        assert_eq!(span(ends(34.0, 34.0), " ms"), "34 ms, narrower than shown");
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration_ns("5ms", 1), Ok(5_000_000));
        assert_eq!(parse_duration_ns("1.5 s", 1), Ok(1_500_000_000));
        assert_eq!(parse_duration_ns("30", 1_000_000_000), Ok(30_000_000_000));
        assert!(parse_duration_ns("5 parsecs", 1).is_err());
        assert!(parse_duration_ns("", 1).is_err());
        assert!(parse_duration_ns("-1s", 1).is_err());
    }

    #[test]
    fn counts_and_rates() {
        assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse_count("2.5M"), Ok(2_500_000));
        assert_eq!(parse_count("1_000"), Ok(1000));
        assert!(parse_count("1.5").is_err());
        assert_eq!(parse_rate("20k/s"), Ok(20_000.0));
        assert!(parse_rate("0").is_err());
        assert_eq!((parse_rate_or_zero("0"), parse_rate_or_zero("1k/s")), (Ok(0.0), Ok(1_000.0)));
        assert!(parse_rate_or_zero("-1").is_err());
    }

    #[test]
    fn people_read_these() {
        assert_eq!(ShownLatency(999).to_string(), "999 ns");
        assert_eq!(ShownLatency(1_234).to_string(), "1.23 µs");
        assert_eq!(ShownLatency(45_670_000).to_string(), "45.7 ms");
        assert_eq!(ShownLatency(999_700).to_string(), "1.00 ms");
        assert_eq!(ShownLatency(12_000_000_000).to_string(), "12.0 s");
        assert_eq!(Thousands(1_234_567).to_string(), "1,234,567");
        assert_eq!(Thousands(12).to_string(), "12");
        assert_eq!(BinaryBytes(100.0).to_string(), "100 B");
        assert_eq!(BinaryBytes(3.0 * 1_048_576.0).to_string(), "3.0 MiB");
    }
}
