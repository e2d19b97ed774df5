//! Literals of Python, read and never evaluated: what bexhoma's `cluster.config` is written in.
//!
//! Understood are dictionaries, lists, tuples, texts (in either quotes, thrice quoted, several in a row, `r` in front), numbers,
//! `True`, `False`, `None` and comments. Anything else (names, calls, operators) is an error with its line and column.

use dyno_types::limits::LITERAL_DEPTH;

/// A value, and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// Content.
    pub value: PythonLiteral,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

/// Kinds of literals.
#[derive(Clone, Debug, PartialEq)]
pub enum PythonLiteral {
    /// `{...}`: keys and values in their order; of a key that comes twice the last counts, as in Python.
    Dictionary(Vec<(Literal, Literal)>),
    /// `[...]` or `(...)`.
    List(Vec<Literal>),
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// `True` or `False`.
    Switch(bool),
    /// `None`.
    Nothing,
}

/// Error in a literal, and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct LiteralError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// In words.
    pub message: String,
}

impl Literal {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Literal> {
        self.entries().rev().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Keys that are texts, with their values.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (&str, &Literal)> {
        let all = match &self.value {
            PythonLiteral::Dictionary(entries) => entries.as_slice(),
            _ => &[],
        };
        all.iter().filter_map(|(key, value)| Some((key.text()?, value)))
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            PythonLiteral::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self.value {
            PythonLiteral::Number(n) => Some(n),
            _ => None,
        }
    }

    /// The switch, if it is one.
    pub fn switch(&self) -> Option<bool> {
        match self.value {
            PythonLiteral::Switch(on) => Some(on),
            _ => None,
        }
    }

    /// Returns whether it is a dictionary.
    pub fn is_dictionary(&self) -> bool {
        matches!(self.value, PythonLiteral::Dictionary(_))
    }
}

struct LiteralReader<'a> {
    text: &'a str,
    at: usize,
    /// A place whose line and column are known, from which later ones are counted.
    known: (usize, usize, usize),
}

/// Reads a text that is one literal.
pub fn read(text: &str) -> Result<Literal, LiteralError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = LiteralReader { text, at: 0, known: (0, 1, 1) };
    let literal = reader.value(0)?;
    reader.skip();
    match reader.peek() {
        None => Ok(literal),
        Some(c) => Err(reader.error(format!("{c:?} after the end of the value"))),
    }
}

