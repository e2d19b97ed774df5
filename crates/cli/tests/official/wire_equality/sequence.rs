//! A fixed sequence of requests that uses every verb and every form of every shape.

use dyno_db::target::OpenTarget;
use dyno_engine::{Control, End, Job};
use dyno_types::bson::{self, kind};
use dyno_types::document::{
    Action, AggregationStage, Change, Compare, DocumentFilter, FieldCondition, FieldTest, Modify, Operand,
    OperationShape, Projection, SortOrder,
};
use dyno_types::{Content, Fields, Outcome, Request, Verb};
use dyno_workload::{Draw, Frontier, Workload};
use std::sync::{Arc, Mutex};

/// Operands: `_id`, the end of a range of them, and values of several types.
const ID: Operand = 0;
const END: Operand = 1;
const TEXT: Operand = 2;
const NUMBER: Operand = 3;
const BYTES: Operand = 4;
const REAL: Operand = 5;
const DATE: Operand = 6;

struct Documents(Vec<OperationShape>);

impl Content for Documents {
    fn table(&self) -> &str {
        "records"
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("user{:04}", request.key).as_bytes());
    }

    fn fields(&self, request: &Request) -> usize {
        match (request.fields, request.verb) {
            (Fields::One(_), _) => 1,
            (Fields::All, Verb::Read | Verb::Scan) => 0,
            _ => 3,
        }
    }

    fn name(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        let number = if let Fields::One(number) = request.fields { usize::from(number) } else { field };
        out.extend_from_slice(format!("field{number}").as_bytes());
    }

    fn value_len(&self, _request: &Request, field: usize) -> usize {
        10 + field
    }

    fn value(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        out.resize(out.len() + 10 + field, b'a' + (request.seed % 26) as u8);
    }

    fn shapes(&self) -> &[OperationShape] {
        &self.0
    }

    fn collection(&self, _request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(b"documents");
    }

    fn documents(&self, request: &Request) -> u32 {
        request.collection.max(1)
    }

    fn document(&self, request: &Request, number: u32, out: &mut Vec<u8>) {
        let at = bson::open(out);
        let sets = matches!(
            &self.0[usize::from(request.shape)].action,
            Action::Update { change: Change::SetDocument, .. }
        );
        if !sets {
            bson::put_int32(out, "_id", request.key as i32 + number as i32);
        }
        bson::put_int32(out, "k", (number % 7) as i32);
        bson::put_int64(out, "n", 1 << 40);
        bson::put_string(out, "c", "text with ünicode");
        bson::put_double(out, "r", 1.5);
        bson::put_date(out, "d", 1_700_000_000_000);
        bson::put_binary(out, "b", &[1, 2, 3]);
        bson::put_head(out, kind::ARRAY, "a");
        let array = bson::open(out);
        bson::put_item_head(out, kind::INT32, 0);
        out.extend_from_slice(&7i32.to_le_bytes());
        bson::close(out, array);
        bson::close(out, at);
    }

    fn operand(&self, request: &Request, number: u32, operand: Operand, name: &str, out: &mut Vec<u8>) {
        match operand {
            ID => bson::put_int32(out, name, request.key as i32 + number as i32),
            END => bson::put_int64(out, name, request.key as i64 + 100_000),
            TEXT => bson::put_string(out, name, "changed"),
            NUMBER => bson::put_int32(out, name, 3),
            BYTES => bson::put_binary(out, name, &[9; 20]),
            REAL => bson::put_double(out, name, 0.25),
            DATE => bson::put_date(out, name, 1_600_000_000_000),
            _ => unreachable!("no such operand"),
        }
    }
}

fn by_id() -> DocumentFilter {
    DocumentFilter::field_equals("_id", ID)
}

fn range() -> DocumentFilter {
    DocumentFilter::field_between("_id", ID, END)
}

