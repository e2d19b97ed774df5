//! Writes a recording as it comes.

use super::codec::{put_entry, put_late};
use super::{
    BLOCK_BYTES, END_MAGIC, MAGIC, RecordedProtocol, RecordingError, RecordingHeader, RecordingTotals,
};
use crate::anonymise::Anonymiser;
use crate::credentials::{CREDENTIALS, Credentials, of_command};
use crate::entry::{Entry, RecordedReply};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

/// Level of compression: one core packs some hundred megabytes a second.
const LEVEL: i32 = 1;

/// Names of commands that are counted, each for itself, at most.
const NAMES: usize = 1_000;

/// Longest name that is counted for itself, bytes.
const NAME_BYTES: usize = 64;

/// Name under which all others are counted.
const OTHER_NAMES: &str = "OTHER";

/// A recording that is being written. Without [`RecordingWriter::finish`] it has no end, as if it had been cut off.
pub struct RecordingWriter<W: Write> {
    out: W,
    block: Vec<u8>,
    packed: Vec<u8>,
    records: u32,
    before_ns: u64,
    compressor: Compressor<'static>,
    totals: RecordingTotals,
    protocol: RecordedProtocol,
    is_data_set: bool,
    /// Names of commands are counted under the number of their place here, not under a new text each.
    name: String,
    anonymiser: Option<Anonymiser>,
    /// Connections in a transaction, where words are changed: whether a command of it is left out.
    transactions: HashMap<u32, bool>,
}

impl RecordingWriter<BufWriter<File>> {
    /// A new file, which only its owner can read.
    ///
    /// # Errors
    /// The file is there already, or cannot be made.
    pub fn create_file(path: &Path, header: &RecordingHeader) -> Result<Self, RecordingError> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        RecordingWriter::new(BufWriter::with_capacity(BLOCK_BYTES, file), header)
    }
}

