//! A small workload for the tests: keys `user000007`, fields `field0 ..`, values told by key, field and seed.

use dyno_types::{Content, Fields, Request, Verb};
use std::sync::Arc;

/// See the module. Values written with seed 0 are those that verify.
#[derive(Clone, Debug)]
pub struct Sample {
    pub table: String,
    pub names: Vec<Vec<u8>>,
    /// Fields that a write names, from the first on.
    pub writes: usize,
    pub value_len: usize,
    pub verifies: bool,
}

impl Sample {
    pub fn new() -> Self {
        let names: Vec<Vec<u8>> = (0..10).map(|i| format!("field{i}").into_bytes()).collect();
        Sample { table: "usertable".to_owned(), writes: names.len(), names, value_len: 100, verifies: true }
    }

    pub fn named(names: &[&str]) -> Self {
        let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        Sample { writes: names.len(), names, ..Sample::new() }
    }

    pub fn arc(self) -> Arc<dyn Content> {
        Arc::new(self)
    }

    fn number(&self, request: &Request, field: usize) -> usize {
        match request.fields {
            Fields::One(number) => usize::from(number),
            Fields::All | Fields::Named => field,
        }
    }

    fn render(&self, key: u64, seed: u64, name: &[u8], out: &mut Vec<u8>) {
        let number = self.names.iter().position(|known| known == name).unwrap_or(usize::MAX);
        let head = format!("{key}/{number}/{seed}/");
        out.extend_from_slice(head.as_bytes());
        // The length depends on the seed, so that updates change it.
        out.resize(out.len() + self.value_len.saturating_sub(head.len()) + seed as usize, b'x');
    }
}

impl Content for Sample {
    fn table(&self) -> &str {
        &self.table
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("user{:06}", request.key).as_bytes());
    }

    fn fields(&self, request: &Request) -> usize {
        match (request.verb, request.fields) {
            (_, Fields::One(_)) => 1,
            (Verb::Read | Verb::Scan, Fields::All) => 0,
            (Verb::Read | Verb::Scan, Fields::Named) => self.names.len(),
            _ => self.writes,
        }
    }

    fn name(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        let missing = b"no such field".to_vec();
        out.extend_from_slice(self.names.get(self.number(request, field)).unwrap_or(&missing));
    }

    fn value_len(&self, request: &Request, field: usize) -> usize {
        let mut value = Vec::new();
        self.value(request, field, &mut value);
        value.len()
    }

    fn value(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        self.render(request.key, request.seed, &self.names[self.number(request, field)], out);
    }

    fn verifies(&self) -> bool {
        self.verifies
    }

    fn verify(&self, request: &Request, field: &[u8], value: &[u8]) -> bool {
        let mut expected = Vec::new();
        self.render(request.key, 0, field, &mut expected);
        expected == value
    }
}

/// A request on `key` for all fields, with values that verify.
pub fn request(verb: Verb, key: u64) -> Request {
    Request { verb, key, limit: 10, ..Request::default() }
}
