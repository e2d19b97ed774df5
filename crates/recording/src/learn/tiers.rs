//! Keys by how often they are asked for, those that were never seen among them.
//!
//! What a sample shows of rare keys is chance: of keys that are asked for once on average some come three times, and more than
//! a third do not come at all. So keys are taken as classes, each with the number of requests that is expected of its keys, and
//! what a class shows is a Poisson distribution. Which classes were there the sample says by its likelihood (Laird, Journal of
//! the American Statistical Association 73, 1978), found by expectation and maximization.

/// Keys that are asked for so often show what they are.
const RANKED: u32 = 30;

/// The least number of requests that is expected of a key: of rarer ones a sample does not tell how many there are.
const LEAST_RATE: f64 = 0.2;

/// Each class has so many times the requests of the one before.
const STEP: f64 = 1.35;

/// Rounds of expectation and maximization.
const ROUNDS: usize = 400;

/// Numbers of requests that are told apart one by one.
const COUNTS: usize = 256;

/// Beyond this number of requests a Poisson distribution is as good as normal.
const NORMAL: f64 = 128.0;

/// Places at which that is looked at, and the distance between two, standard deviations.
const PLACES: i32 = 7;
const DISTANCE: f64 = 0.5;

/// So many times the keys that were seen are there at most.
pub(super) const MOST_KEYS: u64 = 5;

/// Keys, and how many requests of each are expected.
pub(super) type RateClass = (f64, f64);

/// What requests of keys in classes show: numbers of requests, the greatest first, and how many keys have each.
#[derive(Debug)]
pub(super) struct ExpectedCounts(Vec<(f64, f64)>);

impl ExpectedCounts {
    /// Of these classes.
    pub fn of_classes(classes: impl Iterator<Item = RateClass>) -> Self {
        let (mut few, mut all) = (vec![0.0; COUNTS], Vec::new());
        for (keys, rate) in classes {
            if rate > NORMAL {
                let weight = |place: i32| (-(f64::from(place) * DISTANCE).powi(2) / 2.0).exp();
                let sum: f64 = (-PLACES..=PLACES).map(weight).sum();
                let of = |place: i32| {
                    (rate + f64::from(place) * DISTANCE * rate.sqrt(), keys * weight(place) / sum)
                };
                all.extend((-PLACES..=PLACES).map(of));
                continue;
            }
            let mut chance = (-rate).exp();
            for (number, few) in few.iter_mut().enumerate() {
                *few += keys * chance;
                chance *= rate / (number + 1) as f64;
            }
        }
        all.extend(few.iter().enumerate().skip(1).map(|(number, keys)| (number as f64, *keys)));
        all.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        ExpectedCounts(all)
    }

    /// The greatest difference between the curve of popularity of sorted counts, whose sum is `all`, and this one, at ranks that
    /// grow by a quarter.
    pub fn difference(&self, counts: &[u32], all: f64) -> f64 {
        let whole: f64 = self.0.iter().map(|(count, keys)| count * keys).sum();
        let mut own = self.0.iter();
        // Keys before the place that is looked at, their requests, and what is left of the class there.
        let (mut before, mut requests, mut left) = (0.0, 0.0, (0.0, 0.0));
        let (mut sum, mut greatest, mut next) = (0.0, 0.0f64, 1.0f64);
        for (rank, count) in (1u64..).zip(counts) {
            sum += f64::from(*count);
            if (rank as f64) < next && rank != counts.len() as u64 {
                continue;
            }
            next *= 1.25;
            while before < rank as f64 {
                if left.1 <= 0.0 {
                    let Some(class) = own.next() else { break };
                    left = *class;
                }
                let taken = left.1.min(rank as f64 - before);
                requests += taken * left.0;
                before += taken;
                left.1 -= taken;
                if left.1 < 1e-12 {
                    left.1 = 0.0;
                }
            }
            greatest = greatest.max((sum / all - requests / whole).abs());
        }
        greatest
    }
}

/// Keys of these classes that are asked for at all.
pub(super) fn seen_keys(classes: impl Iterator<Item = RateClass>) -> f64 {
    classes.map(|(keys, rate)| keys * -(-rate).exp_m1()).sum()
}

