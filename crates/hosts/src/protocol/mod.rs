//! What travels between controller, workers and agents: frames, messages, leases, clock offsets.

pub mod agent;
pub mod frame;
pub mod group;
pub mod offset;
pub mod outbox;
pub mod service;
pub mod silence;
pub mod worker;
