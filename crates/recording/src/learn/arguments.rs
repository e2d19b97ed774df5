//! Arguments of commands, as a learned workload writes them.

use super::numbers::NumberRange;
use super::shapes::ArgumentStats;
use super::yaml_text::{one_of, quoted, text_of};

/// A literal word.
fn literal(word: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(word).ok()?;
    (!text.chars().any(char::is_control)).then(|| quoted(&text.replace("%{", "%%{")))
}

pub(super) fn argument(stats: &ArgumentStats, key_of: &dyn Fn(usize) -> String) -> String {
    if !stats.spaces.is_empty() {
        let all: Vec<(String, u64)> =
            stats.spaces.iter().map(|(space, count)| (key_of(*space), *count)).collect();
        return one_of(&all);
    }
    if let Some(values) = &stats.values {
        let known: Option<Vec<(String, u64)>> =
            values.iter().map(|(word, count)| Some((literal(word)?, *count))).collect();
        if let Some(known) = known.filter(|known| !known.is_empty()) {
            return one_of(&known);
        }
    }
    // What is drawn is as long as what was seen: a range for each number of digits, unless all numbers are alike.
    if let Some(numbers) = &stats.numbers {
        let ranges = numbers.ranges(|number| number as f64);
        let all: Vec<(String, u64)> =
            ranges.iter().map(|range| (long(range.least, range.most), range.count)).collect();
        return one_of(&all);
    }
    if let Some((before, behind, numbers)) = &stats.numbered {
        let escaped = |text: &str| text.replace("%{", "%%{");
        let ranges = numbers.ranges(|number| number as f64);
        let one = |least: u64, most: u64| match least == most {
            true => quoted(&format!("{}{least}{}", escaped(before), escaped(behind))),
            false => quoted(&format!("{}%{{long:{least}-{most}}}{}", escaped(before), escaped(behind))),
        };
        if ranges.iter().all(|range| i64::try_from(range.most).is_ok()) {
            let all: Vec<(String, u64)> =
                ranges.iter().map(|range| (one(range.least, range.most), range.count)).collect();
            return one_of(&all);
        }
    }
    let decimals = stats.decimals.as_ref().map(|decimals| decimals.ranges(|number| number));
    // Whole numbers beyond those of 64 bits are texts.
    let fits = |range: &NumberRange<f64>| {
        range.behind > 0 || range.least.abs().max(range.most.abs()) < i64::MAX as f64
    };
    if let Some(decimals) = decimals.filter(|all| all.iter().all(fits)) {
        let all: Vec<(String, u64)> = decimals
            .iter()
            .map(|range| {
                let NumberRange { least, most, behind, count } = *range;
                let text = match behind {
                    _ if least == most => quoted(&format!("{least:.behind$}")),
                    0 => long(least as i64, most as i64),
                    _ => format!("{{ $double: {{ min: {least}, max: {most}, decimals: {behind} }} }}"),
                };
                (text, count)
            })
            .collect();
        return one_of(&all);
    }
    text_of(&stats.lengths)
}

/// A whole number from a least to a greatest one.
fn long(least: i64, most: i64) -> String {
    if least == most { quoted(&least.to_string()) } else { format!("{{ $long: [{least}, {most}] }}") }
}
