//! Stretches of time in which a load thread saw no success, whether a user waited for one, and pauses of the thread itself.

/// Shortest stretch that is kept, nanoseconds.
pub const SHORTEST_NS: u64 = 300_000_000;

/// Shortest pause of a load thread after which it does not know what it has missed, nanoseconds.
const PAUSE_NS: u64 = 100_000_000;

/// A stretch without a success in one load thread. Times are nanoseconds after the run's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The success before it.
    pub from_ns: u64,
    /// From then on an operation was under way or failed without an answer; `u64::MAX` if none did.
    pub waiting_ns: u64,
    /// The success behind it; `u64::MAX` if none came.
    pub until_ns: u64,
}

/// A stretch in which a load thread did not run. Times are nanoseconds after the run's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When it was to run.
    pub from_ns: u64,
    /// When it ran again.
    pub until_ns: u64,
}

/// Keeps watch over one load thread. Times are the clock's, nanoseconds.
#[derive(Debug)]
pub(crate) struct GapWatch {
    epoch_ns: u64,
    /// The last success, or the end of a pause of the thread after it.
    last_ns: u64,
    /// Begin of the first operation since the last success that was given up without an answer.
    waiting_ns: u64,
    /// When the thread began to work.
    turn_ns: u64,
    /// Stretches since the last success, between pauses of the thread.
    open: Vec<(u64, u64)>,
    /// Pauses of the thread that have not been handed over.
    pauses: Vec<Pause>,
}

impl GapWatch {
    /// Begins at the run's epoch.
    pub fn new(epoch_ns: u64) -> Self {
        GapWatch {
            epoch_ns,
            last_ns: epoch_ns,
            waiting_ns: u64::MAX,
            turn_ns: epoch_ns,
            open: Vec::new(),
            pauses: Vec::new(),
        }
    }

    /// Returns whether a success at `at_ns` would end a stretch that is kept.
    #[inline]
    pub fn ends_gap(&self, at_ns: u64) -> bool {
        at_ns >= self.last_ns + SHORTEST_NS || !self.open.is_empty()
    }

    /// The success at `at_ns`, of an operation that had begun at `begun_ns`, ends a stretch that is kept. It is noted behind it.
    pub fn end_gap(&mut self, begun_ns: u64, at_ns: u64, into: &mut Vec<Gap>) {
        // A thread that stood still since it began to work takes the time of its own clock for that of the reply.
        self.paused(self.turn_ns, at_ns);
        self.note_unanswered(begun_ns);
        self.close(at_ns, into);
        self.last_ns = self.last_ns.max(at_ns);
    }

    /// An operation has succeeded.
    #[inline]
    pub fn note_success(&mut self, at_ns: u64) {
        debug_assert!(!self.ends_gap(at_ns), "a stretch is closed first");
        self.last_ns = self.last_ns.max(at_ns);
        self.waiting_ns = u64::MAX;
    }

    /// An operation that had begun at `begun_ns` was given up without an answer.
    #[inline]
    pub fn note_unanswered(&mut self, begun_ns: u64) {
        self.waiting_ns = self.waiting_ns.min(begun_ns);
    }

    /// The thread begins to work at `now_ns`; it was to wake up by `due_ns` at the latest.
    #[inline]
    pub fn note_wake(&mut self, due_ns: u64, now_ns: u64) {
        self.paused(due_ns, now_ns);
        self.turn_ns = now_ns;
    }

    /// The thread has done its work at `now_ns`.
    #[inline]
    pub fn note_work(&mut self, now_ns: u64) {
        self.paused(self.turn_ns, now_ns);
    }

    /// The thread did not run, or did not look: what happened meanwhile is unknown.
    #[inline]
    fn paused(&mut self, from_ns: u64, until_ns: u64) {
        if until_ns >= from_ns.saturating_add(PAUSE_NS) {
            self.stretch(from_ns);
            self.last_ns = self.last_ns.max(until_ns);
            self.note(from_ns, until_ns);
        }
    }

    /// Notes a pause; several may tell of the same one.
    #[cold]
    fn note(&mut self, from_ns: u64, until_ns: u64) {
        debug_assert!(from_ns < until_ns, "a pause lasts");
        let after = |ns: u64| ns.saturating_sub(self.epoch_ns);
        let (from_ns, until_ns) = (after(from_ns), after(until_ns));
        match self.pauses.last_mut().filter(|last| last.until_ns >= from_ns) {
            Some(last) => last.until_ns = last.until_ns.max(until_ns),
            None => self.pauses.push(Pause { from_ns, until_ns }),
        }
    }

