//! Whether a run's pods fit on the nodes of the cluster, as far as counts alone tell it before anything is made.

use dyno_config::experiment::Experiment;
use dyno_config::experiment::kubernetes::{Kubernetes, Pods};
use dyno_types::units::counted;
use serde_json::Value;

/// Why a run's pods cannot all have a node, if so. `nodes` are those of the cluster, as the API lists them.
pub(super) fn no_room(spec: &Experiment, asked: &Kubernetes, nodes: &[Value]) -> Option<String> {
    if asked.autoscaled {
        return None;
    }
    let servers = spec.server.as_ref().map_or(0, |server| server.processes() as usize);
    let workers = asked.worker_pods as usize;
    let for_servers = nodes.iter().filter(|node| takes(node, &asked.servers)).count();
    if servers > 0 {
        if for_servers == 0 {
            return Some("servers: no node takes them (node_selector, taints, cordoned nodes)".into());
        }
        if asked.servers.one_per_node && servers > for_servers {
            return Some(lacks("servers.one_per_node", servers, for_servers, ""));
        }
        let each = spec.server.as_ref().map_or(1, |server| server.processes_each() as usize);
        if asked.servers.privileged && each > for_servers {
            let why = ": processes of an instance share a port, and are on the network of their node";
            return Some(lacks("servers.privileged", each, for_servers, why));
        }
    }
    let all = nodes.iter().filter(|node| takes(node, &asked.workers)).count();
    // Wherever servers are, workers could be, too: at least one node is lost to them.
    let shared =
        nodes.iter().filter(|node| takes(node, &asked.servers)).all(|node| takes(node, &asked.workers));
    let apart = servers > 0 && shared && keeps_off_servers(&asked.workers);
    let beside = all.saturating_sub(usize::from(apart));
    if beside == 0 {
        return Some(match apart {
            true => format!(
                "workers: they keep off the servers' nodes, and there is no other: {}",
                counted(all, "node")
            ),
            false => "workers: no node takes them (node_selector, taints, cordoned nodes)".into(),
        });
    }
    if asked.workers.one_per_node && workers > beside {
        return Some(lacks("workers.one_per_node", workers, beside, ""));
    }
    // A node that may have none of them counts as one with none: no other may have more than the skew.
    let most = asked.workers.max_skew.filter(|_| apart).map(|skew| skew as usize);
    most.filter(|most| workers > most * beside).map(|most| {
        let needed = workers.div_ceil(most);
        format!(
            "workers.max_skew: {workers} pods, at most {most} on a node and none on the servers': expected {needed} nodes beside \
             theirs, there {} {beside}",
            if beside == 1 { "is" } else { "are" }
        )
    })
}

fn lacks(key: &str, pods: usize, nodes: usize, why: &str) -> String {
    format!("{key}: {pods} pods, {}{why}", counted(nodes, "node"))
}

/// Returns whether workers may not be where a server is.
fn keeps_off_servers(workers: &Pods) -> bool {
    let rules = workers
        .affinity
        .as_ref()
        .map(|affinity| &affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]);
    let terms = rules.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let component =
        |term: &Value| term["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == "server";
    terms.iter().any(component)
}

