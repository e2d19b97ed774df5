//! The mix: what each operation does, in MongoDB's own words.

use crate::template::document_commands::command;
use crate::template::fields::{Bad, Fields, bad, flag, number, text, whole};
use crate::template::values::{Scope, element, value};
use crate::yaml::{Yaml, YamlNode};
use dyno_types::bson;
use dyno_types::document::{
    Action, AggregationStage, Change, Compare, DocumentFilter, FieldCondition, FieldTest, Modify, Operand,
    Projection, SortOrder,
};
use dyno_workload::template::{OperationKind, OperationStep, TemplateOperation, ValueTemplate};

/// Verbs of operations, each the key that names its operation's collection, and the keys that may stand beside it.
pub(super) const VERBS: [(&str, &[&str]); 12] = [
    ("findOne", &["filter", "projection", "sort"]),
    ("find", &["filter", "projection", "sort", "limit"]),
    ("distinct", &["field", "filter"]),
    ("sum", &["field", "filter"]),
    ("aggregate", &["pipeline"]),
    ("insert", &["documents"]),
    ("update", &["filter", "change", "upsert"]),
    ("updateMany", &["filter", "change", "upsert"]),
    ("delete", &["filter"]),
    ("deleteMany", &["filter"]),
    ("findAndModify", &["filter", "change", "projection", "sort", "upsert", "new"]),
    ("command", &[]),
];

/// Refuses what is left of an operation's keys.
fn end(fields: Fields<'_>, verb: &str) -> Result<(), Bad> {
    let beside = VERBS.iter().find(|(known, _)| *known == verb).map_or(&[][..], |(_, keys)| keys);
    fields.end(&[&["weight", verb], beside].concat())
}

/// All operations.
pub(super) fn read(node: &YamlNode, names: &Scope) -> Result<Vec<TemplateOperation>, Bad> {
    let Yaml::Map(all) = node.value() else {
        return bad(node, format!("operations: {}: expected a mapping of names", node.word()));
    };
    all.iter().map(|(name, node)| operation(name, node, names)).collect()
}

/// The operands of an operation, as they are met.
struct Operands<'a> {
    names: &'a Scope,
    values: Vec<ValueTemplate>,
}

impl Operands<'_> {
    fn add(&mut self, node: &YamlNode) -> Result<Operand, Bad> {
        self.values.push(value(node, self.names)?);
        Ok((self.values.len() - 1) as Operand)
    }
}

fn operation(name: &str, node: &YamlNode, names: &Scope) -> Result<TemplateOperation, Bad> {
    let mut fields = Fields::of_mapping(node, name)?;
    let weight = fields.take_value("weight").map_or(Ok(1.0), number)?;
    if weight < 0.0 {
        return bad(node, format!("{name}: weight {weight}: expected 0 or more"));
    }
    let transaction = fields.take_value("transaction");
    let steps = match transaction.map(|list| (list, list.value())) {
        None => vec![step(name, fields, node, names)?],
        Some((_, Yaml::List(all))) if !all.is_empty() => {
            fields.end(&["weight", "transaction"])?;
            let one = |(number, node): (usize, &YamlNode)| {
                let mut fields = Fields::of_mapping(node, "a step")?;
                let numbered = format!("{}", number + 1);
                let name = fields.take_value("name").map_or(Ok(numbered.as_str()), text)?;
                step(name, fields, node, names)
            };
            all.iter().enumerate().map(one).collect::<Result<_, _>>()?
        }
        Some((list, _)) => {
            return bad(list, format!("{name}: transaction: {}: expected a list of operations", list.word()));
        }
    };
    Ok(TemplateOperation { name: name.to_owned(), weight, steps, transaction: transaction.is_some() })
}

fn step(name: &str, mut fields: Fields<'_>, node: &YamlNode, names: &Scope) -> Result<OperationStep, Bad> {
    let verbs = VERBS.map(|(verb, _)| verb);
    let found: Vec<(&str, &YamlNode)> =
        verbs.iter().filter_map(|verb| Some((*verb, fields.take_value(verb)?))).collect();
    let [(verb, of)] = found[..] else {
        return bad(node, format!("{name}: expected exactly one of {}", verbs.join(", ")));
    };
    if verb == "command" {
        end(fields, verb)?;
        let (collection, action, body) = command(of, names)?;
        let kind = OperationKind::Action(Box::new(action));
        return Ok(OperationStep { name: name.to_owned(), collection, kind, values: vec![body] });
    }
    let collection = names.find_collection(of, text(of)?)?;
    let mut operands = Operands { names, values: Vec::new() };
    let kind = match verb {
        "insert" => {
            let count = fields.take_value("documents").map_or(Ok(1), |node| whole(node, 1, 100_000))?;
            end(fields, verb)?;
            OperationKind::Insert(count as u32)
        }
        _ => OperationKind::Action(Box::new(action(verb, fields, node, &mut operands)?)),
    };
    Ok(OperationStep { name: name.to_owned(), collection, kind, values: operands.values })
}

