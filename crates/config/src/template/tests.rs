use crate::template::*;
use dyno_types::document::{Action, AggregationStage, Change, FieldTest, Modify};
use dyno_workload::template::OperationKind;

const SHOP: &str = "
collections:
  users:
    count: 1k
    document:
      name: { $string: [5, 20] }
      n: 3
      big: 5000000000
      tags: [a, { $int: [1, 9] }]
    indexes: [name, { n: 1, big: -1 }]
operations:
  one: { weight: 3, findOne: users, filter: { _id: { $key: users } } }
  some: { find: users, filter: { n: { $gte: 1, $lt: { $int: [2, 5] } }, name: { $in: [a, b] } }, sort: { n: -1 }, limit: 5 }
  change: { update: users, filter: { _id: 1 }, change: { $set: { name: x }, $inc: { n: 1 } }, upsert: true }
  add: { insert: users, documents: 5 }
  sums: { aggregate: users, pipeline: [ { $match: { n: 3 } }, { $group: { _id: $name, n: { $sum: 1 } } }, { $limit: 2 } ] }
";

#[test]
fn a_template_is_read() {
    let template = parse(SHOP, "shop.yaml").unwrap();
    let users = &template.collections[0];
    assert_eq!((users.name.as_str(), users.count, template.seed), ("users", 1_000, 1));
    assert_eq!(users.id, ValueTemplate::Sequence);
    assert_eq!(users.fields[1].1, ValueTemplate::Constant(0x10, vec![3, 0, 0, 0]));
    assert!(matches!(&users.fields[2].1, ValueTemplate::Constant(0x12, bytes) if bytes.len() == 8));
    assert!(matches!(&users.fields[3].1, ValueTemplate::List(two) if two.len() == 2));
    let both = vec![("n".to_owned(), 1), ("big".to_owned(), -1)];
    assert_eq!(
        users.indexes,
        [("name_1".to_owned(), vec![("name".to_owned(), 1)]), ("n_1_big_-1".to_owned(), both)]
    );
    let weights: Vec<f64> = template.operations.iter().map(|o| o.weight).collect();
    assert_eq!(weights, [3.0, 1.0, 1.0, 1.0, 1.0]);
    let action = |number: usize| match &template.operations[number].steps[0].kind {
        OperationKind::Action(action) => (**action).clone(),
        OperationKind::Insert(_) => panic!("an insert"),
    };
    assert!(matches!(action(0), Action::Find { limit: Some(1), .. }));
    let Action::Find { filter, limit: Some(5), .. } = action(1) else { panic!("{:?}", action(1)) };
    assert!(matches!(&filter.0[0].test, FieldTest::Range(two) if two.len() == 2));
    assert!(matches!(&filter.0[1].test, FieldTest::In(two) if two[..] == [2, 3]));
    assert_eq!(template.operations[1].steps[0].values.len(), 4);
    let Action::Update { change: Change::Fields(fields), upsert: true, .. } = action(2) else { panic!() };
    assert_eq!(fields[1], (Modify::Increment, "n".to_owned(), 2));
    assert_eq!(template.operations[3].steps[0].kind, OperationKind::Insert(5));
    let Action::Aggregate { pipeline } = action(4) else { panic!() };
    assert!(matches!(
        &pipeline[..],
        [AggregationStage::Match(_), AggregationStage::Raw(_), AggregationStage::Limit(2)]
    ));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let with = |from: &str, to: &str| parse(&SHOP.replace(from, to), "shop.yaml").unwrap_err().to_string();
    for (from, to, expected) in [
        ("count: 1k", "count: many", "shop.yaml:4: \"many\": expected a number such as 1000 or 10k"),
        ("$string: [5, 20]", "$strng: 5", "shop.yaml:6: unknown generator \"$strng\"; did you mean $string?"),
        ("$string: [5, 20]", "$string: [20, 5]", "shop.yaml:6: from 20 to 5 there is no length"),
        ("n: 3\n", "n: { $int: [9, 1] }\n", "shop.yaml:7: from 9 to 1 there is no number"),
        ("n: 3\n", "n: { $date: [2024-01-01, never] }\n", "shop.yaml:7: \"never\": expected a date"),
        ("n: 3\n", "n: { $string: { length: 3, distribution: zipfian } }\n", "give distinct too"),
        (
            "n: 3\n",
            "n: { $int: { max: 3, distribution: zipf } }\n",
            "shop.yaml:7: distribution \"zipf\": expected uniform",
        ),
        (
            "findOne: users",
            "findOne: user",
            "shop.yaml:12: there is no collection \"user\"; did you mean users?",
        ),
        ("findOne: users, filter", "findOne: users, filtr", "unknown key \"filtr\"; did you mean filter?"),
        (
            "weight: 3, findOne: users",
            "weight: 3, find_one: users",
            "one: expected exactly one of findOne, find,",
        ),
        ("weight: 3", "weight: -3", "shop.yaml:12: one: weight -3: expected 0 or more"),
        ("$set: { name: x }", "$rename: { name: x }", "\"$rename\": expected $set, $inc, $push and $unset"),
        ("filter: { _id: 1 }, change", "change", "filter is missing: which document is meant"),
        ("{ _id: { $key: users } }", "{ $or: [] }", "$or: a filter has fields that must all match"),
        ("{ _id: { $key: users } }", "{ _id: { $of: users } }", "\"users\": expected COLLECTION.FIELD"),
        ("sort: { n: -1 }", "sort: { n: down }", "n: \"down\": expected 1 or -1"),
        (
            "name: { $string: [5, 20] }",
            "_id: { $key: users }",
            "_id users: expected a value that depends on no other",
        ),
        ("operations:", "operation:", "operations is missing: what is done with them"),
        ("add: { insert", "one: { insert", "duplicate"),
        ("documents: 5 }", "transaction: [] }", "add: transaction: a list: expected a list of operations"),
    ] {
        let message = with(from, to);
        assert!(message.contains(expected), "{from} -> {to}: {message}");
    }
}

