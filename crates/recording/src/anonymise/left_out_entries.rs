//! Entries that are left out, so that others can be told by the numbers that they have without them.

use std::collections::HashMap;

/// Numbers of entries are those of their connections.
#[derive(Debug, Default)]
pub(super) struct LeftOutEntries {
    connections: HashMap<u32, Connection>,
}

#[derive(Debug, Default)]
struct Connection {
    /// Entries so far.
    entries: u64,
    /// Entries that were left out one after the other.
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    first: u64,
    count: u64,
    /// Entries that were left out before these.
    before: u64,
}

impl LeftOutEntries {
    /// Takes the next entry of a connection.
    pub(super) fn note_entry(&mut self, connection: u32, is_left_out: bool) {
        let connection = self.connections.entry(connection).or_default();
        let number = connection.entries;
        connection.entries += 1;
        if !is_left_out {
            return;
        }
        match connection.runs.last_mut() {
            Some(run) if run.first + run.count == number => run.count += 1,
            last => {
                let before = last.map_or(0, |run| run.before + run.count);
                connection.runs.push(Run { first: number, count: 1, before });
            }
        }
    }

    /// The number that an entry has without those that are left out; `None` if it is left out itself.
    pub(super) fn number_now(&self, connection: u32, number: u64) -> Option<u64> {
        let Some(connection) = self.connections.get(&connection) else { return Some(number) };
        let place = connection.runs.partition_point(|run| run.first <= number);
        let Some(run) = place.checked_sub(1).map(|place| &connection.runs[place]) else {
            return Some(number);
        };
        (number >= run.first + run.count).then(|| number - run.before - run.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_without_what_is_left_out() {
        let mut all = LeftOutEntries::default();
        let kept = [true, false, false, true, true, false, true];
        kept.iter().for_each(|kept| all.note_entry(3, !kept));
        let numbers: Vec<_> = (0..7).map(|number| all.number_now(3, number)).collect();
        assert_eq!(numbers, [Some(0), None, None, Some(1), Some(2), None, Some(3)]);
        assert_eq!(all.number_now(4, 9), Some(9));
    }
}
