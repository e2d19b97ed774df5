//! What is done to servers in pods on purpose: signals, by a shell in the server's container.
//!
//! Pods whose servers have faults share one namespace of processes, whose first is the pod's own: a server that was the first
//! itself could not be stopped from within. One that was killed is started again by the kubelet, at its own time.

use crate::kubernetes::error::PodsError;
use crate::kubernetes::kubectl::KubectlError;
use crate::kubernetes::servers::ServerPods;
use dyno_engine::Control;
use serde_json::json;
use std::time::{Duration, Instant};

/// Sends a signal to all processes but the pod's own, this shell and dyno's, which tends the node; says first to how many.
const SIGNAL: &str = r#"all=; n=0
for p in /proc/[0-9]*; do
  p=${p#/proc/}
  name=; read -r name </proc/$p/comm
  if [ "$p" != 1 ] && [ "$p" != $$ ] && [ "$name" != dyno ] && kill -0 "$p" 2>/dev/null; then all="$all $p"; n=$((n + 1)); fi
done
echo "$n"
[ "$n" = 0 ] || kill -"$1" $all"#;

/// Time that the cluster may take to see that a container has ended.
const SEEN: Duration = Duration::from_secs(10);
/// Time that it may take to start it again: it waits the longer the more often it has ended.
const STARTED: Duration = Duration::from_secs(120);

/// A signal for servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodSignal {
    /// Ends it; the kubelet starts it again.
    Kill,
    /// Stops it.
    Stop,
    /// Has it go on.
    Continue,
}

impl PodSignal {
    fn name(self) -> &'static str {
        match self {
            PodSignal::Kill => "KILL",
            PodSignal::Stop => "STOP",
            PodSignal::Continue => "CONT",
        }
    }
}

/// Option that the pods of signalled servers have.
const SHARED: &str =
    "pods of servers with faults share one namespace of processes (shareProcessNamespace) and have a shell";

/// Why the server of a pod could not be signalled, or has not come back.
#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    /// No process but the pod's own is there.
    #[error("pod {0}: there is nothing to be signalled: {SHARED}")]
    NoProcess(String),
    /// The shell that signals has failed.
    #[error("pod {pod}: {source}; {SHARED}")]
    Shell {
        /// The pod's name.
        pod: String,
        /// Error of kubectl.
        source: KubectlError,
    },
    /// The server has not ended: why the shell failed, and what the cluster has answered last instead.
    #[error("pod {pod}: its server still runs after SIGKILL{}{}", after(shell), after(cluster))]
    StillRuns {
        /// The pod's name.
        pod: String,
        /// Error of the shell in it, if it did not do its work.
        shell: Option<KubectlError>,
        /// Error of asking the cluster, if it failed.
        cluster: Option<KubectlError>,
    },
    /// A server that was killed has not come back.
    #[error(transparent)]
    NotBack(PodsError),
    /// The thread that signals has panicked.
    #[error("the thread that signals has failed")]
    Panicked,
}

fn after(error: &Option<KubectlError>) -> String {
    error.as_ref().map_or(String::new(), |error| format!(": {error}"))
}

impl ServerPods {
    /// Sends a signal to the servers in these pods, to all at the same time; for each, why it could not be.
    pub fn signal(&self, pods: &[&str], signal: PodSignal) -> Vec<Result<(), SignalError>> {
        std::thread::scope(|scope| {
            let sent: Vec<_> = pods.iter().map(|pod| scope.spawn(move || self.send(pod, signal))).collect();
            let failed = |_| Err(SignalError::Panicked);
            sent.into_iter().map(|one| one.join().unwrap_or_else(failed)).collect()
        })
    }

    fn send(&self, pod: &str, signal: PodSignal) -> Result<(), SignalError> {
        if signal == PodSignal::Kill {
            // Set before the kill: a watcher would take the end for a failure.
            self.expect_end(pod);
        }
        let words = ["exec", pod, "-c", "server", "--", "sh", "-c", SIGNAL, "sh", signal.name()];
        let told = self.kubectl().run(&words, None);
        match (told, signal) {
            (Ok(count), _) if count.trim() == "0" => Err(SignalError::NoProcess(pod.to_owned())),
            // The shell ends with the container: that it has ended is asked of the cluster.
            (told, PodSignal::Kill) => self.await_end(pod, told.err()),
            (Ok(_), _) => Ok(()),
            (Err(source), _) => Err(SignalError::Shell { pod: pod.to_owned(), source }),
        }
    }

    /// Waits until the server of a pod that was killed is there again, or the user asks dyno to stop.
    pub fn await_start(&self, pod: &str, control: &Control) -> Result<(), SignalError> {
        let seen = waited(STARTED, || if control.is_stopping() { Ok(true) } else { self.is_back(pod) });
        seen.map_err(|cluster| {
            let why =
                format!("its server has not come back after {} s{}", STARTED.as_secs(), after(&cluster));
            let found = self.one(pod).unwrap_or_else(|_| json!({"metadata": {"name": pod}}));
            SignalError::NotBack(self.with_log(&found, why))
        })
    }

    /// Waits until the cluster has seen a container end that was killed.
    fn await_end(&self, pod: &str, shell: Option<KubectlError>) -> Result<(), SignalError> {
        waited(SEEN, || self.has_ended(pod)).map_err(|cluster| SignalError::StillRuns {
            pod: pod.to_owned(),
            shell,
            cluster,
        })
    }
}

/// Waits until something is so, for as long as that may take. An error says why the last answer did not come, if it did not. A
/// cluster that does not answer once may answer the next time.
fn waited<E>(patience: Duration, is_so: impl Fn() -> Result<bool, E>) -> Result<(), Option<E>> {
    let end = Instant::now() + patience;
    loop {
        match is_so() {
            Ok(true) => return Ok(()),
            other if Instant::now() >= end => return Err(other.err()),
            _ => std::thread::sleep(Duration::from_millis(300)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_does_not_answer_once_is_asked_again() {
        let asked = Cell::new(0);
        let third = || {
            asked.set(asked.get() + 1);
            if asked.get() < 3 { Err("silent") } else { Ok(true) }
        };
        assert_eq!(waited(Duration::from_secs(60), third), Ok(()));
        assert_eq!(asked.get(), 3);
        assert_eq!(waited::<&str>(Duration::ZERO, || Ok(false)), Err(None));
        assert_eq!(waited(Duration::ZERO, || Err("silent")), Err(Some("silent")));
    }
}
