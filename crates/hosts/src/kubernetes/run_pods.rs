//! A run's objects in the cluster: made, awaited, looked after, removed.

use crate::kubernetes::collect::collect;
use crate::kubernetes::error::PodsError;
use crate::kubernetes::fit::no_room;
use crate::kubernetes::image_pins::ImagePins;
use crate::kubernetes::in_pod::{CONDUCTED_BY, OWNER};
use crate::kubernetes::kubectl::Kubectl;
use crate::kubernetes::kubectl::KubectlError;
use crate::kubernetes::kubelet::Kubelets;
use crate::kubernetes::manifests::{LOADERS, Manifests, RELAY_PORT, run_manifests};
use crate::kubernetes::persistent_pods;
use crate::kubernetes::persistent_pods::PersistentPods;
use crate::kubernetes::pods::{PodState, state};
use crate::kubernetes::servers::ServerPods;
use dyno_config::experiment::Experiment;
use dyno_config::experiment::kubernetes::Kubernetes;
use dyno_engine::Control;
use dyno_localhost::error::{Cause, LocalError};
use dyno_monitor::SampleSink;
use dyno_rundir::log::NOTICE;
use dyno_types::host_facts::NODE_DISK_USED;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Kinds of objects that a run has, but for secrets: who may find those by their labels may read all of a namespace.
const KINDS: &str = "job,statefulset,service,configmap";
/// Time that the cluster may take to remove them.
const REMOVAL: Duration = Duration::from_secs(240);
/// Pods that have not come to be after this long have been refused.
const REFUSED: Duration = Duration::from_secs(3);
/// A pod that is not ready after this long is told of, whatever it waits for.
const LONG: Duration = Duration::from_secs(20);
/// A registry that does not give an image by its digest for so long has it not.
const PULLED: Duration = Duration::from_secs(30);
/// Reasons for which a pod may wait in vain: no node, no image.
const MAY_LAST: [&str; 3] = ["Unschedulable", "ErrImagePull", "ImagePullBackOff"];

/// A pod of workers that is ready.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlacedWorker {
    /// Name.
    pub name: String,
    /// Its node; empty if the cluster does not say.
    pub node: String,
    /// Where it listens for the relay's hub.
    pub address: SocketAddr,
}

/// Objects of a run in a cluster. They are removed when this is dropped.
pub struct RunPods {
    /// Access to the cluster.
    pub kubectl: Kubectl,
    asked: Kubernetes,
    made: Manifests,
    images: ImagePins,
    /// Says what there is to remove, should this process be killed.
    journal: PathBuf,
    removed: bool,
    /// What the pods of the run know each other by.
    token: String,
    /// Pods of workers, in the order of their index.
    pub workers: Vec<PlacedWorker>,
    /// Addresses of the servers, instance by instance.
    pub servers: Vec<SocketAddr>,
    /// Pods of servers: of this run, or of another, which stay.
    pods: ServerPods,
}

impl RunPods {
    /// Creates everything and waits until all pods are ready. `journal` takes down what there is to remove, before it is there;
    /// `logs` is the folder for what pods have said that do not come to be.
    pub fn start(
        spec: &Experiment,
        asked: &Kubernetes,
        (name, token): (&str, &str),
        (journal, logs): (&Path, &Path),
        control: &Control,
    ) -> Result<RunPods, PodsError> {
        RunPods::begin(spec, asked, (name, token), ((journal, logs), false, None), control)
    }

    /// The same: with servers that do not belong to the workers' Job if they are `lasting`, or on servers that stand.
    pub(super) fn begin(
        spec: &Experiment,
        asked: &Kubernetes,
        names: (&str, &str),
        places: ((&Path, &Path), bool, Option<&PersistentPods>),
        control: &Control,
    ) -> Result<RunPods, PodsError> {
        loop {
            let journal = places.0.0;
            let mut images = ImagePins::of_experiment(journal)?;
            let refused = match RunPods::begin_on(spec, asked, names, places, images.clone(), control) {
                Err(PodsError::NotPulled(image)) => image,
                begun => return begun,
            };
            tracing::warn!(
                target: NOTICE,
                "{refused} could not be pulled by its digest: it is asked for by its name, and its digest is compared"
            );
            let unpinned = images.unpin(&refused);
            unpinned.map_err(|source| PodsError::Journal { path: journal.to_owned(), source })?;
        }
    }

