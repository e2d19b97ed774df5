//! A command as redis-cli takes it apart: words between blanks, quotes of both kinds, escapes in double ones.

/// Splits a command into words; `None` where quotes do not match.
pub(super) fn split(text: &str) -> Option<Vec<Vec<u8>>> {
    let (mut all, mut rest) = (Vec::new(), text.as_bytes());
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(all);
        }
        let mut word = Vec::new();
        while let Some((&first, behind)) = rest.split_first() {
            match first {
                b'"' | b'\'' => {
                    rest = quoted(first, behind, &mut word)?;
                    // Nothing may follow a closing quote at once.
                    if rest.first().is_some_and(|next| !next.is_ascii_whitespace()) {
                        return None;
                    }
                    break;
                }
                _ if first.is_ascii_whitespace() => break,
                _ => {
                    word.push(first);
                    rest = behind;
                }
            }
        }
        all.push(word);
    }
}

/// Appends what stands in quotes and returns what is behind them.
fn quoted<'a>(mark: u8, mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (&first, behind) = rest.split_first()?;
        rest = behind;
        match first {
            _ if first == mark => return Some(rest),
            b'\\' if mark == b'"' => {
                if let [b'x', high, low, behind @ ..] = rest
                    && let (Some(high), Some(low)) = (digit(*high), digit(*low))
                {
                    word.push(high << 4 | low);
                    rest = behind;
                    continue;
                }
                let (&escaped, behind) = rest.split_first()?;
                rest = behind;
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => other,
                });
            }
            b'\\' if rest.first() == Some(&b'\'') => {
                word.push(b'\'');
                rest = &rest[1..];
            }
            _ => word.push(first),
        }
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_quotes() {
        let words = |text: &str| {
            split(text)
                .map(|all| all.iter().map(|w| String::from_utf8_lossy(w).into_owned()).collect::<Vec<_>>())
        };
        let some = |all: &[&str]| Some(all.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert_eq!(words(" SET  a b "), some(&["SET", "a", "b"]));
        assert_eq!(words("SET a \"b c\\x41\\n\""), some(&["SET", "a", "b cA\n"]));
        assert_eq!(words("SET a 'b \\' c\\n'"), some(&["SET", "a", "b ' c\\n"]));
        assert_eq!(words("SET \"\""), some(&["SET", ""]));
        assert_eq!(words("SET \"a"), None);
        assert_eq!(words("SET \"a\"b"), None);
        assert_eq!(words(""), some(&[]));
    }
}
