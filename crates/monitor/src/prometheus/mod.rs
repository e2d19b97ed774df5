//! Prometheus' text format: reading that of others (`scrape`, `parse`), and serving one's own (`exporter`, `text`), which is
//! made of `family`.

mod error;
mod exporter;
mod family;
mod parse;
mod scrape;
mod text;

pub use error::{ScrapeError, TextError};
pub use exporter::MetricsServer;
pub use family::{Families, Family, FamilyKind, MetricHistogram, MetricSeries, SeriesValue};
pub use parse::parse;
pub use scrape::{PrometheusSource, Url, UrlError, UrlProblem, answer_body};
pub use text::render_families;
