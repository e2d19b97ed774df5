//! Frames between controller, hub and pods.

use crate::protocol::service::Service;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// Version of what travels between controller, hub and pods.
pub(super) const VERSION: u32 = 2;
/// Shortest token, bytes.
pub(super) const TOKEN_BYTES: usize = 32;
/// Longest message of the Noise Protocol, in which a record travels between pods.
pub(super) const MESSAGE_BYTES: usize = 65_535;
/// Bytes of the tag that shows that a message is whole and from the other end.
pub(super) const TAG_BYTES: usize = 16;
/// Longest payload of a frame or a record, beside its kind; longer ones are cut.
pub(super) const PIECE: usize = MESSAGE_BYTES - TAG_BYTES - 1;
/// Longest frame with its head.
pub(super) const FRAME_BYTES: usize = PIECE + 64;
/// Time that a connection between pods goes on without a word.
pub(super) const SILENCE: Duration = Duration::from_secs(10);
/// Time between two signs of life of hub and pods.
pub(super) const ALIVE: Duration = Duration::from_secs(1);

/// Kind of a frame or a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first frame, both ways: [`Hello`].
    Hello,
    /// To the hub: [`Open`]; to a pod: [`Service`].
    Open,
    /// Bytes of standard input or output.
    Data,
    /// Bytes of standard error.
    Words,
    /// No more input.
    Close,
    /// The program must not go on.
    Abort,
    /// The channel has ended; how.
    End,
    /// A sign of life.
    Alive,
    /// Bytes for all channels that have been spoken to.
    All,
}

pub(super) const KINDS: [Kind; 9] = [
    Kind::Hello,
    Kind::Open,
    Kind::Data,
    Kind::Words,
    Kind::Close,
    Kind::Abort,
    Kind::End,
    Kind::Alive,
    Kind::All,
];

impl Kind {
    pub(super) fn from_byte(byte: u8) -> io::Result<Kind> {
        KINDS
            .get(usize::from(byte))
            .copied()
            .ok_or_else(|| io::Error::other(format!("a frame of kind {byte}")))
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: u32,
    pub(super) dyno: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Open {
    pub(super) address: SocketAddr,
    pub(super) service: Service,
}

/// A piece of a channel.
#[derive(Debug)]
pub(super) struct ChannelPiece {
    pub(super) channel: u32,
    pub(super) kind: Kind,
    pub(super) bytes: Vec<u8>,
}

impl ChannelPiece {
    pub(super) fn put(&self, to: &mut Vec<u8>) {
        put(to, self.channel, self.kind, &self.bytes);
    }
}

/// Length of what follows, channel, kind, payload.
pub(super) fn put(to: &mut Vec<u8>, channel: u32, kind: Kind, bytes: &[u8]) {
    to.extend_from_slice(&((bytes.len() + 5) as u32).to_le_bytes());
    to.extend_from_slice(&channel.to_le_bytes());
    to.push(kind as u8);
    to.extend_from_slice(bytes);
}

pub(super) fn write(to: &mut dyn Write, channel: u32, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    let mut frame = Vec::with_capacity(bytes.len() + 9);
    put(&mut frame, channel, kind, bytes);
    to.write_all(&frame)?;
    to.flush()
}

pub(super) fn read(from: &mut dyn Read) -> io::Result<ChannelPiece> {
    let mut head = [0; 9];
    from.read_exact(&mut head)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = word(0) as usize;
    if !(5..=FRAME_BYTES).contains(&length) {
        return Err(io::Error::other(format!("a frame of {length} bytes; is the other end dyno?")));
    }
    // Bytes that are announced need not come.
    let mut bytes = Vec::new();
    from.take(length as u64 - 5).read_to_end(&mut bytes)?;
    if bytes.len() < length - 5 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(ChannelPiece { channel: word(4), kind: Kind::from_byte(head[8])?, bytes })
}

/// Reads frames to the end of what there is; each is written again as it was read.
pub fn reread(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Ok(piece) = read(&mut bytes) {
        let mut written = Vec::new();
        piece.put(&mut written);
        // A frame is taken for a greeting of ours, or for words to open a channel, by those who expect one.
        let _ = (greeted(&piece), serde_json::from_slice::<Open>(&piece.bytes));
        all.push(written);
    }
    all
}

pub(super) fn hello() -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(&Hello { version: VERSION, dyno: env!("CARGO_PKG_VERSION").into() })?)
}

/// Returns whether the other end speaks as this one does.
pub(super) fn greeted(piece: &ChannelPiece) -> io::Result<()> {
    if piece.kind != Kind::Hello {
        return Err(io::Error::other("the first word must be hello"));
    }
    let told: Hello = serde_json::from_slice(&piece.bytes)?;
    match told.version == VERSION {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "dyno {} there speaks another protocol than {}: use the same dyno",
            told.dyno,
            env!("CARGO_PKG_VERSION")
        ))),
    }
}
