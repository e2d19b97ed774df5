//! Sealed connections between pods: the Noise Protocol's handshake `NNpsk0`, keyed by the run's token, by the crate `snow`.
//!
//! Both ends show that they hold the token, and agree on keys that follow from key pairs made for this connection alone. Who
//! learns the token later cannot open what was recorded (forward secrecy). A record that was made by another party, changed,
//! left out, repeated or sent back does not open, and ends the connection.
//!
//! Each message has its length before it: two bytes, the higher first.

use crate::remote::relay::frames::{Kind, MESSAGE_BYTES, PIECE, TAG_BYTES, VERSION};
use sha2::{Digest, Sha256};
use snow::error::StateProblem;
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState, StatelessTransportState};
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
/// A message of the handshake: a public key, and the tag of an empty payload.
const GREETING_BYTES: usize = 32 + TAG_BYTES;

/// Which end of a connection. The hub begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Hub,
    Pod,
}

/// Why a connection between pods ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum SealError {
    /// The system's reason. Silence is [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::TimedOut`].
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the other end has closed it")]
    Closed,
    #[error("it ends within a message")]
    Truncated,
    #[error("the other end is no dyno, or another version of it: it greets with {0} bytes")]
    Greeting(usize),
    #[error("the other end has another token, or is another version of dyno")]
    Token,
    #[error("relay record rejected: altered, missing, replayed or from another session")]
    Record,
    #[error("all numbers of its records are used")]
    Exhausted,
    #[error("Noise: {0}")]
    Noise(snow::Error),
}

impl From<snow::Error> for SealError {
    fn from(error: snow::Error) -> SealError {
        match error {
            snow::Error::Decrypt => SealError::Record,
            snow::Error::State(StateProblem::Exhausted) => SealError::Exhausted,
            other => SealError::Noise(other),
        }
    }
}

/// The writing half of a connection.
pub(super) struct Sealer {
    to: TcpStream,
    keys: Arc<StatelessTransportState>,
    next: u64,
}

impl Sealer {
    /// Sends a record; longer payloads of bytes are cut.
    pub fn send(&mut self, kind: Kind, bytes: &[u8]) -> Result<(), SealError> {
        if bytes.is_empty() {
            return self.one(kind, bytes);
        }
        bytes.chunks(PIECE).try_for_each(|piece| self.one(kind, piece))
    }

    fn one(&mut self, kind: Kind, bytes: &[u8]) -> Result<(), SealError> {
        let record = [&[kind as u8], bytes].concat();
        let mut message = vec![0; record.len() + TAG_BYTES];
        self.keys.write_message(self.next, &record, &mut message)?;
        self.next += 1;
        Ok(write(&mut self.to, &message)?)
    }

    /// Ends the connection, also for its reader.
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

/// Reads from a connection, at first until an instant: a peer that says a byte now and then gets no more time than that.
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
    keys: Arc<StatelessTransportState>,
    next: u64,
}

impl Opener {
    /// The other end has shown that it holds the token: from now on only silence ends the connection.
    pub fn trust(&mut self, silence: Duration) -> io::Result<()> {
        let patient = self.from.get_mut();
        patient.until = None;
        patient.from.set_read_timeout(Some(silence))
    }

    /// The next record.
    pub fn receive(&mut self) -> Result<(Kind, Vec<u8>), SealError> {
        let length = length(&mut self.from)?;
        let message = body(&mut self.from, length)?;
        let mut record = vec![0; length];
        let opened = self.keys.read_message(self.next, &message, &mut record)?;
        self.next += 1;
        match &record[..opened] {
            [kind, bytes @ ..] => Ok((Kind::from_byte(*kind)?, bytes.to_vec())),
            [] => Err(SealError::Record),
        }
    }
}

fn write(to: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    // One call: what is small goes as one packet.
    to.write_all(&[&(message.len() as u16).to_be_bytes(), message].concat())
}

/// Reads the length of the next message.
fn length(from: &mut impl Read) -> Result<usize, SealError> {
    let mut head = Vec::new();
    from.take(2).read_to_end(&mut head)?;
    match head[..] {
        [] => Err(SealError::Closed),
        [high, low] => Ok(u16::from_be_bytes([high, low]).into()),
        _ => Err(SealError::Truncated),
    }
}

fn body(from: &mut impl Read, length: usize) -> Result<Vec<u8>, SealError> {
    let mut message = Vec::new();
    from.take(length as u64).read_to_end(&mut message)?;
    if message.len() == length { Ok(message) } else { Err(SealError::Truncated) }
}

