//! Whole-number arithmetic as a shell's `$(( ))` has it: `+ - * / %`, parentheses, numbers and variables.

/// Nesting of parentheses and signs that is followed.
const DEPTH: usize = 100;

/// The value of `text`; `variable` gives the value of a name.
pub(super) fn evaluate(
    text: &str,
    variable: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<i64, String> {
    let mut reader = Reader { rest: text, variable, depth: 0 };
    let value = reader.sum()?;
    reader.skip();
    if reader.rest.is_empty() { Ok(value) } else { Err(reader.unexpected()) }
}

struct Reader<'a, 'v> {
    rest: &'a str,
    variable: &'v mut dyn FnMut(&str) -> Result<String, String>,
    depth: usize,
}

impl Reader<'_, '_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn unexpected(&self) -> String {
        match self.rest.chars().next() {
            Some(c) => format!("{c:?} in arithmetic: expected numbers, variables, + - * / % and parentheses"),
            None => "arithmetic ends too early: expected a number or a variable".to_owned(),
        }
    }

    fn take(&mut self, accepted: &[char]) -> Option<char> {
        self.skip();
        let c = self.rest.chars().next().filter(|c| accepted.contains(c))?;
        self.rest = &self.rest[1..];
        Some(c)
    }

    fn sum(&mut self) -> Result<i64, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let other = self.product()?;
            let sum = if sign == '+' { value.checked_add(other) } else { value.checked_sub(other) };
            value = sum.ok_or("arithmetic beyond 64 bits")?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i64, String> {
        let mut value = self.factor()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let other = self.factor()?;
            if other == 0 && sign != '*' {
                return Err("division by zero".to_owned());
            }
            let product = match sign {
                '*' => value.checked_mul(other),
                '/' => value.checked_div(other),
                _ => value.checked_rem(other),
            };
            value = product.ok_or("arithmetic beyond 64 bits")?;
        }
        Ok(value)
    }

    fn factor(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("more than {DEPTH} parentheses and signs inside each other"));
        }
        let value = match self.take(&['(', '+', '-']) {
            Some('(') => {
                let value = self.sum()?;
                self.take(&[')']).ok_or_else(|| "a parenthesis that is not closed".to_owned())?;
                value
            }
            Some('-') => self.factor()?.checked_neg().ok_or("arithmetic beyond 64 bits")?,
            Some(_) => self.factor()?,
            None => self.word()?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn word(&mut self) -> Result<i64, String> {
        let braced = if self.take(&['$']).is_some() { self.take(&['{']).is_some() } else { false };
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(self.unexpected());
        }
        self.rest = rest;
        if braced && self.take(&['}']).is_none() {
            return Err(format!("${{{word} is not closed"));
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return number(word).ok_or_else(|| format!("{word} is not a whole number of 64 bits"));
        }
        let value = (self.variable)(word)?;
        number(value.trim()).ok_or_else(|| format!("{word} is {value:?}, which is not a whole number"))
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

    fn value(text: &str) -> Result<i64, String> {
        evaluate(text, &mut |name| match name {
            "M" => Ok("10".into()),
            "S" => Ok("ten".into()),
            _ => Err(format!("no {name}")),
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
            ("X", "no X"),
            ("S", "not a whole number"),
            ("(1", "not closed"),
            ("${M", "not closed"),
            ("9223372036854775807+1", "beyond 64 bits"),
            ("99999999999999999999", "64 bits"),
            ("010", "not a whole number"),
            ("2**3", "'*'"),
            ("a=1", "no a"),
        ] {
            let why = value(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
        assert!(value(&"(".repeat(10_000)).unwrap_err().contains("inside each other"));
    }
}
