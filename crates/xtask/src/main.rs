//! `cargo xtask`: writes what is made of the code.
//!
//! ```text
//! cargo xtask docs                  docs/reference and docs/schema, anew
//! cargo xtask manual DIR            a manual page for each command
//! cargo xtask completions DIR       the completions of bash, zsh and fish, by the names that these shells look for
//! cargo xtask pictures PROGRAM DIR  the live view and the summary of a real run, as SVG
//! ```

mod completions;
mod manual;
mod pictures;
mod reference;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The project's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new(".")).to_owned()
}

/// Files below the project's folder that are made of the code, with their text.
fn documents() -> Vec<(PathBuf, String)> {
    let pages = reference::pages();
    let pages = pages.into_iter().map(|(name, text)| (Path::new("docs/reference").join(name), text));
    let schemas = [
        ("summary", dyno_rundir::schema::summary_schema()),
        ("experiment", dyno_config::experiment::json_schema_text()),
        ("documents", dyno_config::template::documents_schema_text()),
    ];
    let schemas =
        schemas.map(|(name, text)| (PathBuf::from(format!("docs/schema/{name}.schema.json")), text));
    pages.chain(schemas).collect()
}

fn carry_out(words: &[&str]) -> io::Result<()> {
    let files = match words {
        ["docs"] => documents().into_iter().map(|(path, text)| (root().join(path), text.into())).collect(),
        ["manual", folder] => manual::pages(Path::new(folder))?,
        ["completions", folder] => completions::files(Path::new(folder)),
        ["pictures", program, folder] => pictures::pictures(Path::new(program), Path::new(folder))?,
        _ => {
            let expected = "`docs`, `manual DIR`, `completions DIR` or `pictures PROGRAM DIR`";
            return Err(io::Error::other(format!("expected {expected}")));
        }
    };
    let write = |(path, text): &(PathBuf, Vec<u8>)| {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, text)
    };
    files.iter().try_for_each(write)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match carry_out(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_made_of_this_code() {
        for (path, current) in documents() {
            let published = std::fs::read_to_string(root().join(&path)).unwrap();
            assert!(
                published == current,
                "{}: out of date; `cargo xtask docs` writes it anew",
                path.display()
            );
        }
        let pages = std::fs::read_dir(root().join("docs/reference")).unwrap().count();
        assert_eq!(pages, reference::pages().len(), "a page that no command makes");
    }

    #[test]
    fn the_reference_has_commands_and_keys() {
        let pages: std::collections::BTreeMap<_, _> = reference::pages().into();
        for row in [
            "## `phases.measure`",
            "## `faults[]`",
            "`replica_set`: A replica",
            "| `ladder` | mapping, see below |",
        ] {
            assert!(pages["experiment.md"].contains(row), "{row}");
        }
        for row in ["## `dyno run`", "`--require <EXPRESSION>`", "redis://[user:password@]host:port[/db]"] {
            assert!(pages["commands.md"].contains(row), "{row}");
        }
    }

    #[test]
    fn each_shell_has_completions_by_its_own_name() {
        let files = completions::files(Path::new("completions"));
        for name in ["dyno", "_dyno", "dyno.fish"] {
            let (_, text) = files.iter().find(|(path, _)| path.ends_with(name)).unwrap();
            assert!(String::from_utf8_lossy(text).contains("COMPLETE="), "{name}");
        }
    }

    #[test]
    fn every_command_that_is_shown_has_a_manual_page() {
        let pages = manual::pages(Path::new("man")).unwrap();
        let page = |name: &str| pages.iter().find(|(path, _)| path.ends_with(name)).map(|(_, text)| text);
        assert!(String::from_utf8_lossy(page("dyno-run.1").unwrap()).contains("\\-\\-require"));
        assert!(page("dyno.1").is_some() && page("dyno-worker.1").is_none());
    }
}
