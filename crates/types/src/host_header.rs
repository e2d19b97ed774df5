//! The `Host` field of requests: servers of pages answer only under names of their own, so that no other site's page reaches them
//! through a name that leads here (DNS rebinding).

use std::net::IpAddr;

/// The host of `Host: host:port`, without brackets and port; `None` if the field is none.
pub fn parse_host(field: &str) -> Option<&str> {
    match field.strip_prefix('[') {
        Some(rest) => {
            let (inner, rest) = rest.split_once(']')?;
            (rest.is_empty() || is_port(rest.strip_prefix(':')?)).then_some(inner)
        }
        None => match field.split_once(':') {
            Some((name, digits)) => is_port(digits).then_some(name),
            None => Some(field),
        },
    }
}

fn is_port(digits: &str) -> bool {
    digits.parse::<u16>().is_ok()
}

/// Returns whether a name is the loopback's.
pub fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_with_and_without_its_port() {
        for (field, name) in [
            ("a.example", Some("a.example")),
            ("a.example:80", Some("a.example")),
            ("[::1]", Some("::1")),
            ("[::1]:80", Some("::1")),
            ("a:b", None),
            ("[::1", None),
            ("[::1]x", None),
            ("", Some("")),
        ] {
            assert_eq!(parse_host(field), name, "{field}");
        }
        assert_eq!(
            ["localhost", "LOCALHOST", "127.8.0.1", "::1", "", "a", "10.0.0.1"].map(is_loopback),
            [true, true, true, true, false, false, false]
        );
    }
}
