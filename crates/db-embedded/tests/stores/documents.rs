//! Operations on documents: random requests on stores and on a model must have equal answers, and what is refused.

use crate::model::{self, Document, Given, Model, Value, field};
use dyno_types::document::{
    Action, AggregationStage, Change, Compare, DocumentFilter, FieldCondition, FieldTest, Modify,
    OperationShape, Projection, SortOrder,
};
use dyno_types::rng::{Purpose, Stream};
use dyno_types::{Content, Outcome, Request, StoreSession, Verb};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Every store of documents, with the options that change how requests are executed.
pub fn stores() -> Vec<&'static str> {
    vec![
        "redb:{}/db?durability=none",
        "fjall:{}/db?durability=none",
        #[cfg(feature = "lmdb")]
        "lmdb:{}/db?sync=none&map=1GiB",
        #[cfg(feature = "rocksdb")]
        "rocksdb:{}/db?wal=nosync",
        #[cfg(feature = "wiredtiger")]
        "wiredtiger:{}/db?journal=nosync",
    ]
}

/// A workload whose next request is set by hand.
struct Hand {
    shapes: Vec<OperationShape>,
    indexes: Vec<(String, String)>,
    given: Mutex<Given>,
    seen: Mutex<Vec<Document>>,
}

impl Hand {
    fn new(actions: Vec<Action>) -> Arc<Self> {
        let shape = |(number, action)| OperationShape { name: format!("shape {number}"), action };
        Arc::new(Hand {
            shapes: actions.into_iter().enumerate().map(shape).collect(),
            indexes: vec![("k_1".into(), "k".into())],
            given: Mutex::default(),
            seen: Mutex::default(),
        })
    }
}

impl Content for Hand {
    fn table(&self) -> &str {
        "things"
    }
    fn key(&self, _: &Request, _: &mut Vec<u8>) {}
    fn fields(&self, _: &Request) -> usize {
        0
    }
    fn name(&self, _: &Request, _: usize, _: &mut Vec<u8>) {}
    fn value_len(&self, _: &Request, _: usize) -> usize {
        0
    }
    fn value(&self, _: &Request, _: usize, _: &mut Vec<u8>) {}
    fn shapes(&self) -> &[OperationShape] {
        &self.shapes
    }
    fn indexes(&self) -> Vec<(String, String)> {
        self.indexes.clone()
    }
    fn documents(&self, _: &Request) -> u32 {
        self.given.lock().unwrap().documents.len().max(1) as u32
    }
    fn document(&self, _: &Request, number: u32, out: &mut Vec<u8>) {
        model::write(&self.given.lock().unwrap().documents[number as usize], out);
    }
    fn operand(&self, _: &Request, _: u32, operand: u16, name: &str, out: &mut Vec<u8>) {
        self.given.lock().unwrap().operands[usize::from(operand)].write(name, out);
    }
    fn watches_scans(&self) -> bool {
        true
    }
    fn scanned(&self, _: u32, _: &[u8], value: &[u8]) {
        self.seen.lock().unwrap().push(model::read(value));
    }
}

fn request(shape: usize) -> Request {
    Request { verb: Verb::Document, shape: shape as u16, ..Request::default() }
}

/// Executes a request and hands back outcome, count and what it has shown.
fn ask(
    hand: &Hand,
    session: &mut dyn StoreSession,
    shape: usize,
    given: Given,
) -> (Outcome, u32, Vec<Document>) {
    *hand.given.lock().unwrap() = given;
    hand.seen.lock().unwrap().clear();
    let done = session.execute(&request(shape));
    (done.outcome, done.records, std::mem::take(&mut *hand.seen.lock().unwrap()))
}

fn test(field: &str, test: FieldTest) -> DocumentFilter {
    DocumentFilter(vec![FieldCondition { field: field.into(), test }])
}

fn both(a: DocumentFilter, b: DocumentFilter) -> DocumentFilter {
    DocumentFilter(a.0.into_iter().chain(b.0).collect())
}

