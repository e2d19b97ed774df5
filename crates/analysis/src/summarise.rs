//! Totals of a phase into the summary's figures. Percentiles are made here, last, from merged histograms.

use dyno_record::{Buckets, Totals};
use dyno_rundir::schema::{Client, Latency, Metric, Phase};
use dyno_types::Outcome;
use std::collections::BTreeMap;

/// Percentiles of a summary.
const PERCENTILES: [(&str, f64); 7] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
    ("p99.999", 99.999),
];

/// Samples that must lie beyond a percentile for it to be shown.
const BEYOND: f64 = 10.0;

/// What is known of a phase beside its totals.
#[derive(Clone, Debug, Default)]
pub struct PhaseFacts {
    /// `load`, `warmup` or `measure`.
    pub name: String,
    /// Length, seconds.
    pub seconds: f64,
    /// Scheduled arrivals per second (open loop).
    pub offered: Option<f64>,
    /// The client.
    pub client: Client,
    /// First error text of every class.
    pub errors: BTreeMap<String, String>,
    /// Whether a worker was lost, or the run: the ends of some arrivals are known to nobody.
    pub cut_off: bool,
}

/// Percentiles of a latency, with `dropped` arrivals counted as longer than any measured one. A percentile is absent
/// unless at least ten samples lie beyond it (p50 to p95 are always given).
pub fn latency(buckets: &Buckets, dropped: u64) -> Option<Latency> {
    if buckets.count() == 0 {
        return None;
    }
    let all = buckets.count() + dropped;
    let mut percentiles_us = BTreeMap::new();
    for (name, p) in PERCENTILES {
        let beyond = all as f64 * (100.0 - p) / 100.0;
        if p > 95.0 && beyond < BEYOND {
            continue;
        }
        // The rank among all, looked up among those that were measured.
        let rank = p / 100.0 * all as f64;
        let value = (rank <= buckets.count() as f64).then(|| {
            let among_measured = rank / buckets.count() as f64 * 100.0;
            buckets.percentile_ns(among_measured) as f64 / 1e3
        });
        percentiles_us.insert(name.to_owned(), value);
    }
    Some(Latency {
        count: buckets.count(),
        mean_us: buckets.mean_ns() / 1e3,
        min_us: Some(buckets.min_ns() as f64 / 1e3),
        max_us: Some(buckets.max_ns() as f64 / 1e3),
        percentiles_us,
    })
}

/// The latency of all arrivals where some failed: `failed` with the time after which they failed, which they would have taken
/// at least, and `unsent` beyond every measured one. Quick failures make no figure less than successes alone have.
fn of_all(ok: Option<&Buckets>, failed: Option<&Buckets>, unsent: u64) -> Option<Latency> {
    let failed = failed.filter(|failed| failed.count() > 0);
    if failed.is_none() && unsent == 0 {
        return None;
    }
    let mut all = Buckets::new(ok.or(failed)?.scale());
    ok.into_iter().chain(failed).for_each(|some| all.merge(some));
    let mut felt = latency(&all, unsent)?;
    if let Some(own) = ok.and_then(|ok| latency(ok, 0)) {
        felt.mean_us = felt.mean_us.max(own.mean_us);
        felt.min_us = own.min_us;
        for (name, value) in &mut felt.percentiles_us {
            let of_successes = own.percentiles_us.get(name).copied().flatten();
            *value = value.map(|value| of_successes.map_or(value, |other| value.max(other)));
        }
    }
    Some(felt)
}

fn by_name(counts: &[u64; Outcome::COUNT]) -> BTreeMap<String, u64> {
    let named = Outcome::ALL.into_iter().map(|o| (o.name().to_owned(), counts[o as usize]));
    named.filter(|(_, count)| *count > 0).collect()
}

