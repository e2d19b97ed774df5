//! `dyno record` and `dyno replay`: traffic as it was, kept and sent once more.

use crate::options::{LearnArgs, RecordArgs, ReplayArgs, SourceKind};
use dyno_config::tree::{Node, Origin, Value};
use dyno_config::values::Bytes;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_recording::entry::VALUE_LIMIT;
use dyno_recording::learn::learn_file;
use dyno_recording::sources::aof::{is_aof, record_aof};
use dyno_recording::sources::monitor::{is_monitor_line, record_monitor};
use dyno_recording::sources::{NewRecording, SourceError};
use dyno_recording::{RecordingError, RecordingHeader, RecordingTotals, RecordingWriter};
use dyno_types::units::Thousands;
use std::cell::RefCell;
use std::fs::{File, remove_file};
use std::io::{BufRead, BufReader, Read, Write, stdin};
use std::path::Path;

/// Bytes by which the kind of a file is told.
const LOOKED_AT: usize = 1 << 16;

/// Makes a workload of a recording.
pub fn learn(args: &LearnArgs) -> Result<Exit, Failure> {
    let learned = learn_file(&args.recording, args.seed)
        .map_err(|why| Failure::usage(format!("{}: {why}", args.recording.display())))?;
    let out = args.out.display();
    let mut file =
        File::create_new(&args.out).map_err(|why| Failure::usage(format!("--out: {out}: {why}")))?;
    file.write_all(learned.text.as_bytes()).map_err(Failure::internal)?;
    terminal::line(&format!(
        "{out}: as it was, {:.1} commands a second on {} connections",
        learned.rate, learned.connections
    ));
    learned.findings.iter().for_each(|finding| terminal::line(&format!("- {finding}")));
    Ok(Exit::Ok)
}

/// Sends a recording once more: a run whose workload it is.
pub fn replay(args: &ReplayArgs) -> Result<Exit, Failure> {
    let mut run = args.run.clone();
    if run.spec.tree.find_path("workload.recording.file").is_some() {
        return Err(Failure::usage("--recording: the recording is named already"));
    }
    if run.target.is_none() {
        return Err(Failure::usage(
            "replay: expected a target behind the recording, such as redis://127.0.0.1:6379",
        ));
    }
    let file =
        Node { value: Value::Text(args.recorded.clone()), origin: Origin::Variable("RECORDING".into()) };
    run.spec.tree.set_path("workload.recording.file", file);
    crate::run::run(&run)
}

/// Makes a recording of a file.
pub fn record(args: &RecordArgs) -> Result<Exit, Failure> {
    let limit = match &args.value_limit {
        None => VALUE_LIMIT,
        Some(text) => {
            let read = serde_json::from_value::<Bytes>(text.as_str().into());
            let bytes = read.map_err(|why| Failure::usage(format!("--value-limit: {why}")))?;
            usize::try_from(bytes.0).unwrap_or(usize::MAX)
        }
    };
    let source = args.source.display();
    let cannot = |why: &dyn std::fmt::Display| Failure::usage(format!("{source}: {why}"));
    if args.out.exists() {
        return Err(Failure::usage(format!("--out: {}: it is there already", args.out.display())));
    }
    let file: Box<dyn Read> = match args.source.to_str() {
        Some("-") => Box::new(stdin().lock()),
        _ => Box::new(File::open(&args.source).map_err(|why| cannot(&why))?),
    };
    let mut input = BufReader::with_capacity(LOOKED_AT, file);
    let head = input.fill_buf().map_err(|why| cannot(&why))?;
    let Some(kind) = args.kind.or_else(|| kind_of(head)) else {
        let words = "expected the output of redis-cli MONITOR or an append-only file of Redis; --kind names what it is";
        return Err(cannot(&words));
    };
    let made = RefCell::new(None);
    let recorded = {
        let begin = |header: &RecordingHeader| {
            *made.borrow_mut() = Some(header.clone());
            RecordingWriter::create_file(&args.out, header)
        };
        let mut new = NewRecording::new(limit, begin);
        match kind {
            SourceKind::Monitor => record_monitor(&mut input, &mut new),
            SourceKind::Aof => record_aof(&mut input, &mut new),
        }
    };
    let totals = match recorded {
        Ok(totals) => totals,
        Err(error) => {
            if made.borrow().is_some() {
                // What was written until then is no recording of the file.
                let _ = remove_file(&args.out);
            }
            return Err(match error {
                SourceError::Recording(RecordingError::Io(why)) => {
                    Failure::usage(format!("--out: {}: {why}", args.out.display()))
                }
                other => cannot(&other),
            });
        }
    };
    let header = made.into_inner();
    tell(&args.out, header.as_ref(), &totals);
    Ok(Exit::Ok)
}

/// Kind of a file by its first bytes.
fn kind_of(head: &[u8]) -> Option<SourceKind> {
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    if lines.any(is_monitor_line) {
        return Some(SourceKind::Monitor);
    }
    is_aof(head).then_some(SourceKind::Aof)
}

/// Says what was recorded.
pub fn tell(out: &Path, header: Option<&RecordingHeader>, totals: &RecordingTotals) {
    let size = std::fs::metadata(out).map_or(0, |facts| facts.len());
    terminal::line(&format!(
        "{}: {} commands of {} connections in {:.1} s, {} bytes",
        out.display(),
        Thousands(totals.commands),
        Thousands(totals.connections),
        totals.length_ns as f64 / 1e9,
        Thousands(size)
    ));
    let mut names: Vec<(&String, &u64)> = totals.by_name.iter().collect();
    names.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    let shown: Vec<String> =
        names.iter().take(8).map(|(name, count)| format!("{name} {}", Thousands(**count))).collect();
    let more = names.len().saturating_sub(8);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    terminal::line(&format!("{}{more}", shown.join(", ")));
    for (reason, count) in &totals.left_out {
        terminal::note(&format!("left out: {} {reason}", Thousands(*count)));
    }
    if let Some(header) = header.filter(|header| !header.lacks.is_empty()) {
        let lacks: Vec<&str> = header.lacks.iter().map(|lack| lack.lack_words()).collect();
        terminal::note(&format!("its source ({}) does not tell {}", header.source, lacks.join(", ")));
    }
}
