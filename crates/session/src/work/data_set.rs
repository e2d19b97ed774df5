//! A data set from a file, as the load phase of any workload.

use crate::work::recording::{check_protocol, find_key_rules, read_cluster_rules, survey_recording};
use crate::work::{Prepared, Wording, Work, job_from_spec};
use dyno_config::experiment::{Experiment, When};
use dyno_config::settings::PropertySettings;
use dyno_db::collections::Collections;
use dyno_db::target::OpenTarget;
use dyno_engine::{Control, End, Job, Pacing, RunError, every_nth};
use dyno_recording::RecordingHeader;
use dyno_recording::replay::{DataSetContents, RecordingSurvey, Replay, ReplayOptions, find_contents};
use dyno_types::units::Thousands;
use dyno_types::{Content, RefusalCode, Refused, Verb};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Work whose data come from a recording that is a data set.
pub(super) struct LoadedWork {
    spec: Experiment,
    work: Box<dyn Work>,
    file: String,
    /// The words of the key that names the file.
    key: String,
    header: RecordingHeader,
    options: ReplayOptions,
    survey: Arc<RecordingSurvey>,
    must_load: bool,
    hint: String,
    /// The workload of the load that was handed out last: [`Work::part`] must tell it from the measured one.
    loading: Mutex<Weak<Replay>>,
}

/// Refuses a data set of which something cannot be sent.
fn refuse_holes(survey: &RecordingSurvey, file: &str, key: &str) -> Result<(), Refused> {
    let crossing: u64 = survey.crossing.values().sum();
    let crossing = (crossing > 0).then_some(("commands whose keys are in several slots", crossing));
    let left_out = survey.left_out.iter().map(|(reason, count)| (reason.as_str(), *count));
    let Some((reason, count)) = left_out.chain(crossing).next() else { return Ok(()) };
    let message = format!(
        "{key}: {file}: {} {reason} cannot be sent, and a data set with holes is none",
        Thousands(count)
    );
    Err(Refused::new(RefusalCode::BadFile, key, message))
}

/// What a target holds of a data set.
enum FoundData {
    Nothing,
    /// All of it, in words.
    All(String),
    /// A part of it, or something else, in words.
    Other(String),
}

impl LoadedWork {
    /// The experiment whose work has its data from elsewhere.
    pub(super) fn without_load(spec: &Experiment) -> Experiment {
        let mut own = spec.clone();
        own.phases.load.from = None;
        own.phases.load.when = When::Never;
        own
    }

    pub(super) fn read(
        spec: &Experiment,
        file: &str,
        wording: &Wording<'_>,
        work: Box<dyn Work>,
    ) -> Result<Self, Refused> {
        let key = (wording.source)("phases.load.from").to_string();
        // Each command as soon as the one before it is answered.
        let options = ReplayOptions { speed: None, ..ReplayOptions::default() };
        let (header, survey) = survey_recording(file, &options, &key)?;
        if !header.is_data_set() {
            let message = format!(
                "{key}: {file} is recorded traffic ({}), and no data set: `dyno record FILE` makes one of a snapshot or a dump",
                header.source
            );
            return Err(Refused::new(RefusalCode::BadFile, key, message));
        }
        if survey.cut_off {
            let message = format!("{key}: {file}: it has no end: it was cut off, and data are missing");
            return Err(Refused::new(RefusalCode::BadFile, key, message));
        }
        refuse_holes(&survey, file, &key)?;
        Ok(LoadedWork {
            spec: spec.clone(),
            work,
            file: file.to_owned(),
            key,
            header,
            options,
            survey,
            must_load: false,
            hint: format!(
                "{} sends them once more, {} takes them as they are",
                wording.reload, wording.no_load
            ),
            loading: Mutex::default(),
        })
    }

    /// Returns whether nothing is there, so that the data must be loaded.
    fn is_empty_there(&self, opened: &dyn OpenTarget, notes: &mut Vec<String>) -> Result<bool, RunError> {
        let wanted = self.read_contents()?;
        let found = match wanted.documents.is_empty() {
            true => self.find_keys(opened, &wanted)?,
            false => self.find_documents(opened, &wanted)?,
        };
        match found {
            FoundData::Nothing => Ok(true),
            FoundData::All(message) => {
                notes.push(format!("{message} ({})", self.hint));
                Ok(false)
            }
            FoundData::Other(message) => {
                let message = format!("{} holds {message}: {}", opened.redacted(), self.hint);
                Err(Refused::new(RefusalCode::OtherData, "phases.load.when", message).into())
            }
        }
    }

