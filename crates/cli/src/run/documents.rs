//! Workloads of one's own (YAML): reading them, and what is done before their load.

use super::resolve::usage;
use crate::exit::Failure;
use crate::options::RunArgs;
use crate::terminal;
use dyno_config::experiment::When;
use dyno_databases::target::OpenTarget;
use dyno_session::work::Prepared;
use dyno_session::work::documents::prepare_documents;
use dyno_workload::template::Template;
use std::path::Path;

/// Whether `--workload` names such a file.
pub(super) fn is_template(workload: &str) -> bool {
    workload.ends_with(".yaml") || workload.ends_with(".yml")
}

/// Reads a file; a seed that was typed counts more than the file's.
pub fn read_template(path: &str, seed: Option<u64>) -> Result<Template, Failure> {
    let text =
        std::fs::read_to_string(Path::new(path)).map_err(|e| Failure::Usage(format!("{path}: {e}")))?;
    let mut template = dyno_config::template::parse(&text, path)?;
    template.seed = seed.unwrap_or(template.seed);
    Ok(template)
}

/// Options that speak of YCSB's records have no meaning here.
pub(super) fn refuse_options(args: &RunArgs) -> Result<(), Failure> {
    let typed = [
        ("--records", args.records != "100k"),
        ("--fields", args.fields.is_some()),
        ("--field-length", args.field_length.is_some()),
        ("--distribution", args.distribution.is_some()),
        ("-p", !args.properties.is_empty()),
    ];
    match typed.into_iter().find(|(_, typed)| *typed) {
        Some((option, _)) => {
            Err(usage(option, format!("has no effect on documents: say it in {}", args.workload)))
        }
        None => Ok(()),
    }
}

/// Indexes are created, what is there is counted.
pub(super) fn prepare(
    args: &RunArgs,
    template: &Template,
    opened: &dyn OpenTarget,
) -> Result<Prepared, Failure> {
    let when = match (args.no_load, args.reload) {
        (true, _) => When::Never,
        (false, true) => When::Always,
        (false, false) => When::Missing,
    };
    let hint = "--reload drops it and loads it again, --no-load takes it as it is";
    let ready = prepare_documents(template, opened, when, hint)?;
    for note in &ready.notes {
        terminal::note(&format!("{note} (--reload loads them again)"));
    }
    Ok(ready)
}
