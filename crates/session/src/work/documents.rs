//! Documents and operations of one's own as work.

use crate::dataset_check::{DOCUMENTS, Many, look_alike};
use crate::work::{Prepared, Wording, Work, job_from_spec};
use dyno_config::experiment::{Experiment, When};
use dyno_config::settings::PropertySettings;
use dyno_db::collections::Collections;
use dyno_db::target::OpenTarget;
use dyno_engine::{Control, Job, RunError};
use dyno_types::bounded;
use dyno_types::bson;
use dyno_types::limits::TEXT_BYTES;
use dyno_types::{Content, RefusalCode, Refused};
use dyno_workload::Workload;
use dyno_workload::template::{TemplateContent, TemplateLoad, TemplateRun, ValueTemplate, WorkloadTemplate};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A template and what is known of its collections.
pub(super) struct TemplateWork {
    spec: Experiment,
    name: String,
    template: WorkloadTemplate,
    load: Arc<TemplateLoad>,
    run: Arc<TemplateRun>,
    must_load: bool,
    settings: PropertySettings,
    hint: String,
    reload: &'static str,
}

fn bad(bad: dyno_workload::ycsb::BadProperty) -> Refused {
    Refused::new(
        RefusalCode::BadValue,
        &bad.key,
        format!("{} {}: expected {}", bad.key, bad.value, bad.expected),
    )
}

/// Seed of the operations: the file's in the first repetition.
fn run_seed(spec: &Experiment, template: &WorkloadTemplate) -> u64 {
    template.seed.wrapping_add(spec.run_seed() - spec.seed)
}

impl TemplateWork {
    pub(super) fn read(spec: &Experiment, path: &str, wording: &Wording<'_>) -> Result<Self, Refused> {
        let key = (wording.source)("workload.documents");
        let text = bounded::text_file(path, TEXT_BYTES).map_err(|e| {
            Refused::new(RefusalCode::BadFile, key.to_string(), format!("{key}: {path}: {e}"))
        })?;
        let mut template = dyno_config::template::parse(&text, path)
            .map_err(|e| Refused::new(RefusalCode::BadFile, path, e.to_string()))?;
        if spec.seed != 1 {
            template.seed = spec.seed;
        }
        let stem =
            Path::new(path).file_stem().map_or("documents".into(), |s| s.to_string_lossy().into_owned());
        let must_load = spec.phases.load.when == When::Always;
        let load = Arc::new(TemplateLoad::new(&template).map_err(bad)?);
        let run = Arc::new(TemplateRun::new(&template, &[], run_seed(spec, &template)).map_err(bad)?);
        let mut settings = PropertySettings::new();
        settings.set_property("dyno.template", path, (wording.source)("workload.documents"));
        settings.set_property("dyno.seed", template.seed.to_string(), (wording.source)("seed"));
        let (reload, no_load) = (wording.reload, wording.no_load);
        let hint = format!("{reload} drops it and loads it again, {no_load} takes it as it is");
        Ok(TemplateWork {
            spec: spec.clone(),
            name: stem,
            template,
            load,
            run,
            must_load,
            settings,
            hint,
            reload,
        })
    }
}

impl Work for TemplateWork {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn content(&self) -> Arc<dyn Content> {
        self.run.content()
    }

    fn prepare(&mut self, opened: &dyn OpenTarget, _control: &Arc<Control>) -> Result<Prepared, RunError> {
        let mut ready = prepare_documents(&self.template, opened, self.spec.phases.load.when, &self.hint)?;
        ready.notes.iter_mut().for_each(|note| *note = format!("{note} ({} loads them again)", self.reload));
        Ok(ready)
    }

    fn adopt(&mut self, prepared: &Prepared) -> Result<(), Refused> {
        self.must_load = prepared.load;
        self.run = Arc::new(
            TemplateRun::new(&self.template, &prepared.fresh, run_seed(&self.spec, &self.template))
                .map_err(bad)?,
        );
        Ok(())
    }

    fn load_operations(&self) -> u64 {
        self.load.count_inserts()
    }

    fn load(&self) -> Result<Option<Job>, Refused> {
        let job = || job_from_spec::load_job(&self.spec, self.load.clone(), self.load.count_inserts());
        self.must_load.then(job).transpose()
    }

    fn measure(&self) -> Result<Job, Refused> {
        job_from_spec::measure_job(&self.spec, self.run.clone())
    }

    fn settings(&self) -> PropertySettings {
        self.settings.clone()
    }
}

/// Makes indexes and counts what is there; a collection that holds some of its documents is refused with `hint`.
fn prepare_documents(
    template: &WorkloadTemplate,
    opened: &dyn OpenTarget,
    when: When,
    hint: &str,
) -> Result<Prepared, RunError> {
    let wanted = when != When::Never && !opened.is_virtual();
    let mut ready = Prepared { load: wanted, ..Prepared::default() };
    let Some(collections) = opened.collections() else { return Ok(ready) };
    let mut there = 0;
    for (number, collection) in template.collections.iter().enumerate() {
        let name = &collection.name;
        if when == When::Always {
            collections.remove(name)?;
        }
        for (index, fields) in &collection.indexes {
            collections.index(name, index, fields)?;
        }
        let count = collections.count(name)?;
        there += u64::from(count >= collection.count);
        if count > 0 && count < collection.count && wanted {
            let message = format!("{name} holds {count} documents, not {}: {hint}", collection.count);
            return Err(Refused::new(RefusalCode::OtherData, "phases.load.when", message).into());
        }
        if count > 0 && wanted {
            same_shape(collections.as_ref(), template, number, (Many::Some, hint))?;
        }
        let first = match count {
            0 => collection.count,
            _ => first_free(collections.as_ref(), name, &collection.id)?,
        };
        ready.fresh.push(first);
    }
    if wanted && there == template.collections.len() as u64 {
        ready.notes.push("all documents are there already".into());
        ready.load = false;
    }
    Ok(ready)
}

/// Refuses documents that do not look like those that a load would write; what operations change may look otherwise.
pub(crate) fn same_shape(
    collections: &dyn Collections,
    template: &WorkloadTemplate,
    number: usize,
    how: (Many, &str),
) -> Result<(), RunError> {
    let collection = &template.collections[number];
    let content = TemplateContent::new(template);
    let wanted = |document: u64| {
        let mut out = Vec::new();
        content.document_of(number, document, &mut out);
        out
    };
    let wanted: Vec<Vec<u8>> = (0..collection.count.min(DOCUMENTS)).map(wanted).collect();
    let changed = template.changed_fields(number);
    look_alike(collections, &collection.name, &wanted, &changed, how)
}

/// One more than the highest `_id`, where it is a sequence. Other `_id`s follow from numbers that cannot be read back:
/// those of this second are new.
fn first_free(collections: &dyn Collections, collection: &str, id: &ValueTemplate) -> Result<u64, RunError> {
    if *id != ValueTemplate::Sequence {
        let second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        return Ok(second << 20);
    }
    let newest = collections.highest(collection, None)?;
    let highest =
        newest.as_deref().and_then(|document| bson::find_element(document, "_id")).and_then(|e| e.as_i64());
    Ok(highest.and_then(|id| u64::try_from(id + 1).ok()).unwrap_or(0))
}
