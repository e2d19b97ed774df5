//! A connection to one server on which commands follow each other, each waited for.

use crate::probe::{Failure, Heard, Line, NEVER};
use crate::target::Nothing;
use dyno_engine::net::TlsConfig;
use dyno_types::{Driver, Endpoint, Hello, bson};
use dyno_wire::mongodb::{
    Deployment, MongoDriver, MongoOptions, describe, is_ok, put_command, take_document,
};
use std::sync::Arc;
use std::time::Duration;

/// How long a greeting may take.
const GREETING_NS: u64 = 5_000_000_000;

/// Why a command has no good reply.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unanswered {
    /// The connection is of no use any more: the command may have been done.
    #[error("{0}")]
    Lost(String),
    /// The server has refused it: its code, and its words.
    #[error("{1}")]
    Refused(i64, String),
}

/// The connection, logged in.
pub(crate) struct MongoLine {
    line: Line,
    endpoint: Endpoint,
}

impl MongoLine {
    /// Connects, greets and logs in.
    pub fn open(
        options: &Arc<MongoOptions>,
        tls: Option<&Arc<TlsConfig>>,
        endpoint: &Endpoint,
        deployment: &Deployment,
    ) -> Result<Self, String> {
        let driver = MongoDriver::new(options.clone(), Arc::new(Nothing), deployment.clone());
        let mut driver = driver.map_err(|refused| refused.0)?;
        let lost = |failure: Failure| {
            let why = failure.words();
            format!("{endpoint}: {why}")
        };
        let mut line = Line::open(tls, endpoint).map_err(lost)?;
        let mut opening = Vec::new();
        driver.hello(0, 0, &mut opening);
        let mut reply = 0u16;
        let talk =
            line.converse(opening, (GREETING_NS, NEVER), &mut |received: &mut Vec<u8>, out: &mut Vec<u8>| {
                loop {
                    match driver.greeted(0, 0, reply, received, out) {
                        Hello::Need => return Heard::Need,
                        Hello::Refused(_, words) => return Heard::Refused(words),
                        Hello::Reply { used, more } => {
                            received.drain(..used);
                            reply += 1;
                            if !more {
                                return Heard::Done;
                            }
                        }
                    }
                }
            });
        talk.map_err(lost)?;
        Ok(MongoLine { line, endpoint: endpoint.clone() })
    }

    /// Sends a command whose elements `fields` appends; its reply, which says `ok`.
    pub fn call(
        &mut self,
        database: &str,
        patience: Duration,
        fields: &dyn Fn(&mut Vec<u8>),
    ) -> Result<Vec<u8>, Unanswered> {
        let mut words = Vec::new();
        put_command(&mut words, database, fields);
        self.send(words, patience)
    }

    /// Sends a command that is made already.
    pub fn send(&mut self, words: Vec<u8>, patience: Duration) -> Result<Vec<u8>, Unanswered> {
        let mut answer = Vec::new();
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let talk = self.line.converse(words, (patience_ns, NEVER), &mut |received, _| match take_document(
            received,
        ) {
            Ok(None) => Heard::Need,
            Ok(Some(document)) => {
                answer = document;
                Heard::Done
            }
            Err(_) => Heard::Refused("what answered does not speak MongoDB's protocol".into()),
        });
        match talk {
            Ok(()) if is_ok(bson::find(&answer, "ok")) => Ok(answer),
            Ok(()) => {
                let (code, words) = describe(&answer);
                Err(Unanswered::Refused(code, words))
            }
            Err(failure) => {
                let why = failure.words();
                Err(Unanswered::Lost(format!("{}: {why}", self.endpoint)))
            }
        }
    }
}
