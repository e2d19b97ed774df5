//! One user: what YCSB asks for, and how an operation on documents is waited for.

use crate::official_driver::deployment::Official;
use crate::official_driver::errors::OfficialFailure;
use crate::official_driver::render::{named, shown, written};
use dyno_types::bson as bytes;
use dyno_types::document::Action;
use dyno_types::{Content, Executed, Outcome, RecordVerification, Request, StoreSession, Verb};
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::options::{ReadPreference, SelectionCriteria};
use mongodb::{ClientSession, Collection, Cursor, Database, SessionCursor};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// See the module.
pub(crate) struct OfficialSession {
    official: Arc<Official>,
    pub(crate) database: Database,
    records: Collection<Document>,
    pub(crate) content: Arc<dyn Content>,
    timeout: Option<Duration>,
    upsert: bool,
    error: String,
    /// Kept from transaction to transaction.
    transaction: Option<ClientSession>,
}

impl OfficialSession {
    pub(crate) fn new(
        official: Arc<Official>,
        database: Database,
        content: Arc<dyn Content>,
        timeout: Option<Duration>,
    ) -> Self {
        OfficialSession {
            records: database.collection(content.table()),
            upsert: official.options().upsert,
            database,
            content,
            timeout,
            error: String::new(),
            transaction: None,
            official,
        }
    }

    async fn perform(&self, request: &Request) -> Result<Executed, OfficialFailure> {
        match request.verb {
            Verb::Read => self.read(request).await,
            Verb::Scan => self.scan(request).await,
            Verb::Insert => self.insert(request).await,
            Verb::Update => {
                let change = doc! { "$set": written(self.content.as_ref(), request)? };
                let done = self.records.update_one(doc! { "_id": self.key(request)? }, change).await?;
                Ok(found(done.matched_count + u64::from(done.upserted_id.is_some())))
            }
            Verb::Delete => {
                Ok(found(self.records.delete_one(doc! { "_id": self.key(request)? }).await?.deleted_count))
            }
            Verb::Document => self.document(request, None).await,
            Verb::Command | Verb::Recorded | Verb::Topology => Ok(Executed::new(Outcome::NotImplemented, 0)),
        }
    }

    /// An operation of a transaction. A time-out drops the session, and with it what it has begun.
    async fn in_transaction(&mut self, request: &Request) -> Result<Executed, OfficialFailure> {
        let action = &self.content.shapes()[usize::from(request.shape)].action;
        let (commits, ends) = (*action == Action::Commit, action.ends_transaction());
        let mut session = match (self.transaction.take(), request.step) {
            (Some(session), _) => session,
            (None, 0) => self.database.client().start_session().await?,
            (None, _) if ends && !commits => return Ok(Executed::new(Outcome::Ok, 0)),
            (None, _) => {
                return Err(OfficialFailure::new(Outcome::Aborted, "the transaction has been given up"));
            }
        };
        if request.step == 0 {
            // Whatever is preferred for other reads.
            let primary = SelectionCriteria::ReadPreference(ReadPreference::Primary);
            session.start_transaction().selection_criteria(primary).await?;
        }
        let done = match (ends, commits) {
            (true, true) => session
                .commit_transaction()
                .await
                .map(|()| Executed::new(Outcome::Ok, 0))
                .map_err(OfficialFailure::from),
            (true, false) => session
                .abort_transaction()
                .await
                .map(|()| Executed::new(Outcome::Ok, 0))
                .map_err(OfficialFailure::from),
            _ => self.document(request, Some(&mut session)).await,
        };
        self.transaction = Some(session);
        done
    }

    fn key(&self, request: &Request) -> Result<String, OfficialFailure> {
        let mut key = Vec::new();
        self.content.key(request, &mut key);
        String::from_utf8(key).map_err(|_| OfficialFailure::malformed("the key is not UTF-8"))
    }

    async fn read(&self, request: &Request) -> Result<Executed, OfficialFailure> {
        let content = self.content.as_ref();
        let mut find = self.records.find_one(doc! { "_id": self.key(request)? });
        if let Some(fields) = named(content, request)? {
            find = find.projection(fields);
        }
        let Some(record) = find.await? else { return Ok(Executed::new(Outcome::NotFound, 0)) };
        let mut done = Executed::new(Outcome::Ok, 1);
        if content.verifies() {
            let since = Instant::now();
            let (mut good, mut fields) = (true, 0);
            for (name, value) in record.iter().filter(|(name, _)| *name != "_id") {
                fields += 1;
                good &= content.verify(request, name.as_bytes(), shown(value));
            }
            // A field that is missing holds nothing right.
            good &= fields >= content.fields(request).max(1);
            let outcome = if good { Outcome::Ok } else { Outcome::Mismatch };
            done.verified = Some(RecordVerification { outcome, took_ns: since.elapsed().as_nanos() as u64 });
        }
        Ok(done)
    }

