//! The threads that ask sources, tick by tick.
//!
//! Ticks stand on whole multiples of the interval of the wall clock, so that several hosts tick together. Sources that
//! read files share one thread; each source that waits for a server or a network has its own. A source that fails leaves a
//! missing sample and one event; nothing is taken for zero.

use crate::sample::{Sample, Source};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time that [`Monitor::take_samples`] waits for sources that are under way.
const PATIENCE: Duration = Duration::from_millis(500);

/// Rows that say "missing" after one answer that took many ticks.
const MISSED: u64 = 3_600;

/// Name of the source that the monitor itself is: what it costs.
pub const OWN: &str = "monitor";

/// Takes what sources say. It is called by several threads, one at a time.
pub trait SampleSink: Send {
    /// A source was asked at `at_ns` (Unix time); `None` is a missing sample.
    fn sample(&mut self, source: &str, at_ns: u64, sample: Option<&Sample>);

    /// A source has begun to fail, or answers again, in words.
    fn event(&mut self, source: &str, message: &str);
}

/// Cost of watching.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// CPU time of all monitor threads, seconds.
    pub cpu_s: f64,
    /// Time that they ran, seconds.
    pub wall_s: f64,
}

/// Command to a thread.
enum MonitorCommand {
    /// Takes a further sample at this Unix time, and tells the caller that waits for it.
    Mark(u64, Option<Sender<()>>),
    Stop,
}

/// Sources that are being watched.
pub struct Monitor {
    workers: Vec<(Sender<MonitorCommand>, JoinHandle<()>)>,
    clocks: Arc<Vec<AtomicU64>>,
    begun: Instant,
}

/// A handle that asks for samples at given times, from any thread.
#[derive(Clone)]
pub struct Marker(Vec<Sender<MonitorCommand>>);

impl Marker {
    /// Takes a further sample at `at`, or at once where that is past.
    pub fn mark_at(&self, at: SystemTime) {
        for words in &self.0 {
            // A thread that has ended has no more samples to take.
            let _ = words.send(MonitorCommand::Mark(unix_ns(at), None));
        }
    }
}

/// Nanoseconds since 1970.
pub fn unix_ns(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

fn thread_cpu_ns() -> u64 {
    let clock = clock_gettime(ClockId::ThreadCPUTime);
    clock.tv_sec as u64 * 1_000_000_000 + clock.tv_nsec as u64
}

impl Monitor {
    /// Watches `sources`, every `interval`, off all cores but `cores` where some are named.
    pub fn start(
        sources: Vec<Box<dyn Source>>,
        interval: Duration,
        cores: &[usize],
        sink: Arc<Mutex<dyn SampleSink>>,
    ) -> std::io::Result<Self> {
        let (waiting, local): (Vec<_>, Vec<_>) = sources.into_iter().partition(|s| s.waits());
        let mut groups = vec![local];
        groups.extend(waiting.into_iter().map(|source| vec![source]));
        let clocks: Arc<Vec<AtomicU64>> = Arc::new(groups.iter().map(|_| AtomicU64::new(0)).collect());
        let interval_ns = (interval.as_nanos() as u64).max(1_000_000);
        let mut workers = Vec::new();
        for (number, sources) in groups.into_iter().enumerate() {
            let (say, words) = channel();
            let worker = MonitorThread {
                sources: sources.into_iter().map(|source| (source, false)).collect(),
                number,
                interval_ns,
                clocks: clocks.clone(),
                sink: sink.clone(),
                sample: Sample::default(),
            };
            let cores = cores.to_vec();
            let thread = std::thread::Builder::new().name("dyno-monitor".into()).spawn(move || {
                keep_to(&cores);
                worker.run(&words);
            })?;
            workers.push((say, thread));
        }
        Ok(Monitor { workers, clocks, begun: Instant::now() })
    }

    /// For samples at known times.
    pub fn make_marker(&self) -> Marker {
        Marker(self.workers.iter().map(|(words, _)| words.clone()).collect())
    }

    /// Takes a further sample of every source now and waits for them, but not long for those that are slow.
    pub fn take_samples(&self) {
        let now = unix_ns(SystemTime::now());
        let (done, answers) = channel();
        let sent = self
            .workers
            .iter()
            .filter(|(w, _)| w.send(MonitorCommand::Mark(now, Some(done.clone()))).is_ok());
        let sent = sent.count();
        drop(done);
        let begun = Instant::now();
        for _ in 0..sent {
            if answers.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())).is_err() {
                return;
            }
        }
    }

    /// Returns the cost so far.
    pub fn cost_so_far(&self) -> Cost {
        let ns: u64 = self.clocks.iter().map(|c| c.load(Ordering::Relaxed)).sum();
        Cost { cpu_s: ns as f64 / 1e9, wall_s: self.begun.elapsed().as_secs_f64() }
    }

    /// Ends all threads.
    pub fn stop(mut self) -> Cost {
        for (words, _) in &self.workers {
            // A thread that has ended needs not be told.
            let _ = words.send(MonitorCommand::Stop);
        }
        for (_, thread) in self.workers.drain(..) {
            // A thread that panicked leaves no further samples, and they count as missing.
            let _ = thread.join();
        }
        self.cost_so_far()
    }
}

