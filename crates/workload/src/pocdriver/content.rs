//! Shapes of the commands, and the bytes of requests.
//!
//! Meaning of a request: `seed` is the number of the user, `collection` the collection. Inserts: `key` is the first
//! sequence number and `limit` the number of documents. Queued updates: `key` is the place of the first among the
//! worker's, `limit` their number. Queries and single updates: `key` is the sequence number, `limit` a random value.

use super::config::{PocConfig, Step};
use super::template::Template;
use super::worker_state::Workers;
use dyno_types::document::{
    Action, Change, Compare, DocumentFilter, FieldCondition, FieldTest, Modify, Operand, OperationShape,
    Projection,
};
use dyno_types::rng::mix_bits;
use dyno_types::{Content, Request, bson};
use std::sync::Arc;

/// Numbers of the shapes.
pub(super) mod shape {
    pub const INSERT: u16 = 0;
    pub const KEY_QUERY: u16 = 1;
    pub const RANGE_QUERY: u16 = 2;
    /// The three below also as single find-and-modify commands, [`MODIFY`] further on.
    pub const UPDATE: u16 = 3;
    pub const ARRAY_UPDATE: u16 = 4;
    pub const INCREMENT: u16 = 5;
    pub const MODIFY: u16 = 3;
}

const ID: Operand = 0;
const END: Operand = 1;
const ONE: Operand = 2;
/// From here on: a new value of leaf 0, 1, ...
const LEAF: Operand = 16;

/// Content of the workload.
#[derive(Debug)]
pub struct PocContent {
    template: Template,
    shapes: Vec<OperationShape>,
    first_worker: u32,
    seed: u64,
    collection: String,
    collections: u32,
    single_field: bool,
    indexes: u32,
    used: Vec<u16>,
    pub(super) workers: Arc<Workers>,
}

impl PocContent {
    pub(super) fn new(config: &PocConfig, workers: Arc<Workers>) -> Self {
        let template = Template::new(config);
        PocContent {
            shapes: shapes(config, template.leaf_names()),
            template,
            first_worker: config.first_worker,
            seed: config.seed,
            collection: config.collection.clone(),
            collections: config.collections,
            single_field: config.update_fields == 1,
            indexes: config.indexes,
            used: used(config),
            workers,
        }
    }

    /// The document.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Names of the collections.
    pub fn collections(&self) -> Vec<String> {
        match self.collections {
            1 => vec![self.collection.clone()],
            n => (0..n).map(|number| format!("{}{number}", self.collection)).collect(),
        }
    }

    /// Sequence number and random value of a statement.
    fn target(&self, request: &Request, number: u32) -> (u64, u32) {
        let queued = (shape::UPDATE..shape::UPDATE + shape::MODIFY).contains(&request.shape);
        if queued {
            self.workers.update(request.seed, request.key + u64::from(number))
        } else {
            (request.key, request.limit)
        }
    }

    fn worker(&self, request: &Request) -> u32 {
        self.first_worker + request.seed as u32
    }
}

/// The shapes that weights or the workflow ask for.
fn used(config: &PocConfig) -> Vec<u16> {
    let weights = &config.weights;
    let has = |step: Step| config.workflow.contains(&step);
    let (insert, query, update) = (has(Step::Insert), has(Step::KeyQuery), has(Step::Update));
    let weighted = [
        (shape::INSERT, weights.inserts > 0, insert),
        (shape::KEY_QUERY, weights.key_queries > 0, query),
        (shape::RANGE_QUERY, weights.range_queries > 0, false),
        (shape::UPDATE, weights.updates > 0, update),
        (shape::ARRAY_UPDATE, weights.array_updates > 0, false),
        (shape::INCREMENT, false, has(Step::Increment)),
    ];
    let asked = weighted.into_iter().filter(|(_, weight, step)| match config.workflow.is_empty() {
        true => *weight,
        false => *step,
    });
    let modify = |shape: u16| config.find_and_modify && shape >= shape::UPDATE;
    asked.map(|(shape, ..)| if modify(shape) { shape + shape::MODIFY } else { shape }).collect()
}

