//! Questions to a database while the load runs, each on a connection that stays.

use crate::probe::{ProbeConnection, ProbeFailure, Unreached};
use dyno_engine::net::TlsConfig;
use dyno_monitor::{QueryError, Sample, SampleError, Source};
use dyno_types::Endpoint;
use std::sync::Arc;

/// Time that one question may take, connecting included.
pub const PATIENCE_NS: u64 = 2_000_000_000;

/// Brings one answer, or the error of the one that asks.
pub type StatsQuery<T> = Box<dyn FnMut() -> Result<T, QueryError> + Send>;

/// A source that asks a database for its figures and reads the answer.
pub struct PolledSource<T> {
    name: String,
    /// The question as people know it, for errors.
    question: &'static str,
    ask: StatsQuery<T>,
    read: fn(&T, &mut Sample),
}

impl<T> PolledSource<T> {
    /// `read` adds what an answer of `ask` says.
    pub fn new(name: &str, question: &'static str, ask: StatsQuery<T>, read: fn(&T, &mut Sample)) -> Self {
        PolledSource { name: name.to_owned(), question, ask, read }
    }
}

impl<T> Source for PolledSource<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn sample(&mut self, into: &mut Sample) -> Result<(), SampleError> {
        (self.read)(&(self.ask)().map_err(SampleError::Query)?, into);
        if into.is_empty() { Err(SampleError::NothingKnown(self.question)) } else { Ok(()) }
    }

    fn waits(&self) -> bool {
        true
    }
}

/// Something to be said and heard on a line.
pub type LineTalk<T> = Box<dyn FnMut(&mut ProbeConnection) -> Result<T, ProbeFailure> + Send>;

/// A question with its connection; one that fails is made anew with the next question.
struct Connected<T> {
    endpoint: Endpoint,
    tls: Option<Arc<TlsConfig>>,
    connection: Option<ProbeConnection>,
    greet: LineTalk<()>,
    question: LineTalk<T>,
}

impl<T> Connected<T> {
    fn ask(&mut self) -> Result<T, Unreached> {
        let kept = self.connection.take();
        self.try_ask(kept).map_err(|failure| failure.at_endpoint(&self.endpoint))
    }

    fn try_ask(&mut self, kept: Option<ProbeConnection>) -> Result<T, ProbeFailure> {
        let mut line = match kept {
            Some(line) => line,
            None => {
                let mut line = ProbeConnection::open(self.tls.as_ref(), &self.endpoint)?;
                (self.greet)(&mut line)?;
                line
            }
        };
        let answer = (self.question)(&mut line)?;
        self.connection = Some(line);
        Ok(answer)
    }
}

/// Asks an endpoint again and again: `greet` opens a connection's conversation, `question` asks.
pub fn poll_endpoint<T: 'static>(
    endpoint: &Endpoint,
    tls: Option<Arc<TlsConfig>>,
    greet: LineTalk<()>,
    question: LineTalk<T>,
) -> StatsQuery<T> {
    let mut connected = Connected { endpoint: endpoint.clone(), tls, connection: None, greet, question };
    Box::new(move || Ok(connected.ask()?))
}
