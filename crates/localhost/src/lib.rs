//! This host: processes, control groups, storage, the network's shape, clocks and settings; and the journal of what must be put
//! back.
//!
//! Everything that must be put back stands in `undo.jsonl` before it is done; a normal stop and [`undo::revert_journal`] take
//! the same
//! list.

pub mod cgroup;
pub mod clock;
pub mod error;
pub mod image;
pub mod machine;
pub mod packet_filter;
pub mod port;
pub mod process;
pub mod programs;
pub mod registry;
pub mod settings;
pub mod shaping;
pub mod storage;
pub mod temporary;
pub mod trusted;
pub mod tuning;
pub mod undo;
pub mod undo_policy;
