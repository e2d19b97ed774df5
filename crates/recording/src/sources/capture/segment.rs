//! TCP segments in packets of several link layers.

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Link layers, as the files' formats count them.
mod link_layer {
    pub const NULL: u32 = 0;
    pub const ETHERNET: u32 = 1;
    /// Raw IP has had three numbers.
    pub const RAW: [u32; 3] = [12, 14, 101];
    pub const LOOP: u32 = 108;
    pub const LINUX_SLL: u32 = 113;
    pub const IPV4: u32 = 228;
    pub const IPV6: u32 = 229;
    pub const LINUX_SLL2: u32 = 276;
}

/// A segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub sequence: u32,
    /// The number that it acknowledges.
    pub acknowledges: Option<u32>,
    pub is_syn: bool,
    pub is_fin: bool,
    pub is_reset: bool,
    /// Its bytes, as far as they were kept.
    pub payload: &'a [u8],
    /// Bytes behind them that were not.
    pub missing: u32,
}

/// Result of a look at a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    Segment(Segment<'a>),
    /// Something else, or a part of a packet that cannot be read.
    Other,
    /// A part of a packet that IP has divided.
    Fragment,
    /// A link layer that is not known.
    UnknownLink,
}

/// Looks for a segment in a packet.
pub(super) fn find_segment(link: u32, bytes: &[u8]) -> Found<'_> {
    let sliced = match link {
        link_layer::ETHERNET => LaxSlicedPacket::from_ethernet(bytes).ok(),
        link_layer::LINUX_SLL => by_ether_type(bytes, 14, 16),
        link_layer::LINUX_SLL2 => by_ether_type(bytes, 0, 20),
        link_layer::NULL | link_layer::LOOP => {
            bytes.get(4..).and_then(|rest| LaxSlicedPacket::from_ip(rest).ok())
        }
        link_layer::IPV4 | link_layer::IPV6 => LaxSlicedPacket::from_ip(bytes).ok(),
        raw if link_layer::RAW.contains(&raw) => LaxSlicedPacket::from_ip(bytes).ok(),
        _ => return Found::UnknownLink,
    };
    let Some(sliced) = sliced else { return Found::Other };
    let (from, to, expected, is_fragment): (IpAddr, IpAddr, usize, bool) = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let expected = usize::from(header.total_len()).saturating_sub(header.slice().len());
            let (from, to) = (Ipv4Addr::from(header.source()), Ipv4Addr::from(header.destination()));
            (from.into(), to.into(), expected, ip.is_payload_fragmented())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            let expected = usize::from(header.payload_length()).saturating_sub(ip.extensions().slice().len());
            let (from, to) = (Ipv6Addr::from(header.source()), Ipv6Addr::from(header.destination()));
            (from.into(), to.into(), expected, ip.is_payload_fragmented())
        }
        _ => return Found::Other,
    };
    if is_fragment {
        return Found::Fragment;
    }
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { return Found::Other };
    let payload = tcp.payload();
    let missing = expected.saturating_sub(tcp.slice().len());
    Found::Segment(Segment {
        from: SocketAddr::new(from, tcp.source_port()),
        to: SocketAddr::new(to, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledges: tcp.ack().then(|| tcp.acknowledgment_number()),
        is_syn: tcp.syn(),
        is_fin: tcp.fin(),
        is_reset: tcp.rst(),
        payload,
        missing: missing as u32,
    })
}

/// Behind a head of `length` bytes, which has the number of what follows at `at`.
fn by_ether_type(bytes: &[u8], at: usize, length: usize) -> Option<LaxSlicedPacket<'_>> {
    let number = u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?);
    Some(LaxSlicedPacket::from_ether_type(EtherType(number), bytes.get(length..)?))
}
