//! Interfaces by which the engine meets a database.
//!
//! Two lanes: a [`Driver`] speaks a network protocol without doing any input or output itself (bytes in, bytes
//! out), one instance per load thread; a [`Store`] is a library that blocks, one [`StoreSession`] per user.
//!
//! One operation on the wire is an *exchange*: one or more *commands*, numbered from 0, each sent to one node and
//! answered by one reply. `begin` says how many commands go out at once; each decoded reply says what follows.

use crate::content::Content;
use crate::outcome::Outcome;
use crate::refused::Refused;
use crate::request::Request;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// TCP, with the name it was known by (for TLS).
    Tcp {
        /// Host name or address as written.
        host: String,
        /// Resolved address.
        address: SocketAddr,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

impl Endpoint {
    /// A host whose name leads nowhere, or not yet.
    pub fn unresolved_host(host: &str) -> Endpoint {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Endpoint::Tcp { host: host.to_owned(), address }
    }

    /// Returns whether its name leads nowhere, or not yet.
    pub fn is_unresolved(&self) -> bool {
        matches!(self, Endpoint::Tcp { address, .. } if address.port() == 0)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { host, address } if host.contains(':') => write!(f, "[{host}]:{}", address.port()),
            Endpoint::Tcp { host, address } => write!(f, "{host}:{}", address.port()),
            Endpoint::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// No node: what is routed there ends as unreachable.
pub const NOWHERE: u16 = u16::MAX;

/// No node either: the request cannot be sent to any, and ends as a bad request. No server is at fault, and none is waited for.
pub const UNSENDABLE: u16 = u16::MAX - 1;

/// Next step after a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// Other commands of the exchange are still under way.
    Wait,
    /// Send the commands `first .. first + count` next.
    Send {
        /// Number of the first command.
        first: u32,
        /// Number.
        count: u32,
    },
    /// The exchange has ended.
    Finish(Outcome),
    /// Send the same command to another node.
    Redirect {
        /// Number of the node, an index into [`Driver::endpoints`].
        node: u16,
        /// True if [`Driver::asking`] must go before it.
        ask: bool,
    },
    /// Send the same command once more after a pause, as soon as [`Driver::again`] names a node.
    Again {
        /// The exchange ends so where no node is named.
        outcome: Outcome,
        /// Pause before it, nanoseconds.
        pause_ns: u64,
    },
}

/// Step of a connection at which it was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionStep {
    /// It could not be opened, or its first greeting was not answered.
    Opening,
    /// During the rest of the greeting: the login.
    Login,
    /// It was ready for operations.
    Ready,
    /// It was the connection on which the node is checked ([`Driver::heartbeat_ns`]).
    Check,
}

/// Result of looking for one reply at the start of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// The reply is not complete yet.
    Need,
    /// `used` bytes were an unasked message (a push); no reply was consumed.
    Push {
        /// Bytes to discard.
        used: usize,
    },
    /// `used` bytes were the reply.
    Reply {
        /// Bytes to discard.
        used: usize,
        /// Next step.
        then: Then,
    },
    /// The reply answers something that was not asked: the connection must be closed.
    Unexpected,
    /// The bytes are not of the protocol: the connection must be closed.
    Broken,
}

/// Result of looking for a reply of the greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GreetingStep {
    /// Not complete yet.
    Need,
    /// `used` bytes were a reply; more are expected if `more`.
    Reply {
        /// Bytes to discard.
        used: usize,
        /// True if the greeting has further replies to come.
        more: bool,
    },
    /// The server refused the connection, with its words.
    Refused(Outcome, String),
}

/// A message that a server has delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// Time from the stamp in it to its receipt, nanoseconds; `None` without a stamp.
    pub delivery_ns: Option<u64>,
    /// True if it is the end of no wait: it came together with another one.
    pub unawaited: bool,
}

/// A network protocol without input or output: one instance per load thread.
pub trait Driver: Send {
    /// State of one operation in flight. Reused for operation after operation, so that it allocates only at first.
    type Exchange: Default + Send;

    /// The nodes known so far; the number of a node never changes. At least one.
    fn endpoints(&self) -> &[Endpoint];

    /// Nodes that every user should be connected to before the run begins.
    fn wanted(&self) -> Vec<u16> {
        (0..self.endpoints().len() as u16).collect()
    }

