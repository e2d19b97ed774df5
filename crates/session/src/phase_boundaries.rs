//! The edges of phases, as exact as the clock: they are marked in what monitors record, and written to the events.

use crate::watch::MonitorWatch;
use dyno_analysis::summarise_monitors;
use dyno_engine::{Control, Finished};
use dyno_rundir::RunWriter;
use dyno_rundir::monitor::Recording;
use dyno_rundir::schema::{OthersUse, Phase};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Receives the epoch of a run and the length of its warm-up.
pub(crate) type OnEpoch = Arc<dyn Fn(SystemTime, Duration) + Send + Sync>;

fn unix_ns(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// Recording of a phase that has ended.
pub(crate) struct WatchedPhase {
    pub recording: Recording,
    /// Begin of the phase, Unix milliseconds.
    pub from_ms: f64,
    /// Its end.
    pub to_ms: f64,
    /// Other programs of other hosts, by host.
    pub elsewhere: BTreeMap<String, OthersUse>,
}

/// One run of the engine: a phase, perhaps with a warm-up before it.
pub(crate) struct PhaseBoundaries<'a> {
    name: &'static str,
    warmup: Duration,
    /// Length of the phase behind it, if that was asked for.
    length: Option<Duration>,
    watch: Option<&'a MonitorWatch>,
    epoch: Arc<Mutex<Option<SystemTime>>>,
    /// True if the warm-up is not over yet, as far as is known.
    warming: bool,
    /// Begun phases that have been written.
    written: usize,
}

impl<'a> PhaseBoundaries<'a> {
    /// Before the run.
    pub fn for_phase(
        name: &'static str,
        (warmup_ns, length_ns): (u64, Option<u64>),
        watch: Option<&'a MonitorWatch>,
        others: Option<OnEpoch>,
        control: &Control,
    ) -> Self {
        let (warmup, length) = (Duration::from_nanos(warmup_ns), length_ns.map(Duration::from_nanos));
        let epoch = Arc::new(Mutex::new(None));
        let marker = watch.map(|watch| {
            watch.begin();
            watch.markers()
        });
        let told = epoch.clone();
        control.on_begin(move |at| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            // Several workers begin together; the first counts.
            if told.is_none() {
                *told = Some(at);
                tracing::info!(phase = name, epoch_ns = unix_ns(at), warmup_ns, "a phase begins");
                if let Some(others) = &others {
                    others(at, warmup);
                }
                if let Some(marker) = &marker {
                    marker.mark_at(at);
                    marker.mark_at(at + warmup);
                    // What the drain uses is none of the phase's.
                    length.iter().for_each(|length| marker.mark_at(at + warmup + *length));
                }
            }
        });
        PhaseBoundaries { name, warmup, length, watch, epoch, warming: warmup_ns > 0, written: 0 }
    }

    /// A second of the warm-up or of the phase has been counted: what has begun is written, and what monitors say.
    pub fn note_second(&mut self, warmup: bool, writer: Option<&mut RunWriter>) {
        let epoch = *self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(epoch) = epoch.filter(|_| self.warming && !warmup) {
            self.warming = false;
            tracing::info!(phase = self.name, ended_ns = unix_ns(epoch + self.warmup), "the warm-up is over");
        }
        let Some(writer) = writer else { return };
        if let Some(epoch) = epoch {
            self.write(epoch, warmup, writer);
        }
        for (at, message) in self.watch.map(MonitorWatch::events).unwrap_or_default() {
            tracing::warn!(event = message, "a monitor has something to say");
            writer.event_at(at, "monitor", &message);
        }
    }

    fn write(&mut self, epoch: SystemTime, warmup: bool, writer: &mut RunWriter) {
        let begun = epoch + self.warmup;
        if self.written == 0 && !self.warmup.is_zero() {
            writer.event_at(epoch, "begin", "warmup");
            self.written = 1;
        }
        if self.written < 2 && !warmup {
            if !self.warmup.is_zero() {
                writer.event_at(begun, "end", "warmup");
            }
            writer.event_at(begun, "begin", self.name);
            self.written = 2;
        }
    }

    /// The run has ended. Returns what monitors saw of it.
    pub fn end(
        &mut self,
        finished: &Finished,
        phase: &mut Phase,
        warmup: Option<&mut Phase>,
        writer: Option<&mut RunWriter>,
    ) -> Option<WatchedPhase> {
        let begun = finished.epoch + self.warmup;
        let ended = begun + Duration::from_nanos(finished.measured_ns);
        let watched = self.watch.map(|watch| {
            let elsewhere = watch.end();
            // Only a boundary that was known before has a sample of its own; else the last one is that of the end.
            let by_clock = self.length == Some(Duration::from_nanos(finished.measured_ns));
            let last = (finished.epoch + Duration::from_nanos(finished.elapsed_ns)).max(ended);
            let ms = |time| unix_ns(time) as f64 / 1e6;
            let (from_ms, to_ms) = (ms(begun), ms(if by_clock { ended } else { last }));
            let recording = watch.recording(finished.epoch);
            phase.monitor = Some(summarise_monitors(&recording, from_ms, to_ms));
            if let Some(warmup) = warmup {
                warmup.monitor = Some(summarise_monitors(&recording, ms(finished.epoch), from_ms));
            }
            WatchedPhase { recording, from_ms, to_ms, elsewhere }
        });
        if let Some(writer) = writer {
            self.note_second(false, Some(writer));
            writer.event_at(ended, "end", self.name);
        }
        watched
    }
}