    /// One attempt, with these images.
    fn begin_on(
        spec: &Experiment,
        asked: &Kubernetes,
        (name, token): (&str, &str),
        ((journal, logs), lasting, persistent): ((&Path, &Path), bool, Option<&PersistentPods>),
        images: ImagePins,
        control: &Control,
    ) -> Result<RunPods, PodsError> {
        let mut made = run_manifests(spec, asked, name, token)?;
        made.others.iter_mut().chain([&mut made.job]).for_each(|object| images.pin_images(object));
        let kubectl = Kubectl::new(asked);
        // Listing nodes takes a right on the whole cluster: without it the scheduler says what does not fit.
        if let Ok(found) = kubectl.run_json(&["--request-timeout=5s", "get", "--raw", "/api/v1/nodes"])
            && let Some(why) = no_room(spec, asked, found["items"].as_array().map_or(&[][..], Vec::as_slice))
        {
            return Err(PodsError::NoRoom(why));
        }
        let pods = ServerPods::new(
            &kubectl,
            persistent.map_or(made.selector.as_str(), |persistent| &persistent.selector),
        );
        let noted =
            JournalEntry { selector: made.selector.clone(), secrets: secrets(&made), asked: asked.into() };
        let failed = |source| PodsError::Journal { path: journal.to_owned(), source };
        let noted = serde_json::to_vec(&noted).map_err(|e| failed(e.into()))?;
        dyno_localhost::trusted::write(journal, &noted).map_err(failed)?;
        let mut own = RunPods {
            kubectl,
            asked: asked.clone(),
            made,
            images,
            journal: journal.to_owned(),
            removed: false,
            token: token.to_owned(),
            workers: Vec::new(),
            servers: Vec::new(),
            pods,
        };
        // Workers wait until servers have their nodes: they would take the room of servers that they must keep away from.
        let first = spec.server.as_ref().map_or(0, |server| server.processes() as usize);
        if first > 0 {
            let names = worker_jobs(&own.made.name, asked);
            let is_own = |job: &&mut Value| {
                job["kind"] == "Job" && names.iter().any(|name| job["metadata"]["name"] == name.as_str())
            };
            let jobs = own.made.others.iter_mut().chain([&mut own.made.job]).filter(is_own);
            for job in jobs.filter_map(|job| job["spec"].as_object_mut()) {
                job.insert("suspend".into(), true.into());
            }
        }
        // What a controller in the cluster has made belongs to its Job, and goes with it.
        if let Some((name, uid)) = std::env::var(OWNER).ok().as_deref().and_then(|own| own.split_once('/')) {
            let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid});
            own.made.job["metadata"]["ownerReferences"] = json!([owner]);
            // Servers that stay belong to another command, which removes them.
            let of_run = if lasting { &mut [][..] } else { own.made.others.as_mut_slice() };
            of_run
                .iter_mut()
                .chain([&mut own.made.job])
                .for_each(|object| label_all(object, CONDUCTED_BY, name));
        }
        // From here on an error drops what there is, and so removes it.
        let job = own.kubectl.create_objects(std::slice::from_ref(&own.made.job))?;
        let uid = job.first().and_then(|job| job["metadata"]["uid"].as_str()).unwrap_or_default().to_owned();
        let owner = json!([{
            "apiVersion": "batch/v1", "kind": "Job", "name": own.made.job["metadata"]["name"], "uid": uid,
        }]);
        for object in own.made.others.iter_mut().filter(|_| !lasting) {
            object["metadata"]["ownerReferences"] = owner.clone();
        }
        own.kubectl.create_objects(&own.made.others)?;
        own.wait(first, control).inspect_err(|error| {
            // What is begun once more has nothing to say.
            if !matches!(error, PodsError::NotPulled(_)) {
                own.collect(logs);
            }
        })?;
        if let Some(persistent) = persistent {
            let pods = own.pods.all()?;
            own.servers = persistent_pods::sockets(&pods, persistent)?;
            own.pods.note_started(&pods);
        }
        Ok(own)
    }

    fn all(&self) -> Result<Vec<Value>, KubectlError> {
        let found = self.kubectl.run_json(&["get", "pods", "-l", &self.made.selector, "-o", "json"])?;
        Ok(found["items"].as_array().cloned().unwrap_or_default())
    }

    /// Tells once of each pod that waits for what may never come, and of the others once that takes long.
    fn tell_waiting(&self, waiting: Option<&str>, waited: Duration, told: &mut BTreeSet<String>) {
        let Some(why) = waiting else { return };
        let may_last = MAY_LAST.iter().any(|reason| why.contains(reason));
        // The words that follow a reason count nodes, and change.
        let known = why.splitn(3, ':').take(2).collect::<Vec<_>>().join(":");
        if waited > if may_last { REFUSED } else { LONG } && told.insert(known) {
            let patience = Duration::from_nanos(self.asked.patience.0).as_secs();
            tracing::warn!(target: NOTICE, "{why}; waits for {patience} s (kubernetes.patience)");
        }
    }

    /// Waits until all pods are ready; lets workers begin once all `servers` have their nodes.
    fn wait(&mut self, servers: usize, control: &Control) -> Result<(), PodsError> {
        let mut suspended = servers > 0;
        let wanted = servers + (self.asked.worker_pods + self.asked.load_pods) as usize;
        let (begun, mut told) = (Instant::now(), BTreeSet::new());
        let patience = Duration::from_nanos(self.asked.patience.0);
        loop {
            let pods = self.all()?;
            let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let mut waiting = None;
            for pod in &pods {
                if let Some(image) = self.images.not_pulled(pod, begun.elapsed() > PULLED.min(patience / 2)) {
                    return Err(PodsError::NotPulled(image));
                }
                match state(pod) {
                    PodState::Ready => {}
                    PodState::Failed(why) => return Err(self.pods.with_log(pod, why)),
                    PodState::Waiting(why) => waiting = waiting.or(Some(format!("pod {}: {why}", name(pod)))),
                }
            }
            if pods.len() == wanted && waiting.is_none() {
                return self.take(&pods);
            }
            if suspended && pods.iter().filter(|pod| pod["spec"]["nodeName"].is_string()).count() >= servers {
                self.release_workers()?;
                suspended = false;
            }
            if pods.len() < wanted && begun.elapsed() > REFUSED {
                if let Some(why) = self.refused() {
                    return Err(PodsError::Refused(why));
                }
                waiting = waiting.or_else(|| Some(format!("{} of {wanted} pods are there", pods.len())));
            }
            self.tell_waiting(waiting.as_deref(), begun.elapsed(), &mut told);
            if control.is_stopping() {
                return Err(PodsError::Interrupted);
            }
            if begun.elapsed() > patience {
                let why = waiting.unwrap_or_else(|| "no pod is there".into());
                let why = self.unprovisioned().map_or(why.clone(), |more| format!("{why}; {more}"));
                return Err(PodsError::Late { waited: begun.elapsed(), why });
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Lets the Jobs of workers begin.
    fn release_workers(&self) -> Result<(), KubectlError> {
        for name in worker_jobs(&self.made.name, &self.asked) {
            let words = ["patch", "job", &name, "--type=merge", "--patch", r#"{"spec":{"suspend":false}}"#];
            self.kubectl.run(&words, None)?;
        }
        Ok(())
    }

    /// Why the cluster makes no pods: a quota, a policy.
    fn refused(&self) -> Option<String> {
        let jobs = ["w", LOADERS].map(|suffix| format!("{}-{suffix}", self.made.name));
        self.pods.find_event("FailedCreate", |object| {
            jobs.iter().chain(&self.made.servers).any(|name| name == object)
        })
    }

    /// Why a claim has no volume: its class does not exist, or makes none.
    fn unprovisioned(&self) -> Option<String> {
        let own = |object: &str| self.made.servers.iter().any(|name| object.contains(name.as_str()));
        self.pods.find_event("ProvisioningFailed", own).map(|why| format!("no volume is made for it: {why}"))
    }

    /// Takes down where everything is: workers that load come first.
    fn take(&mut self, pods: &[Value]) -> Result<(), PodsError> {
        let noted = self.images.note_images(pods);
        let found = noted.map_err(|source| PodsError::Journal { path: self.journal.clone(), source })?;
        if !found.changed.is_empty() {
            return Err(PodsError::OtherImages(found.changed.join("; ")));
        }
        for message in found.warnings {
            tracing::warn!(target: NOTICE, "{message}");
            self.made.warnings.push(message);
        }
        let label =
            |pod: &Value, name: &str| pod["metadata"]["labels"][name].as_str().unwrap_or_default().to_owned();
        let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut workers: Vec<(bool, usize, PlacedWorker)> = Vec::new();
        let loaders = format!("{}-{LOADERS}", self.made.name);
        let mut servers: Vec<((usize, usize, SocketAddr), String)> = Vec::new();
        for pod in pods {
            let address: IpAddr = pod["status"]["podIP"]
                .as_str()
                .and_then(|ip| ip.parse().ok())
                .ok_or_else(|| PodsError::NoAddress(name(pod)))?;
            if label(pod, "app.kubernetes.io/component") == "worker" {
                let index =
                    label(pod, "batch.kubernetes.io/job-completion-index").parse().unwrap_or(workers.len());
                // Those that load have the first numbers.
                let measures = label(pod, "batch.kubernetes.io/job-name") != loaders;
                let (node, address) =
                    (pod["spec"]["nodeName"].as_str(), SocketAddr::new(address, RELAY_PORT));
                let node = node.unwrap_or_default().to_owned();
                workers.push((measures, index, PlacedWorker { name: name(pod), node, address }));
                continue;
            }
            servers.push((persistent_pods::socket(pod, &self.made.servers, self.made.port)?, name(pod)));
        }
        self.pods.note_started(pods);
        workers.sort_unstable();
        servers.sort_unstable();
        self.workers = workers.into_iter().map(|(_, _, worker)| worker).collect();
        self.servers = servers.iter().map(|((_, _, socket), _)| *socket).collect();
        self.pods.note_names(servers.into_iter().map(|(_, name)| name).collect());
        Ok(())
    }

    /// The token that the run's pods know each other by.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Has the kubelets tell of the servers' pods. None, where there are no servers of ours.
    pub fn watch_pods(&self, sink: Arc<Mutex<dyn SampleSink>>) -> Result<Option<Kubelets>, PodsError> {
        let placed = self.pods.node_of_each()?;
        let watched = (!placed.is_empty()).then(|| Kubelets::watch_nodes(self.kubectl.clone(), placed, sink));
        watched.transpose().map_err(PodsError::Thread)
    }

    /// Pods of the servers, to be looked after.
    pub fn server_pods(&self) -> &ServerPods {
        &self.pods
    }

    /// Returns the node of each pod of workers, and the pods of servers by node. A cluster that does not answer says nothing.
    pub fn placed_nodes(&self) -> (BTreeMap<String, String>, BTreeMap<String, Vec<String>>) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let node = |pod: &Value| Some((text(&pod["metadata"]["name"])?, text(&pod["spec"]["nodeName"])?));
        let is_worker = |(name, _): &(String, String)| self.workers.iter().any(|worker| worker.name == *name);
        let workers = self.all().unwrap_or_default().iter().filter_map(node).filter(is_worker).collect();
        (workers, self.pods.node_of_each().unwrap_or_default())
    }

    /// Nodes, images, requests, limits and objects, for the record.
    pub fn pod_facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        for (number, warning) in self.made.warnings.iter().enumerate() {
            facts.insert(format!("kubernetes.warning.{}", number + 1), warning.clone());
        }
        let mut pods = self.all().unwrap_or_default();
        let component = |pod: &Value| pod["metadata"]["labels"]["app.kubernetes.io/component"].clone();
        // Servers of an earlier run have that run's label.
        if !pods.iter().any(|pod| component(pod) == "server") {
            pods.extend(self.pods.all().unwrap_or_default());
        }
        for pod in pods {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let mut put = |key: &str, value: Option<&str>| {
                facts.extend(value.map(|value| (format!("pod.{name}.{key}"), value.to_owned())));
            };
            put("node", pod["spec"]["nodeName"].as_str());
            // That of a digest is a number for the runtime, and a name in the experiment.
            let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
            let image = Some(self.images.name_of(image)).filter(|name| *name != image);
            put("image", image.or_else(|| pod["status"]["containerStatuses"][0]["image"].as_str()));
            put("image_id", pod["status"]["containerStatuses"][0]["imageID"].as_str());
            put("quality_of_service", pod["status"]["qosClass"].as_str());
            let component = component(&pod);
            put("component", component.as_str());
            let server = component == "server";
            if server && self.asked.servers.privileged || !server && self.asked.workers.privileged {
                for (key, value) in self.pods.placement_of(&name) {
                    put(&key, Some(&value));
                }
            }
            let resources = &pod["spec"]["containers"][0]["resources"];
            for side in ["requests", "limits"] {
                for (what, quantity) in resources[side].as_object().into_iter().flatten() {
                    put(&format!("{side}_{what}"), quantity.as_str());
                }
            }
        }
        let nodes: BTreeSet<String> =
            facts.iter().filter(|(key, _)| key.ends_with(".node")).map(|(_, node)| node.clone()).collect();
        facts.extend(self.nodes(&nodes));
        facts
    }

    /// Returns the cluster's facts about nodes. They take a right on the whole cluster: without it they are unknown.
    fn nodes(&self, names: &BTreeSet<String>) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        let mut ask_kubelets = true;
        for name in names {
            let path = format!("/api/v1/nodes/{name}");
            let Ok(node) = self.kubectl.run_json(&["--request-timeout=5s", "get", "--raw", &path]) else {
                break;
            };
            let (status, info) = (&node["status"], &node["status"]["nodeInfo"]);
            for (key, value) in [
                ("memory", &status["capacity"]["memory"]),
                ("cores", &status["capacity"]["cpu"]),
                ("kernel", &info["kernelVersion"]),
                ("kubelet", &info["kubeletVersion"]),
            ] {
                facts.extend(value.as_str().map(|value| (format!("node.{name}.{key}"), value.to_owned())));
            }
            // Kubelets take another right, which is the same for all of them.
            if ask_kubelets {
                let path = format!("{path}/proxy/stats/summary");
                let summary = self.kubectl.run_json(&["--request-timeout=5s", "get", "--raw", &path]);
                ask_kubelets = summary.is_ok();
                let used = summary.ok().as_ref().and_then(disk_used);
                facts.extend(used.map(|bytes| (format!("node.{name}.{NODE_DISK_USED}"), bytes.to_string())));
            }
        }
        facts
    }

    /// Keeps what the pods have said, the events about them and the objects in `folder`. What cannot be had is missing there.
    pub fn collect(&self, folder: &Path) {
        let servers = self.pods.selector();
        let selectors = match servers.starts_with(&self.made.selector) {
            true => vec![self.made.selector.as_str()],
            false => vec![self.made.selector.as_str(), servers],
        };
        if let Err(error) = collect(&self.kubectl, &selectors, folder) {
            tracing::warn!(%error, "what the pods have said could not be kept");
        }
    }

    /// Removes the workers and leaves the servers; what the journal says is for the command that removes those.
    pub fn leave_servers(mut self) -> Result<PersistentPods, PodsError> {
        let (selector, sets) = (self.made.selector.clone(), self.made.servers.clone());
        remove(
            &self.kubectl,
            &format!("{selector},app.kubernetes.io/component=worker"),
            &secrets(&self.made),
        )?;
        self.removed = true;
        Ok(PersistentPods { selector, sets, port: self.made.port })
    }

    /// Removes everything and waits until it is gone.
    pub fn remove_all(mut self) -> Result<(), PodsError> {
        self.removed = true;
        self.clear()
    }

    fn clear(&self) -> Result<(), PodsError> {
        remove(&self.kubectl, &self.made.selector, &secrets(&self.made))?;
        // What is gone needs no journal.
        std::fs::remove_file(&self.journal)
            .map_err(|source| PodsError::Journal { path: self.journal.clone(), source })
    }
}

