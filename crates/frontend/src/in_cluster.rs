//! Experiments that a pod of the cluster conducts: started, looked at, brought home and ended from any host that reaches the
//! cluster. The directory that `dyno run --in-cluster` makes says which controller is meant.

use crate::exit::{Exit, Failure};
use crate::experiment::ResumeArgs;
use crate::object_store::{FolderCopy, StoreClient};
use crate::{signals, terminal};
use dyno_config::experiment::ExperimentPlan;
use dyno_config::experiment::kubernetes::{Kubernetes, ObjectStore};
use dyno_engine::Control;
use dyno_experiment::random::random_name;
use dyno_hosts::kubernetes::controller::{
    ClusterController, Conducted, ControllerState, TEXT_LIMIT, has_reached_store, note_reached_store,
    remove_left_of_own_job,
};
use dyno_hosts::kubernetes::error::PodsError;
use dyno_hosts::kubernetes::kubectl::KubectlError;
use dyno_localhost::trusted;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The file of a directory that names its controller.
const FILE: &str = "controller.json";
/// Time that a cluster may take to answer a new pod.
const AWAITED: Duration = Duration::from_secs(600);
/// Time between two looks at a controller that is waited for.
const LOOK: Duration = Duration::from_secs(2);
/// Time that an object store may take to answer the first pod of a Job.
const FIRST_ANSWER: Duration = Duration::from_secs(30);
/// What is of one host, and set aside in a pod.
const OF_THIS_HOST: [&str; 3] = ["kubectl", "kubeconfig", "context"];

fn refused_pods(why: PodsError) -> Failure {
    match why {
        PodsError::Interrupted => Failure::Interrupted,
        PodsError::Copy { .. } | PodsError::Journal { .. } => Failure::internal(why),
        other => Failure::unreachable(other),
    }
}

fn refused(why: KubectlError) -> Failure {
    Failure::unreachable(why)
}

/// Returns the controller of a directory, where a pod conducts or has conducted its experiment and not all of it is here.
///
/// # Errors
/// The directory or the file belongs to another user, or cannot be read.
pub fn controller_of(dir: &Path) -> Result<Option<ClusterController>, Failure> {
    let found = read(dir)?;
    Ok(found.filter(|found| !found.fetched))
}

fn read(dir: &Path) -> Result<Option<ClusterController>, Failure> {
    let path = dir.join(FILE);
    let opened = trusted::open(&path, OpenOptions::new().read(true)).map_err(Failure::usage)?;
    let Some(mut file) = opened else { return Ok(None) };
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let read = serde_json::from_str(&text);
    read.map(Some).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))
}

fn write(dir: &Path, controller: &ClusterController) -> Result<(), Failure> {
    let text = serde_json::to_vec_pretty(controller).map_err(Failure::internal)?;
    Ok(trusted::write(&dir.join(FILE), &text)?)
}

/// The controller of a directory that must have one.
fn named(dir: &Path) -> Result<ClusterController, Failure> {
    read(dir)?.ok_or_else(|| {
        Failure::usage(format!("{}: no `dyno run --in-cluster` has made this directory", dir.display()))
    })
}

/// The section `kubernetes` of an experiment, with files found from everywhere.
fn section(plan: &ExperimentPlan) -> Result<Kubernetes, Failure> {
    let Some(mut own) = plan.base.kubernetes.clone() else {
        return Err(Failure::usage("--in-cluster: the experiment has no section `kubernetes`"));
    };
    if let Some(folder) = &own.manifests {
        let message = "a folder of this host, which the pod of the controller does not have";
        return Err(Failure::usage(format!("--in-cluster: kubernetes.manifests: {folder} is {message}")));
    }
    let here = std::env::current_dir()?;
    own.kubeconfig = own.kubeconfig.map(|path| here.join(path).display().to_string());
    // A name without a folder is looked for on PATH.
    own.kubectl = own.kubectl.map(|program| match program.contains('/') {
        true => here.join(program).display().to_string(),
        false => program,
    });
    Ok(own)
}