#[test]
fn a_command_has_generators_among_operators() {
    let text = "
collections: { a: { count: 9, document: {} }, b: { count: 9, document: {} } }
operations:
  o: { command: { find: b, filter: { $or: [{ n: { $gt: { $int: [1, 5] } } }, { _id: { $key: b } }] }, batchSize: 50 } }
  w: { command: { update: a, updates: [{ q: {}, u: { $set: { n: 1 } } }, { q: {}, u: {}, upsert: true }] } }
  m: { command: { aggregate: b, pipeline: [{ $match: {} }, { $out: c }], cursor: { batchSize: 7 } } }
  p: { command: { ping: 1 } }
";
    let template = parse(text, "x.yaml").unwrap();
    let step = |operation: usize| &template.operations[operation].steps[0];
    let facts = |operation: usize| match &step(operation).kind {
        OperationKind::Action(action) => match &**action {
            Action::Command { name, changes, inserts, batch_size, body: 0 } => {
                (step(operation).collection, name.clone(), *changes, *inserts, *batch_size)
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(facts(0), (1, "find".into(), false, 0, Some(50)));
    assert_eq!(facts(1), (0, "update".into(), true, 2, None));
    assert_eq!(facts(2), (1, "aggregate".into(), true, 2, Some(7)));
    assert_eq!(facts(3), (0, "ping".into(), false, 0, None));
    let ValueTemplate::Document(fields) = &step(0).values[0] else { panic!("{:?}", step(0).values) };
    let ValueTemplate::Document(filter) = &fields[1].1 else { panic!("{fields:?}") };
    let ValueTemplate::List(any) = &filter[0].1 else { panic!("{filter:?}") };
    let ValueTemplate::Document(first) = &any[0] else { panic!("{any:?}") };
    let ValueTemplate::Document(above) = &first[0].1 else { panic!("{first:?}") };
    assert_eq!((filter[0].0.as_str(), above[0].0.as_str()), ("$or", "$gt"));
    assert!(matches!(above[0].1, ValueTemplate::Int { min: 1, max: 5, .. }), "{above:?}");
    for (command, message) in [
        ("{}", "expected a mapping such as"),
        ("[find]", "expected a mapping such as"),
        ("{ $key: a }", "\"$key\" is no name of a command"),
        ("{ find: d }", "there is no collection \"d\""),
        ("{ getMore: 1 }", "getMore: a cursor or a session of its own"),
        ("{ find: a, lsid: 1 }", "lsid: set it by the target's address"),
    ] {
        let text = format!(
            "collections: {{ a: {{ count: 1, document: {{}} }} }}\noperations: {{ o: {{ command: {command} }} }}"
        );
        let refused = parse(&text, "x.yaml").unwrap_err().text;
        assert!(refused.contains(message), "{command}: {refused}");
    }
}
