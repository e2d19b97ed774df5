//! `dyno bexhoma ycsb ... run`.

use crate::exit::{Exit, Failure};
use crate::{experiment, pages, signals, terminal};
use dyno_engine::Control;
use dyno_plan::bexhoma::{Configuration, Job, Lowered, Options, Typed, lower};
use dyno_rig::experiment::Directory;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// What messages call the text that was made.
const CALLED: &str = "bexhoma-ycsb";

/// The mode `run`.
pub fn run(typed: Typed) -> Result<Exit, Failure> {
    let options = Options::read(typed).map_err(Failure::Usage)?;
    let lowered = lower(&options).map_err(Failure::Usage)?;
    let mut notes = lowered.notes.clone();
    // What patches a container of the original's manifests has nothing to patch here.
    let patches = |set: &&String| set.starts_with("deployment[") || set.starts_with("statefulset[");
    let typed = &options.typed;
    let sets: Vec<String> = typed.all("set").iter().filter(|set| !patches(set)).cloned().collect();
    if sets.len() < typed.all("set").len() {
        notes.push(
            "--set deployment[...], statefulset[...]: without effect: these servers take no -c KEY=VALUE"
                .into(),
        );
    }
    let plan = experiment::planned(&lowered.text, CALLED, &sets)?;
    notes.iter().for_each(|note| terminal::note(&format!("note: {note}")));
    let workflow = workflow(&options, &lowered);
    if typed.given("dry-run") {
        terminal::out(&format!("{workflow}\n{}", lowered.text));
        return Ok(Exit::Ok);
    }
    experiment::ready(&plan)?;
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let home = folder(Path::new(typed.value("resultfolder")))?;
    let mut directory = Directory::create(&home, &lowered.text, CALLED, &sets, &plan)?;
    pages::write(&home.join("workflow.txt"), &workflow)?;
    let exit = experiment::carry_out(&plan, &mut directory, control, (typed.given("quiet"), false), None)?;
    let failed = show(&home)?;
    Ok(if exit == Exit::Ok && failed { Exit::Threshold } else { exit })
}

/// A folder that is not there yet, called by the code: the seconds since 1970.
fn folder(results: &Path) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(results)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let free = (now..).map(|code| results.join(code.to_string())).find(|path| !path.exists());
    free.ok_or_else(|| Failure::Internal("no code is free".into()))
}

/// Prints the summary; whether a test in it failed.
pub fn show(home: &Path) -> Result<bool, Failure> {
    let path = home.join("summary.md");
    let text =
        std::fs::read_to_string(&path).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))?;
    terminal::out(&text);
    Ok(text.lines().any(|line| line.starts_with("* TEST failed")))
}

/// Names and figures of everything that will be done, as the flags expand.
fn workflow(options: &Options, lowered: &Lowered) -> String {
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

fn pods(out: &mut String, one: &Configuration, run: u32, client: u32, job: &Job) {
    let what = if client == 0 { "rows" } else { "operations" };
    for pod in job.each() {
        let name = one.connection(run, client, pod.child);
        let target = if job.target == 0 { "none".into() } else { format!("{:.2}", pod.target) };
        let _ =
            writeln!(out, "  * {name}: threads {}, target {target}, {what} {}", pod.threads, pod.operations);
    }
}
