//! Cursors of now in place of those of then, by the command that opened them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The command that opened a cursor: its connection, and its number among the commands of it.
pub(in crate::replay) type CursorKey = (u32, i64);

/// Shares of the map, so that load threads do not wait for each other.
const SHARES: usize = 16;

/// Most cursors of a share that are kept: the oldest of more are forgotten. Servers close them after ten minutes.
const LIVE: usize = 4_096;

/// What is known of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) enum CursorState {
    /// The command that opens it is not answered yet.
    Awaited,
    /// It is open, under this number.
    Live(i64),
    /// It was never opened, or has ended.
    Gone,
}

#[derive(Debug, Default)]
struct Share {
    /// Cursors, 0 where the command that opens it is not answered.
    known: HashMap<CursorKey, i64>,
    /// Those that were opened, the oldest first; some may have ended.
    opened: VecDeque<CursorKey>,
    live: usize,
}

impl Share {
    fn forget(&mut self, key: CursorKey) {
        if self.known.remove(&key).is_some_and(|cursor| cursor != 0) {
            self.live -= 1;
        }
    }
}

/// Cursors that the replay has opened.
#[derive(Debug, Default)]
pub(in crate::replay) struct LiveCursors {
    shares: [Mutex<Share>; SHARES],
}

impl LiveCursors {
    fn share(&self, key: CursorKey) -> MutexGuard<'_, Share> {
        self.shares[key.0 as usize % SHARES].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command that may open a cursor is to be sent.
    pub fn await_opener(&self, key: CursorKey) {
        self.share(key).known.insert(key, 0);
    }

    /// A reply was that of this cursor; 0: it has no more to give.
    pub fn note_cursor(&self, key: CursorKey, cursor: i64) {
        let mut share = self.share(key);
        if cursor == 0 {
            return share.forget(key);
        }
        if share.known.insert(key, cursor).unwrap_or(0) != 0 {
            return;
        }
        share.live += 1;
        share.opened.push_back(key);
        while share.live > LIVE {
            let Some(oldest) = share.opened.pop_front() else { break };
            if share.known.get(&oldest).is_some_and(|cursor| *cursor != 0) {
                share.forget(oldest);
            }
        }
        if share.opened.len() > 2 * LIVE {
            let Share { known, opened, .. } = &mut *share;
            opened.retain(|key| known.get(key).is_some_and(|cursor| *cursor != 0));
        }
    }

    /// The command is done with: if no cursor has come of it, none will.
    pub fn settle_opener(&self, key: CursorKey) {
        let mut share = self.share(key);
        if share.known.get(&key) == Some(&0) {
            share.forget(key);
        }
    }

    /// What is known of the cursor that a command opened.
    pub fn state_of(&self, key: CursorKey) -> CursorState {
        match self.share(key).known.get(&key) {
            None => CursorState::Gone,
            Some(0) => CursorState::Awaited,
            Some(cursor) => CursorState::Live(*cursor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_awaited_lives_and_ends() {
        let cursors = LiveCursors::default();
        let key = (3, 7);
        assert_eq!(cursors.state_of(key), CursorState::Gone);
        cursors.await_opener(key);
        assert_eq!(cursors.state_of(key), CursorState::Awaited);
        cursors.note_cursor(key, 99);
        cursors.settle_opener(key);
        assert_eq!(cursors.state_of(key), CursorState::Live(99));
        cursors.note_cursor(key, 99);
        cursors.note_cursor(key, 0);
        assert_eq!(cursors.state_of(key), CursorState::Gone);
        cursors.await_opener((3, 8));
        cursors.settle_opener((3, 8));
        assert_eq!(cursors.state_of((3, 8)), CursorState::Gone);
    }

    #[test]
    fn the_oldest_of_too_many_are_forgotten() {
        let cursors = LiveCursors::default();
        for number in 0..3 * LIVE as i64 {
            cursors.note_cursor((0, number), 1 + number);
            // Every other one ends.
            if number % 2 == 0 {
                cursors.note_cursor((0, number), 0);
            }
        }
        let share = cursors.share((0, 0));
        assert_eq!((share.live, share.known.len()), (LIVE, LIVE));
        assert!(share.opened.len() <= 2 * LIVE);
        drop(share);
        let newest = 3 * LIVE as i64 - 1;
        assert_eq!(cursors.state_of((0, newest)), CursorState::Live(newest + 1));
        assert_eq!(cursors.state_of((0, 1)), CursorState::Gone);
    }
}
