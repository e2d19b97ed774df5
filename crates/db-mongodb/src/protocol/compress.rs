//! OP_COMPRESSED both ways. Contexts and buffers are kept, so that a warm codec allocates nothing.

use super::message::{HEADER, Header, NotMessage, code, end, int};
use dyno_types::limits::MESSAGE_BYTES;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Compression of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Compressor {
    /// Snappy.
    Snappy = 1,
    /// zlib.
    Zlib = 2,
    /// Zstandard.
    Zstd = 3,
}

impl Compressor {
    /// All of them.
    pub const ALL: [Compressor; 3] = [Compressor::Snappy, Compressor::Zlib, Compressor::Zstd];

    /// Name in URIs and greetings.
    pub fn name(self) -> &'static str {
        match self {
            Compressor::Snappy => "snappy",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }

    /// The compressor of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }
}

/// Compresses and expands messages.
pub struct Codec {
    snappy: (snap::raw::Encoder, snap::raw::Decoder),
    zlib: (Compress, Decompress),
    zstd: Option<(zstd::bulk::Compressor<'static>, zstd::bulk::Decompressor<'static>)>,
}

impl Codec {
    /// A codec; `zlib_level` from 0 to 9, or -1 for zlib's own choice.
    pub fn new(zlib_level: i8) -> Self {
        let level = u32::try_from(zlib_level).map_or(Compression::default(), Compression::new);
        Codec {
            snappy: (snap::raw::Encoder::new(), snap::raw::Decoder::new()),
            zlib: (Compress::new(level, true), Decompress::new(true)),
            zstd: None,
        }
    }

    /// The contexts of zstd are large: they are made when the first message needs them.
    fn zstd(&mut self) -> Option<&mut (zstd::bulk::Compressor<'static>, zstd::bulk::Decompressor<'static>)> {
        if self.zstd.is_none() {
            self.zstd = zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL)
                .and_then(|c| Ok((c, zstd::bulk::Decompressor::new()?)))
                .ok();
        }
        self.zstd.as_mut()
    }

    /// Appends `message`, a whole one, as an OP_COMPRESSED. What the compressor cannot do goes out as it is.
    pub fn compress_message(&mut self, by: Compressor, message: &[u8], out: &mut Vec<u8>) {
        debug_assert_eq!(int(message, 0), i32::try_from(message.len()).ok(), "a message as a whole");
        let at = out.len();
        let body = &message[HEADER..];
        out.extend_from_slice(&message[..12]);
        out.extend_from_slice(&code::COMPRESSED.to_le_bytes());
        out.extend_from_slice(&message[12..HEADER]);
        out.extend_from_slice(&(body.len() as i32).to_le_bytes());
        out.push(by as u8);
        let from = out.len();
        out.resize(from + most(by, body.len()), 0);
        match self.pack(by, body, &mut out[from..]) {
            Some(n) => {
                out.truncate(from + n);
                end(&mut out[at..], 0);
            }
            None => {
                out.truncate(at);
                out.extend_from_slice(message);
            }
        }
    }

    fn pack(&mut self, by: Compressor, body: &[u8], into: &mut [u8]) -> Option<usize> {
        match by {
            Compressor::Snappy => self.snappy.0.compress(body, into).ok(),
            Compressor::Zlib => {
                let zlib = &mut self.zlib.0;
                zlib.reset();
                let status = zlib.compress(body, into, FlushCompress::Finish).ok()?;
                (status == Status::StreamEnd).then_some(zlib.total_out() as usize)
            }
            Compressor::Zstd => self.zstd()?.0.compress_to_buffer(body, into).ok(),
        }
    }

    /// Expands the body of an OP_COMPRESSED into `into`, replacing what is there; returns the code of the message.
    pub fn expand_body(
        &mut self,
        header: Header,
        body: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<i32, NotMessage> {
        debug_assert_eq!(header.code, code::COMPRESSED);
        let (Some(code), Some(bytes), Some((&by, packed))) =
            (int(body, 0), int(body, 4), body.get(8..).and_then(<[u8]>::split_first))
        else {
            return Err(NotMessage);
        };
        let bytes = usize::try_from(bytes).ok().filter(|&n| n <= MESSAGE_BYTES).ok_or(NotMessage)?;
        // No compressor shrinks this far: a lie about the length must not cost memory.
        if bytes / 66_000 > packed.len() {
            return Err(NotMessage);
        }
        into.resize(bytes, 0);
        let written = match by {
            0 if packed.len() == bytes => {
                into.copy_from_slice(packed);
                Some(bytes)
            }
            1 => self.snappy.1.decompress(packed, into).ok(),
            2 => {
                let zlib = &mut self.zlib.1;
                zlib.reset(true);
                let status = zlib.decompress(packed, into, FlushDecompress::Finish);
                matches!(status, Ok(Status::StreamEnd)).then(|| zlib.total_out() as usize)
            }
            3 => self.zstd().and_then(|z| z.1.decompress_to_buffer(packed, &mut into[..]).ok()),
            _ => None,
        };
        if written == Some(bytes) { Ok(code) } else { Err(NotMessage) }
    }
}

