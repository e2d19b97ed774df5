//! The log: what this process, its workers and its agents did, for a user who must understand a run afterwards.
//!
//! Every part of dyno writes records by `tracing`, at the level of phases and never of operations. [`begin`] takes them in;
//! each is masked, shown if it is wanted (`-v`, `DYNO_LOG`), and kept in `log.jsonl` of the run directory. Until there is one,
//! records wait. A worker's or an agent's wait until they are sent ([`take_waiting`]); the controller puts them in with their
//! source ([`take_record`]).

mod file;
mod filter;
mod record;

pub use filter::{FilterError, TargetFilter};
pub use record::{Level, LogLine, Record};

use dyno_types::limits::LOG_WAITING;
use file::LogFile;
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

/// Target of records that are shown without being asked for: what a run waits for.
pub const NOTICE: &str = "dyno_notice";

/// Which records are shown. These are kept, and all of dyno down to the level of information.
static WANTED: RwLock<Vec<TargetFilter>> = RwLock::new(Vec::new());

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
pub fn begin(wanted: Vec<TargetFilter>, show: Option<fn(&Record)>) {
    set_filters(wanted);
    let mut log = log();
    (log.begun, log.show) = (true, show);
    // A collector that is set already stays.
    let _ = tracing::subscriber::set_global_default(Collector);
}

/// Changes what is wanted: a worker and an agent learn it from their controller.
pub fn set_filters(wanted: Vec<TargetFilter>) {
    *WANTED.write().unwrap_or_else(PoisonError::into_inner) = wanted;
    tracing::callsite::rebuild_interest_cache();
}

/// The filters, as they were written.
pub fn written_filters() -> Vec<String> {
    let wanted = WANTED.read().unwrap_or_else(PoisonError::into_inner);
    wanted.iter().map(|filter| filter.as_written().to_owned()).collect()
}

/// Takes in a record: this process' own, or one that has come from a worker or an agent.
pub fn take_record(record: Record) {
    let (level, record) = (record.level.tracing(), record.masked());
    let show = log().show;
    if let Some(show) = show.filter(|_| record.target == NOTICE || is_wanted(&level, &record.target)) {
        show(&record);
    }
    if is_kept(&level, &record.target) {
        log().keep(record);
    }
}

/// Takes out what waits, for the controller.
pub fn take_waiting() -> Vec<Record> {
    let mut log = log();
    log.tell_lost();
    log.waiting.drain(..).collect()
}

/// Has records go to `log.jsonl` of a run directory that has just been made, those that wait first.
pub(crate) fn enter(run: &Path) -> io::Result<()> {
    log().enter(run, unix_ns())
}

/// Has records wait for the next run directory.
pub fn keep_waiting() {
    log().file = None;
}

/// The end of a run: where it has come to no run directory, what waits for one is kept in `folder`.
pub fn end_run(folder: &Path) -> io::Result<()> {
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
        // A process that has not begun, such as a test, has nothing to keep.
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
        wanted.iter().map(TargetFilter::most).chain([LevelFilter::INFO]).max()
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
        take_record(Record { level, target, fields: said.fields, ..own(said.message) });
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
