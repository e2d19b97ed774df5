//! Operations on documents: sessions that turn requests into transactions. `reads` and `writes` execute them.
//!
//! A request that writes is one transaction over a collection and its indexes: an ordered batch that meets a failure
//! leaves nothing, an unordered one what went well.

use super::collection::Collection;
use super::job::Job;
use super::{Engine, Handle, OrderedFailure, Patience, Reader, RequestError, catalog, key, reads, writes};
use dyno_types::bson;
use dyno_types::document::{Action, SortOrder};
use dyno_types::{Content, Executed, Outcome, RefusalCode, Refused, Request, Store, StoreSession, Verb};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Refuses shapes that are used and not offered.
pub(crate) fn check(scheme: &str, content: &dyn Content) -> Result<(), Refused> {
    for shape in content.shapes_used() {
        let possible = match &shape.action {
            Action::Aggregate { pipeline } => reads::stages(pipeline).map(drop),
            Action::Command { .. } => Err(RequestError::Command),
            action if action.ends_transaction() => Err(RequestError::Transaction),
            _ => Ok(()),
        };
        if let Err(why) = possible {
            return Err(Refused::new(
                RefusalCode::Unsupported,
                "workload",
                format!("{scheme}: {:?} cannot be done: {why}", shape.name),
            ));
        }
    }
    Ok(())
}

/// A store of documents in an engine.
pub(crate) struct DocumentStore<E: Engine> {
    engine: E,
    content: Arc<dyn Content>,
    common: Arc<DocumentsShared>,
}

/// State that all sessions share.
struct DocumentsShared {
    patience: Patience,
    /// Held while a collection is opened and its indexes are made.
    making: Mutex<()>,
}

impl<E: Engine> DocumentStore<E> {
    pub(crate) fn new(engine: E, content: Arc<dyn Content>, patience: Patience) -> Self {
        DocumentStore {
            engine,
            content,
            common: Arc::new(DocumentsShared { patience, making: Mutex::new(()) }),
        }
    }
}

impl<E: Engine> DocumentStore<E> {
    /// Returns what `ask` finds of a collection, tried again after conflicts; no session opens one meanwhile.
    fn with<T>(
        &self,
        collection: &str,
        mut ask: impl FnMut(&mut E::Handle) -> Result<T, OrderedFailure>,
    ) -> Result<T, Refused> {
        let mut handle = self.engine.handle()?;
        let _held = self.common.making.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = self.common.patience.run(|| ask(&mut handle));
        asked.map_err(|failure| {
            Refused::new(
                RefusalCode::BadFile,
                "target",
                format!("{}: {collection}: {failure}", self.engine.name()),
            )
        })
    }
}

impl<E: Engine> Store for DocumentStore<E> {
    fn engine(&self) -> String {
        self.engine.name()
    }

    fn durability(&self) -> String {
        self.engine.durability()
    }

    fn facts(&self) -> Vec<(String, String)> {
        self.engine.facts()
    }

    fn sample(&self, collection: &str, count: u32) -> Result<Vec<Vec<u8>>, Refused> {
        self.with(collection, |handle| {
            let mut found = Vec::new();
            let documents = catalog::collection(handle, collection, &[])?.documents;
            handle.read()?.range(documents, &[], &[], SortOrder::Ascending, &mut |_, document| {
                found.push(document.to_vec());
                Ok(found.len() < count as usize)
            })?;
            Ok(found)
        })
    }

    fn documents(&self, collection: &str) -> Result<u64, Refused> {
        self.with(collection, |handle| {
            let mut count = 0;
            let documents = catalog::collection(handle, collection, &[])?.documents;
            handle.read()?.range(documents, &[], &[], SortOrder::Ascending, &mut |_, _| {
                count += 1;
                Ok(true)
            })?;
            Ok(count)
        })
    }

    fn highest(&self, collection: &str, between: Option<&[u8]>) -> Result<Option<Vec<u8>>, Refused> {
        let bound = |name: &str| {
            let mut out = Vec::new();
            if let Some(id) = between.and_then(|range| bson::find_element(range, name)) {
                key::encode(&id, &mut out)
                    .map_err(|why| Refused::new(RefusalCode::Unsupported, "_id", format!("_id: {why}")))?;
            }
            Ok::<_, Refused>(out)
        };
        let (low, high) = (bound("$gte")?, bound("$lt")?);
        self.with(collection, |handle| {
            let mut found = None;
            let documents = catalog::collection(handle, collection, &[])?.documents;
            handle.read()?.range(documents, &low, &high, SortOrder::Descending, &mut |_, document| {
                found = Some(document.to_vec());
                Ok(false)
            })?;
            Ok(found)
        })
    }

    fn drop_collection(&self, collection: &str) -> Result<(), Refused> {
        self.with(collection, |handle| catalog::drop_collection(handle, collection))
    }

    fn session(&self) -> Result<Box<dyn StoreSession>, Refused> {
        self.session_of(self.content.clone())
    }

    fn session_of(&self, content: Arc<dyn Content>) -> Result<Box<dyn StoreSession>, Refused> {
        let (handle, common) = (self.engine.handle()?, self.common.clone());
        let (collections, error) = (HashMap::new(), String::new());
        Ok(Box::new(DocumentSession { handle, content, common, collections, error }))
    }
}

/// One user's session.
struct DocumentSession<H> {
    handle: H,
    content: Arc<dyn Content>,
    common: Arc<DocumentsShared>,
    collections: HashMap<u32, Collection>,
    error: String,
}

impl<H: Handle> DocumentSession<H> {
    fn try_execute(&mut self, request: &Request) -> Result<Executed, OrderedFailure> {
        let (common, content) = (self.common.clone(), self.content.clone());
        let content = content.as_ref();
        if !self.collections.contains_key(&request.collection) {
            let mut name = Vec::new();
            content.collection(request, &mut name);
            let name = String::from_utf8(name).map_err(|error| RequestError::from(error.utf8_error()))?;
            let _held = common.making.lock().unwrap_or_else(PoisonError::into_inner);
            let handle = &mut self.handle;
            let opened = common.patience.run(|| catalog::collection(handle, &name, &content.indexes()))?;
            self.collections.insert(request.collection, opened);
        }
        let job = Job {
            collection: &self.collections[&request.collection],
            content,
            request,
            action: &content.shapes()[usize::from(request.shape)].action,
        };
        let handle = &mut self.handle;
        common.patience.run(|| match job.action.changes_data() {
            true => writes::execute(&job, handle.write()?),
            false => reads::execute(&job, &mut handle.read()?),
        })
    }
}

impl<H: Handle> StoreSession for DocumentSession<H> {
    fn execute(&mut self, request: &Request) -> Executed {
        if request.verb != Verb::Document {
            return Executed::new(Outcome::NotImplemented, 0);
        }
        match self.try_execute(request) {
            Ok(done) => done,
            Err(failure) => failure.executed(&mut self.error),
        }
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}
