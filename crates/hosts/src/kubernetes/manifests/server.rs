//! Objects of one instance of the servers: a StatefulSet for processes that are there for the same, and how they are reached.

use crate::kubernetes::manifests::pod::{HOME, container_security, dyno_image, labels, pod, pull, resources};
use crate::kubernetes::place::SCRIPT;
use crate::kubernetes::volumes;
use dyno_config::experiment::kubernetes::{Kubernetes, Pods, Quantity};
use dyno_config::server::tuning::HostTuning;
use dyno_config::server::{IfNotPermitted, Part, ServerSpec, Topology};
use dyno_config::values::Bytes;
use dyno_databases::container::{ContainerConfig, ContainerRole, container_config};
use dyno_localhost::error::LocalError;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Label that tells the StatefulSets of a sharded cluster apart.
const PART: &str = "dyno.part";

/// One instance.
pub(super) struct Instance<'a> {
    pub server: &'a ServerSpec,
    pub asked: &'a Kubernetes,
    /// Settings of the nodes.
    pub host: &'a HostTuning,
    pub run: &'a str,
    /// Name.
    pub name: String,
    /// Which of the instances it is, from 0.
    pub number: usize,
    pub port: u16,
    /// True if it is stopped and killed on purpose.
    pub signalled: bool,
}

/// Objects of an instance.
pub(super) struct InstanceManifests {
    pub objects: Vec<Value>,
    /// Names of its StatefulSets, in the order of the processes.
    pub sets: Vec<String>,
}

/// Processes of an instance that are there for the same.
struct Set {
    name: String,
    /// Role in a sharded cluster.
    part: Option<String>,
    /// True if clients speak to it.
    asked: bool,
    told: ContainerConfig,
    replicas: u32,
}

/// Port of the servers in pods: that of the experiment, or the kind's usual one.
pub(super) fn first_port(server: &ServerSpec) -> u16 {
    server.port.unwrap_or(server.kind.server_rules().port())
}

/// The port of each instance. On the network of their node each has its own, as servers of one host have.
pub(super) fn instance_ports(server: &ServerSpec, asked: &Kubernetes) -> Vec<u16> {
    let first = first_port(server);
    let own = |instance: u32| if asked.servers.privileged { instance as u16 } else { 0 };
    (0..server.instances).map(|instance| first.saturating_add(own(instance))).collect()
}

/// What a container beside the server gets: a little of each resource that the server names, so that a pod whose requests are
/// its limits stays one.
fn small(servers: &Pods) -> Value {
    let of = |all: &BTreeMap<String, Quantity>| -> Value {
        let little = [("cpu", "100m"), ("memory", "64Mi"), ("ephemeral-storage", "64Mi")];
        let named = little.into_iter().filter(|(name, _)| all.contains_key(*name));
        named.map(|(name, quantity)| (name.to_owned(), Value::from(quantity))).collect::<Map<_, _>>().into()
    };
    json!({"requests": of(&servers.requests), "limits": of(&servers.limits)})
}

/// Time that a server whose volume is kept may take to write its data before it ends, seconds; as long as bexhoma gives it.
const SAVING_S: u32 = 180;

/// Returns whether the volume of a server outlives it.
fn kept(server: &ServerSpec, asked: &Kubernetes) -> bool {
    server.data.volume.is_some() || asked.storage.as_ref().is_some_and(|storage| storage.keep)
}

