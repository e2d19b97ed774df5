//! Queueing disciplines of this host that hold packets back, as the kernel lists them (rtnetlink(7), RTM_GETQDISC).

use crate::roots::read;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Disciplines that delay, drop or limit all that they pass on; others may have classes without a limit.
const SHAPING: [&str; 2] = ["netem", "tbf"];
/// Share of what this host has sent in a phase from which on a device is the way to the target.
const THE_WAY: f64 = 0.5;
/// Longest answer that is taken, bytes, and parts of it: hosts with hundreds of devices have some ten KiB.
const ANSWER: (usize, usize) = (32 << 10, 256);

const GET_QDISC: u16 = 38;
const NEW_QDISC: u16 = 36;
const DONE: u16 = 3;
/// A request (1) for everything (0x300).
const DUMP: u16 = 0x301;
const KIND: u16 = 1;
/// Length of a message's head, and of what follows in one about a discipline: family, device, handle, parent, information.
const HEAD: usize = 16;
const ABOUT: usize = 20;

/// What holds packets back, and how much each device has sent, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Bytes by device.
    sent: BTreeMap<String, u64>,
    /// The discipline by device.
    shaped: BTreeMap<String, String>,
}

impl Queues {
    /// Looks now. What a kernel does not tell is not there.
    pub fn read_now() -> Self {
        let told = read(Path::new("/proc/self/net/dev")).unwrap_or_default();
        Queues { sent: sent(&told), shaped: shaped().unwrap_or_default() }
    }

    /// Returns device and discipline of what has held back most of what this host sent between `before` and now, if that was
    /// `least` bytes: at one of the two moments at least.
    pub fn held_back_since(&self, before: &Queues, least: u64) -> Option<(String, String)> {
        let of = |device: &String| {
            self.sent[device].saturating_sub(before.sent.get(device).copied().unwrap_or(0)) as f64
        };
        let all: f64 = self.sent.keys().map(of).sum();
        let (device, most) =
            self.sent.keys().map(|device| (device, of(device))).max_by(|a, b| a.1.total_cmp(&b.1))?;
        let kind = self.shaped.get(device).or(before.shaped.get(device))?;
        (most > all * THE_WAY && most >= least as f64).then(|| (device.clone(), kind.clone()))
    }
}

/// Bytes sent by device: `  eth0: 2677616 24238 ...`, of which the ninth figure is meant.
fn sent(told: &str) -> BTreeMap<String, u64> {
    let of = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        Some((name.trim().to_owned(), rest.split_ascii_whitespace().nth(8)?.parse().ok()?))
    };
    told.lines().filter_map(of).collect()
}

