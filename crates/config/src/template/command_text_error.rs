//! What may be wrong with commands and data of one's own.

use dyno_workload::ycsb::properties::BadProperty;
use std::fmt;
use std::io;

/// What is wrong with commands, their words, or the files that they name. The caller knows the file or the option.
#[derive(Debug, thiserror::Error)]
pub enum CommandTextError {
    /// A file that is named cannot be read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// A data file's name does not tell its form.
    #[error("expected a file that ends in .csv, .tsv, .jsonl, .ndjson or .json")]
    NoForm,
    /// A data file without a line.
    #[error("it is empty: expected a line with the names of the columns")]
    NoColumns,
    /// A data file without a row.
    #[error("it has no rows")]
    NoRows,
    /// A row of a data file with too few or too many cells.
    #[error("line {line}: {found} cells, expected {expected}")]
    Cells {
        /// Line, from 1.
        line: usize,
        /// Number of cells in the row.
        found: usize,
        /// Number of columns.
        expected: usize,
    },
    /// A cell's quote is open at the end of a data file.
    #[error("line {line}: a quote is not closed")]
    OpenCell {
        /// Line on which the row begins, from 1.
        line: usize,
    },
    /// A line of JSON that is no object.
    #[error("line {line}: {source}: expected an object")]
    NoObject {
        /// Line, from 1.
        line: usize,
        /// The JSON reader's reason.
        source: serde_json::Error,
    },
    /// A word's quote is open at the end of its line.
    #[error("a quote {0} is not closed")]
    OpenQuote(char),
    /// Text follows a closing quote.
    #[error("expected a space after the closing quote")]
    BehindQuote,
    /// A generator's brace is open at the end of its line.
    #[error("%{{ is not closed: expected }}")]
    OpenGenerator,
    /// A command does not begin with its name.
    #[error("expected a literal word first, the command's name")]
    NoName,
    /// A generator in a word, as the reader of templates refuses it.
    #[error("{0}")]
    Generator(String),
    /// More weights than commands.
    #[error("{ratios} ratios: expected at most one for each of the {lines} commands")]
    Ratios {
        /// Number of weights.
        ratios: usize,
        /// Number of commands.
        lines: usize,
    },
    /// A weight before a command that is no number above 0.
    #[error("line {line}: the weight {weight:?}: expected a number above 0")]
    Weight {
        /// Line, from 1.
        line: usize,
        /// The weight as it stands there.
        weight: String,
    },
    /// A file without a command.
    #[error("no command in it: expected one a line")]
    NoCommand,
    /// A file of commands that is not UTF-8.
    #[error("expected text, bytes as \\x00 in quotes")]
    NoText,
    /// A line of commands with something wrong in it.
    #[error("{}{line:?}: {source}", Place(*number))]
    Line {
        /// Number of the line in its file, where it is of one.
        number: Option<usize>,
        /// The line.
        line: String,
        /// What is wrong with it.
        source: Box<CommandTextError>,
    },
    /// Commands that cannot be mixed so.
    #[error("{} {}: expected {}", .0.key, .0.value, .0.expected)]
    Mix(BadProperty),
}

/// `line 3: `, where there is a number.
struct Place(Option<usize>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |number| write!(f, "line {number}: "))
    }
}
