//! Recording what happened: histogram slots, per-second intervals, counters, and their exact merge.
//!
//! Hot part (one per load thread): [`Recorder`] counts into an [`ThreadInterval`] and swaps it out once a second. Cold part
//! (control thread): [`Totals`] adds intervals of all threads. No percentile exists before everything is merged.
//! No serde, no files, no clock here.

pub mod codec;
mod gaps;
mod histogram;
mod interval;
mod stamps;
mod totals;

pub use gaps::{Gap, Pause, SHORTEST_NS};
pub use histogram::{
    Buckets, Counts, Histogram, Scale, SparseBuckets, bucket_high, bucket_low, bucket_of, is_supported,
    percentiles_of,
};
pub use interval::{HistogramSlot, RawSample, Recorder, ThreadInterval};
pub use stamps::Stamps;
pub use totals::{MergedSlot, SparseTotals, Totals};
