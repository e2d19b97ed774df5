//! Recorded traffic as work.

use crate::in_process_workers::OtherTarget;
use crate::work::{Prepared, Wording, Work, job_from_spec};
use dyno_config::experiment::{Experiment, RecordedPace, RecordingSource, TrafficKind};
use dyno_config::settings::PropertySettings;
use dyno_databases::registry;
use dyno_db::command_target::CommandTarget;
use dyno_db::probe::NEVER;
use dyno_db::target::OpenTarget;
use dyno_db::target_error::TargetError;
use dyno_engine::arrivals::Profile;
use dyno_engine::{Control, End, Job, Pacing, RunError, every_nth};
use dyno_recording::replay::{
    AgainstReplies, ClusterRules, DATABASES, RecordingSurvey, Replay, ReplayOnly, ReplayOptions, ReplayPace,
    ReplaySchedule, ReplaySide, survey_file,
};
use dyno_recording::{Lack, RecordedProtocol, RecordingHeader};
use dyno_types::key_rule::KeyRule;
use dyno_types::secret::mask_value;
use dyno_types::units::{Thousands, written_duration};
use dyno_types::{Content, Outcome, RefusalCode, Refused, Verb};
use std::any::Any;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;

/// Commands that are not said to read, and yet change no data.
const HARMLESS: [&str; 24] = [
    "PING",
    "ECHO",
    "SELECT",
    "HELLO",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH",
    "UNWATCH",
    "CLIENT",
    "COMMAND",
    "INFO",
    "TIME",
    "PUBLISH",
    "SPUBLISH",
    "CLUSTER",
    "READONLY",
    "READWRITE",
    "ROLE",
    "LASTSAVE",
    "PUBSUB",
    "ASKING",
    "LOLWUT",
    "RESET",
];

/// Kinds of commands that a message names.
const NAMED: usize = 3;

/// A recording and how it is replayed.
pub(super) struct RecordedWork {
    spec: Experiment,
    source: RecordingSource,
    name: String,
    header: RecordingHeader,
    options: ReplayOptions,
    survey: Arc<RecordingSurvey>,
    settings: PropertySettings,
    /// The words of the key that names the file.
    key: String,
    /// The same of the second server.
    against_key: String,
    /// The second server, once it has answered.
    against: Option<AgainstServer>,
}

/// A second server that gets the same traffic, and whose replies are compared.
struct AgainstServer {
    opened: Arc<dyn OpenTarget>,
    options: ReplayOptions,
    survey: Arc<RecordingSurvey>,
    replies: Arc<AgainstReplies>,
}

/// The rate that commands are sent at in place of their own times.
fn schedule_of(spec: &Experiment, wording: &Wording<'_>) -> Result<Option<ReplaySchedule>, Refused> {
    if spec.phases.measure.rate.is_none() {
        return Ok(None);
    }
    let place = (wording.source)("phases.measure.rate").to_string();
    let refused = |why: &str| Refused::new(RefusalCode::Conflict, place.clone(), format!("{place}: {why}"));
    let recording = spec.workload.recording.as_ref();
    if recording.is_some_and(|source| source.speed.is_some()) {
        let speed = (wording.source)("workload.recording.speed");
        return Err(refused(&format!(
            "it replaces the times of then, which {speed} scales: say one of them"
        )));
    }
    match job_from_spec::pacing(spec)? {
        Pacing::Open { profile: Profile::Constant { rate }, process } => {
            Ok(Some(ReplaySchedule { rate, process, seed: spec.run_seed() }))
        }
        _ => Err(refused("a recording is replayed at a constant rate, such as 20k, or at the times of then")),
    }
}

/// Refuses pauses behind replies where times are not those of then, or where no replies tell how long the pauses were.
fn refuse_pace(
    source: &RecordingSource,
    options: &ReplayOptions,
    header: &RecordingHeader,
    wording: &Wording<'_>,
) -> Result<(), Refused> {
    if options.pace == ReplayPace::Due {
        return Ok(());
    }
    let key = (wording.source)("workload.recording.pace").to_string();
    let refused = |code: RefusalCode, why: String| {
        Err(Refused::new(code, key.clone(), format!("{key}: think keeps the pauses of then, and {why}")))
    };
    if options.schedule.is_some() {
        let rate = (wording.source)("phases.measure.rate");
        return refused(RefusalCode::Conflict, format!("{rate} replaces them: say one of them"));
    }
    if options.speed.is_none() {
        let speed = (wording.source)("workload.recording.speed");
        return refused(RefusalCode::Conflict, format!("{speed} max leaves them out: say one of them"));
    }
    let lacks =
        [Lack::Times, Lack::Replies, Lack::ReplyTimes].into_iter().find(|lack| header.is_without(*lack));
    match lacks {
        Some(lack) => {
            let lacking = lack.lack_words();
            let why = format!("{} does not tell {lacking}: its source is {}", source.file, header.source);
            refused(RefusalCode::Unsupported, why)
        }
        None => Ok(()),
    }
}

