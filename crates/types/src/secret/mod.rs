//! Hides secrets before anything is written or printed.
//!
//! Two nets, one behind the other. **By place**: the value of a setting whose name says that it is secret, the password in a
//! URI, the word behind `--password` ([`mask_value`], [`mask_text`], [`mask_arguments`]). **By value**: what was found that way,
//! read from the environment or typed at the prompt is remembered ([`remember`]) and hidden wherever else it stands
//! ([`conceal`]).
//!
//! A password that is short or a common word, such as `redis`, is hidden by place alone: hidden by value it would take
//! `kind: redis` with it.

mod known;
mod text;

pub use known::{conceal, conceal_json, conceal_these, forget, remember, remember_variable, variables};
pub use text::{mask_arguments, mask_settings, mask_text};

/// Replacement of a secret.
pub const MASK: &str = "***";

/// Parts of the names of secret settings, properties, options and variables.
const SECRET: [&str; 10] = [
    "password",
    "passwd",
    "secret",
    "token",
    "passphrase",
    "credential",
    "pwd",
    "requirepass",
    "masterauth",
    // They hold tokens, such as AWS_SESSION_TOKEN.
    "mechanismproperties",
];

/// Returns whether a value under this name is a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // `--password-from` says where it is.
    let named = SECRET.iter().any(|word| name.contains(word));
    !name.ends_with("-from") && (named || name.ends_with("-pass") || name.ends_with("_pass"))
}

/// Returns whether a value under this name is the address of a database, which may hold a login.
fn is_address(name: &str) -> bool {
    let last = name.rsplit(['.', '_', '-']).next().unwrap_or(name).to_ascii_lowercase();
    ["target", "targets", "uri", "url"].contains(&last.as_str())
}

/// The value of a setting as it may be shown.
pub fn mask_value(name: &str, value: &str) -> String {
    match () {
        () if value.is_empty() => String::new(),
        () if is_secret(name) => MASK.to_owned(),
        // Rules of a user of Redis hold passwords, as they are or hashed.
        () if is_user(name) => mask_user(value),
        () if is_address(name) => mask_text(&text::mask_login(value)),
        () => mask_text(value),
    }
}

/// Secrets in `value`: the parts that `shown` has [`MASK`] for.
pub fn hidden<'a>(value: &'a str, shown: &str) -> Vec<&'a str> {
    let mut pieces = shown.split(MASK);
    let Some(mut rest) = pieces.next().and_then(|first| value.strip_prefix(first)) else { return Vec::new() };
    let mut found = Vec::new();
    let pieces: Vec<&str> = pieces.collect();
    for (i, piece) in pieces.iter().enumerate() {
        let at = if i + 1 == pieces.len() { rest.len().checked_sub(piece.len()) } else { rest.find(piece) };
        let Some(at) = at.filter(|at| rest.is_char_boundary(*at)) else { break };
        found.push(&rest[..at]);
        // A rule of a user of Redis has several passwords.
        let words = rest[..at].split_whitespace().map(|word| word.trim_matches('"'));
        found.extend(words.filter_map(|word| word.strip_prefix(['>', '<', '#', '!'])));
        rest = &rest[at + piece.len()..];
    }
    found.retain(|secret| !secret.is_empty() && *secret != MASK);
    found
}

/// Remembers the secrets in the value of a setting.
pub fn remember_value(name: &str, value: &str) {
    hidden(value, &mask_value(name, value)).into_iter().for_each(remember);
}

/// Remembers the secrets in a command line.
pub fn remember_arguments(arguments: &[String]) {
    let shown = mask_arguments(arguments);
    arguments.iter().zip(&shown).flat_map(|(word, shown)| hidden(word, shown)).for_each(remember);
}

/// The command line of this process without its secrets, for what is written.
pub fn own_command_line() -> Vec<String> {
    mask_arguments(&std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
}

/// A rule of a Redis user (`NAME on >PASSWORD ~* +@all`) with nothing but the name where it may hold a password, as it is or
/// hashed. What is no such rule stays as it is.
pub fn mask_user(rule: &str) -> String {
    let rule = rule.trim_start();
    let name = rule.split(char::is_whitespace).next().unwrap_or_default();
    match rule[name.len()..].contains(['>', '<', '#', '!']) {
        true => format!("{name} {MASK}"),
        false => rule.to_owned(),
    }
}

/// Returns whether a setting of this name (`server.options.user`) is such a rule.
pub fn is_user(key: &str) -> bool {
    key.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case("user"))
}

#[cfg(test)]
mod tests;
