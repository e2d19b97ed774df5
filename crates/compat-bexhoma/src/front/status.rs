//! `status`: bexhoma's lines of components and its tables of experiments and volumes, with what is true here.

use super::grid::grid;
use crate::plan::flags::TypedFlags;
use crate::plan::options::Dbms;
use dyno_config::experiment::kubernetes::Kubernetes;
use dyno_config::experiment::{ExperimentPlan, MatrixCell, read_plan};
use dyno_config::server::{ServerSpec, Topology};
use dyno_experiment::directory::{holder, read_journal, read_record};
use dyno_experiment::journal::Entry;
use dyno_experiment::persistent_servers::PersistentServers;
use dyno_experiment::volume_list::{VolumeInfo, servers_running_in, volumes_in, volumes_of_cluster};
use dyno_experiment::volumes::volumes;
use dyno_frontend::exit::Failure;
use dyno_hosts::kubernetes::pod_status::running_pods;
use dyno_rundir::RunDir;
use dyno_rundir::files;
use std::path::{Path, PathBuf};

/// Columns of an experiment's table after its code.
const COLUMNS: [&str; 9] = [
    "sut",
    "loaded [s]",
    "use case",
    "worker",
    "pool",
    "maintaining",
    "loading",
    "monitoring",
    "benchmarker",
];
/// Columns of the table of volumes.
pub const VOLUMES: [&str; 11] = [
    "Volumes",
    "configuration",
    "experiment",
    "loaded [s]",
    "timeLoading [s]",
    "dbms",
    "storage_class_name",
    "storage",
    "status",
    "size",
    "used",
];
/// Columns of the table of volumes of clusters' members.
const WORKERS: [&str; 9] = [
    "Volumes of Workers",
    "configuration",
    "experiment",
    "dbms",
    "storage_class_name",
    "storage",
    "status",
    "size",
    "used",
];
const FIGURES: [&str; 3] = ["loaded [s]", "timeLoading [s]", "experiment code"];

/// Everything that `status` says before the experiments themselves.
pub fn text(typed: &TypedFlags, experiments: &[PathBuf]) -> Result<String, Failure> {
    let results = Path::new(typed.value("resultfolder"));
    let mut out = components(results);
    let mut clusters: Vec<Kubernetes> = Vec::new();
    for dir in experiments {
        let Some(plan) = planned(dir) else { continue };
        let known = plan.base.kubernetes.clone().filter(|_| !volumes(dir).is_empty());
        clusters.extend(known.filter(|asked| clusters.iter().all(|one| !same(one, asked))));
        let code = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(row) = row(dir, &plan)? {
            let heads: Vec<&str> = [code.as_str()].into_iter().chain(COLUMNS).collect();
            out.push_str(&grid(&heads, &FIGURES, &[row]));
        }
    }
    let mut volumes = volumes_in(&results.join("volumes"));
    for asked in &clusters {
        match volumes_of_cluster(asked) {
            Ok(found) => volumes.extend(found),
            Err(why) => out.push_str(&format!("Volumes: the cluster does not say: {why}\n")),
        }
    }
    out.push_str(&tables(&volumes));
    Ok(out)
}

/// Returns whether both lead to one namespace.
fn same(a: &Kubernetes, b: &Kubernetes) -> bool {
    (&a.kubeconfig, &a.context, &a.namespace) == (&b.kubeconfig, &b.context, &b.namespace)
}

/// bexhoma's permanent pieces. dyno has none of them but a folder.
fn components(results: &Path) -> String {
    let there = match std::fs::metadata(results) {
        Ok(about) if about.is_dir() => format!("Running ({})", results.display()),
        _ => format!("absent ({} is no folder)", results.display()),
    };
    format!(
        "Dashboard: absent (`dyno serve` shows experiments)\n\
         Cluster Prometheus: absent (dyno's own monitors record every second)\n\
         Message Queue: absent (workers are spoken to directly)\n\
         Data directory: absent (data are generated where they are loaded from)\n\
         Result directory: {there}\n"
    )
}

