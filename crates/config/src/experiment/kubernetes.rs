//! A cluster of Kubernetes that servers and load run in.

use crate::values::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Servers and load run in pods of a cluster, and this host only conducts, by kubectl.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Kubernetes {
    /// The program. Default: kubectl, looked for on PATH.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubectl: Option<String>,
    /// A kubeconfig file. Default: kubectl's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<String>,
    /// A context of the kubeconfig. Default: the current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The namespace, which must exist. Default: that of the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Image of dyno for the workers' pods. Default: dyno with this version as its tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Image of the servers. Default: the usual one of their kind, such as redis:7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_image: Option<String>,
    /// When images are pulled. Default: IfNotPresent.
    pub pull: Pull,
    /// Name of a secret with the registry's login. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<String>,
    /// Who runs in pods: `dyno` (user and group 10001), or `cluster`, which chooses by itself as OpenShift does. Default: dyno.
    pub user: PodUser,
    /// Pods of workers; each runs `client.workers` of them. Default: 1. Unit: pods.
    pub worker_pods: u32,
    /// Where workers' pods go, and what they get.
    pub workers: Pods,
    /// Further pods of workers, which load and do nothing else; the others then only measure. Default: 0, the same pods load and
    /// measure. Unit: pods.
    pub load_pods: u32,
    /// Where these go, and what they get.
    pub loaders: Pods,
    /// Where servers' pods go, and what they get.
    pub servers: Pods,
    /// Volumes for the servers' data. Default: the pod's own filesystem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// Folder of objects that take the place of those that dyno makes, by kind and name, as `dyno plan --manifests` writes
    /// them; dyno's labels are put on them. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifests: Option<String>,
    /// The pod that conducts the experiment with `dyno run --in-cluster`.
    #[serde(skip_serializing_if = "Controller::is_usual")]
    pub controller: Controller,
    /// True if the cluster makes nodes for pods that wait: counts are not compared with the nodes that are there. Default: false.
    pub autoscaled: bool,
    /// Longest time a pod may wait for a node or for its image. Default: 2m.
    pub patience: Span,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Kubernetes {
            kubectl: None,
            kubeconfig: None,
            context: None,
            namespace: None,
            image: None,
            server_image: None,
            pull: Pull::IfNotPresent,
            pull_secret: None,
            user: PodUser::Dyno,
            worker_pods: 1,
            workers: Pods::default(),
            load_pods: 0,
            loaders: Pods::default(),
            servers: Pods::default(),
            storage: None,
            manifests: None,
            controller: Controller::default(),
            autoscaled: false,
            patience: Span(120_000_000_000),
        }
    }
}

/// The pod that conducts an experiment inside the cluster, and the volume or the bucket that its results lie in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Controller {
    /// Image of dyno and kubectl. Default: dyno-controller with this version as its tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Account of the namespace with the rights that `dyno plan FILE --manifests DIR` writes. Default: dyno.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// An existing claim for the results. Default: one is made for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// Storage class of the claim that is made. Default: the cluster's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Size of the volume of the claim that is made. Default: 1GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// A bucket for the results, in place of a volume. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<ObjectStore>,
    /// Requests by resource, such as `cpu: 1` and `memory: 256Mi`. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, Quantity>,
    /// Limits by resource. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Quantity>,
    /// Labels that its node must have. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that are tolerated, as Kubernetes writes tolerations. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<serde_json::Value>,
    /// Priority class. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class: Option<String>,
}

impl Controller {
    /// Returns whether nothing is said of it.
    pub fn is_usual(&self) -> bool {
        *self == Controller::default()
    }
}

/// A bucket of an object store that speaks S3's interface. The login is in a Secret of the cluster, and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectStore {
    /// The bucket, which must exist.
    pub bucket: String,
    /// Where it is, as pods reach it, such as `https://minio.storage.svc:9000`. Default: AWS's address of the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Region that requests are signed for. Default: us-east-1.
    #[serde(default = "usual_region")]
    pub region: String,
    /// Folder of the bucket in which each controller has a folder with its name. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Secret of the namespace with `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, where the login is for a time only,
    /// `AWS_SESSION_TOKEN`.
    pub login: String,
}

fn usual_region() -> String {
    "us-east-1".into()
}

impl ObjectStore {
    /// The address of the store.
    pub fn address(&self) -> String {
        let usual = || format!("https://s3.{}.amazonaws.com", self.region);
        self.endpoint.clone().unwrap_or_else(usual)
    }

    /// The folder of a controller, without a slash at its end.
    pub fn folder(&self, name: &str) -> String {
        self.prefix.as_ref().map_or_else(|| name.to_owned(), |prefix| format!("{prefix}/{name}"))
    }
}

/// Who runs in pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PodUser {
    /// User and group 10001.
    Dyno,
    /// The one that the cluster gives them.
    Cluster,
}

/// When images are pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Pull {
    /// Before every start.
    Always,
    /// Where it is not there.
    IfNotPresent,
    /// Never: it must be there.
    Never,
}

/// Where pods go, and what they get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pods {
    /// Requests by resource, such as `cpu: 2` and `memory: 4Gi`. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, Quantity>,
    /// Limits by resource. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Quantity>,
    /// Labels that a node must have. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that are tolerated, as Kubernetes writes tolerations. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<serde_json::Value>,
    /// Affinity, as Kubernetes writes it; `{run}` stands for the run's name, which is the value of the label `dyno.run` of all
    /// its pods. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<serde_json::Value>,
    /// True if no node gets two of these pods. Default: false; they are spread as far as nodes go.
    pub one_per_node: bool,
    /// At most so many more of these pods on one node than on another. Default: none; they are spread as far as that goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_skew: Option<u32>,
    /// Priority class. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class: Option<String>,
    /// True if these pods are privileged and run as root. Servers are on their node's network then, the first instance at
    /// `server.port`, each further one at the next port, and `server.placement` and `server.data.path` choose cores, memory and
    /// folders of their node; of workers `client.placement` does. The namespace must admit that. Default: false.
    pub privileged: bool,
}

/// A quantity as Kubernetes writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Quantity {
    /// A whole number: `2`.
    Whole(u64),
    /// A number: `0.5`.
    Number(f64),
    /// With a unit: `500m`, `4Gi`.
    Text(String),
}

impl Quantity {
    /// As a manifest has it.
    pub fn text(&self) -> String {
        match self {
            Quantity::Whole(n) => n.to_string(),
            Quantity::Number(n) => n.to_string(),
            Quantity::Text(text) => text.clone(),
        }
    }
}

/// Volumes for data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Storage class. Default: the cluster's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Size of each volume.
    pub size: Bytes,
    /// True if the volumes stay after the run. Default: false.
    #[serde(default)]
    pub keep: bool,
}
