//! Options of `dyno run` that set a key of an experiment.
//!
//! A field of an experiment's types has its option beside it:
//! `#[schemars(extend("x-flag" = "-u, --users <N>"))]`. Name, help, choices and default of the option are those of the field.
//! So one definition makes the key of a file, the option, the JSON Schema, the reference, and the setting that a run
//! records ([`Node`] keeps who has set it).

use crate::experiment::Experiment;
use crate::tree::{Node, Origin, Value as Tree};
use schemars::JsonSchema;
use serde_json::Value;
use std::sync::LazyLock;

/// An option and the key that it sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagDefinition {
    /// Keys from the root with dots between them, such as `phases.measure.users`.
    pub key: String,
    /// The letter of the short form.
    pub short: Option<char>,
    /// The name behind the two dashes.
    pub long: String,
    /// What the value is called; `None`: the option has none, it sets the key to true.
    pub value_name: Option<String>,
    /// The field's description, without its unit; or `x-help` of the field, where an option has other words.
    pub help: String,
    /// The values that are accepted, each with its description; empty: the field's type decides.
    pub choices: Vec<(String, String)>,
    /// The options that it excludes, by name.
    pub conflicts: Vec<String>,
    /// The options that it needs, by name.
    pub requires: Vec<String>,
    /// True if the option may be given several times, and makes a list.
    pub is_list: bool,
    is_integer: bool,
    /// A list whose elements are any numbers.
    has_numbers: bool,
}

/// Key of the schema that holds an option.
const MARK: &str = "x-flag";

/// The options of `dyno run`, in the order of the fields.
pub static RUN_FLAGS: LazyLock<Vec<FlagDefinition>> = LazyLock::new(flags_of::<Experiment>);

/// Lists the options that the fields of `T` have, in their order.
pub fn flags_of<T: JsonSchema>() -> Vec<FlagDefinition> {
    let schema = schemars::schema_for!(T).to_value();
    let mut all = Vec::new();
    gather(&schema, &schema, "", &mut all);
    all
}

fn gather(root: &Value, schema: &Value, path: &str, into: &mut Vec<FlagDefinition>) {
    let Some(properties) = resolved(root, schema).get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, field) in properties {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match field.get(MARK).and_then(Value::as_str) {
            Some(form) => into.push(definition(root, field, form, key)),
            None => gather(root, field, &key, into),
        }
    }
}

/// Follows the reference of a schema, also where it stands beside `null`.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return root.pointer(name.trim_start_matches('#')).unwrap_or(schema);
    }
    let some = schema.get("anyOf").and_then(Value::as_array).and_then(|all| all.first());
    some.map_or(schema, |some| resolved(root, some))
}

fn definition(root: &Value, field: &Value, form: &str, key: String) -> FlagDefinition {
    let (names, value_name) = match form.split_once(" <") {
        Some((names, value)) => (names, Some(value.trim_end_matches('>').to_owned())),
        None => (form, None),
    };
    let (short, long) = match names.split_once(", --") {
        Some((short, long)) => (short.chars().nth(1), long),
        None => (None, names.trim_start_matches('-')),
    };
    let kind = resolved(root, field);
    let has_type = |name: &str| match kind.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(all)) => all.iter().any(|one| one == name),
        _ => false,
    };
    let choices = kind.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let choices = choices.filter_map(|one| Some((text(one, "const")?, text(one, "description")?)));
    let is_list = has_type("array");
    let names_of = |mark: &str| {
        let sentence = text(field, mark).unwrap_or_default();
        sentence.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    FlagDefinition {
        key,
        conflicts: names_of("x-conflicts"),
        requires: names_of("x-requires"),
        short,
        long: long.to_owned(),
        value_name,
        help: help(
            &text(field, "x-help").or_else(|| text(field, "description")).unwrap_or_default(),
            is_list,
        ),
        choices: choices
            .map(|(value, sentence)| (value, sentence.trim_end_matches('.').to_owned()))
            .collect(),
        is_list,
        is_integer: has_type("integer"),
        has_numbers: kind.pointer("/items/type").and_then(Value::as_str) == Some("number"),
    }
}

/// The description as plain text and without its unit, which the value's name says.
fn help(description: &str, is_list: bool) -> String {
    let message = description.replace('`', "").split_whitespace().collect::<Vec<_>>().join(" ");
    let end = message.find(" Unit:").unwrap_or(message.len());
    let several = if is_list { "; may be given several times" } else { "" };
    format!("{}{several}", message[..end].trim_end_matches('.'))
}