    async fn scan(&self, request: &Request) -> Result<Executed, OfficialFailure> {
        let content = self.content.as_ref();
        let mut find = self
            .records
            .find(doc! { "_id": { "$gte": self.key(request)? } })
            .sort(doc! { "_id": 1 })
            .limit(request.limit.into());
        if let Some(fields) = named(content, request)? {
            find = find.projection(fields);
        }
        let watched = content.watches_scans();
        let records = drain(find.await?, |number, record| {
            for (name, value) in record.iter().filter(|(name, _)| watched && *name != "_id") {
                content.scanned(number, name.as_bytes(), shown(value));
            }
        });
        Ok(Executed::new(Outcome::Ok, records.await?))
    }

    async fn insert(&self, request: &Request) -> Result<Executed, OfficialFailure> {
        let mut record = Vec::new();
        let at = bytes::open(&mut record);
        bytes::put_string(&mut record, "_id", &self.key(request)?);
        for field in 0..self.content.fields(request) {
            record.push(bytes::kind::BINARY);
            self.content.name(request, field, &mut record);
            record.push(0);
            record.extend_from_slice(&(self.content.value_len(request, field) as i32).to_le_bytes());
            record.push(0);
            self.content.value(request, field, &mut record);
        }
        bytes::close(&mut record, at);
        let record =
            RawDocumentBuf::from_bytes(record).map_err(|e| OfficialFailure::malformed(e.to_string()))?;
        let records = self.records.clone_with_type::<RawDocumentBuf>();
        if self.upsert {
            let done = records.replace_one(doc! { "_id": self.key(request)? }, record).upsert(true).await?;
            let written = done.matched_count + u64::from(done.upserted_id.is_some());
            return Ok(Executed::new(Outcome::Ok, written as u32));
        }
        records.insert_one(record).await?;
        Ok(Executed::new(Outcome::Ok, 1))
    }
}

/// What a write of `records` documents that must be there has come to.
pub(crate) fn found(records: u64) -> Executed {
    let outcome = if records > 0 { Outcome::Ok } else { Outcome::NotFound };
    Executed::new(outcome, records.min(u32::MAX.into()) as u32)
}

/// Reads a cursor to its end, every document of it; returns how many there were.
pub(crate) async fn drain(
    mut cursor: Cursor<Document>,
    mut see: impl FnMut(u32, &Document),
) -> Result<u32, OfficialFailure> {
    let mut records = 0;
    while cursor.advance().await? {
        see(records, &cursor.deserialize_current()?);
        records += 1;
    }
    Ok(records)
}

/// The same of a transaction's cursor.
pub(crate) async fn drain_within(
    mut cursor: SessionCursor<Document>,
    session: &mut ClientSession,
    mut see: impl FnMut(u32, &Document),
) -> Result<u32, OfficialFailure> {
    let mut records = 0;
    while cursor.advance(session).await? {
        see(records, &cursor.deserialize_current()?);
        records += 1;
    }
    Ok(records)
}

/// A number of a reply.
pub(crate) fn number(value: Option<&Bson>) -> Option<i64> {
    match value? {
        Bson::Int32(n) => Some((*n).into()),
        Bson::Int64(n) => Some(*n),
        Bson::Double(n) => Some(*n as i64),
        _ => None,
    }
}

impl StoreSession for OfficialSession {
    fn execute(&mut self, request: &Request) -> Executed {
        let (official, timeout) = (self.official.clone(), self.timeout);
        let transaction = self.content.in_transaction(request);
        let done = official.block_on(async {
            let work = async {
                if transaction { self.in_transaction(request).await } else { self.perform(request).await }
            };
            match timeout {
                None => work.await,
                Some(limit) => tokio::time::timeout(limit, work)
                    .await
                    .unwrap_or_else(|_| Err(OfficialFailure::timed_out(limit))),
            }
        });
        self.error.clear();
        done.unwrap_or_else(|failure| {
            self.error = failure.message;
            Executed::new(failure.outcome, failure.records)
        })
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}
