//! Starting a worker: its process, the first words, and the thread that hears it.

use crate::protocol::frame::{Frame, Packed, read_packed, write_frame};
use crate::protocol::group::MemberPlace;
use crate::protocol::offset::Offset;
use crate::protocol::service::Service;
use crate::protocol::worker::{Assignment, FromWorker, PROTOCOL, ToWorker};
use crate::remote::channel::{Channel, Running};
use crate::remote::records::RemoteLogRecords;
use crate::remote::transport::Transport;
use crate::remote::worker::event::WorkerEvent;
use crate::remote::worker::group::controller::{GroupEnd, GroupMember, open_group};
use crate::remote::worker::member::PoolMember;
use crate::remote::worker::pool_error::WorkerPoolError;
use crate::remote::worker::serve::unix_ns;
use dyno_rundir::log;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
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

/// A worker that has been started, before the first words.
struct StartedWorker {
    input: Box<dyn Write + Send>,
    running: Running,
    transport: Option<Transport>,
    clock: Arc<Mutex<Offset>>,
    /// Its group, and the number of the first worker of it.
    group: Option<(Arc<GroupEnd>, usize)>,
}

fn trouble(at: usize, message: String) -> WorkerPoolError {
    WorkerPoolError::Worker(format!("worker {}: {message}", at + 1))
}

fn records_of(at: usize, elsewhere: bool, clock: &Arc<Mutex<Offset>>) -> RemoteLogRecords {
    RemoteLogRecords::of_source(format!("worker-{}", at + 1), elsewhere.then(|| clock.clone()))
}

/// Puts workers of one target that the same program starts on the same other machine together: they are one group. Each has its
/// number in the pool.
pub(super) fn group_specs(specs: Vec<WorkerSpec>) -> Vec<Vec<(usize, WorkerSpec)>> {
    let (mut groups, mut known) = (Vec::<Vec<(usize, WorkerSpec)>>::new(), BTreeMap::new());
    for (at, spec) in specs.into_iter().enumerate() {
        let Start::There { transport, program } = &spec.start else {
            groups.push(vec![(at, spec)]);
            continue;
        };
        // A sum is of one target.
        let key = (transport.machine().to_owned(), program.clone(), spec.assignment.instance);
        let group = *known.entry(key).or_insert(groups.len());
        groups.resize_with(groups.len().max(group + 1), Vec::new);
        groups[group].push((at, spec));
    }
    groups
}

/// Where a group that runs at `host` starts a worker of `transport`.
fn place_of(host: &Transport, transport: &Transport) -> MemberPlace {
    match transport {
        Transport::Pod(pod) if pod.name != host.name() => MemberPlace::Pod(pod.address),
        _ => MemberPlace::Here,
    }
}

/// Starts workers, one or those of one group, and says the first words.
pub(super) fn spawn(
    specs: Vec<(usize, WorkerSpec)>,
    tell: &Sender<(usize, WorkerEvent)>,
) -> Result<Vec<(usize, PoolMember)>, WorkerPoolError> {
    if specs.len() < 2 {
        let start = |(at, mut spec): (usize, WorkerSpec)| {
            let started = start_alone(&mut spec, at, tell)?;
            Ok((at, greet(started, spec, at)?))
        };
        return specs.into_iter().map(start).collect();
    }
    let first = specs[0].0;
    let failed = |message: String| trouble(first, message);
    let transport = |spec: &WorkerSpec| match &spec.start {
        Start::There { transport, program } => Ok((transport.clone(), program.clone())),
        Start::Here(_) => Err(failed("workers of this host are no group".into())),
    };
    let (host, program) = transport(&specs[0].1)?;
    let log = specs[0].1.log.clone();
    let channel = open(&host, &program, &Service::WorkerGroup, &log, first)?;
    let (mut ways, mut members) = (Vec::new(), Vec::new());
    for (at, spec) in &specs {
        let (transport, clock) = (transport(spec)?.0, Arc::<Mutex<Offset>>::default());
        let (place, records) = (place_of(&host, &transport), records_of(*at, true, &clock));
        members.push(GroupMember { at: *at, place, records });
        ways.push((transport, clock));
    }
    let (group, members) = open_group(channel, members, tell.clone()).map_err(|e| failed(e.to_string()))?;
    let mut greeted = Vec::new();
    for (((at, mut spec), (transport, clock)), (input, running)) in specs.into_iter().zip(ways).zip(members) {
        let group = Some((group.clone(), first));
        // One process there writes to standard error: they share its log.
        spec.log.clone_from(&log);
        let started = StartedWorker { input, running, transport: Some(transport), clock, group };
        greeted.push((at, greet(started, spec, at)?));
    }
    Ok(greeted)
}

