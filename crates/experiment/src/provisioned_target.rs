//! Target that a run is applied to once it is there: targets, the servers that were started for it, and how they end.

use crate::experiment_error::{ExperimentError, of_server};
use crate::fault_targets::FaultTargets;
use crate::faults::FaultReach;
use crate::hosts::{Hosts, ReachedHost};
use crate::persistent_servers::PersistentServers;
use crate::proxy::Proxy;
use crate::volumes::Volume;
use dyno_config::experiment::fault::FaultKind;
use dyno_config::experiment::{Experiment, Lifetime};
use dyno_config::server::ServerSpec;
use dyno_databases::spawn::Spawned;
use dyno_engine::Control;
use dyno_hosts::kubernetes::run_pods::RunPods;
use dyno_hosts::remote::remote_agent::{RemoteAgent, RemoteServer};
use dyno_hosts::servers::server::Server;
use dyno_hosts::servers::server::fault_preparation::FaultPreparation;
use dyno_localhost::error::LocalError;
use dyno_monitor::Pid;
use dyno_rundir::monitor::{WATCHED, WATCHED_BETWEEN};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Targets of a run, one for each server-client pair.
pub(super) struct ProvisionedTarget {
    /// URIs, one for each pair.
    pub uris: Vec<String>,
    /// Cores that load threads keep off.
    pub taken: Vec<usize>,
    /// True if it runs on this host.
    pub local: bool,
    /// Other hosts that workers run on; none: this one.
    pub clients: Vec<ReachedHost>,
    /// Hosts that the target runs on and that are only watched, by name.
    pub watched: Vec<String>,
    /// Agents on both that start nothing, for monitors and faults there.
    pub beside: Vec<RemoteAgent>,
    /// In front of each instance, where there are faults that they do.
    pub(super) proxies: Vec<Proxy>,
    /// The kinds of faults that they do.
    pub(super) by_proxies: Vec<FaultKind>,
    /// Loaded data that outlive the run.
    pub(super) volume: Option<Volume>,
    /// Servers that another command has started, and that stay.
    pub(super) persistent: Option<Box<PersistentServers>>,
    pub(super) owned: OwnedResources,
}

pub(super) enum OwnedResources {
    /// Nothing of ours.
    Nothing,
    /// A temporary server with nothing said about it.
    Temporary(Box<Spawned>),
    /// A server as the file describes it.
    Server(Box<DescribedServer>),
    /// Servers on other hosts.
    Remote(Vec<RemoteServer>),
    /// Servers, as they are described, and workers in pods.
    Pods(Option<Box<ServerSpec>>, Box<RunPods>),
}

/// A server and the words that describe it.
pub(super) struct DescribedServer {
    pub spec: ServerSpec,
    /// The same with a password, where it has one.
    pub own: ServerSpec,
    /// Faults that it was prepared for.
    pub preparation: FaultPreparation,
    pub server: Server,
    /// True if a copy of loaded data is there.
    pub copied: bool,
}

/// A server that outlives its run.
#[derive(Default)]
pub(super) struct SharedServers {
    pub server: Option<Box<DescribedServer>>,
    /// Folders made so far.
    pub made: usize,
    /// Hosts that are reached by ssh.
    pub hosts: Hosts,
    /// The experiment whose servers are used instead of new ones.
    pub persistent: Option<PathBuf>,
}

impl SharedServers {
    /// Uses the servers that an experiment has left running, if one is named.
    pub fn on(persistent: Option<&Path>) -> Self {
        SharedServers { persistent: persistent.map(Path::to_owned), ..SharedServers::default() }
    }

    /// Ends the server that is kept, if there is one.
    pub fn end(&mut self) -> Result<(), LocalError> {
        self.server.take().map_or(Ok(()), |server| server.server.stop().map(drop))
    }
}

impl ProvisionedTarget {
    pub(super) fn new(uris: Vec<String>, taken: Vec<usize>, local: bool, owned: OwnedResources) -> Self {
        ProvisionedTarget {
            uris,
            taken,
            local,
            clients: Vec::new(),
            watched: Vec::new(),
            beside: Vec::new(),
            proxies: Vec::new(),
            by_proxies: Vec::new(),
            volume: None,
            persistent: None,
            owned,
        }
    }

    /// Returns whether there are data to begin with, or may be.
    pub fn is_filled(&self) -> Result<bool, ExperimentError> {
        match &self.volume {
            Some(volume) if volume.is_full() => volume.note().map(|()| true),
            _ => Ok(self.persistent.is_some()),
        }
    }

    /// Puts a proxy in front of every instance.
    pub(super) fn stand_between(&mut self) -> Result<(), LocalError> {
        let OwnedResources::Server(owned) = &self.owned else { return Ok(()) };
        for (uri, socket) in self.uris.iter().zip(owned.server.process_sockets()) {
            if !uri.contains(&socket.to_string()) {
                let message = format!("faults: a target is not at {socket}, where its server is");
                return Err(LocalError::Failed(message));
            }
            let proxy = Proxy::start(socket);
            let step = || format!("a proxy in front of {socket}");
            let proxy = proxy.map_err(|e| LocalError::failed_step(step(), e))?;
            self.proxies.push(proxy);
        }
        Ok(())
    }

