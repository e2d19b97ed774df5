//! How soon keys are asked for again: the share of requests that a cache would answer, by its size.
//!
//! Stack distances (Mattson, Gecsei, Slutz and Traiger, IBM Systems Journal 9, 1970) of a sample of the keys: of those whose hash
//! ends in so many zero bits that no more than a fixed number is followed (SHARDS: Waldspurger, Park, Garthwaite and Ahmad, FAST
//! 2015). A distance among the sampled keys, times the rate of sampling, is one among all.

use super::hashed::HashedMap;

/// Keys that are followed. With as many the error is below a point (figure 3 of the paper has 0.7 with 8,000).
const FOLLOWED: usize = 1 << 16;

/// Requests between two renumberings.
const SLOTS: usize = 4 * FOLLOWED;

/// Parts of each doubling of a distance.
const PARTS: u32 = 64;

/// A key that is followed.
#[derive(Clone, Copy, Debug)]
struct FollowedKey {
    /// The number of its last request since the last renumbering.
    slot: u32,
    /// Requests in the first and the second half of the time.
    halves: [u32; 2],
}

/// Distances between requests of the same key: how many other keys were asked for meanwhile.
#[derive(Debug)]
pub(super) struct ReuseDistances {
    followed: HashedMap<FollowedKey>,
    /// Only hashes that end in so many zero bits are followed.
    halved: u32,
    /// A Fenwick tree: 1 at the last request of each key.
    tree: Vec<u32>,
    next: u32,
    requests: u64,
    /// Requests by distance; each stands for as many as the rate of sampling says.
    weights: Vec<f64>,
    /// All of them, the first ones of keys among them.
    weight: f64,
}

impl Default for ReuseDistances {
    fn default() -> Self {
        ReuseDistances {
            followed: HashedMap::default(),
            halved: 0,
            tree: vec![0; SLOTS + 1],
            next: 0,
            requests: 0,
            weights: Vec::new(),
            weight: 0.0,
        }
    }
}

/// The part of all distances that one is in, and the least distance of a part.
fn part_of(distance: u64) -> usize {
    if distance < u64::from(PARTS) {
        return distance as usize;
    }
    let doublings = distance.ilog2() - PARTS.ilog2();
    ((doublings + 1) * PARTS) as usize + (distance >> doublings) as usize - PARTS as usize
}

fn least_of(part: usize) -> u64 {
    let (doublings, within) = (part as u32 / PARTS, part as u64 % u64::from(PARTS));
    match doublings {
        0 => within,
        more => (within + u64::from(PARTS)) << (more - 1),
    }
}

impl ReuseDistances {
    /// A request of the key with this hash, in the first or the second half of the time.
    pub fn note_request(&mut self, hash: u64, half: usize) {
        self.requests += 1;
        if hash.trailing_zeros() < self.halved {
            return;
        }
        let weight = (1u64 << self.halved) as f64;
        self.weight += weight;
        let mut key = FollowedKey { slot: self.next, halves: [0; 2] };
        if let Some(known) = self.followed.get(&hash) {
            let distance = u64::from(self.marked_before(self.next) - self.marked_before(known.slot + 1));
            let part = part_of(distance << self.halved);
            if self.weights.len() <= part {
                self.weights.resize(part + 1, 0.0);
            }
            self.weights[part] += weight;
            key.halves = known.halves;
            let slot = known.slot;
            self.mark(slot, false);
        }
        key.halves[half] += 1;
        self.followed.insert(hash, key);
        self.mark(self.next, true);
        self.next += 1;
        let is_full = self.followed.len() > FOLLOWED;
        if is_full {
            self.halved += 1;
            let halved = self.halved;
            self.followed.retain(|hash, _| hash.trailing_zeros() >= halved);
        }
        if is_full || self.next as usize == SLOTS {
            self.renumber();
        }
    }

    /// Number of marks before a slot.
    fn marked_before(&self, slot: u32) -> u32 {
        let (mut at, mut sum) = (slot as usize, 0);
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }

    fn mark(&mut self, slot: u32, is_set: bool) {
        let mut at = slot as usize + 1;
        while at < self.tree.len() {
            if is_set {
                self.tree[at] += 1;
            } else {
                self.tree[at] -= 1;
            }
            at += at & at.wrapping_neg();
        }
    }

    /// Numbers the last requests of the keys from 0 on, in their order.
    fn renumber(&mut self) {
        let mut order: Vec<(u32, u64)> = self.followed.iter().map(|(hash, key)| (key.slot, *hash)).collect();
        order.sort_unstable();
        self.tree.fill(0);
        for (slot, (_, hash)) in (0..).zip(&order) {
            if let Some(key) = self.followed.get_mut(hash) {
                key.slot = slot;
            }
            self.mark(slot, true);
        }
        self.next = order.len() as u32;
    }

    /// Requests that were noted.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The share of the requests that a cache would answer which holds the `keys` that were asked for last. What the sample has
    /// too many or too few requests of, popular keys' most likely, counts as answered by the smallest cache, as in the paper.
    pub fn hit_ratio(&self, keys: u64) -> f64 {
        let counted = self.weights.iter().enumerate().take_while(|(part, _)| least_of(*part) < keys);
        let hits: f64 = counted.map(|(_, weight)| weight).sum();
        let beside = self.requests as f64 - self.weight;
        ((hits + beside) / (self.requests.max(1)) as f64).clamp(0.0, 1.0)
    }

