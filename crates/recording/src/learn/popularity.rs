//! How popular the keys of a space are: a zipfian distribution where one fits, else tiers of keys that are alike.

use dyno_workload::template::ActiveNumbers;

/// Greatest difference between two curves of popularity for one to stand for the other.
const FITS: f64 = 0.02;

/// Largest exponent that is looked for.
const THETA: f64 = 2.5;

/// Popularity of keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Popularity {
    /// All alike.
    Uniform,
    /// The true zipfian distribution with this exponent.
    Zipfian(f64),
    /// Keys in tiers, the most popular first: number of keys, and share of the requests.
    Tiers(Vec<(u64, f64)>),
    /// Some at a time, each for a while.
    Active(ActiveNumbers),
}

/// The popularity of keys with these numbers of requests, and the greatest difference between its curve (the share of the
/// requests that the n most popular keys have) and that of the keys.
pub(super) fn fit(mut counts: Vec<u32>) -> (Popularity, f64) {
    counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    let all: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let keys = counts.len() as u64;
    if keys < 2 {
        return (Popularity::Uniform, 0.0);
    }
    let theta = likeliest(&counts);
    let error = |popularity: &Popularity| difference(&counts, all, popularity);
    let uniform = error(&Popularity::Uniform);
    let zipfian = Popularity::Zipfian((theta * 1_000.0).round() / 1_000.0);
    let of_zipfian = error(&zipfian);
    // Requests that fall on all keys alike fall on some of them more often: the sample's own spread is no popularity.
    if uniform <= (of_zipfian + 0.005).max(chance(&counts, all)) {
        return (Popularity::Uniform, uniform);
    }
    if of_zipfian <= FITS {
        return (zipfian, of_zipfian);
    }
    let mut tiers: Vec<(u64, f64)> = Vec::new();
    let mut from = 0usize;
    while from < counts.len() {
        // 1, 1, 2, 4, 8 keys and so on: popular keys differ, the others are alike. A tier ends where counts fall far below its
        // first.
        let most = if from == 0 { 1 } else { from.min(counts.len() - from) };
        let least = counts[from] - counts[from] / 3;
        let size = counts[from..from + most].partition_point(|count| *count >= least).max(1);
        let sum: f64 = counts[from..from + size].iter().map(|count| f64::from(*count)).sum();
        tiers.push((size as u64, sum / all));
        from += size;
    }
    let tiers = Popularity::Tiers(tiers);
    let of_tiers = error(&tiers);
    match of_tiers < of_zipfian {
        true => (tiers, of_tiers),
        false => (zipfian, of_zipfian),
    }
}

/// The same without tiers, for what only a law can say: even, or zipfian.
pub(super) fn fit_law(mut counts: Vec<u32>) -> (Popularity, f64) {
    counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    let all: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    if counts.len() < 2 {
        return (Popularity::Uniform, 0.0);
    }
    let zipfian = Popularity::Zipfian((likeliest(&counts) * 1_000.0).round() / 1_000.0);
    let [uniform, of_zipfian] = [&Popularity::Uniform, &zipfian].map(|law| difference(&counts, all, law));
    match uniform <= (of_zipfian + 0.005).max(chance(&counts, all)) {
        true => (Popularity::Uniform, uniform),
        false => (zipfian, of_zipfian),
    }
}

/// Difference that chance alone makes between even popularity and the sorted counts of a sample: the sorted curve is above the
/// diagonal by about the mean difference of two counts, 2 / sqrt(pi) standard deviations of a Poisson count, by four means.
fn chance(counts: &[u32], all: f64) -> f64 {
    let mean = all / counts.len() as f64;
    mean.sqrt() * 1.128 / (2.0 * mean) * 1.2
}

/// The exponent under which the counts, ordered by rank, are likeliest.
fn likeliest(counts: &[u32]) -> f64 {
    let all: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let logs: f64 =
        (1..).zip(counts).map(|(rank, count)| f64::from(*count) * f64::from(rank as u32).ln()).sum();
    let keys = counts.len() as u64;
    let likelihood = |theta: f64| -theta * logs - all * zeta(keys, theta).ln();
    // It has one maximum: a golden section finds it.
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (0.0, THETA);
    while high - low > 1e-4 {
        let (one, other) = (high - golden * (high - low), low + golden * (high - low));
        if likelihood(one) > likelihood(other) { high = other } else { low = one }
    }
    (low + high) / 2.0
}

