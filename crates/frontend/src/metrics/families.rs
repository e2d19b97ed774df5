//! Live metrics as families: their names, labels and units.

use super::MetricsOutlets;
use dyno_monitor::prometheus::FamilyKind::{Counter, Gauge};
use dyno_monitor::prometheus::{Families, Family, FamilyKind, MetricHistogram, SeriesValue};
use dyno_monitor::{ProcessCpu, SeriesKind, peak_resident_bytes};
use dyno_record::{Buckets, Totals, bucket_high};
use dyno_types::Outcome;

/// Bounds of the latency histograms, seconds: 1, 2.5 and 5 of every power of ten from 10 us to 10 s.
const BOUNDS: [f64; 19] = [
    0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
    0.5, 1.0, 2.5, 5.0, 10.0,
];

impl MetricsOutlets {
    /// Everything as it is now.
    pub fn families(&self) -> Vec<Family> {
        let mut all = Families::with_labels(&self.labels);
        self.of_run(&mut all);
        self.of_phases(&mut all);
        self.of_servers(&mut all);
        all.into_vec()
    }

    fn of_run(&self, all: &mut Families) {
        let one = SeriesValue::Number(1.0);
        all.begin("dyno_build_info", Gauge, "1", "The dyno that runs; always 1.");
        all.add_series(&[("version", env!("CARGO_PKG_VERSION"))], None, one.clone());
        all.begin("dyno_run_info", Gauge, "1", "The run and its target; always 1.");
        all.add_series(&[("run", &self.run), ("target", &self.target)], None, one.clone());
        let help = "The phase under way: preparing, load, warmup, measure or ended; always 1.";
        all.begin("dyno_phase_info", Gauge, "1", help);
        all.add_series(&[("phase", &self.phase)], None, one);
        let help = "Users or connections of the phase under way.";
        all.add_number(("dyno_users", Gauge, "1"), help, None, self.users as f64);
        if let Some(rate) = self.rate {
            let help = "Arrivals per second that the open loop begins with.";
            all.add_number(("dyno_target_rate", Gauge, "1/s"), help, None, rate);
        }
        let (cpu, help) = (ProcessCpu::read_now().total_s(), "User and system CPU time of dyno, seconds.");
        all.add_number(("process_cpu_seconds_total", Counter, "s"), help, self.process, cpu);
        if let Some(bytes) = peak_resident_bytes() {
            let help = "Largest resident memory of dyno so far, bytes.";
            all.add_number(("dyno_peak_resident_bytes", Gauge, "By"), help, None, bytes as f64);
        }
    }

    /// Adds the samples of servers and databases, under the names of the run directory.
    fn of_servers(&self, families: &mut Families) {
        for (kind, name, of, help) in [
            (
                SeriesKind::Counter,
                "dyno_server_total",
                Counter,
                "Counters of servers and databases by source and series.",
            ),
            (
                SeriesKind::Gauge,
                "dyno_server",
                Gauge,
                "Levels of servers and databases by source and series.",
            ),
        ] {
            let all = self.said.iter().flat_map(|(source, said)| said.iter().map(move |one| (source, one)));
            let mut of_kind = all.filter(|(_, one)| one.kind == kind).peekable();
            if of_kind.peek().is_some() {
                families.begin(name, of, "1", help);
            }
            for (source, one) in of_kind {
                // Since when a server has counted, it does not say.
                families.add_series(
                    &[("source", source), ("series", &one.name)],
                    None,
                    SeriesValue::Number(one.value),
                );
            }
        }
    }

