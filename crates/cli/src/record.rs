//! `dyno record` and `dyno replay`: traffic as it was, kept and sent once more.

use crate::options::{CapturePoint, LearnArgs, RecordArgs, ReplayArgs, SourceKind};
use crate::record_proxy::record_proxy;
use crate::record_totals::tell;
use dyno_config::tree::{Node, Origin, Value};
use dyno_config::values::Bytes;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_recording::anonymise::{Anonymiser, KEY_BYTES};
use dyno_recording::learn::learn_file;
use dyno_recording::sources::aof::{is_aof, record_aof};
use dyno_recording::sources::cache_trace::{is_cache_trace, record_cache_trace};
use dyno_recording::sources::capture::{CaptureOptions, is_capture, record_capture};
use dyno_recording::sources::command_log::{is_command_log, record_command_log};
use dyno_recording::sources::dump::Namespace;
use dyno_recording::sources::dump::archive::{is_archive, record_archive};
use dyno_recording::sources::dump::bson_files::record_folder;
use dyno_recording::sources::dump::json_lines::{is_json, record_json_lines};
use dyno_recording::sources::mongodb::{is_mongod_log, is_profile, record_mongod_log, record_profile};
use dyno_recording::sources::monitor::{is_monitor_line, record_monitor};
use dyno_recording::sources::packed::Packing;
use dyno_recording::sources::playback::{is_playback, record_playback};
use dyno_recording::sources::rdb::{is_rdb, record_rdb};
use dyno_recording::sources::traffic_log::{is_traffic_log, record_traffic_logs};
use dyno_recording::sources::{NewRecording, SourceError};
use dyno_recording::{RecordingError, RecordingHeader, RecordingPoint, RecordingTotals, RecordingWriter};
use dyno_types::bounded;
use dyno_types::units::counted;
use signal_hook::consts::SIGINT;
use std::cell::RefCell;
use std::fs::{File, OpenOptions, remove_file};
use std::io::{BufRead, BufReader, BufWriter, Cursor, Read, Write, stdin};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes by which the kind of a file is told.
const LOOKED_AT: usize = 1 << 16;

/// Bytes of a new key, and the longest that is read.
const NEW_KEY_BYTES: usize = 32;
const KEY_LIMIT: u64 = 64 << 10;

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
        "{out}: as it was, {}{}",
        learned.rate.map_or(String::new(), |rate| format!("{rate:.1} operations a second on ")),
        counted(learned.connections as usize, "connection")
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
    let anonymiser = read_key(args)?;
    if args.proxy.listen.is_some() {
        return record_proxy(&args.proxy, &args.out, limit, anonymiser);
    }
    let names: Vec<String> = args.sources.iter().map(|path| path.display().to_string()).collect();
    let names = names.join(", ");
    let cannot = |why: &dyn std::fmt::Display| Failure::usage(format!("{names}: {why}"));
    if let [folder] = args.sources.as_slice()
        && folder.is_dir()
    {
        refuse_unused(args, SourceKind::Dump).map_err(|why| cannot(&why))?;
        return make(args, (limit, anonymiser), &names, |new| record_folder(folder, new));
    }
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
        let (mut head, mut rest) = read_head(file).map_err(of_file)?;
        if let Some(packing) = Packing::of_head(&head) {
            let packed = BufReader::with_capacity(LOOKED_AT, Cursor::new(head).chain(rest));
            (head, rest) = read_head(packing.unpack(packed).map_err(of_file)?).map_err(of_file)?;
        }
        kinds.push(args.kind.or_else(|| kind_of(&head)));
        let whole: Box<dyn Read + Send> = Box::new(Cursor::new(head).chain(rest));
        inputs.push(BufReader::with_capacity(LOOKED_AT, whole));
    }
    let known =
        kinds.first().copied().flatten().filter(|first| kinds.iter().all(|kind| *kind == Some(*first)));
    let Some(kind) = known else {
        let message = "expected captures (pcap, pcapng), the output of redis-cli MONITOR, an append-only file or a snapshot of \
                     Redis, logs of Dragonfly's traffic, documents of MongoDB's profiler, a log of mongod, a playback file of \
                     mongoreplay, an archive or a folder of mongodump, JSON lines of mongoexport, a command log of \
                     momento-proxy, or a cache's trace; --kind names what it is";
        return Err(cannot(&message));
    };
    if ![SourceKind::Capture, SourceKind::DragonflyTraffic].contains(&kind) && inputs.len() > 1 {
        return Err(cannot(
            &"only captures and logs of Dragonfly's threads are merged: record one file at a time",
        ));
    }
    refuse_unused(args, kind).map_err(|why| cannot(&why))?;
    let into = args.into.as_deref().map(|text| {
        Namespace::parse_name(text)
            .ok_or_else(|| Failure::usage(format!("--into: {text}: expected DATABASE.COLLECTION")))
    });
    let into = into.transpose()?;
    make(args, (limit, anonymiser), &names, |new| match (kind, into) {
        (SourceKind::Monitor, _) => record_monitor(&mut inputs[0], new),
        (SourceKind::Aof, _) => record_aof(&mut inputs[0], new),
        (SourceKind::MongodbProfile, _) => record_profile(&mut inputs[0], new),
        (SourceKind::MongodbLog, _) => record_mongod_log(&mut inputs[0], new),
        (SourceKind::MongodbPlayback, _) => record_playback(&mut inputs[0], new),
        (SourceKind::CommandLog, _) => record_command_log(&mut inputs[0], new),
        (SourceKind::CacheTrace, _) => record_cache_trace(&mut inputs[0], new),
        (SourceKind::DragonflyTraffic, _) => record_traffic_logs(
            inputs.into_iter().map(|input| Box::new(input) as Box<dyn BufRead>).collect(),
            new,
        ),
        (SourceKind::Rdb, _) => record_rdb(&mut inputs[0], new),
        (SourceKind::Dump, _) => record_archive(&mut inputs[0], new),
        (SourceKind::Json, Some(of)) => record_json_lines(&mut inputs[0], &of, new),
        (SourceKind::Json, None) => {
            Err(SourceError::Unreadable("documents need a collection: --into DATABASE.COLLECTION".into()))
        }
        (SourceKind::Capture, _) => {
            let options = CaptureOptions { ports: args.port.clone(), point: args.point.map(point_of) };
            let inputs = inputs.into_iter().map(|input| Box::new(input) as Box<dyn Read + Send>);
            record_capture(inputs.collect(), new, &options)
        }
    })
}