/// Greets the other end, which shows that it holds the token. A pod believes it with the first record that opens: the hub's
/// greeting may be one that was recorded. Until an instant, if one is given, that record must have come: [`Opener::trust`].
///
/// # Errors
/// The other end is no dyno, another version, or has another token; or the connection ends.
pub(super) fn meet(
    stream: &TcpStream,
    token: &[u8],
    side: Side,
    until: Option<Instant>,
) -> Result<(Sealer, Opener), SealError> {
    stream.set_nodelay(true)?;
    let mut to = stream.try_clone()?;
    let mut from = BufReader::new(Patient { from: stream.try_clone()?, until });
    let mut state = handshake(token, side)?;
    if side == Side::Hub {
        write(&mut to, &greeting(&mut state)?)?;
    }
    let length = length(&mut from)?;
    if length != GREETING_BYTES {
        return Err(SealError::Greeting(length));
    }
    greeted(&mut state, &body(&mut from, length)?)?;
    if side == Side::Pod {
        write(&mut to, &greeting(&mut state)?)?;
    }
    let keys = Arc::new(state.into_stateless_transport_mode()?);
    Ok((Sealer { to, keys: keys.clone(), next: 0 }, Opener { from, keys, next: 0 }))
}

fn handshake(token: &[u8], side: Side) -> Result<HandshakeState, SealError> {
    let key = Sha256::digest(token).into();
    let version = format!("dyno relay {VERSION}");
    let pattern: NoiseParams = PATTERN.parse()?;
    let builder = Builder::new(pattern).psk(0, &key)?.prologue(version.as_bytes())?;
    Ok(if side == Side::Hub { builder.build_initiator()? } else { builder.build_responder()? })
}

fn greeting(state: &mut HandshakeState) -> Result<[u8; GREETING_BYTES], SealError> {
    let mut message = [0; GREETING_BYTES];
    state.write_message(&[], &mut message)?;
    Ok(message)
}

fn greeted(state: &mut HandshakeState, message: &[u8]) -> Result<(), SealError> {
    match state.read_message(message, &mut []) {
        Err(snow::Error::Decrypt) => Err(SealError::Token),
        read => Ok(read.map(drop)?),
    }
}

