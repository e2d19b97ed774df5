//! Messages between a controller and a group of workers on one host.
//!
//! A group is one program that starts its workers beside it, or in other pods of its node. On its pipe, frames of a worker stand
//! in frames of kind `member`; a second of load outside of them is the sum of all its workers.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Where a worker of a group is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberPlace {
    /// Beside the group's own program.
    Here,
    /// In the pod that listens at this address.
    Pod(SocketAddr),
}

/// Controller to group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToGroup {
    /// The first word: starts workers.
    Hello {
        /// [`crate::protocol::worker::PROTOCOL`].
        protocol: u32,
        /// Where each of its workers is started.
        workers: Vec<MemberPlace>,
    },
    /// A sign of life for all of them; written as [`crate::protocol::worker::ToWorker::Ping`] is.
    Ping,
    /// Closes the input of a worker.
    Close {
        /// Its number in the group.
        worker: u32,
    },
    /// Ends a worker at once.
    Kill {
        /// Its number in the group.
        worker: u32,
    },
}

/// Group to controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromGroup {
    /// The answer to hello.
    Hello {
        /// [`crate::protocol::worker::PROTOCOL`].
        protocol: u32,
    },
    /// A worker has ended.
    Ended {
        /// Its number in the group.
        worker: u32,
        /// Why nothing more comes of it.
        why: String,
        /// How its process ended; of one that was ended because it could not be understood, why.
        status: String,
    },
}
