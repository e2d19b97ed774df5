//! A command line into words, with the quotes of `redis-cli`.

use crate::template::command_text_error::CommandTextError;

/// Splits a line at spaces. Double quotes keep spaces and know `\n`, `\r`, `\t`, `\a`, `\b`, `\xHH`, `\\` and `\"`; single quotes
/// keep everything but `\'`. A closing quote ends a word. `%{...}` is one piece, spaces included.
///
/// # Errors
/// A quote is not closed, or text follows one.
pub fn split_words(line: &[u8]) -> Result<Vec<Vec<u8>>, CommandTextError> {
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if at == line.len() {
            return Ok(words);
        }
        let mut word = Vec::new();
        while let Some(&c) = line.get(at) {
            match c {
                b'"' | b'\'' if word.is_empty() => {
                    at = quoted(line, at, &mut word)?;
                    if line.get(at).is_some_and(|c| !c.is_ascii_whitespace()) {
                        return Err(CommandTextError::BehindQuote);
                    }
                    break;
                }
                b'%' if line[at..].starts_with(b"%{") => {
                    let end = generator_end(line, at).ok_or(CommandTextError::OpenGenerator)?;
                    word.extend_from_slice(&line[at..end]);
                    at = end;
                }
                c if c.is_ascii_whitespace() => break,
                c => {
                    word.push(c);
                    at += 1;
                }
            }
        }
        words.push(word);
    }
}

/// The position after the `}` that closes the `%{` at `at`.
pub(super) fn generator_end(text: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0;
    for (offset, c) in text[at..].iter().enumerate() {
        match c {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(at + offset + 1),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Appends the text of the quotes that open at `at`; returns the position after them.
fn quoted(line: &[u8], at: usize, word: &mut Vec<u8>) -> Result<usize, CommandTextError> {
    let quote = line[at];
    let mut at = at + 1;
    while let Some(&c) = line.get(at) {
        let next = line.get(at + 1).copied();
        match (c, next) {
            (c, _) if c == quote => return Ok(at + 1),
            (b'\\', Some(b'\'')) if quote == b'\'' => {
                word.push(b'\'');
                at += 2;
            }
            (b'\\', Some(b'x')) if quote == b'"' && hex_byte(line, at + 2).is_some() => {
                word.extend(hex_byte(line, at + 2));
                at += 4;
            }
            (b'\\', Some(c)) if quote == b'"' => {
                word.push(match c {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => other,
                });
                at += 2;
            }
            (c, _) => {
                word.push(c);
                at += 1;
            }
        }
    }
    Err(CommandTextError::OpenQuote(char::from(quote)))
}

fn hex_byte(line: &[u8], at: usize) -> Option<u8> {
    let digits = std::str::from_utf8(line.get(at..at + 2)?).ok()?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_redis_cli() {
        let split = |line: &str| split_words(line.as_bytes());
        let text = |line: &str| -> Vec<String> {
            split(line).unwrap().into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
        };
        assert_eq!(text("  SET  a b "), ["SET", "a", "b"]);
        assert_eq!(text(r#"SET "a b" 'c "d" \' e' """#), ["SET", "a b", "c \"d\" ' e", ""]);
        assert_eq!(split(r#"SET "\x00\xffk\n" v"#).unwrap()[1], [0, 0xff, b'k', b'\n']);
        assert_eq!(
            text("SET {t}:%{key: users} %{int:[1, {a: 2}]}x"),
            ["SET", "{t}:%{key: users}", "%{int:[1, {a: 2}]}x"]
        );
        assert_eq!(text("SET it's x\"y"), ["SET", "it's", "x\"y"]);
        assert!(split("SET \"a").unwrap_err().to_string().contains("not closed"));
        assert!(split("SET \"a\"b").unwrap_err().to_string().contains("space"));
        assert!(split("SET %{int:1-2").unwrap_err().to_string().contains("%{"));
        assert!(split("").unwrap().is_empty());
    }
}
