//! Values as a workload writes them.

use std::collections::BTreeMap;

/// Parts that a distribution of lengths is cut into, at least where it has as many lengths.
const PARTS: usize = 12;

/// A part never spans more than this part of its own length, so that its percentiles are not off by more.
const SPAN: u32 = 20;

/// A text as YAML: what JSON writes, YAML reads.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".into())
}

/// Lengths in parts of about the same weight: least, greatest and weight.
fn parts(lengths: &BTreeMap<u32, u64>) -> Vec<(u32, u32, u64)> {
    let all: u64 = lengths.values().sum();
    let step = all.div_ceil(PARTS as u64).max(1);
    let mut parts: Vec<(u32, u32, u64)> = Vec::new();
    for (length, count) in lengths {
        match parts.last_mut() {
            // Few lengths stay as they are.
            Some((from, to, weight))
                if lengths.len() > PARTS && *weight + count <= step && *length <= *from + *from / SPAN =>
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_cut_into_parts_of_the_same_weight() {
        let lengths: BTreeMap<u32, u64> = (1..=1_000).map(|length| (length, 1)).collect();
        let parts = parts(&lengths);
        assert_eq!(parts.iter().map(|(.., weight)| weight).sum::<u64>(), 1_000);
        assert!(
            parts.iter().all(|(from, to, weight)| *weight <= 84 && *to <= from + from / SPAN),
            "{parts:?}"
        );
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
