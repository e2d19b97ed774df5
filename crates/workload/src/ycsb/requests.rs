//! Which key a request addresses.
//!
//! Key numbers here are *virtual*: below `recordcount` they are the loaded keys; from there on they count this
//! client's own inserts without gaps. Whatever is drawn must not lie beyond the newest acknowledged key; a draw that
//! does is repeated, as in YCSB, but not for ever.

use super::config::CoreConfig;
use super::request_distribution::{Flavour, RequestDistribution};
use crate::distributions::{Exponential, Hotspot, Latest, ScrambledZipfian, TrueZipfian, Uniform};
use dyno_types::limits::REDRAWS;
use dyno_types::rng::Stream;

/// Chooses keys. Pure: the same words and the same newest key give the same key.
#[derive(Clone, Debug, PartialEq)]
pub enum Chooser {
    /// See [`RequestDistribution::Uniform`].
    Uniform(Uniform),
    /// See [`RequestDistribution::Sequential`].
    Sequential(Uniform),
    /// See [`Flavour::Ycsb`].
    Scrambled(ScrambledZipfian),
    /// See [`Flavour::True`].
    True(Box<TrueZipfian>),
    /// See [`RequestDistribution::Latest`].
    Latest(Box<Latest>),
    /// See [`RequestDistribution::Hotspot`].
    Hotspot(Hotspot),
    /// See [`RequestDistribution::Exponential`].
    Exponential(Exponential),
}

impl Chooser {
    /// The chooser of a checked config.
    pub fn new(config: &CoreConfig) -> Self {
        let range = Uniform { first: config.insert_start, items: config.insert_count.max(1) };
        let expected = config.expected_new_keys();
        // YCSB's zipfian range is inclusive, hence the one more; without it all hot keys would differ.
        let zipfian = match config.requests {
            RequestDistribution::Zipfian { flavour: Flavour::Ycsb, .. } => config.insert_count + expected + 1,
            _ => range.items.saturating_add(expected),
        };
        Self::over(config.requests, range, zipfian, config.record_count, config.earlier.count(), config.seed)
    }

    /// A chooser over `0..items`, where nothing is ever inserted.
    pub fn without_inserts(requests: RequestDistribution, items: u64, seed: u64) -> Self {
        Self::over(requests, Uniform { first: 0, items: items.max(1) }, items, items, 0, seed)
    }

    /// `zipfian` items of a zipfian, `records` that are loaded, `earlier` inserts of earlier runs.
    fn over(
        requests: RequestDistribution,
        range: Uniform,
        zipfian: u64,
        records: u64,
        earlier: u64,
        seed: u64,
    ) -> Self {
        let Uniform { first, items } = range;
        let newest = (records + earlier).saturating_sub(1);
        match requests {
            RequestDistribution::Uniform => Chooser::Uniform(range),
            RequestDistribution::Sequential => Chooser::Sequential(range),
            RequestDistribution::Zipfian { flavour: Flavour::Ycsb, theta } => {
                Chooser::Scrambled(ScrambledZipfian::with_theta(first, zipfian, theta))
            }
            RequestDistribution::Zipfian { flavour: Flavour::True, theta } => {
                Chooser::True(Box::new(TrueZipfian::new(first, zipfian, theta, seed)))
            }
            RequestDistribution::Latest { flavour: Flavour::Ycsb, theta } => {
                Chooser::Latest(Box::new(Latest::ycsb(theta, newest)))
            }
            RequestDistribution::Latest { flavour: Flavour::True, theta } => {
                Chooser::Latest(Box::new(Latest::exact(theta)))
            }
            RequestDistribution::Hotspot { data, operations } => {
                Hotspot::new(first, items, data, operations).map_or(Chooser::Uniform(range), Chooser::Hotspot)
            }
            RequestDistribution::Exponential { percentile, fraction } => {
                Chooser::Exponential(Exponential::new(percentile, records as f64 * fraction))
            }
        }
    }

    /// One draw; `None` if it lies before key 0. See [`Chooser::choose_key`].
    #[inline]
    fn draw(&self, stream: &mut Stream, place: impl Fn() -> u64, newest: u64) -> Option<u64> {
        Some(match self {
            Chooser::Uniform(uniform) => uniform.key(stream.next_u64()),
            Chooser::Sequential(range) => range.first + place() % range.items,
            Chooser::Scrambled(zipfian) => zipfian.key(stream.next_unit()),
            Chooser::True(zipfian) => zipfian.key(stream),
            Chooser::Latest(latest) => latest.key(newest, stream),
            Chooser::Hotspot(hotspot) => hotspot.key(stream),
            Chooser::Exponential(exponential) => {
                return newest.checked_sub(exponential.distance(stream.next_unit()));
            }
        })
    }

    /// A key not beyond `newest`, the newest acknowledged one; after [`REDRAWS`] draws beyond it the newest key itself.
    /// `place` says how many operations that choose a key come before this one: what goes through the keys in order asks.
    #[inline]
    pub fn choose_key(&self, stream: &mut Stream, place: impl Fn() -> u64, newest: u64) -> u64 {
        for _ in 0..REDRAWS {
            match self.draw(stream, &place, newest) {
                Some(key) if key <= newest => return key,
                _ => {}
            }
        }
        newest
    }
}
