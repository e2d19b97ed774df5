//! The conversation on a new connection: hello, then the login.

use super::compress::Compressor;
use super::errors::{classify_code, describe_error, is_ok};
use super::message::{self, HEADER, NotMessage};
use super::options::{Auth, MongoOptions};
use super::scram::{Conversation, Login, Mechanism, ScramError};
use super::session;
use dyno_types::bson::{self, kind};
use dyno_types::{GreetingStep, Outcome, Refused};
use std::sync::{Arc, OnceLock};

/// Least wire version that knows OP_MSG (MongoDB 3.6).
const LEAST_WIRE: i64 = 6;

/// State that all connections of a run share: the logins, made once.
#[derive(Debug)]
pub(super) struct Credentials {
    sha1: OnceLock<Arc<Login>>,
    sha256: OnceLock<Arc<Login>>,
}

impl Credentials {
    pub fn new() -> Self {
        Credentials { sha1: OnceLock::new(), sha256: OnceLock::new() }
    }

    fn login(&self, mechanism: Mechanism, user: &str, password: &str) -> Result<Arc<Login>, Refused> {
        let place = if mechanism == Mechanism::Sha1 { &self.sha1 } else { &self.sha256 };
        if let Some(login) = place.get() {
            return Ok(login.clone());
        }
        let login = Arc::new(Login::new(mechanism, user, password)?);
        Ok(place.get_or_init(|| login).clone())
    }
}

/// Terms that hello and its answer agree on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreed {
    /// Compressor of commands.
    pub compressor: Option<Compressor>,
    /// True if commands carry a session.
    pub sessions: bool,
}

/// Where one connection's conversation stands.
#[derive(Debug)]
pub(super) enum Talk {
    /// The answer to hello is awaited.
    Hello,
    /// The same, and no login follows: the connection serves checks.
    HelloAlone,
    /// The server's first message.
    First(Arc<Login>, Conversation),
    /// The server's final message.
    Final(Conversation),
    /// An empty exchange that ends a conversation with older servers, or the answer to PLAIN and X.509.
    Last,
}

/// Appends the hello, in the form that every server understands. Who names a version of the interface, or a load balancer,
/// means servers from 5.0 on, which may refuse the old form.
pub(super) fn hello(options: &MongoOptions, id: i32, out: &mut Vec<u8>) {
    let modern = options.server_api.is_some() || options.load_balanced;
    let at = if modern { message::begin(out, id) } else { message::begin_query(out, id) };
    hello_document(options, modern, out);
    message::end(out, at);
}

fn hello_document(options: &MongoOptions, modern: bool, out: &mut Vec<u8>) {
    let body = bson::open(out);
    bson::put_int32(out, if modern { "hello" } else { "isMaster" }, 1);
    bson::put_boolean(out, "helloOk", true);
    bson::put_string(out, "backpressure", "2");
    if options.load_balanced {
        bson::put_boolean(out, "loadBalanced", true);
    }
    bson::put_head(out, kind::DOCUMENT, "client");
    let client = bson::open(out);
    for (name, fields) in [
        ("application", &[("name", options.app_name.as_str())][..]),
        ("driver", &[("name", "dyno"), ("version", env!("CARGO_PKG_VERSION"))]),
        ("os", &[("type", std::env::consts::OS), ("architecture", std::env::consts::ARCH)]),
    ] {
        bson::put_head(out, kind::DOCUMENT, name);
        let inner = bson::open(out);
        for (key, value) in fields {
            bson::put_string(out, key, value);
        }
        bson::close(out, inner);
    }
    bson::close(out, client);
    bson::put_head(out, kind::ARRAY, "compression");
    let list = bson::open(out);
    for (index, compressor) in options.compressors.iter().enumerate() {
        bson::put_item_head(out, kind::STRING, index as u32);
        bson::put_text_value(out, compressor.name().as_bytes());
    }
    bson::close(out, list);
    if let Some(Auth::Scram { mechanism: None, user, .. }) = &options.auth {
        bson::put_string(out, "saslSupportedMechs", &format!("{}.{user}", options.auth_source));
    }
    if modern {
        bson::put_string(out, "$db", "admin");
    }
    if let Some(api) = &options.server_api {
        api.put(out);
    }
    bson::close(out, body);
}

