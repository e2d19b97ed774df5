//! Commands that are lines of text, as people type them into a connection.

use super::Unreadable;
use crate::entry::Arguments;

/// Appends the words of a line, read as the server does: double quotes know escapes, single quotes only `\'`.
pub(crate) fn read_inline(line: &[u8], into: &mut Arguments) -> Result<(), Unreadable> {
    let mut at = 0;
    let mut word = Vec::new();
    loop {
        while line.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if at >= line.len() {
            return Ok(());
        }
        word.clear();
        while let Some(&byte) = line.get(at) {
            match byte {
                b'"' | b'\'' => {
                    at = read_quoted(line, at, &mut word)?;
                    if line.get(at).is_some_and(|byte| !byte.is_ascii_whitespace()) {
                        return Err(Unreadable);
                    }
                    break;
                }
                byte if byte.is_ascii_whitespace() => break,
                byte => {
                    word.push(byte);
                    at += 1;
                }
            }
        }
        into.push_word(&word);
    }
}

/// Appends the text of the quotes that open at `at`; returns the place behind them.
fn read_quoted(line: &[u8], at: usize, word: &mut Vec<u8>) -> Result<usize, Unreadable> {
    let quote = line[at];
    let mut at = at + 1;
    loop {
        match (line.get(at), line.get(at + 1)) {
            (None, _) => return Err(Unreadable),
            (Some(byte), _) if *byte == quote => return Ok(at + 1),
            (Some(b'\\'), Some(b'\'')) if quote == b'\'' => {
                word.push(b'\'');
                at += 2;
            }
            (Some(b'\\'), Some(letter)) if quote == b'"' => {
                let digits = line.get(at + 2..at + 4).and_then(|two| std::str::from_utf8(two).ok());
                let hex = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
                if let (b'x', Some(byte)) = (letter, hex) {
                    word.push(byte);
                    at += 4;
                    continue;
                }
                word.push(match letter {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    other => *other,
                });
                at += 2;
            }
            (Some(byte), _) => {
                word.push(*byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_the_server_does() {
        let read = |line: &str| {
            let mut arguments = Arguments::default();
            read_inline(line.as_bytes(), &mut arguments)?;
            Ok(arguments.words().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>())
        };
        assert_eq!(
            read("SET  a \"b c\\n\\x41\\\"\" 'd\\' e'  "),
            Ok(vec!["SET".into(), "a".into(), "b c\nA\"".into(), "d' e".into()])
        );
        assert_eq!(read("  "), Ok(vec![]));
        assert_eq!(read("a\"b c\" \"\""), Ok(vec!["ab c".into(), String::new()]));
        for wrong in ["a \"b", "a 'b", "a \"b\"c", "a \"\\"] {
            assert_eq!(read(wrong), Err(Unreadable), "{wrong}");
        }
    }
}