    /// Hands pauses over.
    pub fn hand_over(&mut self, into: &mut Vec<Pause>) {
        into.append(&mut self.pauses);
    }

    #[cold]
    fn stretch(&mut self, until_ns: u64) {
        let apart = self.open.last().is_none_or(|(_, until_ns)| *until_ns <= self.last_ns);
        debug_assert!(apart, "stretches without a success do not overlap");
        if until_ns >= self.last_ns.saturating_add(SHORTEST_NS) {
            self.open.push((self.last_ns, until_ns));
        }
    }

    #[cold]
    fn close(&mut self, until_ns: u64, into: &mut Vec<Gap>) {
        self.stretch(until_ns);
        let after = |ns: u64| if ns == u64::MAX { ns } else { ns.saturating_sub(self.epoch_ns) };
        let waiting_ns = after(self.waiting_ns);
        into.extend(self.open.drain(..).map(|(from_ns, until_ns)| Gap {
            from_ns: after(from_ns),
            waiting_ns,
            until_ns: after(until_ns),
        }));
    }

    /// The thread has ended: no success of its own will come.
    pub fn finish(&mut self, into: &mut Vec<Gap>) {
        self.close(u64::MAX, into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const EPOCH: u64 = 7 * MS;

    /// Gaps in milliseconds after the epoch.
    fn gaps(watched: impl FnOnce(&mut GapWatch, &mut Vec<Gap>)) -> Vec<(u64, u64, u64)> {
        let (mut watch, mut into) = (GapWatch::new(EPOCH), Vec::new());
        watched(&mut watch, &mut into);
        into.iter().map(|gap| (gap.from_ns / MS, gap.waiting_ns / MS, gap.until_ns / MS)).collect()
    }

    fn at(ms: u64) -> u64 {
        EPOCH + ms * MS
    }

    /// An operation that had begun at `begun_ns` succeeds at `at_ns`.
    fn succeed(watch: &mut GapWatch, begun_ns: u64, at_ns: u64, into: &mut Vec<Gap>) {
        if watch.ends_gap(at_ns) {
            watch.end_gap(begun_ns, at_ns, into);
        }
        watch.note_success(at_ns);
    }

    #[test]
    fn a_gap_lasts_from_one_success_to_the_next() {
        let found = gaps(|watch, into| {
            watch.note_wake(at(0), at(0));
            succeed(watch, at(0), at(100), into);
            watch.note_wake(at(390), at(390));
            succeed(watch, at(350), at(390), into);
            // No user asked before 900.
            watch.note_wake(at(1_000), at(1_000));
            succeed(watch, at(900), at(1_000), into);
        });
        assert_eq!(found, [(390, 900, 1_000)]);
    }

    #[test]
    fn an_operation_given_up_has_waited() {
        let found = gaps(|watch, into| {
            succeed(watch, at(0), at(10), into);
            watch.note_unanswered(at(20));
            watch.note_unanswered(at(2_020));
            watch.note_wake(at(3_000), at(3_000));
            succeed(watch, at(2_900), at(3_000), into);
            watch.note_unanswered(at(3_500));
            watch.finish(into);
        });
        assert_eq!(found, [(10, 20, 3_000), (3_000, 3_500, u64::MAX / MS)]);
    }

    /// What a client that stood still has missed is not known.
    #[test]
    fn a_pause_of_the_client_is_no_gap() {
        let slept = gaps(|watch, into| {
            succeed(watch, at(0), at(10), into);
            watch.note_work(at(11));
            watch.note_wake(at(60), at(2_000));
            succeed(watch, at(11), at(2_000), into);
        });
        assert_eq!(slept, []);
        let worked = gaps(|watch, into| {
            watch.note_wake(at(10), at(10));
            succeed(watch, at(0), at(11), into);
            watch.note_work(at(2_000));
            succeed(watch, at(11), at(2_010), into);
        });
        assert_eq!(worked, []);
        // By its own clock, without the kernel's time of arrival.
        let within = gaps(|watch, into| {
            watch.note_wake(at(10), at(10));
            succeed(watch, at(0), at(11), into);
            succeed(watch, at(5), at(2_000), into);
        });
        assert_eq!(within, []);
        // A pause within a gap leaves both its sides.
        let cut = gaps(|watch, into| {
            succeed(watch, at(0), at(10), into);
            watch.note_wake(at(1_000), at(1_200));
            watch.note_wake(at(3_000), at(3_000));
            succeed(watch, at(11), at(3_000), into);
        });
        assert_eq!(cut, [(10, 11, 1_000), (1_200, 11, 3_000)]);
    }
}