fn find(filter: DocumentFilter, sort: &[(&str, SortOrder)], limit: u32, fields: &[(&str, bool)]) -> Action {
    let fields = Projection(fields.iter().map(|(name, shown)| ((*name).to_owned(), *shown)).collect());
    let sort = sort.iter().map(|(name, order)| ((*name).to_owned(), *order)).collect();
    Action::Find { filter, fields, sort, limit: Some(limit), single_batch: false }
}

fn update(filter: DocumentFilter, change: Change, upsert: bool) -> Action {
    Action::Update { filter, change, many: true, upsert, ordered: true }
}

fn fields(modify: Modify, field: &str) -> Change {
    Change::Fields(vec![(modify, field.into(), 2)])
}

fn filters() -> Vec<DocumentFilter> {
    let open = |field, compare| test(field, FieldTest::Range(vec![(compare, 0)]));
    let mut all = vec![
        DocumentFilter::default(),
        DocumentFilter::field_equals("n", 0),
        test("list", FieldTest::Equal(0)),
    ];
    for field in ["_id", "k"] {
        let inner = FieldTest::Range(vec![(Compare::Above, 0), (Compare::Below, 1)]);
        all.extend([
            DocumentFilter::field_equals(field, 0),
            DocumentFilter::field_between(field, 0, 1),
            test(field, FieldTest::In(vec![0, 1, 2])),
            test(field, inner),
            open(field, Compare::Above),
            open(field, Compare::AtMost),
            both(DocumentFilter::field_between(field, 0, 1), DocumentFilter::field_equals("n", 2)),
        ]);
    }
    all.extend([
        both(open("k", Compare::AtLeast), open("_id", Compare::Below)),
        DocumentFilter::field_between("list", 0, 1),
    ]);
    all
}

/// Every way of asking for every filter.
fn actions() -> Vec<Action> {
    use SortOrder::{Ascending as Up, Descending as Down};
    let mut all = vec![Action::Insert { ordered: true }, Action::Insert { ordered: false }];
    for filter in filters() {
        let f = || filter.clone();
        all.extend([
            find(f(), &[], 0, &[]),
            find(f(), &[("_id", Up)], 3, &[("k", true)]),
            find(f(), &[("_id", Down)], 0, &[("n", true), ("_id", false)]),
            find(f(), &[("k", Down), ("_id", Up)], 4, &[("k", false)]),
            find(f(), &[("n", Up), ("_id", Down)], 0, &[]),
            Action::Sum { filter: f(), field: "n".into(), result: "sum".into() },
            Action::Distinct { filter: f(), field: "k".into() },
            update(f(), fields(Modify::Set, "k"), false),
            update(f(), fields(Modify::Increment, "n"), false),
            update(f(), fields(Modify::Increment, "k"), false),
            update(f(), fields(Modify::Push, "list"), false),
            update(f(), fields(Modify::Unset, "k"), false),
        ]);
        for (returns_new, sort) in [(true, ("k", Up)), (false, ("n", Down))] {
            let sort = vec![(sort.0.to_owned(), sort.1), ("_id".into(), Up)];
            let change = fields(Modify::Set, "k");
            let (fields, upsert) = (Projection::default(), false);
            all.push(Action::FindAndModify { filter: f(), change, fields, sort, upsert, returns_new });
        }
    }
    let by_id = || DocumentFilter::field_equals("_id", 0);
    all.extend([
        update(by_id(), Change::SetDocument, true),
        update(by_id(), Change::Replace, true),
        update(both(by_id(), DocumentFilter::field_equals("n", 1)), fields(Modify::Set, "k"), true),
        Action::Delete { filter: by_id(), many: true, ordered: true },
        Action::Delete { filter: DocumentFilter::field_between("k", 0, 1), many: true, ordered: true },
        Action::Distinct { filter: DocumentFilter::default(), field: "list".into() },
    ]);
    all
}

