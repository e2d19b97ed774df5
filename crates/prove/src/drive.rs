//! Writing: users of the engine with a connection each, batch by batch, every batch acknowledged before the next.

use dyno_db::copies::database::{IngestClient, RecordSpan, ReplicatedStore, WriteOutcome};
use dyno_db::copies::ledger::{Ledger, RecordStatus};
use dyno_db::copies::plan::IngestPlan;
use dyno_db::copies::records::Records;
use dyno_db::copies::sent::Sent;
use dyno_engine::{Control, End, Job, RunError, Second, run_blocking};
use dyno_record::{Buckets, Scale};
use dyno_types::content::Nothing;
use dyno_types::{Content, Executed, Outcome, Refused, Request, Store, StoreSession};
use dyno_workload::{Draw, Frontier, Workload};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest sleep until a batch is due, so that a request to stop is seen.
const NAP: Duration = Duration::from_millis(20);

/// Acknowledged batches, each with its time.
#[derive(Clone, Debug)]
pub struct BatchHistory {
    /// Of each acknowledged batch: nanoseconds since the first sending, and records.
    pub batches: Vec<(u64, u64)>,
    /// When writing ended, nanoseconds since the first sending: the last acknowledgement may be long before it.
    pub end_ns: u64,
    /// Times that batches took, from sending to the acknowledgement.
    times: Buckets,
}

impl Default for BatchHistory {
    fn default() -> Self {
        BatchHistory { batches: Vec::new(), end_ns: 0, times: Buckets::new(Scale::Ns64) }
    }
}

impl BatchHistory {
    /// Notes a batch that was acknowledged `at_ns` since the first sending, and took `took_ns`.
    pub fn add_batch(&mut self, at_ns: u64, records: u64, took_ns: u64) {
        self.batches.push((at_ns, records));
        self.times.record(took_ns);
    }

    /// Acknowledged records.
    pub fn acknowledged_records(&self) -> u64 {
        self.batches.iter().map(|(_, records)| records).sum()
    }

    /// From the first sending to the last acknowledgement, seconds.
    pub fn seconds(&self) -> f64 {
        self.batches.iter().map(|(at, _)| *at).max().unwrap_or(0) as f64 / 1e9
    }

    /// Acknowledged records of each window of `seconds`; the last, which is a part, is left out.
    pub fn windows(&self, seconds: u64) -> Vec<u64> {
        let end = self.seconds().max(self.end_ns as f64 / 1e9);
        let whole = (end / seconds as f64).floor() as usize;
        let mut all = vec![0; whole];
        for (at, records) in &self.batches {
            if let Some(window) = all.get_mut((at / 1_000_000_000 / seconds) as usize) {
                *window += records;
            }
        }
        all
    }

    /// Times without any acknowledgement that are longer than `least`: begin and length, seconds.
    pub fn stalls(&self, least: Duration) -> Vec<(f64, f64)> {
        let mut at: Vec<u64> = self.batches.iter().map(|(at, _)| *at).collect();
        at.push(self.end_ns);
        at.sort_unstable();
        let gaps = std::iter::once(&0)
            .chain(&at)
            .zip(&at)
            .filter(|(before, now)| *now - *before > least.as_nanos() as u64);
        gaps.map(|(before, now)| (*before as f64 / 1e9, (now - before) as f64 / 1e9)).collect()
    }

    /// A percentile of the batches' times, seconds; `None` without any.
    pub fn batch_s(&self, percentile: f64) -> Option<f64> {
        let of_all = || match percentile >= 100.0 {
            true => self.times.max_ns(),
            false => self.times.percentile_ns(percentile),
        };
        (self.times.count() > 0).then(|| of_all() as f64 / 1e9)
    }
}

/// Result of writing.
#[derive(Clone, Debug, Default)]
pub struct IngestResult {
    /// Outcome of each record.
    pub ledger: Ledger,
    /// When.
    pub history: BatchHistory,
    /// Records that have been sent.
    pub sent: Sent,
    /// Words of what went wrong, and how often.
    pub troubles: BTreeMap<String, u64>,
}

/// Batches as operations: index `i` is a batch of worker `i % workers`.
struct Batches(Vec<String>);

impl Workload for Batches {
    fn metrics(&self) -> &[String] {
        &self.0
    }
    fn content(&self) -> Arc<dyn Content> {
        Arc::new(Nothing)
    }
    fn draw(&self, index: u64) -> Draw {
        Draw { index, kind: 0, seed: 0 }
    }
    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        Request { key: draw.index, ..Request::default() }
    }
    fn is_pure(&self) -> bool {
        true
    }
    fn is_per_user(&self) -> bool {
        true
    }
}

/// Which worker writes which records, and when: what users of the engine are given as operations.
pub struct BatchSchedule {
    /// Of each worker: the first record, and the one after the last.
    pub workers: Vec<(u64, u64)>,
    /// Records of a batch.
    pub batch: u64,
    /// From a worker's batch to its next, at least.
    pub gap: Duration,
    /// Time after which no batch begins.
    pub duration: Option<Duration>,
    /// Ends it.
    pub control: Arc<Control>,
    /// When it began.
    pub begun: Instant,
}

