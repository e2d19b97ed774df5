//! Requests into commands: one OP_MSG each, written straight into the connection's output.
//!
//! Elements stand in the order, and are of the types, in which the official Rust driver sends them: a test compares them.
//! Documents of inserts and statements of updates and deletes travel in a section of kind 1 after the command's own
//! document, as drivers send them; so nothing is copied and no length is known beforehand.

use super::description::Limits;
use super::exchange::MongoExchange;
use super::message;
use super::options::MongoOptions;
use super::selection::ReadPreference;
use super::session::{self, LogicalSession};
use dyno_types::bson::{self, kind};
use dyno_types::document::{
    Action, AggregationStage, Change, DocumentFilter, FieldTest, Projection, SortOrder,
};
use dyno_types::{Content, Request, Verb};

/// Parts that every command needs.
pub(super) struct CommandWriter<'a> {
    pub options: &'a MongoOptions,
    pub content: &'a dyn Content,
    /// Where the name of the collection is rendered.
    pub name: &'a mut Vec<u8>,
    /// The session, where the server expects one.
    pub session: Option<LogicalSession>,
    /// True if the command is a retryable write, whose number is told.
    pub numbered: bool,
    /// True if the command belongs to a transaction, and whether it begins it.
    pub transaction: Option<bool>,
    /// Limits of the server.
    pub limits: Limits,
    /// The server knows the command `hello`.
    pub knows_hello: bool,
    /// One member of a replica set is spoken to, whatever it is: reads are meant for it.
    pub single: bool,
}

/// A name as text; names are rendered as UTF-8 by every content.
fn text(name: &[u8]) -> &str {
    std::str::from_utf8(name).unwrap_or_default()
}

