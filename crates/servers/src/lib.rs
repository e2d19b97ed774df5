//! Servers on this host: started from an experiment file's words, placed, limited, put on storage of their own, read back
//! from the kernel, and gone without a trace afterwards.
//!
//! ```text
//! ServerSpec -> ports, plans (placement) -> home, journal (undo) -> data (storage) -> for each process:
//!   group (cgroup) -> configuration, command line (servers) -> shell that enters the group (launch) -> ready -> confirmed
//! -> clusters and replica sets (cluster) -> Server: URIs, processes, cores, facts
//! ```
//!
//! What must be put back stands in the journal of `dyno_localhost::undo` before it is done.

pub mod launch;
pub mod member;
pub mod needs;
pub mod placement;
pub mod server;
pub mod volume;
