//! YCSB's records in an engine: a table from keys to encoded records. A request that writes is a transaction.

use super::{DocumentStore, Engine, Handle, OrderedFailure, Patience, Reader, Writer, check};
use crate::reading::Buffers;
use crate::reading::whole_record;
use dyno_types::document::SortOrder;
use dyno_types::{Content, Executed, Outcome, RefusalCode, Refused, Request, Store, StoreSession, Verb};
use std::sync::Arc;

/// Records that are counted one by one; the engines tell no exact number.
const COUNTED: u64 = 2_000_000;

/// Opens the store that `content` needs of an engine that `open` opens: a store of documents or of records.
pub(crate) fn store<E: Engine>(
    scheme: &str,
    content: Arc<dyn Content>,
    replaces: bool,
    patience: Patience,
    open: impl FnOnce() -> Result<E, Refused>,
) -> Result<Arc<dyn Store>, Refused> {
    if !content.shapes().is_empty() {
        check(scheme, content.as_ref())?;
        return Ok(Arc::new(DocumentStore::new(open()?, content, patience)));
    }
    let whole = content.fields(&whole_record());
    let store = RecordStore {
        engine: open()?,
        common: Arc::new(RecordsShared { content, replaces, whole, patience }),
    };
    store.enter(store.common.content.clone())?;
    Ok(Arc::new(store))
}

struct RecordStore<E: Engine> {
    engine: E,
    common: Arc<RecordsShared>,
}

/// State that all sessions share.
struct RecordsShared {
    content: Arc<dyn Content>,
    /// True if an insert replaces an existing record.
    replaces: bool,
    /// Fields of a whole record.
    whole: usize,
    patience: Patience,
}

/// One user's session.
struct RecordSession<H> {
    content: Arc<dyn Content>,
    handle: H,
    table: usize,
    common: Arc<RecordsShared>,
    buffers: Buffers,
    error: String,
}

impl<E: Engine> RecordStore<E> {
    fn enter(&self, content: Arc<dyn Content>) -> Result<RecordSession<E::Handle>, Refused> {
        let mut handle = self.engine.handle()?;
        let table = handle.table(self.common.content.table());
        let table = table.map_err(|failure| {
            Refused::new(RefusalCode::BadFile, "target", format!("{}: {failure}", self.engine.name()))
        })?;
        let common = self.common.clone();
        Ok(RecordSession {
            content,
            handle,
            table,
            common,
            buffers: Buffers::default(),
            error: String::new(),
        })
    }
}

impl<E: Engine> Store for RecordStore<E> {
    fn engine(&self) -> String {
        self.engine.name()
    }

    fn durability(&self) -> String {
        self.engine.durability()
    }

    fn facts(&self) -> Vec<(String, String)> {
        self.engine.facts()
    }

    fn session(&self) -> Result<Box<dyn StoreSession>, Refused> {
        self.session_of(self.common.content.clone())
    }

    fn session_of(&self, content: Arc<dyn Content>) -> Result<Box<dyn StoreSession>, Refused> {
        Ok(Box::new(self.enter(content)?))
    }

    /// The exact number, told up to two million.
    fn count(&self) -> Result<Option<u64>, Refused> {
        let mut session = self.enter(self.common.content.clone())?;
        let (mut count, table) = (0, session.table);
        let counted = session.handle.read().and_then(|mut reader| {
            reader.range(table, &[], &[], SortOrder::Ascending, &mut |_, _| {
                count += 1;
                Ok(count <= COUNTED)
            })
        });
        match counted {
            Ok(()) => Ok(Some(count).filter(|&count| count <= COUNTED)),
            Err(failure) => Err(Refused::new(
                RefusalCode::BadFile,
                "target",
                format!("{}: {failure}", self.engine.name()),
            )),
        }
    }
}

impl<H: Handle> RecordSession<H> {
    fn try_execute(&mut self, requests: &[Request]) -> Result<Executed, OrderedFailure> {
        let (common, handle, buffers, table) =
            (self.common.as_ref(), &mut self.handle, &mut self.buffers, self.table);
        let own = (common, self.content.as_ref());
        common.patience.run(|| {
            if let [request] = requests
                && !request.verb.changes_data()
            {
                return look(own, buffers, &mut handle.read()?, table, request);
            }
            let mut writer = handle.write()?;
            let mut all = Executed::new(Outcome::Ok, 0);
            for request in requests {
                let done = if request.verb.changes_data() {
                    change(own, buffers, &mut writer, table, request)?
                } else {
                    look(own, buffers, &mut writer, table, request)?
                };
                if !done.outcome.is_ok() {
                    // Dropping the transaction rolls it back.
                    return Ok(done);
                }
                all.records += done.records;
            }
            writer.commit()?;
            Ok(all)
        })
    }
}

impl<H: Handle> StoreSession for RecordSession<H> {
    fn execute(&mut self, request: &Request) -> Executed {
        self.execute_batch(std::slice::from_ref(request))
    }

    fn execute_batch(&mut self, requests: &[Request]) -> Executed {
        match self.try_execute(requests) {
            Ok(done) => done,
            Err(failure) => failure.executed(&mut self.error),
        }
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}

/// A read or a scan.
fn look(
    (common, content): (&RecordsShared, &dyn Content),
    buffers: &mut Buffers,
    reader: &mut impl Reader,
    table: usize,
    request: &Request,
) -> Result<Executed, OrderedFailure> {
    match request.verb {
        Verb::Read => {
            buffers.render_key(content, request);
            let key = std::mem::take(&mut buffers.key);
            let read = reader.get(table, &key, |stored| buffers.read(content, request, common.whole, stored));
            buffers.key = key;
            Ok(read?.transpose()?.unwrap_or(Executed::new(Outcome::NotFound, 0)))
        }
        Verb::Scan => {
            buffers.render_key(content, request);
            let key = std::mem::take(&mut buffers.key);
            let mut records = 0;
            let walked = reader.range(table, &key, &[], SortOrder::Ascending, &mut |_, stored| {
                if records == request.limit {
                    return Ok(false);
                }
                buffers.pass(content, request, records, stored)?;
                records += 1;
                Ok(records < request.limit)
            });
            buffers.key = key;
            walked?;
            Ok(Executed::new(Outcome::Ok, records))
        }
        _ => Ok(Executed::new(Outcome::NotImplemented, 0)),
    }
}

/// An insert, an update or a delete.
fn change(
    (common, content): (&RecordsShared, &dyn Content),
    buffers: &mut Buffers,
    writer: &mut impl Writer,
    table: usize,
    request: &Request,
) -> Result<Executed, OrderedFailure> {
    buffers.render_key(content, request);
    let key = std::mem::take(&mut buffers.key);
    let not_found = Ok(Executed::new(Outcome::NotFound, 0));
    match request.verb {
        Verb::Insert => {
            if !common.replaces && writer.get(table, &key, |_| ())?.is_some() {
                return Err(OrderedFailure::Duplicate);
            }
            buffers.render_record(content, request)?;
        }
        Verb::Update => {
            match writer.get(table, &key, |stored| buffers.render_update(content, request, stored))? {
                Some(rendered) => rendered?,
                None => return not_found,
            }
        }
        _ => {
            if writer.get(table, &key, |_| ())?.is_none() {
                return not_found;
            }
            writer.delete(table, &key)?;
            return Ok(Executed::new(Outcome::Ok, 0));
        }
    }
    writer.put(table, &key, &buffers.record)?;
    buffers.key = key;
    Ok(Executed::new(Outcome::Ok, 0))
}
