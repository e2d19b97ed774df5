//! The part of PromQL that is evaluated here.

use dyno_types::limits::EXPRESSION_DEPTH;

/// Condition on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Matcher {
    pub label: String,
    pub equal: bool,
    pub value: String,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Number(f64),
    /// A metric; with a window (`[5m]`) or without.
    Series {
        name: String,
        matchers: Vec<Matcher>,
        window: bool,
    },
    /// `sum`, `max`, `min`, `avg`, `rate`, `irate`, `increase`.
    Call(String, Box<Expr>),
    Binary(char, Box<Expr>, Box<Expr>),
}

impl Expr {
    /// Returns whether there is a rate in it.
    pub fn has_rate(&self) -> bool {
        match self {
            Expr::Number(_) | Expr::Series { .. } => false,
            Expr::Call(name, inner) => {
                name != "increase" && RANGED.contains(&name.as_str()) || inner.has_rate()
            }
            Expr::Binary(_, a, b) => a.has_rate() || b.has_rate(),
        }
    }

    /// Returns whether there is a window in it.
    pub fn has_window(&self) -> bool {
        match self {
            Expr::Number(_) => false,
            Expr::Series { window, .. } => *window,
            Expr::Call(_, inner) => inner.has_window(),
            Expr::Binary(_, a, b) => a.has_window() || b.has_window(),
        }
    }

    /// Returns whether there is an increase in it.
    pub fn has_increase(&self) -> bool {
        match self {
            Expr::Number(_) | Expr::Series { .. } => false,
            Expr::Call(name, inner) => name == "increase" || inner.has_increase(),
            Expr::Binary(_, a, b) => a.has_increase() || b.has_increase(),
        }
    }
}

/// Returns whether a text is a duration of PromQL: `5m`, `1h30m`.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let unit =
            ["ms", "s", "m", "h", "d", "w", "y"].into_iter().find(|unit| rest[digits..].starts_with(unit));
        let Some(unit) = unit.filter(|_| digits > 0) else { return false };
        rest = &rest[digits + unit.len()..];
    }
    !text.is_empty()
}

/// Functions of several series.
pub(super) const OVER: [&str; 4] = ["sum", "max", "min", "avg"];
/// Functions of a window.
pub(super) const RANGED: [&str; 3] = ["rate", "irate", "increase"];

/// A text that is no query of the part of PromQL that is read here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// This part has no meaning here; its beginning.
    #[error("{0:?}: is not evaluated here")]
    NotEvaluated(String),
    /// A character is missing.
    #[error("{at:?}: expected {expected:?}")]
    Expected {
        /// Text that stands there instead; its beginning.
        at: String,
        /// The character.
        expected: char,
    },
    /// Expressions lie too deep in each other.
    #[error("too many brackets in each other")]
    TooDeep,
    /// A number that is none.
    #[error("{0:?} is no number")]
    NotANumber(String),
    /// A rate of a metric without a window.
    #[error("{0}: expected a window, such as [5m]")]
    NoWindow(String),
    /// A sum, or its like, of a metric with a window.
    #[error("{0}: expected no window, such as [5m]")]
    Window(String),
    /// Another function.
    #[error("{0}: of functions only {over} and {ranged} are evaluated here", over = OVER.join(", "), ranged = RANGED.join(", "))]
    Function(String),
    /// Labels that are not closed; what stands there instead.
    #[error("{0:?}: expected a comma or '}}'")]
    OpenLabels(String),
    /// A window that is not closed.
    #[error("a window is not closed by ']'")]
    OpenWindow,
    /// A window whose length is none: a subquery, or another text.
    #[error("[{0}]: expected the length of a window, such as [5m]; subqueries are not evaluated here")]
    WindowLength(String),
    /// A label without a sign; what stands there instead.
    #[error("{0:?}: expected a sign after a label")]
    NoSign(String),
    /// A label that is to match a pattern.
    #[error("{label}{sign}: patterns are not evaluated here")]
    Pattern {
        /// The label.
        label: String,
        /// The sign.
        sign: &'static str,
    },
    /// A label that is compared with something else than a text.
    #[error("expected a text after a label")]
    NoText,
    /// A text that is not closed.
    #[error("a text is not closed")]
    OpenText,
}

struct QueryReader<'a> {
    rest: &'a str,
}

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Expr, SyntaxError> {
    let mut reader = QueryReader { rest: text };
    let expr = reader.sum(0)?;
    match reader.peek() {
        None => Ok(expr),
        Some(_) => Err(SyntaxError::NotEvaluated(reader.shown())),
    }
}

