//! The report as one HTML file, of a run or of an experiment: it needs no network, no server and nothing beside itself.
//!
//! `page` puts sections together, `sections` and `judged` make them, `timeline` is the axis of time, `charts` and `watched` what
//! is drawn on it, `points` how series are cut to size, `text` escapes. `experiment`, `users` and `rates` are the page of an
//! experiment, made of what `gathered` reads, `overlay` lays two factors over each other, `comparison` is the page of a
//! comparison; the drawings of these are `plot`'s. `served` are the pages of
//! `dyno serve`, with `list.js` and `live.js`. `page.css` and `page.js` are the page's own. The security policy
//! allows exactly this style and this script, by their hashes, and no request at all.

mod charts;
mod comparison;
mod experiment;
mod gathered;
mod judged;
mod overlay;
mod page;
mod plain;
mod plot;
mod points;
mod rates;
mod sections;
mod served;
mod text;
mod timeline;
mod users;
mod watched;

pub use comparison::comparison_page;
pub use experiment::experiment_page;
pub use page::{Report, run_page};
pub use plain::{Part, plain_page};
pub use served::{Kind, Listed, list_page, list_rows, live_page, message_page};

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::written as written_for_tests;