/// Returns whether a node may get pods of these: it is not cordoned, has the labels, and no taint of its own that they do not
/// tolerate. Tolerations have rules of their own: where there are any, taints are left to the scheduler.
fn takes(node: &Value, pods: &Pods) -> bool {
    let labels = &node["metadata"]["labels"];
    let has = |(name, value): (&String, &String)| labels[name.as_str()] == value.as_str();
    let taints = node["spec"]["taints"].as_array().map_or(&[][..], Vec::as_slice);
    let tainted = taints.iter().any(|taint| taint["effect"] != "PreferNoSchedule");
    node["spec"]["unschedulable"] != true
        && pods.node_selector.iter().all(has)
        && (!tainted || !pods.tolerations.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_config::experiment::read_plan;
    use serde_json::json;

    /// What is said of an experiment on so many nodes, of which the last has a disk label.
    fn said(text: &str, nodes: usize) -> Option<String> {
        let plan = read_plan(text, "x.yaml", &[]).unwrap();
        let spec = &plan.cells[0].spec;
        let mut all: Vec<Value> =
            (0..nodes).map(|n| json!({"metadata": {"name": n, "labels": {}}})).collect();
        if let Some(last) = all.last_mut() {
            last["metadata"]["labels"]["disk"] = "fast".into();
        }
        no_room(spec, spec.kubernetes.as_ref().unwrap(), &all)
    }

    const APART: &str = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: \
                         {matchLabels: {app.kubernetes.io/component: server}}}]}}";

    #[test]
    fn counts_that_do_not_fit_are_said_before_anything_is_made() {
        let server = "server: {kind: redis, instances: 16}\nkubernetes: ";
        let fits = format!("{server}{{worker_pods: 16, workers: {{max_skew: 8, {APART}}}}}\n");
        assert_eq!(said(&fits, 3), None);
        let few = format!("{server}{{worker_pods: 16, workers: {{max_skew: 6, {APART}}}}}\n");
        assert_eq!(
            said(&few, 3).as_deref(),
            Some(
                "workers.max_skew: 16 pods, at most 6 on a node and none on the servers': expected 3 nodes beside theirs, \
                 there are 2"
            )
        );
        assert_eq!(said(&few, 4), None);
        assert!(
            said(&fits, 1).unwrap().contains("keep off the servers' nodes, and there is no other: 1 node")
        );
        // Without a rule the scheduler finds room.
        assert_eq!(said(&format!("{server}{{worker_pods: 16, workers: {{max_skew: 6}}}}\n"), 1), None);
        let alone = format!("{server}{{servers: {{one_per_node: true}}}}\n");
        assert_eq!(said(&alone, 3).as_deref(), Some("servers.one_per_node: 16 pods, 3 nodes"));
        assert_eq!(said(&alone, 16), None);
        let labelled = format!("{server}{{servers: {{node_selector: {{disk: slow}}}}}}\n");
        assert!(said(&labelled, 3).unwrap().starts_with("servers: no node takes them"));
        // Servers and workers have nodes of their own: none is lost to workers.
        let disjoint = format!(
            "server: {{kind: redis}}\nkubernetes: {{servers: {{node_selector: {{disk: fast}}}}, worker_pods: 16, \
             workers: {{node_selector: {{disk: slow}}, max_skew: 8, {APART}}}}}\n"
        );
        let nodes = |labels: &[&str]| -> Vec<Value> {
            labels.iter().map(|disk| json!({"metadata": {"labels": {"disk": disk}}})).collect()
        };
        let plan = read_plan(&disjoint, "x.yaml", &[]).unwrap();
        let spec = &plan.cells[0].spec;
        for labels in [&["fast", "slow"][..], &["fast", "fast", "slow", "slow"]] {
            assert_eq!(no_room(spec, spec.kubernetes.as_ref().unwrap(), &nodes(labels)), None, "{labels:?}");
        }
        // Nodes come as pods wait for them.
        assert_eq!(said(&alone.replace("servers:", "autoscaled: true, servers:"), 3), None);
        let set = "server: {kind: mongod, topology: replica_set, members: 3}\nkubernetes: {servers: {privileged: true}}\n";
        assert!(said(set, 2).unwrap().starts_with("servers.privileged: 3 pods, 2 nodes"));
        assert_eq!(said(set, 3), None);
    }

    #[test]
    fn nodes_that_take_no_pods_do_not_count() {
        let pods = Pods::default();
        assert!(takes(&json!({"spec": {}}), &pods));
        assert!(!takes(&json!({"spec": {"unschedulable": true}}), &pods));
        let taint = |effect: &str| json!({"spec": {"taints": [{"key": "k", "effect": effect}]}});
        assert!(!takes(&taint("NoSchedule"), &pods) && !takes(&taint("NoExecute"), &pods));
        assert!(takes(&taint("PreferNoSchedule"), &pods));
        let tolerant = Pods { tolerations: vec![json!({"operator": "Exists"})], ..Pods::default() };
        assert!(takes(&taint("NoSchedule"), &tolerant), "the scheduler knows better");
    }
}
