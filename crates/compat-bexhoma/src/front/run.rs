//! `dyno bexhoma ycsb ... run`, `load` and `start`.

use super::application::ApplicationMetrics;
use super::folders::experiments;
use super::{config, folders};
use crate::catalogue::Catalogue;
use crate::catalogue::price;
use crate::plan::about::about;
use crate::plan::expand::{Configuration, PodGroup};
use crate::plan::flags::TypedFlags;
use crate::plan::lower::{LoweredExperiment, lower};
use crate::plan::options::Options;
use dyno_config::experiment::{ExperimentPlan, masked_set};
use dyno_engine::Control;
use dyno_experiment::directory::Directory;
use dyno_experiment::journal::RunStatus;
use dyno_experiment::persistent_servers::PersistentServers;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::experiment;
use dyno_frontend::{pages, signals, terminal};
use dyno_hosts::kubernetes::kubectl::Kubectl;
use dyno_report::markdown;
use dyno_rundir::ExperimentDir;
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use dyno_types::secret::mask_text;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the made text in messages.
const CALLED: &str = "bexhoma-ycsb";

/// A command line of `ycsb`, read and checked.
struct CheckedCommandLine {
    options: Options,
    lowered: LoweredExperiment,
    plan: ExperimentPlan,
    sets: Vec<String>,
    workflow: String,
    catalogue: Catalogue,
}

/// Reads and checks everything; nothing is touched. Notes are printed.
fn read(typed: TypedFlags) -> Result<CheckedCommandLine, Failure> {
    let options = Options::read(typed)?;
    let lowered = lower(&options)?;
    let mut notes = lowered.notes.clone();
    // A patch of a container of the original's manifests has nothing to patch here.
    let patches = |set: &&String| set.starts_with("deployment[") || set.starts_with("statefulset[");
    let typed = &options.typed;
    let own: Vec<String> = typed.all("set").iter().filter(|set| !patches(set)).cloned().collect();
    let added = config::added(&options)?;
    // Options that were typed come after those of a file.
    let sets = [&added.sets[..], &own].concat();
    if own.len() < typed.all("set").len() {
        notes.push(
            "--set deployment[...], statefulset[...]: without effect: these servers take no -c KEY=VALUE"
                .into(),
        );
    }
    let plan = experiment::planned(&lowered.text, CALLED, &sets)?;
    notes.iter().for_each(|note| terminal::note(&format!("note: {note}")));
    let workflow = workflow(&options, &lowered);
    Ok(CheckedCommandLine { options, lowered, plan, sets, workflow, catalogue: added.catalogue })
}

impl CheckedCommandLine {
    fn typed(&self) -> &TypedFlags {
        &self.options.typed
    }

    /// A directory of its own, called by a new code.
    fn directory(&self) -> Result<Directory, Failure> {
        let results = Path::new(self.typed().value("resultfolder"));
        let experiment_dir = folders::create(results)?;
        if self.typed().given("local") && !self.typed().value("request-storage-type").is_empty() {
            std::fs::create_dir_all(results.join("volumes"))?;
        }
        let directory =
            Directory::create(&experiment_dir, &self.lowered.text, CALLED, &self.sets, &self.plan)?;
        pages::write(&experiment_dir.join("workflow.txt"), &self.workflow)?;
        let about = about(&self.options, &self.lowered.configurations);
        let text = serde_json::to_string_pretty(&about)?;
        pages::write(&experiment_dir.join("workload.json"), &text)?;
        self.catalogue.keep(&experiment_dir)?;
        Ok(directory)
    }

    fn dry_run(&self) -> Result<Exit, Failure> {
        terminal::out(&format!("{}\n{}", self.workflow, self.lowered.text));
        // Settings over the file: of `--set`, and of cluster.config.
        self.sets.iter().for_each(|set| terminal::out(&format!("# --set {}\n", masked_set(set))));
        Ok(Exit::Ok)
    }
}

/// Requires an image of dyno for the pods, before anything is made in the cluster: no registry has one under the local name.
fn has_image(plan: &ExperimentPlan) -> Result<(), Failure> {
    let asked = plan.base.kubernetes.as_ref();
    match asked.is_some_and(|asked| asked.image.is_none()) {
        true => Err(Failure::usage(
            "--image: expected the image of dyno for the pods, which `Containerfile` builds of `make worker`; without a \
             cluster: --local",
        )),
        false => Ok(()),
    }
}

