//! Marks that tell Redis's protocol from others'.

use crate::protocol::Protocol;

pub(crate) static PROTOCOL: Protocol = Protocol {
    name: "Redis'",
    scheme: "redis",
    question: || b"*1\r\n$4\r\nPING\r\n".to_vec(),
    is_answer: |answer| matches!(answer, [b'+' | b'-', .., b'\n']),
};
