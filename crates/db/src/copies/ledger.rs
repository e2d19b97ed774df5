//! Outcome of every record: keys are dense in each worker, so that ranges say it all.

use serde::Serialize;

/// Status of a record, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordStatus {
    /// Acknowledged by as many copies as were asked for.
    Acknowledged,
    /// Sent, and no such acknowledgement came: it may be there or not.
    Indeterminate,
    /// Refused: it must not be there.
    Failed,
}

/// Consecutive records of a worker with one status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StatusRange {
    /// The worker, from 0.
    pub worker: u32,
    /// The first.
    pub from: u64,
    /// The one after the last.
    pub to: u64,
    /// Their status.
    pub status: RecordStatus,
}

/// Ranges among which the last one of a worker is looked for: in a long list of many workers they are neighbours once merged.
const LOOK_BACK: usize = 64;

/// All records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    ranges: Vec<StatusRange>,
}

impl Ledger {
    /// Adds the next records of a worker.
    pub fn add_records(&mut self, worker: u32, from: u64, to: u64, status: RecordStatus) {
        if from == to {
            return;
        }
        let mut latest = self.ranges.iter_mut().rev().take(LOOK_BACK);
        match latest.find(|range| range.worker == worker) {
            Some(last) if last.to == from && last.status == status => last.to = to,
            _ => self.ranges.push(StatusRange { worker, from, to, status }),
        }
    }

    /// Takes over what another has; neighbours with one status become one range.
    pub fn merge(&mut self, other: Ledger) {
        self.ranges.extend(other.ranges);
        self.ranges.sort_by_key(|range| (range.worker, range.from));
        self.ranges.dedup_by(|next, range| {
            let is_neighbour =
                (range.worker, range.to, range.status) == (next.worker, next.from, next.status);
            range.to = if is_neighbour { next.to } else { range.to };
            is_neighbour
        });
    }

    /// Ranges, by worker and number once merged.
    pub fn merged_ranges(&self) -> &[StatusRange] {
        &self.ranges
    }

    /// Number of records that have this status.
    pub fn count(&self, status: RecordStatus) -> u64 {
        self.ranges.iter().filter(|range| range.status == status).map(|range| range.to - range.from).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range() {
        let mut ledger = Ledger::default();
        ledger.add_records(0, 0, 10, RecordStatus::Acknowledged);
        ledger.add_records(0, 10, 20, RecordStatus::Acknowledged);
        ledger.add_records(0, 20, 25, RecordStatus::Indeterminate);
        ledger.add_records(0, 25, 25, RecordStatus::Failed);
        let mut other = Ledger::default();
        other.add_records(1, 0, 5, RecordStatus::Acknowledged);
        other.merge(ledger);
        assert_eq!(other.merged_ranges().len(), 3);
        assert_eq!(
            other.merged_ranges()[0],
            StatusRange { worker: 0, from: 0, to: 20, status: RecordStatus::Acknowledged }
        );
        assert_eq!(
            (other.count(RecordStatus::Acknowledged), other.count(RecordStatus::Indeterminate)),
            (25, 5)
        );
    }
}
