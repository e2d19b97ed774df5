//! YCSB's records as commands: `_id` is the key, fields are bytes.

use super::command::{CommandWriter, sort};
use super::exchange::MongoExchange;
use dyno_types::bson::{self, kind};
use dyno_types::document::SortOrder;
use dyno_types::{Request, Verb};

impl CommandWriter<'_> {
    /// Appends the key as the element `name`.
    fn key(&self, request: &Request, name: &str, out: &mut Vec<u8>) {
        bson::put_head(out, kind::STRING, name);
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        self.content.key(request, out);
        out.push(0);
        let bytes = (out.len() - at - 4) as i32;
        out[at..at + 4].copy_from_slice(&bytes.to_le_bytes());
    }

    pub(super) fn by_key(&self, request: &Request, name: &str, out: &mut Vec<u8>) {
        bson::put_head(out, kind::DOCUMENT, name);
        let filter = bson::open(out);
        self.key(request, "_id", out);
        bson::close(out, filter);
    }

    /// Appends the fields written, each as bytes of the generic subtype.
    fn fields(&self, request: &Request, out: &mut Vec<u8>) {
        for field in 0..self.content.fields(request) {
            out.push(kind::BINARY);
            self.content.name(request, field, out);
            out.push(0);
            let length = self.content.value_len(request, field);
            out.extend_from_slice(&(length as i32).to_le_bytes());
            out.push(0);
            let at = out.len();
            self.content.value(request, field, out);
            debug_assert_eq!(out.len() - at, length, "what follows would be read as part of the value");
        }
    }

    /// Appends the projection of a read that names fields.
    fn projected(&self, request: &Request, out: &mut Vec<u8>) {
        let fields = self.content.fields(request);
        if fields == 0 {
            return;
        }
        bson::put_head(out, kind::DOCUMENT, "projection");
        let inner = bson::open(out);
        for field in 0..fields {
            out.push(kind::INT32);
            self.content.name(request, field, out);
            out.extend_from_slice(&[0, 1, 0, 0, 0]);
        }
        bson::close(out, inner);
    }

    pub(super) fn read(&self, x: &MongoExchange, out: &mut Vec<u8>) {
        let request = &x.request;
        let body = self.begin("find", out);
        bson::put_boolean(out, "singleBatch", true);
        bson::put_int64(out, "limit", 1);
        self.projected(request, out);
        self.by_key(request, "filter", out);
        self.end(false, body, out);
    }

    pub(super) fn scan(&self, x: &MongoExchange, out: &mut Vec<u8>) {
        let request = &x.request;
        let body = self.begin("find", out);
        bson::put_int64(out, "limit", i64::from(request.limit));
        self.projected(request, out);
        sort(&[("_id".to_owned(), SortOrder::Ascending)], out);
        bson::put_head(out, kind::DOCUMENT, "filter");
        let filter = bson::open(out);
        bson::put_head(out, kind::DOCUMENT, "_id");
        let range = bson::open(out);
        self.key(request, "$gte", out);
        bson::close(out, range);
        bson::close(out, filter);
        self.end(false, body, out);
    }

    /// Appends a record as a document.
    pub(super) fn record(&self, request: &Request, out: &mut Vec<u8>) {
        if request.verb == Verb::Document {
            return self.content.document(request, 0, out);
        }
        let document = bson::open(out);
        self.key(request, "_id", out);
        self.fields(request, out);
        bson::close(out, document);
    }

    /// Statement that replaces a record, or inserts it.
    pub(super) fn upsert(&self, request: &Request, out: &mut Vec<u8>) {
        self.by_key(request, "q", out);
        bson::put_head(out, kind::DOCUMENT, "u");
        self.record(request, out);
        bson::put_boolean(out, "upsert", true);
    }

    /// Query and change of a statement.
    pub(super) fn set_fields(&self, request: &Request, out: &mut Vec<u8>) {
        self.by_key(request, "q", out);
        bson::put_head(out, kind::DOCUMENT, "u");
        let change = bson::open(out);
        bson::put_head(out, kind::DOCUMENT, "$set");
        let set = bson::open(out);
        self.fields(request, out);
        bson::close(out, set);
        bson::close(out, change);
    }
}
