//! Operations on documents, by the interface that applications use. What it has no form for goes out as a command:
//! several statements of update or delete in one (`Client::bulk_write` needs MongoDB 8).

use crate::official_driver::errors::OfficialFailure;
use crate::official_driver::render::{Statement, projection, sort_option};
use crate::official_driver::session::{OfficialSession, drain, drain_within, found, number};
use dyno_types::document::{Action, Change, DocumentFilter, Projection, SortOrder};
use dyno_types::{Executed, Outcome, Request};
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc, to_document};
use mongodb::error::ErrorKind;
use mongodb::options::{ReturnDocument, UpdateModifications};
use mongodb::results::UpdateResult;
use mongodb::{ClientSession, Collection};

/// The session of a transaction, where the operation belongs to one.
pub(crate) type Within<'s> = Option<&'s mut ClientSession>;

/// Carries out an action of the driver, in the session if there is one.
macro_rules! within {
    ($action:expr, $session:expr) => {
        match $session {
            Some(session) => $action.session(session).await,
            None => $action.await,
        }
    };
}

/// What a find needs beside its filter.
struct FindOptions<'a> {
    filter: &'a DocumentFilter,
    fields: &'a Projection,
    sort: &'a [(String, SortOrder)],
    limit: u32,
    single_batch: bool,
    must_find: bool,
}

/// What findAndModify needs.
struct Modifying<'a> {
    filter: &'a DocumentFilter,
    change: &'a Change,
    fields: &'a Projection,
    sort: &'a [(String, SortOrder)],
    upsert: bool,
    returns_new: bool,
}

/// Documents are decoded, as an application decodes them, and looked at no further.
fn see(_number: u32, document: &Document) {
    std::hint::black_box(document);
}

impl OfficialSession {
    fn statement<'a>(&'a self, request: &'a Request, number: u32) -> Statement<'a> {
        Statement { content: self.content.as_ref(), request, number }
    }

    /// The collection that a request addresses, of documents as `T`.
    fn collection<T: Send + Sync>(&self, request: &Request) -> Result<Collection<T>, OfficialFailure> {
        let mut name = Vec::new();
        self.content.collection(request, &mut name);
        let name = String::from_utf8(name).map_err(|_| OfficialFailure::malformed("a name is not UTF-8"))?;
        Ok(self.database.collection(&name))
    }

    pub(crate) async fn document(
        &self,
        request: &Request,
        session: Within<'_>,
    ) -> Result<Executed, OfficialFailure> {
        let first = self.statement(request, 0);
        match &self.content.shapes()[usize::from(request.shape)].action {
            Action::Insert { ordered } => self.insert_documents(request, *ordered, session).await,
            Action::Find { filter, fields, sort, limit, single_batch } => {
                let must_find = *limit == Some(1);
                let (limit, single_batch) = (limit.unwrap_or(request.limit), *single_batch);
                let wanted = FindOptions { filter, fields, sort, limit, single_batch, must_find };
                self.find(request, &wanted, session).await
            }
            Action::Sum { filter, field, result } => {
                self.aggregate(request, first.sum(filter, field, result)?, session).await
            }
            Action::Distinct { filter, field } => {
                let collection: Collection<Document> = self.collection(request)?;
                let values = within!(collection.distinct(field, first.render_filter(filter)?), session)?;
                Ok(Executed::new(Outcome::Ok, values.len() as u32))
            }
            Action::Aggregate { pipeline } => {
                self.aggregate(request, first.render_pipeline(pipeline)?, session).await
            }
            Action::Update { filter, change, many, upsert, ordered } => {
                if self.content.documents(request) == 1 {
                    return self.update(request, filter, change, (*many, *upsert), session).await;
                }
                self.bulk(request, ["update", "updates"], *ordered, session, |one| {
                    let change = match change {
                        Change::Replace => to_document(&one.stored_document()?).map_err(of_bson)?,
                        change => one.render_change(change)?,
                    };
                    let mut statement = doc! { "q": one.render_filter(filter)?, "u": change };
                    if *upsert {
                        statement.insert("upsert", true);
                    }
                    if *many {
                        statement.insert("multi", true);
                    }
                    Ok(statement)
                })
                .await
            }
            Action::Delete { filter, many, ordered } => {
                if self.content.documents(request) == 1 {
                    return self.delete(request, filter, *many, session).await;
                }
                self.bulk(request, ["delete", "deletes"], *ordered, session, |one| {
                    Ok(doc! { "q": one.render_filter(filter)?, "limit": i32::from(!*many) })
                })
                .await
            }
            Action::FindAndModify { filter, change, fields, sort, upsert, returns_new } => {
                let (upsert, returns_new) = (*upsert, *returns_new);
                let modifying = Modifying { filter, change, fields, sort, upsert, returns_new };
                self.find_and_modify(request, &modifying, session).await
            }
            // `Session::in_transaction` ends transactions; `shapes` refuses commands.
            Action::Commit | Action::Abort | Action::Command { .. } => {
                Ok(Executed::new(Outcome::NotImplemented, 0))
            }
        }
    }