/// Has an experiment conducted by a pod, and says how it is looked at. `path` is the directory here that says which one.
///
/// # Errors
/// Wrong usage, or the cluster does not let the pod run.
pub fn begin(plan: &ExperimentPlan, text: &str, sets: &[String], path: &Path) -> Result<Exit, Failure> {
    let own = section(plan)?;
    let mut sets = sets.to_vec();
    let given = [&own.kubectl, &own.kubeconfig, &own.context];
    let aside = OF_THIS_HOST.iter().zip(given).filter(|(_, given)| given.is_some());
    sets.extend(aside.map(|(key, _)| format!("kubernetes.{key}=null")));
    if text.len() > TEXT_LIMIT {
        let message = format!("{} bytes, more than a Secret holds ({TEXT_LIMIT})", text.len());
        return Err(Failure::usage(format!("--in-cluster: the experiment has {message}")));
    }
    let outage = Duration::from_nanos(plan.base.outage.0);
    let controller = ClusterController::named(&random_name().map_err(Failure::internal)?, &own, outage);
    let objects = controller.manifests(&Conducted { text, sets: &sets }).map_err(Failure::internal)?;
    if path.exists() {
        return Err(Failure::usage(format!("{}: is there already", path.display())));
    }
    // A cluster that cannot be reached is found before anything is made.
    controller.state().map_err(refused)?;
    match controller.check_login() {
        Ok(Some(lacking)) => {
            return Err(Failure::usage(format!("kubernetes.controller.store.login: {lacking}")));
        }
        Err(error) if error.is_out_of_reach() => return Err(refused(error)),
        // One who may not read Secrets learns it from the pod.
        Ok(None) | Err(_) => {}
    }
    trusted::make_folder(path)?;
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    // What is there before the objects are can be stopped whatever happens to this process.
    write(path, &controller)?;
    let started = controller.start(&objects, &control, &|why| terminal::note(&format!("waits: {why}")));
    let shown = path.display();
    if let Err(error) = started {
        if error.left.is_some() {
            let message =
                format!("{error}: `dyno stop {shown}`, then `dyno fetch --remove {shown}` remove it");
            return Err(Failure::unreachable(message));
        }
        // Nothing is left of it: a directory that names nothing would only be in the way.
        let _ = std::fs::remove_dir_all(path);
        return Err(refused_pods(error.why));
    }
    if let ControllerState::Ended(code) = controller.state().map_err(refused)? {
        terminal::line(&format!("{} has ended already: `dyno logs {shown}` shows how", controller.name));
        return Ok(exit_of(code));
    }
    terminal::line(&format!("{} conducts {} in the cluster", controller.name, plan.name));
    for (command, what) in [
        (format!("dyno status {shown}"), "how far it is; --wait waits for its end"),
        (format!("dyno logs {shown}"), "what it says; --follow goes on"),
        (format!("dyno fetch {shown}"), "bring its results here"),
        (format!("dyno stop {shown}"), "end it, and remove what it has made"),
    ] {
        terminal::line(&format!("  {command:<40} {what}"));
    }
    Ok(Exit::Ok)
}

/// `dyno status` of an experiment that a pod conducts; `wait` for its end. The exit code is that of the experiment once it has
/// ended.
///
/// # Errors
/// The cluster does not answer, or has no such controller any more.
pub fn status(dir: &Path, controller: &ClusterController, json: bool, wait: bool) -> Result<Exit, Failure> {
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let mut way = Way::default();
    loop {
        let Some(state) = way.look(controller.state(), wait && !control.is_stopping())? else { continue };
        let name = &controller.name;
        match state {
            ControllerState::Gone => {
                let message = format!("{name} is not in the cluster any more");
                return Err(Failure::unreachable(message));
            }
            ControllerState::Ended(code) => {
                let how =
                    code.map_or("the cluster has given it up".to_owned(), |code| format!("exit code {code}"));
                terminal::line(&format!(
                    "{name}: ended ({how}); `dyno fetch {}` brings it here",
                    dir.display()
                ));
                return Ok(exit_of(code));
            }
            _ if wait => {}
            ControllerState::Waiting(why) => {
                terminal::line(&format!("{name}: waits: {why}"));
                return Ok(Exit::Ok);
            }
            ControllerState::Running { pod, node, restarts } => {
                let again =
                    if restarts > 0 { format!(", made again {restarts} times") } else { String::new() };
                if !json {
                    terminal::line(&format!("{name}: runs in pod {pod} on {node}{again}"));
                }
                let directory = controller.directory();
                let words = ["status", &directory, "--json"];
                let words = if json { &words[..] } else { &words[..2] };
                return match controller.show(&pod, words).map_err(refused)? {
                    true => Ok(Exit::Ok),
                    false => {
                        Err(Failure::unreachable(format!("{name}: its pod does not tell how far it is")))
                    }
                };
            }
        }
        if control.is_stopping() {
            return Err(Failure::Interrupted);
        }
        std::thread::sleep(LOOK);
    }
}