impl Drop for RunPods {
    fn drop(&mut self) {
        if !self.removed {
            // Leftovers are deleted with the Job, whose pods exit when the controller is silent.
            let _ = self.clear();
        }
    }
}

/// Gives an object, and the pods that are made of it, a label.
fn label_all(object: &mut Value, label: &str, value: &str) {
    object["metadata"]["labels"][label] = value.into();
    if let Some(metadata) = object.pointer_mut("/spec/template/metadata") {
        metadata["labels"][label] = value.into();
    }
}

/// Names of the Jobs of workers that a run has.
fn worker_jobs(run: &str, asked: &Kubernetes) -> Vec<String> {
    let loaders = (asked.load_pods > 0).then_some(LOADERS);
    ["w"].into_iter().chain(loaders).map(|suffix| format!("{run}-{suffix}")).collect()
}

/// Reads from a kubelet's summary how many bytes of its node's filesystem are in use.
fn disk_used(summary: &Value) -> Option<u64> {
    summary["node"]["fs"]["usedBytes"].as_u64()
}

/// Names of a run's secrets.
fn secrets(made: &Manifests) -> Vec<String> {
    let secrets = made.others.iter().filter(|object| object["kind"] == "Secret");
    secrets.filter_map(|secret| secret["metadata"]["name"].as_str()).map(str::to_owned).collect()
}

