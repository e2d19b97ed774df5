//! Whole-number arithmetic as a shell's `$(( ))` has it: `+ - * / %`, parentheses, numbers and variables.

use dyno_types::limits::EXPRESSION_DEPTH;

/// A variable is asked for that no line above assigns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("${name} is not assigned above{hint}")]
pub struct Unassigned {
    /// The variable.
    pub name: String,
    /// The nearest that is assigned, as a question; empty if none is near.
    pub hint: String,
}

/// Arithmetic that has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArithmeticError {
    /// A character that has no meaning here.
    #[error("{0:?} in arithmetic: expected numbers, variables, + - * / % and parentheses")]
    Unexpected(char),
    /// An operand is missing at the end.
    #[error("arithmetic ends too early: expected a number or a variable")]
    TooShort,
    /// A parenthesis is open at the end.
    #[error("a parenthesis that is not closed")]
    OpenParenthesis,
    /// `${NAME` without its brace.
    #[error("${{{0} is not closed")]
    OpenBrace(String),
    /// More than [`EXPRESSION_DEPTH`] levels.
    #[error("more than {EXPRESSION_DEPTH} parentheses and signs inside each other")]
    TooDeep,
    /// A result beyond 64 bits.
    #[error("arithmetic beyond 64 bits")]
    Overflow,
    /// A division, or a remainder, by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A number beyond 64 bits, or written as a shell writes octal ones.
    #[error("{0} is not a whole number of 64 bits")]
    NotANumber(String),
    /// A variable whose value is no whole number.
    #[error("{name} is {value:?}, which is not a whole number")]
    ValueNotANumber {
        /// The variable.
        name: String,
        /// Value.
        value: String,
    },
    /// A variable that has no value.
    #[error(transparent)]
    Variable(#[from] Unassigned),
}

/// The value of `text`; `variable` gives the value of a name.
pub(super) fn evaluate(
    text: &str,
    variable: &mut dyn FnMut(&str) -> Result<String, Unassigned>,
) -> Result<i64, ArithmeticError> {
    let mut reader = ArithmeticReader { rest: text, variable, depth: 0 };
    let value = reader.sum()?;
    reader.skip();
    if reader.rest.is_empty() { Ok(value) } else { Err(reader.unexpected()) }
}

struct ArithmeticReader<'a, 'v> {
    rest: &'a str,
    variable: &'v mut dyn FnMut(&str) -> Result<String, Unassigned>,
    depth: usize,
}

impl ArithmeticReader<'_, '_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn unexpected(&self) -> ArithmeticError {
        self.rest.chars().next().map_or(ArithmeticError::TooShort, ArithmeticError::Unexpected)
    }

    fn take(&mut self, accepted: &[char]) -> Option<char> {
        self.skip();
        let c = self.rest.chars().next().filter(|c| accepted.contains(c))?;
        self.rest = &self.rest[1..];
        Some(c)
    }

    fn sum(&mut self) -> Result<i64, ArithmeticError> {
        let mut value = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let other = self.product()?;
            let sum = if sign == '+' { value.checked_add(other) } else { value.checked_sub(other) };
            value = sum.ok_or(ArithmeticError::Overflow)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i64, ArithmeticError> {
        let mut value = self.factor()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let other = self.factor()?;
            if other == 0 && sign != '*' {
                return Err(ArithmeticError::DivisionByZero);
            }
            let product = match sign {
                '*' => value.checked_mul(other),
                '/' => value.checked_div(other),
                _ => value.checked_rem(other),
            };
            value = product.ok_or(ArithmeticError::Overflow)?;
        }
        Ok(value)
    }

    fn factor(&mut self) -> Result<i64, ArithmeticError> {
        self.depth += 1;
        if self.depth > EXPRESSION_DEPTH {
            return Err(ArithmeticError::TooDeep);
        }
        let value = match self.take(&['(', '+', '-']) {
            Some('(') => {
                let value = self.sum()?;
                self.take(&[')']).ok_or(ArithmeticError::OpenParenthesis)?;
                value
            }
            Some('-') => self.factor()?.checked_neg().ok_or(ArithmeticError::Overflow)?,
            Some(_) => self.factor()?,
            None => self.word()?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn word(&mut self) -> Result<i64, ArithmeticError> {
        let braced = if self.take(&['$']).is_some() { self.take(&['{']).is_some() } else { false };
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(self.unexpected());
        }
        self.rest = rest;
        if braced && self.take(&['}']).is_none() {
            return Err(ArithmeticError::OpenBrace(word.to_owned()));
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return number(word).ok_or_else(|| ArithmeticError::NotANumber(word.to_owned()));
        }
        let value = (self.variable)(word)?;
        number(value.trim()).ok_or_else(|| ArithmeticError::ValueNotANumber { name: word.to_owned(), value })
    }
}

/// Decimal only: what a shell takes for octal is refused rather than misread.
fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let octal = digits.len() > 1 && digits.starts_with('0');
    if octal { None } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<i64, ArithmeticError> {
        evaluate(text, &mut |name| match name {
            "M" => Ok("10".into()),
            "S" => Ok("ten".into()),
            _ => Err(Unassigned { name: name.into(), hint: String::new() }),
        })
    }

    #[test]
    fn arithmetic() {
        for (text, expected) in [
            ("M*60", 600),
            (" 2 + 3 * 4 ", 14),
            ("(2+3)*4", 20),
            ("-M + -(-3)", -7),
            ("$M/3", 3),
            ("${M} % 3", 1),
            ("7-2-1", 4),
            ("100/10/5", 2),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn refusals() {
        for (text, part) in [
            ("1/0", "division by zero"),
            ("1+", "ends too early"),
            ("1 2", "'2' in arithmetic"),
            ("X", "$X is not assigned"),
            ("S", "not a whole number"),
            ("(1", "not closed"),
            ("${M", "not closed"),
            ("9223372036854775807+1", "beyond 64 bits"),
            ("99999999999999999999", "64 bits"),
            ("010", "not a whole number"),
            ("2**3", "'*'"),
            ("a=1", "$a is not assigned"),
        ] {
            let why = value(text).unwrap_err().to_string();
            assert!(why.contains(part), "{text}: {why}");
        }
        assert_eq!(value(&"(".repeat(10_000)), Err(ArithmeticError::TooDeep));
    }
}
