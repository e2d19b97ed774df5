//! Turns a case's values into the text of an experiment file.

pub mod deployments;
mod draft;
pub mod error;
pub mod mix;
pub mod options;
pub mod places;
pub mod text;

use crate::plan::lower::draft::Draft;
use crate::plan::lower::error::LowerError;
use crate::plan::lower::options::{Deployment, LowerOptions};
use crate::plan::lower::text::Tree;
use crate::plan::variables::switch;
use crate::plan::window::Traced;
use crate::plan::window::{Window, WindowError};
use crate::plan::{Resolved, Source};
use dyno_config::experiment::traces::TracedPhase;
use dyno_types::{RefusalCode, Refused};
use serde_json::json;
use std::collections::BTreeSet;

/// An experiment, and what one should know about it.
#[derive(Clone, Debug)]
pub struct LoweredCase {
    /// The experiment file.
    pub text: String,
    /// Notes: departures, and what has no meaning here.
    pub notes: Vec<String>,
    /// Windows of traces.
    pub windows: Vec<Window>,
    /// Server-client pairs.
    pub pairs: u64,
}

/// Turns a case into an experiment.
pub fn lower(resolved: &Resolved, means: &LowerOptions) -> Result<LoweredCase, LowerError> {
    lower_sweep(std::slice::from_ref(resolved), means)
}

/// Turns a case into an experiment with a cell for each TARGET; iterations differ in nothing else ([`is_sweep`]).
pub fn lower_sweep(iterations: &[Resolved], means: &LowerOptions) -> Result<LoweredCase, LowerError> {
    let Some(first) = iterations.first() else {
        return Err(Refused::new(RefusalCode::Missing, "iterations", "no iteration").into());
    };
    let notes = first.notes.clone();
    let mut draft = Draft { from: first, means, tree: Tree::default(), notes };
    draft.refuse()?;
    draft.head();
    draft.servers()?;
    draft.clients();
    draft.place_deployment()?;
    let counts = draft.workload()?;
    draft.phases(counts);
    if iterations.len() > 1 {
        let targets: Vec<&str> = iterations.iter().map(|one| one.value("TARGET")).collect();
        draft.put("factors.rate", json!(targets), "TARGET");
    }
    let windows = draft.windows()?;
    draft.remark();
    let (text, notes) = (draft.tree.text(), draft.notes);
    Ok(LoweredCase { text, notes, windows, pairs: first.number("CLIENT_SERVER_PAIR").unwrap_or(1) })
}

/// Returns whether iterations are points of one latency curve: they differ in TARGET alone, and all limit the rate.
pub fn is_sweep(iterations: &[Resolved]) -> bool {
    let Some(first) = iterations.first() else { return false };
    let targets: BTreeSet<u64> = iterations.iter().filter_map(|one| one.number("TARGET")).collect();
    let alike = |one: &Resolved| {
        one.values
            .iter()
            .zip(&first.values)
            .all(|(own, other)| own.name == "TARGET" || own.value == other.value)
    };
    iterations.len() > 1
        && targets.len() == iterations.len()
        && !targets.contains(&0)
        && iterations.iter().all(alike)
}

