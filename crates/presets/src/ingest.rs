//! The proof of ingest rate in its three sizes: POCDriver's commands, with the claim as threshold.

/// A size.
pub(super) struct IngestSize {
    /// KB of a document.
    kb: u32,
    /// Secondary indexes.
    indexes: u32,
    /// Claimed documents per second.
    rate: u32,
    /// POCDriver's flags for the document.
    shape: &'static str,
}

pub(super) const SMALL: IngestSize =
    IngestSize { kb: 1, indexes: 3, rate: 20_000, shape: "-f 25 -a 5:5 --depth 2" };
pub(super) const MEDIUM: IngestSize =
    IngestSize { kb: 10, indexes: 6, rate: 3_500, shape: "-f 234 -a 20:20 --depth 2" };
pub(super) const LARGE: IngestSize =
    IngestSize { kb: 50, indexes: 8, rate: 460, shape: "-f 1692 -a 10:10 --depth 2" };

/// The experiment of a size.
pub(super) fn text(size: &IngestSize) -> String {
    let IngestSize { kb, indexes, rate, shape } = size;
    format!(
        "\
description: >
  Proof of ingest rate: documents of {kb} KB with {indexes} secondary indexes, {rate} documents per second claimed.
  The target is a replica set of three; --set target=mongodb://... names yours. The claim is the threshold; another one:
  --require-rate 1000. Copies are not counted here.
target: mongodb://localhost:27017/?w=majority
workload:
  pocdriver: \"-t 4 -e {shape} -x {indexes}\"
phases:
  measure: {{duration: 10m}}
window: {{interval: 10s}}
require: [\"throughput > {rate}\"]
"
    )
}
