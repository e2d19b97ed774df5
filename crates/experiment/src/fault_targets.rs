//! The servers that faults are done to, on this host, through the agents of others or in pods, counted through from 0.

use crate::experiment_error::ExperimentError;
use dyno_engine::Control;
use dyno_hosts::kubernetes::servers::ServerPods;
use dyno_hosts::kubernetes::signals::{PodSignal, SignalError};
use dyno_hosts::remote::remote_agent::{RemoteAgent, RemoteServer};
use dyno_hosts::remote::ssh::RemoteError;
use dyno_hosts::servers::server::Server;
use dyno_hosts::servers::server::faults::{FaultOutcome, ServerFault};
use dyno_localhost::error::LocalError;
use dyno_types::Refused;
use std::ops::Range;

/// Why a fault was not done, or not undone.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// The fault names a server or worker that does not exist.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A process of this host.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// A process of another host.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// A process in a pod.
    #[error(transparent)]
    Pod(#[from] SignalError),
    /// There are fewer workers.
    #[error("there is no such worker")]
    NoWorker,
    /// No agent on that host can inject it.
    #[error("there is no agent on {0}")]
    NoAgent(String),
    /// Several processes, each for its own reason.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Several(Vec<FaultError>),
    /// The first of a run that failed, in the words of its event.
    #[error("faults: {0}")]
    Noted(String),
    /// The thread that does them has ended before.
    #[error("faults: their thread has failed")]
    Panicked,
}

impl From<FaultError> for ExperimentError {
    fn from(error: FaultError) -> Self {
        ExperimentError::other(error)
    }
}

/// Traces of a fault that are to be undone on a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FaultTrace {
    /// Which host; 0: this one, or the first.
    pub host: usize,
    /// The host's own processes that it was done to, from 0.
    pub processes: Vec<usize>,
    /// Numbers of its entries in the host's journal.
    pub noted: Vec<u64>,
}

/// Traces of a fault, host by host: needed to undo it.
pub(super) type FaultTraces = Vec<FaultTrace>;

impl FaultTrace {
    /// Trace of a fault; `None` where nothing did.
    fn of(host: usize, injected: &FaultOutcome) -> Option<FaultTrace> {
        let (processes, noted) = (injected.processes.clone(), injected.noted.clone());
        (!processes.is_empty() || !noted.is_empty()).then_some(FaultTrace { host, processes, noted })
    }
}

/// Servers.
pub(super) enum FaultTargets<'a> {
    /// Nothing that dyno has started.
    None,
    /// Of this host.
    Local(&'a mut Server),
    /// Of other hosts.
    Remote(&'a mut [RemoteServer]),
    /// In pods, one in each.
    Pods(&'a ServerPods, &'a Control),
}

/// Outcome of a fault on all hosts.
#[derive(Default)]
pub(super) struct Injection {
    /// By what means.
    pub means: String,
    /// Traces that undo it.
    pub noted: FaultTraces,
    /// Why it could not be done, or not to all.
    pub failed: Option<String>,
    /// It failed because a host does not allow it, and the file says to go on without.
    pub lacking: bool,
}

impl FaultTargets<'_> {
    /// Counts the processes on each host.
    fn each(&self) -> Vec<usize> {
        match self {
            FaultTargets::None => Vec::new(),
            FaultTargets::Local(server) => vec![server.count()],
            FaultTargets::Remote(all) => all.iter().map(|one| one.processes.len()).collect(),
            FaultTargets::Pods(pods, _) => vec![pods.pod_names().len()],
        }
    }

    /// The agent of a host.
    pub fn agent(&self, host: &str) -> Option<&RemoteAgent> {
        let FaultTargets::Remote(all) = self else { return None };
        all.iter().map(RemoteServer::agent).find(|agent| agent.name() == host)
    }

    /// Counts the processes of all hosts.
    pub fn count(&self) -> usize {
        self.each().iter().sum()
    }

    /// Injects a fault into processes `which`.
    pub fn inject(&mut self, which: &Range<usize>, fault: &ServerFault) -> Injection {
        let mut outcome = Injection::default();
        for (host, own) in parts(&self.each(), which) {
            let (message, injected) = match self {
                FaultTargets::None => continue,
                FaultTargets::Local(server) => (String::new(), Ok(server.inject_fault(own.clone(), fault))),
                FaultTargets::Remote(all) => {
                    (format!(" on {}", all[host].agent().name()), all[host].inject_fault(own.clone(), fault))
                }
                FaultTargets::Pods(pods, _) => {
                    (String::new(), Ok(inject_into_pods(pods, own.clone(), fault)))
                }
            };
            let injected = injected.unwrap_or_else(|lost| FaultOutcome {
                failed: Some(lost.to_string()),
                // The agent is lost: it is unknown which of them the fault has reached.
                processes: own.collect(),
                ..FaultOutcome::default()
            });
            outcome.noted.extend(FaultTrace::of(host, &injected));
            if let Some(why) = injected.failed {
                (outcome.failed, outcome.lacking) = (Some(why + &message), injected.lacking);
                return outcome;
            }
            if !outcome.means.is_empty() {
                outcome.means.push_str("; ");
            }
            outcome.means += &(injected.means + &message);
        }
        if outcome.means.is_empty() {
            outcome.failed = Some("there is no such server".into());
        }
        outcome
    }

    /// Undoes it; what there is to say of it then.
    pub fn heal(&mut self, fault: &ServerFault, noted: &FaultTraces) -> Result<Option<String>, FaultError> {
        let (mut words, mut failures) = (Vec::new(), Vec::new());
        for FaultTrace { host, processes, noted } in noted {
            let healed = match self {
                FaultTargets::None => Ok(None),
                FaultTargets::Local(server) => {
                    server.heal_fault(processes, fault, noted).map_err(FaultError::from)
                }
                FaultTargets::Remote(all) => {
                    all[*host].heal_fault(processes, fault, noted).map_err(FaultError::from)
                }
                FaultTargets::Pods(pods, control) => {
                    heal_pods(pods, processes, fault, control).map(|()| None).map_err(FaultError::from)
                }
            };
            match healed {
                Ok(said) => words.extend(said),
                Err(why) => failures.push(why),
            }
        }
        match failures.is_empty() {
            true => Ok(Some(words.join("; ")).filter(|message| !message.is_empty())),
            false => Err(FaultError::Several(failures)),
        }
    }
}

