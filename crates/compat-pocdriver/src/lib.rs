//! POCDriver: its command line, its load and what is made ready for it, and what it prints.

#[cfg(feature = "front")]
pub mod front;
pub mod plan;
pub mod report;
pub mod setup;
pub mod shards;
pub mod work;

/// Functions of the surrounding program that this crate uses.
#[derive(Clone, Copy, Debug)]
pub struct WorkFrontEnd {
    /// Says something to the person who started it.
    pub warn: fn(&str),
    /// True if a signal has asked for the end.
    pub interrupted: fn() -> bool,
}
