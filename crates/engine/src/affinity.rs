//! Where threads run and how precisely they wake.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::num::NonZeroU64;

/// The cores this process may use, ascending.
pub fn allowed_cores() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect(),
        Err(_) => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
    }
}

/// Pins the calling thread to a core, and lets the kernel wake it within a nanosecond of the time asked for (the
/// default slack is 50 us). False if the core is not to be had; the run goes on unpinned and the report says so.
pub fn pin_thread(core: Option<usize>) -> bool {
    // Without leave to set the slack, lag is larger and shows in the schedule-lag histogram.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    match core {
        None => true,
        Some(core) if core < CpuSet::MAX_CPU => {
            let mut set = CpuSet::new();
            set.set(core);
            sched_setaffinity(None, &set).is_ok()
        }
        Some(_) => false,
    }
}

/// Median cost of reading the clock, nanoseconds.
pub fn clock_cost_ns() -> u64 {
    let mut samples: Vec<u64> = (0..101)
        .map(|_| {
            let begun = crate::net::monotonic_ns();
            for _ in 0..63 {
                std::hint::black_box(crate::net::monotonic_ns());
            }
            (crate::net::monotonic_ns() - begun) / 64
        })
        .collect();
    samples.sort_unstable();
    samples[50]
}