fn shapes(config: &PocConfig, leaves: &[String]) -> Vec<OperationShape> {
    let by_id = || DocumentFilter::field_equals("_id", ID);
    let shown = leaves.iter().take(config.project_fields as usize).map(|leaf| (leaf.clone(), true)).collect();
    let fields = Projection(shown);
    let range = FieldTest::Range(vec![(Compare::Above, ID), (Compare::Below, END)]);
    let set = (0..config.update_fields)
        .map(|leaf| (Modify::Set, leaves[leaf as usize].clone(), LEAF + leaf as u16))
        .collect();
    let changes = [
        ("update", Change::Fields(set)),
        ("array update", Change::Fields(vec![(Modify::Increment, "arr.0.0".into(), ONE)])),
        ("increment", Change::Fields(vec![(Modify::Increment, leaves[0].clone(), ONE)])),
    ];
    let find = |filter, limit, single_batch| Action::Find {
        filter,
        fields: fields.clone(),
        sort: Vec::new(),
        limit: Some(limit),
        single_batch,
    };
    let mut shapes = vec![
        OperationShape { name: "insert".into(), action: Action::Insert { ordered: config.ordered } },
        OperationShape { name: "key query".into(), action: find(by_id(), 1, true) },
        OperationShape {
            name: "range query".into(),
            action: find(
                DocumentFilter(vec![FieldCondition { field: "_id".into(), test: range }]),
                config.range_documents,
                false,
            ),
        },
    ];
    shapes.extend(changes.iter().map(|(name, change)| OperationShape {
        name: (*name).into(),
        action: Action::Update {
            filter: by_id(),
            change: change.clone(),
            many: true,
            upsert: false,
            ordered: config.ordered,
        },
    }));
    shapes.extend(changes.into_iter().map(|(name, change)| OperationShape {
        name: format!("{name} (find and modify)"),
        action: Action::FindAndModify {
            filter: by_id(),
            change,
            fields: Projection::default(),
            sort: Vec::new(),
            upsert: false,
            returns_new: false,
        },
    }));
    shapes
}

impl Content for PocContent {
    fn table(&self) -> &str {
        &self.collection
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{}:{}", self.worker(request), request.key).as_bytes());
    }

    fn fields(&self, _request: &Request) -> usize {
        0
    }

    fn name(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn value_len(&self, _request: &Request, _field: usize) -> usize {
        0
    }

    fn value(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn uses(&self, shape: u16) -> bool {
        self.used.contains(&shape)
    }

    fn indexes(&self) -> Vec<(String, String)> {
        let leaves = self.template.leaf_names().iter().take(self.indexes as usize);
        leaves.map(|leaf| (format!("{leaf}_1"), leaf.clone())).collect()
    }

    fn shapes(&self) -> &[OperationShape] {
        &self.shapes
    }

    fn collection(&self, request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(self.collection.as_bytes());
        if self.collections > 1 {
            bson::put_decimal(out, request.collection);
        }
    }

    fn documents(&self, request: &Request) -> u32 {
        let bulk = request.shape == shape::INSERT
            || (shape::UPDATE..shape::UPDATE + shape::MODIFY).contains(&request.shape);
        if bulk { request.limit } else { 1 }
    }

    fn document(&self, request: &Request, number: u32, out: &mut Vec<u8>) {
        self.template.render_document(self.seed, self.worker(request), request.key + u64::from(number), out);
    }

    fn operand(&self, request: &Request, number: u32, operand: Operand, name: &str, out: &mut Vec<u8>) {
        match operand {
            ONE => bson::put_int32(out, name, 1),
            // No sequence number is as large: the range ends with the worker's last document.
            END => Template::put_id(self.worker(request), i32::MAX as u64, name, out),
            ID => Template::put_id(self.worker(request), self.target(request, number).0, name, out),
            _ if self.single_field => bson::put_int64(out, name, i64::from(self.target(request, number).1)),
            leaf => {
                let leaf = leaf - LEAF;
                let (key, value) = self.target(request, number);
                let bits = mix_bits(mix_bits(u64::from(value) << 16 ^ u64::from(leaf)) ^ key);
                self.template.put_leaf(u32::from(leaf), bits, name, out);
            }
        }
    }
}
