//! Latencies as callers have them: failures with at least the time after which they failed, what was never sent beyond all.

use crate::latency::latency_from_buckets;
use dyno_record::{Buckets, Scale, Totals, is_supported};
use dyno_rundir::schema::Latency;
use dyno_rundir::{RunDir, adds_up};
use dyno_types::Outcome;

/// Latencies of all arrivals. A quick failure makes no figure less than the successes alone have.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrivalLatency {
    /// Latencies of the successes.
    pub ok: Buckets,
    /// Latencies of the failures, as far as they have a time.
    pub failed: Buckets,
    /// Arrivals that were dropped, or could not be sent.
    pub unsent: u64,
}

impl ArrivalLatency {
    /// Makes the latencies of no arrival.
    pub fn new(scale: Scale) -> Self {
        ArrivalLatency { ok: Buckets::new(scale), failed: Buckets::new(scale), unsent: 0 }
    }

    /// Response times of a metric.
    pub fn from_response_times(totals: &Totals, metric: usize) -> Self {
        let slots = [totals.ok_slot(metric), totals.failed_slot(metric)];
        let scale = slots.iter().flatten().next().map_or(Scale::Ns64, |slot| slot.response.bucket_scale());
        let times = |slot: Option<&_>| {
            slot.map_or_else(|| Buckets::new(scale), |s: &dyno_record::MergedSlot| s.response.clone())
        };
        let (ok, failed) = (times(slots[0]), times(slots[1]));
        let counts = &totals.outcomes[metric];
        let of = |outcome: Outcome| counts[outcome as usize];
        // An operation that was refused before it could be sent has no time either; those that the end of the run cut off are not
        // known.
        let lost = counts.iter().sum::<u64>() - of(Outcome::Ok) - of(Outcome::Aborted);
        let unsent = lost.saturating_sub(failed.count()).max(of(Outcome::Dropped));
        ArrivalLatency { ok, failed, unsent }
    }

    /// Service times of a metric; what was never sent has none.
    pub fn from_service_times(totals: &Totals, metric: usize) -> Self {
        let slots = [totals.ok_slot(metric), totals.failed_slot(metric)];
        let scale = slots.iter().flatten().next().map_or(Scale::Ns64, |slot| slot.service.bucket_scale());
        let times = |slot: Option<&_>| {
            slot.map_or_else(|| Buckets::new(scale), |s: &dyno_record::MergedSlot| s.service.clone())
        };
        ArrivalLatency { ok: times(slots[0]), failed: times(slots[1]), unsent: 0 }
    }

    /// Response times of all operations of a phase of a run ([`adds_up`]). Times
    /// of another unit than `scale` cannot be added up exactly and are left out.
    pub fn of_run(dir: &RunDir, phase: &str, scale: Scale) -> Self {
        let names = dir.run.metrics.get(phase).map_or(&[][..], Vec::as_slice);
        let mut all = ArrivalLatency::new(scale);
        for recorded in dir.phases.iter().filter(|recorded| recorded.name == phase) {
            for (number, name) in names.iter().enumerate() {
                if adds_up(names, name) {
                    all.merge(&ArrivalLatency::from_response_times(&recorded.totals, number));
                }
            }
        }
        all
    }

    /// Adds others of the same unit.
    pub fn merge(&mut self, other: &ArrivalLatency) {
        for (own, new) in [(&mut self.ok, &other.ok), (&mut self.failed, &other.failed)] {
            if own.bucket_scale() == new.bucket_scale() {
                own.merge(new);
            }
        }
        self.unsent += other.unsent;
    }

    /// Arrivals, with and without a time.
    pub fn count(&self) -> u64 {
        self.ok.count() + self.failed.count() + self.unsent
    }

    /// Returns whether all succeeded.
    pub fn all_ok(&self) -> bool {
        self.failed.count() == 0 && self.unsent == 0
    }

    /// Everything that has a time.
    pub(crate) fn timed_buckets(&self) -> Buckets {
        let mut all = self.ok.clone();
        if all.bucket_scale() == self.failed.bucket_scale() {
            all.merge(&self.failed);
        }
        all
    }

    /// A percentile in nanoseconds, if ten arrivals lie beyond it.
    pub fn supported_ns(&self, percentile: f64) -> Option<f64> {
        is_supported(self.count(), percentile).then(|| self.percentile_ns(percentile))
    }

