//! Recordings of memcached: what is sent of them, and how it goes over the wire.

pub(super) mod memcached_rules;
mod sent_command;

pub use sent_command::{meta_flags, timeless_command};
pub(super) use sent_command::{put_command, sent_command};
