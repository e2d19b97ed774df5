//! Folders of experiments in the folder of results, each called by its code: the seconds since 1970.

use crate::plan::flags::TypedFlags;
use dyno_frontend::exit::Failure;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Experiments by their codes, the oldest first; of one code if one was named.
pub fn experiments(typed: &TypedFlags) -> Result<Vec<PathBuf>, Failure> {
    let folder = Path::new(typed.value("resultfolder"));
    let code = typed.value("experiment");
    let is_one = |path: &PathBuf| path.join("experiment.json").is_file();
    if !code.is_empty() {
        let path = folder.join(code);
        let known = code.bytes().all(|c| c.is_ascii_digit()) && is_one(&path);
        return match known {
            true => Ok(vec![path]),
            false => {
                Err(Failure::usage(format!("-e {code}: no experiment of that code in {}", folder.display())))
            }
        };
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let coded = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().bytes().all(|c| c.is_ascii_digit()))
    };
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    all.retain(|path| coded(path) && is_one(path));
    all.sort();
    Ok(all)
}

/// A folder that is not there yet, called by the code: the seconds since 1970.
pub fn create(results: &Path) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(results)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let free = (now..).map(|code| results.join(code.to_string())).find(|path| !path.exists());
    free.ok_or_else(|| Failure::internal("no code is free"))
}