    /// Returns the URIs that workers connect to: the targets, or the proxies in front of them.
    pub fn ways(&self) -> Vec<String> {
        let OwnedResources::Server(owned) = &self.owned else { return self.uris.clone() };
        let mut uris = self.uris.clone();
        for ((uri, proxy), socket) in uris.iter_mut().zip(&self.proxies).zip(owned.server.process_sockets()) {
            *uri = uri.replacen(&socket.to_string(), &proxy.address().to_string(), 1);
        }
        uris
    }

    /// Targets that faults can be injected into.
    pub fn reach<'a>(
        &'a mut self,
        workers: Vec<(u32, Option<String>)>,
        logs: &Path,
        control: &'a Control,
    ) -> FaultReach<'a> {
        let servers = match &mut self.owned {
            OwnedResources::Server(owned) => FaultTargets::Local(&mut owned.server),
            OwnedResources::Remote(all) => FaultTargets::Remote(all),
            OwnedResources::Pods(_, pods) => FaultTargets::Pods(pods.server_pods(), control),
            _ => FaultTargets::None,
        };
        let (proxies, by_proxies) = (&self.proxies[..], &self.by_proxies[..]);
        FaultReach { servers, proxies, by_proxies, workers, beside: &mut self.beside, logs: logs.to_owned() }
    }

    /// Returns whether targets are reached from the workers alone.
    pub fn is_in_pods(&self) -> bool {
        matches!(self.owned, OwnedResources::Pods(..))
    }

    /// The pods of the run.
    pub fn pods(&self) -> Option<&RunPods> {
        match &self.owned {
            OwnedResources::Pods(_, pods) => Some(pods),
            _ => None,
        }
    }

    /// Servers on other hosts.
    pub fn remote_servers(&self) -> &[RemoteServer] {
        match &self.owned {
            OwnedResources::Remote(all) => all,
            _ => &[],
        }
    }

    /// Facts about the server that was started, and about its volume.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = self.facts_of_server();
        facts.extend(self.persistent.iter().flat_map(|persistent| persistent.facts()));
        facts.extend(self.volume.iter().flat_map(Volume::facts));
        if !self.watched.is_empty() {
            facts.insert(WATCHED.into(), self.watched.join(WATCHED_BETWEEN));
        }
        facts
    }

    /// Volume.
    pub fn volume(&mut self) -> Option<&mut Volume> {
        self.volume.as_mut()
    }

    /// Keys or documents of servers in pods, which have written them to their claims first where `save` says so.
    pub(super) fn counted_in_pods(
        &self,
        save: bool,
        control: &Control,
    ) -> Result<Option<u64>, ExperimentError> {
        match (&self.owned, self.beside.first()) {
            (OwnedResources::Pods(Some(server), pods), Some(agent)) => {
                Ok(Some(agent.count(server, &pods.servers, save, control)?))
            }
            _ => Ok(None),
        }
    }

    fn facts_of_server(&self) -> BTreeMap<String, String> {
        match &self.owned {
            OwnedResources::Nothing => BTreeMap::new(),
            OwnedResources::Temporary(server) => {
                let mut facts = BTreeMap::from([("server.pid".to_owned(), server.pid().to_string())]);
                facts.extend(server.core.map(|core| ("server.core".to_owned(), core.to_string())));
                facts
            }
            OwnedResources::Server(owned) => {
                let proxies = self.proxies.iter().enumerate();
                let proxies = proxies.map(|(i, proxy)| (format!("proxy.{}", i + 1), proxy.describe()));
                let facts = owned.server.server_facts().into_iter();
                facts.map(|(key, value)| (format!("server.{key}"), value)).chain(proxies).collect()
            }
            OwnedResources::Pods(_, pods) => pods.pod_facts(),
            OwnedResources::Remote(all) => {
                let mut facts = BTreeMap::new();
                for one in all {
                    // A host that is lost says nothing any more.
                    let (told, _) = one.server_facts().unwrap_or_default();
                    let name = one.agent().name();
                    facts
                        .extend(told.into_iter().map(|(key, value)| (format!("server-{name}.{key}"), value)));
                }
                facts
            }
        }
    }

    /// Names and numbers of the server's processes, as they change.
    pub fn processes(&self) -> Vec<(String, Pid)> {
        if let Some(persistent) = &self.persistent {
            return persistent.processes().into_iter().map(|(name, pid)| (name, pid.into())).collect();
        }
        match &self.owned {
            // Those of other hosts are watched there.
            OwnedResources::Nothing | OwnedResources::Remote(_) | OwnedResources::Pods(..) => Vec::new(),
            OwnedResources::Temporary(server) => vec![(server.kind().to_owned(), server.pid().into())],
            OwnedResources::Server(owned) => owned.server.watched_processes(),
        }
    }

    /// Why the server is no longer there, if it is not.
    pub fn died(&mut self) -> Option<String> {
        if let Some(died) = self.persistent.as_ref().and_then(|persistent| persistent.died()) {
            return Some(died);
        }
        match &mut self.owned {
            OwnedResources::Nothing => None,
            OwnedResources::Temporary(server) => server.died(),
            OwnedResources::Server(owned) => owned.server.describe_death(),
            OwnedResources::Pods(_, pods) => pods.server_pods().describe_change(),
            OwnedResources::Remote(all) => all.iter().find_map(|one| match one.server_facts() {
                Ok((_, died)) => died.map(|why| format!("{}: {why}", one.agent().name())),
                Err(error) => Some(error.to_string()),
            }),
        }
    }

    /// Why the server is no longer there, after something has failed.
    pub fn cause(&mut self) -> Option<String> {
        match &self.owned {
            OwnedResources::Pods(_, pods) => pods.server_pods().failure_cause(),
            _ => self.died(),
        }
    }

    /// After a load of so many seconds: keeps the data where the file asks for that, for the next cells, or for later runs
    /// than `run`.
    pub fn loaded(
        &mut self,
        spec: &Experiment,
        (run, seconds): (&Path, f64),
        control: &Control,
    ) -> Result<(), ExperimentError> {
        if self.persistent.is_some() {
            let counted = self.counted_in_pods(false, control)?;
            return self
                .persistent
                .as_mut()
                .map_or(Ok(()), |persistent| persistent.filled(spec, counted, run, seconds));
        }
        let count = if self.volume.is_some() { self.counted_in_pods(true, control)? } else { None };
        if let Some(volume) = &mut self.volume {
            return match (&mut self.owned, count) {
                (OwnedResources::Server(owned), _) => volume.fill_here(&mut owned.server, run, seconds),
                (OwnedResources::Remote(all), _) => volume.fill_remote(all, (run, seconds), control),
                (_, Some(count)) => volume.fill_claims(count, run, seconds),
                _ => Ok(()),
            };
        }
        Ok(self.copied(control)?)
    }

    /// Without anything to load: what waits for the end of the load begins.
    pub fn not_loaded(&mut self, control: &Control) -> Result<(), LocalError> {
        match &mut self.owned {
            OwnedResources::Server(owned) if !owned.server.is_loading() => Ok(()),
            OwnedResources::Server(owned) if !owned.spec.data.snapshot => {
                owned.server.limit_memory().map_err(of_server)
            }
            OwnedResources::Server(_) => self.copied(control),
            _ => Ok(()),
        }
    }

    fn copied(&mut self, control: &Control) -> Result<(), LocalError> {
        match &mut self.owned {
            OwnedResources::Server(owned) if owned.spec.data.snapshot => {
                owned.copied = true;
                owned.server.take_snapshot().map_err(of_server)
            }
            OwnedResources::Remote(all) => {
                all.iter().try_for_each(|one| one.keep_loaded(control).map_err(of_server))
            }
            _ => Ok(()),
        }
    }

    /// Keeps in `logs` what servers and pods elsewhere have said. What a server of this host says is there already.
    pub fn collect(&mut self, logs: &Path) {
        match &mut self.owned {
            OwnedResources::Pods(_, pods) => pods.collect(logs),
            OwnedResources::Remote(all) => std::thread::scope(|scope| {
                for one in all {
                    scope.spawn(move || {
                        let folder = logs.join(one.agent().name());
                        match std::fs::create_dir_all(&folder) {
                            Ok(()) => one.collect(&folder),
                            Err(error) => tracing::warn!(%error, "no folder for what servers have said"),
                        }
                    });
                }
            }),
            OwnedResources::Nothing | OwnedResources::Temporary(_) | OwnedResources::Server(_) => {}
        }
    }

    /// The end of the run: the server ends with it, or is kept for the next.
    pub fn end(self, spec: &Experiment, shared: &mut SharedServers) -> Result<(), LocalError> {
        // Agents end before what they watch, and the way to pods before the pods.
        drop((self.beside, self.clients));
        match self.owned {
            OwnedResources::Pods(_, pods) => {
                pods.remove_all().map_err(|e| LocalError::failed_step("kubernetes", e))
            }
            OwnedResources::Nothing | OwnedResources::Temporary(_) => Ok(()),
            OwnedResources::Remote(all) => {
                let ended: Vec<_> = all.into_iter().map(RemoteServer::stop).collect();
                ended.into_iter().collect::<Result<Vec<()>, _>>().map(drop).map_err(of_server)
            }
            OwnedResources::Server(mut owned) => match spec.server_lifetime {
                Lifetime::Shared if owned.server.describe_death().is_none() => {
                    shared.server = Some(owned);
                    Ok(())
                }
                _ => owned.server.stop().map(drop).map_err(of_server),
            },
        }
    }
}
