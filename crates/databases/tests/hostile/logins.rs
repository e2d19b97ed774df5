//! Logins: what a server says while a password is being proved.

use crate::common::{Curious, endpoint, spoil, spoils};
use dyno_db_mongodb::protocol::message::{self, HEADER};
use dyno_db_mongodb::protocol::{Deployment, MongoDriver, MongoOptions};
use dyno_types::bson::{self, kind};
use dyno_types::{Driver, GreetingStep, Outcome};
use proptest::prelude::*;
use std::sync::Arc;

fn driver(mechanism: &str) -> MongoDriver {
    let uri = format!("mongodb://u:p@127.0.0.1:1/d?authMechanism={mechanism}");
    let options = Arc::new(MongoOptions::from_uri(&uri).unwrap());
    MongoDriver::new(options, Arc::new(Curious(Vec::new())), Deployment::single_server(endpoint())).unwrap()
}

fn reply(fields: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    message::begin(&mut out, 1);
    let at = bson::open(&mut out);
    fields(&mut out);
    bson::put_double(&mut out, "ok", 1.0);
    bson::close(&mut out, at);
    message::end(&mut out, 0);
    out
}

/// A step of the conversation.
fn step(payload: &[u8], done: bool) -> Vec<u8> {
    reply(|out| {
        bson::put_int32(out, "conversationId", 1);
        bson::put_boolean(out, "done", done);
        bson::put_binary(out, "payload", payload);
    })
}

fn hello() -> Vec<u8> {
    reply(|out| {
        bson::put_int32(out, "maxWireVersion", 21);
        bson::put_head(out, kind::ARRAY, "saslSupportedMechs");
        let list = bson::open(out);
        bson::put_string(out, "0", "SCRAM-SHA-256");
        bson::close(out, list);
    })
}

/// The payload of what the client has said last.
fn payload(said: &[u8]) -> String {
    let mut said = said.to_vec();
    let document = dyno_db_mongodb::protocol::take_document(&mut said).unwrap().unwrap();
    let payload = bson::find_element(&document, "payload").unwrap().as_bytes().unwrap();
    String::from_utf8(payload.to_vec()).unwrap()
}

/// Iterations cost time that a test does not have.
fn is_costly(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).split(',').filter_map(|part| part.strip_prefix("i=")).any(|number| {
        let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().is_ok_and(|n| (10_000..=10_000_000).contains(&n))
    })
}

/// Text as servers send it, or anything.
fn words() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        "[rsiemv]=[A-Za-z0-9+/=]{0,12}",
        Just("i=4096".to_owned()),
        Just("i=-1".to_owned()),
        Just("i=4294967296".to_owned()),
        Just("s=QQ==".to_owned()),
        any::<String>(),
    ];
    let text = prop::collection::vec(part, 0..6).prop_map(|parts| parts.join(",").into_bytes());
    prop_oneof![3 => text, 1 => prop::collection::vec(any::<u8>(), 0..80)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_server_without_the_password_is_refused(
        strong in any::<bool>(), ours in any::<bool>(), first in words(), last in words(), first_spoils in spoils(),
        last_spoils in spoils(),
    ) {
        let mut driver = driver(if strong { "SCRAM-SHA-256" } else { "SCRAM-SHA-1" });
        let mut out = Vec::new();
        driver.hello(0, 1, &mut out);
        out.clear();
        let begun = matches!(driver.greeted(0, 1, 0, &hello(), &mut out), GreetingStep::Reply { more: true, .. });
        prop_assert!(begun);
        let said = payload(&out);
        let nonce = said.rsplit("r=").next().unwrap();
        let honest = format!("r={nonce}more,s=QUJDREVGR0g=,i=4096").into_bytes();
        let mut bytes = step(if ours { &honest } else { &first }, false);
        spoil(&mut bytes, &first_spoils);
        if is_costly(&bytes) {
            return Ok(());
        }
        out.clear();
        match driver.greeted(0, 1, 1, &bytes, &mut out) {
            GreetingStep::Need => prop_assert!(bytes.len() < HEADER || !first_spoils.is_empty()),
            GreetingStep::Refused(outcome, _) => {
                prop_assert!(outcome != Outcome::Ok);
                let right = ours && first_spoils.is_empty();
                prop_assert!(!right, "a good first message is refused");
            }
            GreetingStep::Reply { used, more } => {
                prop_assert!(more && (HEADER..=bytes.len()).contains(&used));
                prop_assert!(!out.is_empty() && out.len() < 4_096);
                // The signature cannot be known: whatever is said now, the login fails.
                let mut bytes = step(&last, true);
                spoil(&mut bytes, &last_spoils);
                out.clear();
                let heard = driver.greeted(0, 1, 2, &bytes, &mut out);
                prop_assert!(!matches!(heard, GreetingStep::Reply { .. }), "{:?}", heard);
            }
        }
    }

    #[test]
    fn bytes_of_no_protocol_at_all_are_borne(
        bytes in prop::collection::vec(any::<u8>(), 0..300), framed in any::<bool>(), compressed in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if framed && bytes.len() >= HEADER {
            let length = (bytes.len() as i32).to_le_bytes();
            bytes[..4].copy_from_slice(&length);
            let code = if compressed { message::code::COMPRESSED } else { message::code::MSG };
            bytes[12..16].copy_from_slice(&code.to_le_bytes());
        }
        let mut driver = driver("SCRAM-SHA-256");
        let mut out = Vec::new();
        driver.hello(0, 1, &mut out);
        out.clear();
        let _ = driver.greeted(0, 1, 0, &bytes, &mut out);
        let mut x = dyno_db_mongodb::protocol::MongoExchange::default();
        driver.begin(&mut x, &dyno_types::Request::default());
        let decoded = driver.decode(&mut x, 0, &bytes);
        if let dyno_types::Decoded::Reply { used, .. } = decoded {
            prop_assert!((HEADER..=bytes.len()).contains(&used));
        }
    }
}
