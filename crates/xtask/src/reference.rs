//! The reference in Markdown: commands of the command line's description, keys of the JSON Schemas. Nothing in it is written
//! by hand.

use clap_markdown::{MarkdownOptions, help_markdown_command_custom};
use serde_json::Value;

/// File names and texts of all pages.
pub fn pages() -> [(&'static str, String); 3] {
    [
        ("commands.md", commands()),
        ("experiment.md", keys("Keys of an experiment file", &dyno_config::experiment::json_schema_text())),
        ("summary.md", keys("Keys of summary.json", &dyno_rundir::schema::summary_schema())),
    ]
}

fn commands() -> String {
    let options = MarkdownOptions::new().title("Commands and options".into()).show_footer(false);
    let text = help_markdown_command_custom(&dyno_cli::command(), &options);
    // Its headings of lists leave levels out.
    let bare = |line: &'_ str| line.strip_prefix("###### ").unwrap_or(line).trim_end().to_owned();
    let lines: Vec<String> = text.lines().map(bare).collect();
    let mut page = String::new();
    for (at, line) in lines.iter().enumerate() {
        // One empty line says as much as three.
        if !line.is_empty() || at > 0 && !lines[at - 1].is_empty() {
            page.extend([line.as_str(), "\n"]);
        }
    }
    format!("{}\n", page.trim_end())
}

/// A section for each mapping, with a row for each of its keys.
fn keys(title: &str, schema: &str) -> String {
    let root: Value = serde_json::from_str(schema).unwrap_or_default();
    let mut page = format!("# {title}\n\n{}\n", text_of(&root));
    let mut open = vec![SchemaSection { path: String::new(), schema: &root, within: Vec::new() }];
    while let Some(section) = open.pop() {
        let mut below = section.write(&root, &mut page);
        below.reverse();
        open.append(&mut below);
    }
    page
}

/// A mapping: its place in the file, its schema, and the definitions that it lies within (none is opened within itself).
struct SchemaSection<'s> {
    path: String,
    schema: &'s Value,
    within: Vec<&'s str>,
}

impl<'s> SchemaSection<'s> {
    /// Writes the rows; what lies below comes back.
    fn write(&self, root: &'s Value, page: &mut String) -> Vec<SchemaSection<'s>> {
        if !self.path.is_empty() {
            page.push_str(&format!("\n## `{}`\n\n{}\n", self.path, text_of(self.schema)));
        }
        page.push_str("\n| key | value | meaning |\n|---|---|---|\n");
        let mut below = Vec::new();
        for (key, property, required) in properties(self.schema) {
            let found = KeyKind::of(root, property, &self.within);
            let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
            let mut meaning = text_of(property);
            if meaning.is_empty() {
                meaning = found.meaning.clone();
            }
            if let Some(default) = property.get("default").filter(|_| !meaning.contains("Default:"))
                && !default.is_object()
            {
                meaning.push_str(&format!(" Default: `{default}`."));
            }
            if required {
                meaning.push_str(" Required.");
            }
            meaning.push_str(&found.message);
            let row = format!("| `{key}` | {} | {} |", found.value, meaning.trim());
            page.extend([&row, "\n"]);
            below.extend(found.below.map(|(suffix, schema, within)| SchemaSection {
                path: format!("{path}{suffix}"),
                schema,
                within,
            }));
        }
        below
    }
}

/// Keys of a mapping with their schemas and whether they must be there; of alternatives all of them.
fn properties(schema: &Value) -> Vec<(&str, &Value, bool)> {
    let required =
        |key: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == key));
    let own = schema["properties"].as_object().into_iter().flatten();
    let mut all: Vec<_> = own.map(|(key, value)| (key.as_str(), value, required(key))).collect();
    for alternative in alternatives(schema) {
        all.extend(properties(alternative).into_iter().map(|(key, value, _)| (key, value, false)));
    }
    all
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten()
}

/// A schema's description on one line.
fn text_of(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// What stands at a key.
struct KeyKind<'s> {
    /// What may be written.
    value: String,
    /// What the definition says of itself.
    meaning: String,
    /// The accepted words with their meanings.
    message: String,
    /// The mapping that lies there: what is added to the path, its schema and what it lies within.
    below: Option<(&'static str, &'s Value, Vec<&'s str>)>,
}

impl<'s> KeyKind<'s> {
    fn of(root: &'s Value, schema: &'s Value, within: &[&'s str]) -> Self {
        let mut within = within.to_vec();
        let mut schema = not_null(schema);
        while let Some(name) = schema["$ref"].as_str() {
            let name = name.trim_start_matches("#/$defs/");
            if within.contains(&name) {
                let value = format!("as `{name}` above");
                return KeyKind { value, meaning: String::new(), message: String::new(), below: None };
            }
            within.push(name);
            schema = not_null(&root["$defs"][name]);
        }
        let (meaning, message) = (text_of(schema), describe_type(schema));
        let nested = |suffix: &'static str, inner: &'s Value, mark: &'static str| {
            let kind = KeyKind::of(root, inner, &within);
            let below = kind
                .below
                .map(|(more, schema, within)| (if more.is_empty() { suffix } else { mark }, schema, within));
            (kind.value, kind.message, below)
        };
        if !properties(schema).is_empty() {
            return KeyKind {
                value: "mapping, see below".into(),
                meaning,
                message,
                below: Some(("", schema, within)),
            };
        }
        if let Some(inner) = schema.get("items") {
            let (value, message, below) = nested("[]", inner, "[][]");
            return KeyKind { value: format!("list: {value}"), meaning, message, below };
        }
        if let Some(inner) = schema.get("additionalProperties").filter(|inner| inner.is_object()) {
            let (value, message, below) = nested(".NAME", inner, ".NAME[]");
            return KeyKind { value: format!("mapping of names: {value}"), meaning, message, below };
        }
        KeyKind { value: scalar(root, schema, &within), meaning, message, below: None }
    }
}

/// A schema without its alternative "nothing".
fn not_null(schema: &Value) -> &Value {
    let is_null = |one: &Value| one["type"] == "null";
    match schema["anyOf"].as_array().map(Vec::as_slice) {
        Some([one, none]) if is_null(none) => one,
        _ => schema,
    }
}

/// The words that are accepted, with what each means.
fn describe_type(schema: &Value) -> String {
    let all: Vec<String> = alternatives(schema)
        .filter_map(|one| Some(format!("`{}`: {}", one["const"].as_str()?, text_of(one))))
        .collect();
    if all.is_empty() { String::new() } else { format!("<br>{}", all.join("<br>")) }
}

/// What may be written where no mapping and no list stands.
fn scalar(root: &Value, schema: &Value, within: &[&str]) -> String {
    if let Some(wanted) = text_of(schema).strip_prefix("Expected ") {
        return wanted.trim_end_matches('.').to_owned();
    }
    let mut kinds: Vec<String> = alternatives(schema)
        .filter(|one| one["type"] != "null")
        .map(
            |one| if one["const"].is_string() { "word".into() } else { KeyKind::of(root, one, within).value },
        )
        .collect();
    let named = |kind: &str| if kind == "object" { "mapping".to_owned() } else { kind.to_owned() };
    match &schema["type"] {
        Value::String(one) => kinds.push(named(one)),
        Value::Array(all) => {
            kinds.extend(all.iter().filter_map(Value::as_str).filter(|one| *one != "null").map(named));
        }
        _ => {}
    }
    kinds.dedup();
    if kinds.is_empty() { "anything".into() } else { kinds.join(" or ") }
}
