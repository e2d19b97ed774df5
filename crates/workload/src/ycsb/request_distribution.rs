//! Choice of keys, as configured.

use super::properties::BadProperty;
use crate::distributions::Hotspot;

/// Which of the two zipfian distributions is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// YCSB's, whose skew is far below its exponent.
    Ycsb,
    /// The distribution itself.
    True,
}

/// Choice of keys, as configured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequestDistribution {
    /// Every loaded key equally often.
    Uniform,
    /// One loaded key after the other, over and over.
    Sequential,
    /// Some keys far more often than others, scattered over the key space.
    Zipfian {
        /// YCSB's or the true one.
        flavour: Flavour,
        /// Exponent.
        theta: f64,
    },
    /// The newest keys most often.
    Latest {
        /// YCSB's approximation or the exact distribution.
        flavour: Flavour,
        /// Exponent.
        theta: f64,
    },
    /// A hot set takes a fixed share.
    Hotspot {
        /// Share of the keys that are hot.
        data: f64,
        /// Share of the operations that address them.
        operations: f64,
    },
    /// New keys more often than old ones, falling off exponentially.
    Exponential {
        /// Per cent of the operations that address the newest `fraction` of the records.
        percentile: f64,
        /// Fraction of the records, 0 to 1 and beyond.
        fraction: f64,
    },
}

impl RequestDistribution {
    /// Returns whether the distribution can work with `keys` keys.
    pub fn check(&self, keys: u64) -> Result<(), BadProperty> {
        if let RequestDistribution::Hotspot { data, operations } = *self
            && keys > 0
            && Hotspot::new(0, keys, data, operations).is_none()
        {
            let expected = format!("a fraction that leaves at least one of the {keys} keys hot and one cold");
            return Err(BadProperty::new("hotspotdatafraction", data, expected));
        }
        Ok(())
    }
}
