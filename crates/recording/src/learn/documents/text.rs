//! What was learned of MongoDB, as a workload of documents (docs/documents.md) with how well it fits.

use super::super::findings::{
    LearnedWorkload, arrival_findings, gap_findings, is_even, model_findings, start_line,
};
use super::super::model::ModelSpace;
use super::super::popularity::Popularity;
use super::super::yaml_text::quoted;
use super::collections::{CollectionStats, LearnedField};
use super::command_shapes::{FormPart, Meaning};
use super::{LearnedDocuments, LearnedForm};
use crate::format::{Lack, RecordingHeader};
use crate::replay::RecordingSurvey;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Operations of a workload: what a run can tell apart, and room for the rest.
const OPERATIONS: usize = 60;

/// Longest operation, bytes.
const OPERATION: usize = 1 << 20;

/// What is learned of the fields of each collection that documents are asked for by.
type LearnedFields<'a> = BTreeMap<&'a str, BTreeMap<String, LearnedField>>;

/// Writes values of an operation on a collection.
struct OperationWriter<'a> {
    collection: &'a str,
    fields: &'a BTreeMap<String, LearnedField>,
}

impl OperationWriter<'_> {
    /// A value of a field of a document that is there.
    fn reference(&self, path: &str) -> Option<String> {
        // Where a collection's name ends no path tells, if it has a dot.
        let is_plain = path == "_id" || !self.collection.contains('.');
        let field =
            self.fields.get(path).filter(|field| field.is_diverse && field.is_in_documents && is_plain)?;
        let spread = match field.popularity {
            Popularity::Zipfian(theta) => format!("zipfian:{theta}"),
            _ => "uniform".into(),
        };
        Some(match path {
            "_id" => {
                format!(
                    "{{ $key: {{ collection: {}, distribution: \"{spread}\" }} }}",
                    quoted(self.collection)
                )
            }
            _ => {
                let of = quoted(&format!("{}.{path}", self.collection));
                format!("{{ $of: {{ field: {of}, distribution: \"{spread}\" }} }}")
            }
        })
    }

    /// A part of a command; `None` where it has values that a workload cannot make.
    fn write_part(&self, part: &FormPart) -> Option<String> {
        let list = |all: Option<Vec<String>>| all.map(|all| format!("[{}]", all.join(", ")));
        match part {
            FormPart::Fixed(text) => Some(text.clone()),
            FormPart::Document(parts) if parts.is_empty() => Some("{}".into()),
            FormPart::Document(parts) => {
                let field = |(name, part): &(String, FormPart)| {
                    Some(format!("{}: {}", quoted(name), self.write_part(part)?))
                };
                let all: Vec<String> = parts.iter().map(field).collect::<Option<_>>()?;
                Some(format!("{{ {} }}", all.join(", ")))
            }
            FormPart::List(parts) => list(parts.iter().map(|part| self.write_part(part)).collect()),
            FormPart::Alike(part, count) => {
                let one = self.write_part(part)?;
                list(Some(vec![one; *count as usize]))
            }
            FormPart::Value(stats, meaning) => {
                let reference = match meaning {
                    Meaning::Asked(path) => self.reference(path),
                    _ => None,
                };
                match (reference, stats.as_array()) {
                    (Some(one), Some(((least, most), _))) => {
                        Some(format!("{{ $array: {{ length: [{least}, {most}], of: {one} }} }}"))
                    }
                    (Some(one), None) => Some(one),
                    (None, _) => stats.generator(),
                }
            }
        }
    }
}

fn popularity_words(field: &LearnedField) -> String {
    match field.popularity {
        Popularity::Zipfian(theta) => format!("zipfian with exponent {theta}"),
        _ => "all alike".into(),
    }
}

/// The collections, as a workload has them.
fn write_collections(
    learned: &LearnedDocuments,
    fields: &LearnedFields<'_>,
    out: &mut String,
    findings: &mut Vec<String>,
) {
    out.push_str("collections:\n");
    for (name, stats) in &learned.collections {
        let own = &fields[name.as_str()];
        let (count, known_by) = stats.count_documents(own);
        let _ = writeln!(out, "  {}:", quoted(name));
        let _ = writeln!(out, "    count: {count}");
        let _ = writeln!(out, "    document: {}", stats.write_document());
        let indexes: Vec<String> = stats.indexes.iter().map(|index| write_index(index)).collect();
        if !indexes.is_empty() {
            let _ = writeln!(out, "    indexes: [{}]", indexes.join(", "));
        }
        findings.push(match known_by {
            Some(field) => format!("{name}: {count} documents, as many as were asked for by {field}"),
            None => format!("{name}: {count} documents, as many as a reply held, or one"),
        });
        for (path, field) in own.iter().filter(|(_, field)| field.is_diverse) {
            let space = &stats.asked[path].space;
            let estimate = if space.counted_share() < 1.0 { "about " } else { "" };
            findings.push(format!(
                "{name}.{path}: {estimate}{} values, {} requests; popularity {}, off by at most {:.1} % of the requests",
                space.keys(),
                space.requests,
                popularity_words(field),
                field.error * 100.0
            ));
        }
        if stats.inserted.count() == 0 {
            findings.push(format!(
                "{name}: no inserts: its documents have the fields alone that they were asked for by, and that were set"
            ));
        }
        if stats.inserted.rare_fields() > 0 {
            let rare = stats.inserted.rare_fields();
            findings
                .push(format!("{name}: left out: {rare} fields that fewer than half of the documents have"));
        }
    }
}

