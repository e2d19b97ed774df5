//! `summary.md`: the sections, tables and tests of bexhoma's summary, so that the two can be set side by side, line by line.
//!
//! Figures that differ are computed correctly: a percentile comes from merged histograms, never from a mean or a maximum of
//! percentiles; throughput is over the phase's own time; what was not measured is `-`, never 0; and a test that cannot be made is
//! `skipped`, with its reason. `entry` reduces a run to its figures, `tables` are the sections, `tests_made` the tests.

pub mod entry;
pub mod host_facts;
pub mod rows;
pub mod tables;
pub mod tests_made;

use crate::markdown::entry::Entry;
use dyno_rundir::files;
use dyno_rundir::monitor::Recording;
use dyno_rundir::schema::{Status, Summary};
use dyno_rundir::tuning::{self, TunedCell};
use dyno_rundir::{EndedRun, ExperimentDir, ReadError, RunDir};
use std::fmt::Write as _;

/// Content of a summary.
pub(crate) struct SummaryDocument {
    name: String,
    code: String,
    command: Vec<String>,
    /// Runs that were planned: `None` of a single run.
    planned: Option<usize>,
    /// True if cells are searched: runs are planned as they go.
    searches: bool,
    /// Results of tunings.
    tuned: Vec<TunedCell>,
    /// True if servers were only loaded, and left for later runs.
    standing: bool,
    cells: usize,
    entries: Vec<Entry>,
    /// That a run has not come to its end.
    ending: Option<&'static str>,
    /// Description by bexhoma's flags, where it is made of them.
    about: Option<WorkloadDescription>,
    /// Runs of which nothing can be shown, and why.
    missing: Vec<String>,
    /// Runs that failed or were interrupted, by their names, and why.
    ended_badly: Vec<(String, String)>,
    notes: Vec<String>,
}

/// Description that front ends leave beside an experiment (`workload.json`).
#[derive(serde::Deserialize)]
struct WorkloadDescription {
    name: String,
    bullets: Vec<String>,
    planned: Vec<String>,
}

impl WorkloadDescription {
    fn read(experiment: &std::path::Path) -> Option<WorkloadDescription> {
        serde_json::from_slice(&files::read(&experiment.join("workload.json")).ok()?).ok()
    }
}

/// Text in a cell or a line of Markdown: no markup of it takes effect.
pub(crate) fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        // Brackets are common in names; they make a link only with what follows them.
        let link = before == ']' && matches!(c, '(' | ':' | '[');
        before = c;
        match c {
            '|' | '<' | '>' | '`' | '*' | '\\' | '&' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c if link => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            '\n' | '\r' => out.push(' '),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The text of a summary as a terminal shows it: characters that would be markup are themselves.
pub fn unescape_markdown(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some(at) = rest.find("&#") {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        let digits = behind[2..].find(';').map(|end| &behind[2..2 + end]);
        let shown = digits.and_then(|digits| Some((digits.len(), char::from_u32(digits.parse().ok()?)?)));
        let Some((length, c)) = shown.filter(|(_, c)| c.is_ascii_punctuation()) else {
            out.push_str("&#");
            rest = &behind[2..];
            continue;
        };
        out.push(c);
        rest = &behind[length + 3..];
    }
    out + rest
}

/// Returns whether an address is one of the web: others are shown, but are no links.
pub(crate) fn is_web(address: &str) -> bool {
    address.starts_with("https://") || address.starts_with("http://")
}

/// A link, or the words alone where the address is none of the web.
pub(crate) fn render_link(message: &str, address: &str) -> String {
    if !is_web(address) {
        return format!("{}: {}", escape_markdown(message), escape_markdown(address));
    }
    let mut plain = String::new();
    for c in address.chars() {
        match c {
            '<' | '>' | '(' | ')' | '\\' | '`' | '|' => {
                let _ = write!(plain, "%{:02X}", u32::from(c));
            }
            c if c.is_control() || c.is_whitespace() => plain.push_str("%20"),
            c => plain.push(c),
        }
    }
    format!("[{}](<{plain}>)", escape_markdown(message))
}

/// The summary of a run.
pub fn of_run(dir: &RunDir, summary: &Summary, recording: Option<&Recording>, notes: &[String]) -> String {
    let product = entry::product_name(&summary.database);
    let document = SummaryDocument {
        name: summary.title.clone(),
        code: code(&dir.path),
        command: dir.run.command.clone(),
        planned: None,
        searches: false,
        tuned: Vec::new(),
        standing: false,
        cells: 1,
        entries: vec![Entry::from_run(dir, summary, recording, (format!("{product}-1"), 1, String::new()))],
        ending: crate::summary::describe_ending(summary.status),
        about: None,
        missing: Vec::new(),
        ended_badly: Vec::new(),
        notes: notes.to_vec(),
    };
    document.text()
}

fn code(path: &std::path::Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The summary of an experiment. Runs are read one after another.
pub fn of_experiment(dir: &ExperimentDir) -> String {
    document(dir).text()
}

/// Returns whether a test of an experiment's summary has failed.
pub fn has_failed_test(dir: &ExperimentDir) -> bool {
    document(dir).run_tests().iter().any(|test| test.has_failed())
}

fn document(dir: &ExperimentDir) -> SummaryDocument {
    let mut document = SummaryDocument {
        name: dir.name.clone(),
        code: code(&dir.path),
        command: dir.command.clone(),
        planned: Some(dir.planned),
        searches: dir.searches,
        tuned: Vec::new(),
        standing: dir.standing,
        cells: dir.cells.len(),
        entries: Vec::new(),
        ending: (!dir.complete && !dir.standing)
            .then_some("INCOMPLETE: the experiment has not come to its end"),
        about: WorkloadDescription::read(&dir.path),
        missing: Vec::new(),
        ended_badly: Vec::new(),
        notes: Vec::new(),
    };
    for ended in &dir.runs {
        let entry = entry_of(dir, ended);
        if ended.status != "complete" {
            let name = entry.as_ref().map_or_else(|_| ended.dir.clone(), Entry::name);
            let why = if ended.message.is_empty() { String::new() } else { format!(": {}", ended.message) };
            document.ended_badly.push((name, format!("{}{why}", ended.status)));
        }
        match entry {
            Ok(entry) => document.entries.push(entry),
            // One that did not begin has nothing to show, and its failure has been told.
            Err(_) if ended.status != "complete" => {}
            Err(why) => document.missing.push(format!("{}: {why}", ended.dir)),
        }
    }
    match tuning::read(&dir.path) {
        Ok(tuned) => document.tuned = tuned,
        Err(error) => document.notes.push(error.to_string()),
    }
    if dir.standing {
        document.notes.push("figures of operations: servers were loaded and left running".into());
    }
    document.entries.sort_by(|a, b| (a.cell, a.repetition, &a.point).cmp(&(b.cell, b.repetition, &b.point)));
    document
}

/// A run that has no figures.
#[derive(Debug, thiserror::Error)]
enum EntryError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("it has no summary")]
    NoSummary,
}

