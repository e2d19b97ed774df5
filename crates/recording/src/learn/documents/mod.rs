//! Learning from MongoDB's commands: collections, and operations on them.
//!
//! ```text
//! entry --command_shapes--> form of the command, its values by their places (value_stats)
//!       --collections--> documents that are inserted, fields that documents are asked for by
//!       --text--> a workload of documents (docs/documents.md)
//! ```

mod collections;
mod command_shapes;
mod text;
mod value_stats;

use super::arrivals::Arrivals;
use super::findings::COMPARED;
use super::reuse::ReuseDistances;
use crate::entry::{Entry, RecordedKind};
use crate::format::{RecordedEvent, RecordingError, RecordingHeader, RecordingReader};
use crate::replay::{Chooser, RecordingSurvey, ReplayOptions};
use collections::{CollectionStats, Watcher};
use command_shapes::{FormPart, Unlearned, build_form, note_body};
use dyno_types::bson::{self, kind};
use dyno_types::command::ReplyKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(super) use text::write_workload;

/// Forms of commands that are told apart while a recording is read.
const FORMS: usize = 4_096;

/// Collections that are told apart.
const COLLECTIONS: usize = 256;

/// Commands of one form.
#[derive(Debug)]
struct LearnedForm {
    name: String,
    collection: String,
    count: u64,
    form: FormPart,
}

/// What was read of a recording.
#[derive(Default)]
pub(super) struct LearnedDocuments {
    /// The database of most commands; those of others are left out.
    database: String,
    collections: BTreeMap<String, CollectionStats>,
    /// By name, collection and form.
    forms: BTreeMap<(String, String, String), LearnedForm>,
    arrivals: Arrivals,
    reuse: ReuseDistances,
    left_out: BTreeMap<&'static str, u64>,
    /// Batches of cursors.
    batches: u64,
    transactions: u64,
}

/// Reasons for which a command is not learned.
mod reason {
    pub const OTHER_DATABASES: &str = "commands of other databases than the one with the most commands";
    pub const SETUP: &str =
        "commands that set up connections, ask a server what it is, make collections, or end sessions";
    pub const PATTERNS: &str = "commands with patterns, code, places or searches in texts";
    pub const LONG: &str = "commands whose form is very long, or that came after all that are told apart";
    pub const WRITES_OUT: &str = "aggregations that write into a collection ($out, $merge)";
    pub const NO_COLLECTION: &str = "commands of no collection";
    pub const DAMAGED: &str = "commands that are no well-formed documents";
}

/// Commands that are learned.
const LEARNED: [&str; 8] =
    ["aggregate", "count", "delete", "distinct", "find", "findAndModify", "insert", "update"];

/// Returns whether an aggregation writes what it finds into a collection.
fn writes_out(body: &[u8]) -> bool {
    let Some(pipeline) = bson::find_element(body, "pipeline").and_then(|pipeline| pipeline.as_document())
    else {
        return false;
    };
    let stages = bson::read_elements(pipeline).into_iter().flatten().map_while(Result::ok);
    stages
        .filter_map(|stage| stage.as_document())
        .any(|stage| ["$out", "$merge"].iter().any(|name| bson::find_element(stage, name).is_some()))
}

/// The database of most commands that would be learned.
fn usual_database(path: &Path) -> Result<String, RecordingError> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut reader = RecordingReader::open_file(path)?;
    let mut entry = Entry::default();
    while let Some(event) = reader.next_event(&mut entry)? {
        let arguments = &entry.arguments;
        if event == RecordedEvent::Entry && arguments.count() == 3 && arguments.is_one_of(&LEARNED) {
            let name = String::from_utf8_lossy(arguments.word(1)).into_owned();
            if counts.len() < COLLECTIONS || counts.contains_key(&name) {
                *counts.entry(name).or_default() += 1;
            }
        }
    }
    Ok(counts.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name).unwrap_or_default())
}

/// Reads a recording of MongoDB.
///
/// # Errors
/// It cannot be read, or holds nothing to learn from.
pub(super) fn read_documents(
    path: &Path,
    (header, survey): (&RecordingHeader, &RecordingSurvey),
    options: &ReplayOptions,
) -> Result<LearnedDocuments, RecordingError> {
    let mut learned = LearnedDocuments { database: usual_database(path)?, ..LearnedDocuments::default() };
    let mut reader = RecordingReader::open_file(path)?;
    let mut chooser = Chooser::new(options, header.protocol);
    let mut entry = Entry::default();
    while let Some(event) = reader.next_event(&mut entry)? {
        if event == RecordedEvent::Entry && survey.sends(options, &mut chooser, &entry) {
            let half = usize::from(entry.at_ns > survey.length_ns / 2);
            if let Err(reason) = learned.note_entry(&entry, half) {
                *learned.left_out.entry(reason).or_default() += 1;
            }
        }
    }
    let has_inserts = learned.collections.values().any(|one| !one.insert_sizes.is_empty());
    if learned.forms.is_empty() && !has_inserts {
        return Err(RecordingError::Empty);
    }
    Ok(learned)
}