/// The mode `run`, on servers that stand if `-e` names an experiment that has left some. With `-ss` its servers are loaded and
/// left first, and it runs on those.
pub fn run(typed: TypedFlags) -> Result<Exit, Failure> {
    let mut persistent = persistent(&typed)?;
    let ready = read(typed)?;
    let leaves = persistent.is_none() && ready.typed().given("skip-shutdown");
    if leaves {
        one_cell(&ready, "-ss")?;
    }
    if ready.typed().given("dry-run") {
        return ready.dry_run();
    }
    has_image(&ready.plan)?;
    experiment::ready(&ready.plan)?;
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let mut said = None;
    if leaves {
        match left(&ready, "-ss", true, &control)? {
            Ok((experiment_dir, services)) => (persistent, said) = (Some(experiment_dir), Some(services)),
            Err(exit) => return Ok(exit),
        }
    }
    let ran = run_on(&ready, persistent.as_deref(), control);
    // Servers that stand are shown in any case.
    said.iter().for_each(|services| terminal::out(services));
    ran
}

fn run_on(
    ready: &CheckedCommandLine,
    persistent: Option<&Path>,
    control: Arc<Control>,
) -> Result<Exit, Failure> {
    let mut directory = ready.directory()?;
    let experiment_dir = directory.path().to_owned();
    if let Some(persistent) = persistent {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        terminal::note(&format!(
            "experiment {} on the servers of {}",
            name(&experiment_dir),
            name(persistent)
        ));
    }
    let quiet = ready.typed().given("quiet");
    let how = experiment::CarryOut { quiet, persistent, ..Default::default() };
    let exit = experiment::carry_out(&ready.plan, &mut directory, control, how)?;
    if !ready.catalogue.metrics.is_empty() {
        ready.catalogue.figure(&experiment_dir)?;
        pages::leave_experiment(&experiment_dir, price(&experiment_dir));
    }
    let failed = show(&experiment_dir)?;
    Ok(if exit == Exit::Ok && failed { Exit::Threshold } else { exit })
}

/// The experiment that `-e` names, whose servers must stand.
fn persistent(typed: &TypedFlags) -> Result<Option<PathBuf>, Failure> {
    let code = typed.value("experiment").to_owned();
    if code.is_empty() {
        return Ok(None);
    }
    let [experiment_dir] = experiments(typed)?.try_into().map_err(|_| Failure::usage("-e: no code"))?;
    match PersistentServers::of(&experiment_dir).map_err(Failure::usage)? {
        Some(_) => Ok(Some(experiment_dir)),
        None => Err(Failure::usage(format!(
            "-e {code}: no servers stand; `load` and `start` leave them; `dyno resume {}` goes on with an experiment",
            experiment_dir.display()
        ))),
    }
}

/// Servers are left of one configuration alone.
fn one_cell(ready: &CheckedCommandLine, mode: &str) -> Result<(), Failure> {
    match ready.plan.cells.as_slice() {
        [_] => Ok(()),
        _ => {
            let message = "leaves one configuration's servers: expected one value of -nlt, -nlp, -xnlf, -nbp, -nbt, \
                         -xnbf, -ne, -dbms";
            Err(Failure::usage(format!("{mode}: {message}")))
        }
    }
}

/// The modes `start` and `load`: servers are left running.
pub fn leave(typed: TypedFlags, load: bool) -> Result<Exit, Failure> {
    let mode = if load { "load" } else { "start" };
    if typed.given("experiment") {
        return Err(Failure::usage(format!("-e: {mode} begins an experiment of its own")));
    }
    let ready = read(typed)?;
    one_cell(&ready, mode)?;
    if ready.typed().given("dry-run") {
        return ready.dry_run();
    }
    has_image(&ready.plan)?;
    experiment::ready(&ready.plan)?;
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    Ok(match left(&ready, mode, load, &control)? {
        Ok((_, services)) => {
            terminal::out(&services);
            Exit::Ok
        }
        Err(exit) => exit,
    })
}

