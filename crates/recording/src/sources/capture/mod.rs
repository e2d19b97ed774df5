//! Captures of network traffic: pcap and pcapng files, as `tcpdump -w` and Wireshark write them.
//!
//! ```text
//! files -> packets, merged by time -> TCP segments -> connections -> each direction in order -> requests and replies, paired
//! ```
//!
//! What is missing in a capture is counted: after a gap a connection is read again only from a moment when it is idle.

mod connection;
mod packet_file;
mod port_survey;
mod segment;
mod tcp_stream;

pub use packet_file::is_capture;

use super::{NewRecording, SourceError};
use crate::exchange::{ExchangeSettings, ExchangeSink, PairedProtocol};
use crate::format::{OrderedEntries, RecordingError, RecordingHeader, RecordingPoint, RecordingTotals};
use crate::{Entry, RecordedReply};
use connection::Connection;
use packet_file::{Packet, PacketFile};
use port_survey::PortSurvey;
use segment::{Found, find_segment};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::net::SocketAddr;

/// Bytes of packets that are looked at before it is decided which ports are servers'.
const SURVEY_BYTES: usize = 16 << 20;

/// Connections after which those are forgotten that have been silent for long.
const CONNECTIONS: usize = 100_000;

/// Such a silence, nanoseconds.
const SILENCE_NS: u64 = 600_000_000_000;

/// Time within which a segment is seen again behind a translation of its address, nanoseconds.
const TRANSLATION_NS: u64 = 20_000_000;

/// Connections that have begun of late and are looked through for that.
const BEGINS: usize = 4_096;

/// Segments that look like commands before a port is taken for a server's where none was named at first.
const VOTES: u64 = 3;

/// Reasons for which something of a capture is not in the recording.
mod reason {
    pub const CUT: &str = "packets that were cut by the capture (tcpdump -s 0 keeps them whole)";
    pub const FRAGMENTS: &str = "packets that IP had divided";
    pub const BACKWARD: &str = "times that went back (taken as the time before)";
    pub const UNKNOWN_LINK: &str = "packets of an unknown link layer";
    pub const CUT_OFF: &str = "files that end within a packet";
    pub const TRANSLATED: &str =
        "connections that were seen twice, before and behind a translation of their address";
    pub const OTHER_PORTS: &str = "segments that look like commands, on other ports";
}

/// Settings of a capture.
#[derive(Clone, Debug, Default)]
pub struct CaptureOptions {
    /// Ports of servers; empty: found by what goes there.
    pub ports: Vec<u16>,
    /// Where the capture was made.
    pub point: Option<RecordingPoint>,
}

/// Records captures; several are merged by their times.
///
/// # Errors
/// One cannot be read, there are no commands in them, or the recording cannot be written.
pub fn record_capture<W: Write>(
    inputs: Vec<Box<dyn Read + Send + '_>>,
    new: &mut NewRecording<'_, W>,
    options: &CaptureOptions,
) -> Result<RecordingTotals, SourceError> {
    let mut packets = MergedPackets::open(inputs)?;
    let mut survey = PortSurvey::default();
    let mut early = Vec::new();
    let mut early_bytes = 0;
    let mut packet = Packet::default();
    let mut begins_ns = None;
    while early_bytes < SURVEY_BYTES && packets.next_packet(&mut packet)? {
        begins_ns.get_or_insert(packet.at_ns);
        if let Found::Segment(segment) = find_segment(packet.link, &packet.bytes) {
            survey.see_segment(&segment);
            let is_named = |port: u16| options.ports.contains(&port);
            if !options.ports.is_empty() && !is_named(segment.from.port()) && !is_named(segment.to.port()) {
                continue;
            }
        }
        early_bytes += packet.bytes.len() + 64;
        early.push(std::mem::take(&mut packet));
    }
    let begins_ns = begins_ns.unwrap_or(0);
    let chosen = match &options.ports[..] {
        [] => choose_ports(&survey)?,
        named => Some(choose_protocol(&survey, named)?),
    };
    let header = RecordingHeader {
        // Until it is known.
        protocol: PairedProtocol::Redis.recorded_protocol(),
        source: "capture".into(),
        point: options.point.unwrap_or(RecordingPoint::Unknown),
        begins_ns: Some(begins_ns),
        clock_step_ns: if packets.has_nanoseconds() { 1 } else { 1_000 },
        lacks: Vec::new(),
        value_limit: 0,
    };
    let sink = CaptureSink { new, header, ordered: None, left_out: BTreeMap::new() };
    let mut capture = CaptureRecorder::new(sink, begins_ns);
    if let Some((ports, protocol)) = chosen {
        capture.begin_recording(ports, protocol);
    }
    for packet in early {
        capture.take_packet(&packet)?;
    }
    while packets.next_packet(&mut packet)? {
        if capture.ports.is_empty()
            && let Found::Segment(segment) = find_segment(packet.link, &packet.bytes)
        {
            survey.see_segment(&segment);
            if survey.command_ports().first().is_some_and(|(_, votes, _)| *votes >= VOTES)
                && let Some((ports, protocol)) = choose_ports(&survey)?
            {
                capture.begin_recording(ports, protocol);
            }
        }
        capture.take_packet(&packet)?;
    }
    let ports = std::mem::take(&mut capture.ports);
    let others = survey.command_ports().into_iter().filter(|(port, ..)| !ports.contains(port));
    let others = others.map(|(_, n, _)| n).sum();
    capture.sink.leave_out(reason::OTHER_PORTS, others);
    capture.sink.leave_out(reason::CUT_OFF, packets.cut_off());
    let cut = capture.cut;
    match capture.finish()? {
        Some(totals) if totals.commands > 0 => Ok(totals),
        _ => Err(explain_nothing(&survey, &ports, cut)),
    }
}