fn options_of(source: &RecordingSource, schedule: Option<ReplaySchedule>) -> ReplayOptions {
    ReplayOptions {
        schedule,
        speed: match source.speed.as_ref().map_or(1.0, |speed| speed.0) {
            speed if speed.is_finite() => Some(speed),
            _ => None,
        },
        from_ns: source.from.as_ref().map_or(0, |span| span.0),
        to_ns: source.to.as_ref().map_or(u64::MAX, |span| span.0),
        // Which commands only read is known when the server has been asked.
        only: None,
        pace: if source.pace == Some(RecordedPace::Think) { ReplayPace::Think } else { ReplayPace::Due },
        include: source.include.iter().map(|name| name.to_uppercase()).collect(),
        reads: Vec::new(),
        part: (0, 1),
        database: 0,
        replay_number: 0,
        scale_ttl: source.scale_ttl,
        cluster: None,
    }
}

/// Looks at a recording.
pub(super) fn survey_recording(
    file: &str,
    options: &ReplayOptions,
    key: &str,
) -> Result<(RecordingHeader, Arc<RecordingSurvey>), Refused> {
    let refused =
        |why: String| Refused::new(RefusalCode::BadFile, key.to_owned(), format!("{key}: {file}: {why}"));
    let found = survey_file(Path::new(file), options);
    let (header, survey) = found.map_err(|error| refused(error.to_string()))?;
    Ok((header, Arc::new(survey)))
}

/// The number of the database in which connections to a target begin, which must speak the recording's protocol.
pub(super) fn check_protocol(
    opened: &dyn OpenTarget,
    header: &RecordingHeader,
    file: &str,
    key: &str,
) -> Result<u32, Refused> {
    let protocol = header.protocol.protocol_name();
    let spoken = opened.recorded_protocol();
    let Some((_, database)) = spoken.filter(|(name, _)| *name == protocol) else {
        let other = match spoken {
            Some((name, _)) => format!("{} speaks {name}", opened.redacted()),
            None => format!("{} does not", opened.redacted()),
        };
        let message = format!(
            "{key}: {file} is a recording of {protocol}: expected a target that speaks it, and {other}"
        );
        return Err(Refused::new(RefusalCode::Unsupported, key, message));
    };
    Ok(database)
}

/// Where the keys of a recording's commands are, if the target is a cluster.
pub(super) fn find_key_rules(
    opened: &dyn OpenTarget,
    survey: &RecordingSurvey,
) -> Result<Option<BTreeMap<String, KeyRule>>, RunError> {
    let Some(target) = opened.command_target().filter(|target| target.slot(b"").is_some()) else {
        return Ok(None);
    };
    let names: Vec<String> = survey.examples.keys().cloned().collect();
    target.key_rules(&names).map(Some)
}

/// Where a recording's commands go in a cluster, by where their keys are.
pub(super) fn read_cluster_rules(
    file: &str,
    rules: &BTreeMap<String, KeyRule>,
    split: bool,
    key: &str,
) -> Result<Arc<ClusterRules>, Refused> {
    let found = ClusterRules::read_file(Path::new(file), rules.clone(), split);
    found.map(Arc::new).map_err(|error| {
        Refused::new(RefusalCode::BadFile, key.to_owned(), format!("{key}: {file}: {error}"))
    })
}