    /// A percentile in nanoseconds; infinite among what was never sent.
    pub fn percentile_ns(&self, percentile: f64) -> f64 {
        if self.all_ok() {
            return self.ok.percentile_ns(percentile) as f64;
        }
        let all = self.timed_buckets();
        let among = percentile_among_timed(percentile, all.count(), self.unsent);
        if among > 100.0 || all.count() == 0 {
            return f64::INFINITY;
        }
        let own = if self.ok.count() > 0 { self.ok.percentile_ns(percentile) } else { 0 };
        all.percentile_ns(among).max(own) as f64
    }

    /// Figures; `None` of nothing that has a time.
    pub fn to_latency(&self) -> Option<Latency> {
        let mut arrivals = latency_from_buckets(&self.timed_buckets(), self.unsent)?;
        if let Some(own) = latency_from_buckets(&self.ok, 0).filter(|_| !self.all_ok()) {
            arrivals.mean_us = arrivals.mean_us.max(own.mean_us);
            arrivals.min_us = own.min_us;
            for (name, value) in &mut arrivals.percentiles_us {
                let of_successes = own.percentiles_us.get(name).copied().flatten();
                *value = value.map(|value| of_successes.map_or(value, |other| value.max(other)));
            }
        }
        Some(arrivals)
    }
}