impl<W: Write> RecordingWriter<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn new(mut out: W, header: &RecordingHeader) -> Result<Self, RecordingError> {
        let text = serde_json::to_vec(header).map_err(std::io::Error::other)?;
        out.write_all(MAGIC)?;
        out.write_all(&(text.len() as u32).to_le_bytes())?;
        out.write_all(&text)?;
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(RecordingWriter {
            out,
            block: Vec::with_capacity(BLOCK_BYTES * 2),
            packed: Vec::new(),
            records: 0,
            before_ns: 0,
            compressor,
            totals: RecordingTotals::default(),
            protocol: header.protocol,
            is_data_set: header.is_data_set(),
            name: String::new(),
            anonymiser: None,
            transactions: HashMap::new(),
        })
    }

    /// Puts other words in place of those of the commands that follow.
    ///
    /// # Errors
    /// The recording is a snapshot of Redis, or keeps slots and is none of Redis.
    pub fn anonymise_with(mut self, anonymiser: Anonymiser) -> Result<Self, RecordingError> {
        if !Anonymiser::knows(self.protocol, self.is_data_set) {
            return Err(RecordingError::NotAnonymised);
        }
        if anonymiser.keeps_slots() && self.protocol != RecordedProtocol::Redis {
            return Err(RecordingError::NoSlots(self.protocol));
        }
        self.anonymiser = Some(anonymiser);
        Ok(self)
    }

    /// Appends a command, and returns its number: commands come in the order of their times. Credentials are taken out of it;
    /// `None` if nothing of it may be kept.
    ///
    /// # Errors
    /// A full block cannot be written.
    pub fn push_entry(&mut self, entry: &Entry) -> Result<Option<u64>, RecordingError> {
        let found = of_command(self.protocol, &entry.arguments);
        let cleaned;
        let entry = match found {
            Credentials::None => entry,
            Credentials::Without(arguments) => {
                self.leave_out("credentials within a command", 1);
                cleaned = Entry { arguments, reply: entry.reply.clone(), ..*entry };
                &cleaned
            }
            Credentials::LeftOut => {
                self.leave_out(CREDENTIALS, 1);
                return Ok(None);
            }
        };
        let anonymous;
        let entry = match &mut self.anonymiser {
            None => entry,
            Some(anonymiser) => {
                let in_transaction = self.transactions.get_mut(&entry.connection);
                let arguments = match anonymiser.change_command(self.protocol, entry) {
                    Ok(arguments) => arguments,
                    Err(reason) => {
                        in_transaction.into_iter().for_each(|has_holes| *has_holes = true);
                        self.leave_out(reason, 1);
                        return Ok(None);
                    }
                };
                let mut reply = entry.reply.clone();
                if arguments.is_named("MULTI") {
                    self.transactions.insert(entry.connection, false);
                } else if arguments.is_named("EXEC") || arguments.is_named("DISCARD") {
                    // Its reply has an element for what is left out, too.
                    reply = reply.filter(|_| self.transactions.remove(&entry.connection) != Some(true));
                }
                anonymous = Entry { arguments, reply, ..*entry };
                &anonymous
            }
        };
        put_entry(entry, self.before_ns, &mut self.block);
        self.before_ns = entry.at_ns;
        self.count_entry(entry);
        self.close_full_block()?;
        Ok(Some(self.totals.commands - 1))
    }

    fn count_entry(&mut self, entry: &Entry) {
        self.records += 1;
        let totals = &mut self.totals;
        totals.commands += 1;
        totals.length_ns = totals.length_ns.max(entry.at_ns);
        totals.connections = totals.connections.max(u64::from(entry.connection) + 1);
        totals.replies += u64::from(entry.reply.is_some());
        totals.bytes += entry.arguments.length();
        self.name.clear();
        if !entry.arguments.is_empty() {
            let name = entry.arguments.word(0);
            let capitals = name.iter().take(NAME_BYTES + 1).map(|byte| byte.to_ascii_uppercase() as char);
            self.name.extend(capitals);
        }
        let is_room = totals.by_name.len() < NAMES && self.name.chars().count() <= NAME_BYTES;
        match totals.by_name.get_mut(&self.name) {
            Some(count) => *count += 1,
            None if is_room => drop(totals.by_name.insert(self.name.clone(), 1)),
            None => *totals.by_name.entry(OTHER_NAMES.to_owned()).or_default() += 1,
        }
    }

    /// Appends the reply to command `number`, which was appended without one.
    ///
    /// # Errors
    /// A full block cannot be written.
    pub fn push_late_reply(&mut self, number: u64, reply: &RecordedReply) -> Result<(), RecordingError> {
        debug_assert!(number < self.totals.commands, "a reply comes after its command");
        put_late(number, reply, &mut self.block);
        self.records += 1;
        self.totals.replies += 1;
        self.close_full_block()
    }

    /// Counts what was seen and cannot be recorded, by its reason.
    pub fn leave_out(&mut self, reason: &str, count: u64) {
        if count > 0 {
            *self.totals.left_out.entry(reason.to_owned()).or_default() += count;
        }
    }

    /// Counts so far.
    pub fn totals_so_far(&self) -> &RecordingTotals {
        &self.totals
    }

    fn close_full_block(&mut self) -> Result<(), RecordingError> {
        if self.block.len() >= BLOCK_BYTES { self.close_block() } else { Ok(()) }
    }

    /// Writes what is there, so that it outlives this process.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn close_block(&mut self) -> Result<(), RecordingError> {
        if self.records == 0 {
            return Ok(());
        }
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(self.block.len()));
        let length = self.compressor.compress_to_buffer(&self.block, &mut self.packed)?;
        for number in [length as u32, self.block.len() as u32, self.records] {
            self.out.write_all(&number.to_le_bytes())?;
        }
        self.out.write_all(&self.packed)?;
        self.out.flush()?;
        self.block.clear();
        (self.records, self.before_ns) = (0, 0);
        Ok(())
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// The rest cannot be written.
    pub fn finish(mut self) -> Result<RecordingTotals, RecordingError> {
        self.close_block()?;
        let text = serde_json::to_vec(&self.totals).map_err(std::io::Error::other)?;
        self.out.write_all(&0u32.to_le_bytes())?;
        self.out.write_all(&text)?;
        self.out.write_all(&(text.len() as u32).to_le_bytes())?;
        self.out.write_all(END_MAGIC)?;
        self.out.flush()?;
        Ok(self.totals)
    }
}
