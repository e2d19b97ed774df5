//! Which server holds a key.
//!
//! Servers of memcached do not know of each other: clients that share data must agree on how keys are spread. Two ways are
//! known here. `ketama`: MD5 places 160 points of each server on a ring, and a key belongs to the first point at or after its
//! own hash, so that few keys move when a server is added. `modulo`: the Java hash of the key modulo the number of servers, as
//! YCSB's binding has it.

use super::options::{Hash, MemcachedOptions, Protocol, place_text};
use dyno_types::limits::NODES;
use dyno_types::{Endpoint, RefusalCode, Refused};
use dyno_workload::keys::java_hash_ascii;
use md5::{Digest, Md5};
use std::sync::Arc;

/// Hashes of each server; each gives four points.
const HASHES: u32 = 40;

/// Points on a ring of 2^32 places, each of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Place and server, by place.
    points: Vec<(u32, u16)>,
}

/// A group of four bytes of a hash as a place on the ring.
fn place(digest: &[u8], group: usize) -> u32 {
    let bytes = &digest[4 * group..4 * group + 4];
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

impl Ring {
    /// A ring of the servers with these names, such as `10.0.0.1:11211`. Its points are the MD5 hashes of `NAME-0` to `NAME-39`,
    /// four little-endian numbers each: those of spymemcached for servers that are named by their addresses. (For one that is
    /// named `h`, spymemcached hashes `h/ADDRESS:PORT`, so that keys move with its address.)
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut points = Vec::new();
        for (server, name) in (0u16..).zip(names) {
            for number in 0..HASHES {
                let digest = Md5::digest(format!("{name}-{number}").as_bytes());
                points.extend((0..4).map(|group| (place(&digest, group), server)));
            }
        }
        // Where two servers have the same place, the later one has it.
        points.sort_unstable_by_key(|(place, server)| (*place, std::cmp::Reverse(*server)));
        points.dedup_by_key(|(place, _)| *place);
        Ring { points }
    }

    /// The number of the server that holds a key.
    pub fn server_of(&self, key: &[u8]) -> u16 {
        self.server_at(place(&Md5::digest(key), 0))
    }

    fn server_at(&self, place: u32) -> u16 {
        let next = self.points.partition_point(|(point, _)| *point < place);
        // After the last point comes the first.
        self.points.get(next).or(self.points.first()).map_or(0, |(_, server)| *server)
    }
}

/// The servers of a target, and which of them holds a key. Copied for every load thread.
#[derive(Clone, Debug)]
pub struct Servers {
    endpoints: Vec<Endpoint>,
    protocols: Vec<Protocol>,
    /// Of several servers, unless they are counted off.
    ring: Option<Arc<Ring>>,
}

impl Servers {
    /// The servers at `endpoints`: the addresses of `options` in their order, resolved. Refuses another number of them than of
    /// addresses.
    pub fn new(options: &MemcachedOptions, endpoints: Vec<Endpoint>) -> Result<Self, Refused> {
        let count = endpoints.len();
        if count != options.addresses.len() || !(1..=NODES).contains(&count) {
            let named = options.addresses.len();
            return Err(Refused::new(
                RefusalCode::Limit,
                "target",
                format!("{named} memcached servers are named and {count} found: 1 to {NODES} are possible"),
            ));
        }
        let names: Vec<String> = options.addresses.iter().map(place_text).collect();
        let ring = (count > 1 && options.hash == Hash::Ketama)
            .then(|| Arc::new(Ring::new(names.iter().map(String::as_str))));
        let assumed = if options.protocol == Protocol::Text { Protocol::Text } else { Protocol::Meta };
        Ok(Servers { protocols: vec![assumed; count], endpoints, ring })
    }

    /// Where they listen, by their numbers.
    pub fn server_endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The protocol to speak with a server: [`Protocol::Meta`] until [`Servers::set_protocol`] or a greeting says otherwise.
    pub fn server_protocol(&self, server: u16) -> Protocol {
        self.protocols.get(usize::from(server)).copied().unwrap_or(Protocol::Meta)
    }

    /// Notes the protocol that a server speaks, as its facts say.
    pub fn set_protocol(&mut self, server: u16, protocol: Protocol) {
        if let Some(known) = self.protocols.get_mut(usize::from(server)) {
            *known = protocol;
        }
    }

    /// The number of the server that holds a key.
    #[inline]
    pub fn server_of(&self, key: &[u8]) -> u16 {
        match (self.endpoints.len(), &self.ring) {
            (1, _) => 0,
            (_, Some(ring)) => ring.server_of(key),
            // Java's hash has a sign; spymemcached takes its 32 bits without.
            (count, None) => (java_hash_ascii(0, key).cast_unsigned() as usize % count) as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_vectors() {
        // Computed apart from this code, by the published algorithm: the points of a server are the four little-endian groups of
        // MD5("HOST:PORT-i") for i from 0 to 39; a key belongs to the first point at or after the first group of MD5(key), after
        // the last point to the first.
        let ring = Ring::new(["10.0.0.1:11211", "10.0.0.2:11211", "10.0.0.3:11211"]);
        let vectors = [
            ("user0", 0),
            ("user1", 2),
            ("user2", 1),
            ("user3", 2),
            ("user4", 0),
            ("user5", 2),
            ("user6", 1),
            ("user7", 1),
            ("user6284781860667377211", 0),
            ("usertable-user1", 2),
            ("wrap25620", 1),
        ];
        for (key, server) in vectors {
            assert_eq!(ring.server_of(key.as_bytes()), server, "{key}");
        }
        // MD5("10.0.0.1:11211-0") is 76240962e29fe30f407f595c517e7577.
        for point in [1644766326, 266575842, 1549369152, 2004188753] {
            assert_eq!(ring.server_at(point), 0, "a point belongs to its own server");
        }
        assert_eq!(ring.points.len(), 480);
        assert_eq!((ring.points[0], ring.points[479]), ((7234733, 1), (4294179316, 1)));
        // "wrap25620" hashes to 4294270818, after the last point.
    }

    #[test]
    fn of_two_servers_at_one_place_the_later_has_it() {
        let ring = Ring::new(["a:1", "a:1"]);
        assert_eq!(ring.points.len(), 160);
        assert!(ring.points.iter().all(|(_, server)| *server == 1));
        assert_eq!(Ring::new([]).server_of(b"k"), 0, "there is no server, and nothing breaks");
    }
}
