//! Messages between a controller and a group of workers on one host.
//!
//! A group is one program that starts its workers beside it. On its pipe, frames of a worker stand in frames of kind `member`; a
//! second of load outside of them is the sum of all its workers.

use serde::{Deserialize, Serialize};

/// Controller to group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToGroup {
    /// The first word: starts workers.
    Hello {
        /// [`crate::protocol::worker::PROTOCOL`].
        protocol: u32,
        /// Number of its workers.
        workers: u32,
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
