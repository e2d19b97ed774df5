//! Copies of loaded data of embedded stores (`phases.load.keep`): every run that loads the same begins with the same bytes.

use dyno_config::experiment::Experiment;
use dyno_engine::Control;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::programs::run_under;
use dyno_rundir::files;
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const KEY: &str = "key.json";
const DATA: &str = "data";

/// Returns whether a run of this kind keeps its data.
pub(super) fn is_wanted(spec: &Experiment) -> bool {
    spec.phases.load.keep && spec.target.as_ref().is_some_and(|target| target.contains("{dir}"))
}

/// Key of everything that shapes the bytes that a load leaves behind; a cache does not.
fn key(spec: &Experiment) -> String {
    let target = spec.target.as_deref().unwrap_or_default();
    let (path, options) = target.split_once('?').unwrap_or((target, ""));
    let options: Vec<&str> = options.split('&').filter(|option| !option.starts_with("cache=")).collect();
    let parts = (path, options, &spec.workload, spec.seed, &spec.phases.load.batch);
    serde_json::to_string(&parts).unwrap_or_default()
}

/// The copy that a run can begin with.
pub(super) fn find(spec: &Experiment, experiment_dir: &Path) -> Option<PathBuf> {
    let is_wanted = key(spec);
    // The key is written last: a copy that was cut off has none.
    folders(experiment_dir)
        .into_iter()
        .find(|path| files::read_to_string(&path.join(KEY)).is_ok_and(|key| key == is_wanted))
        .map(|path| path.join(DATA))
}

fn folders(experiment_dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(experiment_dir) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    all.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("data-")));
    all
}

/// Removes all copies: the experiment needs them no more.
pub(super) fn remove(experiment_dir: &Path) {
    for folder in folders(experiment_dir) {
        // A folder that cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Copies a folder; blocks are shared where the filesystem can. Ends when `control` stops.
pub(super) fn copy(from: &Path, to: &Path, control: &Control) -> Result<(), LocalError> {
    let (source, target) = (from.display().to_string(), to.display().to_string());
    let words = ["-a", "--reflink=auto", "--", &source, &target];
    let done = run_under(&Machine::default(), "cp", &words, Some(control));
    done.map(drop).map_err(|why| LocalError::failed_step(format!("{source} to {target}"), why))
}

/// Takes the files of a folder out of the page cache. What copied them pays for their pages: a run under a limit of memory
/// would read them for nothing.
pub(super) fn drop_page_cache(folder: &Path) -> Result<(), LocalError> {
    let failed = |error: io::Error| LocalError::failed_step(folder.display(), error);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            drop_page_cache(&path)?;
        } else if path.is_file() {
            let file = File::open(&path).map_err(failed)?;
            // Only what is on disk can be forgotten.
            file.sync_all().map_err(failed)?;
            fadvise(&file, 0, None, Advice::DontNeed).map_err(|error| failed(error.into()))?;
        }
    }
    Ok(())
}

/// Returns the bytes that the files of a folder take on disk; `None` where there is no folder.
pub(super) fn bytes_below(folder: &Path) -> Option<u64> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => bytes_below(&entry.path()).unwrap_or(0),
        Ok(about) => about.blocks() * 512,
        // A file that goes away meanwhile takes nothing.
        Err(_) => 0,
    };
    Some(entries.map(bytes).sum())
}

/// Keeps a copy of `data`, which no process has open.
pub(super) fn store(
    spec: &Experiment,
    experiment_dir: &Path,
    data: &Path,
    control: &Control,
) -> Result<(), LocalError> {
    let free = (1..10_000).map(|n| experiment_dir.join(format!("data-{n:03}"))).find(|path| !path.exists());
    let folder = free.ok_or_else(|| LocalError::Failed("no free name for a copy of the data".into()))?;
    let failed = |error: io::Error| LocalError::failed_step(folder.display(), error);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let kept = copy(data, &folder.join(DATA), control)
        .and_then(|()| std::fs::write(folder.join(KEY), key(spec)).map_err(failed));
    if kept.is_err() {
        // A copy that is not whole is of no use.
        let _ = std::fs::remove_dir_all(&folder);
    }
    kept
}