fn open(
    transport: &Transport,
    program: &str,
    service: &Service,
    log: &Path,
    at: usize,
) -> Result<Channel, WorkerPoolError> {
    let errors = File::create(log).map_err(|e| trouble(at, format!("{}: {e}", log.display())))?;
    transport.open(program, service, errors).map_err(|e| trouble(at, e.to_string()))
}

/// Starts a worker that has its own connection, and the thread that hears it.
fn start_alone(
    spec: &mut WorkerSpec,
    at: usize,
    tell: &Sender<(usize, WorkerEvent)>,
) -> Result<StartedWorker, WorkerPoolError> {
    let (channel, transport) = match &mut spec.start {
        Start::Here(command) => {
            let channel = Channel::start(command).map_err(|e| {
                let program = command.get_program().to_string_lossy().into_owned();
                trouble(at, format!("{program} could not be started: {e}"))
            })?;
            (channel, None)
        }
        Start::There { transport, program } => {
            (open(transport, program, &Service::Worker, &spec.log, at)?, Some(transport.clone()))
        }
    };
    let Channel { input, mut output, running } = channel;
    let (tell, clock) = (tell.clone(), Arc::default());
    let mut records = records_of(at, transport.is_some(), &clock);
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
                Ok(Packed::Whole(whole)) => WorkerEvent::Whole(whole),
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
        .map_err(|e| trouble(at, e.to_string()))?;
    Ok(StartedWorker { input, running, transport, clock, group: None })
}

/// Says the first words to a worker.
fn greet(started: StartedWorker, spec: WorkerSpec, at: usize) -> Result<PoolMember, WorkerPoolError> {
    let StartedWorker { mut input, mut running, transport, clock, group } = started;
    let WorkerSpec { assignment, log, .. } = spec;
    let (instance, number, pid) = (assignment.instance, assignment.index, running.number());
    let hello = ToWorker::Hello { protocol: PROTOCOL, now_ns: unix_ns(), log: log::written_filters() };
    let said = write_frame(&mut input, &Frame::Message(&hello))
        .and_then(|()| write_frame(&mut input, &Frame::Message(&ToWorker::Assign(Box::new(assignment)))));
    if let Err(error) = said {
        running.end(Instant::now() + Duration::from_secs(1));
        let status = running.end_status().map_or(String::new(), |status| format!(" ({status})"));
        return Err(trouble(at, format!("it ended at once{status}: {error}")));
    }
    let host = transport.as_ref().map_or("this one", Transport::name);
    tracing::info!(worker = at + 1, pid, host, instance, number, "a worker has been started");
    let (group, party) = group.map_or((None, at), |(group, first)| (Some(group), first));
    Ok(PoolMember {
        group,
        party,
        running: Mutex::new(running),
        input: Arc::new(Mutex::new(Some(input))),
        instance,
        number,
        pid: AtomicU32::new(pid),
        transport,
        log,
        clock,
        began_ns: AtomicU64::new(0),
        on: OnceLock::new(),
        host_cpu: Mutex::default(),
        unheard_ns: AtomicU64::new(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::ssh::SshHost;
    use dyno_config::experiment::read_plan;
    use dyno_config::inventory::InventoryHost;

    fn spec(host: Option<&str>, instance: usize) -> WorkerSpec {
        let start = match host {
            None => Start::Here(Command::new("dyno")),
            Some(name) => Start::There {
                transport: Transport::Ssh(SshHost::new(&InventoryHost::named_host(name), None).unwrap()),
                program: "dyno".into(),
            },
        };
        let plan = read_plan("target: 'null:'\n", "x.yaml", &[]).unwrap();
        let assignment = Assignment {
            target: "null:".into(),
            spec: Box::new(plan.cells[0].spec.clone()),
            index: 0,
            total: 1,
            instance,
            cores: Vec::new(),
            local: false,
            spin: false,
            lease_ms: 1,
        };
        WorkerSpec { start, assignment, log: PathBuf::new() }
    }

    /// Also where they do not follow each other; never across targets, and never on this host.
    #[test]
    fn workers_of_a_machine_and_a_target_are_one_group() {
        let specs = [(Some("a"), 0), (Some("b"), 0), (None, 0), (Some("a"), 0), (None, 0), (Some("a"), 1)];
        let groups = group_specs(specs.iter().map(|(host, instance)| spec(*host, *instance)).collect());
        let numbers = |group: &Vec<(usize, WorkerSpec)>| group.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        let numbers: Vec<Vec<usize>> = groups.iter().map(numbers).collect();
        assert_eq!(numbers, [vec![0, 3], vec![1], vec![2], vec![4], vec![5]]);
    }
}
