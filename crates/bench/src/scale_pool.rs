//! `dyno-bench scale`, second part: simulated workers, each a process that speaks the workers' protocol, and a pool that starts
//! them, has them begin together, and adds up what they send. A process that simulates a worker sends frames made beforehand, so
//! that what is left of two cores is the controller's. In the third part the workers are groups, each behind a connection of its
//! own, as those of an ssh host or of a node of pods are.

use crate::scale::{METRICS, totals};
use anyhow::{Context, Result};
use dyno_config::experiment::{Experiment, read_plan};
use dyno_config::inventory::InventoryHost;
use dyno_db::target::TargetInfo;
use dyno_engine::{Control, Second};
use dyno_hosts::protocol::frame::{Frame, encode_frame, read_frame, write_frame};
use dyno_hosts::protocol::worker::{
    Assignment, FromWorker, PROTOCOL, PhaseDone, Stage, ToWorker, WorkerHost,
};
use dyno_hosts::remote::ssh::SshHost;
use dyno_hosts::remote::transport::Transport;
use dyno_hosts::remote::worker::group::host::serve_group;
use dyno_hosts::remote::worker::pool::WorkerPool;
use dyno_hosts::remote::worker::spawn::{Start, WorkerSpec};
use dyno_monitor::ProcessCpu;
use dyno_record::{Scale, Totals};
use dyno_session::load_generator::LoadGenerator;
use dyno_session::work::Prepared;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Seconds that each worker sends.
const SECONDS: u64 = 20;

const HEAD: &str =
    "workers  groups  operations  ready   begin     skew  CPU of one core  resident MB  all that was sent";

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// A worker that applies no load (`dyno-bench simulate OPERATIONS`).
pub fn simulate(operations: u64) -> Result<()> {
    let (mut input, mut output) = (io::stdin(), io::stdout());
    let mut say = |word: &FromWorker| write_frame(&mut output, &Frame::Message(word));
    let own = totals(u64::from(std::process::id()), operations);
    let mut whole = own.empty_like();
    (0..SECONDS).for_each(|_| whole.merge(&own));
    let second = Second { number: 0, warmup: false, totals: own };
    let mut frame = encode_frame::<FromWorker>(&Frame::Second(Box::new(second)))?;
    let whole = encode_frame::<FromWorker>(&Frame::Whole(Box::new(whole)))?;
    loop {
        // The controller closes the pipe at its end.
        let Ok(Frame::Message(word)) = read_frame::<ToWorker>(&mut input) else { return Ok(()) };
        match word {
            ToWorker::Hello { now_ns, .. } => say(&FromWorker::Hello {
                protocol: PROTOCOL,
                dyno: "simulated".into(),
                pid: std::process::id(),
                heard_ns: now_ns,
                now_ns: unix_ns(),
            })?,
            ToWorker::Assign(_) => say(&FromWorker::Ready {
                target_info: TargetInfo::default(),
                facts: BTreeMap::new(),
                shown: "null:".into(),
                cores: vec![0],
                host: WorkerHost::default(),
            })?,
            ToWorker::Clock => say(&FromWorker::Clock { now_ns: unix_ns() })?,
            ToWorker::Prepare => say(&FromWorker::Prepared(Prepared::default()))?,
            ToWorker::Start { .. } => say(&FromWorker::Connected)?,
            ToWorker::Begin { at_ns } => {
                std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(unix_ns())));
                let late_ns = unix_ns().saturating_sub(at_ns);
                for number in 0..SECONDS {
                    let due_ns = at_ns + (number + 1) * 1_000_000_000;
                    std::thread::sleep(Duration::from_nanos(due_ns.saturating_sub(unix_ns())));
                    // Behind the length and the kind.
                    frame[5..13].copy_from_slice(&number.to_le_bytes());
                    let mut output = io::stdout();
                    output.write_all(&frame)?;
                    output.flush()?;
                    write_frame(&mut output, &Frame::Message(&FromWorker::Alive))?;
                }
                let mut output = io::stdout();
                output.write_all(&whole)?;
                let done = PhaseDone {
                    epoch_ns: at_ns,
                    late_ns,
                    measured_ns: SECONDS * 1_000_000_000,
                    ..PhaseDone::default()
                };
                write_frame(&mut output, &Frame::Message(&FromWorker::Done(done)))?;
            }
            ToWorker::Bye => return Ok(()),
            ToWorker::Stop | ToWorker::Abort | ToWorker::Ping => {}
        }
    }
}

