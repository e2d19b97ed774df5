//! A data set from a file, as the load phase of any workload.

use crate::work::recording::{check_protocol, survey_recording};
use crate::work::{Prepared, Wording, Work, kinds, shape};
use dyno_config::experiment::{Experiment, When};
use dyno_config::settings::PropertySettings;
use dyno_db::target::OpenTarget;
use dyno_engine::{Control, End, Job, Pacing, RunError, every_nth};
use dyno_recording::RecordingHeader;
use dyno_recording::replay::{RecordingSurvey, Replay, ReplayOptions, find_data_keys};
use dyno_types::units::Thousands;
use dyno_types::{Content, RefusalCode, Refused, Verb};
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

impl LoadedWork {
    pub(super) fn read(spec: &Experiment, file: &str, wording: &Wording<'_>) -> Result<Self, Refused> {
        let key = (wording.source)("phases.load.from").to_string();
        // Each command as soon as the one before it is answered.
        let options = ReplayOptions { speed: None, ..ReplayOptions::default() };
        let (header, survey) = survey_recording(file, &options, &key)?;
        if !header.is_data_set() {
            let words = format!(
                "{key}: {file} is recorded traffic ({}), and no data set: `dyno record dump.rdb` makes one of a snapshot",
                header.source
            );
            return Err(Refused::new(RefusalCode::BadFile, key, words));
        }
        let mut own = spec.clone();
        own.phases.load.from = None;
        own.phases.load.when = When::Never;
        Ok(LoadedWork {
            spec: spec.clone(),
            work: kinds::read_as(&own, wording)?,
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
        let Some(target) = opened.command_target() else { return Ok(true) };
        let wanted = find_data_keys(Path::new(&self.file), self.options.database)
            .map_err(|why| self.refused(RefusalCode::BadFile, &why.to_string()))?;
        let looked_for = wanted.sample.len() as u64;
        let there = if looked_for == 0 { 0 } else { target.existing(&wanted.sample)? };
        let keys = target.count_keys()?.unwrap_or(0);
        if there == looked_for && looked_for > 0 {
            notes.push(format!(
                "the keys of {} are there already: {} of its {} were looked for ({})",
                self.file,
                Thousands(looked_for),
                Thousands(wanted.count),
                self.hint
            ));
            return Ok(false);
        }
        if keys > 0 {
            let words = format!(
                "{} holds {} keys, and {} of {} keys of {} that were looked for are there: {}",
                opened.redacted(),
                Thousands(keys),
                Thousands(there),
                Thousands(looked_for),
                self.file,
                self.hint
            );
            return Err(Refused::new(RefusalCode::OtherData, "phases.load.when", words).into());
        }
        Ok(true)
    }

    fn refused(&self, code: RefusalCode, why: &str) -> Refused {
        Refused::new(code, self.key.clone(), format!("{}: {}: {why}", self.key, self.file))
    }

    fn job(&self, options: &ReplayOptions, survey: &Arc<RecordingSurvey>) -> Result<Job, Refused> {
        let replay =
            Arc::new(Replay::new(Path::new(&self.file), options.clone(), &self.header, survey.clone()));
        *self.loading.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&replay);
        let job = Job {
            pacing: Pacing::Recorded,
            end: End { operations: None, duration_ns: None },
            users: survey.users.max(1) as usize,
            pipeline: 1,
            batch: 1,
            ..shape::load(&self.spec, replay, survey.commands)?
        };
        job.check()?;
        Ok(job)
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
        let mut ready = self.work.prepare(opened, control)?;
        ready.database = self.options.database;
        ready.load = match self.spec.phases.load.when {
            When::Never => false,
            When::Always => true,
            When::Missing => self.is_empty_there(opened, &mut ready.notes)?,
        };
        if ready.load {
            for (reason, count) in &self.survey.left_out {
                ready.notes.push(format!("not loaded: {} {reason}", Thousands(*count)));
            }
        }
        Ok(ready)
    }

    fn adopt(&mut self, prepared: &Prepared) -> Result<(), Refused> {
        self.must_load = prepared.load;
        self.options.database = prepared.database;
        self.work.adopt(&Prepared { load: false, ..prepared.clone() })
    }

    fn load_operations(&self) -> u64 {
        self.survey.commands
    }

    fn load(&self) -> Result<Option<Job>, Refused> {
        self.must_load.then(|| self.job(&self.options, &self.survey)).transpose()
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
        let (_, own) = survey_recording(&self.file, &options, &self.key)?;
        let own = Arc::new(RecordingSurvey::clone(&own).with_names_of(&self.survey));
        let part = self.job(&options, &own)?;
        Ok(Job { cores: every_nth(&job.cores, index, total), ..part })
    }

    fn rest(&self) -> Option<Job> {
        self.work.rest()
    }

    fn settings(&self) -> PropertySettings {
        self.work.settings()
    }
}
