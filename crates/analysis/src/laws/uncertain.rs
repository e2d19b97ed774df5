//! Bounds of a sweep and their uncertainty: a bootstrap over runs.

use super::observe::Observed;
use crate::compare::bootstrap::Small;
use crate::interval::mean_interval;
use crate::queueing::bounds::greatest_response_time;
use crate::queueing::{Bounds, ClosedSystem};
use crate::scalability::fit::{ALIKE, Fitted, Point, hidden_variance, resample_points};
use dyno_types::rng::{Purpose, Stream};

/// Replicates of the bootstrap.
const REPLICATES: usize = 1_000;

/// Means of a level for the bounds: users, throughput, response time in seconds.
pub(super) type LevelMeans = (f64, f64, f64);

/// Total demand, demand of the bottleneck, and the rest of a user's cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asymptotes {
    /// The least mean response time, seconds.
    pub total_s: f64,
    /// One by the greatest throughput that can be kept, seconds.
    pub bottleneck_s: f64,
    /// Thinking, and the client's own part, seconds.
    pub think_s: f64,
    /// True if there are levels well beyond the crossing.
    pub plateau: bool,
    /// The least and greatest users of the levels that the bottleneck's demand is by.
    of: (f64, f64),
    /// Users of the level with the least response time.
    alone: f64,
}

impl Asymptotes {
    /// Computes them from the levels' means. Where throughput `falls` beyond a peak, the peak is what the bottleneck can do.
    pub fn from_levels(levels: &[LevelMeans], think_s: f64, falls: bool) -> Self {
        // One user meets no queue: its time is the total demand. Of more users, the least is an upper bound of it.
        let quickest = levels.iter().min_by(|a, b| a.2.total_cmp(&b.2));
        let (alone, total_s) = quickest.map_or((0.0, f64::INFINITY), |level| (level.0, level.2));
        let greatest = levels.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let (at, best) = greatest.map_or((0.0, 0.0), |level| (level.0, level.1));
        // The plateau by the mean of what lies well beyond the crossing: the maximum of noisy runs is too high.
        let first = (total_s + think_s) * best;
        let beyond: Vec<f64> = levels.iter().filter(|l| l.0 >= 3.0 * first).map(|l| l.1).collect();
        let plateau = !beyond.is_empty();
        let (most, of) = match plateau && !falls {
            true => (beyond.iter().sum::<f64>() / beyond.len() as f64, (3.0 * first, f64::INFINITY)),
            false => (best, (at, at)),
        };
        Asymptotes { total_s, bottleneck_s: 1.0 / most, think_s, plateau, of, alone }
    }

    /// Models the bottleneck as a queue. How the rest of the demand is spread does not matter to the asymptotes: no network
    /// does more than the one in which no request waits there.
    fn system(&self) -> ClosedSystem {
        let rest = (self.total_s - self.bottleneck_s).max(0.0);
        ClosedSystem { demands: vec![self.bottleneck_s], think: self.think_s + rest }
    }

    /// Number of users at which they cross.
    pub fn saturation_users(&self) -> f64 {
        self.system().saturation_users()
    }

    /// Asymptotic bound of throughput, and the balanced job bounds.
    pub fn throughput_bounds(&self, users: f64) -> (f64, (f64, f64)) {
        let system = self.system();
        let (Bounds { throughput, .. }, balanced) =
            (system.asymptotic_bounds(users), system.balanced_bounds(users));
        let total = self.total_s.max(self.bottleneck_s);
        let least =
            users / (self.think_s + greatest_response_time((total, self.bottleneck_s), self.think_s, users));
        (throughput.1, (least, balanced.throughput.1))
    }
}

/// 95 % intervals of the greatest throughput and of where the bounds cross. Runs of a level stand for each other where there
/// are three or more, else the chosen model's residuals do; `None` where there is neither. The intervals are Student's about
/// what the levels say, on the logarithm, with the replicates' deviation: those of the replicates themselves are too narrow
/// for few runs, as no mean that is drawn again lies beyond the runs.
pub(super) fn estimate_intervals(
    closed: &[&Observed],
    points: &[Point],
    chosen: Option<&Fitted>,
    found: &Asymptotes,
    falls: bool,
    seed: u64,
) -> Option<[(f64, f64); 2]> {
    let several = |one: &Point| points.iter().filter(|other| other.users == one.users).count() >= ALIKE;
    let by_runs = points.iter().all(several);
    if chosen.is_none() && !by_runs {
        return None;
    }
    let mut random = Stream::new(seed, 1, Purpose::Choice);
    let (mut greatest, mut alone, mut crossing) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPLICATES {
        let mut levels: Vec<(f64, Vec<(f64, f64)>)> = Vec::new();
        for (run, drawn) in closed.iter().zip(resample_points(chosen, points, &mut random)) {
            // The part of a user's cycle that is no response time does not depend on how fast the system is.
            let idle = (drawn.users / run.throughput - run.response_s).max(0.0);
            let one = (drawn.throughput, (drawn.users / drawn.throughput - idle).max(f64::MIN_POSITIVE));
            match levels.iter_mut().find(|(users, _)| *users == drawn.users) {
                Some((_, all)) => all.push(one),
                None => levels.push((drawn.users, vec![one])),
            }
        }
        let mean = |(users, all): &(f64, Vec<(f64, f64)>)| {
            let count = all.len() as f64;
            (
                *users,
                all.iter().map(|one| one.0).sum::<f64>() / count,
                all.iter().map(|one| one.1).sum::<f64>() / count,
            )
        };
        let drawn =
            Asymptotes::from_levels(&levels.iter().map(mean).collect::<Vec<_>>(), found.think_s, falls);
        greatest.push((1.0 / drawn.bottleneck_s).ln());
        alone.push(drawn.total_s.ln());
        crossing.push(drawn.saturation_users().ln());
    }
    let deviation = |all: &[f64]| mean_interval(all).map_or(0.0, |found| found.deviation);
    // Each level of which runs are drawn again has its own mean; residuals have one law.
    let of_levels = |(least, most): (f64, f64)| {
        let within: Vec<f64> =
            points.iter().map(|p| p.users).filter(|u| (least..=most).contains(u)).collect();
        let mut levels = within.clone();
        levels.dedup();
        let plain = hidden_variance(chosen, points);
        if by_runs { Small { freedom: (within.len() - levels.len()) as f64, ..plain } } else { plain }
    };
    let (most, single) = (of_levels(found.of), of_levels((found.alone, found.alone)));
    let (one, other) = (deviation(&greatest).powi(2), deviation(&alone).powi(2));
    // Both parts of the crossing, as Welch and Satterthwaite put them together.
    let together = (one + other).powi(2) / (one.powi(2) / most.freedom + other.powi(2) / single.freedom);
    let both = Small { freedom: if together.is_finite() { together } else { most.freedom }, ..most };
    let around = |value: f64, replicates: &[f64], small: Small| {
        let half = small.interval_reach(0.025) * deviation(replicates);
        (value * (-half).exp(), value * half.exp())
    };
    Some([
        around(1.0 / found.bottleneck_s, &greatest, most),
        around(found.saturation_users(), &crossing, both),
    ])
}
