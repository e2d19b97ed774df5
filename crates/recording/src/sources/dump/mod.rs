//! Dumps of MongoDB: the data set, as commands that bring it back.
//!
//! Documents become `insert`s of at most 1,000 or 1 MiB (or of one), the bytes of each as they were; indexes become
//! `createIndexes`, and options of a collection `create`. Read are archives and BSON files of mongodump, and JSON lines of
//! mongoexport.

pub mod archive;
pub mod bson_files;
pub mod json_lines;
mod metadata;
mod namespace;
mod writer;

pub use namespace::Namespace;
pub use writer::SOURCE;

#[cfg(test)]
mod tests;
