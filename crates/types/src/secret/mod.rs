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
mod names;
mod text;

pub use known::{conceal, conceal_json, conceal_these, forget, remember, remember_variable, variables};
pub use names::{MASK, is_secret, is_user, mask_user};
pub use text::{mask_arguments, mask_settings, mask_text, mask_value};

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

#[cfg(test)]
mod tests;
