//! Dragonfly: its servers, and clusters of them.

pub mod cluster;
pub mod server;

#[cfg(test)]
mod tests;