/// The key of `--anonymise`: the file's bytes, or a new key in a new file that only its owner can read.
fn read_key(args: &RecordArgs) -> Result<Option<Anonymiser>, Failure> {
    let Some(path) = &args.anonymise else { return Ok(None) };
    let named =
        |why: &dyn std::fmt::Display| Failure::usage(format!("--anonymise: {}: {why}", path.display()));
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let key = match made {
        Ok(mut file) => {
            let mut key = vec![0; NEW_KEY_BYTES];
            File::open("/dev/urandom")?.read_exact(&mut key)?;
            file.write_all(&key)?;
            terminal::note(&format!(
                "{}: a new key: recordings that are made with it have the same words",
                path.display()
            ));
            key
        }
        Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => {
            bounded::bytes_file(path, KEY_LIMIT).map_err(|why| named(&why))?
        }
        Err(why) => return Err(named(&why)),
    };
    if key.len() < KEY_BYTES {
        return Err(named(&format!("expected a key of {KEY_BYTES} bytes or more")));
    }
    let anonymiser = Anonymiser::new(&key, args.keep_scripts);
    Ok(Some(if args.keep_slots { anonymiser.keeping_slots() } else { anonymiser }))
}

/// Refuses options that say nothing of this kind of source.
fn refuse_unused(args: &RecordArgs, kind: SourceKind) -> Result<(), &'static str> {
    if kind != SourceKind::Capture && (!args.port.is_empty() || args.point.is_some()) {
        return Err("--port and --point are for captures");
    }
    if kind != SourceKind::Json && args.into.is_some() {
        return Err("--into is for JSON lines: other sources name their collections");
    }
    Ok(())
}

/// Makes the recording's file of what `record` reads.
fn make(
    args: &RecordArgs,
    (limit, mut anonymiser): (Option<usize>, Option<Anonymiser>),
    names: &str,
    record: impl FnOnce(&mut NewRecording<'_, BufWriter<File>>) -> Result<RecordingTotals, SourceError>,
) -> Result<Exit, Failure> {
    let made = RefCell::new(None);
    let recorded = {
        let begin = |header: &RecordingHeader| {
            *made.borrow_mut() = Some(header.clone());
            let writer = RecordingWriter::create_file(&args.out, header)?;
            match anonymiser.take() {
                Some(anonymiser) => writer.anonymise_with(anonymiser),
                None => Ok(writer),
            }
        };
        record(&mut NewRecording::new(limit, begin))
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
                other => Failure::usage(format!("{names}: {other}")),
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
    if is_rdb(head) {
        return Some(SourceKind::Rdb);
    }
    if is_profile(head) {
        return Some(SourceKind::MongodbProfile);
    }
    if is_playback(head) {
        return Some(SourceKind::MongodbPlayback);
    }
    if is_traffic_log(head) {
        return Some(SourceKind::DragonflyTraffic);
    }
    if is_cache_trace(head) {
        return Some(SourceKind::CacheTrace);
    }
    let lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    for line in lines {
        if is_monitor_line(line) {
            return Some(SourceKind::Monitor);
        }
        if is_mongod_log(line) {
            return Some(SourceKind::MongodbLog);
        }
        if is_command_log(line) {
            return Some(SourceKind::CommandLog);
        }
    }
    if is_archive(head) {
        return Some(SourceKind::Dump);
    }
    match is_aof(head) {
        true => Some(SourceKind::Aof),
        false => is_json(head).then_some(SourceKind::Json),
    }
}
