//! Secret values of this process, and hiding them by value.

use super::names::MASK;
use crate::percent;
use std::borrow::Cow;
use std::sync::RwLock;

/// Values that are hidden, the longest first.
static VALUES: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Environment variables that a password was read from.
static VARIABLES: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Fewest characters of a secret that is hidden by its value.
const LEAST: usize = 6;

/// Returns whether a value can be told from ordinary words and figures: six characters of two kinds, or twelve that
/// are not all digits.
fn is_distinctive(value: &str) -> bool {
    let kinds: [fn(char) -> bool; 4] = [
        |c| c.is_lowercase(),
        |c| c.is_uppercase(),
        |c| c.is_numeric(),
        |c| !c.is_alphanumeric() && !c.is_whitespace(),
    ];
    let count = value.chars().count();
    let kinds = kinds.iter().filter(|is| value.chars().any(is)).count();
    let figure = value.chars().all(|c| c.is_numeric() || ".,:+-_".contains(c));
    !figure && !value.contains(MASK) && (count >= LEAST && kinds >= 2 || count >= 2 * LEAST)
}

/// Returns the forms of a secret in a text: as it is, and as URIs, JSON and YAML write it.
fn forms(secret: &str) -> Vec<String> {
    let encoded = percent::percent_encode(secret, percent::RESERVED);
    let escaped = secret.replace('\\', "\\\\").replace('"', "\\\"");
    let mut forms = vec![secret.to_owned(), encoded, escaped, secret.replace('\'', "''")];
    forms.extend(decoded(secret));
    forms.sort();
    forms.dedup();
    forms.retain(|form| is_distinctive(form));
    forms
}

/// The text without percent-encoding; none where it has none, or is no text.
fn decoded(text: &str) -> Option<String> {
    // One that has a % of its own may stand decoded all the same.
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8().ok()?;
    Some(decoded.into_owned()).filter(|whole| whole != text)
}

/// Hides a value from now on, in every form in which it may stand. What is short or a common word is not hidden by its value.
pub fn remember(secret: &str) {
    let mut values = VALUES.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    for form in forms(secret) {
        if !values.contains(&form) {
            values.push(form);
        }
    }
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
}

/// Forgets every value: each of them would slow a process that parses texts without end, such as a fuzzer.
pub fn forget() {
    VALUES.write().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
}

/// A text without the secrets that are remembered.
pub fn conceal(text: &str) -> Cow<'_, str> {
    replaced(text, &VALUES.read().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// A text without these secrets, where they are neither short nor common words.
pub fn conceal_these(text: &str, secrets: &[&str]) -> String {
    let mut values: Vec<String> = secrets.iter().flat_map(|secret| forms(secret)).collect();
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    replaced(text, &values).into_owned()
}

fn replaced<'a>(text: &'a str, values: &[String]) -> Cow<'a, str> {
    let mut shown = Cow::Borrowed(text);
    for value in values {
        if shown.contains(value.as_str()) {
            shown = Cow::Owned(shown.replace(value.as_str(), MASK));
        }
    }
    shown
}

/// JSON without the secrets that are remembered, its keys as they are.
pub fn conceal_json(json: &str) -> Cow<'_, str> {
    let values = VALUES.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !values.iter().any(|value| json.contains(value.as_str())) {
        return Cow::Borrowed(json);
    }
    let (mut out, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(begin) = rest.find('"') {
        let text = &rest[begin + 1..];
        let mut escaped = false;
        let end = text.find(|c: char| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let Some(end) = end else { break };
        out.push_str(&rest[..=begin]);
        rest = &text[end..];
        match rest[1..].trim_start().starts_with(':') {
            true => out.push_str(&text[..end]),
            false => out.push_str(&replaced(&text[..end], &values)),
        }
        out.push('"');
        rest = &rest[1..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Notes a variable that a password was read from: programs that dyno starts do not inherit it.
pub fn remember_variable(name: &str) {
    let mut names = VARIABLES.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    names.push(name.to_owned());
}

/// Variables that a password was read from.
pub fn variables() -> Vec<String> {
    VARIABLES.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
}
