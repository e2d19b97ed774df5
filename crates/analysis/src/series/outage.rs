//! Stretches of a series in which nothing succeeded.

use super::median;

/// Shortest outage, seconds; of a run of less than ten seconds a fifth of it, but not less than half a second.
const SHORTEST_S: f64 = 2.0;

/// Operations that ended in a second before the server stopped within it: up to this share of the median is nothing.
const NOTHING: f64 = 0.01;

/// Outages: begin and end of each, in seconds from the first part's begin. `parts` are the operations that succeeded and the
/// length in seconds of intervals that follow each other, `level` is the operations of a usual second. An outage is an empty
/// interval, with as much of the intervals beside it as they lack of the level.
pub fn outages(parts: &[(f64, f64)], level: f64) -> Vec<(f64, f64)> {
    let is_empty = |(ok, length_s): &(f64, f64)| *ok <= level * length_s * NOTHING;
    let lacks_s =
        |part: Option<&(f64, f64)>| part.map_or(0.0, |(ok, length_s)| (length_s - ok / level).max(0.0));
    let shortest_s = SHORTEST_S.min(parts.iter().map(|(_, length_s)| length_s).sum::<f64>() / 5.0).max(0.5);
    let (mut spans, mut at, mut at_s): (Vec<(f64, f64)>, usize, f64) = (Vec::new(), 0, 0.0);
    for part in parts.chunk_by(|one, next| is_empty(one) == is_empty(next)) {
        let (next, next_s) = (at + part.len(), at_s + part.iter().map(|(_, length_s)| length_s).sum::<f64>());
        let span = (at_s - lacks_s(parts[..at].last()), next_s + lacks_s(parts.get(next)));
        if is_empty(&part[0]) && span.1 - span.0 >= shortest_s {
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

#[cfg(test)]
mod tests {
    use super::outages;

    #[test]
    fn an_outage_lasts_two_seconds_or_a_fifth_of_a_short_run() {
        let of = |seconds: &[f64]| {
            let parts: Vec<(f64, f64)> = seconds.iter().map(|ok| (*ok, 1.0)).collect();
            outages(&parts, 100.0)
        };
        // A server that dies in the middle of four seconds, after 0.55 s of the third.
        let [(from, to)] = of(&[100.0, 100.0, 55.0, 0.0])[..] else { panic!() };
        assert!((from - 2.55).abs() < 1e-9 && (to - 4.0).abs() < 1e-9, "{from} to {to}");
        // A part of a second at the end of a short run is none.
        assert_eq!(outages(&[(100.0, 1.0), (0.0, 0.3)], 100.0), []);
        assert_eq!(outages(&[(100.0, 1.0), (0.0, 0.6)], 100.0).len(), 1);
        // The same 1.45 s of a minute.
        let mut minute = [100.0; 60];
        (minute[30], minute[31]) = (55.0, 0.0);
        assert_eq!(of(&minute), []);
        minute[32] = 40.0;
        assert_eq!(of(&minute).len(), 1);
    }
}
