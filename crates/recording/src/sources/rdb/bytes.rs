//! Bytes of a snapshot: lengths, strings and what must be kept of them.

use crate::sources::SourceError;
use crc::{CRC_64_REDIS, Crc, Digest, Table};
use dyno_types::limits::RECORD_BYTES;
use std::io::{BufRead, Read};

/// The checksum of snapshots, and of the payloads of DUMP and RESTORE.
pub(super) static CHECKSUM: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// The longest value with all its elements, bytes: a longer one would not fit a block of a recording.
const VALUE_BYTES: usize = RECORD_BYTES as usize;

/// What is wrong with a file, in words.
pub(super) fn damaged(what: &str) -> SourceError {
    SourceError::Unreadable(format!("it is no snapshot that Redis can read: {what}"))
}

/// A length as a snapshot writes it, or the form of a string that is no plain one.
enum Length {
    Plain(u64),
    Encoded(u8),
}

/// Reads a snapshot, and keeps what it has read of a value.
pub(super) struct SnapshotBytes<'a> {
    input: &'a mut dyn BufRead,
    digest: Digest<'static, u64, Table<16>>,
    /// Bytes of the value that is being read.
    pub value: Vec<u8>,
}

impl<'a> SnapshotBytes<'a> {
    pub fn new(input: &'a mut dyn BufRead) -> Self {
        SnapshotBytes { input, digest: CHECKSUM.digest(), value: Vec::new() }
    }

    /// Reads `count` bytes behind those of the value.
    pub fn read_bytes(&mut self, count: u64) -> Result<(), SourceError> {
        let from = self.value.len();
        if count > (VALUE_BYTES - from.min(VALUE_BYTES)) as u64 {
            return Err(damaged("a value longer than 512 MiB"));
        }
        Read::take(&mut *self.input, count).read_to_end(&mut self.value)?;
        if self.value.len() as u64 != from as u64 + count {
            return Err(SourceError::Unreadable("the snapshot is cut off".into()));
        }
        self.digest.update(&self.value[from..]);
        Ok(())
    }

    /// Reads one byte.
    pub fn read_byte(&mut self) -> Result<u8, SourceError> {
        self.read_bytes(1)?;
        Ok(self.value.last().copied().unwrap_or_default())
    }

