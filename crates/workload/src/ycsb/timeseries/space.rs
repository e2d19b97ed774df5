//! The points of the time series and the order in which they are written.
//!
//! The picture: a *series* is a key and one combination of tag values, numbered key by key. A *point* is a series at
//! an *offset*, a number of intervals since the start; its code `offset * series + series number` is what travels as
//! the key of a request. Each user owns a range of keys and writes, offset after offset, one point for each of its
//! series (or a fixed share of them, if the series are sparse); so the position of a user's write decides the point,
//! and no state is needed. Index i belongs to user i mod users, at position i / users.

use super::config::TimeSeriesConfig;
use crate::permute::Permutation;
use dyno_types::rng::mix_bits;

/// The geometry of all points.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Space {
    users: u64,
    keys: u64,
    combinations: u64,
    loaded: u64,
    kept: f64,
    random_series: bool,
    random_timestamps: bool,
    start: i64,
    interval: i64,
    /// Series below this number lag behind.
    delayed: u64,
    delayed_intervals: u64,
    seed: u64,
}

/// The keys that one user writes.
#[derive(Clone, Copy)]
struct Share {
    first_key: u64,
    series: u64,
    /// Points written per offset.
    kept: u64,
    /// Points the load writes.
    loaded: u64,
}

impl Space {
    pub(super) fn new(config: &TimeSeriesConfig) -> Self {
        let series = config.keys * config.count_combinations();
        Space {
            users: config.users,
            keys: config.keys,
            combinations: config.count_combinations(),
            loaded: config.record_count,
            kept: 1.0 - config.sparsity,
            random_series: config.random_series,
            random_timestamps: config.random_timestamps,
            start: config.start as i64,
            interval: config.interval as i64,
            delayed: if config.delayed_intervals > 0 {
                (series as f64 * config.delayed).ceil() as u64
            } else {
                0
            },
            delayed_intervals: config.delayed_intervals.max(1),
            seed: config.seed,
        }
    }

    fn share(&self, user: u64) -> Share {
        let each = self.keys / self.users;
        let first_key = user * each;
        // The last user takes the rest.
        let keys = if user + 1 == self.users { self.keys - first_key } else { each };
        let series = keys * self.combinations;
        Share {
            first_key,
            series,
            kept: ((series as f64 * self.kept).round() as u64).clamp(1, series),
            loaded: self.loaded / self.users + u64::from(user < self.loaded % self.users),
        }
    }

    /// All series.
    pub(super) fn series(&self) -> u64 {
        self.keys * self.combinations
    }

    /// The point that the load writes at `index`.
    pub(super) fn load(&self, index: u64) -> u64 {
        let user = index % self.users;
        self.point(user, self.share(user), index / self.users)
    }

    /// The point of the run's insert with this rank: the next one of its user after the load.
    pub(super) fn insert(&self, rank: u64) -> u64 {
        let user = rank % self.users;
        let share = self.share(user);
        self.point(user, share, share.loaded.wrapping_add(rank / self.users))
    }

    fn point(&self, user: u64, share: Share, position: u64) -> u64 {
        let (turn, place) = (position / share.kept, position % share.kept);
        let complete = share.loaded / share.kept;
        let offset = if self.random_timestamps && turn < complete {
            Permutation::new(complete, mix_bits(self.seed ^ mix_bits(user))).apply(turn)
        } else {
            turn
        };
        let local = if self.random_series {
            let key = mix_bits(self.seed ^ user).wrapping_add(offset);
            Permutation::new(share.series, key).apply(place)
        } else {
            // Spread evenly if the series are sparse.
            (u128::from(place) * u128::from(share.series) / u128::from(share.kept)) as u64
        };
        let series = share.first_key * self.combinations + local;
        offset.wrapping_mul(self.series()).wrapping_add(series)
    }

    /// Offsets for which the load has written all that it writes of the series of `key`; at least 1.
    pub(super) fn offsets(&self, key: u64) -> u64 {
        let user = (key / (self.keys / self.users)).min(self.users - 1);
        let share = self.share(user);
        (share.loaded / share.kept).max(1)
    }

    /// The code of a point.
    pub(super) fn code(&self, key: u64, combination: u64, offset: u64) -> u64 {
        offset * self.series() + key * self.combinations + combination
    }

    /// Key number and combination of tags of a point.
    pub(super) fn key_and_tags(&self, code: u64) -> (u64, u64) {
        let series = code % self.series();
        (series / self.combinations, series % self.combinations)
    }

    /// Timestamp of a point, units since 1970. Delayed series write an earlier one.
    pub(super) fn timestamp(&self, code: u64) -> i64 {
        let (offset, series) = ((code / self.series()) as i64, code % self.series());
        let lag = if series < self.delayed { (series % self.delayed_intervals) as i64 } else { 0 };
        self.start.wrapping_add((offset - lag).wrapping_mul(self.interval))
    }

    pub(super) fn combinations(&self) -> u64 {
        self.combinations
    }

    pub(super) fn interval(&self) -> u64 {
        self.interval as u64
    }
}
