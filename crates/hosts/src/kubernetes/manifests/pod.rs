//! What all pods of a run have: labels, who runs there, where they go, and what they may take.

use dyno_config::experiment::kubernetes::{Kubernetes, Pods, Pull, Quantity};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Where a server's configuration stands, and a worker's token.
pub(super) const HOME: &str = "/etc/dyno";
/// Who runs in the pods.
const USER: u32 = 10_001;

pub(super) fn labels(run: &str, component: &str, app: &str) -> Value {
    json!({
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": run,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": "dyno",
        "app.kubernetes.io/managed-by": "dyno",
        "dyno.run": run,
    })
}

pub(super) fn pull(asked: &Kubernetes) -> &'static str {
    match asked.pull {
        Pull::Always => "Always",
        Pull::IfNotPresent => "IfNotPresent",
        Pull::Never => "Never",
    }
}

pub(super) fn restricted() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
    })
}

pub(super) fn resources(pods: &Pods) -> Value {
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
pub(super) fn pod(pods: &Pods, asked: &Kubernetes, chosen: &Value) -> Map<String, Value> {
    let spread = |skew: u32, strict: bool| {
        json!([{
            "maxSkew": skew,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": if strict { "DoNotSchedule" } else { "ScheduleAnyway" },
            "labelSelector": {"matchLabels": chosen},
        }])
    };
    let mut out = Map::new();
    out.insert("automountServiceAccountToken".into(), false.into());
    out.insert("enableServiceLinks".into(), false.into());
    out.insert("terminationGracePeriodSeconds".into(), 10.into());
    out.insert(
        "securityContext".into(),
        json!({
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        }),
    );
    match (&pods.affinity, pods.one_per_node) {
        (Some(affinity), _) => drop(out.insert("affinity".into(), of_run(affinity, &chosen["dyno.run"]))),
        (None, true) => {
            let term =
                json!({"labelSelector": {"matchLabels": chosen}, "topologyKey": "kubernetes.io/hostname"});
            let rule = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
            out.insert("affinity".into(), json!({"podAntiAffinity": rule}));
        }
        (None, false) => {}
    }
    match pods.max_skew {
        Some(skew) => drop(out.insert("topologySpreadConstraints".into(), spread(skew, true))),
        None if out.contains_key("affinity") => {}
        None => drop(out.insert("topologySpreadConstraints".into(), spread(1, false))),
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
