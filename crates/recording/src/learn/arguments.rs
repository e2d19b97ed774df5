//! Arguments of commands, as a learned workload writes them.

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
    if let (None, Some((before, behind, least, most))) = (stats.numbers, &stats.numbered)
        && least < most
        && i64::try_from(*most).is_ok()
    {
        let escaped = |text: &str| text.replace("%{", "%%{");
        return quoted(&format!("{}%{{long:{least}-{most}}}{}", escaped(before), escaped(behind)));
    }
    if let (None, Some((least, most, decimals))) = (stats.numbers, stats.decimals)
        && least < most
    {
        return format!("{{ $double: {{ min: {least}, max: {most}, decimals: {decimals} }} }}");
    }
    match stats.numbers {
        Some((least, most)) if least < most => format!("{{ $long: [{least}, {most}] }}"),
        _ => text_of(&stats.lengths),
    }
}