/// The most bytes that `bytes` can become.
fn most(by: Compressor, bytes: usize) -> usize {
    match by {
        Compressor::Snappy => snap::raw::max_compress_len(bytes),
        Compressor::Zlib => bytes + bytes / 1_000 + 128,
        Compressor::Zstd => zstd::zstd_safe::compress_bound(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{read_document, read_header};
    use super::*;
    use dyno_types::bson;
    use proptest::prelude::*;

    fn message(value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let at = super::super::message::begin(&mut out, 3);
        let body = bson::open(&mut out);
        bson::put_binary(&mut out, "a", value);
        bson::close(&mut out, body);
        end(&mut out[at..], 0);
        out
    }

    #[test]
    fn names() {
        for c in Compressor::ALL {
            assert_eq!(Compressor::from_name(c.name()), Some(c));
        }
        assert_eq!(Compressor::from_name("lz4"), None);
    }

    #[test]
    fn lies_about_lengths_are_refused() {
        let mut codec = Codec::new(-1);
        for by in Compressor::ALL {
            let mut out = Vec::new();
            codec.compress_message(by, &message(&[7; 300]), &mut out);
            let header = read_header(&out).unwrap().unwrap();
            let mut into = Vec::new();
            for (at, value) in [(20, 1), (21, 9), (23, 0x7F), (23, 0x80), (24, 9), (25, 0xEE)] {
                let mut bad = out.clone();
                bad[at] = bad[at].wrapping_add(value);
                assert!(codec.expand_body(header, &bad[HEADER..], &mut into).is_err(), "{by:?} {at}");
            }
            for cut in HEADER..out.len() - 1 {
                let _ = codec.expand_body(header, &out[HEADER..cut], &mut into);
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_compressed_is_expanded(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 1..4)) {
            let mut codec = Codec::new(6);
            let mut into = Vec::new();
            for by in Compressor::ALL {
                for value in &values {
                    let plain = message(value);
                    let mut out = b"before".to_vec();
                    codec.compress_message(by, &plain, &mut out);
                    let header = read_header(&out[6..]).unwrap().unwrap();
                    prop_assert_eq!((header.code, header.id, header.bytes), (code::COMPRESSED, 3, out.len() - 6));
                    prop_assert_eq!(codec.expand_body(header, &out[6 + HEADER..], &mut into), Ok(code::MSG));
                    prop_assert_eq!(&into[..], &plain[HEADER..]);
                    let found = bson::find_element(read_document(code::MSG, &into).unwrap(), "a").unwrap();
            prop_assert_eq!(found.as_bytes(), Some(&value[..]));
                }
            }
        }

        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), by in 0u8..5) {
            let mut body = bytes;
            if body.len() > 8 { body[8] = by; body[6] = 0; body[7] = 0; }
            let header = Header { bytes: 16 + body.len(), id: 1, to: 1, code: code::COMPRESSED };
            let _ = Codec::new(-1).expand_body(header, &body, &mut Vec::new());
        }
    }
}
