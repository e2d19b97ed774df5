use super::*;
use crate::Workload;
use dyno_types::Verb;
use dyno_types::bson;
use dyno_types::document::{Action, DocumentFilter, Projection};

fn keys(collection: usize, spread: NumberDistribution) -> AddressableDocuments {
    AddressableDocuments { collection, spread }
}

fn template() -> WorkloadTemplate {
    let text = |length, distinct| ValueTemplate::Text {
        length,
        distinct,
        spread: NumberDistribution::Uniform,
        ratio: 1,
    };
    let find = |field: &str| Action::Find {
        filter: DocumentFilter::field_equals(field, 0),
        fields: Projection::default(),
        sort: Vec::new(),
        limit: Some(1),
        single_batch: true,
    };
    let operation =
        |name: &str, weight: f64, kind: OperationKind, values: Vec<ValueTemplate>| TemplateOperation {
            name: name.into(),
            weight,
            steps: vec![OperationStep { name: name.into(), collection: 0, kind, values }],
            transaction: false,
        };
    WorkloadTemplate {
        collections: vec![
            TemplateCollection {
                name: "users".into(),
                count: 500,
                id: ValueTemplate::Sequence,
                fields: vec![
                    ("name".into(), text((3, 9), None)),
                    ("city".into(), text((6, 6), Some(10))),
                    ("address".into(), ValueTemplate::Document(vec![("street".into(), text((4, 4), None))])),
                    ("tags".into(), ValueTemplate::Array((0, 3), Box::new(ValueTemplate::Bool(0.5)))),
                ],
                indexes: Vec::new(),
            },
            TemplateCollection {
                name: "orders".into(),
                count: 2_500,
                id: ValueTemplate::ObjectId,
                fields: vec![(
                    "user".into(),
                    ValueTemplate::Key(keys(0, NumberDistribution::with_exponent(0.99))),
                )],
                indexes: Vec::new(),
            },
        ],
        operations: vec![
            operation(
                "find",
                3.0,
                OperationKind::Action(Box::new(find("address.street"))),
                vec![ValueTemplate::Of(keys(0, NumberDistribution::Uniform), "address.street".into())],
            ),
            operation("insert", 1.0, OperationKind::Insert(2), Vec::new()),
        ],
        seed: 9,
        batch: 1_000,
    }
}

fn document(content: &TemplateContent, collection: usize, number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    content.document_of(collection, number, &mut out);
    bson::check(&out).unwrap();
    out
}

#[test]
fn the_load_renders_every_document_once() {
    let load = TemplateLoad::new(&template()).unwrap();
    assert_eq!(load.count_inserts(), 4, "500 and 2500 documents by thousands");
    let (content, frontier) = (load.content(), load.frontier());
    let mut seen: Vec<(u32, u64)> = Vec::new();
    for index in 0..load.count_inserts() {
        let request = load.bind(&load.draw(index), &frontier);
        assert_eq!((request.verb, request.shape), (Verb::Document, 0));
        for number in 0..content.documents(&request) {
            let mut out = Vec::new();
            content.document(&request, number, &mut out);
            bson::check(&out).unwrap();
            seen.push((request.collection, request.key + u64::from(number)));
        }
    }
    let all: Vec<(u32, u64)> = (0..500).map(|n| (0, n)).chain((0..2_500).map(|n| (1, n))).collect();
    assert_eq!(seen, all);
}

#[test]
fn documents_have_their_shape_and_references_exist() {
    let content = TemplateContent::new(&template());
    let mut cities = std::collections::BTreeSet::new();
    let mut popular = vec![0; 500];
    for number in 0..500 {
        let user = document(&content, 0, number);
        assert_eq!(bson::find_element(&user, "_id").unwrap().as_i64(), Some(number as i64));
        assert!((3..=9).contains(&bson::find_element(&user, "name").unwrap().as_str().unwrap().len()));
        cities.insert(bson::find_element(&user, "city").unwrap().as_str().unwrap().to_owned());
        assert_eq!(document(&content, 0, number), user, "the same again");
    }
    assert!(cities.len() == 10, "{cities:?}");
    let mut ids = std::collections::BTreeSet::new();
    for number in 0..2_500 {
        let order = document(&content, 1, number);
        ids.insert(bson::find_element(&order, "_id").unwrap().value.to_vec());
        popular[bson::find_element(&order, "user").unwrap().as_i64().unwrap() as usize] += 1;
    }
    assert_eq!(ids.len(), 2_500);
    let most = popular.iter().max().copied().unwrap();
    // 1 / (1 + 1/2^0.99 + ... + 1/500^0.99) = 14.5 % of 2,500 draws; the draws are fixed.
    assert!((300..430).contains(&most), "{most}");
}