/// The number of keys of which as many are seen as were, where `seen` says how many are of a number of keys.
pub(super) fn unseen_as_well(keys: u64, seen: impl Fn(u64) -> f64) -> u64 {
    let (mut low, mut high) = (keys, keys.saturating_mul(MOST_KEYS));
    while low < high {
        let middle = low + (high - low) / 2;
        if seen(middle) < keys as f64 - 0.5 { low = middle + 1 } else { high = middle }
    }
    low
}

/// Tiers of keys that are alike, the most popular first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tiers {
    /// Number of keys, and share of the requests.
    pub all: Vec<(u64, f64)>,
    /// So many of the tiers, the first ones, are of keys that were asked for often: the most popular ones, in their order.
    pub ranked: usize,
}

impl Tiers {
    /// The tiers of keys with these numbers of requests, which are sorted.
    pub fn of_counts(counts: &[u32]) -> Self {
        let all: f64 = counts.iter().map(|count| f64::from(*count)).sum();
        let known = counts.partition_point(|count| *count >= RANKED);
        let mut tiers: Vec<(u64, f64)> = Vec::new();
        let mut from = 0usize;
        while from < known {
            // 1, 1, 2, 4, 8 keys and so on: popular keys differ, the others are alike. A tier ends where counts fall far below
            // its first.
            let most = if from == 0 { 1 } else { from.min(known - from) };
            let least = counts[from] - counts[from] / 3;
            let size = counts[from..from + most].partition_point(|count| *count >= least).max(1);
            let sum: f64 = counts[from..from + size].iter().map(|count| f64::from(*count)).sum();
            tiers.push((size as u64, sum / all));
            from += size;
        }
        let ranked = tiers.len();
        let rest: f64 = counts[known..].iter().map(|count| f64::from(*count)).sum();
        let classes = classes_of(&counts[known..]);
        let of_classes: f64 = classes.iter().map(|(keys, rate)| keys * rate).sum();
        for (keys, rate) in classes.iter().rev() {
            let size = keys.round() as u64;
            if size > 0 {
                tiers.push((size, keys * rate / of_classes * rest / all));
            }
        }
        Tiers { all: tiers, ranked }
    }

    /// Number of keys.
    pub fn keys(&self) -> u64 {
        self.all.iter().map(|(keys, _)| keys).sum()
    }

    /// Classes that have so many requests.
    pub fn classes(&self, requests: f64) -> impl Iterator<Item = RateClass> {
        self.all.iter().map(move |(keys, share)| (*keys as f64, share * requests / *keys as f64))
    }
}

