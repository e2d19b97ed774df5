//! `tuning.json`: what the tunings of an experiment have found, one for each cell.

use crate::reader::ReadError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Name in an experiment's directory.
pub const FILE: &str = "tuning.json";

/// Effect of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The key.
    pub parameter: String,
    /// Mean of the objective at each value, over the configurations that were screened.
    pub levels: Vec<(String, f64)>,
    /// Difference of best and worst value, as a share of the mean over all.
    pub spread: f64,
    /// The best value.
    pub best: String,
}

/// Result of a tuning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// The best configuration in words; `defaults` if nothing beat them.
    pub best: String,
    /// Mean of the objective with the defaults.
    pub defaults: f64,
    /// Mean of the objective with the best configuration.
    pub objective: f64,
    /// Gain over the defaults as a share of them; positive is better.
    pub gain: f64,
    /// Half of its 95 % interval (Welch).
    pub gain_half_width: f64,
    /// Half of the 95 % interval of the defaults' own mean as a share of it: what noise looks like.
    pub noise: f64,
    /// True if the gain is beyond what noise explains.
    pub beyond_noise: bool,
    /// Parameters, the strongest first.
    pub effects: Vec<Effect>,
}

/// The tuning of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TunedCell {
    /// Number of the cell, from 1.
    pub cell: usize,
    /// Levels in words.
    pub label: String,
    /// Result.
    pub found: Tuned,
}

/// Reads the tunings of an experiment's directory; empty where nothing was tuned.
pub fn read(dir: &Path) -> Result<Vec<TunedCell>, ReadError> {
    let path = dir.join(FILE);
    if path.is_file() { crate::reader::json(&path) } else { Ok(Vec::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_tuned_is_read_and_nothing_where_nothing_was() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), []);
        let effects = vec![Effect {
            parameter: "io".into(),
            levels: vec![("2".into(), 1.5)],
            spread: 0.1,
            best: "2".into(),
        }];
        let found = Tuned {
            best: "io=2".into(),
            defaults: 100.0,
            objective: 110.0,
            gain: 0.1,
            gain_half_width: 0.02,
            noise: 0.01,
            beyond_noise: true,
            effects,
        };
        let cells = vec![TunedCell { cell: 2, label: "users=8".into(), found }];
        std::fs::write(folder.path().join(FILE), serde_json::to_string(&cells).unwrap()).unwrap();
        assert_eq!(read(folder.path()).unwrap(), cells);
        std::fs::write(folder.path().join(FILE), "[\n{").unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("tuning.json:2: "));
    }
}
