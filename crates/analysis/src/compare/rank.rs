//! Ranks: a test that two samples come from one distribution, and the size of the effect.

use statrs::distribution::{ContinuousCDF, Normal};

/// Samples up to this size are tested exactly.
const EXACT: usize = 20;

/// Counts the pairs whose second is greater, with half of the ties: Mann and Whitney's U of the second sample.
fn pairs(one: &[f64], other: &[f64]) -> f64 {
    let greater = |a: f64, b: f64| if b > a { 1.0 } else { f64::from(u8::from(b == a)) * 0.5 };
    one.iter().map(|a| other.iter().map(|b| greater(*a, *b)).sum::<f64>()).sum()
}

/// Cliff's delta: the share of pairs with the second greater, less the share with the first greater; -1 to 1.
pub fn cliffs_delta(one: &[f64], other: &[f64]) -> f64 {
    let all = (one.len() * other.len()) as f64;
    2.0 * pairs(one, other) / all - 1.0
}

/// The word for a size of Cliff's delta (Romano and others, 2006).
pub fn describe_effect_size(delta: f64) -> &'static str {
    match delta.abs() {
        d if d < 0.147 => "negligible",
        d if d < 0.33 => "small",
        d if d < 0.474 => "medium",
        _ => "large",
    }
}

/// The two-sided p-value of Mann and Whitney's test: exact without ties up to 20 samples a side, else by the normal
/// approximation with correction for ties and continuity.
pub fn mann_whitney(one: &[f64], other: &[f64]) -> f64 {
    let (n, m) = (one.len(), other.len());
    if n == 0 || m == 0 {
        return 1.0;
    }
    let u = pairs(one, other);
    let mut all: Vec<f64> = one.iter().chain(other).copied().collect();
    all.sort_by(f64::total_cmp);
    let ties: f64 =
        all.chunk_by(|a, b| a == b).map(|same| (same.len() as f64).powi(3) - same.len() as f64).sum();
    if ties == 0.0 && n <= EXACT && m <= EXACT {
        return exact(n, m, u);
    }
    let (n, m) = (n as f64, m as f64);
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((u - n * m / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    Normal::new(0.0, 1.0).map_or(1.0, |normal| (2.0 * normal.cdf(-z)).min(1.0))
}

/// By counting the arrangements with each U: `counts[u]` of `n` and `m` samples.
fn exact(n: usize, m: usize, u: f64) -> f64 {
    // Of n and m samples the greatest is of one side or the other.
    let mut counts = vec![vec![Vec::new(); m + 1]; n + 1];
    for i in 0..=n {
        for j in 0..=m {
            let mut own = vec![0.0; i * j + 1];
            if i == 0 || j == 0 {
                own[0] = 1.0;
            } else {
                let (without_one, without_other): (&Vec<f64>, &Vec<f64>) =
                    (&counts[i - 1][j], &counts[i][j - 1]);
                for (at, count) in without_one.iter().enumerate() {
                    own[at] += count;
                }
                for (at, count) in without_other.iter().enumerate() {
                    own[at + i] += count;
                }
            }
            counts[i][j] = own;
        }
    }
    let all: f64 = counts[n][m].iter().sum();
    let small = u.min((n * m) as f64 - u).floor() as usize;
    let below: f64 = counts[n][m][..=small].iter().sum();
    (2.0 * below / all).min(1.0)
}

/// Hodges and Lehmann's estimate of a shift: the median of all differences, second less first.
pub fn hodges_lehmann(one: &[f64], other: &[f64]) -> f64 {
    let differences: Vec<f64> = one.iter().flat_map(|a| other.iter().map(move |b| b - a)).collect();
    dyno_types::stats::median(&differences).unwrap_or(0.0)
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
