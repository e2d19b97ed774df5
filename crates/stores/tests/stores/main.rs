//! The stores, tested through their public door only: what all must do alike (`conformance`), what is refused (`uris`),
//! and what is one store's own (`sqlite`, `mocks`). A rough rate is measured in `rates`, on request.
#![allow(clippy::unwrap_used)]

mod conformance;
mod content;
mod mocks;
mod rates;
mod sqlite;
mod uris;
