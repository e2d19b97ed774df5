//! Data that runs have loaded: what their directories say of it, whether it is there and looks as they made it, and its removal.

use crate::dataset_check::{Many, count_alike, present_as};
use crate::existing_records::{Inserted, find_inserted, remove_range};
use crate::work::documents::same_shape;
use crate::work::ycsb::core_config;
use dyno_config::settings::{PropertySettings, Source};
use dyno_db::target::OpenTarget;
use dyno_engine::{Control, RunError};
use dyno_rundir::RunDir;
use dyno_rundir::schema::{Metric, Phase};
use dyno_types::limits::TEXT_BYTES;
use dyno_types::units::Thousands;
use dyno_types::{Content, RefusalCode, Refused, bounded};
use dyno_workload::Workload;
use dyno_workload::template::{TemplateContent, WorkloadTemplate};
use dyno_workload::ycsb::{CoreConfig, CoreWorkload, known_properties};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Documents that operations of all runs of the database can have inserted.
    inserted: u64,
    /// Collections that the run has seen in its database; empty where that is not known.
    seen: BTreeSet<String>,
}

/// Data as they are found in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundData {
    /// What would be removed, in words, such as `1,000 records of table usertable`.
    pub message: String,
    /// Records or documents.
    pub count: u64,
}

impl LoadedData {
    /// Returns whether a run has loaded anything, by its directory.
    pub fn is_of(run: &RunDir) -> bool {
        phases_of(run).any(|phase| phase.name == "load" && phase.count_successes() > 0)
    }

    /// What a run has loaded, by its directory: `None` where it loaded nothing, or nothing that can be told again (keys of own
    /// commands, and data of sysbench-mongodb and POCDriver). `all` are the runs of its database.
    ///
    /// # Errors
    /// The settings, or the file that they name, cannot be read any more.
    pub fn of_run(run: &RunDir, all: &[&RunDir]) -> Result<Option<Self>, Refused> {
        if !LoadedData::is_of(run) {
            return Ok(None);
        }
        let setting =
            |key: &str| run.run.settings.iter().find(|one| one.key == key).map(|one| one.value.as_str());
        if let Some(path) = setting("dyno.template") {
            let seed = setting("dyno.seed").and_then(|seed| seed.parse().ok());
            let documents = LoadedDocuments::read((path, seed), run, all)?;
            // Whatever is there could have been made by such commands: nothing tells it from what belongs to another.
            let is_known = !documents.template.has_changing_commands();
            return Ok(is_known.then_some(LoadedData::Documents(documents)));
        }
        if setting("recordcount").is_none() {
            return Ok(None);
        }
        let mut settings = PropertySettings::new();
        for one in &run.run.settings {
            // What was chosen for the run, the number of records for example, has this source, too.
            let is_default = |default: &str| one.source == "default" && one.value == default;
            if known_properties().iter().any(|known| known.name == one.key && !is_default(known.default)) {
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

fn phases_of(run: &RunDir) -> impl Iterator<Item = &Phase> {
    run.summary.iter().flat_map(|summary| &summary.phases)
}

/// Words for data that no run has made like that.
const LEAVES: &str = "dyno clean removes only what it has loaded";

impl LoadedRecords {
    fn find(&self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<Vec<FoundData>, RunError> {
        // Keys of another form are refused, and then each record of another shape.
        present_as(opened, &self.workload, &self.config, LEAVES, control)?;
        let content = self.workload.content();
        let alike = |first: u64, stride: u64, keys: u64| {
            count_alike(opened, &content, (first, stride), keys, LEAVES, control)
        };
        let loaded = self.workload.expects().map_or(Ok(0), |(count, first)| alike(first, 1, count))?;
        let (first, stride) = self.first_inserted();
        let inserted = alike(first, stride, self.inserted(opened, control)?.end)?;
        let keys = |what: &str, first: u64, count: u64| FoundData {
            message: format!(
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
        let (inserted, content) = (self.inserted(opened, control)?, self.workload.content());
        if let Some((count, first)) = self.workload.expects() {
            remove_range(opened, &content, first, 1, count, control)?;
        }
        let (first, stride) = self.first_inserted();
        remove_range(opened, &content, first, stride, inserted.end, control)
    }

    /// The first key number of the run's inserts, and the distance between two.
    fn first_inserted(&self) -> (u64, u64) {
        (self.config.record_count + self.config.client_id, self.config.client_count)
    }
}

impl LoadedDocuments {
    fn read((path, seed): (&str, Option<u64>), run: &RunDir, all: &[&RunDir]) -> Result<Self, Refused> {
        let refuse = |why: String| Refused::new(RefusalCode::BadFile, path, why);
        let text =
            bounded::text_file(Path::new(path), TEXT_BYTES).map_err(|e| refuse(format!("{path}: {e}")))?;
        let mut template = dyno_config::template::parse(&text, path).map_err(|e| refuse(e.to_string()))?;
        template.seed = seed.unwrap_or(template.seed);
        let inserts: BTreeMap<&str, u64> = template.inserts().collect();
        // One that has failed may have inserted, too.
        let inserted = |metric: &Metric| {
            inserts.get(metric.name.as_str()).map_or(0, |each| each * metric.outcomes.values().sum::<u64>())
        };
        let inserted =
            all.iter().flat_map(|run| phases_of(run)).flat_map(|phase| &phase.metrics).map(inserted);
        let inserted = inserted.sum();
        let stats = phases_of(run).filter_map(|phase| phase.collections.as_ref());
        let seen = stats.flat_map(|stats| stats.after.keys().cloned()).collect();
        Ok(LoadedDocuments { template, inserted, seen })
    }

    fn find(&self, opened: &dyn OpenTarget) -> Result<Vec<FoundData>, RunError> {
        let Some(collections) = opened.collections() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (number, collection) in self.template.collections.iter().enumerate() {
            let count = collections.count(&collection.name)?;
            if count == 0 {
                continue;
            }
            let name = &collection.name;
            let refuse = |what: String| {
                let message = format!("collection {name} {what}: {LEAVES}");
                Err(RunError::from(Refused::new(RefusalCode::OtherData, "target", message)))
            };
            if !self.seen.is_empty() && !self.seen.contains(name) {
                return refuse("was not there after the run, and its file names it now".into());
            }
            if count > collection.count + self.inserted {
                return refuse(format!(
                    "holds {} documents, more than the runs can have written",
                    Thousands(count)
                ));
            }
            same_shape(collections.as_ref(), &self.template, number, (Many::All, LEAVES))?;
            let message = format!("collection {} with {} documents", collection.name, Thousands(count));
            found.push(FoundData { message, count });
        }
        Ok(found)
    }
}