fn write_index(index: &[(String, i64)]) -> String {
    let fields: Vec<String> = index.iter().map(|(name, way)| format!("{}: {way}", quoted(name))).collect();
    format!("{{ {} }}", fields.join(", "))
}

/// Operations with their weights, the most frequent first.
fn list_operations(
    learned: &LearnedDocuments,
    fields: &LearnedFields<'_>,
    findings: &mut Vec<String>,
) -> Vec<(String, u64)> {
    let mut all: Vec<(u64, String, String)> = Vec::new();
    let mut unmade = 0;
    for LearnedForm { name, collection, count, form } in learned.forms.values() {
        let writer = OperationWriter { collection, fields: &fields[collection.as_str()] };
        match writer.write_part(form).filter(|text| text.len() <= OPERATION) {
            Some(body) => all.push((*count, plain_name(name, collection), format!("command: {body}"))),
            None => unmade += count,
        }
    }
    for (collection, stats) in &learned.collections {
        for (size, count) in &stats.insert_sizes {
            let what = format!("insert: {}, documents: {size}", quoted(collection));
            all.push((*count, plain_name("insert", collection), what));
        }
    }
    if unmade > 0 {
        findings.push(format!("left out: {unmade} commands with values of kinds that workloads do not have"));
    }
    all.sort_by_key(|(count, name, what)| (Reverse(*count), name.clone(), what.clone()));
    let sum: u64 = all.iter().map(|(count, ..)| count).sum();
    let rest: u64 = all.iter().skip(OPERATIONS).map(|(count, ..)| count).sum();
    if rest > 0 {
        let share = rest as f64 * 100.0 / sum as f64;
        findings.push(format!(
            "left out: {rest} commands ({share:.2} %) of rarer forms than the first {OPERATIONS}"
        ));
    }
    let mut used: BTreeSet<String> = BTreeSet::new();
    let named = |(count, name, what): (u64, String, String)| {
        let mut own = name.clone();
        let mut number = 1;
        while !used.insert(own.clone()) {
            number += 1;
            own = format!("{name}_{number}");
        }
        (format!("  {own}: {{ weight: {count}, {what} }}\n"), count)
    };
    all.into_iter().take(OPERATIONS).map(named).collect()
}

/// A name of an operation: letters, digits and underscores.
fn plain_name(name: &str, collection: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("{name}_{collection}").chars().take(60).map(plain).collect()
}

/// The workload, and what it does not have of the recording.
pub(in crate::learn) fn write_workload(
    learned: &LearnedDocuments,
    (header, survey): (&RecordingHeader, &RecordingSurvey),
    seed: u64,
) -> LearnedWorkload {
    let fields: LearnedFields<'_> =
        learned.collections.iter().map(|(name, stats)| (name.as_str(), stats.learn_fields())).collect();
    let mut findings = vec![format!("database {}", learned.database)];
    let mut body = format!("seed: {seed}\n");
    write_collections(learned, &fields, &mut body, &mut findings);
    findings.extend(model_findings(&learned.reuse, &spaces_of(learned, &fields), seed));
    body.push_str("operations:\n");
    let operations = list_operations(learned, &fields, &mut findings);
    operations.iter().for_each(|(line, _)| body.push_str(line));
    findings.extend(arrival_findings(&learned.arrivals, header));
    if learned.batches > 0 {
        findings.push(format!(
            "{} getMore: a run reads each cursor to its end, in batches as large as they were; those of then that were \
             not are read further",
            learned.batches
        ));
    }
    if learned.transactions > 0 {
        findings
            .push(format!("{} commands were of transactions; here each is by itself", learned.transactions));
    }
    let left_out = learned.left_out.iter().map(|(reason, count)| format!("left out: {count} {reason}"));
    findings.extend(left_out);
    findings.extend(gap_findings(header, survey));
    findings.push(
        "indexes are those that were made while it was recorded: add those that the collections have (docs/documents.md)".into(),
    );
    findings.push(
        "not learned: sequences of commands that belong together, changes of the mix over time, how many documents a filter \
         finds, which values go with which, patterns and compressibility of texts, concerns and read preferences"
            .into(),
    );
    let is_timed = learned.arrivals.seconds() > 0.0 && !header.is_without(Lack::Times);
    let rate = is_timed.then(|| learned.arrivals.rate());
    let connections = survey.users.max(1);
    let mut text = start_line(rate, connections, is_even(&learned.arrivals));
    for finding in &findings {
        let _ = writeln!(text, "# - {}", finding.replace('\n', " "));
    }
    text.push_str(&body);
    LearnedWorkload { text, findings, rate, connections }
}

/// Values that documents are asked for by, as the workload asks for them.
fn spaces_of<'a>(learned: &'a LearnedDocuments, fields: &'a LearnedFields<'_>) -> Vec<ModelSpace<'a>> {
    let of = |(name, stats): (&'a String, &'a CollectionStats)| {
        let own = &fields[name.as_str()];
        let (count, _) = stats.count_documents(own);
        own.iter()
            .map(|(path, field)| {
                let space = &stats.asked[path].space;
                let keys = if field.is_diverse { count } else { space.keys() };
                ModelSpace { requests: space.requests, keys, popularity: &field.popularity, shares: None }
            })
            .collect::<Vec<_>>()
    };
    learned.collections.iter().flat_map(of).collect()
}
