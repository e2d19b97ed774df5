//! Corner cases of the grammar, and properties of the parser.

use crate::properties::*;
use proptest::prelude::*;
use std::fmt::Write;

fn pairs(text: &str) -> Vec<(String, String)> {
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    parse(&latin).unwrap().into_iter().map(|e| (e.key, e.value)).collect()
}

fn one(text: &str) -> (String, String) {
    let mut pairs = pairs(text);
    assert_eq!(pairs.len(), 1, "{text:?}: {pairs:?}");
    pairs.remove(0)
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[test]
fn separators() {
    assert_eq!(one("tagpairdelimiter=="), pair("tagpairdelimiter", "="));
    assert_eq!(one("deletedelimiter=:"), pair("deletedelimiter", ":"));
    for text in ["a=b", "a:b", "a b", "a\tb", "a\x0cb", "a = b", "a : b", "  a=  b", "a\t \x0c=\tb"] {
        assert_eq!(one(text), pair("a", "b"), "{text:?}");
    }
    assert_eq!(one("a = = b"), pair("a", "= b"));
    assert_eq!(one("a :=b"), pair("a", "=b"));
    assert_eq!(one("a"), pair("a", ""));
    assert_eq!(one("a="), pair("a", ""));
    assert_eq!(one("=b"), pair("", "b"));
    assert_eq!(one("a b=c"), pair("a", "b=c"));
    assert_eq!(one(r"a\=b\:c\ d=e"), pair("a=b:c d", "e"));
    assert_eq!(one(r"a\\=b"), pair(r"a\", "b"));
    assert_eq!(one(r"\#a=b"), pair("#a", "b"));
}

#[test]
fn white_space_after_a_value_is_kept() {
    assert_eq!(one("fieldcount=10 "), pair("fieldcount", "10 "));
    assert_eq!(one("fieldcount= \t10 \t\r\n"), pair("fieldcount", "10 \t"));
    assert_eq!(one("a=\\  b"), pair("a", "  b"));
}

#[test]
fn comments_and_blank_lines() {
    assert_eq!(pairs("# x=1\n! y=2\n  # z=3\n\n \t\x0c\n"), []);
    // The backslash at the end of a comment continues nothing; a # in a continuation starts no comment.
    assert_eq!(one("# x \\\na=b"), pair("a", "b"));
    assert_eq!(one("a=b\\\n  #c"), pair("a", "b#c"));
    assert_eq!(one("a=b # no comment"), pair("a", "b # no comment"));
    assert_eq!(pairs("#"), []);
    assert_eq!(pairs(""), []);
}

#[test]
fn continuation() {
    assert_eq!(one("a=b,\\\n  c,\\\r\n\td"), pair("a", "b,c,d"));
    assert_eq!(one("fruits   apple, \\\rpear"), pair("fruits", "apple, pear"));
    assert_eq!(pairs("a=b\\\n\nc=d"), [pair("a", "b"), pair("c", "d")]);
    assert_eq!(pairs("a=b\\\\\nc=d"), [pair("a", r"b\"), pair("c", "d")]);
    assert_eq!(one("a=b\\"), pair("a", "b"));
    assert_eq!(one("a=b\\\n"), pair("a", "b"));
    assert_eq!(one("a\\\n=b"), pair("a", "b"));
    assert_eq!(pairs("\\\n#a=b"), []);
    assert_eq!(pairs("\\\n\n#a=b"), []);
    assert_eq!(pairs("\\"), []);
}

#[test]
fn escapes_and_encoding() {
    assert_eq!(one(r"a=\t\n\r\f\q\\\u0041"), pair("a", "\t\n\r\x0cq\\A"));
    assert_eq!(one("a=\u{e9}\u{ff}"), pair("a", "\u{e9}\u{ff}"));
    assert_eq!(parse(&[b'a', b'=', 0xc3, 0xa9]).unwrap()[0].value, "\u{c3}\u{a9}");
    assert_eq!(one(r"a=\ud83d\uDE00!"), pair("a", "\u{1f600}!"));
    assert_eq!(one(r"a=\\u0041"), pair("a", r"\u0041"));
    assert_eq!(one(r"\u0061=b"), pair("a", "b"));
}

#[test]
fn lines_are_counted() {
    let text = b"# one\r\n\r\na=1\rb=2\\\n 3\nc=4\na=5";
    let lines: Vec<(String, u32)> = parse(text).unwrap().into_iter().map(|e| (e.key, e.line)).collect();
    assert_eq!(lines, [("a".to_owned(), 7), ("b".to_owned(), 4), ("c".to_owned(), 6)]);
}

#[test]
fn keys_are_case_sensitive_and_the_last_wins() {
    assert_eq!(pairs("A=1\na=2\nA=3"), [pair("A", "3"), pair("a", "2")]);
}

#[test]
fn faults_name_the_line() {
    let fault = |text: &[u8]| parse(text).unwrap_err().to_string();
    assert!(fault(b"\na=\\u00g1").starts_with("line 2: \\u without four hexadecimal digits"));
    assert!(fault(b"a=\\u00").starts_with("line 1: "));
    assert!(fault(b"a=1\nb=\\ud83d").starts_with("line 2: \\ud83d is half"));
    let mut long = b"a=1\n\nb=".to_vec();
    long.resize(LINE_BYTES + 8, b'x');
    assert_eq!(fault(&long), format!("line 3: longer than {LINE_BYTES} bytes"));
}

/// As `java.util.Properties` of JDK 17 reads them.
#[test]
fn a_line_of_nothing_but_a_backslash_has_not_begun() {
    let read = |text: &str| -> Vec<(String, String)> {
        parse(text.as_bytes()).unwrap().into_iter().map(|one| (one.key, one.value)).collect()
    };
    let one = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
    assert_eq!(read("\\\n# a comment\nx=1\n"), one("x", "1"));
    assert_eq!(read("  \\\n\\\n! a comment \\\nx=1\n"), one("x", "1"));
    assert_eq!(read("a\\\n#=1\n"), one("a#", "1"));
    assert_eq!(read("\\\n\nx=1\n"), one("x", "1"));
    // Java takes a byte order mark for a part of the first name.
    assert_eq!(read("\u{feff}x=1"), one("\u{ef}\u{bb}\u{bf}x", "1"));
}

#[test]
fn files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w");
    std::fs::write(&path, "a=1").unwrap();
    assert_eq!(read_file(&path).unwrap().len(), 1);
    assert!(matches!(read_file(&folder.path().join("none")), Err(PropertiesError::Io(_))));
    let endless = read_file(Path::new("/dev/zero")).unwrap_err();
    assert_eq!(endless.to_string(), "it is longer than 16 MiB, the most that is read of it");
}

/// Writes a pair as `java.util.Properties.store` would.
fn escape(text: &str, is_key: bool) -> String {
    let mut out = String::new();
    for (i, c) in text.chars().enumerate() {
        match c {
            ' ' if is_key || i == 0 => out.push_str("\\ "),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\x0c' => out.push_str("\\f"),
            '=' | ':' | '#' | '!' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04X}").unwrap();
                }
            }
        }
    }
    out
}

proptest! {
    #[test]
    fn written_and_read_back(
        entries in proptest::collection::btree_map(any::<String>(), any::<String>(), 1..8),
        separator in "[ \t]{0,2}[=: ][ \t]{0,2}",
        end in "\r\n|\n|\r",
    ) {
        let mut text = String::new();
        for (key, value) in &entries {
            write!(text, "{}{separator}{}{end}", escape(key, true), escape(value, false)).unwrap();
        }
        let read: std::collections::BTreeMap<String, String> =
            parse(text.as_bytes()).unwrap().into_iter().map(|e| (e.key, e.value)).collect();
        // A blank separator before an empty key is white space at the start of the line.
        let all_blank = separator.trim().is_empty();
        prop_assume!(!(all_blank && entries.contains_key("")));
        prop_assert_eq!(read, entries);
    }

    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn no_text_panics(text in "[a=: \t\\\\u0d8\r\n#!]{0,60}") {
        if let Ok(entries) = parse(text.as_bytes()) {
            let lines = text.matches(['\r', '\n']).count() as u32 + 1;
            for entry in entries {
                prop_assert!((1..=lines).contains(&entry.line));
            }
        }
    }
}