    /// Appends the greeting for a new connection to `node`; false if none is needed.
    fn hello(&mut self, node: u16, connection: u32, out: &mut Vec<u8>) -> bool;

    /// The same for a connection on which the node is checked and nothing else is done: it needs no login.
    fn hello_for_checks(&mut self, node: u16, connection: u32, out: &mut Vec<u8>) -> bool {
        self.hello(node, connection, out)
    }

    /// Looks for the greeting's reply number `reply` at the start of `input`; what is to be said next is appended to
    /// `out`. `connection` tells apart the conversations that a driver has at the same time.
    fn greeted(
        &mut self,
        node: u16,
        connection: u32,
        reply: u16,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> GreetingStep;

    /// Starts an exchange; returns how many commands (0 .. n) are to be sent at once, at least 1.
    fn begin(&mut self, exchange: &mut Self::Exchange, request: &Request) -> u32;

    /// Returns whether [`Driver::begin_batch`] is offered.
    fn batches(&self) -> bool {
        false
    }

    /// Starts an exchange for several inserts at once; returns how many commands are to be sent at once, at least 1.
    fn begin_batch(&mut self, _exchange: &mut Self::Exchange, _requests: &[Request]) -> u32 {
        unreachable!("this driver has no batches");
    }

    /// The outcome of request number `number` of a batch whose exchange has ended with `outcome`.
    fn batch_outcome(&self, _exchange: &Self::Exchange, _number: u32, outcome: Outcome) -> Outcome {
        outcome
    }

    /// The node that command number `command` must be sent to; [`NOWHERE`] if there is none, [`UNSENDABLE`] if it cannot
    /// be sent; then [`Driver::last_error`] says why.
    fn route(&mut self, exchange: &Self::Exchange, command: u32) -> u16;

    /// Appends command number `command`.
    fn encode(&mut self, exchange: &mut Self::Exchange, command: u32, out: &mut Vec<u8>);

    /// Appends what must precede a command after an ASK redirection; it is answered by one reply of its own.
    fn asking(&mut self, _out: &mut Vec<u8>) {}

    /// Looks for the reply to `command` at the start of `input`.
    fn decode(&mut self, exchange: &mut Self::Exchange, command: u32, input: &[u8]) -> Decoded;

    /// Looks for a reply that no operation waits for any more; [`Decoded::Reply`] with any `then` discards it.
    fn skip(&mut self, input: &[u8]) -> Decoded;

    /// Records the last exchange read or found (a scan's count; 1 for a read).
    fn records(&self, _exchange: &Self::Exchange) -> u32 {
        1
    }

    /// Elements that the last exchange asked for and found, and those that it did not find; none of a command that is not
    /// answered element by element.
    fn elements(&self, _exchange: &Self::Exchange) -> (u32, u32) {
        (0, 0)
    }

    /// Hands over the messages that came since it was last called: those with a stamp, and those that no operation waited for.
    fn take_messages(&mut self, _each: &mut dyn FnMut(ReceivedMessage)) {}

    /// The result of verifying the values read, where the content verifies.
    fn verified(&self, _exchange: &Self::Exchange) -> Option<Outcome> {
        None
    }

    /// A connection to `node` was lost or could not be made.
    fn lost(&mut self, _node: u16, _connection: u32, _step: ConnectionStep) {}

    /// An operation at `node` has had no reply in time: another node may serve its keys by now.
    fn timed_out(&mut self, _node: u16) {}

    /// The connection of command number `command` was lost before its reply came: whether it is to be sent once more, as soon as
    /// [`Driver::again`] names a node. `sent`: whether the node may have it.
    fn lost_command(&mut self, _exchange: &mut Self::Exchange, _command: u32, _sent: bool) -> bool {
        false
    }

    /// The node that a command which is to be sent once more goes to; `None` while there is none.
    fn again(&mut self, _exchange: &mut Self::Exchange) -> Option<u16> {
        None
    }

    /// Returns how long such a node is waited for, nanoseconds.
    fn patience_ns(&self) -> u64 {
        0
    }

    /// Returns whether the driver wants a [`crate::Verb::Topology`] exchange with any node; asked often, must be cheap.
    fn wants_topology(&self) -> bool {
        false
    }

    /// Returns how often every node is checked by such an exchange on a connection of its own, nanoseconds; `None` if nodes are
    /// not checked.
    fn heartbeat_ns(&self) -> Option<u64> {
        None
    }

    /// Returns whether `node` is checked: not one that has left the deployment.
    fn is_checked(&self, _node: u16) -> bool {
        true
    }

    /// Returns whether `node` is to be checked before its next heartbeat.
    fn is_checked_soon(&self, _node: u16) -> bool {
        false
    }

    /// Returns how long the check of `node` may stay unanswered, nanoseconds.
    fn check_timeout_ns(&self, _node: u16) -> u64 {
        u64::MAX
    }

    /// The check of `node` was answered after this time, nanoseconds.
    fn checked(&mut self, _node: u16, _round_trip_ns: u64) {}

    /// The check of `node` was not answered in time: all connections to it are closed.
    fn check_failed(&mut self, _node: u16) {}

    /// Starts such an exchange with `node` at `now_ns`; command 0 is sent to it.
    fn begin_topology(&mut self, exchange: &mut Self::Exchange, request: &Request, _node: u16, _now_ns: u64) {
        self.begin(exchange, request);
    }

    /// The server's words for the last failed exchange.
    fn last_error(&self) -> &str {
        ""
    }
}

/// Result of a blocking request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Outcome.
    pub outcome: Outcome,
    /// Records read or found.
    pub records: u32,
    /// Result of verifying what was read, where the content verifies.
    pub verified: Option<RecordVerification>,
}

