//! Arguments of commands: literal words, generators as in documents, and `%{...}` in words.

use crate::template::fields::{Bad, bad};
use crate::template::values::{Scope, constant_bytes, generator, value};
use crate::template::words::{generator_end, split_words};
use crate::yaml::{Yaml, YamlNode};
use dyno_types::suggest::hint;
use dyno_workload::command_mix::{ArgumentText, NumberedText, TextPart};
use dyno_workload::template::ValueTemplate;

/// Most elements that an array of arguments may have.
const ELEMENTS: u32 = 10_000;

/// Names that arguments of an operation may use.
pub(super) struct ArgumentScope<'a> {
    /// Key spaces and files.
    pub values: &'a Scope,
    /// Values that the operation draws once.
    pub bound: Vec<String>,
    /// Kept replies of the steps before.
    pub kept: Vec<String>,
}

/// A command: a list of words, or one line of them.
pub(super) fn command(node: &YamlNode, names: &ArgumentScope<'_>) -> Result<Vec<ArgumentText>, Bad> {
    let words = match node.value() {
        Yaml::List(all) => {
            let mut words = Vec::new();
            for one in all {
                arguments(one, names, &mut words)?;
            }
            words
        }
        Yaml::Text(line) => {
            let split =
                split_words(line.as_bytes()).map_err(|why| (node.line(), format!("{line:?}: {why}")))?;
            split.iter().map(|word| text(word, node, names)).collect::<Result<_, _>>()?
        }
        _ => return bad(node, format!("command: {}: expected a list of words, or a line", node.word())),
    };
    match words.first().map(Vec::as_slice) {
        Some([TextPart::Literal(_)]) => Ok(words),
        Some(_) => bad(node, "command: expected a literal word first, the command's name"),
        None => bad(node, "command: nothing: expected a command and its arguments"),
    }
}

/// Appends the argument that a value stands for; an array of a fixed length stands for several.
pub(super) fn arguments(
    node: &YamlNode,
    names: &ArgumentScope<'_>,
    out: &mut Vec<ArgumentText>,
) -> Result<(), Bad> {
    match node.value() {
        Yaml::Text(word) => out.push(text(word.as_bytes(), node, names)?),
        // YAML reads `y`, `n`, `on` and `off` so, too.
        Yaml::Bool(_) => return bad(node, format!("{}: put the word into quotes to send it", node.word())),
        Yaml::Null => return bad(node, "an argument is missing: expected a word, a number or a generator"),
        Yaml::Map(all) if matches!(&all[..], [(name, _)] if name == "$user") => {
            out.push(vec![TextPart::User])
        }
        Yaml::Map(all) if matches!(&all[..], [(name, _)] if name == "$sent") => {
            out.push(vec![TextPart::Sent])
        }
        Yaml::Map(_) | Yaml::List(_) => match value(node, names.values)? {
            ValueTemplate::Array((least, most), of) if least == most && most <= ELEMENTS => {
                out.extend((0..most).map(|_| vec![TextPart::Value((*of).clone())]));
            }
            ValueTemplate::Array(..) => {
                let message = format!("$array in a command: expected a fixed length of at most {ELEMENTS}");
                return bad(node, message);
            }
            one => out.push(vec![TextPart::Value(one)]),
        },
        _ => out.push(vec![TextPart::Literal(constant_bytes(node))]),
    }
    Ok(())
}

/// Exactly one argument.
pub(super) fn one_argument(node: &YamlNode, names: &ArgumentScope<'_>) -> Result<ArgumentText, Bad> {
    let mut all = Vec::new();
    arguments(node, names, &mut all)?;
    match all.pop() {
        Some(one) if all.is_empty() => Ok(one),
        _ => bad(node, "expected one value, not an array"),
    }
}

/// A word with `%{...}` in it.
pub(super) fn text(word: &[u8], node: &YamlNode, names: &ArgumentScope<'_>) -> Result<ArgumentText, Bad> {
    pieces(word, node, &mut |body| named(body, node, names))
        .map(|parts| if parts.is_empty() { vec![TextPart::Literal(Vec::new())] } else { parts })
}

/// The form of a key space's keys: a word with `%{n}` in it, or `%{n:DIGITS}`.
pub(super) fn key_format(word: &str, node: &YamlNode) -> Result<Vec<NumberedText>, Bad> {
    let mut digits = Vec::new();
    let parts = pieces(word.as_bytes(), node, &mut |body| {
        let (name, least) = body.split_once(':').unwrap_or((body, "0"));
        match least.trim().parse() {
            Ok(least @ 0..=40) if name == "n" => {
                digits.push(least);
                Ok(TextPart::User)
            }
            _ => bad(
                node,
                format!("%{{{body}}}: the form of keys has %{{n}}, or %{{n:DIGITS}} with leading zeros"),
            ),
        }
    })?;
    if digits.is_empty() {
        return bad(node, format!("{word:?}: expected %{{n}} in it, the number of the key"));
    }
    let mut digits = digits.into_iter();
    let part = |part: TextPart| match part {
        TextPart::Literal(bytes) => NumberedText::Literal(bytes),
        _ => NumberedText::Number(digits.next().unwrap_or(0)),
    };
    Ok(parts.into_iter().map(part).collect())
}

