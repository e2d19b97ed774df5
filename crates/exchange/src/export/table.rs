//! A table with typed columns, and its text.

use std::fmt::Write as _;

/// Kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Words.
    Text,
    /// Whole numbers.
    Int,
    /// Numbers.
    Real,
}

/// One value. What is not known is `None`, never zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// Not known, or without a meaning here.
    #[default]
    None,
    /// Words.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number.
    Real(f64),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        i64::try_from(count).map_or(Cell::None, Cell::Int)
    }
}

impl From<f64> for Cell {
    fn from(x: f64) -> Self {
        if x.is_finite() { Cell::Real(x) } else { Cell::None }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::None, Into::into)
    }
}

/// Rows under named columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExportTable {
    /// Name and kind of each column.
    pub columns: Vec<(String, ColumnKind)>,
    /// As many cells as columns in each.
    pub rows: Vec<Vec<Cell>>,
}

impl ExportTable {
    /// The number of a column, which is added if it is not there; earlier rows have nothing in it.
    pub fn column(&mut self, name: &str, kind: ColumnKind) -> usize {
        if let Some(at) = self.columns.iter().position(|(known, _)| known == name) {
            return at;
        }
        self.columns.push((name.to_owned(), kind));
        self.rows.iter_mut().for_each(|row| row.push(Cell::None));
        self.columns.len() - 1
    }

    /// Adds a row of named values.
    pub fn push(&mut self, values: Vec<(String, ColumnKind, Cell)>) {
        let mut row = vec![Cell::None; self.columns.len()];
        for (name, kind, cell) in values {
            let at = self.column(&name, kind);
            row.resize(self.columns.len(), Cell::None);
            row[at] = cell;
        }
        self.rows.push(row);
    }

    /// Turns columns of words that are all numbers into numbers: levels of factors.
    pub fn numbers(&mut self, names: &[String]) {
        for name in names {
            let Some(at) = self.columns.iter().position(|(known, _)| known == name) else { continue };
            let parsed = |row: &Vec<Cell>| match &row[at] {
                // A level that was not set.
                Cell::Text(text) if text == "-" => Some(Cell::None),
                Cell::Text(text) => text.parse::<f64>().ok().filter(|x| x.is_finite()).map(Cell::Real),
                Cell::None => Some(Cell::None),
                other => Some(other.clone()),
            };
            if let Some(all) = self.rows.iter().map(parsed).collect::<Option<Vec<Cell>>>() {
                self.columns[at].1 = ColumnKind::Real;
                self.rows.iter_mut().zip(all).for_each(|(row, cell)| row[at] = cell);
            }
        }
    }

    /// Comma-separated, with a head (RFC 4180); what is not known is empty.
    pub fn csv(&self) -> String {
        let mut out = String::new();
        let mut line = |cells: &mut dyn Iterator<Item = String>| {
            out.push_str(&cells.collect::<Vec<_>>().join(","));
            out.push('\n');
        };
        line(&mut self.columns.iter().map(|(name, _)| quoted(name)));
        for row in &self.rows {
            line(&mut row.iter().map(|cell| match cell {
                Cell::None => String::new(),
                Cell::Text(text) => quoted(text),
                Cell::Int(n) => n.to_string(),
                Cell::Real(x) => real(*x),
            }));
        }
        out
    }
}

/// The shortest text that reads back as the same number.
fn real(x: f64) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = write!(text, "{x}");
    text
}

/// A field, in quotation marks where it needs them. A spreadsheet takes what begins with `=`, `+`, `-` or `@` for a formula;
/// such words get an apostrophe in front.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}
