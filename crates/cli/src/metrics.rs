//! `--metrics`: the run's own live metrics, in Prometheus' text format.

use crate::terminal;
use dyno_engine::{Job, Pacing};
use dyno_monitor::prometheus::{Exporter, Text};
use dyno_monitor::{Kind, ProcessCpu, peak_resident_bytes};
use dyno_record::{Buckets, Totals, bucket_high};
use dyno_rundir::schema::Phase;
use dyno_session::session::{Observer, Progress};
use dyno_session::watch::seen::SourceSnapshot;
use dyno_types::Outcome;
use std::collections::BTreeMap;

/// Bounds of the latency histograms, seconds: 1, 2.5 and 5 of every power of ten from 10 us to 10 s.
const BOUNDS: [f64; 19] = [
    0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
    0.5, 1.0, 2.5, 5.0, 10.0,
];

/// One phase as it was when it was last told of.
struct PhaseTotals {
    metrics: Vec<String>,
    totals: Totals,
}

/// Serves what observers are told.
pub struct Metrics {
    exporter: Exporter,
    run: String,
    target: String,
    metrics: Vec<String>,
    users: usize,
    rate: Option<f64>,
    phase: String,
    told: BTreeMap<String, PhaseTotals>,
    /// Of the experiment's run under way, on every series.
    labels: Vec<(String, String)>,
    /// Last samples of servers and databases.
    said: Vec<(String, SourceSnapshot)>,
}

impl Metrics {
    /// Listens on `place`, for the run called `run` on `target`.
    /// A port alone is one of the loopback.
    pub fn listen(place: &str, run: String, target: String) -> std::io::Result<Self> {
        let port = place.strip_prefix(':').unwrap_or(place).parse::<u16>();
        let exporter = match port {
            Ok(port) => Exporter::listen(&format!("127.0.0.1:{port}"))?,
            Err(_) => Exporter::listen(place)?,
        };
        terminal::note(&format!("metrics for Prometheus: http://{}/metrics", exporter.address()));
        let mut metrics = Metrics {
            exporter,
            run,
            target,
            metrics: Vec::new(),
            users: 0,
            rate: None,
            phase: "preparing".into(),
            told: BTreeMap::new(),
            labels: Vec::new(),
            said: Vec::new(),
        };
        metrics.publish();
        Ok(metrics)
    }

    /// A run of an experiment begins: its cell and repetition are labels of every series from now on.
    pub fn of_experiment(&mut self, cell: usize, repetition: u32) {
        self.labels = vec![("cell".into(), cell.to_string()), ("repetition".into(), repetition.to_string())];
        self.told.clear();
        self.said.clear();
        self.phase = "preparing".into();
        self.publish();
    }

    fn publish(&mut self) {
        let mut text = Text::with(&self.labels);
        self.of_run(&mut text);
        self.of_phases(&mut text);
        self.of_servers(&mut text);
        self.exporter.publish(text.into_string());
    }

