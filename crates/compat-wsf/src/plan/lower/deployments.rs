//! The place of servers and clients: this host, hosts that are reached by ssh, or pods.

use crate::plan::Source;
use crate::plan::lower::draft::Draft;
use crate::plan::lower::options::{Deployment, SshDeployment};
use dyno_types::{RefusalCode, Refused};
use serde_json::{Value, json};

/// The label by which the framework groups nodes.
const GROUP: &str = "VM-GROUP";

/// The node of pods of this run.
fn beside(component: &str) -> Value {
    let labels = json!({"dyno.run": "{run}", "app.kubernetes.io/component": component});
    json!({"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"})
}

/// That node, where it has room.
fn preferred(component: &str) -> Value {
    json!({"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": beside(component)},
    ]})
}

impl Draft<'_> {
    /// Puts the keys of the deployment, and refuses variables and options that it does not offer.
    pub(super) fn place_deployment(&mut self) -> Result<(), Refused> {
        match self.means.deployment.clone() {
            Deployment::Local => Ok(()),
            Deployment::Ssh(deployment) => self.this_host_only().and_then(|()| self.hosts(&deployment)),
            Deployment::Kubernetes(given) => self.this_host_only().map(|()| self.pods(given)),
        }
    }

    fn this_host_only(&self) -> Result<(), Refused> {
        let own = [
            ("--tune-host", self.means.tune_host, "changes this host, where no server runs"),
            (
                "--program",
                self.means.program.is_some() && self.in_pods(),
                "is in the image: see server_image",
            ),
            ("tracers", !self.means.tracers.is_empty(), "trace this host, where no server runs"),
            ("--target", self.means.target.is_some(), "is for --backend local"),
        ];
        match own.iter().find(|(_, given, _)| *given) {
            Some((what, _, why)) => Err(Refused::new(RefusalCode::Conflict, *what, format!("{what}: {why}"))),
            None => Ok(()),
        }
    }

    /// All servers on the first host of the group `worker`, clients on the first CLIENT_COUNT of the group `client`.
    fn hosts(&mut self, deployment: &SshDeployment) -> Result<(), Refused> {
        let Some(server) = deployment.servers.first() else {
            return Err(Refused::new(
                RefusalCode::BadFile,
                &deployment.inventory,
                format!("{}: expected a group worker with a host for the servers", deployment.inventory),
            ));
        };
        let pairs = self.from.number("CLIENT_SERVER_PAIR").unwrap_or(1);
        let asked = self.from.number("CLIENT_COUNT").unwrap_or(1);
        let clients: Vec<String> = if self.single_node() {
            vec![server.clone()]
        } else {
            if (deployment.clients.len() as u64) < asked {
                let there = deployment.clients.len();
                return Err(Refused::new(
                    RefusalCode::BadValue,
                    "CLIENT_COUNT",
                    format!(
                        "CLIENT_COUNT={asked}: {} has {there} hosts in its group client",
                        deployment.inventory
                    ),
                ));
            }
            // A client has one server: more machines than pairs would be idle.
            deployment.clients.iter().take(asked.min(pairs) as usize).cloned().collect()
        };
        if !self.single_node() && clients.contains(server) {
            return Err(Refused::new(
                RefusalCode::Conflict,
                "RUN_SINGLE_NODE",
                format!(
                    "{server}: is in both groups, and clients keep off the servers' host: RUN_SINGLE_NODE=true allows it"
                ),
            ));
        }
        self.own("ssh.inventory", json!(deployment.inventory));
        for (key, value) in &deployment.more {
            self.own(&format!("ssh.{key}"), value.clone());
        }
        self.own("ssh.servers", json!([server]));
        self.put("ssh.clients", json!(clients), "CLIENT_COUNT");
        Ok(())
    }

    /// A set of servers and a pod of clients for each pair, with the affinity and the spread of the original.
    fn pods(&mut self, given: Vec<(String, Value)>) {
        let pairs = self.from.number("CLIENT_SERVER_PAIR").unwrap_or(1);
        self.put("kubernetes.worker_pods", json!(pairs), "CLIENT_SERVER_PAIR");
        for (switch, side) in
            [("KUBERNETES_RESOURCE_REQUESTS", "requests"), ("KUBERNETES_RESOURCE_LIMITS", "limits")]
        {
            // The older reading has no such variables, and asks for a core.
            let on = self.from.on(switch) || (side == "requests" && self.from.given(switch).is_none());
            for (resource, default) in [("CPU", "1"), ("MEMORY", "")] {
                let variable = format!("{switch}_{resource}");
                let own = self.from.given(&variable).map(|given| given.value.clone());
                let value = own.unwrap_or_else(|| if side == "requests" { default } else { "" }.into());
                if on && !value.is_empty() {
                    let key = format!("kubernetes.servers.{side}.{}", resource.to_lowercase());
                    self.put(&key, json!(value), &variable);
                }
            }
        }
        match self.single_node() {
            true => self.together(),
            false => self.apart(pairs),
        }
        for (key, value) in given {
            self.own(&format!("kubernetes.{key}"), value);
        }
        if !self.places() {
            self.note(
                "pods have addresses of their own, so that all servers listen on one port; the original's use the node's network \
                 (--privileged)",
            );
        }
    }

    /// All on one node, where there is room.
    fn together(&mut self) {
        let affinity = json!({"podAffinity": preferred("server")});
        self.put("kubernetes.servers.affinity", affinity.clone(), "RUN_SINGLE_NODE");
        self.put("kubernetes.workers.affinity", affinity, "RUN_SINGLE_NODE");
    }

    /// Servers keep together and away from clients where they can; clients must keep off the servers' nodes, and are spread.
    fn apart(&mut self, pairs: u64) {
        let nodes = |group: &str| {
            let rule = json!({"key": GROUP, "operator": "In", "values": [group]});
            json!({"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [rule]}},
            ]})
        };
        let servers = json!({
            "nodeAffinity": nodes("worker"), "podAffinity": preferred("server"), "podAntiAffinity": preferred("worker"),
        });
        let mut clients = json!({
            "nodeAffinity": nodes("client"),
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [beside("server")]},
        });
        let count = self.from.number("CLIENT_COUNT").unwrap_or(1);
        if count == 1 && self.from.number("MAX_SKEW").is_none() {
            // One machine is one node; a skew alone would let them have as many as there are.
            clients["podAffinity"] =
                json!({"requiredDuringSchedulingIgnoredDuringExecution": [beside("worker")]});
        }
        self.put("kubernetes.servers.affinity", servers, "CLIENT_COUNT");
        self.put("kubernetes.workers.affinity", clients, "CLIENT_COUNT");
        match self.from.number("MAX_SKEW") {
            Some(skew) => self.put("kubernetes.workers.max_skew", json!(skew), "MAX_SKEW"),
            None => {
                self.put("kubernetes.workers.max_skew", json!(pairs.div_ceil(count.max(1))), "CLIENT_COUNT")
            }
        }
    }

    /// Refuses a placement within a node where the user has asked for one: that is the cluster's affair.
    pub(super) fn no_placement(&mut self) -> Result<(), Refused> {
        let asked = |name: &str| {
            let given = self.from.given(name);
            given.is_some_and(|g| !g.value.is_empty() && !matches!(g.source, Source::Default | Source::Case))
        };
        let names =
            ["CUSTOMER_NUMAOPT_SERVER", "CUSTOMER_NUMAOPT_CLIENT", "CORES", "YCSB_CORES", "DB_HOSTPATH"];
        if let Some(name) = names.iter().find(|name| asked(name)) {
            return Err(Refused::new(
                RefusalCode::Unsupported,
                *name,
                format!(
                    "{name}: pods without privileges choose no cores and have no folders of the node: --privileged allows it"
                ),
            ));
        }
        match self.from.number("NUMACTL_OPTION").unwrap_or(0) {
            5 => {}
            0 if !asked("NUMACTL_OPTION") => {
                self.note("NUMACTL_OPTION=0: memory of pods is not interleaved; nodes decide where it is");
            }
            option => {
                return Err(Refused::new(
                    RefusalCode::Unsupported,
                    "NUMACTL_OPTION",
                    format!(
                        "NUMACTL_OPTION={option}: pods without privileges choose no cores: --privileged allows it; 5 \
                         (reading 25) is no policy"
                    ),
                ));
            }
        }
        Ok(())
    }
}
