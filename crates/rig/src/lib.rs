//! Where things run: targets and how they are opened, servers started for a run, and the run of a plan's phases.
//!
//! `target` reads a URI, `probe` asks a server what it is, `spawn` starts a temporary one, `session` takes a workload
//! through its phases (load, warm-up, measure) and fills the run directory.

mod mongo;
pub mod oracle;
mod parts;
mod probe;
mod session;
mod spawn;
mod target;

pub use mongo::MongoAdmin;
pub use session::{Ended, Observer, PhasePlan, Progress, Session, SessionPlan, present};
pub use spawn::{SERVERS, Spawned, find_server, free_port, spawn};
pub use target::{Opened, SCHEMES, Target, TargetError};
