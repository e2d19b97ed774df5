//! The core workload: the load phase inserts keys in order, the run phase mixes operations.
//!
//! The picture: `draw` decides the kind and the rank of an operation from its index; `bind` draws the key, the field
//! and the scan length from the draw's own seed. A read-modify-write is a script of two requests, read (step 0) and
//! update (step 1), each recorded under its own metric and the whole under READ-MODIFY-WRITE.
//!
//! Inserts of the run phase get the key numbers from `recordcount` on, in the order in which they are sent: `latest`
//! finds the newest records at once, and a run that ends early leaves no gap. Of several clients each takes every n-th
//! key, so that they never collide (in YCSB they do); what another client has inserted is never read here. The same
//! holds for the worker processes of one client.

use super::config::{CoreConfig, ScanLengths};
use super::content::CoreContent;
use super::operations::own_metrics;
use super::operations::{MetricOf, Operation, asked, run_metrics};
use super::prior_inserts::{PriorInserts, Worker};
use super::properties::BadProperty;
use super::requests::Chooser;
use crate::OwnMetrics;
use crate::distributions::{THETA, Zipfian};
use crate::mix::Mix;
use crate::{Draw, Frontier, Hooks, Workload};
use dyno_types::metric::CLEANUP;
use dyno_types::rng::{self, Keyed, Purpose, Stream};
use dyno_types::{Content, Fields, Outcome, Request, Verb};
use std::sync::Arc;

/// YCSB's core workload, in one of its two phases.
#[derive(Clone, Debug)]
pub struct CoreWorkload {
    metrics: Vec<String>,
    content: Arc<CoreContent>,
    /// The draws that become seeds.
    keys: Keyed,
    phase: CorePhase,
}

#[derive(Clone, Debug)]
enum CorePhase {
    Load { first: u64 },
    Run(Box<Run>),
}

#[derive(Clone, Debug)]
struct Run {
    mix: Mix,
    /// Share of each metric, as written.
    asked: Vec<f64>,
    /// Metric of each operation, by its place in [`OPERATIONS`].
    metric: MetricOf,
    /// Operation of each metric that is one.
    operation: Vec<Operation>,
    chooser: Chooser,
    field_count: u64,
    read_all: Fields,
    read_one: bool,
    write_one: bool,
    scan: Scan,
    first: u64,
    count: u64,
    records: u64,
    /// Run-phase inserts of earlier runs.
    earlier: PriorInserts,
    worker: Worker,
    client: u64,
    clients: u64,
}

#[derive(Clone, Debug)]
enum Scan {
    Uniform { least: u32, choices: u64 },
    Zipfian { least: u32, ranks: Zipfian },
}

impl CoreWorkload {
    /// The load phase: index i inserts key number `insertstart` + i.
    pub fn load_phase(config: &CoreConfig) -> Result<Self, BadProperty> {
        if config.load_count == 0 {
            let key = if config.record_count == 0 { "recordcount" } else { "insertcount" };
            return Err(BadProperty::new(key, 0, "the number of records to load, above 0"));
        }
        Ok(CoreWorkload {
            metrics: vec!["INSERT".into(), CLEANUP.into()],
            content: Arc::new(CoreContent::new(config)?),
            keys: Keyed::new(config.seed, Purpose::Key),
            phase: CorePhase::Load { first: config.insert_start },
        })
    }

