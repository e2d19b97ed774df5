//! Files that `-P` names: a file if there is one, else the built-in workload of that name.

use crate::plan::error::YcsbError;
use dyno_config::properties;
use dyno_config::properties::{PropertiesError, PropertyEntry};
use dyno_config::settings::{PropertySettings, Source};
use dyno_types::suggest;
use dyno_workload::ycsb::builtin_workloads::{stock_file, stock_names};
use std::io::ErrorKind;
use std::path::Path;

/// Adds the properties that `-P path` names to `settings`.
pub(super) fn add(
    path: &str,
    settings: &mut PropertySettings,
    notes: &mut Vec<String>,
) -> Result<(), YcsbError> {
    let (entries, built_in) = match properties::read_file(Path::new(path)) {
        Ok(entries) => (entries, false),
        Err(PropertiesError::Io(error)) if error.kind() == ErrorKind::NotFound => {
            (built_in(path, notes)?, true)
        }
        Err(PropertiesError::Line(bad)) => return Err(bad_line(path, bad)),
        Err(other) => {
            return Err(YcsbError::Unreadable { path: path.to_owned(), reason: other.to_string() });
        }
    };
    for PropertyEntry { key, value, line } in entries {
        let source = match built_in {
            true => Source::BuiltIn { name: path.to_owned(), line },
            false => Source::File { path: path.to_owned(), line },
        };
        settings.set_property(&key, value, source);
    }
    Ok(())
}

fn built_in(path: &str, notes: &mut Vec<String>) -> Result<Vec<PropertyEntry>, YcsbError> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let Some(text) = stock_file(path) else {
        let near = suggest::nearest(name, stock_names());
        let hint =
            near.map_or(String::new(), |near| format!("; did you mean workloads/{near}, which is built in?"));
        return Err(YcsbError::Unreadable { path: path.to_owned(), reason: format!("no such file{hint}") });
    };
    // The usual name alone means the built-in workload; a name with a folder means a file there.
    if path != name && path != format!("workloads/{name}") {
        notes.push(format!("-P {path}: no such file; the built-in workloads/{name} is used"));
    }
    properties::parse(text.as_bytes()).map_err(|bad| bad_line(path, bad))
}

fn bad_line(path: &str, bad: properties::BadLine) -> YcsbError {
    YcsbError::BadLine { path: path.to_owned(), line: bad.line, problem: bad.problem }
}
