//! The server's share of the latest response times of a run under way.

use dyno_record::{Scale, is_supported};
use dyno_rundir::{files, hlog};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes at the end of `latency.hlog` in which the last interval is looked for.
const TAIL: u64 = 1 << 20;

/// Of the last interval that was recorded of a phase with an operation: its begin, in seconds from the phase's epoch, and p50 and
/// p99 of the server's share of that operation's response times, microseconds; `None` where it is not known, or where too few
/// samples support p99. In the closed loop the server's share is the service time.
pub fn latest_server_share(dir: &Path, scale: Scale, phase: &str, metric: &str) -> Option<(f64, [f64; 2])> {
    let mut file = files::open(&dir.join("latency.hlog")).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let tail = String::from_utf8_lossy(&bytes);
    // The last line may be torn, and so is the first where something is left out: no line begins in the middle of one.
    let whole = &tail[..tail.rfind('\n')? + 1];
    let last = |tag: &str| whole.lines().rev().find(|line| line.starts_with(&format!("Tag={phase}.{tag},")));
    let share = last(&format!("{metric}.ok.server")).or_else(|| {
        // A closed loop in which the client's delays are known has these.
        last("client.lag.turnaround").and_then(|_| last(&format!("{metric}.ok.service")))
    })?;
    let start_s: f64 = share.split(',').nth(1)?.parse().ok()?;
    let (_, counts) = hlog::read(&format!("{share}\n"), scale).ok()?.pop_first()?;
    is_supported(counts.count(), 99.0)
        .then(|| (start_s, [50.0, 99.0].map(|p| counts.percentile_ns(p) as f64 / 1e3)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::{ThreadInterval, Totals};
    use dyno_types::Outcome;

    /// Lines of an interval whose service times are 1 us to 2 ms, times `factor`.
    fn lines(at: f64, factor: u64, is_open: bool) -> String {
        let mut interval = ThreadInterval::new(1, Scale::Ns64);
        for n in 1..=2_000_u64 {
            interval.record_ended(0, Outcome::Ok, n * 1_000 * factor, n * 9_000 * factor);
            if is_open {
                interval.record_server(0, n * 1_000 * factor);
            }
        }
        let mut totals = Totals::new(1, Scale::Ns64);
        totals.add_interval(&interval);
        if !is_open {
            totals.turnaround.record(100);
        }
        hlog::interval_lines("measure", &["READ".into()], at, 1.0, &totals)
    }

    #[test]
    fn the_last_interval_is_the_one_that_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latency.hlog");
        let share = |phase: &str| latest_server_share(folder.path(), Scale::Ns64, phase, "READ");
        assert_eq!(share("measure"), None);
        for is_open in [true, false] {
            let text =
                lines(0.0, 1, is_open) + &lines(1.0, 3, is_open) + "Tag=measure.READ.ok.server,2.0,1.0";
            std::fs::write(&path, &text).unwrap();
            let (start_s, [p50, p99]) = share("measure").unwrap();
            assert!((start_s - 1.0).abs() < 1e-9, "{start_s}");
            // 3 times 1,000 and 1,980 us, within a bucket.
            assert!((p50 - 3_000.0).abs() < 6.0 && (p99 - 5_940.0).abs() < 12.0, "{p50} {p99}");
            assert_eq!(share("load"), None);
            // A long log is read from its end.
            let long = lines(0.0, 1, is_open).repeat((TAIL as usize / text.len() + 1) * 4);
            std::fs::write(&path, long + &lines(9.0, 2, is_open)).unwrap();
            let (start_s, [p50, _]) = share("measure").unwrap();
            assert!((start_s - 9.0).abs() < 1e-9 && (p50 - 2_000.0).abs() < 4.0, "{start_s} {p50}");
        }
        // A closed loop whose client was not measured says nothing of its share.
        let unknown = lines(0.0, 1, false).replace("client.lag.turnaround", "client.lag.receive");
        std::fs::write(&path, unknown).unwrap();
        assert_eq!(share("measure"), None);
    }
}
