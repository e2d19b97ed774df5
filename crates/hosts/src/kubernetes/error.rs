//! What can go wrong with a run's objects in a cluster.

use crate::kubernetes::kubectl::KubectlError;
use dyno_localhost::error::LocalError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Errors while creating or deleting a run's pods.
#[derive(Debug, thiserror::Error)]
pub enum PodsError {
    /// kubectl has not done what was asked.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// No objects can be made of what is asked for.
    #[error(transparent)]
    Manifests(#[from] LocalError),
    /// The journal cannot be written or removed.
    #[error("{}: {source}", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A pod has failed, or its server is not there any more.
    #[error("pod {pod}: {why}{}", end_of(log))]
    Failed {
        /// The pod.
        pod: String,
        /// The cluster's reason.
        why: String,
        /// Last lines of its log.
        log: Vec<String>,
    },
    /// A pod has not sent all of a folder; what it said of that stands on standard error.
    #[error("pod {pod} has not sent all of it: kubectl exec has ended with {status}")]
    NotSent {
        /// Its name.
        pod: String,
        /// How the command has ended.
        status: std::process::ExitStatus,
    },
    /// The cluster makes no pods, such as for a quota or a policy, in its own words.
    #[error("{0}")]
    Refused(String),
    /// The cluster has not the nodes that the run's pods need.
    #[error("{0}")]
    NoRoom(String),
    /// Nodes have this image by its name, and not by the digest that it was asked for by.
    #[error("{0} cannot be pulled by its digest")]
    NotPulled(String),
    /// Images are not those of the experiment's first run.
    #[error("{0}")]
    OtherImages(String),
    /// Pods are not ready in time.
    #[error("not ready after {} s: {why}", waited.as_secs())]
    Late {
        /// Time that they were waited for.
        waited: Duration,
        /// The first that is not ready, or what is not there.
        why: String,
    },
    /// The user has asked dyno to stop.
    #[error("interrupted")]
    Interrupted,
    /// A pod has no address.
    #[error("pod {0} has no address")]
    NoAddress(String),
    /// A pod is of none of the run's StatefulSets.
    #[error("pod {pod} is of none of {}", sets.join(", "))]
    Unknown {
        /// The pod.
        pod: String,
        /// The StatefulSets.
        sets: Vec<String>,
    },
    /// Servers that should stand are gone: the label that they had.
    #[error("no servers stand there any more ({0})")]
    Gone(String),
    /// Objects are still there long after they were deleted.
    #[error("still there after {} s: {objects}", waited.as_secs())]
    Left {
        /// Time that they were waited for.
        waited: Duration,
        /// Their names.
        objects: String,
    },
    /// Results cannot be copied out of the cluster.
    #[error("{}: {source}", folder.display())]
    Copy {
        /// Folder that they were to be copied into.
        folder: PathBuf,
        /// Error of the copy.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

fn end_of(log: &[String]) -> String {
    if log.is_empty() { String::new() } else { format!("; its log ends: {}", log.join(" | ")) }
}