/// The plan of a directory; `None` where its text is no longer one, or not the caller's own: what it names is asked, and kubectl
/// is among that.
fn planned(dir: &Path) -> Option<ExperimentPlan> {
    dyno_localhost::trusted::check_directory(dir).ok()?;
    let text = files::read_to_string(&dir.join("experiment.yaml")).ok()?;
    read_plan(&text, "experiment.yaml", &read_record(dir).ok()?.sets).ok()
}

/// State of an experiment now.
struct Now<'a> {
    cell: &'a MatrixCell,
    repetition: u32,
    /// The run's directory, if one is under way.
    run: Option<PathBuf>,
    persistent: Option<PersistentServers>,
}

/// The row of an experiment that has something running.
fn row(dir: &Path, plan: &ExperimentPlan) -> Result<Option<Vec<String>>, Failure> {
    let persistent = PersistentServers::of(dir).map_err(Failure::usage)?;
    let mut under_way = None;
    for entry in read_journal(dir)? {
        match entry {
            Entry::Run { cell, repetition, dir: run, .. } => {
                under_way = Some((cell, repetition, dir.join(run)))
            }
            Entry::Ended(_) | Entry::End { .. } => under_way = None,
            Entry::Begin { .. } | Entry::Again(_) | Entry::AgainNoted { .. } => {}
        }
    }
    let under_way = under_way.filter(|_| holder(dir).is_some());
    let now = match (under_way, &persistent) {
        (Some((cell, repetition, run)), _) => {
            let Some(cell) = plan.cells.iter().find(|one| one.number == cell) else { return Ok(None) };
            Now { cell, repetition, run: Some(run), persistent: None }
        }
        (None, Some(_)) => Now { cell: &plan.cells[0], repetition: 1, run: None, persistent },
        (None, None) => return Ok(None),
    };
    Ok(Some(cells(dir, &now)))
}

/// `(3 Running)`; where fewer run than there should be, how many do.
fn running(there: usize, of: usize) -> String {
    match () {
        () if of == 0 => String::new(),
        () if there == of => format!("({of} Running)"),
        () => format!("({there} of {of} Running)"),
    }
}

fn cells(dir: &Path, now: &Now<'_>) -> Vec<String> {
    let spec = &now.cell.spec;
    let level =
        |name: &str| now.cell.levels.iter().find(|(known, _)| known == name).map(|(_, level)| level.clone());
    let server = spec.server.as_ref();
    let wanted = server.map_or(0, |server| server.processes() as usize);
    let (servers, workers) = counted(dir, now, wanted);
    let phase = now.run.as_ref().map(|run| under_way(run));
    let load = spec.phases.load.workers.unwrap_or(workers as u32) as usize;
    let measure = spec.phases.measure.workers.unwrap_or(workers as u32) as usize;
    let at = |name: &str, count: usize| match &phase {
        Some((phase, _)) if phase == name => running(count.min(workers), count),
        _ => String::new(),
    };
    let client = level("client").unwrap_or_else(|| "1".into());
    let benchmarker = match at("measure", measure) {
        pods if pods.is_empty() => pods,
        _ => format!("{}x({client}. Running)", measure.min(workers)),
    };
    let cluster = server.is_some_and(|server| server.topology != Topology::Single);
    let sut = match servers {
        0 => format!("({}. Starting)", now.repetition),
        _ => format!("({}. Running)", now.repetition),
    };
    vec![
        level("configuration").unwrap_or_else(|| server.map_or("1".into(), |server| only(server, cluster))),
        sut,
        loaded(now, phase.as_ref()),
        "ycsb".into(),
        if cluster { running(servers, wanted) } else { String::new() },
        String::new(),
        String::new(),
        at("load", load),
        String::new(),
        benchmarker,
    ]
}

/// The name of an experiment's only configuration, as `dyno bexhoma ycsb` gives it.
fn only(server: &ServerSpec, cluster: bool) -> String {
    let known = [Dbms::Redis, Dbms::Valkey, Dbms::KeyDb, Dbms::Dragonfly];
    let dbms = known.into_iter().find(|dbms| dbms.kind() == server.kind);
    let name = dbms.map_or(server.kind.to_string(), |dbms| dbms.name().to_owned());
    format!("{name}{}-1", if cluster { "Cluster" } else { "" })
}

