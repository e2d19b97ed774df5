//! Hosts that take part in a run: those of workers and those of servers, each once, by the kernel that runs there.

use crate::provisioned_target::{OwnedResources, ProvisionedTarget};
use crate::watching::{host_tellers, numbered};
use dyno_config::experiment::Experiment;
use dyno_databases::registry;
use dyno_hosts::protocol::worker::{Stage, WorkerHost};
use dyno_hosts::remote::remote_agent::{RemoteAgent, RemoteServer};
use dyno_hosts::remote::worker::pool::WorkerPool;
use dyno_rundir::schema::{Environment, HostRole, PhaseHost};
use dyno_session::hosts::{HostPlan, boot_id_of};
use std::collections::{BTreeMap, BTreeSet};

/// A run whose target and workers are there.
pub(super) struct Participants<'a> {
    pub spec: &'a Experiment,
    pub target: &'a ProvisionedTarget,
    pub pool: &'a WorkerPool,
    /// This host.
    pub environment: &'a Environment,
}

/// A host under one of its names.
#[derive(Clone, Debug, Default)]
struct Named {
    /// Identity of its kernel; empty if it is not known.
    boot_id: String,
    plan: HostPlan,
    /// Cores of load threads there.
    load: BTreeSet<usize>,
    /// Cores that its servers are confined to; none: any, or not known.
    servers: BTreeSet<usize>,
}

/// Puts hosts that have one kernel, or one name, together.
fn merged(all: Vec<Named>) -> Vec<Named> {
    let mut hosts: Vec<Named> = Vec::new();
    for one in all {
        let same = |host: &&mut Named| {
            !one.boot_id.is_empty() && host.boot_id == one.boot_id
                || host.plan.host.name == one.plan.host.name
        };
        let Some(host) = hosts.iter_mut().find(same) else {
            hosts.push(one);
            continue;
        };
        if host.boot_id.is_empty() {
            host.boot_id.clone_from(&one.boot_id);
        }
        host.load.extend(one.load);
        host.servers.extend(one.servers);
        let (plan, other) = (&mut host.plan, one.plan);
        if plan.host.name.split(" = ").all(|name| name != other.host.name) {
            plan.host.name = format!("{} = {}", plan.host.name, other.host.name);
        }
        plan.workers.extend(other.workers);
        // The name of each host has an agent of its own: any of them sees all, and the first one is asked.
        plan.agent = plan.agent.take().or(other.agent);
        plan.own = match (plan.own.take(), other.own) {
            (Some(own), Some(more)) => Some(own.into_iter().chain(more).collect()),
            (own, more) => own.or(more),
        };
        let (known, more) = (&mut plan.host, other.host);
        known.role = known.role.and_role(more.role);
        known.local |= more.local;
        known.spins |= more.spins;
        known.cores = known.cores.or(more.cores);
        known.clock_ns = known.clock_ns.max(more.clock_ns);
        known.clock_source = known.clock_source.take().or(more.clock_source);
        known.shared_cores.extend(more.shared_cores);
    }
    hosts
}

/// Notes which cores of another host both load and servers have: those of both where the servers are confined, and all where
/// the load has all of them.
fn share(host: Named) -> HostPlan {
    let Named { mut plan, load, servers, .. } = host;
    if plan.host.local || plan.host.role != HostRole::Both {
        return plan;
    }
    let everywhere = plan.host.cores.is_some_and(|cores| load.len() as f64 >= cores);
    plan.host.shared_cores = match servers.is_empty() {
        true => load.into_iter().filter(|_| everywhere).collect(),
        false => load.intersection(&servers).copied().collect(),
    };
    plan
}

