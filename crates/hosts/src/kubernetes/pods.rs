//! What becomes of pods: waiting, ready, or failed, with the reason.

use serde_json::Value;

/// State of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PodState {
    /// Not ready yet, and why.
    Waiting(String),
    /// All containers are ready.
    Ready,
    /// It will not be ready.
    Failed(String),
}

/// Reasons that do not go away by waiting. A registry may come back: `ImagePullBackOff` is none.
const FATAL: [&str; 7] = [
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
    "ImageInspectError",
];

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// A reason and its message as one.
fn both(value: &Value) -> String {
    let (reason, message) = (text(value, "reason"), text(value, "message"));
    match (reason, message) {
        ("", "") => "no reason is given".into(),
        (reason, "") => reason.into(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// Returns whether what runs in a pod listens only after other pods have been made one: a router of a sharded cluster.
fn waits_for_others(pod: &Value) -> bool {
    pod["metadata"]["labels"]["dyno.part"] == "router"
}

/// The container of a server's pod, which may have others beside it.
fn server(pod: &Value) -> &Value {
    let all = pod["status"]["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().find(|one| text(one, "name") == "server").or(all.first()).unwrap_or(&Value::Null)
}

/// Returns the last end of its container; null where it never has ended.
fn last_end(container: &Value) -> &Value {
    match &container["state"]["terminated"] {
        now if now.is_object() => now,
        _ => &container["lastState"]["terminated"],
    }
}

/// A condition of a pod, if it has this status.
fn condition<'a>(pod: &'a Value, name: &str, status: &str) -> Option<&'a Value> {
    let all = pod["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().find(|one| text(one, "type") == name && text(one, "status") == status)
}

/// Returns whether the server of a pod runs and listens, or will only once others do.
pub(super) fn is_ready(pod: &Value) -> bool {
    let listens = || condition(pod, "Ready", "True").is_some() || waits_for_others(pod);
    server(pod)["state"]["running"].is_object() && listens()
}

/// Counts how often the server of a pod has ended.
pub(super) fn ends(pod: &Value) -> u64 {
    let container = server(pod);
    let is_away = !container["state"]["running"].is_object() && last_end(container).is_object();
    container["restartCount"].as_u64().unwrap_or(0) + u64::from(is_away)
}

/// Returns whether it ended last by SIGKILL, and not for want of memory.
pub(super) fn was_killed(pod: &Value) -> bool {
    let end = last_end(server(pod));
    end["exitCode"] == 137 && text(end, "reason") != "OOMKilled"
}

/// Why a container will not run, if so.
fn failure(container: &Value) -> Option<String> {
    for ended in [&container["state"]["terminated"], &container["lastState"]["terminated"]] {
        if ended.is_object() && (text(ended, "reason") == "OOMKilled" || ended["exitCode"] != 0) {
            return Some(format!("{} (exit code {})", both(ended), ended["exitCode"]));
        }
    }
    None
}

/// The container before the server's that has failed, and why.
pub(super) fn failed_before(pod: &Value) -> Option<(&str, String)> {
    let before = pod["status"]["initContainerStatuses"].as_array()?.iter();
    before.filter_map(|container| Some((text(container, "name"), failure(container)?))).next()
}

/// A pod as `kubectl get pod -o json` has it.
pub(super) fn state(pod: &Value) -> PodState {
    let status = &pod["status"];
    if let Some((name, why)) = failed_before(pod) {
        return PodState::Failed(format!("its container {name} ended: {why}"));
    }
    let containers = status["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
    for container in containers {
        if let Some(why) = failure(container) {
            return PodState::Failed(format!("its container ended: {why}"));
        }
        let waiting = &container["state"]["waiting"];
        if FATAL.contains(&text(waiting, "reason")) {
            return PodState::Failed(both(waiting));
        }
    }
    match text(status, "phase") {
        "Failed" => return PodState::Failed(both(status)),
        "Succeeded" => return PodState::Failed("it has ended".into()),
        _ => {}
    }
    let runs = !containers.is_empty() && containers.iter().all(|one| one["state"]["running"].is_object());
    if condition(pod, "Ready", "True").is_some() || runs && waits_for_others(pod) {
        return PodState::Ready;
    }
    if let Some(unscheduled) = condition(pod, "PodScheduled", "False") {
        return PodState::Waiting(both(unscheduled));
    }
    let waiting = containers.iter().map(|one| &one["state"]["waiting"]).find(|one| one.is_object());
    PodState::Waiting(waiting.map_or_else(|| text(status, "phase").to_owned(), both))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_say_how_far_they_are() {
        let ready =
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(state(&ready), PodState::Ready);
        let waiting = |reason: &str| {
            json!({"status": {"phase": "Pending",
                "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": "m"}}}]}})
        };
        assert_eq!(state(&waiting("ErrImageNeverPull")), PodState::Failed("ErrImageNeverPull: m".into()));
        let later = PodState::Waiting("ImagePullBackOff: m".into());
        assert_eq!(state(&waiting("ImagePullBackOff")), later, "a registry may come back");
        assert_eq!(state(&waiting("ContainerCreating")), PodState::Waiting("ContainerCreating: m".into()));
        let unscheduled = json!({"status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]}});
        assert_eq!(state(&unscheduled), PodState::Waiting("Unschedulable: 0/1 nodes".into()));
        let mut begun = json!({"status": {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}],
            "conditions": [{"type": "Ready", "status": "False"}]}});
        assert_eq!(state(&begun), PodState::Waiting("Running".into()));
        begun["metadata"]["labels"]["dyno.part"] = "router".into();
        assert_eq!(state(&begun), PodState::Ready);
        let killed = json!({"status": {"phase": "Running", "containerStatuses": [
            {"state": {"running": {}}, "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}});
        assert_eq!(state(&killed), PodState::Failed("its container ended: OOMKilled (exit code 137)".into()));
        let placed = json!({"status": {"phase": "Pending", "initContainerStatuses": [
            {"name": "place", "state": {"terminated": {"reason": "Error", "exitCode": 2}}}]}});
        assert_eq!(state(&placed), PodState::Failed("its container place ended: Error (exit code 2)".into()));
        let evicted = json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}});
        assert_eq!(state(&evicted), PodState::Failed("Evicted: low on memory".into()));
    }
}
