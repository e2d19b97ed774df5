//! Events on the Job of a controller in the cluster: `kubectl describe job` tells how its experiment goes.

use crate::kubernetes::in_pod::{OWNER, account_namespace};
use crate::kubernetes::kubectl::Kubectl;
use dyno_config::experiment::kubernetes::Kubernetes;
use dyno_types::secret::conceal;
use serde_json::{Value, json};

/// Longest message of an event, bytes: the API server refuses longer ones.
const MESSAGE_BYTES: usize = 1_024;

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobEvent<'a> {
    /// True if a person should look.
    pub is_warning: bool,
    /// One word in CamelCase, for programs.
    pub reason: &'a str,
    /// For people.
    pub message: &'a str,
}

/// Puts an event on the Job that this process conducts an experiment for; outside of one it does nothing. A cluster that does not
/// take it changes nothing of the experiment: the log has a warning.
pub fn put_on_own_job(asked: &Kubernetes, event: JobEvent<'_>) {
    let owner = std::env::var(OWNER).unwrap_or_default();
    let (Some((name, uid)), Some(namespace)) = (owner.split_once('/'), account_namespace()) else { return };
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let object = object_of(event, (&namespace, name, uid), &now);
    if let Err(error) = Kubectl::new(asked).create_objects(&[object]) {
        tracing::warn!(%error, reason = event.reason, "an event could not be put on the controller's Job");
    }
}

fn object_of(event: JobEvent<'_>, (namespace, name, uid): (&str, &str, &str), now: &str) -> Value {
    // Masked before it is cut: half a password is not known as one.
    let mut message = conceal(event.message).into_owned();
    let end = (0..=MESSAGE_BYTES.min(message.len())).rev().find(|at| message.is_char_boundary(*at));
    message.truncate(end.unwrap_or(0));
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"generateName": format!("{name}-"), "namespace": namespace},
        "involvedObject": {
            "apiVersion": "batch/v1", "kind": "Job", "namespace": namespace, "name": name, "uid": uid,
        },
        "type": if event.is_warning { "Warning" } else { "Normal" },
        "reason": event.reason,
        "message": message,
        "source": {"component": "dyno"},
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_names_its_job_and_is_no_longer_than_the_server_takes() {
        let long = "ä".repeat(MESSAGE_BYTES);
        let event = JobEvent { is_warning: true, reason: "RunFailed", message: &long };
        let made = object_of(event, ("bench", "dyno-1", "7"), "2026-01-02T03:04:05Z");
        assert_eq!((&made["type"], &made["involvedObject"]["uid"]), (&json!("Warning"), &json!("7")));
        assert_eq!(made["metadata"]["namespace"], made["involvedObject"]["namespace"]);
        assert_eq!(made["message"].as_str().unwrap().len(), MESSAGE_BYTES);
        // A password that the cut would go through is not there in part.
        dyno_types::secret::remember("hush-of-events-4711");
        let long = format!("{}hush-of-events-4711", "a".repeat(MESSAGE_BYTES - 10));
        let secret = JobEvent { message: &long, ..event };
        let made = object_of(secret, ("bench", "dyno-1", "7"), "2026-01-02T03:04:05Z");
        assert!(!made["message"].as_str().unwrap().contains("hush"), "{made}");
        // Outside of a pod nothing is asked: there is no such program.
        let asked = Kubernetes { kubectl: Some("/nowhere".into()), ..Kubernetes::default() };
        put_on_own_job(&asked, event);
    }
}
