//! Figures of blocks, how sure they are, and whether they lie below a limit.
//!
//! A figure is a ratio: what was counted in all blocks by the operations of all blocks. Its error follows from the blocks'
//! d_b = k_b - ratio x n_b, whose neighbours may be alike ([`steady_mean`](crate::series::steady::steady_mean)), and is
//! never less than that of independent operations. A percentile's is that of the share beyond it, carried over to the times
//! (Woodruff 1952; Heidelberger and Lewis 1984).

use crate::blocks::{BlockCounts, Blocks, LatencyKind, Population};
use crate::interval::mean_interval;
use crate::series::steady::{SteadyMean, steady_mean_of};
use dyno_rundir::schema::{ConfidenceInterval, Latency, Phase};

/// Blocks that an interval takes.
pub(crate) const BLOCKS: usize = 10;

/// Quantile of the normal distribution for 95 %.
const NORMAL: f64 = 1.96;

/// Independent operations that must lie beyond a limit, else a share says something only where every block agrees.
const EVENTS: f64 = 5.0;

/// Fewer blocks than this must agree each by itself.
const AGREEING: usize = 5;

/// Most that a margin says, either way.
const FAR: f64 = 1_000.0;

/// Factor between a limit and the one that every block must keep where few independent operations lie beyond it.
const HARDER: f64 = 1.5;

/// Share of the operations by which the correlation of blocks is told.
const MEDIAN: f64 = 0.5;

/// Most that a margin says, either way, where nothing is decided.
const UNDECIDED: f64 = 0.999;

/// A figure and its error.
#[derive(Clone, Debug)]
pub(crate) struct RatioEstimate {
    /// Blocks: operations, and what was counted of them.
    blocks: Vec<BlockCounts>,
    /// The ratio.
    figure: f64,
    /// Half the width of its 95 % interval; `None` of fewer than ten blocks.
    half_width: Option<f64>,
    /// The same if operations were independent.
    independent: f64,
    /// The same if they come together as those of a neighbouring figure do, which more of them tell.
    alike: f64,
}

impl RatioEstimate {
    /// The ratio of `blocks`, of which one operation has the standard deviation `deviation`.
    pub(crate) fn new(blocks: Vec<BlockCounts>, deviation: f64) -> Option<Self> {
        Self::of(blocks, deviation, 0.0)
    }

    /// The same where neighbouring blocks are known to correlate at least so much.
    fn of(blocks: Vec<BlockCounts>, deviation: f64, correlation: f64) -> Option<Self> {
        let (all, counted) = sums(&blocks);
        if all <= 0.0 {
            return None;
        }
        let figure = counted / all;
        let independent = NORMAL * deviation / all.sqrt();
        let by_blocks = spread(&blocks, figure, correlation);
        let by_blocks = by_blocks.map(|mean| mean.interval.half_width * blocks.len() as f64 / all);
        let half_width = by_blocks.map(|half| half.max(independent));
        Some(RatioEstimate { blocks, figure, half_width, independent, alike: independent })
    }

    /// The share that was counted: of operations that are independent its deviation is that of a coin. One of none has no design
    /// effect: it does not tell how failures come together, and the slowest operations, which do where a queue stands, are
    /// no measure of it.
    pub(crate) fn from_share(blocks: Vec<BlockCounts>) -> Option<Self> {
        let (all, counted) = sums(&blocks);
        let share: f64 = counted / all;
        Self::new(blocks, (share * (1.0 - share)).sqrt())
    }

    /// Design effect: by how many an independent operation is worth more (Kish 1965); 1 of fewer than ten blocks.
    pub(crate) fn design_effect(&self) -> f64 {
        let ratio = self.half_width.unwrap_or(self.independent) / self.independent;
        if ratio.is_finite() { ratio * ratio } else { 1.0 }
    }

    /// The ratio.
    pub(crate) fn figure(&self) -> f64 {
        self.figure
    }

    /// Half the width of its interval; `None` of fewer than ten blocks.
    pub(crate) fn half_width(&self) -> Option<f64> {
        self.half_width
    }

    /// Its interval.
    pub(crate) fn confidence_interval(&self) -> Option<ConfidenceInterval> {
        let half = self.half_width?;
        Some(ConfidenceInterval { low: self.figure - half, high: Some(self.figure + half) })
    }

    /// Number of independent operations.
    fn worth(&self) -> f64 {
        self.blocks.iter().map(|block| block.0).sum::<f64>() / self.design_effect()
    }

