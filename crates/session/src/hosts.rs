//! Hosts that take part in a run: which they are is known before a phase, what was seen of them at its end.

use dyno_analysis::{cores_used, host_cpu};
use dyno_monitor::{CLOCK_SOURCE, CpuTimes};
use dyno_rundir::monitor::Recording;
use dyno_rundir::schema::{Environment, HostRole, OthersUse, PhaseHost};
use std::collections::BTreeMap;

/// Programs that are named.
const PROGRAMS: usize = 3;

/// The identity of the kernel of a host, as it describes itself; empty if it does not.
pub fn boot_id_of(environment: &Environment) -> String {
    let facts = environment.system.as_ref().and_then(|system| system.volatile.get("host")?.get("boot_id"));
    facts.cloned().unwrap_or_default()
}

/// Observations of a worker in the last phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeenByWorker {
    /// Seconds from the beginning of the first worker of all to its own.
    pub late_s: Option<f64>,
    /// Shares of its host's CPU time that were busy and that were stolen, 0 to 1.
    pub busy_and_steal: Option<(f64, f64)>,
    /// The longest time in which it heard nothing of its controller, seconds, if it was noteworthy.
    pub unheard_s: Option<f64>,
}

/// A host that takes part, and who tells what of it.
#[derive(Clone, Debug, Default)]
pub struct HostPlan {
    /// What is known before the phase.
    pub host: PhaseHost,
    /// Workers there, from 0.
    pub workers: Vec<usize>,
    /// The agent there, by the name that its host has.
    pub agent: Option<String>,
    /// Sources of all that is the run's own there, one list for each control group, where the agent sees no other processes: what
    /// is left of the host's CPU time was then used by others.
    pub own: Option<Vec<Vec<String>>>,
}

impl HostPlan {
    /// The host that conducts the run.
    pub fn local_host(environment: &Environment, role: HostRole) -> Self {
        let host = PhaseHost {
            name: environment.host.clone(),
            local: true,
            role,
            clock_ns: Some(environment.clock_ns).filter(|_| role.is_client()),
            clock_source: environment.tuning.get(CLOCK_SOURCE).cloned(),
            ..PhaseHost::default()
        };
        HostPlan { host, ..HostPlan::default() }
    }
}

/// What was seen of all hosts in a phase.
pub(crate) struct SeenOfHosts<'a> {
    /// CPU time of this host.
    pub local: CpuTimes,
    /// Device and queueing discipline that held back most of what this host sent.
    pub shaped: Option<String>,
    /// By worker.
    pub workers: &'a [SeenByWorker],
    /// Other programs of this host.
    pub others: Option<&'a OthersUse>,
    /// Other programs of other hosts, by the agent's host.
    pub elsewhere: &'a BTreeMap<String, OthersUse>,
    /// What monitors recorded, and the phase's begin and end, Unix milliseconds.
    pub recorded: Option<(&'a Recording, f64, f64)>,
}

impl SeenOfHosts<'_> {
    /// A host, with what was seen of it.
    pub fn seen_host(&self, plan: &HostPlan) -> PhaseHost {
        let mut host = plan.host.clone();
        let source = match &plan.agent {
            Some(name) => format!("host-{name}"),
            None => "host".to_owned(),
        };
        let recorded = self.recorded.filter(|_| host.local || plan.agent.is_some());
        let cpu = recorded.and_then(|(recording, from, to)| host_cpu(recording, &source, from, to));
        let workers: Vec<&SeenByWorker> =
            plan.workers.iter().filter_map(|at| self.workers.get(*at)).collect();
        let own = (self.local.total > 0).then(|| (self.local.busy_share(), self.local.steal_share()));
        let told = if host.local { own } else { workers.iter().find_map(|worker| worker.busy_and_steal) };
        let shares = told.or(cpu.map(|cpu| (cpu.busy_share, cpu.steal_share)));
        host.cpu_busy_share = shares.map(|(busy, _)| busy);
        host.cpu_steal_share = shares.map(|(_, steal)| steal);
        host.cores = cpu.map(|cpu| cpu.cores).or(host.cores);
        host.shaped = self.shaped.clone().filter(|_| host.local && host.role.is_client());
        host.late_s = workers.iter().filter_map(|worker| worker.late_s).reduce(f64::max);
        host.unheard_s = workers.iter().filter_map(|worker| worker.unheard_s).reduce(f64::max);
        host.others = match (&plan.own, &plan.agent) {
            (Some(groups), _) => recorded.zip(cpu).and_then(|((recording, from, to), cpu)| {
                let own = groups.iter().map(|group| cores_used(recording, group, from, to));
                let own: f64 = own.sum::<Option<f64>>()?;
                let cpu_cores = (cpu.busy_share * cpu.cores - own).max(0.0);
                Some(OthersUse { cpu_cores, programs: BTreeMap::new() })
            }),
            (None, Some(name)) => self.elsewhere.get(name).cloned(),
            (None, None) => self.others.filter(|_| host.local).cloned(),
        };
        host
    }
}

