//! `dyno run FILE`, `dyno plan`, `dyno presets`, `dyno init`: experiments from files and presets.

pub mod init;
mod preview;

pub use preview::{plan, presets as list_presets};

use crate::derived_options::typed_options;
use crate::options::RunArgs;
use dyno_config::experiment::factors::short_name;
use dyno_engine::Control;
use dyno_experiment::directory::Directory;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::experiment::{CarryOut, carry_out, planned, ready};
use dyno_frontend::run_directory::new_directory;
use dyno_frontend::{in_cluster, signals};
use dyno_presets as presets;
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use std::path::Path;
use std::sync::Arc;

/// Returns whether the positional of `dyno run` names an experiment or a preset.
pub fn is_experiment(text: &str) -> bool {
    presets::find(text).is_some()
        || text.ends_with(".yaml")
        || text.ends_with(".yml")
        || !text.contains(':') && Path::new(text).is_file()
}

/// Reads an experiment's text: a file, or a preset by its name.
fn text_of(name: &str, scale: Option<u32>) -> Result<String, Failure> {
    if let Some(preset) = presets::find(name).filter(|_| !Path::new(name).is_file()) {
        return preset.text(scale).map_err(Failure::usage);
    }
    if let Some(scale) = scale {
        return Err(Failure::usage(format!("--scale {scale}: goes with a preset that has scales")));
    }
    bounded::text_file(name, TEXT_BYTES).map_err(|e| {
        let hint = dyno_types::suggest::hint(name, presets::PRESETS.iter().map(|preset| preset.name));
        Failure::usage(format!("{name}: {e}{hint}"))
    })
}

/// `dyno run FILE`; `junit`: the file of `--junit`.
pub fn run(args: &RunArgs, name: &str, junit: Option<&Path>) -> Result<Exit, Failure> {
    refuse_options(args)?;
    let text = text_of(name, args.scale)?;
    let mut sets = args.sets.clone();
    sets.extend(args.require_rate.as_ref().map(|rate| format!("require=['throughput > {rate}']")));
    let plan = planned(&text, name, &sets)?;
    if args.in_cluster {
        let path = args.result.out.clone().unwrap_or_else(|| new_directory(&plan.name));
        return in_cluster::begin(&plan, &text, &sets, &path);
    }
    carry_out_text(args, &text, name, &sets, junit)
}

/// Carries out an experiment of a file or of a command line, in a directory of its own.
fn carry_out_text(
    args: &RunArgs,
    text: &str,
    name: &str,
    sets: &[String],
    junit: Option<&Path>,
) -> Result<Exit, Failure> {
    let outlets = args.live.outlets()?;
    let plan = planned(text, name, sets)?;
    ready(&plan)?;
    let path = args.result.out.clone().unwrap_or_else(|| new_directory(&plan.name));
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let mut directory = Directory::create(&path, text, name, sets, &plan)?;
    if let Some(copy) = &args.copy {
        directory.keep_copy(copy.clone())?;
    }
    let wanted = args.result.web || args.result.open;
    let live =
        wanted.then(|| crate::serve::show_live_page(directory.path(), args.result.open)).transpose()?;
    let how = CarryOut { quiet: args.result.quiet, json: args.result.json, outlets, junit, persistent: None };
    let ended = carry_out(&plan, &mut directory, control, how);
    // Nothing holds the directory any more: the page learns that it is over.
    drop(directory);
    if let Some(live) = live {
        live.hand_over_report();
    }
    ended
}

/// `dyno run TARGET --repeat N`: an experiment without a file. The target is a setting of its own: it may hold a password, which
/// is not kept, and can be given again when the experiment is gone on with.
pub fn repeat(args: &RunArgs, text: &str, target: &str, junit: Option<&Path>) -> Result<Exit, Failure> {
    carry_out_text(args, text, "dyno run --repeat", &[format!("target={target}")], junit)
}

/// Options that speak of a single run: an experiment says it in its file.
fn refuse_options(args: &RunArgs) -> Result<(), Failure> {
    let refused = |option: &str, key: &str| {
        Err(Failure::usage(format!("{option} does not go with an experiment: use --set {key}=...")))
    };
    if let Some((key, _, option)) = args.spec.tree.list_leaves().iter().find(|(key, ..)| !key.is_empty()) {
        return refused(&option.to_string(), short_name(key));
    }
    if let Some(one) = typed_options(args).next() {
        return refused(one.option, one.key);
    }
    match args.result.no_out {
        true => Err(Failure::usage("--no-out does not go with an experiment, which is its directory")),
        false => Ok(()),
    }
}