impl CommandWriter<'_> {
    /// Appends the next command of an exchange.
    pub fn append_command(&mut self, x: &mut MongoExchange, id: i32, out: &mut Vec<u8>) {
        let at = message::begin(out, id);
        let request = &x.request;
        self.name.clear();
        match request.verb {
            Verb::Document => self.content.collection(request, self.name),
            _ => self.name.extend_from_slice(self.content.table().as_bytes()),
        }
        if x.cursor != 0 {
            self.get_more(x, out);
        } else if x.statements > 0 {
            debug_assert!(x.part.0 < x.statements, "what has been written as a whole is not sent again");
            x.part.1 = self.write(x, at, out);
            debug_assert!(x.part.0 < x.part.1, "each command has a statement, or the write would never end");
            debug_assert!(x.part.1 <= x.statements);
        } else {
            match request.verb {
                Verb::Read => self.read(x, out),
                Verb::Scan => self.scan(x, out),
                Verb::Document => self.document(x, out),
                Verb::Topology => self.hello(out),
                Verb::Recorded => self.recorded(request, out),
                Verb::Insert | Verb::Update | Verb::Delete | Verb::Command => {}
            }
        }
        message::end(out, at);
    }

    /// A write, with as many of its statements as the server takes in one message that begins at `from`; returns the number of
    /// the statement behind the last.
    fn write(&self, x: &MongoExchange, from: usize, out: &mut Vec<u8>) -> u32 {
        let request = &x.request;
        let upserts = self.options.upsert;
        let all = (x, from);
        match request.verb {
            Verb::Insert if upserts && !x.batch.is_empty() => {
                // A batch of them sets the fields, as YCSB's bulks do.
                self.statements(all, "update", "updates", false, out, |number, out| {
                    self.set_fields(&x.batch[number as usize], out);
                    bson::put_boolean(out, "upsert", true);
                })
            }
            Verb::Insert if upserts => {
                self.statements(all, "update", "updates", true, out, |_, out| self.upsert(request, out))
            }
            Verb::Update => {
                self.statements(all, "update", "updates", true, out, |_, out| self.set_fields(request, out))
            }
            Verb::Delete => self.statements(all, "delete", "deletes", true, out, |_, out| {
                self.by_key(request, "q", out);
                bson::put_int32(out, "limit", 1);
            }),
            Verb::Document if x.batch.is_empty() => self.document_statements(x, from, out),
            _ => {
                let batch = if x.batch.is_empty() { std::slice::from_ref(request) } else { &x.batch };
                self.sequence(all, ("insert", x.batch.is_empty()), "documents", out, |number, out| {
                    self.record(&batch[number as usize], out);
                })
            }
        }
    }

    pub(super) fn begin(&self, command: &str, out: &mut Vec<u8>) -> usize {
        let body = bson::open(out);
        bson::put_string(out, command, text(self.name));
        body
    }

    /// Appends what all commands end with, and ends the command's document.
    pub(super) fn end(&self, writes: bool, body: usize, out: &mut Vec<u8>) {
        let options = self.options;
        let concern = &options.write_concern;
        self.database(out);
        if !writes && self.transaction.is_none() {
            match options.read_preference {
                ReadPreference::Primary if self.single => {
                    options.selection.put(ReadPreference::PrimaryPreferred, out);
                }
                ReadPreference::Primary => {}
                mode => options.selection.put(mode, out),
            }
        }
        // A transaction's concerns are those of its first command and of its end.
        let in_transaction = self.transaction.is_some();
        match (self.transaction, self.numbered, &self.session) {
            (Some(first), _, Some(session)) => session.put_transaction(first, out),
            (None, true, Some(session)) => session.put_number(out),
            _ => {}
        }
        let reads = if in_transaction { self.transaction == Some(true) } else { !writes };
        if let (true, Some(level)) = (reads, &options.read_concern) {
            bson::put_head(out, kind::DOCUMENT, "readConcern");
            let inner = bson::open(out);
            bson::put_string(out, "level", level);
            bson::close(out, inner);
        }
        if writes && !in_transaction && !concern.is_default() {
            concern.put(out);
        }
        bson::close(out, body);
    }

    fn get_more(&self, x: &MongoExchange, out: &mut Vec<u8>) {
        let body = bson::open(out);
        bson::put_int64(out, "getMore", x.cursor);
        bson::put_string(out, "collection", text(self.name));
        if x.request.verb == Verb::Document
            && let Action::Command { batch_size: Some(size), .. } =
                &self.content.shapes()[usize::from(x.request.shape)].action
        {
            bson::put_int64(out, "batchSize", i64::from(*size));
        }
        self.database(out);
        if let (Some(_), Some(session)) = (self.transaction, &self.session) {
            session.put_transaction(false, out);
        }
        bson::close(out, body);
    }

    fn database(&self, out: &mut Vec<u8>) {
        bson::put_string(out, "$db", &self.options.database);
        if let Some(session) = &self.session {
            session.put_id(out);
        }
        if let Some(api) = &self.options.server_api {
            api.put(out);
        }
    }

    /// A command that was recorded, with what this target asks for beside it.
    fn recorded(&self, request: &Request, out: &mut Vec<u8>) {
        let body = out.len();
        self.content.recorded_command(request, 0, out);
        let has = |out: &[u8], name: &str| bson::find_element(&out[body..], name).is_some();
        let mode = (self.single && !has(out, "$readPreference")).then_some(ReadPreference::PrimaryPreferred);
        let api = self.options.server_api.as_ref().filter(|_| !has(out, "apiVersion"));
        if mode.is_none() && api.is_none() {
            return;
        }
        // The document goes on behind its last element.
        out.pop();
        if let Some(mode) = mode {
            self.options.selection.put(mode, out);
        }
        if let Some(api) = api {
            api.put(out);
        }
        bson::close(out, body);
    }

    /// Asks a server what it is: by the old name until it says that it knows the new one.
    fn hello(&self, out: &mut Vec<u8>) {
        let body = bson::open(out);
        if self.knows_hello {
            bson::put_int32(out, "hello", 1);
        } else {
            bson::put_int32(out, "isMaster", 1);
        }
        bson::put_boolean(out, "helloOk", true);
        bson::put_string(out, "$db", "admin");
        if let Some(api) = &self.options.server_api {
            api.put(out);
        }
        bson::close(out, body);
    }

    /// A writing command with statements.
    fn statements(
        &self,
        of: (&MongoExchange, usize),
        command: &str,
        sequence: &str,
        ordered: bool,
        out: &mut Vec<u8>,
        statement: impl Fn(u32, &mut Vec<u8>),
    ) -> u32 {
        self.sequence(of, (command, ordered), sequence, out, |number, out| {
            let document = bson::open(out);
            statement(number, out);
            bson::close(out, document);
        })
    }

    /// A writing command with as many of its documents, which `append` appends, as fit a message that begins at `from`; at least
    /// one. Returns the number behind the last.
    fn sequence(
        &self,
        (x, from): (&MongoExchange, usize),
        (command, ordered): (&str, bool),
        name: &str,
        out: &mut Vec<u8>,
        append: impl Fn(u32, &mut Vec<u8>),
    ) -> u32 {
        let body = self.begin(command, out);
        bson::put_boolean(out, "ordered", ordered);
        self.end(true, body, out);
        let sequence = message::begin_sequence(out, name);
        let first = x.part.0;
        let most = u32::try_from(self.limits.batch).unwrap_or(u32::MAX);
        let last = x.statements.min(first.saturating_add(most));
        let mut next = first;
        while next < last {
            let before = out.len();
            append(next, out);
            if next > first && out.len() - from > self.limits.message_bytes {
                out.truncate(before);
                break;
            }
            next += 1;
        }
        message::end(out, sequence);
        next
    }

    /// A write of documents in statements.
    fn document_statements(&self, x: &MongoExchange, from: usize, out: &mut Vec<u8>) -> u32 {
        let (request, all) = (&x.request, (x, from));
        match &self.content.shapes()[usize::from(request.shape)].action {
            Action::Insert { ordered } => {
                self.sequence(all, ("insert", *ordered), "documents", out, |number, out| {
                    self.content.document(request, number, out);
                })
            }
            Action::Update { filter, change, many, upsert, ordered } => {
                self.statements(all, "update", "updates", *ordered, out, |number, out| {
                    self.filter("q", filter, request, number, out);
                    self.change("u", change, request, number, out);
                    if *upsert {
                        bson::put_boolean(out, "upsert", true);
                    }
                    if *many {
                        bson::put_boolean(out, "multi", true);
                    }
                })
            }
            Action::Delete { filter, many, ordered } => {
                self.statements(all, "delete", "deletes", *ordered, out, |number, out| {
                    self.filter("q", filter, request, number, out);
                    bson::put_int32(out, "limit", i32::from(!*many));
                })
            }
            _ => x.statements,
        }
    }

    /// Any other operation on documents.
    fn document(&self, x: &MongoExchange, out: &mut Vec<u8>) {
        let request = &x.request;
        let action = &self.content.shapes()[usize::from(request.shape)].action;
        match action {
            Action::Insert { .. } | Action::Update { .. } | Action::Delete { .. } => {}
            Action::Find { filter, fields, sort: by, limit, single_batch } => {
                let body = self.begin("find", out);
                if *single_batch {
                    bson::put_boolean(out, "singleBatch", true);
                }
                let limit = limit.unwrap_or(request.limit);
                if limit > 0 {
                    bson::put_int64(out, "limit", i64::from(limit));
                }
                projection("projection", fields, out);
                sort(by, out);
                self.filter("filter", filter, request, 0, out);
                self.end(false, body, out);
            }
            Action::Sum { filter, field, result } => self.sum(filter, field, result, request, out),
            Action::Distinct { filter, field } => {
                let body = self.begin("distinct", out);
                bson::put_string(out, "key", field);
                self.filter("query", filter, request, 0, out);
                self.end(false, body, out);
            }
            Action::Aggregate { pipeline } => self.aggregate(pipeline, action.changes_data(), request, out),
            Action::Command { changes, body, .. } => {
                let at = out.len();
                self.content.operand(request, 0, *body, "", out);
                // Without the type and the empty name of an element, and without its end: what all commands have follows.
                out.drain(at..at + 2);
                out.pop();
                self.end(*changes, at, out);
            }
            action @ (Action::Commit | Action::Abort) => {
                session::put_end(action, self.session.as_ref(), self.options, out);
            }
            Action::FindAndModify { filter, change, fields, sort: by, upsert, returns_new } => {
                let body = self.begin("findAndModify", out);
                self.filter("query", filter, request, 0, out);
                self.change("update", change, request, 0, out);
                sort(by, out);
                if *returns_new {
                    bson::put_boolean(out, "new", true);
                }
                if *upsert {
                    bson::put_boolean(out, "upsert", true);
                }
                projection("fields", fields, out);
                self.end(true, body, out);
            }
        }
    }

    fn filter(&self, name: &str, filter: &DocumentFilter, request: &Request, number: u32, out: &mut Vec<u8>) {
        bson::put_head(out, kind::DOCUMENT, name);
        let at = bson::open(out);
        for condition in &filter.0 {
            match &condition.test {
                FieldTest::Equal(operand) => {
                    self.content.operand(request, number, *operand, &condition.field, out);
                }
                FieldTest::Range(comparisons) => {
                    bson::put_head(out, kind::DOCUMENT, &condition.field);
                    let range = bson::open(out);
                    for (compare, operand) in comparisons {
                        self.content.operand(request, number, *operand, compare.mongodb_operator(), out);
                    }
                    bson::close(out, range);
                }
                FieldTest::In(operands) => {
                    bson::put_head(out, kind::DOCUMENT, &condition.field);
                    let any = bson::open(out);
                    bson::put_head(out, kind::ARRAY, "$in");
                    let list = bson::open(out);
                    for (index, operand) in operands.iter().enumerate() {
                        // Lists are short: no name is longer than this.
                        let mut digits = Vec::new();
                        bson::put_decimal(&mut digits, index as u32);
                        self.content.operand(request, number, *operand, text(&digits), out);
                    }
                    bson::close(out, list);
                    bson::close(out, any);
                }
            }
        }
        bson::close(out, at);
    }

    fn change(&self, name: &str, change: &Change, request: &Request, number: u32, out: &mut Vec<u8>) {
        bson::put_head(out, kind::DOCUMENT, name);
        let Change::Fields(changes) = change else {
            if *change == Change::Replace {
                return self.content.document(request, number, out);
            }
            let at = bson::open(out);
            bson::put_head(out, kind::DOCUMENT, "$set");
            self.content.document(request, number, out);
            return bson::close(out, at);
        };
        let at = bson::open(out);
        for (index, (modify, ..)) in changes.iter().enumerate() {
            // Each operator once, where it first appears.
            if changes[..index].iter().any(|(earlier, ..)| earlier == modify) {
                continue;
            }
            bson::put_head(out, kind::DOCUMENT, modify.mongodb_operator());
            let inner = bson::open(out);
            for (_, field, operand) in changes[index..].iter().filter(|(other, ..)| other == modify) {
                self.content.operand(request, number, *operand, field, out);
            }
            bson::close(out, inner);
        }
        bson::close(out, at);
    }

    fn sum(&self, filter: &DocumentFilter, field: &str, result: &str, request: &Request, out: &mut Vec<u8>) {
        self.pipeline(false, out, |out| {
            stage(0, out, |out| self.filter("$match", filter, request, 0, out));
            stage(1, out, |out| {
                projection(
                    "$project",
                    &Projection(vec![(field.to_owned(), true), ("_id".to_owned(), false)]),
                    out,
                );
            });
            stage(2, out, |out| {
                bson::put_head(out, kind::DOCUMENT, "$group");
                let group = bson::open(out);
                bson::put_null(out, "_id");
                bson::put_head(out, kind::DOCUMENT, result);
                let sum = bson::open(out);
                bson::put_string(out, "$sum", &format!("${field}"));
                bson::close(out, sum);
                bson::close(out, group);
            });
        });
    }

    fn aggregate(&self, pipeline: &[AggregationStage], writes: bool, request: &Request, out: &mut Vec<u8>) {
        self.pipeline(writes, out, |out| {
            for (index, one) in pipeline.iter().enumerate() {
                if let AggregationStage::Raw(document) = one {
                    bson::put_item_head(out, kind::DOCUMENT, index as u32);
                    out.extend_from_slice(document);
                    continue;
                }
                stage(index as u32, out, |out| match one {
                    AggregationStage::Match(filter) => self.filter("$match", filter, request, 0, out),
                    AggregationStage::Sort(by) => sort_as("$sort", by, out),
                    AggregationStage::Limit(limit) => bson::put_int64(out, "$limit", i64::from(*limit)),
                    AggregationStage::Raw(_) => {}
                });
            }
        });
    }

    fn pipeline(&self, writes: bool, out: &mut Vec<u8>, stages: impl Fn(&mut Vec<u8>)) {
        let body = self.begin("aggregate", out);
        bson::put_head(out, kind::ARRAY, "pipeline");
        let list = bson::open(out);
        stages(out);
        bson::close(out, list);
        bson::put_head(out, kind::DOCUMENT, "cursor");
        let cursor = bson::open(out);
        bson::close(out, cursor);
        self.end(writes, body, out);
    }
}

fn stage(index: u32, out: &mut Vec<u8>, fields: impl Fn(&mut Vec<u8>)) {
    bson::put_item_head(out, kind::DOCUMENT, index);
    let at = bson::open(out);
    fields(out);
    bson::close(out, at);
}

fn projection(name: &str, fields: &Projection, out: &mut Vec<u8>) {
    if fields.0.is_empty() {
        return;
    }
    bson::put_head(out, kind::DOCUMENT, name);
    let at = bson::open(out);
    for (field, shown) in &fields.0 {
        bson::put_int32(out, field, i32::from(*shown));
    }
    bson::close(out, at);
}

pub(super) fn sort(by: &[(String, SortOrder)], out: &mut Vec<u8>) {
    if !by.is_empty() {
        sort_as("sort", by, out);
    }
}

fn sort_as(name: &str, by: &[(String, SortOrder)], out: &mut Vec<u8>) {
    bson::put_head(out, kind::DOCUMENT, name);
    let at = bson::open(out);
    for (field, order) in by {
        bson::put_int32(out, field, if *order == SortOrder::Ascending { 1 } else { -1 });
    }
    bson::close(out, at);
}
