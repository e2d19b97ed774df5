//! Where things run: targets and how they are opened, servers started for a run, and the run of a plan's phases.
//!
//! `databases` has a module for each database: URIs, probing, facts, monitors. `spawn` starts a temporary server, `session`
//! takes a workload through its phases (load, warm-up, measure) and fills the run directory, `watch` has monitors look on,
//! `proxy` stands in the way where an experiment asks for that. `local` starts the servers of an experiment,
//! `remote` does the same, and applies load, on other hosts.

mod collection_stats;
mod cores;
mod course;
pub mod databases;
mod edges;
pub mod experiment;
mod keyspace;
pub mod kubernetes;
mod load_generator;
pub mod local;
mod offset;
pub mod oracle;
mod parts;
mod port;
mod presence;
pub mod prove;
mod proxy;
pub mod relay;
pub mod remote;
mod session;
mod silence;
mod spawn;
mod stored;
pub mod strangers;
mod temporary;
pub mod trusted;
mod volume;
mod watch;
pub mod work;
pub mod worker;

pub use cores::choose_cores;
pub use databases::mongodb::official::NO_BATCHES;
pub use databases::mongodb::{CommandError, MongoAdmin};
pub use databases::{Client, Collections, OpenTarget, Stop, Target, TargetError, TargetInfo};
pub use load_generator::{Applied, LoadGenerator};
pub use port::free_port;
pub use presence::{Inserted, inserted, remove};
pub use session::{Ended, Observer, PhasePlan, Progress, Session, SessionPlan};
pub use spawn::{Spawned, find_server, servers, spawn, spawn_under};
pub use stored::{DOCUMENTS, present_as, same_documents};
pub use temporary::{Temporary, remove_abandoned};
pub use watch::{Said, ServerNow, Watch, WatchPlan, server_process, watch, watch_all};
