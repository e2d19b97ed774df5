//! Throughput over the measured phase as an equally spaced series.

use crate::schema::Pause;
use std::collections::BTreeMap;

/// A series without gaps, and what is missing beside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntervalHistory {
    /// Seconds in a step: one, or of an imported result the length of most of its intervals, so that no value is there twice.
    pub step_s: u64,
    /// When the first step begins, seconds after the warm-up.
    pub from_s: u64,
    /// Operations a second, step by step: the longest part that has no gap.
    pub values: Vec<f64>,
    /// Mean response time of each step, seconds; 0 where none is known.
    pub responses_s: Vec<f64>,
    /// Seconds between the first and the last record that nothing was recorded of: from, to.
    pub gaps: Vec<(u64, u64)>,
}

impl IntervalHistory {
    /// From the operations of single seconds and the sum of their response times and the operations that it is of. A step that
    /// ends after `whole_s` is a part of one; where that is not known, the last one may be.
    pub(crate) fn of(
        seconds: &BTreeMap<u64, u64>,
        responses: &BTreeMap<u64, (f64, f64)>,
        step_s: u64,
        whole_s: Option<u64>,
    ) -> Self {
        let mut gaps = Vec::new();
        for (at, next) in seconds.keys().zip(seconds.keys().skip(1)) {
            if *next > at + 1 {
                gaps.push((at + 1, *next));
            }
        }
        let last = seconds.last_key_value().map_or(0, |(last, _)| *last);
        // By the steps of which anything was recorded: a second that stands far beyond the others costs nothing.
        let mut steps: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (at, operations) in seconds {
            let (count, sum) = steps.entry(at / step_s).or_default();
            (*count, *sum) = (*count + 1, sum.saturating_add(*operations));
        }
        let mut longest = IntervalHistory { step_s, gaps, ..IntervalHistory::default() };
        let mut part: (u64, Vec<f64>) = (0, Vec::new());
        // A whole step of several ends after the second of its own number.
        let is_whole = |at: u64| match whole_s {
            Some(whole_s) => at.saturating_add(1).saturating_mul(step_s) <= whole_s,
            None => at < last,
        };
        for (at, (_, sum)) in steps.into_iter().filter(|(at, (count, _))| is_whole(*at) && *count == step_s) {
            if part.0 + part.1.len() as u64 != at {
                longest.lengthen(std::mem::replace(&mut part, (at, Vec::new())));
            }
            part.1.push(sum as f64 / step_s as f64);
        }
        longest.lengthen(part);
        let mean_s = |step: u64| {
            let first = longest.from_s + step * step_s;
            let own = responses.range(first..first + step_s).map(|(_, own)| *own);
            let (sum, count) = own.fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1));
            if count > 0.0 { sum / count } else { 0.0 }
        };
        longest.responses_s = (0..longest.values.len() as u64).map(mean_s).collect();
        longest
    }

    /// Takes a part, given by its first step, if it is longer.
    fn lengthen(&mut self, (first, values): (u64, Vec<f64>)) {
        if values.len() > self.values.len() {
            (self.from_s, self.values) = (first * self.step_s, values);
        }
    }

    /// Closes what the client has spoilt: by a pause of its own, and by what it caught up with. Nothing is left where more than
    /// half is spoilt.
    pub(crate) fn close(&mut self, pauses: &[Pause]) {
        let (from_s, step_s) = (self.from_s as f64, self.step_s as f64);
        let at = |step: usize| from_s + step as f64 * step_s;
        let spoilt: Vec<bool> = (0..self.values.len())
            .map(|step| pauses.iter().any(|pause| pause.spoils_interval(at(step), at(step + 1))))
            .collect();
        without_spoilt(&mut self.values, &spoilt);
        without_spoilt(&mut self.responses_s, &spoilt);
    }

    /// Describes what is missing.
    pub fn describe_missing(&self) -> Option<String> {
        let (from, _) = self.gaps.first()?;
        let seconds: u64 = self.gaps.iter().map(|(from, to)| to - from).sum();
        let to = self.from_s + self.values.len() as u64 * self.step_s;
        Some(format!(
            "{seconds} seconds, the first at {from} s: levels, drift and period are those of {} to {to} s, the longest part \
             without a gap",
            self.from_s
        ))
    }
}