    fn find_keys(&self, opened: &dyn OpenTarget, wanted: &DataSetContents) -> Result<FoundData, RunError> {
        let Some(target) = opened.command_target() else { return Ok(FoundData::Nothing) };
        let looked_for = wanted.sample.len() as u64;
        let there = if looked_for == 0 { 0 } else { target.existing(&wanted.sample)? };
        let (looked_for, all) = ((looked_for, Thousands(looked_for)), Thousands(wanted.keys));
        Ok(match target.count_keys()?.unwrap_or(0) {
            0 => FoundData::Nothing,
            keys if there == looked_for.0 && there > 0 && (wanted.lasting..=wanted.keys).contains(&keys) => {
                FoundData::All(format!(
                    "the keys of {} are there already: {} of its {all} were looked for",
                    self.file, looked_for.1
                ))
            }
            keys => FoundData::Other(format!(
                "{} keys, and {} of {} keys of {} that were looked for are there",
                Thousands(keys),
                Thousands(there),
                looked_for.1,
                self.file
            )),
        })
    }

    fn find_documents(
        &self,
        opened: &dyn OpenTarget,
        wanted: &DataSetContents,
    ) -> Result<FoundData, RunError> {
        let Some(collections) = opened.collections() else { return Ok(FoundData::Nothing) };
        let (mut is_empty, mut other) = (true, None);
        for (of, count) in &wanted.documents {
            let there = collections.count_of(&of.database, &of.collection)?.unwrap_or(0);
            is_empty &= there == 0;
            if there != *count && other.is_none() {
                other = Some(format!(
                    "{} documents in {of}, and {} has {}",
                    Thousands(there),
                    self.file,
                    Thousands(*count)
                ));
            }
        }
        if is_empty {
            return Ok(self
                .find_empty_collection(collections.as_ref(), wanted)?
                .unwrap_or(FoundData::Nothing));
        }
        Ok(match other {
            Some(message) => FoundData::Other(message),
            None => FoundData::All(format!("the documents of {} are there already", self.file)),
        })
    }

    /// A collection without documents that the data set would make: it is there already, with options and indexes of its own.
    fn find_empty_collection(
        &self,
        collections: &dyn Collections,
        wanted: &DataSetContents,
    ) -> Result<Option<FoundData>, RunError> {
        for of in &wanted.made {
            let there = collections.list_collections(&of.database)?.unwrap_or_default();
            if there.contains(&of.collection) {
                return Ok(Some(FoundData::Other(format!(
                    "the empty collection {of}, whose options and indexes may be others than those of {}",
                    self.file
                ))));
            }
        }
        Ok(None)
    }

    /// Drops the collections of the data set: unlike keys, documents that are there are not replaced.
    fn remove_documents(&self, opened: &dyn OpenTarget) -> Result<(), RunError> {
        let Some(collections) = opened.collections() else { return Ok(()) };
        let wanted = self.read_contents()?;
        let all: BTreeSet<_> = wanted.documents.keys().chain(&wanted.made).collect();
        all.into_iter().try_for_each(|of| collections.remove_of(&of.database, &of.collection))
    }

    /// Takes over where the keys of its commands are, if the target is a cluster.
    fn adopt_cluster(&mut self, prepared: &Prepared) -> Result<(), Refused> {
        if let Some(rules) = &prepared.key_rules {
            self.options.cluster = Some(read_cluster_rules(&self.file, rules, false, &self.key)?);
            (_, self.survey) = survey_recording(&self.file, &self.options, &self.key)?;
            refuse_holes(&self.survey, &self.file, &self.key)?;
        }
        Ok(())
    }

    fn read_contents(&self) -> Result<DataSetContents, Refused> {
        find_contents(Path::new(&self.file), self.options.database)
            .map_err(|why| self.refused(RefusalCode::BadFile, &why.to_string()))
    }