fn ascending(field: &str) -> Vec<(String, SortOrder)> {
    vec![(field.to_owned(), SortOrder::Ascending)]
}

fn find(
    filter: DocumentFilter,
    fields: &[(&str, bool)],
    sort: Vec<(String, SortOrder)>,
    limit: Option<u32>,
    one: bool,
) -> Action {
    let fields = Projection(fields.iter().map(|(name, shown)| ((*name).to_owned(), *shown)).collect());
    Action::Find { filter, fields, sort, limit, single_batch: one }
}

fn update(filter: DocumentFilter, change: Change, many: bool, upsert: bool, ordered: bool) -> Action {
    Action::Update { filter, change, many, upsert, ordered }
}

fn modify(change: Change, sort: Vec<(String, SortOrder)>, upsert: bool, returns_new: bool) -> Action {
    let fields = Projection::default();
    Action::FindAndModify { filter: range(), change, fields, sort, upsert, returns_new }
}

fn set(fields: &[(Modify, &str, Operand)]) -> Change {
    Change::Fields(
        fields.iter().map(|(modify, name, operand)| (*modify, (*name).to_owned(), *operand)).collect(),
    )
}

/// Shape, first key, documents or statements of its request.
fn steps() -> Vec<(Action, u64, u32)> {
    let changes = || {
        set(&[
            (Modify::Set, "c", TEXT),
            (Modify::Increment, "k", NUMBER),
            (Modify::Set, "b", BYTES),
            (Modify::Unset, "r", NUMBER),
            (Modify::Push, "a", NUMBER),
        ])
    };
    let few = || {
        let any = FieldCondition { field: "_id".into(), test: FieldTest::In(vec![ID, NUMBER]) };
        let open = vec![(Compare::Above, ID), (Compare::Below, END)];
        DocumentFilter(vec![any, FieldCondition { field: "n".into(), test: FieldTest::Range(open) }])
    };
    let mut raw = Vec::new();
    let at = bson::open(&mut raw);
    bson::put_head(&mut raw, kind::DOCUMENT, "$group");
    let group = bson::open(&mut raw);
    bson::put_string(&mut raw, "_id", "$k");
    bson::close(&mut raw, group);
    bson::close(&mut raw, at);
    let stages = vec![
        AggregationStage::Match(range()),
        AggregationStage::Sort(vec![
            ("k".into(), SortOrder::Descending),
            ("_id".into(), SortOrder::Ascending),
        ]),
        AggregationStage::Limit(40),
        AggregationStage::Raw(raw),
    ];
    vec![
        (Action::Insert { ordered: true }, 0, 1),
        (Action::Insert { ordered: false }, 1, 249),
        // All of them are there already.
        (Action::Insert { ordered: false }, 1, 3),
        (find(by_id(), &[("c", true), ("_id", false)], vec![], Some(1), true), 5, 1),
        (find(range(), &[], ascending("_id"), Some(0), false), 0, 1),
        (find(range(), &[("k", true)], vec![], Some(130), false), 0, 1),
        (find(few(), &[], vec![("_id".into(), SortOrder::Descending)], None, false), 1, 1),
        (Action::Sum { filter: range(), field: "k".into(), result: "sum".into() }, 0, 1),
        (Action::Distinct { filter: range(), field: "k".into() }, 0, 1),
        (Action::Aggregate { pipeline: stages }, 0, 1),
        (Action::Aggregate { pipeline: vec![AggregationStage::Match(range())] }, 0, 1),
        (update(by_id(), changes(), false, false, true), 7, 1),
        (update(by_id(), set(&[(Modify::Set, "d", DATE)]), false, true, true), 900, 1),
        (update(range(), set(&[(Modify::Increment, "k", NUMBER)]), true, true, true), 240, 1),
        (update(by_id(), Change::SetDocument, false, false, true), 8, 1),
        (update(by_id(), Change::Replace, false, true, true), 9, 1),
        (update(by_id(), set(&[(Modify::Set, "r", REAL)]), false, false, true), 10, 3),
        (update(by_id(), set(&[(Modify::Set, "r", REAL)]), false, true, false), 950, 2),
        (modify(set(&[(Modify::Increment, "k", NUMBER)]), vec![], false, false), 20, 1),
        (modify(set(&[(Modify::Set, "c", TEXT)]), ascending("_id"), true, true), 21, 1),
        (Action::Delete { filter: by_id(), many: false, ordered: true }, 30, 1),
        (Action::Delete { filter: range(), many: true, ordered: true }, 245, 1),
        (Action::Delete { filter: by_id(), many: false, ordered: false }, 40, 3),
        (Action::Delete { filter: by_id(), many: false, ordered: true }, 7_777, 1),
    ]
}