    /// The run phase: index i is an operation of the mix.
    pub fn run(config: &CoreConfig) -> Result<Self, BadProperty> {
        if config.insert_start > config.record_count {
            let expected = format!("at most recordcount, which is {}", config.record_count);
            return Err(BadProperty::new("insertstart", config.insert_start, expected));
        }
        let seed = client_seed(config.seed, config.client_id);
        let weights = config.proportions.all_weights();
        let only_inserts = weights.iter().sum::<f64>() == config.proportions.insert;
        if config.insert_start == config.record_count && !only_inserts {
            let expected = "a range of at least one key below recordcount";
            return Err(BadProperty::new("insertstart", config.insert_start, expected));
        }
        let mix =
            Mix::new(&weights, Some(Operation::Insert as usize), config.mode, seed).ok_or_else(|| {
                BadProperty::new("readproportion", weights[0], "weights from 0 on, not all of them 0")
            })?;
        let (metrics, metric, operation) = run_metrics(&weights, config.data_integrity);
        let by_name = config.read_all_fields_by_name || config.data_integrity;
        Ok(CoreWorkload {
            content: Arc::new(CoreContent::new(config)?),
            keys: Keyed::new(seed, Purpose::Key),
            phase: CorePhase::Run(Box::new(Run {
                mix,
                asked: asked(&weights, &metric, metrics.len()),
                metric,
                operation,
                chooser: Chooser::new(config),
                field_count: u64::from(config.field_count),
                read_all: if by_name { Fields::Named } else { Fields::All },
                read_one: !config.read_all_fields,
                write_one: !config.write_all_fields,
                scan: Scan::new(config),
                first: config.insert_start,
                count: config.insert_count,
                records: config.record_count,
                earlier: config.earlier.clone(),
                worker: Worker::default(),
                client: config.client_id,
                clients: config.client_count,
            })),
            metrics,
        })
    }
}

/// The seed of one client among several, so that no two make the same draws; client 0 keeps the seed as it is.
fn client_seed(seed: u64, client: u64) -> u64 {
    if client == 0 { seed } else { rng::mix_bits(seed ^ rng::mix_bits(client)) }
}

impl Scan {
    fn new(config: &CoreConfig) -> Self {
        let least = config.min_scan;
        let choices = u64::from(config.max_scan - least) + 1;
        match config.scan_lengths {
            ScanLengths::Uniform => Scan::Uniform { least, choices },
            ScanLengths::Zipfian => Scan::Zipfian { least, ranks: Zipfian::new(choices, THETA) },
        }
    }

    #[inline]
    fn limit(&self, stream: &mut Stream) -> u32 {
        match self {
            Scan::Uniform { least, choices } => least + stream.next_below(*choices) as u32,
            Scan::Zipfian { least, ranks } => least + ranks.rank(stream.next_unit()) as u32,
        }
    }
}

impl Run {
    /// The key number of a virtual one: own inserts take every n-th key from `recordcount` on.
    #[inline]
    fn real(&self, key: u64) -> u64 {
        match key.checked_sub(self.records) {
            Some(place) => {
                let rank = self.worker.rank_of_own(self.earlier.rank_at(place));
                self.records.wrapping_add(rank.wrapping_mul(self.clients)).wrapping_add(self.client)
            }
            None => key,
        }
    }

    /// The virtual key of a key number that this client has inserted.
    #[inline]
    fn virtual_key(&self, key: u64) -> u64 {
        key.checked_sub(self.records).map_or(key, |offset| {
            self.records + self.earlier.place_of(self.worker.own_key(offset / self.clients))
        })
    }

    #[inline]
    fn one_field(&self, stream: &mut Stream) -> Fields {
        Fields::One(stream.next_below(self.field_count) as u16)
    }

    #[inline]
    fn written(&self, stream: &mut Stream) -> Fields {
        if self.write_one { self.one_field(stream) } else { Fields::All }
    }

    #[inline]
    fn bind(&self, draw: &Draw, frontier: &Frontier) -> Request {
        let operation = self.operation[usize::from(draw.kind)];
        let mut request = Request { metric: draw.kind, seed: draw.seed, ..Request::default() };
        if operation == Operation::Insert {
            request.verb = Verb::Insert;
            request.key = self.real(frontier.next_key());
            return request;
        }
        let newest = frontier.last().unwrap_or(self.first);
        let key = self.chooser.choose_key(
            &mut Stream::from_bits(draw.seed),
            || self.mix.others_before(draw.index),
            newest,
        );
        request.key = self.real(key);
        let words = || Stream::new(draw.seed, 0, Purpose::Choice);
        match operation {
            Operation::Read => {
                request.fields = if self.read_one { self.one_field(&mut words()) } else { self.read_all };
            }
            Operation::Update => {
                request.verb = Verb::Update;
                request.fields = if self.write_one { self.one_field(&mut words()) } else { Fields::All };
            }
            Operation::Scan => {
                let mut stream = words();
                request.verb = Verb::Scan;
                request.limit = self.scan.limit(&mut stream);
                request.fields = if self.read_one { self.one_field(&mut stream) } else { Fields::All };
            }
            Operation::Delete => request.verb = Verb::Delete,
            Operation::ReadModifyWrite => {
                request.script = draw.kind + 1;
                request.metric = self.metric[Operation::Read as usize];
                request.fields = if self.read_one { self.one_field(&mut words()) } else { Fields::All };
            }
            Operation::Insert => {}
        }
        request
    }

