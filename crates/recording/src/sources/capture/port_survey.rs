//! Ports of a capture, and what they carry, as far as first bytes tell.

use super::segment::Segment;
use crate::exchange::PairedProtocol;
use crate::exchange::mongodb::is_request_head;
use crate::exchange::redis::is_command_head;
use dyno_db_memcached::protocol::traffic;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Ports that a message names.
const NAMED: usize = 6;

/// Something that goes to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PortContent {
    Paired(PairedProtocol),
    Tls,
    Http,
    /// What memcached answers.
    MemcachedReply,
    /// What is not read.
    MemcachedBinary,
    Other,
}

impl PortContent {
    fn content_name(self) -> &'static str {
        match self {
            PortContent::Paired(protocol) => protocol.display_name(),
            PortContent::Tls => "TLS",
            PortContent::Http => "HTTP",
            PortContent::MemcachedReply => "memcached",
            PortContent::MemcachedBinary => "memcached's binary protocol",
            PortContent::Other => "something else",
        }
    }
}

/// Counts of segments by what they look like.
#[derive(Default)]
pub(super) struct PortSurvey {
    /// Segments that look like commands, by what they are of and the ports they came from and went to.
    commands: HashMap<(PairedProtocol, u16, u16), u64>,
    /// Ports that have accepted connections.
    listening: HashSet<u16>,
    /// Segments with bytes, by the port that is the server's if any is.
    contents: BTreeMap<(u16, PortContent), u64>,
}

/// Returns whether bytes are the begin of TLS' first message.
fn is_client_hello(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16, 3, 0..=4, _, _, 1, ..])
}

/// What a segment's first bytes look like.
fn content_of(bytes: &[u8]) -> PortContent {
    let begins = |heads: &[&[u8]]| heads.iter().any(|head| bytes.starts_with(head));
    match bytes {
        _ if is_command_head(bytes) => PortContent::Paired(PairedProtocol::Redis),
        _ if is_client_hello(bytes) => PortContent::Tls,
        [0x14..=0x17, 3, 0..=4, ..] => PortContent::Tls,
        _ if begins(&[b"GET /", b"POST /", b"PUT /", b"HEAD /", b"HTTP/1."]) => PortContent::Http,
        _ if traffic::is_command_head(bytes) => PortContent::Paired(PairedProtocol::Memcached),
        _ if begins(&[b"VALUE ", b"STORED\r\n", b"END\r\n", b"HD\r\n", b"EN\r\n", b"VA "]) => {
            PortContent::MemcachedReply
        }
        // Magic, a known operation, no data type.
        [0x80 | 0x81, 0..=0x24, _, _, _, 0, ..] if bytes.len() >= 24 => PortContent::MemcachedBinary,
        _ if is_request_head(bytes) => PortContent::Paired(PairedProtocol::Mongodb),
        _ => PortContent::Other,
    }
}

/// Returns whether a command's first word is one of letters, as names are.
fn has_name(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n').skip(2);
    let word = lines.next().unwrap_or_default();
    let word = word.strip_suffix(b"\r").unwrap_or(word);
    (2..=20).contains(&word.len()) && word.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'.')
}

impl PortSurvey {
    /// Looks at a segment.
    pub fn see_segment(&mut self, segment: &Segment<'_>) {
        let (from, to) = (segment.from.port(), segment.to.port());
        if segment.is_syn {
            self.listening.insert(if segment.acknowledges.is_some() { from } else { to });
        }
        if segment.payload.is_empty() {
            return;
        }
        let content = content_of(segment.payload);
        if let PortContent::Paired(protocol) = content {
            // A head of MongoDB's is looked at closely, and one of memcached's is a name.
            let is_sure = protocol != PairedProtocol::Redis || has_name(segment.payload);
            *self.commands.entry((protocol, from, to)).or_default() += if is_sure { 3 } else { 1 };
        }
        let server = match (self.listening.contains(&from), self.listening.contains(&to)) {
            (true, false) => from,
            (false, true) => to,
            _ => from.min(to),
        };
        *self.contents.entry((server, content)).or_default() += 1;
        // Ports of clients without number: what is seldom is forgotten.
        if self.contents.len() > 10_000 {
            self.contents.retain(|_, count| *count > 100);
        }
        if self.commands.len() > 100_000 {
            self.commands.retain(|_, count| *count > 10);
        }
    }

