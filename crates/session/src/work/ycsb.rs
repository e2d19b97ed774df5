//! YCSB's core workload as work.

use crate::dataset_check::present_as;
use crate::existing_records::{Inserted, find_inserted, looked_for};
use crate::work::{Prepared, Wording, Work, job_from_spec};
use dyno_config::experiment::{Experiment, When, Ycsb};
use dyno_config::properties;
use dyno_config::settings::BadSetting;
use dyno_config::settings::{PropertySettings, Source};
use dyno_db::target::OpenTarget;
use dyno_engine::{Control, Job, RunError};
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use dyno_types::{Content, RefusalCode, Refused, Verb, suggest};
use dyno_workload::Workload;
use dyno_workload::ycsb::config::Proportions;
use dyno_workload::ycsb::{
    CoreConfig, CoreWorkload, PriorInserts, Scope, known_properties, stock_by_letter, stock_file,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Records where the user does not say how many.
const RECORDS: u64 = 100_000;

/// Properties of YCSB whose place a key of the experiment takes.
pub const KEYS_INSTEAD: [(&str, &str); 4] = [
    ("threadcount", "phases.measure.users"),
    ("target", "phases.measure.rate"),
    ("operationcount", "phases.measure.operations"),
    ("maxexecutiontime", "phases.measure.duration"),
];

/// Records with fields.
pub(super) struct YcsbRecords {
    spec: Experiment,
    name: String,
    settings: PropertySettings,
    verbs: Vec<Verb>,
    records: u64,
    load: Arc<dyn Workload>,
    measure: Arc<dyn Workload>,
    config: CoreConfig,
    must_load: bool,
    /// Advice where records of another shape are there.
    hint: String,
    reload: &'static str,
}

impl YcsbRecords {
    pub(super) fn read(spec: &Experiment, wording: &Wording<'_>) -> Result<Self, Refused> {
        let asked = spec.workload.ycsb.clone().unwrap_or_default();
        let (settings, name) = settings(&asked, spec.seed, wording)?;
        let loaded = core_config(&settings)?;
        let load = Arc::new(CoreWorkload::load_phase(&loaded).map_err(|bad| settings.blame_source(bad))?);
        let (mut settings, _) = self::settings(&asked, spec.run_seed(), wording)?;
        take_properties(&asked.run_properties, "workload.ycsb.run_properties", &mut settings, wording)?;
        let config = core_config(&settings)?;
        let measure = Arc::new(CoreWorkload::run(&config).map_err(|bad| settings.blame_source(bad))?);
        let (records, verbs) = (loaded.insert_count, needed_verbs(&config.proportions));
        let must_load = spec.phases.load.when == When::Always;
        let (spec, reload) = (spec.clone(), wording.reload);
        let hint = format!("{reload} loads them again, {} measures those that are there", wording.no_load);
        Ok(YcsbRecords {
            spec,
            name,
            settings,
            verbs,
            records,
            load,
            measure,
            config,
            must_load,
            hint,
            reload,
        })
    }
}

impl Work for YcsbRecords {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn content(&self) -> Arc<dyn Content> {
        self.measure.content()
    }

    fn verbs(&self) -> Vec<Verb> {
        self.verbs.clone()
    }

    fn prepare(&mut self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<Prepared, RunError> {
        let load = match self.spec.phases.load.when {
            When::Always => !opened.is_virtual(),
            When::Never => false,
            When::Missing if opened.is_virtual() => false,
            When::Missing => !present_as(opened, &self.measure, &self.config, &self.hint, control)?,
        };
        let inserted = match self.config.resume && !opened.is_virtual() {
            true => find_inserted(opened, &self.measure.content(), &self.config, control)?,
            false => Inserted::default(),
        };
        let mut notes = Vec::new();
        if !load && self.spec.phases.load.when == When::Missing && !opened.is_virtual() {
            notes.push(format!(
                "about {} records are there already: {} were looked for, and are there ({} loads them again)",
                self.records,
                looked_for(self.records),
                self.reload
            ));
        }
        if inserted.end > 0 {
            let count = PriorInserts::new(inserted.end, &inserted.missing).count();
            let first = self.config.record_count;
            notes.push(format!("{count} inserts of earlier runs are there, from key number {first} on"));
        }
        let inserted = (inserted.end, inserted.missing);
        Ok(Prepared { load, inserted, notes, ..Prepared::default() })
    }

    fn adopt(&mut self, prepared: &Prepared) -> Result<(), Refused> {
        self.must_load = prepared.load;
        if prepared.inserted.0 > 0 {
            self.config.earlier = PriorInserts::new(prepared.inserted.0, &prepared.inserted.1);
            let measure = CoreWorkload::run(&self.config).map_err(|bad| self.settings.blame_source(bad))?;
            self.measure = Arc::new(measure);
        }
        Ok(())
    }

    fn load_operations(&self) -> u64 {
        self.records
    }

    fn load(&self) -> Result<Option<Job>, Refused> {
        match self.must_load {
            true => job_from_spec::load_job(&self.spec, self.load.clone(), self.records).map(Some),
            false => Ok(None),
        }
    }

    fn measure(&self) -> Result<Job, Refused> {
        job_from_spec::measure_job(&self.spec, self.measure.clone())
    }

    fn settings(&self) -> PropertySettings {
        self.settings.clone()
    }
}

/// The core workload as an experiment loads it.
pub fn core_config_of(spec: &Experiment) -> Result<CoreConfig, Refused> {
    let asked = spec.workload.ycsb.clone().unwrap_or_default();
    let (settings, _) = settings(&asked, spec.seed, &Wording::FILE)?;
    Ok(core_config(&settings)?)
}

/// A property of a workload's file that has no effect outside of YCSB's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleProperty {
    /// File and line.
    pub source: Source,
    /// Its name.
    pub name: String,
    /// The key of the experiment that has the effect, if there is one.
    pub instead: Option<&'static str>,
}

/// Properties of the file `workload` that say how much load there is, or how it is made: an experiment's keys say that.
/// `operationcount` shapes the key space, too; what YCSB's client prints and how it measures is not missed.
pub fn idle_properties(workload: &str) -> Vec<IdleProperty> {
    let mut settings = PropertySettings::new();
    // A file that cannot be read is refused where the work is.
    if take_workload(workload, &mut settings, &Wording::FILE).is_err() {
        return Vec::new();
    }
    let instead =
        |name: &str| KEYS_INSTEAD.iter().find(|(property, _)| *property == name).map(|(_, key)| *key);
    let idle = known_properties()
        .iter()
        .filter(|p| !p.describes_workload() && (p.scope == Scope::DynoClient || instead(p.name).is_some()));
    idle.filter_map(|p| {
        let source = settings.get(p.name)?.source.clone();
        Some(IdleProperty { source, name: p.name.to_owned(), instead: instead(p.name) })
    })
    .collect()
}

/// Layers: the workload's file or built-in text, then the experiment's own words.
fn settings(asked: &Ycsb, seed: u64, wording: &Wording<'_>) -> Result<(PropertySettings, String), Refused> {
    let mut settings = PropertySettings::new();
    let name = take_workload(&asked.workload, &mut settings, wording)?;
    let default = || Source::Option { flag: "default".to_owned() };
    let of_file = |key: &str| settings.get(key).is_some_and(|s| matches!(s.source, Source::File { .. }));
    let (records, operations) = (of_file("recordcount"), of_file("operationcount"));
    match &asked.records {
        Some(count) => settings.set_property(
            "recordcount",
            count.0.to_string(),
            (wording.source)("workload.ycsb.records"),
        ),
        // Built-in texts say 1000, which no user has chosen.
        None if !records => settings.set_property("recordcount", RECORDS.to_string(), default()),
        None => {}
    }
    if !operations {
        settings.set_property("operationcount", "0", default());
    }
    settings.set_property("dyno.seed", seed.to_string(), (wording.source)("seed"));
    take_properties(&asked.properties, "workload.ycsb.properties", &mut settings, wording)?;
    Ok((settings, name))
}

/// Properties that the file `at` a key says.
fn take_properties(
    all: &BTreeMap<String, String>,
    at: &str,
    settings: &mut PropertySettings,
    wording: &Wording<'_>,
) -> Result<(), Refused> {
    let known = known_properties();
    for (key, value) in all {
        let Some(property) = known.iter().find(|p| p.name == key) else {
            let hint = suggest::hint(key, known.iter().map(|p| p.name));
            let source = (wording.source)(&format!("{at}.{key}"));
            return Err(Refused::new(
                RefusalCode::UnknownName,
                source.to_string(),
                format!("{source}: unknown property {key:?}{hint}"),
            ));
        };
        if !property.describes_workload() {
            let instead = KEYS_INSTEAD.iter().find(|(name, _)| name == key);
            let instead = instead.map_or("`dyno ycsb` has it".into(), |(_, key)| format!("use {key}"));
            let source = (wording.source)(&format!("{at}.{key}"));
            return Err(Refused::new(
                RefusalCode::BadValue,
                source.to_string(),
                format!("{source}: {key} has no effect on an experiment: {instead}"),
            ));
        }
        settings.set_property(key, value, (wording.source)(&format!("{at}.{key}")));
    }
    Ok(())
}

/// A letter, a file or a built-in name; a file whose name is a letter is named `./a`.
fn take_workload(
    text: &str,
    settings: &mut PropertySettings,
    wording: &Wording<'_>,
) -> Result<String, Refused> {
    let path = Path::new(text);
    let key = (wording.source)("workload.ycsb.workload");
    let by_letter = stock_by_letter(text);
    if by_letter.is_none() && path.is_file() {
        let entries = properties::read_file(path).map_err(|e| {
            Refused::new(RefusalCode::BadFile, key.to_string(), format!("{key}: {text}: {e}"))
        })?;
        for entry in entries {
            settings.set_property(
                &entry.key,
                entry.value,
                Source::File { path: text.to_owned(), line: entry.line },
            );
        }
        return Ok(path.file_stem().map_or("workload".into(), |stem| stem.to_string_lossy().into_owned()));
    }
    let Some(found) = by_letter.or_else(|| stock_file(text)) else {
        let names: Vec<&str> = dyno_workload::ycsb::builtin_workloads::stock_names().collect();
        let hint = suggest::hint(text, names.iter().copied());
        let known = names.join(", ");
        return Err(Refused::new(
            RefusalCode::BadValue,
            key.to_string(),
            format!(
                "{key}: {text:?} is no file and no built-in workload{hint}; expected a to f, a file, or one \
             of {known}"
            ),
        ));
    };
    let name =
        if text.len() == 1 { format!("workload{}", text.to_ascii_lowercase()) } else { text.to_owned() };
    let entries = properties::parse(found.as_bytes());
    for entry in entries.map_err(|e| Refused::new(RefusalCode::BadFile, key.to_string(), e.to_string()))? {
        settings.set_property(
            &entry.key,
            entry.value,
            Source::BuiltIn { name: name.clone(), line: entry.line },
        );
    }
    Ok(name.rsplit('/').next().unwrap_or(&name).to_owned())
}

/// The core workload's properties, with the histogram of field lengths that they name.
pub fn core_config(settings: &PropertySettings) -> Result<CoreConfig, BadSetting> {
    let blame = |bad| settings.blame_source(bad);
    let mut config = CoreConfig::from_lookup(&mut settings.property_lookup()).map_err(blame)?;
    if let Some(path) = config.needs_histogram().map(str::to_owned) {
        let text = bounded::text_file(&path, TEXT_BYTES).map_err(|e| {
            settings.refuse_value("fieldlengthhistogram", format!("a file that can be read ({e})"))
        })?;
        config.set_histogram(&text).map_err(blame)?;
    }
    Ok(config)
}

/// The verbs that operations with these weights need.
pub fn needed_verbs(p: &Proportions) -> Vec<Verb> {
    let weighted = [
        (p.read, Verb::Read),
        (p.update, Verb::Update),
        (p.insert, Verb::Insert),
        (p.scan, Verb::Scan),
        (p.read_modify_write, Verb::Update),
        (p.delete, Verb::Delete),
    ];
    weighted.into_iter().filter(|(weight, _)| *weight > 0.0).map(|(_, verb)| verb).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(properties: &str) -> Experiment {
        let text = format!("target: 'null:'\nworkload: {{ycsb: {{properties: {properties}}}}}\n");
        let tree = dyno_config::tree::Node::parse(&text, "x.yaml").unwrap();
        Experiment::from_tree(&tree).unwrap()
    }

    #[test]
    fn properties_of_ycsbs_client_are_refused_with_the_key_that_has_the_effect() {
        let refused = |properties: &str| {
            let read = YcsbRecords::read(&experiment(properties), &Wording::FILE);
            read.err().map(|refused| refused.to_string()).unwrap_or_default()
        };
        assert!(
            refused("{threadcount: 4}")
                .ends_with("threadcount has no effect on an experiment: use phases.measure.users")
        );
        assert!(refused("{target: 4}").ends_with("use phases.measure.rate"));
        for property in ["batchsize", "dyno.pipeline", "measurementtype", "totalcash", "delayedseries"] {
            assert!(refused(&format!("{{{property}: 1}}")).ends_with("`dyno ycsb` has it"), "{property}");
        }
        assert!(refused("{fieldcont: 4}").contains("did you mean fieldcount?"));
        for property in ["fieldcount", "insertstart", "operationcount", "dyno.seed"] {
            assert_eq!(refused(&format!("{{{property}: 4}}")), "", "{property}");
        }
    }

    #[test]
    fn properties_of_a_workloads_file_that_do_nothing_are_found() {
        let path = std::env::temp_dir().join(format!("dyno-idle-properties-{}", std::process::id()));
        let text =
            "workload=core\nrecordcount=5\nthreadcount=7\nexporter=x\noperationcount=9\ndyno.pipeline=2\n";
        std::fs::write(&path, text).unwrap();
        let idle = idle_properties(path.to_str().unwrap());
        std::fs::remove_file(&path).unwrap();
        let found: Vec<_> = idle.iter().map(|one| (one.name.as_str(), one.instead)).collect();
        assert_eq!(found, [("threadcount", Some("phases.measure.users")), ("dyno.pipeline", None)]);
        assert_eq!(idle[0].source.to_string(), format!("{}:3", path.display()));
        assert_eq!(idle_properties("a"), []);
    }
}