/// The summary of a phase.
pub fn phase(facts: PhaseFacts, metrics: &[String], totals: &Totals) -> Phase {
    let seconds = facts.seconds.max(1e-9);
    let metrics = metrics
        .iter()
        .enumerate()
        .filter(|(number, _)| totals.outcomes[*number].iter().any(|&c| c > 0))
        .map(|(number, name)| {
            let counts = &totals.outcomes[number];
            let dropped = counts[Outcome::Dropped as usize];
            let (ok, failed) = (totals.ok_slot(number), totals.failed_slot(number));
            // What was refused before it could be sent has no time either; what the end of the run cut off is not known.
            let lost =
                counts.iter().sum::<u64>() - counts[Outcome::Ok as usize] - counts[Outcome::Aborted as usize];
            let unsent = lost.saturating_sub(failed.map_or(0, |failed| failed.response.count())).max(dropped);
            let (served, broken) = (ok.map(|s| &s.response), failed.map(|s| &s.response));
            Metric {
                name: name.clone(),
                outcomes: by_name(counts),
                service: ok.and_then(|s| latency(&s.service, 0)),
                response: ok.and_then(|s| latency(&s.response, dropped)),
                failed_service: failed.and_then(|s| latency(&s.service, 0)),
                failed_response: failed.and_then(|s| latency(&s.response, 0)),
                all_response: of_all(served, broken, unsent),
                all_service: of_all(ok.map(|s| &s.service), failed.map(|s| &s.service), 0),
            }
        })
        .collect();
    let mut drops = BTreeMap::new();
    for &(second, count) in &totals.drops {
        *drops.entry(second).or_insert(0) += count;
    }
    let mut ended = totals.ended;
    if facts.cut_off {
        ended[Outcome::Aborted as usize] += totals.arrivals.saturating_sub(ended.iter().sum());
    }
    Phase {
        throughput: totals.ok() as f64 / seconds,
        seconds: facts.seconds,
        name: facts.name,
        arrivals: totals.arrivals,
        outcomes: by_name(&ended),
        offered: facts.offered,
        metrics,
        schedule_lag: latency(&totals.lag, 0),
        receive_lag: latency(&totals.receive_lag, 0),
        turnaround: latency(&totals.turnaround, 0),
        late_replies: totals.late,
        reconnects: totals.reconnects,
        redirects: totals.redirects,
        documents: None,
        backlog: totals.backlog,
        drops,
        client: facts.client,
        errors: facts.errors,
        link: None,
        monitor: None,
        collections: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::Scale;

    fn buckets(n: u64) -> Buckets {
        let mut b = Buckets::new(Scale::Ns64);
        for i in 1..=n {
            b.record(i * 1_000);
        }
        b
    }

    #[test]
    fn a_percentile_without_samples_is_not_shown() {
        let shown = latency(&buckets(1_000), 0).unwrap().percentiles_us;
        assert!(shown.contains_key("p99") && !shown.contains_key("p99.9"));
        assert!(latency(&buckets(20_000), 0).unwrap().percentiles_us.contains_key("p99.9"));
        assert!(latency(&buckets(0), 0).is_none());
    }

    #[test]
    fn what_a_lost_worker_had_under_way_is_aborted() {
        let mut totals = Totals::new(1, Scale::Ns64);
        totals.arrivals = 1_500;
        totals.ended[Outcome::Ok as usize] = 1_497;
        totals.ended[Outcome::Aborted as usize] = 1;
        let outcomes =
            |cut_off| phase(PhaseFacts { cut_off, ..PhaseFacts::default() }, &[], &totals).outcomes;
        assert_eq!(outcomes(true), BTreeMap::from([("ok".into(), 1_497), ("aborted".into(), 3)]));
        // Where nothing was lost nothing may be missing, and it would be seen.
        assert_eq!(outcomes(false)["aborted"], 1);
    }

    #[test]
    fn failures_count_with_their_time_and_make_nothing_quicker() {
        let mut slow = Buckets::new(Scale::Ns64);
        (0..300).for_each(|_| slow.record(50_000_000));
        let ok = buckets(9_700);
        // 3 % of the arrivals took 50 ms and failed.
        let felt = of_all(Some(&ok), Some(&slow), 0).unwrap();
        assert_eq!(felt.count, 10_000);
        assert!((felt.percentiles_us["p99"].unwrap() - 50_000.0).abs() < 50.0, "{felt:?}");
        assert!((felt.percentiles_us["p50"].unwrap() - 5_000.0).abs() < 10.0, "{felt:?}");
        // Failures at once are not good times.
        let mut quick = Buckets::new(Scale::Ns64);
        (0..9_700).for_each(|_| quick.record(1_000));
        let felt = of_all(Some(&ok), Some(&quick), 0).unwrap();
        assert_eq!(felt.percentiles_us["p99"], latency(&ok, 0).unwrap().percentiles_us["p99"]);
        // What was never sent is infinite.
        assert_eq!(of_all(Some(&ok), None, 970).unwrap().percentiles_us["p99"], None);
        assert_eq!(of_all(Some(&ok), None, 0), None);
    }

    #[test]
    fn dropped_arrivals_are_beyond_every_latency() {
        let shown = latency(&buckets(9_000), 1_000).unwrap().percentiles_us;
        assert_eq!(shown["p95"], None);
        assert!(shown["p50"].unwrap() > 4_900.0);
    }
}
