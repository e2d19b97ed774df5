//! CPU and memory of server pods, as the kubelets of their nodes know them (the summary API, which cAdvisor feeds).
//!
//! A kubelet looks at its containers every 10 to 15 seconds; its figures carry their own times, which are what is recorded.
//! Asking needs the right to `get nodes/proxy`, which not every user has: without it that is said once, and nothing is recorded.

use crate::kubernetes::kubectl::Kubectl;
use crate::kubernetes::kubectl::KubectlError;
use dyno_monitor::{Sample, SampleSink, unix_ns};
use dyno_session::watch::SlowSource;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Time between two rounds; a kubelet has nothing new much sooner.
const EVERY: Duration = Duration::from_secs(10);
/// The same for each node that is asked: a kubectl costs some 0.1 s of CPU time, so that this holds all of them below a few
/// per cent of a core.
const FOR_EACH_NODE: Duration = Duration::from_secs(3);
/// Time that the end of a phase waits for what kubelets say last.
const LAST: Duration = Duration::from_secs(5);
/// Figures older than this are not of now: a kubelet looks every 10 to 15 seconds.
const STALE: Duration = Duration::from_secs(60);
/// Limit of a node's clock being ahead.
const AHEAD: Duration = Duration::from_secs(5);
/// Source name of its events.
const SOURCE: &str = "kubelet";

/// Why there are no figures of a node's pods.
#[derive(Debug, thiserror::Error)]
enum KubeletError {
    /// It was not asked, or has not answered.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// The newest figures are of so many seconds ago.
    #[error(
        "the newest figures are of {late_s:.0} s ago by this host's clock, and are left out: the clocks differ, or the kubelet \
         does not look any more"
    )]
    OutOfTime { late_s: f64 },
}

/// Pods by the node that runs them.
pub(crate) type Placed = BTreeMap<String, Vec<String>>;

/// Kubelets that are being asked; ends with this.
pub struct Kubelets {
    /// Who hangs up has heard that a round is over.
    rounds: Option<Sender<Sender<()>>>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Kubelets {
    /// Begins to ask the nodes of `placed` for their pods and hands what they say to `sink`, as sources called `server-POD`.
    pub fn watch_nodes(
        kubectl: Kubectl,
        placed: Placed,
        sink: Arc<Mutex<dyn SampleSink>>,
    ) -> std::io::Result<Kubelets> {
        let (rounds, wanted) = channel::<Sender<()>>();
        let every = EVERY.max(FOR_EACH_NODE * placed.len() as u32);
        let ending = Arc::new(AtomicBool::new(false));
        let mut asking = Asking {
            kubectl,
            placed,
            sink,
            ending: ending.clone(),
            newest: BTreeMap::new(),
            failing: BTreeSet::new(),
        };
        let thread = std::thread::Builder::new().name("dyno-kubelets".into()).spawn(move || {
            let mut heard: Option<Sender<()>> = None;
            while asking.round() {
                drop(heard.take());
                heard = match wanted.recv_timeout(every) {
                    Ok(heard) => Some(heard),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                };
            }
        })?;
        Ok(Kubelets { rounds: Some(rounds), ending, thread: Some(thread) })
    }
}

impl SlowSource for Kubelets {
    fn ask_now(&self) {
        let (heard, over) = channel();
        if self.rounds.as_ref().is_some_and(|rounds| rounds.send(heard).is_ok()) {
            // Hung up, or too late: what has not come is not there.
            let _ = over.recv_timeout(LAST);
        }
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        drop(self.rounds.take());
        // A thread that panicked has nothing more to say.
        self.thread.take().map(JoinHandle::join);
    }
}

struct Asking {
    kubectl: Kubectl,
    placed: Placed,
    sink: Arc<Mutex<dyn SampleSink>>,
    ending: Arc<AtomicBool>,
    /// Time of the newest figures of each pod, nanoseconds since 1970.
    newest: BTreeMap<String, u64>,
    /// Nodes that do not answer, or whose clock is another.
    failing: BTreeSet<String>,
}

impl Asking {
    /// Returns whether the cluster says that this account may not ask nodes.
    fn is_refused(&self) -> bool {
        let asked = json!({"verb": "get", "resource": "nodes", "subresource": "proxy"});
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        });
        let told = self.kubectl.create_objects(&[review]).unwrap_or_default();
        told.iter().any(|review| review["status"]["allowed"] == false)
    }

    /// Asks every node once; whether it is worth asking again.
    fn round(&mut self) -> bool {
        for (node, pods) in &self.placed {
            if self.ending.load(Ordering::Relaxed) {
                return false;
            }
            let path = format!("/api/v1/nodes/{node}/proxy/stats/summary?only_cpu_and_memory=true");
            let answer = self.kubectl.run_json(&["--request-timeout=5s", "get", "--raw", &path]);
            let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
            let told = answer.map_err(KubeletError::from).and_then(|summary| {
                let all = read(&summary, pods);
                let newest = all.iter().map(|(_, at_ns, _)| *at_ns).max();
                newest.map_or(Ok(()), |at_ns| on_time(at_ns, unix_ns(SystemTime::now()))).map(|()| all)
            });
            match told {
                Err(KubeletError::Kubectl(why)) if self.is_refused() => {
                    let right = "server pods are not watched: it takes the right to get nodes/proxy (rbac-kubelet.yaml)";
                    sink.event(SOURCE, &format!("{right}: {why}"));
                    return false;
                }
                Err(why) => {
                    if self.failing.insert(node.clone()) {
                        sink.event(SOURCE, &format!("{node}: {why}"));
                    }
                }
                Ok(all) => {
                    if self.failing.remove(node) {
                        sink.event(SOURCE, &format!("{node} answers again"));
                    }
                    for (pod, at_ns, sample) in all {
                        let newest = self.newest.entry(pod.clone()).or_default();
                        if at_ns > *newest {
                            *newest = at_ns;
                            sink.sample(&format!("server-{pod}"), at_ns, Some(&sample));
                        }
                    }
                }
            }
        }
        true
    }
}