    fn of_run(&self, text: &mut Text) {
        text.family("dyno_build_info", "gauge", "The dyno that runs; always 1.");
        text.value("dyno_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        text.family("dyno_run_info", "gauge", "The run and its target; always 1.");
        text.value("dyno_run_info", &[("run", &self.run), ("target", &self.target)], 1.0);
        text.family(
            "dyno_phase_info",
            "gauge",
            "The phase under way: preparing, load, warmup, measure or ended; always 1.",
        );
        text.value("dyno_phase_info", &[("phase", &self.phase)], 1.0);
        text.family("dyno_users", "gauge", "Users or connections of the phase under way.");
        text.value("dyno_users", &[], self.users as f64);
        if let Some(rate) = self.rate {
            text.family("dyno_target_rate", "gauge", "Arrivals per second that the open loop begins with.");
            text.value("dyno_target_rate", &[], rate);
        }
        let cpu = ProcessCpu::now().total_s();
        text.family("process_cpu_seconds_total", "counter", "User and system CPU time of dyno, seconds.");
        text.value("process_cpu_seconds_total", &[], cpu);
        if let Some(bytes) = peak_resident_bytes() {
            text.family(
                "dyno_peak_resident_bytes",
                "gauge",
                "Largest resident memory of dyno so far, bytes.",
            );
            text.value("dyno_peak_resident_bytes", &[], bytes as f64);
        }
    }

    /// Writes the samples of servers and databases, under the names of the run directory.
    fn of_servers(&self, text: &mut Text) {
        for (kind, name, word, help) in [
            (
                Kind::Counter,
                "dyno_server_total",
                "counter",
                "Counters of servers and databases by source and series.",
            ),
            (Kind::Gauge, "dyno_server", "gauge", "Levels of servers and databases by source and series."),
        ] {
            let all = self.said.iter().flat_map(|(source, said)| said.iter().map(move |one| (source, one)));
            let mut of_kind = all.filter(|(_, one)| one.kind == kind).peekable();
            if of_kind.peek().is_some() {
                text.family(name, word, help);
            }
            for (source, one) in of_kind {
                text.value(name, &[("source", source), ("series", &one.name)], one.value);
            }
        }
    }

    fn of_phases(&self, text: &mut Text) {
        text.family("dyno_operations_total", "counter", "Ended operations by phase, metric and outcome.");
        for (phase, told) in &self.told {
            for (metric, outcomes) in told.metrics.iter().zip(&told.totals.outcomes) {
                let shown = Outcome::ALL.into_iter().zip(outcomes);
                // Outcome ok from the beginning, so that rates have a beginning.
                for (outcome, count) in shown.filter(|(o, count)| *o == Outcome::Ok || **count > 0) {
                    let labels = [("phase", phase.as_str()), ("metric", metric), ("outcome", outcome.name())];
                    text.value("dyno_operations_total", &labels, *count as f64);
                }
            }
        }
        type Count = fn(&Totals) -> u64;
        let counters: [(&str, &str, Count); 4] = [
            ("dyno_arrivals_total", "Arrivals taken from the schedule.", |t| t.arrivals),
            ("dyno_late_replies_total", "Replies that came after their time-out.", |t| t.late),
            ("dyno_reconnects_total", "Connections made anew.", |t| t.reconnects),
            ("dyno_redirects_total", "Redirections followed.", |t| t.redirects),
        ];
        for (name, help, count) in counters {
            text.family(name, "counter", help);
            for (phase, told) in &self.told {
                text.value(name, &[("phase", phase)], count(&told.totals) as f64);
            }
        }
        let name = "dyno_stamps_total";
        text.family(
            name,
            "counter",
            "Replies by the clock that says when they arrived, where the kernel was asked.",
        );
        for (phase, told) in &self.told {
            let by = told.totals.stamps;
            for (clock, count) in [("kernel", by.kernel), ("client", by.client)] {
                text.value(name, &[("phase", phase), ("clock", clock)], count as f64);
            }
        }
        text.family("dyno_backlog", "gauge", "Longest queue of due arrivals so far.");
        for (phase, told) in &self.told {
            text.value("dyno_backlog", &[("phase", phase)], told.totals.backlog as f64);
        }
        self.latencies(text);
    }

    fn latencies(&self, text: &mut Text) {
        let families = [
            ("dyno_service_seconds", "Completion less sending, by result (ok or failed)."),
            ("dyno_response_seconds", "Completion less intended start, by result (ok or failed)."),
        ];
        for (response, (name, help)) in families.into_iter().enumerate() {
            text.family(name, "histogram", help);
            for (phase, told) in &self.told {
                for (slot, merged) in told.totals.slots.iter().enumerate() {
                    let (Some(merged), Some(metric)) = (merged, told.metrics.get(slot / 2)) else { continue };
                    let result = if slot % 2 == 0 { "ok" } else { "failed" };
                    let buckets = if response == 1 { &merged.response } else { &merged.service };
                    histogram(
                        text,
                        name,
                        &[("phase", phase), ("metric", metric), ("result", result)],
                        buckets,
                    );
                }
            }
        }
        type Of = fn(&Totals) -> &Buckets;
        let of_all: [(&str, &str, Of); 3] = [
            (
                "dyno_schedule_lag_seconds",
                "Sending less intended start, of arrivals that found a free connection.",
                |totals| &totals.lag,
            ),
            (
                "dyno_receive_lag_seconds",
                "Handling of a reply less its arrival by the kernel's clock.",
                |totals| &totals.receive_lag,
            ),
            (
                "dyno_ideal_response_seconds",
                "Open loop: response times as a client that is never late would have seen them.",
                |totals| &totals.ideal,
            ),
        ];
        for (name, help, of) in of_all {
            text.family(name, "histogram", help);
            for (phase, told) in self.told.iter().filter(|(_, told)| of(&told.totals).count() > 0) {
                histogram(text, name, &[("phase", phase)], of(&told.totals));
            }
        }
    }
}

/// Fine buckets into the classic ones; a fine bucket counts where its upper end is.
fn histogram(text: &mut Text, name: &str, labels: &[(&str, &str)], buckets: &Buckets) {
    let unit_s = buckets.scale().unit_ns() as f64 / 1e9;
    let mut up_to = BOUNDS.map(|bound| (bound, 0u64));
    for (bucket, count) in buckets.iter() {
        let seconds = (bucket_high(bucket) + 1) as f64 * unit_s;
        let first = BOUNDS.partition_point(|bound| *bound < seconds);
        up_to[first..].iter_mut().for_each(|(_, n)| *n += count);
    }
    text.histogram(name, labels, &up_to, buckets.count(), buckets.sum_ns() as f64 / 1e9);
}

impl Observer for Metrics {
    fn begin(&mut self, phase: &str, job: &Job) {
        self.phase = if job.warmup_ns > 0 { "warmup".into() } else { phase.to_owned() };
        self.metrics = job.workload.metrics().to_vec();
        self.users = job.users;
        self.rate = match &job.pacing {
            Pacing::Open { profile, .. } => Some(profile.rate_at(job.warmup_ns)),
            Pacing::Closed { .. } => None,
        };
        let first =
            PhaseTotals { metrics: self.metrics.clone(), totals: Totals::new(self.metrics.len(), job.scale) };
        self.told.insert(self.phase.clone(), first);
        self.publish();
    }

