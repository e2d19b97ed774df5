//! Facts about mongod that differ from version to version, each in one place: [`versions`] for its options, engines and
//! defaults, [`counters`] for the names under which it reports figures.

pub mod counters;
pub mod versions;

pub use versions::MongodVersion;
