use super::*;

#[test]
fn exact_probabilities() {
    // U = 0 of 5 and 5: 2 / C(10, 5).
    let (low, high) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
    assert!((mann_whitney(&low, &high) - 2.0 / 252.0).abs() < 1e-12);
    // SciPy's mannwhitneyu(..., method="exact"): 0.6904761904761905.
    let (a, b) = ([1.0, 4.0, 6.0, 7.0, 10.0], [2.0, 3.0, 5.0, 8.0, 4.5]);
    assert!((mann_whitney(&a, &b) - 0.690_476_190_476_190_5).abs() < 1e-9, "{}", mann_whitney(&a, &b));
    // With ties, by hand: U = 24 of 25, ties of 2, 3, 2 and 2 of 10.
    let (a, b) = ([1.0, 2.0, 2.0, 3.0, 3.0], [3.0, 4.0, 4.0, 5.0, 5.0]);
    let variance: f64 = 25.0 / 12.0 * (11.0 - (6.0 + 24.0 + 6.0 + 6.0) / 90.0);
    let z = (24.0 - 12.5 - 0.5) / variance.sqrt();
    let normal = Normal::new(0.0, 1.0).unwrap();
    assert!((mann_whitney(&a, &b) - 2.0 * normal.cdf(-z)).abs() < 1e-12, "{}", mann_whitney(&a, &b));
    assert_eq!(mann_whitney(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
    assert_eq!((mann_whitney(&[1.0, 2.0], &[]), mann_whitney(&[], &[1.0])), (1.0, 1.0));
    assert_eq!((exact(2, 0, 0.0), exact(0, 1, 0.0)), (1.0, 1.0));
}

#[test]
fn effects() {
    assert_eq!(cliffs_delta(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
    assert_eq!(cliffs_delta(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
    assert_eq!(hodges_lehmann(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]), 1.0);
    let sizes =
        [(0.0, 0.146, "negligible"), (0.147, 0.329, "small"), (0.33, 0.473, "medium"), (0.474, 1.0, "large")];
    for (from, to, word) in sizes {
        assert!([from, to, -from, -to].iter().all(|delta| describe_effect_size(*delta) == word), "{word}");
    }
}
