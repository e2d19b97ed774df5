//! POCDriver's documents as the records of a proof of ingest.

use dyno_db::copies::records::{RecordDocuments, ValueKind};
use dyno_workload::pocdriver::{FieldKind, PocConfig, Template};

/// POCDriver's document, of a config.
#[derive(Debug)]
pub struct PocDocuments(Template);

impl PocDocuments {
    /// The documents of a checked config.
    pub fn new(config: &PocConfig) -> Self {
        PocDocuments(Template::new(config))
    }
}

impl RecordDocuments for PocDocuments {
    fn indexed_field(&self, index: usize) -> Option<(&str, ValueKind)> {
        let class = match FieldKind::of_field(index as u32) {
            FieldKind::Number => ValueKind::Number,
            FieldKind::Date => ValueKind::Date,
            FieldKind::Text => ValueKind::Text,
        };
        self.0.leaf_names().get(index).map(|leaf| (leaf.as_str(), class))
    }

    fn counted_field(&self) -> (&'static str, ValueKind) {
        // The sequence in `{w: worker, i: sequence}`.
        ("_id.i", ValueKind::Number)
    }

    fn put_id(&self, worker: u32, number: u64, name: &str, out: &mut Vec<u8>) {
        Template::put_id(worker, number, name, out);
    }

    fn render_document(&self, seed: u64, worker: u32, number: u64, out: &mut Vec<u8>) {
        self.0.render_document(seed, worker, number, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::bson;

    /// Fields are indexed in the order of POCDriver's leaves, with the type that each has in its documents.
    #[test]
    fn fields_and_kinds_are_those_of_the_document() {
        let documents = PocDocuments::new(&PocConfig { fields: 6, depth: 0, ..PocConfig::default() });
        let mut document = Vec::new();
        documents.render_document(1, 2, 7, &mut document);
        let kinds: Vec<_> = (0..6).map(|index| documents.indexed_field(index).unwrap()).collect();
        for (field, class) in &kinds {
            let found = bson::element_at_path(&document, field).unwrap().kind;
            let expected = match class {
                ValueKind::Number => bson::kind::INT64,
                ValueKind::Date => bson::kind::DATE,
                ValueKind::Text => bson::kind::STRING,
            };
            assert_eq!(found, expected, "{field}");
        }
        assert_eq!(documents.indexed_field(6), None);
        let (field, _) = documents.counted_field();
        assert_eq!(bson::element_at_path(&document, field).and_then(|e| e.as_i64()), Some(7));
    }
}
