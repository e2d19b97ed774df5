//! Pods of a run's servers: where they are, and what has become of them.

use super::kubectl::Kubectl;
use super::kubelet::Placed;
use super::pods::{State, state};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Why the cluster may put another pod of its name into the place of one.
const REASONS: [&str; 4] = ["Evicted", "Preempted", "TaintManagerEviction", "NodeNotReady"];
/// How long the cluster may take to say what has become of a pod whose server does not answer any more.
const SAID: Duration = Duration::from_secs(4);

/// Pods of servers.
#[derive(Clone, Debug)]
pub(crate) struct ServerPods {
    kubectl: Kubectl,
    selector: String,
    /// Which pod of a name was started.
    identities: BTreeMap<String, String>,
}

impl ServerPods {
    /// Those that a run's label selects; none has started yet.
    pub fn new(kubectl: &Kubectl, run: &str) -> Self {
        let selector = format!("{run},app.kubernetes.io/component=server");
        ServerPods { kubectl: kubectl.clone(), selector, identities: BTreeMap::new() }
    }

    /// As the cluster describes them now.
    pub fn all(&self) -> Result<Vec<Value>, String> {
        let words = ["--request-timeout=5s", "get", "pods", "-l", &self.selector, "-o", "json"];
        let found = self.kubectl.json(&words)?;
        Ok(found["items"].as_array().cloned().unwrap_or_default())
    }

    /// Takes down which pods have started; those of workers are left out.
    pub fn started(&mut self, pods: &[Value]) {
        let own =
            pods.iter().filter(|pod| pod["metadata"]["labels"]["app.kubernetes.io/component"] == "server");
        self.identities = own.map(|pod| (name(pod).to_owned(), identity(pod))).collect();
    }

    /// Whether there are any to be looked after.
    pub fn is_nothing(&self) -> bool {
        self.identities.is_empty()
    }

    /// The node that each runs on.
    pub fn placed(&self) -> Result<Placed, String> {
        let mut placed = Placed::new();
        for pod in self.all()? {
            if let Some(node) = pod["spec"]["nodeName"].as_str() {
                placed.entry(node.to_owned()).or_default().push(name(&pod).to_owned());
            }
        }
        Ok(placed)
    }

    /// Why a server is no longer as it was, if so. A cluster that does not answer says nothing of it.
    pub fn died(&self) -> Option<String> {
        let pods = self.all().ok()?;
        let failed = pods.iter().find_map(|pod| match state(pod) {
            State::Failed(why) => Some(self.with_log(name(pod), &why)),
            _ => None,
        });
        failed.or_else(|| replaced(&self.identities, &pods).map(|name| self.why_replaced(name)))
    }

    /// Why a server failed while something else did: the cluster takes a moment to say so.
    pub fn cause(&self) -> Option<String> {
        let end = Instant::now() + SAID;
        loop {
            match self.died() {
                None if Instant::now() < end => std::thread::sleep(Duration::from_millis(300)),
                found => return found,
            }
        }
    }

    /// Why a pod is not there any more: the cluster may have put another of its name in its place.
    fn why_replaced(&self, name: &str) -> String {
        let told = REASONS.into_iter().find_map(|reason| {
            self.event(reason, |object| object == name).map(|why| format!("{reason}: {why}"))
        });
        let why = told.unwrap_or_else(|| "it was deleted by somebody".into());
        format!("pod {name} is not the one any more that was started: {why}")
    }

    /// What the cluster says of an object of this run, for this reason.
    pub fn event(&self, reason: &str, own: impl Fn(&str) -> bool) -> Option<String> {
        let field = format!("reason={reason}");
        let found = self.kubectl.json(&["get", "events", "--field-selector", &field, "-o", "json"]).ok()?;
        let named = |event: &&Value| own(event["involvedObject"]["name"].as_str().unwrap_or_default());
        let event = found["items"].as_array()?.iter().find(named)?;
        Some(event["message"].as_str().unwrap_or(reason).to_owned())
    }

    /// What is wrong with a pod, and how its log ends.
    pub fn with_log(&self, pod: &str, why: &str) -> String {
        let log = self.kubectl.run(&["logs", pod, "--tail=5"], None).unwrap_or_default();
        let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match lines.is_empty() {
            true => format!("pod {pod}: {why}"),
            false => format!("pod {pod}: {why}; its log ends: {}", lines.join(" | ")),
        }
    }
}

fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap_or_default()
}

/// What tells a pod from another of its name.
fn identity(pod: &Value) -> String {
    pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// The first of the pods that were started that is not there any more, is about to go, or whose name another has.
fn replaced<'a>(started: &'a BTreeMap<String, String>, now: &[Value]) -> Option<&'a str> {
    let there = |own: &String, uid: &String| {
        let is = |pod: &&Value| name(pod) == own && identity(pod) == *uid;
        now.iter().find(is).is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_null())
    };
    started.iter().find(|(name, uid)| !there(name, uid)).map(|(name, _)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_not_another_of_its_name() {
        let pod = |uid: &str| json!({"metadata": {"name": "a-0", "uid": uid}});
        let started = BTreeMap::from([("a-0".to_owned(), "one".to_owned())]);
        assert_eq!(replaced(&started, &[pod("one")]), None);
        assert_eq!(replaced(&started, &[pod("two")]), Some("a-0"));
        assert_eq!(replaced(&started, &[]), Some("a-0"));
        let mut going = pod("one");
        going["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
        assert_eq!(replaced(&started, &[going]), Some("a-0"));
    }

    #[test]
    fn pods_of_workers_are_none_of_servers() {
        let pod = |name: &str, component: &str| {
            let labels = json!({"app.kubernetes.io/component": component});
            json!({"metadata": {"name": name, "uid": "1", "labels": labels}})
        };
        let asked = serde_json::from_value(json!({})).unwrap();
        let mut pods = ServerPods::new(&Kubectl::new(&asked), "dyno.run=x");
        assert!(pods.is_nothing());
        pods.started(&[pod("w-0", "worker"), pod("s-0", "server")]);
        assert_eq!(pods.identities.keys().collect::<Vec<_>>(), ["s-0"]);
    }
}