    /// The interval of a share (Wilson 1927).
    pub(crate) fn wilson_interval(&self) -> ConfidenceInterval {
        let (n, p, z) = (self.worth(), self.figure, NORMAL * NORMAL);
        let middle = (p + z / (2.0 * n)) / (1.0 + z / n);
        let half = NORMAL / (1.0 + z / n) * (p * (1.0 - p) / n + z / (4.0 * n * n)).sqrt();
        ConfidenceInterval { low: (middle - half).max(0.0), high: Some((middle + half).min(1.0)) }
    }

    /// Distance of a figure below a limit, in half widths: 1 and above says that it is below, -1 and below that it is above;
    /// `None` where nothing varies and the figure is the limit. `blocks` are those of the figure, which may be another than the
    /// one whose error this is.
    /// `far` are the same blocks for a limit that is so much harder to keep that no luck of few operations keeps it.
    fn margin(
        &self,
        blocks: &[BlockCounts],
        far: &[BlockCounts],
        limit: f64,
        is_sparse: bool,
    ) -> Option<f64> {
        let (n, k) = sums(blocks);
        let below = limit - k / n;
        // Without any spread every difference is far, and none decides nothing: the relation of the threshold does.
        let margin = |half: f64| (below != 0.0 || half > 0.0).then(|| (below / half).clamp(-FAR, FAR));
        let agrees = |block: &BlockCounts| {
            let own = (limit - block.1 / block.0) * below.signum();
            let half = if blocks.len() < AGREEING { self.independent * (n / block.0).sqrt() } else { 0.0 };
            block.0 <= 0.0 || own > half
        };
        let agreed = |blocks: &[BlockCounts]| blocks.iter().all(agrees);
        match self.half_width {
            Some(half) if !is_sparse => margin(half),
            // Too few blocks, or too few independent operations beyond the limit.
            _ if agreed(far) => margin(self.independent),
            _ if below.abs() >= self.alike && agreed(blocks) => margin(self.alike),
            // Far more lies beyond the limit than may: the error of that share tells.
            Some(half) if below < 0.0 => margin(half.max(Self::new(blocks.to_vec(), 0.0)?.half_width?)),
            half => margin(half.or_else(|| apart(blocks)).unwrap_or(f64::INFINITY))
                .map(|margin| margin.clamp(-UNDECIDED, UNDECIDED)),
        }
    }

    /// Distance of the figure below a limit.
    pub(crate) fn distance_below(&self, limit: f64) -> Option<f64> {
        self.margin(&self.blocks, &self.blocks, limit, false)
    }

    /// Distance of a share below a limit, by its error at the limit.
    pub(crate) fn share_below(&self, limit: f64) -> Option<f64> {
        let all: f64 = self.blocks.iter().map(|block| block.0).sum();
        // No share is above 1.
        let limit = limit.min(1.0);
        let independent = NORMAL * (limit * (1.0 - limit) / all).sqrt();
        let half_width = self.half_width.map(|_| independent * self.design_effect().sqrt());
        let at_limit = RatioEstimate { independent, alike: independent, half_width, ..self.clone() };
        at_limit.margin(&self.blocks, &self.blocks, limit, self.worth() * limit < EVENTS)
    }
}

/// Operations of all blocks, and what was counted of them.
fn sums(blocks: &[BlockCounts]) -> BlockCounts {
    blocks.iter().fold((0.0, 0.0), |(n, k), block| (n + block.0, k + block.1))
}

/// Half the width of a ratio's interval by few blocks, as if they were independent.
fn apart(blocks: &[BlockCounts]) -> Option<f64> {
    let (all, counted) = sums(blocks);
    let rest: Vec<f64> = blocks.iter().map(|(n, k)| k - counted / all * n).collect();
    Some(mean_interval(&rest)?.half_width * rest.len() as f64 / all)
}

/// Mean of what blocks have above a ratio, with its error.
fn spread(blocks: &[BlockCounts], ratio: f64, correlation: f64) -> Option<SteadyMean> {
    let rest: Vec<f64> = blocks.iter().map(|(n, k)| k - ratio * n).collect();
    steady_mean_of(&rest, 1, correlation)
}

/// Factor between shares at which the lower end of an interval is looked for, and how often the last step is halved.
const STEP: f64 = 1.25;
const HALVINGS: usize = 4;

/// The share beyond a percentile.
fn beyond(population: &Population, share: f64, correlation: f64) -> Option<RatioEstimate> {
    RatioEstimate::of(population.beyond_quantile(share), (share * (1.0 - share)).sqrt(), correlation)
}