/// Returns whether figures of `at_ns` can be of now, by this host's clock: both are nanoseconds since 1970. Times of
/// a clock that is another would be taken for other seconds of the run.
fn on_time(at_ns: u64, now_ns: u64) -> Result<(), KubeletError> {
    let late_s = (now_ns as f64 - at_ns as f64) / 1e9;
    match (-AHEAD.as_secs_f64()..STALE.as_secs_f64()).contains(&late_s) {
        true => Ok(()),
        false => Err(KubeletError::OutOfTime { late_s }),
    }
}

/// Figures of pods from a kubelet's summary: pod, time (nanoseconds since 1970), and the sums over its containers. A pod
/// without a time of its CPU's figure is left out.
fn read(summary: &Value, pods: &[String]) -> Vec<(String, u64, Sample)> {
    let all = summary["pods"].as_array().into_iter().flatten();
    let wanted = all.filter_map(|pod| {
        let name = pod["podRef"]["name"].as_str()?;
        pods.iter().any(|pod| pod == name).then_some((name, pod))
    });
    wanted
        .filter_map(|(name, pod)| {
            let containers = pod["containers"].as_array()?;
            let sum = |part: &str, figure: &str| {
                let values = containers.iter().map(|one| one[part][figure].as_f64());
                values.sum::<Option<f64>>().filter(|_| !containers.is_empty())
            };
            let time = |one: &Value| -> Option<SystemTime> {
                Some(one["cpu"]["time"].as_str()?.parse::<jiff::Timestamp>().ok()?.into())
            };
            let at = containers.iter().filter_map(time).max()?;
            let mut sample = Sample::default();
            if let Some(ns) = sum("cpu", "usageCoreNanoSeconds") {
                sample.add_counter("cgroup.cpu_s", ns / 1e9);
            }
            for (figure, level) in [
                ("usageBytes", "cgroup.memory_bytes"),
                ("workingSetBytes", "cgroup.memory_working_set_bytes"),
                ("rssBytes", "cgroup.memory_anonymous_bytes"),
            ] {
                if let Some(bytes) = sum("memory", figure) {
                    sample.add_gauge(level, bytes);
                }
            }
            if let Some(faults) = sum("memory", "majorPageFaults") {
                sample.add_counter("cgroup.major_faults", faults);
            }
            Some((name.to_owned(), unix_ns(at), sample))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn summary(ns: u64) -> Value {
        let container = |ns: u64| {
            json!({
                "name": "server", "startTime": "2026-01-02T03:00:00Z",
                "cpu": {"time": "2026-01-02T03:04:05Z", "usageNanoCores": 5, "usageCoreNanoSeconds": ns},
                "memory": {
                    "time": "2026-01-02T03:04:05Z", "usageBytes": 4096, "workingSetBytes": 2048, "rssBytes": 1024,
                    "pageFaults": 9, "majorPageFaults": 3,
                },
            })
        };
        json!({"node": {"nodeName": "n"}, "pods": [
            {"podRef": {"name": "other", "namespace": "x"}, "containers": [container(1)]},
            {"podRef": {"name": "redis-0", "namespace": "x"}, "containers": [container(ns), container(500_000_000)]},
            {"podRef": {"name": "redis-1", "namespace": "x"}, "containers": []},
            {"podRef": {"name": "redis-2", "namespace": "x"}, "containers": [{"name": "server", "cpu": {}}]},
        ]})
    }

    #[test]
    fn what_a_kubelet_says_of_pods() {
        let pods: Vec<String> = ["redis-0", "redis-1", "redis-2"].map(String::from).into();
        let found = read(&summary(2_500_000_000), &pods);
        let [(name, at, sample)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((name.as_str(), *at), ("redis-0", 1_767_323_045_000_000_000));
        assert_eq!(sample.get("cgroup.cpu_s"), Some(3.0));
        assert_eq!(sample.get("cgroup.memory_bytes"), Some(8_192.0));
        assert_eq!(sample.get("cgroup.memory_working_set_bytes"), Some(4_096.0));
        assert_eq!(sample.get("cgroup.major_faults"), Some(6.0));
        assert!(read(&json!({"pods": "none"}), &pods).is_empty());
    }

    #[test]
    fn figures_of_another_clock_are_left_out() {
        let s = |seconds: u64| seconds * 1_000_000_000;
        assert!(on_time(s(1_000), s(1_020)).is_ok() && on_time(s(1_004), s(1_000)).is_ok());
        assert!(on_time(s(1_000), s(1_120)).unwrap_err().to_string().contains("of 120 s ago"));
        assert!(on_time(s(1_120), s(1_000)).is_err());
    }
}