    async fn insert_documents(
        &self,
        request: &Request,
        ordered: bool,
        session: Within<'_>,
    ) -> Result<Executed, OfficialFailure> {
        let count = self.content.documents(request);
        let documents: Result<Vec<RawDocumentBuf>, OfficialFailure> =
            (0..count).map(|number| self.statement(request, number).stored_document()).collect();
        let collection: Collection<RawDocumentBuf> = self.collection(request)?;
        match within!(collection.insert_many(documents?).ordered(ordered), session) {
            Ok(done) => Ok(Executed::new(Outcome::Ok, done.inserted_ids.len() as u32)),
            Err(error) => {
                let mut records = 0;
                if let ErrorKind::InsertMany(failed) = &*error.kind {
                    let errors = failed.write_errors.as_deref().unwrap_or_default();
                    records = match (errors.first(), ordered) {
                        // The first failure ends it.
                        (Some(first), true) => first.index as u32,
                        _ => count - (errors.len() as u32).min(count),
                    };
                }
                Err(OfficialFailure { records, ..OfficialFailure::from(error) })
            }
        }
    }

    async fn find(
        &self,
        request: &Request,
        wanted: &FindOptions<'_>,
        session: Within<'_>,
    ) -> Result<Executed, OfficialFailure> {
        let collection: Collection<Document> = self.collection(request)?;
        let mut find = collection.find(self.statement(request, 0).render_filter(wanted.filter)?);
        if let Some(fields) = projection(wanted.fields) {
            find = find.projection(fields);
        }
        if let Some(order) = sort_option(wanted.sort) {
            find = find.sort(order);
        }
        if wanted.limit > 0 {
            // The driver's sign for one batch.
            let limit = i64::from(wanted.limit);
            find = find.limit(if wanted.single_batch { -limit } else { limit });
        }
        let records = match session {
            Some(session) => drain_within(find.session(&mut *session).await?, session, see).await?,
            None => drain(find.await?, see).await?,
        };
        let missing = wanted.must_find && records == 0;
        Ok(Executed::new(if missing { Outcome::NotFound } else { Outcome::Ok }, records))
    }

    async fn aggregate(
        &self,
        request: &Request,
        pipeline: Vec<Document>,
        session: Within<'_>,
    ) -> Result<Executed, OfficialFailure> {
        let collection: Collection<Document> = self.collection(request)?;
        let aggregate = collection.aggregate(pipeline);
        let records = match session {
            Some(session) => drain_within(aggregate.session(&mut *session).await?, session, see).await?,
            None => drain(aggregate.await?, see).await?,
        };
        Ok(Executed::new(Outcome::Ok, records))
    }

    async fn update(
        &self,
        request: &Request,
        filter: &DocumentFilter,
        change: &Change,
        (many, upsert): (bool, bool),
        session: Within<'_>,
    ) -> Result<Executed, OfficialFailure> {
        let one = self.statement(request, 0);
        let filter = one.render_filter(filter)?;
        let done: UpdateResult = if *change == Change::Replace {
            let collection: Collection<RawDocumentBuf> = self.collection(request)?;
            let replace = collection.replace_one(filter, one.stored_document()?);
            let replace = if upsert { replace.upsert(true) } else { replace };
            within!(replace, session)?
        } else {
            let collection: Collection<Document> = self.collection(request)?;
            let change = UpdateModifications::Document(one.render_change(change)?);
            let update = if many {
                collection.update_many(filter, change)
            } else {
                collection.update_one(filter, change)
            };
            let update = if upsert { update.upsert(true) } else { update };
            within!(update, session)?
        };
        Ok(found(done.matched_count + u64::from(done.upserted_id.is_some())))
    }

