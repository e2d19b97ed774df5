//! /proc/diskstats: whole disks that have been used.

use crate::roots::Roots;
use crate::sample::Sample;

/// Bytes of a sector in this file, whatever the disk's own are.
const SECTOR: f64 = 512.0;

/// Columns after the name, their factor, our names. Latency is the time of reads (or writes) over their number, the
/// mean queue the weighted time over the time.
const COLUMNS: [(usize, f64, &str); 8] = [
    (0, 1.0, "reads"),
    (2, SECTOR, "read_bytes"),
    (3, 1e-3, "read_s"),
    (4, 1.0, "writes"),
    (6, SECTOR, "written_bytes"),
    (7, 1e-3, "write_s"),
    (9, 1e-3, "busy_s"),
    (10, 1e-3, "weighted_s"),
];

/// Column of the operations under way.
const UNDER_WAY: usize = 8;

pub(super) fn disks(roots: &Roots, into: &mut Sample) {
    let Some(text) = roots.proc("diskstats") else { return };
    let block = roots.sys.join("block");
    // Without /sys partitions cannot be told from disks, and everything is listed.
    let known = block.is_dir();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(2);
        let Some(name) = words.next() else { continue };
        let values: Vec<f64> = words.map_while(|w| w.parse().ok()).collect();
        let used = values.iter().any(|v| *v > 0.0);
        // A disk's name in /sys has ! for /.
        if !used || (known && !block.join(name.replace('/', "!")).exists()) {
            continue;
        }
        for (column, factor, what) in COLUMNS {
            if let Some(value) = values.get(column) {
                into.add_counter(format!("disk.{name}.{what}"), value * factor);
            }
        }
        if let Some(value) = values.get(UNDER_WAY) {
            into.add_gauge(format!("disk.{name}.under_way"), *value);
        }
    }
}
