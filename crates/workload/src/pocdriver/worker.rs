//! Next step of each worker, and counts of what has been done.
//!
//! A worker is touched by one load thread at a time; its lock is free whenever it is taken.

use super::config::{Choice, PocConfig, Step, WeightMeaning};
use super::content::{PocContent, shape};
use super::operation_counts::{AcknowledgedCounts, INSERTS, KEY_QUERIES, RANGE_QUERIES, UPDATES};
use super::worker_state::{PocWorker, Queued, Workers};
use crate::distributions::{THETA, Zipfian};
use crate::pace::{Pace, Pacer};
use crate::ycsb::BadProperty;
use crate::{Draw, Frontier, Workload};
use dyno_types::metric;
use dyno_types::rng::{Purpose, Stream, mix_bits};
use dyno_types::{Content, Outcome, Request, Verb};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Metrics, in the order of the numbers below.
const METRICS: [&str; 7] =
    ["INSERT", "KEYQUERY", "RANGEQUERY", "UPDATE", "ARRAYUPDATE", "INCREMENT", metric::BULK];
const KEY_QUERY: u16 = 1;
const RANGE_QUERY: u16 = 2;
const BULK: u16 = 6;

/// Bytes that documents of one command may have, and one document: MongoDB's limits, less room for what is around them.
const MAX_COMMAND: usize = 46 << 20;
const MAX_DOCUMENT: usize = 16 << 20;

/// Largest sequence number: an int32.
const LAST_SEQUENCE: u64 = i32::MAX as u64 - 1;

/// The workload.
#[derive(Debug)]
pub struct PocWorkload {
    metrics: Vec<String>,
    config: PocConfig,
    content: Arc<PocContent>,
    zipfian: Option<Zipfian>,
    pace: Pace,
    pacers: Vec<Pacer>,
    counted: Arc<AcknowledgedCounts>,
    /// Begin of every worker's first cycle.
    begun: Instant,
    /// Documents that fit into one command.
    per_command: u32,
    /// Only what is still queued is sent, by these workers.
    rest: Option<Vec<u64>>,
}

impl PocWorkload {
    /// `next` is the first free sequence number of each worker: 0 in an empty collection.
    pub fn new(config: &PocConfig, next: &[u64]) -> Result<Self, BadProperty> {
        config.check()?;
        let finds = |step: &Step| matches!(step, Step::Insert | Step::KeyQuery);
        if !config.workflow.is_empty() && !config.workflow.iter().any(finds) {
            return Err(BadProperty::new(
                "--workflow",
                "no i and no k",
                "a workflow that inserts (i) or queries (k)",
            ));
        }
        let first = |user: u32| next.get(user as usize).copied().unwrap_or(0);
        let worker = |user: u32| PocWorker {
            iteration: 0,
            sequence: first(user),
            unsent: first(user),
            flush_due: false,
            queue: Vec::new(),
            updates: Vec::new(),
            runs: Vec::new(),
            stack: Vec::new(),
            stream: Stream::new(config.seed, u64::from(config.first_worker + user), Purpose::Mix),
            units: 0,
            begun: Instant::now(),
            written: [0; 2],
        };
        let workers = Arc::new(Workers((0..config.workers).map(|user| Mutex::new(worker(user))).collect()));
        let content = Arc::new(PocContent::new(config, workers));
        let size = content.template().most_bytes();
        if size > MAX_DOCUMENT {
            let expected = format!("documents of at most {MAX_DOCUMENT} bytes (these have up to {size})");
            return Err(BadProperty::new("--binary", config.binary_bytes / 1024, expected));
        }
        Ok(PocWorkload {
            metrics: METRICS.map(str::to_owned).to_vec(),
            content,
            per_command: (MAX_COMMAND / size) as u32,
            zipfian: match config.choice {
                Choice::Zipfian(n) => Some(Zipfian::new(n.max(1), THETA)),
                _ => None,
            },
            pace: Pace::schedule(config.per_second, u64::from(config.workers)),
            pacers: (0..config.workers).map(|_| Pacer::default()).collect(),
            counted: Arc::new(AcknowledgedCounts::new(&config.thresholds_ms)),
            begun: Instant::now(),
            config: config.clone(),
            rest: None,
        })
    }

    /// Counts of what has been acknowledged so far.
    pub fn acknowledged_counts(&self) -> &Arc<AcknowledgedCounts> {
        &self.counted
    }

    /// Shapes, documents, names.
    pub fn poc_content(&self) -> &PocContent {
        &self.content
    }

