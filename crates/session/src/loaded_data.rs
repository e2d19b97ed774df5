//! Data that runs have loaded: what their directories say of it, whether it is there and looks as they made it, and its removal.

use crate::dataset_check::present_as;
use crate::presence::{Inserted, count_records, find_inserted, remove_range, remove_records};
use crate::work::documents::same_shape;
use crate::work::ycsb::core_config;
use dyno_config::settings::{PropertySettings, Source};
use dyno_db::target::OpenTarget;
use dyno_engine::{Control, RunError};
use dyno_rundir::RunDir;
use dyno_types::limits::TEXT_BYTES;
use dyno_types::units::Thousands;
use dyno_types::{Content, RefusalCode, Refused, bounded};
use dyno_workload::Workload;
use dyno_workload::template::{TemplateContent, WorkloadTemplate};
use dyno_workload::ycsb::{CoreConfig, CoreWorkload, known_properties};
use std::path::Path;
use std::sync::Arc;

/// Data that a run has loaded.
pub enum LoadedData {
    /// Records of YCSB's core workload.
    Records(Box<LoadedRecords>),
    /// Documents of one's own.
    Documents(LoadedDocuments),
}

/// Records of YCSB's core workload: their keys follow from the workload's properties.
pub struct LoadedRecords {
    workload: Arc<dyn Workload>,
    config: CoreConfig,
    /// True if the run inserted records, too.
    inserts: bool,
}

/// Documents of a template: what its collections may hold.
pub struct LoadedDocuments {
    template: WorkloadTemplate,
    /// Operations of all runs of the database: none has inserted more documents than it may by one command.
    operations: u64,
}

/// Data as they are found in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundData {
    /// What would be removed, in words, such as `1,000 records of table usertable`.
    pub words: String,
    /// Records or documents.
    pub count: u64,
}

impl LoadedData {
    /// What a run has loaded, by its directory: `None` where it loaded nothing, or nothing whose keys can be told again.
    /// `operations` succeeded in all runs of its database.
    ///
    /// # Errors
    /// The settings, or the file that they name, are not what they were.
    pub fn of_run(run: &RunDir, operations: u64) -> Result<Option<Self>, Refused> {
        let Some(summary) = &run.summary else { return Ok(None) };
        let has_loaded =
            |phase: &dyno_rundir::schema::Phase| phase.name == "load" && phase.count_successes() > 0;
        if !summary.phases.iter().any(has_loaded) {
            return Ok(None);
        }
        let setting =
            |key: &str| run.run.settings.iter().find(|one| one.key == key).map(|one| one.value.as_str());
        if let Some(path) = setting("dyno.template") {
            let seed = setting("dyno.seed").and_then(|seed| seed.parse().ok());
            return Ok(Some(LoadedData::Documents(LoadedDocuments::read(path, seed, operations)?)));
        }
        if setting("recordcount").is_none() {
            return Ok(None);
        }
        let mut settings = PropertySettings::new();
        for one in run.run.settings.iter().filter(|one| one.source != "default") {
            if known_properties().iter().any(|known| known.name == one.key) {
                let source = Source::Option { flag: format!("{}/run.json", run.path.display()) };
                settings.set_property(&one.key, one.value.clone(), source);
            }
        }
        let config = core_config(&settings)?;
        let workload = CoreWorkload::run(&config).map_err(|bad| settings.blame_source(bad))?;
        let inserts = config.proportions.insert > 0.0;
        Ok(Some(LoadedData::Records(Box::new(LoadedRecords {
            workload: Arc::new(workload),
            config,
            inserts,
        }))))
    }

    /// What requests look like.
    pub fn content(&self) -> Arc<dyn Content> {
        match self {
            LoadedData::Records(records) => records.workload.content(),
            LoadedData::Documents(documents) => Arc::new(TemplateContent::new(&documents.template)),
        }
    }

    /// What is there of it; an empty list where nothing is.
    ///
    /// # Errors
    /// What is there does not look as the run made it, or the database does not answer.
    pub fn find(&self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<Vec<FoundData>, RunError> {
        match self {
            LoadedData::Records(records) => records.find(opened, control),
            LoadedData::Documents(documents) => documents.find(opened),
        }
    }

    /// Removes what [`LoadedData::find`] finds.
    ///
    /// # Errors
    /// The database does not answer.
    pub fn remove(&self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<(), RunError> {
        match self {
            LoadedData::Records(records) => records.remove(opened, control),
            LoadedData::Documents(documents) => {
                let Some(collections) = opened.collections() else { return Ok(()) };
                let names = documents.template.collections.iter().map(|one| &one.name);
                names.into_iter().try_for_each(|name| collections.remove(name))
            }
        }
    }
}

/// Words for data that no run has made like that.
const LEAVES: &str = "dyno clean removes only what it has loaded";

impl LoadedRecords {
    fn find(&self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<Vec<FoundData>, RunError> {
        // Records of another shape under these keys are refused.
        present_as(opened, &self.workload, &self.config, LEAVES, control)?;
        let loaded = count_records(opened, &self.workload, control)?;
        let inserted = self.inserted(opened, control)?;
        let inserted = inserted.end - inserted.missing.len() as u64;
        let keys = |what: &str, first: u64, count: u64| FoundData {
            words: format!(
                "{} {what} of table {} from key number {first} on",
                Thousands(count),
                self.config.table
            ),
            count,
        };
        let all = [
            keys("records", self.config.insert_start, loaded),
            keys("inserted records", self.config.record_count, inserted),
        ];
        Ok(all.into_iter().filter(|found| found.count > 0).collect())
    }

    fn inserted(&self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<Inserted, RunError> {
        match self.inserts {
            true => find_inserted(opened, &self.workload.content(), &self.config, control),
            false => Ok(Inserted::default()),
        }
    }

    fn remove(&self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<(), RunError> {
        let inserted = self.inserted(opened, control)?;
        remove_records(opened, &self.workload, control)?;
        let first = self.config.record_count + self.config.client_id;
        let stride = self.config.client_count;
        remove_range(opened, &self.workload.content(), first, stride, inserted.end, control)
    }
}

impl LoadedDocuments {
    fn read(path: &str, seed: Option<u64>, operations: u64) -> Result<Self, Refused> {
        let refuse = |why: String| Refused::new(RefusalCode::BadFile, path, why);
        let text =
            bounded::text_file(Path::new(path), TEXT_BYTES).map_err(|e| refuse(format!("{path}: {e}")))?;
        let mut template = dyno_config::template::parse(&text, path).map_err(|e| refuse(e.to_string()))?;
        template.seed = seed.unwrap_or(template.seed);
        Ok(LoadedDocuments { template, operations })
    }

    fn find(&self, opened: &dyn OpenTarget) -> Result<Vec<FoundData>, RunError> {
        let Some(collections) = opened.collections() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (number, collection) in self.template.collections.iter().enumerate() {
            let count = collections.count(&collection.name)?;
            if count == 0 {
                continue;
            }
            if count > collection.count + self.operations * u64::from(self.template.largest_insert()) {
                let words = format!(
                    "collection {} holds {} documents, more than the runs can have written: {LEAVES}",
                    collection.name,
                    Thousands(count)
                );
                return Err(Refused::new(RefusalCode::OtherData, "target", words).into());
            }
            same_shape(collections.as_ref(), &self.template, number, LEAVES)?;
            let words = format!("collection {} with {} documents", collection.name, Thousands(count));
            found.push(FoundData { words, count });
        }
        Ok(found)
    }
}