/// The way to a cluster, which may be lost for a while once it has been there: the experiment goes on, whatever becomes of it.
#[derive(Default)]
struct Way {
    reached: bool,
    told: bool,
}

impl Way {
    /// What a look has found; none, after a pause and a word, where the next one may find it.
    fn look<T>(&mut self, found: Result<T, KubectlError>, patient: bool) -> Result<Option<T>, Failure> {
        match found {
            Ok(found) => {
                (self.reached, self.told) = (true, false);
                Ok(Some(found))
            }
            Err(error) if patient && self.reached && error.is_out_of_reach() => {
                if !std::mem::replace(&mut self.told, true) {
                    terminal::note(&format!("waits: {error}"));
                }
                std::thread::sleep(LOOK);
                Ok(None)
            }
            Err(error) => Err(refused(error)),
        }
    }
}

/// The exit of an experiment by its code; a controller that the cluster has given up has made no valid run.
fn exit_of(code: Option<i32>) -> Exit {
    let all = [
        Exit::Ok,
        Exit::Internal,
        Exit::Usage,
        Exit::Unreachable,
        Exit::Threshold,
        Exit::Invalid,
        Exit::Interrupted,
    ];
    all.into_iter().find(|exit| Some(*exit as i32) == code).unwrap_or(Exit::Invalid)
}

/// `dyno logs DIR`: of all pods in which it has run, one after the other; where it is followed, until it has ended.
///
/// # Errors
/// No pod conducts it, or the cluster does not answer.
pub fn logs(dir: &Path, follow: bool) -> Result<Exit, Failure> {
    let controller = named(dir)?;
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let (mut shown, mut way): (Vec<String>, Way) = Default::default();
    loop {
        let patient = follow && !control.is_stopping();
        // Looked at before the pods: one that is made afterwards is found by the next look.
        let Some(state) = way.look(controller.state(), patient)? else { continue };
        let Some(pods) = way.look(controller.pod_names(), patient)? else { continue };
        for pod in pods {
            if shown.contains(&pod) {
                continue;
            }
            if !shown.is_empty() {
                terminal::note(&format!("the log of {pod}, which goes on:"));
            }
            // kubectl says why there is none; a pod that has not begun yet is asked again.
            match controller.log(&pod, follow, &control).map_err(refused)? {
                _ if control.is_stopping() => return Err(Failure::Interrupted),
                true => shown.push(pod),
                false if follow => break,
                false => return Err(Failure::unreachable(format!("{pod}: no log can be had"))),
            }
        }
        match state {
            ControllerState::Gone => {
                return Err(Failure::unreachable(format!(
                    "{} is not in the cluster any more",
                    controller.name
                )));
            }
            ControllerState::Ended(_) => return Ok(Exit::Ok),
            _ if !follow => return Ok(Exit::Ok),
            _ => {}
        }
        if control.is_stopping() {
            return Err(Failure::Interrupted);
        }
        std::thread::sleep(LOOK);
    }
}

