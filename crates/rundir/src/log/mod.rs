//! The log: what this process, its workers and its agents did, for whoever must understand a run afterwards.
//!
//! Every part of dyno writes records by `tracing`, at the level of phases and never of operations. [`begin`] takes them in;
//! each is masked, shown if it is wanted (`-v`, `DYNO_LOG`), and kept in `log.jsonl` of the run directory. Until there is one,
//! records wait. A worker's or an agent's wait until they are sent ([`waiting`]); the controller puts them in with their
//! source ([`take`]).

mod file;
mod filter;

pub use filter::{Filter, FilterError};

use dyno_types::limits::{LOG_TEXT_BYTES, LOG_WAITING};
use dyno_types::secret::{mask_text, mask_value};
use file::LogFile;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

/// The source of this process' own records.
pub const CONTROLLER: &str = "controller";

/// Severity of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Something has failed.
    Error,
    /// Something is not as it should be, and the run goes on.
    Warn,
    /// A step of a run.
    #[default]
    Info,
    /// Details that help to understand a step.
    Debug,
    /// Everything else.
    Trace,
}

impl Level {
    /// Name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }

    fn of(level: &tracing::Level) -> Level {
        match *level {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warn,
            tracing::Level::INFO => Level::Info,
            tracing::Level::DEBUG => Level::Debug,
            tracing::Level::TRACE => Level::Trace,
        }
    }

    fn tracing(self) -> tracing::Level {
        match self {
            Level::Error => tracing::Level::ERROR,
            Level::Warn => tracing::Level::WARN,
            Level::Info => tracing::Level::INFO,
            Level::Debug => tracing::Level::DEBUG,
            Level::Trace => tracing::Level::TRACE,
        }
    }
}

/// Something that has happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When, Unix nanoseconds.
    pub unix_ns: u64,
    /// Severity.
    pub level: Level,
    /// Whose it is: `controller`, `worker-1`, `host-NAME`, as monitors and messages name them.
    pub source: String,
    /// The part of dyno that says it.
    pub target: String,
    /// What.
    pub message: String,
    /// Details by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
}

/// A line of `log.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// Time since the run directory was made, nanoseconds; negative before.
    pub t_ns: i64,
    /// The record.
    #[serde(flatten)]
    pub record: Record,
}

impl Record {
    /// Without secrets, and with texts of a limited length.
    fn masked(mut self) -> Record {
        self.message = shortened(mask_text(&self.message));
        for (name, value) in &mut self.fields {
            if let Value::String(text) = value {
                *text = shortened(mask_value(name, text));
            }
        }
        self
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > LOG_TEXT_BYTES {
        let end = (0..=LOG_TEXT_BYTES).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

/// As a line for people, without the time.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { level, source, target, message, .. } = self;
        let room = target.split("::").next().unwrap_or_default().trim_start_matches("dyno_");
        write!(f, "{:5} {source} {room}: {}", level.name(), message.replace('\n', "\\n"))?;
        for (name, value) in &self.fields {
            match value {
                Value::String(text)
                    if !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '"') =>
                {
                    write!(f, " {name}={text}")?;
                }
                value => write!(f, " {name}={value}")?,
            }
        }
        Ok(())
    }
}

/// Which records are shown. These are kept, and all of dyno down to the level of information.
static WANTED: RwLock<Vec<Filter>> = RwLock::new(Vec::new());

static LOG: Mutex<Log> =
    Mutex::new(Log { begun: false, show: None, waiting: VecDeque::new(), lost: 0, file: None });

struct Log {
    begun: bool,
    show: Option<fn(&Record)>,
    waiting: VecDeque<Record>,
    /// Records that could not wait.
    lost: u64,
    file: Option<LogFile>,
}

fn log() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_wanted(level: &tracing::Level, target: &str) -> bool {
    let wanted = WANTED.read().unwrap_or_else(PoisonError::into_inner);
    wanted.iter().any(|filter| filter.allows(level, target))
}

fn is_kept(level: &tracing::Level, target: &str) -> bool {
    *level <= tracing::Level::INFO && target.starts_with("dyno") || is_wanted(level, target)
}

/// Takes in this process' records from now on; those that a filter wants are shown.
pub fn begin(wanted: Vec<Filter>, show: Option<fn(&Record)>) {
    want(wanted);
    let mut log = log();
    (log.begun, log.show) = (true, show);
    // Whoever has begun already goes on.
    let _ = tracing::subscriber::set_global_default(Collector);
}

/// Changes what is wanted: a worker and an agent learn it from their controller.
pub fn want(wanted: Vec<Filter>) {
    *WANTED.write().unwrap_or_else(PoisonError::into_inner) = wanted;
    tracing::callsite::rebuild_interest_cache();
}

