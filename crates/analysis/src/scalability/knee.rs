//! Knees of a curve. No single definition is right, so several are given side by side, each with the range of users it was found
//! on.

use super::fit::Point;

/// Knees of a throughput curve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Knees {
    /// Users at the greatest distance from the chord of the normalised curve (Satopaa and others, "Kneedle", 2011).
    pub kneedle: Option<f64>,
    /// Users at the greatest power, throughput by response time (Kleinrock).
    pub power: Option<f64>,
    /// Users of the range.
    pub range: (f64, f64),
}

/// Means of points with the same number of users, in order, made non-decreasing by pooling (isotonic regression).
fn smooth(points: &[Point]) -> Vec<Point> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.users.total_cmp(&b.users));
    let mut means: Vec<(Point, f64)> = Vec::new();
    for point in sorted {
        match means.last_mut() {
            Some((last, count)) if last.users == point.users => {
                last.throughput = (last.throughput * *count + point.throughput) / (*count + 1.0);
                *count += 1.0;
            }
            _ => means.push((point, 1.0)),
        }
    }
    // Blocks of neighbours: value, weight, and how many points it stands for.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (point, weight) in &means {
        blocks.push((point.throughput, *weight, 1));
        while let [.., a, b] = blocks[..]
            && a.0 > b.0
        {
            blocks.truncate(blocks.len() - 2);
            blocks.push(((a.0 * a.1 + b.0 * b.1) / (a.1 + b.1), a.1 + b.1, a.2 + b.2));
        }
    }
    let values = blocks.iter().flat_map(|(value, _, count)| std::iter::repeat_n(*value, *count));
    means.iter().zip(values).map(|((point, _), throughput)| Point { throughput, ..*point }).collect()
}

/// The knees of `points`; a knee that needs more than three numbers of users is absent with fewer.
pub fn find_knees(points: &[Point]) -> Knees {
    let curve = smooth(points);
    let (Some(first), Some(last)) = (curve.first(), curve.last()) else { return Knees::default() };
    let range = (first.users, last.users);
    if curve.len() < 3 {
        return Knees { range, ..Knees::default() };
    }
    let (width, height) = (last.users - first.users, last.throughput - first.throughput);
    let above = |p: &Point| (p.throughput - first.throughput) / height - (p.users - first.users) / width;
    let bend = curve.iter().max_by(|a, b| above(a).total_cmp(&above(b)));
    let kneedle = bend.filter(|point| height > 0.0 && above(point) > 0.0).map(|point| point.users);
    // X / R with R = N / X, of the points as they were measured.
    let power = |p: &&Point| p.throughput * p.throughput / p.users;
    let strongest = points.iter().max_by(|a, b| power(a).total_cmp(&power(b)));
    Knees { kneedle, power: strongest.map(|point| point.users), range }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labs_knees() {
        let lab = [
            (1.0, 1434.7),
            (2.0, 2531.4),
            (3.0, 2957.2),
            (4.0, 3449.0),
            (5.0, 4278.5),
            (10.0, 4507.8),
            (20.0, 4917.0),
            (30.0, 4596.1),
            (50.0, 4467.8),
            (100.0, 4898.7),
        ]
        .map(|(users, throughput)| Point { users, throughput });
        let found = find_knees(&lab);
        assert_eq!((found.power, found.range), (Some(5.0), (1.0, 100.0)));
        // The axis decides: with less of the plateau the knee comes earlier.
        assert!(found.kneedle.is_some_and(|users| (10.0..=20.0).contains(&users)), "{found:?}");
        assert!(find_knees(&lab[..6]).kneedle.unwrap() <= 5.0);
    }

    #[test]
    fn a_line_has_none() {
        let line: Vec<Point> =
            (1..9).map(|n| Point { users: f64::from(n), throughput: 10.0 * f64::from(n) }).collect();
        assert_eq!(find_knees(&line).kneedle, None);
        assert_eq!(find_knees(&[]), Knees::default());
    }

    fn points(all: &[(f64, f64)]) -> Vec<Point> {
        all.iter().map(|(users, throughput)| Point { users: *users, throughput: *throughput }).collect()
    }

    #[test]
    fn a_curve_is_the_mean_of_runs_and_never_falls() {
        let of = |all: &[(f64, f64)]| -> Vec<(f64, f64)> {
            smooth(&points(all)).iter().map(|point| (point.users, point.throughput)).collect()
        };
        // 15 of two runs; 30, 25 and 20 are pooled.
        let all = [(5.0, 50.0), (1.0, 10.0), (2.0, 30.0), (1.0, 20.0), (4.0, 20.0), (3.0, 25.0)];
        assert_eq!(of(&all), [(1.0, 15.0), (2.0, 25.0), (3.0, 25.0), (4.0, 25.0), (5.0, 50.0)]);
        // Two runs weigh twice: 2 times 30 and 15; three runs 1, 2 and 6 have a mean of 3.
        assert_eq!(of(&[(1.0, 40.0), (1.0, 20.0), (2.0, 15.0)]), [(1.0, 25.0), (2.0, 25.0)]);
        assert_eq!(of(&[(1.0, 50.0), (2.0, 15.0), (2.0, 25.0)]), [(1.0, 30.0), (2.0, 30.0)]);
        assert_eq!(of(&[(1.0, 1.0), (1.0, 2.0), (1.0, 6.0), (2.0, 3.0)]), [(1.0, 3.0), (2.0, 3.0)]);
        // 10 and 6 are 8, with 5 they are 7.
        assert_eq!(of(&[(1.0, 10.0), (2.0, 6.0), (3.0, 5.0)]), [(1.0, 7.0), (2.0, 7.0), (3.0, 7.0)]);
    }

    #[test]
    fn knees_lie_farthest_above_the_chord_and_at_the_greatest_power() {
        // Above the chord by 0.5125 and 0.5; powers 100, 820, 833 and 500.
        let found = find_knees(&points(&[(1.0, 10.0), (2.0, 40.5), (3.0, 50.0), (5.0, 50.0)]));
        assert_eq!(found, Knees { kneedle: Some(2.0), power: Some(3.0), range: (1.0, 5.0) });
        // By a tenth only, far from 0.
        assert_eq!(find_knees(&points(&[(11.0, 110.0), (12.0, 122.0), (13.0, 130.0)])).kneedle, Some(12.0));
        // Below the chord, and flat, there is none; two numbers of users have none either.
        let below = find_knees(&points(&[(1.0, 10.0), (2.0, 18.0), (3.0, 30.0)]));
        assert_eq!(below, Knees { kneedle: None, power: Some(3.0), range: (1.0, 3.0) });
        assert_eq!(find_knees(&points(&[(1.0, 9.0), (2.0, 9.0), (4.0, 9.0)])).kneedle, None);
        let two = find_knees(&points(&[(1.0, 10.0), (4.0, 20.0), (4.0, 22.0)]));
        assert_eq!(two, Knees { kneedle: None, power: None, range: (1.0, 4.0) });
    }
}