/// `dyno fetch DIR`; `remove`: what is in the cluster afterwards.
///
/// # Errors
/// No pod conducts it, the cluster does not answer, or the copy is not whole.
pub fn fetch(dir: &Path, remove: bool) -> Result<Exit, Failure> {
    trusted::check_directory(dir).map_err(Failure::usage)?;
    let mut controller = named(dir)?;
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let over = match controller.state().map_err(refused)? {
        ControllerState::Ended(_) | ControllerState::Gone => true,
        ControllerState::Running { .. } | ControllerState::Waiting(_) => false,
    };
    if remove && !over {
        let message = "is at work still: `dyno status --wait` waits for its end";
        return Err(Failure::usage(format!("--remove: {} {message}", controller.name)));
    }
    controller.fetch(dir, &control).map_err(refused_pods)?;
    // The copy says nothing of the controller.
    controller.fetched = over;
    write(dir, &controller)?;
    let shown = dir.display();
    match over {
        true => terminal::line(&format!("{shown}: all of it is here; `dyno report {shown}` shows it")),
        false => {
            terminal::line(&format!("{shown}: what there is so far is here; {} goes on", controller.name))
        }
    }
    if remove {
        controller.remove(true).map_err(refused_pods)?;
        let stored =
            own_store(&controller).map_or(String::new(), |place| format!("; its results stay {place}"));
        terminal::line(&format!("{}: removed from the cluster{stored}", controller.name));
    }
    Ok(Exit::Ok)
}

/// Describes where results stay that dyno does not remove.
fn own_store(controller: &ClusterController) -> Option<String> {
    controller.kubernetes.controller.store.as_ref().map(|_| controller.results_place())
}

/// `dyno resume` of an experiment that a pod has conducted: another pod goes on with it.
///
/// # Errors
/// An option that a pod cannot have, an experiment that is at work or has left the cluster, or a cluster that does not answer.
pub fn resume(controller: &ClusterController, args: &ResumeArgs) -> Result<Exit, Failure> {
    let (live, shown) = (&args.live, args.dir.display());
    let given = [
        ("--set", !args.sets.is_empty()),
        ("--junit", args.junit.is_some()),
        ("--json", args.json),
        ("--quiet", args.quiet),
        ("--metrics", live.metrics.is_some()),
        ("--remote-write", live.remote_write.is_some()),
        ("--otlp", live.otlp.is_some()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!("{flag}: {shown}: a pod goes on with it, as it was begun")));
    }
    let name = &controller.name;
    match controller.state().map_err(refused)? {
        ControllerState::Ended(_) => {}
        // One that was to go on has lost its old Job, and the new one could not be made.
        ControllerState::Gone if controller.has_text().map_err(refused)? => {}
        ControllerState::Gone => {
            return Err(Failure::unreachable(format!("{name} is not in the cluster any more")));
        }
        ControllerState::Running { .. } | ControllerState::Waiting(_) => {
            let message = "is at work still: `dyno status --wait` waits for its end";
            return Err(Failure::usage(format!("{shown}: {name} {message}")));
        }
    }
    let wanted = [("failed", args.failed), ("invalid", args.invalid)];
    let again: Vec<&str> = wanted.iter().filter(|(_, wanted)| *wanted).map(|(which, _)| *which).collect();
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let resumed = controller.resume(&again, &control, &|why| terminal::note(&format!("waits: {why}")));
    resumed.map_err(refused_pods)?;
    terminal::line(&format!("{name} goes on in the cluster; `dyno status {shown}` shows how far it is"));
    Ok(Exit::Ok)
}

/// `dyno stop` of an experiment that a pod conducts: as Ctrl-C does. Its results stay where they are.
///
/// # Errors
/// The cluster does not answer, or has not removed it in time.
pub fn stop(dir: &Path, controller: &ClusterController) -> Result<Exit, Failure> {
    controller.remove(false).map_err(refused_pods)?;
    let shown = dir.display();
    terminal::line(&format!(
        "{}: removed from the cluster; its results stay {}: `dyno fetch {shown}` brings them here",
        controller.name,
        controller.results_place()
    ));
    Ok(Exit::Ok)
}

/// Waits until the cluster answers, where this process is in a pod that was made while it did not, and removes what an earlier
/// pod of the same Job has left of its runs: it would be in the way of the next one, and measured beside it.
///
/// # Errors
/// It does not answer for ten minutes, or does not remove what is left. A signal ends the process.
pub fn await_cluster() -> Result<(), Failure> {
    signals::begin()?;
    if own_job().is_empty() {
        // Outside of a Job there is no cluster to speak to yet.
        return Ok(());
    }
    let (end, mut told) = (Instant::now() + AWAITED, false);
    loop {
        match remove_left_of_own_job() {
            Err(PodsError::Kubectl(error)) if error.is_out_of_reach() && Instant::now() < end => {
                if !std::mem::replace(&mut told, true) {
                    terminal::note(&format!("waits for the cluster: {error}"));
                }
                std::thread::sleep(LOOK);
            }
            done => return done.map_err(refused_pods),
        }
    }
}