impl<'a> QueryReader<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn shown(&self) -> String {
        self.rest.chars().take(30).collect()
    }

    fn takes(&mut self, c: char) -> bool {
        let there = self.peek() == Some(c);
        if there {
            self.rest = &self.rest[c.len_utf8()..];
        }
        there
    }

    fn wants(&mut self, c: char) -> Result<(), SyntaxError> {
        if self.takes(c) { Ok(()) } else { Err(SyntaxError::Expected { at: self.shown(), expected: c }) }
    }

    fn sum(&mut self, depth: usize) -> Result<Expr, SyntaxError> {
        let mut left = self.product(depth)?;
        while let Some(sign @ ('+' | '-')) = self.peek() {
            self.takes(sign);
            left = Expr::Binary(sign, Box::new(left), Box::new(self.product(depth)?));
        }
        Ok(left)
    }

    fn product(&mut self, depth: usize) -> Result<Expr, SyntaxError> {
        let mut left = self.one(depth)?;
        while let Some(sign @ ('*' | '/')) = self.peek() {
            self.takes(sign);
            left = Expr::Binary(sign, Box::new(left), Box::new(self.one(depth)?));
        }
        Ok(left)
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_:.".contains(c)));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn one(&mut self, depth: usize) -> Result<Expr, SyntaxError> {
        if depth > EXPRESSION_DEPTH {
            return Err(SyntaxError::TooDeep);
        }
        if self.takes('(') {
            let inner = self.sum(depth + 1)?;
            return self.wants(')').map(|()| inner);
        }
        if self.takes('-') {
            let inner = self.one(depth + 1)?;
            return Ok(Expr::Binary('-', Box::new(Expr::Number(0.0)), Box::new(inner)));
        }
        self.peek();
        let before = self.shown();
        let word = self.word();
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return word.parse().map(Expr::Number).map_err(|_| SyntaxError::NotANumber(word.to_owned()));
        }
        if word.is_empty() {
            return Err(SyntaxError::NotEvaluated(before));
        }
        let known = OVER.contains(&word) || RANGED.contains(&word);
        match self.peek() {
            Some('(') if known => {
                self.takes('(');
                let inner = self.sum(depth + 1)?;
                self.wants(')')?;
                let ranged = matches!(inner, Expr::Series { window: true, .. });
                if RANGED.contains(&word) != ranged {
                    let word = word.to_owned();
                    return Err(if ranged { SyntaxError::Window(word) } else { SyntaxError::NoWindow(word) });
                }
                Ok(Expr::Call(word.to_owned(), Box::new(inner)))
            }
            Some('(') => Err(SyntaxError::Function(word.to_owned())),
            _ => self.series(word),
        }
    }

    fn series(&mut self, name: &str) -> Result<Expr, SyntaxError> {
        let mut matchers = Vec::new();
        if self.takes('{') {
            while !self.takes('}') {
                matchers.push(self.matcher()?);
                if !self.takes(',') && self.peek() != Some('}') {
                    return Err(SyntaxError::OpenLabels(self.shown()));
                }
            }
        }
        let window = self.takes('[');
        if window {
            let end = self.rest.find(']').ok_or(SyntaxError::OpenWindow)?;
            let length = self.rest[..end].trim();
            if !is_duration(length) {
                return Err(SyntaxError::WindowLength(length.to_owned()));
            }
            self.rest = &self.rest[end + 1..];
        }
        Ok(Expr::Series { name: name.to_owned(), matchers, window })
    }

    fn matcher(&mut self) -> Result<Matcher, SyntaxError> {
        self.peek();
        let label = self.word().to_owned();
        let sign = ["=~", "!~", "!=", "="].into_iter().find(|sign| self.rest.trim_start().starts_with(sign));
        let sign = sign.ok_or_else(|| SyntaxError::NoSign(self.shown()))?;
        self.peek();
        self.rest = &self.rest[sign.len()..];
        if sign.ends_with('~') {
            return Err(SyntaxError::Pattern { label, sign });
        }
        let quote = self.peek().filter(|c| "\"'".contains(*c)).ok_or(SyntaxError::NoText)?;
        self.takes(quote);
        let end = self.rest.find(quote).ok_or(SyntaxError::OpenText)?;
        let value = self.rest[..end].to_owned();
        self.rest = &self.rest[end + 1..];
        Ok(Matcher { label, equal: sign == "=", value })
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
