//! Hosts of an experiment that are reached by ssh: looked up, given the program once, and asked for what happens there.

use crate::experiment_error::ExperimentError;
use dyno_config::experiment::ssh::Ssh;
use dyno_config::inventory::{Inventory, InventoryHost};
use dyno_engine::Control;
use dyno_hosts::remote::deploy;
use dyno_hosts::remote::remote_agent::RemoteAgent;
use dyno_hosts::remote::ssh::{RemoteError, SshHost};
use dyno_hosts::remote::transport::Transport;
use dyno_localhost::error::LocalError;
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

/// A host that has the program.
#[derive(Clone, Debug)]
pub(super) struct ReachedHost {
    /// The way to it.
    pub transport: Transport,
    /// The program there.
    pub program: String,
    /// The folder for what runs there, if the file names one.
    pub directory: Option<String>,
}

impl ReachedHost {
    /// Agent; `log` takes what ssh says.
    pub fn agent(&self, logs: &Path) -> Result<RemoteAgent, RemoteError> {
        let log = logs.join(format!("agent-{}.log", self.transport.name()));
        RemoteAgent::start(&self.transport, &self.program, self.directory.as_deref(), &log)
    }

    /// The address that others use for it.
    pub fn address(&self) -> Result<IpAddr, ExperimentError> {
        let Transport::Ssh(ssh) = &self.transport else {
            return Err(ExperimentError::other(format!(
                "{}: a pod's address is the cluster's affair",
                self.transport.name()
            )));
        };
        let name = ssh.address()?;
        let found = (name.as_str(), 0).to_socket_addrs().map(|mut all| all.next());
        match found {
            Ok(Some(found)) => Ok(found.ip()),
            _ => Err(ExperimentError::unreachable(format!("{}: {name} has no address", ssh.name))),
        }
    }
}

/// Hosts that were reached so far.
#[derive(Default)]
pub(super) struct Hosts {
    /// By way, since the same name may mean another host in another inventory, and folder.
    known: BTreeMap<(SshHost, Option<String>), ReachedHost>,
}

impl Hosts {
    /// The hosts that names of hosts and groups stand for, each once, with the program in place.
    pub fn reach(
        &mut self,
        ssh: &Ssh,
        names: &[String],
        (program, control): (&Path, &Control),
    ) -> Result<Vec<ReachedHost>, ExperimentError> {
        let wanted = named_hosts(ssh, names)?;
        let mut keys = Vec::new();
        for host in &wanted {
            keys.push((SshHost::new(host, ssh.config.as_deref().map(Path::new))?, ssh.directory.clone()));
        }
        let new: Vec<_> = keys.iter().filter(|key| !self.known.contains_key(key)).cloned().collect();
        // Each copy waits for its host alone.
        let deployed: Vec<Result<String, RemoteError>> = std::thread::scope(|scope| {
            let transport = |transport| {
                scope.spawn(move || {
                    deploy::deploy_program(transport, program, ssh.directory.as_deref(), control)
                })
            };
            let all: Vec<_> = new.iter().map(|(one, _)| transport(one)).collect();
            let lost = |(one, _): &(SshHost, _)| RemoteError::Failed {
                host: one.name.clone(),
                source: "the program could not be copied".into(),
            };
            all.into_iter()
                .zip(&new)
                .map(|(thread, one)| thread.join().unwrap_or_else(|_| Err(lost(one))))
                .collect()
        });
        for (key, program) in new.into_iter().zip(deployed) {
            let (transport, directory) = (Transport::Ssh(key.0.clone()), key.1.clone());
            self.known.insert(key, ReachedHost { transport, program: program?, directory });
        }
        Ok(keys.iter().filter_map(|key| self.known.get(key).cloned()).collect())
    }
}

/// The hosts that names of hosts and groups stand for, each once.
///
/// # Errors
/// The inventory cannot be read, or knows none of a name.
pub(super) fn named_hosts(ssh: &Ssh, names: &[String]) -> Result<Vec<InventoryHost>, LocalError> {
    let mut all: Vec<InventoryHost> = Vec::new();
    for host in hosts(ssh, names)? {
        if all.iter().all(|one| one.name != host.name) {
            all.push(host);
        }
    }
    Ok(all)
}

fn hosts(ssh: &Ssh, names: &[String]) -> Result<Vec<InventoryHost>, LocalError> {
    let Some(path) = &ssh.inventory else {
        return Ok(names.iter().map(|name| InventoryHost::named_host(name)).collect());
    };
    let text = bounded::text_file(path, TEXT_BYTES)
        .map_err(|e| LocalError::failed_step(format!("ssh.inventory: {path}"), e))?;
    let inventory =
        Inventory::parse(&text, path).map_err(|why| LocalError::failed_step("ssh.inventory", why))?;
    let mut all = Vec::new();
    for name in names {
        all.extend(
            inventory
                .select_hosts(name)
                .map_err(|why| LocalError::failed_step(format!("ssh.inventory: {path}"), why))?,
        );
    }
    Ok(all)
}

/// Which of `hosts` work on target `instance` of `targets`: hosts are dealt out to targets, or, where there are fewer, targets
/// to hosts.
pub(super) fn hosts_of(hosts: usize, targets: usize, instance: usize) -> Vec<usize> {
    match hosts >= targets {
        true => (0..hosts).filter(|host| host % targets == instance).collect(),
        false => vec![instance % hosts],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_targets_are_dealt_to_each_other() {
        assert_eq!(hosts_of(3, 1, 0), [0, 1, 2]);
        assert_eq!((hosts_of(4, 2, 0), hosts_of(4, 2, 1)), (vec![0, 2], vec![1, 3]));
        assert_eq!((hosts_of(1, 3, 0), hosts_of(1, 3, 2)), (vec![0], vec![0]));
        assert_eq!((hosts_of(2, 3, 0), hosts_of(2, 3, 1), hosts_of(2, 3, 2)), (vec![0], vec![1], vec![0]));
    }
}
