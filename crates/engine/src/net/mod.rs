//! Sockets and time, behind a trait so that the same load thread runs on the kernel and on a virtual clock.

mod epoll;
mod hardware;
mod monotonic;
mod patience;
mod socket;
mod stamps;
mod tls;
mod virtual_net;
mod wall_clock;

pub use epoll::Epoll;
pub use hardware::NicClocks;
pub use monotonic::monotonic_ns;
pub use patience::Patience;
pub use socket::Socket;
pub use tls::{TlsConfig, tls_config};
pub use virtual_net::{EchoNet, VirtualNet};

use dyno_types::Endpoint;
use std::io;

/// A socket that has something for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The number given at connecting.
    pub token: u32,
    /// Data, end of stream or an error can be received.
    pub read: bool,
    /// Sending may go on; a connection under way has been decided.
    pub write: bool,
    /// The other side has closed or the socket has failed: everything is to be received, for nothing more will be told.
    pub last: bool,
}

/// Result of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Nothing more for now.
    Empty,
    /// The other side has closed.
    Closed,
    /// Bytes were put at the start of the buffer.
    Bytes {
        /// Number of bytes.
        n: usize,
        /// True if there may be more at once.
        more: bool,
        /// When the last of them arrived.
        stamp: Stamp,
    },
}

/// When bytes arrived, by the kernel or by the network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// The socket is not asked for it.
    Unasked,
    /// The kernel has not said it, or its clock was just set.
    Missing,
    /// Then, monotonic nanoseconds.
    At {
        /// When.
        at_ns: u64,
        /// True if the network card says so.
        by_card: bool,
    },
}

/// The network and the clock of one load thread.
pub trait Net {
    /// A connection.
    type Socket;

    /// True for virtual time: only this thread advances the clock, so waiting for other threads costs none.
    const VIRTUAL: bool = false;

    /// Nanoseconds on a clock that never goes back.
    fn now(&mut self) -> u64;

    /// Begins to connect; `token` will name the socket in [`Ready`].
    fn connect(&mut self, to: &Endpoint, token: u32, stamped: bool) -> io::Result<Self::Socket>;

    /// Called when a connection under way becomes writable or readable: true once bytes can be exchanged.
    fn established(&mut self, socket: &mut Self::Socket, token: u32) -> io::Result<bool>;

    /// Sends what can be sent without waiting; the number of bytes taken, 0 if none.
    fn send(&mut self, socket: &mut Self::Socket, bytes: &[u8]) -> io::Result<usize>;

    /// Returns whether bytes that were taken are still to be handed to the network (TLS records): sending, even of nothing,
    /// goes on with them.
    fn has_unsent(&self, _socket: &Self::Socket) -> bool {
        false
    }

    /// Receives what is there.
    fn recv(&mut self, socket: &mut Self::Socket, into: &mut [u8]) -> io::Result<Received>;

    /// Asks to be told (or no longer) when sending can go on.
    fn watch_write(&mut self, socket: &mut Self::Socket, token: u32, on: bool) -> io::Result<()>;

    /// Closes a connection.
    fn close(&mut self, socket: Self::Socket);

    /// The thread begins to receive what has arrived since it last did.
    fn woken(&mut self) {}

    /// Waits for readiness from `now_ns` (a fresh reading of the clock) on, at the latest until `until_ns`; appends to
    /// `ready`.
    fn wait(&mut self, now_ns: u64, until_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()>;
}
