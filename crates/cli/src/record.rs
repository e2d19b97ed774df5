//! `dyno record` and `dyno replay`: traffic as it was, kept and sent once more.

use crate::options::{CapturePoint, LearnArgs, RecordArgs, ReplayArgs, SourceKind};
use crate::record_proxy::record_proxy;
use crate::record_totals::tell;
use dyno_config::tree::{Node, Origin, Value};
use dyno_config::values::Bytes;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_recording::learn::learn_file;
use dyno_recording::sources::aof::{is_aof, record_aof};
use dyno_recording::sources::capture::{CaptureOptions, is_capture, record_capture};
use dyno_recording::sources::mongodb::{is_mongod_log, is_profile, record_mongod_log, record_profile};
use dyno_recording::sources::monitor::{is_monitor_line, record_monitor};
use dyno_recording::sources::{NewRecording, SourceError};
use dyno_recording::{RecordingError, RecordingHeader, RecordingPoint, RecordingWriter};
use signal_hook::consts::SIGINT;
use std::cell::RefCell;
use std::fs::{File, remove_file};
use std::io::{BufReader, Read, Write, stdin};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes by which the kind of a file is told.
const LOOKED_AT: usize = 1 << 16;

/// Least limit of values, bytes.
const LEAST_LIMIT: u64 = 64;

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
        None => None,
        Some(text) => {
            let read = serde_json::from_value::<Bytes>(text.as_str().into());
            let bytes = read.map_err(|why| Failure::usage(format!("--value-limit: {why}")))?;
            // Names of commands and of options are told by their words.
            if bytes.0 < LEAST_LIMIT {
                return Err(Failure::usage(format!("--value-limit: expected {LEAST_LIMIT} bytes or more")));
            }
            Some(usize::try_from(bytes.0).unwrap_or(usize::MAX))
        }
    };
    if args.out.exists() && !args.proxy.relay_only {
        return Err(Failure::usage(format!("--out: {}: it is there already", args.out.display())));
    }
    if args.proxy.listen.is_some() {
        return record_proxy(&args.proxy, &args.out, limit);
    }
    let names: Vec<String> = args.sources.iter().map(|path| path.display().to_string()).collect();
    let names = names.join(", ");
    let cannot = |why: &dyn std::fmt::Display| Failure::usage(format!("{names}: {why}"));
    let mut inputs = Vec::new();
    let mut kinds = Vec::new();
    for path in &args.sources {
        let of_file = |why: std::io::Error| Failure::usage(format!("{}: {why}", path.display()));
        let file: Box<dyn Read + Send> = match path.to_str() {
            Some("-") => {
                outlive_interrupt()?;
                Box::new(stdin())
            }
            _ => Box::new(File::open(path).map_err(of_file)?),
        };
        let (head, rest) = read_head(file).map_err(of_file)?;
        kinds.push(args.kind.or_else(|| kind_of(&head)));
        let whole: Box<dyn Read + Send> = Box::new(std::io::Cursor::new(head).chain(rest));
        inputs.push(BufReader::with_capacity(LOOKED_AT, whole));
    }
    let known =
        kinds.first().copied().flatten().filter(|first| kinds.iter().all(|kind| *kind == Some(*first)));
    let Some(kind) = known else {
        let words = "expected captures (pcap, pcapng), the output of redis-cli MONITOR, an append-only file of Redis, documents \
                     of MongoDB's profiler or a log of mongod; --kind names what it is";
        return Err(cannot(&words));
    };
    if kind != SourceKind::Capture && inputs.len() > 1 {
        return Err(cannot(&"only captures are merged: record one file at a time"));
    }
    if kind != SourceKind::Capture && (!args.port.is_empty() || args.point.is_some()) {
        return Err(cannot(&"--port and --point are for captures"));
    }
    let made = RefCell::new(None);
    let recorded = {
        let begin = |header: &RecordingHeader| {
            *made.borrow_mut() = Some(header.clone());
            RecordingWriter::create_file(&args.out, header)
        };
        let mut new = NewRecording::new(limit, begin);
        match kind {
            SourceKind::Monitor => record_monitor(&mut inputs[0], &mut new),
            SourceKind::Aof => record_aof(&mut inputs[0], &mut new),
            SourceKind::MongodbProfile => record_profile(&mut inputs[0], &mut new),
            SourceKind::MongodbLog => record_mongod_log(&mut inputs[0], &mut new),
            SourceKind::Capture => {
                let options = CaptureOptions { ports: args.port.clone(), point: args.point.map(point_of) };
                let inputs = inputs.into_iter().map(|input| Box::new(input) as Box<dyn Read + Send>);
                record_capture(inputs.collect(), &mut new, &options)
            }
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

fn point_of(place: CapturePoint) -> RecordingPoint {
    match place {
        CapturePoint::Server => RecordingPoint::Server,
        CapturePoint::Client => RecordingPoint::Client,
    }
}

/// The first bytes of a file: up to its second line, which tells what it is, however slowly it comes.
fn read_head(mut file: Box<dyn Read + Send>) -> std::io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut head = vec![0; LOOKED_AT];
    let mut length = 0;
    while length < head.len() && head[..length].iter().filter(|byte| **byte == b'\n').count() < 2 {
        match file.read(&mut head[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(length);
    Ok((head, file))
}

/// Ctrl-C ends the program that writes to this one's input, too; what it has written until then is recorded. A second Ctrl-C ends
/// this program.
fn outlive_interrupt() -> Result<(), Failure> {
    let once = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register_conditional_shutdown(
        SIGINT,
        i32::from(Exit::Interrupted as u8),
        once.clone(),
    )?;
    signal_hook::flag::register(SIGINT, once)?;
    Ok(())
}

/// Kind of a file by its first bytes.
fn kind_of(head: &[u8]) -> Option<SourceKind> {
    if is_capture(head) {
        return Some(SourceKind::Capture);
    }
    if is_profile(head) {
        return Some(SourceKind::MongodbProfile);
    }
    let lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    for line in lines {
        if is_monitor_line(line) {
            return Some(SourceKind::Monitor);
        }
        if is_mongod_log(line) {
            return Some(SourceKind::MongodbLog);
        }
    }
    is_aof(head).then_some(SourceKind::Aof)
}
