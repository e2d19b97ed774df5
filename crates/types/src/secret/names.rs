//! Which names say that a value is a secret, or holds one.

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
pub(super) fn is_address(name: &str) -> bool {
    let last = name.rsplit(['.', '_', '-']).next().unwrap_or(name).to_ascii_lowercase();
    ["target", "targets", "uri", "url"].contains(&last.as_str())
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