// The longest record is one message.
const _: () = assert!(1 + PIECE + TAG_BYTES == MESSAGE_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const HELD: &[u8] = b"0123456789abcdef0123456789abcdef";

    /// Both ends of a connection: its streams, and what hub and pod say and hear.
    struct Pair {
        near: TcpStream,
        agent: TcpStream,
        hub: (Sealer, Opener),
        pod: (Sealer, Opener),
    }

    fn streams() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        for stream in [&near, &far] {
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        }
        (near, far)
    }

    impl Pair {
        fn new() -> Pair {
            let (near, agent) = streams();
            let there = agent.try_clone().unwrap();
            let pod = std::thread::spawn(move || meet(&there, HELD, Side::Pod, None).unwrap());
            let hub = meet(&near, HELD, Side::Hub, None).unwrap();
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
                        assert!(matches!(why, SealError::Record), "{why}");
                        break;
                    }
                }
            }
            heard
        }
    }

    /// A message as it is on the way.
    fn raw(from: &mut TcpStream) -> Vec<u8> {
        let mut head = [0; 2];
        from.read_exact(&mut head).unwrap();
        let mut body = vec![0; u16::from_be_bytes(head).into()];
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
    }

    #[test]
    fn a_record_that_is_sent_back_does_not_open() {
        let mut pair = Pair::new();
        let record = pair.taken(1).remove(0);
        pair.agent.write_all(&record).unwrap();
        assert!(matches!(pair.hub.1.receive(), Err(SealError::Record)));
        // The same words with the same number are not the same record in both directions.
        let mut pair = Pair::new();
        let there = pair.taken(1).remove(0);
        pair.pod.0.send(Kind::Data, &[0]).unwrap();
        assert_ne!(there, raw(&mut pair.near));
    }

    #[test]
    fn the_longest_record_is_one_message_and_a_longer_one_is_cut() {
        let mut pair = Pair::new();
        let sending = std::thread::spawn(move || {
            pair.hub.0.send(Kind::Data, &[1; 2 * PIECE + 1]).unwrap();
            pair.hub.0.send(Kind::Close, &[]).unwrap();
        });
        let lengths: Vec<usize> = (0..4).map(|_| pair.pod.1.receive().unwrap().1.len()).collect();
        assert_eq!(lengths, [PIECE, PIECE, 1, 0]);
        sending.join().unwrap();
    }

    #[test]
    fn a_message_that_ends_early_is_no_end() {
        for left in [0, 1, 2, 10] {
            let mut pair = Pair::new();
            let record = pair.taken(1).remove(0);
            pair.near.write_all(&record[..left]).unwrap();
            pair.near.shutdown(Shutdown::Write).unwrap();
            let heard = pair.pod.1.receive();
            match left {
                0 => assert!(matches!(heard, Err(SealError::Closed)), "{heard:?}"),
                _ => assert!(matches!(heard, Err(SealError::Truncated)), "{left}: {heard:?}"),
            }
        }
        // Too short for a tag.
        let mut pair = Pair::new();
        pair.near.write_all(&[0, 3, 1, 2, 3]).unwrap();
        assert!(matches!(pair.pod.1.receive(), Err(SealError::Record)));
    }

    #[test]
    fn a_connection_ends_when_its_numbers_are_used() {
        let mut pair = Pair::new();
        // The last number is the protocol's own.
        (pair.hub.0.next, pair.pod.1.next) = (u64::MAX - 1, u64::MAX - 1);
        pair.hub.0.send(Kind::Data, &[7]).unwrap();
        assert_eq!(pair.pod.1.receive().unwrap(), (Kind::Data, vec![7]));
        assert!(matches!(pair.hub.0.send(Kind::Data, &[8]), Err(SealError::Exhausted)));
        pair.near.write_all(&[&[0, 17][..], &[0; 17]].concat()).unwrap();
        assert!(matches!(pair.pod.1.receive(), Err(SealError::Exhausted)));
    }

    /// Why the pod sends away who greets so.
    fn refused(greeting: &[u8]) -> SealError {
        let (mut near, far) = streams();
        near.write_all(greeting).unwrap();
        near.shutdown(Shutdown::Write).unwrap();
        meet(&far, HELD, Side::Pod, None).err().unwrap()
    }

    #[test]
    fn who_does_not_greet_with_the_token_is_refused() {
        let (near, far) = streams();
        let hub = std::thread::spawn(move || meet(&near, b"another token", Side::Hub, None).err());
        assert!(matches!(meet(&far, HELD, Side::Pod, None), Err(SealError::Token)));
        drop(far);
        assert!(matches!(hub.join().unwrap(), Some(SealError::Closed)));
        // Another version of the relay.
        assert!(matches!(refused(b"dynorly1 and thirty-two random bytes"), SealError::Greeting(25_721)));
        assert!(matches!(refused(&[&[0, 48][..], &[7; 48]].concat()), SealError::Token));
        assert!(matches!(refused(&[0, 48, 7]), SealError::Truncated));
    }

    /// A connection as an eavesdropper has recorded it.
    struct Recorded {
        hub: Vec<u8>,
        pod: Vec<u8>,
        record: Vec<u8>,
    }

    fn recorded() -> Recorded {
        let (mut hub, mut pod) = (handshake(HELD, Side::Hub).unwrap(), handshake(HELD, Side::Pod).unwrap());
        let first = greeting(&mut hub).unwrap();
        greeted(&mut pod, &first).unwrap();
        let second = greeting(&mut pod).unwrap();
        greeted(&mut hub, &second).unwrap();
        let mut record = vec![0; 5 + TAG_BYTES];
        let keys = hub.into_stateless_transport_mode().unwrap();
        keys.write_message(0, b"words", &mut record).unwrap();
        let mut opened = [0; 5];
        let keys = pod.into_stateless_transport_mode().unwrap();
        keys.read_message(0, &record, &mut opened).unwrap();
        assert_eq!(&opened, b"words");
        Recorded { hub: first.to_vec(), pod: second.to_vec(), record }
    }

    #[test]
    fn a_recorded_connection_stays_closed_to_who_learns_the_token() {
        let (one, other) = (recorded(), recorded());
        assert_ne!(one.hub, other.hub);
        assert_ne!(one.pod, other.pod);
        assert_ne!(one.record, other.record, "one token, the same words");
        // In the pod's place the hub's greeting can be answered, but by keys of another pair.
        let mut pod = handshake(HELD, Side::Pod).unwrap();
        greeted(&mut pod, &one.hub).unwrap();
        greeting(&mut pod).unwrap();
        let keys = pod.into_stateless_transport_mode().unwrap();
        assert_eq!(keys.read_message(0, &one.record, &mut [0; 5]), Err(snow::Error::Decrypt));
        // In the hub's place not even the pod's greeting opens.
        let mut hub = handshake(HELD, Side::Hub).unwrap();
        greeting(&mut hub).unwrap();
        assert!(matches!(greeted(&mut hub, &one.pod), Err(SealError::Token)));
    }
}
