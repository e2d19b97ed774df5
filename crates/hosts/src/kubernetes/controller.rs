//! A controller that stays: a Job whose pod conducts an experiment, so that no other host has to stay awake.
//!
//! The experiment's text goes into a Secret, since it may hold passwords; results lie on a volume, or in an object store whose
//! login is in a Secret of the user's. A pod that is killed or driven from its node is made again and goes on by the journal; an
//! exit code of dyno's own but that of a signal is an answer, and ends the Job.

use crate::kubernetes::error::PodsError;
use crate::kubernetes::in_pod::{CONDUCTED_BY, OWNER};
use crate::kubernetes::kubectl::{Kubectl, KubectlError};
use crate::kubernetes::manifests::pod::{DYNO, container_security, labels, pod, pull, resources};
use crate::kubernetes::pods::{PodState, state};
use crate::kubernetes::run_pods::{is_selector, remove, removed};
use crate::kubernetes::servers::ServerPods;
use dyno_config::experiment::kubernetes::{Kubernetes, Pods};
use dyno_engine::Control;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Where the pod finds the experiment.
pub const EXPERIMENT: &str = "/experiment";
/// Where the pod finds the login of the object store, a file for each key of its Secret: the kubelet renews them.
const STORE_LOGIN: &str = "/store";
/// Where the volume of results is mounted.
const WORK: &str = "/work";
/// Keys that the Secret of an object store must have.
pub const STORE_KEYS: [&str; 2] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
/// Name of the container.
const CONTAINER: &str = "dyno";
/// Annotation of a controller's Job: one of its pods has reached the object store.
const STORE_REACHED: &str = "dyno.store-reached";
/// Size of a claim that is made.
const CLAIM_BYTES: u64 = 1 << 30;
/// Pods that may be killed before the Job gives up.
const BACKOFF_LIMIT: u32 = 40;
/// Time that a reader of a volume stays without being asked.
const READER_S: u32 = 3_600;
/// Longest text of an experiment: a Secret holds no more than 1 MiB.
pub const TEXT_LIMIT: usize = 900 << 10;
/// Time that the pod may take to remove what its run has made.
const GRACE_S: u32 = 120;
/// Time that the cluster may take to remove the controller's own objects after that.
const REMOVAL: Duration = Duration::from_secs(240);

/// What a controller's experiment consists of.
pub struct Conducted<'a> {
    /// Text of the experiment.
    pub text: &'a str,
    /// `--set KEY=VALUE`, as they were typed.
    pub sets: &'a [String],
}

/// A controller that was started, as the directory on the host that started it holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterController {
    /// Version of this file.
    pub version: u32,
    /// Name of its Job and Secret.
    pub name: String,
    /// Claim of the volume with the results; none where they are in an object store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// True if the claim was made for this run.
    pub own_claim: bool,
    /// The way to the cluster, and who runs in pods.
    pub kubernetes: Kubernetes,
    /// Longest time that an object store which was reached may be out of reach, seconds.
    #[serde(default)]
    pub outage_s: u64,
    /// True once the run has ended and all of it has been fetched.
    #[serde(default)]
    pub fetched: bool,
}

/// What has become of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerState {
    /// Its pod is not there yet, or does not run yet; why.
    Waiting(String),
    /// It is at work: the pod, its node, and how often a pod was made anew.
    Running {
        /// Name.
        pod: String,
        /// Name.
        node: String,
        /// Pods that ended before it.
        restarts: usize,
    },
    /// It has ended with this exit code; none where the cluster has given up.
    Ended(Option<i32>),
    /// There is no such Job.
    Gone,
}

/// Why a controller was not started, and what could not be removed of it.
#[derive(Debug, thiserror::Error)]
#[error("{why}{}", left.as_ref().map_or(String::new(), |left| format!("; what was made of it is still there ({left})")))]
pub struct StartError {
    /// Why.
    pub why: PodsError,
    /// Why objects of it are still there, if they are.
    pub left: Option<PodsError>,
}

