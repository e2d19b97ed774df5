//! Writing: threads with a connection each, batch by batch, every batch acknowledged before the next.

use super::ledger::{Ledger, Status};
use super::records::Records;
use super::redis::{Durability, Fate, RedisSet};
use dyno_engine::Control;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is to be written.
#[derive(Clone, Debug)]
pub struct IngestPlan {
    /// Connections, each with a thread.
    pub workers: u32,
    /// Records that go out together.
    pub batch: u64,
    /// Bytes of a record.
    pub record_bytes: usize,
    /// Secondary indexes.
    pub indexes: usize,
    /// Copies that an acknowledgement stands for, the primary's own among them.
    pub copies: usize,
    /// What a copy is.
    pub durability: Durability,
    /// How long a batch waits for its copies.
    pub patience: Duration,
    /// For how long records are written.
    pub duration: Option<Duration>,
    /// How many of them.
    pub records: Option<u64>,
    /// Records a second, at most.
    pub rate: Option<f64>,
    /// Seed of the contents.
    pub seed: u64,
    /// Makes names of this run's own.
    pub run: String,
}

impl IngestPlan {
    pub(super) fn contents(&self) -> Records {
        Records { run: self.run.clone(), bytes: self.record_bytes, indexes: self.indexes, seed: self.seed }
    }

    /// Bytes of a record as they are sent: names, scores and protocol left out.
    pub fn size(&self) -> usize {
        self.record_bytes
    }
}

/// What was acknowledged, when.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// Of each acknowledged batch: nanoseconds since the first sending, records, nanoseconds that it took.
    pub batches: Vec<(u64, u64, u64)>,
}

impl Course {
    /// From the first sending to the last acknowledgement, seconds.
    pub fn seconds(&self) -> f64 {
        self.batches.iter().map(|(at, ..)| *at).max().unwrap_or(0) as f64 / 1e9
    }

    /// Acknowledged records of each window of `seconds`; the last, which is a part, is left out.
    pub fn windows(&self, seconds: u64) -> Vec<u64> {
        let whole = (self.seconds() / seconds as f64).floor() as usize;
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

/// What writing has come to.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// What became of each record.
    pub ledger: Ledger,
    /// When.
    pub course: Course,
    /// Words of what went wrong, and how often.
    pub troubles: BTreeMap<String, u64>,
}

/// Where a worker finds the primary now.
pub(super) type Primary<'a> = &'a (dyn Fn() -> Result<RedisSet, String> + Sync);

/// Writes to one primary.
pub fn ingest(
    set: &RedisSet,
    plan: &IngestPlan,
    control: &Control,
    on_second: &mut (dyn FnMut(f64, u64) + Send),
) -> Written {
    write(plan, &|| Ok(set.clone()), control, on_second)
}

/// Writes until the plan's end or until `control` stops.
pub(super) fn write(
    plan: &IngestPlan,
    primary: Primary<'_>,
    control: &Control,
    on_second: &mut (dyn FnMut(f64, u64) + Send),
) -> Written {
    let whole: Mutex<Written> = Mutex::default();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.workers)
            .map(|worker| {
                let whole = &whole;
                scope.spawn(move || {
                    let own = Worker { plan, primary, control, whole, begun, worker }.run();
                    let mut all = whole.lock().unwrap_or_else(PoisonError::into_inner);
                    all.ledger.merge(own);
                })
            })
            .collect();
        let mut next = Duration::from_secs(1);
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            if begun.elapsed() >= next {
                let all = whole.lock().unwrap_or_else(PoisonError::into_inner);
                let done: u64 = all.course.batches.iter().map(|(_, records, _)| records).sum();
                drop(all);
                on_second(begun.elapsed().as_secs_f64(), done);
                next += Duration::from_secs(1);
            }
        }
    });
    whole.into_inner().unwrap_or_else(PoisonError::into_inner)
}

struct Worker<'a> {
    plan: &'a IngestPlan,
    primary: Primary<'a>,
    control: &'a Control,
    whole: &'a Mutex<Written>,
    begun: Instant,
    worker: u32,
}

impl Worker<'_> {
    /// Records of this worker, if their number is fixed.
    fn share(&self) -> u64 {
        let workers = u64::from(self.plan.workers);
        self.plan
            .records
            .map_or(u64::MAX, |all| all / workers + u64::from(u64::from(self.worker) < all % workers))
    }

    fn goes_on(&self, number: u64) -> bool {
        let in_time = self.plan.duration.is_none_or(|duration| self.begun.elapsed() < duration);
        number < self.share() && in_time && !self.control.stopping()
    }

    /// Waits until the next batch is due.
    fn pace(&self, number: u64) {
        let Some(rate) = self.plan.rate else { return };
        let due = Duration::from_secs_f64(number as f64 * f64::from(self.plan.workers) / rate);
        while self.begun.elapsed() < due && !self.control.stopping() {
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
        let (records, plan) = (self.plan.contents(), self.plan);
        let mut ledger = Ledger::default();
        let (mut client, mut number) = (None, 0);
        while self.goes_on(number) {
            self.pace(number);
            if client.is_none() {
                match (self.primary)().and_then(|set| set.connect(set.primary)) {
                    Ok(one) => client = Some(one),
                    Err(why) => {
                        self.trouble(why);
                        std::thread::sleep(Duration::from_millis(50));
                        continue;
                    }
                }
            }
            let Some(open) = &mut client else { continue };
            let to = (number + plan.batch).min(self.share());
            let sent = Instant::now();
            let copies = (plan.copies, plan.durability, plan.patience);
            let fate = RedisSet::put(open, &records, (self.worker, number, to), copies);
            let status = match fate {
                Fate::Acknowledged => {
                    let at = self.begun.elapsed().as_nanos() as u64;
                    let mut all = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
                    all.course.batches.push((at, to - number, sent.elapsed().as_nanos() as u64));
                    Status::Acknowledged
                }
                Fate::Indeterminate(why) => {
                    self.trouble(why);
                    // Whatever the connection still says belongs to nobody.
                    client = None;
                    Status::Indeterminate
                }
                Fate::Refused(why) => {
                    self.trouble(why);
                    client = None;
                    Status::Failed
                }
            };
            // Names are never used twice: what failed is not sent again under its name.
            ledger.add(self.worker, number, to, status);
            number = to;
        }
        ledger
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_and_stalls() {
        let second = 1_000_000_000;
        let batches = vec![(second / 2, 10, 5), (3 * second, 20, 7), (7 * second / 2, 30, 9)];
        let course = Course { batches };
        assert_eq!(course.windows(1), [10, 0, 0]);
        assert_eq!(course.stalls(Duration::from_secs(1)), [(0.5, 2.5)]);
        assert_eq!((course.batch_s(50.0), course.batch_s(100.0)), (Some(7e-9), Some(9e-9)));
        assert_eq!(Course::default().batch_s(50.0), None);
    }
}
