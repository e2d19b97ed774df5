//! A connection whatever its protocol: captures and the proxy have no code of their own for any of them.

use super::ExchangeSink;
use super::memcached::MemcachedExchange;
use super::mongodb::{MongodbExchange, MongodbShared};
use super::redis::RedisExchange;
use crate::format::RecordingError;
use crate::protocol::RecordedProtocol;
use std::sync::{Arc, Mutex};

/// A protocol whose requests and replies are paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PairedProtocol {
    /// Redis and its kin.
    Redis,
    /// The text protocols of memcached.
    Memcached,
    /// MongoDB, and what speaks its wire protocol.
    Mongodb,
}

impl PairedProtocol {
    /// All of them.
    pub const ALL: [PairedProtocol; 3] =
        [PairedProtocol::Redis, PairedProtocol::Memcached, PairedProtocol::Mongodb];

    /// Its recordings' protocol.
    pub fn recorded_protocol(self) -> RecordedProtocol {
        match self {
            PairedProtocol::Redis => RecordedProtocol::Redis,
            PairedProtocol::Memcached => RecordedProtocol::Memcached,
            PairedProtocol::Mongodb => RecordedProtocol::Mongodb,
        }
    }

    /// Its name in messages.
    pub fn display_name(self) -> &'static str {
        match self {
            PairedProtocol::Redis => "Redis",
            PairedProtocol::Memcached => "memcached",
            PairedProtocol::Mongodb => "MongoDB",
        }
    }
}

/// What the connections of a recording have in common.
pub struct ExchangeSettings {
    value_limit: usize,
    common: CommonParts,
}

enum CommonParts {
    Redis,
    Memcached,
    Mongodb(Arc<Mutex<MongodbShared>>),
}

impl ExchangeSettings {
    /// Connections of this protocol. Values longer than `value_limit` are not kept.
    pub fn new(protocol: PairedProtocol, value_limit: usize) -> Self {
        let common = match protocol {
            PairedProtocol::Redis => CommonParts::Redis,
            PairedProtocol::Memcached => CommonParts::Memcached,
            PairedProtocol::Mongodb => CommonParts::Mongodb(Arc::default()),
        };
        ExchangeSettings { value_limit, common }
    }

    /// A connection with this number. `is_begin`: what comes first are its first bytes.
    pub fn open_exchange(&self, connection: u32, is_begin: bool) -> Exchange {
        match &self.common {
            CommonParts::Redis => {
                Exchange::Redis(Box::new(RedisExchange::new(connection, self.value_limit, is_begin)))
            }
            CommonParts::Memcached => {
                Exchange::Memcached(Box::new(MemcachedExchange::new(connection, self.value_limit, is_begin)))
            }
            CommonParts::Mongodb(shared) => Exchange::Mongodb(Box::new(MongodbExchange::new(
                connection,
                self.value_limit,
                is_begin,
                shared.clone(),
            ))),
        }
    }
}

/// A connection of a client, whatever its protocol.
pub enum Exchange {
    /// Of Redis.
    Redis(Box<RedisExchange>),
    /// Of memcached.
    Memcached(Box<MemcachedExchange>),
    /// Of MongoDB.
    Mongodb(Box<MongodbExchange>),
}

impl Exchange {
    /// Takes bytes of the client's, which came at a time, nanoseconds.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn feed_request(
        &mut self,
        at_ns: u64,
        bytes: &[u8],
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        match self {
            Exchange::Redis(one) => one.feed_request(at_ns, bytes, sink),
            Exchange::Memcached(one) => one.feed_request(at_ns, bytes, sink),
            Exchange::Mongodb(one) => one.feed_request(at_ns, bytes, sink),
        }
    }

    /// Takes bytes of the server's.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn feed_reply(
        &mut self,
        at_ns: u64,
        bytes: &[u8],
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        match self {
            Exchange::Redis(one) => one.feed_reply(at_ns, bytes, sink),
            Exchange::Memcached(one) => one.feed_reply(at_ns, bytes, sink),
            Exchange::Mongodb(one) => one.feed_reply(at_ns, bytes, sink),
        }
    }

    /// Bytes are missing in either direction.
    pub fn note_gap(&mut self, sink: &mut impl ExchangeSink) {
        match self {
            Exchange::Redis(one) => one.note_gap(sink),
            Exchange::Memcached(one) => one.note_gap(sink),
            Exchange::Mongodb(one) => one.note_gap(sink),
        }
    }

    /// The connection has ended, or the recording does: hands over its counts.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn finish(&mut self, sink: &mut impl ExchangeSink) -> Result<(), RecordingError> {
        match self {
            Exchange::Redis(one) => one.finish(sink),
            Exchange::Memcached(one) => one.finish(sink),
            Exchange::Mongodb(one) => one.finish(sink),
        }
    }
}
