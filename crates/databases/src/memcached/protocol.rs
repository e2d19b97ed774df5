//! Marks that tell memcached's protocol from others'.

use crate::protocol::Protocol;

pub(crate) static PROTOCOL: Protocol = Protocol {
    name: "memcached's",
    scheme: "memcached",
    question: || b"version\r\n".to_vec(),
    is_answer: |answer| answer.starts_with(b"VERSION ") || answer.starts_with(b"CLIENT_ERROR "),
};