impl RecordedWork {
    pub(super) fn read(
        spec: &Experiment,
        source: &RecordingSource,
        wording: &Wording<'_>,
    ) -> Result<Self, Refused> {
        let key = (wording.source)("workload.recording.file").to_string();
        let mut options = options_of(source, schedule_of(spec, wording)?);
        if options.from_ns >= options.to_ns {
            let key = (wording.source)("workload.recording.to").to_string();
            let message = format!("{key}: expected a time after {}", written_duration(options.from_ns));
            return Err(Refused::new(RefusalCode::BadValue, key, message));
        }
        if spec.phases.measure.operations.is_some() {
            let key = (wording.source)("phases.measure.operations").to_string();
            let message =
                format!("{key}: a recording has its own number of commands: use a duration, or a part of it");
            return Err(Refused::new(RefusalCode::Conflict, key, message));
        }
        let (header, survey) = survey_recording(&source.file, &options, &key)?;
        refuse_pace(source, &options, &header, wording)?;
        if source.scale_ttl && (options.schedule.is_some() || options.speed.is_none()) {
            let key = (wording.source)("workload.recording.scale_ttl").to_string();
            let message =
                format!("{key}: there is no speed by which times to live could be divided: say --speed N");
            return Err(Refused::new(RefusalCode::Conflict, key, message));
        }
        if source.scale_ttl && header.protocol != RecordedProtocol::Redis {
            let key = (wording.source)("workload.recording.scale_ttl").to_string();
            let protocol = header.protocol.protocol_name();
            let message = format!("{key}: only Redis' times to live are divided, not those of {protocol}");
            return Err(Refused::new(RefusalCode::Unsupported, key, message));
        }
        if header.is_without(Lack::Times) && options.schedule.is_none() {
            // All commands would be due at once.
            options.speed = None;
        }
        let path = Path::new(&source.file);
        let name = path.file_stem().map_or("recording".into(), |stem| stem.to_string_lossy().into_owned());
        let mut settings = PropertySettings::new();
        settings.set_property("dyno.recording", &source.file, (wording.source)("workload.recording.file"));
        let speed = source.speed.as_ref().map_or("1".into(), ToString::to_string);
        settings.set_property("dyno.recording.speed", speed, (wording.source)("workload.recording.speed"));
        Ok(RecordedWork {
            spec: spec.clone(),
            source: source.clone(),
            name,
            header,
            options,
            survey,
            settings,
            key,
            against_key: (wording.source)("workload.recording.against").to_string(),
            against: None,
        })
    }

    /// Opens the second server, and looks at it as at the measured one.
    fn open_against(&mut self, uri: &str, ready: &mut Prepared) -> Result<(), RunError> {
        let key = self.against_key.clone();
        let refused = |code, why: String| {
            Refused::new(code, key.clone(), format!("{key}: {}: {why}", mask_value("target", uri)))
        };
        if self.spec.client.workers > 1 {
            let why = "replies are compared within one worker: expected client.workers: 1".into();
            return Err(refused(RefusalCode::Conflict, why).into());
        }
        let target = registry::parse(uri).map_err(|why| refused(RefusalCode::BadValue, why.to_string()))?;
        let opened = target.open(self.content(), NEVER).map_err(|error| match error {
            TargetError::Refused(why) => RunError::from(why),
            TargetError::Unreachable(message) => {
                RunError::Unreachable { outcome: Outcome::Unreachable, message: format!("{key}: {message}") }
            }
        })?;
        let opened: Arc<dyn OpenTarget> = Arc::from(opened);
        let database = check_protocol(opened.as_ref(), &self.header, &self.source.file, &self.key)?;
        ready.notes.extend(opened.check_replay(self.survey.numbered)?);
        let mut options = ReplayOptions { database, cluster: None, ..self.options.clone() };
        if let Some(rules) = find_key_rules(opened.as_ref(), &self.survey)? {
            let split = self.source.split;
            options.cluster = Some(read_cluster_rules(&self.source.file, &rules, split, &self.key)?);
        }
        let (_, survey) = survey_recording(&self.source.file, &options, &self.key)?;
        match (self.header.protocol, opened.command_target()) {
            (RecordedProtocol::Mongodb, _) => self.refuse_writes_to_documents(opened.as_ref())?,
            (RecordedProtocol::Memcached, _) => self.refuse_writes_to_items(opened.as_ref())?,
            (RecordedProtocol::Redis, Some(target)) => {
                self.refuse_writes_to_keys(opened.as_ref(), target.as_ref(), database)?;
            }
            (RecordedProtocol::Redis, None) => {}
        }
        ready.notes.push(format!("replies are compared with those of {}", opened.redacted()));
        self.against = Some(AgainstServer { opened, options, survey, replies: Arc::default() });
        Ok(())
    }

