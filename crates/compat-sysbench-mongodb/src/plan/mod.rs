//! sysbench-mongodb's configuration: a file of assignments, a second one of overrides, `NAME=VALUE` on the command line.
//!
//! ```text
//! config.bash, overrides --shell (arithmetic)--> assignments --Settings--> resolve --> SysbenchPlan
//!                                                 NAME=VALUE ----^            variables: names, defaults
//! ```
//!
//! Nothing is executed. A configuration that names a server and a port is of the version of 2015, one with a URI of the
//! last version; defaults and `_id`s follow from that.

pub mod arithmetic;
pub mod resolve;
pub mod shell;
mod variable_scopes;
pub mod variables;

use crate::plan::resolve::{Overrides, SysbenchPlan};
use crate::plan::shell::{ScriptAssignment, ScriptLineError, Shell};
use crate::plan::variable_scopes::VariableScopes;
use dyno_config::settings::{BadSetting, Source};
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use dyno_types::suggest;
use std::io::{self, ErrorKind};

/// The file that is read if none is named and there is one.
pub const CONFIG: &str = "config.bash";

/// Name of the command line as a source.
const COMMAND_LINE: &str = "command line";

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SysbenchError {
    /// A file that cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// Path as typed.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// A line that is not understood.
    #[error("{path}:{line}: {problem}")]
    BadLine {
        /// The file's path as typed.
        path: String,
        /// The line, from 1.
        line: u32,
        /// Problem of the line.
        #[source]
        problem: ScriptLineError,
    },
    /// A variable that dyno does not know.
    #[error("{place}: unknown variable {name}{hint}")]
    Unknown {
        /// Source of the variable.
        place: Source,
        /// Name.
        name: String,
        /// The nearest name that is known.
        hint: String,
    },
    /// More files than two.
    #[error("{given:?}: expected CONFIG, then OVERRIDES, then NAME=VALUE; two files at most")]
    TooManyFiles {
        /// The third.
        given: String,
    },
    /// A value that cannot be used.
    #[error("{0}")]
    Setting(#[from] BadSetting),
}

/// Reads the words after `dyno sysbench-mongodb`: files and `NAME=VALUE` pairs. `now_s` is the time in seconds since
/// 1970, from which the seed is taken where none is set.
pub fn parse(words: &[String], overrides: &Overrides, now_s: u64) -> Result<SysbenchPlan, SysbenchError> {
    read(words, overrides, now_s, Some(|name| std::env::var(name).ok()))
}

/// The same, but a `config.bash` that is not named is not read, and nothing of the environment.
pub fn parse_named(
    words: &[String],
    overrides: &Overrides,
    now_s: u64,
) -> Result<SysbenchPlan, SysbenchError> {
    read(words, overrides, now_s, None)
}

/// Value of a variable of the environment.
type EnvironmentLookup = fn(&str) -> Option<String>;

fn read(
    words: &[String],
    overrides: &Overrides,
    now_s: u64,
    own: Option<EnvironmentLookup>,
) -> Result<SysbenchPlan, SysbenchError> {
    let (pairs, files): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| is_pair(word));
    if let Some(third) = files.get(2) {
        return Err(SysbenchError::TooManyFiles { given: (*third).clone() });
    }
    let environment = own.unwrap_or(|_| None);
    let mut shell = Shell::new(now_s, environment);
    let mut layers = VariableScopes::default();
    if files.is_empty() && own.is_some() {
        read_file(CONFIG, true, &mut shell, &mut layers)?;
    }
    for path in files {
        read_file(path, false, &mut shell, &mut layers)?;
    }
    // A file that assigns a variable has the last word, as in a shell.
    // Configurations of 2015 assign all of theirs, and environments have such names for other things.
    let is_old =
        |name: &str| variables::variable(name).is_some_and(|one| one.known == variables::KnownVersions::Old);
    let taken = |name: &&str| !is_old(name) && layers.get(name).is_none();
    let names: Vec<&str> = variables::names().filter(taken).collect();
    for name in names {
        if let Some(value) = environment(name) {
            layers.set(name, &value, Source::Environment { variable: name.to_owned() });
        }
    }
    unknown(&shell, &mut layers)?;
    for pair in pairs {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let place = Source::Option { flag: COMMAND_LINE.to_owned() };
        if !variables::names().any(|known| known == name) {
            let hint = suggest::hint(name, variables::names());
            return Err(SysbenchError::Unknown { place, name: name.to_owned(), hint });
        }
        layers.set(name, value, place);
    }
    Ok(resolve::resolve(layers, overrides, now_s)?)
}

/// Returns whether a word is `NAME=VALUE`, not a path.
fn is_pair(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn read_file(
    path: &str,
    optional: bool,
    shell: &mut Shell,
    layers: &mut VariableScopes,
) -> Result<(), SysbenchError> {
    let text = match bounded::text_file(path, TEXT_BYTES) {
        Ok(text) => text,
        Err(error) if optional && error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(SysbenchError::Unreadable { path: path.to_owned(), source: error });
        }
    };
    let known = shell.assignments.len();
    shell.read(&text).map_err(|bad| SysbenchError::BadLine {
        path: path.to_owned(),
        line: bad.line,
        problem: bad.problem,
    })?;
    for ScriptAssignment { name, value, line } in &shell.assignments[known..] {
        layers.set(name, value, Source::File { path: path.to_owned(), line: *line });
    }
    Ok(())
}

/// Handles unknown variables: other lines use helpers; what looks like a slip is refused, the rest noted.
fn unknown(shell: &Shell, layers: &mut VariableScopes) -> Result<(), SysbenchError> {
    let unknown = layers
        .settings
        .iter()
        .filter(|(name, _)| !shell.used.contains(*name) && !variables::names().any(|known| known == *name));
    let mut notes = Vec::new();
    for (name, setting) in unknown {
        let place = setting.source.clone();
        let hint = suggest::hint(name, variables::names());
        if !hint.is_empty() {
            return Err(SysbenchError::Unknown { place, name: name.to_owned(), hint });
        }
        notes.push(format!("{place}: unknown variable {name}, which has no effect"));
    }
    layers.notes.extend(notes);
    Ok(())
}

#[cfg(test)]
mod tests;
