//! /proc/meminfo and /proc/vmstat.

use crate::roots::{Roots, pairs};
use crate::sample::Sample;

/// Lines of meminfo (KiB) and our names.
const LEVELS: [(&str, &str); 9] = [
    ("MemTotal", "memory.total_bytes"),
    ("MemFree", "memory.free_bytes"),
    ("MemAvailable", "memory.available_bytes"),
    ("Buffers", "memory.buffers_bytes"),
    ("Cached", "memory.cached_bytes"),
    ("Dirty", "memory.dirty_bytes"),
    ("Writeback", "memory.writeback_bytes"),
    ("SwapTotal", "memory.swap_total_bytes"),
    ("SwapFree", "memory.swap_free_bytes"),
];

/// Lines of vmstat and our names.
const EVENTS: [(&str, &str); 5] = [
    ("pgfault", "memory.faults"),
    ("pgmajfault", "memory.major_faults"),
    ("pswpin", "memory.swapped_in_pages"),
    ("pswpout", "memory.swapped_out_pages"),
    ("oom_kill", "memory.oom_kills"),
];

pub(super) fn memory(roots: &Roots, into: &mut Sample) {
    for (name, kib) in pairs(&roots.proc("meminfo").unwrap_or_default()) {
        if let Some((_, ours)) = LEVELS.iter().find(|(theirs, _)| *theirs == name) {
            into.add_gauge(*ours, kib * 1024.0);
        }
    }
    for (name, count) in pairs(&roots.proc("vmstat").unwrap_or_default()) {
        if let Some((_, ours)) = EVENTS.iter().find(|(theirs, _)| *theirs == name) {
            into.add_counter(*ours, count);
        }
    }
}
