//! Limits as the lines of a control group's files, in either version.

use crate::error::{Cause, LocalError};
use dyno_config::server::placement::Limits;
use std::fs;
use std::io;
use std::path::PathBuf;

/// A line and where it is written.
pub(super) struct LimitLine {
    pub path: PathBuf,
    pub file: String,
    pub text: String,
    /// True if the file must be there.
    pub needed: bool,
}

impl LimitLine {
    pub fn write(&self) -> Result<(), LocalError> {
        match fs::write(&self.path, &self.text) {
            // Without swap accounting there is no such file, and nothing to be limited if there is no swap.
            Err(e) if !self.needed && e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(refused(&self.file, format!("{} = {}: {e}", self.path.display(), self.text))),
            Ok(()) => Ok(()),
        }
    }

    /// Returns whether it limits what another one limits.
    pub fn is_like(&self, other: &LimitLine) -> bool {
        self.path == other.path && self.device() == other.device()
    }

    /// The device that it is about: limits of I/O begin with it.
    fn device(&self) -> Option<&str> {
        self.text.split(' ').next().filter(|word| word.contains(':'))
    }
}

pub(super) fn refused(what: &str, why: impl Into<Cause>) -> LocalError {
    LocalError::NotPermitted {
        what: format!("cgroup, {what}"),
        why: why.into(),
        lost: "the limits of memory, processor time and I/O do not hold".into(),
    }
}

/// Writes all lines. Those that are refused are tried again after the others: of two limits of which one may not exceed the
/// other, the one that goes first when they are lowered comes last when they are raised. If some are refused for good: why,
/// and those that were written.
pub(super) fn write_all<'a>(lines: &[&'a LimitLine]) -> Result<(), (LocalError, Vec<&'a LimitLine>)> {
    let (mut written, refused): (Vec<&LimitLine>, Vec<&LimitLine>) =
        lines.iter().copied().partition(|line| line.write().is_ok());
    let mut why = None;
    for line in refused {
        match line.write() {
            Ok(()) => written.push(line),
            Err(error) => drop(why.get_or_insert(error)),
        }
    }
    why.map_or(Ok(()), |why| Err((why, written)))
}

/// Length of a period in which processor time is shared out, microseconds.
const PERIOD_US: u64 = 100_000;

pub(super) fn quota(cpus: f64) -> u64 {
    // The kernel's least quota is 1 ms.
    ((cpus * PERIOD_US as f64).round() as u64).max(1_000)
}

/// File, text, and whether the file must be there.
pub(super) type LimitLines = Vec<(String, String, bool)>;

pub(super) fn unified_lines(limits: &Limits, devices: &[String]) -> LimitLines {
    let mut lines = LimitLines::new();
    if let Some(memory) = &limits.memory {
        lines.push(("memory.max".into(), memory.0.to_string(), true));
        let swap = limits.swap.as_ref().map_or(0, |swap| swap.0);
        lines.push(("memory.swap.max".into(), swap.to_string(), swap > 0));
    }
    if let Some(cpus) = limits.cpus {
        lines.push(("cpu.max".into(), format!("{} {PERIOD_US}", quota(cpus)), true));
    }
    let rates: Vec<String> = [
        ("rbps", limits.read_bytes_per_s.as_ref().map(|b| b.0)),
        ("wbps", limits.write_bytes_per_s.as_ref().map(|b| b.0)),
        ("riops", limits.read_iops),
        ("wiops", limits.write_iops),
    ]
    .iter()
    .filter_map(|(name, rate)| rate.map(|rate| format!("{name}={rate}")))
    .collect();
    if !rates.is_empty() {
        // One device in each write; the file keeps one line for each.
        let line = |device: &String| ("io.max".to_owned(), format!("{device} {}", rates.join(" ")), true);
        lines.extend(devices.iter().map(line));
    }
    lines
}

pub(super) fn split_lines(limits: &Limits, devices: &[String], controller: &str, swaps: bool) -> LimitLines {
    let mut lines = LimitLines::new();
    match controller {
        "memory" => {
            if let Some(memory) = &limits.memory {
                let swap = limits.swap.as_ref().map_or(0, |swap| swap.0);
                lines.push(("memory.limit_in_bytes".into(), memory.0.to_string(), true));
                // Memory and swap together; may only be set to no less than the limit of memory, hence after it. It is
                // asked first, and then its failcnt counts and not that of memory: without swap it is left out.
                if swaps || swap > 0 {
                    let both = memory.0.saturating_add(swap).to_string();
                    lines.push(("memory.memsw.limit_in_bytes".into(), both, swap > 0));
                }
            }
        }
        "cpu" => {
            if let Some(cpus) = limits.cpus {
                lines.push(("cpu.cfs_period_us".into(), PERIOD_US.to_string(), true));
                lines.push(("cpu.cfs_quota_us".into(), quota(cpus).to_string(), true));
            }
        }
        _ => {
            let rates = [
                ("read_bps", limits.read_bytes_per_s.as_ref().map(|b| b.0)),
                ("write_bps", limits.write_bytes_per_s.as_ref().map(|b| b.0)),
                ("read_iops", limits.read_iops),
                ("write_iops", limits.write_iops),
            ];
            for (name, rate) in rates {
                let Some(rate) = rate else { continue };
                let file = format!("blkio.throttle.{name}_device");
                lines.extend(devices.iter().map(|device| (file.clone(), format!("{device} {rate}"), true)));
            }
        }
    }
    lines
}