    /// Asks the server what the commands do. Those that it lacks are sent all the same: that is an answer, too.
    fn describe(&self, target: &dyn CommandTarget, notes: &mut Vec<String>) -> Result<Vec<String>, RunError> {
        let mut reading = Vec::new();
        let mut lacking = Vec::new();
        for (name, words) in &self.survey.examples {
            match target.describe(std::slice::from_ref(words)) {
                Ok(facts) if facts.iter().all(|facts| facts.reads) => reading.push(name.clone()),
                Ok(_) => {}
                Err((_, error @ RunError::Unreachable { .. })) => return Err(error),
                Err((_, error)) => lacking.push(error.to_string()),
            }
        }
        for why in lacking.iter().take(NAMED) {
            notes.push(format!("{why}: it is sent as it was"));
        }
        Ok(reading)
    }

    /// Refuses to write to a server that holds data, unless it is named.
    fn refuse_writes_to_keys(
        &self,
        opened: &dyn OpenTarget,
        target: &dyn CommandTarget,
        database: u32,
    ) -> Result<(), RunError> {
        let harmless = |name: &String| HARMLESS.contains(&name.as_str()) || self.options.reads.contains(name);
        let writing: Vec<String> = self
            .survey
            .names
            .iter()
            .filter(|(name, _)| !harmless(name))
            .map(|(name, count)| format!("{} {name}", Thousands(*count)))
            .collect();
        if writing.is_empty() || self.options.only == Some(ReplayOnly::Reads) {
            return Ok(());
        }
        let Some(keys) = target.count_keys()?.filter(|keys| *keys > 0) else { return Ok(()) };
        let uri = opened.redacted();
        let mut databases = self.survey.databases.clone();
        databases.insert(database);
        let named: Vec<String> = databases.iter().map(u32::to_string).collect();
        let held = format!("{uri} holds {} keys", Thousands(keys));
        self.refuse_writes(opened, &held, &named.join(","), &writing)
    }

    /// The same for a server that holds documents: it must have none in the databases that the recording names.
    fn refuse_writes_to_documents(&self, opened: &dyn OpenTarget) -> Result<(), RunError> {
        let survey = &self.survey;
        if survey.writes.is_empty() {
            return Ok(());
        }
        let key = &self.key;
        if survey.database_names.len() > DATABASES {
            let message = format!("{key}: it names more than {} databases", Thousands(DATABASES as u64));
            return Err(Refused::new(RefusalCode::Unsupported, key.clone(), message).into());
        }
        let Some(collections) = opened.collections() else { return Ok(()) };
        let mut held = Vec::new();
        for database in &survey.database_names {
            if ["admin", "config", "local"].contains(&database.as_str()) {
                held.push(format!("{database}, from which commands reach every database"));
                continue;
            }
            let found = collections.list_collections(database)?.unwrap_or_default();
            held.extend(found.iter().map(|name| format!("{database}.{name}")));
        }
        if held.is_empty() {
            return Ok(());
        }
        let writing = self.shown_writes();
        let more = held.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = held[..held.len().min(NAMED)].join(", ");
        let held = format!("{} holds {shown}{more}", opened.redacted());
        let names: Vec<&str> = survey.database_names.iter().map(String::as_str).collect();
        self.refuse_writes(opened, &held, &names.join(","), &writing)
    }

    /// The same for a server of items without databases.
    fn refuse_writes_to_items(&self, opened: &dyn OpenTarget) -> Result<(), RunError> {
        let Some(target) = opened.command_target().filter(|_| !self.survey.writes.is_empty()) else {
            return Ok(());
        };
        let Some(items) = target.count_keys()?.filter(|items| *items > 0) else { return Ok(()) };
        let held = format!("{} holds {} items", opened.redacted(), Thousands(items));
        self.refuse_writes(opened, &held, "", &self.shown_writes())
    }

    /// The commands that write, the most frequent first.
    fn shown_writes(&self) -> Vec<String> {
        let mut writing: Vec<(&String, &u64)> = self.survey.writes.iter().collect();
        writing.sort_by_key(|(name, count)| (Reverse(**count), *name));
        writing.iter().map(|(name, count)| format!("{} {name}", Thousands(**count))).collect()
    }

