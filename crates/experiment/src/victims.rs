//! The servers that faults are done to, on this host, through the agents of others or in pods, counted through from 0.

use crate::faults::FaultError;
use dyno_engine::Control;
use dyno_kubernetes::servers::ServerPods;
use dyno_kubernetes::signals::PodSignal;
use dyno_kubernetes::signals::SignalError;
use dyno_remote::far::{Far, FarServer};
use dyno_servers::server::Server;
use dyno_servers::server::faults::{Harm, Harmed};
use std::ops::Range;

/// What a fault has left to be undone on a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trace {
    /// Which host; 0: this one, or the first.
    pub host: usize,
    /// The host's own processes that it was done to, from 0.
    pub processes: Vec<usize>,
    /// What the host's journal has it by.
    pub noted: Vec<u64>,
}

/// What undoes a fault, host by host.
pub(super) type Noted = Vec<Trace>;

impl Trace {
    /// Of what came of a harm; none where nothing did.
    fn of(host: usize, harmed: &Harmed) -> Option<Trace> {
        let (processes, noted) = (harmed.processes.clone(), harmed.noted.clone());
        (!processes.is_empty() || !noted.is_empty()).then_some(Trace { host, processes, noted })
    }
}

/// Servers.
pub(super) enum Victims<'a> {
    /// Nothing that dyno has started.
    Nobody,
    /// Of this host.
    Near(&'a mut Server),
    /// Of other hosts.
    Far(&'a mut [FarServer]),
    /// In pods, one in each.
    Pods(&'a ServerPods, &'a Control),
}

/// What came of a fault on all of them.
#[derive(Default)]
pub(super) struct Outcome {
    /// By what means.
    pub means: String,
    /// What undoes it.
    pub noted: Noted,
    /// Why it could not be done, or not to all.
    pub failed: Option<String>,
    /// It failed because a host does not allow it, and the file says to go on without.
    pub lacking: bool,
}

impl Victims<'_> {
    /// How many processes there are on each host.
    fn each(&self) -> Vec<usize> {
        match self {
            Victims::Nobody => Vec::new(),
            Victims::Near(server) => vec![server.count()],
            Victims::Far(all) => all.iter().map(|one| one.processes.len()).collect(),
            Victims::Pods(pods, _) => vec![pods.names().len()],
        }
    }

    /// The agent of a host.
    pub fn agent(&self, host: &str) -> Option<&Far> {
        let Victims::Far(all) = self else { return None };
        all.iter().map(FarServer::far).find(|far| far.name() == host)
    }

    /// How many processes there are.
    pub fn count(&self) -> usize {
        self.each().iter().sum()
    }

    /// Does it to processes `which`.
    pub fn harm(&mut self, which: &Range<usize>, harm: &Harm) -> Outcome {
        let mut outcome = Outcome::default();
        for (host, own) in parts(&self.each(), which) {
            let (words, harmed) = match self {
                Victims::Nobody => continue,
                Victims::Near(server) => (String::new(), Ok(server.harm(own.clone(), harm))),
                Victims::Far(all) => {
                    (format!(" on {}", all[host].far().name()), all[host].harm(own.clone(), harm))
                }
                Victims::Pods(pods, _) => (String::new(), Ok(harm_pods(pods, own.clone(), harm))),
            };
            let harmed = harmed.unwrap_or_else(|lost| Harmed {
                failed: Some(lost.to_string()),
                // Nobody knows to which.
                processes: own.collect(),
                ..Harmed::default()
            });
            outcome.noted.extend(Trace::of(host, &harmed));
            if let Some(why) = harmed.failed {
                (outcome.failed, outcome.lacking) = (Some(why + &words), harmed.lacking);
                return outcome;
            }
            if !outcome.means.is_empty() {
                outcome.means.push_str("; ");
            }
            outcome.means += &(harmed.means + &words);
        }
        if outcome.means.is_empty() {
            outcome.failed = Some("there is no such server".into());
        }
        outcome
    }

    /// Undoes it; what there is to say of it then.
    pub fn heal(&mut self, harm: &Harm, noted: &Noted) -> Result<Option<String>, FaultError> {
        let (mut words, mut failures) = (Vec::new(), Vec::new());
        for Trace { host, processes, noted } in noted {
            let healed = match self {
                Victims::Nobody => Ok(None),
                Victims::Near(server) => server.heal(processes, harm, noted).map_err(FaultError::from),
                Victims::Far(all) => all[*host].heal(processes, harm, noted).map_err(FaultError::from),
                Victims::Pods(pods, control) => {
                    heal_pods(pods, processes, harm, control).map(|()| None).map_err(FaultError::from)
                }
            };
            match healed {
                Ok(said) => words.extend(said),
                Err(why) => failures.push(why),
            }
        }
        match failures.is_empty() {
            true => Ok(Some(words.join("; ")).filter(|words| !words.is_empty())),
            false => Err(FaultError::Several(failures)),
        }
    }
}

/// Names of the pods of servers.
fn named(pods: &ServerPods, which: impl Iterator<Item = usize>) -> Vec<&str> {
    which.filter_map(|at| pods.names().get(at)).map(String::as_str).collect()
}

fn harm_pods(pods: &ServerPods, which: Range<usize>, harm: &Harm) -> Harmed {
    let names = named(pods, which.clone());
    let (signal, words) = match harm {
        Harm::Restart => (PodSignal::Kill, "SIGKILL, the cluster starts it again: "),
        Harm::Pause => (PodSignal::Stop, "SIGSTOP: "),
        _ => {
            let failed = Some("servers in pods can be restarted and paused".into());
            return Harmed { failed, ..Harmed::default() };
        }
    };
    let mut harmed = Harmed { means: format!("{words}{}", names.join(", ")), ..Harmed::default() };
    for (at, sent) in which.zip(pods.signal(&names, signal)) {
        match sent {
            Ok(()) => harmed.processes.push(at),
            Err(why) => drop(harmed.failed.get_or_insert(why.to_string())),
        }
    }
    harmed
}

fn heal_pods(
    pods: &ServerPods,
    processes: &[usize],
    harm: &Harm,
    control: &Control,
) -> Result<(), SignalError> {
    let names = named(pods, processes.iter().copied());
    match harm {
        Harm::Pause => pods.signal(&names, PodSignal::Continue).into_iter().collect(),
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
        let lacking =
            Harmed { failed: Some("it is in no control group".into()), lacking: true, ..Harmed::default() };
        assert_eq!(Trace::of(1, &lacking), None);
        // The first of two was squeezed before the second could not be.
        let half = Harmed { processes: vec![0], ..lacking };
        assert_eq!(Trace::of(1, &half), Some(Trace { host: 1, processes: vec![0], noted: Vec::new() }));
        let noted = Harmed { noted: vec![7], ..Harmed::default() };
        assert_eq!(Trace::of(0, &noted), Some(Trace { host: 0, processes: Vec::new(), noted: vec![7] }));
    }
}