/// The classes, with ascending rates, under which these counts of keys are likeliest.
fn classes_of(counts: &[u32]) -> Vec<RateClass> {
    let mut seen = [0.0; RANKED as usize];
    counts.iter().for_each(|count| seen[*count as usize] += 1.0);
    let keys = counts.len() as f64;
    if counts.is_empty() {
        return Vec::new();
    }
    let rates: Vec<f64> =
        (0..).map(|step| LEAST_RATE * STEP.powi(step)).take_while(|rate| *rate < f64::from(RANKED)).collect();
    // Chances of each count from 1 on, given that it is one of these, and the chance that it is.
    let chances: Vec<(Vec<f64>, f64)> = rates
        .iter()
        .map(|rate| {
            let mut chance = (-rate).exp();
            let mut own = vec![0.0; seen.len()];
            for (number, own) in own.iter_mut().enumerate().skip(1) {
                chance *= rate / number as f64;
                *own = chance;
            }
            let sum: f64 = own.iter().sum();
            own.iter_mut().for_each(|own| *own /= sum);
            (own, sum)
        })
        .collect();
    let mut weights = vec![1.0 / rates.len() as f64; rates.len()];
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; rates.len()];
        for (count, number) in seen.iter().enumerate().filter(|(_, number)| **number > 0.0) {
            let of = |class: usize| weights[class] * chances[class].0[count];
            let all: f64 = (0..rates.len()).map(of).sum();
            (0..rates.len()).for_each(|class| next[class] += number / keys * of(class) / all);
        }
        weights = next;
    }
    // Beside those that were seen there are those that were not.
    let of = |((weight, rate), (_, chance)): ((f64, f64), &(Vec<f64>, f64))| {
        (keys * weight * (1.0 + (-rate).exp() / chance), rate)
    };
    weights.into_iter().zip(rates).zip(&chances).map(of).filter(|(keys, _)| *keys >= 0.5).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::rng::{below, mix_bits};

    /// Requests of each key that was asked for, the most popular first: `all` requests, each of a random one of `keys` keys.
    fn even(keys: u64, all: u64) -> Vec<u32> {
        let mut counts = vec![0; keys as usize];
        (0..all).for_each(|n| counts[below(mix_bits(n), keys) as usize] += 1);
        counts.retain(|count| *count > 0);
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        counts
    }

    #[test]
    fn keys_that_were_not_seen_are_counted() {
        // Two requests a key on average: e^-2 of them do not come.
        let counts = even(20_000, 40_000);
        let seen = counts.len() as f64;
        assert!((seen / 20_000.0 - (1.0 - (-2.0f64).exp())).abs() < 0.01, "{seen}");
        let found = unseen_as_well(counts.len() as u64, |keys| {
            seen_keys([(keys as f64, 40_000.0 / keys as f64)].into_iter())
        });
        assert!((found as f64 / 20_000.0 - 1.0).abs() < 0.02, "{found}");
        let tiers = Tiers::of_counts(&counts);
        assert!((tiers.keys() as f64 / 20_000.0 - 1.0).abs() < 0.05, "{tiers:?}");
        assert!((tiers.all.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
        let made = ExpectedCounts::of_classes(tiers.classes(40_000.0));
        let of_classes = seen_keys(tiers.classes(40_000.0));
        assert!((of_classes / seen - 1.0).abs() < 0.01, "{of_classes} of {seen}");
        assert!(made.difference(&counts, 40_000.0) < 0.01);
        // All alike and all seen: none beside them.
        assert_eq!(unseen_as_well(10, |keys| keys as f64), 10);
    }

    #[test]
    fn what_a_class_shows_is_a_poisson_distribution() {
        let found = ExpectedCounts::of_classes([(1_000.0, 1.0), (1.0, 500.0)].into_iter());
        let many: Vec<(f64, f64)> = found.0.iter().copied().filter(|(count, _)| *count > 300.0).collect();
        let (keys, requests) =
            many.iter().fold((0.0, 0.0), |(a, b), (count, keys)| (a + keys, b + count * keys));
        let spread: f64 = many.iter().map(|(count, keys)| (count - 500.0).powi(2) * keys).sum();
        assert!((keys - 1.0).abs() < 1e-9 && (requests - 500.0).abs() < 1e-6, "{many:?}");
        assert!((spread / 500.0 - 1.0).abs() < 0.01, "variance {spread} of a mean of 500");
        let of = |count: f64| found.0.iter().find(|(own, _)| *own == count).unwrap().1;
        let once = 1_000.0 / std::f64::consts::E;
        assert!((of(1.0) - once).abs() < 1e-9 && (of(3.0) - once / 6.0).abs() < 1e-9);
        let seen = seen_keys([(1_000.0, 1.0), (1.0, 500.0)].into_iter());
        assert!((seen - 1_001.0 + once).abs() < 1e-6);
        // A key with half of the requests, and ten that share the rest, are another curve by just what they are.
        let two = ExpectedCounts(vec![(50.0, 2.0)]);
        assert!((two.difference(&[80, 20], 100.0) - 0.3).abs() < 1e-9);
    }

    #[test]
    fn popular_keys_are_ranked_and_the_others_are_classes() {
        // Ten keys take half of the requests, each a tier or one of a few.
        let mut counts = vec![2_000; 10];
        counts.extend(even(10_000, 20_000));
        let tiers = Tiers::of_counts(&counts);
        let ranked: u64 = tiers.all[..tiers.ranked].iter().map(|(keys, _)| keys).sum();
        let share: f64 = tiers.all[..tiers.ranked].iter().map(|(_, share)| share).sum();
        assert_eq!((ranked, share), (10, 0.5), "{tiers:?}");
        assert!((tiers.keys() as f64 / 10_010.0 - 1.0).abs() < 0.05, "{}", tiers.keys());
    }
}
