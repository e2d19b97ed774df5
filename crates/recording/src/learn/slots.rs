//! Which of a space's keys each place of a sequence is about: a page's ten best products are others than the one that it shows.

use super::popularity::{KeyFit, Popularity};
use super::sequences::FoundSequence;
use super::spaces::KeySpaces;
use super::tiers::Tiers;
use dyno_types::rng::{Purpose, Stream};
use std::collections::HashMap;

/// Sequences of a form that show which keys it asks for.
const ENOUGH: usize = 40;

/// Rounds in which shares are brought nearer to what is wanted, and sequences that are drawn in each.
const ROUNDS: u64 = 12;
const DRAWN: usize = 4_000;

/// Draws of a key that must differ from others, as in the workload.
const DRAWS: u64 = 64;

/// Shares of the tiers of a space.
pub(super) type TierShares = Vec<f64>;

/// Where keys in tiers are drawn from: the shares of the tiers at each place, `None` where they are those of the whole space.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SlotShares {
    /// Of each sequence: of each of its keys.
    pub of_sequences: Vec<Vec<Option<TierShares>>>,
    /// Of each space: of commands that stand for themselves.
    pub alone: Vec<Option<TierShares>>,
}

impl SlotShares {
    /// Of sequences, and of what they leave of each space.
    pub fn of_sequences(spaces: &KeySpaces, fits: &[KeyFit], chosen: &[FoundSequence]) -> Self {
        let ranked: Vec<Option<HashMap<u64, usize>>> = spaces
            .all
            .iter()
            .zip(fits)
            .map(|(space, fit)| match &fit.popularity {
                Popularity::Tiers(tiers) if space.only_key().is_none() => Some(space.ranked_keys(tiers)),
                _ => None,
            })
            .collect();
        let mut left: Vec<Option<TierShares>> = fits
            .iter()
            .zip(&ranked)
            .zip(&spaces.all)
            .map(|((fit, ranked), space)| match (&fit.popularity, ranked) {
                (Popularity::Tiers(tiers), Some(_)) => {
                    Some(tiers.all.iter().map(|(_, share)| share * space.draws() as f64).collect())
                }
                _ => None,
            })
            .collect();
        let mut of_sequences = Vec::new();
        for found in chosen {
            let slot = |(number, space): (usize, &usize)| {
                let (Popularity::Tiers(tiers), Some(ranked)) = (&fits[*space].popularity, &ranked[*space])
                else {
                    return None;
                };
                let hashes = found.sample.iter().skip(number).step_by(found.form.spaces.len());
                let counted: Vec<u64> =
                    hashes.copied().filter(|hash| spaces.all[*space].is_counted(*hash)).collect();
                let own = (counted.len() >= ENOUGH)
                    .then(|| shares(&counted, ranked, tiers.all.iter(), tiers.ranked));
                if let Some(left) = &mut left[*space] {
                    let of_space = tiers.all.iter().map(|(_, share)| *share);
                    let drawn = own.clone().unwrap_or_else(|| of_space.collect());
                    left.iter_mut().zip(drawn).for_each(|(left, share)| *left -= share * found.count as f64);
                }
                own
            };
            let mut slots: Vec<Option<TierShares>> = found.form.spaces.iter().enumerate().map(slot).collect();
            for (space, fit) in fits.iter().enumerate() {
                let alike = || found.form.spaces.iter().zip(&slots).filter(|(own, _)| **own == space);
                if let (Popularity::Tiers(tiers), 2..) = (&fit.popularity, alike().count())
                    && let Some(wanted) =
                        alike().map(|(_, shares)| shares.clone()).collect::<Option<Vec<_>>>()
                {
                    let mut drawn = drawn_different(tiers, &wanted).into_iter();
                    let own = found.form.spaces.iter().zip(&mut slots).filter(|(own, _)| **own == space);
                    own.for_each(|(_, shares)| *shares = drawn.next());
                }
            }
            of_sequences.push(slots);
        }
        let rest = |left: Option<TierShares>| {
            let left: TierShares = left?.into_iter().map(|left| left.max(0.0)).collect();
            let all: f64 = left.iter().sum();
            (all >= 1.0).then(|| left.into_iter().map(|left| left / all).collect())
        };
        SlotShares { of_sequences, alone: left.into_iter().map(rest).collect() }
    }
}

/// Shares of the tiers among these keys: of ranked ones as they came, of the others as in the whole space.
fn shares<'a>(
    keys: &[u64],
    ranked: &HashMap<u64, usize>,
    tiers: impl ExactSizeIterator<Item = &'a (u64, f64)> + Clone,
    first_class: usize,
) -> TierShares {
    let mut own = vec![0.0; tiers.len()];
    let mut others = 0.0;
    for key in keys {
        match ranked.get(key) {
            Some(tier) => own[*tier] += 1.0,
            None => others += 1.0,
        }
    }
    let of_classes: f64 = tiers.clone().skip(first_class).map(|(_, share)| share).sum();
    for (own, (_, share)) in own.iter_mut().zip(tiers).skip(first_class) {
        *own = others * share / of_classes;
    }
    let all: f64 = own.iter().sum();
    own.iter_mut().for_each(|own| *own /= all.max(1.0));
    own
}

