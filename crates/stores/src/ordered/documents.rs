//! Operations on documents: sessions that turn requests into transactions. `reads` and `writes` execute them.
//!
//! A collection is a table from the key of a document's `_id` to the document; an index is a table from the key of the
//! field's value and that of the `_id` to where the latter begins. A request that writes is one transaction over all of
//! them: an ordered batch that meets a failure leaves nothing, an unordered one what went well.

use super::query::{AccessPath, Plan, Query};
use super::{Engine, Failure, Handle, Patience, Reader, RequestError, catalog, key, reads, writes};
use dyno_types::bson::{self, kind};
use dyno_types::document::{Action, Order, Stage};
use dyno_types::{Content, Executed, Outcome, Refused, Request, Store, StoreSession, Verb};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A collection, open.
pub(super) struct Collection {
    pub(super) documents: usize,
    pub(super) indexes: Vec<Index>,
}

/// An index on one field.
pub(super) struct Index {
    pub(super) field: String,
    pub(super) table: usize,
}

/// Refuses shapes that are used and not offered.
pub(crate) fn check(scheme: &str, content: &dyn Content) -> Result<(), Refused> {
    for shape in content.shapes_used() {
        let possible = match &shape.action {
            Action::Aggregate { pipeline } => stages(pipeline).map(drop),
            action if action.ends_transaction() => Err(RequestError::Transaction),
            _ => Ok(()),
        };
        if let Err(why) = possible {
            return Err(Refused(format!("{scheme}: {:?} cannot be done: {why}", shape.name)));
        }
    }
    Ok(())
}

/// An aggregation's matches, its sort and its limit, if it consists of nothing else, in this order.
pub(super) type Stages<'s> = (Option<&'s dyno_types::document::Filter>, &'s [(String, Order)], u32);

pub(super) fn stages(pipeline: &[Stage]) -> Result<Stages<'_>, RequestError> {
    let (mut filter, mut sort, mut limit) = (None, &[][..], 0);
    for (number, stage) in pipeline.iter().enumerate() {
        match stage {
            Stage::Match(first) if number == 0 => filter = Some(first),
            Stage::Sort(by) if sort.is_empty() && limit == 0 => sort = by,
            Stage::Limit(most) if limit == 0 => limit = *most,
            Stage::Raw(_) => return Err(RequestError::RawStage),
            _ => return Err(RequestError::Stages),
        }
    }
    Ok((filter, sort, limit))
}

/// A store of documents in an engine.
pub(crate) struct DocumentStore<E: Engine> {
    engine: E,
    content: Arc<dyn Content>,
    common: Arc<Common>,
}

/// What all sessions share.
struct Common {
    patience: Patience,
    /// Held while a collection is opened and its indexes are made.
    making: Mutex<()>,
}

impl<E: Engine> DocumentStore<E> {
    pub(crate) fn new(engine: E, content: Arc<dyn Content>, patience: Patience) -> Self {
        DocumentStore { engine, content, common: Arc::new(Common { patience, making: Mutex::new(()) }) }
    }
}

impl<E: Engine> DocumentStore<E> {
    /// What `ask` finds of a collection, tried again after conflicts; no session opens one meanwhile.
    fn with<T>(
        &self,
        collection: &str,
        mut ask: impl FnMut(&mut E::Handle) -> Result<T, Failure>,
    ) -> Result<T, Refused> {
        let mut handle = self.engine.handle()?;
        let _held = self.common.making.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = self.common.patience.run(|| ask(&mut handle));
        asked.map_err(|failure| Refused(format!("{}: {collection}: {failure}", self.engine.name())))
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
            handle.read()?.range(documents, &[], &[], Order::Ascending, &mut |_, document| {
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
            handle.read()?.range(documents, &[], &[], Order::Ascending, &mut |_, _| {
                count += 1;
                Ok(true)
            })?;
            Ok(count)
        })
    }

