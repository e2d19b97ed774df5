//! One way for all pods of a run: the controller speaks to a hub in one of them, and the hub to every pod.
//!
//! ```text
//! controller                  pod 0                        every pod
//!   near  --- kubectl exec --- hub  --- pod network, sealed --- listen --- dyno worker --stdio
//!                                                                     \--- dyno host --stdio
//! ```
//!
//! A `kubectl exec` costs the controller a process of tens of megabytes, so there is one and not one a worker. What it carries
//! is cut into frames of channels; a channel is the standard input, output and error of one program in one pod. Nobody but the
//! holders of the run's token, which stands in a Secret of the run, can open a connection between pods, or read it (`seal`).
//!
//! What ends: a channel whose program has ended, with how it did; all channels of a hub that is lost; programs in pods whose
//! connection is lost; and a hub to which nobody speaks.

mod hub;
mod near;
mod pod;
mod seal;
#[cfg(test)]
mod tests;

pub use hub::hub;
pub use near::{Channel, Input, Output, Relay};
pub use pod::{Listening, listen};

use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Version of what travels between controller, hub and pods.
const VERSION: u32 = 1;
/// Shortest token, bytes.
const TOKEN_BYTES: usize = 32;
/// Longest payload of a frame or a record; longer ones are cut.
const PIECE: usize = 1 << 17;
/// Longest frame with its head.
const FRAME_BYTES: usize = PIECE + 64;
/// How long a hub, or a connection between pods, goes on without a word.
const SILENCE: Duration = Duration::from_secs(10);
/// Time between two signs of life of hub and pods.
const ALIVE: Duration = Duration::from_secs(1);

/// A program that a pod starts for a channel: nothing else can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// `dyno worker --stdio`.
    Worker,
    /// `dyno host --stdio`.
    Host {
        /// Where its files are.
        directory: Option<String>,
    },
}

impl Service {
    /// Its words behind the program's name.
    pub fn words(&self) -> Vec<&str> {
        match self {
            Service::Worker => vec!["worker", "--stdio"],
            Service::Host { directory: None } => vec!["host", "--stdio"],
            Service::Host { directory: Some(directory) } => vec!["host", "--stdio", "--directory", directory],
        }
    }
}

/// What a frame or a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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

const KINDS: [Kind; 9] = [
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
    fn from_byte(byte: u8) -> io::Result<Kind> {
        KINDS
            .get(usize::from(byte))
            .copied()
            .ok_or_else(|| io::Error::other(format!("a frame of kind {byte}")))
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    version: u32,
    dyno: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Open {
    address: SocketAddr,
    service: Service,
}

/// A piece of a channel.
#[derive(Debug)]
struct Piece {
    channel: u32,
    kind: Kind,
    bytes: Vec<u8>,
}

impl Piece {
    fn put(&self, to: &mut Vec<u8>) {
        put(to, self.channel, self.kind, &self.bytes);
    }
}

/// Length of what follows, channel, kind, payload.
fn put(to: &mut Vec<u8>, channel: u32, kind: Kind, bytes: &[u8]) {
    to.extend_from_slice(&((bytes.len() + 5) as u32).to_le_bytes());
    to.extend_from_slice(&channel.to_le_bytes());
    to.push(kind as u8);
    to.extend_from_slice(bytes);
}

fn write(to: &mut dyn Write, channel: u32, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    let mut frame = Vec::with_capacity(bytes.len() + 9);
    put(&mut frame, channel, kind, bytes);
    to.write_all(&frame)?;
    to.flush()
}

fn read(from: &mut dyn Read) -> io::Result<Piece> {
    let mut head = [0; 9];
    from.read_exact(&mut head)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = word(0) as usize;
    if !(5..=FRAME_BYTES).contains(&length) {
        return Err(io::Error::other(format!("a frame of {length} bytes; is the other end dyno?")));
    }
    // What is announced need not come.
    let mut bytes = Vec::new();
    from.take(length as u64 - 5).read_to_end(&mut bytes)?;
    if bytes.len() < length - 5 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Piece { channel: word(4), kind: Kind::from_byte(head[8])?, bytes })
}

/// Reads frames to the end of what there is; each is written again as it was read.
pub(crate) fn reread(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Ok(piece) = read(&mut bytes) {
        let mut written = Vec::new();
        piece.put(&mut written);
        // Whether it is a greeting of ours or words to open a channel is for those who expect one.
        let _ = (greeted(&piece), serde_json::from_slice::<Open>(&piece.bytes));
        all.push(written);
    }
    all
}

fn hello() -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(&Hello { version: VERSION, dyno: env!("CARGO_PKG_VERSION").into() })?)
}

/// Whether the other end speaks as this one does.
fn greeted(piece: &Piece) -> io::Result<()> {
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

/// Reads a token from a file.
pub fn token(path: &Path) -> io::Result<Vec<u8>> {
    let text = std::fs::read_to_string(path)?;
    let token = text.trim();
    match token.len() >= TOKEN_BYTES {
        true => Ok(token.as_bytes().to_vec()),
        false => {
            Err(io::Error::other(format!("{}: a token has {TOKEN_BYTES} characters or more", path.display())))
        }
    }
}