    fn second(&mut self, p: &Progress<'_>) {
        self.phase = p.phase.to_owned();
        self.said.clone_from(&p.said);
        let mut totals = Totals::new(self.metrics.len(), p.so_far.scale());
        totals.merge(p.so_far);
        self.told.insert(self.phase.clone(), PhaseTotals { metrics: self.metrics.clone(), totals });
        self.publish();
    }

    fn end(&mut self, _phase: &Phase) {
        self.phase = "ended".into();
        self.publish();
    }
}

/// Both are told.
pub struct ObserverPair<'a>(pub &'a mut dyn Observer, pub Option<&'a mut Metrics>);

impl Observer for ObserverPair<'_> {
    fn begin(&mut self, phase: &str, job: &Job) {
        self.0.begin(phase, job);
        if let Some(metrics) = &mut self.1 {
            metrics.begin(phase, job);
        }
    }

    fn second(&mut self, progress: &Progress<'_>) {
        self.0.second(progress);
        if let Some(metrics) = &mut self.1 {
            metrics.second(progress);
        }
    }

    fn end(&mut self, phase: &Phase) {
        self.0.end(phase);
        if let Some(metrics) = &mut self.1 {
            metrics.end(phase);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_monitor::Sample;
    use dyno_monitor::prometheus::parse;
    use dyno_record::Scale;

    #[test]
    fn fine_buckets_become_classic_ones() {
        let mut buckets = Buckets::new(Scale::Ns64);
        for us in [5, 15, 400, 400, 20_000_000] {
            buckets.record(us * 1_000);
        }
        let mut text = Text::new();
        histogram(&mut text, "h", &[("m", "READ")], &buckets);
        let mut sample = Sample::default();
        parse(&text.into_string(), &mut sample).unwrap();
        let at = |le: &str| sample.get(&format!("h_bucket{{m=\"READ\",le=\"{le}\"}}")).unwrap();
        assert_eq!((at("0.00001"), at("0.000025"), at("0.00025")), (1.0, 2.0, 2.0));
        assert_eq!((at("0.0005"), at("10"), at("+Inf")), (4.0, 4.0, 5.0));
        assert!((sample.get("h_sum{m=\"READ\"}").unwrap() - 20.00082).abs() < 1e-9);
    }
}
