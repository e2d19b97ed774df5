//! Starting a worker: its process, the first words, and the thread that hears it.

use crate::protocol::frame::{Frame, Packed, read_packed, write_frame};
use crate::protocol::offset::Offset;
use crate::protocol::service::Service;
use crate::protocol::worker::{Assignment, FromWorker, PROTOCOL, ToWorker};
use crate::remote::channel::{Channel, ProgramInput};
use crate::remote::records::RemoteLogRecords;
use crate::remote::transport::Transport;
use crate::remote::worker::member::{PoolMember, WorkerEvent};
use crate::remote::worker::pool_error::WorkerPoolError;
use crate::remote::worker::serve::unix_ns;
use dyno_rundir::log;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Start of a worker: here, or on another host.
#[derive(Debug)]
pub enum Start {
    /// On this host: the program and its surroundings; standard input and output are taken.
    Here(Command),
    /// On another one.
    There {
        /// The way to it.
        transport: Transport,
        /// This program there.
        program: String,
    },
}

/// A worker to be started.
#[derive(Debug)]
pub struct WorkerSpec {
    /// Start of its process.
    pub start: Start,
    /// Work of the worker.
    pub assignment: Assignment,
    /// Where its words for people go: its standard error.
    pub log: PathBuf,
}

/// Starts a worker and says the first words.
pub(super) fn spawn(
    spec: WorkerSpec,
    at: usize,
    tell: &Sender<(usize, WorkerEvent)>,
) -> Result<PoolMember, WorkerPoolError> {
    let WorkerSpec { start, assignment, log } = spec;
    let trouble = |words: String| WorkerPoolError::Worker(format!("worker {}: {words}", at + 1));
    let (channel, transport) = match start {
        Start::Here(mut command) => {
            let channel = Channel::start(&mut command).map_err(|e| {
                let program = command.get_program().to_string_lossy().into_owned();
                trouble(format!("{program} could not be started: {e}"))
            })?;
            (channel, None)
        }
        Start::There { transport, program } => {
            let errors = File::create(&log).map_err(|e| trouble(format!("{}: {e}", log.display())))?;
            let channel =
                transport.open(&program, &Service::Worker, errors).map_err(|e| trouble(e.to_string()))?;
            (channel, Some(transport))
        }
    };
    let Channel { mut input, mut output, mut running } = channel;
    let (instance, number, pid) = (assignment.instance, assignment.index, running.number());
    let hello = ToWorker::Hello { protocol: PROTOCOL, now_ns: unix_ns(), log: log::written_filters() };
    let said = write_frame(&mut input, &Frame::Message(&hello))
        .and_then(|()| write_frame(&mut input, &Frame::Message(&ToWorker::Assign(Box::new(assignment)))));
    if let Err(error) = said {
        running.end(Instant::now() + Duration::from_secs(1));
        let status = running.end_status().map_or(String::new(), |status| format!(" ({status})"));
        return Err(trouble(format!("it ended at once{status}: {error}")));
    }
    let tell = tell.clone();
    let clock: Arc<Mutex<Offset>> = Arc::default();
    let host = transport.as_ref().map_or("this one", Transport::name);
    tracing::info!(worker = at + 1, pid, host, instance, number, "a worker has been started");
    let mut records =
        RemoteLogRecords::of_source(format!("worker-{}", at + 1), transport.is_some().then(|| clock.clone()));
    let listen = move || {
        loop {
            records.pass_waiting();
            let told = match read_packed(&mut output) {
                Ok(Packed::Message(FromWorker::Log(record))) => {
                    records.add_record(*record);
                    continue;
                }
                Ok(Packed::Message(word)) => WorkerEvent::Message(word),
                Ok(Packed::Second(second)) => WorkerEvent::Second(second),
                Err(error) => {
                    drop(tell.send((at, WorkerEvent::Lost(error.to_string()))));
                    return;
                }
            };
            if tell.send((at, told)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name(format!("worker-{}", at + 1))
        .spawn(listen)
        .map_err(|e| trouble(e.to_string()))?;
    let input: ProgramInput = Arc::new(Mutex::new(Some(input)));
    let pid = AtomicU32::new(pid);
    Ok(PoolMember {
        running: Mutex::new(running),
        input,
        instance,
        number,
        pid,
        transport,
        log,
        clock,
        began_ns: AtomicU64::new(0),
        on: OnceLock::new(),
        host_cpu: Mutex::default(),
        unheard_ns: AtomicU64::new(0),
    })
}
