use super::super::synthetic::{noise, random, told};
use super::*;

/// Numbers of intervals of the table, with series of each kind.
const LENGTHS: [(usize, u64); 11] = [
    (5, 10_000),
    (7, 10_000),
    (10, 10_000),
    (15, 10_000),
    (20, 10_000),
    (30, 10_000),
    (60, 10_000),
    (120, 10_000),
    (300, 4_000),
    (1_000, 1_000),
    (3_600, 300),
];

/// Correlations, and the share of series that exceed a limit.
const NULLS: [(f64, f64); 4] = [(0.0, 0.015), (0.5, 0.015), (0.7, 0.02), (0.8, 0.03)];

/// A line is to be found by chance in two thirds of these.
const LINE: f64 = 2.0 / 3.0;

/// Prints the table of limits where `RATES` is set; else a few series of each kind show that it is about right.
#[test]
fn limits_of_pieces() {
    let whole = std::env::var_os("RATES").is_some();
    for (intervals, rounds) in LENGTHS {
        let rounds = if whole { rounds } else { 60_000 / (intervals as u64 + 60) };
        let own = EvidenceLimits::of(intervals);
        let (mut any, mut line) = (0.0_f64, 0.0_f64);
        for (rho, share) in NULLS {
            let explained = |seed: u64| {
                let all =
                    FitLikelihoods::of(&noise(&mut random(seed * 31 + intervals as u64), intervals, rho));
                (all.greatest(own.each).1, all.line.0 - all.levels[0].0)
            };
            let (mut pieces, mut lines): (Vec<f64>, Vec<f64>) = (0..rounds).map(explained).unzip();
            pieces.sort_by(f64::total_cmp);
            lines.sort_by(f64::total_cmp);
            let at = |share: f64| ((1.0 - share) * rounds as f64) as usize;
            (any, line) = (any.max(pieces[at(share)]), line.max(lines[at(share * LINE)]));
            let beyond = pieces.iter().filter(|one| **one > own.any).count() as f64 / rounds as f64;
            assert!(whole || beyond <= share + 0.04, "{intervals}, rho {rho}: {beyond}");
        }
        told(&format!("    ({intervals}.0, {any:.1}, {line:.1}),"));
    }
}