    /// Requests of each key, the most popular first; `None` where not all keys are followed.
    fn counts(&self) -> Option<Vec<u32>> {
        let mut counts: Vec<u32> = self.followed.values().map(|key| key.halves[0] + key.halves[1]).collect();
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        (self.halved == 0).then_some(counts)
    }

    /// The greatest difference between the shares of the requests that the n most popular keys have here and there; `None` where
    /// not all keys are followed.
    pub fn popularity_difference(&self, other: &ReuseDistances) -> Option<f64> {
        let (own, others) = (self.counts()?, other.counts()?);
        let (mut sums, mut greatest) = ([0.0; 2], 0.0f64);
        for rank in 0..own.len().max(others.len()) {
            for ((sum, counts), all) in
                sums.iter_mut().zip([&own, &others]).zip([self.requests, other.requests])
            {
                *sum += counts.get(rank).map_or(0.0, |count| f64::from(*count) / all.max(1) as f64);
            }
            greatest = greatest.max((sums[0] - sums[1]).abs());
        }
        Some(greatest)
    }

    /// How much the popularity of keys changes from the first half of the time to the second: the mean of (a - np)^2 / np(1 - p),
    /// where a of a key's n requests are in the first half, which has the share p of all. 1 where each request has the same
    /// chances at any time (a is binomial then); more where keys have times of their own. `None` where a half is empty.
    pub fn drift(&self) -> Option<f64> {
        let all = self.followed.values().fold([0u64; 2], |sums, key| {
            [sums[0] + u64::from(key.halves[0]), sums[1] + u64::from(key.halves[1])]
        });
        if all.contains(&0) {
            return None;
        }
        let share = all[0] as f64 / (all[0] + all[1]) as f64;
        let of = |key: &FollowedKey| {
            let n = f64::from(key.halves[0] + key.halves[1]);
            (f64::from(key.halves[0]) - n * share).powi(2) / (n * share * (1.0 - share))
        };
        Some(self.followed.values().map(of).sum::<f64>() / self.followed.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::rng::{below, mix_bits};

    #[test]
    fn distances_have_their_parts() {
        for distance in (0..5_000).chain([1 << 20, (1 << 40) + 12_345]) {
            let part = part_of(distance);
            let (least, next) = (least_of(part), least_of(part + 1));
            assert!(least <= distance && distance < next, "{distance}: {least} to {next}");
            assert!(next - least <= (least / 64).max(1));
        }
    }

    #[test]
    fn turns_hit_only_where_all_keys_fit() {
        let mut turns = ReuseDistances::default();
        (0..300_000u64).for_each(|n| turns.note_request(mix_bits(n % 60), (n / 150_000) as usize));
        assert_eq!((turns.hit_ratio(59), turns.requests()), (0.0, 300_000));
        assert!((turns.hit_ratio(60) - 299_940.0 / 300_000.0).abs() < 1e-12);
        // Each key has as many requests in either half: fewer differences than chance makes.
        assert!(turns.drift().unwrap() < 0.01);
    }

    #[test]
    fn a_random_key_is_in_a_cache_as_often_as_the_cache_is_large() {
        // More keys than are followed: the sample stands for them.
        let (keys, requests) = (300_000u64, 3_000_000u64);
        let mut random = ReuseDistances::default();
        for n in 0..requests {
            random.note_request(mix_bits(below(mix_bits(n), keys) + 7), (n * 2 / requests) as usize);
        }
        assert!(random.halved > 0);
        // Of a cache that is full: its share of the keys. It fills by first requests: of the m-th request's key the chance that
        // c keys were seen since is that share once c keys have been seen.
        for share in [0.1, 0.3, 0.6] {
            let cache = share * keys as f64;
            // Requests until it is full, when keys are drawn with replacement.
            let filled = -(keys as f64) * (1.0f64 - share).ln();
            // While it fills, it holds all that was seen: the hits are the requests less the keys.
            let expected = (filled - cache + (requests as f64 - filled) * share) / requests as f64;
            let found = random.hit_ratio(cache as u64);
            assert!((found - expected).abs() < 0.01, "{share}: {found} instead of {expected}");
        }
        let drift = random.drift().unwrap();
        assert!((drift - 1.0).abs() < 0.03, "{drift}");
    }

    #[test]
    fn popularity_is_compared_by_rank_whatever_keys_are_called() {
        let of = |counts: &[u64], first: u64| {
            let mut all = ReuseDistances::default();
            for (key, count) in (first..).zip(counts) {
                (0..*count).for_each(|_| all.note_request(mix_bits(key), 0));
            }
            all
        };
        let (one, other) = (of(&[5, 4, 1], 1), of(&[2, 8], 70));
        // 0.5, 0.9, 1 beside 0.8, 1, 1.
        let off = one.popularity_difference(&other).unwrap();
        assert!((off - 0.3).abs() < 1e-12, "{off}");
        assert_eq!(one.popularity_difference(&of(&[1, 4, 5], 9)), Some(0.0));
    }

    #[test]
    fn keys_that_have_their_times_drift() {
        let mut drifting = ReuseDistances::default();
        // The hundred keys of each tenth are its own.
        for n in 0..100_000u64 {
            let own = below(mix_bits(n), 100) + 100 * (n / 10_000);
            drifting.note_request(mix_bits(own), (n / 50_000) as usize);
        }
        assert!(drifting.drift().unwrap() > 50.0, "{:?}", drifting.drift());
        assert!(drifting.hit_ratio(100) > 0.98, "{}", drifting.hit_ratio(100));
    }
}