struct Dice(Stream);

impl Dice {
    fn below(&mut self, n: u64) -> i32 {
        self.0.next_below(n) as i32
    }

    fn value(&mut self) -> Value {
        match self.below(12) {
            0 => Value::Null,
            1 => Value::Text("a\0b"[..self.below(4) as usize].to_owned()),
            2 => Value::Pair(self.below(3) - 1, self.below(300)),
            3 => Value::Double(f64::from(self.below(12)) / 2.0),
            _ => Value::Int(self.below(9) - 2),
        }
    }

    fn document(&mut self) -> Document {
        let mut all = vec![("_id".to_owned(), self.value())];
        if self.below(5) > 0 {
            all.push(("k".to_owned(), self.value()));
        }
        all.push(("n".to_owned(), Value::Int(self.below(5))));
        if self.below(6) == 0 {
            all.push((
                "list".to_owned(),
                Value::List((0..self.below(4)).map(|_| Value::Int(self.below(9))).collect()),
            ));
        }
        all
    }
}

fn same(a: &Document, b: &Document) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|((a, v), (b, w))| a == b && v.compare(w).is_eq())
}

/// Whether two answers hold the same documents, in the same order if `ordered`.
fn agree(ours: &[Document], theirs: &[Document], ordered: bool) -> bool {
    let mut left: Vec<&Document> = theirs.iter().collect();
    ours.len() == theirs.len()
        && ours.iter().all(|document| {
            let at =
                if ordered { 0 } else { left.iter().position(|other| same(document, other)).unwrap_or(0) };
            same(document, left.remove(at))
        })
}

#[test]
fn random_requests_have_the_answers_of_the_model() {
    let actions = actions();
    for form in stores() {
        for seed in 0..3 {
            let directory = tempfile::tempdir().unwrap();
            let uri = form.replace("{}", directory.path().to_str().unwrap());
            let hand = Hand::new(actions.clone());
            let (mut model, mut dice) = (Model::default(), Dice(Stream::new(seed, 0, Purpose::Value)));
            let mut counts = [0u32; 3];
            for part in 0..3 {
                // Closed and opened again: what is stored and its indexes are still there.
                let store = dyno_db_embedded::open(&uri, hand.clone()).unwrap();
                let mut session = store.session().unwrap();
                for step in 0..400 {
                    let insert = dice.below(4) == 0;
                    let shape = dice.below(if insert { 2 } else { actions.len() as u64 }) as usize;
                    let action = &actions[shape];
                    let documents = match action {
                        Action::Insert { .. } => 1 + dice.below(3),
                        _ => i32::from(action.renders_documents()),
                    };
                    let mut given = Given {
                        operands: (0..3).map(|_| dice.value()).collect(),
                        documents: (0..documents).map(|_| dice.document()).collect(),
                    };
                    if let (Action::Update { .. }, Some(document)) = (action, given.documents.first_mut()) {
                        document.remove(0);
                    }
                    let before = model.clone();
                    let expected = model.execute(action, &given);
                    let what = format!("{form} {seed} {part} {step} {action:?} {given:?}");
                    let (outcome, records, shown) = ask(&hand, &mut *session, shape, given);
                    let message = session.last_error();
                    match expected {
                        Err(why) => {
                            model = before;
                            let class =
                                if why == "duplicate" { Outcome::Duplicate } else { Outcome::BadRequest };
                            assert_eq!(outcome, class, "{what}: {why}, {message}");
                            counts[0] += 1;
                        }
                        Ok((count, documents)) => {
                            let all = matches!(action, Action::Insert { ordered: false });
                            let missed = !all && count == 0 && action.means_one();
                            if outcome != Outcome::Duplicate || !all {
                                let expected = if missed { Outcome::NotFound } else { Outcome::Ok };
                                assert_eq!((outcome, records), (expected, count), "{what}: {message}");
                            }
                            let ordered = matches!(action, Action::Find { sort, .. } if !sort.is_empty());
                            assert!(agree(&shown, &documents, ordered), "{what}\n{shown:?}\n{documents:?}");
                            counts[1 + usize::from(count > 0)] += 1;
                        }
                    }
                }
                assert!(model.0.len() > 3, "{form} {seed}: {} documents", model.0.len());
            }
            // The sequence is worth something only if it meets all kinds of answers.
            assert!(counts.iter().all(|&count| count > 50), "{counts:?}");
        }
    }
}

