//! Packets of a pcap or pcapng file, as tcpdump and Wireshark write them.

use super::super::SourceError;
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use std::io::{ErrorKind, Read};

/// Bytes read at once.
const READ_BYTES: usize = 1 << 20;

/// Longest packet with its head that is believed, bytes: tcpdump takes 256 KiB of one at most.
const PACKET_BYTES: usize = 16 << 20;

/// A packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Packet {
    /// When it was seen, nanoseconds since 1970.
    pub at_ns: u64,
    /// Number of its link layer, as the files' format counts them.
    pub link: u32,
    /// What was kept of it.
    pub bytes: Vec<u8>,
}

/// Returns whether a file that begins with these bytes is a capture.
pub fn is_capture(first: &[u8]) -> bool {
    let heads: [&[u8]; 6] = [
        b"\xd4\xc3\xb2\xa1",
        b"\xa1\xb2\xc3\xd4",
        b"\x4d\x3c\xb2\xa1",
        b"\xa1\xb2\x3c\x4d",
        b"\x34\xcd\xb2\xa1",
        b"\x0a\x0d\x0d\x0a",
    ];
    heads.iter().any(|head| first.starts_with(head))
}

/// Reads until the buffer is full or the end has come: the reader of packets takes its first bytes for a whole head.
struct FullReads<R>(R);

impl<R: Read> Read for FullReads<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            match self.0.read(&mut into[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if filled == 0 => return Err(error),
                // It comes again.
                Err(_) => break,
            }
        }
        Ok(filled)
    }
}

/// Clock of an interface of a pcapng file: units a second, and seconds to add.
#[derive(Clone, Copy)]
struct InterfaceClock {
    link: u32,
    units_per_s: u64,
    offset_s: i64,
}

/// A file of packets.
pub(super) struct PacketFile<'a> {
    reader: Box<dyn PcapReaderIterator + Send + 'a>,
    /// Of a pcap file: its link layer, and whether its times are in nanoseconds.
    legacy: (u32, bool),
    interfaces: Vec<InterfaceClock>,
    buffer_bytes: usize,
    cut_off: bool,
}

fn unreadable(what: &str) -> SourceError {
    SourceError::Unreadable(format!("it is a damaged capture: {what}"))
}

impl<'a> PacketFile<'a> {
    /// Begins to read.
    ///
    /// # Errors
    /// It is no capture.
    pub fn open(input: impl Read + Send + 'a) -> Result<Self, SourceError> {
        let reader = create_reader(READ_BYTES, FullReads(input)).map_err(|error| match error {
            PcapError::ReadError => SourceError::Io(std::io::Error::other("it cannot be read")),
            PcapError::HeaderNotRecognized => {
                SourceError::Unreadable("it is no capture: pcap and pcapng files are".into())
            }
            _ => unreadable("its head is cut off"),
        })?;
        Ok(PacketFile {
            reader,
            legacy: (0, false),
            interfaces: Vec::new(),
            buffer_bytes: READ_BYTES,
            cut_off: false,
        })
    }

    /// Returns whether the file ended within a packet.
    pub fn was_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Returns whether its clock has steps of a nanosecond, as far as it was read.
    pub fn has_nanoseconds(&self) -> bool {
        self.legacy.1 || self.interfaces.iter().any(|one| one.units_per_s >= 1_000_000_000)
    }

    /// Reads the next packet; false at the end.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn next_packet(&mut self, packet: &mut Packet) -> Result<bool, SourceError> {
        loop {
            let (used, is_packet) = match self.reader.next() {
                Ok((used, block)) => {
                    let is_packet = take_block(block, &mut self.legacy, &mut self.interfaces, packet)?;
                    (used, is_packet)
                }
                Err(PcapError::Eof) => return Ok(false),
                Err(PcapError::Incomplete(_) | PcapError::UnexpectedEof) => {
                    if self.reader.reader_exhausted() {
                        // Its last packet was not written whole.
                        self.cut_off = true;
                        return Ok(false);
                    }
                    match self.reader.refill() {
                        Ok(()) => continue,
                        Err(PcapError::BufferTooSmall) if self.buffer_bytes < 2 * PACKET_BYTES => {
                            self.buffer_bytes *= 2;
                            self.reader.grow(self.buffer_bytes);
                            continue;
                        }
                        Err(PcapError::ReadError) => {
                            return Err(SourceError::Io(std::io::Error::other("it cannot be read on")));
                        }
                        Err(_) => return Err(unreadable("a packet is longer than any can be")),
                    }
                }
                Err(PcapError::BufferTooSmall) if self.buffer_bytes < 2 * PACKET_BYTES => {
                    self.buffer_bytes *= 2;
                    self.reader.grow(self.buffer_bytes);
                    continue;
                }
                Err(PcapError::ReadError) => {
                    return Err(SourceError::Io(std::io::Error::other("it cannot be read on")));
                }
                Err(_) => return Err(unreadable("something that is no packet")),
            };
            self.reader.consume(used);
            if is_packet {
                return Ok(true);
            }
        }
    }
}

/// Takes what a block says; true if it was a packet.
fn take_block(
    block: PcapBlockOwned<'_>,
    legacy: &mut (u32, bool),
    interfaces: &mut Vec<InterfaceClock>,
    packet: &mut Packet,
) -> Result<bool, SourceError> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            // The upper bits tell of a checksum behind each frame.
            *legacy = (header.network.0 as u32 & 0xffff, header.is_nanosecond_precision());
            return Ok(false);
        }
        PcapBlockOwned::Legacy(found) => {
            let step = if legacy.1 { 1 } else { 1_000 };
            packet.at_ns = u64::from(found.ts_sec) * 1_000_000_000 + u64::from(found.ts_usec) * step;
            packet.link = legacy.0;
            packet.bytes.clear();
            let kept = found.data.len().min(found.caplen as usize);
            packet.bytes.extend_from_slice(&found.data[..kept]);
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            return Ok(false);
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(found)) => {
            let units_per_s = found.ts_resolution().filter(|units| *units > 0);
            interfaces.push(InterfaceClock {
                link: found.linktype.0 as u32 & 0xffff,
                units_per_s: units_per_s.ok_or_else(|| unreadable("a clock without a step"))?,
                offset_s: found.if_tsoffset,
            });
            return Ok(false);
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(found)) => {
            let clock = interfaces.get(found.if_id as usize);
            let clock =
                clock.ok_or_else(|| unreadable("a packet of an interface that it does not describe"))?;
            let units = u64::from(found.ts_high) << 32 | u64::from(found.ts_low);
            let whole = units / clock.units_per_s;
            let part = u128::from(units % clock.units_per_s) * 1_000_000_000 / u128::from(clock.units_per_s);
            packet.at_ns = whole
                .saturating_add_signed(clock.offset_s)
                .saturating_mul(1_000_000_000)
                .saturating_add(part as u64);
            packet.link = clock.link;
            packet.bytes.clear();
            packet.bytes.extend_from_slice(found.packet_data());
        }
        // Simple packets have no time; the rest are no packets.
        PcapBlockOwned::NG(_) => return Ok(false),
    }
    Ok(true)
}
