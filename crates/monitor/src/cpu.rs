//! CPU time of this process and of the host.

use crate::roots::read;
use rustix::process::{Pid, getpid};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// CPU used so far by this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessCpu {
    /// User time, seconds.
    pub user_s: f64,
    /// System time, seconds.
    pub system_s: f64,
}

/// Jiffies a second: fixed at 100 in what Linux shows to user space.
pub(crate) const TICKS: f64 = 100.0;

impl ProcessCpu {
    /// Reads it now: nanosecond-exact in sum from the process clock, divided as /proc/self/stat divides it.
    pub fn read_now() -> Self {
        let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let total = clock.tv_sec as f64 + clock.tv_nsec as f64 / 1e9;
        let (user, system) = Self::ticks(getpid()).unwrap_or((1.0, 0.0));
        let share = if user + system > 0.0 { user / (user + system) } else { 1.0 };
        ProcessCpu { user_s: total * share, system_s: total * (1.0 - share) }
    }

    /// User and system ticks of a process.
    fn ticks(pid: Pid) -> Option<(f64, f64)> {
        let text = read(Path::new(&format!("/proc/{}/stat", pid.as_raw_pid()))).ok()?;
        let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    }

    /// CPU seconds of another process (user and system), if it can be read.
    pub fn of_process(pid: u32) -> Option<f64> {
        let (user, system) = Self::ticks(Pid::from_raw(pid as i32)?)?;
        Some((user + system) / TICKS)
    }

    /// Returns the moment since which this process counts: its start, to a hundredth of a second.
    pub fn start_time() -> Option<SystemTime> {
        let stat = read(Path::new("/proc/self/stat")).ok()?;
        let ticks: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
        let uptime = read(Path::new("/proc/uptime")).ok()?;
        let uptime_s: f64 = uptime.split_whitespace().next()?.parse().ok()?;
        let age = Duration::try_from_secs_f64(uptime_s - ticks / TICKS).ok()?;
        SystemTime::now().checked_sub(age)
    }

    /// Returns the use since `earlier`.
    pub fn since_earlier(&self, earlier: &ProcessCpu) -> ProcessCpu {
        ProcessCpu {
            user_s: (self.user_s - earlier.user_s).max(0.0),
            system_s: (self.system_s - earlier.system_s).max(0.0),
        }
    }

    /// Both together, seconds.
    pub fn total_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// Largest resident memory of this process so far, bytes.
pub fn peak_resident_bytes() -> Option<u64> {
    let status = read(Path::new("/proc/self/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
}

/// The host's CPU time by state, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// All states together.
    pub total: u64,
    /// Idle and waiting for input or output.
    pub idle: u64,
    /// Taken away by the hypervisor.
    pub steal: u64,
}

/// Reads the host's CPU times again and again.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostCpu {
    last: CpuTimes,
}

impl HostCpu {
    /// Starts now.
    pub fn start() -> Self {
        HostCpu { last: times().unwrap_or_default() }
    }

    /// Returns the CPU times since the last call; `None` where /proc/stat cannot be read.
    pub fn lap_times(&mut self) -> Option<CpuTimes> {
        let now = times()?;
        let lap = CpuTimes {
            total: now.total.saturating_sub(self.last.total),
            idle: now.idle.saturating_sub(self.last.idle),
            steal: now.steal.saturating_sub(self.last.steal),
        };
        self.last = now;
        Some(lap)
    }
}

impl CpuTimes {
    /// Share of the time that the hypervisor took away, 0 to 1.
    pub fn steal_share(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.steal as f64 / self.total as f64 }
    }

    /// Share of the time that was neither idle nor taken away, 0 to 1.
    pub fn busy_share(&self) -> f64 {
        let busy = self.total.saturating_sub(self.idle + self.steal);
        if self.total == 0 { 0.0 } else { busy as f64 / self.total as f64 }
    }

    /// Adds the times of another span.
    pub fn add_times(&mut self, other: &CpuTimes) {
        self.total += other.total;
        self.idle += other.idle;
        self.steal += other.steal;
    }
}

/// Number of the host's cores, also those that this process may not use; 0 where /proc/stat cannot be read.
pub fn host_cores() -> usize {
    let is_core = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    read(Path::new("/proc/stat")).map_or(0, |text| text.lines().filter(is_core).count())
}

fn times() -> Option<CpuTimes> {
    let text = read(Path::new("/proc/stat")).ok()?;
    let fields: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|f| f.parse().ok()).collect();
    let at = |i: usize| fields.get(i).copied().unwrap_or(0);
    // user nice system idle iowait irq softirq steal
    Some(CpuTimes { total: (0..8).map(at).sum(), idle: at(3) + at(4), steal: at(7) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_began_a_little_while_ago() {
        let began = ProcessCpu::start_time().unwrap();
        let age = SystemTime::now().duration_since(began).unwrap();
        assert!(age < Duration::from_secs(86_400), "{age:?}");
        let again = ProcessCpu::start_time().unwrap();
        let apart = again.duration_since(began).unwrap_or_else(|error| error.duration());
        assert!(apart < Duration::from_secs(1), "{apart:?}");
    }

    #[test]
    fn burning_cpu_shows() {
        let before = ProcessCpu::read_now();
        let mut x = 1u64;
        while ProcessCpu::read_now().since_earlier(&before).total_s() < 0.02 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(peak_resident_bytes().unwrap() > 100_000);
        assert!(ProcessCpu::of_process(std::process::id()).is_some());
    }

    #[test]
    fn the_hosts_times_go_forward() {
        let mut host = HostCpu::start();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let lap = host.lap_times().unwrap();
        assert!(lap.total > 0 && lap.idle <= lap.total);
    }
}
