//! Words that were typed, as the content of one request, and what the database answered.

use dyno_types::sync::held;
use dyno_types::{Content, Fields, Outcome, Request, Verb};
use dyno_workload::{Draw, Frontier, Workload};
use std::sync::{Arc, Mutex};

/// Seed of requests that were typed. Others ask for the layout of a record, as stores do when they are
/// opened.
const TYPED: u64 = 1;

/// A field of a record that was read: number of the record, name, value.
pub(super) type ReadField = (u32, Vec<u8>, Vec<u8>);

/// One command's key and fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Typed {
    /// Key of the record, or the first one of a scan.
    pub key: Vec<u8>,
    /// Fields with their values, which reads leave empty.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The content of the shell.
#[derive(Debug)]
pub(super) struct ShellContent {
    table: String,
    /// Names of a record's fields, for stores that have columns.
    layout: Vec<Vec<u8>>,
    typed: Mutex<Typed>,
    seen: Mutex<Vec<ReadField>>,
}

impl ShellContent {
    /// Of a table whose records have the fields of `layout`.
    pub fn new(table: &str, layout: &[Vec<u8>]) -> Self {
        ShellContent {
            table: table.to_owned(),
            layout: layout.to_vec(),
            typed: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    /// Takes over what was typed and forgets what was seen.
    pub fn type_in(&self, typed: Typed) {
        *held(&self.typed) = typed;
        held(&self.seen).clear();
    }

    /// Takes what the last request has read.
    pub fn seen(&self) -> Vec<ReadField> {
        std::mem::take(&mut held(&self.seen))
    }

    fn see(&self, record: u32, field: &[u8], value: &[u8]) {
        held(&self.seen).push((record, field.to_vec(), value.to_vec()));
    }
}

impl Content for ShellContent {
    fn table(&self) -> &str {
        &self.table
    }

    fn key(&self, _request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(&held(&self.typed).key);
    }

    fn fields(&self, request: &Request) -> usize {
        if request.seed == TYPED { held(&self.typed).fields.len() } else { self.layout.len() }
    }

    fn name(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        if request.seed == TYPED {
            out.extend_from_slice(&held(&self.typed).fields[field].0);
        } else {
            out.extend_from_slice(&self.layout[field]);
        }
    }

    fn value_len(&self, request: &Request, field: usize) -> usize {
        if request.seed == TYPED { held(&self.typed).fields[field].1.len() } else { 0 }
    }

    fn value(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        if request.seed == TYPED {
            out.extend_from_slice(&held(&self.typed).fields[field].1);
        }
    }

    fn verifies(&self) -> bool {
        true
    }

    /// Reads show their values here; there is nothing to compare them with.
    fn verify(&self, _request: &Request, field: &[u8], value: &[u8]) -> bool {
        self.see(0, field, value);
        true
    }

    fn watches_scans(&self) -> bool {
        true
    }

    fn scanned(&self, record: u32, field: &[u8], value: &[u8]) {
        let named = {
            let typed = held(&self.typed);
            // Some stores read whole records even if fields are named.
            typed.fields.is_empty() || typed.fields.iter().any(|(name, _)| name == field)
        };
        if named {
            self.see(record, field, value);
        }
    }
}

/// A workload of one request.
pub(super) struct Once {
    metrics: [String; 1],
    content: Arc<ShellContent>,
    request: Request,
}

impl Once {
    /// The request that `verb` and what was typed make; a scan finds up to `limit` records.
    pub fn new(content: Arc<ShellContent>, verb: Verb, limit: u32) -> Self {
        let some = !held(&content.typed).fields.is_empty();
        let fields = if some { Fields::Named } else { Fields::All };
        let request = Request { verb, fields, limit, seed: TYPED, ..Request::default() };
        Once { metrics: ["REQUEST".to_owned()], content, request }
    }
}

impl Workload for Once {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        self.content.clone()
    }

    fn draw(&self, index: u64) -> Draw {
        Draw { index, kind: 0, seed: TYPED }
    }

    fn bind(&self, _draw: &Draw, _frontier: &Frontier) -> Request {
        self.request
    }

    fn next(&self, _done: &Request, _outcome: Outcome) -> Option<Request> {
        None
    }

    fn is_pure(&self) -> bool {
        true
    }
}
