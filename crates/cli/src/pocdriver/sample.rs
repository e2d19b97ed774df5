//! `-p`: one document as JSON, and its size.

use crate::json;
use dyno_workload::pocdriver::{PocConfig, Template};

/// Worker and sequence number of the document shown.
const SHOWN: (u32, u64) = (1, 12_345_678);

/// The document and the line about its size.
pub fn print(config: &PocConfig) -> String {
    let mut document = Vec::new();
    Template::new(config).render(config.seed, SHOWN.0, SHOWN.1, &mut document);
    let size = document.len() as f64 / 1024.0;
    format!("{}\nDocuments are {size:.2} KB each as BSON\n", json::pretty(&document))
}