/// One reply of the conversation. Returns what was agreed on when hello is answered.
pub(super) fn heard(
    options: &MongoOptions,
    credentials: &Credentials,
    talk: &mut Talk,
    input: &[u8],
    id: i32,
    out: &mut Vec<u8>,
) -> (GreetingStep, Option<Agreed>) {
    let (used, reply) = match split(input) {
        Ok(None) => return (GreetingStep::Need, None),
        Ok(Some(found)) => found,
        Err(NotMessage) => return (not_mongodb(input), None),
    };
    if !is_ok(bson::find_element(reply, "ok")) {
        let refusal = describe_error(reply);
        return (GreetingStep::Refused(classify_code(refusal.code), refusal.text), None);
    }
    if matches!(talk, Talk::Hello | Talk::HelloAlone) {
        let sessions = session::expected(reply);
        let (hello, compressor) = greeted(options, credentials, talk, reply, used, id, out);
        return (hello, Some(Agreed { compressor, sessions }));
    }
    (logged_in(options, talk, reply, used, id, out), None)
}

/// The reply at the start of `input`: bytes used and document.
pub(super) fn split(input: &[u8]) -> Result<Option<(usize, &[u8])>, NotMessage> {
    let Some(header) = message::read_header(input)? else { return Ok(None) };
    Ok(Some((header.bytes, message::read_document(header.code, &input[HEADER..header.bytes])?)))
}

fn not_mongodb(input: &[u8]) -> GreetingStep {
    let shown: String = String::from_utf8_lossy(&input[..input.len().min(60)]).escape_debug().collect();
    GreetingStep::Refused(
        Outcome::Protocol,
        format!("what answered does not speak MongoDB's protocol: {shown:?}"),
    )
}

fn greeted(
    options: &MongoOptions,
    credentials: &Credentials,
    talk: &mut Talk,
    reply: &[u8],
    used: usize,
    id: i32,
    out: &mut Vec<u8>,
) -> (GreetingStep, Option<Compressor>) {
    let number = |name: &str| bson::find_element(reply, name).and_then(|e| e.as_i64()).unwrap_or(0);
    if number("maxWireVersion") < LEAST_WIRE {
        let message = format!(
            "the server is too old: wire version {} (MongoDB 3.6 or later has {LEAST_WIRE} and more)",
            number("maxWireVersion")
        );
        return (GreetingStep::Refused(Outcome::NotImplemented, message), None);
    }
    if options.load_balanced && bson::find_element(reply, "serviceId").is_none() {
        let message = "loadBalanced=true, but the server is not set up to stand \
            behind a load balancer (no serviceId in its hello)";
        return (GreetingStep::Refused(Outcome::Protocol, message.into()), None);
    }
    let offered = bson::find_element(reply, "compression").and_then(|e| e.as_document());
    let compressor =
        options.compressors.iter().copied().find(|c| offered.is_some_and(|o| names(o, c.name())));
    if matches!(talk, Talk::HelloAlone) {
        return (GreetingStep::Reply { used, more: false }, compressor);
    }
    let more = match begin_login(options, credentials, talk, reply, id, out) {
        Ok(more) => more,
        Err(error) => return (GreetingStep::Refused(Outcome::Forbidden, error.to_string()), None),
    };
    (GreetingStep::Reply { used, more }, compressor)
}

fn names(array: &[u8], name: &str) -> bool {
    bson::read_elements(array).is_ok_and(|mut all| all.any(|e| e.is_ok_and(|e| e.as_str() == Some(name))))
}