impl FlagDefinition {
    /// Sets the option's key in a tree to the values that were given; errors about it then name the option.
    pub fn set_in(&self, tree: &mut Node, given: &[String]) {
        let origin = Origin::Variable(format!("--{}", self.long).into());
        let node = |text: &String| Node { value: self.value_of(text), origin: origin.clone() };
        let value = match (self.value_name.is_some(), self.is_list) {
            (false, _) => Node { value: Tree::Bool(true), origin: origin.clone() },
            (true, true) => {
                Node { value: Tree::List(given.iter().map(node).collect()), origin: origin.clone() }
            }
            (true, false) => match given.last() {
                Some(text) => node(text),
                None => return,
            },
        };
        tree.set_path(&self.key, value);
    }

    fn value_of(&self, text: &str) -> Tree {
        match (text.parse(), text.parse()) {
            (Ok(number), _) if self.is_integer => Tree::Int(number),
            (_, Ok(number)) if self.has_numbers => Tree::Float(number),
            _ => Tree::Text(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Span;
    use serde::Deserialize;

    /// Whether toys are wound up.
    #[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Wound {
        /// Not at all.
        #[default]
        Never,
        /// In every run.
        Always,
    }

    #[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Toy {
        /// Wheels of the toy. Default: 4. Unit: wheels.
        #[schemars(extend("x-flag" = "-w, --wheels <N>"))]
        wheels: Option<u32>,
        /// Time for which it runs. Default: 1s. Unit: duration.
        #[schemars(extend("x-flag" = "--runs-for <DURATION>"))]
        runs_for: Option<Span>,
        /// Whether it is wound up. Default: never.
        #[schemars(extend("x-flag" = "--wound <WHEN>"))]
        wound: Wound,
        /// Words that it says. Default: none.
        #[schemars(extend("x-flag" = "--says <WORD>"))]
        says: Vec<String>,
        /// True if it is loud. Default: false.
        #[schemars(extend("x-flag" = "--loud", "x-help" = "Is it loud?"))]
        loud: bool,
        /// Its colour, which only a file says.
        colour: Option<String>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Box {
        /// The toy.
        toy: Toy,
    }

    /// The field is all that there is of an option: name, help, choices, value, errors and source follow from it.
    #[test]
    fn an_option_is_defined_by_its_field_alone() {
        let flags = flags_of::<Box>();
        let names: Vec<_> =
            flags.iter().map(|one| (one.short, one.long.as_str(), one.key.as_str())).collect();
        let expected = [
            (Some('w'), "wheels", "toy.wheels"),
            (None, "runs-for", "toy.runs_for"),
            (None, "wound", "toy.wound"),
            (None, "says", "toy.says"),
            (None, "loud", "toy.loud"),
        ];
        assert_eq!(names, expected);
        assert_eq!(
            (flags[0].help.as_str(), flags[0].value_name.as_deref()),
            ("Wheels of the toy. Default: 4", Some("N"))
        );
        let choices: Vec<_> =
            flags[2].choices.iter().map(|(value, message)| (value.as_str(), message.as_str())).collect();
        assert_eq!(choices, [("never", "Not at all"), ("always", "In every run")]);
        assert_eq!(flags[3].help, "Words that it says. Default: none; may be given several times");
        assert_eq!((flags[4].help.as_str(), flags[4].value_name.as_deref()), ("Is it loud?", None));

        let mut tree = Node::empty_mapping();
        let given: [&[&str]; 5] = [&["3"], &["2m"], &["always"], &["a", "b"], &[]];
        for (flag, values) in flags.iter().zip(given) {
            flag.set_in(&mut tree, &values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>());
        }
        let toy = Toy {
            wheels: Some(3),
            runs_for: Some(Span(120_000_000_000)),
            wound: Wound::Always,
            says: vec!["a".into(), "b".into()],
            loud: true,
            colour: None,
        };
        assert_eq!(tree.read::<Box>().unwrap(), Box { toy });
        let sources: Vec<String> =
            tree.list_leaves().iter().map(|(_, _, origin)| origin.to_string()).collect();
        assert_eq!(sources, ["--wheels", "--runs-for", "--wound", "--says", "--loud"]);

        flags[0].set_in(&mut tree, &["three".to_owned()]);
        let wrong = tree.read::<Box>().unwrap_err();
        assert_eq!(wrong.to_string(), "--wheels: \"three\": expected a whole number, 0 or more");
    }
}