/// Servers that were started, loaded if that is asked for, and left: the experiment's directory, and what there is to say of
/// them.
fn left(
    ready: &CheckedCommandLine,
    mode: &str,
    load: bool,
    control: &Arc<Control>,
) -> Result<Result<(PathBuf, String), Exit>, Failure> {
    let mut directory = ready.directory()?;
    let experiment_dir = directory.path().to_owned();
    let quiet = ready.typed().given("quiet");
    let left = experiment::leave(&ready.plan, &mut directory, control.clone(), (quiet, load))?;
    if load && experiment_dir.join("summary.md").is_file() {
        show(&experiment_dir)?;
    }
    let code = experiment_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match (&left.persistent, &left.record) {
        (Some(persistent), _) => {
            let services = services(ready, persistent, &code);
            Ok(Ok((experiment_dir, services)))
        }
        (None, Some(record)) if record.unreachable => Err(Failure::unreachable(record.cause.clone())),
        (None, Some(record)) if record.not_started => Err(Failure::usage(record.cause.clone())),
        (None, Some(record)) if record.status == RunStatus::Interrupted => Ok(Err(Exit::Interrupted)),
        (None, record) => {
            let message = record.as_ref().map_or("it was not loaded".into(), |record| record.cause.clone());
            terminal::warn(&format!("{mode}: {message}; nothing was left running"));
            Ok(Err(Exit::Invalid))
        }
    }
}

/// Says where the servers are, and what ends them.
fn services(ready: &CheckedCommandLine, persistent: &PersistentServers, code: &str) -> String {
    let mut out = String::from("\n### Services\n\n");
    let name = &ready.lowered.configurations[0].name;
    for uri in &persistent.uris {
        let _ = writeln!(out, "* {name}: {}", mask_text(uri));
    }
    for set in persistent.sets() {
        // As it can be typed: the namespace and the context are the experiment's, which need not be kubectl's own.
        let asked = ready.plan.base.kubernetes.as_ref();
        let way = asked.map_or("kubectl".into(), |asked| Kubectl::new(asked).typed_words());
        let port = ready.plan.base.server.as_ref().and_then(|server| server.port).unwrap_or(6379);
        let _ = writeln!(out, "* {name}: `{way} port-forward service/{set}-client {port}`");
        if persistent.uris.iter().any(|uri| uri.contains('@')) {
            let shown = format!(
                "{way} get secret {set} -o go-template='{{{{range .data}}}}{{{{. | base64decode}}}}{{{{end}}}}'"
            );
            let _ = writeln!(out, "* its password is in `{shown}`");
        }
    }
    if let Some((at, seconds)) = persistent.loaded() {
        let _ = writeln!(out, "* loaded {at}, {seconds:.2} s");
    }
    let folder = match ready.typed().value("resultfolder") {
        "." => String::new(),
        folder => format!(" --resultfolder {folder}"),
    };
    let _ = writeln!(out, "* `dyno bexhoma ycsb FLAGS -e {code}{folder} run` uses them");
    let _ = writeln!(out, "* `dyno bexhoma stop -e {code}{folder}` ends them");
    out
}

/// Prints the summary; whether a test in it failed.
pub fn show(experiment_dir: &Path) -> Result<bool, Failure> {
    let path = experiment_dir.join("summary.md");
    let text = bounded::text_file(&path, TEXT_BYTES)
        .map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    terminal::out(&markdown::unescape_markdown(&text));
    Ok(markdown::has_failed_test(&ExperimentDir::open(experiment_dir)?))
}

/// Names and figures of everything that will be done, as the flags expand.
fn workflow(options: &Options, lowered: &LoweredExperiment) -> String {
    let mut out = String::from("### Planned\n");
    for one in &lowered.configurations {
        for run in 1..=options.repetitions as u32 {
            let _ = writeln!(
                out,
                "\n* DBMS {} - Experiment {run}: loading ({} pods)",
                one.name, one.loading.pods
            );
            pods(&mut out, one, run, 0, &one.loading);
            for round in &one.rounds {
                let _ = writeln!(
                    out,
                    "* DBMS {} - Experiment {run} Client {}: ycsb ({} pods)",
                    one.name, round.client, round.job.pods
                );
                pods(&mut out, one, run, round.client, &round.job);
            }
        }
    }
    out
}

fn pods(out: &mut String, one: &Configuration, run: u32, client: u32, job: &PodGroup) {
    let what = if client == 0 { "rows" } else { "operations" };
    for pod in job.each() {
        let name = one.connection(run, client, pod.child);
        let target = if job.target == 0 { "none".into() } else { format!("{:.2}", pod.target) };
        let _ =
            writeln!(out, "  * {name}: threads {}, target {target}, {what} {}", pod.threads, pod.operations);
    }
}