/// Processes or pods of servers and of workers that run.
fn counted(dir: &Path, now: &Now<'_>, wanted: usize) -> (usize, usize) {
    let spec = &now.cell.spec;
    if let (Some(persistent), None) = (&now.persistent, &spec.kubernetes) {
        return (persistent.processes_running().0, 0);
    }
    if let Some(asked) = &spec.kubernetes {
        let (servers, workers) = running_pods(asked, dir);
        return (servers, workers * spec.client.workers as usize);
    }
    // Servers of the run, those that are being loaded to be left, or those that another experiment has left, which stood when the
    // run began.
    let own = now.run.as_ref().map_or(0, |run| servers_running_in(&run.with_extension("server")));
    let others = now.run.as_ref().and_then(|run| RunDir::salvage_run(run).ok());
    let persisted = others.is_some_and(|(run, _)| run.run.facts.contains_key("server.standing"));
    let of_run = if persisted { wanted } else { own + servers_running_in(&dir.join("standing")) };
    let pairs = spec.server.as_ref().map_or(1, |server| server.instances as usize);
    (of_run.min(wanted), spec.client.workers as usize * pairs)
}

/// The phase that a run is in, and how long its load took, seconds.
fn under_way(run: &Path) -> (String, Option<f64>) {
    let Ok((dir, _)) = RunDir::salvage_run(run) else { return (String::new(), None) };
    let last = dir.phases.last().map_or(String::new(), |phase| phase.name.clone());
    let load = dir.phases.iter().find(|phase| phase.name == "load");
    let seconds = load.and_then(|load| {
        let (from, to) = dir.phase_boundaries(load).ok()??;
        Some((to - from) / 1e3)
    });
    let phase = if last == "warmup" { "measure".into() } else { last };
    (phase, seconds)
}

/// Says how long the load took that the servers have.
fn loaded(now: &Now<'_>, phase: Option<&(String, Option<f64>)>) -> String {
    let seconds = |s: f64| format!("{s:.2}");
    if let Some(persistent) = &now.persistent {
        return persistent.loaded().map_or("not loaded".into(), |(_, s)| seconds(s));
    }
    match phase {
        Some((phase, _)) if phase == "load" => "loading".into(),
        Some((_, Some(s))) => seconds(*s),
        _ => String::new(),
    }
}

/// `352M`, `50G`, as du and df write sizes.
fn size(bytes: Option<u64>) -> String {
    let Some(bytes) = bytes else { return "unknown".into() };
    let units = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    match units.iter().find(|(_, shift)| bytes >= 1 << shift) {
        Some((unit, shift)) => format!("{:.0}{unit}", bytes as f64 / (1u64 << shift) as f64),
        None => bytes.to_string(),
    }
}

/// `redis-ycsb-1` is configuration `redis` with data `ycsb-1`.
fn named(volume: &str) -> (&str, &str) {
    volume.split_once('-').unwrap_or((volume, ""))
}

/// The experiment's code of a run's directory.
fn code(run: Option<&str>) -> String {
    let parts = run.map(Path::new).and_then(|run| run.parent()?.parent()?.file_name());
    parts.map_or(String::new(), |code| code.to_string_lossy().into_owned())
}

