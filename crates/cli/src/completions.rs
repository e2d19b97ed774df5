//! `dyno completions`: what a shell asks `dyno` for while the user types. Commands and options are the command line's own;
//! presets, run directories and keys of experiments are looked up at that moment.

use crate::args::command;
use crate::options::CompletionsArgs;
use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{CompleteEnv, Shells};
use dyno_config::experiment::factors::ALIASES;
use dyno_config::experiment::json_schema_text;
use dyno_databases::registry;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_presets::PRESETS;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;

/// The variable by which a shell says that it wants completions.
const ASKED: &str = "COMPLETE";

/// The command.
pub fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    terminal::out(&registration(&args.shell.to_string())?);
    Ok(Exit::Ok)
}

/// The script of a shell: it has the shell ask `dyno`.
///
/// # Errors
/// The shell is unknown.
pub fn registration(shell: &str) -> Result<String, Failure> {
    let shells = Shells::builtins();
    let known = shells.completer(shell).ok_or_else(|| Failure::usage(format!("{shell}: unknown shell")))?;
    let mut text = Vec::new();
    known.write_registration(ASKED, "dyno", "dyno", "dyno", &mut text).map_err(Failure::internal)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Answers a shell and ends, if one asks.
pub fn answer() {
    CompleteEnv::with_factory(|| with_values(command())).var(ASKED).complete();
}

/// The command line with values that are looked up.
fn with_values(command: Command) -> Command {
    command.mut_subcommands(|of| {
        let name = of.get_name().to_owned();
        of.mut_args(|arg| value(&name, arg))
    })
}

fn value(command: &str, arg: Arg) -> Arg {
    let is_set = arg.get_long() == Some("set");
    match command {
        "run" | "plan" if is_set => arg.add(ArgValueCompleter::new(keys)),
        "run" | "plan" | "init" | "presets" if arg.is_positional() => {
            let targets = command == "run";
            arg.add(ArgValueCompleter::new(move |typed: &OsStr| experiments(typed, targets)))
        }
        "report" | "explain" | "compare" | "history" | "export" | "merge" | "status" | "resume" | "stop"
        | "logs" | "fetch" | "serve"
            if arg.is_positional() =>
        {
            arg.add(ArgValueCompleter::new(directories))
        }
        _ => arg,
    }
}

/// Presets, files, and for a run the beginnings of targets.
fn experiments(typed: &OsStr, targets: bool) -> Vec<CompletionCandidate> {
    let begun = typed.to_string_lossy();
    let presets = PRESETS.iter().filter(|preset| preset.name.starts_with(&*begun));
    let mut all: Vec<CompletionCandidate> =
        presets.map(|preset| CompletionCandidate::new(preset.name).help(Some(preset.about.into()))).collect();
    let schemes =
        registry::schemes().map(|scheme| scheme.name).filter(|name| targets && name.starts_with(&*begun));
    all.extend(schemes.map(|name| CompletionCandidate::new(format!("{name}:"))));
    all.extend(PathCompleter::file().complete(typed));
    all
}

/// Runs and experiments here and in `dyno-runs`, and other folders.
fn directories(typed: &OsStr) -> Vec<CompletionCandidate> {
    let begun = typed.to_string_lossy();
    let recorded = |path: &Path| ["run.json", "experiment.json"].iter().any(|file| path.join(file).is_file());
    let entries = std::fs::read_dir("dyno-runs").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs: Vec<String> = entries
        .filter(|path| recorded(path))
        .map(|path| path.display().to_string())
        .filter(|path| path.starts_with(&*begun))
        .collect();
    runs.sort();
    let is_run = |one: &CompletionCandidate| {
        let path = one.get_value().to_string_lossy();
        runs.iter().any(|run| run.as_str() == path.trim_end_matches('/'))
    };
    let others =
        PathCompleter::dir().complete(typed).into_iter().filter(|one| !is_run(one)).collect::<Vec<_>>();
    runs.iter().rev().map(CompletionCandidate::new).chain(others).collect()
}

/// Keys of an experiment, one level at a time, each with `=` or `.` behind it; short names first.
fn keys(typed: &OsStr) -> Vec<CompletionCandidate> {
    let begun = typed.to_string_lossy();
    let Ok(schema) = serde_json::from_str::<Value>(&json_schema_text()) else { return Vec::new() };
    let mut parts: Vec<&str> = begun.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let Some(at) = parts.iter().try_fold(&schema, |at, part| properties(&schema, at)?.get(*part)) else {
        return Vec::new();
    };
    let before: String = parts.iter().map(|part| format!("{part}.")).collect();
    let short = ALIASES.iter().map(|(name, _)| *name).filter(|_| before.is_empty());
    let mut all: Vec<CompletionCandidate> = short
        .filter(|name| name.starts_with(last))
        .map(|name| CompletionCandidate::new(format!("{name}=")))
        .collect();
    for (name, of) in properties(&schema, at).into_iter().flatten() {
        let end = if properties(&schema, of).is_some() { '.' } else { '=' };
        if name.starts_with(last) {
            all.push(CompletionCandidate::new(format!("{before}{name}{end}")));
        }
    }
    all
}

/// The keys of a mapping in a JSON Schema, behind references and alternatives with `null`.
fn properties<'s>(schema: &'s Value, of: &'s Value) -> Option<&'s serde_json::Map<String, Value>> {
    if let Some(reference) = of["$ref"].as_str() {
        return properties(schema, schema.pointer(reference.strip_prefix('#')?)?);
    }
    let alternatives = ["anyOf", "allOf"].iter().filter_map(|key| of[key].as_array()).flatten();
    of["properties"].as_object().or_else(|| alternatives.filter_map(|one| properties(schema, one)).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(candidates: Vec<CompletionCandidate>) -> Vec<String> {
        candidates.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn keys_are_completed_level_by_level() {
        assert!(told(keys(OsStr::new("us"))).contains(&"users=".to_owned()));
        assert!(told(keys(OsStr::new("pha"))).contains(&"phases.".to_owned()));
        assert_eq!(told(keys(OsStr::new("phases.measure.us"))), ["phases.measure.users="]);
        assert!(told(keys(OsStr::new("server.ki"))).contains(&"server.kind=".to_owned()));
        assert_eq!(told(keys(OsStr::new("nothing.of"))), [""; 0]);
    }

    /// What a shell is answered: `words` are typed, the last is completed.
    fn answered(words: &[&str]) -> Vec<String> {
        let words = words.iter().map(Into::into).collect::<Vec<_>>();
        let last = words.len() - 1;
        told(clap_complete::engine::complete(&mut with_values(command()), words, last, None).unwrap())
    }

    #[test]
    fn a_shell_is_answered_where_values_are_looked_up() {
        assert_eq!(answered(&["dyno", "run", "--set", "phases.measure.us"]), ["phases.measure.users="]);
        assert_eq!(answered(&["dyno", "plan", "quick/ra"]), ["quick/rate"]);
        assert_eq!(answered(&["dyno", "run", "--us"]), ["--users"]);
    }

    #[test]
    fn presets_and_targets_are_completed() {
        assert!(told(experiments(OsStr::new("quick/r"), true)).contains(&"quick/rate".to_owned()));
        assert!(told(experiments(OsStr::new("red"), true)).contains(&"redis:".to_owned()));
        assert!(!told(experiments(OsStr::new("red"), false)).contains(&"redis:".to_owned()));
    }
}