impl BatchSchedule {
    /// Has users of the engine write to `store`, one each worker; `on_second` hears of each second.
    ///
    /// # Errors
    /// The engine refuses the job, a session cannot be opened, or a writer has panicked.
    pub fn write_to(&self, store: &dyn Store, on_second: &mut dyn FnMut(Second)) -> Result<(), RunError> {
        let batches = |(from, to): &(u64, u64)| to.saturating_sub(*from).div_ceil(self.batch);
        let most = self.workers.iter().map(batches).max().unwrap_or(0);
        let operations = most.saturating_mul(self.workers.len() as u64);
        let nanoseconds = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let end = End { operations: Some(operations), duration_ns: self.duration.map(nanoseconds) };
        let workload = Arc::new(Batches(vec!["INGEST".into()]));
        let job = Job::closed_loop(workload, self.workers.len(), end);
        run_blocking(job, self.control.clone(), store, on_second)?;
        Ok(())
    }

    /// Returns whether no batch may begin any more.
    pub fn is_over(&self) -> bool {
        self.duration.is_some_and(|duration| self.begun.elapsed() >= duration) || self.control.is_stopping()
    }

    /// Waits until the batch of an operation is due, and returns it; `None` if its worker, whose share may be smaller than
    /// others', has none left. The engine's open loop would drop what the database cannot keep up with; a proof writes it late.
    pub fn await_batch(&self, request: &Request) -> Option<RecordSpan> {
        let workers = self.workers.len() as u64;
        let (worker, number) = ((request.key % workers) as u32, request.key / workers);
        let (first, last) = self.workers[worker as usize];
        let from = first + number * self.batch;
        if from >= last {
            return None;
        }
        let due =
            Duration::try_from_secs_f64(self.gap.as_secs_f64() * number as f64).unwrap_or(Duration::MAX);
        while !self.is_over() {
            match due.saturating_sub(self.begun.elapsed()) {
                Duration::ZERO => break,
                left => std::thread::sleep(left.min(NAP)),
            }
        }
        Some(RecordSpan { worker, from, to: (from + self.batch).min(last) })
    }
}

/// Writes until the plan's end or until `control` stops, to the current primary; `on_second` hears seconds and records so far.
///
/// # Errors
/// The engine refuses the plan, or a writer has panicked.
pub fn ingest(
    database: Arc<dyn ReplicatedStore>,
    plan: &IngestPlan,
    control: &Arc<Control>,
    on_second: &mut dyn FnMut(f64, u64),
) -> Result<IngestResult, RunError> {
    let begun = Instant::now();
    let schedule = Arc::new(BatchSchedule {
        workers: (0..plan.workers).map(|worker| (0, plan.worker_share(worker))).collect(),
        batch: plan.batch,
        gap: plan.batch_gap(),
        duration: plan.duration,
        control: Arc::new(Control::below_control(control)),
        begun,
    });
    let result = Arc::new(Mutex::new(IngestResult::default()));
    let store = IngestStore { database, plan: Arc::new(plan.clone()), schedule: schedule.clone(), result };
    let mut next_s = 1.0;
    let mut tell = |_: Second| {
        // The engine ends with a part of a second, which is not told.
        let seconds = begun.elapsed().as_secs_f64();
        if seconds >= next_s {
            next_s = seconds.floor() + 1.0;
            on_second(seconds, lock(&store.result).history.acknowledged_records());
        }
    };
    schedule.write_to(&store, &mut tell)?;
    Ok(std::mem::take(&mut lock(&store.result)))
}

fn lock(result: &Mutex<IngestResult>) -> MutexGuard<'_, IngestResult> {
    result.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A database to which users of the engine write batches.
#[derive(Clone)]
struct IngestStore {
    database: Arc<dyn ReplicatedStore>,
    plan: Arc<IngestPlan>,
    schedule: Arc<BatchSchedule>,
    result: Arc<Mutex<IngestResult>>,
}

impl Store for IngestStore {
    fn engine(&self) -> String {
        String::new()
    }
    fn durability(&self) -> String {
        String::new()
    }
    fn session(&self) -> Result<Box<dyn StoreSession>, Refused> {
        let session = IngestSession {
            records: self.plan.record_recipe(),
            store: self.clone(),
            client: None,
            ledger: Ledger::default(),
            error: String::new(),
        };
        Ok(Box::new(session))
    }
}

/// A user: a connection, and what became of its batches.
struct IngestSession {
    store: IngestStore,
    records: Records,
    client: Option<Box<dyn IngestClient>>,
    ledger: Ledger,
    error: String,
}

impl IngestSession {
    fn note_trouble(&mut self, message: String) {
        let mut all = lock(&self.store.result);
        // Words of servers and systems differ by addresses; there are few of them.
        if all.troubles.len() < 100 || all.troubles.contains_key(&message) {
            *all.troubles.entry(message.clone()).or_default() += 1;
        }
        drop(all);
        self.error = message;
    }

