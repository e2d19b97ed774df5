//! Series over time: cut to a number of points without losing an extreme, and packed for the page.

use serde::Serialize;

/// A value at a time (seconds from the page's origin); `None` is a gap.
pub type SeriesPoint = (f64, Option<f64>);

/// A series as the page holds it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PackedSeries {
    /// Name.
    pub n: String,
    /// Times: hundredths of a second, each less the one before.
    pub t: Vec<i64>,
    /// Values to four significant digits; `null` is a gap.
    pub v: Vec<Option<f64>>,
}

impl PackedSeries {
    /// Returns whether anything of it can be drawn.
    pub fn has_value(&self) -> bool {
        self.v.iter().any(Option::is_some)
    }
}

/// Most points of a chart's series.
pub const MOST: usize = 2_000;

/// At most `most` points (at least 4): of every stretch of time the least and the greatest, in their order. A gap stays a gap,
/// however short.
pub fn decimate_points(points: &[SeriesPoint], most: usize) -> Vec<SeriesPoint> {
    let most = most.max(4);
    if points.len() <= most {
        return points.to_vec();
    }
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let gaps = points.iter().any(|point| point.1.is_none());
    let buckets = if gaps { (most / 3).max(1) } else { most / 2 };
    let width = ((last.0 - first.0) / buckets as f64).max(f64::MIN_POSITIVE);
    let place = |at: f64| (((at - first.0) / width) as usize).min(buckets - 1);
    let mut out = Vec::with_capacity(most);
    for part in points.chunk_by(|a, b| place(a.0) == place(b.0)) {
        let known = part.iter().filter_map(|(at, value)| value.map(|v| (*at, v)));
        let least = known.clone().min_by(|a, b| a.1.total_cmp(&b.1));
        let greatest = known.max_by(|a, b| a.1.total_cmp(&b.1));
        let ends = least.into_iter().chain(greatest).map(|(at, value)| (at, Some(value)));
        let mut shown: Vec<SeriesPoint> =
            ends.chain(part.iter().copied().find(|one| one.1.is_none())).collect();
        shown.sort_by(|a, b| a.0.total_cmp(&b.0));
        shown.dedup_by(|a, b| a.0 == b.0);
        out.extend(shown);
    }
    out
}

/// Breaks a series where a sample is missing: where the step is more than one and a half times the usual one. Sources that look
/// at uneven times have longer steps: a quarter of the steps may be longer than the usual one.
pub fn with_gaps(points: Vec<SeriesPoint>) -> Vec<SeriesPoint> {
    let mut steps: Vec<f64> = points.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    if steps.len() < 3 {
        return points;
    }
    let most = steps.len() * 3 / 4;
    let usual = *steps.select_nth_unstable_by(most, f64::total_cmp).1;
    let mut out: Vec<SeriesPoint> = Vec::with_capacity(points.len());
    for point in points {
        if let Some(last) = out.last().filter(|last| point.0 - last.0 > 1.5 * usual && last.1.is_some()) {
            out.push((last.0 + usual, None));
        }
        out.push(point);
    }
    out
}

/// Four significant digits.
fn rounded(value: f64) -> Option<f64> {
    if value == 0.0 {
        return Some(0.0);
    }
    format!("{value:.3e}").parse().ok().filter(|v: &f64| v.is_finite())
}

/// A series of at most `most` points; of values that do not change only the ends of the stretch.
pub fn pack_series(name: &str, points: &[SeriesPoint], most: usize) -> PackedSeries {
    let points: Vec<SeriesPoint> =
        decimate_points(points, most).into_iter().map(|(at, value)| (at, value.and_then(rounded))).collect();
    let same = |at: usize| {
        at > 0
            && at + 1 < points.len()
            && points[at - 1].1 == points[at].1
            && points[at].1 == points[at + 1].1
    };
    let mut out = PackedSeries { n: name.to_owned(), ..PackedSeries::default() };
    let mut before = 0;
    for (at, (time, value)) in points.iter().enumerate() {
        if same(at) {
            continue;
        }
        let now = (time * 100.0).round() as i64;
        out.t.push(now - before);
        out.v.push(*value);
        before = now;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_survive() {
        let mut points: Vec<SeriesPoint> = (0..36_000).map(|i| (f64::from(i) / 10.0, Some(100.0))).collect();
        points[17].1 = Some(1.0);
        points[30_001].1 = Some(9_000.0);
        let few = decimate_points(&points, MOST);
        assert!(few.len() <= MOST && few.len() > 900, "{}", few.len());
        assert!(few.contains(&(1.7, Some(1.0))) && few.contains(&(3000.1, Some(9_000.0))));
        assert!(few.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let packed = pack_series("a", &points, MOST);
        assert_eq!(packed.t.len(), packed.v.len());
        assert!(packed.t.len() < 20, "a level is its ends: {}", packed.t.len());
        assert_eq!(packed.t.iter().sum::<i64>(), 359_990);
    }

    #[test]
    fn gaps_stay_gaps() {
        let mut points: Vec<SeriesPoint> = (0..10_000).map(|i| (f64::from(i), Some(f64::from(i)))).collect();
        points[4_000..6_000].iter_mut().for_each(|point| point.1 = None);
        let few = decimate_points(&points, 100);
        assert!(few.iter().any(|(at, value)| (4_000.0..6_000.0).contains(at) && value.is_none()));
        let held: Vec<SeriesPoint> = [0.0, 1.0, 2.0, 3.0, 9.0, 10.0].map(|at| (at, Some(1.0))).to_vec();
        assert_eq!(with_gaps(held)[4], (4.0, None));
        // One sample of one second is missing: the step is two seconds.
        let held: Vec<SeriesPoint> = [0.0, 1.0, 2.0, 3.1, 5.0, 6.0, 7.0].map(|at| (at, Some(1.0))).to_vec();
        let broken = with_gaps(held);
        assert_eq!(broken.iter().filter(|point| point.1.is_none()).count(), 1, "{broken:?}");
        assert!(broken[4].0 > 3.1 && broken[4].0 < 5.0, "{broken:?}");
    }

    #[test]
    fn a_gap_of_a_second_is_seen_in_a_day() {
        let mut points: Vec<SeriesPoint> =
            (0..86_400).map(|i| (f64::from(i), Some(f64::from(i % 7)))).collect();
        points[50_000].1 = None;
        let few = decimate_points(&points, MOST);
        assert!(few.len() <= MOST, "{}", few.len());
        assert!(few.contains(&(50_000.0, None)));
        assert!(few.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