impl Participants<'_> {
    /// The hosts, those of workers first. `shared` are cores of this host that both servers and workers run on.
    pub fn list(&self, shared: &BTreeSet<usize>) -> Vec<HostPlan> {
        let (nodes, servers) = self.target.pods().map(|pods| pods.placed_nodes()).unwrap_or_default();
        let mut all = self.clients(&nodes);
        all.extend(self.servers());
        all.extend(servers.iter().map(|(node, pods)| server_node(node, pods)));
        let mut hosts: Vec<HostPlan> = merged(all).into_iter().map(share).collect();
        let local = hosts.iter_mut().filter(|plan| plan.host.local);
        local.for_each(|plan| plan.host.shared_cores.extend(shared));
        hosts
    }

    fn agents(&self) -> impl Iterator<Item = &RemoteAgent> {
        self.target.remote_servers().iter().map(RemoteServer::agent).chain(&self.target.beside)
    }

    /// Hosts of workers. An embedded store is in them, and so is a server at their own loopback.
    fn clients(&self, nodes: &BTreeMap<String, String>) -> Vec<Named> {
        let with = matches!(self.target.owned, OwnedResources::Nothing)
            && self
                .target
                .uris
                .iter()
                .all(|uri| registry::parse(uri).is_ok_and(|target| !target.is_elsewhere()));
        let role = if with { HostRole::Both } else { HostRole::Client };
        // One pod of a node tells of its host, and that may be one that only loads.
        let tellers = match self.target.is_in_pods() {
            true => host_tellers(self.agents().map(|agent| (agent.name(), boot_id_of(&agent.environment)))),
            false => BTreeMap::new(),
        };
        let workers = self.pool.on_hosts(Stage::Measure).into_iter();
        let named = workers.map(|(at, host, seen, load)| match host {
            Some(name) => {
                let mut client = self.client(at, (&name, nodes.get(&name)), role, (seen, load));
                if let Some(teller) = tellers.get(&client.boot_id) {
                    client.plan.agent = Some((*teller).to_owned());
                }
                client
            }
            None => {
                let mut plan = HostPlan::local_host(self.environment, role);
                plan.workers = vec![at];
                plan.host.spins = self.spec.client.wait.does_spin(false);
                Named { boot_id: boot_id_of(self.environment), plan, ..Named::default() }
            }
        });
        named.collect()
    }

    fn client(
        &self,
        at: usize,
        (name, node): (&str, Option<&String>),
        role: HostRole,
        (seen, load): (WorkerHost, Vec<usize>),
    ) -> Named {
        let host = PhaseHost {
            name: node.map_or(name, String::as_str).to_owned(),
            role,
            cores: Some(seen.cores as f64).filter(|cores| *cores > 0.0),
            clock_ns: Some(seen.clock_ns),
            clock_source: Some(seen.clock_source).filter(|source| !source.is_empty()),
            spins: self.spec.client.wait.does_spin(false),
            ..PhaseHost::default()
        };
        // A pod does not see the other processes of its node.
        let group = || {
            let workers = numbered::<u32>(&format!("worker-{name}"), &self.pool.pids_on(name));
            vec![workers.into_iter().map(|(source, _)| source).collect()]
        };
        let plan = HostPlan {
            host,
            workers: vec![at],
            agent: self.agents().any(|agent| agent.name() == name).then(|| name.to_owned()),
            own: self.target.is_in_pods().then(group),
        };
        Named { boot_id: seen.boot_id, plan, load: load.into_iter().collect(), ..Named::default() }
    }

    /// Hosts of servers, but nodes.
    fn servers(&self) -> Vec<Named> {
        let there = |agent: &RemoteAgent, cores: &[usize]| Named {
            boot_id: boot_id_of(&agent.environment),
            plan: HostPlan {
                host: PhaseHost {
                    name: agent.name().to_owned(),
                    role: HostRole::Server,
                    ..PhaseHost::default()
                },
                agent: Some(agent.name().to_owned()),
                ..HostPlan::default()
            },
            servers: cores.iter().copied().collect(),
            ..Named::default()
        };
        let started = self.target.remote_servers().iter().map(|server| there(server.agent(), &server.cores));
        let watched = self
            .target
            .beside
            .iter()
            .filter(|agent| self.target.watched.iter().any(|name| name == agent.name()));
        let mut all: Vec<Named> = started.chain(watched.map(|agent| there(agent, &[]))).collect();
        let here = match &self.target.owned {
            OwnedResources::Server(_) | OwnedResources::Temporary(_) => true,
            OwnedResources::Nothing => self.target.persistent.is_some() && self.target.local,
            OwnedResources::Remote(_) | OwnedResources::Pods(..) => false,
        };
        if here {
            let plan = HostPlan::local_host(self.environment, HostRole::Server);
            all.push(Named { boot_id: boot_id_of(self.environment), plan, ..Named::default() });
        }
        all
    }
}

