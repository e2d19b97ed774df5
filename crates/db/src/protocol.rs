//! Protocols by which a server can be told from those of other databases.

use dyno_types::bson;

/// A database's protocol, as far as it is told from others.
#[derive(Debug)]
pub struct ProtocolMark {
    /// Name of the database, with an apostrophe.
    pub name: &'static str,
    /// The scheme of its URIs.
    pub scheme: &'static str,
    /// A question that every server answers, also before a login.
    pub question: fn() -> Vec<u8>,
    /// Returns whether the bytes are an answer to it.
    pub is_answer: fn(&[u8]) -> bool,
}

impl PartialEq for ProtocolMark {
    fn eq(&self, other: &Self) -> bool {
        self.scheme == other.scheme
    }
}

/// Redis' and its kin's.
pub static REDIS: ProtocolMark = ProtocolMark {
    name: "Redis'",
    scheme: "redis",
    question: || b"*1\r\n$4\r\nPING\r\n".to_vec(),
    is_answer: |answer| matches!(answer, [b'+' | b'-', .., b'\n']),
};

/// MongoDB's.
pub static MONGODB: ProtocolMark = ProtocolMark {
    name: "MongoDB's",
    scheme: "mongodb",
    question: || {
        let mut out = vec![0; 16];
        out[4] = 1;
        out[12..16].copy_from_slice(&OP_MSG.to_le_bytes());
        // No flags, one section with a document.
        out.extend_from_slice(&[0; 5]);
        let document = bson::open(&mut out);
        bson::put_int32(&mut out, "isMaster", 1);
        bson::put_string(&mut out, "$db", "admin");
        bson::close(&mut out, document);
        let length = out.len() as i32;
        out[..4].copy_from_slice(&length.to_le_bytes());
        out
    },
    is_answer: |answer| answer.get(12..16) == Some(&OP_MSG.to_le_bytes()),
};

const OP_MSG: i32 = 2013;

/// memcached's.
pub static MEMCACHED: ProtocolMark = ProtocolMark {
    name: "memcached's",
    scheme: "memcached",
    question: || b"version\r\n".to_vec(),
    is_answer: |answer| answer.starts_with(b"VERSION ") || answer.starts_with(b"CLIENT_ERROR "),
};

/// The protocols that are told from each other, in the order in which they are asked for.
pub static ALL: [&ProtocolMark; 3] = [&REDIS, &MONGODB, &MEMCACHED];
