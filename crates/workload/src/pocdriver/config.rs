//! Settings of what is written and how often.

use crate::ycsb::BadProperty;

/// Meaning of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightMeaning {
    /// Milliseconds of a cycle that each worker goes through, from a place of its own on: shares of its time, as the original
    /// means them since 2020.
    Time,
    /// Proportions of the iterations.
    Counts,
}

/// How much of each kind is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// `-i`: new documents.
    pub inserts: u32,
    /// `-k`: finds by `_id`.
    pub key_queries: u32,
    /// `-r`: finds of a range.
    pub range_queries: u32,
    /// `-u`: updates.
    pub updates: u32,
    /// `-g`: increments of an array's element.
    pub array_updates: u32,
}

impl Weights {
    /// The weights in the order of the fields.
    pub fn all(&self) -> [u32; 5] {
        [self.inserts, self.key_queries, self.range_queries, self.updates, self.array_updates]
    }
}

/// One letter of a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `i`: insert, and push the key.
    Insert,
    /// `u`: update the document on top.
    Update,
    /// `I`: increment a field of the document on top.
    Increment,
    /// `k`: query a key, and push it if it is found.
    KeyQuery,
    /// `K`: push a key without reading it.
    PushKey,
    /// `p`: drop what is on top.
    Pop,
}

impl Step {
    /// The step of a letter.
    pub fn from_letter(letter: char) -> Option<Step> {
        Some(match letter {
            'i' => Step::Insert,
            'u' => Step::Update,
            'I' => Step::Increment,
            'k' => Step::KeyQuery,
            'K' => Step::PushKey,
            'p' => Step::Pop,
            _ => return None,
        })
    }
}

/// Method by which operations, keys and values are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// All alike.
    Uniform,
    /// Keys by a zipfian of exponent 0.99 over so many; everything else alike.
    Zipfian(u64),
    /// The original's since 2020: the clock's milliseconds modulo the number of choices, for operations and keys. All
    /// workers switch together, and keys are a walk.
    Clock,
}

/// The workload as configured.
#[derive(Clone, Debug, PartialEq)]
pub struct PocConfig {
    /// Workers.
    pub workers: u32,
    /// Number of the first worker, `w` of its `_id`s.
    pub first_worker: u32,
    /// Iterations between two bulks.
    pub bulk: u32,
    /// True if a bulk ends at its first failure.
    pub ordered: bool,
    /// Kinds of iterations.
    pub weights: Weights,
    /// Meaning of the weights.
    pub shares: WeightMeaning,
    /// Replaces the weights where it is not empty.
    pub workflow: Vec<Step>,
    /// Updates are done one by one, and return the document.
    pub find_and_modify: bool,
    /// Newest share of a worker's documents that is queried and updated, per cent.
    pub working_set: u32,
    /// Documents of a range query.
    pub range_documents: u32,
    /// Fields that an update sets.
    pub update_fields: u32,
    /// Fields that a query returns; 0 for all.
    pub project_fields: u32,
    /// Method by which things are chosen.
    pub choice: Choice,
    /// Iterations a second, all workers together; 0 for no cap.
    pub per_second: u64,
    /// Fields of a document.
    pub fields: u32,
    /// Levels of nesting.
    pub depth: u32,
    /// Longest text, characters.
    pub text_chars: u32,
    /// Arrays: outer and inner length; 0 for none.
    pub arrays: (u32, u32),
    /// Bytes of the binary field.
    pub binary_bytes: u32,
    /// Names that `location` is drawn from; empty for no such field.
    pub locations: Vec<String>,
    /// Collections: one as the namespace says, or so many with a number behind that name.
    pub collections: u32,
    /// Name of the only collection, or what the names of several begin with.
    pub collection: String,
    /// Operations that take longer than so many milliseconds are counted as slow, for each of these.
    pub thresholds_ms: Vec<u64>,
    /// Indexes on the first leaf fields.
    pub indexes: u32,
    /// Seed.
    pub seed: u64,
    /// "Now" of the date fields, milliseconds since 1970.
    pub now_ms: i64,
}