/// The port that carries commands by what the survey has seen, and their protocol; `None` if none does.
fn choose_ports(survey: &PortSurvey) -> Result<Option<(Vec<u16>, PairedProtocol)>, SourceError> {
    let mut found = survey.command_ports();
    let most = found.first().map_or(0, |(_, votes, _)| *votes);
    // Something that looks like a command now and then is none.
    found.retain(|(_, votes, _)| votes * 20 >= most);
    let Some((port, _, protocol)) = found.first().copied() else { return Ok(None) };
    if found.len() == 1 {
        return Ok(Some((vec![port], protocol)));
    }
    let is_one = found.iter().all(|(_, _, other)| *other == protocol);
    let of_port = |(port, _, protocol): &(u16, u64, PairedProtocol)| match is_one {
        true => port.to_string(),
        false => format!("{port} ({})", protocol.display_name()),
    };
    let names: Vec<String> = found.iter().map(of_port).collect();
    let of = if is_one { format!(" of {}", protocol.display_name()) } else { String::new() };
    let several =
        if is_one { "or name several to record them together" } else { "or several of one protocol" };
    Err(SourceError::Unreadable(format!(
        "ports {} carry commands{of}: choose one with --port, {several}",
        names.join(", ")
    )))
}

/// The protocol of ports that were named.
fn choose_protocol(survey: &PortSurvey, ports: &[u16]) -> Result<(Vec<u16>, PairedProtocol), SourceError> {
    let mut found = PairedProtocol::ALL.map(|protocol| (survey.votes_of(protocol, ports), protocol));
    // The first of those with as many: commands of Redis that are lines are seen only where they are read.
    found.sort_by_key(|(votes, _)| std::cmp::Reverse(*votes));
    let [(most, protocol), (second, other), _] = found;
    if second * 20 >= most.max(VOTES) {
        let (one, other) = (protocol.display_name(), other.display_name());
        return Err(SourceError::Unreadable(format!(
            "the ports of --port carry commands of {one} and of {other}: name those of one protocol"
        )));
    }
    Ok((ports.to_vec(), protocol))
}

/// Words for a capture without commands.
fn explain_nothing(survey: &PortSurvey, ports: &[u16], cut: u64) -> SourceError {
    let tls: Vec<u16> = match ports {
        [] => survey.tls_ports(),
        named => named.iter().copied().filter(|port| survey.is_tls(*port)).collect(),
    };
    if let (Some(port), true) = (tls.first(), survey.command_ports().is_empty() || !ports.is_empty()) {
        return SourceError::Unreadable(format!(
            "port {port} carries TLS: only client and server can read it. Record it through dyno's proxy, which speaks TLS \
             on both sides: dyno record --listen HOST:PORT --to rediss://... (or mongodb://...?tls=true)"
        ));
    }
    let named: Vec<String> = ports.iter().map(u16::to_string).collect();
    let what = if named.is_empty() {
        "no commands of Redis, memcached or MongoDB are in it".to_owned()
    } else {
        format!(
            "port {} carries no commands of Redis, memcached or MongoDB that can be read",
            named.join(", ")
        )
    };
    let cut = if cut > 0 { format!("; {cut} {}", reason::CUT) } else { String::new() };
    SourceError::Unreadable(format!("{what}; {}{cut}", survey.describe()))
}

/// Packets of several files in the order of their times.
struct MergedPackets<'a> {
    files: Vec<(PacketFile<'a>, Packet, bool)>,
}

