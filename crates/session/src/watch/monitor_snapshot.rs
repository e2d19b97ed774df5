//! Samples that monitors have seen: written to the run directory, else kept for the summary, and the newest for the live view.

use dyno_analysis::is_summarised;
use dyno_monitor::{Reading, Sample, SampleSink, SeriesKind, unix_ns};
use dyno_rundir::monitor::{self, MonitorWriter, Recording};
use dyno_types::database_series::{CONNECTIONS, MEMORY_BYTES, OPERATIONS};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Events that wait to be written; further ones are counted by the last.
const EVENTS: usize = 1_000;

/// Metrics that the database reports: all nodes together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerNow {
    /// Commands per second, over the last tick.
    pub operations_per_s: Option<f64>,
    /// Client connections.
    pub connections: Option<f64>,
    /// Memory, bytes.
    pub memory_bytes: Option<f64>,
}

/// The newest of one node.
#[derive(Clone, Copy, Debug, Default)]
struct SeenNode {
    counted: Option<(u64, f64)>,
    now: ServerNow,
}

/// Latest readings of a source.
pub type SourceSnapshot = Arc<[Reading]>;

pub(super) struct MonitorSnapshot {
    /// Samples that a summary needs; nothing where they are in a run directory.
    pub recording: Recording,
    /// The newest of servers and databases; a source that does not answer is not there.
    said: BTreeMap<String, SourceSnapshot>,
    writer: Option<MonitorWriter>,
    interval: Duration,
    nodes: BTreeMap<String, SeenNode>,
    events: Vec<(SystemTime, String)>,
    /// Number of times that a source has not answered, since it last did.
    silent: BTreeMap<String, u32>,
}

impl MonitorSnapshot {
    pub fn new(writer: Option<MonitorWriter>, interval: Duration) -> Self {
        MonitorSnapshot {
            recording: Recording::new(),
            said: BTreeMap::new(),
            writer,
            interval,
            nodes: BTreeMap::new(),
            events: Vec::new(),
            silent: BTreeMap::new(),
        }
    }

    /// Sources that have answered no more, twice or oftener.
    pub fn silent_sources(&self) -> Vec<String> {
        self.silent.iter().filter(|(_, times)| **times >= 2).map(|(source, _)| source.clone()).collect()
    }

    pub fn take_failure(&self) -> Option<&str> {
        self.writer.as_ref().and_then(MonitorWriter::first_failure)
    }

    pub fn forget_source(&mut self, before: SystemTime) {
        // One more interval, so that the sample before the phase is there.
        self.recording.forget_before(unix_ns(before) as f64 / 1e6 - self.interval.as_secs_f64() * 1e3);
    }

    pub fn take_events(&mut self) -> Vec<(SystemTime, String)> {
        std::mem::take(&mut self.events)
    }

    /// Returns the latest snapshot of each server and database, by source.
    pub fn latest_snapshots(&self) -> Vec<(String, SourceSnapshot)> {
        self.said.iter().map(|(source, said)| (source.clone(), said.clone())).collect()
    }

    /// The sums over all nodes; a figure that one of them lacks is not known.
    pub fn sum_latest(&self) -> Option<ServerNow> {
        let sum = |of: fn(&ServerNow) -> Option<f64>| -> Option<f64> {
            let values: Option<Vec<f64>> = self.nodes.values().map(|node| of(&node.now)).collect();
            values.filter(|v| !v.is_empty()).map(|v| v.iter().sum())
        };
        let now = ServerNow {
            operations_per_s: sum(|n| n.operations_per_s),
            connections: sum(|n| n.connections),
            memory_bytes: sum(|n| n.memory_bytes),
        };
        (now != ServerNow::default()).then_some(now)
    }

    fn node(&mut self, source: &str, at_ns: u64, sample: Option<&Sample>) {
        let least = self.interval.as_nanos() as u64 / 3;
        let node = self.nodes.entry(source.to_owned()).or_default();
        let Some(sample) = sample else {
            *node = SeenNode::default();
            return;
        };
        node.now.connections = sample.get(CONNECTIONS);
        node.now.memory_bytes = sample.get(MEMORY_BYTES);
        let Some(operations) = sample.get(OPERATIONS) else { return };
        match node.counted {
            // A further sample at the edge of a phase is too near for a rate.
            Some((before, _)) if at_ns < before + least => {}
            Some((before, counted)) => {
                let seconds = (at_ns - before) as f64 / 1e9;
                // Fewer than before: the server has begun anew.
                node.now.operations_per_s = (operations >= counted).then(|| (operations - counted) / seconds);
                node.counted = Some((at_ns, operations));
            }
            None => node.counted = Some((at_ns, operations)),
        }
    }
}

fn kind(kind: SeriesKind) -> monitor::Kind {
    match kind {
        SeriesKind::Counter => monitor::Kind::Counter,
        SeriesKind::Gauge => monitor::Kind::Gauge,
    }
}

impl SampleSink for MonitorSnapshot {
    fn sample(&mut self, source: &str, at_ns: u64, sample: Option<&Sample>) {
        match sample {
            Some(_) => drop(self.silent.remove(source)),
            None => *self.silent.entry(source.to_owned()).or_default() += 1,
        }
        let readings = sample.map_or(&[][..], Sample::all_readings);
        if source.starts_with("database") {
            self.node(source, at_ns, sample);
        }
        if source.starts_with("database") || source.starts_with("server") {
            match sample {
                Some(sample) => drop(self.said.insert(source.to_owned(), sample.all_readings().into())),
                None => drop(self.said.remove(source)),
            }
        }
        let row = readings.iter().map(|r| (r.name.as_str(), kind(r.kind), r.value));
        match &mut self.writer {
            Some(writer) => writer.write_row(source, at_ns, row),
            None => {
                let wanted = row.filter(|(name, ..)| is_summarised(source, name));
                self.recording.push(source, at_ns as f64 / 1e6, wanted);
            }
        }
    }

    fn event(&mut self, source: &str, message: &str) {
        if self.events.len() < EVENTS {
            self.events.push((SystemTime::now(), format!("{source}: {message}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn sample(operations: f64) -> Sample {
        let mut sample = Sample::default();
        sample.add_counter("operations", operations);
        sample.add_gauge("connections", 3.0);
        sample
    }

    #[test]
    fn the_newest_of_all_nodes() {
        let mut seen = MonitorSnapshot::new(None, Duration::from_secs(1));
        assert_eq!(seen.sum_latest(), None);
        seen.sample("database-a", SECOND, Some(&sample(100.0)));
        seen.sample("database-a", SECOND + 1_000, Some(&sample(150.0)));
        seen.sample("database-a", 3 * SECOND, Some(&sample(300.0)));
        let now = seen.sum_latest().unwrap();
        assert_eq!((now.operations_per_s, now.connections), (Some(100.0), Some(3.0)));
        seen.sample("database-b", 3 * SECOND, Some(&sample(1.0)));
        let now = seen.sum_latest().unwrap();
        assert_eq!((now.operations_per_s, now.connections), (None, Some(6.0)), "half a sum is none");
        seen.sample("database-b", 4 * SECOND, Some(&sample(0.0)));
        assert_eq!(seen.sum_latest().unwrap().operations_per_s, None, "begun anew");
        seen.sample("database-b", 5 * SECOND, Some(&sample(20.0)));
        assert_eq!(seen.sum_latest().unwrap().operations_per_s, Some(120.0));
        seen.sample("database-b", 6 * SECOND, None);
        assert_eq!(seen.sum_latest(), None, "what is missing is not what it was");
    }
}
