//! Mean and median of a few figures. What else statistics has is in the crate `analysis`.

use std::borrow::Borrow;

/// The arithmetic mean; `None` of nothing.
pub fn mean(all: impl IntoIterator<Item = impl Borrow<f64>>) -> Option<f64> {
    let (sum, count) =
        all.into_iter().fold((0.0, 0_usize), |(sum, count), one| (sum + one.borrow(), count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// The median; `None` of nothing. Of an even number the mean of the two in the middle.
// Compiled with those who use it, as they are optimized: simulations of `analysis` ask for millions.
#[inline]
pub fn median(samples: &[f64]) -> Option<f64> {
    let (mut all, half) = (samples.to_vec(), samples.len() / 2);
    if all.is_empty() {
        return None;
    }
    let (below, middle, _) = all.select_nth_unstable_by(half, f64::total_cmp);
    let before = below.iter().copied().max_by(f64::total_cmp).filter(|_| samples.len().is_multiple_of(2));
    Some(before.map_or(*middle, |before| before.midpoint(*middle)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_medians() {
        assert_eq!((mean([0.0; 0]), mean([1.0, 2.0, 6.0])), (None, Some(3.0)));
        assert_eq!(mean([1.0, 2.0].iter().map(|one| one * 2.0)), Some(3.0));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