    fn of_phases(&self, all: &mut Families) {
        all.begin("dyno_operations_total", Counter, "1", "Ended operations by phase, metric and outcome.");
        for (phase, told) in &self.told {
            for (metric, outcomes) in told.metrics.iter().zip(&told.totals.outcomes) {
                let shown = Outcome::ALL.into_iter().zip(outcomes);
                // Outcome ok from the beginning, so that rates have a beginning.
                for (outcome, count) in shown.filter(|(o, count)| *o == Outcome::Ok || **count > 0) {
                    let labels = [("phase", phase.as_str()), ("metric", metric), ("outcome", outcome.name())];
                    all.add_series(&labels, Some(told.since), SeriesValue::Number(*count as f64));
                }
            }
        }
        type Count = fn(&Totals) -> u64;
        let counters: [(&str, &str, Count); 6] = [
            ("dyno_arrivals_total", "Arrivals taken from the schedule.", |t| t.arrivals),
            ("dyno_late_replies_total", "Replies that came after their time-out.", |t| t.late),
            ("dyno_unexpected_replies_total", "Replies that no command had asked for.", |t| t.unexpected),
            ("dyno_broken_replies_total", "Replies that do not follow the protocol.", |t| t.broken),
            ("dyno_reconnects_total", "Connections made anew.", |t| t.reconnects),
            ("dyno_redirects_total", "Redirections followed.", |t| t.redirects),
        ];
        for (name, help, count) in counters {
            all.begin(name, Counter, "1", help);
            for (phase, told) in &self.told {
                let value = SeriesValue::Number(count(&told.totals) as f64);
                all.add_series(&[("phase", phase)], Some(told.since), value);
            }
        }
        let help = "Replies by the clock that says when they arrived, where the kernel was asked.";
        all.begin("dyno_stamps_total", Counter, "1", help);
        for (phase, told) in &self.told {
            let by = told.totals.stamps;
            for (clock, count) in [("kernel", by.kernel), ("client", by.client)] {
                let value = SeriesValue::Number(count as f64);
                all.add_series(&[("phase", phase), ("clock", clock)], Some(told.since), value);
            }
        }
        all.begin("dyno_backlog", Gauge, "1", "Longest queue of due arrivals so far.");
        for (phase, told) in &self.told {
            all.add_series(&[("phase", phase)], None, SeriesValue::Number(told.totals.backlog as f64));
        }
        self.latencies(all);
    }

    fn latencies(&self, all: &mut Families) {
        let families = [
            ("dyno_service_seconds", "Completion less sending, by result (ok or failed)."),
            ("dyno_response_seconds", "Completion less intended start, by result (ok or failed)."),
        ];
        for (response, (name, help)) in families.into_iter().enumerate() {
            all.begin(name, FamilyKind::Histogram, "s", help);
            for (phase, told) in &self.told {
                for (slot, merged) in told.totals.slots.iter().enumerate() {
                    let (Some(merged), Some(metric)) = (merged, told.metrics.get(slot / 2)) else { continue };
                    let result = if slot % 2 == 0 { "ok" } else { "failed" };
                    let buckets = if response == 1 { &merged.response } else { &merged.service };
                    let labels = [("phase", phase.as_str()), ("metric", metric), ("result", result)];
                    all.add_series(&labels, Some(told.since), histogram(buckets));
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
            all.begin(name, FamilyKind::Histogram, "s", help);
            for (phase, told) in self.told.iter().filter(|(_, told)| of(&told.totals).count() > 0) {
                all.add_series(&[("phase", phase)], Some(told.since), histogram(of(&told.totals)));
            }
        }
    }
}

/// Fine buckets into the classic ones; a fine bucket counts where its upper end is.
fn histogram(buckets: &Buckets) -> SeriesValue {
    let unit_s = buckets.bucket_scale().unit_ns() as f64 / 1e9;
    let mut up_to = BOUNDS.map(|bound| (bound, 0u64));
    for (bucket, count) in buckets.iter() {
        let seconds = (bucket_high(bucket) + 1) as f64 * unit_s;
        let first = BOUNDS.partition_point(|bound| *bound < seconds);
        up_to[first..].iter_mut().for_each(|(_, n)| *n += count);
    }
    let sum = buckets.sum_ns() as f64 / 1e9;
    SeriesValue::Histogram(MetricHistogram { up_to: up_to.to_vec(), count: buckets.count(), sum })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::Scale;

    #[test]
    fn fine_buckets_become_classic_ones() {
        let mut buckets = Buckets::new(Scale::Ns64);
        for us in [5, 15, 400, 400, 20_000_000] {
            buckets.record(us * 1_000);
        }
        let SeriesValue::Histogram(made) = histogram(&buckets) else { panic!("no histogram") };
        let at = |le: f64| made.up_to.iter().find(|(bound, _)| *bound == le).unwrap().1;
        assert_eq!((at(0.00001), at(0.000025), at(0.00025)), (1, 2, 2));
        assert_eq!((at(0.0005), at(10.0), made.count), (4, 4, 5));
        assert!((made.sum - 20.00082).abs() < 1e-9);
    }
}
