//! Which node serves a key: hash slots, the slot map, and the nodes learnt from redirections.

use super::resp::{NotResp, Token, read_token};
use dyno_db::names::Names;
use dyno_types::Endpoint;
use dyno_types::limits::NODES;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::Range;

/// Number of hash slots of a Redis cluster.
pub const SLOTS: usize = 16_384;
const NO_NODE: u16 = u16::MAX;

/// CRC-16/XMODEM, as the cluster specification prescribes.
const CRC: [u16; 256] = {
    let mut table = [0u16; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = (i as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

/// The hash tag of a key: what stands between the first brace and the next one that closes, if that is something.
pub fn hash_tag(key: &[u8]) -> Option<Range<usize>> {
    let open = key.iter().position(|&b| b == b'{')?;
    let length = key[open + 1..].iter().position(|&b| b == b'}').filter(|&n| n > 0)?;
    Some(open + 1..open + 1 + length)
}

/// CRC-16 (XMODEM) of bytes, continued from that of those before them (0).
pub fn crc16(before: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(before, |crc, &b| (crc << 8) ^ CRC[((crc >> 8) as u8 ^ b) as usize])
}

/// The hash slot of a key: CRC-16 of the part in braces if there is one that is not empty, else of all.
pub fn key_slot(key: &[u8]) -> u16 {
    crc16(0, hash_tag(key).map_or(key, |tag| &key[tag])) % SLOTS as u16
}

/// Knowledge of one load thread about the nodes and about who serves which slot.
#[derive(Clone, Debug)]
pub struct ClusterTopology {
    endpoints: Vec<Endpoint>,
    primary: Vec<u16>,
    replicas: Vec<(u16, Vec<u16>)>,
    turn: usize,
    /// Names that nodes tell during a run; before one they are looked up at once.
    names: Option<Names>,
    /// The name that was told last and is being looked up.
    awaited: Option<String>,
}

impl ClusterTopology {
    /// One node that serves everything.
    pub fn single_node(endpoint: Endpoint) -> Self {
        ClusterTopology {
            endpoints: vec![endpoint],
            primary: Vec::new(),
            replicas: Vec::new(),
            turn: 0,
            names: None,
            awaited: None,
        }
    }

    /// From now on names are looked up beside the load.
    pub fn in_load(&mut self) {
        self.names = Some(Names::default());
    }

    /// Returns whether the name that was told last is being looked up.
    pub fn awaits_name(&self) -> bool {
        let both = self.names.as_ref().zip(self.awaited.as_deref());
        both.is_some_and(|(names, name)| names.is_under_way(name))
    }

    /// Nodes known so far; numbers never change.
    pub fn known_endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Returns whether slots are mapped at all.
    pub fn is_cluster(&self) -> bool {
        !self.primary.is_empty()
    }

    /// Number of nodes that serve slots as primaries.
    pub fn count_primaries(&self) -> usize {
        self.serving_nodes(false).len()
    }

    /// The nodes that serve slots as primaries, and the replicas too if asked for; without a cluster, the one node and what
    /// copies it.
    pub fn serving_nodes(&self, replicas: bool) -> Vec<u16> {
        let mut nodes: Vec<u16> = match self.is_cluster() {
            true => self.primary.iter().copied().filter(|&n| n != NO_NODE).collect(),
            false => vec![0],
        };
        if replicas {
            nodes.extend(self.replicas.iter().flat_map(|(_, replicas)| replicas));
        }
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The primary of a slot; the first node while no primary is known.
    pub fn primary_of(&self, slot: u16) -> u16 {
        debug_assert!([0, SLOTS].contains(&self.primary.len()), "all slots are mapped, or none");
        debug_assert!(usize::from(slot) < SLOTS);
        match self.primary.get(slot as usize) {
            Some(&node) if node != NO_NODE => {
                debug_assert!(usize::from(node) < self.endpoints.len(), "nodes are never forgotten");
                node
            }
            _ => 0,
        }
    }

    /// A node for reading a slot: its replicas in turn (and its primary too, if `any`), else its primary.
    pub fn reader_of(&mut self, slot: u16, any: bool) -> u16 {
        let primary = self.primary_of(slot);
        let Some((_, replicas)) = self.replicas.iter().find(|(p, _)| *p == primary) else { return primary };
        let choices = replicas.len() + usize::from(any);
        if choices == 0 {
            return primary;
        }
        self.turn = self.turn.wrapping_add(1);
        replicas.get(self.turn % choices).copied().unwrap_or(primary)
    }

    /// Takes over which nodes copy the one node. Returns how many of them have an address.
    pub fn take_copies<'a>(&mut self, copies: impl Iterator<Item = (&'a str, u16)>) -> usize {
        let nodes: Vec<u16> = copies.filter_map(|(host, port)| self.node_number(host, port)).collect();
        let count = nodes.len();
        self.replicas = vec![(0, nodes)];
        count
    }

    /// The next node in turn, for questions any node can answer.
    pub fn next_node(&mut self) -> u16 {
        debug_assert!(!self.endpoints.is_empty(), "the node that was named first is never forgotten");
        self.turn = self.turn.wrapping_add(1);
        (self.turn % self.endpoints.len()) as u16
    }

    /// The number of the node at `host:port`, added if new; `None` if the name does not resolve, or not yet, or the limit is met.
    pub fn node_number(&mut self, host: &str, port: u16) -> Option<u16> {
        let known = self.endpoints.iter().position(|e| match e {
            Endpoint::Tcp { host: h, address } => {
                address.port() == port && (h == host || address.ip().to_string() == host)
            }
            Endpoint::Unix(_) => false,
        });
        if let Some(at) = known {
            return Some(at as u16);
        }
        if self.endpoints.len() >= NODES {
            return None;
        }
        let endpoint = match (host.parse::<IpAddr>(), &self.names) {
            (Ok(ip), _) => Endpoint::Tcp { host: host.to_owned(), address: SocketAddr::new(ip, port) },
            (Err(_), None) => {
                let address = (host, port).to_socket_addrs().ok()?.next()?;
                Endpoint::Tcp { host: host.to_owned(), address }
            }
            (Err(_), Some(names)) => {
                let name = format!("{host}:{port}");
                let endpoint = names.resolve_endpoint(&name);
                if endpoint.is_unresolved() {
                    self.awaited = Some(name);
                    return None;
                }
                endpoint
            }
        };
        self.endpoints.push(endpoint);
        debug_assert!(self.endpoints.len() <= NODES);
        Some((self.endpoints.len() - 1) as u16)
    }

    /// Follows `MOVED slot host:port` or `ASK slot host:port` (the text without its first word) that `from` sent; a
    /// move is remembered. Returns the node.
    pub fn follow_redirect(&mut self, text: &str, from: u16, moved: bool) -> Option<u16> {
        let (slot, address) = text.trim().split_once(' ')?;
        let slot: usize = slot.parse().ok()?;
        let (host, port) = address.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        let node = match host {
            // An empty host means "the one you are talking to".
            "" => match self.endpoints.get(from as usize)? {
                Endpoint::Tcp { host, .. } => {
                    let host = host.clone();
                    self.node_number(&host, port)?
                }
                Endpoint::Unix(_) => return None,
            },
            host => self.node_number(host, port)?,
        };
        if moved && slot < SLOTS {
            if self.primary.is_empty() {
                self.primary = vec![NO_NODE; SLOTS];
            }
            self.primary[slot] = node;
        }
        Some(node)
    }

    /// Takes over a reply to `CLUSTER SLOTS` that `from` sent. False if it is not such a reply.
    pub fn take_slots(&mut self, reply: &[u8], from: u16) -> Result<bool, NotResp> {
        let mut primary = vec![NO_NODE; SLOTS];
        let mut replicas: Vec<(u16, Vec<u16>)> = Vec::new();
        let Some((Token::Array(ranges), mut at)) = read_token(reply, 0)? else { return Ok(false) };
        for _ in 0..ranges {
            let Some((Token::Array(parts), next)) = read_token(reply, at)? else { return Ok(false) };
            let (Some((Token::Int(first), next)), true) = (read_token(reply, next)?, parts >= 3) else {
                return Ok(false);
            };
            let Some((Token::Int(last), next)) = read_token(reply, next)? else { return Ok(false) };
            at = next;
            let mut nodes = Vec::with_capacity(parts - 2);
            for _ in 2..parts {
                let Some((node, next)) = self.slot_node(reply, at, from)? else { return Ok(false) };
                nodes.extend(node);
                at = next;
            }
            let (Ok(first), Ok(last)) = (usize::try_from(first), usize::try_from(last)) else {
                return Ok(false);
            };
            let Some((&head, tail)) = nodes.split_first() else { continue };
            if first <= last && last < SLOTS {
                primary[first..=last].fill(head);
            }
            if !replicas.iter().any(|(p, _)| *p == head) {
                replicas.push((head, tail.to_vec()));
            }
        }
        if ranges == 0 {
            return Ok(false);
        }
        self.primary = primary;
        self.replicas = replicas;
        Ok(true)
    }

    /// One `[host, port, id, ...]` of a slots reply; the inner `None` is a node without an address.
    fn slot_node(
        &mut self,
        reply: &[u8],
        at: usize,
        from: u16,
    ) -> Result<Option<(Option<u16>, usize)>, NotResp> {
        let Some(end) = super::resp::skip_reply(reply, at)? else { return Ok(None) };
        let Some((Token::Array(n), next)) = read_token(reply, at)? else { return Ok(None) };
        if n < 2 {
            return Ok(None);
        }
        let Some((host, next)) = read_token(reply, next)? else { return Ok(None) };
        let Some((Token::Int(port), _)) = read_token(reply, next)? else { return Ok(None) };
        let host = match host {
            Token::Bulk(h) | Token::Simple(h) => String::from_utf8_lossy(h).into_owned(),
            _ => String::new(),
        };
        let Ok(port) = u16::try_from(port) else { return Ok(None) };
        if host == "?" {
            return Ok(Some((None, end)));
        }
        let host = match (host.is_empty(), self.endpoints.get(from as usize)) {
            (true, Some(Endpoint::Tcp { host, .. })) => host.clone(),
            _ => host,
        };
        Ok(Some((self.node_number(&host, port), end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> ClusterTopology {
        ClusterTopology::single_node(Endpoint::Tcp {
            host: "127.0.0.1".into(),
            address: "127.0.0.1:7000".parse().unwrap(),
        })
    }

    #[test]
    fn slots_of_the_specification() {
        assert_eq!(key_slot(b"123456789"), 0x31C3);
        assert_eq!(key_slot(b"{user1000}.following"), key_slot(b"{user1000}.followers"));
        assert_eq!(key_slot(b"foo{}{bar}"), key_slot(b"foo{}{bar}"));
        assert_eq!(key_slot(b"foo{{bar}}zap"), key_slot(b"{bar"));
        assert_eq!(key_slot(b"foo{bar}{zap}"), key_slot(b"bar"));
    }

    #[test]
    fn moves_are_remembered_and_asks_are_not() {
        let mut t = start();
        assert_eq!(t.follow_redirect("3999 127.0.0.1:7001", 0, true), Some(1));
        assert_eq!(t.primary_of(3999), 1);
        assert_eq!(t.follow_redirect("4000 127.0.0.1:7002", 0, false), Some(2));
        assert_eq!(t.primary_of(4000), 0);
        assert_eq!(t.follow_redirect("4001 :7001", 0, true), Some(1));
        assert_eq!(t.follow_redirect("nonsense", 0, true), None);
        assert_eq!(t.follow_redirect("5 ::1:7003", 0, true), Some(3));
    }

    #[test]
    fn a_slots_reply_is_taken_over() {
        let mut t = start();
        let reply: &[u8] = b"*2\r\n\
            *4\r\n:0\r\n:8191\r\n*3\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n\
            *3\r\n$9\r\n127.0.0.1\r\n:7003\r\n$2\r\nid\r\n\
            *3\r\n:8192\r\n:16383\r\n*4\r\n$9\r\n127.0.0.1\r\n:7001\r\n$2\r\nid\r\n*0\r\n";
        assert_eq!(t.take_slots(reply, 0), Ok(true));
        assert!(t.is_cluster());
        assert_eq!((t.primary_of(0), t.primary_of(8191), t.primary_of(8192)), (0, 0, 2));
        assert_eq!(t.count_primaries(), 2);
        assert_eq!(t.reader_of(5, false), 1);
        assert_eq!(t.reader_of(9000, false), 2);
        assert_eq!(t.take_slots(b"+OK\r\n", 0), Ok(false));
    }

    #[test]
    fn copies_of_one_node_are_read_in_turn() {
        let mut t = start();
        assert_eq!(t.serving_nodes(true), [0]);
        assert_eq!(t.take_copies([("127.0.0.1", 7001), ("127.0.0.1", 7002)].into_iter()), 2);
        assert!(!t.is_cluster());
        assert_eq!((t.serving_nodes(false), t.serving_nodes(true)), (vec![0], vec![0, 1, 2]));
        let mut read = |any: bool| (0..6).map(|_| t.reader_of(0, any)).collect::<Vec<_>>();
        assert_eq!(read(false).iter().filter(|n| **n == 1).count(), 3);
        assert!(!read(false).contains(&0));
        assert_eq!(read(true).iter().filter(|n| **n == 0).count(), 2);
    }
}
