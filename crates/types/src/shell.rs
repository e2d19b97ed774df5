//! Words and the lines that a POSIX shell reads as these words.

/// A line that a POSIX shell reads as these words.
pub fn quoted<S: AsRef<str>>(words: &[S]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c);
    let one = |word: &S| match word.as_ref() {
        word if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        word => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// A quote is open at the end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {0} that is not closed")]
pub struct OpenQuote(pub char);

/// Words as a shell splits them: quotes hold them together, a backslash takes the next letter as it is. Nothing is expanded.
pub fn split_words(text: &str) -> Result<Vec<String>, OpenQuote> {
    let (mut all, mut word, mut open) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (open, letter) {
            (Some(quote), _) if letter == quote => open = None,
            (Some('\''), _) => word.get_or_insert_default().push(letter),
            (_, '\\') => word.get_or_insert_default().extend(letters.next()),
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '"' | '\'') => {
                word.get_or_insert_default();
                open = Some(letter);
            }
            (None, _) if letter.is_whitespace() => all.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    match open {
        Some(quote) => Err(OpenQuote(quote)),
        None => {
            all.extend(word);
            Ok(all)
        }
    }
}

/// A recorded command line with the program's own name instead of where it was.
fn own_name(words: &[String]) -> Vec<String> {
    std::iter::once("dyno".to_owned()).chain(words.iter().skip(1).cloned()).collect()
}

/// Takes options with their values away.
pub fn strip(words: &mut Vec<String>, names: &[&str]) {
    let mut kept = Vec::with_capacity(words.len());
    let mut all = std::mem::take(words).into_iter();
    while let Some(word) = all.next() {
        if names.contains(&word.as_str()) {
            all.next();
        } else if !names.iter().any(|name| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
        {
            kept.push(word);
        }
    }
    *words = kept;
}

/// A recorded command line that does the same again: `dyno run` into a directory of its own, as the named one is there.
pub fn again(words: &[String]) -> Vec<String> {
    let mut words = own_name(words);
    if words.get(1).is_some_and(|verb| verb == "run") {
        strip(&mut words, &["--out", "-o"]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_made_again_in_a_directory_of_its_own() {
        let of = |line: &str| quoted(&again(&split_words(line).unwrap()));
        assert_eq!(of("/bin/dyno run a --out x -u 2"), "dyno run a -u 2");
        assert_eq!(of("dyno run a -o x --out=y --outer z"), "dyno run a --outer z");
        assert_eq!(of("dyno ycsb load basic -o x"), "dyno ycsb load basic -o x");
    }

    #[test]
    fn there_and_back() {
        let all = ["a", "", "b c", "it's", "$(rm -rf /)", "x\ny", "\\", "-o", "ü"];
        assert_eq!(split_words(&quoted(&all)).unwrap(), all);
        assert_eq!(quoted(&["dyno", "run", "a=1"]), "dyno run a=1");
        assert_eq!(split_words(r#"a "b \" c" 'd \ e' f\ g"#).unwrap(), ["a", "b \" c", "d \\ e", "f g"]);
        assert_eq!(split_words("'a"), Err(OpenQuote('\'')));
    }
}
