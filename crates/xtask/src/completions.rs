//! Completions of shells.

use std::path::{Path, PathBuf};

/// The completions of each shell that packages install, in `folder`, by the name that the shell looks for.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let file = |(shell, name): (&str, &str)| {
        dyno_cli::completions_of(shell).map(|text| (folder.join(name), text.into_bytes()))
    };
    [("bash", "dyno"), ("zsh", "_dyno"), ("fish", "dyno.fish")].into_iter().filter_map(file).collect()
}