impl<'a> MergedPackets<'a> {
    fn open(inputs: Vec<Box<dyn Read + Send + 'a>>) -> Result<Self, SourceError> {
        let mut files = Vec::new();
        for input in inputs {
            let (mut file, mut first) = (PacketFile::open(input)?, Packet::default());
            let is_there = file.next_packet(&mut first)?;
            files.push((file, first, is_there));
        }
        Ok(MergedPackets { files })
    }

    fn next_packet(&mut self, into: &mut Packet) -> Result<bool, SourceError> {
        let waiting = self.files.iter_mut().filter(|(_, _, is_there)| *is_there);
        let Some((file, packet, is_there)) = waiting.min_by_key(|(_, packet, _)| packet.at_ns) else {
            return Ok(false);
        };
        std::mem::swap(packet, into);
        *is_there = file.next_packet(packet)?;
        Ok(true)
    }

    fn has_nanoseconds(&self) -> bool {
        !self.files.is_empty() && self.files.iter().all(|(file, _, _)| file.has_nanoseconds())
    }

    fn cut_off(&self) -> u64 {
        self.files.iter().filter(|(file, _, _)| file.was_cut_off()).count() as u64
    }
}

/// A recording that begins with the first command.
struct CaptureSink<'a, 'b, W: Write> {
    new: &'a mut NewRecording<'b, W>,
    header: RecordingHeader,
    ordered: Option<OrderedEntries<W>>,
    left_out: BTreeMap<String, u64>,
}

impl<W: Write> ExchangeSink for CaptureSink<'_, '_, W> {
    fn take_entry(&mut self) -> Entry {
        self.ordered.as_mut().map(OrderedEntries::take_spare).unwrap_or_default()
    }

    fn push_command(&mut self, entry: Entry, awaits: bool) -> Result<u64, RecordingError> {
        let ordered = match &mut self.ordered {
            Some(ordered) => ordered,
            None => self.ordered.insert(OrderedEntries::new(self.new.begin(&self.header)?)),
        };
        ordered.push_command(entry, awaits)
    }

    fn push_reply(&mut self, ticket: u64, reply: RecordedReply) -> Result<(), RecordingError> {
        self.ordered.as_mut().map_or(Ok(()), |ordered| ordered.push_reply(ticket, reply))
    }

    fn give_up(&mut self, ticket: u64) {
        if let Some(ordered) = &mut self.ordered {
            ordered.give_up(ticket);
        }
    }

    fn leave_out(&mut self, reason: &str, count: u64) {
        if count > 0 {
            *self.left_out.entry(reason.to_owned()).or_default() += count;
        }
    }
}

/// Client and server.
type ConnectionKey = (SocketAddr, SocketAddr);

/// The connections of a capture.
struct CaptureRecorder<'a, 'b, W: Write> {
    sink: CaptureSink<'a, 'b, W>,
    /// Ports of servers; none until they are known.
    ports: Vec<u16>,
    exchanges: ExchangeSettings,
    connections: HashMap<ConnectionKey, Connection>,
    /// Connections that have begun of late: port and number of the client, addresses, and when.
    begun: HashMap<(u16, u32), (ConnectionKey, u64)>,
    /// Connections that are known by other addresses, and their clients' first numbers.
    twins: HashMap<ConnectionKey, u32>,
    translated: u64,
    next_number: u32,
    begins_ns: u64,
    last_ns: u64,
    cut: u64,
    fragments: u64,
    backward: u64,
    unknown_link: u64,
}

impl<'a, 'b, W: Write> CaptureRecorder<'a, 'b, W> {
    fn new(sink: CaptureSink<'a, 'b, W>, begins_ns: u64) -> Self {
        CaptureRecorder {
            sink,
            ports: Vec::new(),
            exchanges: ExchangeSettings::new(PairedProtocol::Redis, 0),
            connections: HashMap::new(),
            begun: HashMap::new(),
            twins: HashMap::new(),
            translated: 0,
            next_number: 0,
            begins_ns,
            last_ns: begins_ns,
            cut: 0,
            fragments: 0,
            backward: 0,
            unknown_link: 0,
        }
    }

    /// It is known what is to be recorded.
    fn begin_recording(&mut self, ports: Vec<u16>, protocol: PairedProtocol) {
        let recorded = protocol.recorded_protocol();
        let limit = self.sink.new.value_limit(recorded);
        (self.sink.header.protocol, self.sink.header.value_limit) = (recorded, limit as u64);
        (self.ports, self.exchanges) = (ports, ExchangeSettings::new(protocol, limit));
    }

