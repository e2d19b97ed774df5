//! Reads what monitors saw.

use super::table::{ELSEWHERE, Recording, TablePart, WATCHED, WATCHED_BETWEEN};
use super::{FOLDER, SeriesIndex};
use crate::files;
use crate::reader::{ContentError, ReadError, RowError};
use dyno_types::bounded::next_line;
use dyno_types::limits::RESULT_LINE_BYTES;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Returns whether a run's target was on another host, and the source of the host that was watched for it, by its `run.json`.
fn place_of_target(run: &Path) -> (bool, Option<String>) {
    let text = files::read_to_string(&run.join("run.json")).unwrap_or_default();
    let run: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let watched = run["facts"][WATCHED].as_str().and_then(|names| names.split(WATCHED_BETWEEN).next());
    (run["facts"][ELSEWHERE] == "true", watched.map(|name| format!("host-{name}")))
}

impl Recording {
    /// Reads the folder of a run directory; `None` if there is none. The last line of a killed run may be torn and is
    /// left out.
    pub fn open(run: &Path) -> Result<Option<Self>, ReadError> {
        Recording::open_part(run, f64::NEG_INFINITY, &|_, _| true)
    }

    /// Reads of it the series that are wanted, by source and name, from the last row before `from_ms` (Unix time,
    /// milliseconds) on.
    pub fn open_part(
        run: &Path,
        from_ms: f64,
        wanted: &dyn Fn(&str, &str) -> bool,
    ) -> Result<Option<Self>, ReadError> {
        let folder = run.join(FOLDER);
        if !folder.is_dir() {
            return Ok(None);
        }
        let path = folder.join("series.json");
        let index: SeriesIndex = serde_json::from_str(&read(&path)?).map_err(|e| ReadError::Content {
            path,
            line: e.line(),
            why: e.into(),
        })?;
        let mut recording = Recording::new();
        (recording.elsewhere, recording.watched) = place_of_target(run);
        for (source, entry) in index.sources {
            let files = entry.files.iter().map(|file| {
                let path = folder.join(file);
                let failed = |error| ReadError::File { path: path.clone(), error };
                let opened = files::open(&path).map_err(failed)?;
                let length = opened.metadata().map_err(failed)?.len();
                let file = BufReader::with_capacity(1 << 16, opened);
                part(file, length, from_ms, &|name| wanted(&source, name))
                    .map_err(|(line, why)| ReadError::Content { path, line, why })
            });
            let parts = files.collect::<Result<_, _>>()?;
            let kinds = entry.series.into_iter().filter(|(name, _)| wanted(&source, name)).collect();
            recording.sources.insert(source.clone(), parts);
            recording.kinds.insert(source, kinds);
        }
        Ok(Some(recording))
    }
}

fn read(path: &Path) -> Result<String, ReadError> {
    files::read_to_string(path).map_err(|error| ReadError::File { path: path.to_owned(), error })
}

/// The cells of a header.
fn header(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => {
                rest.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells
}

/// Complete lines of a file, one by one.
struct CompleteLines<R> {
    file: R,
    /// Number found.
    number: usize,
    bytes: Vec<u8>,
}

impl<R: BufRead> CompleteLines<R> {
    /// The next one with its line feed; `None` at the end, and of one that is torn.
    fn next(&mut self) -> Result<Option<&str>, (usize, ContentError)> {
        self.number += 1;
        let read = next_line(&mut self.file, &mut self.bytes, RESULT_LINE_BYTES);
        read.map_err(|error| (self.number, error.into()))?;
        if !self.bytes.ends_with(b"\n") {
            return Ok(None);
        }
        std::str::from_utf8(&self.bytes).map(Some).map_err(|error| (self.number, error.into()))
    }
}

/// Of a file of `length` bytes the series that are wanted, from the last row before `from_ms` on; never held as a whole.
fn part(
    file: impl BufRead,
    length: u64,
    from_ms: f64,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<TablePart, (usize, ContentError)> {
    let mut lines = CompleteLines { file, number: 0, bytes: Vec::new() };
    // A name may hold a line feed: the header ends outside quotes.
    let mut head = String::new();
    while head.is_empty() || head.matches('"').count() % 2 == 1 {
        if head.len() as u64 > RESULT_LINE_BYTES {
            return Err((lines.number, RowError::Header.into()));
        }
        match lines.next()? {
            Some(line) => head.push_str(line),
            None => return Ok(TablePart::default()),
        }
    }
    let names = header(head.strip_suffix('\n').unwrap_or(&head));
    let wanted: Vec<bool> = names.iter().enumerate().map(|(at, name)| at == 0 || wanted(name)).collect();
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    let (mut read, mut room) = (0, false);
    while let Some(line) = lines.next()? {
        let bytes = line.len() as u64;
        let line = line.trim_end_matches('\n');
        let filled = row(line, &names, &wanted, &mut columns);
        filled.map_err(|why| (lines.number, why.into()))?;
        // A clock that is set back later takes nothing away.
        if !room && columns[0].last().is_some_and(|at| *at < from_ms) {
            columns.iter_mut().for_each(|column| drop(column.drain(..column.len().saturating_sub(1))));
        } else if !room {
            // Rows are about as long as this one: columns need not grow by doubling.
            let rows = (length.saturating_sub(read) / bytes).min(MOST) as usize;
            let wanted = columns.iter_mut().zip(&wanted).filter(|(_, wanted)| **wanted);
            wanted.for_each(|(column, _)| column.reserve(rows));
            room = true;
        }
        read += bytes;
    }
    let mut columns = columns.into_iter();
    let times = columns.next().unwrap_or_default();
    let series = names.into_iter().zip(wanted).skip(1).zip(columns);
    Ok(TablePart {
        times,
        columns: series.filter(|((_, w), _)| *w).map(|((name, _), c)| (name, c)).collect(),
    })
}

/// Rows that room is made for at once.
const MOST: u64 = 1 << 18;

/// Adds what is wanted of a row, whose first cell is the time.
fn row(line: &str, names: &[String], wanted: &[bool], columns: &mut [Vec<f64>]) -> Result<(), RowError> {
    let mut cells = line.split(',');
    for (at, (column, name)) in columns.iter_mut().zip(names).enumerate() {
        let cell = cells.next().ok_or_else(|| RowError::NoCell(name.clone()))?;
        if !wanted[at] {
            continue;
        }
        let value = match cell {
            "" => f64::NAN,
            cell => cell
                .parse()
                .map_err(|_| RowError::NotANumber { name: name.clone(), cell: cell.to_owned() })?,
        };
        if at == 0 && f64::is_nan(value) {
            return Err(RowError::NoTime);
        }
        column.push(value);
    }
    match cells.next() {
        Some(_) => Err(RowError::TooManyCells),
        None => Ok(()),
    }
}
