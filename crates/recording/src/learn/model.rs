//! Requests as the learned workload makes them, so that what was learned can be compared with what was seen.

use super::popularity::Popularity;
use super::reuse::ReuseDistances;
use dyno_types::rng::{Purpose, Stream, mix_bits};
use dyno_workload::distributions::RejectionInversion;

/// Keys of a space, and how they are asked for.
pub(super) struct ModelSpace<'a> {
    /// Requests of then.
    pub requests: u64,
    /// Number of keys.
    pub keys: u64,
    /// How popular they are.
    pub popularity: &'a Popularity,
}

/// Makes so many requests: each is of a space by its share of them, and of a key of it by its popularity.
pub(super) fn model_distances(spaces: &[ModelSpace<'_>], requests: u64, seed: u64) -> ReuseDistances {
    let mut distances = ReuseDistances::default();
    let mut ends = Vec::new();
    let mut all = 0;
    for space in spaces {
        all += space.requests;
        ends.push(all);
    }
    if all == 0 {
        return distances;
    }
    let zipf: Vec<Option<RejectionInversion>> = spaces
        .iter()
        .map(|space| match space.popularity {
            Popularity::Zipfian(theta) => Some(RejectionInversion::new(*theta)),
            _ => None,
        })
        .collect();
    let mut stream = Stream::new(seed, 0, Purpose::Key);
    for number in 0..requests {
        let place = stream.next_below(all);
        let chosen = ends.partition_point(|end| *end <= place);
        let (space, keys) = (&spaces[chosen], spaces[chosen].keys.max(1));
        let rank = match (space.popularity, &zipf[chosen]) {
            (_, Some(zipf)) => zipf.rank(keys, &mut stream),
            (Popularity::Tiers(tiers), _) => rank_in_tiers(tiers, keys, &mut stream),
            _ => stream.next_below(keys),
        };
        let hash = mix_bits(mix_bits(chosen as u64 + 1) ^ rank);
        distances.note_request(hash, usize::from(number >= requests / 2));
    }
    distances
}

/// A rank among `keys` keys in tiers, which were found among those that were counted.
fn rank_in_tiers(tiers: &[(u64, f64)], keys: u64, stream: &mut Stream) -> u64 {
    let counted: u64 = tiers.iter().map(|(size, _)| size).sum();
    let scale = keys as f64 / counted.max(1) as f64;
    let (mut left, mut first) = (stream.next_unit(), 0);
    for (number, (size, share)) in tiers.iter().enumerate() {
        let size = ((*size as f64 * scale) as u64).max(1);
        if left < *share || number + 1 == tiers.len() {
            return first + stream.next_below(size);
        }
        left -= share;
        first += size;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_keys_hit_as_often_as_the_cache_is_large() {
        let even = ModelSpace { requests: 7, keys: 1_000, popularity: &Popularity::Uniform };
        let found = model_distances(&[even], 500_000, 1);
        assert_eq!(found.requests(), 500_000);
        assert!((found.hit_ratio(250) - 0.25).abs() < 0.005, "{}", found.hit_ratio(250));
    }

    #[test]
    fn spaces_have_their_shares_and_tiers_their_keys() {
        // Nine of ten requests are of ten keys: a cache of ten holds most of them.
        let tiers = Popularity::Tiers(vec![(10, 0.9), (9_990, 0.1)]);
        let other = Popularity::Uniform;
        let space = |requests, keys, popularity| ModelSpace { requests, keys, popularity };
        let found = model_distances(&[space(500, 10_000, &tiers), space(500, 1, &other)], 400_000, 2);
        // Half of the requests are of the one key of the second space.
        let hits = found.hit_ratio(60);
        assert!((0.94..0.97).contains(&hits), "{hits}");
        assert!(found.hit_ratio(1) > 0.25, "the key that follows itself");
    }
}
