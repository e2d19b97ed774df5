//! A snapshot of Redis (RDB): the data set, as commands that restore it.
//!
//! Each key becomes one `RESTORE` with the bytes that the server wrote, so that every type and every encoding comes back as it
//! was; nothing of a value is understood but where it ends. Functions become `FUNCTION LOAD`. What a key had left to live when
//! the snapshot was made it has left when it is restored.
//!
//! The format is that of [`rdb.h` and `rdb.c`](https://rdb.fnordig.de/file_format.html), versions 1 to 12 with the types of
//! Redis 7.4 and Valkey 8.

mod bytes;
mod values;

use super::{NewRecording, SourceError};
use crate::entry::{Arguments, Entry};
use crate::format::{
    Lack, RecordedProtocol, RecordingHeader, RecordingPoint, RecordingTotals, RecordingWriter,
};
use bytes::{CHECKSUM, SnapshotBytes, damaged};
use std::io::{BufRead, Write};

/// The latest version whose form is known.
const VERSION: u16 = 12;

/// The source that recordings of snapshots name.
pub const SOURCE: &str = "rdb";

/// Connections over which the keys are spread: their order is of no matter.
pub const CONNECTIONS: u32 = 32;

/// Reasons for what is not in the recording.
const EXPIRED: &str = "keys that had expired when the snapshot was made";
const BEHIND: &str = "appended commands behind the snapshot (the file goes on)";
const OF_MODULES: &str = "data of modules that belong to no key";

/// Returns whether a file begins as a snapshot does.
pub fn is_rdb(head: &[u8]) -> bool {
    head.len() >= 9 && head.starts_with(b"REDIS") && head[5..9].iter().all(u8::is_ascii_digit)
}

/// What is said of a key before the key itself.
#[derive(Default)]
struct KeyFacts {
    expires_ms: Option<u64>,
    /// Its access frequency, or its seconds without access: what the eviction policy goes by.
    eviction: Option<(&'static str, u64)>,
}

/// Records a snapshot.
///
/// # Errors
/// It is no snapshot, or one with types that are not known, or the recording cannot be written.
pub fn record_rdb<W: Write>(
    input: &mut dyn BufRead,
    new: &mut NewRecording<'_, W>,
) -> Result<RecordingTotals, SourceError> {
    let mut bytes = SnapshotBytes::new(input);
    bytes.read_bytes(9)?;
    let version = bytes.value.get(5..9).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    let version: u16 = version.filter(|_| is_rdb(&bytes.value)).ok_or_else(|| damaged("another begin"))?;
    if version == 0 || version > VERSION {
        let message = format!("it is a snapshot of version {version}: versions 1 to {VERSION} can be read");
        return Err(SourceError::Unreadable(message));
    }
    let header = header();
    let mut restored =
        Restored { writer: new.begin(&header)?, version, chosen: Vec::new(), database: 0, count: 0 };
    let mut facts = KeyFacts::default();
    let mut made_ms = None;
    let (mut expired, mut of_modules) = (0, 0);
    loop {
        bytes.value.clear();
        let kind = bytes.read_byte()?;
        match kind {
            // 8 bytes of checksum follow since version 5.
            0xff => {
                if version >= 5 {
                    bytes.check_end()?;
                }
                break;
            }
            0xfe => restored.database = bytes.read_length()?,
            0xfd => facts.expires_ms = Some(bytes.read_little_endian(4)?.saturating_mul(1_000)),
            0xfc => facts.expires_ms = Some(bytes.read_little_endian(8)?),
            0xfb => {
                bytes.read_length()?;
                bytes.read_length()?;
            }
            0xfa => {
                let (name, value) = (bytes.read_string()?, bytes.read_string()?);
                if name == b"ctime" {
                    let seconds: Option<u64> =
                        std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
                    made_ms = seconds.map(|seconds| seconds.saturating_mul(1_000));
                }
            }
            0xf9 => facts.eviction = Some(("FREQ", u64::from(bytes.read_byte()?))),
            0xf8 => facts.eviction = Some(("IDLETIME", bytes.read_length()?)),
            0xf7 => {
                values::skip_module_data(&mut bytes)?;
                of_modules += 1;
            }
            0xf5 => {
                let library = bytes.read_string()?;
                restored.push_library(&library)?;
            }
            // Number and sizes of a slot.
            0xf4 => (0..3).try_for_each(|_| bytes.read_length().map(drop))?,
            kind => {
                let key = bytes.read_string()?;
                values::skip_value(kind, &mut bytes)?;
                let facts = std::mem::take(&mut facts);
                match (facts.expires_ms, made_ms) {
                    (Some(at_ms), Some(made_ms)) if at_ms <= made_ms => expired += 1,
                    _ => restored.push_key(&key, &mut bytes.value, &facts, made_ms)?,
                }
            }
        }
    }
    let mut writer = restored.writer;
    bytes.value.clear();
    writer.leave_out(EXPIRED, expired);
    writer.leave_out(OF_MODULES, of_modules);
    writer.leave_out(BEHIND, u64::from(bytes.has_more()?));
    Ok(writer.finish()?)
}

/// The recording of a snapshot.
struct Restored<W: Write> {
    writer: RecordingWriter<W>,
    /// Version of the snapshot. A payload names the least one that has the value's type: servers that know the type take it.
    version: u16,
    /// By connection: the database that it has chosen.
    chosen: Vec<Option<u64>>,
    /// The database whose keys are read.
    database: u64,
    /// Commands that restore something.
    count: u64,
}

impl<W: Write> Restored<W> {
    fn push_words(&mut self, connection: u32, arguments: Arguments) -> Result<(), SourceError> {
        self.writer.push_entry(&Entry { connection, arguments, ..Entry::default() })?;
        Ok(())
    }