/// The Job that this process is in a pod of, by its identity; empty where there is none.
pub fn own_job() -> String {
    std::env::var("DYNO_OWNER_UID").unwrap_or_default()
}

/// The command line that a controller's pod carries out: the experiment, or what is left of it, with runs that are made `again`
/// once in a `job`.
///
/// # Errors
/// The experiment cannot be read, or what is left of a beginning not be removed.
pub fn conducted_words(
    experiment: &Path,
    out: &Path,
    (again, job): (&[String], &str),
) -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(experiment.join("sets.json"))?;
    let sets: Vec<String> = serde_json::from_str(&text).map_err(Failure::internal)?;
    let file: PathBuf = experiment.join("experiment.yaml");
    let (out_shown, file) = (out.display().to_string(), file.display().to_string());
    let mut words = match out.join("experiment.json").is_file() {
        true => {
            let mut words = vec!["resume".to_owned(), out_shown];
            words.extend(again.iter().map(|which| format!("--{which}")));
            if !again.is_empty() {
                words.push(format!("--again-once={job}"));
            }
            words
        }
        false => {
            // A pod that was killed while it began has left a folder without an experiment.
            match std::fs::remove_dir_all(out) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
            vec!["run".to_owned(), file, "--out".to_owned(), out_shown]
        }
    };
    words.extend(sets.into_iter().map(|set| format!("--set={set}")));
    Ok(words)
}

/// Reaches the object store of the results of `out` (`text` describes it, `login` is a folder) and takes what is there of them.
///
/// # Errors
/// The store does not answer, or refuses.
pub fn open_store(
    text: &str,
    login: &Path,
    out: &Path,
    outage: Duration,
) -> Result<Arc<FolderCopy>, Failure> {
    let asked: ObjectStore = serde_json::from_str(text).map_err(Failure::internal)?;
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    // A first pod that finds nothing has a wrong address; a later one has lost what its forerunner had reached.
    let follows = has_reached_store().map_err(refused)?;
    let first = if follows { outage } else { FIRST_ANSWER };
    let client = StoreClient::open(&asked, &name, login)?;
    let copy = FolderCopy::begin(client, out, (first, outage), follows)?;
    if !follows {
        // It only decides how patient later pods are.
        if let Err(error) = note_reached_store() {
            tracing::warn!(%error, "that the object store was reached could not be noted on the Job");
        }
    }
    Ok(Arc::new(copy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let (given, out) = (folder.path().join("experiment"), folder.path().join("work/d"));
        std::fs::create_dir(&given).unwrap();
        std::fs::write(given.join("sets.json"), r#"["factors.users=[1, 2]"]"#).unwrap();
        let words = |given: &Path| conducted_words(given, &out, (&[], "1")).unwrap();
        let (file, shown) = (given.join("experiment.yaml").display().to_string(), out.display().to_string());
        assert_eq!(words(&given), ["run", &file, "--out", &shown, "--set=factors.users=[1, 2]"]);
        std::fs::create_dir_all(out.join("runs")).unwrap();
        assert_eq!(words(&given)[0], "run");
        assert!(!out.exists(), "what was left of a beginning is gone");
        std::fs::create_dir_all(&out).unwrap();
        std::fs::write(out.join("experiment.json"), "{}").unwrap();
        assert_eq!(words(&given), ["resume", &shown, "--set=factors.users=[1, 2]"]);
        // Which runs are made again is noted in the journal, once for a Job.
        let again = ["failed".to_owned(), "invalid".to_owned()];
        let asked =
            ["resume", &shown, "--failed", "--invalid", "--again-once=2", "--set=factors.users=[1, 2]"];
        assert_eq!(conducted_words(&given, &out, (&again, "2")).unwrap(), asked);
    }

    #[test]
    fn the_exit_is_that_of_the_experiment() {
        assert_eq!(
            [Some(0), Some(4), Some(130)].map(exit_of),
            [Exit::Ok, Exit::Threshold, Exit::Interrupted]
        );
        assert_eq!([None, Some(137)].map(exit_of), [Exit::Invalid; 2]);
    }
}