    /// Refuses to write, unless the server and its databases, where it has any, are named; `held`: the words for what it holds.
    fn refuse_writes(
        &self,
        opened: &dyn OpenTarget,
        held: &str,
        databases: &str,
        writing: &[String],
    ) -> Result<(), RunError> {
        let node = opened.nodes().first().map_or(String::new(), ToString::to_string);
        let server = if databases.is_empty() { node } else { format!("{node}/{databases}") };
        let named = self.source.yes_write.as_deref().unwrap_or_default();
        if named.split_whitespace().any(|named| named == server) {
            return Ok(());
        }
        let more = writing.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} other commands") } else { String::new() };
        let shown = writing[..writing.len().min(NAMED)].join(", ");
        let message = format!(
            "{held}, and the recording may write to them ({shown}{more}): `--yes-write {server}` sends it there all the same, \
             `--only reads` leaves such commands out"
        );
        Err(Refused::new(RefusalCode::OtherData, "workload.recording.yes_write", message).into())
    }

    /// Looks at a target of keys before the load.
    fn prepare_keys(&mut self, opened: &dyn OpenTarget, ready: &mut Prepared) -> Result<(), RunError> {
        let Some(target) = opened.command_target() else {
            debug_assert!(false, "what speaks the protocol takes commands");
            return self.adopt(ready).map_err(RunError::from);
        };
        ready.reading = self.describe(target.as_ref(), &mut ready.notes)?;
        ready.key_rules = find_key_rules(opened, &self.survey)?;
        if self.source.split && ready.key_rules.is_none() {
            ready.notes.push(format!("{} is no cluster: no command is split", opened.redacted()));
        }
        self.adopt(ready)?;
        self.refuse_writes_to_keys(opened, target.as_ref(), self.options.database)
    }

    fn replay(&self, options: &ReplayOptions, survey: &Arc<RecordingSurvey>) -> Arc<Replay> {
        let against = self.against.as_ref();
        let against = against.map(|other| (ReplaySide::Measured, other.replies.clone()));
        self.replay_of(options, survey, against)
    }

    fn replay_of(
        &self,
        options: &ReplayOptions,
        survey: &Arc<RecordingSurvey>,
        against: Option<(ReplaySide, Arc<AgainstReplies>)>,
    ) -> Arc<Replay> {
        let path = Path::new(&self.source.file);
        Arc::new(Replay::new(path, options.clone(), &self.header, survey.clone(), against))
    }

    fn job(&self, replay: Arc<Replay>, survey: &RecordingSurvey) -> Result<Job, Refused> {
        let asked = &self.spec.phases.measure;
        let warmup_ns = match (&self.spec.phases.warmup, &asked.warmup) {
            (Some(own), _) => own.duration.0,
            (None, Some(span)) => span.0,
            (None, None) => 0,
        };
        // What waits for data may end later than then: the run ends with its last command.
        let length_ns = match survey.waits.is_empty() {
            true => self.options.replayed_ns(survey.length_ns, survey.commands),
            false => None,
        };
        let duration_ns = match (&asked.duration, length_ns) {
            (Some(span), Some(length)) => Some(span.0.min(length.saturating_sub(warmup_ns).max(1))),
            (Some(span), None) => Some(span.0),
            (None, length) => length.map(|length| length.saturating_sub(warmup_ns).max(1)),
        };
        let users = survey.users.max(1) as usize;
        let job = Job {
            pacing: Pacing::Recorded,
            end: End { operations: None, duration_ns },
            warmup_ns,
            warm_users: None,
            users,
            pipeline: 1,
            ..job_from_spec::measure_job(&self.spec, replay)?
        };
        job.check()?;
        Ok(job)
    }
}

impl Work for RecordedWork {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn content(&self) -> Arc<dyn Content> {
        use dyno_workload::Workload as _;
        self.replay(&self.options, &self.survey).content()
    }

    fn verbs(&self) -> Vec<Verb> {
        vec![Verb::Recorded]
    }

