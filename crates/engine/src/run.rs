//! One engine run: threads are started and connected, begin together, and their intervals are merged second by second.

use crate::affinity;
use crate::event_loop::LoadThread;
use crate::files;
use crate::job::{Clock, Control, Job, Pacing};
use crate::merge::{Finished, Merger, Second, ThreadEvent, await_ready, recorder};
use crate::net::{EchoNet, Epoll, Net, NicClocks, TlsConfig, VirtualNet, monotonic_ns};
use crate::null::NullDriver;
use crate::run_error::RunError;
use crate::shared::RunState;
use crate::sim::SimOptions;
use crate::thread_per_user;
use dyno_record::Recorder;
use dyno_types::{Driver, RefusalCode, Refused, Store};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::SystemTime;

/// Message of the control thread to a load thread that has connected: the epoch on the monotonic clock, nanoseconds.
type StartSignal = Option<u64>;

/// Runs `job` over the network.
pub fn run_wire<D: Driver>(
    job: Job,
    control: Arc<Control>,
    tls: Option<Arc<TlsConfig>>,
    driver: impl Fn() -> Result<D, Refused> + Sync,
    on_second: &mut dyn FnMut(Second),
) -> Result<Finished, RunError> {
    files::raise_file_limit(job.users)?;
    let spin = job.spin;
    let cards = match job.stamps {
        Clock::Hardware => NicClocks::clocks_towards(driver()?.endpoints())?,
        Clock::Kernel | Clock::Client => NicClocks::default(),
    };
    run_on(job, control, None, |_| Ok((driver()?, Epoll::new(tls.clone(), spin, &cards)?)), on_second)
}

/// Runs `job` against nothing: what is measured is the engine.
pub fn run_null(
    job: Job,
    control: Arc<Control>,
    on_second: &mut dyn FnMut(Second),
) -> Result<Finished, RunError> {
    let content = job.workload.content();
    run_on(job, control, None, |_| Ok((NullDriver::new(content.clone()), EchoNet::default())), on_second)
}

/// Runs `job` in virtual time against a simulated server, one a load thread.
pub fn run_virtual(
    job: Job,
    control: Arc<Control>,
    server: SimOptions,
    on_second: &mut dyn FnMut(Second),
) -> Result<Finished, RunError> {
    let content = job.workload.content();
    let make = |_| Ok((NullDriver::new(content.clone()), VirtualNet::new(server.clone())));
    run_on(job, control, Some(0), make, on_second)
}

/// Runs `job` against an embedded store.
pub fn run_blocking(
    job: Job,
    control: Arc<Control>,
    store: &dyn Store,
    on_second: &mut dyn FnMut(Second),
) -> Result<Finished, RunError> {
    job.check()?;
    if job.reconnect_every.is_some() || job.late.is_some() {
        return Err(Refused::new(
            RefusalCode::Unsupported,
            "users",
            "an embedded store has no connections that are made while a load runs",
        )
        .into());
    }
    if job.pacing == Pacing::Recorded {
        let message = "an embedded store has no connections that a recording could be replayed on";
        return Err(Refused::new(RefusalCode::Unsupported, "workload.recording", message).into());
    }
    thread_per_user::run(RunState::new(job, control), store, on_second)
}

/// Runs `job` on any network by any driver; in virtual time it begins at `epoch`.
pub fn run_on<D, N, F>(
    job: Job,
    control: Arc<Control>,
    epoch: Option<u64>,
    make: F,
    on_second: &mut dyn FnMut(Second),
) -> Result<Finished, RunError>
where
    D: Driver,
    N: Net,
    F: Fn(usize) -> Result<(D, N), RunError> + Sync,
{
    job.check()?;
    let threads = job.cores.len();
    let shared = RunState::new(job, control);
    let begun = monotonic_ns();
    let (full, filled) = sync_channel(threads * 2);
    let (report, events) = channel();
    std::thread::scope(|scope| {
        let mut gos = Vec::new();
        let mut empties = Vec::new();
        for thread in 0..threads {
            let (recorder, empty) = recorder(&shared, thread, &full);
            let (go, wait) = channel();
            gos.push(go);
            empties.push(empty);
            let (shared, report, make) = (shared.clone(), report.clone(), &make);
            scope.spawn(move || load_thread(shared, thread, make, recorder, &report, &wait));
        }
        drop((report, full));
        let pinned = await_ready(&events, threads)?;
        let connected = monotonic_ns();
        let proposed = epoch.unwrap_or(connected + 2_000_000);
        let met = shared.job.team.as_ref().map_or(proposed, |team| team.meet(proposed, &shared.control));
        // Workers begin together by the wall's clock; each one's virtual time begins at its own 0.
        let start = epoch.unwrap_or(met);
        for go in &gos {
            // A thread that is gone has told why.
            let _ = go.send(Some(start));
        }
        // The virtual clock's epoch is no time of the wall's.
        let wall = if epoch.is_some() { SystemTime::now() } else { shared.control.begins(start) };
        let ending = Merger::new(&shared, empties).run(&filled, &events, threads, on_second)?;
        Ok(Finished {
            epoch: wall,
            elapsed_ns: ending.ended_ns.saturating_sub(start),
            measured_ns: ending.measured_ns(start + shared.job.warmup_ns),
            busy_rate: ending.busy_rate.filter(|_| ending.counted),
            errors: ending.errors,
            connecting_ns: connected - begun,
            pinned,
        })
    })
}

fn load_thread<D: Driver, N: Net>(
    shared: Arc<RunState>,
    thread: usize,
    make: &(dyn Fn(usize) -> Result<(D, N), RunError> + Sync),
    recorder: Recorder,
    report: &Sender<ThreadEvent>,
    wait: &Receiver<StartSignal>,
) {
    let pinned = affinity::pin_thread(shared.job.cores[thread]);
    let connected = make(thread).and_then(|(driver, net)| {
        let mut load = LoadThread::new(shared, thread, driver, net, recorder);
        load.connect_all().map(|()| load)
    });
    let load = match connected {
        Ok(load) => load,
        Err(error) => {
            let _ = report.send(ThreadEvent::Ready(Err(error)));
            return;
        }
    };
    let _ = report.send(ThreadEvent::Ready(Ok(pinned)));
    // No word means that another thread could not connect.
    if let Ok(Some(epoch)) = wait.recv() {
        let ended = load.run(epoch).map_err(RunError::Io);
        let _ = report.send(ThreadEvent::Ended(ended));
    }
}
