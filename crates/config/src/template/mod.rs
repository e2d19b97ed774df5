//! Workloads of one's own, read from YAML: documents and operations on them, or commands.
//!
//! `yaml` keeps values with their lines, `fields` takes mappings apart, `values` reads how values are drawn, `operations`
//! the mix; here they become a [`WorkloadTemplate`]. `commands` makes a [`CommandMix`] of commands, `arguments` their words with
//! the same generators in them, `words` splits lines, `lines` reads commands of a
//! command line, `data` reads data files.
//!
//! ```text
//! text -> Node (value, line) -> collections, operations -> Template, or an error with file and line
//! ```

mod arguments;
mod command_text_error;
mod commands;
mod data;
mod document_commands;
pub mod fields;
mod lines;
pub mod operations;
mod schema;
pub mod values;
mod words;

pub use command_text_error::CommandTextError;
pub use commands::ReadFile;
pub use lines::{CommandLines, read_file_lines};

pub use schema::documents_schema_text;

use crate::template::fields::{Bad, Fields, bad, count, whole};
use crate::template::values::Scope;
use crate::yaml::{Yaml, YamlNode};
use dyno_types::limits::BSON_BYTES;
use dyno_workload::command_mix::{CommandMix, DataTable};
use dyno_workload::template::{TemplateCollection, TemplateIndex, ValueTemplate, WorkloadTemplate};
use std::fmt;

/// Problem of a file, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TemplateError {
    /// The file.
    pub path: String,
    /// Line, from 1; 0 if it belongs to none.
    pub line: u64,
    /// Words on what was found and what is accepted.
    pub text: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

fn root_of(text: &str, path: &str) -> Result<YamlNode, TemplateError> {
    serde_saphyr::from_str(text).map_err(|e| TemplateError {
        path: path.to_owned(),
        line: 0,
        text: e.to_string(),
    })
}

/// Reads documents and operations on them; `path` is what messages call the file.
///
/// # Errors
/// Names the line and what is accepted there.
pub fn parse(text: &str, path: &str) -> Result<WorkloadTemplate, TemplateError> {
    template(&root_of(text, path)?).map_err(|(line, text)| TemplateError {
        path: path.to_owned(),
        line,
        text,
    })
}

/// Reads commands; `read_file` reads the files that they name.
///
/// # Errors
/// As [`parse`].
pub fn parse_commands(text: &str, path: &str, read_file: ReadFile<'_>) -> Result<CommandMix, TemplateError> {
    let root = root_of(text, path)?;
    let error = |(line, text): Bad| TemplateError { path: path.to_owned(), line, text };
    values::refuse_wide(&root).and_then(|()| commands::read(&root, read_file)).map_err(error)
}

/// Reads a data file of this name; the first column's name and so on are those of its first line.
///
/// # Errors
/// Says what is wrong with it, and on which line.
pub fn parse_data(name: &str, file: &str, text: &[u8]) -> Result<DataTable, CommandTextError> {
    let form = data::DataForm::of_name(file)?;
    data::table(name, text, form, false)
}

/// Returns whether a file's text has commands, not documents: a key `commands` that begins a line.
pub fn has_commands(text: &str) -> bool {
    text.lines()
        .any(|line| line.strip_prefix("commands").is_some_and(|rest| rest.trim_start().starts_with(':')))
}

fn template(root: &YamlNode) -> Result<WorkloadTemplate, Bad> {
    values::refuse_wide(root)?;
    let mut top = Fields::of_mapping(root, "a template")?;
    let seed = top.take_value("seed").map_or(Ok(1), |node| whole(node, 0, i64::MAX))? as u64;
    let batch = top.take_value("batch").map_or(Ok(1_000), |node| whole(node, 1, 100_000))? as u32;
    let data = top.need_value("collections", "what documents there are")?;
    let mix = top.need_value("operations", "what is done with them")?;

    top.end(&["seed", "batch", "collections", "operations"])?;
    let Yaml::Map(named) = data.value() else {
        return bad(data, format!("collections: {}: expected a mapping of names", data.word()));
    };
    let names = Scope::of_documents(named.iter().map(|(name, _)| name.clone()).collect());
    let collections =
        named.iter().map(|(name, node)| collection(name, node, &names)).collect::<Result<_, _>>()?;
    let operations = operations::read(mix, &names)?;
    let template = WorkloadTemplate { collections, operations, seed, batch };
    match template.check() {
        Ok(()) => Ok(template),
        Err(wrong) => bad(root, format!("{} {}: expected {}", wrong.key, wrong.value, wrong.expected)),
    }
}

fn collection(name: &str, node: &YamlNode, names: &Scope) -> Result<TemplateCollection, Bad> {
    if name.is_empty() || name.contains(['$', '\0']) {
        return bad(node, format!("{name:?} is no name of a collection"));
    }
    let mut fields = Fields::of_mapping(node, name)?;
    let documents = count(fields.need_value("count", "the number of documents")?)?;
    let shape = fields.need_value("document", "what a document consists of")?;
    let indexes = fields.take_value("indexes").map_or(Ok(Vec::new()), indexes)?;
    fields.end(&["count", "document", "indexes"])?;
    let Yaml::Map(all) = shape.value() else {
        return bad(shape, format!("document: {}: expected fields", shape.word()));
    };
    let (mut id, mut rest) = (ValueTemplate::Sequence, Vec::new());
    for (field, node) in all {
        let value = values::value(node, names)?;
        match field.as_str() {
            "_id" => id = value,
            _ if field.contains('\0') || field.starts_with('$') => {
                return bad(node, format!("{field:?} is no name of a field"));
            }
            _ => rest.push((field.clone(), value)),
        }
    }
    let longest = rest.iter().fold(0_u64, |sum, (field, value)| {
        sum.saturating_add(field.len() as u64 + 2).saturating_add(value.longest_value())
    });
    if longest > BSON_BYTES {
        return bad(shape, format!("document: up to {longest} bytes: expected at most {BSON_BYTES}"));
    }
    Ok(TemplateCollection { name: name.to_owned(), count: documents, id, fields: rest, indexes })
}

/// Names of fields, or mappings of fields to 1 and -1.
fn indexes(node: &YamlNode) -> Result<Vec<TemplateIndex>, Bad> {
    let Yaml::List(all) = node.value() else {
        return bad(
            node,
            format!("indexes: {}: expected a list such as [email, {{country: 1, age: -1}}]", node.word()),
        );
    };
    all.iter()
        .map(|one| {
            let fields = match one.value() {
                Yaml::Text(field) => vec![(field.clone(), 1)],
                _ => operations::directions(one)?,
            };
            let name: Vec<String> = fields.iter().map(|(field, way)| format!("{field}_{way}")).collect();
            Ok((name.join("_"), fields))
        })
        .collect()
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod command_tests;
