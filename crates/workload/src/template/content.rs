//! Requests into documents and operands.

use super::config::{OperationKind, OperationStep, WorkloadTemplate};
use super::value::{AddressableDocuments, ReferenceSource, ValueContext, fields_of};
use crate::permute::Permutation;
use dyno_types::bson;
use dyno_types::document::{Action, Operand, OperationShape};
use dyno_types::rng::{self, Purpose, Stream};
use dyno_types::{Content, Request};

/// Renders documents and parameters. Shapes: the insert of the load (number 0), then the steps of all operations in
/// order, then what ends a transaction, if there is any.
#[derive(Debug)]
pub struct TemplateContent {
    template: WorkloadTemplate,
    shapes: Vec<OperationShape>,
    /// Operation and step of each shape from number 1 on.
    steps: Vec<(usize, usize)>,
    /// Scatters popular documents over each collection.
    scatter: Vec<Permutation>,
}

impl TemplateContent {
    /// Of a checked template.
    pub fn new(template: &WorkloadTemplate) -> Self {
        let insert =
            |name: &str| OperationShape { name: name.into(), action: Action::Insert { ordered: false } };
        let mut shapes = vec![insert("LOAD")];
        let mut steps = Vec::new();
        for (number, operation) in template.operations.iter().enumerate() {
            for (place, step) in operation.steps.iter().enumerate() {
                steps.push((number, place));
                shapes.push(match &step.kind {
                    OperationKind::Insert(_) => insert(&operation.name),
                    OperationKind::Action(action) => {
                        OperationShape { name: operation.name.clone(), action: (**action).clone() }
                    }
                });
            }
        }
        if template.operations.iter().any(|o| o.transaction) {
            shapes.push(OperationShape { name: "commit".into(), action: Action::Commit });
            shapes.push(OperationShape { name: "abort".into(), action: Action::Abort });
        }
        let key = |number: usize| rng::draw_at(template.seed, number as u64, Purpose::Key);
        TemplateContent {
            shapes,
            steps,
            scatter: template
                .collections
                .iter()
                .enumerate()
                .map(|(number, c)| Permutation::new(c.count.max(1), key(number)))
                .collect(),
            template: template.clone(),
        }
    }

    /// The shape of a step.
    pub(super) fn shape_of(&self, operation: usize, step: usize) -> u16 {
        self.steps.iter().position(|at| *at == (operation, step)).map_or(0, |at| at as u16 + 1)
    }

    /// The shape that ends a transaction.
    pub(super) fn end_of(&self, commit: bool) -> u16 {
        (self.steps.len() + if commit { 1 } else { 2 }) as u16
    }

    /// Operation and step of a request, unless it ends a transaction.
    pub(super) fn place_of(&self, request: &Request) -> Option<(usize, usize)> {
        self.steps.get(usize::from(request.shape).checked_sub(1)?).copied()
    }

    fn step(&self, request: &Request) -> Option<&OperationStep> {
        let (operation, step) = self.place_of(request)?;
        Some(&self.template.operations[operation].steps[step])
    }

    /// The template.
    pub fn workload_template(&self) -> &WorkloadTemplate {
        &self.template
    }

    fn salt(&self, collection: usize) -> u64 {
        rng::draw_at(self.template.seed, collection as u64, Purpose::Value)
    }

    /// Appends document number `number` of a collection, whole.
    pub fn document_of(&self, collection: usize, number: u64, out: &mut Vec<u8>) {
        let at = bson::open(out);
        self.id(collection, number, "_id", out);
        let salt = self.salt(collection);
        let place = ValueContext { number, salt, source: self };
        let mut stream = Stream::new(salt, number, Purpose::Value);
        fields_of(&self.template.collections[collection].fields, place, &mut stream, out);
        bson::close(out, at);
    }
}

impl ReferenceSource for TemplateContent {
    fn choose(&self, keys: &AddressableDocuments, stream: &mut Stream) -> u64 {
        let count = self.template.collections[keys.collection].count.max(1);
        self.scatter[keys.collection].apply(keys.spread.draw_number(count, stream))
    }

    fn id(&self, collection: usize, number: u64, name: &str, out: &mut Vec<u8>) {
        let salt = rng::mix_bits(self.salt(collection));
        let place = ValueContext { number, salt, source: self };
        let mut stream = Stream::new(salt, number, Purpose::Key);
        self.template.collections[collection].id.render_element(name, place, &mut stream, out);
    }

    fn field(&self, collection: usize, number: u64, path: &str, name: &str, out: &mut Vec<u8>) {
        let mut document = Vec::new();
        self.document_of(collection, number, &mut document);
        match bson::element_at_path(&document, path) {
            Some(element) => {
                bson::put_head(out, element.kind, name);
                out.extend_from_slice(element.value);
            }
            None => bson::put_null(out, name),
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

    fn shapes(&self) -> &[OperationShape] {
        &self.shapes
    }

    fn indexes(&self) -> Vec<(String, String)> {
        let single = |(name, fields): &super::TemplateIndex| match &fields[..] {
            [(field, _)] => Some((name.clone(), field.clone())),
            _ => None,
        };
        self.template.collections.iter().flat_map(|c| c.indexes.iter().filter_map(single)).collect()
    }

    fn collection(&self, request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(self.template.collections[request.collection as usize].name.as_bytes());
    }

    fn in_transaction(&self, request: &Request) -> bool {
        request.script != 0
    }

    fn documents(&self, request: &Request) -> u32 {
        request.limit.max(1)
    }

    fn document(&self, request: &Request, number: u32, out: &mut Vec<u8>) {
        self.document_of(request.collection as usize, request.key + u64::from(number), out);
    }

    fn operand(&self, request: &Request, _number: u32, operand: Operand, name: &str, out: &mut Vec<u8>) {
        // Only steps have operands.
        let Some(step) = self.step(request) else { return };
        let salt = rng::mix_bits(request.seed);
        let place = ValueContext { number: request.key, salt, source: self };
        let number = u64::from(request.step) << 32 | u64::from(operand);
        let mut stream = Stream::new(request.seed, number, Purpose::Choice);
        step.values[usize::from(operand)].render_element(name, place, &mut stream, out);
    }
}