impl LiteralReader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn takes(&mut self, word: &str) -> bool {
        let there = self.text[self.at..].starts_with(word);
        if there {
            self.at += word.len();
        }
        there
    }

    /// Line and column of a place.
    fn place(&self, at: usize) -> (usize, usize) {
        let (from, line, column) = if at >= self.known.0 { self.known } else { (0, 1, 1) };
        let between = &self.text[from..at];
        match between.rfind('\n') {
            Some(end) => (line + between.matches('\n').count(), between[end + 1..].chars().count() + 1),
            None => (line, column + between.chars().count()),
        }
    }

    fn error_at(&self, at: usize, message: impl Into<String>) -> LiteralError {
        let (line, column) = self.place(at);
        LiteralError { line, column, message: message.into() }
    }

    fn error(&self, message: impl Into<String>) -> LiteralError {
        self.error_at(self.at, message)
    }

    /// Blanks, line ends, comments.
    fn skip(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                '#' => {
                    let rest = &self.text[self.at..];
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                '\\' if self.text[self.at..].starts_with("\\\n") => self.at += 2,
                c if c.is_whitespace() => drop(self.next()),
                _ => return,
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Literal, LiteralError> {
        self.skip();
        let (line, column) = self.place(self.at);
        self.known = (self.at, line, column);
        if depth > LITERAL_DEPTH {
            return Err(self.error(format!("more than {LITERAL_DEPTH} values in each other")));
        }
        let value = match self.peek() {
            Some('{') => self.dictionary(depth)?,
            Some('[') => self.list(']', depth)?,
            Some('(') => self.list(')', depth)?,
            Some('\'' | '"') => PythonLiteral::Text(self.texts()?),
            Some(c) if c.is_ascii_digit() || "+-.".contains(c) => self.number()?,
            Some(c) if c.is_alphabetic() || c == '_' => self.word()?,
            Some(c) => return Err(self.error(format!("{c:?}: expected a value"))),
            None => return Err(self.error("the text ends where a value was expected")),
        };
        Ok(Literal { value, line, column })
    }

    /// After an element: whether another one may follow.
    fn separator(&mut self, opened: usize, end: char) -> Result<bool, LiteralError> {
        self.skip();
        match self.peek() {
            Some(',') => {
                self.next();
                self.skip();
                Ok(self.peek() != Some(end))
            }
            Some(c) if c == end => Ok(false),
            Some(c) => Err(self.error(format!("{c:?}: expected a comma or {end:?}"))),
            None => Err(self.error_at(opened, format!("is never closed by {end:?}"))),
        }
    }

    fn dictionary(&mut self, depth: usize) -> Result<PythonLiteral, LiteralError> {
        let opened = self.at;
        self.next();
        self.skip();
        let mut entries = Vec::new();
        let mut more = self.peek() != Some('}');
        while more {
            let key = self.value(depth + 1)?;
            self.skip();
            if !self.takes(":") {
                let message = if self.peek().is_none() {
                    "the text ends after a key"
                } else {
                    "expected a colon after a key"
                };
                return Err(self.error(message));
            }
            let value = self.value(depth + 1)?;
            entries.push((key, value));
            more = self.separator(opened, '}')?;
        }
        self.next();
        Ok(PythonLiteral::Dictionary(entries))
    }

    fn list(&mut self, end: char, depth: usize) -> Result<PythonLiteral, LiteralError> {
        let opened = self.at;
        self.next();
        self.skip();
        let mut all = Vec::new();
        let mut more = self.peek() != Some(end);
        let mut commas = false;
        while more {
            all.push(self.value(depth + 1)?);
            self.skip();
            commas |= self.peek() == Some(',');
            more = self.separator(opened, end)?;
        }
        self.next();
        // Brackets around one value are no tuple.
        match (end, commas, all.len()) {
            (')', false, 1) => Ok(all.swap_remove(0).value),
            _ => Ok(PythonLiteral::List(all)),
        }
    }

    /// One text, or several in a row, which are one.
    fn texts(&mut self) -> Result<String, LiteralError> {
        let mut all = self.quoted(false)?;
        loop {
            let before = self.at;
            self.skip();
            match self.peek() {
                Some('\'' | '"') => all.push_str(&self.quoted(false)?),
                _ => {
                    self.at = before;
                    return Ok(all);
                }
            }
        }
    }

    fn quoted(&mut self, raw: bool) -> Result<String, LiteralError> {
        let opened = self.at;
        let Some(quote) = self.next() else { return Err(self.error("expected a text")) };
        let thrice = self.takes(&quote.to_string().repeat(2));
        // Two quotes are a text of nothing.
        if !thrice && self.peek() == Some(quote) {
            self.next();
            return Ok(String::new());
        }
        let end = quote.to_string().repeat(if thrice { 3 } else { 1 });
        let mut out = String::new();
        loop {
            if self.takes(&end) {
                return Ok(out);
            }
            let at = self.at;
            match self.next() {
                Some('\n') if !thrice => {
                    return Err(self.error_at(opened, "the text is not closed on its line"));
                }
                Some('\\') if raw => {
                    out.push('\\');
                    out.extend(self.next());
                }
                Some('\\') => self.escape(at, &mut out)?,
                Some(c) => out.push(c),
                None => return Err(self.error_at(opened, "the text is never closed")),
            }
        }
    }

    fn escape(&mut self, at: usize, out: &mut String) -> Result<(), LiteralError> {
        let digits = match self.next() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some(c) => {
                match c {
                    '\n' => {}
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'r' => out.push('\r'),
                    '0' => out.push('\0'),
                    '\\' | '\'' | '"' => out.push(c),
                    // As in Python: what is no escape stays as it is.
                    c => out.extend(['\\', c]),
                }
                return Ok(());
            }
            None => return Err(self.error_at(at, "the text is never closed")),
        };
        let end = self.at + digits;
        let hex = self.text.get(self.at..end);
        let found = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
        let c = found.ok_or_else(|| {
            self.error_at(at, format!("expected {digits} hexadecimal digits of a character"))
        })?;
        self.at = end;
        out.push(c);
        Ok(())
    }

    fn number(&mut self) -> Result<PythonLiteral, LiteralError> {
        let begin = self.at;
        let sign = if self.takes("-") { -1.0 } else { 1.0 };
        self.takes("+");
        let rest = &self.text[self.at..];
        // A sign belongs to a number only behind its e.
        let mut before = ' ';
        let length = rest.find(|c: char| {
            let of =
                c.is_ascii_alphanumeric() || "._".contains(c) || ("+-".contains(c) && "eE".contains(before));
            before = c;
            !of
        });
        let word = rest[..length.unwrap_or(rest.len())].replace('_', "");
        self.at += length.unwrap_or(rest.len());
        let whole = ["0x", "0o", "0b"].iter().zip([16, 8, 2]).find_map(|(prefix, base)| {
            let digits = word.to_lowercase().strip_prefix(prefix)?.to_owned();
            u64::from_str_radix(&digits, base).ok().map(|n| n as f64)
        });
        let known = word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let number = whole.or_else(|| word.parse().ok().filter(|_| known));
        number
            .map(|n: f64| PythonLiteral::Number(sign * n))
            .ok_or_else(|| self.error_at(begin, format!("{word:?} is no number")))
    }

    fn word(&mut self) -> Result<PythonLiteral, LiteralError> {
        let begin = self.at;
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let word = &rest[..length];
        self.at += length;
        match (word, self.peek()) {
            ("True", _) => Ok(PythonLiteral::Switch(true)),
            ("False", _) => Ok(PythonLiteral::Switch(false)),
            ("None", _) => Ok(PythonLiteral::Nothing),
            ("r" | "R", Some('\'' | '"')) => self.quoted(true).map(PythonLiteral::Text),
            ("u" | "U", Some('\'' | '"')) => self.texts().map(PythonLiteral::Text),
            _ => Err(self.error_at(
                begin,
                format!("{word:?}: only literals are read; names and calls are not evaluated"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_configuration_is_written_in() {
        let text = "# a comment\n{\n  'a': [1, -2.5, 1_000, 0x10, 1e-3,],  # another\n  \"b\": {'c': True, 'd': None},\n  \
                    'e': 'one' \"two\",\n  'f': '''three\nlines''', 'g': (1,), 'h': (2), 'i': r'\\d',\n  \
                    'j': 'it\\'s\\n\\u00e4\\q',\n}\n";
        let read = read(text).unwrap();
        let PythonLiteral::List(numbers) = &read.get("a").unwrap().value else { panic!() };
        let numbers: Vec<f64> = numbers.iter().filter_map(Literal::number).collect();
        assert_eq!(numbers, [1.0, -2.5, 1000.0, 16.0, 0.001]);
        assert_eq!(read.get("b").unwrap().get("c").unwrap().switch(), Some(true));
        assert_eq!(read.get("b").unwrap().get("d").unwrap().value, PythonLiteral::Nothing);
        assert_eq!(read.get("e").unwrap().text(), Some("onetwo"));
        assert_eq!(read.get("f").unwrap().text(), Some("three\nlines"));
        assert!(matches!(&read.get("g").unwrap().value, PythonLiteral::List(one) if one.len() == 1));
        assert_eq!(read.get("h").unwrap().number(), Some(2.0));
        assert_eq!(read.get("i").unwrap().text(), Some("\\d"));
        assert_eq!(read.get("j").unwrap().text(), Some("it's\n\u{e4}\\q"));
        let place = |key: &str| (read.get(key).unwrap().line, read.get(key).unwrap().column);
        assert_eq!((place("a"), place("b")), ((3, 8), (4, 8)));
        assert_eq!(
            crate::plan::literal::read("{'a': 1, 'a': 2}").unwrap().get("a").unwrap().number(),
            Some(2.0)
        );
        assert!(crate::plan::literal::read("{}").unwrap().is_dictionary());
    }

    #[test]
    fn nothing_is_evaluated_and_errors_have_a_place() {
        for (text, line, column, message) in [
            ("{'a': open('x')}", 1, 7, "\"open\": only literals"),
            ("{'a': 1 + 2}", 1, 9, "'+': expected a comma"),
            ("{\n 'a': 1\n 'b': 2}", 3, 2, "expected a comma"),
            ("{'a' 1}", 1, 6, "expected a colon"),
            ("{'a': [1, 2}", 1, 12, "'}': expected a comma or ']'"),
            ("{'a': 1", 1, 1, "is never closed by '}'"),
            ("{'a': 'x\n}", 1, 7, "not closed on its line"),
            ("{'a': '''x\n}", 1, 7, "never closed"),
            ("{'a': 12ab}", 1, 7, "\"12ab\" is no number"),
            ("{'a': '\\xzz'}", 1, 8, "2 hexadecimal digits"),
            ("{} {}", 1, 4, "after the end of the value"),
            ("", 1, 1, "the text ends"),
            ("{'a': __import__('os')}", 1, 7, "\"__import__\""),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
            assert!(error.message.contains(message), "{text}: {error}");
        }
        let deep = "[".repeat(LITERAL_DEPTH + 2);
        assert!(read(&deep).unwrap_err().message.contains("in each other"));
    }
}
