//! Transport to another host: ssh, or the relay of a run's pods.

use crate::protocol::service::Service;
use crate::remote::channel::{Channel, Running};
use crate::remote::relay::controller::Relay;
use crate::remote::ssh::{RemoteError, SshHost, last, reason};
use dyno_localhost::error::Cause;
use dyno_types::bounded;
use dyno_types::limits::LOG_END_BYTES;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// A pod of workers.
#[derive(Clone, Debug)]
pub struct WorkerPod {
    /// Name.
    pub name: String,
    /// The node that it is on; empty if it is not known.
    pub node: String,
    /// Where it listens for the relay's hub.
    pub address: SocketAddr,
    /// Transport to all pods of its run.
    pub relay: Arc<Relay>,
}

/// Transport to another host.
#[derive(Clone, Debug)]
pub enum Transport {
    /// By ssh.
    Ssh(SshHost),
    /// By the relay.
    Pod(WorkerPod),
}

impl Transport {
    /// The host's name in messages.
    pub fn name(&self) -> &str {
        match self {
            Transport::Ssh(host) => &host.name,
            Transport::Pod(pod) => &pod.name,
        }
    }

    /// Name of the machine that it leads to: pods of one node are on one. Two ways to one name lead to one machine.
    pub fn machine(&self) -> &str {
        match self {
            Transport::Pod(pod) if !pod.node.is_empty() => &pod.node,
            _ => self.name(),
        }
    }

    /// Starts dyno there, which is at `program`; what it says for people, and what the transport says, goes to `errors`.
    pub fn open(&self, program: &str, service: &Service, errors: File) -> Result<Channel, RemoteError> {
        match self {
            Transport::Ssh(host) => {
                let mut words = vec![program];
                words.extend(service.argument_words());
                let mut command = host.command(&words);
                Channel::start(command.stderr(errors))
                    .map_err(|e| self.unreachable(format!("ssh could not be started: {e}")))
            }
            Transport::Pod(pod) => {
                let opened = pod.relay.open(pod.address, service, errors);
                let (input, output, channel) = opened.map_err(|e| self.failed(e))?;
                let running = Running::Carried(Box::new(channel));
                Ok(Channel { input: Box::new(input), output: Box::new(output), running })
            }
        }
    }

    /// Why a program there was lost, by what is in its log and how it has ended.
    pub(crate) fn lost(&self, log: &Path, ended: Option<&str>) -> String {
        let text = bounded::end_of(log, LOG_END_BYTES).unwrap_or_default();
        let ended = ended.unwrap_or("it says nothing any more");
        match self {
            Transport::Ssh(_) => format!("{} ({ended})", reason(&text)),
            Transport::Pod(_) if text.trim().is_empty() => ended.to_owned(),
            Transport::Pod(_) => format!("{} ({ended})", last(&text)),
        }
    }

    pub(super) fn unreachable(&self, message: String) -> RemoteError {
        RemoteError::Unreachable { host: self.name().to_owned(), message }
    }

    pub(super) fn failed(&self, why: impl Into<Cause>) -> RemoteError {
        RemoteError::Failed { host: self.name().to_owned(), source: why.into() }
    }
}
