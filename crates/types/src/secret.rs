//! What hides secrets that no name gives away.

/// A rule of a Redis user (`NAME on >PASSWORD ~* +@all`) with nothing but the name where it may hold a password, as it is or
/// hashed. What is no such rule stays as it is.
pub fn mask_user(rule: &str) -> String {
    let rule = rule.trim_start();
    let name = rule.split(char::is_whitespace).next().unwrap_or_default();
    match rule[name.len()..].contains(['>', '<', '#', '!']) {
        true => format!("{name} ***"),
        false => rule.to_owned(),
    }
}

/// Whether a setting of this name (`server.options.user`) is such a rule.
pub fn is_user(key: &str) -> bool {
    key.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case("user"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_rule_the_name_stays() {
        assert_eq!(mask_user("a on >pw ~* +@all"), "a ***");
        assert_eq!(mask_user("a on \">my secret\" ~*"), "a ***");
        assert_eq!(mask_user("a\ton\t#12ab"), "a ***");
        assert_eq!(mask_user("bob"), "bob");
        assert_eq!(mask_user("default off"), "default off");
        assert!(is_user("server.options.User") && is_user("user") && !is_user("users"));
    }
}
