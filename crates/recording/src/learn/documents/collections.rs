//! What a recording shows of collections: documents that are inserted, fields that they are asked for by, values that these get.

use super::super::popularity::{Popularity, fit_law};
use super::super::spaces::KeySpace;
use super::super::yaml_text::quoted;
use super::command_shapes::SeenValues;
use super::value_stats::ValueStats;
use dyno_types::bson::{self, Element, kind};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Letters and digits of an `_id` that is a text, at least: fewer would come twice.
const ID_LETTERS: u32 = 12;

/// Fields of a collection that documents are asked for by, at most.
const ASKED: usize = 64;

/// A field that documents are asked for by.
#[derive(Debug, Default)]
pub(super) struct AskedField {
    pub values: ValueStats,
    pub space: KeySpace,
}

/// What is known of a collection.
#[derive(Debug, Default)]
pub(super) struct CollectionStats {
    /// Documents of inserts.
    pub inserted: ValueStats,
    /// Inserts by the number of their documents.
    pub insert_sizes: BTreeMap<u32, u64>,
    /// Fields that documents are asked for by, and the values that fields get.
    pub asked: BTreeMap<String, AskedField>,
    pub set: BTreeMap<String, ValueStats>,
    /// Indexes that are made.
    pub indexes: BTreeSet<Vec<(String, i64)>>,
    /// Most documents that a reply holds.
    pub most_found: u64,
}

/// A field that documents are asked for by, as it was learned.
#[derive(Debug)]
pub(super) struct LearnedField {
    pub popularity: Popularity,
    /// Greatest difference between the curves of popularity.
    pub error: f64,
    /// Values are too many to be told apart.
    pub is_diverse: bool,
    /// Documents have this field, so that a filter may take its value from one.
    pub is_in_documents: bool,
}

/// The fields of a document: a generator, or more of them.
enum FieldTree {
    Generator(String),
    Inner(BTreeMap<String, FieldTree>),
}

impl FieldTree {
    fn write(&self) -> String {
        match self {
            FieldTree::Generator(text) => text.clone(),
            FieldTree::Inner(all) if all.is_empty() => "{}".into(),
            FieldTree::Inner(all) => {
                let fields: Vec<String> =
                    all.iter().map(|(name, tree)| format!("{}: {}", quoted(name), tree.write())).collect();
                format!("{{ {} }}", fields.join(", "))
            }
        }
    }
}

fn tree_of(stats: &ValueStats) -> Option<FieldTree> {
    let fields = stats.usual_fields();
    if stats.usual_kind() != Some(kind::DOCUMENT) || fields.is_empty() {
        return stats.generator().map(FieldTree::Generator);
    }
    let inner = fields.into_iter().filter_map(|(name, stats)| Some((name.clone(), tree_of(stats)?)));
    Some(FieldTree::Inner(inner.collect()))
}

/// Adds the field of a path, where none is there.
fn add_path(fields: &mut BTreeMap<String, FieldTree>, path: &str, stats: &ValueStats) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let is_name = !first.is_empty() && !first.starts_with('$') && !first.bytes().all(|b| b.is_ascii_digit());
    if !is_name {
        return;
    }
    match (fields.get_mut(first), rest) {
        (Some(FieldTree::Inner(inner)), Some(rest)) => add_path(inner, rest, stats),
        (Some(_), _) => {}
        (None, None) => {
            if let Some(tree) = tree_of(stats) {
                fields.insert(first.to_owned(), tree);
            }
        }
        (None, Some(rest)) => {
            let mut inner = BTreeMap::new();
            add_path(&mut inner, rest, stats);
            if !inner.is_empty() {
                fields.insert(first.to_owned(), FieldTree::Inner(inner));
            }
        }
    }
}

impl CollectionStats {
    /// The law of each field that documents are asked for by.
    pub fn learn_fields(&self) -> BTreeMap<String, LearnedField> {
        let tree = self.field_tree();
        let learn = |(path, field): (&String, &AskedField)| {
            let (popularity, error) = fit_law(field.space.counts());
            let is_diverse = path == "_id" || field.values.is_diverse();
            let is_in_documents = path == "_id" || has_path(&tree, path);
            (path.clone(), LearnedField { popularity, error, is_diverse, is_in_documents })
        };
        self.asked.iter().map(learn).collect()
    }

