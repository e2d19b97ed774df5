//! Noise floors: how much runs of the same thing have been seen to differ, by environment and database.

use super::gather::Group;
use dyno_frontend::exit::Failure;
use dyno_localhost::machine::state_folders;
use dyno_report::comparison::Pairing;
use dyno_rundir::files;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The relative half-width of each figure.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Floor(BTreeMap<String, f64>);

impl Floor {
    /// The floor of a figure; 0 if none is known.
    pub fn of(&self, figure: &str) -> f64 {
        self.0.get(figure).copied().unwrap_or(0.0)
    }
}

/// All floors that are known here.
#[derive(Debug, Default)]
pub struct Floors(BTreeMap<String, Floor>);

/// `noise.json` in the user's state.
fn path() -> Option<PathBuf> {
    Some(state_folders().first()?.join("noise.json"))
}

/// The environment's hash and the database.
fn key(group: &Group) -> Option<String> {
    let run = group.runs.first()?;
    Some(format!("{} {}", run.environment.system.as_ref()?.hash, run.run.database))
}

impl Floors {
    /// Reads them; none where nothing is kept, or nothing that can be read.
    pub fn read() -> Self {
        let text = path().and_then(|path| std::fs::read_to_string(path).ok());
        Floors(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    /// Returns the floor of a group's environment and database.
    pub fn of(&self, group: &Group) -> Floor {
        key(group).and_then(|key| self.0.get(&key).cloned()).unwrap_or_default()
    }

    /// Keeps what the sides differ by, the greatest of all pairs.
    pub fn keep(&self, pairs: &[(String, &Group, &Group)], all: &[Pairing]) -> Result<PathBuf, Failure> {
        let path = path().ok_or_else(|| Failure::usage("--noise-floor: no folder for state (DYNO_STATE)"))?;
        let mut floors = self.0.clone();
        let mut renewed: Vec<String> = Vec::new();
        for ((_, first, _), pairing) in pairs.iter().zip(all) {
            let Some(key) = key(first) else {
                let message = "--noise-floor: the runs do not say in which environment they were made";
                return Err(Failure::usage(message));
            };
            // An old floor is replaced, not widened.
            let floor = floors.entry(key.clone()).or_default();
            if !renewed.contains(&key) {
                floor.0.clear();
                renewed.push(key);
            }
            for figure in &pairing.figures {
                let ratio = figure.found.decision.ratio;
                // Where a drift has left it open, the interval is without the drift: the sides differ by that as well.
                let seen = figure.found.means.1 / figure.found.means.0;
                let wide =
                    [ratio.low, ratio.high, seen].map(|end| (end - 1.0).abs()).into_iter().reduce(f64::max);
                let wide = wide.unwrap_or(0.0);
                let kept = floor.0.entry(figure.name.clone()).or_default();
                *kept = kept.max(wide);
            }
        }
        let io = |error: std::io::Error| Failure::internal(format!("{}: {error}", path.display()));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let text = serde_json::to_string_pretty(&floors)?;
        files::put_file(&path, (text + "\n").as_bytes()).map_err(io)?;
        Ok(path)
    }
}
