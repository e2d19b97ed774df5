//! Commands of MongoDB among operations on documents.

use crate::template::fields::{Bad, bad};
use crate::template::values::{Scope, command_value};
use crate::yaml::{Yaml, YamlNode};
use dyno_types::bson::{Element, kind};
use dyno_types::document::Action;
use dyno_workload::template::ValueTemplate;

/// Commands that change nothing; of `aggregate` its last stage decides.
const READS: [&str; 17] = [
    "aggregate",
    "buildInfo",
    "collStats",
    "connectionStatus",
    "count",
    "dataSize",
    "dbStats",
    "distinct",
    "explain",
    "find",
    "hello",
    "isMaster",
    "listCollections",
    "listDatabases",
    "listIndexes",
    "ping",
    "serverStatus",
];

/// Commands that name cursors or sessions, which no file knows.
const OF_CURSORS: [&str; 6] =
    ["abortTransaction", "commitTransaction", "endSessions", "getMore", "killCursors", "saslStart"];

/// Fields that the target's address decides, and the driver sends.
const OF_DRIVER: [&str; 12] = [
    "$clusterTime",
    "$db",
    "$readPreference",
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "autocommit",
    "lsid",
    "readConcern",
    "startTransaction",
    "txnNumber",
    "writeConcern",
];

/// A command: the number of its collection, the action, and the document that it is.
pub(super) fn command(node: &YamlNode, names: &Scope) -> Result<(usize, Action, ValueTemplate), Bad> {
    let fields = match node.value() {
        Yaml::Map(fields) if !fields.is_empty() => fields,
        _ => {
            return bad(
                node,
                format!(
                    "command: {}: expected a mapping such as {{ find: COLLECTION, filter: ... }}",
                    node.word()
                ),
            );
        }
    };
    let (name, first) = &fields[0];
    if name.is_empty() || name.starts_with('$') || name.contains('\0') {
        return bad(node, format!("{name:?} is no name of a command: it is the first key"));
    }
    if OF_CURSORS.contains(&name.as_str()) {
        return bad(
            node,
            format!("{name}: a cursor or a session of its own: dyno sends such commands by itself"),
        );
    }
    if let Some((field, at)) = fields.iter().find(|(field, _)| OF_DRIVER.contains(&field.as_str())) {
        return bad(at, format!("{field}: set it by the target's address: see docs/mongodb.md"));
    }
    // Commands of no collection count as of the first.
    let collection = match first.value() {
        Yaml::Text(text) => names.find_collection(first, text)?,
        _ => 0,
    };
    let body = command_value(node, names)?;
    let ValueTemplate::Document(parts) = &body else {
        return bad(node, "command: a generator: expected the command's name as the first key");
    };
    let changes = !READS.contains(&name.as_str()) || (name == "aggregate" && writes_collection(parts));
    let action = Action::Command {
        name: name.clone(),
        changes,
        inserts: if changes { most_elements(&body) } else { 0 },
        batch_size: batch_size(parts),
        body: 0,
    };
    Ok((collection, action, body))
}

type Parts = [(String, ValueTemplate)];

fn find<'a>(parts: &'a Parts, name: &str) -> Option<&'a ValueTemplate> {
    parts.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// Returns whether the last stage of a pipeline writes.
fn writes_collection(parts: &Parts) -> bool {
    let Some(ValueTemplate::List(stages)) = find(parts, "pipeline") else { return false };
    let writes = |stage: &ValueTemplate| match stage {
        ValueTemplate::Document(stage) => {
            stage.iter().any(|(name, _)| ["$out", "$merge"].contains(&name.as_str()))
        }
        _ => false,
    };
    stages.iter().any(writes)
}

/// The number of a cursor's documents in a batch.
fn batch_size(parts: &Parts) -> Option<u32> {
    let value = match find(parts, "cursor") {
        Some(ValueTemplate::Document(cursor)) => find(cursor, "batchSize"),
        _ => find(parts, "batchSize"),
    };
    let number = match value? {
        ValueTemplate::Constant(kind, bytes) if [kind::INT32, kind::INT64].contains(kind) => {
            Element { kind: *kind, name: b"", value: bytes }.as_i64()
        }
        ValueTemplate::Int { min, max, .. } if min == max => Some(*min),
        _ => None,
    };
    number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0)
}

/// The length of the longest list, one at least: a command inserts no more documents.
fn most_elements(value: &ValueTemplate) -> u32 {
    match value {
        ValueTemplate::List(all) => {
            all.iter().map(most_elements).max().unwrap_or(1).max(u32::try_from(all.len()).unwrap_or(u32::MAX))
        }
        ValueTemplate::Array((_, most), of) => most_elements(of).max(*most),
        ValueTemplate::Document(fields) => {
            fields.iter().map(|(_, value)| most_elements(value)).max().unwrap_or(1)
        }
        ValueTemplate::OneOf(all) => all.iter().map(|(_, value)| most_elements(value)).max().unwrap_or(1),
        _ => 1,
    }
}
