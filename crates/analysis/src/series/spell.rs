//! A part of a short run that has a level of its own: one step of circular binary segmentation (Olshen, Venkatraman, Lucito
//! and Wigler, 2004), with limits that hold although neighbouring seconds are alike.

use super::{batches, mean, plain_limit};

/// Longest series that is looked at as it is; longer ones are averaged first.
const MOST: usize = 120;

/// Limit of the statistic once the autocorrelation that was found is taken into account. By simulation: exceeded by less than
/// 1 % of independent series, about 2 % where neighbours correlate by 0.5.
const LIMIT: f64 = 6.5;

/// The part from `.0` to before `.1` whose mean differs most from that of the rest, in units of the noise about both, if it
/// differs by more than noise does whose neighbours correlate by up to 0.8. Both have at least 2 values, from 15 on 3. A
/// series that repeats itself every `period` intervals (1 if it does not) is looked at in whole periods.
pub fn spell(all: &[f64], period: usize) -> Option<(usize, usize)> {
    let size = all.len().div_ceil(MOST).next_multiple_of(period.max(1));
    let series = batches(all, size);
    let count = series.len();
    let least = if count < 15 { 2 } else { 3 };
    if count < 2 * least + 1 {
        return None;
    }
    let middle = mean(&series);
    let mut sums = vec![0.0];
    let mut total = 0.0;
    for value in &series {
        total += value - middle;
        sums.push(total);
    }
    // The error that is left is least where what the two levels explain is greatest.
    let explained = |from: usize, to: usize| {
        let (inside, length) = (sums[to] - sums[from], (to - from) as f64);
        inside * inside * (1.0 / length + 1.0 / (count as f64 - length))
    };
    let parts = (0..count).flat_map(|from| (from + least..=count).map(move |to| (from, to)));
    let (from, to) = parts
        .filter(|(from, to)| count - (to - from) >= least)
        .max_by(|a, b| explained(a.0, a.1).total_cmp(&explained(b.0, b.1)))?;
    let (n, length) = (count as f64, (to - from) as f64);
    let inside = middle + (sums[to] - sums[from]) / length;
    let outside = middle - (sums[to] - sums[from]) / (n - length);
    let level = |at: usize| if (from..to).contains(&at) { inside } else { outside };
    let errors: Vec<f64> = series.iter().enumerate().map(|(at, value)| value - level(at)).collect();
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    let edges = (from * size, if to == count { all.len() } else { to * size });
    if squares <= f64::EPSILON * middle * middle {
        return (explained(from, to) > squares).then_some(edges);
    }
    let plain = (explained(from, to) / (squares / (n - 2.0))).sqrt();
    // The part of the autocorrelation that the levels have taken is given back.
    let found = errors.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / squares;
    let taken = if count < 12 { 1.0 } else { 1.0 - 6.0 / n };
    let alike = ((found + 3.0 / n) / taken).clamp(0.0, 0.9);
    let corrected = plain * ((1.0 - alike) / (1.0 + alike)).sqrt();
    (plain > plain_limit(n) || corrected > LIMIT).then_some(edges)
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{noise, random};
    use super::*;

    #[test]
    fn a_spell_is_placed() {
        let mut all: Vec<f64> =
            noise(&mut random(1), 60, 0.5).iter().map(|one| 1_000.0 * (1.0 + 0.03 * one)).collect();
        assert_eq!(spell(&all, 1), None);
        all[20..33].iter_mut().for_each(|one| *one *= 0.7);
        assert_eq!(spell(&all, 1), Some((20, 33)));
        // Constants have no noise at all.
        assert_eq!(spell(&[5.0; 20], 1), None);
        assert_eq!(spell(&[5.0, 5.0, 9.0, 9.0, 9.0], 1), Some((0, 2)));
        assert_eq!(spell(&[1.0, 9.0], 1), None);
    }

    #[test]
    fn long_series_are_averaged_and_periods_kept_whole() {
        let wave = |at: usize| if at % 10 < 3 { 600.0 } else { 1_000.0 };
        let mut all: Vec<f64> = (0..600).map(wave).collect();
        assert_eq!(spell(&all, 10), None);
        all[500..].iter_mut().for_each(|one| *one *= 0.8);
        // Of two parts either may be the one.
        assert_eq!(spell(&all, 10), Some((0, 500)));
    }
}
