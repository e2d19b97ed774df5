//! Arguments of a learned workload, as it writes them.

use super::shapes::ArgumentStats;
use std::collections::BTreeMap;

/// Parts that a distribution of lengths is cut into.
const PARTS: usize = 12;

/// A text as YAML: what JSON writes, YAML reads.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".into())
}

/// A literal word.
fn literal(word: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(word).ok()?;
    (!text.chars().any(char::is_control)).then(|| quoted(&text.replace("%{", "%%{")))
}

/// Lengths in parts of about the same weight: least, greatest and weight.
fn parts(lengths: &BTreeMap<u32, u64>) -> Vec<(u32, u32, u64)> {
    let all: u64 = lengths.values().sum();
    let step = all.div_ceil(PARTS as u64).max(1);
    let mut parts: Vec<(u32, u32, u64)> = Vec::new();
    for (length, count) in lengths {
        match parts.last_mut() {
            // Few lengths stay as they are; a part never spans more than a quarter of its own length.
            Some((from, to, weight))
                if lengths.len() > PARTS && *weight + count <= step && *length <= *from + *from / 4 =>
            {
                (*to, *weight) = (*length, *weight + count);
            }
            _ => parts.push((*length, *length, *count)),
        }
    }
    parts
}

/// A text of these lengths.
pub(super) fn text_of(lengths: &BTreeMap<u32, u64>) -> String {
    let one = |(from, to, _): &(u32, u32, u64)| match from == to {
        true => format!("{{ $string: {from} }}"),
        false => format!("{{ $string: [{from}, {to}] }}"),
    };
    let parts = parts(lengths);
    match &parts[..] {
        [] => "{ $string: 1 }".into(),
        [only] => one(only),
        all => {
            let values: Vec<String> = all.iter().map(one).collect();
            let weights: Vec<String> = all.iter().map(|(.., weight)| weight.to_string()).collect();
            format!("{{ $oneOf: {{ values: [{}], weights: [{}] }} }}", values.join(", "), weights.join(", "))
        }
    }
}

/// One of several generators, by weight.
pub(super) fn one_of(all: &[(String, u64)]) -> String {
    match all {
        [(only, _)] => only.clone(),
        all => {
            let values: Vec<&str> = all.iter().map(|(value, _)| value.as_str()).collect();
            let weights: Vec<String> = all.iter().map(|(_, weight)| weight.to_string()).collect();
            format!("{{ $oneOf: {{ values: [{}], weights: [{}] }} }}", values.join(", "), weights.join(", "))
        }
    }
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
    if let (None, Some((before, behind, least, most))) = (stats.numbers, &stats.numbered)
        && least < most
        && i64::try_from(*most).is_ok()
    {
        let escaped = |text: &str| text.replace("%{", "%%{");
        return quoted(&format!("{}%{{long:{least}-{most}}}{}", escaped(before), escaped(behind)));
    }
    match stats.numbers {
        Some((least, most)) if least < most => format!("{{ $long: [{least}, {most}] }}"),
        _ => text_of(&stats.lengths),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_cut_into_parts_of_the_same_weight() {
        let lengths: BTreeMap<u32, u64> = (1..=1_000).map(|length| (length, 1)).collect();
        let parts = parts(&lengths);
        assert_eq!(parts.iter().map(|(.., weight)| weight).sum::<u64>(), 1_000);
        assert!(parts.iter().all(|(from, to, weight)| *weight <= 84 && *to <= from + from / 4), "{parts:?}");
        // The median of the parts is that of the lengths.
        let mut sum = 0;
        let middle = parts.iter().find(|(.., weight)| {
            sum += weight;
            sum >= 500
        });
        let (from, to, _) = middle.unwrap();
        assert!((*from..=*to).contains(&500), "{middle:?}");
    }
}
