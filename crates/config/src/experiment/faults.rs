//! Faults that an experiment asks for, typed; what can be meant, and when each of them begins and ends.

use crate::experiment::fault::{Fault, FaultKind, LEAST_SHAPED_BYTES_PER_S, Moment, On};
use crate::experiment::{Experiment, Lifetime};
use crate::server::Topology;
use crate::tree::{Node, TreeError};
use dyno_types::limits::FAULTS;
use dyno_types::rng::{Stream, mix_bits, unit_interval};

/// Length of the measured phase, nanoseconds, where nothing is said.
const USUAL_NS: u64 = 10_000_000_000;

/// One fault on the time axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Which of the faults, from 0.
    pub fault: usize,
    /// Which time of it, from 1.
    pub time: u32,
    /// Begin, nanoseconds from the begin of the measured phase.
    pub begin_ns: u64,
    /// End; none where it lasts until the phase ends.
    pub end_ns: Option<u64>,
}

/// A problem: the key of the fault and the words.
type Wrong = (&'static str, String);

impl Fault {
    /// Length, if it has one.
    fn length_ns(&self) -> u64 {
        self.length.as_ref().map_or(0, |length| length.0)
    }

    /// In words, as events and reports name it: `delay 50ms on server`.
    pub fn describe_fault(&self) -> String {
        let amount = match self.kind {
            FaultKind::CpuPressure => self.cpus.map(|cpus| format!(" to {cpus} cores")),
            FaultKind::MemoryPressure => self.memory.as_ref().map(|memory| format!(" to {memory}")),
            FaultKind::IoLimit | FaultKind::Bandwidth => {
                self.bytes_per_s.as_ref().map(|bytes| format!(" to {bytes} a second"))
            }
            FaultKind::Delay => self.delay.as_ref().map(|delay| format!(" of {delay}")),
            FaultKind::Loss => self.percent.map(|percent| format!(" of {percent} %")),
            FaultKind::ClockStep => self.step.as_ref().map(|step| format!(" by {step}")),
            _ => None,
        };
        format!("{}{} on {}", self.kind.name(), amount.unwrap_or_default(), self.on)
    }

    /// Begins and ends of all its times. Random ones are drawn each in its own part of the window, so that they do not meet.
    fn times(&self, at: usize, seed: u64, phase_ns: Option<u64>) -> Vec<Planned> {
        let one = |time: u32, begin_ns: u64| Planned {
            fault: at,
            time,
            begin_ns,
            end_ns: (self.kind != FaultKind::Kill).then(|| begin_ns.saturating_add(self.length_ns())),
        };
        match &self.at {
            Moment::After(first) => {
                let every = self.every.as_ref().map_or(0, |every| every.0);
                let begin = |time: u32| first.0.saturating_add(every.saturating_mul(u64::from(time - 1)));
                (1..=self.times).map(|time| one(time, begin(time))).collect()
            }
            Moment::Random => {
                let from = self.from.as_ref().map_or(0, |from| from.0);
                let to = self.to.as_ref().map(|to| to.0).or(phase_ns).unwrap_or(from);
                let part = to.saturating_sub(from) / u64::from(self.times.max(1));
                let free = part.saturating_sub(self.length_ns());
                let mut draws = Stream::from_bits(mix_bits(seed ^ mix_bits(0x6661_756c_7400 + at as u64)));
                let mut begin = |time: u32| {
                    from + part * u64::from(time - 1) + (unit_interval(draws.next_u64()) * free as f64) as u64
                };
                (1..=self.times).map(|time| one(time, begin(time))).collect()
            }
        }
    }

    /// Finds what is invalid in it alone.
    fn check(&self) -> Result<(), Wrong> {
        let (kind, name) = (self.kind, self.kind.name());
        let own = [
            ("cpus", self.cpus.is_some(), kind == FaultKind::CpuPressure),
            ("memory", self.memory.is_some(), kind == FaultKind::MemoryPressure),
            (
                "bytes_per_s",
                self.bytes_per_s.is_some(),
                matches!(kind, FaultKind::IoLimit | FaultKind::Bandwidth),
            ),
            ("delay", self.delay.is_some(), kind == FaultKind::Delay),
            ("percent", self.percent.is_some(), kind == FaultKind::Loss),
            ("step", self.step.is_some(), kind == FaultKind::ClockStep),
        ];
        for (key, said, needed) in own {
            match (said, needed) {
                (true, false) => return Err((key, format!("is not of {name}"))),
                (false, true) => return Err(("kind", format!("{name}: expected {key}, too"))),
                _ => {}
            }
        }
        match (kind, &self.length) {
            (FaultKind::Kill, Some(_)) => {
                return Err(("for", "what is killed stays away: expected kind restart, or no length".into()));
            }
            (FaultKind::Kill | FaultKind::Restart, _) => {}
            (_, None) => return Err(("kind", format!("{name}: expected for, its length, too"))),
            (_, Some(length)) if length.0 == 0 => {
                return Err(("for", "0s: expected a length such as 1s".into()));
            }
            _ => {}
        }
        if self.cpus.is_some_and(|cpus| !(0.01..=65_536.0).contains(&cpus)) {
            return Err(("cpus", "expected 0.01 to 65536 cores".into()));
        }
        if self.percent.is_some_and(|percent| !(0.001..=100.0).contains(&percent)) {
            return Err(("percent", "expected 0.001 to 100".into()));
        }
        if self.step.as_ref().is_some_and(|step| step.0 == 0) {
            return Err(("step", "0s: expected a step such as 90s or -1h".into()));
        }
        let zero = |bytes: &Option<crate::values::Bytes>| bytes.as_ref().is_some_and(|bytes| bytes.0 == 0);
        if zero(&self.bytes_per_s) {
            return Err(("bytes_per_s", "0: expected more; partition stops everything".into()));
        }
        if zero(&self.memory) {
            return Err(("memory", "0: expected more".into()));
        }
        self.check_times()
    }

    fn check_times(&self) -> Result<(), Wrong> {
        if self.times == 0 {
            return Err(("times", "0: expected 1 or more".into()));
        }
        if self.times as usize > FAULTS {
            return Err(("times", format!("{}: expected at most {FAULTS}", self.times)));
        }
        if self.kind == FaultKind::Kill && self.times > 1 {
            return Err(("times", "what is killed stays away: expected kind restart, or 1".into()));
        }
        match &self.at {
            Moment::After(_) => {
                if self.from.is_some() || self.to.is_some() {
                    let key = if self.from.is_some() { "from" } else { "to" };
                    return Err((key, "is the window of at: random".into()));
                }
                if self.times > 1 && self.every.is_none() {
                    return Err(("times", "expected every, too: the time from one begin to the next".into()));
                }
                if self.every.as_ref().is_some_and(|every| every.0 <= self.length_ns()) {
                    return Err((
                        "every",
                        "expected more than for: one would begin before the last ends".into(),
                    ));
                }
            }
            Moment::Random => {
                if self.every.is_some() {
                    return Err(("every", "is not of at: random, whose times are drawn".into()));
                }
                if let (Some(from), Some(to)) = (&self.from, &self.to)
                    && from >= to
                {
                    return Err(("to", "expected a time after from".into()));
                }
            }
        }
        Ok(())
    }

    /// Finds what is invalid in this experiment.
    fn check_in(&self, spec: &Experiment) -> Result<(), Wrong> {
        let name = self.kind.name();
        let in_pods = spec.kubernetes.is_some();
        let (far_servers, far_clients) = (!spec.ssh.servers.is_empty(), !spec.ssh.clients.is_empty());
        let instances = spec.server.as_ref().map_or(1, |server| server.instances.max(1));
        if let On::Worker(number) = self.on {
            if !matches!(self.kind, FaultKind::Kill | FaultKind::Pause) {
                let why = match self.kind {
                    FaultKind::ClockStep => " (a worker times its load by a clock that cannot be set)",
                    _ => "",
                };
                return Err((
                    "on",
                    format!("{name} is for servers{why}: of a worker expected kill or pause"),
                ));
            }
            let workers = spec.client.workers.saturating_mul(instances);
            // The number of hosts in a group is known once it is looked up.
            return match number > workers && !far_servers && !far_clients && !in_pods {
                true => Err(("on", format!("worker {number}: there are {workers}"))),
                false => Ok(()),
            };
        }
        let Some(server) = &spec.server else {
            let why = format!(
                "{name}: expected a server, too, which says what dyno starts: it has no hand on others"
            );
            return Err(("on", why));
        };
        if let On::One(number) = self.on
            && number > server.processes()
            && !far_servers
        {
            return Err(("on", format!("server {number}: there are {}", server.processes())));
        }
        if in_pods {
            return self.check_in_pods();
        }
        match self.kind {
            FaultKind::Kill if spec.server_lifetime == Lifetime::Shared => {
                Err(("kind", "kill: the next run shares the server: expected restart".into()))
            }
            FaultKind::DiskFull if server.data.image.is_none() => Err((
                "kind",
                "disk_full: expected server.data.image: no disk is filled but one that is dyno's own".into(),
            )),
            FaultKind::Bandwidth
                if (far_servers || far_clients || server.topology != Topology::Single)
                    && self.bytes_per_s.as_ref().is_some_and(|bytes| bytes.0 < LEAST_SHAPED_BYTES_PER_S) =>
            {
                let why = "expected 1.6M or more: below it the kernel's bucket is more than a tenth of a second of traffic, \
                           and dyno's own proxy is for topology: single on this host";
                Err(("bytes_per_s", why.into()))
            }
            FaultKind::ClockStep => match server.kind.server_rules().fixed_clock() {
                Some(why) => Err(("kind", format!("clock_step: {why}"))),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Refuses what cannot be done to servers in pods.
    fn check_in_pods(&self) -> Result<(), Wrong> {
        match self.kind {
            FaultKind::Pause => Ok(()),
            FaultKind::Restart if self.length_ns() == 0 => Ok(()),
            FaultKind::Restart => {
                Err(("for", "the cluster starts servers in pods again at its own time: expected none".into()))
            }
            FaultKind::Kill => {
                let why = "kill: the cluster starts servers in pods again by itself: expected restart";
                Err(("kind", why.into()))
            }
            kind => {
                let why = format!("{}: of servers in pods expected restart or pause", kind.name());
                Err(("kind", why))
            }
        }
    }
}

/// When every fault of a run begins and ends, by their begin. Repetitions draw anew; cells draw the same.
pub fn schedule_faults(spec: &Experiment, repetition: u32) -> Vec<Planned> {
    let measure = &spec.phases.measure;
    let by_clock = measure.duration.as_ref().map(|duration| duration.0);
    let phase_ns = by_clock.or(measure.operations.is_none().then_some(USUAL_NS));
    let seed = spec.seed ^ mix_bits(u64::from(repetition));
    let faults = spec.faults.iter().enumerate();
    let mut all: Vec<Planned> = faults.flat_map(|(at, fault)| fault.times(at, seed, phase_ns)).collect();
    all.sort_by_key(|one| (one.begin_ns, one.fault));
    all
}

/// Refuses an invalid configuration, with the place where it is written.
pub(super) fn check(tree: &Node, spec: &Experiment) -> Result<(), TreeError> {
    let refuse = |at: usize, (key, why): Wrong| {
        let item = tree.get("faults").and_then(Node::items).and_then(|all| all.get(at));
        let node = item.and_then(|item| item.get(key)).or(item).unwrap_or(tree);
        Err(node.error_at(&format!("faults.{at}.{key}"), why))
    };
    for (at, fault) in spec.faults.iter().enumerate() {
        if let Err(wrong) = fault.check().and_then(|()| fault.check_in(spec)) {
            return refuse(at, wrong);
        }
    }
    let measure = &spec.phases.measure;
    let by_clock = measure.duration.as_ref().map(|duration| duration.0);
    let phase_ns = by_clock.or(measure.operations.is_none().then_some(USUAL_NS));
    for (at, fault) in spec.faults.iter().enumerate() {
        let random = fault.at == Moment::Random;
        if random && fault.to.is_none() && phase_ns.is_none() {
            return refuse(at, ("at", "random: expected to, too, or phases.measure.duration".into()));
        }
        let window = fault.to.as_ref().map(|to| to.0).or(phase_ns).unwrap_or(u64::MAX);
        let from = fault.from.as_ref().map_or(0, |from| from.0);
        let room = window.saturating_sub(from) / u64::from(fault.times);
        if random && fault.length_ns() >= room {
            return refuse(
                at,
                ("for", "expected less: so often and so long, it does not fit its window".into()),
            );
        }
        let beyond = |one: &Planned| phase_ns.is_some_and(|end| one.end_ns.unwrap_or(one.begin_ns) >= end);
        if fault.times(at, spec.seed, phase_ns).iter().any(beyond) {
            let key = if random { "to" } else { "at" };
            return refuse(at, (key, "the measured phase is over before it ends".into()));
        }
    }
    (1..=spec.repetitions.min(1_000)).try_for_each(|repetition| match overlap(spec, repetition) {
        None => Ok(()),
        Some((first, second)) => {
            let kinds = [first, second].map(|at| spec.faults[at].kind);
            let why = match kinds.iter().all(|kind| kind.shapes_packets()) {
                true => "and a device has one queue, whichever servers are behind it",
                false => "on the same server or worker",
            };
            refuse(second, ("at", format!("begins while faults.{first} is under way {why}")))
        }
    })
}

/// The first two faults of a run that would be in each other's way.
fn overlap(spec: &Experiment, repetition: u32) -> Option<(usize, usize)> {
    let mut open: Vec<Planned> = Vec::new();
    for one in schedule_faults(spec, repetition) {
        open.retain(|other| other.end_ns.is_none_or(|end| end >= one.begin_ns));
        let meets = |other: &&Planned| {
            let (a, b) = (&spec.faults[other.fault], &spec.faults[one.fault]);
            // A device has one queue, whichever servers are behind it.
            let one_queue = a.kind.shapes_packets() && b.kind.shapes_packets();
            one_queue || a.kind.is_of_link() == b.kind.is_of_link() && a.on.shares_process(b.on)
        };
        if let Some(other) = open.iter().find(meets) {
            return Some((other.fault, one.fault));
        }
        open.push(one);
    }
    None
}

#[cfg(test)]
#[path = "faults_tests.rs"]
mod tests;