    fn push_library(&mut self, library: &[u8]) -> Result<(), SourceError> {
        self.push_words(0, Arguments::from_words([b"FUNCTION".as_slice(), b"LOAD", b"REPLACE", library]))
    }

    /// Restores a key, of whose value these are the bytes, its kind first.
    fn push_key(
        &mut self,
        key: &[u8],
        value: &mut Vec<u8>,
        facts: &KeyFacts,
        made_ms: Option<u64>,
    ) -> Result<(), SourceError> {
        let connection = (self.count % u64::from(CONNECTIONS)) as u32;
        self.count += 1;
        if self.chosen.len() <= connection as usize {
            self.chosen.push(None);
        }
        // Also the first one: the target's URI may name another.
        if self.chosen[connection as usize].replace(self.database) != Some(self.database) {
            let select = Arguments::from_words([b"SELECT".to_vec(), self.database.to_string().into_bytes()]);
            self.push_words(connection, select)?;
        }
        let kind = value.first().copied().unwrap_or_default();
        value.extend_from_slice(&self.version.min(values::least_version(kind)).to_le_bytes());
        let checksum = CHECKSUM.checksum(value);
        value.extend_from_slice(&checksum.to_le_bytes());
        let ttl_ms = match (facts.expires_ms, made_ms) {
            (None, _) => 0,
            (Some(at_ms), Some(made_ms)) => at_ms - made_ms,
            (Some(at_ms), None) => at_ms,
        };
        let mut arguments = Arguments::from_words([
            b"RESTORE".as_slice(),
            key,
            ttl_ms.to_string().as_bytes(),
            value,
            b"REPLACE",
        ]);
        if facts.expires_ms.is_some() && made_ms.is_none() {
            arguments.push_word(b"ABSTTL");
        }
        if let Some((name, number)) = facts.eviction {
            arguments.push_word(name.as_bytes());
            arguments.push_word(number.to_string().as_bytes());
        }
        self.push_words(connection, arguments)
    }
}

fn header() -> RecordingHeader {
    RecordingHeader {
        protocol: RecordedProtocol::Redis,
        source: SOURCE.into(),
        point: RecordingPoint::Server,
        begins_ns: None,
        clock_step_ns: 0,
        lacks: vec![Lack::Connections, Lack::Replies, Lack::Reads, Lack::Times],
        value_limit: u64::MAX,
    }
}

#[cfg(test)]
mod tests;