/// Asks the kernel for all disciplines.
fn shaped() -> io::Result<BTreeMap<String, String>> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        // NETLINK_ROUTE is protocol 0.
        None,
    )?;
    let mut request = [0_u8; HEAD + ABOUT];
    request[..4].copy_from_slice(&((HEAD + ABOUT) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&GET_QDISC.to_ne_bytes());
    request[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    rustix::net::sendto(&socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut found = Vec::new();
    let mut part = vec![0; ANSWER.0];
    for _ in 0..ANSWER.1 {
        // The kernel has written all that fits before it returned from the request, and writes on while it is read.
        let (taken, _) = rustix::net::recv(&socket, &mut part[..], RecvFlags::empty())?;
        if !disciplines(&part[..taken], &mut found) {
            break;
        }
    }
    let name = |device: u32| rustix::net::netdevice::index_to_name(&socket, device).ok();
    Ok(found.into_iter().filter_map(|(device, kind)| Some((name(device)?, kind))).collect())
}

/// Devices with a discipline that holds packets back, of a part of an answer; false at its end. dyno's own (`shaping` in
/// dyno-localhost) are below a root HTB 7xxx:, and faults of an experiment say themselves what they do.
fn disciplines(mut part: &[u8], found: &mut Vec<(u32, String)>) -> bool {
    let number = |at: usize, from: &[u8]| {
        from.get(at..at + 4).map(|four| u32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
    };
    let short = |at: usize, from: &[u8]| from.get(at..at + 2).map(|two| u16::from_ne_bytes([two[0], two[1]]));
    while let (Some(length), Some(kind)) = (number(0, part), short(4, part)) {
        let length = length as usize;
        if kind == DONE || length < HEAD || length > part.len() {
            return false;
        }
        let about = &part[HEAD..length];
        if let (NEW_QDISC, Some(device), Some(handle), Some(parent)) =
            (kind, number(4, about), number(8, about), number(12, about))
        {
            let mut attributes = about.get(ABOUT..).unwrap_or_default();
            while let (Some(length), Some(kind)) = (short(0, attributes), short(2, attributes)) {
                let Some(value) = attributes.get(4..usize::from(length)) else { break };
                if kind == KIND {
                    let word = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned();
                    let own = [handle, parent].iter().any(|number| number >> 28 == 7 && number & 0xffff < 3);
                    if SHAPING.contains(&word.as_str()) && !own {
                        found.push((device, word));
                    }
                }
                attributes = attributes.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
            }
        }
        part = part.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message about a discipline, as the kernel writes it.
    fn message(device: u32, handle: u32, parent: u32, kind: &str) -> Vec<u8> {
        let mut value = kind.as_bytes().to_vec();
        value.push(0);
        let mut attribute = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        attribute.extend(KIND.to_ne_bytes());
        attribute.extend(value);
        attribute.resize(attribute.len().next_multiple_of(4), 0);
        let mut all = ((HEAD + ABOUT + attribute.len()) as u32).to_ne_bytes().to_vec();
        all.extend(NEW_QDISC.to_ne_bytes());
        all.resize(HEAD + 4, 0);
        all.extend([device, handle, parent, 2].iter().flat_map(|number| number.to_ne_bytes()));
        all.extend(attribute);
        all
    }

    #[test]
    fn what_holds_packets_back_is_found_by_device() {
        let mut found = Vec::new();
        let mut part = message(1, 0, u32::MAX, "noqueue");
        part.extend(message(2, 0x8001_0000, u32::MAX, "netem"));
        part.extend(message(3, 0x7abc_0000, u32::MAX, "htb"));
        part.extend(message(3, 0x8002_0000, 0x7abc_0001, "netem"));
        assert!(disciplines(&part, &mut found));
        assert_eq!(found, [(2, "netem".to_owned())]);
        for cut in 0..part.len() {
            disciplines(&part[..cut], &mut Vec::new());
        }
        let mut done = message(2, 0, 0, "tbf");
        done[4..6].copy_from_slice(&DONE.to_ne_bytes());
        assert!(!disciplines(&done, &mut found) && found.len() == 1);
    }

    #[test]
    fn it_is_in_the_way_where_most_was_sent() {
        let of = |lo: u64, eth0: u64, shaped: &[(&str, &str)]| Queues {
            sent: BTreeMap::from([("lo".into(), lo), ("eth0".into(), eth0)]),
            shaped: shaped.iter().map(|(device, kind)| (device.to_string(), kind.to_string())).collect(),
        };
        let before = of(1_000, 1_000, &[]);
        let netem = [("eth0", "netem")];
        assert_eq!(
            of(1_100, 9_000, &netem).held_back_since(&before, 500),
            Some(("eth0".into(), "netem".into()))
        );
        assert_eq!(of(9_000, 1_100, &netem).held_back_since(&before, 500), None);
        // It was taken away meanwhile.
        assert_eq!(
            of(1_000, 2_000, &[]).held_back_since(&of(1_000, 1_000, &netem), 500),
            Some(("eth0".into(), "netem".into()))
        );
        assert_eq!(of(1_000, 1_400, &netem).held_back_since(&before, 500), None);
        assert_eq!(sent("a\n  lo: 1 2 3 4 5 6 7 8 99 10\n"), BTreeMap::from([("lo".into(), 99)]));
    }

    /// The kernel here answers, whatever it says, unless it does not let us ask.
    #[test]
    fn this_kernel_is_asked() {
        use io::ErrorKind::{PermissionDenied, Unsupported, WouldBlock};
        if let Err(error) = shaped() {
            assert!([PermissionDenied, Unsupported, WouldBlock].contains(&error.kind()), "{error}");
        }
    }
}
