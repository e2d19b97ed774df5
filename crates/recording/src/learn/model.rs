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

/// Keys of a sequence, drawn once, and the requests of them in their order.
pub(super) struct ModelSequence {
    /// How often it comes.
    pub count: u64,
    /// The key space of each key.
    pub spaces: Vec<usize>,
    /// Which of these keys each request is of.
    pub requests: Vec<usize>,
}

/// Makes so many requests: sequences, and beside them requests of single keys, each of a space by what is left of its share; a
/// key is drawn by its popularity. They are as many operations of then as the share of the requests says, of `operations` in all.
pub(super) fn model_distances(
    spaces: &[ModelSpace<'_>],
    sequences: &[ModelSequence],
    (requests, operations): (u64, u64),
    seed: u64,
) -> ReuseDistances {
    let mut distances = ReuseDistances::default();
    let mut left: Vec<u64> = spaces.iter().map(|space| space.requests).collect();
    for sequence in sequences {
        for key in &sequence.requests {
            let space = sequence.spaces[*key];
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
    let draw = |chosen: usize, made: u64, stream: &mut Stream| {
        let (space, keys) = (&spaces[chosen], spaces[chosen].keys.max(1));
        let rank = match (space.popularity, &zipf[chosen]) {
            (_, Some(zipf)) => zipf.rank(keys, stream),
            (Popularity::Tiers(tiers), _) => rank_in_tiers(tiers, keys, stream),
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
            distances.note_request(draw(chosen, made, &mut stream), half);
            continue;
        };
        keys.clear();
        keys.extend(sequence.spaces.iter().map(|space| draw(*space, made, &mut stream)));
        sequence.requests.iter().for_each(|key| distances.note_request(keys[*key], half));
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
        let found = model_distances(&[even], &[], (500_000, 500_000), 1);
        assert_eq!(found.requests(), 500_000);
        assert!((found.hit_ratio(250) - 0.25).abs() < 0.005, "{}", found.hit_ratio(250));
    }

    #[test]
    fn keys_of_a_sequence_come_again_at_once() {
        let even = ModelSpace { requests: 3_000, keys: 10_000, popularity: &Popularity::Uniform };
        // All requests are of sequences: a new key, and the same twice more.
        let sequence = ModelSequence { count: 1_000, spaces: vec![0], requests: vec![0, 0, 0] };
        let found = model_distances(&[even], &[sequence], (300_000, 100_000), 3);
        assert!((found.hit_ratio(1) - 2.0 / 3.0).abs() < 0.005, "{}", found.hit_ratio(1));
    }

    #[test]
    fn keys_that_come_and_go_are_found_in_a_small_cache() {
        use dyno_workload::template::ActiveNumbers;
        let active = Popularity::Active(ActiveNumbers { at_a_time: 10, operations: 2_000 });
        let space = ModelSpace { requests: 1_000_000, keys: 10_000, popularity: &active };
        let found = model_distances(&[space], &[], (500_000, 500_000), 4);
        // Each key comes 200 times; all but the first are found among the last few.
        assert!((found.hit_ratio(64) - 0.995).abs() < 0.003, "{}", found.hit_ratio(64));
    }

    #[test]
    fn spaces_have_their_shares_and_tiers_their_keys() {
        // Nine of ten requests are of ten keys: a cache of ten holds most of them.
        let tiers = Popularity::Tiers(vec![(10, 0.9), (9_990, 0.1)]);
        let other = Popularity::Uniform;
        let space = |requests, keys, popularity| ModelSpace { requests, keys, popularity };
        let found =
            model_distances(&[space(500, 10_000, &tiers), space(500, 1, &other)], &[], (400_000, 400_000), 2);
        // Half of the requests are of the one key of the second space.
        let hits = found.hit_ratio(60);
        assert!((0.94..0.97).contains(&hits), "{hits}");
        assert!(found.hit_ratio(1) > 0.25, "the key that follows itself");
    }
}