/// Takes a word apart; `read` reads what stands between `%{` and `}`, and `%%{` is literal.
fn pieces(
    word: &[u8],
    node: &YamlNode,
    read: &mut dyn FnMut(&str) -> Result<TextPart, Bad>,
) -> Result<Vec<TextPart>, Bad> {
    let mut parts = Vec::new();
    let mut literal = Vec::new();
    let mut at = 0;
    while at < word.len() {
        if word[at..].starts_with(b"%%{") {
            literal.extend_from_slice(b"%{");
            at += 3;
        } else if word[at..].starts_with(b"%{") {
            let Some(end) = generator_end(word, at) else { return bad(node, "%{ is not closed: expected }") };
            if !literal.is_empty() {
                parts.push(TextPart::Literal(std::mem::take(&mut literal)));
            }
            let body = String::from_utf8_lossy(&word[at + 2..end - 1]).into_owned();
            parts.push(read(body.trim())?);
            at = end;
        } else {
            literal.push(word[at]);
            at += 1;
        }
    }
    if !literal.is_empty() {
        parts.push(TextPart::Literal(literal));
    }
    Ok(parts)
}

/// A name, or a generator with its arguments: `int:1-9`, `oneOf:a|b`, or as YAML: `string:{length: 9, distinct: 5}`.
fn named(body: &str, node: &YamlNode, names: &ArgumentScope<'_>) -> Result<TextPart, Bad> {
    let number = |of: &[String]| of.iter().position(|one| one == body).map(|at| at as u16);
    if let Some(bound) = number(&names.bound) {
        return Ok(TextPart::Bound(bound));
    }
    if let Some(kept) = number(&names.kept) {
        return Ok(TextPart::Reply(kept));
    }
    if body == "user" {
        return Ok(TextPart::User);
    }
    if body == "sent" {
        return Ok(TextPart::Sent);
    }
    let (name, given) = body.split_once(':').map_or((body, ""), |(name, given)| (name.trim(), given.trim()));
    let generator_name = format!("${name}");
    if !Scope::knows(&generator_name) {
        let mut known: Vec<&str> = names.bound.iter().chain(&names.kept).map(String::as_str).collect();
        Scope::generators().for_each(|name| known.push(name));
        known.extend(["user", "sent"]);
        let near = hint(name, known.iter().copied());
        return bad(node, format!("%{{{body}}}: unknown name {name:?}{near}; %%{{ is a literal %{{"));
    }
    let yaml = short_form(given);
    let inner: YamlNode = serde_saphyr::from_str(&yaml).map_err(|why| {
        (node.line(), format!("%{{{body}}}: {}", why.to_string().lines().next().unwrap_or("")))
    })?;
    let drawn = generator(&generator_name, &inner, node, names.values)
        .map_err(|(_, why)| (node.line(), format!("%{{{body}}}: {why}")))?;
    Ok(TextPart::Value(drawn))
}

/// `1-9` and `a|b` as lists of YAML; anything else is YAML.
fn short_form(given: &str) -> String {
    if given.is_empty() {
        return "null".into();
    }
    if given.contains('|') && !given.starts_with(['{', '[', '"', '\'']) {
        return format!("[{}]", given.replace('|', ", "));
    }
    let numeric = |text: &str| !text.is_empty() && text.parse::<f64>().is_ok();
    let cut = given
        .char_indices()
        .skip(1)
        .find(|(at, c)| *c == '-' && numeric(&given[..*at]) && numeric(&given[at + 1..]));
    match cut {
        Some((at, _)) => format!("[{}, {}]", &given[..at], &given[at + 1..]),
        None => given.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_are_lists() {
        for (given, yaml) in [
            ("1-9", "[1, 9]"),
            ("-5--1", "[-5, -1]"),
            ("0.5-1.5", "[0.5, 1.5]"),
            ("a|b|c", "[a, b, c]"),
            ("20", "20"),
            ("", "null"),
            ("{length: 5}", "{length: 5}"),
            ("2024-01-01", "2024-01-01"),
            ("users", "users"),
        ] {
            assert_eq!(short_form(given), yaml, "{given}");
        }
    }
}
