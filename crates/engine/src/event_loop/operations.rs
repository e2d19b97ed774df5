//! The operations of a load thread that are under way.

use super::pool::Awaited;
use dyno_types::{Outcome, Request};

/// An operation in flight. What every operation touches comes first, so that it fills few cache lines: with many under way
/// they do not fit the first cache.
#[repr(C)]
pub(super) struct Op<X> {
    pub(super) generation: u32,
    pub(super) user: u32,
    pub(super) connection: u32,
    pub(super) active: bool,
    /// A question of the driver's own: not recorded.
    pub(super) internal: bool,
    /// Begun in the warm-up.
    pub(super) warm: bool,
    /// The end frees its user; not so for passengers of a batch.
    pub(super) holds_place: bool,
    pub(super) hops: u8,
    pub(super) first_outcome: Outcome,
    pub(super) begun_ns: u64,
    pub(super) intended_ns: u64,
    pub(super) sent_ns: u64,
    pub(super) first_intended_ns: u64,
    pub(super) first_sent_ns: u64,
    /// Open loop: when a client that is never late would begin the request under way.
    pub(super) ideal_ns: u64,
    /// Open loop: when it was due and had a place, as things were.
    pub(super) ready_ns: u64,
    pub(super) request: Request,
    /// The other operations of the batch that this one leads.
    pub(super) passengers: Vec<u32>,
    /// Attempts of an insert that have failed.
    pub(super) attempts: u64,
    /// Time that the last reply took to decode, nanoseconds, where values are verified meanwhile.
    pub(super) verify_ns: u64,
    pub(super) exchange: X,
    /// The first request of a script, where the workload has scripts or wants to see it again.
    pub(super) first: Request,
}

impl<X> Op<X> {
    /// Open loop: no client could begin it before this time.
    #[inline]
    pub(super) fn begins_from(&mut self, ns: u64) {
        self.ideal_ns = self.ideal_ns.max(ns);
        self.ready_ns = self.ready_ns.max(ns);
    }
}

/// A command that waits for a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parked {
    pub(super) op: u32,
    pub(super) generation: u32,
    pub(super) command: u32,
    /// Outcome of its op if there is none.
    pub(super) outcome: Outcome,
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
}

/// All operations that have begun. `X`: the driver's exchange.
pub(super) struct Operations<X> {
    /// Places of operations, of which those in `free_ops` are empty.
    pub(super) ops: Vec<Op<X>>,
    pub(super) free_ops: Vec<u32>,
    pub(super) in_flight: usize,
    /// Operations that share one exchange.
    pub(super) batch: usize,
    pub(super) batch_requests: Vec<Request>,
    /// Commands that wait for a node to be sent to once more.
    pub(super) parked: Vec<Parked>,
    /// An operation has been without its reply for long, and when to look again.
    pub(super) unanswered: bool,
    pub(super) next_unanswered_ns: u64,
}

impl<X: Default> Operations<X> {
    /// None yet; `batch` of them share one exchange.
    pub(super) fn new(batch: usize) -> Self {
        Operations {
            ops: Vec::new(),
            free_ops: Vec::new(),
            in_flight: 0,
            batch,
            batch_requests: Vec::new(),
            parked: Vec::new(),
            unanswered: false,
            next_unanswered_ns: 0,
        }
    }

    /// Makes an operation a passenger of the batch that `leader` leads, which alone ends it.
    pub(super) fn add_passenger(&mut self, leader: u32, id: u32) {
        debug_assert_ne!(leader, id, "an operation does not lead itself");
        let op = &mut self.ops[id as usize];
        debug_assert!(op.active, "a passenger has just begun");
        debug_assert!(op.passengers.is_empty(), "a passenger leads no one");
        (op.active, op.holds_place) = (false, false);
        let leader = &mut self.ops[leader as usize];
        debug_assert!(leader.active, "a leader is under way, and no passenger");
        leader.passengers.push(id);
        debug_assert!(leader.passengers.len() < self.batch, "a batch has its leader and the rest");
    }

    /// Returns whether no place is both free and taken, as far as their numbers tell: questions of the driver's own have places
    /// too, and are not counted as under way.
    pub(super) fn places_add_up(&self) -> bool {
        self.in_flight + self.free_ops.len() <= self.ops.len()
    }

