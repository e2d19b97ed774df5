//! Seconds of several workers, added up exactly as they come, and what each worker has counted.

use crate::protocol::frame::{FrameError, PackedSecond, SparseSecond};
use dyno_engine::Second;
use dyno_record::{Scale, Totals};
use dyno_session::in_process_workers::Seconds;

/// The seconds of a phase: see [`Seconds`]. Of each worker only counts are kept: its histograms come whole with its end, because
/// those of a thousand workers would fill the memory of who adds them up.
pub(crate) struct WorkerSums {
    seconds: Seconds,
    /// Metrics and unit of the first second: others cannot be added to it.
    form: Option<(usize, Scale)>,
    counts: Vec<Option<Totals>>,
}

impl WorkerSums {
    /// Expects seconds of so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        WorkerSums { seconds: Seconds::new(workers), form: None, counts: vec![None; workers] }
    }

    /// Returns whether totals count as many metrics as the first ones did, in the same unit.
    pub(crate) fn is_alike<H>(&mut self, totals: &Totals<H>) -> bool {
        let own = (totals.outcomes.len(), totals.slot_scale());
        *self.form.get_or_insert(own) == own
    }

    /// Takes a worker's second, and returns what it holds.
    ///
    /// # Errors
    /// It cannot be read, or counts other things than those before.
    pub(crate) fn take_second(
        &mut self,
        worker: usize,
        packed: &PackedSecond,
    ) -> Result<SparseSecond, FrameError> {
        let second = packed.open()?;
        if !self.is_alike(&second.totals) {
            return Err(FrameError::Malformed("its seconds count other things than those before".into()));
        }
        if !second.warmup {
            let counts = self.counts[worker].get_or_insert_with(|| second.totals.to_empty());
            counts.merge_counts(&second.totals);
            // They are kept with the seconds; over a day they are many.
            counts.gaps.clear();
            counts.pauses.clear();
        }
        self.seconds.take_sparse(worker, second.number, second.warmup, &second.totals);
        Ok(second)
    }

    /// Expects a phase's seconds of a worker.
    pub(crate) fn expect_phase(&mut self, worker: usize) {
        if self.seconds.are_over() {
            // Loading and measuring have metrics of their own.
            self.form = None;
        }
        self.seconds.expect_again(worker);
        self.counts[worker] = None;
    }

    /// A worker has no more seconds.
    pub(crate) fn note_ended(&mut self, worker: usize) {
        self.seconds.note_ended(worker);
    }

    /// Hands out the seconds that all workers are past.
    pub(crate) fn hand_out(&mut self, on_second: &mut dyn FnMut(Second)) {
        self.seconds.hand_out(on_second);
    }

    /// Takes what a worker has counted without the warm-up; `None` if nothing has come.
    pub(crate) fn take_counts(&mut self, worker: usize) -> Option<Totals> {
        self.counts[worker].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::{Frame, Packed, read_packed, write_frame};
    use crate::protocol::worker::FromWorker;

    /// A second with so many metrics and arrivals.
    fn second(number: u64, warmup: bool, metrics: usize, arrivals: u64) -> PackedSecond {
        let mut totals = Totals::new(metrics, Scale::Ns64);
        totals.arrivals = arrivals;
        let mut bytes = Vec::new();
        let frame = Frame::<&FromWorker>::Second(Box::new(Second { number, warmup, totals }));
        write_frame(&mut bytes, &frame).unwrap();
        let Ok(Packed::Second(packed)) = read_packed::<FromWorker>(&mut &bytes[..]) else { panic!() };
        packed
    }

    #[test]
    fn phases_follow_each_other_with_metrics_of_their_own() {
        let mut sums = WorkerSums::new(2);
        let mut seconds = Vec::new();
        for (metrics, arrivals) in [(1, 10), (3, 100)] {
            (0..2).for_each(|worker| sums.expect_phase(worker));
            for worker in 0..2 {
                sums.take_second(worker, &second(0, true, metrics, arrivals)).unwrap();
                sums.take_second(worker, &second(1, false, metrics, arrivals + 1)).unwrap();
            }
            assert!(
                sums.take_second(1, &second(2, false, metrics + 1, 1)).is_err(),
                "in one phase they are alike"
            );
            (0..2).for_each(|worker| sums.note_ended(worker));
            sums.hand_out(&mut |second| seconds.push((second.number, second.totals.arrivals)));
            let counts = [0, 1].map(|worker| sums.take_counts(worker).unwrap().arrivals);
            assert_eq!(counts, [arrivals + 1; 2], "without the warm-up");
        }
        assert_eq!(seconds, [(0, 20), (1, 22), (0, 200), (1, 202)]);
    }
}
