//! Questions to a database while the load runs, each on a connection that stays.

use crate::mongo::{MongoAdmin, Nothing};
use crate::probe::{Failure, Heard, Line, NEVER};
use dyno_engine::net::TlsConfig;
use dyno_monitor::database::Ask;
use dyno_types::{Driver, Endpoint, Hello, bson};
use dyno_wire::mongodb::{
    Deployment, MongoDriver, MongoOptions, describe, is_ok, put_command, take_document,
};
use dyno_wire::redis::resp::{self, Token};
use dyno_wire::redis::{Facts, FactsStep, ReadFrom, RedisOptions, Topology};
use std::sync::Arc;

/// How long one question may take, connecting included.
const PATIENCE_NS: u64 = 2_000_000_000;

/// Something to be said and heard on a line.
type Talk<T> = Box<dyn FnMut(&mut Line) -> Result<T, Failure> + Send>;

/// A question with its connection; one that fails is made anew with the next question.
struct Connected<T> {
    endpoint: Endpoint,
    tls: Option<Arc<TlsConfig>>,
    line: Option<Line>,
    greet: Talk<()>,
    question: Talk<T>,
}

impl<T> Connected<T> {
    fn ask(&mut self) -> Result<T, String> {
        let kept = self.line.take();
        self.try_ask(kept).map_err(|failure| format!("{}: {}", self.endpoint, failure.words()))
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

/// Asks one Redis server for `INFO all`.
pub(super) fn redis(
    options: &Arc<RedisOptions>,
    tls: Option<Arc<TlsConfig>>,
    endpoint: &Endpoint,
) -> Ask<String> {
    // It is this one that is asked: slots and copies are nothing to it.
    let options = RedisOptions { cluster: false, reads: ReadFrom::Primary, ..options.as_ref().clone() };
    let single = Topology::single(endpoint.clone());
    let greet = move |line: &mut Line| {
        let mut opening = Vec::new();
        Facts::ask_all(&options, &mut opening);
        line.converse(opening, (PATIENCE_NS, NEVER), &mut |received, _| {
            let (mut topology, mut facts) = (single.clone(), Facts::default());
            match Facts::take(&options, &mut topology, received, &mut facts) {
                FactsStep::Need => Heard::Need,
                FactsStep::Done => {
                    received.clear();
                    Heard::Done
                }
                FactsStep::Refused(_, words) => Heard::Refused(words),
            }
        })
    };
    let question = |line: &mut Line| {
        let (mut words, mut text) = (Vec::new(), String::new());
        resp::put_command(&mut words, &[b"INFO", b"all"]);
        line.converse(words, (PATIENCE_NS, NEVER), &mut |received, _| {
            let heard = match (resp::skip(received, 0), resp::token(received, 0)) {
                (Ok(None), _) | (_, Ok(None)) => return Heard::Need,
                (Ok(Some(_)), Ok(Some((Token::Bulk(info), _)))) => {
                    text = String::from_utf8_lossy(info).into_owned();
                    Heard::Done
                }
                (Ok(Some(_)), Ok(Some((Token::Error(words), _)))) => {
                    Heard::Refused(String::from_utf8_lossy(words).into_owned())
                }
                _ => Heard::Refused("the answer to INFO is no text".into()),
            };
            received.clear();
            heard
        })?;
        Ok(text)
    };
    let (endpoint, greet, question) = (endpoint.clone(), Box::new(greet), Box::new(question));
    let mut connected = Connected { endpoint, tls, line: None, greet, question };
    Box::new(move || connected.ask())
}

/// Asks one MongoDB server for `serverStatus`.
pub(super) fn mongo(
    options: &Arc<MongoOptions>,
    tls: Option<Arc<TlsConfig>>,
    endpoint: &Endpoint,
) -> Ask<Vec<u8>> {
    let (options, deployment) = (options.clone(), Deployment::single(endpoint.clone()));
    let greet = move |line: &mut Line| {
        let driver = MongoDriver::new(options.clone(), Arc::new(Nothing), deployment.clone());
        let mut driver = driver.map_err(|refused| Failure::Final(refused.0))?;
        let mut opening = Vec::new();
        driver.hello(0, 0, &mut opening);
        let mut number = 0;
        line.converse(opening, (PATIENCE_NS, NEVER), &mut |received, out| {
            loop {
                match driver.greeted(0, 0, number, received, out) {
                    Hello::Need => return Heard::Need,
                    Hello::Refused(_, words) => return Heard::Refused(words),
                    Hello::Reply { used, more } => {
                        received.drain(..used);
                        number += 1;
                        if !more {
                            return Heard::Done;
                        }
                    }
                }
            }
        })
    };
    let question = |line: &mut Line| {
        let (mut words, mut answer) = (Vec::new(), Vec::new());
        put_command(&mut words, "admin", &|out| bson::int32(out, "serverStatus", 1));
        line.converse(words, (PATIENCE_NS, NEVER), &mut |received, _| match take_document(received) {
            Ok(None) => Heard::Need,
            Ok(Some(document)) => {
                answer = document;
                Heard::Done
            }
            Err(_) => Heard::Refused("what answered does not speak MongoDB's protocol".into()),
        })?;
        if is_ok(bson::find(&answer, "ok")) { Ok(answer) } else { Err(Failure::Final(describe(&answer).1)) }
    };
    let (endpoint, greet, question) = (endpoint.clone(), Box::new(greet), Box::new(question));
    let mut connected = Connected { endpoint, tls, line: None, greet, question };
    Box::new(move || connected.ask())
}

/// Asks by the official driver.
pub(super) fn official(admin: MongoAdmin) -> Ask<Vec<u8>> {
    Box::new(move || Ok(admin.run_on("admin", &|out| bson::int32(out, "serverStatus", 1))?))
}