/// Returns whether an object has the labels of a selector: one of the same name may belong to another program.
fn is_selected(object: &Value, selector: &str) -> bool {
    let label = |name: &str| object["metadata"]["labels"][name].as_str();
    selector.split(',').all(|one| one.split_once('=').is_some_and(|(name, value)| label(name) == Some(value)))
}

/// Removes all objects that a selector finds, and these secrets where it does, and waits until they and their pods are gone.
pub(super) fn remove(kubectl: &Kubectl, selector: &str, secrets: &[String]) -> Result<(), PodsError> {
    let words =
        ["delete", KINDS, "-l", selector, "--ignore-not-found", "--cascade=foreground", "--wait=false"];
    kubectl.run(&words, None)?;
    for name in secrets {
        let found = kubectl.run(&["get", "secret", "--ignore-not-found", "-o", "json", "--", name], None)?;
        if serde_json::from_str(&found).is_ok_and(|secret| is_selected(&secret, selector)) {
            kubectl.run(&["delete", "secret", "--ignore-not-found", "--wait=false", "--", name], None)?;
        }
    }
    removed(kubectl, selector, REMOVAL)
}

/// Waits until objects that have been deleted are gone, at most for `patience`.
pub(super) fn removed(kubectl: &Kubectl, selector: &str, patience: Duration) -> Result<(), PodsError> {
    let begun = Instant::now();
    loop {
        let left = kubectl.run(&["get", "pods,job,statefulset", "-l", selector, "-o", "name"], None)?;
        if left.trim().is_empty() {
            return Ok(());
        }
        if begun.elapsed() > patience {
            return Err(PodsError::Left { waited: patience, objects: left.trim().replace('\n', ", ") });
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Content of a journal.
#[derive(Serialize, Deserialize)]
struct JournalEntry {
    /// The label of the run.
    selector: String,
    /// Names of its secrets.
    #[serde(default)]
    secrets: Vec<String>,
    /// Which of the experiment's clusters it is in.
    #[serde(default)]
    asked: Where,
}

/// A cluster, by what tells it from the experiment's others. Program and credentials are compared and never used.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Where {
    #[serde(skip_serializing_if = "Option::is_none")]
    kubectl: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kubeconfig: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
}

impl From<&Kubernetes> for Where {
    fn from(asked: &Kubernetes) -> Self {
        Where {
            kubectl: asked.kubectl.clone(),
            kubeconfig: asked.kubeconfig.clone(),
            context: asked.context.clone(),
            namespace: asked.namespace.clone(),
        }
    }
}

/// Returns whether a selector is one that dyno makes.
pub(super) fn is_selector(text: &str) -> bool {
    let name = text.strip_prefix("dyno.run=").unwrap_or_default();
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Removes what a journal says that a controller which was killed has left; what it was. The cluster must be one of those that
/// the experiment's text names: program, credentials, context and namespace are those of the text, relative paths from `cwd`.
pub fn clean_leftovers(journal: &Path, known: &[Kubernetes], cwd: &Path) -> Result<String, LocalError> {
    let failed = |why: Cause| LocalError::failed_step(journal.display(), why);
    let untrusted =
        |why: &str| LocalError::Untrusted(format!("{}: {why}; nothing of it is done", journal.display()));
    let Some(file) = dyno_localhost::trusted::open(journal, OpenOptions::new().read(true))? else {
        return Err(failed("is gone".into()));
    };
    let noted: JournalEntry = serde_json::from_reader(file).map_err(|e| untrusted(&e.to_string()))?;
    if !is_selector(&noted.selector) {
        return Err(untrusted("its selector is none that dyno writes"));
    }
    let Some(own) = known.iter().find(|known| noted.asked == Where::from(*known)) else {
        return Err(untrusted(
            "names a program, a kubeconfig, a context or a namespace that experiment.yaml does not",
        ));
    };
    let from = |path: &String| cwd.join(path).display().to_string();
    let mut own = own.clone();
    own.kubeconfig = own.kubeconfig.as_ref().map(from);
    // A name without a folder is looked for on PATH.
    own.kubectl = own.kubectl.map(|program| if program.contains('/') { from(&program) } else { program });
    remove(&Kubectl::new(&own), &noted.selector, &noted.secrets).map_err(|e| failed(e.into()))?;
    std::fs::remove_file(journal).map_err(|e| failed(e.into()))?;
    Ok(noted.selector)
}

/// Runs in a worker's pod: waits until no controller has spoken to it for `patience`, then ends well. `spoken_to` looks.
pub fn wait_for_words(patience: Duration, spoken_to: &dyn Fn() -> bool, stop: &dyn Fn() -> bool) {
    let mut last = Instant::now();
    let mut turns = 0;
    while last.elapsed() < patience && !stop() {
        // Looking costs more than waiting, and load is applied beside it.
        if turns % 10 == 0 && spoken_to() {
            last = Instant::now();
        }
        turns += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
}

impl RunPods {
    /// Servers that may stay, and workers.
    pub fn start_lasting(
        spec: &Experiment,
        asked: &Kubernetes,
        name: (&str, &str),
        files: (&Path, &Path),
        control: &Control,
    ) -> Result<RunPods, PodsError> {
        RunPods::begin(spec, asked, name, (files, true, None), control)
    }

    /// Workers on servers that stand.
    pub fn start_on(
        spec: &Experiment,
        asked: &Kubernetes,
        name: (&str, &str),
        (files, persistent): ((&Path, &Path), &PersistentPods),
        control: &Control,
    ) -> Result<RunPods, PodsError> {
        let workers = Experiment { server: None, ..spec.clone() };
        RunPods::begin(&workers, asked, name, (files, false, Some(persistent)), control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// A kubectl that notes what it is told; secret `a` is of the run, `b` is of another program, and `c` is gone.
    const KUBECTL: &str = r#"#!/bin/sh
echo "$*" >>"$0.told"
case "$*" in
  *"get secret"*" a") echo '{"metadata": {"labels": {"dyno.run": "d1", "app.kubernetes.io/component": "worker"}}}' ;;
  *"get secret"*" b") echo '{"metadata": {"labels": {"dyno.run": "d2"}}}' ;;
esac
"#;

    #[test]
    fn a_kubelet_tells_of_its_nodes_filesystem() {
        let summary =
            json!({"node": {"nodeName": "n", "fs": {"capacityBytes": 9, "usedBytes": 227_645_849_600_u64}}});
        assert_eq!(disk_used(&summary), Some(227_645_849_600));
        assert_eq!(disk_used(&json!({"node": {"nodeName": "n"}})), None);
    }

    #[test]
    fn secrets_are_removed_by_name_and_label_and_never_listed() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("kubectl");
        std::fs::write(&program, KUBECTL).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let asked = Kubernetes { kubectl: Some(program.display().to_string()), ..Kubernetes::default() };
        let names = ["a", "b", "c"].map(String::from);
        let told = |selector: &str| {
            let _ = std::fs::remove_file(folder.path().join("kubectl.told"));
            remove(&Kubectl::new(&asked), selector, &names).unwrap();
            std::fs::read_to_string(folder.path().join("kubectl.told")).unwrap()
        };
        let all = told("dyno.run=d1");
        let deleted: Vec<&str> = all.lines().filter(|line| line.contains("delete secret")).collect();
        assert!(deleted.len() == 1 && deleted[0].ends_with("-- a"), "{all}");
        assert!(!all.lines().any(|line| line.contains("secret") && line.contains("-l ")), "{all}");
        assert!(told("dyno.run=d1,app.kubernetes.io/component=worker").contains("delete secret"));
        assert!(!told("dyno.run=d1,app.kubernetes.io/component=server").contains("delete secret"));
    }
}
