//! A store that does nothing and says it went well: what a blocking user costs without a database. Keys and values are
//! not even rendered.

use crate::kind::StoreKind;
use crate::uri::StoreUri;
use dyno_types::{Executed, Outcome, RefusalCode, Refused, Request, Store, StoreSession};
use std::sync::Arc;

/// Form and options of `null:` URIs.
pub const KIND: StoreKind = StoreKind {
    scheme: "null",
    form: "null:",
    about: "does nothing; the ceiling of the engine for stores that block",
    options: &[],
    built: true,
    library: None,
};

/// The store that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

/// Opens `null:`.
pub(crate) fn open(uri: &StoreUri) -> Result<Arc<dyn Store>, Refused> {
    no_path(uri)?;
    Ok(Arc::new(Null))
}

/// Refuses a path where there can be none.
pub(crate) fn no_path(uri: &StoreUri) -> Result<(), Refused> {
    if uri.path.as_os_str().is_empty() {
        return Ok(());
    }
    let (scheme, path) = (&uri.scheme, uri.path.display());
    Err(Refused::new(
        RefusalCode::BadValue,
        path.to_string(),
        format!("{scheme}: takes no path, but {path} was given; write {scheme}:"),
    ))
}

impl Store for Null {
    fn engine(&self) -> String {
        "null".to_owned()
    }

    fn durability(&self) -> String {
        "nothing is stored".to_owned()
    }

    fn session(&self) -> Result<Box<dyn StoreSession>, Refused> {
        Ok(Box::new(Null))
    }
}

impl StoreSession for Null {
    fn execute(&mut self, _request: &Request) -> Executed {
        Executed::new(Outcome::Ok, 0)
    }

    fn execute_batch(&mut self, _requests: &[Request]) -> Executed {
        Executed::new(Outcome::Ok, 0)
    }
}
