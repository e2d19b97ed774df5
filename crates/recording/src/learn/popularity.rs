//! How popular the keys of a space are: a zipfian distribution where one fits, else tiers of keys that are alike.

use super::tiers::{ExpectedCounts, MOST_KEYS, RateClass, Tiers, seen_keys, unseen_as_well};
use dyno_workload::template::ActiveNumbers;

/// Greatest difference between two curves of popularity for one to stand for the other.
const FITS: f64 = 0.02;

/// Largest exponent that is looked for.
const THETA: f64 = 2.5;

/// Keys of a zipfian distribution that are looked at one by one; of others as many together as are alike.
const ONE_BY_ONE: u64 = 100;

/// Popularity of keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Popularity {
    /// All alike.
    Uniform,
    /// The true zipfian distribution with this exponent.
    Zipfian(f64),
    /// Keys in tiers, the most popular first.
    Tiers(Tiers),
    /// Some at a time, each for a while.
    Active(ActiveNumbers),
}

/// How popular keys are, as far as a sample shows it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeyFit {
    /// Their popularity.
    pub popularity: Popularity,
    /// Number of keys, those among them that were not seen.
    pub keys: u64,
    /// The greatest difference between the curve of the sample (the share of the requests that the n most popular keys have) and
    /// that which as many requests of this popularity show.
    pub error: f64,
}

impl KeyFit {
    /// The same in tiers, of keys with these numbers of requests, where it is zipfian: tiers say of each place which keys it has.
    pub fn in_tiers(&self, mut counts: Vec<u32>) -> Option<KeyFit> {
        if !matches!(self.popularity, Popularity::Zipfian(_)) {
            return None;
        }
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        Some(fit_tiers(&counts))
    }
}

fn fit_tiers(counts: &[u32]) -> KeyFit {
    let all: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let tiers = Tiers::of_counts(counts);
    let error = ExpectedCounts::of_classes(tiers.classes(all)).difference(counts, all);
    KeyFit { keys: tiers.keys(), popularity: Popularity::Tiers(tiers), error }
}

/// The popularity of keys with these numbers of requests.
pub(super) fn fit(mut counts: Vec<u32>) -> KeyFit {
    counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    let all: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let seen = counts.len() as u64;
    if seen < 2 {
        return KeyFit { popularity: Popularity::Uniform, keys: seen, error: 0.0 };
    }
    let error = |shown: &ExpectedCounts| shown.difference(&counts, all);
    let even = |keys: u64| std::iter::once((keys as f64, all / keys as f64));
    let mut keys = unseen_as_well(seen, |keys| seen_keys(even(keys)));
    let is_in_turn = is_in_turn(&counts, all, keys);
    if is_in_turn {
        keys = seen;
    }
    let uniform = KeyFit {
        popularity: Popularity::Uniform,
        keys,
        error: error(&ExpectedCounts::of_classes(even(keys))),
    };
    if is_in_turn {
        return uniform;
    }
    let zipfian = nearest_zipfian(seen, all, error);
    // A curve of few requests is off by chance.
    if uniform.error <= (zipfian.error + 0.005).max(0.5 / all.sqrt()) {
        return uniform;
    }
    if zipfian.error <= FITS {
        return zipfian;
    }
    let tiers = fit_tiers(&counts);
    if tiers.error < zipfian.error { tiers } else { zipfian }
}

/// Returns whether keys come in turn, as in a scan or as ids that are handed out, and not by chance: the numbers of requests
/// differ by less than half of what a Poisson distribution of so many `keys` shows of those that are asked for at all. Then
/// none is unseen.
fn is_in_turn(counts: &[u32], all: f64, keys: u64) -> bool {
    let seen = counts.len() as f64;
    if keys >= counts.len() as u64 * MOST_KEYS {
        // Nothing, or hardly anything, came twice: it says nothing of the others.
        return true;
    }
    let (mean, rate) = (all / seen, all / keys as f64);
    let variance = counts.iter().map(|count| (f64::from(*count) - mean).powi(2)).sum::<f64>() / seen;
    let expected = rate * (1.0 + rate) / -(-rate).exp_m1() - mean * mean;
    variance < expected / 2.0
}

/// The zipfian distribution whose curve is nearest.
fn nearest_zipfian(seen: u64, requests: f64, error: impl Fn(&ExpectedCounts) -> f64) -> KeyFit {
    let of = |theta: f64| {
        let keys = unseen_as_well(seen, |keys| seen_keys(zipfian_classes(keys, theta, requests).into_iter()));
        (error(&ExpectedCounts::of_classes(zipfian_classes(keys, theta, requests).into_iter())), keys)
    };
    // A golden section: the curve moves in one direction.
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (0.0, THETA);
    let (mut one, mut other) = (high - golden * (high - low), low + golden * (high - low));
    let (mut of_one, mut of_other) = (of(one).0, of(other).0);
    while high - low > 1e-3 {
        if of_one < of_other {
            (high, other, of_other) = (other, one, of_one);
            one = high - golden * (high - low);
            of_one = of(one).0;
        } else {
            (low, one, of_one) = (one, other, of_other);
            other = low + golden * (high - low);
            of_other = of(other).0;
        }
    }
    let theta = ((low + high) * 500.0).round() / 1_000.0;
    let (error, keys) = of(theta);
    KeyFit { popularity: Popularity::Zipfian(theta), keys, error }
}