#[test]
fn operations_ask_for_what_is_there_and_insert_what_is_not() {
    let run = TemplateRun::new(&template(), &[700], template().seed).unwrap();
    let (content, frontier) = (run.content(), run.frontier());
    let users = TemplateContent::new(&template());
    let streets: std::collections::BTreeSet<Vec<u8>> = (0..500)
        .map(|n| bson::element_at_path(&document(&users, 0, n), "address.street").unwrap().value.to_vec())
        .collect();
    let (mut finds, mut fresh) = (0, std::collections::BTreeSet::new());
    for index in (0..4_096).chain((0..64).map(|n| n | 1 << 63)) {
        let request = run.bind(&run.draw(index), &frontier);
        if request.shape == 1 {
            finds += 1;
            let mut out = Vec::new();
            let at = bson::open(&mut out);
            content.operand(&request, 0, 0, "v", &mut out);
            bson::close(&mut out, at);
            assert!(streets.contains(bson::find_element(&out, "v").unwrap().value));
        } else {
            assert_eq!(content.documents(&request), 2);
            for number in 0..2 {
                assert!(request.key >= 700 && fresh.insert(request.key + number), "{index}");
            }
        }
    }
    // Exactly three of four in whole blocks of 1,024; the warm-up's 64 are a part of one.
    assert!((3_072 + 32..=3_072 + 64).contains(&finds), "{finds}");
}

#[test]
fn contradictions_are_refused() {
    let wrong = |change: &dyn Fn(&mut WorkloadTemplate)| {
        let mut template = template();
        change(&mut template);
        template.check().unwrap_err().key
    };
    assert_eq!(wrong(&|t| t.collections.clear()), "collections");
    assert_eq!(wrong(&|t| t.operations.clear()), "operations");
    assert_eq!(wrong(&|t| t.operations.iter_mut().for_each(|o| o.weight = 0.0)), "weight");
    assert_eq!(wrong(&|t| t.operations[1].name = "find".into()), "name");
    assert_eq!(wrong(&|t| t.operations[1].name = "find.one".into()), "name");
    assert_eq!(
        wrong(&|t| t.collections[0].id = ValueTemplate::Key(keys(1, NumberDistribution::Uniform))),
        "_id"
    );
    assert_eq!(wrong(&|t| t.batch = 0), "batch");
}

#[test]
fn active_numbers_come_and_go_and_all_have_their_turn() {
    use dyno_types::rng::{Purpose, Stream};
    let active = ActiveNumbers { at_a_time: 10, operations: 500 };
    // Ten at a time for 500 each: 100 numbers take 5,000 operations.
    let mut seen = vec![(0u64, u64::MAX, 0u64); 100];
    let mut within = std::collections::BTreeSet::new();
    for operation in 0..5_000u64 {
        let number = active.draw_number(operation, 100, &mut Stream::new(3, operation, Purpose::Key));
        let (count, first, last) = &mut seen[number as usize];
        (*count, *first, *last) = (*count + 1, (*first).min(operation), operation);
        // Within 50 operations one of ten changes.
        within.insert(number);
        if operation % 50 == 49 {
            assert!((8..=11).contains(&within.len()), "{within:?}");
            within.clear();
        }
    }
    // Of the first ten a part of their time came before the begin, and is that of the end.
    for (count, first, last) in &seen[10..] {
        assert!((20..90).contains(count) && last - first < 500, "{count} from {first} to {last}");
    }
    let mut stream = Stream::new(3, 7, Purpose::Key);
    assert_eq!(ActiveNumbers { at_a_time: 10, operations: 500 }.draw_number(u64::MAX, 1, &mut stream), 0);
}
