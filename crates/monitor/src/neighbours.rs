//! Other programs on this host, and the CPU time that they take.

use crate::environment::values::names;
use crate::roots::Roots;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Programs whose presence on the load generator's host matters.
pub(crate) const DATABASES: [&str; 14] = [
    "mongod",
    "mongos",
    "redis-server",
    "valkey-server",
    "keydb-server",
    "dragonfly",
    "postgres",
    "mysqld",
    "mariadbd",
    "memcached",
    "scylla",
    "etcd",
    "ferretdb",
    "clickhouse-serv",
];

/// The kernel's own threads have this parent.
const KERNEL: u32 = 2;

/// Longest chain of parents that is followed.
const DEEPEST: usize = 64;

/// A process as the kernel counts it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KernelProcess {
    /// Its command's name, up to 15 bytes.
    pub(crate) name: String,
    parent: u32,
    /// CPU time since its start, clock ticks.
    pub(crate) ticks: u64,
    started: u64,
}

/// CPU time that every process of the host had used at a time.
#[derive(Debug)]
pub struct Neighbours {
    roots: Roots,
    at: Instant,
    before: BTreeMap<u32, KernelProcess>,
}

/// Reads `/proc/PID/stat`; the name may hold anything.
fn parse(stat: &str) -> Option<KernelProcess> {
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let rest: Vec<&str> = stat[close + 1..].split_whitespace().collect();
    let number = |at: usize| rest.get(at)?.parse::<u64>().ok();
    Some(KernelProcess {
        name: stat.get(open + 1..close)?.to_owned(),
        parent: number(1)? as u32,
        ticks: number(11)? + number(12)?,
        started: number(19)?,
    })
}

/// All processes of the host.
pub(crate) fn processes(roots: &Roots) -> BTreeMap<u32, KernelProcess> {
    let numbers = names(&roots.proc);
    let numbers = numbers.iter().filter_map(|name| name.parse::<u32>().ok());
    numbers.filter_map(|pid| Some((pid, parse(&roots.proc(&format!("{pid}/stat"))?)?))).collect()
}

impl Neighbours {
    /// Counts from now on.
    pub fn start(roots: Roots) -> Self {
        Neighbours { before: processes(&roots), at: Instant::now(), roots }
    }

    /// Cores that programs have used since, by their names, but this process, what it has started, `own` and what those have
    /// started, and the kernel's threads. Where no server is among `own` (`server_known`), a database may be it: then none is a
    /// neighbour.
    pub fn cores_used(&self, own: &[u32], server_known: bool) -> BTreeMap<String, f64> {
        let seconds = self.at.elapsed().as_secs_f64();
        let now = processes(&self.roots);
        let mut ours: BTreeSet<u32> = own.iter().copied().collect();
        ours.extend([std::process::id(), KERNEL]);
        let is_ours = |pid: u32| {
            let mut line = std::iter::successors(Some(pid), |pid| now.get(pid).map(|process| process.parent));
            line.by_ref().take(DEEPEST).any(|pid| ours.contains(&pid))
        };
        let hertz = rustix::param::clock_ticks_per_second().max(1) as f64;
        let mut used = BTreeMap::new();
        for (pid, process) in &now {
            let known = self.before.get(pid).filter(|before| before.started == process.started);
            let ticks = process.ticks - known.map_or(0, |before| before.ticks.min(process.ticks));
            let database = !server_known && DATABASES.contains(&process.name.as_str());
            if ticks > 0 && !database && !is_ours(*pid) {
                *used.entry(process.name.clone()).or_insert(0.0) += ticks as f64 / hertz / seconds.max(1e-3);
            }
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_stat() {
        let line = "7 (a (b) c) S 2 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 1 0 12345 0 0";
        let process = KernelProcess { name: "a (b) c".into(), parent: 2, ticks: 300, started: 12_345 };
        assert_eq!(parse(line), Some(process));
        assert_eq!(parse("7 (a"), None);
    }

    #[test]
    fn neighbours_are_told_and_own_processes_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |pid: u32, name: &str, parent: u32, ticks: u64| {
            std::fs::create_dir_all(folder.path().join(pid.to_string())).unwrap();
            let line = format!("{pid} ({name}) R {parent} 0 0 0 0 0 0 0 0 0 {ticks} 0 0 0 0 0 0 0 9");
            std::fs::write(folder.path().join(format!("{pid}/stat")), line).unwrap();
        };
        let all = [
            (10, "redis-server", 1),
            (11, "child", 10),
            (12, "stress", 1),
            (13, "kworker", 2),
            (14, "mongod", 1),
        ];
        all.iter().for_each(|(pid, name, parent)| write(*pid, name, *parent, 100));
        let before = Neighbours::start(Roots { proc: folder.path().to_owned(), ..Roots::default() });
        all.iter().for_each(|(pid, name, parent)| write(*pid, name, *parent, 300));
        let names = |own: &[u32]| before.cores_used(own, !own.is_empty()).into_keys().collect::<Vec<_>>();
        assert_eq!(names(&[10]), ["mongod", "stress"]);
        assert_eq!(names(&[]), ["child", "stress"]);
        // Workers alone are known: which database they use is not.
        let beside_workers = before.cores_used(&[11], false).into_keys().collect::<Vec<_>>();
        assert_eq!(beside_workers, ["stress"]);
    }
}
