//! Distributions over key numbers and lengths: pure functions of random words, with nothing but precomputed
//! constants inside. One file per family; which of them a workload uses is decided in [`crate::ycsb`].
//!
//! The word "rank" means popularity: rank 0 is the most popular item. A distribution over keys either keeps ranks in
//! place (plain zipfian, latest) or scatters them over the key space (scrambled zipfian, true zipfian).

pub mod histogram;
pub mod latest;
pub mod scrambled;
pub mod simple;
pub mod true_zipf;
pub mod zeta;
pub mod zipfian;

pub use histogram::{BadHistogram, LengthHistogram};
pub use latest::Latest;
pub use scrambled::ScrambledZipfian;
pub use simple::{Exponential, Hotspot, Uniform};
pub use true_zipf::{RejectionInversion, TrueZipfian};
pub use zeta::Zeta;
pub use zipfian::Zipfian;

/// YCSB's zipfian exponent.
pub const THETA: f64 = 0.99;
