//! Requests as the learned workload makes them, so that what was learned can be compared with what was seen.

use super::popularity::Popularity;
use super::reuse::ReuseDistances;
use super::slots::TierShares;
use super::tiers::Tiers;
use dyno_types::rng::{Purpose, Stream, mix_bits};
use dyno_workload::distributions::RejectionInversion;

/// Draws of a key that must differ from others, as in the workload.
const DRAWS: u64 = 64;

/// Keys of a space, and how they are asked for.
pub(super) struct ModelSpace<'a> {
    /// Requests of then.
    pub requests: u64,
    /// Number of keys.
    pub keys: u64,
    /// How popular they are.
    pub popularity: &'a Popularity,
    /// Shares of the tiers of commands that stand for themselves, where they are others.
    pub shares: Option<&'a TierShares>,
}

/// Keys of a sequence, drawn once, and the requests of them in their order.
pub(super) struct ModelSequence<'a> {
    /// How often it comes.
    pub count: u64,
    /// The key space of each key, and the shares of its tiers where they are others. Keys of a space differ.
    pub keys: Vec<(usize, Option<&'a TierShares>)>,
    /// Which of these keys each request is of.
    pub requests: Vec<usize>,
}

/// Makes so many requests: sequences, and beside them requests of single keys, each of a space by what is left of its share; a
/// key is drawn by its popularity. They are as many operations of then as the share of the requests says, of `operations` in all.
pub(super) fn model_distances(
    spaces: &[ModelSpace<'_>],
    sequences: &[ModelSequence<'_>],
    (requests, operations): (u64, u64),
    seed: u64,
) -> ReuseDistances {
    let mut distances = ReuseDistances::default();
    let mut left: Vec<u64> = spaces.iter().map(|space| space.requests).collect();
    for sequence in sequences {
        for key in &sequence.requests {
            let (space, _) = sequence.keys[*key];
            left[space] = left[space].saturating_sub(sequence.count);
        }
    }
    let mut ends = Vec::new();
    let mut all = 0;
    for count in left.iter().copied().chain(sequences.iter().map(|sequence| sequence.count)) {
        all += count;
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
    let scale = operations as f64 / all as f64;
    let draw = |(chosen, shares): (usize, Option<&TierShares>), made: u64, stream: &mut Stream| {
        let (space, keys) = (&spaces[chosen], spaces[chosen].keys.max(1));
        let rank = match (space.popularity, &zipf[chosen]) {
            (_, Some(zipf)) => zipf.rank(keys, stream),
            (Popularity::Tiers(tiers), _) => rank_in_tiers(tiers, shares, keys, stream),
            (Popularity::Active(active), _) => active.draw_number((made as f64 * scale) as u64, keys, stream),
            _ => stream.next_below(keys),
        };
        mix_bits(mix_bits(chosen as u64 + 1) ^ rank)
    };
    let (mut keys, mut made) = (Vec::new(), 0);
    while distances.requests() < requests {
        made += 1;
        let place = stream.next_below(all);
        let chosen = ends.partition_point(|end| *end <= place);
        let half = usize::from(distances.requests() >= requests / 2);
        let Some(sequence) = chosen.checked_sub(spaces.len()).map(|number| &sequences[number]) else {
            distances.note_request(draw((chosen, spaces[chosen].shares), made, &mut stream), half);
            continue;
        };
        keys.clear();
        for key in &sequence.keys {
            let mut drawn = || draw(*key, made, &mut stream);
            let mut own = drawn();
            for _ in 1..DRAWS {
                if !keys.contains(&own) {
                    break;
                }
                own = drawn();
            }
            keys.push(own);
        }
        sequence.requests.iter().for_each(|key| distances.note_request(keys[*key], half));
    }
    distances
}

/// A rank among `keys` keys in tiers, which were found among those that were counted; by shares of their own, if there are.
fn rank_in_tiers(tiers: &Tiers, shares: Option<&TierShares>, keys: u64, stream: &mut Stream) -> u64 {
    let scale = keys as f64 / tiers.keys().max(1) as f64;
    let (mut left, mut first) = (stream.next_unit(), 0);
    for (number, (size, share)) in tiers.all.iter().enumerate() {
        let size = ((*size as f64 * scale) as u64).max(1);
        let share = shares.map_or(*share, |shares| shares[number]);
        if left < share || number + 1 == tiers.all.len() {
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
        let even = ModelSpace { requests: 7, keys: 1_000, popularity: &Popularity::Uniform, shares: None };
        let found = model_distances(&[even], &[], (500_000, 500_000), 1);
        assert_eq!(found.requests(), 500_000);
        assert!((found.hit_ratio(250) - 0.25).abs() < 0.005, "{}", found.hit_ratio(250));
    }

    #[test]
    fn keys_of_a_sequence_come_again_at_once() {
        let even =
            ModelSpace { requests: 3_000, keys: 10_000, popularity: &Popularity::Uniform, shares: None };
        // All requests are of sequences: a new key, and the same twice more.
        let sequence = ModelSequence { count: 1_000, keys: vec![(0, None)], requests: vec![0, 0, 0] };
        let found = model_distances(&[even], &[sequence], (300_000, 100_000), 3);
        assert!((found.hit_ratio(1) - 2.0 / 3.0).abs() < 0.005, "{}", found.hit_ratio(1));
    }

    #[test]
    fn keys_that_come_and_go_are_found_in_a_small_cache() {
        use dyno_workload::template::ActiveNumbers;
        let active = Popularity::Active(ActiveNumbers { at_a_time: 10, operations: 2_000 });
        let space = ModelSpace { requests: 1_000_000, keys: 10_000, popularity: &active, shares: None };
        let found = model_distances(&[space], &[], (500_000, 500_000), 4);
        // Each key comes 200 times; all but the first are found among the last few.
        assert!((found.hit_ratio(64) - 0.995).abs() < 0.003, "{}", found.hit_ratio(64));
    }

    #[test]
    fn spaces_have_their_shares_and_tiers_their_keys() {
        // Nine of ten requests are of ten keys: a cache of ten holds most of them.
        let tiers = Popularity::Tiers(Tiers { all: vec![(10, 0.9), (9_990, 0.1)], ranked: 1 });
        let other = Popularity::Uniform;
        let space = |requests, keys, popularity| ModelSpace { requests, keys, popularity, shares: None };
        let found =
            model_distances(&[space(500, 10_000, &tiers), space(500, 1, &other)], &[], (400_000, 400_000), 2);
        // Half of the requests are of the one key of the second space.
        let hits = found.hit_ratio(60);
        assert!((0.94..0.97).contains(&hits), "{hits}");
        assert!(found.hit_ratio(1) > 0.25, "the key that follows itself");
    }

    #[test]
    fn keys_of_a_sequence_differ_and_have_tiers_of_their_own() {
        // Three of three keys, whichever they are: after the first sequence each is among the last three.
        let even = ModelSpace { requests: 30, keys: 3, popularity: &Popularity::Uniform, shares: None };
        let all = ModelSequence { count: 10, keys: vec![(0, None); 3], requests: vec![0, 1, 2] };
        let found = model_distances(&[even], &[all], (30_000, 10_000), 5);
        assert!((found.hit_ratio(3) - 29_997.0 / 30_000.0).abs() < 1e-9, "{}", found.hit_ratio(3));
        // Half of the requests are of a thousand keys; but the sequence asks for the other one alone.
        let tiers = Popularity::Tiers(Tiers { all: vec![(1, 0.5), (1_000, 0.5)], ranked: 1 });
        let space = ModelSpace { requests: 10, keys: 1_001, popularity: &tiers, shares: None };
        let own = vec![1.0, 0.0];
        let only = ModelSequence { count: 10, keys: vec![(0, Some(&own))], requests: vec![0] };
        let found = model_distances(&[space], &[only], (10_000, 10_000), 5);
        assert!((found.hit_ratio(1) - 0.9999).abs() < 1e-9, "{}", found.hit_ratio(1));
    }
}