impl LearnedDocuments {
    fn note_entry(&mut self, entry: &Entry, half: usize) -> Result<(), &'static str> {
        let arguments = &entry.arguments;
        if arguments.count() != 3 {
            return Err(reason::DAMAGED);
        }
        if arguments.long_value(2).is_some() {
            return Err(reason::LONG);
        }
        let (name, body) = (String::from_utf8_lossy(arguments.word(0)).into_owned(), arguments.word(2));
        bson::check(body).map_err(|_| reason::DAMAGED)?;
        let name = if name == "findandmodify" { "findAndModify".to_owned() } else { name };
        match name.as_str() {
            "getMore" => {
                self.batches += 1;
                return Ok(());
            }
            "createIndexes" => self.note_indexes(arguments.word(1), body),
            _ => {}
        }
        if !LEARNED.contains(&name.as_str()) {
            return Err(reason::SETUP);
        }
        if arguments.word(1) != self.database.as_bytes() {
            return Err(reason::OTHER_DATABASES);
        }
        let first = bson::read_elements(body).ok().and_then(|mut all| all.next()?.ok());
        let collection = first.and_then(|first| first.as_str()).ok_or(reason::NO_COLLECTION)?.to_owned();
        let is_own = collection.is_empty() || collection.starts_with("system.") || collection.contains('$');
        if is_own {
            return Err(reason::SETUP);
        }
        if self.collections.len() >= COLLECTIONS && !self.collections.contains_key(&collection) {
            return Err(reason::LONG);
        }
        let is_in_transaction = bson::find_element(body, "autocommit").is_some();
        self.transactions += u64::from(is_in_transaction);
        if name == "aggregate" && writes_out(body) {
            return Err(reason::WRITES_OUT);
        }
        if name == "insert" {
            self.note_insert(&collection, body);
            self.arrivals.note(entry.at_ns);
            return Ok(());
        }
        let (written, form) = build_form(body).map_err(|why| match why {
            Unlearned::Pattern => reason::PATTERNS,
            Unlearned::TooLong => reason::LONG,
        })?;
        let key = (name.clone(), collection.clone(), written);
        if self.forms.len() >= FORMS && !self.forms.contains_key(&key) {
            return Err(reason::LONG);
        }
        self.arrivals.note(entry.at_ns);
        let stats = self.collections.entry(collection.clone()).or_default();
        let found = entry.reply.as_ref().filter(|reply| reply.kind == RecordedKind::Reply(ReplyKind::Array));
        if let Some(reply) = found.filter(|_| name == "find") {
            stats.most_found = stats.most_found.max(reply.size);
        }
        let reuse = &mut self.reuse;
        let mut on_key = |hash| {
            if reuse.requests() < COMPARED {
                reuse.note_request(hash, half);
            }
        };
        let learned = self.forms.entry(key).or_insert_with(|| LearnedForm {
            name,
            collection: collection.clone(),
            count: 0,
            form,
        });
        learned.count += 1;
        let mut watcher = Watcher { name: &collection, stats, on_key: &mut on_key };
        note_body(&mut learned.form, body, &mut watcher);
        Ok(())
    }

    fn note_insert(&mut self, collection: &str, body: &[u8]) {
        let stats = self.collections.entry(collection.to_owned()).or_default();
        let Some(documents) = bson::find_element(body, "documents").and_then(|list| list.as_document())
        else {
            return;
        };
        let mut count = 0u32;
        for document in bson::read_elements(documents).into_iter().flatten().flatten() {
            stats.inserted.note(&document);
            count += 1;
        }
        // Many sizes are few operations: above eight they are powers of two.
        let size = if count <= 8 { count } else { count.checked_next_power_of_two().unwrap_or(count) };
        *stats.insert_sizes.entry(size.clamp(1, 100_000)).or_default() += 1;
    }

    /// Indexes of fields in one direction or the other.
    fn note_indexes(&mut self, database: &[u8], body: &[u8]) {
        let of = bson::find_element(body, "createIndexes").and_then(|of| of.as_str().map(str::to_owned));
        let Some(of) = of.filter(|_| database == self.database.as_bytes()) else { return };
        let list = bson::find_element(body, "indexes").and_then(|list| list.as_document());
        let list = list.and_then(|list| bson::read_elements(list).ok());
        let mut made = BTreeSet::new();
        for index in list.into_iter().flatten().flatten().filter(|one| one.kind == kind::DOCUMENT) {
            let key = bson::find_element(index.value, "key").and_then(|key| key.as_document());
            let fields = key.and_then(|key| bson::read_elements(key).ok()).into_iter().flatten().flatten();
            let fields: Option<Vec<(String, i64)>> = fields
                .map(|field| {
                    let way = field.as_i64().filter(|way| [1, -1].contains(way))?;
                    Some((String::from_utf8(field.name.to_vec()).ok()?, way))
                })
                .collect();
            made.extend(fields.filter(|fields| !fields.is_empty()));
        }
        self.collections.entry(of).or_default().indexes.extend(made);
    }
}

#[cfg(test)]
mod tests;