    /// Returns whether the op that a reply belongs to is still the one that asked.
    pub(super) fn is_current(&self, reply: Awaited) -> bool {
        let op = &self.ops[reply.op as usize];
        op.active && op.generation == reply.generation
    }

    /// Returns whether an operation has been without its reply for `limit_ns`.
    pub(super) fn has_unanswered(&self, now: u64, limit_ns: u64) -> bool {
        let long_ago = now.saturating_sub(limit_ns);
        self.ops.iter().any(|op| op.active && !op.internal && op.sent_ns != 0 && op.sent_ns < long_ago)
    }

    /// A free place for an operation, generation kept. `keeps_first`: the request is wanted once more at its end.
    pub(super) fn take_place(&mut self, user: u32, request: Request, keeps_first: bool) -> u32 {
        let id = self.free_ops.pop().unwrap_or_else(|| {
            self.ops.push(Op {
                generation: 0,
                active: false,
                internal: false,
                warm: false,
                holds_place: true,
                hops: 0,
                attempts: 0,
                verify_ns: 0,
                user: 0,
                connection: 0,
                first: Request::default(),
                request: Request::default(),
                first_outcome: Outcome::Ok,
                begun_ns: 0,
                intended_ns: 0,
                sent_ns: 0,
                ideal_ns: 0,
                ready_ns: 0,
                first_intended_ns: 0,
                first_sent_ns: 0,
                passengers: Vec::new(),
                exchange: X::default(),
            });
            self.ops.len() as u32 - 1
        });
        let op = &mut self.ops[id as usize];
        debug_assert!(!op.active, "a free place has no operation");
        debug_assert!(op.passengers.is_empty(), "passengers end before their leader");
        (op.active, op.user, op.request) = (true, user, request);
        if keeps_first {
            op.first = request;
        }
        op.holds_place = true;
        (op.hops, op.attempts, op.first_outcome) = (0, 0, Outcome::Ok);
        (op.sent_ns, op.first_sent_ns) = (0, 0);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awaited(op: u32, generation: u32) -> Awaited {
        Awaited { op, generation, command: 0, preamble: false }
    }

    #[test]
    fn a_place_is_used_again_and_knows_replies_to_the_operation_before() {
        let mut all = Operations::<()>::new(1);
        let first = all.take_place(3, Request::default(), false);
        let second = all.take_place(4, Request::default(), false);
        assert_eq!((first, second, all.ops.len()), (0, 1, 2));
        assert!(all.is_current(awaited(first, 0)) && !all.is_current(awaited(first, 1)));
        // As an end leaves it.
        let op = &mut all.ops[first as usize];
        (op.active, op.generation) = (false, 1);
        all.free_ops.push(first);
        assert!(!all.is_current(awaited(first, 0)));
        assert_eq!(all.take_place(5, Request::default(), false), first);
        assert!(all.is_current(awaited(first, 1)) && !all.is_current(awaited(first, 0)));
        assert_eq!((all.ops.len(), all.ops[0].user), (2, 5));
    }

    #[test]
    fn only_what_was_sent_long_ago_is_unanswered() {
        let mut all = Operations::<()>::new(1);
        let id = all.take_place(0, Request::default(), false);
        assert!(!all.has_unanswered(1_000, 100), "nothing was sent");
        all.ops[id as usize].sent_ns = 850;
        assert!(all.has_unanswered(1_000, 100) && !all.has_unanswered(900, 100));
        all.ops[id as usize].internal = true;
        assert!(!all.has_unanswered(1_000, 100), "the driver's own");
    }

    #[test]
    fn passengers_do_not_end_by_themselves() {
        let mut all = Operations::<()>::new(3);
        let [leader, one, two] = [0, 1, 2].map(|user| all.take_place(user, Request::default(), false));
        all.add_passenger(leader, one);
        all.add_passenger(leader, two);
        assert_eq!(all.ops[leader as usize].passengers, [one, two]);
        assert!(all.ops[leader as usize].active && !all.ops[one as usize].active);
        assert!(!all.ops[two as usize].holds_place);
    }
}
