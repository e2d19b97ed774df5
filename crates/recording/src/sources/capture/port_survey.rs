//! Ports of a capture, and what they carry, as far as first bytes tell.

use super::segment::Segment;
use crate::exchange::redis::is_command_head;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Ports that a message names.
const NAMED: usize = 6;

/// Something that goes to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PortContent {
    Redis,
    Tls,
    Http,
    Memcached,
    MongoDb,
    Other,
}

impl PortContent {
    fn content_name(self) -> &'static str {
        match self {
            PortContent::Redis => "Redis",
            PortContent::Tls => "TLS",
            PortContent::Http => "HTTP",
            PortContent::Memcached => "memcached",
            PortContent::MongoDb => "MongoDB",
            PortContent::Other => "something else",
        }
    }
}

/// Counts of segments by what they look like.
#[derive(Default)]
pub(super) struct PortSurvey {
    /// Segments that look like commands of Redis, by the ports they came from and went to.
    commands: HashMap<(u16, u16), u64>,
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
    let message = || {
        let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let length = number(0).unwrap_or(0);
        (16..48 << 20).contains(&length) && [Some(2_013), Some(2_012), Some(2_004)].contains(&number(12))
    };
    match bytes {
        _ if is_command_head(bytes) => PortContent::Redis,
        _ if is_client_hello(bytes) => PortContent::Tls,
        [0x14..=0x17, 3, 0..=4, ..] => PortContent::Tls,
        _ if begins(&[b"GET /", b"POST /", b"PUT /", b"HEAD /", b"HTTP/1."]) => PortContent::Http,
        _ if begins(&[b"get ", b"gets ", b"set ", b"mg ", b"ms ", b"VALUE ", b"STORED\r\n", b"END\r\n"]) => {
            PortContent::Memcached
        }
        _ if message() => PortContent::MongoDb,
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
        if content == PortContent::Redis {
            *self.commands.entry((from, to)).or_default() += if has_name(segment.payload) { 3 } else { 1 };
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

    /// Ports to which commands of Redis go, the busiest first, with the segments that look so. Arrays among replies look like
    /// commands, too: what goes between a port and one that was chosen before counts for that one.
    pub fn redis_ports(&self) -> Vec<(u16, u64)> {
        let mut left = self.commands.clone();
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
        count(PortContent::Tls) > 0 && count(PortContent::Redis) == 0
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
