//! What databases say of themselves. How they are asked is the caller's affair: a closure that brings the answer.

mod memcached;
mod mongodb;
mod redis;

pub use memcached::stats;
pub use mongodb::server_status;
pub use redis::info;

use crate::sample::{Sample, Source};

/// Brings one answer, or says in words why there is none.
pub type Ask<T> = Box<dyn FnMut() -> Result<T, String> + Send>;

/// `INFO` of Redis and what speaks its protocol.
pub struct RedisSource {
    name: String,
    ask: Ask<String>,
}

impl RedisSource {
    /// `ask` brings the text of `INFO all`.
    pub fn new(name: &str, ask: Ask<String>) -> Self {
        RedisSource { name: name.to_owned(), ask }
    }
}

impl Source for RedisSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn sample(&mut self, into: &mut Sample) -> Result<(), String> {
        info(&(self.ask)()?, into);
        if into.is_empty() { Err("INFO says nothing that is known".into()) } else { Ok(()) }
    }

    fn waits(&self) -> bool {
        true
    }
}

/// `serverStatus` of MongoDB.
pub struct MongoSource {
    name: String,
    ask: Ask<Vec<u8>>,
}

impl MongoSource {
    /// `ask` brings the document.
    pub fn new(name: &str, ask: Ask<Vec<u8>>) -> Self {
        MongoSource { name: name.to_owned(), ask }
    }
}

impl Source for MongoSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn sample(&mut self, into: &mut Sample) -> Result<(), String> {
        server_status(&(self.ask)()?, into);
        if into.is_empty() { Err("serverStatus says nothing that is known".into()) } else { Ok(()) }
    }

    fn waits(&self) -> bool {
        true
    }
}

/// `stats` of memcached.
pub struct MemcachedSource {
    name: String,
    ask: Ask<String>,
}

impl MemcachedSource {
    /// `ask` brings the text of `stats`: its lines as they come.
    pub fn new(name: &str, ask: Ask<String>) -> Self {
        MemcachedSource { name: name.to_owned(), ask }
    }
}

impl Source for MemcachedSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn sample(&mut self, into: &mut Sample) -> Result<(), String> {
        stats(&(self.ask)()?, into);
        if into.is_empty() { Err("stats says nothing that is known".into()) } else { Ok(()) }
    }

    fn waits(&self) -> bool {
        true
    }
}