/// The percentile among the `timed` that is this one of them and the `unsent`; above 100 it lies among the latter.
pub fn percentile_among_timed(percentile: f64, timed: u64, unsent: u64) -> f64 {
    if unsent == 0 {
        return percentile;
    }
    percentile * (timed + unsent) as f64 / timed.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::made::{SyntheticRun, SyntheticRunParts};
    use dyno_record::MergedSlot;
    use dyno_rundir::RecordedPhase;

    fn of(ok: u64, (failed, ns): (u64, u64), unsent: u64) -> ArrivalLatency {
        let mut arrivals = ArrivalLatency::new(Scale::Ns64);
        (1..=ok).for_each(|i| arrivals.ok.record(i * 1_000));
        (0..failed).for_each(|_| arrivals.failed.record(ns));
        ArrivalLatency { unsent, ..arrivals }
    }

    #[test]
    fn a_percentile_wants_ten_arrivals_beyond_it() {
        let known = |count, percentile| of(count, (0, 0), 0).supported_ns(percentile).is_some();
        assert_eq!([known(999, 99.0), known(1_000, 99.0)], [false, true]);
        assert_eq!([known(9_999, 99.9), known(10_000, 99.9)], [false, true]);
        assert_eq!([known(19, 50.0), known(20, 50.0), known(0, 50.0)], [false, true, false]);
    }

    #[test]
    fn failures_count_with_their_time_and_make_nothing_quicker() {
        // 3 % of the arrivals took 50 ms and failed.
        let slow = of(9_700, (300, 50_000_000), 0);
        let arrivals = slow.to_latency().unwrap();
        assert_eq!((arrivals.count, slow.count()), (10_000, 10_000));
        assert!((arrivals.percentiles_us["p99"].unwrap() - 50_000.0).abs() < 50.0, "{arrivals:?}");
        assert!((arrivals.percentiles_us["p50"].unwrap() - 5_000.0).abs() < 10.0, "{arrivals:?}");
        assert_eq!(arrivals.percentiles_us["p99"].unwrap() * 1e3, slow.percentile_ns(99.0));
        // Failures at once are not good times.
        let (quick, ok) = (of(9_700, (9_700, 1_000), 0), of(9_700, (0, 0), 0));
        assert_eq!(
            quick.to_latency().unwrap().percentiles_us["p99"],
            ok.to_latency().unwrap().percentiles_us["p99"]
        );
        assert_eq!(quick.percentile_ns(99.0), ok.percentile_ns(99.0));
        // An operation that was never sent is infinite.
        let unsent = of(9_700, (0, 0), 970);
        assert_eq!(
            (unsent.to_latency().unwrap().percentiles_us["p99"], unsent.percentile_ns(99.0)),
            (None, f64::INFINITY)
        );
        assert!(unsent.percentile_ns(50.0) > 5_300_000.0);
        assert!(ok.all_ok() && !unsent.all_ok());
    }

    #[test]
    fn what_was_never_sent_is_what_has_no_time_and_was_not_cut_off() {
        let mut totals = Totals::new(1, Scale::Ns64);
        let outcomes = [(Outcome::Ok, 6), (Outcome::Aborted, 2), (Outcome::Dropped, 3), (Outcome::Busy, 5)];
        outcomes.into_iter().for_each(|(outcome, count)| totals.outcomes[0][outcome as usize] = count);
        let ArrivalLatency { ok, failed, .. } = of(6, (4, 9_000), 0);
        for (slot, times) in [ok, failed].into_iter().enumerate() {
            totals.slots[slot] = Some(MergedSlot { service: times.clone(), response: times });
        }
        // Of 16, 6 succeeded, 2 were cut off and 4 failed with a time.
        let arrivals = ArrivalLatency::from_response_times(&totals, 0);
        assert_eq!(
            (arrivals.ok.count(), arrivals.failed.count(), arrivals.unsent, arrivals.count()),
            (6, 4, 4, 14)
        );
        assert_eq!(ArrivalLatency::from_service_times(&totals, 0), ArrivalLatency { unsent: 0, ..arrivals });
    }

    #[test]
    fn times_of_a_run_are_those_of_the_operations_of_one_phase() {
        let mut run = SyntheticRun::new(SyntheticRunParts {
            client: "\"pipeline\": 1",
            ..SyntheticRunParts::default()
        });
        let counted = |ok: u64, failed: u64| {
            let mut totals = Totals::new(2, Scale::Ns64);
            let ArrivalLatency { ok: times, failed: late, .. } = of(ok, (failed, 9_000), 0);
            let slot = |times: Buckets| Some(MergedSlot { service: times.clone(), response: times });
            // The first metric is a request of the second one.
            totals.slots = vec![slot(of(50, (0, 0), 0).ok), None, slot(times), slot(late)];
            totals.outcomes[1][Outcome::Ok as usize] = ok;
            totals.outcomes[1][Outcome::TimedOut as usize] = failed;
            totals
        };
        let names = ["READ", "TRANSACTION"].map(str::to_owned).to_vec();
        run.run.phases.clear();
        for (phase, totals) in [("warmup", counted(7, 2)), ("measure", counted(4, 1))] {
            run.run.run.metrics.insert(phase.into(), names.clone());
            run.run.phases.push(RecordedPhase { name: phase.into(), seconds: 1, totals });
        }
        let found = |phase: &str, scale: Scale| {
            let arrivals = ArrivalLatency::of_run(&run.run, phase, scale);
            (arrivals.ok.count(), arrivals.failed.count(), arrivals.unsent)
        };
        assert_eq!(found("warmup", Scale::Ns64), (7, 2, 0));
        assert_eq!(found("measure", Scale::Ns64), (4, 1, 0));
        assert_eq!((found("load", Scale::Ns64), found("measure", Scale::Micros)), ((0, 0, 0), (0, 0, 0)));
    }

    #[test]
    fn others_are_added_but_for_times_of_another_unit() {
        let mut arrivals = of(2, (1, 5_000), 3);
        arrivals.merge(&of(3, (2, 5_000), 4));
        assert_eq!(
            (arrivals.ok.count(), arrivals.failed.count(), arrivals.unsent, arrivals.count()),
            (5, 3, 7, 15)
        );
        let mut micros = ArrivalLatency { unsent: 1, ..ArrivalLatency::new(Scale::Micros) };
        micros.ok.record(1_000_000);
        arrivals.merge(&micros);
        assert_eq!((arrivals.ok.count(), arrivals.unsent), (5, 8));
    }

    #[test]
    fn a_percentile_among_those_that_have_a_time() {
        assert_eq!(
            (
                percentile_among_timed(90.0, 10, 0),
                percentile_among_timed(50.0, 200, 100),
                percentile_among_timed(50.0, 0, 1)
            ),
            (90.0, 75.0, 50.0)
        );
        // Half of the arrivals have a time: the median is the slowest of them.
        let half = of(4, (0, 0), 4);
        assert_eq!(half.percentile_ns(50.0), half.ok.percentile_ns(100.0) as f64);
        assert_eq!(half.percentile_ns(51.0), f64::INFINITY);
        assert_eq!(of(0, (0, 0), 4).percentile_ns(50.0), f64::INFINITY);
    }
}