fn open(form: &str, at: &Path, hand: &Arc<Hand>) -> Arc<dyn dyno_types::Store> {
    dyno_db_embedded::open(&form.replace("{}", at.to_str().unwrap()), hand.clone()).unwrap()
}

fn numbered(id: i32, k: i32) -> Document {
    vec![("_id".into(), Value::Int(id)), ("k".into(), Value::Int(k))]
}

#[test]
fn users_side_by_side_lose_no_update_and_keep_the_index_whole() {
    let increment = Change::Fields(vec![(Modify::Increment, "k".into(), 0)]);
    let actions = vec![
        Action::Insert { ordered: true },
        update(
            DocumentFilter(vec![FieldCondition { field: "_id".into(), test: FieldTest::In(vec![0, 1]) }]),
            increment,
            false,
        ),
        find(DocumentFilter::field_between("k", 1, 2), &[], 0, &[]),
    ];
    const USERS: i32 = 4;
    const EACH: i32 = 40;
    for form in stores() {
        let directory = tempfile::tempdir().unwrap();
        let hand = Hand::new(actions.clone());
        let store = open(form, directory.path(), &hand);
        let documents = vec![numbered(1, 0), numbered(2, 0)];
        let given = Given { documents, ..Given::default() };
        assert_eq!(ask(&hand, &mut *store.session().unwrap(), 0, given).0, Outcome::Ok, "{form}");
        // The operands are the same for all: 1 is the first _id, and what is added.
        *hand.given.lock().unwrap() =
            Given { operands: vec![Value::Int(1), Value::Int(2)], documents: vec![] };
        std::thread::scope(|scope| {
            for _ in 0..USERS {
                let mut session = store.session().unwrap();
                scope.spawn(move || {
                    for _ in 0..EACH {
                        let done = session.execute(&request(1));
                        assert_eq!(
                            (done.outcome, done.records),
                            (Outcome::Ok, 2),
                            "{form}: {}",
                            session.last_error()
                        );
                    }
                });
            }
        });
        let operands = vec![Value::Null, Value::Int(0), Value::Int(1000)];
        let (_, records, shown) =
            ask(&hand, &mut *store.session().unwrap(), 2, Given { operands, ..Given::default() });
        assert_eq!(records, 2, "{form}: the index has entries too many or too few");
        let total = Value::Int(USERS * EACH);
        assert!(
            shown.iter().all(|document| field(document, "k").unwrap().compare(&total).is_eq()),
            "{shown:?}"
        );
    }
}

