//! The report as one HTML file, of a run or of an experiment: it needs no network, no server and nothing beside itself.
//!
//! `page` puts sections together, `sections` and `judged` make them, `timeline` is the axis of time, `charts` and `watched` what
//! is drawn on it, `points` how series are cut to size, `text` escapes. `experiment` and `users` are the page of an experiment,
//! made of what `gathered` reads, with the drawings of `plot`. `page.css` and `page.js` are the page's own. The security policy
//! allows exactly this style and this script, by their hashes, and no request at all.

mod charts;
mod experiment;
mod gathered;
mod judged;
mod page;
mod plain;
mod plot;
mod points;
mod sections;
mod text;
mod timeline;
mod users;
mod watched;

pub use experiment::experiment_page;
pub use page::{Report, run_page};
pub use plain::{Part, plain_page};
pub(crate) use text::{own_name, shell};

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::written as written_for_tests;