/// Classes of the keys of a zipfian distribution, of which so many are asked for.
fn zipfian_classes(keys: u64, theta: f64, requests: f64) -> Vec<RateClass> {
    // The sum of the powers of a class, by the integral from half a rank before the first to half a rank behind the last.
    let integral = |from: f64, to: f64| match (theta - 1.0).abs() < 1e-9 {
        true => (to / from).ln(),
        false => (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta),
    };
    let (mut classes, mut first, mut whole) = (Vec::new(), 1u64, 0.0);
    while first <= keys {
        let last = if first <= ONE_BY_ONE { first } else { (first + first / 20).min(keys) };
        let sum = match last == first {
            true => (first as f64).powf(-theta),
            false => integral(first as f64 - 0.5, last as f64 + 0.5),
        };
        let size = (last + 1 - first) as f64;
        classes.push((size, sum / size));
        (first, whole) = (last + 1, whole + sum);
    }
    classes.iter_mut().for_each(|(_, rate)| *rate *= requests / whole);
    classes
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

/// Greatest difference of the curves of counts and of a law, at ranks that grow by a quarter.
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
            Popularity::Zipfian(theta) => zeta(rank, *theta) / whole,
            _ => rank as f64 / keys as f64,
        };
        greatest = greatest.max((sum / all - model).abs());
    }
    greatest
}

/// The greatest difference between the curve of keys with these numbers of requests and that of as many keys that are alike.
pub(super) fn even_error(mut counts: Vec<u32>) -> f64 {
    counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    let all: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let keys = counts.len() as f64;
    ExpectedCounts::of_classes([(keys, all / keys)].into_iter()).difference(&counts, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::rng::{Purpose, Stream, below, mix_bits};
    use dyno_workload::distributions::RejectionInversion;

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
            let found = fit(counts.filter(|count| *count > 0).collect());
            let Popularity::Zipfian(own) = found.popularity else { panic!("{found:?}") };
            assert!((own - theta).abs() < 0.02 && found.error < 0.01, "{theta}: {found:?}");
        }
    }

    #[test]
    fn keys_that_come_in_turn_are_those_that_were_seen() {
        for times in [1, 2, 5] {
            let found = fit(vec![times; 1_000]);
            assert_eq!((found.popularity, found.keys), (Popularity::Uniform, 1_000), "{times} times");
        }
        // By chance it is otherwise: of 1,000 keys 865 are seen by 2,000 requests.
        let found = fit(drawn(1_000, 2_000, |n| below(mix_bits(n), 1_000)));
        assert!((950..1_050).contains(&found.keys), "{found:?}");
    }

    #[test]
    fn keys_of_a_law_are_counted_from_a_part_of_them() {
        // Twice as many requests as keys: about a half of the keys are never asked for.
        let zipf = RejectionInversion::new(0.9);
        let mut stream = Stream::new(3, 0, Purpose::Key);
        let counts = drawn(20_000, 40_000, |_| zipf.rank(20_000, &mut stream));
        assert!(counts.len() < 13_000, "{}", counts.len());
        let found = fit(counts);
        let Popularity::Zipfian(own) = found.popularity else { panic!("{found:?}") };
        assert!((own - 0.9).abs() < 0.05 && (found.keys as f64 / 2e4 - 1.0).abs() < 0.15, "{found:?}");
    }

    #[test]
    fn even_requests_are_uniform_and_steps_are_tiers() {
        let even = drawn(1_000, 200_000, |n| below(mix_bits(n), 1_000));
        let found = fit(even);
        assert!(found.popularity == Popularity::Uniform && found.error < 0.01, "{found:?}");
        // Ten keys take half of the requests.
        let steps = drawn(10_000, 400_000, |n| match n % 2 {
            0 => below(mix_bits(n), 10),
            _ => below(mix_bits(n), 10_000),
        });
        let found = fit(steps);
        assert!(matches!(found.popularity, Popularity::Tiers(_)) && found.error < 0.02, "{found:?}");
    }

    #[test]
    fn a_law_alone_is_never_tiers() {
        let even = drawn(1_000, 200_000, |n| below(mix_bits(n), 1_000));
        assert_eq!(fit_law(even).0, Popularity::Uniform);
        let steps = drawn(10_000, 400_000, |n| match n % 2 {
            0 => below(mix_bits(n), 10),
            _ => below(mix_bits(n), 10_000),
        });
        let (law, error) = fit_law(steps.clone());
        let tiers = fit(steps);
        assert!(matches!(law, Popularity::Zipfian(_)), "{law:?}");
        assert!(error > tiers.error, "{error} {tiers:?}");
    }

    #[test]
    fn the_sum_of_powers_is_that_of_its_terms() {
        for (keys, theta) in [(10, 0.5), (5_000, 0.99), (50_000, 1.0), (50_000, 1.7)] {
            let exact: f64 = (1..=keys).map(|n| (n as f64).powf(-theta)).sum();
            assert!((zeta(keys, theta) / exact - 1.0).abs() < 1e-6, "{keys} {theta}");
        }
    }
}