/// Values with those that are spoilt in place of the median of the nearest three that are not; none where more than half is.
pub fn without_spoilt(values: &mut Vec<f64>, spoilt: &[bool]) {
    let good: Vec<usize> = (0..values.len()).filter(|at| !spoilt.get(*at).unwrap_or(&false)).collect();
    if good.len() * 2 < values.len() {
        values.clear();
        return;
    }
    let known = values.clone();
    for at in (0..known.len()).filter(|at| *spoilt.get(*at).unwrap_or(&false)) {
        // The nearest are among the three before it and the three behind it.
        let behind = good.partition_point(|other| *other < at);
        let mut nearest = good[behind.saturating_sub(3)..good.len().min(behind + 3)].to_vec();
        nearest.sort_by_key(|other| other.abs_diff(at));
        let mut three: Vec<f64> = nearest.iter().take(3).map(|other| known[*other]).collect();
        three.sort_by(f64::total_cmp);
        values[at] = three.get(three.len() / 2).copied().unwrap_or(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_cut_at_its_gaps() {
        let whole: BTreeMap<u64, u64> = (0..10).map(|second| (second, 100 + second)).collect();
        let found = IntervalHistory::of(&whole, &BTreeMap::new(), 1, None);
        assert_eq!(
            (found.from_s, found.values.len(), found.describe_missing()),
            (0, 9, None),
            "the last second is a part"
        );
        let found = IntervalHistory::of(&whole, &BTreeMap::new(), 1, Some(10));
        assert_eq!(
            (found.values.len(), found.values.last()),
            (10, Some(&109.0)),
            "of a phase of ten seconds it is whole"
        );
        assert_eq!(IntervalHistory::of(&whole, &BTreeMap::new(), 4, Some(10)).values.len(), 2);
        let mut torn = whole.clone();
        torn.retain(|second, _| !(2..4).contains(second));
        let found = IntervalHistory::of(&torn, &BTreeMap::new(), 1, None);
        assert_eq!((found.from_s, &found.values[..2], found.values.len()), (4, &[104.0, 105.0][..], 5));
        assert_eq!(found.gaps, [(2, 4)]);
        // A damaged line: as quick as any other.
        torn.insert(1 << 60, 7);
        assert_eq!(
            (
                IntervalHistory::of(&torn, &BTreeMap::new(), 1, None).from_s,
                IntervalHistory::of(&torn, &BTreeMap::new(), 1, None).values.len()
            ),
            (4, 6)
        );
        let message = found.describe_missing().unwrap();
        assert!(
            message.starts_with("2 seconds, the first at 2 s: ") && message.contains("4 to 9 s"),
            "{message}"
        );
    }

    #[test]
    fn gaps_are_told_with_the_longest_part_the_first_of_equal_ones() {
        let seconds = |there: &[std::ops::Range<u64>]| -> BTreeMap<u64, u64> {
            there.iter().cloned().flatten().map(|second| (second, second)).collect()
        };
        let found = IntervalHistory::of(&seconds(&[0..3, 5..8, 12..13, 13..14]), &BTreeMap::new(), 1, None);
        assert_eq!((found.from_s, found.values.as_slice()), (0, &[0.0, 1.0, 2.0][..]));
        let message = "6 seconds, the first at 3 s: levels, drift and period are those of 0 to 3 s, \
            the longest part without a gap";
        assert_eq!(found.describe_missing().as_deref(), Some(message));
        // Steps of ten seconds: of the first half is missing, the last is a part.
        let found =
            IntervalHistory::of(&seconds(&[5..15, 20..40, 41..60, 60..65]), &BTreeMap::new(), 10, None);
        assert_eq!((found.from_s, found.values.as_slice()), (20, &[24.5, 34.5][..]));
        let message = found.describe_missing().unwrap();
        assert!(
            message.starts_with("6 seconds, the first at 15 s: ") && message.contains(" 20 to 40 s, "),
            "{message}"
        );
    }

    #[test]
    fn steps_of_imported_results() {
        let seconds: BTreeMap<u64, u64> = (0..30).map(|second| (second, second / 10)).collect();
        assert_eq!(IntervalHistory::of(&seconds, &BTreeMap::new(), 10, None).values, [0.0, 1.0, 2.0]);
        let late: BTreeMap<u64, u64> = (10..30).map(|second| (second, 5)).collect();
        let found = IntervalHistory::of(&late, &BTreeMap::new(), 10, None);
        assert_eq!((found.from_s, found.values), (10, vec![5.0, 5.0]));
        assert_eq!(
            IntervalHistory::of(&BTreeMap::new(), &BTreeMap::new(), 1, None).values,
            Vec::<f64>::new()
        );
    }

    #[test]
    fn response_times_are_means_over_the_operations_of_a_step() {
        let seconds: BTreeMap<u64, u64> = (0..6).map(|second| (second, 10)).collect();
        let responses =
            BTreeMap::from([(0, (2.0, 10.0)), (1, (4.0, 10.0)), (2, (9.0, 30.0)), (3, (1.0, 10.0))]);
        assert_eq!(IntervalHistory::of(&seconds, &responses, 1, None).responses_s, [0.2, 0.4, 0.3, 0.1, 0.0]);
        assert_eq!(IntervalHistory::of(&seconds, &responses, 2, None).responses_s, [0.3, 0.25, 0.0]);
    }
}