impl Default for PocConfig {
    fn default() -> Self {
        PocConfig {
            workers: 4,
            first_worker: 0,
            bulk: 512,
            ordered: true,
            weights: Weights { inserts: 100, ..Weights::default() },
            shares: WeightMeaning::Time,
            workflow: Vec::new(),
            find_and_modify: false,
            working_set: 100,
            range_documents: 10,
            update_fields: 1,
            project_fields: 0,
            choice: Choice::Uniform,
            per_second: 0,
            fields: 10,
            depth: 0,
            text_chars: 30,
            arrays: (0, 0),
            binary_bytes: 0,
            locations: Vec::new(),
            collections: 1,
            collection: "POCCOLL".into(),
            thresholds_ms: vec![50],
            indexes: 0,
            seed: 1,
            now_ms: 1_700_000_000_000,
        }
    }
}

/// Shortest text field: the longest word and the space after it must fit.
pub const LEAST_TEXT: u32 = 11;

impl PocConfig {
    /// Returns whether a run that inserts documents of its own also reads or changes others: those that were there before it.
    pub fn mixes_with_others(&self) -> bool {
        if self.workflow.is_empty() {
            let [inserts, others @ ..] = self.weights.all();
            return inserts > 0 && others.iter().any(|weight| *weight > 0);
        }
        let looks_back = |step: &Step| matches!(step, Step::KeyQuery | Step::PushKey);
        self.workflow.contains(&Step::Insert) && self.workflow.iter().any(looks_back)
    }

    /// Returns whether a run changes anything.
    pub fn writes(&self) -> bool {
        if self.workflow.is_empty() {
            let weights = &self.weights;
            return weights.inserts + weights.updates + weights.array_updates > 0;
        }
        self.workflow.iter().any(|step| matches!(step, Step::Insert | Step::Update | Step::Increment))
    }

    /// Refuses what cannot be done; keys are the original's flags.
    pub fn check(&self) -> Result<(), BadProperty> {
        let bad = |flag: &str, value: &dyn ToString, expected: &str| {
            Err(BadProperty::new(flag, value.to_string(), expected))
        };
        if self.workers == 0 || self.workers > 100_000 {
            return bad("--threads", &self.workers, "1 to 100000");
        }
        if self.bulk == 0 || self.bulk > 100_000 {
            return bad("--bulksize", &self.bulk, "1 to 100000 iterations between two bulks");
        }
        if self.text_chars < LEAST_TEXT {
            return bad(
                "--textfieldsize",
                &self.text_chars,
                "11 or more: a shorter text may not hold a single word",
            );
        }
        if self.fields == 0 || self.fields > 1_000_000 {
            return bad("--numfields", &self.fields, "1 to 1000000");
        }
        if self.depth > 60 {
            return bad("--depth", &self.depth, "0 to 60, MongoDB's limit of nesting is 100");
        }
        if self.indexes > self.fields {
            let expected = format!("at most the {} leaf fields of a document (--numfields)", self.fields);
            return bad("--indexes", &self.indexes, &expected);
        }
        if self.indexes > 63 {
            return bad("--indexes", &self.indexes, "at most 63 beside _id, MongoDB's limit");
        }
        if self.working_set == 0 || self.working_set > 100 {
            return bad("--workingset", &self.working_set, "1 to 100 per cent");
        }
        if self.weights.array_updates > 0 && self.arrays.0 == 0 {
            return bad("--arrayupdates", &self.weights.array_updates, "0, or --arrays x:y beside it");
        }
        if self.update_fields == 0 || self.update_fields > self.fields {
            return bad("--updatefields", &self.update_fields, "1 to the number of fields (--numfields)");
        }
        if self.workflow.is_empty() && self.weights.all().iter().all(|w| *w == 0) {
            return bad("--inserts", &0, "a weight above 0 for at least one of -i, -k, -r, -u and -g");
        }
        if self.collections == 0 || self.collections > 100_000 {
            return bad("--collections", &self.collections, "1 to 100000");
        }
        Ok(())
    }
}
