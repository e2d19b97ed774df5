//! Reads what monitors saw.

use super::table::{Part, Recording};
use super::{FOLDER, Index};
use crate::reader::ReadError;
use std::path::Path;

impl Recording {
    /// Reads the folder of a run directory; `None` if there is none. The last line of a killed run may be torn and is
    /// left out.
    pub fn open(run: &Path) -> Result<Option<Self>, ReadError> {
        let folder = run.join(FOLDER);
        if !folder.is_dir() {
            return Ok(None);
        }
        let path = folder.join("series.json");
        let index: Index = serde_json::from_str(&read(&path)?).map_err(|e| ReadError::Content {
            path,
            line: e.line(),
            why: e.to_string(),
        })?;
        let mut recording = Recording::new();
        for (source, entry) in index.sources {
            let files = entry.files.iter().map(|file| {
                let path = folder.join(file);
                part(&read(&path)?).map_err(|(line, why)| ReadError::Content { path, line, why })
            });
            recording.sources.insert(source.clone(), files.collect::<Result<_, _>>()?);
            recording.kinds.insert(source, entry.series);
        }
        Ok(Some(recording))
    }
}

fn read(path: &Path) -> Result<String, ReadError> {
    std::fs::read_to_string(path).map_err(|error| ReadError::File { path: path.to_owned(), error })
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

fn part(text: &str) -> Result<Part, (usize, String)> {
    let complete = text.rfind('\n').map_or(0, |end| end + 1);
    // A name may hold a line feed: the header ends outside quotes.
    let mut quoted = false;
    let end = text[..complete].find(|c| {
        quoted ^= c == '"';
        c == '\n' && !quoted
    });
    let Some(end) = end else { return Ok(Part::default()) };
    let names = header(&text[..end]);
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    let first = text[..=end].lines().count() + 1;
    for (number, line) in text[end + 1..complete].lines().enumerate() {
        let bad = |why: String| (number + first, why);
        let mut cells = line.split(',');
        for (column, name) in columns.iter_mut().zip(&names) {
            let cell = cells.next().ok_or_else(|| bad(format!("there is no cell for {name}")))?;
            let value = match cell {
                "" => f64::NAN,
                cell => cell.parse().map_err(|_| bad(format!("{name}: {cell:?} is no number")))?,
            };
            column.push(value);
        }
        if cells.next().is_some() {
            return Err(bad("there are more cells than names".into()));
        }
    }
    let mut columns = columns.into_iter();
    let times = columns.next().unwrap_or_default();
    if let Some(row) = times.iter().position(|t| t.is_nan()) {
        return Err((row + first, "the time is missing".into()));
    }
    Ok(Part { times, columns: names.into_iter().skip(1).zip(columns).collect() })
}