/// What YCSB asks for.
fn records() -> Vec<Request> {
    let of = |verb, fields, key, limit| Request { verb, fields, key, limit, seed: key, ..Request::default() };
    let mut all: Vec<Request> = (0..140).map(|key| of(Verb::Insert, Fields::All, key, 0)).collect();
    all.extend([
        of(Verb::Insert, Fields::All, 3, 0),
        of(Verb::Read, Fields::All, 3, 0),
        of(Verb::Read, Fields::One(2), 4, 0),
        of(Verb::Read, Fields::Named, 5, 0),
        of(Verb::Read, Fields::All, 9_999, 0),
        of(Verb::Scan, Fields::All, 10, 120),
        of(Verb::Scan, Fields::One(1), 20, 5),
        of(Verb::Update, Fields::One(1), 3, 0),
        of(Verb::Update, Fields::All, 4, 0),
        of(Verb::Update, Fields::All, 9_999, 0),
        of(Verb::Delete, Fields::All, 5, 0),
        of(Verb::Delete, Fields::All, 5, 0),
    ]);
    all
}

/// How a request ended: outcome and records.
pub type Ended = (Request, Outcome, u32);

struct Sequence {
    metrics: Vec<String>,
    content: Arc<Documents>,
    requests: Vec<Request>,
    ended: Mutex<Vec<Ended>>,
}

impl Sequence {
    fn new() -> Self {
        let steps = steps();
        let mut requests = records();
        for (shape, (_, key, documents)) in steps.iter().enumerate() {
            requests.push(Request {
                verb: Verb::Document,
                shape: shape as u16,
                key: *key,
                limit: 4,
                collection: *documents,
                ..Request::default()
            });
        }
        let shapes =
            steps.into_iter().map(|(action, ..)| OperationShape { name: "step".into(), action }).collect();
        let (metrics, ended) = (vec!["STEP".to_owned()], Mutex::default());
        Sequence { metrics, content: Arc::new(Documents(shapes)), requests, ended }
    }
}

impl Workload for Sequence {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        self.content.clone()
    }

    fn draw(&self, index: u64) -> Draw {
        Draw { index, kind: 0, seed: 0 }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        self.requests[draw.index as usize]
    }

    fn answered(&self, request: &Request, outcome: Outcome, records: u32) {
        self.ended.lock().unwrap().push((*request, outcome, records));
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// What every request of the sequence renders.
pub fn content() -> Arc<dyn Content> {
    Sequence::new().content()
}

/// Sends the sequence, one request after the other.
pub fn run(opened: &dyn OpenTarget) -> Vec<Ended> {
    let sequence = Arc::new(Sequence::new());
    let job = Job {
        timeout_ns: Some(20_000_000_000),
        drain_ns: 20_000_000_000,
        ..Job::closed_loop(
            sequence.clone(),
            1,
            End { operations: Some(sequence.requests.len() as u64), duration_ns: None },
        )
    };
    opened.run(job, Arc::new(Control::default()), &mut |_| {}).unwrap();
    std::mem::take(&mut sequence.ended.lock().unwrap())
}
