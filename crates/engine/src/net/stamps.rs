//! The kernel's and the network card's times of arrival: `SO_TIMESTAMPING` (Documentation/networking/timestamping.rst).

use super::Stamp;
use super::hardware::{CardClock, NicClocks};
use super::wall_clock::{ClockReading, WallClock, ns};
use rustix::time::Timespec;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Source of the arrival times of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StampSource {
    /// Neither kernel nor card: there are no stamps.
    None,
    /// The kernel.
    Kernel,
    /// The card of this number, and the kernel where it does not.
    Card(usize),
}

/// When bytes arrived, nanoseconds; 0 where it was not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// By CLOCK_REALTIME.
    kernel_ns: u64,
    /// By the card's clock.
    card_ns: u64,
}

/// The clocks by which arrivals are stamped, and what is known of them: one for each load thread.
#[derive(Debug, Default)]
pub struct Clocks {
    wall: WallClock,
    cards: Vec<(IpAddr, Arc<CardClock>, WallClock)>,
}

impl Clocks {
    /// The wall clock, and the clocks of these cards.
    pub fn new(cards: &NicClocks) -> Self {
        let cards = cards.0.iter().map(|(own, clock)| (*own, clock.clone(), WallClock::default()));
        Clocks { wall: WallClock::default(), cards: cards.collect() }
    }

    /// The thread has woken up: clocks are to be read again before the next stamp is mapped.
    pub(super) fn woken(&mut self) {
        self.wall.note_wake();
        self.cards.iter_mut().for_each(|(_, _, known)| known.note_wake());
    }

    /// A time of arrival on the monotonic clock: the card's where it said it, else the kernel's.
    #[inline]
    pub(super) fn stamp(&mut self, source: StampSource, times: Times) -> Stamp {
        if let (StampSource::Card(card), 1..) = (source, times.card_ns) {
            let (_, clock, known) = &mut self.cards[card];
            if let Some(at_ns) = known.arrived_ns(times.card_ns, || clock.read()) {
                return Stamp::At { at_ns, by_card: true };
            }
        }
        let mapped = match times.kernel_ns {
            0 => None,
            stamp_ns => self.wall.arrived_ns(stamp_ns, ClockReading::read_now),
        };
        mapped.map_or(Stamp::Missing, |at_ns| Stamp::At { at_ns, by_card: false })
    }

    /// The card that has this address of the host.
    fn card_of(&self, fd: &OwnedFd) -> Option<usize> {
        let own =
            rustix::net::getsockname(fd).ok().and_then(|own| std::net::SocketAddr::try_from(own).ok())?;
        self.cards.iter().position(|(address, ..)| *address == own.ip())
    }
}

/// Asks for times of arrival of a TCP connection that has its address; there are none where the kernel does not offer them.
#[expect(unsafe_code, reason = "rustix has no SO_TIMESTAMPING")]
pub(super) fn ask_for_stamps(fd: &OwnedFd, clocks: &Clocks) -> StampSource {
    let card = clocks.card_of(fd);
    let kernel = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    let of_card = libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
    let flags: libc::c_uint = if card.is_some() { kernel | of_card } else { kernel };
    // SAFETY: the descriptor is open, and the pointer and length describe a live c_uint.
    let answer = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const flags).cast(),
            size_of::<libc::c_uint>() as libc::socklen_t,
        )
    };
    match (answer, card) {
        (0, Some(card)) => StampSource::Card(card),
        (0, None) => StampSource::Kernel,
        _ => StampSource::None,
    }
}

/// Receives, with the times at which the last of the bytes arrived.
#[expect(unsafe_code, reason = "rustix does not hand out SCM_TIMESTAMPING")]
pub(super) fn recv_with_times(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<(usize, Times)> {
    /// `struct scm_timestamping`: software, nothing, the card's own.
    type Stamped = [libc::timespec; 3];
    // Room for a header and three times.
    #[repr(align(8))]
    struct ControlBuffer([u8; 128]);
    let mut control = ControlBuffer([0; 128]);
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all-zero is a valid msghdr; the fields set below point to live buffers of the stated lengths. The kernel says
    // by the header's length that the times are there before they are read.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        let n = libc::recvmsg(fd.as_raw_fd(), &raw mut message, 0);
        let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        let holds_times = !head.is_null()
            && (*head).cmsg_level == libc::SOL_SOCKET
            && (*head).cmsg_type == libc::SCM_TIMESTAMPING
            && (*head).cmsg_len as usize >= libc::CMSG_LEN(size_of::<Stamped>() as _) as usize;
        if !holds_times {
            return Ok((n, Times::default()));
        }
        let [kernel, _, card]: Stamped = std::ptr::read_unaligned(libc::CMSG_DATA(head).cast());
        let of = |time: libc::timespec| ns(Timespec { tv_sec: time.tv_sec as _, tv_nsec: time.tv_nsec as _ });
        Ok((n, Times { kernel_ns: of(kernel), card_ns: of(card) }))
    }
}

#[cfg(test)]
#[path = "stamps_tests.rs"]
mod tests;
