//! The stores, tested through their public door only: what all must do alike (`conformance`, and with
//! documents `documents`, by the measure of `model`), what is refused (`uris`),
//! and what is one store's own (`sqlite`, `mocks`). A rough rate is measured in `rates`, on request.
#![allow(clippy::unwrap_used)]

mod conformance;
mod content;
mod documents;
mod mocks;
mod model;
mod rates;
mod sqlite;
mod uris;
