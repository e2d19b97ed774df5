//! A connection of a capture: two directions, put in order and paired.

use super::segment::Segment;
use super::tcp_stream::{Piece, TcpStream};
use crate::exchange::{Exchange, ExchangeSettings, ExchangeSink};
use crate::format::RecordingError;
use std::collections::VecDeque;

/// Time that what is missing is waited for, nanoseconds of the capture: packets of both directions may be written in another
/// order than they passed.
const PATIENCE_NS: u64 = 50_000_000;

/// Bytes of the server's that wait for what they answer, at most.
const HELD_BYTES: usize = 1 << 20;

/// A segment of the server's that answers what was not seen yet.
struct HeldSegment {
    sequence: u32,
    acknowledges: u32,
    missing: u32,
    bytes: Vec<u8>,
}

/// A connection.
pub(super) struct Connection {
    exchange: Exchange,
    client: TcpStream,
    server: TcpStream,
    held: VecDeque<HeldSegment>,
    held_bytes: usize,
    /// Since when bytes of the client's, and of the server's, are missing.
    holes_since: [Option<u64>; 2],
    /// The number of the client's SYN; one before its first number that was seen, where that SYN was not.
    begun_at: Option<u32>,
    /// When its last segment was seen.
    pub seen_ns: u64,
}

impl Connection {
    /// A connection whose first segment is this one; `is_request`: the client's.
    pub fn new(number: u32, exchanges: &ExchangeSettings, segment: &Segment<'_>, is_request: bool) -> Self {
        let is_begin = segment.is_syn;
        let (mut client, mut server) = (TcpStream::default(), TcpStream::default());
        let first = segment.sequence.wrapping_add(u32::from(segment.is_syn));
        if is_request {
            client.begin_at(first);
        } else {
            server.begin_at(first);
        }
        // What it has got of the other side says where that one goes on.
        match segment.acknowledges {
            Some(number) if is_request => server.begin_at(number),
            Some(number) => client.begin_at(number),
            None => {}
        }
        let begun_at = match is_request {
            true => Some(first),
            false => segment.acknowledges,
        };
        Connection {
            exchange: exchanges.open_exchange(number, is_begin),
            client,
            server,
            held: VecDeque::new(),
            held_bytes: 0,
            holes_since: [None; 2],
            begun_at: begun_at.map(|number| number.wrapping_sub(1)),
            seen_ns: 0,
        }
    }

    /// Returns whether a client's SYN begins another connection from the same port.
    pub fn is_other(&self, syn: &Segment<'_>) -> bool {
        // Where its begin was not seen, a number before what has come may be any other connection's.
        self.begun_at != Some(syn.sequence)
    }

    /// Takes a segment; true if the connection has ended.
    pub fn take_segment(
        &mut self,
        at_ns: u64,
        segment: &Segment<'_>,
        is_request: bool,
        sink: &mut impl ExchangeSink,
    ) -> Result<bool, RecordingError> {
        self.seen_ns = at_ns;
        if segment.is_syn {
            let stream = if is_request { &mut self.client } else { &mut self.server };
            if !stream.has_begun() {
                stream.begin_at(segment.sequence.wrapping_add(1));
            }
            return Ok(false);
        }
        let length = segment.payload.len() as u32 + segment.missing;
        if segment.is_fin {
            let stream = if is_request { &mut self.client } else { &mut self.server };
            stream.note_end(segment.sequence.wrapping_add(length));
        }
        if is_request {
            if length > 0 {
                self.take_request(at_ns, segment.sequence, segment.payload, segment.missing, sink)?;
            }
            if length > 0 || segment.is_fin {
                self.release_held(at_ns, false, sink)?;
            }
        } else if length > 0 {
            let unseen = segment.acknowledges.filter(|number| !self.client.has_reached(*number));
            match unseen {
                Some(acknowledges) => self.hold(segment, acknowledges),
                None if !self.held.is_empty() => {
                    let acknowledges = segment.acknowledges.unwrap_or_default();
                    self.hold(segment, acknowledges);
                }
                None => {
                    self.take_reply(at_ns, segment.sequence, segment.payload, segment.missing, sink)?;
                }
            }
        }
        self.give_up_holes(at_ns, segment, is_request, sink)?;
        if segment.is_reset {
            return Ok(true);
        }
        Ok(self.client.has_ended() && self.server.has_ended() && self.held.is_empty())
    }

