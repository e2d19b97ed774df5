//! The report as one HTML file: it needs no network, no server and nothing beside itself.
//!
//! `page` puts sections together, `sections` and `judged` make them, `timeline` is the axis of time, `charts` and `watched` what
//! is drawn on it, `points` how series are cut to size, `text` escapes. `page.css` and `page.js` are the page's own. The
//! security policy of the page allows exactly this style and this script, by their hashes, and no request at all.

mod charts;
mod judged;
mod page;
mod points;
mod sections;
mod text;
mod timeline;
mod watched;

pub use page::{Report, run_page};

#[cfg(test)]
mod tests;
