//! Stretches of a series in which nothing succeeded.

use super::median;

/// Shortest outage, seconds.
pub const SHORTEST_S: f64 = 2.0;

/// Operations that ended in a second before the server stopped within it: up to this share of the median is nothing.
const NOTHING: f64 = 0.01;

/// Outages: begin and end of each, in seconds from the first part's begin. `parts` are the operations that succeeded and the
/// length in seconds of intervals that follow each other, `level` is the operations of a usual second. An outage is an empty
/// interval, with as much of the intervals beside it as they lack of the level.
pub fn outages(parts: &[(f64, f64)], level: f64) -> Vec<(f64, f64)> {
    let is_empty = |(ok, length_s): &(f64, f64)| *ok <= level * length_s * NOTHING;
    let lacks_s =
        |part: Option<&(f64, f64)>| part.map_or(0.0, |(ok, length_s)| (length_s - ok / level).max(0.0));
    let (mut spans, mut at, mut at_s): (Vec<(f64, f64)>, usize, f64) = (Vec::new(), 0, 0.0);
    for part in parts.chunk_by(|one, next| is_empty(one) == is_empty(next)) {
        let (next, next_s) = (at + part.len(), at_s + part.iter().map(|(_, length_s)| length_s).sum::<f64>());
        let span = (at_s - lacks_s(parts[..at].last()), next_s + lacks_s(parts.get(next)));
        if is_empty(&part[0]) && span.1 - span.0 >= SHORTEST_S {
            spans.push(span);
        }
        (at, at_s) = (next, next_s);
    }
    spans
}

/// Operations of a usual interval: the median of those with a success. `None` if nothing succeeded at all.
pub fn level(series: &[f64]) -> Option<f64> {
    let served: Vec<f64> = series.iter().copied().filter(|ok| *ok > 0.0).collect();
    median(&served)
}
