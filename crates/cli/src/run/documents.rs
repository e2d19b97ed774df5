//! Workloads of one's own (YAML): reading them, and what is done before their load.

use super::resolve::usage;
use crate::args::RunArgs;
use crate::exit::Failure;
use crate::terminal;
use dyno_rig::{MongoAdmin, Opened};
use dyno_types::bson::{self, kind};
use dyno_workload::template::{Template, Value};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the load and the run begin with.
pub(super) struct Ready {
    /// Whether the documents must be loaded.
    pub load: bool,
    /// The first free number of each collection, as far as that is known.
    pub fresh: Vec<u64>,
}

/// Whether `--workload` names such a file.
pub(super) fn is_template(workload: &str) -> bool {
    workload.ends_with(".yaml") || workload.ends_with(".yml")
}

/// Reads a file; a seed that was typed counts more than the file's.
pub fn read_template(path: &str, seed: Option<u64>) -> Result<Template, Failure> {
    let text =
        std::fs::read_to_string(Path::new(path)).map_err(|e| Failure::Usage(format!("{path}: {e}")))?;
    let mut template = dyno_plan::template::parse(&text, path).map_err(|e| Failure::Usage(e.to_string()))?;
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
pub(super) fn prepare(args: &RunArgs, template: &Template, opened: &Opened) -> Result<Ready, Failure> {
    let failed = |words: String| Failure::Unreachable(words);
    let mut ready = Ready { load: !args.no_load && !opened.is_virtual(), fresh: Vec::new() };
    let Some(admin) = opened.mongo_admin() else { return Ok(ready) };
    let mut there = 0;
    for collection in &template.collections {
        if args.reload {
            admin.drop_collection(&collection.name).map_err(failed)?;
        }
        for (name, fields) in &collection.indexes {
            admin.create_compound_index(&collection.name, name, fields).map_err(failed)?;
        }
        let count = admin.count(&collection.name).map_err(failed)?;
        there += u64::from(count >= collection.count);
        if count > 0 && count < collection.count && ready.load {
            return Err(Failure::Usage(format!(
                "{} holds {count} documents, not {}: --reload drops it and loads it again, --no-load takes it as it is",
                collection.name, collection.count
            )));
        }
        let first = match count {
            0 => collection.count,
            _ => first_free(&admin, &collection.name, &collection.id).map_err(failed)?,
        };
        ready.fresh.push(first);
    }
    if ready.load && there == template.collections.len() as u64 {
        terminal::note("all documents are there already (--reload loads them again)");
        ready.load = false;
    }
    Ok(ready)
}

/// One more than the highest `_id`, where it is a sequence. Other `_id`s follow from numbers that cannot be read back:
/// those of this second are new.
fn first_free(admin: &MongoAdmin, collection: &str, id: &Value) -> Result<u64, String> {
    if *id != Value::Sequence {
        let second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        return Ok(second << 20);
    }
    let newest = admin.find_one(collection, &|out| {
        bson::head(out, kind::DOCUMENT, "sort");
        let sort = bson::open(out);
        bson::int32(out, "_id", -1);
        bson::close(out, sort);
    })?;
    let highest = newest.as_deref().and_then(|document| bson::find(document, "_id")).and_then(|e| e.as_i64());
    Ok(highest.and_then(|id| u64::try_from(id + 1).ok()).unwrap_or(0))
}
