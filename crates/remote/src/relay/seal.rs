//! Records between pods: sealed with keys that follow from the run's token and two random numbers, one of each end.
//!
//! ChaCha20-Poly1305 with a key for each direction of each connection and a counter as nonce: a record that was made by somebody
//! else, changed, left out, repeated or sent back does not open.

use crate::relay::frames::{Kind, PIECE};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

const MAGIC: &[u8; 8] = b"dynorly1";
const RANDOM: usize = 32;

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Hub,
    Pod,
}

struct Half {
    key: LessSafeKey,
    next: u64,
}

impl Half {
    fn new(token: &[u8], label: &[u8], randoms: &[u8]) -> io::Result<Half> {
        let own = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, token), &[label, randoms].concat());
        let key =
            UnboundKey::new(&CHACHA20_POLY1305, own.as_ref()).map_err(|_| io::Error::other("no key"))?;
        Ok(Half { key: LessSafeKey::new(key), next: 0 })
    }

    fn nonce(&mut self) -> Nonce {
        let mut bytes = [0; NONCE_LEN];
        bytes[NONCE_LEN - 8..].copy_from_slice(&self.next.to_le_bytes());
        self.next += 1;
        Nonce::assume_unique_for_key(bytes)
    }
}

/// The writing half of a connection.
pub(super) struct Sealer {
    to: TcpStream,
    half: Half,
}

impl Sealer {
    /// Sends a record; longer payloads of bytes are cut.
    pub fn send(&mut self, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return self.one(kind, bytes);
        }
        bytes.chunks(PIECE).try_for_each(|piece| self.one(kind, piece))
    }

    fn one(&mut self, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        let mut record = Vec::with_capacity(bytes.len() + 1 + CHACHA20_POLY1305.tag_len());
        record.push(kind as u8);
        record.extend_from_slice(bytes);
        let nonce = self.half.nonce();
        let sealed = self.half.key.seal_in_place_append_tag(nonce, Aad::empty(), &mut record);
        sealed.map_err(|_| io::Error::other("a record could not be sealed"))?;
        let mut all = (record.len() as u32).to_le_bytes().to_vec();
        all.append(&mut record);
        self.to.write_all(&all)
    }

    /// Ends the connection, also for whoever reads from it.
    pub fn shut(&self) {
        // It may have been closed from the other end.
        let _ = self.to.shutdown(Shutdown::Both);
    }

    /// Says that nothing follows; what was sent arrives.
    pub fn finish(&self) {
        // It may have been closed from the other end.
        let _ = self.to.shutdown(Shutdown::Write);
    }
}

/// Reads from a connection, at first until an instant: whoever says a byte now and then is no more patient than that.
struct Patient {
    from: TcpStream,
    until: Option<Instant>,
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(until) = self.until {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.from.set_read_timeout(Some(left))?;
        }
        self.from.read(into)
    }
}

/// The reading half of a connection.
pub(super) struct Opener {
    from: BufReader<Patient>,
    half: Half,
}

impl Opener {
    /// The other end has shown that it holds the token: from now on only silence ends the connection.
    pub fn trust(&mut self, silence: Duration) -> io::Result<()> {
        let patient = self.from.get_mut();
        patient.until = None;
        patient.from.set_read_timeout(Some(silence))
    }

    /// The next record.
    pub fn receive(&mut self) -> io::Result<(Kind, Vec<u8>)> {
        let mut head = [0; 4];
        self.from.read_exact(&mut head)?;
        let length = u32::from_le_bytes(head) as usize;
        let tag = CHACHA20_POLY1305.tag_len();
        if !(tag + 1..=tag + 1 + PIECE).contains(&length) {
            return Err(io::Error::other(format!("a record of {length} bytes")));
        }
        let mut record = vec![0; length];
        self.from.read_exact(&mut record)?;
        let nonce = self.half.nonce();
        let opened = self.half.key.open_in_place(nonce, Aad::empty(), &mut record);
        let opened = opened.map_err(|_| io::Error::other("a record that does not open: another token?"))?;
        Ok((Kind::from_byte(opened[0])?, opened[1..].to_vec()))
    }
}

