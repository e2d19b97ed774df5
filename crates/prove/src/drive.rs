//! Writing: threads with a connection each, batch by batch, every batch acknowledged before the next.

use dyno_db::copies::database::{RecordSpan, ReplicatedStore, WriteOutcome};
use dyno_db::copies::ledger::{Ledger, RecordStatus};
use dyno_db::copies::plan::IngestPlan;
use dyno_db::copies::sent::Sent;
use dyno_engine::Control;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Acknowledged batches, each with its time.
#[derive(Clone, Debug, Default)]
pub struct BatchHistory {
    /// Of each acknowledged batch: nanoseconds since the first sending, records, nanoseconds that it took.
    pub batches: Vec<(u64, u64, u64)>,
    /// When writing ended, nanoseconds since the first sending: the last acknowledgement may be long before it.
    pub end_ns: u64,
}

impl BatchHistory {
    /// From the first sending to the last acknowledgement, seconds.
    pub fn seconds(&self) -> f64 {
        self.batches.iter().map(|(at, ..)| *at).max().unwrap_or(0) as f64 / 1e9
    }

    /// Acknowledged records of each window of `seconds`; the last, which is a part, is left out.
    pub fn windows(&self, seconds: u64) -> Vec<u64> {
        let end = self.seconds().max(self.end_ns as f64 / 1e9);
        let whole = (end / seconds as f64).floor() as usize;
        let mut all = vec![0; whole];
        for (at, records, _) in &self.batches {
            if let Some(window) = all.get_mut((at / 1_000_000_000 / seconds) as usize) {
                *window += records;
            }
        }
        all
    }

    /// Times without any acknowledgement that are longer than `least`: begin and length, seconds.
    pub fn stalls(&self, least: Duration) -> Vec<(f64, f64)> {
        let mut at: Vec<u64> = self.batches.iter().map(|(at, ..)| *at).collect();
        at.push(self.end_ns);
        at.sort_unstable();
        let gaps = std::iter::once(&0)
            .chain(&at)
            .zip(&at)
            .filter(|(before, now)| *now - *before > least.as_nanos() as u64);
        gaps.map(|(before, now)| (*before as f64 / 1e9, (now - before) as f64 / 1e9)).collect()
    }

    /// A percentile of the batches' times, seconds.
    pub fn batch_s(&self, percentile: f64) -> Option<f64> {
        let mut all: Vec<u64> = self.batches.iter().map(|(_, _, took)| *took).collect();
        all.sort_unstable();
        let rank = ((percentile / 100.0 * all.len() as f64).ceil() as usize).clamp(1, all.len().max(1));
        all.get(rank - 1).map(|ns| *ns as f64 / 1e9)
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

/// Writes until the plan's end or until `control` stops, to the current primary; `on_second` hears seconds and records so far.
pub fn ingest(
    database: &dyn ReplicatedStore,
    plan: &IngestPlan,
    control: &Control,
    on_second: &mut (dyn FnMut(f64, u64) + Send),
) -> IngestResult {
    let whole: Mutex<IngestResult> = Mutex::default();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.workers)
            .map(|worker| {
                let whole = &whole;
                scope.spawn(move || {
                    let own = ProofWorker { plan, database, control, whole, begun, worker }.run();
                    let mut all = whole.lock().unwrap_or_else(PoisonError::into_inner);
                    all.ledger.merge(own);
                    // Taken here: the thread that calls `on_second` may be late.
                    all.history.end_ns = all.history.end_ns.max(begun.elapsed().as_nanos() as u64);
                })
            })
            .collect();
        let mut next = Duration::from_secs(1);
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            if begun.elapsed() >= next {
                let all = whole.lock().unwrap_or_else(PoisonError::into_inner);
                let done: u64 = all.history.batches.iter().map(|(_, records, _)| records).sum();
                drop(all);
                on_second(begun.elapsed().as_secs_f64(), done);
                next = Duration::from_secs(begun.elapsed().as_secs() + 1);
            }
        }
    });
    whole.into_inner().unwrap_or_else(PoisonError::into_inner)
}

struct ProofWorker<'a> {
    plan: &'a IngestPlan,
    database: &'a dyn ReplicatedStore,
    control: &'a Control,
    whole: &'a Mutex<IngestResult>,
    begun: Instant,
    worker: u32,
}