    /// The update of a read-modify-write whose read is done.
    fn modify(&self, read: &Request) -> Request {
        // The first word chose the field that was read.
        let mut stream = Stream::new(read.seed, 0, Purpose::Choice);
        stream.next_u64();
        Request {
            verb: Verb::Update,
            fields: self.written(&mut stream),
            metric: self.metric[Operation::Update as usize],
            step: 1,
            ..*read
        }
    }
}

impl Workload for CoreWorkload {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn own_metrics(&self) -> OwnMetrics {
        own_metrics(&self.metrics)
    }

    fn content(&self) -> Arc<dyn Content> {
        Arc::clone(&self.content) as Arc<dyn Content>
    }

    #[inline]
    fn draw(&self, index: u64) -> Draw {
        let seed = self.keys.draw_keyed(index);
        match &self.phase {
            CorePhase::Load { .. } => Draw { index, kind: 0, seed },
            CorePhase::Run(run) => Draw { index, kind: run.metric[run.mix.kind(index)], seed },
        }
    }

    #[inline]
    fn bind(&self, draw: &Draw, frontier: &Frontier) -> Request {
        match &self.phase {
            CorePhase::Load { first } => Request {
                verb: Verb::Insert,
                key: first.wrapping_add(draw.index),
                seed: draw.seed,
                ..Request::default()
            },
            CorePhase::Run(run) => run.bind(draw, frontier),
        }
    }

    fn hooks(&self) -> Hooks {
        let (scripts, settled) = match &self.phase {
            CorePhase::Load { .. } => (false, false),
            CorePhase::Run(run) => {
                let has = |operation| run.mix.share(operation as usize) > 0.0;
                (has(Operation::ReadModifyWrite), has(Operation::Insert))
            }
        };
        Hooks { scripts, settled, answered: false, resume: false }
    }

    fn next(&self, done: &Request, outcome: Outcome) -> Option<Request> {
        let ended = matches!(outcome, Outcome::Dropped | Outcome::Aborted);
        match &self.phase {
            // As in YCSB the update follows even if the read has failed.
            CorePhase::Run(run) if done.script != 0 && done.step == 0 && !ended => Some(run.modify(done)),
            _ => None,
        }
    }

    fn script(&self, first: &Request) -> Option<u16> {
        first.script.checked_sub(1)
    }

    #[inline]
    fn settled(&self, request: &Request, frontier: &Frontier) {
        if let (Verb::Insert, CorePhase::Run(run)) = (request.verb, &self.phase) {
            frontier.acknowledge(run.virtual_key(request.key));
        }
    }

    fn only_inserts(&self) -> bool {
        match &self.phase {
            CorePhase::Load { .. } => true,
            CorePhase::Run(run) => run.mix.share(Operation::Insert as usize) == 1.0,
        }
    }

    fn part(&self, index: u64, total: u64) -> Option<Arc<dyn Workload>> {
        let mut part = self.clone();
        let CorePhase::Run(run) = &mut part.phase else { return None };
        run.worker = Worker { index, total };
        run.earlier = run.earlier.part(run.worker);
        Some(Arc::new(part))
    }

    fn is_pure(&self) -> bool {
        match &self.phase {
            CorePhase::Load { .. } => true,
            CorePhase::Run(run) => run.mix.share(Operation::Insert as usize) == 0.0,
        }
    }

    fn asked(&self) -> Vec<f64> {
        match &self.phase {
            CorePhase::Load { .. } => Vec::new(),
            CorePhase::Run(run) => run.asked.clone(),
        }
    }

    fn expects(&self) -> Option<(u64, u64)> {
        match &self.phase {
            CorePhase::Load { .. } => None,
            CorePhase::Run(run) => (run.count > 0).then_some((run.count, run.first)),
        }
    }

    fn frontier(&self) -> Frontier {
        match &self.phase {
            CorePhase::Load { first } => Frontier::new(*first),
            CorePhase::Run(run) => Frontier::new(run.records + run.earlier.count()),
        }
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