    /// Returns whether nothing is sent but bulks.
    fn only_bulks(&self) -> bool {
        let weights = &self.config.weights;
        let updates = weights.updates > 0 || weights.array_updates > 0;
        weights.key_queries == 0
            && weights.range_queries == 0
            && self.config.workflow.is_empty()
            && !(self.config.find_and_modify && updates)
    }

    /// The iterations of each worker that its rate holds in `duration_ns`; 0 without a rate.
    fn due(&self, duration_ns: u64) -> u64 {
        match self.pace {
            Pace::Even { interval_ns, .. } => (duration_ns as f64 / interval_ns) as u64,
            _ => 0,
        }
    }

    /// Iterations of all workers that were due within `duration_ns` and have not been made, and all that were due.
    pub fn missed_iterations(&self, duration_ns: u64) -> (u64, u64) {
        let (due, workers) = (self.due(duration_ns), u64::from(self.config.workers));
        // Work that is not sent in bulks begins with the first iteration, and a bulk of it may lie ahead of its time.
        let missed = |user| due.saturating_sub(self.content.workers.get(user).iteration);
        ((0..workers).map(missed).sum(), workers * due)
    }

    /// A bulk goes out when the last of its iterations is due: makes those of an unfinished bulk that were due within
    /// `duration_ns`. A worker that is further behind has missed them.
    fn make_due(&self, user: u64, duration_ns: u64) {
        let due = self.due(duration_ns);
        let mut worker = self.content.workers.get(user);
        let behind = due.saturating_sub(worker.iteration);
        if self.only_bulks() && behind <= u64::from(self.config.bulk) {
            for _ in 0..behind {
                self.weighted(user, &mut worker);
                worker.iteration += 1;
            }
        }
    }

    /// Writes that are still queued when the run has ended after `duration_ns`, and how many bulks that is.
    pub fn queued_writes(&self, duration_ns: u64) -> (PocWorkload, u64) {
        (0..u64::from(self.config.workers)).for_each(|user| self.make_due(user, duration_ns));
        let waiting = |user: &u64| !self.content.workers.get(*user).queue.is_empty();
        let users: Vec<u64> = (0..u64::from(self.config.workers)).filter(waiting).collect();
        let bulks = users.len() as u64;
        let rest = PocWorkload {
            metrics: self.metrics.clone(),
            config: self.config.clone(),
            content: self.content.clone(),
            zipfian: None,
            pace: Pace::Free,
            pacers: Vec::new(),
            counted: self.counted.clone(),
            begun: self.begun,
            per_command: self.per_command,
            rest: Some(users),
        };
        (rest, bulks)
    }

    /// The collection of a sequence number: as many in a row as a bulk holds.
    fn collection_of(&self, sequence: u64) -> u32 {
        (sequence / u64::from(self.config.bulk) % u64::from(self.config.collections)) as u32
    }

    /// A number below `n`.
    fn below(&self, worker: &mut PocWorker, n: u64) -> u64 {
        if self.config.choice == Choice::Clock {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            return now.as_millis() as u64 % n;
        }
        worker.stream.next_below(n)
    }

    /// One of the worker's newest documents, of those that do not wait for a bulk.
    fn key(&self, worker: &mut PocWorker) -> u64 {
        let range = (worker.unsent * u64::from(self.config.working_set) / 100).max(1);
        let value = match &self.zipfian {
            Some(zipfian) => zipfian.rank(worker.stream.next_unit()) % range,
            None => self.below(worker, range),
        };
        worker.unsent.saturating_sub(range) + value
    }

    /// Step of the next iteration, if it does anything.
    fn choose(&self, worker: &mut PocWorker) -> Option<Step> {
        if !self.config.workflow.is_empty() {
            let at = (worker.iteration % self.config.workflow.len() as u64) as usize;
            if at == 0 {
                worker.stack.clear();
            }
            return Some(self.config.workflow[at]);
        }
        None
    }

    /// Goes on to the next thing that must be sent.
    fn advance(&self, user: u64, worker: &mut PocWorker) -> Request {
        let begun = worker.iteration;
        loop {
            if worker.flush_due {
                worker.flush_due = false;
                if !worker.queue.is_empty() {
                    worker.units = worker.iteration - begun;
                    return self.flush(user, worker);
                }
            }
            let request = match self.choose(worker) {
                Some(step) => self.step(user, worker, step),
                None => self.weighted(user, worker),
            };
            worker.iteration += 1;
            worker.flush_due = worker.iteration.is_multiple_of(u64::from(self.config.bulk));
            if let Some(request) = request {
                worker.units = worker.iteration - begun;
                return request;
            }
        }
    }

