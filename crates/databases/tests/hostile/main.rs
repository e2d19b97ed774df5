//! What servers must not be able to do to a client: replies that are cut, changed and lie about their lengths make no decoder
//! panic, read beyond its reply, or turn on the spot. The same holds for what is written into connection strings.

mod common;
mod logins;
mod memcached;
mod mongodb;
mod redis;
mod uris;