fn find_level(levels: &[(String, String)], name: &str) -> Option<String> {
    levels.iter().find(|(known, _)| known == name).map(|(_, level)| level.clone())
}

/// A run's figures. One that failed is shown with what it did until then.
fn entry_of(dir: &ExperimentDir, ended: &EndedRun) -> Result<Entry, EntryError> {
    let path = dir.path.join(&ended.dir);
    let (run, _) = crate::recompute_summary::open_ended_run(&path)?;
    let recording = Recording::open(&path)?;
    let summary = match (&run.summary, ended.status.as_str()) {
        (Some(summary), _) => summary.clone(),
        (None, "complete") => return Err(EntryError::NoSummary),
        (None, _) => crate::recompute_summary::rebuild_summary(&run, recording.as_ref(), false),
    };
    let product = entry::product_name(&summary.database);
    let label = dir.find_cell(ended.cell).map_or(String::new(), |cell| cell.label.clone());
    // Cells of bexhoma's flags have its names.
    let levels = dir.find_cell(ended.cell).map_or(&[][..], |cell| cell.levels.as_slice());
    let level = |name: &str| find_level(levels, name);
    // The only configuration has no level.
    let topology = run.run.settings.iter().find(|one| one.key == "server.topology");
    let cluster = topology.is_some_and(|one| one.value == "cluster" || one.value == "replication");
    let kind = if cluster { "Cluster" } else { "" };
    // Other factors than bexhoma's may give several cells the same two levels: their numbers tell them apart.
    let is_namesake = |levels: &[(String, String)]| {
        ["configuration", "client"].iter().all(|name| find_level(levels, name) == level(name))
    };
    let namesakes = dir.cells.iter().filter(|cell| is_namesake(&cell.levels)).count();
    let configuration = match level("configuration") {
        Some(name) if namesakes > 1 => format!("{name}-{}", ended.cell),
        Some(name) => name,
        None => format!("{product}{kind}-{}", ended.cell),
    };
    let name = (configuration, ended.repetition, ended.point.clone());
    let mut entry = Entry::from_run(&run, &summary, recording.as_ref(), name);
    match ended.status.as_str() {
        "complete" => {}
        "interrupted" => entry.status = Status::Interrupted,
        _ => entry.status = Status::Failed,
    }
    (entry.client, entry.cluster) = (level("client"), cluster);
    entry.cell = ended.cell;
    entry.label = label;
    Ok(entry)
}

impl SummaryDocument {
    fn text(&self) -> String {
        let mut out = String::from("## Show Summary\n\n");
        self.append_workload(&mut out);
        self.append_connections(&mut out);
        self.append_workflow(&mut out);
        self.append_loading(&mut out);
        self.append_execution(&mut out);
        self.append_faults(&mut out);
        self.append_monitoring(&mut out);
        self.append_application(&mut out);
        self.append_tuning(&mut out);
        out.push_str("### Tests\n");
        for test in self.run_tests() {
            let _ = writeln!(out, "* TEST {}: {}", test.result.as_str(), escape_markdown(&test.text));
        }
        out
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod connections_tests;
