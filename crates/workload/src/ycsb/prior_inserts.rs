//! Run-phase inserts of earlier runs, after which the next run's go on.
//!
//! A run that is killed, or whose worker processes have not come equally far, has inserted keys beyond ones that it has
//! not: it leaves gaps. The picture is a list of ranks: those that are there, then the gaps, then all that follow. New inserts
//! take the list's ranks in order, so gaps are filled first, and every record below a place in the list exists.

/// One of the worker processes that share the keys of a client: the key `index` of `total` in a row is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Worker {
    pub index: u64,
    pub total: u64,
}

impl Default for Worker {
    fn default() -> Self {
        Worker { index: 0, total: 1 }
    }
}

impl Worker {
    /// The rank, among all keys of the client, of the worker's own key number `own`.
    #[inline]
    pub fn rank_of_own(self, own: u64) -> u64 {
        own.wrapping_mul(self.total).wrapping_add(self.index)
    }

    /// Which of the worker's own keys a rank is.
    #[inline]
    pub fn own_key(self, rank: u64) -> u64 {
        rank / self.total
    }
}

/// Ranks that are taken, of the keys that one client inserts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriorInserts {
    /// The rank below which the list is the ranks themselves.
    first: u64,
    /// Ranks from `first` on: those that are there, then the gaps.
    ranks: Vec<u64>,
    /// Place in the list of each rank from `first` on.
    places: Vec<u64>,
    gaps: u64,
}

impl PriorInserts {
    /// All ranks below `end` are there, except `missing`, which is sorted.
    pub fn new(end: u64, missing: &[u64]) -> Self {
        let first = missing.first().copied().unwrap_or(end).min(end);
        let gap = |rank: &u64| missing.binary_search(rank).is_ok();
        let mut ranks: Vec<u64> = (first..end).filter(|rank| !gap(rank)).collect();
        let there = ranks.len() as u64;
        ranks.extend((first..end).filter(gap));
        let mut places = vec![0; ranks.len()];
        for (place, rank) in ranks.iter().enumerate() {
            places[(rank - first) as usize] = first + place as u64;
        }
        let gaps = ranks.len() as u64 - there;
        PriorInserts { first, ranks, places, gaps }
    }

    /// Returns a worker's own keys of these.
    pub(super) fn part(&self, worker: Worker) -> Self {
        let own = |rank: &u64| (rank % worker.total == worker.index).then(|| worker.own_key(*rank));
        let end = self.first + self.ranks.len() as u64;
        let gaps = &self.ranks[self.ranks.len() - self.gaps as usize..];
        PriorInserts::new(
            end.saturating_sub(worker.index).div_ceil(worker.total),
            &gaps.iter().filter_map(own).collect::<Vec<_>>(),
        )
    }

    /// Number of records that are there: the place of the first new insert.
    pub fn count(&self) -> u64 {
        self.first + self.ranks.len() as u64 - self.gaps
    }

    /// The rank at a place of the list.
    #[inline]
    pub fn rank_at(&self, place: u64) -> u64 {
        let inner = place.checked_sub(self.first).and_then(|at| self.ranks.get(at as usize));
        inner.copied().unwrap_or(place)
    }

    /// The place of a rank in the list.
    #[inline]
    pub fn place_of(&self, rank: u64) -> u64 {
        let inner = rank.checked_sub(self.first).and_then(|at| self.places.get(at as usize));
        inner.copied().unwrap_or(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_come_after_what_is_there() {
        let earlier = PriorInserts::new(8, &[3, 5]);
        assert_eq!(earlier.count(), 6);
        let ranks: Vec<u64> = (0..10).map(|place| earlier.rank_at(place)).collect();
        assert_eq!(ranks, [0, 1, 2, 4, 6, 7, 3, 5, 8, 9]);
        assert!((0..10).all(|place| earlier.place_of(earlier.rank_at(place)) == place));
        let whole = PriorInserts::new(4, &[]);
        assert_eq!((whole.count(), whole.rank_at(3), whole.rank_at(9), whole.place_of(7)), (4, 3, 9, 7));
        assert_eq!(PriorInserts::default().count(), 0);
    }

    #[test]
    fn workers_have_the_same_keys_together() {
        let earlier = PriorInserts::new(9, &[3, 5]);
        let parts =
            [0, 1].map(|index| (Worker { index, total: 2 }, earlier.part(Worker { index, total: 2 })));
        let there = |(worker, part): &(Worker, PriorInserts)| -> Vec<u64> {
            (0..part.count()).map(|place| worker.rank_of_own(part.rank_at(place))).collect()
        };
        assert_eq!((there(&parts[0]), there(&parts[1])), (vec![0, 2, 4, 6, 8], vec![1, 7]));
        let next = |(worker, part): &(Worker, PriorInserts), further| {
            worker.rank_of_own(part.rank_at(part.count() + further))
        };
        assert_eq!([next(&parts[0], 0), next(&parts[0], 1)], [10, 12]);
        assert_eq!(
            [next(&parts[1], 0), next(&parts[1], 1), next(&parts[1], 2)],
            [3, 5, 9],
            "gaps are filled first"
        );
    }
}