    /// The millisecond of a cycle of so many in which a worker's iteration falls; with a rate, the one in which it is due.
    pub(super) fn place_in_cycle(&self, user: u64, iteration: u64, cycle_ms: u64) -> u64 {
        let now_ns = match self.pace {
            Pace::Even { interval_ns, .. } => (iteration as f64 * interval_ns) as u128,
            _ => self.begun.elapsed().as_nanos(),
        };
        let cycle_ns = u128::from(cycle_ms) * 1_000_000;
        // A place of its own for each worker, of whichever process.
        let place = mix_bits(self.config.seed ^ mix_bits(u64::from(self.config.first_worker) + user));
        let begin_ns = (cycle_ns * u128::from(place)) >> 64;
        ((begin_ns + now_ns) % cycle_ns / 1_000_000) as u64
    }

    fn weighted(&self, user: u64, worker: &mut PocWorker) -> Option<Request> {
        let weights = self.config.weights.all();
        let all = weights.iter().map(|w| u64::from(*w)).sum();
        let mut left = match (self.config.choice, self.config.shares) {
            (Choice::Clock, _) | (_, WeightMeaning::Counts) => self.below(worker, all),
            (_, WeightMeaning::Time) => self.place_in_cycle(user, worker.iteration, all),
        };
        let kind = weights.iter().position(|&w| {
            let here = left < u64::from(w);
            left = left.wrapping_sub(if here { 0 } else { u64::from(w) });
            here
        });
        match kind {
            Some(0) => self.insert(worker),
            Some(1) => Some(self.query(user, worker)),
            Some(2) => {
                let key = self.key(worker);
                Some(self.single(user, shape::RANGE_QUERY, RANGE_QUERY, key, 0))
            }
            Some(4) => self.update(user, worker, shape::ARRAY_UPDATE, None),
            _ => self.update(user, worker, shape::UPDATE, None),
        }
    }

    fn step(&self, user: u64, worker: &mut PocWorker, step: Step) -> Option<Request> {
        match step {
            Step::Insert => {
                worker.stack.push(worker.sequence);
                self.insert(worker)
            }
            Step::Update | Step::Increment => {
                let shape = if step == Step::Update { shape::UPDATE } else { shape::INCREMENT };
                let top = *worker.stack.last()?;
                self.update(user, worker, shape, Some(top))
            }
            Step::KeyQuery => Some(self.query(user, worker)),
            Step::PushKey => {
                let key = self.key(worker);
                worker.stack.push(key);
                None
            }
            Step::Pop => {
                worker.stack.pop();
                None
            }
        }
    }

    fn insert(&self, worker: &mut PocWorker) -> Option<Request> {
        worker.queue.push(Queued::Insert(worker.sequence));
        worker.sequence = (worker.sequence + 1).min(LAST_SEQUENCE);
        None
    }

    fn query(&self, user: u64, worker: &mut PocWorker) -> Request {
        let key = self.key(worker);
        self.single(user, shape::KEY_QUERY, KEY_QUERY, key, 0)
    }

    fn update(&self, user: u64, worker: &mut PocWorker, shape: u16, key: Option<u64>) -> Option<Request> {
        let key = key.unwrap_or_else(|| self.key(worker));
        let value = self.below(worker, 1_000_000) as u32;
        if self.config.find_and_modify {
            return Some(self.single(user, shape + shape::MODIFY, shape, key, value));
        }
        worker.queue.push(Queued::Update(shape, key, value));
        None
    }

    fn single(&self, user: u64, shape: u16, metric: u16, key: u64, value: u32) -> Request {
        Request {
            verb: Verb::Document,
            shape,
            metric,
            key,
            limit: value,
            seed: user,
            collection: self.collection_of(key),
            ..Request::default()
        }
    }

    /// Turns the queue into runs and begins with the first.
    fn flush(&self, user: u64, worker: &mut PocWorker) -> Request {
        worker.runs.clear();
        worker.updates.clear();
        worker.written = [0; 2];
        worker.unsent = worker.sequence;
        let mut queue = std::mem::take(&mut worker.queue);
        if !self.config.ordered {
            // As drivers do: where order does not matter, one command for each kind.
            queue.sort_by_key(|write| match write {
                Queued::Insert(_) => 0,
                Queued::Update(shape, ..) => *shape,
            });
        }
        for write in queue.drain(..) {
            let (shape, place, collection) = match write {
                Queued::Insert(sequence) => (shape::INSERT, sequence, self.collection_of(sequence)),
                Queued::Update(shape, key, value) => {
                    worker.updates.push((key, value));
                    (shape, worker.updates.len() as u64 - 1, self.collection_of(key))
                }
            };
            match worker.runs.last_mut() {
                Some((s, first, count, c))
                    if *s == shape
                        && *c == collection
                        && *count < self.per_command
                        && *first + u64::from(*count) == place =>
                {
                    *count += 1;
                }
                _ => worker.runs.push((shape, place, 1, collection)),
            }
        }
        worker.queue = queue;
        self.run(user, worker, 0)
    }