/// Names of the pods of servers.
fn named(pods: &ServerPods, which: impl Iterator<Item = usize>) -> Vec<&str> {
    which.filter_map(|at| pods.pod_names().get(at)).map(String::as_str).collect()
}

fn inject_into_pods(pods: &ServerPods, which: Range<usize>, fault: &ServerFault) -> FaultOutcome {
    let names = named(pods, which.clone());
    let (signal, message) = match fault {
        ServerFault::Restart => (PodSignal::Kill, "SIGKILL, the cluster starts it again: "),
        ServerFault::Pause => (PodSignal::Stop, "SIGSTOP: "),
        _ => {
            let failed = Some("servers in pods can be restarted and paused".into());
            return FaultOutcome { failed, ..FaultOutcome::default() };
        }
    };
    let mut injected =
        FaultOutcome { means: format!("{message}{}", names.join(", ")), ..FaultOutcome::default() };
    for (at, sent) in which.zip(pods.signal(&names, signal)) {
        match sent {
            Ok(()) => injected.processes.push(at),
            Err(why) => drop(injected.failed.get_or_insert(why.to_string())),
        }
    }
    injected
}

fn heal_pods(
    pods: &ServerPods,
    processes: &[usize],
    fault: &ServerFault,
    control: &Control,
) -> Result<(), SignalError> {
    let names = named(pods, processes.iter().copied());
    match fault {
        ServerFault::Pause => pods.signal(&names, PodSignal::Continue).into_iter().collect(),
        _ => names.iter().try_for_each(|name| pods.await_start(name, control)),
    }
}

/// Which of each host's own processes a range is, where hosts have so many each.
fn parts(each: &[usize], which: &Range<usize>) -> Vec<(usize, Range<usize>)> {
    let (mut parts, mut first) = (Vec::new(), 0);
    for (host, count) in each.iter().enumerate() {
        let own = which.start.max(first)..which.end.min(first + count);
        if !own.is_empty() {
            parts.push((host, own.start - first..own.end - first));
        }
        first += count;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_counted_through_all_hosts() {
        assert_eq!(parts(&[2, 3], &(0..5)), [(0, 0..2), (1, 0..3)]);
        assert_eq!(parts(&[2, 3], &(2..3)), [(1, 0..1)]);
        assert_eq!(parts(&[2, 3], &(1..2)), [(0, 1..2)]);
        assert_eq!(parts(&[2, 3], &(5..6)), []);
        assert_eq!(parts(&[], &(0..1)), []);
    }

    #[test]
    fn what_was_spared_leaves_no_trace() {
        let lacking = FaultOutcome {
            failed: Some("it is in no control group".into()),
            lacking: true,
            ..FaultOutcome::default()
        };
        assert_eq!(FaultTrace::of(1, &lacking), None);
        // The first of two was squeezed before the second could not be.
        let half = FaultOutcome { processes: vec![0], ..lacking };
        assert_eq!(
            FaultTrace::of(1, &half),
            Some(FaultTrace { host: 1, processes: vec![0], noted: Vec::new() })
        );
        let noted = FaultOutcome { noted: vec![7], ..FaultOutcome::default() };
        assert_eq!(
            FaultTrace::of(0, &noted),
            Some(FaultTrace { host: 0, processes: Vec::new(), noted: vec![7] })
        );
    }
}