    async fn delete(
        &self,
        request: &Request,
        filter: &DocumentFilter,
        many: bool,
        session: Within<'_>,
    ) -> Result<Executed, OfficialFailure> {
        let collection: Collection<Document> = self.collection(request)?;
        let filter = self.statement(request, 0).render_filter(filter)?;
        let delete = if many { collection.delete_many(filter) } else { collection.delete_one(filter) };
        Ok(found(within!(delete, session)?.deleted_count))
    }

    async fn find_and_modify(
        &self,
        request: &Request,
        wanted: &Modifying<'_>,
        session: Within<'_>,
    ) -> Result<Executed, OfficialFailure> {
        let one = self.statement(request, 0);
        let filter = one.render_filter(wanted.filter)?;
        let returned = wanted.returns_new.then_some(ReturnDocument::After);
        let value: Option<Document> = if *wanted.change == Change::Replace {
            let collection: Collection<Document> = self.collection(request)?;
            let document = to_document(&one.stored_document()?).map_err(of_bson)?;
            let mut options = mongodb::options::FindOneAndReplaceOptions::default();
            options.upsert = wanted.upsert.then_some(true);
            options.return_document = returned;
            options.projection = projection(wanted.fields);
            options.sort = sort_option(wanted.sort);
            within!(collection.find_one_and_replace(filter, document).with_options(options), session)?
        } else {
            let collection: Collection<Document> = self.collection(request)?;
            let mut options = mongodb::options::FindOneAndUpdateOptions::default();
            options.upsert = wanted.upsert.then_some(true);
            options.return_document = returned;
            options.projection = projection(wanted.fields);
            options.sort = sort_option(wanted.sort);
            let change = one.render_change(wanted.change)?;
            within!(collection.find_one_and_update(filter, change).with_options(options), session)?
        };
        Ok(found(value.is_some().into()))
    }

    /// Several statements in one command.
    async fn bulk(
        &self,
        request: &Request,
        [command, list]: [&str; 2],
        ordered: bool,
        session: Within<'_>,
        statement: impl Fn(&Statement<'_>) -> Result<Document, OfficialFailure>,
    ) -> Result<Executed, OfficialFailure> {
        let collection: Collection<Document> = self.collection(request)?;
        let count = self.content.documents(request);
        let statements: Result<Vec<Document>, OfficialFailure> =
            (0..count).map(|number| statement(&self.statement(request, number))).collect();
        let mut whole = doc! { command: collection.name(), list: statements?, "ordered": ordered };
        // Commands do not inherit it; a transaction has its own.
        if let (Some(concern), None) = (collection.write_concern(), &session) {
            whole.insert("writeConcern", to_document(concern).map_err(of_bson)?);
        }
        let reply = within!(self.database.run_command(whole), session)?;
        let n = number(reply.get("n")).unwrap_or(0).max(0);
        if let Some(failure) = failure_of(&reply) {
            return Err(OfficialFailure { records: n as u32, ..failure });
        }
        Ok(found(n as u64))
    }
}

fn of_bson(error: impl std::fmt::Display) -> OfficialFailure {
    OfficialFailure::malformed(error.to_string())
}

/// The first write error of a reply, else its write-concern error.
fn failure_of(reply: &Document) -> Option<OfficialFailure> {
    let failed = |error: &Document| {
        let message = error.get_str("errmsg").unwrap_or("no words");
        OfficialFailure::of_code(
            number(error.get("code")).unwrap_or(0),
            error.get_str("codeName").ok(),
            message,
        )
    };
    if let Some(Bson::Document(first)) = reply.get_array("writeErrors").ok().and_then(|all| all.first()) {
        return Some(failed(first));
    }
    reply.get_document("writeConcernError").ok().map(failed)
}
