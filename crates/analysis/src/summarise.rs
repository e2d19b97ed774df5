//! Totals of a phase into the summary's figures. Percentiles are made here, last, from merged histograms.

use crate::arrival_latency::ArrivalLatency;
use crate::latency::latency_from_buckets;
use dyno_record::{Stamps, Totals};
use dyno_rundir::schema::{Client, Latency, Metric, Phase, StampCounts};
use dyno_types::Outcome;
use std::collections::BTreeMap;

/// Facts about a phase beside its totals.
#[derive(Clone, Debug, Default)]
pub struct PhaseFacts {
    /// `load`, `warmup` or `measure`.
    pub name: String,
    /// Length T, seconds.
    pub seconds: f64,
    /// Seconds from its beginning to its last reply, where that is known.
    pub elapsed_s: Option<f64>,
    /// Scheduled arrivals per second (open loop).
    pub offered: Option<f64>,
    /// The client.
    pub client: Client,
    /// First error text of every class.
    pub errors: BTreeMap<String, String>,
    /// True if a worker or the run was lost: how some arrivals ended is unknown.
    pub cut_off: bool,
}

fn by_name(counts: &[u64; Outcome::COUNT]) -> BTreeMap<String, u64> {
    let named = Outcome::ALL.into_iter().map(|o| (o.name().to_owned(), counts[o as usize]));
    named.filter(|(_, count)| *count > 0).collect()
}

