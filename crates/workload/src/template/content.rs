//! Requests into documents and operands.

use super::config::{Kind, Template};
use super::value::{Keys, Place, Source, fields_of};
use crate::permute::Permutation;
use dyno_types::bson;
use dyno_types::document::{Action, Operand, Shape};
use dyno_types::rng::{self, Purpose, Stream};
use dyno_types::{Content, Request};

/// Renders documents and parameters. Shapes: the insert of the load (number 0), then the operations in order.
#[derive(Debug)]
pub struct TemplateContent {
    template: Template,
    shapes: Vec<Shape>,
    /// Scatters popular documents over each collection.
    scatter: Vec<Permutation>,
}

impl TemplateContent {
    /// Of a checked template.
    pub fn new(template: &Template) -> Self {
        let insert = |name: &str| Shape { name: name.into(), action: Action::Insert { ordered: false } };
        let operation = |operation: &super::Operation| match &operation.kind {
            Kind::Insert(_) => insert(&operation.name),
            Kind::Action(action) => Shape { name: operation.name.clone(), action: (**action).clone() },
        };
        let key = |number: usize| rng::draw(template.seed, number as u64, Purpose::Key);
        TemplateContent {
            shapes: std::iter::once(insert("LOAD"))
                .chain(template.operations.iter().map(operation))
                .collect(),
            scatter: template
                .collections
                .iter()
                .enumerate()
                .map(|(number, c)| Permutation::new(c.count.max(1), key(number)))
                .collect(),
            template: template.clone(),
        }
    }

    /// The template.
    pub fn template(&self) -> &Template {
        &self.template
    }

    fn salt(&self, collection: usize) -> u64 {
        rng::draw(self.template.seed, collection as u64, Purpose::Value)
    }

    /// Appends document number `number` of a collection, whole.
    pub fn document_of(&self, collection: usize, number: u64, out: &mut Vec<u8>) {
        let at = bson::open(out);
        self.id(collection, number, "_id", out);
        let salt = self.salt(collection);
        let place = Place { number, salt, source: self };
        let mut words = Stream::new(salt, number, Purpose::Value);
        fields_of(&self.template.collections[collection].fields, place, &mut words, out);
        bson::close(out, at);
    }
}

impl Source for TemplateContent {
    fn choose(&self, keys: &Keys, words: &mut Stream) -> u64 {
        let count = self.template.collections[keys.collection].count.max(1);
        self.scatter[keys.collection].apply(keys.spread.draw(count, words))
    }

    fn id(&self, collection: usize, number: u64, name: &str, out: &mut Vec<u8>) {
        let salt = rng::mix(self.salt(collection));
        let place = Place { number, salt, source: self };
        let mut words = Stream::new(salt, number, Purpose::Key);
        self.template.collections[collection].id.render(name, place, &mut words, out);
    }

    fn field(&self, collection: usize, number: u64, path: &str, name: &str, out: &mut Vec<u8>) {
        let mut document = Vec::new();
        self.document_of(collection, number, &mut document);
        match bson::path(&document, path) {
            Some(element) => {
                bson::head(out, element.kind, name);
                out.extend_from_slice(element.value);
            }
            None => bson::null(out, name),
        }
    }
}

impl Content for TemplateContent {
    fn table(&self) -> &str {
        &self.template.collections[0].name
    }

    fn key(&self, _request: &Request, _out: &mut Vec<u8>) {}

    fn fields(&self, _request: &Request) -> usize {
        0
    }

    fn name(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn value_len(&self, _request: &Request, _field: usize) -> usize {
        0
    }

    fn value(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    fn indexes(&self) -> Vec<(String, String)> {
        let single = |(name, fields): &super::Index| match &fields[..] {
            [(field, _)] => Some((name.clone(), field.clone())),
            _ => None,
        };
        self.template.collections.iter().flat_map(|c| c.indexes.iter().filter_map(single)).collect()
    }

    fn collection(&self, request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(self.template.collections[request.collection as usize].name.as_bytes());
    }

    fn documents(&self, request: &Request) -> u32 {
        request.limit.max(1)
    }

    fn document(&self, request: &Request, number: u32, out: &mut Vec<u8>) {
        self.document_of(request.collection as usize, request.key + u64::from(number), out);
    }

    fn operand(&self, request: &Request, _number: u32, operand: Operand, name: &str, out: &mut Vec<u8>) {
        let operation = &self.template.operations[usize::from(request.shape) - 1];
        let salt = rng::mix(request.seed);
        let place = Place { number: request.key, salt, source: self };
        let mut words = Stream::new(request.seed, u64::from(operand), Purpose::Choice);
        operation.values[usize::from(operand)].render(name, place, &mut words, out);
    }
}
