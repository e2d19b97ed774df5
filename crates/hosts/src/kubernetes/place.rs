//! Cores and memory of processes in privileged pods. Which cores a node has is known only on it: for servers a container of
//! dyno's writes a script before theirs starts, and workers' pods set their own.

use crate::servers::placement::{Memory, Plan, plan_placement};
use dyno_config::server::placement::Placement;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_monitor::topology::Topology;
use dyno_types::shell::quoted;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::collections::BTreeMap;
use std::path::Path;

/// Where the script stands in a server's pod.
pub const SCRIPT: &str = "/placed/start";
/// What each line of the log begins with that says where a process really is.
const SAID: &str = "dyno.placement";

/// Starts the program behind it, by numactl or taskset of the server's image, and says before that what the kernel has made of
/// it. In words of the shell alone: images have few programs.
const START: &str = r#"
while read -r key value; do
  case $key in Cpus_allowed_list:|Mems_allowed_list:) echo "dyno.placement $key $value" ;; esac
done </proc/self/status
if read -r _ policy _ </proc/self/numa_maps; then echo "dyno.placement memory_policy: $policy"; fi
exec "$@"
"#;

/// Plans where process `number` of those at `ports` runs on this node.
fn plan_here(placement: &Placement, ports: &[u16], number: usize) -> Result<(Plan, Topology), LocalError> {
    let topology = Machine::default().machine_topology()?;
    let plans = plan_placement(placement, &topology, ports)?;
    let plan = plans.into_iter().nth(number);
    let plan = plan.ok_or_else(|| {
        LocalError::refuse("--number", format!("{number}: expected one of {} processes", ports.len()))
    })?;
    Ok((plan, topology))
}

/// Writes the script that starts process `number` of those at `ports` in its place on this node.
///
/// # Errors
/// This node has not the cores that are asked for, or the file cannot be written.
pub fn write_script(
    file: &Path,
    placement: &Placement,
    ports: &[u16],
    number: usize,
) -> Result<(), LocalError> {
    let (plan, topology) = plan_here(placement, ports, number)?;
    std::fs::write(file, script(&plan, &plan.words(&topology)))
        .map_err(|e| LocalError::failed_step(file.display(), e))
}

fn script(plan: &Plan, words: &[String]) -> String {
    // The shell is started again, so that what it reads of itself is what the program will have.
    let again = match words.is_empty() {
        true => String::new(),
        false => format!(
            "if [ \"$1\" != placed ]; then exec {} sh \"$0\" placed \"$@\"; fi\nshift\n",
            quoted(words)
        ),
    };
    format!("# {}\n{again}{}", plan.describe_plan(), START.trim_start())
}

/// Has this process, and what it starts, run on the cores of a placement; says where that is.
///
/// # Errors
/// This node has not the cores that are asked for, the kernel refuses them, or memory of a node of several is asked for.
pub fn enter(placement: &Placement) -> Result<String, LocalError> {
    let (plan, topology) = plan_here(placement, &[0], 0)?;
    if plan.memory != Memory::Local && topology.nodes.len() > 1 {
        return Err(LocalError::refuse(
            "client.placement",
            "client.placement: workers' pods choose cores; memory comes from the node of the core that uses it",
        ));
    }
    if let Some(cpus) = &plan.cpus {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        sched_setaffinity(None, &set).map_err(|e| LocalError::failed_step("client.placement", e))?;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let said = status.lines().filter(|line| line.contains("_allowed_list:"));
    Ok(said.map(|line| format!("{SAID} {}\n", line.replace('\t', " "))).collect())
}

/// Reads from a pod's log where its process is: `cpus_allowed`, `mems_allowed` and `memory_policy`.
pub(super) fn read_placement(log: &str) -> BTreeMap<String, String> {
    let said = log.lines().filter_map(|line| line.strip_prefix(SAID)?.trim().split_once(':'));
    said.map(|(key, value)| {
        let key = key.trim().to_lowercase();
        (key.strip_suffix("_list").unwrap_or(&key).to_owned(), value.trim().to_owned())
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_config::server::placement::Policy;

    fn of(placement: &str) -> Placement {
        serde_json::from_str(placement).unwrap()
    }

    #[test]
    fn a_script_starts_a_program_in_its_place_and_says_where_that_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("start");
        let cpus = Machine::default().machine_topology().unwrap().cpus;
        let own = *cpus.keys().next().unwrap();
        write_script(&file, &of(&format!("{{\"cores\": \"{own}\"}}")), &[1, 2], 1).unwrap();
        let done = std::process::Command::new("sh").arg(&file).args(["echo", "two  words"]).output().unwrap();
        let said = String::from_utf8(done.stdout).unwrap();
        assert!(said.ends_with("two  words\n"), "{said}");
        let read = read_placement(&said);
        assert_eq!(read["cpus_allowed"], own.to_string(), "{said}");
        assert!(read.contains_key("mems_allowed"), "{said}");
        // Without a policy it is started as it is.
        write_script(&file, &Placement::default(), &[1], 0).unwrap();
        assert!(!std::fs::read_to_string(&file).unwrap().contains("placed"));
    }

    #[test]
    fn a_core_that_is_not_there_is_refused_on_the_node() {
        let folder = tempfile::tempdir().unwrap();
        let error =
            write_script(&folder.path().join("s"), &of("{\"cores\": \"9999\"}"), &[1], 0).unwrap_err();
        assert!(error.to_string().contains("core 9999 is not there"), "{error}");
        let by_port = Placement { policy: Policy::BindByPort, ..Placement::default() };
        assert!(write_script(&folder.path().join("s"), &by_port, &[1], 1).is_err());
    }
}