/// The summary of a phase.
pub fn summarise_phase(facts: PhaseFacts, metrics: &[String], totals: &Totals) -> Phase {
    let seconds = facts.seconds.max(1e-9);
    let metrics = metrics
        .iter()
        .enumerate()
        .filter(|(number, _)| totals.outcomes[*number].iter().any(|&c| c > 0))
        .map(|(number, name)| {
            let counts = &totals.outcomes[number];
            let dropped = counts[Outcome::Dropped as usize];
            let (ok, failed) = (totals.ok_slot(number), totals.failed_slot(number));
            let arrivals = [
                ArrivalLatency::from_response_times(totals, number),
                ArrivalLatency::from_service_times(totals, number),
            ];
            let [all_response, all_service] =
                arrivals.map(|arrivals| arrivals.to_latency().filter(|_| !arrivals.all_ok()));
            // In the open loop it was recorded; of the closed loop it is the service time.
            let closed = facts.offered.is_none() && totals.turnaround.count() > 0;
            let server = totals.server_share(number).or_else(|| Some(&ok?.service).filter(|_| closed));
            let server = server.and_then(|server| latency_from_buckets(server, dropped));
            let response = ok.and_then(|s| latency_from_buckets(&s.response, dropped));
            Metric {
                client_us: client_us(response.as_ref(), server.as_ref(), &totals.stamps),
                server,
                name: name.clone(),
                outcomes: by_name(counts),
                service: ok.and_then(|s| latency_from_buckets(&s.service, 0)),
                response,
                failed_service: failed.and_then(|s| latency_from_buckets(&s.service, 0)),
                failed_response: failed.and_then(|s| latency_from_buckets(&s.response, 0)),
                all_response,
                all_service,
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
        throughput: totals.count_completed() as f64 / seconds,
        completed: Some(totals.count_completed()),
        elapsed_s: facts.elapsed_s,
        seconds: facts.seconds,
        name: facts.name,
        arrivals: totals.arrivals,
        outcomes: by_name(&ended),
        offered: facts.offered,
        metrics,
        schedule_lag: latency_from_buckets(&totals.lag, 0),
        receive_lag: latency_from_buckets(&totals.receive_lag, 0),
        stamps: stamps(totals.stamps),
        turnaround: latency_from_buckets(&totals.turnaround, 0),
        ideal_response: latency_from_buckets(&totals.ideal, totals.ended[Outcome::Dropped as usize]),
        late_replies: totals.late,
        unexpected_replies: totals.unexpected,
        broken_replies: totals.broken,
        reconnects: totals.reconnects,
        redirects: totals.redirects,
        documents: None,
        backlog: totals.backlog,
        drops,
        silences: Vec::new(),
        pauses: Vec::new(),
        client: facts.client,
        errors: facts.errors,
        link: None,
        monitor: None,
        hosts: Vec::new(),
        collections: None,
        replay: None,
    }
}

/// The client's share of each percentile of the response time, microseconds; nothing where the server's was not recorded.
fn client_us(
    response: Option<&Latency>,
    server: Option<&Latency>,
    stamps: &Stamps,
) -> BTreeMap<String, Option<f64>> {
    let (Some(response), Some(server)) = (response, server) else { return BTreeMap::new() };
    let share = |(name, us): (&String, &Option<f64>)| {
        let percentile = name.trim_start_matches('p').parse().unwrap_or(100.0);
        let own = server.percentiles_us.get(name).copied().flatten();
        let known = us.zip(own).filter(|_| !stamps.hides_arrivals(percentile));
        (name.clone(), known.map(|(all, own)| (all - own).max(0.0)))
    };
    response.percentiles_us.iter().map(share).collect()
}

/// Nothing where the kernel was not asked.
fn stamps(found: Stamps) -> Option<StampCounts> {
    let Stamps { kernel, card, client, shared, shared_most_ns } = found;
    (kernel + client > 0).then(|| StampCounts {
        kernel,
        card,
        client,
        shared,
        shared_most_us: shared_most_ns as f64 / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::Buckets;
    use dyno_record::{MergedSlot, Scale};

    fn buckets(n: u64) -> Buckets {
        let mut b = Buckets::new(Scale::Ns64);
        for i in 1..=n {
            b.record(i * 1_000);
        }
        b
    }

    #[test]
    fn a_percentile_without_samples_is_not_shown() {
        let shown = latency_from_buckets(&buckets(1_000), 0).unwrap().percentiles_us;
        assert!(shown.contains_key("p99") && !shown.contains_key("p99.9"));
        assert!(latency_from_buckets(&buckets(20_000), 0).unwrap().percentiles_us.contains_key("p99.9"));
        assert!(latency_from_buckets(&buckets(0), 0).is_none());
    }

    #[test]
    fn what_a_lost_worker_had_under_way_is_aborted() {
        let mut totals = Totals::new(1, Scale::Ns64);
        totals.arrivals = 1_500;
        totals.ended[Outcome::Ok as usize] = 1_497;
        totals.ended[Outcome::Aborted as usize] = 1;
        let outcomes =
            |cut_off| summarise_phase(PhaseFacts { cut_off, ..PhaseFacts::default() }, &[], &totals).outcomes;
        assert_eq!(outcomes(true), BTreeMap::from([("ok".into(), 1_497), ("aborted".into(), 3)]));
        // Without losses nothing may be missing, and it would be seen.
        assert_eq!(outcomes(false)["aborted"], 1);
    }

    #[test]
    fn dropped_arrivals_are_beyond_every_latency() {
        let shown = latency_from_buckets(&buckets(9_000), 1_000).unwrap().percentiles_us;
        assert_eq!(shown["p95"], None);
        assert!(shown["p50"].unwrap() > 4_900.0);
    }

    #[test]
    fn figures_in_microseconds() {
        let of_few = latency_from_buckets(&buckets(19), 0).unwrap();
        assert_eq!((of_few.mean_us, of_few.min_us, of_few.max_us), (10.0, Some(1.0), Some(19.0)));
        assert_eq!(of_few.percentiles_us.keys().collect::<Vec<_>>(), ["p50", "p90", "p95"]);
    }

    #[test]
    fn a_phase_of_thirty_successes_in_four_seconds() {
        let mut totals = Totals::new(3, Scale::Ns64);
        totals.arrivals = 31;
        for (metric, outcome, count) in [(0, Outcome::Ok, 20), (1, Outcome::Ok, 10), (1, Outcome::Busy, 1)] {
            totals.outcomes[metric][outcome as usize] = count;
            totals.ended[outcome as usize] += count;
            let slot = metric * 2 + usize::from(outcome != Outcome::Ok);
            totals.slots[slot] = Some(MergedSlot { service: buckets(count), response: buckets(count) });
        }
        totals.drops = vec![(3, 2), (4, 1), (3, 5)];
        let names = ["READ", "UPDATE", "SCAN"].map(str::to_owned);
        let phase = summarise_phase(PhaseFacts { seconds: 4.0, ..PhaseFacts::default() }, &names, &totals);
        assert_eq!(phase.throughput, 7.5);
        // Two of the warm-up's backlog ended in it, six of its own after it.
        totals.crossed = -4;
        let clipped =
            super::summarise_phase(PhaseFacts { seconds: 4.0, ..PhaseFacts::default() }, &names, &totals);
        assert_eq!((clipped.throughput, clipped.completed, clipped.outcomes["ok"]), (6.5, Some(26), 30));
        assert_eq!(phase.drops, BTreeMap::from([(3, 7), (4, 1)]));
        let [read, update] = phase.metrics.as_slice() else { panic!("{:?}", phase.metrics) };
        assert_eq!((read.name.as_str(), update.name.as_str()), ("READ", "UPDATE"));
        // If all succeeded the figures of all are no others.
        assert_eq!((&read.all_response, &read.all_service), (&None, &None));
        assert_eq!(update.all_response.as_ref().map(|l| l.count), Some(11));
        assert_eq!(update.all_service.as_ref().map(|l| l.count), Some(11));
    }
}
