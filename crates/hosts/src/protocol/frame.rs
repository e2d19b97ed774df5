//! Frames: a length of four bytes (little-endian), a byte that says what follows, and the bytes themselves.

use dyno_engine::Second;
use dyno_record::{SparseTotals, Totals, codec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};

/// Longest frame: a second with all its histograms full is below 8 MiB.
pub const FRAME_BYTES: usize = 32 << 20;

/// Room that is made for a frame before it has come.
const AT_ONCE: usize = 256 << 10;

/// Kind and number before a worker's frame within a group's.
const MEMBER_HEAD: usize = 5;

const MESSAGE: u8 = 1;
const SECOND: u8 = 2;
const WHOLE: u8 = 3;
const MEMBER: u8 = 4;

/// Why a frame could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other end has closed between two frames.
    #[error("the other end has closed")]
    Closed,
    /// The pipe failed, or ended within a frame.
    #[error("the pipe failed: {0}")]
    Pipe(#[from] io::Error),
    /// The bytes are no frame of this protocol.
    #[error("{0}")]
    Malformed(String),
}

/// Content of a frame.
#[derive(Debug)]
pub enum Frame<M> {
    /// A message.
    Message(M),
    /// A second of load.
    Second(Box<Second>),
    /// All that the sender has measured in a phase, without the warm-up.
    Whole(Box<Totals>),
}

/// The bytes of a frame.
pub fn encode_frame<M: Serialize>(frame: &Frame<&M>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    match frame {
        Frame::Message(message) => {
            bytes.push(MESSAGE);
            serde_json::to_writer(&mut bytes, message)?;
        }
        Frame::Second(second) => {
            bytes.push(SECOND);
            bytes.extend_from_slice(&second.number.to_le_bytes());
            bytes.push(u8::from(second.warmup));
            codec::encode_totals(&second.totals, &mut bytes);
        }
        Frame::Whole(totals) => {
            bytes.push(WHOLE);
            codec::encode_totals(totals, &mut bytes);
        }
    }
    let length = bytes.len() - 4;
    if length > FRAME_BYTES {
        return Err(io::Error::other(format!("a frame of {length} bytes: at most {FRAME_BYTES}")));
    }
    bytes[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(bytes)
}

/// Writes one frame whole.
pub fn write_frame<M: Serialize>(to: &mut dyn Write, frame: &Frame<&M>) -> io::Result<()> {
    to.write_all(&encode_frame(frame)?)?;
    to.flush()
}

/// A second as it has come: some kilobytes, where its histograms unpacked are hundreds. All workers send theirs at about
/// the same time, and they are unpacked one after another.
#[derive(Debug)]
pub struct PackedSecond(Vec<u8>);

impl PackedSecond {
    /// The second.
    ///
    /// # Errors
    /// It is none.
    pub fn open(&self) -> Result<SparseSecond, FrameError> {
        let Some((head, rest)) = self.0[1..].split_at_checked(9) else {
            return Err(FrameError::Malformed("a second of too few bytes".into()));
        };
        let mut number = [0; 8];
        number.copy_from_slice(&head[..8]);
        let totals = decode_totals(rest)?;
        Ok(SparseSecond { number: u64::from_le_bytes(number), warmup: head[8] != 0, totals })
    }
}

/// A second of load as it is added up.
#[derive(Debug)]
pub struct SparseSecond {
    /// Its number, from the beginning of its phase.
    pub number: u64,
    /// True if it lies in the warm-up.
    pub warmup: bool,
    /// What was measured in it.
    pub totals: SparseTotals,
}

/// All that a worker has measured in a phase, as it has come.
#[derive(Clone, Debug)]
pub struct PackedTotals(Vec<u8>);

impl PackedTotals {
    /// The totals.
    ///
    /// # Errors
    /// They are none.
    pub fn open(&self) -> Result<SparseTotals, FrameError> {
        decode_totals(&self.0[1..])
    }
}

fn decode_totals(bytes: &[u8]) -> Result<SparseTotals, FrameError> {
    codec::decode_totals(bytes).map_err(|error| FrameError::Malformed(error.to_string()))
}

/// Content of a frame, its second packed.
#[derive(Debug)]
pub enum Packed<M> {
    /// A message.
    Message(M),
    /// A second of load.
    Second(PackedSecond),
    /// All that the sender has measured in a phase.
    Whole(PackedTotals),
}

/// Reads one frame whole.
pub fn read_frame<M: DeserializeOwned>(from: &mut dyn Read) -> Result<Frame<M>, FrameError> {
    match read_packed(from)? {
        Packed::Message(message) => Ok(Frame::Message(message)),
        Packed::Second(packed) => packed.open().map(|second| {
            let SparseSecond { number, warmup, totals } = second;
            Frame::Second(Box::new(Second { number, warmup, totals: totals.to_dense() }))
        }),
        Packed::Whole(packed) => packed.open().map(|totals| Frame::Whole(Box::new(totals.to_dense()))),
    }
}

/// Reads one frame whole, and leaves a second packed.
pub fn read_packed<M: DeserializeOwned>(from: &mut dyn Read) -> Result<Packed<M>, FrameError> {
    match read_body(from)? {
        Body::Own(bytes) => unpack(bytes),
        Body::Member(..) => Err(FrameError::Malformed("a frame of a group where there is none".into())),
    }
}

/// A frame without its length.
#[derive(Debug)]
pub enum Body {
    /// Of who writes to the pipe: its kind and the bytes.
    Own(Vec<u8>),
    /// Of a worker of a group: its number in the group; kind and bytes of its own frame.
    Member(u32, Vec<u8>),
}

/// The bytes of a frame, from its kind and the bytes.
pub fn frame_of(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes(), body].concat()
}

