//! `dyno requests`: what pods of runs that are over have used, as requests of the next ones.

use crate::list::runs_below;
use clap::Args;
use dyno_analysis::pod_requests::{PodRole, PodUse, pod_use};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_rundir::monitor::Recording;
use dyno_types::units::counted;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// `dyno requests`.
#[derive(Clone, Debug, Args)]
pub struct RequestsArgs {
    /// Directory of a run in pods, of an experiment, or a folder of them
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Print them as options of dyno run and dyno plan instead, on one line
    #[arg(long)]
    pub options: bool,
}

/// The command.
pub fn requests(args: &RequestsArgs) -> Result<Exit, Failure> {
    let mut greatest: BTreeMap<PodRole, PodUse> = BTreeMap::new();
    let mut in_pods = 0;
    for run in runs_below(&args.dir)? {
        let Some(recording) = Recording::open(&run.path).map_err(Failure::usage)? else { continue };
        let found = pod_use(&run.run.facts, &recording);
        in_pods += usize::from(!found.is_empty());
        for (role, most) in found {
            greatest.entry(role).or_default().take_greater(most);
        }
    }
    let shown = args.dir.display();
    if in_pods == 0 {
        return Err(Failure::usage(format!(
            "{shown}: no run in pods whose pods were watched; expected an experiment with a section kubernetes that has run"
        )));
    }
    if greatest.get(&PodRole::Server).is_none_or(|most| most.cores.is_none()) {
        terminal::note(
            "the CPU of servers is not known: it takes servers of dyno's, phases of 30 s, and rbac-kubelet.yaml",
        );
    }
    let all = greatest.iter().map(|(role, most)| (role.section(), most.requests()));
    let all: Vec<(&str, Vec<(&str, String)>)> = all.filter(|(_, requests)| !requests.is_empty()).collect();
    if args.options {
        let each = all.iter().flat_map(|(section, requests)| {
            requests
                .iter()
                .map(move |(what, quantity)| format!("--set kubernetes.{section}.requests.{what}={quantity}"))
        });
        terminal::line(&each.collect::<Vec<String>>().join(" "));
        return Ok(Exit::Ok);
    }
    terminal::line(&format!(
        "# The greatest use of a pod in {} in pods (CPU over 10 s, memory), and a quarter more",
        counted(in_pods, "run")
    ));
    terminal::line("kubernetes:");
    for (section, requests) in all {
        let each: Vec<String> =
            requests.iter().map(|(what, quantity)| format!("{what}: {quantity}")).collect();
        terminal::line(&format!("  {section}: {{requests: {{{}}}}}", each.join(", ")));
    }
    Ok(Exit::Ok)
}
