//! Finds problems of a file without touching anything, and where they were written.

use crate::hosts::named_hosts;
use crate::run_phases;
use dyno_config::experiment::{Experiment, ExperimentPlan, MatrixCell};
use dyno_config::tree::{Node, TreeError};
use dyno_databases::registry;
use dyno_hosts::remote::worker::serve::ReadWork;
use dyno_monitor::prometheus::Url;
use dyno_types::Refused;
use dyno_types::units::counted;

/// Checks what can be checked without touching anything: targets and their options, workloads, rates, thresholds and
/// exporters of every cell.
pub fn check(plan: &ExperimentPlan, read_work: ReadWork<'_>) -> Result<(), TreeError> {
    let mut known: Vec<&Experiment> = Vec::new();
    for cell in &plan.cells {
        let spec = &cell.spec;
        // Cells often differ in nothing that matters here.
        let same = |other: &&&Experiment| {
            (&other.workload, &other.require, &other.phases, &other.strategy, &other.target, &other.client)
                == (&spec.workload, &spec.require, &spec.phases, &spec.strategy, &spec.target, &spec.client)
                && (&other.monitors, &other.ssh) == (&spec.monitors, &spec.ssh)
        };
        if known.iter().any(|other| same(&other)) {
            continue;
        }
        of_cell(cell, read_work).map_err(|mut error| {
            if plan.cells.len() > 1 {
                error.text = format!("{} (cell {}: {})", error.text, cell.number, cell.levels_label());
            }
            error
        })?;
        known.push(spec);
    }
    Ok(())
}

fn of_cell(cell: &MatrixCell, read_work: ReadWork<'_>) -> Result<(), TreeError> {
    let spec = &cell.spec;
    let wrong = |key: &str, message: String| placed(&cell.tree, key, message);
    let refuse = |key: &str, refused: &Refused| name_place(&cell.tree, key, refused);
    if let Some(uri) = &spec.target {
        let target = registry::parse_for(&uri.replace("{dir}", "dir"), spec.client.driver.into())
            .map_err(|refused| refuse("target", &refused))?;
        if !spec.ssh.watched.is_empty() && !target.is_watched() {
            let servers = registry::servers_in_words();
            return Err(wrong(
                "ssh.watched",
                format!("expected a target whose servers run there: {servers}"),
            ));
        }
    }
    check_hosts(spec).map_err(|(key, why)| wrong(&key, why))?;
    for (name, url) in &spec.monitors.prometheus {
        Url::parse(url).map_err(|e| wrong(&format!("monitors.prometheus.{name}"), e.to_string()))?;
    }
    let work = read_work(spec).map_err(|refused| refuse("workload", &refused))?;
    let job = work.measure().map_err(|refused| refuse("phases", &refused))?;
    let conditions = run_phases::conditions(spec, job.workload.metrics());
    conditions.map_err(|refused| refuse("require", &refused)).map(drop)
}

/// Hosts that no inventory knows, and more of them than there are users; the key, and why.
fn check_hosts(spec: &Experiment) -> Result<(), (String, String)> {
    let ssh = &spec.ssh;
    let named =
        |names| named_hosts(ssh, names).map_err(|e| ("ssh.inventory".to_owned(), bare(&e.to_string())));
    let servers = named(&ssh.servers)?;
    let clients = named(&ssh.clients)?;
    // Several servers are several targets, among which clients are dealt out.
    if clients.is_empty() || servers.len() > 1 {
        return Ok(());
    }
    let workers = spec.client.workers.saturating_mul(u32::try_from(clients.len()).unwrap_or(u32::MAX));
    let hosts = counted(clients.len(), "host");
    spec.check_shares(workers, workers).map_err(|e| (e.key, format!("{} (ssh.clients: {hosts})", e.problem)))
}

/// Words without the key, which the error names itself.
fn bare(text: &str) -> String {
    text.strip_prefix("ssh.inventory: ").unwrap_or(text).to_owned()
}

/// An error at the key of a refusal, which its words need not name again, or at `key` where they do not begin with one.
fn name_place(tree: &Node, key: &str, refused: &Refused) -> TreeError {
    let (own, sentence) = (refused.refused_place(), refused.to_string());
    match sentence.strip_prefix(own).and_then(|rest| rest.strip_prefix(": ")) {
        Some(text) if !own.is_empty() && tree.find_path(own).is_some() => placed(tree, own, text.to_owned()),
        _ => placed(tree, key, sentence),
    }
}

/// An error at the deepest part of a key that the user has written.
pub(super) fn placed(tree: &Node, key: &str, text: String) -> TreeError {
    let mut at = key;
    let node = loop {
        match (tree.find_path(at), at.rsplit_once('.')) {
            (Some(node), _) => break node,
            (None, Some((above, _))) => at = above,
            (None, None) => break tree,
        }
    };
    node.error_at(key, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_config::experiment::read_plan;

    fn checked(text: &str) -> Result<(), String> {
        let plan = read_plan(text, "x.yaml", &[]).unwrap();
        check_hosts(&plan.cells[0].spec).map_err(|(key, why)| format!("{key}: {why}"))
    }

    /// An inventory says how many hosts a group has: counts that do not fit are refused before anything is deployed.
    #[test]
    fn hosts_are_counted_and_looked_up_when_planning() {
        let folder = tempfile::tempdir().unwrap();
        let inventory = folder.path().join("hosts.ini");
        std::fs::write(&inventory, "[db]\nd1\nd2\n[load]\nh[1:20]\n").unwrap();
        let with = |servers: &str, users: u32| {
            format!(
                "server: {{kind: redis}}\nssh: {{inventory: {}, servers: [{servers}], clients: [load]}}\n\
                 phases: {{load: {{users: 64}}, measure: {{users: {users}, duration: 1s}}}}\n",
                inventory.display()
            )
        };
        assert_eq!(checked(&with("d1", 20)), Ok(()));
        let few = checked(&with("d1", 16)).unwrap_err();
        assert!(
            few.starts_with("phases.measure.users: 16: expected 20 or more") && few.contains("20 hosts"),
            "{few}"
        );
        // Two servers are two targets with ten hosts each.
        assert_eq!(checked(&with("db", 16)), Ok(()));
        let unknown = checked(&with("nowhere", 20)).unwrap_err();
        assert!(unknown.starts_with("ssh.inventory: ") && unknown.contains("nowhere"), "{unknown}");
        std::fs::remove_file(&inventory).unwrap();
        assert!(checked(&with("d1", 20)).unwrap_err().contains("hosts.ini"));
    }
}
