//! One process and its cgroup.

use crate::cgroup::Cgroup;
use crate::cpu::TICKS;
use crate::roots::{Roots, pairs};
use crate::sample::{Sample, SampleError, Source};
use dyno_types::database_series::{CPU_SYSTEM_S, CPU_USER_S};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Lines of /proc/PID/io and our names. Only the owner may read the file.
const IO: [(&str, &str); 6] = [
    ("rchar", "io.read_call_bytes"),
    ("wchar", "io.write_call_bytes"),
    ("syscr", "io.read_calls"),
    ("syscw", "io.write_calls"),
    ("read_bytes", "io.read_bytes"),
    ("write_bytes", "io.written_bytes"),
];

/// Lines of /proc/PID/status (KiB) and our names.
const STATUS: [(&str, &str); 3] =
    [("VmRSS", "resident_bytes"), ("VmHWM", "peak_resident_bytes"), ("VmSwap", "swapped_bytes")];

/// The number of a process that may be ended and started again while it is watched; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Pid(Arc<AtomicU32>);

impl Pid {
    /// Sets the process from now on; `None` for none.
    pub fn set_process(&self, pid: Option<u32>) {
        self.0.store(pid.unwrap_or(0), Ordering::Relaxed);
    }

    /// The process it is now.
    pub fn get(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }
}

impl From<u32> for Pid {
    fn from(pid: u32) -> Self {
        Pid(Arc::new(AtomicU32::new(pid)))
    }
}

/// A process, watched by its number; another process that gets the same number later is not taken for it. If its starter says
/// that it has been started again ([`Pid::set_process`]), the new process is watched. It is counted on from what was last seen of
/// one before: counters that began anew could overtake their old values unseen.
#[derive(Clone, Debug)]
pub struct ProcessSource {
    name: String,
    roots: Roots,
    current: Pid,
    pid: u32,
    started: Option<u64>,
    cgroup: Option<Cgroup>,
    /// Identity, which tells it from others.
    group: Option<f64>,
    /// Each of the process' own counters: its last value of earlier processes, and the value of this one.
    counted: BTreeMap<&'static str, (f64, f64)>,
}

/// Fields of /proc/PID/stat after the command's name.
struct Stat {
    minor_faults: f64,
    major_faults: f64,
    user_s: f64,
    system_s: f64,
    threads: f64,
    started: u64,
    ended: bool,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The command's name may hold anything, blanks and brackets too.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let at = |i: usize| fields.get(i)?.parse::<f64>().ok();
        Some(Stat {
            minor_faults: at(7)?,
            major_faults: at(9)?,
            user_s: at(11)? / TICKS,
            system_s: at(12)? / TICKS,
            threads: at(17)?,
            started: fields.get(19)?.parse().ok()?,
            ended: matches!(*fields.first()?, "Z" | "X"),
        })
    }
}

impl ProcessSource {
    /// A source called `name` for a process that runs now.
    pub fn new(name: &str, roots: Roots, current: impl Into<Pid>) -> Self {
        let current = current.into();
        let (name, counted) = (name.to_owned(), BTreeMap::new());
        let mut source =
            ProcessSource { name, roots, current, pid: 0, started: None, cgroup: None, group: None, counted };
        source.follow();
        source
    }

    /// Turns to the process that it is now, where that is another than before.
    fn follow(&mut self) {
        let now = self.current.get().unwrap_or(0);
        if now != self.pid {
            self.pid = now;
            self.started = self.stat().map(|s| s.started);
            self.cgroup = Cgroup::of_process(&self.roots, now);
            self.group = self.cgroup.as_ref().and_then(|group| group.group_number(&self.roots));
            self.counted.values_mut().for_each(|(earlier, own)| *earlier += std::mem::take(own));
        }
    }

    fn count(&mut self, into: &mut Sample, name: &'static str, value: f64) {
        let (earlier, own) = self.counted.entry(name).or_default();
        *own = value;
        into.add_counter(name, *earlier + value);
    }

    /// Returns `None` for a process that has ended, even if its parent has not waited for it: its figures stay as they were.
    fn stat(&self) -> Option<Stat> {
        Stat::parse(&self.roots.proc(&format!("{}/stat", self.pid))?).filter(|stat| !stat.ended)
    }
}

impl Source for ProcessSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn sample(&mut self, into: &mut Sample) -> Result<(), SampleError> {
        self.follow();
        if self.pid == 0 {
            return Err(SampleError::NotRunning);
        }
        let stat = self.stat().filter(|s| Some(s.started) == self.started);
        let stat = stat.ok_or(SampleError::Ended(self.pid))?;
        self.count(into, CPU_USER_S, stat.user_s);
        self.count(into, CPU_SYSTEM_S, stat.system_s);
        self.count(into, "minor_faults", stat.minor_faults);
        self.count(into, "major_faults", stat.major_faults);
        into.add_gauge("threads", stat.threads);
        let status = self.roots.proc(&format!("{}/status", self.pid)).unwrap_or_default();
        for (name, kib) in pairs(&status) {
            if let Some((_, ours)) = STATUS.iter().find(|(theirs, _)| *theirs == name) {
                into.add_gauge(*ours, kib * 1024.0);
            }
        }
        for (name, value) in pairs(&self.roots.proc(&format!("{}/io", self.pid)).unwrap_or_default()) {
            if let Some((_, ours)) = IO.iter().find(|(theirs, _)| *theirs == name) {
                self.count(into, ours, value);
            }
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.add_figures(into);
        }
        if let Some(number) = self.group {
            into.add_gauge("cgroup.number", number);
        }
        Ok(())
    }
}
