//! What strangers say, as functions of bytes that never fail: for fuzzing, which is how it is known that none of it does harm.

use crate::databases;
use crate::databases::mongodb::dns;
use crate::kubernetes::{objects_of_a_file, unknown_keys};
use crate::{local, relay};

/// Replies of a Redis server to the client that sets servers up.
pub fn redis_replies(mut bytes: &[u8]) {
    while local::resp_reply(&mut bytes).is_ok() && !bytes.is_empty() {}
}

/// Frames of the relay: what is read is written as it was.
///
/// # Panics
/// If it is not.
pub fn relay_frames(bytes: &[u8]) {
    let whole = relay::reread(bytes).concat();
    assert_eq!(whole.as_slice(), &bytes[..whole.len()], "read as it is written");
}

/// The answer of a name server.
pub fn dns_answer(bytes: &[u8]) {
    let _ = (dns::services(bytes), dns::texts(bytes));
}

/// A file of Kubernetes objects.
pub fn manifests(text: &str) {
    for object in objects_of_a_file(text).unwrap_or_default() {
        let _ = unknown_keys(&object);
    }
}

/// The URI of a target.
pub fn uri(text: &str) {
    let _ = databases::parse(text);
}
