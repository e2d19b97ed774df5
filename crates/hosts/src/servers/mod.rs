//! Servers on this host: started from an experiment file's words, placed, limited, put on storage of their own, read back
//! from the kernel, and gone without a trace afterwards.
//!
//! ```text
//! ServerSpec -> ports, plans (placement) -> work directory, journal (localhost) -> data (localhost) -> for each process:
//!   group (localhost) -> configuration, command line (databases) -> shell that enters the group (launch) -> ready -> confirmed
//! -> clusters and replica sets (databases) -> Server: URIs, processes, cores, facts
//! ```
//!
//! Changes that must be put back stand in the journal of `dyno_localhost::undo` before they are made.

pub mod engine_trial;
pub mod launch;
pub mod placement;
pub mod preflight;
pub mod server;
pub mod server_process;
pub mod volume;
