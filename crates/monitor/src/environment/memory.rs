//! Memory: size, huge pages, and the settings of virtual memory.

use super::facts::EnvironmentFacts;
use super::values::{chosen, text};
use crate::roots::Roots;

const SETTINGS: [&str; 14] = [
    "swappiness",
    "zone_reclaim_mode",
    "dirty_ratio",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
    "overcommit_memory",
    "overcommit_ratio",
    "max_map_count",
    "watermark_scale_factor",
    "vfs_cache_pressure",
    "compaction_proactiveness",
];

pub(super) fn read(roots: &Roots, all: &mut EnvironmentFacts) {
    let meminfo = roots.proc("meminfo").unwrap_or_default();
    let value = |name: &str| {
        let line = meminfo.lines().find(|l| l.split(':').next() == Some(name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    for (name, line) in
        [("swap_total", "SwapTotal"), ("huge_pages", "HugePages_Total"), ("huge_page_size", "Hugepagesize")]
    {
        all.fact("memory", name, value(line));
    }
    for (name, line) in [
        // The host may gain or lose memory while it runs (hotplug, balloon).
        ("total", "MemTotal"),
        ("available", "MemAvailable"),
        ("free", "MemFree"),
        ("page_cache", "Cached"),
        ("dirty", "Dirty"),
        ("swap_free", "SwapFree"),
        ("huge_pages_free", "HugePages_Free"),
    ] {
        all.volatile("memory", name, value(line));
    }
    let huge = roots.sys.join("kernel/mm/transparent_hugepage");
    for (name, file) in [
        ("thp_enabled", "enabled"),
        ("thp_defrag", "defrag"),
        ("thp_shmem", "shmem_enabled"),
        ("thp_khugepaged_defrag", "khugepaged/defrag"),
    ] {
        all.fact("memory", name, text(huge.join(file)).map(chosen));
    }
    all.fact("memory", "ksm", text(roots.sys.join("kernel/mm/ksm/run")));
    for name in SETTINGS {
        all.fact("vm", name, text(roots.proc.join("sys/vm").join(name)));
    }
    // The kernel computes it anew whenever the size of memory changes.
    let reserve = "min_free_kbytes";
    all.volatile("vm", reserve, text(roots.proc.join("sys/vm").join(reserve)));
    all.fact("vm", "numa_balancing", text(roots.proc.join("sys/kernel/numa_balancing")));
}
