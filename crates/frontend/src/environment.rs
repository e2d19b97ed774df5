//! Environments that were recorded.

use crate::exit::Failure;
use dyno_rundir::schema::Environment;
use dyno_rundir::system::System;
use dyno_types::bounded;
use dyno_types::limits::DOCUMENT_BYTES;
use std::path::{Path, PathBuf};

/// The environment of a run directory, of an experiment's first run, or of a file.
///
/// # Errors
/// Names what cannot be read, or holds no environment.
pub fn read_system(path: &Path) -> Result<System, Failure> {
    let refuse = |message: String| Failure::usage(format!("{}: {message}", path.display()));
    let file = if path.is_dir() { in_directory(path) } else { path.to_owned() };
    let text = bounded::text_file(&file, DOCUMENT_BYTES)
        .map_err(|e| Failure::usage(format!("{}: {e}", file.display())))?;
    if let Ok(environment) = serde_json::from_str::<Environment>(&text) {
        return environment
            .system
            .ok_or_else(|| refuse("written by a dyno that did not record facts yet".into()));
    }
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| refuse(format!("no JSON: {e}")))?;
    let system = value.get("system").cloned().unwrap_or(value);
    let read: System = serde_json::from_value(system).map_err(|e| refuse(format!("no environment: {e}")))?;
    // The hash is made anew: a file that was edited says what it holds now.
    Ok(System::new(read.facts, read.volatile))
}

fn in_directory(path: &Path) -> PathBuf {
    let own = path.join("environment.json");
    if own.exists() {
        return own;
    }
    let mut runs: Vec<PathBuf> = std::fs::read_dir(path.join("runs"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    runs.sort();
    let found = runs.into_iter().map(|run| run.join("environment.json")).find(|file| file.exists());
    found.unwrap_or(own)
}
