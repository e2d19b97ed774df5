//! One engine run: threads are started and connected, begin together, and their intervals are merged second by second.

use crate::affinity;
use crate::claim::Claims;
use crate::event_loop::{LoadThread, OwnMetrics, Shared};
use crate::files;
use crate::job::{Clock, Control, Job};
use crate::net::{Cards, EchoNet, Epoll, Net, TlsConfig, VirtualNet, monotonic_ns};
use dyno_record::{Interval, Recorder, Totals};
use dyno_types::{Driver, Outcome, Refused, Store};
use dyno_wire::null::NullDriver;
use dyno_wire::sim::SimOptions;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::SystemTime;

/// Why a run did not begin or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The job cannot be done.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The target did not answer, or not as it should.
    #[error("{words}")]
    Unreachable {
        /// Class of the failure.
        outcome: Outcome,
        /// Error, with the node's name.
        words: String,
    },
    /// The operating system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A load thread has panicked: an error of dyno itself.
    #[error("a load thread ended unexpectedly: this is a defect of dyno")]
    Panicked,
}

/// One interval of all threads together: a second unless the job says otherwise (or a part, at the end of the warm-up).
#[derive(Debug)]
pub struct Second {
    /// Number of the interval since the epoch.
    pub number: u64,
    /// True if it belongs to the warm-up.
    pub warmup: bool,
    /// Counts of the interval.
    pub totals: Totals,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The first error text of every class.
    pub errors: Vec<(Outcome, String)>,
    /// Wall clock at the epoch.
    pub epoch: SystemTime,
    /// From the epoch to the last completion, nanoseconds.
    pub elapsed_ns: u64,
    /// From the first thread's start to the epoch (connecting), nanoseconds.
    pub connecting_ns: u64,
    /// True if all threads are on the cores they were given.
    pub pinned: bool,
}

/// Message of the control thread to a load thread that has connected: the epoch on the monotonic clock, nanoseconds.
type StartSignal = Option<u64>;

/// First error text of every class, and the clock's time at the end.
pub(crate) type Ending = (Vec<(Outcome, String)>, u64);

/// Event that a load thread reports to the control thread.
pub(crate) enum ThreadEvent {
    /// Connected and on its core (or not), or not connected.
    Ready(Result<bool, RunError>),
    /// Ended.
    Ended(Result<Ending, RunError>),
}

/// Runs `job` over the network.
pub fn run_wire<D: Driver>(
    job: Job,
    control: Arc<Control>,
    tls: Option<Arc<TlsConfig>>,
    driver: impl Fn() -> Result<D, Refused> + Sync,
    on_second: &mut dyn FnMut(Second),
) -> Result<Finished, RunError> {
    files::allow(job.users)?;
    let spin = job.spin;
    let cards = match job.stamps {
        Clock::Hardware => Cards::towards(driver()?.endpoints())?,
        Clock::Kernel | Clock::Client => Cards::default(),
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
    crate::thread_per_user::run(shared(job, control), store, on_second)
}

pub(crate) fn shared(job: Job, control: Arc<Control>) -> Arc<Shared> {
    Arc::new(Shared {
        claims: Claims::new(job.end.operations, job.cores.len(), job.stripe),
        frontier: match &job.team {
            Some(team) => team.frontier.clone(),
            None => Arc::new(job.workload.frontier()),
        },
        own: OwnMetrics::find(job.workload.metrics()),
        control,
        job,
    })
}

/// Channels of one recorder: two intervals circulate.
pub(crate) fn recorder(
    shared: &Shared,
    thread: usize,
    full: &SyncSender<Box<Interval>>,
) -> (Recorder, Sender<Box<Interval>>) {
    let fresh = || {
        let mut interval = Interval::new(shared.job.workload.metrics().len(), shared.job.scale);
        interval.thread = thread;
        Box::new(interval)
    };
    let (empty, emptied) = channel();
    // The receiver is in our hands.
    let _ = empty.send(fresh());
    (Recorder::new(fresh(), full.clone(), emptied), empty)
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
    let shared = shared(job, control);
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
        let (errors, ended_ns) = Merger::new(&shared, empties).run(&filled, &events, threads, on_second)?;
        let elapsed_ns = ended_ns.saturating_sub(start);
        Ok(Finished { errors, epoch: wall, elapsed_ns, connecting_ns: connected - begun, pinned })
    })
}