    fn run(&self, user: u64, worker: &PocWorker, step: u16) -> Request {
        let (shape, key, limit, collection) = worker.runs[usize::from(step)];
        Request {
            verb: Verb::Document,
            shape,
            metric: if shape == shape::INSERT { 0 } else { shape },
            script: BULK + 1,
            step,
            key,
            limit,
            collection,
            seed: user,
            ..Request::default()
        }
    }
}

impl PocWorkload {
    /// Returns whether a bulk has commands left to send after `done`.
    fn goes_on(&self, worker: &PocWorker, done: &Request, outcome: Outcome) -> bool {
        let failed = !matches!(outcome, Outcome::Ok | Outcome::NotFound);
        usize::from(done.step) + 1 < worker.runs.len() && !(failed && self.config.ordered)
    }
}

impl Workload for PocWorkload {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        self.content.clone()
    }

    fn draw(&self, index: u64) -> Draw {
        Draw { index, kind: BULK, seed: 0 }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        if let Some(rest) = &self.rest {
            let user = rest[draw.index as usize % rest.len()];
            let mut worker = self.content.workers.get(user);
            worker.begun = Instant::now();
            return self.flush(user, &mut worker);
        }
        let user = draw.index % u64::from(self.config.workers);
        let mut worker = self.content.workers.get(user);
        let request = self.advance(user, &mut worker);
        worker.begun = Instant::now();
        request
    }

    fn next(&self, done: &Request, outcome: Outcome) -> Option<Request> {
        let mut worker = self.content.workers.get(done.seed);
        if done.script == 0 {
            if done.shape == shape::KEY_QUERY && outcome.is_ok() && !self.config.workflow.is_empty() {
                worker.stack.push(done.key);
            }
            return None;
        }
        self.goes_on(&worker, done, outcome).then(|| self.run(done.seed, &worker, done.step + 1))
    }

    fn script(&self, first: &Request) -> Option<u16> {
        first.script.checked_sub(1)
    }

    fn answered(&self, request: &Request, outcome: Outcome, records: u32) {
        let operation = match request.shape {
            shape::INSERT => INSERTS,
            shape::KEY_QUERY => KEY_QUERIES,
            shape::RANGE_QUERY => RANGE_QUERIES,
            _ => UPDATES,
        };
        let n = match operation {
            KEY_QUERIES => u64::from(outcome.is_ok()),
            // One that finds nothing has been done too.
            RANGE_QUERIES => u64::from(matches!(outcome, Outcome::Ok | Outcome::NotFound)),
            _ => u64::from(records),
        };
        self.counted.done(operation, n);
        let mut worker = self.content.workers.get(request.seed);
        let took = worker.begun.elapsed();
        if request.script == 0 {
            return self.counted.took(operation, n, took);
        }
        worker.written[usize::from(operation == UPDATES)] += n;
        if !self.goes_on(&worker, request, outcome) {
            self.counted.took(INSERTS, worker.written[0], took);
            self.counted.took(UPDATES, worker.written[1], took);
        }
    }

    fn is_per_user(&self) -> bool {
        self.rest.is_none()
    }

    fn begin_ns(&self) -> u64 {
        // A bulk goes out when the last of its iterations is due, not the first: the rate is kept from the beginning.
        match self.pace {
            Pace::Even { interval_ns, .. } if self.only_bulks() => {
                (interval_ns * f64::from(self.config.bulk)) as u64
            }
            _ => 0,
        }
    }

    fn resume_ns(&self, first: &Request, now_ns: u64) -> u64 {
        let Some(pacer) = self.pacers.get(first.seed as usize) else { return now_ns };
        let worker = self.content.workers.get(first.seed);
        let begun_ns = now_ns.saturating_sub(worker.begun.elapsed().as_nanos() as u64);
        pacer.resume_ns(&self.pace, worker.units, begun_ns, now_ns)
    }

    fn is_pure(&self) -> bool {
        false
    }
}
