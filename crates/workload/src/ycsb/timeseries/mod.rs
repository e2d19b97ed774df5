//! YCSB's time-series workload: points of many tagged series are written in time order, and queried by key, tags and
//! time.
//!
//! Faults of YCSB's that are mended here: grouping works; updates and queries need no minimum of records; all missing
//! cardinalities count as 1; deletes can be chosen; run-phase inserts continue where the load ended instead of
//! writing it again. Queries and updates address loaded points only, so every request is a pure function of its
//! index. Users own ranges of keys; index i belongs to user i mod users.

mod config;
mod content;
mod space;

use crate::OwnMetrics;
use crate::ycsb::operations::own_metrics;
pub use config::{Downsampling, Grouping, NumberKind, TimeSeriesConfig};
pub use content::TimeSeriesContent;
use dyno_types::metric::CLEANUP;

use super::operations::{MetricOf, Operation, run_metrics};
use super::properties::BadProperty;
use super::requests::Chooser;
use crate::mix::Mix;
use crate::ycsb::prior_inserts::Worker;
use crate::{Draw, Frontier, Workload};
use dyno_types::rng::{self, Purpose, Stream};
use dyno_types::{Content, Fields, Request, Verb};
use std::sync::Arc;

/// YCSB's time-series workload, in one of its two phases.
#[derive(Debug)]
pub struct TimeSeriesWorkload {
    metrics: Vec<String>,
    content: Arc<TimeSeriesContent>,
    run: Option<TimeSeriesRun>,
}

#[derive(Clone, Debug)]
struct TimeSeriesRun {
    mix: Mix,
    metric: MetricOf,
    operation: Vec<Operation>,
    chooser: Chooser,
    worker: Worker,
}

impl TimeSeriesWorkload {
    /// The load phase: index i writes the next point of user i mod users.
    pub fn load_phase(config: &TimeSeriesConfig) -> Self {
        TimeSeriesWorkload {
            metrics: vec!["INSERT".into(), CLEANUP.into()],
            content: Arc::new(TimeSeriesContent::new(config)),
            run: None,
        }
    }

    /// The run phase: index i is an operation of the mix.
    pub fn run(config: &TimeSeriesConfig) -> Result<Self, BadProperty> {
        let weights = config.proportions.all_weights();
        let mix = Mix::new(&weights, Some(Operation::Insert as usize), config.mode, config.seed).ok_or_else(
            || BadProperty::new("readproportion", weights[0], "weights from 0 on, not all of them 0"),
        )?;
        let (metrics, metric, operation) = run_metrics(&weights, config.data_integrity);
        let chooser = Chooser::without_inserts(config.requests, config.keys, config.seed);
        Ok(TimeSeriesWorkload {
            metrics,
            content: Arc::new(TimeSeriesContent::new(config)),
            run: Some(TimeSeriesRun { mix, metric, operation, chooser, worker: Worker::default() }),
        })
    }

    /// A point that the load has written.
    fn existing(&self, run: &TimeSeriesRun, draw: &Draw) -> u64 {
        let space = &self.content.space;
        let mut stream = Stream::from_bits(draw.seed);
        let key = run.chooser.choose_key(
            &mut stream,
            || run.mix.others_before(draw.index),
            self.content.config.keys - 1,
        );
        let combination = stream.next_below(space.combinations());
        let offset = stream.next_below(space.offsets(key));
        space.code(key, combination, offset)
    }
}

impl Workload for TimeSeriesWorkload {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn own_metrics(&self) -> OwnMetrics {
        own_metrics(&self.metrics)
    }

    fn content(&self) -> Arc<dyn Content> {
        Arc::clone(&self.content) as Arc<dyn Content>
    }

    fn draw(&self, index: u64) -> Draw {
        let seed = rng::draw_at(self.content.config.seed, index, Purpose::Key);
        match &self.run {
            None => Draw { index, kind: 0, seed },
            Some(run) => Draw { index, kind: run.metric[run.mix.kind(index)], seed },
        }
    }

    fn bind(&self, draw: &Draw, frontier: &Frontier) -> Request {
        let space = &self.content.space;
        let mut request = Request { metric: draw.kind, seed: draw.seed, ..Request::default() };
        let Some(run) = &self.run else {
            request.verb = Verb::Insert;
            request.key = space.load(draw.index);
            return request;
        };
        let operation = run.operation[usize::from(draw.kind)];
        if operation == Operation::Insert {
            request.verb = Verb::Insert;
            request.key = space.insert(run.worker.rank_of_own(frontier.next_key()));
            return request;
        }
        request.key = self.existing(run, draw);
        match operation {
            Operation::Update => request.verb = Verb::Update,
            Operation::Delete => request.verb = Verb::Delete,
            Operation::Scan => {
                let config = &self.content.config;
                let choices = u64::from(config.max_scan - config.min_scan) + 1;
                let mut stream = Stream::new(draw.seed, 0, Purpose::Choice);
                request.verb = Verb::Scan;
                request.limit = config.min_scan + stream.next_below(choices) as u32;
                request.fields = Fields::Named;
            }
            _ => request.fields = Fields::Named,
        }
        request
    }

    fn part(&self, index: u64, total: u64) -> Option<Arc<dyn Workload>> {
        let run = TimeSeriesRun { worker: Worker { index, total }, ..self.run.clone()? };
        Some(Arc::new(TimeSeriesWorkload {
            metrics: self.metrics.clone(),
            content: self.content.clone(),
            run: Some(run),
        }))
    }

    fn is_pure(&self) -> bool {
        self.run.as_ref().is_none_or(|run| run.mix.share(Operation::Insert as usize) == 0.0)
    }

    fn expects(&self) -> Option<(u64, u64)> {
        self.run.as_ref().map(|_| (self.content.config.record_count, 0))
    }

    /// Counts inserts; nothing is looked up in it.
    fn frontier(&self) -> Frontier {
        Frontier::new(0)
    }
}

#[cfg(test)]
mod tests;
