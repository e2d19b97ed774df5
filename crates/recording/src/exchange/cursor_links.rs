//! Cursors that replies have opened, and the commands that they were replies to.

use std::collections::HashMap;

/// Cursors that are remembered at least, if so many are open.
const CURSORS: usize = 1 << 18;

/// The command whose reply has opened a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorOpener {
    /// Its connection.
    pub connection: u32,
    /// Its number among the entries of its connection, from 0 on.
    pub command: u64,
}

/// Open cursors by their ids. Those that were not used for the longest time are forgotten first.
#[derive(Debug, Default)]
pub struct CursorLinks {
    recent: HashMap<i64, CursorOpener>,
    earlier: HashMap<i64, CursorOpener>,
}

impl CursorLinks {
    /// A reply has opened a cursor.
    pub fn note_opened(&mut self, cursor: i64, opener: CursorOpener) {
        if self.recent.len() >= CURSORS {
            self.earlier = std::mem::take(&mut self.recent);
        }
        self.earlier.remove(&cursor);
        self.recent.insert(cursor, opener);
    }

    /// The command that has opened a cursor.
    pub fn find_opener(&mut self, cursor: i64) -> Option<CursorOpener> {
        if let Some(opener) = self.recent.get(&cursor) {
            return Some(*opener);
        }
        let opener = self.earlier.remove(&cursor)?;
        self.note_opened(cursor, opener);
        Some(opener)
    }

    /// A cursor is no more.
    pub fn forget_cursor(&mut self, cursor: i64) {
        self.recent.remove(&cursor);
        self.earlier.remove(&cursor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_in_use_are_remembered() {
        let mut links = CursorLinks::default();
        let opener = |command| CursorOpener { connection: 3, command };
        let count = 5 * CURSORS as i64;
        for cursor in 1..=count {
            links.note_opened(cursor, opener(cursor as u64));
            assert_eq!(links.find_opener(1), Some(opener(1)));
        }
        assert_eq!(links.find_opener(2), None);
        assert_eq!(links.find_opener(count - 1_000), Some(opener(count as u64 - 1_000)));
        assert!(links.recent.len() + links.earlier.len() <= 2 * CURSORS + 2);
        links.forget_cursor(1);
        assert_eq!(links.find_opener(1), None);
    }
}
