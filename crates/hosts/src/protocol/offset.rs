//! How far another clock is from this host's.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Times that a clock is asked; the quickest answer tells most.
const ROUNDS: usize = 16;

/// Another host's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset {
    /// Unix time of the other clock less ours, nanoseconds.
    pub ns: i64,
    /// By how much that may be wrong: half of the way there and back.
    pub bound_ns: u64,
}

/// The quickest of several questions for a clock.
pub fn quickest_offset<E>(mut ask: impl FnMut() -> Result<u64, E>) -> Result<Offset, E> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let mut best = Offset { ns: 0, bound_ns: u64::MAX };
    for _ in 0..ROUNDS {
        let (before, began) = (now(), Instant::now());
        let theirs = ask()?;
        let half = began.elapsed().as_nanos() as u64 / 2;
        if half < best.bound_ns {
            best = Offset { ns: theirs as i64 - (before + half) as i64, bound_ns: half };
        }
    }
    Ok(best)
}