/// Bytes as Kubernetes writes them: `50Gi`.
fn quantity(bytes: u64) -> String {
    let units = [("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
    let whole = units.iter().find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    whole.map_or(bytes.to_string(), |(unit, shift)| format!("{}{unit}", bytes >> shift))
}

/// The image that a server's pods get.
pub fn server_image(server: &ServerSpec, asked: &Kubernetes) -> String {
    asked.server_image.clone().unwrap_or_else(|| server.kind.server_rules().image().to_owned())
}

impl Instance<'_> {
    /// Objects.
    pub fn made(&self) -> Result<InstanceManifests, LocalError> {
        let sets = self.sets()?;
        let (mut objects, name) = (Vec::new(), &self.name);
        for set in &sets {
            objects.extend(set.told.file.as_ref().map(|(file, text)| {
                let (kind, content) =
                    if set.told.secret { ("Secret", "stringData") } else { ("ConfigMap", "data") };
                json!({
                    "apiVersion": "v1", "kind": kind, "metadata": self.metadata(&set.name), content: {*file: text},
                })
            }));
        }
        // For other clients that want to reach it; dyno goes to the pods by their names.
        let reached = sets.iter().find(|set| set.asked).unwrap_or(&sets[0]);
        objects.push(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": self.metadata(&format!("{name}-client")),
            "spec": {"type": "ClusterIP", "selector": self.chosen(Some(reached)), "ports": self.ports()},
        }));
        for set in &sets {
            objects.push(json!({
                "apiVersion": "v1", "kind": "Service", "metadata": self.metadata(&set.name),
                "spec": {
                    "clusterIP": "None", "publishNotReadyAddresses": true, "selector": self.chosen(Some(set)),
                    "ports": self.ports(),
                },
            }));
        }
        objects.extend(sets.iter().map(|set| self.stateful_set(set)));
        Ok(InstanceManifests { objects, sets: sets.into_iter().map(|set| set.name).collect() })
    }

    /// Sets, in the order of the processes.
    fn sets(&self) -> Result<Vec<Set>, LocalError> {
        // What a server takes is what its pods may have.
        let mut server = self.server.clone();
        if server.kind.server_rules().sizes_by_free_memory() && server.limits.memory.is_none() {
            let limit =
                self.asked.servers.limits.get("memory").and_then(|limit| volumes::bytes(&limit.text()));
            server.limits.memory = limit.map(Bytes);
        }
        let (server, own) = (&server, &self.name);
        let is_sharded = server.topology == Topology::Sharded;
        // The config server is the first process, and its set's name that of the service which knows it.
        let config = is_sharded.then(|| format!("{own}-config-0.{own}-config:{}", self.port));
        let mut sets = Vec::new();
        for (part, numbers) in server.parts() {
            let called = is_sharded.then(|| match part {
                Part::Config => "config".to_owned(),
                Part::Router => "router".to_owned(),
                Part::Data { shard } => format!("shard-{shard}"),
            });
            let role = ContainerRole {
                instance: self.number,
                number: numbers.start as usize,
                config: config.clone(),
            };
            sets.push(Set {
                name: called.as_ref().map_or_else(|| own.clone(), |called| format!("{own}-{called}")),
                part: called,
                asked: !is_sharded || part == Part::Router,
                told: container_config(server, role, self.port, Path::new(HOME))?,
                replicas: numbers.end - numbers.start,
            });
        }
        Ok(sets)
    }

    fn labels(&self) -> Value {
        labels(self.run, "server", &self.server.kind.to_string())
    }

    fn metadata(&self, name: &str) -> Value {
        json!({"name": name, "labels": self.labels()})
    }

    fn ports(&self) -> Value {
        json!([{"name": self.server.kind.to_string(), "port": self.port}])
    }

    /// Labels that select its pods, or those of one of its sets.
    fn chosen(&self, set: Option<&Set>) -> Value {
        let mut chosen =
            json!({"dyno.run": self.run, "app.kubernetes.io/component": "server", "dyno.server": self.name});
        if let Some(part) = set.and_then(|set| set.part.as_ref()) {
            chosen[PART] = part.clone().into();
        }
        chosen
    }

    fn stateful_set(&self, set: &Set) -> Value {
        let (server, asked) = (self.server, self.asked);
        let mut own = self.labels();
        own["dyno.server"] = self.name.clone().into();
        if let Some(part) = &set.part {
            own[PART] = part.clone().into();
        }
        // All that belongs together is spread, or kept apart.
        let mut spec = pod(&asked.servers, asked, &self.chosen(None));
        // What is kept is written, and what is not is removed; a quick end takes no longer for that.
        if kept(server, asked) || self.is_tended() {
            spec.insert("terminationGracePeriodSeconds".into(), SAVING_S.into());
        }
        if asked.servers.privileged {
            spec.insert("hostNetwork".into(), true.into());
            spec.insert("dnsPolicy".into(), "ClusterFirstWithHostNet".into());
        }
        let before = self.init_containers();
        if !before.is_empty() {
            spec.insert("initContainers".into(), before.into());
        }
        let mut command = set.told.command.clone();
        if self.is_placed() {
            command.splice(0..0, ["sh", SCRIPT].map(str::to_owned));
        }
        let (mounts, volumes) = self.mounted(set);
        spec.insert(
            "containers".into(),
            json!([{
                "name": "server",
                "image": server_image(server, asked),
                "imagePullPolicy": pull(asked),
                "command": command,
                "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "ports": [{"containerPort": self.port}],
                "readinessProbe": {"tcpSocket": {"port": self.port}, "periodSeconds": 1, "failureThreshold": 600},
                "resources": resources(&asked.servers),
                "securityContext": container_security(&asked.servers),
                "volumeMounts": mounts,
            }]),
        );
        spec.insert("volumes".into(), volumes);
        if self.signalled {
            // The first process of a namespace cannot be stopped from within: that is the pod's own then.
            spec.insert("shareProcessNamespace".into(), true.into());
        }
        let retention = |keep: bool| if keep { "Retain" } else { "Delete" };
        let kept = kept(server, asked);
        json!({
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": self.metadata(&set.name),
            "spec": {
                "serviceName": set.name,
                "replicas": set.replicas,
                "podManagementPolicy": "Parallel",
                "persistentVolumeClaimRetentionPolicy":
                    {"whenDeleted": retention(kept), "whenScaled": "Retain"},
                "selector": {"matchLabels": self.chosen(Some(set))},
                "template": {"metadata": {"labels": own}, "spec": spec},
                "volumeClaimTemplates": self.claims(),
            },
        })
    }

    /// Returns whether cores or memory of its node are chosen.
    fn is_placed(&self) -> bool {
        self.asked.servers.privileged && !self.server.placement.is_nothing()
    }

    /// Returns whether a container of dyno's tends the node as long as the server runs.
    fn is_tended(&self) -> bool {
        self.node_folder().is_some() || !self.host.is_nothing()
    }

    /// Folder of its node for the data.
    fn node_folder(&self) -> Option<&Path> {
        self.server.data.path.as_ref().map(|path| path.of_process(self.number))
    }

    /// Containers of dyno's in the pods of servers: one that writes how the server is started on this node, and one that changes
    /// settings of the node as long as the server runs, and then removes the data from the node's folder.
    fn init_containers(&self) -> Vec<Value> {
        let (asked, server) = (self.asked, self.server);
        let container = |name: &str, command: Vec<String>, mounts: Value| {
            json!({
                "name": name, "image": dyno_image(asked), "imagePullPolicy": pull(asked), "command": command,
                "resources": resources(&asked.servers),
                "securityContext": container_security(&asked.servers), "volumeMounts": mounts,
                "env": [
                    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "HOME", "value": "/tmp"},
                ],
            })
        };
        let mut all = Vec::new();
        if self.is_placed() {
            let ports: Vec<String> = instance_ports(server, asked).iter().map(u16::to_string).collect();
            let command = [
                "dyno",
                "place",
                "--placement",
                &json!(server.placement).to_string(),
                "--ports",
                &ports.join(","),
                "--number",
                &self.number.to_string(),
                "--script",
                SCRIPT,
            ];
            let command = command.map(str::to_owned).to_vec();
            all.push(container("place", command, json!([{"name": "placed", "mountPath": "/placed"}])));
        }
        let (folder, tuned) = (self.node_folder().is_some(), !self.host.is_nothing());
        if self.is_tended() {
            let mut command = vec!["dyno".to_owned(), "tend".to_owned()];
            if tuned {
                command.extend(["--host".to_owned(), json!(self.host).to_string()]);
            }
            if tuned && server.if_not_permitted == IfNotPermitted::Continue {
                command.push("--go-on".to_owned());
            }
            if folder {
                command.extend(["--discard", "/node/dyno-$(POD_NAME)"].map(str::to_owned));
            }
            let mounts = if folder { json!([{"name": "data", "mountPath": "/node"}]) } else { json!([]) };
            let mut own = container("tend", command, mounts);
            own["resources"] = small(&asked.servers);
            // The server begins with the settings.
            let ready = json!({"command": ["dyno", "tend", "--ready"]});
            own["startupProbe"] =
                json!({"exec": ready, "timeoutSeconds": 10, "failureThreshold": 60, "periodSeconds": 1});
            // The kubelet ends it after the server.
            own["restartPolicy"] = "Always".into();
            all.push(own);
        }
        all
    }

    /// Returns the mounts of a set's pods, and their volumes.
    fn mounted(&self, set: &Set) -> (Value, Value) {
        let mut data = json!({"name": "data", "mountPath": "/data"});
        if self.node_folder().is_some() {
            data["subPathExpr"] = "dyno-$(POD_NAME)".into();
        }
        let mut mounts = vec![data, json!({"name": "tmp", "mountPath": "/tmp"})];
        let mut volumes = vec![json!({"name": "tmp", "emptyDir": {}})];
        if set.told.file.is_some() {
            mounts.push(json!({"name": "configuration", "mountPath": HOME, "readOnly": true}));
            volumes.push(match set.told.secret {
                true => json!({"name": "configuration", "secret": {"secretName": set.name}}),
                false => json!({"name": "configuration", "configMap": {"name": set.name}}),
            });
        }
        if self.is_placed() {
            mounts.push(json!({"name": "placed", "mountPath": "/placed", "readOnly": true}));
            volumes.push(json!({"name": "placed", "emptyDir": {}}));
        }
        match self.node_folder() {
            Some(path) => {
                volumes.push(json!({"name": "data", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}))
            }
            None if self.asked.storage.is_none() => volumes.push(json!({"name": "data", "emptyDir": {}})),
            None => {}
        }
        (mounts.into(), volumes.into())
    }

    /// Claims of volumes for the data.
    fn claims(&self) -> Vec<Value> {
        let claim = self.asked.storage.as_ref().map(|storage| {
            let mut claim = json!({
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": quantity(storage.size.0)}},
            });
            if let Some(class) = &storage.class {
                claim["storageClassName"] = class.clone().into();
            }
            let mut labels = self.labels();
            if let (Some(volume), Some(labels)) = (&self.server.data.volume, labels.as_object_mut()) {
                // It belongs to no run.
                ["dyno.run", "app.kubernetes.io/instance"]
                    .iter()
                    .for_each(|label| drop(labels.remove(*label)));
                labels.insert(volumes::LABEL.into(), volume.name.clone().into());
            }
            json!({"metadata": {"name": "data", "labels": labels}, "spec": claim})
        });
        claim.into_iter().collect()
    }
}