    fn take_packet(&mut self, packet: &Packet) -> Result<(), SourceError> {
        let segment = match find_segment(packet.link, &packet.bytes) {
            Found::Segment(segment) => segment,
            Found::Other => return Ok(()),
            Found::Fragment => {
                self.fragments += 1;
                return Ok(());
            }
            Found::UnknownLink => {
                self.unknown_link += 1;
                return Ok(());
            }
        };
        let is_request = self.ports.contains(&segment.to.port());
        if !is_request && !self.ports.contains(&segment.from.port()) {
            return Ok(());
        }
        self.backward += u64::from(packet.at_ns < self.last_ns);
        self.last_ns = self.last_ns.max(packet.at_ns);
        self.cut += u64::from(segment.missing > 0);
        let at_ns = self.last_ns - self.begins_ns;
        let key = if is_request { (segment.from, segment.to) } else { (segment.to, segment.from) };
        let is_new_begin = segment.is_syn && segment.acknowledges.is_none();
        if is_new_begin {
            self.note_begin(key, segment.sequence, at_ns);
        }
        if !self.twins.is_empty() && self.twins.contains_key(&key) {
            return Ok(());
        }
        if is_new_begin && self.connections.get(&key).is_some_and(|known| known.is_other(&segment)) {
            self.end_connection(&key)?;
        }
        let connection = match self.connections.get_mut(&key) {
            Some(connection) => connection,
            // What only acknowledges, or ends, begins nothing.
            None if !segment.is_syn && segment.payload.is_empty() => return Ok(()),
            None => {
                let number = self.next_number;
                self.next_number += 1;
                let connection = Connection::new(number, &self.exchanges, &segment, is_request);
                self.connections.entry(key).or_insert(connection)
            }
        };
        if connection.take_segment(at_ns, &segment, is_request, &mut self.sink)? {
            self.end_connection(&key)?;
        }
        if self.connections.len() > CONNECTIONS {
            self.forget_silent(at_ns)?;
        }
        Ok(())
    }

    /// A client's SYN: one with the port and the number of another that has just begun is the same, with another address.
    fn note_begin(&mut self, key: ConnectionKey, sequence: u32, at_ns: u64) {
        let same = (key.0.port(), sequence);
        match self.begun.get(&same) {
            Some((other, since)) if at_ns - since <= TRANSLATION_NS => {
                if *other != key && self.twins.insert(key, sequence) != Some(sequence) {
                    self.translated += 1;
                }
            }
            _ => {
                self.twins.remove(&key);
                if self.begun.len() >= BEGINS {
                    self.begun.retain(|_, (_, since)| at_ns - *since <= TRANSLATION_NS);
                }
                if self.begun.len() < BEGINS {
                    self.begun.insert(same, (key, at_ns));
                }
            }
        }
    }

    fn end_connection(&mut self, key: &ConnectionKey) -> Result<(), SourceError> {
        if let Some(mut connection) = self.connections.remove(key) {
            connection.finish(&mut self.sink)?;
        }
        Ok(())
    }

    /// Ends connections that were silent for long; all of them are as good as silent where that is not enough.
    fn forget_silent(&mut self, now_ns: u64) -> Result<(), SourceError> {
        for silence_ns in [SILENCE_NS, SILENCE_NS / 60, 0] {
            let silent = |connection: &Connection| now_ns.saturating_sub(connection.seen_ns) >= silence_ns;
            let found: Vec<_> =
                self.connections.iter().filter(|(_, one)| silent(one)).map(|(key, _)| *key).collect();
            for key in found {
                self.end_connection(&key)?;
            }
            if self.connections.len() <= CONNECTIONS / 2 {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The totals; `None` if there was no command.
    fn finish(mut self) -> Result<Option<RecordingTotals>, SourceError> {
        let keys: Vec<_> = self.connections.keys().copied().collect();
        for key in keys {
            self.end_connection(&key)?;
        }
        for (name, count) in [
            (reason::CUT, self.cut),
            (reason::FRAGMENTS, self.fragments),
            (reason::BACKWARD, self.backward),
            (reason::UNKNOWN_LINK, self.unknown_link),
            (reason::TRANSLATED, self.translated),
        ] {
            self.sink.leave_out(name, count);
        }
        let Some(ordered) = self.sink.ordered else { return Ok(None) };
        let mut writer = ordered.into_writer()?;
        self.sink.left_out.iter().for_each(|(name, count)| writer.leave_out(name, *count));
        Ok(Some(writer.finish()?))
    }
}

#[cfg(test)]
mod tests;