/// A login that cannot begin.
#[derive(Debug, thiserror::Error)]
enum LoginError {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Scram(#[from] ScramError),
}

/// Appends the first message of the login; false if there is none.
fn begin_login(
    options: &MongoOptions,
    credentials: &Credentials,
    talk: &mut Talk,
    reply: &[u8],
    id: i32,
    out: &mut Vec<u8>,
) -> Result<bool, LoginError> {
    match &options.auth {
        None => Ok(false),
        Some(Auth::X509 { user }) => {
            command(out, id, options, "$external", |out| {
                bson::put_int32(out, "authenticate", 1);
                bson::put_string(out, "mechanism", "MONGODB-X509");
                if let Some(user) = user {
                    bson::put_string(out, "user", user);
                }
            });
            *talk = Talk::Last;
            Ok(true)
        }
        Some(Auth::Plain { user, password }) => {
            command(out, id, options, &options.auth_source, |out| {
                bson::put_int32(out, "saslStart", 1);
                bson::put_string(out, "mechanism", "PLAIN");
                // RFC 4616: no identity to act for, the user, the password, with a byte 0 between them.
                bson::put_binary(out, "payload", format!("\0{user}\0{password}").as_bytes());
            });
            *talk = Talk::Last;
            Ok(true)
        }
        Some(Auth::Scram { mechanism, user, password }) => {
            let offered = bson::find_element(reply, "saslSupportedMechs").and_then(|e| e.as_document());
            // Where the server does not say, SCRAM-SHA-1 is the one that all have.
            let best = if offered.is_some_and(|o| names(o, "SCRAM-SHA-256")) {
                Mechanism::Sha256
            } else {
                Mechanism::Sha1
            };
            let mechanism = mechanism.unwrap_or(best);
            let login = credentials.login(mechanism, user, password)?;
            let (conversation, first) = Conversation::begin(&login)?;
            command(out, id, options, &options.auth_source, |out| {
                bson::put_int32(out, "saslStart", 1);
                bson::put_string(out, "mechanism", login.login_mechanism().name());
                bson::put_binary(out, "payload", first.as_bytes());
                bson::put_head(out, kind::DOCUMENT, "options");
                let inner = bson::open(out);
                bson::put_boolean(out, "skipEmptyExchange", true);
                bson::close(out, inner);
            });
            *talk = Talk::First(login, conversation);
            Ok(true)
        }
    }
}

fn logged_in(
    options: &MongoOptions,
    talk: &mut Talk,
    reply: &[u8],
    used: usize,
    id: i32,
    out: &mut Vec<u8>,
) -> GreetingStep {
    let payload = bson::find_element(reply, "payload").and_then(|e| e.as_bytes()).unwrap_or_default();
    let payload = String::from_utf8_lossy(payload).into_owned();
    let conversation_id =
        bson::find_element(reply, "conversationId").and_then(|e| e.as_i64()).unwrap_or(1) as i32;
    let done = bson::find_element(reply, "done").is_some_and(|e| e.is_true());
    let go_on = |payload: &[u8], out: &mut Vec<u8>| {
        command(out, id, options, &options.auth_source, |out| {
            bson::put_int32(out, "saslContinue", 1);
            bson::put_int32(out, "conversationId", conversation_id);
            bson::put_binary(out, "payload", payload);
        });
    };
    match std::mem::replace(talk, Talk::Last) {
        Talk::First(login, mut conversation) => match conversation.final_message(&login, &payload) {
            Ok(proof) => {
                go_on(proof.as_bytes(), out);
                *talk = Talk::Final(conversation);
                GreetingStep::Reply { used, more: true }
            }
            Err(error) => GreetingStep::Refused(Outcome::Forbidden, error.to_string()),
        },
        Talk::Final(conversation) => match conversation.check(&payload) {
            Ok(()) if done => GreetingStep::Reply { used, more: false },
            Ok(()) => {
                go_on(b"", out);
                GreetingStep::Reply { used, more: true }
            }
            Err(error) => GreetingStep::Refused(Outcome::Forbidden, error.to_string()),
        },
        Talk::Last | Talk::Hello | Talk::HelloAlone => GreetingStep::Reply { used, more: false },
    }
}

/// Appends a command for `database` whose elements `fields` appends.
pub fn put_command(out: &mut Vec<u8>, options: &MongoOptions, database: &str, fields: &dyn Fn(&mut Vec<u8>)) {
    command(out, 0, options, database, fields);
}

/// Takes the reply at the start of `received` away; `None` while it is not complete.
pub fn take_document(received: &mut Vec<u8>) -> Result<Option<Vec<u8>>, NotMessage> {
    let Some((used, document)) = split(received)? else { return Ok(None) };
    let document = document.to_vec();
    received.drain(..used);
    Ok(Some(document))
}

/// Appends a command whose fields `fields` writes, for `database`.
pub(super) fn command(
    out: &mut Vec<u8>,
    id: i32,
    options: &MongoOptions,
    database: &str,
    fields: impl FnOnce(&mut Vec<u8>),
) {
    let at = message::begin(out, id);
    let body = bson::open(out);
    fields(out);
    bson::put_string(out, "$db", database);
    if let Some(api) = &options.server_api {
        api.put(out);
    }
    bson::close(out, body);
    message::end(out, at);
}