/// The bytes of a frame that holds one of a worker of a group; `body` is that one's kind and bytes.
pub fn encode_member(worker: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + MEMBER_HEAD) as u32;
    [&length.to_le_bytes()[..], &[MEMBER], &worker.to_le_bytes(), body].concat()
}

/// Reads one frame whole, and leaves its content as it is.
pub fn read_body(from: &mut dyn Read) -> Result<Body, FrameError> {
    let mut head = [0; 4];
    let mut got = 0;
    while got < head.len() {
        match from.read(&mut head[got..]) {
            Ok(0) if got == 0 => return Err(FrameError::Closed),
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let length = u32::from_le_bytes(head) as usize;
    if length == 0 || length > FRAME_BYTES + MEMBER_HEAD {
        let text = format!("a frame of {length} bytes: expected 1 to {FRAME_BYTES}; is the other end dyno?");
        return Err(FrameError::Malformed(text));
    }
    // A length that is a lie costs no more than what comes.
    let mut bytes = Vec::with_capacity(length.min(AT_ONCE));
    if from.take(length as u64).read_to_end(&mut bytes)? < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    if bytes[0] != MEMBER {
        return Ok(Body::Own(bytes));
    }
    let (Some(worker), true) = (bytes.get(1..5), bytes.len() > 5) else {
        return Err(FrameError::Malformed("a worker's frame of too few bytes".into()));
    };
    let worker = u32::from_le_bytes([worker[0], worker[1], worker[2], worker[3]]);
    Ok(Body::Member(worker, bytes.split_off(5)))
}

/// The content of a frame, from its kind and the bytes; a second stays packed.
///
/// # Errors
/// It is none.
pub fn unpack<M: DeserializeOwned>(body: Vec<u8>) -> Result<Packed<M>, FrameError> {
    match body.first() {
        Some(&MESSAGE) => serde_json::from_slice(&body[1..])
            .map(Packed::Message)
            .map_err(|error| FrameError::Malformed(format!("a message that is none: {error}"))),
        Some(&SECOND) => Ok(Packed::Second(PackedSecond(body))),
        Some(&WHOLE) => Ok(Packed::Whole(PackedTotals(body))),
        kind => {
            let kind = kind.copied().unwrap_or_default();
            Err(FrameError::Malformed(format!("a frame of unknown kind {kind}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::Scale;

    #[test]
    fn frames_come_back_whole_or_not_at_all() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &Frame::Message(&"hello".to_owned())).unwrap();
        let mut totals = Totals::new(2, Scale::Ns64);
        totals.arrivals = 7;
        let second = Second { number: 3, warmup: true, totals };
        write_frame::<String>(&mut bytes, &Frame::Second(Box::new(second))).unwrap();
        let mut whole = Totals::new(2, Scale::Ns64);
        whole.lag.record(77);
        write_frame::<String>(&mut bytes, &Frame::Whole(Box::new(whole.clone()))).unwrap();
        let mut from = bytes.as_slice();
        assert!(matches!(read_frame::<String>(&mut from), Ok(Frame::Message(text)) if text == "hello"));
        match read_frame::<String>(&mut from).unwrap() {
            Frame::Second(second) => {
                assert_eq!((second.number, second.warmup, second.totals.arrivals), (3, true, 7))
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(read_frame::<String>(&mut from), Ok(Frame::Whole(read)) if *read == whole));
        assert!(matches!(read_frame::<String>(&mut from), Err(FrameError::Closed)));
        for cut in 1..bytes.len() {
            let mut from = &bytes[..cut];
            while let Ok(frame) = read_frame::<String>(&mut from) {
                drop(frame);
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bytes in
            [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &[0, 0, 0, 0, 1], &[1, 0, 0, 0, 9], &[2, 0, 0, 0, 1, b'x']]
        {
            let mut from = bytes;
            let read = read_frame::<String>(&mut from);
            assert!(matches!(read, Err(FrameError::Malformed(_))), "{bytes:?}: {read:?}");
        }
    }

    #[test]
    fn a_frame_of_a_worker_comes_back_within_one_of_its_group() {
        let own = encode_frame(&Frame::Message(&"x")).unwrap();
        let bytes = encode_member(7, &own[4..]);
        let Ok(Body::Member(7, body)) = read_body(&mut &bytes[..]) else { panic!("{bytes:?}") };
        assert_eq!(frame_of(&body), own);
        assert!(matches!(unpack::<String>(body), Ok(Packed::Message(text)) if text == "x"));
        assert!(matches!(read_packed::<String>(&mut &bytes[..]), Err(FrameError::Malformed(_))));
        for short in [&encode_member(7, b"")[..], &[3, 0, 0, 0, MEMBER, 0, 0]] {
            assert!(matches!(read_body(&mut &short[..]), Err(FrameError::Malformed(_))), "{short:?}");
        }
    }

    /// Gives one of these at every reading, then the end.
    struct Pieces(Vec<io::Result<&'static [u8]>>);

    impl Read for Pieces {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0)?;
            to[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    /// The message `"x"`, its head in two pieces with an error between them.
    fn broken_by(kind: io::ErrorKind) -> Pieces {
        Pieces(vec![Ok(&[4, 0]), Err(kind.into()), Ok(&[0, 0]), Ok(&[MESSAGE, b'"', b'x', b'"'])])
    }

    #[test]
    fn a_reading_that_a_signal_interrupts_goes_on_and_no_other_does() {
        let read = read_frame::<String>(&mut broken_by(io::ErrorKind::Interrupted));
        assert!(matches!(&read, Ok(Frame::Message(text)) if text == "x"), "{read:?}");
        let read = read_frame::<String>(&mut broken_by(io::ErrorKind::TimedOut));
        assert!(matches!(&read, Err(FrameError::Pipe(e)) if e.kind() == io::ErrorKind::TimedOut), "{read:?}");
    }

    #[test]
    fn an_end_within_a_frame_is_no_close() {
        let whole = [4, 0, 0, 0, MESSAGE, b'"', b'x', b'"'];
        for cut in 1..whole.len() {
            let read = read_frame::<String>(&mut &whole[..cut]);
            let Err(FrameError::Pipe(error)) = &read else { panic!("{cut} bytes: {read:?}") };
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{cut} bytes");
        }
    }

    #[test]
    fn the_longest_frame_is_written_and_read_and_one_byte_more_is_neither() {
        // Beside the text there are the kind and two quotation marks.
        let mut text = "x".repeat(FRAME_BYTES - 3);
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &Frame::Message(&text)).unwrap();
        assert_eq!(bytes.len(), FRAME_BYTES + 4);
        assert!(
            matches!(read_frame::<String>(&mut bytes.as_slice()), Ok(Frame::Message(read)) if read == text)
        );
        text.push('x');
        let mut refused = Vec::new();
        assert!(write_frame(&mut refused, &Frame::Message(&text)).is_err() && refused.is_empty());
        bytes[..4].copy_from_slice(&((FRAME_BYTES + MEMBER_HEAD) as u32 + 1).to_le_bytes());
        let read = read_frame::<String>(&mut bytes.as_slice()).map(drop);
        assert!(matches!(read, Err(FrameError::Malformed(_))), "{read:?}");
    }
}
