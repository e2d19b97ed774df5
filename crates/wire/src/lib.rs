//! Network protocols without input or output: bytes in, bytes out.
//!
//! One folder per database. Each holds its codec, its topology and its options; sockets, TLS and clocks belong to the
//! engine. `null` answers nothing and costs nothing (the engine's ceiling); `sim` is a server in virtual time.

pub mod address;
pub mod memcached;
pub mod mongodb;
mod names;
pub mod null;
pub mod redis;
pub mod sim;
