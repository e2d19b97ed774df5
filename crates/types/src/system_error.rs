//! Errors of the system in messages to people.

use std::borrow::Cow;

/// What the standard library puts behind the words of an error of the system.
const NUMBER: &str = " (os error ";

/// A message without the numbers of errors: `No such file or directory (os error 2)` says nothing more by its number.
pub fn without_numbers(text: &str) -> Cow<'_, str> {
    let Some((first, mut rest)) = text.split_once(NUMBER) else { return text.into() };
    let mut out = first.to_owned();
    loop {
        let digits = rest.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit());
        match digits.strip_prefix(')').filter(|_| digits.len() < rest.len()) {
            Some(after) => rest = after,
            None => out.push_str(NUMBER),
        }
        let Some((before, after)) = rest.split_once(NUMBER) else { break };
        out.push_str(before);
        rest = after;
    }
    out.push_str(rest);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_errors_go_and_everything_else_stays() {
        let shown = |text: &str| without_numbers(text).into_owned();
        let error = std::io::Error::from_raw_os_error(2).to_string();
        assert!(error.ends_with(" (os error 2)"), "{error}");
        assert_eq!(shown(&format!("x.yaml: {error}")), "x.yaml: No such file or directory");
        assert_eq!(shown("a (os error 2): b (os error 13)!"), "a: b!");
        for text in ["a (os error two)", "a (os error )", "(os error 2)", "a (os error 2", "no error"] {
            assert_eq!(shown(text), text);
        }
    }
}
