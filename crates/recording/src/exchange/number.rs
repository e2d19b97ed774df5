//! Whole numbers as protocols write them.

use super::Unreadable;

/// A decimal number, which may have a sign.
#[inline]
pub(super) fn parse_number(text: &[u8]) -> Result<i64, Unreadable> {
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    // 19 digits fit 64 bits without a sign.
    if digits.is_empty() || digits.len() > 19 {
        return Err(Unreadable);
    }
    let mut number = 0u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err(Unreadable);
        }
        number = number * 10 + u64::from(digit - b'0');
    }
    if number > i64::MAX as u64 + u64::from(negative) {
        return Err(Unreadable);
    }
    Ok(if negative { (number as i64).wrapping_neg() } else { number as i64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_digits_only() {
        let all = [
            ("0", 0),
            ("17", 17),
            ("-1", -1),
            ("+5", 5),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ];
        for (text, number) in all {
            assert_eq!(parse_number(text.as_bytes()), Ok(number), "{text}");
        }
        for wrong in ["", "-", "1 ", "1a", "9223372036854775808", "--1"] {
            assert_eq!(parse_number(wrong.as_bytes()), Err(Unreadable), "{wrong}");
        }
    }
}
