//! Why workers could not be brought to work.

use dyno_engine::RunError;
use dyno_types::{Outcome, RefusalCode, Refused};

/// Why workers could not be brought to work.
#[derive(Debug, thiserror::Error)]
pub enum WorkerPoolError {
    /// The request is wrong.
    #[error("{0}")]
    Refused(String),
    /// The target does not answer, or not as it should.
    #[error("{0}")]
    Unreachable(String),
    /// A worker could not be started, or died.
    #[error("{0}")]
    Worker(String),
}

impl From<WorkerPoolError> for RunError {
    fn from(error: WorkerPoolError) -> Self {
        match error {
            WorkerPoolError::Refused(message) => {
                RunError::Refused(Refused::new(RefusalCode::BadValue, "workers", message))
            }
            WorkerPoolError::Unreachable(message) => {
                RunError::Unreachable { outcome: Outcome::Unreachable, message }
            }
            WorkerPoolError::Worker(message) => RunError::Io(std::io::Error::other(message)),
        }
    }
}

/// Reasons that are shown of many workers that were lost.
const REASONS: usize = 3;

/// Why workers were lost: each reason once, with the first worker that has it. A way that all of them use fails for all.
pub(super) fn lost_in_words(lost: &[String]) -> Vec<String> {
    let mut reasons: Vec<(&str, &String, usize)> = Vec::new();
    for text in lost {
        // What comes before it is the worker's name.
        let reason = text.split_once(": ").map_or(text.as_str(), |(_, reason)| reason);
        match reasons.iter_mut().find(|(known, ..)| *known == reason) {
            Some((_, _, count)) => *count += 1,
            None => reasons.push((reason, text, 1)),
        }
    }
    let shown = reasons.iter().take(REASONS).map(|(_, text, count)| match count - 1 {
        0 => (*text).clone(),
        1 => format!("{text} (another worker, too)"),
        more => format!("{text} ({more} other workers, too)"),
    });
    let mut shown: Vec<String> = shown.collect();
    let more: usize = reasons.iter().skip(REASONS).map(|(.., count)| count).sum();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_many_workers_is_said_once() {
        let all: Vec<String> = (1..=60).map(|n| format!("worker {n} of h: the way there is cut")).collect();
        assert_eq!(lost_in_words(&all), ["worker 1 of h: the way there is cut (59 other workers, too)"]);
        let two = ["worker 1: a", "worker 2: b", "worker 3: b"].map(String::from);
        assert_eq!(lost_in_words(&two), ["worker 1: a", "worker 2: b (another worker, too)"]);
        let many: Vec<String> = (1..=9).map(|n| format!("worker {n}: reason {n}")).collect();
        assert_eq!(lost_in_words(&many)[2..], ["worker 3: reason 3", "and 6 more"]);
        assert_eq!(lost_in_words(&["alone".to_owned()]), ["alone"]);
    }
}
