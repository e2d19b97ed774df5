//! Prometheus' text format: reading that of others (`scrape`, `parse`), and serving one's own (`exporter`, `text`).

mod exporter;
mod parse;
mod scrape;
mod text;

pub use exporter::Exporter;
pub use parse::{TextError, parse};
pub use scrape::{PrometheusSource, ScrapeError, Url, UrlError, UrlProblem, answer};
pub use text::Text;
