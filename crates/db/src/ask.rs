//! Questions to a database while the load runs, each on a connection that stays.

use crate::probe::{Failure, Line, Unreached};
use dyno_engine::net::TlsConfig;
use dyno_monitor::database::Ask;
use dyno_types::Endpoint;
use std::sync::Arc;

/// Time that one question may take, connecting included.
pub const PATIENCE_NS: u64 = 2_000_000_000;

/// Something to be said and heard on a line.
pub type Talk<T> = Box<dyn FnMut(&mut Line) -> Result<T, Failure> + Send>;

/// A question with its connection; one that fails is made anew with the next question.
struct Connected<T> {
    endpoint: Endpoint,
    tls: Option<Arc<TlsConfig>>,
    line: Option<Line>,
    greet: Talk<()>,
    question: Talk<T>,
}

impl<T> Connected<T> {
    fn ask(&mut self) -> Result<T, Unreached> {
        let kept = self.line.take();
        self.try_ask(kept).map_err(|failure| failure.at(&self.endpoint))
    }

    fn try_ask(&mut self, kept: Option<Line>) -> Result<T, Failure> {
        let mut line = match kept {
            Some(line) => line,
            None => {
                let mut line = Line::open(self.tls.as_ref(), &self.endpoint)?;
                (self.greet)(&mut line)?;
                line
            }
        };
        let answer = (self.question)(&mut line)?;
        self.line = Some(line);
        Ok(answer)
    }
}

/// Asks an endpoint again and again: `greet` opens a connection's conversation, `question` asks.
pub fn ask<T: 'static>(
    endpoint: &Endpoint,
    tls: Option<Arc<TlsConfig>>,
    greet: Talk<()>,
    question: Talk<T>,
) -> Ask<T> {
    let mut connected = Connected { endpoint: endpoint.clone(), tls, line: None, greet, question };
    Box::new(move || Ok(connected.ask()?))
}
