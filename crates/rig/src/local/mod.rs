//! Servers on this host: started from an experiment file's words, placed, limited, put on storage of their own, read back
//! from the kernel, and gone without a trace afterwards.
//!
//! ```text
//! ServerSpec -> ports, plans (placement) -> home, journal (undo) -> data (storage) -> for each process:
//!   group (cgroup) -> configuration, command line (servers) -> shell that enters the group (launch) -> ready -> confirmed
//! -> clusters and replica sets (cluster) -> Server: URIs, processes, cores, facts
//! ```
//!
//! What must be put back stands in `undo.jsonl` before it is done; a normal stop and [`undo::revert`] take the same list.

mod cgroup;
mod clock;
mod cluster;
mod confine;
mod count;
mod elsewhere;
mod error;
mod launch;
mod machine;
mod member;
mod needs;
mod packets;
pub mod placement;
pub(crate) mod process;
mod resp;
mod server;
mod servers;
mod shaping;
mod storage;
pub mod tuning;
pub mod undo;

pub use elsewhere::{Contained, Role, contained};
pub(crate) use elsewhere::{count_elsewhere, form_elsewhere, save_elsewhere};
pub use error::LocalError;
pub use launch::Confinement;
pub use machine::Machine;
pub use needs::program_version;
pub(crate) use needs::{has_engine, program, router, version_of};
pub use resp::RespError;
pub(crate) use resp::{
    Client as RespClient, Failed as RespFailed, Login as RespLogin, Reply as RespReply, reply as resp_reply,
};
pub(crate) use server::{Beginning, Way, harm_worker, volume};
pub use server::{Harm, Harmed, Room, Server, WorkerHarm};
pub(crate) use shaping::{can_narrow, can_slow};
pub(crate) use storage::run_under;
