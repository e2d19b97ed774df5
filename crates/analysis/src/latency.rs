//! Percentiles of latencies.

use dyno_record::{Buckets, is_supported};
use dyno_rundir::schema::Latency;
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

/// Percentiles of a latency, with `dropped` arrivals counted as longer than any measured one. A percentile is absent
/// unless at least ten samples lie beyond it (p50 to p95 are always given).
pub fn latency_from_buckets(buckets: &Buckets, dropped: u64) -> Option<Latency> {
    if buckets.count() == 0 {
        return None;
    }
    let all = buckets.count() + dropped;
    let mut percentiles_us = BTreeMap::new();
    for (name, p) in PERCENTILES {
        if p > 95.0 && !is_supported(all, p) {
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
        intervals_us: BTreeMap::new(),
    })
}
