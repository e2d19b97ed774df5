//! Where a value of a snapshot ends.

use super::bytes::{SnapshotBytes, damaged};
use crate::sources::SourceError;

/// Bytes of the number of an entry of a stream.
const STREAM_ID: u64 = 16;

/// The first version of snapshots that has a type, at least that of Redis 5.
pub(super) fn least_version(kind: u8) -> u16 {
    match kind {
        0..=15 => 9,
        16..=20 => 10,
        21 => 11,
        _ => 12,
    }
}

/// Passes over a value of a kind.
pub(super) fn skip_value(kind: u8, bytes: &mut SnapshotBytes<'_>) -> Result<(), SourceError> {
    match kind {
        // A string; hashes, lists, sets and sorted sets that are one string (zipmap, ziplist, intset, listpack).
        0 | 9..=13 | 16 | 17 | 20 => bytes.skip_string(),
        // A list, a set, a list of ziplists.
        1 | 2 | 14 => repeat(bytes, |bytes| bytes.skip_string()),
        3 => repeat(bytes, |bytes| {
            bytes.skip_string()?;
            // A score in text: its length, or one of three values.
            match bytes.read_byte()? {
                253..=255 => Ok(()),
                length => bytes.read_bytes(u64::from(length)),
            }
        }),
        // A hash.
        4 => repeat(bytes, |bytes| {
            bytes.skip_string()?;
            bytes.skip_string()
        }),
        5 => repeat(bytes, |bytes| {
            bytes.skip_string()?;
            bytes.read_bytes(8)
        }),
        7 => skip_module_value(bytes),
        15 | 19 | 21 => skip_stream(kind, bytes),
        // A list of nodes, each with its form.
        18 => repeat(bytes, |bytes| {
            bytes.read_length()?;
            bytes.skip_string()
        }),
        // Hashes whose fields expire: the first expiry, then fields with theirs, or one string.
        24 => {
            bytes.read_bytes(8)?;
            repeat(bytes, |bytes| {
                bytes.read_length()?;
                bytes.skip_string()?;
                bytes.skip_string()
            })
        }
        25 => {
            bytes.read_bytes(8)?;
            bytes.skip_string()
        }
        other => Err(damaged(&format!("a value of type {other}, which dyno does not know"))),
    }
}

fn repeat(
    bytes: &mut SnapshotBytes<'_>,
    mut skip: impl FnMut(&mut SnapshotBytes<'_>) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    // Each element reads something, so that a wrong count ends with the file.
    for _ in 0..bytes.read_length()? {
        skip(bytes)?;
    }
    Ok(())
}

fn skip_stream(kind: u8, bytes: &mut SnapshotBytes<'_>) -> Result<(), SourceError> {
    repeat(bytes, |bytes| {
        bytes.skip_string()?;
        bytes.skip_string()
    })?;
    // Length and last entry; later also the first, the last deleted and the number of all.
    for _ in 0..if kind >= 19 { 8 } else { 3 } {
        bytes.read_length()?;
    }
    // Groups: name, last entry, entries read; what is pending; consumers.
    repeat(bytes, |bytes| {
        bytes.skip_string()?;
        for _ in 0..if kind >= 19 { 3 } else { 2 } {
            bytes.read_length()?;
        }
        repeat(bytes, |bytes| {
            bytes.read_bytes(STREAM_ID + 8)?;
            bytes.read_length().map(drop)
        })?;
        repeat(bytes, |bytes| {
            bytes.skip_string()?;
            bytes.read_bytes(if kind >= 21 { 16 } else { 8 })?;
            repeat(bytes, |bytes| bytes.read_bytes(STREAM_ID))
        })
    })
}

fn skip_module_value(bytes: &mut SnapshotBytes<'_>) -> Result<(), SourceError> {
    bytes.read_length()?;
    skip_module_parts(bytes)
}

/// Passes over what a module keeps beside the keys: its name, when it is read, and its data.
pub(super) fn skip_module_data(bytes: &mut SnapshotBytes<'_>) -> Result<(), SourceError> {
    for _ in 0..3 {
        bytes.read_length()?;
    }
    skip_module_parts(bytes)
}

/// Parts of a module's value, each with its kind; the last one is 0.
fn skip_module_parts(bytes: &mut SnapshotBytes<'_>) -> Result<(), SourceError> {
    loop {
        match bytes.read_length()? {
            0 => return Ok(()),
            1 | 2 => drop(bytes.read_length()?),
            3 => bytes.read_bytes(4)?,
            4 => bytes.read_bytes(8)?,
            5 => bytes.skip_string()?,
            _ => return Err(damaged("a module's value of an unknown form")),
        }
    }
}