#[test]
fn an_index_that_comes_later_holds_what_is_there() {
    let actions =
        vec![Action::Insert { ordered: true }, find(DocumentFilter::field_equals("k", 0), &[], 0, &[])];
    for form in stores() {
        let directory = tempfile::tempdir().unwrap();
        let mut plain = Hand::new(actions.clone());
        Arc::get_mut(&mut plain).unwrap().indexes.clear();
        let documents = (0..50).map(|id| numbered(id, id % 5)).collect();
        let store = open(form, directory.path(), &plain);
        let given = Given { documents, ..Given::default() };
        assert_eq!(ask(&plain, &mut *store.session().unwrap(), 0, given).1, 50, "{form}");
        drop(store);
        let hand = Hand::new(actions.clone());
        let store = open(form, directory.path(), &hand);
        let given = || Given { operands: vec![Value::Int(3)], ..Given::default() };
        assert_eq!(ask(&hand, &mut *store.session().unwrap(), 1, given()).1, 10, "{form}");
        drop(store);
        // A workload that does not know the index keeps it up.
        let store = open(form, directory.path(), &plain);
        let more = Given { documents: vec![numbered(99, 3)], ..Given::default() };
        assert_eq!(ask(&plain, &mut *store.session().unwrap(), 0, more).0, Outcome::Ok, "{form}");
        drop(store);
        let store = open(form, directory.path(), &hand);
        assert_eq!(ask(&hand, &mut *store.session().unwrap(), 1, given()).1, 11, "{form}");
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let sort = || AggregationStage::Sort(vec![("k".into(), SortOrder::Ascending)]);
    let aggregate = |pipeline| Action::Aggregate { pipeline };
    for form in stores() {
        let directory = tempfile::tempdir().unwrap();
        let uri = form.replace("{}", directory.path().to_str().unwrap());
        for pipeline in [
            vec![AggregationStage::Raw(vec![5, 0, 0, 0, 0])],
            vec![AggregationStage::Limit(1), sort()],
            vec![sort(), sort()],
        ] {
            let refused = dyno_db_embedded::open(&uri, Hand::new(vec![aggregate(pipeline)])).err().unwrap();
            assert!(refused.to_string().contains("\"shape 0\" cannot be done: "), "{refused}");
        }
        let stages = vec![
            AggregationStage::Match(DocumentFilter::field_equals("n", 0)),
            sort(),
            AggregationStage::Limit(2),
        ];
        let hand = Hand::new(vec![Action::Insert { ordered: true }, aggregate(stages)]);
        let store = open(form, directory.path(), &hand);
        let mut session = store.session().unwrap();
        let one = |id, k| vec![("_id".into(), id), ("k".into(), k), ("n".into(), Value::Int(1))];
        let insert = |documents| Given { documents, ..Given::default() };
        let documents = [9, 3, 7, 5].map(|n| one(Value::Int(n), Value::Int(n))).to_vec();
        assert_eq!(ask(&hand, &mut *session, 0, insert(documents)).1, 4, "{form}");
        let wanted = Given { operands: vec![Value::Int(1)], ..Given::default() };
        let (_, _, shown) = ask(&hand, &mut *session, 1, wanted);
        assert!(agree(&shown, &[3, 5].map(|n| one(Value::Int(n), Value::Int(n))), true), "{shown:?}");
        for (documents, message) in [
            (vec![numbered(1, 1), vec![("k".into(), Value::Int(1))]], "without _id"),
            (vec![one(Value::List(vec![]), Value::Null)], "array"),
            (vec![one(Value::Int(2), Value::List(vec![Value::Int(1)]))], "index on k"),
        ] {
            assert_eq!(ask(&hand, &mut *session, 0, insert(documents)).0, Outcome::BadRequest, "{form}");
            assert!(session.last_error().contains(message), "{form}: {}", session.last_error());
        }
        // Nothing of a batch that failed is there.
        assert_eq!(ask(&hand, &mut *session, 0, insert(vec![numbered(1, 1)])).0, Outcome::Ok, "{form}");
    }
}

#[test]
fn engines_tell_their_statistics() {
    for form in stores().into_iter().filter(|form| !form.starts_with("redb")) {
        let directory = tempfile::tempdir().unwrap();
        let hand = Hand::new(vec![Action::Insert { ordered: true }]);
        let store = open(form, directory.path(), &hand);
        let documents = (0..50).map(|id| numbered(id, id)).collect();
        ask(&hand, &mut *store.session().unwrap(), 0, Given { documents, ..Given::default() });
        let facts = store.facts();
        let scheme = form.split(':').next().unwrap();
        assert!(facts.iter().all(|(name, _)| name.starts_with(&format!("{scheme}."))), "{facts:?}");
        let counts =
            facts.iter().filter(|(_, value)| value.parse::<u64>().is_ok_and(|value| value > 0)).count();
        assert!(counts > 0, "{form}: {facts:?}");
    }
}
