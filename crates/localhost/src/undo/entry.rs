//! Entries of a journal: the things that must be undone.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Something that must be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "undo")]
pub enum Undo {
    /// A process to be ended, and its group; its start time tells it from a later one of the same number.
    Process {
        /// Number, and its group's.
        pid: u32,
        /// Clock ticks since the host's start.
        started: u64,
        /// Session, by which what has outlived it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<u32>,
    },
    /// A process that was stopped (SIGSTOP), and its group: it goes on.
    Continue {
        /// Number, and its group's if it leads one.
        pid: u32,
        /// Clock ticks since the host's start.
        started: u64,
    },
    /// A control group to be removed, with what still runs in it.
    Cgroup {
        /// Folder.
        path: PathBuf,
    },
    /// A filesystem to be unmounted.
    Mount {
        /// Mount point.
        path: PathBuf,
    },
    /// Loop devices to be detached.
    Loop {
        /// The file behind them.
        file: PathBuf,
    },
    /// An md array to be stopped.
    Array {
        /// Device.
        device: PathBuf,
    },
    /// A file to be removed.
    File {
        /// Path.
        path: PathBuf,
    },
    /// A folder to be removed with all that is in it.
    Folder {
        /// Path.
        path: PathBuf,
    },
    /// A table of the packet filter to be removed.
    Table {
        /// Name.
        name: String,
    },
    /// A network device to be given its usual queueing discipline.
    Device {
        /// Name.
        name: String,
        /// The handle of the root that is ours.
        handle: String,
    },
    /// A setting of the kernel to be written back.
    Value {
        /// File.
        path: PathBuf,
        /// Content before.
        old: String,
    },
}
