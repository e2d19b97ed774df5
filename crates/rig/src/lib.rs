//! Where things run: targets and how they are opened, servers started for a run, and the run of a plan's phases.
//!
//! `target` reads a URI, `probe` asks a server what it is, `spawn` starts a temporary one, `session` takes a workload
//! through its phases (load, warm-up, measure) and fills the run directory, `watch` has monitors look on, `dns` asks for
//! the hosts of `mongodb+srv://`, `collections` counts, samples and drops documents of servers and embedded stores,
//! `proxy` stands in the way where an experiment asks for that. `local` starts the servers of an experiment,
//! `remote` does the same, and applies load, on other hosts. `official` is MongoDB by the official
//! driver; a build without that feature has `without_official`, which refuses such targets and holds nothing.

mod apparatus;
mod collections;
mod cores;
mod course;
mod dns;
mod edges;
pub mod experiment;
mod keyspace;
pub mod kubernetes;
pub mod local;
mod mongo;
#[cfg_attr(not(feature = "official"), path = "without_official.rs")]
mod official;
pub mod oracle;
mod parts;
mod presence;
mod probe;
pub mod prove;
mod proxy;
pub mod relay;
pub mod remote;
mod session;
mod silence;
mod spawn;
mod spoken;
mod stored;
pub mod strangers;
mod target;
mod temporary;
pub mod trusted;
mod volume;
mod watch;
pub mod work;
pub mod worker;

pub use apparatus::{Apparatus, Applied, Nature};
pub use collections::Collections;
pub use cores::choose_cores;
pub use mongo::{CommandError, MongoAdmin};
pub use official::{NO_BATCHES, OfficialDeployment, OfficialTarget};
pub use presence::{Inserted, inserted, remove};
pub use probe::Stop;
pub use session::{Ended, Observer, PhasePlan, Progress, Session, SessionPlan};
pub use spawn::{SERVERS, Spawned, find_server, free_port, spawn, spawn_under};
pub use stored::{DOCUMENTS, present_as, same_documents};
pub use target::{Client, Opened, SCHEMES, Target, TargetError};
pub use temporary::{Temporary, remove_abandoned};
pub use watch::{Said, ServerNow, Watch, WatchPlan, server_process, watch, watch_all};
