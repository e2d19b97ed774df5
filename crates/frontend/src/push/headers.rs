//! Headers for receivers that ask who sends. Their values are secrets.

use crate::push::error::BadHeaders;
use dyno_types::percent;
use dyno_types::secret::remember;

/// Headers that a push has anyway.
const OWN: [&str; 6] =
    ["content-type", "content-encoding", "content-length", "host", "user-agent", "transfer-encoding"];

/// Reads headers: lines `Name: value`, or one line of `name=value,name=value` with percent-encoded values, the form of
/// `OTEL_EXPORTER_OTLP_HEADERS`. Values are remembered as secrets, so that no message shows them.
///
/// # Errors
/// Another form, nothing, or a header of a push's own.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, BadHeaders> {
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let is_list = |line: &str| match (line.find('='), line.find(':')) {
        (Some(equals), Some(colon)) => equals < colon,
        (equals, _) => equals.is_some(),
    };
    let found = match lines[..] {
        [] => return Err(BadHeaders::Empty),
        [(number, line)] if is_list(line) => line
            .split(',')
            .map(|pair| of_list(pair).ok_or(BadHeaders::Line(number)))
            .collect::<Result<_, _>>(),
        _ => lines.iter().map(|(at, line)| of_line(line).ok_or(BadHeaders::Line(*at))).collect(),
    };
    let found: Vec<(String, String)> = found?;
    for ((name, _), at) in found.iter().zip(lines.iter().map(|(at, _)| *at).chain(std::iter::repeat(1))) {
        if OWN.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(BadHeaders::Taken(at));
        }
    }
    for (_, value) in &found {
        remember(value);
        // The token of `Bearer TOKEN` may be shown alone.
        value.rsplit_once(' ').into_iter().for_each(|(_, last)| remember(last));
    }
    Ok(found)
}

fn of_line(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    checked(name.trim(), value.trim().to_owned())
}

fn of_list(pair: &str) -> Option<(String, String)> {
    let (name, value) = pair.split_once('=')?;
    checked(name.trim(), String::from_utf8(percent::decode(value.trim())?).ok()?)
}

fn checked(name: &str, value: String) -> Option<(String, String)> {
    let name = ureq::http::HeaderName::from_bytes(name.as_bytes()).ok()?;
    let usable = !value.is_empty() && ureq::http::HeaderValue::from_str(&value).is_ok();
    usable.then(|| (name.as_str().to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::secret::conceal;

    fn pairs(list: &[(&str, &str)]) -> Result<Vec<(String, String)>, BadHeaders> {
        Ok(list.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    #[test]
    fn lines_and_the_list_of_opentelemetry() {
        let lines = "Authorization: Bearer token-of-mine=\n\n X-Scope-OrgID : 1:2\n";
        assert_eq!(
            parse(lines),
            pairs(&[("authorization", "Bearer token-of-mine="), ("x-scope-orgid", "1:2")])
        );
        let list = "authorization=Basic%20dXNlcjpzZWNyZXQ%3D,x-tenant=a:b";
        assert_eq!(parse(list), pairs(&[("authorization", "Basic dXNlcjpzZWNyZXQ="), ("x-tenant", "a:b")]));
        assert!(!conceal("x token-of-mine= x").contains("token-of-mine"), "a token is a secret by itself");
    }

    #[test]
    fn what_is_no_header_is_named_by_its_line() {
        for (text, error) in [
            ("", BadHeaders::Empty),
            (" \n", BadHeaders::Empty),
            ("a: b\nbearer", BadHeaders::Line(2)),
            ("a: ", BadHeaders::Line(1)),
            ("a b: c", BadHeaders::Line(1)),
            ("a=%ff", BadHeaders::Line(1)),
            ("a=b,c", BadHeaders::Line(1)),
            ("a: b\nContent-Type: text/plain", BadHeaders::Taken(2)),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
    }
}
