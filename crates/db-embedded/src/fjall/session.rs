//! One user's requests on fjall: encoded records read, written and written back. The locks are the store's.

use super::shared::{FjallShared, STRIPES, Stripes};
use crate::reading::Buffers;
use crate::record::RecordError;
use dyno_types::{Content, Executed, Outcome, Request, StoreSession, Verb};
use fjall::{OwnedWriteBatch, PersistMode};
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

/// Longest key, in bytes: fjall panics beyond, and on an empty one.
pub(super) const KEY_BYTES: usize = 65_535;

/// See the module.
pub(super) struct FjallSession {
    shared: Arc<FjallShared>,
    content: Arc<dyn Content>,
    buffers: Buffers,
    error: String,
}

/// A failed request.
#[derive(Debug, thiserror::Error)]
enum FjallFailure {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("{0}")]
    Fjall(#[from] fjall::Error),
    #[error("the key exists already (insert=fail)")]
    Exists,
    #[error(transparent)]
    Key(#[from] KeyLength),
}

/// A key of so many bytes is none.
#[derive(Debug, thiserror::Error)]
#[error("fjall's keys have 1 to {KEY_BYTES} bytes, this one has {0}")]
pub(super) struct KeyLength(pub(super) usize);

impl FjallSession {
    pub(super) fn new(shared: Arc<FjallShared>, content: Arc<dyn Content>) -> Self {
        FjallSession { shared, content, buffers: Buffers::default(), error: String::new() }
    }

    fn try_execute(&mut self, request: &Request) -> Result<Executed, FjallFailure> {
        self.render_key(request)?;
        match request.verb {
            Verb::Read => self.read(request),
            Verb::Scan => self.scan(request),
            Verb::Insert | Verb::Update | Verb::Delete => self.change(request),
            Verb::Document | Verb::Command | Verb::Recorded | Verb::Topology => {
                Ok(Executed::new(Outcome::NotImplemented, 0))
            }
        }
    }

    fn render_key(&mut self, request: &Request) -> Result<(), FjallFailure> {
        self.buffers.render_key(self.content.as_ref(), request);
        match self.buffers.key.len() {
            1..=KEY_BYTES => Ok(()),
            other => Err(KeyLength(other).into()),
        }
    }

    fn read(&mut self, request: &Request) -> Result<Executed, FjallFailure> {
        let shared = &self.shared;
        match shared.keyspace.get(&self.buffers.key)? {
            Some(stored) => Ok(self.buffers.read(self.content.as_ref(), request, shared.whole, &stored)?),
            None => Ok(Executed::new(Outcome::NotFound, 0)),
        }
    }

    fn scan(&mut self, request: &Request) -> Result<Executed, FjallFailure> {
        let mut records = 0;
        let found = self.shared.keyspace.range(&self.buffers.key[..]..);
        for entry in found.take(request.limit as usize) {
            self.buffers.pass(self.content.as_ref(), request, records, &entry.value()?)?;
            records += 1;
        }
        Ok(Executed::new(Outcome::Ok, records))
    }

    fn change(&mut self, request: &Request) -> Result<Executed, FjallFailure> {
        let shared = &self.shared;
        let (keyspace, content, buffers) = (&shared.keyspace, self.content.as_ref(), &mut self.buffers);
        {
            let _held = shared.stripes.lock(Stripes::of(&buffers.key));
            match request.verb {
                Verb::Insert => {
                    if !shared.replaces && keyspace.contains_key(&buffers.key)? {
                        return Err(FjallFailure::Exists);
                    }
                    buffers.render_record(content, request)?;
                    keyspace.insert(&buffers.key[..], &buffers.record[..])?;
                }
                Verb::Update => {
                    let Some(stored) = keyspace.get(&buffers.key)? else {
                        return Ok(Executed::new(Outcome::NotFound, 0));
                    };
                    buffers.render_update(content, request, &stored)?;
                    keyspace.insert(&buffers.key[..], &buffers.record[..])?;
                }
                _ => {
                    if !keyspace.contains_key(&buffers.key)? {
                        return Ok(Executed::new(Outcome::NotFound, 0));
                    }
                    keyspace.remove(&buffers.key[..])?;
                }
            }
        }
        self.sync()?;
        Ok(Executed::new(Outcome::Ok, 0))
    }

    /// Makes what was written durable as set. A write has already handed its journal entry to the operating system.
    fn sync(&self) -> Result<(), FjallFailure> {
        if self.shared.mode != PersistMode::Buffer {
            self.shared.database.persist(self.shared.mode)?;
        }
        Ok(())
    }

    /// Inserts in one atomic batch, synced once.
    fn insert_all(&mut self, requests: &[Request]) -> Result<Executed, FjallFailure> {
        let shared = self.shared.clone();
        let mut stripes = [false; STRIPES];
        let mut batch = OwnedWriteBatch::with_capacity(shared.database.clone(), requests.len());
        for request in requests {
            self.render_key(request)?;
            self.buffers.render_record(self.content.as_ref(), request)?;
            stripes[Stripes::of(&self.buffers.key)] = true;
            batch.insert(&shared.keyspace, &self.buffers.key[..], &self.buffers.record[..]);
        }
        // In ascending order, as all do that lock several.
        let needed = (0..STRIPES).filter(|&stripe| stripes[stripe]);
        let held: Vec<_> = needed.map(|stripe| shared.stripes.lock(stripe)).collect();
        if !shared.replaces {
            let mut keys = HashSet::with_capacity(requests.len());
            for request in requests {
                self.render_key(request)?;
                let key = &self.buffers.key;
                if shared.keyspace.contains_key(key)? || !keys.insert(key.clone()) {
                    return Err(FjallFailure::Exists);
                }
            }
        }
        batch.durability(Some(PersistMode::Buffer)).commit()?;
        drop(held);
        self.sync()?;
        Ok(Executed::new(Outcome::Ok, 0))
    }

    fn failed(&mut self, failure: &FjallFailure) -> Executed {
        self.error.clear();
        let _ = write!(self.error, "{failure}");
        let outcome = match failure {
            FjallFailure::Record(RecordError::TooLong) | FjallFailure::Key(_) => Outcome::BadRequest,
            FjallFailure::Exists => Outcome::Duplicate,
            FjallFailure::Fjall(fjall::Error::Locked) => Outcome::Busy,
            _ => Outcome::ServerError,
        };
        Executed::new(outcome, 0)
    }
}

impl StoreSession for FjallSession {
    fn execute(&mut self, request: &Request) -> Executed {
        self.try_execute(request).unwrap_or_else(|failure| self.failed(&failure))
    }

    /// Inserts are one atomic batch. fjall's batches cannot read: with any other request among them, the requests are
    /// executed one after the other and those before a failure stay.
    fn execute_batch(&mut self, requests: &[Request]) -> Executed {
        if requests.iter().all(|request| request.verb == Verb::Insert) {
            return self.insert_all(requests).unwrap_or_else(|failure| self.failed(&failure));
        }
        let mut all = Executed::new(Outcome::Ok, 0);
        for request in requests {
            let done = self.execute(request);
            if !done.outcome.is_ok() {
                return done;
            }
            all.records += done.records;
        }
        all
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}
