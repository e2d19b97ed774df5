//! Percent-encoding, by the crate `percent-encoding`. That crate takes a `%` without digits for itself; here it is refused.

pub use percent_encoding::AsciiSet;

/// Characters that are encoded in any part of a URI: all but letters, digits and `-._~`.
pub const RESERVED: &AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes the bytes of a set, and all that are not ASCII.
pub fn percent_encode(text: &str, set: &'static AsciiSet) -> String {
    percent_encoding::utf8_percent_encode(text, set).to_string()
}

/// Decodes `%XX`; everything else stands for itself. `None` if two hexadecimal digits do not follow a `%`.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let encoded = |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    text.split('%').skip(1).all(encoded).then(|| percent_encoding::percent_decode_str(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let text = "a b/%é~-._";
        assert_eq!(percent_encode(text, RESERVED), "a%20b%2F%25%C3%A9~-._");
        assert_eq!(decode(&percent_encode(text, RESERVED)).unwrap(), text.as_bytes());
        const PATH: &AsciiSet = &RESERVED.remove(b'/').add(b'~');
        assert_eq!(percent_encode(text, PATH), "a%20b/%25%C3%A9%7E-._");
        assert_eq!(decode("%fF%00+").unwrap(), [255, 0, b'+']);
        for bad in ["%", "a%2", "%zz", "%%41", "%+1", "%é"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
