//! Reads a recording block by block.

use super::codec::{Record, Records};
use super::{BLOCK_BYTES, END_MAGIC, MAGIC, RecordingError, RecordingHeader, RecordingTotals};
use crate::entry::{Entry, RecordedReply};
use dyno_types::limits::RECORD_BYTES;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use zstd::bulk::Decompressor;

/// Longest header, and longest totals, bytes.
const TEXT_BYTES: u32 = 16 << 20;

/// One thing that a recording tells.
#[derive(Debug, PartialEq, Eq)]
pub enum RecordedEvent {
    /// A command, which is in the entry now.
    Entry,
    /// The reply to command number `number` of the file, which came late.
    LateReply {
        /// Number of the command.
        number: u64,
        /// Its reply.
        reply: RecordedReply,
    },
}

/// A recording that is being read.
pub struct RecordingReader<R: Read> {
    input: R,
    header: RecordingHeader,
    decompressor: Decompressor<'static>,
    packed: Vec<u8>,
    block: Vec<u8>,
    at: usize,
    records: u32,
    totals: Option<RecordingTotals>,
    cut_off: bool,
}

fn read_u32(input: &mut impl Read) -> Result<u32, std::io::Error> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

impl RecordingReader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no recording.
    pub fn open_file(path: &Path) -> Result<Self, RecordingError> {
        RecordingReader::new(BufReader::with_capacity(BLOCK_BYTES, File::open(path)?))
    }

    /// The totals at the file's end; `None` if it was cut off. The place in the file stays.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn peek_totals(path: &Path) -> Result<Option<RecordingTotals>, RecordingError> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let tail = 4 + END_MAGIC.len() as u64;
        if length < tail {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(length - tail))?;
        let (text, mut magic) = (read_u32(&mut file)?, [0; 8]);
        file.read_exact(&mut magic)?;
        if &magic != END_MAGIC || text > TEXT_BYTES || u64::from(text) + tail > length {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(length - tail - u64::from(text)))?;
        let mut bytes = vec![0; text as usize];
        file.read_exact(&mut bytes)?;
        serde_json::from_slice(&bytes).map(Some).map_err(|_| RecordingError::Damaged("its totals"))
    }
}

impl<R: Read> RecordingReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// It cannot be read, or is no recording's.
    pub fn new(mut input: R) -> Result<Self, RecordingError> {
        let mut magic = [0; 8];
        let short = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => RecordingError::NotRecording,
            _ => RecordingError::Io(e),
        };
        input.read_exact(&mut magic).map_err(short)?;
        if &magic != MAGIC {
            return Err(match magic.strip_prefix(b"DYNOREC") {
                Some(version) => RecordingError::Version(String::from_utf8_lossy(version).into_owned()),
                None => RecordingError::NotRecording,
            });
        }
        let length = read_u32(&mut input).map_err(short)?;
        if length > TEXT_BYTES {
            return Err(RecordingError::Damaged("its header"));
        }
        let mut text = vec![0; length as usize];
        input.read_exact(&mut text).map_err(|_| RecordingError::Damaged("it ends within its header"))?;
        let header = serde_json::from_slice(&text).map_err(|_| RecordingError::Damaged("its header"))?;
        Ok(RecordingReader {
            input,
            header,
            decompressor: Decompressor::new()?,
            packed: Vec::new(),
            block: Vec::new(),
            at: 0,
            records: 0,
            totals: None,
            cut_off: false,
        })
    }

    /// Facts about it.
    pub fn header(&self) -> &RecordingHeader {
        &self.header
    }

    /// Its totals, once it was read to its end; `None` before, and of a file that was cut off.
    pub fn totals(&self) -> Option<&RecordingTotals> {
        self.totals.as_ref()
    }

    /// Returns whether the file ended without its end: what came after the last whole block is lost.
    pub fn was_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Reads the next command into `entry`, or says what else came; `None` at the end. `entry` keeps its memory.
    ///
    /// # Errors
    /// The file cannot be read, or holds what no writer makes.
    pub fn next_event(&mut self, entry: &mut Entry) -> Result<Option<RecordedEvent>, RecordingError> {
        if self.records == 0 {
            if !self.read_block()? {
                return Ok(None);
            }
            entry.at_ns = 0;
        }
        let mut records = Records::new(&self.block, self.at);
        let record = records.next_record(entry)?;
        self.at = records.position();
        self.records -= 1;
        if self.records == 0 && self.at != self.block.len() {
            return Err(RecordingError::Damaged("a block is longer than its records"));
        }
        Ok(Some(match record {
            Record::Entry => RecordedEvent::Entry,
            Record::Late(number, reply) => RecordedEvent::LateReply { number, reply },
        }))
    }

    /// Reads the next block; false at the end.
    fn read_block(&mut self) -> Result<bool, RecordingError> {
        if self.totals.is_some() || self.cut_off {
            return Ok(false);
        }
        match self.try_block() {
            Err(RecordingError::Io(e)) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                self.cut_off = true;
                Ok(false)
            }
            other => other,
        }
    }

    fn try_block(&mut self) -> Result<bool, RecordingError> {
        let length = read_u32(&mut self.input)?;
        if length == 0 {
            let mut text = Vec::new();
            (&mut self.input).take(u64::from(TEXT_BYTES)).read_to_end(&mut text)?;
            let end = text.len().checked_sub(4 + END_MAGIC.len());
            let Some(end) = end.filter(|_| text.ends_with(END_MAGIC)) else {
                self.cut_off = true;
                return Ok(false);
            };
            let totals = serde_json::from_slice(&text[..end]);
            self.totals = Some(totals.map_err(|_| RecordingError::Damaged("its totals"))?);
            return Ok(false);
        }
        let (unpacked, records) = (read_u32(&mut self.input)?, read_u32(&mut self.input)?);
        let limit = BLOCK_BYTES as u64 + 2 * RECORD_BYTES;
        if u64::from(unpacked) > limit || u64::from(length) > limit || records == 0 || records > unpacked {
            return Err(RecordingError::Damaged("a block's head"));
        }
        self.packed.clear();
        let read = (&mut self.input).take(u64::from(length)).read_to_end(&mut self.packed)?;
        if read < length as usize {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        self.block.clear();
        self.block.reserve(unpacked as usize);
        let damaged = |_| RecordingError::Damaged("a block does not unpack");
        let got = self.decompressor.decompress_to_buffer(&self.packed, &mut self.block).map_err(damaged)?;
        if got != unpacked as usize {
            return Err(RecordingError::Damaged("a block has another length"));
        }
        (self.at, self.records) = (0, records);
        Ok(true)
    }
}
