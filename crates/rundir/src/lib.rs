//! The run directory: schema, writer and reader.
