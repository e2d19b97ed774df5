//! Replay: a recording as a workload of the engine.
//!
//! ```text
//! file --survey--> which users, names and times --> Replay (a workload whose operations are due when they were)
//! file --feed (a thread)--> a queue for each user --> Replay::request -> bytes
//! reply --> divergence from the reply of then
//! ```
//!
//! The file is read twice: `survey` looks at all of it before the run, `feed` keeps as much ahead of the load as memory allows.
//! `selection` says what is sent at all, by the rules of the recording's protocol (`redis_rules`, `memcached`, `mongodb`),
//! `data_set` what a data set holds.

mod against;
mod compare;
mod data_set;
mod expiry;
mod feed;
mod memcached;
mod mongodb;
mod options;
mod played_command;
mod redis_rules;
mod selection;
mod slots;
mod survey;
mod workload;

pub use against::{AgainstReplies, ReplaySide};
pub use data_set::{DataSetContents, find_contents};
pub use memcached::{meta_flags, timeless_command};
pub use mongodb::sent_document;
pub use options::{ReplayOnly, ReplayOptions, ReplayPace, ReplaySchedule};
pub(crate) use selection::Chooser;
pub use slots::ClusterRules;
pub use survey::{DATABASES, RecordingSurvey, survey_file};
pub use workload::Replay;
