//! Why processes are not yet what they make together.

use crate::target_error::TargetError;
use dyno_localhost::error::Cause;
use std::time::Duration;

/// Why processes are no cluster, no copies, no replica set or no shards: not yet, or not at all.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A process does not answer, or refuses; as its database's module says it.
    #[error(transparent)]
    Database(#[from] Cause),
    /// A reply lacks a value.
    #[error("{command} has no {key}")]
    Lacking {
        /// The command sent.
        command: String,
        /// The value's name.
        key: &'static str,
    },
    /// A node knows another by an address that none has now.
    #[error("{node} still knows a node at {address}, where none of them is")]
    OldAddress {
        /// The node.
        node: String,
        /// The address.
        address: String,
    },
    /// A node does not know all others, or all shards.
    #[error("{node} knows {known} {what} of {all}")]
    Unacquainted {
        /// The node's name.
        node: String,
        /// Number of nodes or shards it knows.
        known: String,
        /// Nodes or shards.
        what: &'static str,
        /// Number of nodes or shards there are.
        all: usize,
    },
    /// A node is still shaking hands.
    #[error("{0} is still meeting the others")]
    Meeting(String),
    /// A node has no name to be told of.
    #[error("{0} has no name (CLUSTER MYID)")]
    Nameless(String),
    /// A copy does not follow its primary.
    #[error("{node}: master_link_status:{status}")]
    Link {
        /// The copy's name.
        node: String,
        /// Status that it reports instead of `up`.
        status: String,
    },
    /// Copies lack what their primary has.
    #[error("{primary}: {counted} of {all} copies are in step")]
    Behind {
        /// The primary's name.
        primary: String,
        /// Number of copies that have everything.
        counted: usize,
        /// Number of copies there are.
        all: usize,
    },
    /// The same of replicas of a cluster.
    #[error("{counted} of {all} replicas are in step")]
    ReplicasBehind {
        /// Number of replicas that have everything.
        counted: usize,
        /// Number of replicas there are to be.
        all: u32,
    },
    /// Some replicas are something else.
    #[error("{found} replicas of {all}")]
    Replicas {
        /// Number of replicas there are.
        found: u32,
        /// Number of replicas there are to be.
        all: u32,
    },
    /// A node says that the cluster is not whole.
    #[error("{node}: cluster_state:{state}, {covered} slots of {all}")]
    NotWhole {
        /// The node's name.
        node: String,
        /// The state that it tells.
        state: String,
        /// Number of slots that it says are served.
        covered: String,
        /// Number of slots there are.
        all: u32,
    },
    /// A primary takes no key of those that are tried.
    #[error("no key could be written")]
    NothingWritten,
    /// The reply to WAIT is no number.
    #[error("WAIT: {0:?}")]
    Wait(String),
    /// Members of a replica set are not one primary and secondaries.
    #[error("{set}: the members' states are {states:?}")]
    States {
        /// The set's name.
        set: String,
        /// The states of those that are known.
        states: Vec<i64>,
    },
    /// A sharded cluster without a router.
    #[error("it has no router")]
    NoRouter,
    /// None of this has ended in time; the last reason.
    #[error("not ready after {patience:?}: {source}")]
    Late {
        /// Time that was waited.
        patience: Duration,
        /// Why it was not ready by then.
        source: Box<ClusterError>,
    },
}

impl From<TargetError> for ClusterError {
    fn from(why: TargetError) -> Self {
        ClusterError::Database(why.into())
    }
}