impl Draft<'_> {
    /// Refuses switches that are on and not offered.
    fn refuse(&self) -> Result<(), Refused> {
        let why = [
            ("TLS_FLAG", "servers that are started here speak without TLS; use --target with tls=true"),
            (
                "MONGO_DISK_DATABASE_ACCESS",
                "occupying memory is not offered; limit it: KUBERNETES_RESOURCE_LIMITS",
            ),
            ("HERO_FEATURE_IAA", "needs Intel's accelerator and a mongod built for it"),
            ("HERO_FEATURE_QAT", "needs Intel's accelerator and a mongod built for it"),
            ("CORE_FREQUENCY_ENABLE", "frequencies are not set here; set them beforehand, they are recorded"),
            ("UNCORE_FREQUENCY_ENABLE", "frequencies are not set here; set them beforehand"),
        ];
        match why.iter().find(|(name, _)| self.from.on(name)) {
            Some((name, message)) => {
                Err(Refused::new(RefusalCode::Unsupported, *name, format!("{name}: {message}")))
            }
            None => Ok(()),
        }
    }

    fn head(&mut self) {
        let (case, reading) = (self.from.case, self.from.reading);
        let name = self.means.name.clone().unwrap_or_else(|| format!("wsf-{reading}-{}", case.name));
        self.own("name", json!(name));
        let about =
            format!("Workload Services Framework {reading}, Mongo-YCSB, {}: {}", case.name, case.about);
        self.own("description", json!(about));
    }

    fn phases(&mut self, (records, said): (u64, u64)) {
        let threads = self.from.number("THREADS").unwrap_or(1);
        self.own("phases.load.when", json!("always"));
        self.put("phases.load.users", json!(threads.min(records)), "THREADS");
        self.own("phases.load.batch", json!(1));
        let pause = self.means.pause_s.or(self.means.faithful.then_some(30)).filter(|s| *s > 0);
        if let Some(seconds) = pause {
            self.own("phases.pause", json!(format!("{seconds}s")));
        }
        let number = |name: &str| self.from.number(name);
        // Blank operations mean the workload file's.
        let operations = number("OPERATION_COUNT").unwrap_or(said);
        let (seconds, target) = (number("MAX_EXECUTION_TIME").unwrap_or(0), number("TARGET").unwrap_or(0));
        let concurrency = if target > 0 { "connections" } else { "users" };
        self.put(&format!("phases.measure.{concurrency}"), json!(threads), "THREADS");
        if target > 0 {
            self.put("phases.measure.rate", json!(target.to_string()), "TARGET");
            self.own("phases.measure.arrivals", json!("constant"));
        }
        if seconds > 0 {
            self.put("phases.measure.duration", json!(format!("{seconds}s")), "MAX_EXECUTION_TIME");
        }
        if operations > 0 {
            self.put("phases.measure.operations", json!(operations), "OPERATION_COUNT");
        }
        if operations == 0 && seconds == 0 {
            self.own("phases.measure.duration", json!("180s"));
            self.note("neither OPERATION_COUNT nor MAX_EXECUTION_TIME limits the run phase: 180 s");
        }
        self.own("phases.measure.warmup", json!(format!("{}s", self.means.warmup_s)));
        self.own("repetitions", json!(self.means.runs));
        self.own("order", json!("sequential"));
    }

    fn windows(&mut self) -> Result<Vec<Window>, WindowError> {
        let all = Window::parse_all(self.from.value("EVENT_TRACE_PARAMS"))?;
        self.traces(&all)?;
        let Some((begin, end)) = all.iter().find_map(Window::seconds) else { return Ok(all) };
        match self.from.number("MAX_EXECUTION_TIME").unwrap_or(0) {
            longest if longest > 0 && longest < end => self.note(format!(
                "EVENT_TRACE_PARAMS: the window ends after {end} s, the run phase after {longest} s: no window"
            )),
            _ => {
                self.put("window.from", json!(format!("{begin}s")), "EVENT_TRACE_PARAMS");
                self.put("window.to", json!(format!("{end}s")), "EVENT_TRACE_PARAMS");
            }
        }
        Ok(all)
    }

    /// Every tracer in every window; without a window over the whole execution, as the original has it.
    fn traces(&mut self, windows: &[Window]) -> Result<(), WindowError> {
        let phases = [TracedPhase::Load, TracedPhase::Measure];
        let mut parts: Vec<Traced> =
            windows.iter().map(Window::traced).collect::<Result<Vec<_>, _>>()?.concat();
        if windows.is_empty() {
            parts.extend(phases.map(|phase| Traced { phase, from_s: 0, length_s: None }));
        }
        let mut all = Vec::new();
        for (part, command) in parts.iter().flat_map(|part| self.means.tracers.iter().map(move |c| (part, c)))
        {
            let mut one = json!({
                "command": command, "phase": part.phase.name(), "from": format!("{}s", part.from_s)
            });
            if let Some(length) = part.length_s {
                one["length"] = json!(format!("{length}s"));
            }
            all.push(one);
        }
        if !all.is_empty() {
            self.put("traces", json!(all), "EVENT_TRACE_PARAMS");
        }
        Ok(())
    }

    /// Notes variables that were given and have no effect.
    fn remark(&mut self) {
        let (mut recorded, mut idle): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
        for given in &self.from.values {
            let changed = !matches!(given.source, Source::Default | Source::Case);
            let help = crate::plan::variables::find(given.name).map_or("", |variable| variable.help);
            // A variable that is refused where it is on needs no note where it is off.
            let off = help == crate::plan::variables::REFUSED && switch(&given.value) == Some(false);
            if !changed || given.value.is_empty() || off {
                continue;
            }
            if help.starts_with("recorded")
                && !(self.in_pods() && crate::plan::variables::IN_PODS.contains(&given.name))
            {
                recorded.push(given.name);
            } else if let Some(needs) = self.needs(given.name) {
                idle.push(format!("{}: has no effect {needs}", given.name));
            }
        }
        if !recorded.is_empty() {
            idle.push(format!("{}: recorded, without effect here", recorded.join(", ")));
        }
        self.notes.extend(idle);
        let clients = self.from.number("CLIENT_COUNT").unwrap_or(0);
        if clients > 1 && matches!(self.means.deployment, Deployment::Local) && !self.single_node() {
            self.note(format!(
                "CLIENT_COUNT={clients}: this host is the only client machine; it applies the load of all pairs"
            ));
        }
    }
    /// Returns the condition under which a variable has an effect, where it does not hold; whole groups are noted elsewhere.
    fn needs(&self, name: &str) -> Option<&'static str> {
        if self.means.target.is_some() {
            return None;
        }
        let option = self.from.number("NUMACTL_OPTION").unwrap_or(0);
        let own = !self.from.value("CUSTOMER_NUMAOPT_SERVER").is_empty();
        let client = !self.from.value("CUSTOMER_NUMAOPT_CLIENT").is_empty();
        let (works, needs) = match name {
            "NUMACTL_OPTION" | "SELECT_NUMA_NODE" | "CORES" | "CORE_NUMS_EACH_INSTANCE" if own => {
                (false, "beside CUSTOMER_NUMAOPT_SERVER")
            }
            "SELECT_NUMA_NODE" | "CORES" => (option == 2, "unless NUMACTL_OPTION=2"),
            "CORE_NUMS_EACH_INSTANCE" => ((3..=4).contains(&option), "unless NUMACTL_OPTION is 3 or 4"),
            "YCSB_CORES" if client => (false, "beside CUSTOMER_NUMAOPT_CLIENT"),
            "YCSB_CORES" => (
                self.single_node() || (2..=4).contains(&option),
                "unless NUMACTL_OPTION=2 or RUN_SINGLE_NODE=true",
            ),
            "KUBERNETES_RESOURCE_LIMITS_CPU" | "KUBERNETES_RESOURCE_LIMITS_MEMORY" => {
                (self.from.on("KUBERNETES_RESOURCE_LIMITS"), "unless KUBERNETES_RESOURCE_LIMITS=true")
            }
            "KUBERNETES_RESOURCE_LIMITS" => {
                let sizes = ["KUBERNETES_RESOURCE_LIMITS_CPU", "KUBERNETES_RESOURCE_LIMITS_MEMORY"];
                let some = sizes.iter().any(|size| !self.from.value(size).is_empty());
                (
                    some || !self.from.on(name),
                    "without KUBERNETES_RESOURCE_LIMITS_CPU or KUBERNETES_RESOURCE_LIMITS_MEMORY",
                )
            }
            "MAX_SKEW" => (!self.single_node(), "with RUN_SINGLE_NODE=true or CLIENT_COUNT=0"),
            _ => (true, ""),
        };
        (!works).then_some(needs)
    }
}
