//! How a request's keys, field names and values are rendered as bytes.
//!
//! A workload implements [`Content`]; drivers and stores call it while they encode. All methods are pure: the same
//! request gives the same bytes, so that a retry, a redirect or a verification can render them again.

use crate::request::Request;

/// Renders the bytes of a request. Every method appends to `out` and never clears it.
pub trait Content: Send + Sync {
    /// The table, collection or key space the records belong to.
    fn table(&self) -> &str;

    /// The key of the record that `request` addresses (for a scan: the first key).
    fn key(&self, request: &Request, out: &mut Vec<u8>);

    /// How many fields the request names or writes. 0 means "all fields" of a read or a scan.
    fn fields(&self, request: &Request) -> usize;

    /// The name of field number `field` of the request, `0..fields(request)`.
    fn name(&self, request: &Request, field: usize, out: &mut Vec<u8>);

    /// The length in bytes of what [`Content::value`] will append.
    fn value_len(&self, request: &Request, field: usize) -> usize;

    /// The value of field number `field` of a writing request.
    fn value(&self, request: &Request, field: usize, out: &mut Vec<u8>);

    /// Whether values read back can be checked, that is, whether [`Content::verify`] means anything.
    fn verifies(&self) -> bool {
        false
    }

    /// Whether the records that scans find are shown to [`Content::scanned`]. Benchmarks have no use for it.
    fn watches_scans(&self) -> bool {
        false
    }

    /// A field of record number `record`, from 0, that a scan has found.
    fn scanned(&self, _record: u32, _field: &[u8], _value: &[u8]) {}

    /// Whether `value` is what `field` of the record of `request` must hold.
    fn verify(&self, _request: &Request, _field: &[u8], _value: &[u8]) -> bool {
        true
    }
}
