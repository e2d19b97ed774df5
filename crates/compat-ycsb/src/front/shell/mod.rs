//! `dyno ycsb shell BINDING`: reads commands from standard input, one a line, and executes each on the
//! database.
//!
//! Every command is a run of one operation, so that whatever a load can be applied to (clusters, TLS, stores)
//! can be talked to as well. Commands and answers are those of YCSB's `CommandLine`; its faults are mended:
//! the end of the input ends the shell, `table` takes effect, a value may hold `=` or be empty, and what a
//! store has buffered is written before the shell ends.

mod content;

use super::ycsb_failure::YcsbFailure;
use crate::bindings::BindingTarget;
use crate::bindings::{resolve, take_environment};
use crate::plan::YcsbCommand;
use crate::report::return_code::ReturnCode;
use content::{Once, ShellContent, Typed};
use dyno_config::settings::BadSetting;
use dyno_config::settings::PropertySettings;
use dyno_db::target::OpenTarget;
use dyno_engine::{Control, End, Job, RunError};
use dyno_frontend::conductor::warn_of_missing;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::signals;
use dyno_frontend::terminal;
use dyno_record::Scale;
use dyno_types::limits::SCAN_RECORDS;
use dyno_types::{Content, Outcome, Verb};
use dyno_workload::ycsb::properties::PropertyReader;
use std::io::{BufRead, Write, stdin};
use std::sync::{Arc, Mutex, PoisonError};

const HELP: &str = "\
Commands:
  read key [field1 field2 ...] - Read a record
  scan key recordcount [field1 field2 ...] - Scan starting at key
  insert key name1=value1 [name2=value2 ...] - Insert a new record
  update key name1=value1 [name2=value2 ...] - Update a record
  delete key - Delete a record
  table [tablename] - Get or [set] the name of the table
  quit - Quit
";

/// Line between the records of a scan.
const RULE: &str = "--------------------------------\n";

/// A shell that is connected.
struct YcsbShell {
    target: BindingTarget,
    /// Names of a record's fields.
    layout: Vec<Vec<u8>>,
    content: Arc<ShellContent>,
    /// `None` only while a table is changed.
    opened: Option<Box<dyn OpenTarget>>,
    lines: Arc<Mutex<terminal::Results>>,
    timeout_ns: Option<u64>,
}

/// The command.
pub(super) fn shell(command: YcsbCommand) -> Result<Exit, YcsbFailure> {
    let YcsbCommand { binding, mut settings, notes, extras, .. } = command;
    take_environment(&mut settings, |variable| std::env::var(variable).ok());
    let bound = resolve(binding, &settings)?;
    if !extras.quiet {
        notes.iter().chain(&bound.notes).for_each(|note| terminal::warn(note));
    }
    let (table, layout) = layout(&settings)?;
    terminal::out("YCSB Command Line client\nType \"help\" for command line help\n");
    terminal::out("Start with \"-help\" for usage info\n");
    let mut shell = YcsbShell::open(bound.target, &table, layout)?;
    terminal::out("Connected.\n");
    let mut lines = stdin().lock().lines();
    loop {
        terminal::out("> ");
        let Some(line) = lines.next() else {
            terminal::out("\n");
            return Ok(Exit::Ok);
        };
        let line = line.map_err(|e| Failure::usage(format!("standard input: {e}")))?;
        if !shell.line(&line)? {
            return Ok(Exit::Ok);
        }
    }
}

/// The table and the names of a record's fields.
fn layout(settings: &PropertySettings) -> Result<(String, Vec<Vec<u8>>), BadSetting> {
    let mut lookup = settings.property_lookup();
    let mut reader = PropertyReader::new(&mut lookup);
    let table = reader.read_text("table", "usertable");
    let prefix = reader.read_text("fieldnameprefix", "field");
    let count =
        reader.count("fieldcount", 10, 1..=u64::from(u16::MAX)).map_err(|bad| settings.blame_source(bad))?;
    Ok((table, (0..count).map(|number| format!("{prefix}{number}").into_bytes()).collect()))
}

