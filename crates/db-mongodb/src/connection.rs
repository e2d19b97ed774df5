//! A connection to one server on which commands follow each other, each waited for.

use crate::command_error::CommandError;
use crate::protocol::{
    Deployment, MongoDriver, MongoOptions, describe_error, is_ok, put_command, take_document,
};
use dyno_db::probe::{NEVER, ProbeConnection, ReadStatus};
use dyno_engine::net::TlsConfig;
use dyno_types::content::Nothing;
use dyno_types::{Driver, Endpoint, GreetingStep, bson};
use std::sync::Arc;
use std::time::Duration;

/// Time that a greeting may take.
pub(super) const GREETING: Duration = Duration::from_secs(5);

/// The connection, logged in.
pub(crate) struct MongoConnection {
    line: ProbeConnection,
    endpoint: Endpoint,
    options: Arc<MongoOptions>,
}

impl MongoConnection {
    /// Connects, greets and logs in.
    pub fn open(
        options: &Arc<MongoOptions>,
        tls: Option<&Arc<TlsConfig>>,
        endpoint: &Endpoint,
        deployment: &Deployment,
    ) -> Result<Self, CommandError> {
        Self::open_within(GREETING, options, tls, endpoint, deployment)
    }

    /// The same with a bound on the time of the greeting.
    pub fn open_within(
        patience: Duration,
        options: &Arc<MongoOptions>,
        tls: Option<&Arc<TlsConfig>>,
        endpoint: &Endpoint,
        deployment: &Deployment,
    ) -> Result<Self, CommandError> {
        let greeting_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let mut driver = MongoDriver::new(options.clone(), Arc::new(Nothing), deployment.clone())?;
        let mut line =
            ProbeConnection::open(tls, endpoint).map_err(|failure| failure.at_endpoint(endpoint))?;
        let mut opening = Vec::new();
        driver.hello(0, 0, &mut opening);
        let mut reply = 0u16;
        let talk = line.continue_conversation(
            opening,
            (greeting_ns, NEVER),
            &mut |received: &mut Vec<u8>, out: &mut Vec<u8>| {
                loop {
                    match driver.greeted(0, 0, reply, received, out) {
                        GreetingStep::Need => return ReadStatus::Need,
                        GreetingStep::Refused(_, message) => return ReadStatus::Refused(message),
                        GreetingStep::Reply { used, more } => {
                            received.drain(..used);
                            reply += 1;
                            if !more {
                                return ReadStatus::Done;
                            }
                        }
                    }
                }
            },
        );
        talk.map_err(|failure| failure.at_endpoint(endpoint))?;
        Ok(MongoConnection { line, endpoint: endpoint.clone(), options: options.clone() })
    }

    /// Sends a command whose elements `fields` appends; its reply, which says `ok`.
    pub fn send_command(
        &mut self,
        database: &str,
        patience: Duration,
        fields: &dyn Fn(&mut Vec<u8>),
    ) -> Result<Vec<u8>, CommandError> {
        let mut words = Vec::new();
        put_command(&mut words, &self.options, database, fields);
        self.send(words, patience)
    }

    /// The options that it was opened with.
    pub fn opened_options(&self) -> &MongoOptions {
        &self.options
    }

    /// Sends a command that is made already.
    pub fn send(&mut self, words: Vec<u8>, patience: Duration) -> Result<Vec<u8>, CommandError> {
        let mut answer = Vec::new();
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let talk = self.line.continue_conversation(words, (patience_ns, NEVER), &mut |received, _| {
            match take_document(received) {
                Ok(None) => ReadStatus::Need,
                Ok(Some(document)) => {
                    answer = document;
                    ReadStatus::Done
                }
                Err(_) => ReadStatus::Refused("what answered does not speak MongoDB's protocol".into()),
            }
        });
        match talk {
            Ok(()) if is_ok(bson::find_element(&answer, "ok")) => Ok(answer),
            Ok(()) => Err(describe_error(&answer).into()),
            Err(failure) => Err(failure.at_endpoint(&self.endpoint).into()),
        }
    }
}
