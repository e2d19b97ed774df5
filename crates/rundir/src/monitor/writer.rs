//! Writes what monitors see, row by row.

use super::{FOLDER, Kind, SeriesIndex};
use crate::files;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Files of one source: each growth of its set of series begins another.
const FILES: usize = 64;

/// One figure of a row: name, kind, value.
pub type Column<'a> = (&'a str, Kind, f64);

/// An open folder. A failing write (a full disk) is remembered; it never stops the measurement.
#[derive(Debug)]
pub struct MonitorWriter {
    folder: PathBuf,
    index: SeriesIndex,
    open: BTreeMap<String, OpenSeriesFile>,
    failure: Option<String>,
}

/// The file of a source that is being written.
#[derive(Debug)]
struct OpenSeriesFile {
    file: File,
    names: Vec<String>,
    /// Column by name.
    columns: HashMap<String, usize>,
    /// The values of the row that is being made.
    row: Vec<Option<f64>>,
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().create_new(true).append(true).mode(0o600).open(path)
}

/// A source's name as a file's: what is neither letter, digit, dot, dash nor underscore becomes an underscore.
fn file_name(source: &str, number: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let stem: String = source.chars().map(plain).collect();
    let stem = stem.trim_start_matches('.');
    if number == 1 { format!("{stem}.csv") } else { format!("{stem}.{number}.csv") }
}

/// A name as a cell of the header.
fn cell(name: &str) -> String {
    if name.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

impl MonitorWriter {
    /// Creates the folder in a run directory.
    pub fn create_in(run: &Path, interval_ms: f64) -> io::Result<Self> {
        let folder = run.join(FOLDER);
        DirBuilder::new().mode(0o700).create(&folder)?;
        let index = SeriesIndex { interval_ms, sources: BTreeMap::new() };
        let mut writer = MonitorWriter { folder, index, open: BTreeMap::new(), failure: None };
        writer.replace_index()?;
        Ok(writer)
    }

    /// The first write that failed, in words.
    pub fn first_failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Writes one row; no columns are a missing sample.
    pub fn write_row<'a>(&mut self, source: &str, at_ns: u64, columns: impl IntoIterator<Item = Column<'a>>) {
        if let (Err(error), None) = (self.try_row(source, at_ns, columns), &self.failure) {
            self.failure = Some(format!("{}: {}", self.folder.display(), files::name_limit(error)));
        }
    }

    fn try_row<'a>(
        &mut self,
        source: &str,
        at_ns: u64,
        columns: impl IntoIterator<Item = Column<'a>>,
    ) -> io::Result<()> {
        let columns: Vec<Column<'_>> = columns.into_iter().collect();
        let known = |open: &OpenSeriesFile| columns.iter().all(|(name, ..)| open.columns.contains_key(*name));
        let begins = match self.open.get(source) {
            None => !columns.is_empty(),
            Some(open) => {
                !known(open) && self.index.sources.get(source).is_some_and(|s| s.files.len() < FILES)
            }
        };
        if begins {
            self.begin(source, &columns)?;
        }
        // A source that has never answered has no file yet: everything of it is missing.
        let Some(open) = self.open.get_mut(source) else { return Ok(()) };
        open.row.fill(None);
        for (name, _, value) in &columns {
            if let Some(column) = open.columns.get(*name) {
                open.row[*column].get_or_insert(*value);
            }
        }
        let us = at_ns / 1_000;
        let mut line = format!("{}.{:03}", us / 1_000, us % 1_000);
        for value in &open.row {
            line.push(',');
            if let Some(value) = value {
                // Writing to a string does not fail.
                let _ = write!(line, "{value}");
            }
        }
        line.push('\n');
        open.file.write_all(line.as_bytes())
    }

    /// Begins another file of a source, with the series it had and those that are new.
    fn begin(&mut self, source: &str, columns: &[Column<'_>]) -> io::Result<()> {
        let taken: Vec<String> = self.index.sources.values().flat_map(|s| s.files.clone()).collect();
        let entry = self.index.sources.entry(source.to_owned()).or_default();
        let mut name = file_name(source, entry.files.len() + 1);
        while taken.contains(&name) {
            // Two sources whose names differ only in what a file's name cannot have.
            name.insert(0, '_');
        }
        let mut names = self.open.remove(source).map_or(Vec::new(), |open| open.names);
        for (name, kind, _) in columns {
            if entry.series.insert((*name).to_owned(), *kind).is_none() {
                names.push((*name).to_owned());
            }
        }
        let mut file = create(&self.folder.join(&name))?;
        let header: Vec<String> = names.iter().map(|n| cell(n)).collect();
        writeln!(file, "time_ms,{}", header.join(","))?;
        entry.files.push(name);
        let by_name = names.iter().enumerate().map(|(i, n)| (n.clone(), i)).collect();
        let row = vec![None; names.len()];
        self.open.insert(source.to_owned(), OpenSeriesFile { file, names, columns: by_name, row });
        self.replace_index()
    }

    /// Writes `series.json` beside its place and moves it there.
    fn replace_index(&mut self) -> io::Result<()> {
        let part = self.folder.join(".series.json.part");
        let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&part)?;
        // In one piece: a writer of JSON makes a call for each of its words.
        let mut text = serde_json::to_vec_pretty(&self.index)?;
        text.push(b'\n');
        file.write_all(&text)?;
        std::fs::rename(&part, self.folder.join("series.json"))
    }
}