/// Why a line is not done.
#[derive(Debug, thiserror::Error)]
enum ShellLineError {
    #[error("syntax is \"{0}\"")]
    Syntax(String),
    #[error("unknown command \"{0}\"; \"help\" lists them")]
    Unknown(String),
    #[error("{0:?}: expected a number of records, 1 to {SCAN_RECORDS}")]
    Limit(String),
    #[error("expected name=value after the key")]
    Pairs,
    /// The table before could not be had again.
    #[error("not connected")]
    Unconnected,
    /// Another table cannot be had.
    #[error(transparent)]
    Table(Failure),
    /// The operation could not be tried.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl YcsbShell {
    fn open(target: BindingTarget, table: &str, layout: Vec<Vec<u8>>) -> Result<Self, Failure> {
        let content = Arc::new(ShellContent::new(table, &layout));
        let lines = Arc::new(Mutex::new(terminal::Results::default()));
        let shared: Arc<dyn Content> = content.clone();
        let opened = target.open(&shared, lines.clone(), &signals::interrupted)?.1;
        warn_of_missing(opened.as_ref());
        let opened = Some(opened);
        let timeout_ns = target.timeout_ns(None);
        Ok(YcsbShell { target, layout, content, opened, lines, timeout_ns })
    }

    /// Carries out one line; false if it asks for the end.
    fn line(&mut self, line: &str) -> Result<bool, Failure> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let syntax = |form: &str| ShellLineError::Syntax(form.to_owned());
        let answer = match words[..] {
            [] => return Ok(true),
            ["quit"] => return Ok(false),
            ["help"] => {
                terminal::out(HELP);
                return Ok(true);
            }
            ["table"] => Ok(format!("Using table \"{}\"\n", self.content.table())),
            ["table", name] => self.use_table(name)?,
            ["table", ..] => Err(syntax("table tablename")),
            ["read", key, ref fields @ ..] => self.read(key, fields),
            ["read"] => Err(syntax("read keyname [field1 field2 ...]")),
            ["scan", key, count, ref fields @ ..] => self.scan(key, count, fields),
            ["scan", ..] => Err(syntax("scan keyname scanlength [field1 field2 ...]")),
            ["insert", key, ref pairs @ ..] if !pairs.is_empty() => self.write(Verb::Insert, key, pairs),
            ["update", key, ref pairs @ ..] if !pairs.is_empty() => self.write(Verb::Update, key, pairs),
            [verb @ ("insert" | "update"), ..] => {
                Err(syntax(&format!("{verb} keyname name1=value1 [name2=value2 ...]")))
            }
            ["delete", key] => self.delete(key),
            ["delete", ..] => Err(syntax("delete keyname")),
            [other, ..] => Err(ShellLineError::Unknown(other.to_owned())),
        };
        match answer {
            Ok(text) => terminal::out(&text),
            Err(why) => terminal::out(&format!("Error: {why}\n")),
        }
        Ok(true)
    }

    /// Stores have their table from when they are opened. A table that cannot be had leaves the one before.
    fn use_table(&mut self, name: &str) -> Result<Result<String, ShellLineError>, Failure> {
        let before = self.content.table().to_owned();
        let Err(why) = self.open_table(name) else {
            return Ok(Ok(format!("Using table \"{name}\"\n")));
        };
        self.open_table(&before)?;
        Ok(Err(ShellLineError::Table(why)))
    }

    fn open_table(&mut self, name: &str) -> Result<(), Failure> {
        // A store's file is locked until it is closed.
        self.opened = None;
        self.content = Arc::new(ShellContent::new(name, &self.layout));
        let shared: Arc<dyn Content> = self.content.clone();
        self.opened = Some(self.target.open(&shared, self.lines.clone(), &signals::interrupted)?.1);
        Ok(())
    }

    fn read(&mut self, key: &str, fields: &[&str]) -> Result<String, ShellLineError> {
        let (code, ms) = self.execute(Verb::Read, 0, key, names(fields))?;
        let mut text = format!("Return code: {code}\n");
        for (_, name, value) in self.content.seen() {
            text += &pair(&name, &value);
        }
        Ok(format!("{text}{ms} ms\n"))
    }

    fn scan(&mut self, key: &str, count: &str, fields: &[&str]) -> Result<String, ShellLineError> {
        let limit = count.parse().ok().filter(|n| (1..=SCAN_RECORDS).contains(n));
        let limit = limit.ok_or_else(|| ShellLineError::Limit(count.to_owned()))?;
        let (code, ms) = self.execute(Verb::Scan, limit, key, names(fields))?;
        let mut text = format!("Result: {code}\n");
        let seen = self.content.seen();
        text += if seen.is_empty() { "0 records\n" } else { RULE };
        for record in seen.chunk_by(|one, next| one.0 == next.0) {
            text += &format!("Record {}\n", record[0].0);
            for (_, name, value) in record {
                text += &pair(name, value);
            }
            text += RULE;
        }
        Ok(format!("{text}{ms} ms\n"))
    }

    fn write(&mut self, verb: Verb, key: &str, pairs: &[&str]) -> Result<String, ShellLineError> {
        let split = |pair: &&str| {
            let (name, value) = pair.split_once('=').filter(|(name, _)| !name.is_empty())?;
            Some((name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        };
        let fields: Option<Vec<_>> = pairs.iter().map(split).collect();
        let fields = fields.ok_or(ShellLineError::Pairs)?;
        let (code, ms) = self.execute(verb, 0, key, fields)?;
        Ok(format!("Result: {code}\n{ms} ms\n"))
    }

    fn delete(&mut self, key: &str) -> Result<String, ShellLineError> {
        let (code, ms) = self.execute(Verb::Delete, 0, key, Vec::new())?;
        Ok(format!("Return result: {code}\n{ms} ms\n"))
    }

    /// Executes one request: YCSB's name of how it ended, and milliseconds.
    fn execute(
        &mut self,
        verb: Verb,
        limit: u32,
        key: &str,
        fields: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<(&'static str, u64), ShellLineError> {
        let Some(opened) = &self.opened else { return Err(ShellLineError::Unconnected) };
        self.content.type_in(Typed { key: key.as_bytes().to_vec(), fields });
        let once = Once::new(self.content.clone(), verb, limit);
        let mut ended = None;
        let finished = opened.run(self.job(once), Arc::new(Control::default()), &mut |second| {
            let outcomes = second.totals.ended;
            ended = ended.or(Outcome::ALL.into_iter().find(|outcome| outcomes[*outcome as usize] > 0));
        });
        // Lines of the basic binding stand before the answer.
        let _ = self.lines.lock().unwrap_or_else(PoisonError::into_inner).flush();
        let finished = finished?;
        for (outcome, message) in &finished.errors {
            if !message.is_empty() && *outcome != Outcome::NotFound {
                terminal::out(&format!("Error: {} {message}\n", outcome.name()));
            }
        }
        let outcome = ended.unwrap_or(Outcome::Aborted);
        Ok((ReturnCode::of(outcome).name(), finished.elapsed_ns / 1_000_000))
    }

    fn job(&self, once: Once) -> Job {
        Job {
            timeout_ns: self.timeout_ns,
            scale: Scale::Micros,
            ..Job::closed_loop(Arc::new(once), 1, End { operations: Some(1), duration_ns: None })
        }
    }
}

/// Fields that are only named.
fn names(fields: &[&str]) -> Vec<(Vec<u8>, Vec<u8>)> {
    fields.iter().map(|name| (name.as_bytes().to_vec(), Vec::new())).collect()
}

fn pair(name: &[u8], value: &[u8]) -> String {
    format!("{}={}\n", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
}
