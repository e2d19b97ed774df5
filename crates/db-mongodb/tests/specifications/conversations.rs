//! Logins as the auth specification writes them down (suite `auth-conversations`): messages, prepared passwords and the
//! least number of iterations.

use crate::harness::{Checked, Suite, expect};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use dyno_db_mongodb::protocol::scram::{Conversation, Login};
use dyno_db_mongodb::protocol::{Mechanism, MongoOptions, message, take_document};
use dyno_types::{Driver, GreetingStep, bson};
use serde_json::Value;

#[test]
fn conversations() {
    Suite::named("auth-conversations").run();
}

/// A case is a whole conversation, a payload, a password and what is to become of it, or a number of iterations.
pub fn check(case: &Value, _data: &Value) -> Checked {
    let text = |name: &str| case[name].as_str();
    let mechanism = match text("mechanism") {
        Some("SCRAM-SHA-1") => Mechanism::Sha1,
        _ => Mechanism::Sha256,
    };
    if let Some(payload) = text("payload") {
        return check_plain(text("user").unwrap(), text("password").unwrap(), payload);
    }
    if let Some(iterations) = case["iterations"].as_u64() {
        let proof = prove(mechanism, "user", "pencil", &server_first(iterations));
        return expect(proof.is_some() == (case["valid"] == true), || format!("{iterations}: {proof:?}"));
    }
    let (user, password) = (text("user").unwrap(), text("password").unwrap());
    if let Some(first) = text("first") {
        let login = Login::new(mechanism, user, password).unwrap();
        let (mut talk, found) = Conversation::with_nonce(&login, text("nonce").unwrap().into());
        expect(found == first, || found.clone())?;
        let proof = talk.final_message(&login, text("server_first").unwrap()).unwrap();
        expect(proof == text("final").unwrap(), || proof.clone())?;
        return expect(talk.check(text("server_final").unwrap()).is_ok(), || {
            "the server is not believed".into()
        });
    }
    let proof = prove(mechanism, user, password, &server_first(4_096));
    let expected =
        text("prepared").map(|prepared| prove(mechanism, user, prepared, &server_first(4_096)).unwrap());
    expect(proof == expected, || format!("{proof:?}, not {expected:?}"))
}

fn server_first(iterations: u64) -> String {
    format!("r=abcdef,s=QUJDREVGR0g=,i={iterations}")
}

/// Proof of a password; `None` if the password or the server's message is refused.
fn prove(mechanism: Mechanism, user: &str, password: &str, server_first: &str) -> Option<String> {
    let login = Login::new(mechanism, user, password).ok()?;
    let (mut talk, _) = Conversation::with_nonce(&login, "abc".into());
    talk.final_message(&login, server_first).ok()
}

/// The first message of PLAIN, and a server that is content with it.
fn check_plain(user: &str, password: &str, payload: &str) -> Checked {
    let uri = format!("mongodb://{user}:{password}@127.0.0.1:1/?authMechanism=PLAIN");
    let mut driver = crate::concerns::driver(MongoOptions::from_uri(&uri).unwrap(), Vec::new());
    let mut out = Vec::new();
    driver.hello(0, 1, &mut out);
    out.clear();
    let begun = driver.greeted(0, 1, 0, &reply(|out| bson::put_int32(out, "maxWireVersion", 21)), &mut out);
    expect(matches!(begun, GreetingStep::Reply { more: true, .. }), || format!("{begun:?}"))?;
    let command = take_document(&mut out).unwrap().unwrap();
    let field = |name: &str| bson::find_element(&command, name).and_then(|element| element.as_str());
    expect(field("mechanism") == Some("PLAIN") && field("$db") == Some("$external"), || {
        "another login".into()
    })?;
    let found =
        bson::find_element(&command, "payload").and_then(|element| element.as_bytes()).unwrap_or_default();
    expect(BASE64.encode(found) == payload, || format!("{found:?}"))?;
    let done = reply(|out| {
        bson::put_int32(out, "conversationId", 1);
        bson::put_boolean(out, "done", true);
        bson::put_binary(out, "payload", b"");
    });
    let heard = driver.greeted(0, 1, 1, &done, &mut Vec::new());
    expect(matches!(heard, GreetingStep::Reply { more: false, .. }), || format!("{heard:?}"))
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