impl ProofWorker<'_> {
    fn goes_on(&self, number: u64) -> bool {
        let in_time = self.plan.duration.is_none_or(|duration| self.begun.elapsed() < duration);
        number < self.plan.worker_share(self.worker) && in_time && !self.control.is_stopping()
    }

    /// Waits until the next batch is due.
    fn pace(&self, number: u64) {
        let Some(rate) = self.plan.rate else { return };
        let due = Duration::from_secs_f64(number as f64 * f64::from(self.plan.workers) / rate);
        while self.begun.elapsed() < due && !self.control.is_stopping() {
            std::thread::sleep((due - self.begun.elapsed().min(due)).min(Duration::from_millis(20)));
        }
    }

    fn trouble(&self, words: String) {
        let mut all = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        // Words of servers and systems differ by addresses; there are few of them.
        if all.troubles.len() < 100 || all.troubles.contains_key(&words) {
            *all.troubles.entry(words).or_default() += 1;
        }
    }

    fn run(&self) -> Ledger {
        let (records, plan) = (self.plan.record_recipe(), self.plan);
        let mut ledger = Ledger::default();
        let (mut client, mut number, mut connected) = (None, 0, Instant::now());
        while self.goes_on(number) {
            self.pace(number);
            if client.is_none() {
                match (self.database.primary())
                    .and_then(|primary| self.database.connect(&primary, plan.patience))
                {
                    Ok(one) => client = Some(one),
                    Err(why) => {
                        self.trouble(why.to_string());
                        if connected.elapsed() > plan.wait {
                            self.trouble(format!(
                                "given up after {} s without a primary",
                                plan.wait.as_secs()
                            ));
                            break;
                        }
                        std::thread::sleep(Duration::from_millis(50));
                        continue;
                    }
                }
            }
            let Some(open) = &mut client else { continue };
            connected = Instant::now();
            let to = (number + plan.batch).min(self.plan.worker_share(self.worker));
            let part = RecordSpan { worker: self.worker, from: number, to };
            let outcome = open.put(&records, part, plan);
            self.whole.lock().unwrap_or_else(PoisonError::into_inner).sent.merge(open.take_sent());
            let status = match outcome {
                WriteOutcome::Acknowledged(sent) => {
                    let at = self.begun.elapsed().as_nanos() as u64;
                    let mut all = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
                    all.history.batches.push((at, to - number, sent.elapsed().as_nanos() as u64));
                    RecordStatus::Acknowledged
                }
                WriteOutcome::Indeterminate(why) => {
                    self.trouble(why);
                    // Whatever the connection still says answers no request.
                    client = None;
                    RecordStatus::Indeterminate
                }
                WriteOutcome::Refused(why) => {
                    self.trouble(why);
                    client = None;
                    RecordStatus::Failed
                }
            };
            // Names are never used twice: what failed is not sent again under its name.
            ledger.add_records(self.worker, number, to, status);
            number = to;
        }
        ledger
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_db::copies::plan::Durability;

    #[test]
    fn windows_and_stalls() {
        let second = 1_000_000_000;
        let batches = vec![(second / 2, 10, 5), (3 * second, 20, 7), (7 * second / 2, 30, 9)];
        let mut history = BatchHistory { batches, end_ns: 4 * second };
        assert_eq!(history.windows(1), [10, 0, 0, 50]);
        assert_eq!(history.stalls(Duration::from_secs(1)), [(0.5, 2.5)]);
        // Acknowledgements that do not come any more are a stall, too.
        history.end_ns = 6 * second;
        assert_eq!(history.stalls(Duration::from_secs(1)), [(0.5, 2.5), (3.5, 2.5)]);
        assert_eq!((history.batch_s(50.0), history.batch_s(100.0)), (Some(7e-9), Some(9e-9)));
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
            pocdriver: None,
        };
        assert_eq!(plan.batch_gap(), Duration::from_secs(160));
        assert_eq!(IngestPlan { rate: None, ..plan.clone() }.batch_gap(), Duration::ZERO);
        assert_eq!(IngestPlan { rate: Some(1e-300), ..plan }.batch_gap(), Duration::MAX);
    }
}