/// A node of servers: what its kubelet tells of them is the run's own.
fn server_node(node: &str, pods: &[String]) -> Named {
    let host = PhaseHost { name: node.to_owned(), role: HostRole::Server, ..PhaseHost::default() };
    let own = pods.iter().map(|pod| vec![format!("server-{pod}")]).collect();
    Named { plan: HostPlan { host, own: Some(own), ..HostPlan::default() }, ..Named::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, boot_id: &str, role: HostRole) -> Named {
        let host = PhaseHost { name: name.into(), role, cores: Some(2.0), ..PhaseHost::default() };
        Named { boot_id: boot_id.into(), plan: HostPlan { host, ..HostPlan::default() }, ..Named::default() }
    }

    fn roles(all: Vec<Named>) -> Vec<(String, HostRole)> {
        merged(all).into_iter().map(|host| (host.plan.host.name, host.plan.host.role)).collect()
    }

    #[test]
    fn hosts_with_one_kernel_are_one_host() {
        use HostRole::{Both, Client, Server};
        let two = vec![named("load", "a", Client), named("db", "b", Server)];
        assert_eq!(roles(two), [("load".into(), Client), ("db".into(), Server)]);
        let one = vec![named("load", "a", Client), named("load", "a", Client), named("db", "a", Server)];
        assert_eq!(roles(one), [("load = db".into(), Both)]);
        // Of a node without workers only the name is known; two of which nothing is known are two.
        let nodes = vec![named("n1", "a", Client), server_node("n1", &[]), server_node("n2", &[])];
        assert_eq!(roles(nodes), [("n1".into(), Both), ("n2".into(), Server)]);
    }

    #[test]
    fn the_first_agent_of_a_kernel_tells_of_its_host() {
        let agents = [("load-1", "a"), ("worker-1", "a"), ("worker-2", "b"), ("worker-3", "")];
        let tellers = host_tellers(agents.iter().map(|(name, kernel)| (*name, (*kernel).to_owned())));
        assert_eq!(tellers, BTreeMap::from([("a".to_owned(), "load-1"), ("b".to_owned(), "worker-2")]));
    }

    #[test]
    fn sources_of_all_pods_of_a_node_are_its_own() {
        let mut pod = named("n1", "a", HostRole::Client);
        pod.plan.own = Some(vec![vec!["worker-pod-1".into()]]);
        pod.plan.workers = vec![0];
        let mut second = pod.clone();
        (second.plan.own, second.plan.workers) = (Some(vec![vec!["worker-pod-2".into()]]), vec![3]);
        let hosts = merged(vec![pod, second, server_node("n1", &["redis-0".into()])]);
        let own: Vec<String> = hosts[0].plan.own.iter().flatten().flatten().cloned().collect();
        assert_eq!(own, ["worker-pod-1", "worker-pod-2", "server-redis-0"]);
        assert_eq!((hosts.len(), hosts[0].plan.workers.as_slice()), (1, &[0, 3][..]));
    }

    #[test]
    fn a_client_beside_the_server_shares_its_cores_unless_they_have_their_own() {
        let shared = |load: &[usize], servers: &[usize], role| {
            let mut host = named("n", "a", role);
            (host.load, host.servers) = (load.iter().copied().collect(), servers.iter().copied().collect());
            share(host).host.shared_cores
        };
        assert_eq!(shared(&[0, 1], &[], HostRole::Both), [0, 1]);
        assert_eq!(shared(&[1], &[], HostRole::Both), [0; 0], "the server may keep to the other one");
        assert_eq!(
            (shared(&[0, 1], &[1], HostRole::Both), shared(&[0], &[1], HostRole::Both)),
            (vec![1], vec![])
        );
        assert_eq!(shared(&[0, 1], &[], HostRole::Client), [0; 0]);
    }
}
