//! `--junit`: the result of a command as JUnit XML.

use crate::exit::{Exit, Failure};
use crate::pages;
use dyno_report::junit::{Document, failed_suite};
use dyno_types::system_error::without_numbers;
use std::path::{Path, PathBuf};

/// Has a command write the file that `place` names. It holds an error before the command begins and where it fails: no earlier
/// result is taken for that of a command that was killed. `work` is given the place, which stays where it was typed.
///
/// # Errors
/// The file cannot be written; or as of `work`.
pub fn keep(
    place: Option<&Path>,
    name: &str,
    work: impl FnOnce(Option<&Path>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let Some(place) = place else { return work(None) };
    let place: PathBuf = std::path::absolute(place)?;
    let error = |message: String| Document {
        name: name.to_owned(),
        suites: vec![failed_suite(name.to_owned(), message)],
    };
    let unwritable = |failure: Failure| Failure::usage(format!("--junit {failure}"));
    write(&place, &error("dyno has not ended".into())).map_err(unwritable)?;
    work(Some(&place)).inspect_err(|failure| {
        // The command fails in any case, and says why.
        let _ = write(&place, &error(without_numbers(&failure.to_string()).into_owned()));
    })
}

/// Writes a document.
///
/// # Errors
/// The file cannot be written.
pub fn write(place: &Path, document: &Document) -> Result<(), Failure> {
    pages::write(place, &document.xml())
}