    /// Ports to which commands go, the busiest first, with the segments that look so, and what they are of.
    pub fn command_ports(&self) -> Vec<(u16, u64, PairedProtocol)> {
        let of = |protocol| self.ports_of(protocol).into_iter().map(move |(port, n)| (port, n, protocol));
        let mut all: Vec<_> = PairedProtocol::ALL.into_iter().flat_map(of).collect();
        all.sort_by_key(|(port, votes, protocol)| (std::cmp::Reverse(*votes), *port, *protocol));
        all
    }

    /// Returns how many segments that go to one of these ports look like commands of a protocol.
    pub fn votes_of(&self, protocol: PairedProtocol, ports: &[u16]) -> u64 {
        let of = |((what, _, to), count): (&(PairedProtocol, u16, u16), &u64)| {
            (*what == protocol && ports.contains(to)).then_some(*count)
        };
        self.commands.iter().filter_map(of).sum()
    }

    /// Ports to which commands of a protocol go, the busiest first, with the segments that look so. Arrays among replies look
    /// like commands, too: what goes between a port and one that was chosen before counts for that one.
    fn ports_of(&self, protocol: PairedProtocol) -> Vec<(u16, u64)> {
        let of = self.commands.iter().filter(|((what, ..), _)| *what == protocol);
        let mut left: HashMap<(u16, u16), u64> =
            of.map(|((_, from, to), count)| ((*from, *to), *count)).collect();
        let mut chosen = Vec::new();
        while !left.is_empty() && chosen.len() < NAMED {
            let mut votes: BTreeMap<u16, u64> = BTreeMap::new();
            for ((_, to), count) in &left {
                *votes.entry(*to).or_default() +=
                    if self.listening.contains(to) { 4 * count } else { *count };
            }
            let Some((port, _)) = votes.iter().max_by_key(|(port, votes)| (**votes, u16::MAX - **port))
            else {
                break;
            };
            let port = *port;
            let own = left.iter().filter(|((_, to), _)| *to == port).map(|(_, count)| count).sum();
            chosen.push((port, own));
            left.retain(|(from, to), _| *from != port && *to != port);
        }
        chosen
    }

    /// Returns whether a port carries TLS and nothing that can be read.
    pub fn is_tls(&self, port: u16) -> bool {
        let count = |content| self.contents.get(&(port, content)).copied().unwrap_or(0);
        count(PortContent::Tls) > 0
            && PairedProtocol::ALL.iter().all(|one| count(PortContent::Paired(*one)) == 0)
    }

    /// Ports that carry TLS, the busiest first.
    pub fn tls_ports(&self) -> Vec<u16> {
        let mut found: Vec<(u64, u16)> = self
            .contents
            .iter()
            .filter(|((_, content), _)| *content == PortContent::Tls)
            .map(|((port, _), count)| (*count, *port))
            .collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.into_iter().map(|(_, port)| port).collect()
    }

    /// The busiest ports and what goes there, in words.
    pub fn describe(&self) -> String {
        let mut by_port: BTreeMap<u16, (u64, Vec<(u64, PortContent)>)> = BTreeMap::new();
        for ((port, content), count) in &self.contents {
            let place = by_port.entry(*port).or_default();
            place.0 += count;
            place.1.push((*count, *content));
        }
        let mut ports: Vec<_> = by_port.into_iter().collect();
        ports.sort_by_key(|(port, (count, _))| (std::cmp::Reverse(*count), *port));
        let shown = ports.iter().take(NAMED).map(|(port, (_, contents))| {
            // Most of a stream's segments begin in the middle of something.
            let known = contents.iter().filter(|(_, content)| *content != PortContent::Other).max();
            let content = known.map_or(PortContent::Other, |(_, content)| *content);
            format!("port {port}: {}", content.content_name())
        });
        let shown: Vec<String> = shown.collect();
        if shown.is_empty() { "no TCP segment with bytes is in it".into() } else { shown.join(", ") }
    }
}