/// The check of the values of a record that was read.
#[derive(Clone, Copy, Debug)]
pub struct RecordVerification {
    /// [`Outcome::Ok`] or [`Outcome::Mismatch`].
    pub outcome: Outcome,
    /// Time that decoding and checking took, nanoseconds.
    pub took_ns: u64,
}

/// Checks are equal if they have found the same, however long they took.
impl PartialEq for RecordVerification {
    fn eq(&self, other: &Self) -> bool {
        self.outcome == other.outcome
    }
}

impl Eq for RecordVerification {}

impl Executed {
    /// An execution that ended with `outcome` and touched `records` records.
    pub fn new(outcome: Outcome, records: u32) -> Self {
        Executed { outcome, records, verified: None }
    }
}

/// An embedded database: opened once, used by many sessions.
pub trait Store: Send + Sync {
    /// Name and version of the engine, for the report.
    fn engine(&self) -> String;

    /// The durability of a write as set, in words, for the report.
    fn durability(&self) -> String;

    /// Returns settings and statistics of the store's engine, by name.
    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// A session for one user.
    fn session(&self) -> Result<Box<dyn StoreSession>, Refused>;

    /// A session for one user whose requests are rendered by `content`: like the store's own, with what its workload
    /// remembers, and with its own look at what is read.
    fn session_of(&self, _content: Arc<dyn Content>) -> Result<Box<dyn StoreSession>, Refused> {
        self.session()
    }

    /// At most `count` of the documents that a collection holds. Where columns know neither dates nor truth values, these are
    /// whole numbers.
    fn sample(&self, _collection: &str, _count: u32) -> Result<Vec<Vec<u8>>, Refused> {
        Ok(Vec::new())
    }

    /// Counts the documents of a collection; it may be walked over to count them.
    fn documents(&self, _collection: &str) -> Result<u64, Refused> {
        Ok(0)
    }

    /// The document of a collection with the highest `_id`; with `between`, a document of `$gte` and `$lt`, of those `_id`s.
    fn highest(&self, _collection: &str, _between: Option<&[u8]>) -> Result<Option<Vec<u8>>, Refused> {
        Ok(None)
    }

    /// Removes the documents of a collection and its indexes. What the engine keeps of them on disk stays until it cleans up.
    fn drop_collection(&self, _collection: &str) -> Result<(), Refused> {
        Ok(())
    }

    /// Number of records stored, where it can be told cheaply.
    fn count(&self) -> Result<Option<u64>, Refused> {
        Ok(None)
    }
}

/// One user's handle on an embedded store.
pub trait StoreSession: Send {
    /// Executes the request and waits for its end.
    fn execute(&mut self, request: &Request) -> Executed;

    /// Executes several inserts as one transaction, where the engine can; the outcome holds for all of them.
    fn execute_batch(&mut self, requests: &[Request]) -> Executed {
        let mut last = Executed::new(Outcome::Ok, 0);
        for request in requests {
            let done = self.execute(request);
            if !done.outcome.is_ok() {
                return done;
            }
            last.records += done.records;
        }
        last
    }

    /// Words for the last failure.
    fn last_error(&self) -> &str {
        ""
    }
}