/// A percentile of a population, as a share, and its error.
pub(crate) struct Quantile<'a> {
    population: &'a Population,
    share: f64,
    beyond: RatioEstimate,
    /// Least correlation of neighbouring blocks.
    correlation: f64,
}

impl<'a> Quantile<'a> {
    /// The percentile that `share` of the operations do not exceed.
    pub(crate) fn new(population: &'a Population, share: f64) -> Option<Self> {
        // Few operations do not show how blocks correlate, nor how slow ones come together; the half of them does.
        let median = beyond(population, MEDIAN, 0.0)?;
        let correlation = spread(&median.blocks, median.figure, 0.0).map_or(0.0, |mean| mean.correlation);
        let mut beyond = beyond(population, share, correlation)?;
        let together = apart(&median.blocks).unwrap_or(0.0) / median.independent;
        beyond.alike = beyond.independent * together.max(1.0);
        Some(Quantile { population, share, beyond, correlation })
    }

    /// The lowest share that may be this one: of it and of all between, the error of the operations beyond reaches to those
    /// beyond this one. An error by the few beyond a high percentile alone would miss how they come together.
    fn lowest(&self) -> Option<f64> {
        let own = 1.0 - self.share;
        let reaches = |share: f64| {
            let beyond = beyond(self.population, 1.0 - share, self.correlation)?;
            Some(share - beyond.half_width? <= own)
        };
        let mut reached = (own + self.beyond.half_width?).min(1.0);
        let mut missed = reached;
        while missed < 1.0 && reaches(missed)? {
            reached = missed;
            missed = (missed * STEP).min(1.0);
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(reached, missed);
            if reaches(middle)? { reached = middle } else { missed = middle }
        }
        Some(1.0 - reached)
    }

    fn is_sparse(&self) -> bool {
        self.beyond.worth() * (1.0 - self.share) < EVENTS
    }

    /// Its interval, microseconds; `None` of fewer than ten blocks. It has no upper end where too few operations lie beyond.
    pub(crate) fn confidence_interval(&self) -> Option<ConfidenceInterval> {
        let half = self.beyond.half_width?;
        let low = self.population.quantile_us(self.lowest()?.max(0.0))?;
        let reach = self.share + half;
        let high = (reach < 1.0 && !self.is_sparse()).then(|| self.population.quantile_us(reach)).flatten();
        Some(ConfidenceInterval { low, high })
    }

    /// Distance below a limit that `misses` tells from times in microseconds: 1 and above says that the percentile is below
    /// it, -1 and below that it is not.
    pub(crate) fn distance_below(&self, misses: impl Fn(f64) -> bool) -> Option<f64> {
        let blocks = self.population.count_beyond_limit(&misses);
        let (n, k) = sums(&blocks);
        let harder = if k / n < 1.0 - self.share { HARDER } else { 1.0 / HARDER };
        let far = self.population.count_beyond_limit(|us| misses(us * harder));
        self.beyond.margin(&blocks, &far, 1.0 - self.share, self.is_sparse())
    }
}

/// Adds the intervals of a phase's percentiles.
pub fn add_intervals(phase: &mut Phase, blocks: &Blocks) {
    for metric in &mut phase.metrics {
        let Some(number) = blocks.number_of(&metric.name) else { continue };
        for (kind, ok, all) in [
            (LatencyKind::Service, &mut metric.service, &mut metric.all_service),
            (LatencyKind::Response, &mut metric.response, &mut metric.all_response),
        ] {
            let both = blocks.latency_populations(number, kind);
            ok.iter_mut().for_each(|latency| put(latency, &both[both.len().saturating_sub(1)..]));
            all.iter_mut().for_each(|latency| put(latency, &both));
        }
    }
}

/// Adds the intervals of the percentiles of a latency, each of which is the greatest of these populations.
fn put(latency: &mut Latency, populations: &[Population]) {
    let one = |(name, value): (&String, &Option<f64>)| {
        value.as_ref()?;
        let share = name.strip_prefix('p')?.parse::<f64>().ok()? / 100.0;
        let own = populations
            .iter()
            .filter_map(|population| Quantile::new(population, share)?.confidence_interval());
        Some((name.clone(), own.reduce(interval_of_greater)?))
    };
    latency.intervals_us = latency.percentiles_us.iter().filter_map(one).collect();
}

/// The interval of the greater of two figures.
pub(crate) fn interval_of_greater(one: ConfidenceInterval, other: ConfidenceInterval) -> ConfidenceInterval {
    let high = one.high.zip(other.high).map(|(one, other)| one.max(other));
    ConfidenceInterval { low: one.low.max(other.low), high }
}
