//! What servers must not be able to do to a client: replies that are cut, changed and lie about their lengths make no decoder
//! panic, read beyond its reply, or turn on the spot.

mod common;
mod mongodb;
mod redis;