fn action(
    verb: &str,
    mut fields: Fields<'_>,
    node: &YamlNode,
    operands: &mut Operands<'_>,
) -> Result<Action, Bad> {
    // A pipeline has stages of its own for that.
    let asked = if verb == "aggregate" { None } else { fields.take_value("filter") };
    let filter = match (asked, verb) {
        (Some(node), _) => filter(node, operands)?,
        (None, "update" | "delete" | "findAndModify") => {
            return bad(node, "filter is missing: which document is meant");
        }
        (None, _) => DocumentFilter::default(),
    };
    let action = match verb {
        "find" | "findOne" => {
            let one = verb == "findOne";
            let limit = if one { Some(1) } else { limit(fields.take_value("limit"))? };
            let sort = fields.take_value("sort").map_or(Ok(Vec::new()), orders)?;
            let shown = fields.take_value("projection").map_or(Ok(Projection::default()), projection)?;
            Action::Find { filter, fields: shown, sort, limit, single_batch: one }
        }
        "distinct" => {
            let field = text(fields.need_value("field", "whose values")?)?.to_owned();
            Action::Distinct { filter, field }
        }
        "sum" => {
            let field = text(fields.need_value("field", "what is added up")?)?.to_owned();
            Action::Sum { filter, field, result: "sum".into() }
        }
        "aggregate" => {
            let pipeline = pipeline(fields.need_value("pipeline", "a list of stages")?, operands)?;
            Action::Aggregate { pipeline }
        }
        "delete" | "deleteMany" => Action::Delete { filter, many: verb == "deleteMany", ordered: true },
        "update" | "updateMany" => {
            let change = change(fields.need_value("change", "operators such as $set")?, operands)?;
            let upsert = fields.take_value("upsert").map_or(Ok(false), flag)?;
            Action::Update { filter, change, many: verb == "updateMany", upsert, ordered: true }
        }
        _ => {
            let change = change(fields.need_value("change", "operators such as $set")?, operands)?;
            Action::FindAndModify {
                filter,
                change,
                fields: fields.take_value("projection").map_or(Ok(Projection::default()), projection)?,
                sort: fields.take_value("sort").map_or(Ok(Vec::new()), orders)?,
                upsert: fields.take_value("upsert").map_or(Ok(false), flag)?,
                returns_new: fields.take_value("new").map_or(Ok(false), flag)?,
            }
        }
    };
    end(fields, verb)?;
    Ok(action)
}

fn limit(node: Option<&YamlNode>) -> Result<Option<u32>, Bad> {
    Ok(Some(node.map_or(Ok(0), |node| whole(node, 0, i64::from(i32::MAX)))? as u32))
}

/// Fields and conditions.
fn filter(node: &YamlNode, operands: &mut Operands<'_>) -> Result<DocumentFilter, Bad> {
    let Yaml::Map(all) = node.value() else {
        return bad(node, format!("filter: {}: expected fields and values", node.word()));
    };
    let mut conditions = Vec::new();
    for (field, node) in all {
        if field.starts_with('$') {
            return bad(
                node,
                format!("{field}: a filter has fields that must all match; no $or and the like"),
            );
        }
        conditions.push(FieldCondition { field: field.clone(), test: test(node, operands)? });
    }
    Ok(DocumentFilter(conditions))
}

fn compare(word: &str) -> Option<Compare> {
    [Compare::Above, Compare::AtLeast, Compare::Below, Compare::AtMost]
        .into_iter()
        .find(|c| c.mongodb_operator() == word)
}

