//! Throughput second by second of the measured phase, and the one figure a table shows.

use crate::journal::WindowEstimate;
use dyno_analysis::interval::mean_interval;
use dyno_config::experiment::{Estimator, Window};
use dyno_engine::Job;
use dyno_rundir::schema::Phase;
use dyno_session::session::{Observer, PhaseProgress};
use dyno_types::stats::{mean, median};

/// Successful operations of each measured second.
#[derive(Clone, Debug, Default)]
pub(super) struct SuccessSeries {
    /// (Begin and end in seconds since the end of the warm-up, operations that ended well).
    seconds: Vec<(f64, f64, u64)>,
    /// End of the last of them, which need not be a whole one.
    end_s: f64,
}

impl SuccessSeries {
    /// An observer that takes down seconds and hands everything on.
    pub fn watch<'a>(&'a mut self, observer: &'a mut dyn Observer) -> Watched<'a> {
        Watched { series: self, observer }
    }

    /// The window's throughput; `None` if the file names no window, or if no whole interval lies in it.
    pub fn estimate(&self, window: &Window) -> Option<WindowEstimate> {
        if *window == Window::default() {
            return None;
        }
        let seconds =
            |span: &Option<dyno_config::values::Span>| span.as_ref().map(|span| span.0 as f64 / 1e9);
        let from = seconds(&window.from).unwrap_or(0.0);
        let to = seconds(&window.to).unwrap_or(f64::INFINITY);
        let length = seconds(&window.interval).unwrap_or(1.0).max(1.0);
        let mut rates = Vec::new();
        let mut begin = from;
        // Half a millisecond of slack: seconds are whole, the warm-up's end need not be.
        while begin + length <= to.min(self.end_s) + 5e-4 {
            // Of a second that an interval cuts, the part that lies in it: the warm-up's end need not be whole.
            let inside = self.seconds.iter().filter(|(from, to, _)| to > from).map(|(from, to, count)| {
                let both = (to.min(begin + length) - from.max(begin)).max(0.0);
                *count as f64 * both / (to - from)
            });
            rates.push(inside.sum::<f64>() / length);
            begin += length;
        }
        let mean = mean(&rates)?;
        let figure = match window.estimator {
            Estimator::Mean => mean,
            Estimator::TruncatedMean => mean.trunc(),
            Estimator::Median => median(&rates)?,
        };
        let half_width = mean_interval(&rates).map(|interval| interval.half_width);
        Some(WindowEstimate { figure, intervals: rates.len(), mean, half_width })
    }
}

/// See [`SuccessSeries::watch`].
pub(super) struct Watched<'a> {
    series: &'a mut SuccessSeries,
    observer: &'a mut dyn Observer,
}

impl Observer for Watched<'_> {
    fn begin(&mut self, phase: &str, plan: &Job) {
        self.observer.begin(phase, plan);
    }

    fn second(&mut self, progress: &PhaseProgress<'_>) {
        if progress.phase == "measure" {
            let begin = (progress.elapsed_s - progress.length_s.unwrap_or(1.0)).max(0.0);
            self.series.seconds.push((begin, progress.elapsed_s, progress.last.count_completed()));
            // Of a second that operations or a stop have cut it is not known how long it was: it is no interval.
            if progress.length_s.is_some() {
                self.series.end_s = progress.elapsed_s;
            }
        }
        self.observer.second(progress);
    }

    fn end(&mut self, phase: &Phase) {
        self.observer.end(phase);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_config::values::Span;

    #[test]
    fn windows_hold_whole_intervals() {
        let seconds = (0..30).map(|s| (f64::from(s), f64::from(s) + 1.0, u64::from(s as u32) * 10)).collect();
        let series = SuccessSeries { seconds, end_s: 30.0 };
        let span = |s: u64| Some(Span(s * 1_000_000_000));
        let window = |from, to, interval, estimator| Window {
            from: span(from),
            to: span(to),
            interval: span(interval),
            estimator,
        };
        let figure = |window: &Window| series.estimate(window).map(|found| found.figure);
        // Seconds 10 to 19: 100, 110, ... 190.
        assert_eq!(figure(&window(10, 20, 1, Estimator::Mean)), Some(145.0));
        assert_eq!(figure(&window(10, 20, 5, Estimator::Median)), Some(145.0));
        assert_eq!(figure(&window(10, 13, 1, Estimator::TruncatedMean)), Some(110.0));
        assert_eq!(figure(&window(10, 24, 10, Estimator::Mean)), Some(145.0));
        let whole = series.estimate(&window(10, 20, 1, Estimator::Mean)).unwrap();
        // s = 30.277, t(0.975, 9) = 2.2622: 21.659 (computed apart).
        assert!(whole.intervals == 10 && (whole.half_width.unwrap() - 21.659).abs() < 1e-2, "{whole:?}");
        assert_eq!(series.estimate(&window(40, 50, 1, Estimator::Mean)), None);
        assert_eq!(series.estimate(&Window::default()), None);
        // Of the last second 0.4 s were measured: that is no interval of a second.
        let cut = SuccessSeries { end_s: 29.4, ..series };
        let found = cut.estimate(&window(27, 40, 1, Estimator::Mean)).unwrap();
        assert_eq!((found.intervals, found.figure), (2, 275.0));
    }

    #[test]
    fn a_second_that_the_warm_up_cuts_is_told_by_its_parts() {
        // 0.6 s behind a warm-up of 0.4 s, then whole seconds: 1,000 operations in each.
        let mut seconds = vec![(0.0, 0.6, 600)];
        seconds.extend((0..3).map(|s| (f64::from(s) + 0.6, f64::from(s) + 1.6, 1_000)));
        let series = SuccessSeries { seconds, end_s: 3.6 };
        let window = Window { from: Some(Span(0)), estimator: Estimator::Mean, ..Window::default() };
        let found = series.estimate(&window).unwrap();
        assert_eq!((found.intervals, found.figure.round()), (3, 1_000.0));
    }
}