/// The use of programs that are not of the run, with the names of those that used most.
pub(crate) fn others_of(used: BTreeMap<String, f64>) -> OthersUse {
    let cpu_cores = used.values().sum();
    let mut most: Vec<(String, f64)> = used.into_iter().collect();
    most.sort_by(|a, b| b.1.total_cmp(&a.1));
    OthersUse { cpu_cores, programs: most.into_iter().take(PROGRAMS).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_rundir::monitor::Kind::Counter;

    /// Ten seconds of four cores, of which three are busy: a pod's worker uses one, a server's pod one and a half.
    fn recording() -> Recording {
        let mut recording = Recording::new();
        for s in [0.0, 10.0] {
            let at = s * 1e3;
            recording.push("host-pod-1", at, [("cpu.user_s", Counter, 3.0 * s), ("cpu.idle_s", Counter, s)]);
            let worker = [("cpu.user_s", 0.5), ("cpu.system_s", 0.25), ("cgroup.cpu_s", 1.0)];
            recording.push("worker-pod-1", at, worker.map(|(name, rate)| (name, Counter, rate * s)));
            recording.push("server-redis-0", at, [("cgroup.cpu_s", Counter, 1.5 * s)]);
        }
        recording
    }

    fn seen(plan: &HostPlan, workers: &[SeenByWorker], recorded: bool) -> PhaseHost {
        let recording = recording();
        let elsewhere =
            BTreeMap::from([("pod-1".to_owned(), others_of([("stress".to_owned(), 0.75)].into()))]);
        let seen = SeenOfHosts {
            shaped: None,
            local: CpuTimes { total: 400, idle: 100, steal: 40 },
            workers,
            others: Some(&OthersUse { cpu_cores: 0.125, ..OthersUse::default() }),
            elsewhere: &elsewhere,
            recorded: recorded.then_some((&recording, 0.0, 10_000.0)),
        };
        seen.seen_host(plan)
    }

    #[test]
    fn on_a_node_others_use_what_is_left_of_its_cpu_time() {
        let groups = |servers: &[&str]| {
            let mut all = vec![vec!["worker-pod-1".to_owned()]];
            all.extend(servers.iter().map(|server| vec![(*server).to_owned()]));
            HostPlan { agent: Some("pod-1".into()), own: Some(all), ..HostPlan::default() }
        };
        let used = |servers: &[&str]| seen(&groups(servers), &[], true).others.map(|others| others.cpu_cores);
        assert_eq!(used(&[]), Some(2.0), "the group's time has the agent in it");
        assert_eq!(used(&["server-redis-0"]), Some(0.5));
        assert_eq!(
            used(&["server-redis-1"]),
            None,
            "a server of which nothing is known may have used all of it"
        );
        assert_eq!(seen(&groups(&[]), &[], false).others, None);
    }

    #[test]
    fn agents_name_other_programs_and_workers_tell_of_their_hosts() {
        let plan = HostPlan { workers: vec![0, 2], agent: Some("pod-1".into()), ..HostPlan::default() };
        let worker = |late_s, share| SeenByWorker {
            late_s: Some(late_s),
            busy_and_steal: share,
            unheard_s: (late_s > 0.0).then_some(60.0 + late_s),
        };
        let workers = [worker(0.0, None), worker(9.0, None), worker(0.16, Some((0.5, 0.25)))];
        let host = seen(&plan, &workers, true);
        assert_eq!(
            (host.late_s, host.cpu_busy_share, host.cpu_steal_share, host.unheard_s),
            (Some(0.16), Some(0.5), Some(0.25), Some(60.16))
        );
        assert_eq!((host.cores, host.others_share()), (Some(4.0), Some(0.1875)));
        assert_eq!(host.others.unwrap().describe_programs(), "stress 0.75 cores");
        // Without workers the monitors tell, and without monitors a worker does.
        let server = HostPlan { workers: Vec::new(), ..plan.clone() };
        assert_eq!(seen(&server, &workers, true).cpu_busy_share, Some(0.75));
        let blind = seen(&HostPlan { agent: None, ..plan }, &workers, false);
        assert_eq!((blind.cpu_steal_share, blind.others), (Some(0.25), None));
    }

    #[test]
    fn this_host_is_seen_by_this_process() {
        let environment = Environment { host: "here".into(), clock_ns: 30, ..Environment::default() };
        let host = seen(&HostPlan::local_host(&environment, HostRole::Both), &[], false);
        assert_eq!((host.cpu_busy_share, host.cpu_steal_share), (Some(0.65), Some(0.1)));
        assert_eq!((host.clock_ns, host.others.map(|others| others.cpu_cores)), (Some(30), Some(0.125)));
    }
}
