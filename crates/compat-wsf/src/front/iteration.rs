//! One iteration of a test: what it is called, and what is made of it.

use crate::plan::Resolved;
use crate::plan::lower::LoweredCase;
use dyno_frontend::terminal;

/// One iteration, ready to be carried out.
pub struct Iteration {
    /// Position in the folder's name: loop and burst.
    pub number: Option<(usize, Option<usize>)>,
    pub typed: String,
    pub resolved: Resolved,
    pub lowered: LoweredCase,
    /// The points of a latency curve, which are cells of one experiment: one for each TARGET.
    pub sweep: Vec<Resolved>,
}

/// Name of the test in logs: without `test_`, and the workload's name before a bare case.
pub fn test_name(typed: &str, case: &str) -> String {
    let bare = typed.strip_prefix("test_").unwrap_or(typed);
    if bare == case || bare.contains('/') { format!("mongodb_ycsb_{case}") } else { bare.to_owned() }
}

/// `logs-NAME`; of several iterations `MMDD-HHMMSS-l1b2-logs-NAME`.
pub fn folder_name(iteration: &Iteration, stamp: &str) -> String {
    let name = test_name(&iteration.typed, iteration.resolved.case.name);
    let number = match iteration.number {
        Some((round, Some(burst))) => format!("l{round}b{burst}-"),
        Some((round, None)) => format!("l{round}-"),
        None => String::new(),
    };
    let stamp = if stamp.is_empty() { String::new() } else { format!("{stamp}-") };
    format!("{stamp}{number}logs-{name}")
}

/// Departures, and variables that have no effect.
pub fn note(iteration: &Iteration) {
    iteration.lowered.notes.iter().for_each(|note| terminal::note(&format!("note: {note}")));
}