    /// Takes the connection to the primary, or makes one, for as long as the plan waits for a primary; `None` if there is none,
    /// or it is time to end.
    fn take_client(&mut self) -> Option<Box<dyn IngestClient>> {
        let begun = Instant::now();
        loop {
            if self.store.schedule.is_over() {
                // The engine's clock may be a little behind: it would ask again at once.
                std::thread::sleep(Duration::from_millis(1));
                return None;
            }
            if let Some(client) = self.client.take() {
                return Some(client);
            }
            let (database, plan) = (&self.store.database, &self.store.plan);
            match database.primary().and_then(|primary| database.connect(&primary, plan.patience)) {
                Ok(client) => return Some(client),
                Err(why) => {
                    let wait = plan.wait;
                    self.note_trouble(why.to_string());
                    if begun.elapsed() > wait {
                        self.note_trouble(format!("given up after {} s without a primary", wait.as_secs()));
                        // There is one primary, or none for all.
                        self.store.schedule.control.stop();
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }

    fn put(&mut self, part: RecordSpan) -> Executed {
        let Some(mut client) = self.take_client() else { return Executed::new(Outcome::Unreachable, 0) };
        let outcome = client.put(&self.records, part, &self.store.plan);
        lock(&self.store.result).sent.merge(client.take_sent());
        let (status, outcome) = match outcome {
            WriteOutcome::Acknowledged(sent) => {
                let at_ns = self.store.schedule.begun.elapsed().as_nanos() as u64;
                let took_ns = sent.elapsed().as_nanos() as u64;
                lock(&self.store.result).history.add_batch(at_ns, part.to - part.from, took_ns);
                self.client = Some(client);
                (RecordStatus::Acknowledged, Outcome::Ok)
            }
            // Whatever the connection still says answers no request: it is not used again.
            WriteOutcome::Indeterminate(why) => {
                self.note_trouble(why);
                (RecordStatus::Indeterminate, Outcome::Disconnected)
            }
            WriteOutcome::Refused(why) => {
                self.note_trouble(why);
                (RecordStatus::Failed, Outcome::ServerError)
            }
        };
        // Names are never used twice: what failed is not sent again under its name.
        self.ledger.add_records(part.worker, part.from, part.to, status);
        Executed::new(outcome, (part.to - part.from) as u32)
    }
}

impl StoreSession for IngestSession {
    fn execute(&mut self, request: &Request) -> Executed {
        match self.store.schedule.await_batch(request) {
            Some(part) => self.put(part),
            None => Executed::new(Outcome::Ok, 0),
        }
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}

impl Drop for IngestSession {
    fn drop(&mut self) {
        let mut all = lock(&self.store.result);
        all.ledger.merge(std::mem::take(&mut self.ledger));
        // Taken here: the thread that is told of seconds may be late.
        all.history.end_ns = all.history.end_ns.max(self.store.schedule.begun.elapsed().as_nanos() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_db::copies::plan::Durability;

    #[test]
    fn windows_and_stalls() {
        let second = 1_000_000_000;
        let mut history = BatchHistory { end_ns: 4 * second, ..BatchHistory::default() };
        for (at, records, took) in [(second / 2, 10, 5), (3 * second, 20, 7), (7 * second / 2, 30, 9)] {
            history.add_batch(at, records, took * 1_000_000);
        }
        assert_eq!(history.windows(1), [10, 0, 0, 50]);
        assert_eq!(history.stalls(Duration::from_secs(1)), [(0.5, 2.5)]);
        // Acknowledgements that do not come any more are a stall, too.
        history.end_ns = 6 * second;
        assert_eq!(history.stalls(Duration::from_secs(1)), [(0.5, 2.5), (3.5, 2.5)]);
        let median = history.batch_s(50.0).unwrap();
        assert!((median / 7e-3 - 1.0).abs() < 0.01, "{median}");
        assert_eq!((history.batch_s(100.0), history.acknowledged_records()), (Some(9e-3), 60));
        assert_eq!(BatchHistory::default().batch_s(50.0), None);
    }

    #[test]
    fn the_time_between_batches_follows_from_the_rate() {
        let plan = IngestPlan {
            workers: 16,
            batch: 1_000,
            record_bytes: 100,
            indexes: 0,
            copies: 1,
            durability: Durability::Memory,
            wait: IngestPlan::ELECTION,
            patience: Duration::from_secs(1),
            duration: None,
            records: Some(1),
            rate: Some(100.0),
            seed: 1,
            run: "r".into(),
            documents: None,
        };
        assert_eq!(plan.batch_gap(), Duration::from_secs(160));
        assert_eq!(IngestPlan { rate: None, ..plan.clone() }.batch_gap(), Duration::ZERO);
        assert_eq!(IngestPlan { rate: Some(1e-300), ..plan }.batch_gap(), Duration::MAX);
    }
}
