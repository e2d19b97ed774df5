//! FerretDB: its server.

pub mod server;
