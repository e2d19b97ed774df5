//! Embedded stores: SQLite, redb, fjall.
