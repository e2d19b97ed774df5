//! Commands of one's own: named operations that follow each other in turns, with arguments drawn from key spaces.
//!
//! ```text
//! Commands --CommandRun--> index -> user and its turn -> operation -> arguments from the operation's own stream
//! ```
//!
//! An operation belongs to the user of its index modulo the number of users, and each user does so many of the first operation,
//! so many of the second, and so on; one operation may come between them. Everything follows from the seed, the user and the
//! turn.

mod clients;
mod config;
mod content;
mod run;

pub use clients::{ClientSecond, CommandClient};
pub use config::{
    ArgumentPart, Between, CommandOperation, Commands, DataSize, FirstOf, ImportedRecord, ImportedRecords,
    KeySpace, Pattern,
};
pub use run::CommandRun;

#[cfg(test)]
mod tests;