    fn refused(&self, code: RefusalCode, why: &str) -> Refused {
        Refused::new(code, self.key.clone(), format!("{}: {}: {why}", self.key, self.file))
    }

    fn job(
        &self,
        options: &ReplayOptions,
        survey: &Arc<RecordingSurvey>,
    ) -> Result<(Job, Arc<Replay>), Refused> {
        let replay =
            Arc::new(Replay::new(Path::new(&self.file), options.clone(), &self.header, survey.clone(), None));
        let job = Job {
            pacing: Pacing::Recorded,
            end: End { operations: None, duration_ns: None },
            users: survey.users.max(1) as usize,
            pipeline: 1,
            batch: 1,
            // A large value or an index takes as long as it takes.
            timeout_ns: None,
            ..job_from_spec::load_job(&self.spec, replay.clone(), survey.commands)?
        };
        job.check()?;
        Ok((job, replay))
    }
}

impl Work for LoadedWork {
    fn name(&self) -> String {
        self.work.name()
    }

    fn content(&self) -> Arc<dyn Content> {
        self.work.content()
    }

    fn verbs(&self) -> Vec<Verb> {
        self.work.verbs()
    }

    fn database(&self) -> Option<String> {
        self.work.database()
    }

    fn prepare(&mut self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<Prepared, RunError> {
        self.options.database = check_protocol(opened, &self.header, &self.file, &self.key)?;
        let mut notes = Vec::new();
        // Before the work makes collections and indexes of its own.
        let load = match self.spec.phases.load.when {
            When::Never => false,
            When::Always => {
                // What the work refuses is refused before anything is dropped; what it makes, it makes again behind.
                self.work.prepare(opened, control)?;
                self.remove_documents(opened)?;
                true
            }
            When::Missing => self.is_empty_there(opened, &mut notes)?,
        };
        let mut ready = self.work.prepare(opened, control)?;
        (ready.database, ready.load) = (self.options.database, load);
        if let Some(rules) = find_key_rules(opened, &self.survey)? {
            ready.key_rules.get_or_insert_default().extend(rules);
        }
        self.adopt_cluster(&ready)?;
        ready.notes.splice(0..0, notes);
        Ok(ready)
    }

    fn adopt(&mut self, prepared: &Prepared) -> Result<(), Refused> {
        self.must_load = prepared.load;
        self.options.database = prepared.database;
        self.adopt_cluster(prepared)?;
        self.work.adopt(&Prepared { load: false, ..prepared.clone() })
    }

    fn load_operations(&self) -> u64 {
        self.survey.commands
    }

    fn load(&self) -> Result<Option<Job>, Refused> {
        if !self.must_load {
            return Ok(None);
        }
        let (job, replay) = self.job(&self.options, &self.survey)?;
        *self.loading.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&replay);
        Ok(Some(job))
    }

    fn measure(&self) -> Result<Job, Refused> {
        self.work.measure()
    }

    fn beside(&self) -> Result<Vec<Job>, Refused> {
        self.work.beside()
    }

    /// Of the load: every n-th connection.
    fn part(&self, job: &Job, index: usize, total: usize) -> Result<Job, Refused> {
        let loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner).as_ptr();
        let is_load = std::ptr::addr_eq(loading, Arc::as_ptr(&job.workload));
        if total == 1 || !is_load {
            return self.work.part(job, index, total);
        }
        let options = ReplayOptions { part: (index as u32, total as u32), ..self.options.clone() };
        let (_, own) = survey_recording(&self.file, &options, &self.key).map_err(|refused| {
            let message = format!(
                "{refused}; of {total} workers number {} has none of its {} connections: fewer phases.load.workers load it",
                index + 1,
                self.survey.connections
            );
            Refused::new(RefusalCode::BadValue, "phases.load.workers", message)
        })?;
        let own = Arc::new(RecordingSurvey::clone(&own).with_names_of(&self.survey));
        let (part, _) = self.job(&options, &own)?;
        Ok(Job { cores: every_nth(&job.cores, index, total), ..part })
    }

    fn rest(&self) -> Option<Job> {
        self.work.rest()
    }

    fn settings(&self) -> PropertySettings {
        self.work.settings()
    }
}
