//! Marks that tell MongoDB's protocol from others'.

use crate::protocol::Protocol;
use dyno_types::bson;

pub(crate) static PROTOCOL: Protocol = Protocol {
    name: "MongoDB's",
    scheme: "mongodb",
    question: || {
        let mut out = vec![0; 16];
        out[4] = 1;
        out[12..16].copy_from_slice(&OP_MSG.to_le_bytes());
        // No flags, one section with a document.
        out.extend_from_slice(&[0; 5]);
        let document = bson::open(&mut out);
        bson::int32(&mut out, "isMaster", 1);
        bson::string(&mut out, "$db", "admin");
        bson::close(&mut out, document);
        let length = out.len() as i32;
        out[..4].copy_from_slice(&length.to_le_bytes());
        out
    },
    is_answer: |answer| answer.get(12..16) == Some(&OP_MSG.to_le_bytes()),
};

const OP_MSG: i32 = 2013;
