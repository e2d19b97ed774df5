//! /proc/stat: CPU time by state, for all cores and for each.

use crate::cpu::TICKS;
use crate::sample::Sample;

/// States in the order of the file. Time of guests is part of user and nice.
const STATES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// Other lines of the file: its name, ours, whether it only grows.
const OTHERS: [(&str, &str, bool); 4] = [
    ("ctxt", "context_switches", true),
    ("processes", "forks", true),
    ("procs_running", "processes_running", false),
    ("procs_blocked", "processes_blocked", false),
];

pub(super) fn cpu(stat: &str, into: &mut Sample) {
    for line in stat.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if first.starts_with("cpu") {
            for (state, ticks) in STATES.iter().zip(words) {
                if let Ok(ticks) = ticks.parse::<f64>() {
                    into.add_counter(format!("{first}.{state}_s"), ticks / TICKS);
                }
            }
        } else if let Some((_, name, grows)) = OTHERS.iter().find(|(theirs, ..)| *theirs == first)
            && let Some(value) = words.next().and_then(|v| v.parse().ok())
        {
            if *grows { into.add_counter(*name, value) } else { into.add_gauge(*name, value) }
        }
    }
}