/// The filters, as they were written.
pub fn wanted() -> Vec<String> {
    let wanted = WANTED.read().unwrap_or_else(PoisonError::into_inner);
    wanted.iter().map(|filter| filter.text().to_owned()).collect()
}

/// Takes in a record: this process' own, or one that has come from a worker or an agent.
pub fn take(record: Record) {
    let (level, record) = (record.level.tracing(), record.masked());
    let show = log().show;
    if let Some(show) = show.filter(|_| is_wanted(&level, &record.target)) {
        show(&record);
    }
    if is_kept(&level, &record.target) {
        log().keep(record);
    }
}

/// Takes out what waits, for the controller.
pub fn waiting() -> Vec<Record> {
    let mut log = log();
    log.tell_lost();
    log.waiting.drain(..).collect()
}

/// Has records go to `log.jsonl` of a run directory that has just been made, those that wait first.
pub(crate) fn enter(run: &Path) -> io::Result<()> {
    log().enter(run, unix_ns())
}

/// Has records wait for the next run directory.
pub fn leave() {
    log().file = None;
}

/// The end of a run: where it has come to no run directory, what waits for one is kept in `folder`.
pub fn rest(folder: &Path) -> io::Result<()> {
    let mut log = log();
    let begun = log.waiting.front().map(|first| first.unix_ns);
    match (&log.file, begun) {
        (None, Some(begun_ns)) => std::fs::create_dir_all(folder).and_then(|()| log.enter(folder, begun_ns)),
        _ => Ok(()),
    }
}

impl Log {
    fn keep(&mut self, record: Record) {
        match &mut self.file {
            Some(file) => file.add(&record),
            None if self.waiting.len() < LOG_WAITING => self.waiting.push_back(record),
            None => self.lost += 1,
        }
    }

    fn tell_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            let message = format!("{lost} further records could not be kept: {LOG_WAITING} waited");
            self.waiting.push_back(Record { level: Level::Warn, ..own(message) });
        }
    }

    fn enter(&mut self, folder: &Path, epoch_ns: u64) -> io::Result<()> {
        // Who has not begun, such as a test, has nothing to keep.
        if !self.begun {
            return Ok(());
        }
        self.file = None;
        let mut file = LogFile::open(folder, epoch_ns)?;
        self.tell_lost();
        self.waiting.drain(..).for_each(|record| file.add(&record));
        self.file = Some(file);
        Ok(())
    }
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

fn own(message: String) -> Record {
    Record {
        unix_ns: unix_ns(),
        level: Level::Info,
        source: CONTROLLER.into(),
        target: env!("CARGO_CRATE_NAME").into(),
        message,
        fields: Map::new(),
    }
}

/// Receiver of all records of `tracing`. Spans have no place in it: a record says all there is.
struct Collector;

impl Subscriber for Collector {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // Filters change when a controller says so.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && is_kept(metadata.level(), metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let wanted = WANTED.read().unwrap_or_else(PoisonError::into_inner);
        wanted.iter().map(Filter::most).chain([LevelFilter::INFO]).max()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut said = EventFields::default();
        event.record(&mut said);
        let (level, target) = (Level::of(metadata.level()), metadata.target().to_owned());
        take(Record { level, target, fields: said.fields, ..own(said.message) });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Message and fields of an event.
#[derive(Default)]
struct EventFields {
    message: String,
    fields: Map<String, Value>,
}

impl EventFields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.put(field, format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = value.to_owned();
        } else {
            self.put(field, value);
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_texts_are_short() {
        let mut fields = Map::new();
        fields.insert("uri".into(), "redis://me:hunter22@h".into());
        fields.insert("requirepass".into(), "x".into());
        fields.insert("long".into(), "ü".repeat(LOG_TEXT_BYTES).into());
        let message = "opened mongodb://a:s3cret@h/db".to_owned();
        let masked = Record { message, fields, ..Record::default() }.masked();
        assert_eq!(masked.message, "opened mongodb://a:***@h/db");
        assert_eq!(
            (&masked.fields["uri"], &masked.fields["requirepass"]),
            (&"redis://me:***@h".into(), &"***".into())
        );
        assert!(masked.fields["long"].as_str().unwrap().len() < LOG_TEXT_BYTES + 4);
    }

    #[test]
    fn a_line_for_people_is_one_line() {
        let mut fields = Map::new();
        fields.insert("words".into(), "two words".into());
        fields.insert("n".into(), 3.into());
        fields.insert("uri".into(), "null:".into());
        let (target, source) = ("dyno_remote::far".to_owned(), "worker-0".to_owned());
        let record = Record { source, target, message: "a\nb".into(), fields, ..Record::default() };
        assert_eq!(record.to_string(), "info  worker-0 remote: a\\nb words=\"two words\" n=3 uri=null:");
    }
}
