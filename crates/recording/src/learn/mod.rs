//! Learning: a workload that behaves like a recording.
//!
//! ```text
//! recording --shapes--> commands by name, number of words and options, what each argument is like
//!           --spaces--> keys by pattern, how popular they are
//!           --sequences--> commands that belong together (operations and arguments write them)
//!           --arrivals--> rate, and how bursty it is
//!           --reuse--> how soon keys are asked for again, beside what the workload makes of it (model)
//!           --text--> (in the dialect of its protocol) a workload of commands (docs/commands.md), and how well each part fits
//! recording of MongoDB --documents--> a workload of documents (docs/documents.md)
//! ```
//!
//! `read_ahead` reads the file in a thread of its own. `slots` tells which keys each place of a sequence has, `tiers` how many
//! keys there are that were not seen. `findings` are what both say of themselves, `yaml_text` are values as workloads write them.

mod arguments;
mod arrivals;
mod dialect;
mod documents;
mod findings;
mod hashed;
mod model;
mod numbers;
mod operations;
mod popularity;
mod read_ahead;
mod reuse;
mod sequences;
mod shapes;
mod slots;
mod spaces;
mod text;
mod tiers;
mod yaml_text;

pub use findings::LearnedWorkload;

use crate::format::RecordingError;
use crate::replay::{ReplayOptions, survey_file};
use dialect::Dialect;
use std::path::Path;

/// Learns a workload from a recording.
///
/// # Errors
/// The file cannot be read, or holds nothing to learn from.
pub fn learn_file(path: &Path, seed: u64) -> Result<LearnedWorkload, RecordingError> {
    let options = ReplayOptions::default();
    let (header, survey) = survey_file(path, &options)?;
    let Some(dialect) = Dialect::of_recording(&header) else {
        let learned = documents::read_documents(path, (&header, &survey), &options)?;
        return Ok(documents::write_workload(&learned, (&header, &survey), seed));
    };
    text::learn_commands(path, dialect, (&header, &survey), &options, seed)
}