/// Prints a row for each number of simulated workers.
pub fn run() -> Result<()> {
    println!("\n{HEAD}");
    for (workers, operations) in [(1, 10_000), (8, 10_000), (60, 10_000), (1_000, 10_000), (1_000, 1_000)] {
        row(workers, operations, None)?;
    }
    // An ssh that has but one machine, for groups.
    let folder = tempfile::tempdir()?;
    let ssh = folder.path().join("ssh");
    std::fs::write(&ssh, "#!/bin/sh\nfor last; do :; done\neval \"exec $last\"\n")?;
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o700))?;
    let path = std::env::var("PATH").unwrap_or_default();
    let mut groups = Command::new(std::env::current_exe()?);
    groups.arg("scale-groups").env("PATH", format!("{}:{path}", folder.path().display()));
    anyhow::ensure!(groups.status()?.success(), "the groups have failed");
    Ok(())
}

/// Prints a row for each number of groups; `ssh` on the path starts what it is told here.
pub fn run_groups() -> Result<()> {
    for (workers, groups) in [(60, 3), (1_000, 10), (1_000, 100)] {
        row(workers, 10_000, Some(groups))?;
    }
    Ok(())
}

/// What a pool starts by ssh: a group, or what a group starts.
pub fn serve_as_worker(arguments: &[String]) -> Result<()> {
    match arguments.iter().any(|argument| argument == "--group") {
        true => Ok(serve_group(io::stdin(), io::stdout(), &std::env::current_exe()?, Path::new(""))?),
        false => simulate(10_000),
    }
}

fn row(workers: usize, operations: u64, groups: Option<usize>) -> Result<()> {
    let program = std::env::current_exe().context("the path of this program")?;
    let logs = tempfile::tempdir()?;
    let text = "target: 'null:'\nworkload: {ycsb: {workload: c, records: 10}}\n\
                phases: {measure: {users: 1000, duration: 20s}}\n";
    let spec: Experiment = read_plan(text, "scale.yaml", &[])?.cells[0].spec.clone();
    let spec = Box::new(spec);
    let worker = |index: usize| {
        let start = match groups {
            None => {
                let mut command = Command::new(&program);
                command.args(["simulate", &operations.to_string()]);
                Start::Here(command)
            }
            Some(groups) => {
                let host = InventoryHost::named_host(&format!("node-{}", index % groups));
                let transport = Transport::Ssh(SshHost::new(&host, None)?);
                Start::There { transport, program: program.display().to_string() }
            }
        };
        let assignment = Assignment {
            target: "null:".into(),
            spec: spec.clone(),
            index,
            total: workers,
            instance: 0,
            cores: Vec::new(),
            local: true,
            spin: false,
            lease_ms: 90_000,
        };
        Ok(WorkerSpec { start, assignment, log: logs.path().join(index.to_string()) })
    };
    let control = Arc::new(Control::default());
    let begun = Instant::now();
    let specs = (0..workers).map(worker).collect::<Result<_>>()?;
    let pool = WorkerPool::start(specs, &control)?;
    let ready = begun.elapsed();
    let asked = Instant::now();
    let mut first: Option<(Duration, ProcessCpu)> = None;
    let mut sum = Totals::new(METRICS, Scale::Ns64);
    let mut last = ProcessCpu::read_now();
    pool.run(Stage::Measure.name(), &[], &control, &mut |second| {
        sum.merge(&second.totals);
        last = ProcessCpu::read_now();
        first.get_or_insert_with(|| (asked.elapsed(), last));
    })?;
    let (came, before) = first.context("no second has come")?;
    let used = last.since_earlier(&before);
    let expected = workers as u64 * operations * SECONDS;
    let mut wholes = 0;
    pool.each_worker(&mut |_, _, part| wholes += part.totals.count_ok());
    println!(
        "{workers:>7}  {:>6}  {operations:>10}  {:>4.1} s  {:>4.1} s  {:>5.0} ms  {:>13.1} %  {:>11.0}  {}",
        groups.map_or("none".into(), |groups| groups.to_string()),
        ready.as_secs_f64(),
        came.saturating_sub(Duration::from_secs(1)).as_secs_f64(),
        pool.start_skew().unwrap_or(0) as f64 / 1e6,
        (used.user_s + used.system_s) / (SECONDS - 1) as f64 * 100.0,
        dyno_monitor::peak_resident_bytes().unwrap_or(0) as f64 / 1e6,
        if sum.count_ok() == expected && wholes == expected { "yes" } else { "NO" },
    );
    Ok(())
}
