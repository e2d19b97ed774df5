//! The connections of a load thread: what each is doing, and which have something to be done.

use crate::net::Ready;
use dyno_types::Outcome;
use dyno_types::limits::BACKOFF_NS;
use std::collections::VecDeque;

/// Bytes received at once; larger replies take several turns of the receive loop.
const RECEIVE_BYTES: usize = 256 << 10;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not open; another attempt is made at `retry_ns`.
    Closed {
        retry_ns: u64,
    },
    Opening {
        since_ns: u64,
    },
    /// Awaiting this reply of the greeting.
    Greeting {
        reply: u16,
        since_ns: u64,
    },
    Ready,
}

/// A reply that is awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited {
    pub op: u32,
    pub generation: u32,
    pub command: u32,
    /// The answer to what preceded a command, not to the command.
    pub preamble: bool,
}

/// A connection of a user, or of the checks of a node.
pub(super) struct Connection<S> {
    pub socket: Option<S>,
    pub state: State,
    pub user: u32,
    pub node: u16,
    pub awaited: VecDeque<Awaited>,
    /// How many of the newest awaited replies belong to output not yet sent.
    pub unsent: usize,
    pub input: Vec<u8>,
    pub output: Vec<u8>,
    pub written: usize,
    pub watching: bool,
    pub dirty: bool,
    pub timeouts: u8,
    /// When the last bytes before those at hand arrived, by the kernel.
    pub heard_ns: u64,
    /// When a recorded command that waits for data ended last: until then the server had to keep those behind it waiting.
    pub wait_ended_ns: u64,
    pub backoff_ns: u64,
    pub ever_ready: bool,
    /// Outcome of the last failed attempt to open it: until the next one, whatever needs it ends so.
    pub refused: Option<Outcome>,
    /// It is being made anew on purpose, or for a user that begins: that one's places wait for it.
    pub renewed: bool,
}

impl<S> Connection<S> {
    /// A command has been put into the output whose reply is this one.
    #[inline]
    pub(super) fn await_reply(&mut self, reply: Awaited) {
        self.awaited.push_back(reply);
        self.unsent += 1;
    }
}

/// User of connections on which nodes are checked.
pub(super) const CHECKER: u32 = u32::MAX;

/// Checks of one node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Monitor {
    /// The connection, once it was needed.
    pub connection: Option<u32>,
    /// When the check under way was sent.
    pub asked_ns: Option<u64>,
    /// It has been without its answer for too long when last looked at. What had arrived by then has been read since.
    pub overdue: bool,
    /// When the last one began.
    pub begun_ns: u64,
}

/// All connections. `S`: the network's socket.
pub(super) struct Connections<S> {
    pub(super) connections: Vec<Connection<S>>,
    /// Users with a connection that is ready, and when their time was counted last.
    pub(super) connected: usize,
    pub(super) counted_ns: u64,
    /// Those with output that is not sent.
    pub(super) dirty: Vec<u32>,
    pub(super) ready: Vec<Ready>,
    /// Those that are read on in the next pass.
    pub(super) unread: Vec<Ready>,
    pub(super) buffer: Vec<u8>,
    pub(super) spare: Vec<Vec<u8>>,
    /// Users whose connections are to be made anew.
    pub(super) renewals: Vec<u32>,
    /// Closed ones that are opened again at `next_retry_ns`.
    pub(super) retrying: Vec<u32>,
    /// Those that are being opened or greeted.
    pub(super) unsettled: usize,
    pub(super) next_retry_ns: u64,
    pub(super) next_sweep_ns: u64,
    pub(super) next_topology_ns: u64,
    /// Checks of each node.
    pub(super) monitors: Vec<Monitor>,
    pub(super) next_check_ns: u64,
}

impl<S> Connections<S> {
    /// None yet, with room for one of each user.
    pub(super) fn new(users: usize) -> Self {
        Connections {
            connections: Vec::with_capacity(users),
            connected: 0,
            counted_ns: u64::MAX,
            dirty: Vec::new(),
            ready: Vec::new(),
            unread: Vec::new(),
            buffer: vec![0; RECEIVE_BYTES],
            spare: Vec::new(),
            renewals: Vec::new(),
            retrying: Vec::new(),
            unsettled: 0,
            next_retry_ns: u64::MAX,
            next_sweep_ns: u64::MAX,
            next_topology_ns: 0,
            monitors: Vec::new(),
            next_check_ns: 0,
        }
    }

    /// A connection of a user to a node, not opened yet.
    pub(super) fn add_connection(&mut self, user: u32, node: u16) -> u32 {
        let id = self.connections.len() as u32;
        self.connections.push(Connection {
            socket: None,
            state: State::Closed { retry_ns: 0 },
            user,
            node,
            awaited: VecDeque::new(),
            unsent: 0,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            watching: true,
            dirty: false,
            timeouts: 0,
            heard_ns: 0,
            wait_ended_ns: 0,
            backoff_ns: BACKOFF_NS.0,
            ever_ready: false,
            refused: None,
            renewed: false,
        });
        id
    }

    /// Returns whether a connection is open, or being opened.
    pub(super) fn is_open(&self, connection: u32) -> bool {
        !matches!(self.connections[connection as usize].state, State::Closed { .. })
    }

    /// Notes that a connection has output to be sent.
    pub(super) fn mark_dirty(&mut self, id: u32) {
        let c = &mut self.connections[id as usize];
        if !c.dirty {
            c.dirty = true;
            self.dirty.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_closed_at_first_and_dirty_once() {
        let mut all = Connections::<()>::new(2);
        let id = all.add_connection(7, 1);
        assert_eq!((id, all.connections[0].user, all.connections[0].node), (0, 7, 1));
        assert!(!all.is_open(id));
        all.connections[0].state = State::Opening { since_ns: 5 };
        assert!(all.is_open(id));
        all.mark_dirty(id);
        all.mark_dirty(id);
        assert_eq!(all.dirty, [id]);
        assert_eq!(all.add_connection(CHECKER, 0), 1);
    }
}
