//! What a run in pods leaves to be read: the logs of its pods, the events about them, and the objects as the cluster had them.

use crate::collected::CollectedFile;
use crate::kubernetes::kubectl::{Kubectl, KubectlError};
use dyno_types::secret::{MASK, is_secret};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Requests for logs at a time.
const AT_ONCE: usize = 8;
/// Last lines of a log that are asked for: more than are kept.
const LINES: &str = "--tail=50000";
/// Time after which no further log is asked for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why what the pods say could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The cluster does not say it.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// It cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Keeps everything of the objects with these labels in `folder`. Secrets are none of it. A node that does not answer takes no
/// longer than [`PATIENCE`].
pub(super) fn collect(kubectl: &Kubectl, selectors: &[&str], folder: &Path) -> Result<(), CollectError> {
    let end = Instant::now() + PATIENCE;
    let (mut objects, mut containers) = (Vec::new(), Vec::new());
    for selector in selectors {
        let words = [
            "--request-timeout=10s",
            "get",
            "pods,jobs,statefulsets,configmaps",
            "-l",
            selector,
            "-o",
            "json",
        ];
        let found = kubectl.run_json(&words)?;
        objects.extend(found["items"].as_array().cloned().unwrap_or_default());
    }
    for pod in objects.iter().filter(|object| object["kind"] == "Pod") {
        let of = |list: &str| pod["spec"][list].as_array().cloned().unwrap_or_default();
        for container in of("initContainers").iter().chain(&of("containers")) {
            containers.push((name(&pod["metadata"]).to_owned(), name(container).to_owned()));
        }
    }
    let names: Vec<String> = objects.iter().map(|object| name(&object["metadata"]).to_owned()).collect();
    objects.iter_mut().for_each(mask_secrets);
    let text = serde_json::to_string_pretty(&json!({"apiVersion": "v1", "kind": "List", "items": objects}));
    CollectedFile::of_text("objects.json", &text.map_err(io::Error::other)?)?.write_into(folder)?;
    for some in containers.chunks(AT_ONCE).take_while(|_| Instant::now() < end) {
        std::thread::scope(|scope| {
            let all: Vec<_> = some.iter().map(|one| scope.spawn(|| log_of(kubectl, one, folder))).collect();
            all.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
        })?;
    }
    let found = kubectl.run_json(&["--request-timeout=10s", "get", "events", "-o", "json"])?;
    let events = described_events(found["items"].as_array().map_or(&[][..], Vec::as_slice), &names);
    CollectedFile::of_text("events", &events)?.write_into(folder)?;
    Ok(())
}

/// Masks variables and settings of the user's own objects that are called as secrets are.
fn mask_secrets(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(mask_secrets),
        Value::Object(all) => {
            let named = all.get("name").and_then(Value::as_str).is_some_and(is_secret);
            for (key, value) in all.iter_mut() {
                match value {
                    Value::String(text) if is_secret(key) || named && key == "value" => {
                        *text = MASK.to_owned()
                    }
                    other => mask_secrets(other),
                }
            }
        }
        _ => {}
    }
}

/// Keeps the end of a container's log. One that has not begun has none.
fn log_of(kubectl: &Kubectl, (pod, container): &(String, String), folder: &Path) -> Result<(), CollectError> {
    let words = ["--request-timeout=20s", "logs", pod, "-c", container, LINES];
    let Ok(log) = kubectl.run(&words, None) else { return Ok(()) };
    if !log.is_empty() {
        CollectedFile::of_end(&format!("{pod}.{container}.log"), &log)?.write_into(folder)?;
    }
    Ok(())
}

fn name(value: &Value) -> &str {
    value["name"].as_str().unwrap_or_default()
}

/// Events about objects of these names or made by them, in their order of time.
fn described_events(events: &[Value], names: &[String]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = Vec::new();
    for event in events {
        let object = &event["involvedObject"];
        if !names.iter().any(|own| own == name(object)) {
            continue;
        }
        let times = ["lastTimestamp", "eventTime", "firstTimestamp"].map(|key| text(&event[key]));
        let at = times.into_iter().find(|at| !at.is_empty()).unwrap_or_default();
        let mut line = format!("{at} {} {} ", text(&event["type"]), text(&event["reason"]));
        let _ = write!(line, "{} {}: {}", text(&object["kind"]), name(object), text(&event["message"]));
        lines.push(line.replace('\n', " "));
    }
    lines.sort_unstable();
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_run_stand_in_their_order() {
        let event = |at: &str, name: &str, reason: &str| {
            json!({"lastTimestamp": at, "type": "Normal", "reason": reason, "message": "two\nlines",
                "involvedObject": {"kind": "Pod", "name": name}})
        };
        let all = [
            event("2026-01-02T03:04:06Z", "a-0", "Started"),
            event("2026-01-02T03:04:05Z", "a-0", "Scheduled"),
            event("2026-01-02T03:04:05Z", "b-0", "Scheduled"),
        ];
        assert_eq!(
            described_events(&all, &["a-0".to_owned()]),
            "2026-01-02T03:04:05Z Normal Scheduled Pod a-0: two lines\n\
             2026-01-02T03:04:06Z Normal Started Pod a-0: two lines\n"
        );
    }

    #[test]
    fn secrets_of_objects_are_masked() {
        let mut object = json!({"kind": "Pod", "spec": {"containers": [{"name": "server", "env": [
            {"name": "MONGO_PASSWORD", "value": "hush"}, {"name": "LOG_LEVEL", "value": "3"},
        ]}]}, "data": {"requirepass": "hush", "port": "1"}});
        mask_secrets(&mut object);
        let text = object.to_string();
        assert!(
            !text.contains("hush") && text.contains("\"3\"") && text.contains("\"port\":\"1\""),
            "{text}"
        );
    }
}
