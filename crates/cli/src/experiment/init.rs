//! `dyno init`: an experiment to begin with, or an example of the documentation, as a file.

use super::preview::preset_named;
use crate::options::{EXAMPLES, InitArgs};
use dyno_config::template::has_commands;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_presets::INIT;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// Texts of the documentation's examples, in the order of [`EXAMPLES`].
const TEXTS: [&str; EXAMPLES.len()] = [
    include_str!("../../../../docs/examples/first.yaml"),
    include_str!("../../../../docs/examples/users.yaml"),
    include_str!("../../../../docs/examples/shop.yaml"),
    include_str!("../../../../docs/examples/faults.yaml"),
    include_str!("../../../../docs/examples/leaderboard.yaml"),
    include_str!("../../../../docs/examples/cache-aside.yaml"),
    include_str!("../../../../docs/examples/rate-limiter.yaml"),
    include_str!("../../../../docs/examples/sessions.yaml"),
    include_str!("../../../../docs/examples/queue.yaml"),
    include_str!("../../../../docs/examples/messages.yaml"),
    include_str!("../../../../docs/examples/vector-search.yaml"),
];

/// The command.
pub fn init(args: &InitArgs) -> Result<Exit, Failure> {
    let example = args.example.as_deref();
    let text = match (&args.preset, example) {
        (Some(name), _) if name.ends_with(".yaml") || name.ends_with(".yml") => {
            return Err(Failure::usage(format!(
                "{name:?} is a file, no preset: `dyno init --out {name}` writes an experiment into it"
            )));
        }
        (Some(name), _) => preset_named(name)?.text(None).map_err(Failure::usage)?,
        (None, None) => INIT.to_owned(),
        (None, Some(name)) => {
            // The parser has refused other names.
            let at = EXAMPLES.iter().position(|known| *known == name).unwrap_or(0);
            TEXTS[at].to_owned()
        }
    };
    let named = || PathBuf::from(example.map_or("experiment.yaml".to_owned(), |name| format!("{name}.yaml")));
    let out = args.out.clone().unwrap_or_else(named);
    let path = out.display();
    let refused = |e: std::io::Error| match e.kind() {
        ErrorKind::AlreadyExists => {
            Failure::usage(format!("{path} is there already: name another file with --out"))
        }
        _ => Failure::usage(format!("{path}: {e}")),
    };
    let mut file = OpenOptions::new().write(true).create_new(true).open(&out).map_err(refused)?;
    file.write_all(text.as_bytes()).map_err(refused)?;
    let workload = |target: &str| format!("  dyno sample {path}\n  dyno run {target} --workload {path}\n");
    let next = if has_commands(&text) {
        workload("redis://HOST")
    } else if example == Some("shop") {
        workload("mongodb://HOST/shop")
    } else {
        format!("  dyno plan {path}\n  dyno run {path}\n")
    };
    terminal::out(&format!("{path} is written. Look at it, then:\n\n{next}"));
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_the_documentation_comes_along() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");
        let mut there: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| {
                Some(entry.unwrap().file_name().to_string_lossy().strip_suffix(".yaml")?.to_owned())
            })
            .collect();
        there.sort();
        let mut known = EXAMPLES;
        known.sort_unstable();
        assert_eq!(there, known);
        for (name, text) in EXAMPLES.iter().zip(TEXTS) {
            assert_eq!(text, std::fs::read_to_string(format!("{folder}/{name}.yaml")).unwrap());
        }
    }
}