/// Exchanges random numbers. Who is at the other end shows with the first record that opens; until an instant, if one is given,
/// it must have come: [`Opener::trust`].
pub(super) fn meet(
    stream: &TcpStream,
    token: &[u8],
    side: Side,
    until: Option<Instant>,
) -> io::Result<(Sealer, Opener)> {
    stream.set_nodelay(true)?;
    let mut own = [0; RANDOM];
    getrandom::fill(&mut own).map_err(io::Error::other)?;
    let mut to = stream.try_clone()?;
    let mut from = BufReader::new(Patient { from: stream.try_clone()?, until });
    to.write_all(&[&MAGIC[..], &own].concat())?;
    let mut told = [0; MAGIC.len() + RANDOM];
    from.read_exact(&mut told)?;
    let Some(theirs) = told.strip_prefix(&MAGIC[..]) else {
        return Err(io::Error::other("the other end is no dyno, or another version of it"));
    };
    let (hub, pod): (&[u8], &[u8]) = if side == Side::Hub { (&own, theirs) } else { (theirs, &own) };
    let randoms = [hub, pod].concat();
    let of_hub = Half::new(token, b"dyno relay 1, hub to pod", &randoms)?;
    let of_pod = Half::new(token, b"dyno relay 1, pod to hub", &randoms)?;
    let (seal, open) = if side == Side::Hub { (of_hub, of_pod) } else { (of_pod, of_hub) };
    Ok((Sealer { to, half: seal }, Opener { from, half: open }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::TcpListener;

    const HELD: &[u8] = b"0123456789abcdef0123456789abcdef";

    /// Both ends of a connection: its streams, and what hub and pod say and hear.
    struct Pair {
        near: TcpStream,
        agent: TcpStream,
        hub: (Sealer, Opener),
        pod: (Sealer, Opener),
    }

    impl Pair {
        fn new() -> Pair {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let agent = listener.accept().unwrap().0;
            let there = agent.try_clone().unwrap();
            let pod = std::thread::spawn(move || meet(&there, HELD, Side::Pod, None).unwrap());
            let hub = meet(&near, HELD, Side::Hub, None).unwrap();
            for stream in [&near, &agent] {
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            }
            Pair { near, agent, hub, pod: pod.join().unwrap() }
        }

        /// Records of the hub as they are on the way, taken away before the pod has them.
        fn taken(&mut self, count: u8) -> Vec<Vec<u8>> {
            let record = |number: u8| {
                self.hub.0.send(Kind::Data, &[number]).unwrap();
                raw(&mut self.agent)
            };
            (0..count).map(record).collect()
        }

        /// Which of these records the pod takes; it takes none after the first that it does not.
        fn heard(&mut self, records: &[&Vec<u8>]) -> Vec<u8> {
            let mut heard = Vec::new();
            for record in records {
                self.near.write_all(record).unwrap();
                match self.pod.1.receive() {
                    Ok((_, bytes)) => heard.extend(bytes),
                    Err(why) => {
                        assert!(why.to_string().contains("does not open"), "{why}");
                        break;
                    }
                }
            }
            heard
        }
    }

    /// A record as it is on the way.
    fn raw(from: &mut TcpStream) -> Vec<u8> {
        let mut head = [0; 4];
        from.read_exact(&mut head).unwrap();
        let mut body = vec![0; u32::from_le_bytes(head) as usize];
        from.read_exact(&mut body).unwrap();
        [&head[..], &body].concat()
    }

    #[test]
    fn records_open_once_in_their_order_and_at_their_end() {
        // These of three records, in this order, one bit of them changed or not.
        let on_the_way = |numbers: &[usize], change: u8| {
            let mut pair = Pair::new();
            let mut records = pair.taken(3);
            records.iter_mut().for_each(|record| *record.last_mut().unwrap() ^= change);
            pair.heard(&numbers.iter().map(|at| &records[*at]).collect::<Vec<_>>())
        };
        assert_eq!(on_the_way(&[0, 1, 2], 0), [0, 1, 2]);
        assert_eq!(on_the_way(&[0, 0], 0), [0], "repeated");
        assert_eq!(on_the_way(&[1, 0], 0), [0; 0], "in another order");
        assert_eq!(on_the_way(&[0, 2], 0), [0], "one left out");
        assert_eq!(on_the_way(&[0], 1), [0; 0], "one bit");
        // Of another connection of the same token.
        let (mut one, mut other) = (Pair::new(), Pair::new());
        let record = one.taken(1).remove(0);
        assert_eq!(other.heard(&[&record]), [0; 0]);
    }

    #[test]
    fn a_record_that_is_sent_back_does_not_open() {
        let mut pair = Pair::new();
        let record = pair.taken(1).remove(0);
        pair.agent.write_all(&record).unwrap();
        assert!(pair.hub.1.receive().unwrap_err().to_string().contains("does not open"));
        // The same words with the same number are not the same record in both directions.
        let mut pair = Pair::new();
        let there = pair.taken(1).remove(0);
        pair.pod.0.send(Kind::Data, &[0]).unwrap();
        assert_ne!(there, raw(&mut pair.near));
    }

    #[test]
    fn no_nonce_comes_twice() {
        let mut half = Half::new(HELD, b"label", b"randoms").unwrap();
        let nonces: BTreeSet<[u8; NONCE_LEN]> = (0..1_000).map(|_| *half.nonce().as_ref()).collect();
        assert_eq!(nonces.len(), 1_000);
        assert_eq!(half.next, 1_000);
    }
}
