//! Records between pods: sealed with keys that follow from the run's token and two random numbers, one of each end.
//!
//! ChaCha20-Poly1305 with a key for each direction of each connection and a counter as nonce: a record that was made by somebody
//! else, changed, left out, repeated or sent back does not open.

use super::{Kind, PIECE};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

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

/// The reading half of a connection.
pub(super) struct Opener {
    from: BufReader<TcpStream>,
    half: Half,
}

impl Opener {
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

/// Exchanges random numbers. Who is at the other end shows with the first record that opens.
pub(super) fn meet(stream: &TcpStream, token: &[u8], side: Side) -> io::Result<(Sealer, Opener)> {
    stream.set_nodelay(true)?;
    let mut own = [0; RANDOM];
    getrandom::fill(&mut own).map_err(io::Error::other)?;
    let (mut to, mut from) = (stream.try_clone()?, BufReader::new(stream.try_clone()?));
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
