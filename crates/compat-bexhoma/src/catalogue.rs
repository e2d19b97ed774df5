//! Data of a configuration that are kept beside an experiment.

use crate::plan::config::CatalogueMetric;
use dyno_rundir::files;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file in the experiment's directory.
pub const FILE: &str = "bexhoma.json";

/// Metrics and prices to figure out later: kept in the experiment's directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    /// Price of an hour.
    pub price_per_hour: Option<f64>,
    /// The API of a Prometheus.
    pub prometheus: Option<String>,
    /// The metrics.
    pub metrics: Vec<CatalogueMetric>,
}

/// Price of an hour, if the experiment's configuration says so.
pub fn price(experiment: &Path) -> Option<f64> {
    let text = files::read(&experiment.join(FILE)).ok()?;
    serde_json::from_slice::<Catalogue>(&text).ok()?.price_per_hour
}