    fn highest(&self, collection: &str, between: Option<&[u8]>) -> Result<Option<Vec<u8>>, Refused> {
        let bound = |name: &str| {
            let mut out = Vec::new();
            if let Some(id) = between.and_then(|range| bson::find(range, name)) {
                key::encode(&id, &mut out).map_err(|why| Refused(format!("_id: {why}")))?;
            }
            Ok::<_, Refused>(out)
        };
        let (low, high) = (bound("$gte")?, bound("$lt")?);
        self.with(collection, |handle| {
            let mut found = None;
            let documents = catalog::collection(handle, collection, &[])?.documents;
            handle.read()?.range(documents, &low, &high, Order::Descending, &mut |_, document| {
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
    common: Arc<Common>,
    collections: HashMap<u32, Collection>,
    error: String,
}

impl<H: Handle> DocumentSession<H> {
    fn try_execute(&mut self, request: &Request) -> Result<Executed, Failure> {
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
        common.patience.run(|| match job.action.writes() {
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

/// A request and what it is about.
pub(super) struct Job<'j> {
    pub(super) collection: &'j Collection,
    pub(super) content: &'j dyn Content,
    pub(super) request: &'j Request,
    pub(super) action: &'j Action,
}

impl<'j> Job<'j> {
    /// Renders the operands of statement `number`.
    pub(super) fn render(&self, number: u32) -> impl FnMut(u16, &mut Vec<u8>) {
        move |operand, out: &mut Vec<u8>| self.content.operand(self.request, number, operand, "v", out)
    }

    /// A filter with the operands of statement `number`.
    pub(super) fn query(
        &self,
        filter: &'j dyno_types::document::Filter,
        number: u32,
    ) -> Result<Query<'j>, Failure> {
        Ok(Query::new(filter, &mut self.render(number))?)
    }

    pub(super) fn plan(&self, query: &Query<'_>, sort: &[(String, Order)]) -> Plan {
        let fields: Vec<&str> = self.collection.indexes.iter().map(|index| index.field.as_str()).collect();
        query.plan(&fields, sort)
    }
}

/// Two runs of bytes that belong together.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// Makes `key` and `value` the entry of a document in an index.
pub(super) fn index_entry(
    index: &Index,
    document: &[u8],
    id: &[u8],
    key: &mut Vec<u8>,
    value: &mut Vec<u8>,
) -> Result<(), RequestError> {
    let field = bson::path(document, &index.field);
    if field.is_some_and(|field| field.kind == kind::ARRAY) {
        return Err(RequestError::IndexesArray(index.field.clone()));
    }
    key.clear();
    key::encode_field(field.as_ref(), key)?;
    value.clear();
    value.extend_from_slice(&(key.len() as u32).to_le_bytes());
    key.extend_from_slice(id);
    Ok(())
}

/// The key of the document that an entry of an index leads to.
fn id_of<'k>(key: &'k [u8], value: &[u8]) -> Result<&'k [u8], Failure> {
    let at = value.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes) as usize);
    at.and_then(|at| key.get(at..)).ok_or(Failure::BrokenIndex)
}

/// Sees the key of a document and the document; false ends the walk.
pub(super) type Found<'f> = dyn FnMut(&[u8], &[u8]) -> Result<bool, Failure> + 'f;

/// Entries of an index that are read before their documents are, at first and at most.
const CHUNK: (usize, usize) = (16, 1024);

/// Shows the documents that `query` means, in the order of the plan.
pub(super) fn walk(
    reader: &mut impl Reader,
    collection: &Collection,
    query: &Query<'_>,
    plan: &Plan,
    found: &mut Found<'_>,
) -> Result<(), Failure> {
    let mut value = Vec::new();
    let mut tested = |id: &[u8], document: &[u8]| match query.meets(document, plan, &mut value) {
        Ok(true) => found(id, document),
        Ok(false) => Ok(true),
        Err(why) => Err(why.into()),
    };
    let downwards = plan.order == Order::Descending;
    let table = collection.documents;
    match &plan.access {
        AccessPath::Points(keys) => {
            let mut show = |id: &Vec<u8>| -> Result<bool, Failure> {
                reader.get(table, id, |document| tested(id, document))?.unwrap_or(Ok(true))
            };
            in_order(keys, downwards, &mut show)
        }
        AccessPath::Documents(ranges) => {
            let mut goes_on = true;
            in_order(ranges, downwards, &mut |(low, high)| {
                reader.range(table, low, high, plan.order, &mut |id, document| {
                    goes_on = tested(id, document)?;
                    Ok(goes_on)
                })?;
                Ok(goes_on)
            })
        }
        AccessPath::Index(index, ranges) => {
            let index = collection.indexes[*index].table;
            in_order(ranges, downwards, &mut |range| {
                along_index(reader, (index, table), range, plan.order, &mut tested)
            })
        }
    }
}

fn in_order<T>(
    all: &[T],
    downwards: bool,
    show: &mut dyn FnMut(&T) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    for number in 0..all.len() {
        let at = if downwards { all.len() - 1 - number } else { number };
        if !show(&all[at])? {
            break;
        }
    }
    Ok(())
}

/// Walks along an index a chunk at a time: an engine cannot be asked for documents while it walks.
fn along_index(
    reader: &mut impl Reader,
    (index, documents): (usize, usize),
    (low, high): &(Vec<u8>, Vec<u8>),
    order: Order,
    tested: &mut Found<'_>,
) -> Result<bool, Failure> {
    let (mut low, mut high, mut chunk) = (low.clone(), high.clone(), CHUNK.0);
    loop {
        let mut ids: Vec<Vec<u8>> = Vec::with_capacity(chunk);
        let mut last = Vec::new();
        reader.range(index, &low, &high, order, &mut |key, value| {
            ids.push(id_of(key, value)?.to_vec());
            if ids.len() == chunk {
                last.extend_from_slice(key);
            }
            Ok(ids.len() < chunk)
        })?;
        for id in &ids {
            let goes_on = reader.get(documents, id, |document| tested(id, document))?.unwrap_or(Ok(true))?;
            if !goes_on {
                return Ok(false);
            }
        }
        if ids.len() < chunk {
            return Ok(true);
        }
        match order {
            // The next key is this one with a zero byte more.
            Order::Ascending => {
                last.push(0);
                low = last;
            }
            Order::Descending => high = last,
        }
        chunk = (chunk * 2).min(CHUNK.1);
    }
}