/// Shares from which keys that must differ from each other are drawn, so that they come to those that are wanted. What is drawn
/// again because it was there already makes rare keys more frequent.
fn drawn_different(tiers: &Tiers, wanted: &[TierShares]) -> Vec<TierShares> {
    let mut own = wanted.to_vec();
    let mut stream = Stream::new(0, 0, Purpose::Key);
    let mut drawn: Vec<(usize, u64)> = Vec::new();
    for _ in 0..ROUNDS {
        let mut counts: Vec<TierShares> = wanted.iter().map(|shares| vec![0.0; shares.len()]).collect();
        for _ in 0..DRAWN {
            drawn.clear();
            for (shares, counts) in own.iter().zip(&mut counts) {
                let mut key = draw_key(tiers, shares, &mut stream);
                for _ in 1..DRAWS {
                    if !drawn.contains(&key) {
                        break;
                    }
                    key = draw_key(tiers, shares, &mut stream);
                }
                counts[key.0] += 1.0;
                drawn.push(key);
            }
        }
        for ((shares, counts), wanted) in own.iter_mut().zip(&counts).zip(wanted) {
            for ((share, count), wanted) in shares.iter_mut().zip(counts).zip(wanted) {
                // By half the way, and by no more than twice: what is drawn is counted, and chance is in it.
                let factor = wanted * DRAWN as f64 / count.max(0.5);
                *share *= factor.clamp(0.25, 4.0).sqrt();
            }
            let all: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share /= all);
        }
    }
    own
}

fn draw_key(tiers: &Tiers, shares: &TierShares, stream: &mut Stream) -> (usize, u64) {
    let mut left = stream.next_unit();
    let tier = shares.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    let tier = tier.unwrap_or(shares.len() - 1);
    (tier, stream.next_below(tiers.all[tier].0.max(1)))
}

#[cfg(test)]
mod tests {
    use super::super::sequences::{SequenceForm, SequenceStep};
    use super::*;

    #[test]
    fn places_have_the_tiers_of_their_own_keys() {
        let mut spaces = KeySpaces::default();
        // The first key comes 200 times, with another one of a hundred; the second one a hundred times by itself.
        let mut sample = Vec::new();
        for n in 0..200 {
            let mut hash = |key: &str| spaces.note(key.as_bytes()).unwrap().1;
            sample.extend([hash("p:1"), hash(&format!("p:{}", 10 + n % 100))]);
            if n % 2 == 0 {
                hash("p:2");
            }
            spaces.operation += 1;
        }
        let tiers = Tiers { all: vec![(1, 0.4), (1, 0.2), (100, 0.4)], ranked: 2 };
        let fits = [KeyFit { popularity: Popularity::Tiers(tiers), keys: 102, error: 0.0 }];
        assert_eq!(spaces.all[0].draws(), 500);
        let step = SequenceStep { pattern: 0, keys: vec![(1, 0), (2, 1)] };
        let form = SequenceForm { steps: vec![step], spaces: vec![0, 0], pipelined: false };
        let found = FoundSequence { form, count: 200, sample };
        let shares = SlotShares::of_sequences(&spaces, &fits, &[found]);
        let [Some(one), Some(other)] = &shares.of_sequences[0][..] else { panic!("{shares:?}") };
        assert_eq!((&one[..], &other[..]), (&[1.0, 0.0, 0.0][..], &[0.0, 0.0, 1.0][..]));
        assert_eq!(shares.alone[0].as_deref(), Some(&[0.0, 1.0, 0.0][..]));
    }

    #[test]
    fn keys_that_are_drawn_again_come_as_often_as_they_did() {
        // The first is always one of two, the second one of these in nine cases of ten, else one of a hundred others.
        let tiers = Tiers { all: vec![(1, 0.4), (1, 0.4), (100, 0.2)], ranked: 2 };
        let wanted = [vec![0.5, 0.5, 0.0], vec![0.45, 0.45, 0.1]];
        let own = drawn_different(&tiers, &wanted);
        // Drawn again while it is the first one: the chance x of the others becomes x / (x + (1 - x) / 2), a tenth where x is
        // 1 / 19.
        assert!((own[1][2] - 1.0 / 19.0).abs() < 0.01, "{own:?}");
        assert!((own[0][0] - 0.5).abs() < 0.03, "{own:?}");
    }

    #[test]
    fn few_sequences_show_nothing() {
        let mut spaces = KeySpaces::default();
        let hash = spaces.note(b"p:1").unwrap().1;
        let tiers = Tiers { all: vec![(1, 1.0)], ranked: 1 };
        let fits = [KeyFit { popularity: Popularity::Tiers(tiers), keys: 1, error: 0.0 }];
        let form = SequenceForm { steps: Vec::new(), spaces: vec![0], pipelined: false };
        let found = FoundSequence { form, count: 1, sample: vec![hash; ENOUGH - 1] };
        let shares = SlotShares::of_sequences(&spaces, &fits, &[found]);
        assert_eq!((&shares.of_sequences[0][..], &shares.alone[..]), (&[None][..], &[None][..]));
    }
}
