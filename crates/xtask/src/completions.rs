//! Completions of shells, from the command line's own description.

use std::path::{Path, PathBuf};

use clap_complete::Shell;

/// The completions of each shell that packages install, in `folder`, by the name that the shell looks for.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let file = |(shell, name): (Shell, &str)| {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut dyno_cli::command(), "dyno", &mut text);
        (folder.join(name), text)
    };
    [(Shell::Bash, "dyno"), (Shell::Zsh, "_dyno"), (Shell::Fish, "dyno.fish")].map(file).into()
}
