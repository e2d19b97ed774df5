//! The report as one HTML file, of a run or of an experiment: it needs no network, no server and nothing beside itself.
//!
//! `document` frames every page, `page` puts a run's sections together, `sections` and `analysis_sections` make them,
//! `facts` are what each page says first, `drawn` the charts that are seen without a script, `axes` their ticks,
//! `timeline` is the axis of time, `charts` and `watched` what is drawn on it, `points` how series are cut to size,
//! `text` makes figures into words, tables and lists. `experiment`, `users` and `rates` are the page of an experiment, made
//! of what `gathered` reads, `overlay` lays two factors over each other, `comparison` is the page of a comparison; the
//! drawings of these are `plot`'s. `served` are the pages of `dyno serve`, with `list.js` and `live.js`. `page.css` and
//! `page.js` are `document`'s. The security policy allows exactly this style and this script, by their hashes, and no
//! request at all.

pub mod analysis_sections;
mod axes;
pub mod charts;
pub mod comparison;
mod document;
mod drawn;
pub mod experiment;
pub mod facts;
pub mod gathered;
pub mod overlay;
pub mod page;
pub mod plain;
pub mod plot;
pub mod points;
pub mod rates;
mod replay;
pub mod sections;
pub mod served;
pub mod text;
pub mod timeline;
pub mod users;
pub mod watched;
pub mod workload;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
pub(crate) mod tests;
