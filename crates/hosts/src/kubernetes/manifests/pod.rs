//! What all pods of a run have: labels, who runs there, where they go, and what they may take.

use dyno_config::experiment::kubernetes::{Kubernetes, PodUser, Pods, Pull, Quantity};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Where a server's configuration stands, and a worker's token.
pub(super) const HOME: &str = "/etc/dyno";
/// Who runs in the pods.
const USER: u32 = 10_001;
/// What tells nodes apart.
const NODE: &str = "kubernetes.io/hostname";

/// The name of dyno's own program among those of servers.
pub(in crate::kubernetes) const DYNO: &str = "dyno";

/// Labels that Kubernetes recommends, and the run's. The version is known of dyno alone: a server's is in its image.
pub(in crate::kubernetes) fn labels(run: &str, component: &str, app: &str) -> Value {
    let mut labels = json!({
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": run,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": "dyno",
        "app.kubernetes.io/managed-by": "dyno",
        "dyno.run": run,
    });
    if app == DYNO {
        labels["app.kubernetes.io/version"] = env!("CARGO_PKG_VERSION").into();
    }
    labels
}

pub(in crate::kubernetes) fn pull(asked: &Kubernetes) -> &'static str {
    match asked.pull {
        Pull::Always => "Always",
        Pull::IfNotPresent => "IfNotPresent",
        Pull::Never => "Never",
    }
}

/// What a container may do.
pub(in crate::kubernetes) fn container_security(pods: &Pods) -> Value {
    if pods.privileged {
        return json!({"privileged": true});
    }
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
    })
}

/// Image of dyno.
pub(super) fn dyno_image(asked: &Kubernetes) -> String {
    asked.image.clone().unwrap_or_else(|| format!("dyno:{}", env!("CARGO_PKG_VERSION")))
}

pub(in crate::kubernetes) fn resources(pods: &Pods) -> Value {
    let of = |all: &BTreeMap<String, Quantity>| -> Map<String, Value> {
        all.iter().map(|(name, quantity)| (name.clone(), quantity.text().into())).collect()
    };
    json!({"requests": of(&pods.requests), "limits": of(&pods.limits)})
}

/// With the run's name for `{run}`.
fn of_run(value: &Value, run: &Value) -> Value {
    match value {
        Value::String(text) if text == "{run}" => run.clone(),
        Value::Array(all) => all.iter().map(|one| of_run(one, run)).collect(),
        Value::Object(all) => all.iter().map(|(key, one)| (key.clone(), of_run(one, run))).collect(),
        other => other.clone(),
    }
}

/// The part of a pod's description that says where it goes and who runs there.
pub(in crate::kubernetes) fn pod(pods: &Pods, asked: &Kubernetes, chosen: &Value) -> Map<String, Value> {
    let spread = |key: &str, skew: u32, strict: bool| {
        json!({
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": if strict { "DoNotSchedule" } else { "ScheduleAnyway" },
            "labelSelector": {"matchLabels": chosen},
        })
    };
    let mut out = Map::new();
    out.insert("automountServiceAccountToken".into(), false.into());
    out.insert("enableServiceLinks".into(), false.into());
    out.insert("terminationGracePeriodSeconds".into(), 10.into());
    let security = match (pods.privileged, asked.user) {
        (true, _) => json!({"runAsUser": 0, "runAsGroup": 0}),
        (false, PodUser::Dyno) => json!({
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        }),
        (false, PodUser::Cluster) => {
            json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}})
        }
    };
    out.insert("securityContext".into(), security);
    match &pods.affinity {
        Some(affinity) => drop(out.insert("affinity".into(), of_run(affinity, &chosen["dyno.run"]))),
        None => {
            let mut rules = Map::new();
            if pods.one_per_node {
                let term = json!({"labelSelector": {"matchLabels": chosen}, "topologyKey": NODE});
                rules.insert("requiredDuringSchedulingIgnoredDuringExecution".into(), json!([term]));
            }
            if chosen["app.kubernetes.io/component"] == "worker" {
                // Clients that take the cores of servers measure themselves: other nodes come first. Servers of any run are
                // meant, since those that stay belong to another one.
                let servers =
                    json!({"app.kubernetes.io/part-of": "dyno", "app.kubernetes.io/component": "server"});
                let term = json!({"labelSelector": {"matchLabels": servers}, "topologyKey": NODE});
                let preferred = json!([{"weight": 100, "podAffinityTerm": term}]);
                rules.insert("preferredDuringSchedulingIgnoredDuringExecution".into(), preferred);
            }
            if !rules.is_empty() {
                out.insert("affinity".into(), json!({"podAntiAffinity": rules}));
            }
        }
    }
    let mut constraints = Vec::new();
    match (pods.max_skew, &pods.affinity) {
        (Some(skew), _) => constraints.push(spread(NODE, skew, true)),
        (None, Some(_)) => {}
        (None, None) => {
            if !pods.one_per_node {
                constraints.push(spread(NODE, 1, false));
            }
            constraints.push(spread("topology.kubernetes.io/zone", 1, false));
        }
    }
    if !constraints.is_empty() {
        out.insert("topologySpreadConstraints".into(), constraints.into());
    }
    if !pods.node_selector.is_empty() {
        out.insert("nodeSelector".into(), json!(pods.node_selector));
    }
    if !pods.tolerations.is_empty() {
        out.insert("tolerations".into(), json!(pods.tolerations));
    }
    if let Some(class) = &pods.priority_class {
        out.insert("priorityClassName".into(), class.clone().into());
    }
    if let Some(secret) = &asked.pull_secret {
        out.insert("imagePullSecrets".into(), json!([{"name": secret}]));
    }
    out
}