impl ClusterController {
    /// A controller of this name; an object store that it has reached may be out of reach for `outage`.
    pub fn named(name: &str, kubernetes: &Kubernetes, outage: Duration) -> Self {
        let (given, stored) = (kubernetes.controller.claim.clone(), kubernetes.controller.store.is_some());
        ClusterController {
            version: 1,
            name: name.to_owned(),
            own_claim: given.is_none() && !stored,
            claim: given.or_else(|| (!stored).then(|| format!("{name}-runs"))),
            kubernetes: kubernetes.clone(),
            outage_s: outage.as_secs(),
            fetched: false,
        }
    }

    /// Describes where its results stay when it is removed from the cluster.
    pub fn results_place(&self) -> String {
        match (&self.kubernetes.controller.store, &self.claim) {
            (Some(store), _) => {
                format!("in the bucket {}, below {}/", store.bucket, store.folder(&self.name))
            }
            (None, claim) => format!("on the claim {}", claim.as_deref().unwrap_or_default()),
        }
    }

    /// The directory of the experiment in the pod.
    pub fn directory(&self) -> String {
        format!("{WORK}/{}", self.name)
    }

    fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.kubernetes)
    }

    fn selector(&self) -> String {
        format!("dyno.run={}", self.name)
    }

    /// Selector of its Job and the pods of that, without those that read the volume.
    fn conducting(&self) -> String {
        format!("{},app.kubernetes.io/component=controller", self.selector())
    }

    /// Where the pods of the controller go, and what they get.
    fn pods(&self) -> Pods {
        let asked = &self.kubernetes.controller;
        Pods {
            requests: asked.requests.clone(),
            limits: asked.limits.clone(),
            node_selector: asked.node_selector.clone(),
            tolerations: asked.tolerations.clone(),
            priority_class: asked.priority_class.clone(),
            ..Pods::default()
        }
    }

    /// A pod with the results, or room for those of an object store, in which `command` runs.
    fn pod(&self, component: &str, command: &[&str]) -> Value {
        let (asked, pods) = (&self.kubernetes, self.pods());
        let chosen = json!({"dyno.run": self.name, "app.kubernetes.io/component": component});
        let mut spec = pod(&pods, asked, &chosen);
        // Else the volume's files, and the list of what is to be removed, are opened to the group at each mount.
        spec["securityContext"]["fsGroupChangePolicy"] = "OnRootMismatch".into();
        spec.insert("restartPolicy".into(), "Never".into());
        let image = asked.controller.image.clone();
        let image = image.unwrap_or_else(|| format!("dyno-controller:{}", env!("CARGO_PKG_VERSION")));
        spec.insert(
            "containers".into(),
            json!([{
                "name": CONTAINER,
                "image": image,
                "imagePullPolicy": pull(asked),
                "command": command,
                "env": [{"name": "HOME", "value": "/tmp"}],
                "resources": resources(&pods),
                "securityContext": container_security(&pods),
                "volumeMounts": [{"name": "runs", "mountPath": WORK}, {"name": "tmp", "mountPath": "/tmp"}],
            }]),
        );
        let runs = match &self.claim {
            Some(claim) => json!({"name": "runs", "persistentVolumeClaim": {"claimName": claim}}),
            None => json!({"name": "runs", "emptyDir": {}}),
        };
        spec.insert("volumes".into(), json!([runs, {"name": "tmp", "emptyDir": {}}]));
        let mut spec = Value::Object(spec);
        if let Some(store) = &asked.controller.store {
            mount_secret(&mut spec, "store", &store.login, STORE_LOGIN);
        }
        spec
    }

    /// Objects of the controller: the experiment's text, the claim if none is given, the Job.
    ///
    /// # Errors
    /// The command-line settings cannot be written.
    pub fn manifests(&self, conducted: &Conducted<'_>) -> Result<Vec<Value>, serde_json::Error> {
        let own = |component: &str| labels(&self.name, component, DYNO);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": self.name, "labels": own("controller")},
            "stringData": {"experiment.yaml": conducted.text, "sets.json": serde_json::to_string(conducted.sets)?},
        });
        let mut all = vec![secret];
        let asked = &self.kubernetes.controller;
        if let Some(claim) = self.claim.as_ref().filter(|_| self.own_claim) {
            let size = asked.size.as_ref().map_or(CLAIM_BYTES, |size| size.0);
            let mut spec = json!({
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size.to_string()}},
            });
            if let Some(class) = &asked.class {
                spec["storageClassName"] = class.clone().into();
            }
            all.push(json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": claim, "labels": own("results")},
                "spec": spec,
            }));
        }
        all.push(self.job(&[]));
        Ok(all)
    }

    /// The Job, whose pod begins the experiment, or goes on with it and makes runs `again`: `failed`, `invalid`.
    fn job(&self, again: &[&str]) -> Value {
        let (asked, directory) = (&self.kubernetes.controller, self.directory());
        let (store, outage) = (self.store_text(), self.outage_s.to_string());
        let mut command = vec!["dyno", "conduct", "--experiment", EXPERIMENT, "--out", &directory];
        command.extend(
            store
                .iter()
                .flat_map(|store| ["--store", store.as_str(), "--login", STORE_LOGIN, "--outage-s", &outage]),
        );
        command.extend(again.iter().flat_map(|which| ["--again", *which]));
        let mut spec = self.pod("controller", &command);
        spec["serviceAccountName"] = asked.account.clone().unwrap_or_else(|| "dyno".into()).into();
        spec["automountServiceAccountToken"] = true.into();
        spec["terminationGracePeriodSeconds"] = GRACE_S.into();
        let label = |name: &str| json!({"fieldRef": {"fieldPath": format!("metadata.labels['{name}']")}});
        let container = &mut spec["containers"][0];
        if let Some(variables) = container["env"].as_array_mut() {
            // What is to be removed after a kill is listed where it outlives the pod; what is left after all belongs to the Job.
            variables.extend([
                json!({"name": "DYNO_STATE", "value": format!("{WORK}/.dyno")}),
                json!({"name": "DYNO_OWNER_UID", "valueFrom": label("batch.kubernetes.io/controller-uid")}),
                json!({"name": OWNER, "value": format!("{}/$(DYNO_OWNER_UID)", self.name)}),
            ]);
        }
        mount_secret(&mut spec, "experiment", &self.name, EXPERIMENT);
        let codes = json!({"containerName": CONTAINER, "operator": "In", "values": [1, 2, 3, 4, 5]});
        let own = labels(&self.name, "controller", DYNO);
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": self.name, "labels": own},
            "spec": {
                "backoffLimit": BACKOFF_LIMIT,
                "podFailurePolicy": {"rules": [
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                    {"action": "FailJob", "onExitCodes": codes},
                ]},
                "template": {"metadata": {"labels": own}, "spec": spec},
            },
        })
    }

    /// The object store, as its pods are told of it.
    fn store_text(&self) -> Option<String> {
        let store = self.kubernetes.controller.store.as_ref()?;
        // A struct of texts is always JSON.
        serde_json::to_string(store).ok()
    }

    /// Says what the Secret with the login of the object store lacks, if it lacks something. Its values are not read.
    ///
    /// # Errors
    /// The cluster does not answer, or lets this user read no Secret.
    pub fn check_login(&self) -> Result<Option<String>, KubectlError> {
        let Some(store) = &self.kubernetes.controller.store else { return Ok(None) };
        let keys = "go-template={{range $key, $value := .data}}{{$key}} {{end}}";
        let name = store.login.as_str();
        let words = ["get", "secret", "--ignore-not-found", "-o", keys, "--", name];
        let found = self.kubectl().run(&words, None)?;
        let has = |key: &&&str| found.split_whitespace().any(|own| own == **key);
        let lacks = STORE_KEYS.iter().find(|key| !has(key));
        let hint =
            format!("`kubectl create secret generic {} --from-literal={}=...`", store.login, STORE_KEYS[0]);
        Ok(lacks.map(|key| match found.trim().is_empty() {
            true => format!("the namespace has no Secret {} with keys in it: {hint} makes it", store.login),
            false => format!("the Secret {} has no key {key}", store.login),
        }))
    }

    /// Has another pod go on with an experiment whose controller has ended, and make runs `again`; `say` hears what it waits for.
    ///
    /// # Errors
    /// The cluster does not answer or refuses, the old Job does not go, the pod does not come to run, or a signal comes.
    pub fn resume(&self, again: &[&str], control: &Control, say: &dyn Fn(&str)) -> Result<(), PodsError> {
        let (kubectl, name) = (self.kubectl(), self.name.as_str());
        let words =
            ["delete", "job", "--ignore-not-found", "--cascade=foreground", "--wait=false", "--", name];
        kubectl.run(&words, None)?;
        // A reader that `dyno fetch` has started stays as long as it is wanted.
        removed(&kubectl, &self.conducting(), REMOVAL)?;
        self.start_objects(&[self.job(again)], control, say)
    }

    /// Makes the objects and waits until the pod runs; `say` hears what it waits for. Where that fails all of it is removed.
    ///
    /// # Errors
    /// The cluster refuses an object, the pod does not come to run within `kubernetes.patience`, or a signal comes.
    pub fn start(
        &self,
        objects: &[Value],
        control: &Control,
        say: &dyn Fn(&str),
    ) -> Result<(), Box<StartError>> {
        self.start_objects(objects, control, say).map_err(|why| {
            // The first error is the one to be told; that something stays is, too.
            Box::new(StartError { why, left: self.remove(true).err() })
        })
    }

    fn start_objects(
        &self,
        objects: &[Value],
        control: &Control,
        say: &dyn Fn(&str),
    ) -> Result<(), PodsError> {
        let kubectl = self.kubectl();
        kubectl.create_objects(objects)?;
        let pods = ServerPods::new(&kubectl, &self.selector());
        let (begun, mut told) = (Instant::now(), String::new());
        loop {
            let why = match self.state() {
                Ok(ControllerState::Running { .. } | ControllerState::Ended(_)) => return Ok(()),
                Ok(ControllerState::Gone) => "its Job is gone".to_owned(),
                Ok(ControllerState::Waiting(why)) => why,
                Err(error) if error.is_out_of_reach() => error.to_string(),
                Err(error) => return Err(error.into()),
            };
            let refused = pods.find_event("FailedCreate", |object| object == self.name);
            if let Some(why) = refused {
                return Err(PodsError::Refused(why));
            }
            if why != told && begun.elapsed() > Duration::from_secs(2) {
                say(&why);
                told.clone_from(&why);
            }
            if control.is_stopping() {
                return Err(PodsError::Interrupted);
            }
            if begun.elapsed().as_nanos() > u128::from(self.kubernetes.patience.0) {
                return Err(PodsError::Late { waited: begun.elapsed(), why });
            }
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// What has become of it.
    ///
    /// # Errors
    /// The cluster does not answer, or refuses to.
    pub fn state(&self) -> Result<ControllerState, KubectlError> {
        let kubectl = self.kubectl();
        let text = kubectl.run(&["get", "job", &self.name, "--ignore-not-found", "-o", "json"], None)?;
        let Ok(job) = serde_json::from_str::<Value>(&text) else { return Ok(ControllerState::Gone) };
        let found = kubectl.run_json(&["get", "pods", "-l", &self.conducting(), "-o", "json"])?;
        Ok(state_of(&job, found["items"].as_array().map_or(&[][..], Vec::as_slice)))
    }

    /// Returns whether the experiment's text is in the cluster still, so that another pod can go on with it.
    ///
    /// # Errors
    /// The cluster does not answer, or refuses to.
    pub fn has_text(&self) -> Result<bool, KubectlError> {
        let name = self.name.as_str();
        let found =
            self.kubectl().run(&["get", "secret", "--ignore-not-found", "-o", "name", "--", name], None)?;
        Ok(!found.trim().is_empty())
    }

    /// The pods in which it has run, the first one first.
    ///
    /// # Errors
    /// The cluster does not answer, or refuses to.
    pub fn pod_names(&self) -> Result<Vec<String>, KubectlError> {
        let found = self.kubectl().run_json(&["get", "pods", "-l", &self.conducting(), "-o", "json"])?;
        let mut pods = found["items"].as_array().cloned().unwrap_or_default();
        pods.sort_by_key(begun);
        let name = |pod: &Value| pod["metadata"]["name"].as_str().map(str::to_owned);
        Ok(pods.iter().filter_map(name).collect())
    }

    /// Passes on the log of one of its pods, until that ends where it is to be followed; false where it cannot be had.
    ///
    /// # Errors
    /// kubectl does not run.
    pub fn log(&self, pod: &str, follow: bool, control: &Control) -> Result<bool, KubectlError> {
        let mut command = self.kubectl().command(&["logs", pod, "-c", CONTAINER]);
        if follow {
            command.arg("--follow");
        }
        let child = command.stdin(Stdio::null()).spawn().map_err(KubectlError::Io)?;
        Ok(ended(child, control).map_err(KubectlError::Io)?.success())
    }

    /// Has a command of dyno's carried out in a pod, and passes on what it prints.
    ///
    /// # Errors
    /// kubectl does not run.
    pub fn show(&self, pod: &str, words: &[&str]) -> Result<bool, KubectlError> {
        let mut command = self.kubectl().command(&["exec", pod, "-c", CONTAINER, "--"]);
        let status = command.arg("dyno").args(words).stdin(Stdio::null()).status();
        Ok(status.map_err(KubectlError::Io)?.success())
    }

    /// Copies the directory of the experiment into `folder`: from the controller's pod, or where that has ended by a pod that
    /// reads the volume.
    ///
    /// # Errors
    /// The cluster does not answer, the directory is not there, the copy is not whole, or `folder` cannot be written.
    pub fn fetch(&self, folder: &Path, control: &Control) -> Result<(), PodsError> {
        if let ControllerState::Running { pod, .. } = self.state()? {
            return self.copy_from(&pod, folder, control);
        }
        // One that was given up may still be there.
        let reader = format!("{}-r{}", self.name, std::process::id());
        let patience = format!("{READER_S}s");
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": reader, "labels": labels(&self.name, "reader", DYNO)},
            "spec": {
                "backoffLimit": 0,
                "ttlSecondsAfterFinished": 0,
                "activeDeadlineSeconds": READER_S,
                "template": {
                    "metadata": {"labels": labels(&self.name, "reader", DYNO)},
                    "spec": self.pod("reader", &["dyno", "pod", "--patience", &patience]),
                },
            },
        });
        let kubectl = self.kubectl();
        kubectl.create_objects(&[job])?;
        let copied =
            self.await_reader(&reader, control).and_then(|pod| self.copy_from(&pod, folder, control));
        let words = ["delete", "job", &reader, "--ignore-not-found", "--cascade=foreground", "--wait=false"];
        let deleted = kubectl.run(&words, None);
        copied.and(deleted.map(drop).map_err(PodsError::from))
    }

    fn await_reader(&self, reader: &str, control: &Control) -> Result<String, PodsError> {
        let kubectl = self.kubectl();
        let pods = ServerPods::new(&kubectl, &self.selector());
        let selector = format!("{},batch.kubernetes.io/job-name={reader}", self.selector());
        let begun = Instant::now();
        loop {
            let found = kubectl.run_json(&["get", "pods", "-l", &selector, "-o", "json"])?;
            let pod = &found["items"][0];
            let why = match state(pod) {
                PodState::Ready => {
                    return Ok(pod["metadata"]["name"].as_str().unwrap_or_default().to_owned());
                }
                PodState::Failed(why) => return Err(pods.with_log(pod, why)),
                PodState::Waiting(why) => why,
            };
            if control.is_stopping() {
                return Err(PodsError::Interrupted);
            }
            if begun.elapsed().as_nanos() > u128::from(self.kubernetes.patience.0) {
                return Err(PodsError::Late { waited: begun.elapsed(), why });
            }
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    fn copy_from(&self, pod: &str, folder: &Path, control: &Control) -> Result<(), PodsError> {
        let failed = |source| PodsError::Copy { folder: folder.to_owned(), source };
        let mut command = self.kubectl().command(&["exec", pod, "-c", CONTAINER, "--"]);
        command.args(["dyno", "send", &self.directory()]).stdin(Stdio::null()).stdout(Stdio::piped());
        if let Some(store) = self.store_text() {
            command.args(["--store", &store, "--login", STORE_LOGIN]);
        }
        let mut child = command.spawn().map_err(failed)?;
        let output = child.stdout.take().ok_or_else(|| failed(std::io::Error::other("no pipe")))?;
        let (unpacked, status) = std::thread::scope(|scope| {
            // The pipe closes with the child, which ends when it has sent all or is not wanted any more.
            let unpacked = scope.spawn(|| crate::kubernetes::transfer::receive_folder(output, folder));
            let status = ended(child, control);
            (unpacked.join(), status)
        });
        if control.is_stopping() {
            return Err(PodsError::Interrupted);
        }
        let unpacked = unpacked.unwrap_or_else(|_| Err(std::io::Error::other("the copy has panicked")));
        let status = status.map_err(failed)?;
        // A copy that breaks off may end between two files: only the sender knows that it has said all.
        unpacked.map_err(failed)?;
        match status.success() {
            true => Ok(()),
            false => Err(PodsError::NotSent { pod: pod.to_owned(), status }),
        }
    }

    /// Removes it with all that belongs to it, `results` included where the claim is its own, and waits until the pods are
    /// gone: a run that is under way ends as by Ctrl-C.
    ///
    /// # Errors
    /// The cluster does not answer, refuses, or has not removed them in time.
    pub fn remove(&self, results: bool) -> Result<(), PodsError> {
        let kubectl = self.kubectl();
        if !is_selector(&self.selector()) {
            return Err(PodsError::Refused(format!("{:?} is no name that dyno gives", self.name)));
        }
        let selector = self.selector();
        let words =
            ["delete", "job", "-l", &selector, "--ignore-not-found", "--cascade=foreground", "--wait=false"];
        kubectl.run(&words, None)?;
        // What may hold passwords goes first, however long the rest takes.
        let name = self.name.as_str();
        kubectl.run(&["delete", "secret", "--ignore-not-found", "--wait=false", "--", name], None)?;
        removed(&kubectl, &selector, REMOVAL)?;
        if let Some(claim) = self.claim.as_ref().filter(|_| results && self.own_claim) {
            let words =
                ["delete", "persistentvolumeclaims", "--ignore-not-found", "--wait=false", "--", claim];
            kubectl.run(&words, None)?;
        }
        Ok(())
    }
}

/// Mounts a Secret in the first container of a pod, readable for the group, which is that of the pod.
fn mount_secret(spec: &mut Value, volume: &str, secret: &str, path: &str) {
    if let Some(mounts) = spec["containers"][0]["volumeMounts"].as_array_mut() {
        mounts.push(json!({"name": volume, "mountPath": path, "readOnly": true}));
    }
    if let Some(volumes) = spec["volumes"].as_array_mut() {
        volumes.push(json!({"name": volume, "secret": {"secretName": secret, "defaultMode": 0o440}}));
    }
}

/// Removes what an earlier pod of this process' Job has made for its runs and not removed.
///
/// # Errors
/// The cluster does not answer, refuses, or has not removed it in time.
pub fn remove_left_of_own_job() -> Result<(), PodsError> {
    let owner = std::env::var(OWNER).unwrap_or_default();
    let Some((name, _)) = owner.split_once('/') else { return Ok(()) };
    // Servers are the Job's: they would go with it, but later than it does, and be measured beside until then.
    remove(&Kubectl::new(&Kubernetes::default()), &format!("{CONDUCTED_BY}={name}"), &[])
}

/// Returns whether an earlier pod of this process' Job has reached the object store. Pods that were driven from their node are
/// not counted by their Job, so that each leaves word there.
///
/// # Errors
/// The cluster does not answer, or refuses to.
pub fn has_reached_store() -> Result<bool, KubectlError> {
    let owner = std::env::var(OWNER).unwrap_or_default();
    let Some((name, _)) = owner.split_once('/') else { return Ok(false) };
    let job = Kubectl::new(&Kubernetes::default()).run_json(&["get", "job", name, "-o", "json"])?;
    Ok(job["metadata"]["annotations"][STORE_REACHED].is_string())
}

/// Leaves word for later pods of this process' Job that the object store was reached.
///
/// # Errors
/// The cluster does not answer, or refuses to.
pub fn note_reached_store() -> Result<(), KubectlError> {
    let owner = std::env::var(OWNER).unwrap_or_default();
    let Some((name, _)) = owner.split_once('/') else { return Ok(()) };
    let word = format!("{STORE_REACHED}=true");
    let words = ["annotate", "job", name, "--overwrite", &word];
    Kubectl::new(&Kubernetes::default()).run(&words, None).map(drop)
}

/// Waits for the end of a child, which is killed once `control` stops: it has a process group of its own, which Ctrl-C does not
/// reach.
fn ended(mut child: Child, control: &Control) -> std::io::Result<ExitStatus> {
    loop {
        if control.is_stopping() {
            // It may have ended by itself.
            let _ = child.kill();
            return child.wait();
        }
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// When a pod was made, so that times are in their order.
fn begun(pod: &Value) -> String {
    pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned()
}

/// What a Job and its pods say of a controller.
fn state_of(job: &Value, pods: &[Value]) -> ControllerState {
    let ended = |pod: &&Value| pod["status"]["containerStatuses"][0]["state"]["terminated"].is_object();
    let last = pods.iter().filter(ended).max_by_key(|pod| begun(pod));
    let code = last.and_then(|pod| {
        let code = pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].as_i64()?;
        i32::try_from(code).ok()
    });
    let conditions = job["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let is = |name: &str| conditions.iter().any(|one| one["type"] == name && one["status"] == "True");
    if is("Complete") || is("Failed") {
        // A pod that its node has lost says nothing of how it ended.
        return ControllerState::Ended(if is("Complete") { Some(0) } else { code });
    }
    let newest = pods.iter().max_by_key(|pod| begun(pod));
    let Some(newest) = newest else { return ControllerState::Waiting("its pod is not there yet".into()) };
    match state(newest) {
        PodState::Ready => ControllerState::Running {
            pod: newest["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            node: newest["spec"]["nodeName"].as_str().unwrap_or_default().to_owned(),
            restarts: pods.len() - 1,
        },
        PodState::Waiting(why) => ControllerState::Waiting(why),
        PodState::Failed(why) => ControllerState::Waiting(format!("its pod has ended ({why})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_config::experiment::kubernetes::ObjectStore;
    use dyno_config::experiment::read_plan;

    fn controller(more: &str) -> ClusterController {
        let text = format!("server: {{kind: redis}}\nkubernetes: {{{more}}}\n");
        let plan = read_plan(&text, "x.yaml", &[]).unwrap();
        ClusterController::named("dyno-1a2b", plan.base.kubernetes.as_ref().unwrap(), Duration::from_secs(60))
    }

    fn objects(controller: &ClusterController) -> Vec<Value> {
        let sets = ["server.options.requirepass=hush".to_owned()];
        controller.manifests(&Conducted { text: "password: hush", sets: &sets }).unwrap()
    }

    #[test]
    fn a_controller_has_a_secret_a_claim_and_a_job() {
        let made = objects(&controller("controller: {size: 2GiB, class: fast, requests: {cpu: 1}}"));
        let kinds: Vec<&Value> = made.iter().map(|object| &object["kind"]).collect();
        assert_eq!(kinds, ["Secret", "PersistentVolumeClaim", "Job"]);
        let with_secret = made.iter().filter(|object| object.to_string().contains("hush"));
        assert_eq!(with_secret.map(|object| &object["kind"]).collect::<Vec<_>>(), ["Secret"]);
        assert_eq!(made[1]["spec"]["resources"]["requests"]["storage"], "2147483648");
        assert_eq!(made[1]["spec"]["storageClassName"], "fast");
        let pod = &made[2]["spec"]["template"]["spec"];
        assert_eq!((&pod["serviceAccountName"], &pod["restartPolicy"]), (&json!("dyno"), &json!("Never")));
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["containers"][0]["resources"]["requests"]["cpu"], "1");
        assert_eq!(
            pod["containers"][0]["command"],
            json!(["dyno", "conduct", "--experiment", "/experiment", "--out", "/work/dyno-1a2b"])
        );
        // Every answer of dyno's ends the Job; a kill, an eviction and a signal do not.
        let rules = &made[2]["spec"]["podFailurePolicy"]["rules"];
        assert_eq!(rules[0]["onPodConditions"][0]["type"], "DisruptionTarget");
        assert_eq!(rules[1]["onExitCodes"]["values"], json!([1, 2, 3, 4, 5]));
    }

    #[test]
    fn a_controller_that_goes_on_is_told_what_to_make_again() {
        let own = controller("controller: {requests: {cpu: 1}}");
        let command = |job: Value| job["spec"]["template"]["spec"]["containers"][0]["command"].clone();
        let (first, again) = (command(own.job(&[])), command(own.job(&["failed", "invalid"])));
        let words = first.as_array().unwrap();
        assert_eq!(again.as_array().unwrap()[..words.len()], words[..]);
        assert_eq!(again.as_array().unwrap()[words.len()..], ["--again", "failed", "--again", "invalid"]);
    }

    #[test]
    fn results_in_a_bucket_need_no_claim_and_their_login_is_nowhere_but_in_its_secret() {
        let own = controller("controller: {store: {bucket: results, prefix: nights, login: s3-login}}");
        let made = objects(&own);
        assert_eq!(made.iter().map(|object| &object["kind"]).collect::<Vec<_>>(), ["Secret", "Job"]);
        let pod = &made[1]["spec"]["template"]["spec"];
        assert_eq!(pod["volumes"][0], json!({"name": "runs", "emptyDir": {}}));
        let secret = json!({"secretName": "s3-login", "defaultMode": 0o440});
        assert_eq!(pod["volumes"][2], json!({"name": "store", "secret": secret}));
        let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
        assert!(mounts.contains(&json!({"name": "store", "mountPath": "/store", "readOnly": true})));
        let command = pod["containers"][0]["command"].as_array().unwrap();
        let at = command.iter().position(|word| word == "--store").unwrap();
        let told: ObjectStore = serde_json::from_str(command[at + 1].as_str().unwrap()).unwrap();
        assert_eq!(Some(&told), own.kubernetes.controller.store.as_ref());
        assert_eq!(command[at + 2..], ["--login", "/store", "--outage-s", "60"]);
        assert_eq!(own.results_place(), "in the bucket results, below nights/dyno-1a2b/");
    }

    #[test]
    fn a_claim_that_is_given_is_neither_made_nor_removed() {
        let own = controller("controller: {claim: results, account: bench}");
        assert_eq!((own.claim.as_deref(), own.own_claim), (Some("results"), false));
        let made = objects(&own);
        assert_eq!(made.iter().filter(|object| object["kind"] == "PersistentVolumeClaim").count(), 0);
        let pod = &made[1]["spec"]["template"]["spec"];
        assert_eq!(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], "results");
        assert_eq!(pod["serviceAccountName"], "bench");
    }

    fn pod(name: &str, begun: &str, state: Value) -> Value {
        let ready = state["running"].is_object();
        json!({
            "metadata": {"name": name, "creationTimestamp": begun}, "spec": {"nodeName": "n1"},
            "status": {
                "phase": "Running", "containerStatuses": [{"state": state}],
                "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
            },
        })
    }

    #[test]
    fn a_pod_that_was_killed_is_followed_by_another_one() {
        let (none, running) = (json!({}), json!({"running": {}}));
        let killed = pod("a", "2026-01-01T00:00:00Z", json!({"terminated": {"exitCode": 137}}));
        let state = state_of(&none, std::slice::from_ref(&killed));
        assert!(matches!(state, ControllerState::Waiting(_)), "{state:?}");
        let next = pod("b", "2026-01-01T00:01:00Z", running);
        let state = state_of(&none, &[next, killed.clone()]);
        let wanted = ControllerState::Running { pod: "b".into(), node: "n1".into(), restarts: 1 };
        assert_eq!(state, wanted);
        let ended = pod("b", "2026-01-01T00:01:00Z", json!({"terminated": {"exitCode": 4}}));
        let failed = json!({"status": {"conditions": [{"type": "Failed", "status": "True"}]}});
        assert_eq!(state_of(&failed, &[ended, killed.clone()]), ControllerState::Ended(Some(4)));
        let complete = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
        assert_eq!(state_of(&complete, &[killed]), ControllerState::Ended(Some(0)));
        assert_eq!(state_of(&failed, &[]), ControllerState::Ended(None));
    }
}