/// Keeps this thread to `cores`, if any are named. Where the system refuses, the thread runs anywhere: its cost is shown.
fn keep_to(cores: &[usize]) {
    let mut set = CpuSet::new();
    cores.iter().filter(|core| **core < CpuSet::MAX_CPU).for_each(|core| set.set(*core));
    if !cores.is_empty() {
        let _ = sched_setaffinity(None, &set);
    }
}

/// One thread's sources, each with whether it fails.
struct MonitorThread {
    sources: Vec<(Box<dyn Source>, bool)>,
    number: usize,
    interval_ns: u64,
    clocks: Arc<Vec<AtomicU64>>,
    sink: Arc<Mutex<dyn SampleSink>>,
    sample: Sample,
}

impl MonitorThread {
    fn run(mut self, words: &Receiver<MonitorCommand>) {
        let mut marks: Vec<(u64, Option<Sender<()>>)> = Vec::new();
        let mut tick = self.after(unix_ns(SystemTime::now()));
        loop {
            let due = marks.iter().map(|(at, _)| *at).min().map_or(tick, |mark| mark.min(tick));
            let now = unix_ns(SystemTime::now());
            if now < due {
                match words.recv_timeout(Duration::from_nanos(due - now)) {
                    Ok(MonitorCommand::Mark(at, done)) => marks.push((at, done)),
                    Ok(MonitorCommand::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                // A clock that was set back makes ticks of its own.
                tick = tick.min(self.after(unix_ns(SystemTime::now())));
                continue;
            }
            while let Ok(word) = words.try_recv() {
                match word {
                    MonitorCommand::Mark(at, done) => marks.push((at, done)),
                    MonitorCommand::Stop => return,
                }
            }
            self.take(now, tick);
            let ended = unix_ns(SystemTime::now());
            if tick <= ended {
                tick = self.after(ended);
            }
            marks.retain(|(at, done)| {
                if *at <= now
                    && let Some(done) = done
                {
                    // The caller may have lost patience.
                    let _ = done.send(());
                }
                *at > now
            });
        }
    }

    /// The first tick after a time.
    fn after(&self, ns: u64) -> u64 {
        (ns / self.interval_ns + 1) * self.interval_ns
    }

    /// Asks every source once. `tick` is the tick that is due or next.
    fn take(&mut self, now: u64, tick: u64) {
        for at in 0..self.sources.len() {
            self.sample.clear();
            let (source, failing) = &mut self.sources[at];
            let begun = unix_ns(SystemTime::now());
            let answer = source.sample(&mut self.sample);
            let ended = unix_ns(SystemTime::now()).max(begun);
            // A server's figures were true somewhere between question and answer.
            let when = begun + (ended - begun) / 2;
            let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
            match (&answer, *failing) {
                (Err(error), false) => sink.event(source.name(), &error.to_string()),
                (Ok(()), true) => sink.event(source.name(), "answers again"),
                _ => {}
            }
            *failing = answer.is_err();
            sink.sample(source.name(), when, answer.is_ok().then_some(&self.sample));
            let first = if tick <= now { tick + self.interval_ns } else { tick };
            let missed = (first..=ended).step_by(self.interval_ns as usize).filter(|t| *t > when);
            if source.waits() {
                missed.take(MISSED as usize).for_each(|t| sink.sample(source.name(), t, None));
            }
        }
        let cpu = thread_cpu_ns();
        self.clocks[self.number].store(cpu, Ordering::Relaxed);
        if self.number == 0 {
            let ns: u64 = self.clocks.iter().map(|c| c.load(Ordering::Relaxed)).sum();
            let mut own = Sample::default();
            own.add_counter("cpu_s", ns as f64 / 1e9);
            let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
            sink.sample(OWN, unix_ns(SystemTime::now()), Some(&own));
        }
    }
}

#[cfg(test)]
#[path = "monitor_tests.rs"]
mod tests;
