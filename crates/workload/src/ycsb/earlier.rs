//! Run-phase inserts of earlier runs, after which the next run's go on.
//!
//! A run that ends in the middle of a block of the mix, or is killed, has inserted keys beyond ones that it has not: it
//! leaves gaps. The picture is a list of ranks: those that are there, then the gaps, then all that follow. New inserts
//! take the list's ranks in order, so gaps are filled first, and every record below a place in the list exists.

/// Ranks that are taken, of the keys that one client inserts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Earlier {
    /// The rank below which the list is the ranks themselves.
    first: u64,
    /// Ranks from `first` on: those that are there, then the gaps.
    ranks: Vec<u64>,
    /// Place in the list of each rank from `first` on.
    places: Vec<u64>,
    gaps: u64,
}

impl Earlier {
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
        Earlier { first, ranks, places, gaps }
    }

    /// How many records are there: the place of the first new insert.
    pub fn count(&self) -> u64 {
        self.first + self.ranks.len() as u64 - self.gaps
    }

    /// The rank at a place of the list.
    #[inline]
    pub fn rank(&self, place: u64) -> u64 {
        let inner = place.checked_sub(self.first).and_then(|at| self.ranks.get(at as usize));
        inner.copied().unwrap_or(place)
    }

    /// The place of a rank in the list.
    #[inline]
    pub fn place(&self, rank: u64) -> u64 {
        let inner = rank.checked_sub(self.first).and_then(|at| self.places.get(at as usize));
        inner.copied().unwrap_or(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_come_after_what_is_there() {
        let earlier = Earlier::new(8, &[3, 5]);
        assert_eq!(earlier.count(), 6);
        let ranks: Vec<u64> = (0..10).map(|place| earlier.rank(place)).collect();
        assert_eq!(ranks, [0, 1, 2, 4, 6, 7, 3, 5, 8, 9]);
        assert!((0..10).all(|place| earlier.place(earlier.rank(place)) == place));
        let whole = Earlier::new(4, &[]);
        assert_eq!((whole.count(), whole.rank(3), whole.rank(9), whole.place(7)), (4, 3, 9, 7));
        assert_eq!(Earlier::default().count(), 0);
    }
}