    /// Number of documents, and the field by which it is known: as many as were asked for.
    pub fn count_documents(&self, fields: &BTreeMap<String, LearnedField>) -> (u64, Option<&str>) {
        let diverse = self.asked.iter().filter(|(path, _)| fields[*path].is_diverse);
        let most = diverse.map(|(path, field)| (field.space.keys(), path.as_str())).max();
        match most {
            Some((keys, path)) if keys >= self.most_found => (keys, Some(path)),
            _ => (self.most_found.max(1), None),
        }
    }

    /// The fields of a document but `_id`: those that are inserted, that are asked for, and that get values.
    fn field_tree(&self) -> BTreeMap<String, FieldTree> {
        let mut all = BTreeMap::new();
        for (name, stats) in self.inserted.usual_fields().into_iter().filter(|(name, _)| *name != "_id") {
            drop(tree_of(stats).and_then(|tree| all.insert(name.clone(), tree)));
        }
        let asked = self.asked.iter().map(|(path, field)| (path, &field.values));
        for (path, stats) in asked.chain(self.set.iter()).filter(|(path, _)| *path != "_id") {
            add_path(&mut all, path, stats);
        }
        all
    }

    /// The documents as a workload has them.
    pub fn write_document(&self) -> String {
        let inserted = self.inserted.usual_fields().into_iter().find(|(name, _)| *name == "_id");
        let asked = self.asked.get("_id").map(|asked| &asked.values);
        let id = inserted.map(|(_, stats)| stats).or(asked).and_then(id_generator);
        let mut written: Vec<String> = id.map(|id| format!("\"_id\": {id}")).into_iter().collect();
        let fields = self.field_tree();
        written.extend(fields.iter().map(|(name, tree)| format!("{}: {}", quoted(name), tree.write())));
        if written.is_empty() { "{}".into() } else { format!("{{ {} }}", written.join(", ")) }
    }
}

/// Returns whether documents of these fields have a value at a path.
fn has_path(fields: &BTreeMap<String, FieldTree>, path: &str) -> bool {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    match (fields.get(first), rest) {
        (Some(FieldTree::Inner(inner)), Some(rest)) => has_path(inner, rest),
        (Some(FieldTree::Generator(_)), None) => true,
        _ => false,
    }
}

/// How an `_id` that is no number is made; each document has another.
fn id_generator(stats: &ValueStats) -> Option<String> {
    match stats.usual_kind()? {
        kind::OBJECT_ID => Some("{ $objectId: ~ }".into()),
        kind::BINARY => Some("{ $binary: 16 }".into()),
        kind::STRING => {
            let (least, most) = stats.text_lengths()?;
            Some(format!("{{ $string: [{}, {}] }}", least.max(ID_LETTERS), most.max(ID_LETTERS)))
        }
        _ => None,
    }
}

/// Notes what a command shows of a collection; `on_key` hears the hash of each value that is asked for.
pub(super) struct Watcher<'a> {
    pub name: &'a str,
    pub stats: &'a mut CollectionStats,
    pub on_key: &'a mut dyn FnMut(u64),
}

impl Watcher<'_> {
    fn note_one(&mut self, path: &str, value: &Element<'_>) {
        if self.stats.asked.len() >= ASKED && !self.stats.asked.contains_key(path) {
            return;
        }
        let field = self.stats.asked.entry(path.to_owned()).or_default();
        field.values.note(value);
        // The same hashes each time, so that what is learned is the same.
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let hash = hasher.hash_one((self.name, path, value.kind, value.value));
        field.space.note_hash(hash, field.space.requests);
        (self.on_key)(hash);
    }
}

impl SeenValues for Watcher<'_> {
    fn note_asked(&mut self, path: &str, value: &Element<'_>) {
        match value.kind {
            kind::ARRAY => {
                let items = bson::read_elements(value.value).into_iter().flatten().flatten();
                items.for_each(|item| self.note_one(path, &item));
            }
            // That a field is missing says nothing of a document's.
            kind::NULL | kind::DOCUMENT => {}
            _ => self.note_one(path, value),
        }
    }

    fn note_set(&mut self, path: &str, value: &Element<'_>) {
        if self.stats.set.len() < ASKED || self.stats.set.contains_key(path) {
            self.stats.set.entry(path.to_owned()).or_default().note(value);
        }
    }
}