    fn read_big_endian(&mut self, count: u64) -> Result<u64, SourceError> {
        self.read_bytes(count)?;
        let bytes = &self.value[self.value.len() - count as usize..];
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads a number of eight bytes or less.
    pub fn read_little_endian(&mut self, count: u64) -> Result<u64, SourceError> {
        self.read_bytes(count)?;
        let bytes = &self.value[self.value.len() - count as usize..];
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn read_any_length(&mut self) -> Result<Length, SourceError> {
        let first = self.read_byte()?;
        Ok(match first >> 6 {
            0 => Length::Plain(u64::from(first & 0x3f)),
            1 => Length::Plain(u64::from(first & 0x3f) << 8 | u64::from(self.read_byte()?)),
            2 if first == 0x80 => Length::Plain(self.read_big_endian(4)?),
            2 if first == 0x81 => Length::Plain(self.read_big_endian(8)?),
            3 => Length::Encoded(first & 0x3f),
            _ => return Err(damaged("a length of an unknown form")),
        })
    }

    /// Reads a length, or a number that is written like one.
    pub fn read_length(&mut self) -> Result<u64, SourceError> {
        match self.read_any_length()? {
            Length::Plain(length) => Ok(length),
            Length::Encoded(_) => Err(damaged("expected a length")),
        }
    }

    /// Passes over a string.
    pub fn skip_string(&mut self) -> Result<(), SourceError> {
        match self.read_any_length()? {
            Length::Plain(length) => self.read_bytes(length),
            Length::Encoded(form @ 0..=2) => self.read_bytes(1 << form),
            Length::Encoded(3) => {
                let packed = self.read_length()?;
                self.read_length()?;
                self.read_bytes(packed)
            }
            Length::Encoded(_) => Err(damaged("a string of an unknown form")),
        }
    }

    /// Reads a string that is no part of a value.
    pub fn read_string(&mut self) -> Result<Vec<u8>, SourceError> {
        let from = self.value.len();
        let length = self.read_any_length()?;
        let begin = self.value.len();
        let string = match length {
            Length::Plain(length) => {
                self.read_bytes(length)?;
                self.value[begin..].to_vec()
            }
            Length::Encoded(form @ 0..=2) => {
                let number = self.read_little_endian(1 << form)?;
                // The sign is that of the last byte.
                let unused = 64 - (8 << form);
                (((number << unused) as i64) >> unused).to_string().into_bytes()
            }
            Length::Encoded(3) => {
                let packed = self.read_length()?;
                let length = self.read_length()?;
                let begin = self.value.len();
                self.read_bytes(packed)?;
                unpack_lzf(&self.value[begin..], length)?
            }
            Length::Encoded(_) => return Err(damaged("a string of an unknown form")),
        };
        self.value.truncate(from);
        Ok(string)
    }

    /// Reads the checksum at the end, and compares it; 0 says that the server wrote none.
    pub fn check_end(&mut self) -> Result<(), SourceError> {
        let computed = self.digest.clone().finalize();
        let written = self.read_little_endian(8)?;
        if written != 0 && written != computed {
            return Err(damaged("its checksum is not that of its bytes"));
        }
        Ok(())
    }

    /// Returns whether the file goes on.
    pub fn has_more(&mut self) -> Result<bool, SourceError> {
        Ok(!self.input.fill_buf()?.is_empty())
    }
}

/// Unpacks LZF: a byte below 32 says how many bytes follow as they are (less one), others where the next ones have been before.
fn unpack_lzf(packed: &[u8], length: u64) -> Result<Vec<u8>, SourceError> {
    let wrong = || damaged("a packed string that cannot be unpacked");
    // Three bytes stand for 264 at most.
    if length > (packed.len() as u64).saturating_mul(264) || length > VALUE_BYTES as u64 {
        return Err(wrong());
    }
    let mut out = Vec::with_capacity(length as usize);
    let mut at = 0;
    let next = |at: &mut usize| {
        let byte = packed.get(*at).copied().map(usize::from);
        *at += 1;
        byte.ok_or_else(wrong)
    };
    while at < packed.len() {
        let control = next(&mut at)?;
        if control < 32 {
            out.extend_from_slice(packed.get(at..=at + control).ok_or_else(wrong)?);
            at += control + 1;
            continue;
        }
        let mut count = (control >> 5) + 2;
        if control >> 5 == 7 {
            count += next(&mut at)?;
        }
        let back = (control & 0x1f) << 8 | next(&mut at)?;
        let from = out.len().checked_sub(back + 1).ok_or_else(wrong)?;
        // It may reach over bytes that it makes itself.
        for place in from..from + count {
            out.push(out[place]);
        }
        if out.len() as u64 > length {
            return Err(wrong());
        }
    }
    if out.len() as u64 == length { Ok(out) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_strings_are_those_that_were_packed() {
        // "aaaaaaaaaa": one as it is, then nine from one byte before.
        assert_eq!(unpack_lzf(&[0, b'a', 0xe0, 0, 0], 10).unwrap(), b"aaaaaaaaaa");
        assert_eq!(unpack_lzf(&[2, b'a', b'b', b'c', 0x20, 2], 6).unwrap(), b"abcabc");
        for (packed, length) in [(&[3, b'a'][..], 4), (&[0, b'a', 0x20, 5][..], 4), (&[0, b'a'][..], 2)] {
            assert!(unpack_lzf(packed, length).is_err(), "{packed:?}");
        }
    }

    #[test]
    fn strings_have_five_forms() {
        let all: [(&[u8], &[u8]); 5] = [
            (&[2, b'a', b'b'], b"ab"),
            (&[0x40, 3, b'a', b'b', b'c'], b"abc"),
            (&[0xc0, 0xff], b"-1"),
            (&[0xc1, 0x39, 0x30], b"12345"),
            (&[0xc2, 0, 0, 0, 0x80], b"-2147483648"),
        ];
        for (bytes, string) in all {
            let mut input = bytes;
            assert_eq!(SnapshotBytes::new(&mut input).read_string().unwrap(), string);
        }
    }
}