/// Sum of the first `keys` inverse powers: a thousand terms one by one, the rest by an integral with the first term of Euler and
/// Maclaurin.
fn zeta(keys: u64, theta: f64) -> f64 {
    const EXACT: u64 = 1_000;
    let sum: f64 = (1..=keys.min(EXACT)).map(|n| (n as f64).powf(-theta)).sum();
    if keys <= EXACT {
        return sum;
    }
    let (from, to) = (EXACT as f64, keys as f64);
    let integral = match (theta - 1.0).abs() < 1e-9 {
        true => (to / from).ln(),
        false => (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta),
    };
    sum + integral + (to.powf(-theta) - from.powf(-theta)) / 2.0
}

/// Greatest difference of the two curves, at the ranks that double.
fn difference(counts: &[u32], all: f64, popularity: &Popularity) -> f64 {
    let keys = counts.len() as u64;
    let whole = match popularity {
        Popularity::Zipfian(theta) => zeta(keys, *theta),
        _ => 1.0,
    };
    let (mut sum, mut greatest, mut next) = (0.0, 0.0f64, 1.0f64);
    for (rank, count) in (1u64..).zip(counts) {
        sum += f64::from(*count);
        if (rank as f64) < next && rank != keys {
            continue;
        }
        next *= 1.25;
        let model = match popularity {
            Popularity::Uniform | Popularity::Active(_) => rank as f64 / keys as f64,
            Popularity::Zipfian(theta) => zeta(rank, *theta) / whole,
            Popularity::Tiers(tiers) => share_of_tiers(tiers, rank),
        };
        greatest = greatest.max((sum / all - model).abs());
    }
    greatest
}

/// The greatest difference between the curve of keys with these numbers of requests and that of keys that are all alike.
pub(super) fn even_error(mut counts: Vec<u32>) -> f64 {
    counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    let all: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    difference(&counts, all, &Popularity::Uniform)
}

fn share_of_tiers(tiers: &[(u64, f64)], rank: u64) -> f64 {
    let (mut before, mut share) = (0, 0.0);
    for (keys, own) in tiers {
        if rank < before + keys {
            return share + own * (rank - before) as f64 / *keys as f64;
        }
        before += keys;
        share += own;
    }
    share
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::rng::{below, mix_bits};

    fn drawn(keys: u64, requests: u64, mut draw: impl FnMut(u64) -> u64) -> Vec<u32> {
        let mut counts = vec![0; keys as usize];
        (0..requests).for_each(|n| counts[draw(n) as usize % keys as usize] += 1);
        counts.retain(|count| *count > 0);
        counts
    }

    #[test]
    fn an_exponent_is_found_again() {
        for theta in [0.5, 0.8, 0.99, 1.2] {
            // As many requests as the law says of each: rounding alone is in the way.
            let whole = zeta(20_000, theta);
            let counts =
                (1..=20_000u64).map(|rank| (5e6 * (rank as f64).powf(-theta) / whole).round() as u32);
            let (found, error) = fit(counts.filter(|count| *count > 0).collect());
            let Popularity::Zipfian(found) = found else { panic!("{found:?}") };
            assert!((found - theta).abs() < 0.02 && error < 0.01, "{theta}: {found} {error}");
        }
    }

    #[test]
    fn even_requests_are_uniform_and_steps_are_tiers() {
        let even = drawn(1_000, 200_000, |n| below(mix_bits(n), 1_000));
        let (found, error) = fit(even);
        assert!(found == Popularity::Uniform && error < 0.05, "{found:?} {error}");
        // Ten keys take half of the requests.
        let steps = drawn(10_000, 400_000, |n| match n % 2 {
            0 => below(mix_bits(n), 10),
            _ => below(mix_bits(n), 10_000),
        });
        let (found, error) = fit(steps);
        assert!(matches!(found, Popularity::Tiers(_)) && error < 0.03, "{found:?} {error}");
    }

    #[test]
    fn a_law_alone_is_never_tiers() {
        let even = drawn(1_000, 200_000, |n| below(mix_bits(n), 1_000));
        assert_eq!(fit_law(even.clone()), fit(even));
        let steps = drawn(10_000, 400_000, |n| match n % 2 {
            0 => below(mix_bits(n), 10),
            _ => below(mix_bits(n), 10_000),
        });
        let (law, error) = fit_law(steps.clone());
        let (tiers, of_tiers) = fit(steps);
        assert!(matches!(law, Popularity::Zipfian(_)) && matches!(tiers, Popularity::Tiers(_)), "{law:?}");
        assert!(error > of_tiers, "{error} {of_tiers}");
    }

    #[test]
    fn the_sum_of_powers_is_that_of_its_terms() {
        for (keys, theta) in [(10, 0.5), (5_000, 0.99), (50_000, 1.0), (50_000, 1.7)] {
            let exact: f64 = (1..=keys).map(|n| (n as f64).powf(-theta)).sum();
            assert!((zeta(keys, theta) / exact - 1.0).abs() < 1e-6, "{keys} {theta}");
        }
    }
}