    fn take_request(
        &mut self,
        at_ns: u64,
        number: u32,
        bytes: &[u8],
        missing: u32,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        let exchange = &mut self.exchange;
        self.client.push_segment(number, bytes, missing, &mut |piece: Piece<'_>| match piece {
            Piece::Bytes(bytes) => exchange.feed_request(at_ns, bytes, sink),
            Piece::Gap => {
                exchange.note_gap(sink);
                Ok(())
            }
        })
    }

    fn take_reply(
        &mut self,
        at_ns: u64,
        number: u32,
        bytes: &[u8],
        missing: u32,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        let exchange = &mut self.exchange;
        self.server.push_segment(number, bytes, missing, &mut |piece: Piece<'_>| match piece {
            Piece::Bytes(bytes) => exchange.feed_reply(at_ns, bytes, sink),
            Piece::Gap => {
                exchange.note_gap(sink);
                Ok(())
            }
        })
    }

    fn hold(&mut self, segment: &Segment<'_>, acknowledges: u32) {
        self.held_bytes += segment.payload.len() + 64;
        self.held.push_back(HeldSegment {
            sequence: segment.sequence,
            acknowledges,
            missing: segment.missing,
            bytes: segment.payload.to_vec(),
        });
    }

    /// Takes the server's segments that have waited, as far as what they answer was seen; all of them if it is given up.
    fn release_held(
        &mut self,
        now_ns: u64,
        all: bool,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        while let Some(first) = self.held.front() {
            let acknowledges = first.acknowledges;
            if !self.client.has_reached(acknowledges) {
                if !all {
                    return Ok(());
                }
                let exchange = &mut self.exchange;
                self.client.skip_to(acknowledges, &mut |piece: Piece<'_>| match piece {
                    Piece::Bytes(bytes) => exchange.feed_request(now_ns, bytes, sink),
                    Piece::Gap => {
                        exchange.note_gap(sink);
                        Ok(())
                    }
                })?;
            }
            if let Some(held) = self.held.pop_front() {
                self.held_bytes -= held.bytes.len() + 64;
                // Times do not go back.
                self.take_reply(now_ns, held.sequence, &held.bytes, held.missing, sink)?;
            }
        }
        Ok(())
    }

    /// Gives up bytes that the other side has got and the capture has not, once they have been waited for.
    fn give_up_holes(
        &mut self,
        at_ns: u64,
        segment: &Segment<'_>,
        is_request: bool,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        // What the sender of this segment has got is what the other one has sent.
        let side = usize::from(is_request);
        let stream = if is_request { &self.server } else { &self.client };
        let lost = segment.acknowledges.filter(|number| !stream.has_reached(*number));
        match (lost, self.holes_since[side]) {
            (None, _) => {
                self.holes_since[side] = None;
                return Ok(());
            }
            (Some(_), None) => {
                self.holes_since[side] = Some(at_ns);
                if self.held_bytes <= HELD_BYTES {
                    return Ok(());
                }
            }
            (Some(_), Some(since)) => {
                if at_ns.saturating_sub(since) < PATIENCE_NS && self.held_bytes <= HELD_BYTES {
                    return Ok(());
                }
            }
        }
        self.holes_since[side] = None;
        let number = lost.unwrap_or_default();
        let exchange = &mut self.exchange;
        if is_request {
            self.server.skip_to(number, &mut |piece: Piece<'_>| match piece {
                Piece::Bytes(bytes) => exchange.feed_reply(at_ns, bytes, sink),
                Piece::Gap => {
                    exchange.note_gap(sink);
                    Ok(())
                }
            })
        } else {
            self.release_held(at_ns, true, sink)?;
            let exchange = &mut self.exchange;
            self.client.skip_to(number, &mut |piece: Piece<'_>| match piece {
                Piece::Bytes(bytes) => exchange.feed_request(at_ns, bytes, sink),
                Piece::Gap => {
                    exchange.note_gap(sink);
                    Ok(())
                }
            })
        }
    }

    /// The connection, or the capture, has ended.
    pub fn finish(&mut self, sink: &mut impl ExchangeSink) -> Result<(), RecordingError> {
        self.release_held(self.seen_ns, true, sink)?;
        self.exchange.finish(sink)
    }
}