fn test(node: &YamlNode, operands: &mut Operands<'_>) -> Result<FieldTest, Bad> {
    let Yaml::Map(all) = node.value() else { return operands.add(node).map(FieldTest::Equal) };
    match &all[..] {
        [(word, of)] if word == "$eq" => operands.add(of).map(FieldTest::Equal),
        [(word, of)] if word == "$in" => match of.value() {
            Yaml::List(values) => {
                Ok(FieldTest::In(values.iter().map(|one| operands.add(one)).collect::<Result<_, _>>()?))
            }
            _ => bad(of, format!("$in: {}: expected a list", of.word())),
        },
        all if all.iter().any(|(word, _)| compare(word).is_some()) => {
            let one = |(word, of): &(String, YamlNode)| match compare(word) {
                Some(compare) => Ok((compare, operands.add(of)?)),
                None => bad(of, format!("{word:?} beside a comparison: accepted are $gt, $gte, $lt, $lte")),
            };
            Ok(FieldTest::Range(all.iter().map(one).collect::<Result<_, _>>()?))
        }
        _ => operands.add(node).map(FieldTest::Equal),
    }
}

fn change(node: &YamlNode, operands: &mut Operands<'_>) -> Result<Change, Bad> {
    let operators = [Modify::Set, Modify::Increment, Modify::Push, Modify::Unset];
    let accepted = "$set, $inc, $push and $unset with fields and values";
    let Yaml::Map(all) = node.value() else {
        return bad(node, format!("change: {}: expected {accepted}", node.word()));
    };
    let mut changes = Vec::new();
    for (word, fields) in all {
        let Some(modify) = operators.into_iter().find(|m| m.mongodb_operator() == word) else {
            return bad(fields, format!("{word:?}: expected {accepted}"));
        };
        let Yaml::Map(fields) = fields.value() else {
            return bad(fields, format!("{word}: {}: expected fields and values", fields.word()));
        };
        for (field, node) in fields {
            changes.push((modify, field.clone(), operands.add(node)?));
        }
    }
    if changes.is_empty() {
        return bad(node, format!("change: nothing: expected {accepted}"));
    }
    Ok(Change::Fields(changes))
}

fn orders(node: &YamlNode) -> Result<Vec<(String, SortOrder)>, Bad> {
    let order = |way: i32| if way > 0 { SortOrder::Ascending } else { SortOrder::Descending };
    Ok(directions(node)?.into_iter().map(|(field, way)| (field, order(way))).collect())
}

/// Fields with 1 or -1.
pub(super) fn directions(node: &YamlNode) -> Result<Vec<(String, i32)>, Bad> {
    let Yaml::Map(all) = node.value() else {
        return bad(node, format!("{}: expected fields with 1 or -1", node.word()));
    };
    all.iter()
        .map(|(field, node)| match node.value() {
            Yaml::Int(way @ (1 | -1)) => Ok((field.clone(), *way as i32)),
            _ => bad(node, format!("{field}: {}: expected 1 or -1", node.word())),
        })
        .collect()
}

/// A list of fields that are shown, or a mapping of fields to true and false.
fn projection(node: &YamlNode) -> Result<Projection, Bad> {
    match node.value() {
        Yaml::List(all) => {
            let shown = all.iter().map(|one| Ok((text(one)?.to_owned(), true)));
            Ok(Projection(shown.collect::<Result<_, Bad>>()?))
        }
        Yaml::Map(all) => {
            let shown = all.iter().map(|(field, node)| match node.value() {
                Yaml::Int(n @ (0 | 1)) => Ok((field.clone(), *n == 1)),
                _ => Ok((field.clone(), flag(node)?)),
            });
            Ok(Projection(shown.collect::<Result<_, Bad>>()?))
        }
        _ => bad(node, format!("projection: {}: expected fields", node.word())),
    }
}

fn pipeline(node: &YamlNode, operands: &mut Operands<'_>) -> Result<Vec<AggregationStage>, Bad> {
    let Yaml::List(all) = node.value() else {
        return bad(node, format!("pipeline: {}: expected a list of stages", node.word()));
    };
    let stage = |node: &YamlNode| {
        let Yaml::Map(one) = node.value() else {
            return bad(node, format!("{}: expected a stage such as $match", node.word()));
        };
        match &one[..] {
            [(word, of)] if word == "$match" => Ok(AggregationStage::Match(filter(of, operands)?)),
            [(word, of)] if word == "$sort" => Ok(AggregationStage::Sort(orders(of)?)),
            [(word, of)] if word == "$limit" => {
                Ok(AggregationStage::Limit(whole(of, 1, i64::from(i32::MAX))? as u32))
            }
            [(word, of)] if word.starts_with('$') => {
                let mut raw = Vec::new();
                let at = bson::open(&mut raw);
                element(of, word, &mut raw);
                bson::close(&mut raw, at);
                Ok(AggregationStage::Raw(raw))
            }
            _ => bad(node, "expected a stage: one key that begins with $"),
        }
    };
    all.iter().map(stage).collect()
}
