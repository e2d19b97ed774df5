//! Values of facts: from small files, from the names in folders, and several as one.

use crate::roots::read;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Reads a small file, as one line.
pub(super) fn text(path: impl AsRef<Path>) -> Option<String> {
    let text = read(path.as_ref()).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty())
}

/// `always [madvise] never` means `madvise`.
pub(super) fn chosen(text: String) -> String {
    match (text.find('['), text.find(']')) {
        (Some(open), Some(close)) if open < close => text[open + 1..close].to_owned(),
        _ => text,
    }
}

/// Names in a folder, sorted; none where there is no folder.
pub(crate) fn names(path: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The distinct values, each with how often it was found where there are several: `performance`, or
/// `performance x 2, powersave x 6`.
pub(super) fn tally(values: impl Iterator<Item = String>) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    match counts.len() {
        0 => None,
        1 => counts.into_keys().next(),
        _ => Some(counts.iter().map(|(value, n)| format!("{value} x {n}")).collect::<Vec<_>>().join(", ")),
    }
}
