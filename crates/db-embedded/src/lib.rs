//! Embedded stores: databases that are libraries and block, one folder each, behind `dyno_types::Store`.
//!
//! Here live opening a store by its URI ([`open`]), the stores themselves and what they share: the URI
//! ([`uri`]), its options ([`options`]), the bytes of a record in a key-value store (`record`) and the checking of
//! values read (`reading`). When requests are made and how their latency is
//! recorded is the engine's affair. Nothing here reads a clock, save the mock's delay in `basic`.
//!
//! ```text
//! open("sqlite:bench.db?journal=wal", content) -> Store --session()--> StoreSession, one per user, on its own thread
//! ```
//!
//! A record is a key and fields (name -> value). All stores agree on what a request means; `tests/stores` holds them
//! to it. A write returns when it is as durable as [`dyno_types::Store::durability`] says.

pub mod basic;
pub mod fjall;
pub mod kind;
pub mod lmdb;
pub mod null;
pub mod options;
#[cfg(feature = "ordered")]
mod ordered;
#[cfg_attr(
    not(feature = "ordered"),
    allow(dead_code, reason = "most of it is for databases of ordered keys")
)]
mod reading;
#[cfg_attr(not(feature = "ordered"), allow(dead_code, reason = "it is for databases of ordered keys"))]
mod record;
pub mod redb;
pub mod rocksdb;
pub mod sqlite;
pub mod target;
pub mod uri;
pub mod wiredtiger;

use basic::Sink;
use dyno_types::{Content, RefusalCode, Refused, Store};
use kind::StoreKind;
use std::sync::Arc;
use uri::StoreUri;

/// All kinds of stores.
pub const KINDS: [StoreKind; 8] = [
    sqlite::KIND,
    redb::KIND,
    fjall::KIND,
    lmdb::KIND,
    rocksdb::KIND,
    wiredtiger::KIND,
    basic::KIND,
    null::KIND,
];

/// Opens the store that `uri` names, creating its file or directory if there is none; the table is called
/// `content.table()`. A `basic:` store opened this way writes its lines nowhere.
///
/// URIs are `SCHEME:PATH?name=value&name=value`, for example `sqlite:bench.db?journal=wal&synchronous=full`. Path
/// and values may be percent-encoded. [`KINDS`] lists schemes and options.
pub fn open(uri: &str, content: Arc<dyn Content>) -> Result<Arc<dyn Store>, Refused> {
    open_with_sink(uri, content, None)
}

/// Opens the store that `uri` names, as [`open`] does; a `basic:` store writes its lines to `sink`.
pub fn open_with_sink(
    uri: &str,
    content: Arc<dyn Content>,
    sink: Option<Sink>,
) -> Result<Arc<dyn Store>, Refused> {
    let uri = StoreUri::parse(uri)?;
    let Some(kind) = KINDS.iter().find(|kind| kind.scheme == uri.scheme) else {
        return Err(unknown_scheme(&uri.scheme));
    };
    if let Some(message) = kind.describe_missing() {
        return Err(Refused::new(RefusalCode::NotBuilt, kind.scheme, message));
    }
    if content.table().is_empty() {
        return Err(Refused::new(
            RefusalCode::Missing,
            "table",
            "the workload's table has no name: give it one, such as usertable",
        ));
    }
    if let (Some(shape), false) = (content.shapes().first(), kind.scheme != "basic") {
        let why = format!(
            "{}: it has no documents and cannot do {:?}; sqlite: and redb: can",
            kind.scheme, shape.name
        );
        return Err(Refused::new(RefusalCode::Unsupported, "workload", why));
    }
    let given = options::GivenOptions::check(&uri, kind.options)?;
    match kind.scheme {
        "sqlite" => sqlite::open(&uri, &given, content),
        #[cfg(feature = "redb")]
        "redb" => redb::open(&uri, &given, content),
        #[cfg(feature = "fjall")]
        "fjall" => fjall::open(&uri, &given, content),
        #[cfg(feature = "lmdb")]
        "lmdb" => lmdb::open(&uri, &given, content),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => rocksdb::open(&uri, &given, content),
        #[cfg(feature = "wiredtiger")]
        "wiredtiger" => wiredtiger::open(&uri, &given, content),
        "basic" => basic::open(&uri, &given, content, sink),
        _ => null::open(&uri),
    }
}

/// Refuses a URI whose scheme, options or their values are not understood; touches nothing. Of a store that this build does
/// not have only the options' names are known.
pub fn check(uri: &str) -> Result<(), Refused> {
    let uri = StoreUri::parse(uri)?;
    let Some(kind) = KINDS.iter().find(|kind| kind.scheme == uri.scheme) else {
        return Err(unknown_scheme(&uri.scheme));
    };
    let given = options::GivenOptions::check(&uri, kind.options)?;
    match kind.scheme {
        "sqlite" => sqlite::check(&uri, &given),
        #[cfg(feature = "redb")]
        "redb" => redb::check(&given),
        #[cfg(feature = "fjall")]
        "fjall" => fjall::check(&given),
        #[cfg(feature = "lmdb")]
        "lmdb" => lmdb::check(&given),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => rocksdb::check(&given),
        #[cfg(feature = "wiredtiger")]
        "wiredtiger" => wiredtiger::check(&given),
        "basic" => basic::check(&given),
        _ => Ok(()),
    }?;
    match kind.scheme {
        "basic" | "null" => null::no_path(&uri),
        _ => uri.has_path(),
    }
}

fn unknown_scheme(scheme: &str) -> Refused {
    let forms: Vec<&str> = KINDS.iter().map(|kind| kind.form).collect();
    let hint = options::nearest(scheme, KINDS.iter().map(|kind| kind.scheme));
    Refused::new(
        RefusalCode::UnknownName,
        scheme,
        format!("{scheme:?} is not an embedded store{hint}; accepted: {}", forms.join(", ")),
    )
}
