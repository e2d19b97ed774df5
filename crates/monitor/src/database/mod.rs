//! Figures that databases report about themselves. Asking them is the caller's affair: a closure brings the answer.

mod memcached;
mod mongodb;
mod redis;

pub use memcached::stats;
pub use mongodb::server_status;
pub use redis::info;

use crate::sample::{AskError, Sample, SampleError, Source};

/// Brings one answer, or the error of who asks.
pub type Ask<T> = Box<dyn FnMut() -> Result<T, AskError> + Send>;

/// Refuses an answer of which nothing has been taken.
fn known(question: &'static str, sample: &Sample) -> Result<(), SampleError> {
    if sample.is_empty() { Err(SampleError::NothingKnown(question)) } else { Ok(()) }
}

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

    fn sample(&mut self, into: &mut Sample) -> Result<(), SampleError> {
        info(&(self.ask)().map_err(SampleError::Ask)?, into);
        known("INFO", into)
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

    fn sample(&mut self, into: &mut Sample) -> Result<(), SampleError> {
        server_status(&(self.ask)().map_err(SampleError::Ask)?, into);
        known("serverStatus", into)
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

    fn sample(&mut self, into: &mut Sample) -> Result<(), SampleError> {
        stats(&(self.ask)().map_err(SampleError::Ask)?, into);
        known("stats", into)
    }

    fn waits(&self) -> bool {
        true
    }
}