    fn prepare(&mut self, opened: &dyn OpenTarget, _control: &Arc<Control>) -> Result<Prepared, RunError> {
        let database = check_protocol(opened, &self.header, &self.source.file, &self.key)?;
        let replay_number = RandomState::new().hash_one(0);
        let mut ready = Prepared { database, replay_number, ..Prepared::default() };
        ready.notes = opened.check_replay(self.survey.numbered)?;
        match self.header.protocol {
            RecordedProtocol::Mongodb => {
                self.adopt(&ready)?;
                self.refuse_writes_to_documents(opened)?;
            }
            RecordedProtocol::Memcached => {
                self.adopt(&ready)?;
                self.refuse_writes_to_items(opened)?;
            }
            RecordedProtocol::Redis => self.prepare_keys(opened, &mut ready)?,
        }
        if let Some(uri) = self.source.against.clone() {
            self.open_against(&uri, &mut ready)?;
        }
        let survey = &self.survey;
        let seconds = survey.length_ns as f64 / 1e9;
        ready.notes.push(format!(
            "{}: {} commands of {} connections in {seconds:.1} s",
            self.source.file,
            Thousands(survey.commands),
            Thousands(u64::from(survey.connections))
        ));
        if survey.users < survey.connections {
            ready.notes.push(format!(
                "{} users replay them, one connection after the other",
                Thousands(u64::from(survey.users))
            ));
        }
        for (reason, count) in &survey.left_out {
            ready.notes.push(format!("not sent: {} {reason}", Thousands(*count)));
        }
        let crossing: u64 = survey.crossing.values().sum();
        if crossing > 0 {
            let share = crossing as f64 * 100.0 / (survey.commands + crossing) as f64;
            ready.notes.push(format!(
                "not sent: {} commands ({share:.1} %) whose keys are in several slots of the cluster",
                Thousands(crossing)
            ));
        }
        if survey.cut_off {
            ready.notes.push("the file has no end: it was cut off, and is replayed as far as it goes".into());
        }
        if survey.times_to_live > 0 && !self.options.scale_ttl {
            ready.notes.push(format!(
                "{} commands have relative times to live, which are as they were: more or less expires than then (--scale-ttl \
                 divides them by the speed)",
                Thousands(survey.times_to_live)
            ));
        }
        if self.options.speed.is_none() && self.header.is_without(Lack::Times) {
            ready.notes.push(
                "it has no times: each command is sent as soon as the one before it is answered".into(),
            );
        }
        if !self.header.lacks.is_empty() {
            let lacks: Vec<&str> = self.header.lacks.iter().map(|lack| lack.lack_words()).collect();
            ready.notes.push(format!(
                "its source ({}) does not tell {}",
                self.header.source,
                lacks.join(", ")
            ));
        }
        Ok(ready)
    }

    fn adopt(&mut self, prepared: &Prepared) -> Result<(), Refused> {
        self.options.reads.clone_from(&prepared.reading);
        self.options.database = prepared.database;
        self.options.replay_number = prepared.replay_number;
        self.options.only = self.source.only.map(|only| match only {
            TrafficKind::Reads => ReplayOnly::Reads,
            TrafficKind::Writes => ReplayOnly::Writes,
        });
        if let Some(rules) = &prepared.key_rules {
            let rules = read_cluster_rules(&self.source.file, rules, self.source.split, &self.key)?;
            self.options.cluster = Some(rules);
        }
        if self.options.only.is_some() || self.options.cluster.is_some() {
            (_, self.survey) = survey_recording(&self.source.file, &self.options, &self.key)?;
        }
        Ok(())
    }

    fn load(&self) -> Result<Option<Job>, Refused> {
        Ok(None)
    }

    fn measure(&self) -> Result<Job, Refused> {
        self.job(self.replay(&self.options, &self.survey), &self.survey)
    }

    /// The same on the second server, whose replies are compared.
    fn beside(&self) -> Result<Vec<Job>, Refused> {
        let Some(other) = &self.against else { return Ok(Vec::new()) };
        let side = (ReplaySide::Other, other.replies.clone());
        let replay = self.replay_of(&other.options, &other.survey, Some(side));
        let job = self.job(replay, &other.survey)?;
        let elsewhere = Some(Arc::new(OtherTarget(other.opened.clone())) as Arc<dyn Any + Send + Sync>);
        // The measured one has its cores to itself.
        Ok(vec![Job { elsewhere, cores: vec![None], ..job }])
    }

    /// Every n-th connection.
    fn part(&self, job: &Job, index: usize, total: usize) -> Result<Job, Refused> {
        if total == 1 {
            return Ok(job.clone());
        }
        let options = ReplayOptions { part: (index as u32, total as u32), ..self.options.clone() };
        let (_, own) = survey_recording(&self.source.file, &options, &self.key).map_err(|refused| {
            let connections = self.survey.connections;
            let message = format!(
                "{refused}; of {total} workers number {} has none of its {connections} connections",
                index + 1
            );
            Refused::new(RefusalCode::BadValue, "client.workers", message)
        })?;
        let own = Arc::new(RecordingSurvey::clone(&own).with_names_of(&self.survey));
        let part = self.job(self.replay(&options, &own), &own)?;
        Ok(Job { end: job.end, cores: every_nth(&job.cores, index, total), ..part })
    }

    fn settings(&self) -> PropertySettings {
        self.settings.clone()
    }
}