fn load_thread<D: Driver, N: Net>(
    shared: Arc<Shared>,
    thread: usize,
    make: &(dyn Fn(usize) -> Result<(D, N), RunError> + Sync),
    recorder: Recorder,
    report: &Sender<ThreadEvent>,
    wait: &Receiver<StartSignal>,
) {
    let pinned = affinity::pin(shared.job.cores[thread]);
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

pub(crate) fn await_ready(events: &Receiver<ThreadEvent>, threads: usize) -> Result<bool, RunError> {
    let mut pinned = true;
    for _ in 0..threads {
        match events.recv() {
            Ok(ThreadEvent::Ready(ready)) => pinned &= ready?,
            _ => return Err(RunError::Panicked),
        }
    }
    Ok(pinned)
}

/// Adds up intervals of all threads and hands out each second once all threads are past it.
pub(crate) struct Merger {
    metrics: usize,
    scale: dyno_record::Scale,
    empties: Vec<Sender<Box<Interval>>>,
    /// By (second, measured): sums so far.
    open: BTreeMap<(u64, bool), Totals>,
    /// The second that each thread is counting; `None` when it has ended.
    at: Vec<Option<(u64, bool)>>,
}

impl Merger {
    pub(crate) fn new(shared: &Shared, empties: Vec<Sender<Box<Interval>>>) -> Self {
        Merger {
            metrics: shared.job.workload.metrics().len(),
            scale: shared.job.scale,
            at: vec![Some((0, false)); empties.len()],
            empties,
            open: BTreeMap::new(),
        }
    }

    pub(crate) fn run(
        mut self,
        filled: &Receiver<Box<Interval>>,
        events: &Receiver<ThreadEvent>,
        ending: usize,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Ending, RunError> {
        // Ends when every recorder has been dropped.
        while let Ok(interval) = filled.recv() {
            self.take(interval);
            self.hand_out(on_second);
        }
        self.at.fill(None);
        self.hand_out(on_second);
        let mut errors: Vec<(Outcome, String)> = Vec::new();
        let mut last_ns = 0;
        for _ in 0..ending {
            match events.recv() {
                Ok(ThreadEvent::Ended(ended)) => {
                    let (words, ended_ns) = ended?;
                    last_ns = last_ns.max(ended_ns);
                    for (outcome, text) in words {
                        if errors.iter().all(|(o, _)| *o != outcome) {
                            errors.push((outcome, text));
                        }
                    }
                }
                _ => return Err(RunError::Panicked),
            }
        }
        Ok((errors, last_ns))
    }

    fn take(&mut self, mut interval: Box<Interval>) {
        let key = (interval.number, !interval.warmup);
        let totals = self.open.entry(key).or_insert_with(|| Totals::new(self.metrics, self.scale));
        totals.add(&interval);
        // An interval has come: the thread counts a later one now.
        let next = Some((key.0 + u64::from(key.1), !key.1));
        self.at[interval.thread] = if interval.last { None } else { next };
        let thread = interval.thread;
        interval.reset();
        // A thread that has ended needs no more intervals.
        let _ = self.empties[thread].send(interval);
    }

    fn hand_out(&mut self, on_second: &mut dyn FnMut(Second)) {
        let safe = self.at.iter().flatten().min().copied().unwrap_or((u64::MAX, true));
        while let Some(entry) = self.open.first_entry() {
            let (number, measured) = *entry.key();
            if (number, measured) >= safe && safe != (u64::MAX, true) {
                break;
            }
            on_second(Second { number, warmup: !measured, totals: entry.remove() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_ended_holds_back_no_second() {
        let scale = dyno_record::Scale::Ns64;
        let at = vec![Some((0, false)); 2];
        let mut merger = Merger { metrics: 1, scale, empties: Vec::new(), open: BTreeMap::new(), at };
        // Whoever has ended wants no interval back: two receivers that live as long as the test.
        let mut emptied = Vec::new();
        for _ in 0..2 {
            let (empty, receiver) = channel();
            merger.empties.push(empty);
            emptied.push(receiver);
        }
        let mut counted = |thread: usize, number: u64, last: bool| {
            let mut interval = Interval::new(1, scale);
            (interval.thread, interval.number, interval.last) = (thread, number, last);
            merger.take(Box::new(interval));
            let mut seconds = Vec::new();
            merger.hand_out(&mut |second| seconds.push(second.number));
            seconds
        };
        assert!(counted(0, 0, false).is_empty());
        assert_eq!(counted(1, 0, false), [0]);
        assert!(counted(1, 1, false).is_empty());
        assert_eq!(counted(0, 1, true), [1]);
        assert_eq!(counted(1, 2, false), [2]);
        assert_eq!(counted(1, 3, true), [3]);
    }
}
