//! Numbers by how they are written, so that what is drawn is as long as what was seen.

use std::collections::BTreeMap;

/// Ways of writing that are told apart in a workload.
const PARTS: usize = 32;

/// Shares of the parts may be so far from those of numbers that are all alike, and the numbers count as such.
const ALIKE: f64 = 0.02;

/// How a number is written: whether it is negative, and its digits before and behind the point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WrittenForm {
    pub negative: bool,
    pub whole: usize,
    pub behind: usize,
}

impl WrittenForm {
    /// Of a number that is written in digits, with at most one sign and one point.
    pub fn of_word(word: &[u8]) -> Self {
        let negative = word.first() == Some(&b'-');
        let bare = &word[usize::from(negative)..];
        let whole = bare.iter().position(|byte| *byte == b'.').unwrap_or(bare.len());
        WrittenForm { negative, whole, behind: bare.len().saturating_sub(whole + 1) }
    }
}

/// A range of numbers that are written alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NumberRange<T> {
    pub least: T,
    pub most: T,
    /// Digits behind the point.
    pub behind: usize,
    pub count: u64,
}

/// Least and greatest number of each way of writing, and how often it came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NumberParts<T>(BTreeMap<WrittenForm, (T, T, u64)>);

impl<T: Copy + PartialOrd> NumberParts<T> {
    /// One number.
    pub fn of_one(form: WrittenForm, value: T) -> Self {
        NumberParts(BTreeMap::from([(form, (value, value, 1))]))
    }

    /// Notes a number.
    pub fn note(&mut self, form: WrittenForm, value: T) {
        let (least, most, count) = self.0.entry(form).or_insert((value, value, 0));
        if value < *least {
            *least = value;
        }
        if value > *most {
            *most = value;
        }
        *count += 1;
    }

    /// The ranges that a workload draws from: one where the numbers are about as they are if all of it are alike. `place` is a
    /// number on a line.
    pub fn ranges(&self, place: impl Fn(T) -> f64) -> Vec<NumberRange<T>> {
        let range = |(form, (least, most, count)): (&WrittenForm, &(T, T, u64))| NumberRange {
            least: *least,
            most: *most,
            behind: form.behind,
            count: *count,
        };
        let parts: Vec<NumberRange<T>> = self.0.iter().map(range).collect();
        let Some(whole) = parts.iter().copied().reduce(|a, b| NumberRange {
            least: if b.least < a.least { b.least } else { a.least },
            most: if b.most > a.most { b.most } else { a.most },
            behind: a.behind.max(b.behind),
            count: a.count + b.count,
        }) else {
            return Vec::new();
        };
        let width = place(whole.most) - place(whole.least);
        // Numbers below 10 are one digit long, those below 100 two: a part is as wide as its digits.
        let expected = |form: &WrittenForm| {
            let unit = 10f64.powi(-(form.behind as i32));
            let most = 10f64.powi(form.whole as i32);
            let least = if form.whole > 1 { most / 10.0 } else { 0.0 };
            let (from, to) = if form.negative { (-most, -least) } else { (least, most) };
            let (low, high) = (from.max(place(whole.least)), to.min(place(whole.most) + unit));
            (high - low).max(0.0) / (width + unit)
        };
        let is_alike = |form: &WrittenForm, count: u64| {
            form.behind == whole.behind && (count as f64 / whole.count as f64 - expected(form)).abs() <= ALIKE
        };
        let is_one = parts.len() > PARTS || self.0.iter().all(|(form, (.., count))| is_alike(form, *count));
        if is_one { vec![whole] } else { parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(numbers: impl Iterator<Item = i64>) -> Vec<(i64, i64, u64)> {
        let mut all: Option<NumberParts<i64>> = None;
        for number in numbers {
            let form = WrittenForm::of_word(number.to_string().as_bytes());
            match &mut all {
                Some(all) => all.note(form, number),
                None => all = Some(NumberParts::of_one(form, number)),
            }
        }
        let found = all.unwrap().ranges(|number| number as f64);
        found.into_iter().map(|range| (range.least, range.most, range.count)).collect()
    }

    #[test]
    fn numbers_that_are_alike_are_one_range() {
        assert_eq!(parts(0..5_000), [(0, 4_999, 5_000)]);
        assert_eq!(parts(-40..60), [(-40, 59, 100)]);
        assert_eq!(parts(7..8), [(7, 7, 1)]);
    }

    #[test]
    fn a_number_far_away_does_not_make_the_others_long() {
        // Nearly all have one digit, and one has ten.
        let found = parts((0..99).map(|n| n % 9 + 1).chain([2_000_000_000]));
        assert_eq!(found, [(1, 9, 99), (2_000_000_000, 2_000_000_000, 1)]);
        let found = parts((0..100).map(|n| if n % 4 == 0 { -12 } else { 3 * n }));
        assert_eq!(found.iter().map(|(.., count)| count).sum::<u64>(), 100);
        assert_eq!(found.last(), Some(&(-12, -12, 25)));
    }

    #[test]
    fn forms_are_counted_in_digits() {
        let form = |negative, whole, behind| WrittenForm { negative, whole, behind };
        assert_eq!(WrittenForm::of_word(b"-12.340"), form(true, 2, 3));
        assert_eq!(WrittenForm::of_word(b"7"), form(false, 1, 0));
        // A half is written without a second digit: another form than two.
        let mut all = NumberParts::of_one(form(false, 1, 1), 0.5);
        all.note(form(false, 1, 0), 2.0);
        assert_eq!(all.ranges(|number| number).len(), 2);
    }
}