/// Both tables; nothing where there are no volumes.
fn tables(all: &[VolumeInfo]) -> String {
    let sum = |of: &dyn Fn(&dyno_hosts::servers::volume::VolumePart) -> Option<u64>, one: &VolumeInfo| {
        one.parts.iter().map(of).sum::<Option<u64>>()
    };
    let volumes: Vec<Vec<String>> = all
        .iter()
        .map(|one| {
            let first = one.parts.first();
            let (configuration, data) = named(&one.name);
            let seconds = one.seconds.map_or("not loaded".into(), |s| format!("{s:.2}"));
            let status = |part: &dyno_hosts::servers::volume::VolumePart| part.status.clone();
            // Parts of one folder have one filesystem.
            let whole = if one.class == "folder" {
                first.and_then(|part| part.size)
            } else {
                sum(&|part| part.size, one)
            };
            vec![
                one.name.clone(),
                configuration.to_owned(),
                data.to_owned(),
                seconds.clone(),
                one.seconds.map_or(String::new(), |_| seconds),
                one.server.clone().unwrap_or_default(),
                one.class.clone(),
                first.map_or(String::new(), |part| part.asked.clone()),
                first.map_or("empty".into(), status),
                size(whole),
                size(sum(&|part| part.used, one)),
            ]
        })
        .collect();
    let workers: Vec<Vec<String>> = all
        .iter()
        .filter(|one| one.cluster)
        .flat_map(|one| one.parts.iter().map(move |part| (one, part)))
        .map(|(one, part)| {
            vec![
                part.name.clone(),
                named(&one.name).0.to_owned(),
                code(one.run.as_deref()),
                one.server.clone().unwrap_or_default(),
                one.class.clone(),
                part.asked.clone(),
                part.status.clone(),
                size(part.size),
                size(part.used),
            ]
        })
        .collect();
    let mut out = String::new();
    if !volumes.is_empty() {
        out.push_str(&grid(&VOLUMES, &FIGURES, &volumes));
    }
    if !workers.is_empty() {
        out.push_str(&grid(&WORKERS, &[&FIGURES[..], &["experiment"]].concat(), &workers));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_hosts::servers::volume::VolumePart;

    /// Cells of the rows of a table.
    fn cells(text: &str) -> Vec<Vec<String>> {
        let lines = text.lines().filter(|line| line.starts_with('|'));
        lines
            .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
            .collect()
    }

    /// The rows of bexhoma's example, but for `loaded [s]`, which says how long it took.
    #[test]
    fn the_examples_volumes() {
        let part = |name: &str, used: u64| VolumePart {
            name: name.into(),
            asked: "50Gi".into(),
            status: "Bound".into(),
            size: Some(50 << 30),
            used: Some(used << 20),
        };
        let volumes = VolumeInfo {
            name: "dragonflycluster-ycsb-1".into(),
            class: "shared".into(),
            server: Some("dragonfly".into()),
            cluster: true,
            seconds: Some(15.667),
            run: Some("results/1774015994/runs/cell0001-rep01".into()),
            parts: vec![part("a-0", 352), part("a-1", 384), part("a-2", 352)],
        };
        let tables = cells(&tables(&[volumes]));
        assert_eq!(
            tables[0],
            [
                "Volumes",
                "configuration",
                "experiment",
                "loaded [s]",
                "timeLoading [s]",
                "dbms",
                "storage_class_name",
                "storage",
                "status",
                "size",
                "used"
            ]
        );
        assert_eq!(
            tables[1],
            [
                "dragonflycluster-ycsb-1",
                "dragonflycluster",
                "ycsb-1",
                "15.67",
                "15.67",
                "dragonfly",
                "shared",
                "50Gi",
                "Bound",
                "150G",
                "1G"
            ]
        );
        assert_eq!(
            tables[2],
            [
                "Volumes of Workers",
                "configuration",
                "experiment",
                "dbms",
                "storage_class_name",
                "storage",
                "status",
                "size",
                "used"
            ]
        );
        let worker =
            ["a-1", "dragonflycluster", "1774015994", "dragonfly", "shared", "50Gi", "Bound", "50G", "384M"];
        assert_eq!(tables[4], worker);
        assert_eq!(tables.len(), 6);
    }

    #[test]
    fn sizes_and_counts() {
        assert_eq!(
            (size(None), size(Some(12)), size(Some(3 << 10))),
            ("unknown".into(), "12".into(), "3K".into())
        );
        assert_eq!(
            (running(3, 3), running(2, 3), running(0, 0)),
            ("(3 Running)".into(), "(2 of 3 Running)".into(), String::new())
        );
    }
}
