//! The answer of a search for the highest rate, for the terminal and for the experiment's page.

use dyno_experiment::directory::{finished, read_journal, read_record};
use dyno_experiment::journal::RunRecord;
use dyno_experiment::rate_search::{self, FoundRate};
use dyno_types::units::{Rate, counted};
use std::path::Path;

/// What a search for the highest rate has found.
pub fn highest_rate(ended: &[RunRecord], cell: usize, repetition: u32) -> FoundRate {
    let own = ended.iter().filter(|run| (run.cell, run.repetition) == (cell, repetition));
    rate_search::found(&own.collect::<Vec<_>>())
}

/// How sure an answer is, in words that follow it.
pub fn sureness(found: &FoundRate) -> String {
    let mut message = String::new();
    if let Some(kept) = found.kept {
        message += &format!(" ({}", counted(found.runs, "run"));
        message += &match found.missed {
            Some(missed) => format!("; interval {}/s to {}/s)", Rate(kept), Rate(missed)),
            None => "; no higher rate was missed)".into(),
        };
    }
    if let [first, .., last] = found.open.as_slice() {
        message += &format!("; {}/s to {}/s are too close to call", Rate(*first), Rate(*last));
    } else if let [only] = found.open.as_slice() {
        message += &format!("; {}/s is too close to call", Rate(*only));
    }
    if let Some((first, last)) = found.unknown {
        message += &match first == last {
            true => format!("; runs at {}/s are invalid and decide nothing", Rate(first)),
            false => {
                format!("; runs from {}/s to {}/s are invalid and decide nothing", Rate(first), Rate(last))
            }
        };
    }
    message
}

/// Answers that a page opens with, at most.
const SENTENCES: usize = 4;

/// Returns what an experiment's searches for the highest rate have found, a sentence each. Returns none for other strategies,
/// or if the files cannot be read: the page says that.
pub fn searched(path: &Path) -> Vec<String> {
    let read = || -> Option<Vec<String>> {
        let record = read_record(path).ok().filter(|record| record.searches)?;
        let ended = finished(read_journal(path).ok()?);
        let is_rate = |run: &RunRecord| run.point.starts_with("rate=") && run.objective.is_none();
        if ended.is_empty() || !ended.iter().all(is_rate) {
            return None;
        }
        let mut all: Vec<(usize, u32)> = ended.iter().map(|run| (run.cell, run.repetition)).collect();
        all.sort_unstable();
        all.dedup();
        let words = |&(cell, repetition): &(usize, u32)| {
            let label = record.cells.iter().find(|one| one.number == cell).map_or("", |one| &one.label);
            let whose = match all.len() {
                1 => String::new(),
                _ => format!("{label}, repetition {repetition}: "),
            };
            let found = highest_rate(&ended, cell, repetition);
            let answer = match found.kept {
                Some(rate) => format!("{}/s is the highest rate that meets the objectives", Rate(rate)),
                None => "No rate meets the objectives".into(),
            };
            format!("{whose}{answer}{}.", sureness(&found))
        };
        let mut sentences: Vec<String> = all.iter().take(SENTENCES).map(words).collect();
        if all.len() > SENTENCES {
            sentences.push(format!("{} searches more: see the cells.", all.len() - SENTENCES));
        }
        Some(sentences)
    };
    read().unwrap_or_default()
}
