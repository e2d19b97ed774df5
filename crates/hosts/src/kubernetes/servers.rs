//! Pods of a run's servers: where they are, and what has become of them.

use crate::kubernetes::error::PodsError;
use crate::kubernetes::kubectl::Kubectl;
use crate::kubernetes::kubectl::KubectlError;
use crate::kubernetes::kubelet::Placed;
use crate::kubernetes::place::read_placement;
use crate::kubernetes::pods::{PodState, ends, failed_before, is_ready, state, was_killed};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Why the cluster may put another pod of its name into the place of one.
const REASONS: [&str; 4] = ["Evicted", "Preempted", "TaintManagerEviction", "NodeNotReady"];
/// Time that the cluster may take to say what has become of a pod whose server does not answer any more.
const SAID: Duration = Duration::from_secs(4);

/// Pods of servers.
#[derive(Clone, Debug)]
pub struct ServerPods {
    kubectl: Kubectl,
    selector: String,
    /// Which pod of a name was started.
    identities: BTreeMap<String, String>,
    /// Their names, server by server.
    names: Vec<String>,
    /// Number of times that the server of each pod was killed on purpose.
    killed: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl ServerPods {
    /// Creates the servers that a run's label selects; none has started yet.
    pub fn new(kubectl: &Kubectl, run: &str) -> Self {
        let selector = format!("{run},app.kubernetes.io/component=server");
        ServerPods {
            kubectl: kubectl.clone(),
            selector,
            identities: BTreeMap::new(),
            names: Vec::new(),
            killed: Arc::default(),
        }
    }

    /// The labels of the pods.
    pub(super) fn selector(&self) -> &str {
        &self.selector
    }

    /// Access to the cluster.
    pub fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// Names of the pods, server by server.
    pub fn pod_names(&self) -> &[String] {
        &self.names
    }

    /// Takes down which pod each server is in.
    pub fn note_names(&mut self, names: Vec<String>) {
        self.names = names;
    }

    /// The server of a pod is about to be killed on purpose: that it ends is no failure.
    pub fn expect_end(&self, pod: &str) {
        *self.killed.lock().unwrap_or_else(PoisonError::into_inner).entry(pod.to_owned()).or_default() += 1;
    }

    /// Returns whether the cluster has seen a server end as often as it was killed.
    pub fn has_ended(&self, pod: &str) -> Result<bool, KubectlError> {
        Ok(ends(&self.one(pod)?) >= self.kills(pod))
    }

    /// Returns whether a server that was killed runs again, and listens.
    pub fn is_back(&self, pod: &str) -> Result<bool, KubectlError> {
        let found = self.one(pod)?;
        Ok(is_ready(&found) && ends(&found) >= self.kills(pod))
    }

    /// A pod as the cluster describes it now.
    pub(super) fn one(&self, pod: &str) -> Result<Value, KubectlError> {
        self.kubectl.run_json(&["--request-timeout=5s", "get", "pod", pod, "-o", "json"])
    }

    /// Returns whether it is no failure that a pod's server has ended.
    fn is_spared(&self, pod: &Value) -> bool {
        was_killed(pod) && ends(pod) <= self.kills(name(pod))
    }

    fn kills(&self, pod: &str) -> u64 {
        self.killed.lock().unwrap_or_else(PoisonError::into_inner).get(pod).copied().unwrap_or(0)
    }

    /// As the cluster describes them now.
    pub fn all(&self) -> Result<Vec<Value>, KubectlError> {
        let words = ["--request-timeout=5s", "get", "pods", "-l", &self.selector, "-o", "json"];
        let found = self.kubectl.run_json(&words)?;
        Ok(found["items"].as_array().cloned().unwrap_or_default())
    }

    /// Takes down which pods have started; those of workers are left out.
    pub fn note_started(&mut self, pods: &[Value]) {
        let own =
            pods.iter().filter(|pod| pod["metadata"]["labels"]["app.kubernetes.io/component"] == "server");
        self.identities = own.map(|pod| (name(pod).to_owned(), identity(pod))).collect();
    }

    /// Returns whether there are any to be looked after.
    pub fn is_nothing(&self) -> bool {
        self.identities.is_empty()
    }

    /// The node that each runs on.
    pub fn node_of_each(&self) -> Result<Placed, KubectlError> {
        let mut placed = Placed::new();
        for pod in self.all()? {
            if let Some(node) = pod["spec"]["nodeName"].as_str() {
                placed.entry(node.to_owned()).or_default().push(name(&pod).to_owned());
            }
        }
        Ok(placed)
    }

    /// Why a server is no longer as it was, if so. A cluster that does not answer says nothing of it.
    pub fn describe_change(&self) -> Option<String> {
        let pods = self.all().ok()?;
        let failed = pods.iter().find_map(|pod| match state(pod) {
            // One that was killed on purpose waits for its next start, or has started.
            PodState::Failed(_) if self.is_spared(pod) => None,
            PodState::Failed(why) => Some(self.with_log(pod, why).to_string()),
            _ => None,
        });
        failed.or_else(|| replaced(&self.identities, &pods).map(|name| self.why_replaced(name)))
    }

    /// Why a server failed while something else did: the cluster takes a moment to say so.
    pub fn failure_cause(&self) -> Option<String> {
        let end = Instant::now() + SAID;
        loop {
            match self.describe_change() {
                None if Instant::now() < end => std::thread::sleep(Duration::from_millis(300)),
                found => return found,
            }
        }
    }

    /// Why a pod is not there any more: the cluster may have put another of its name in its place.
    fn why_replaced(&self, name: &str) -> String {
        let told = REASONS.into_iter().find_map(|reason| {
            self.find_event(reason, |object| object == name).map(|why| format!("{reason}: {why}"))
        });
        let why = told.unwrap_or_else(|| "it was deleted from outside".into());
        format!("pod {name} is not the one any more that was started: {why}")
    }

    /// Returns the event of an object of this run with this reason.
    pub fn find_event(&self, reason: &str, own: impl Fn(&str) -> bool) -> Option<String> {
        let field = format!("reason={reason}");
        let found =
            self.kubectl.run_json(&["get", "events", "--field-selector", &field, "-o", "json"]).ok()?;
        let named = |event: &&Value| own(event["involvedObject"]["name"].as_str().unwrap_or_default());
        let event = found["items"].as_array()?.iter().find(named)?;
        Some(event["message"].as_str().unwrap_or(reason).to_owned())
    }

    /// Where the process of a privileged pod really runs, by the beginning of its log.
    pub(super) fn placement_of(&self, pod: &str) -> BTreeMap<String, String> {
        let log = self.kubectl.run(&["logs", pod, "--limit-bytes=4096"], None);
        log.map(|log| read_placement(&log)).unwrap_or_default()
    }

    /// Returns the error of a pod, with the end of its log.
    pub fn with_log(&self, pod: &Value, why: String) -> PodsError {
        let mut words = vec!["logs", name(pod), "--tail=5"];
        words.extend(failed_before(pod).iter().flat_map(|(container, _)| ["-c", container]));
        let log = self.kubectl.run(&words, None).unwrap_or_default();
        let lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
        PodsError::Failed { pod: name(pod).to_owned(), why, log: lines.map(str::to_owned).collect() }
    }
}

fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns the identity of a pod, which tells it from another of its name.
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
    fn a_server_that_was_killed_on_purpose_has_not_failed() {
        let asked = serde_json::from_value(json!({})).unwrap();
        let pods = ServerPods::new(&Kubectl::new(&asked), "dyno.run=x");
        let pod = |state: Value, last: Value, restarts: u64| {
            let container =
                json!({"name": "server", "state": state, "lastState": last, "restartCount": restarts});
            json!({"metadata": {"name": "s-0"}, "status": {"phase": "Running", "containerStatuses": [container]}})
        };
        let ended = |code: u32, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason}});
        let spared = |pod: &Value| matches!(state(pod), PodState::Failed(_)) && pods.is_spared(pod);
        let runs = json!({"running": {}});
        let (gone, back) =
            (pod(ended(137, "Error"), json!({}), 0), pod(runs.clone(), ended(137, "Error"), 1));
        assert!(!spared(&gone) && !spared(&back), "another process has killed it");
        pods.expect_end("s-0");
        assert!(spared(&gone) && spared(&back));
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        assert!(spared(&pod(waits.clone(), ended(137, "Error"), 0)));
        // Ended once more than it was killed, by itself, or for want of memory.
        assert!(!spared(&pod(waits, ended(137, "Error"), 1)));
        assert!(!spared(&pod(ended(1, "Error"), json!({}), 0)));
        assert!(!spared(&pod(runs, ended(137, "OOMKilled"), 1)));
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
        pods.note_started(&[pod("w-0", "worker"), pod("s-0", "server")]);
        assert_eq!(pods.identities.keys().collect::<Vec<_>>(), ["s-0"]);
    }
}
