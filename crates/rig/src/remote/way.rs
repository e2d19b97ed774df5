//! The way to another host: ssh, or kubectl into a pod.

use super::ssh::{RemoteError, SshHost, last, reason};
use crate::kubernetes::Kubectl;
use std::path::Path;
use std::process::Command;

/// A pod of workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// How the cluster is spoken to.
    pub kubectl: Kubectl,
}

/// The way to another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// By ssh.
    Ssh(SshHost),
    /// By `kubectl exec`.
    Pod(Pod),
}

impl Way {
    /// The host's name in messages.
    pub fn name(&self) -> &str {
        match self {
            Way::Ssh(host) => &host.name,
            Way::Pod(pod) => &pod.name,
        }
    }

    /// A command there whose standard input and output are ours; the words reach the program as they are.
    pub fn command(&self, words: &[&str]) -> Command {
        match self {
            Way::Ssh(host) => host.command(words),
            Way::Pod(pod) => {
                let mut all = vec!["exec", "-i", &pod.name, "--"];
                all.extend(words);
                pod.kubectl.command(&all)
            }
        }
    }

    /// How long a worker there goes on without a word, milliseconds: what goes through an API server may be late.
    pub fn lease_ms(&self) -> u64 {
        match self {
            Way::Ssh(_) => crate::worker::LEASE_MS,
            Way::Pod(_) => 3 * crate::worker::LEASE_MS,
        }
    }

    /// Why it was lost, by what the way's program has said.
    pub(crate) fn lost(&self, log: &Path) -> String {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        match self {
            Way::Ssh(_) => reason(&text),
            Way::Pod(_) => format!("kubectl: {}", last(&text)),
        }
    }

    pub(super) fn unreachable(&self, words: String) -> RemoteError {
        RemoteError::Unreachable { host: self.name().to_owned(), words }
    }

    pub(super) fn failed(&self, words: &str) -> RemoteError {
        RemoteError::Failed { host: self.name().to_owned(), words: words.to_owned() }
    }
}
