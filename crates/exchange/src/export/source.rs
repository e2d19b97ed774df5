//! What is exported: one run, a folder of runs, or an experiment.

use crate::export::ExportError;
use dyno_report::recompute_summary;
use dyno_rundir::schema::{Claim, Phase, Summary, Trust};
use dyno_rundir::{EndedRun, ExperimentDir, RunDir};
use std::path::Path;

/// A run with its place in an experiment.
#[derive(Debug)]
pub struct SourceRun {
    /// Directory's name, below the experiment's.
    pub name: String,
    /// The level of each factor, and what a strategy has set.
    pub levels: Vec<(String, String)>,
    /// Entry of the journal, of an experiment's run.
    pub ended: Option<EndedRun>,
    /// Directory; `None` for one that failed before it had one.
    pub dir: Option<RunDir>,
}

impl SourceRun {
    /// Summary.
    pub fn summary(&self) -> Option<&Summary> {
        self.dir.as_ref()?.summary.as_ref()
    }

    /// Measured phase.
    pub fn measured(&self) -> Option<&Phase> {
        self.summary()?.measured_phase()
    }

    /// Level of a factor.
    pub fn level(&self, factor: &str) -> Option<&str> {
        self.levels.iter().find(|(name, _)| name == factor).map(|(_, level)| level.as_str())
    }

    /// Returns whether a figure that rests on these claims may be used: the run has come to its end, and none of them is invalid.
    pub fn is_usable(&self, claims: &[Claim]) -> bool {
        self.summary().is_some_and(|summary| summary.verdict.trust_in(claims) != Trust::Invalid)
    }
}

/// Everything to be exported.
#[derive(Debug)]
pub struct ExportSource {
    /// Name.
    pub name: String,
    /// Factors in the order of the experiment, then those that a strategy has set.
    pub factors: Vec<String>,
    /// Runs, in the order in which they ended.
    pub runs: Vec<SourceRun>,
    /// Notes on what could not be read, and what was computed instead.
    pub notes: Vec<String>,
}

fn name_of(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

impl ExportSource {
    /// Reads a run directory, an experiment's directory, or a folder of run directories.
    pub fn open(path: &Path) -> Result<Self, ExportError> {
        let mut source =
            ExportSource { name: name_of(path), factors: Vec::new(), runs: Vec::new(), notes: Vec::new() };
        if ExperimentDir::is_one(path) {
            source.experiment(path)?;
        } else if path.join("run.json").is_file() {
            source.add(name_of(path), path)?;
        } else {
            let failed = |error| dyno_rundir::ReadError::File { path: path.to_owned(), error };
            let mut folders: Vec<_> = std::fs::read_dir(path).map_err(failed)?.flatten().collect();
            folders.sort_by_key(std::fs::DirEntry::file_name);
            for folder in folders.iter().filter(|folder| folder.path().join("run.json").is_file()) {
                source.add(name_of(&folder.path()), &folder.path())?;
            }
        }
        for (name, _) in source.runs.iter().flat_map(|run| &run.levels) {
            if !source.factors.contains(name) {
                source.factors.push(name.clone());
            }
        }
        if source.runs.is_empty() {
            let message = "no run in it: expected run.json, experiment.json, or folders that hold run.json";
            return Err(ExportError::Lacking(format!("{}: {message}", path.display())));
        }
        Ok(source)
    }

    fn add(&mut self, name: String, path: &Path) -> Result<(), ExportError> {
        let (dir, words) = recompute_summary::open_ended_run(path)?;
        self.notes.extend(words);
        self.runs.push(SourceRun { name, levels: Vec::new(), ended: None, dir: Some(dir) });
        Ok(())
    }

    fn experiment(&mut self, path: &Path) -> Result<(), ExportError> {
        let experiment = ExperimentDir::open(path)?;
        self.name.clone_from(&experiment.name);
        for run in &experiment.runs {
            let mut levels =
                experiment.find_cell(run.cell).map(|cell| cell.levels.clone()).unwrap_or_default();
            if let Some((name, value)) = run.point.split_once('=') {
                levels.push((name.to_owned(), value.to_owned()));
            }
            let folder = path.join(&run.dir);
            // One run that cannot be read does not take the others with it: its line stays, with what the journal says.
            let dir =
                match folder.join("run.json").is_file().then(|| recompute_summary::open_ended_run(&folder)) {
                    None => None,
                    Some(Ok((dir, words))) => {
                        self.notes.extend(words);
                        Some(dir)
                    }
                    Some(Err(error)) => {
                        self.notes.push(format!("{} is left out: {error}", run.dir));
                        None
                    }
                };
            self.runs.push(SourceRun { name: run.dir.clone(), levels, ended: Some(run.clone()), dir });
        }
        Ok(())
    }

    /// The only run of the source.
    pub fn single(&self, format: &str) -> Result<&RunDir, ExportError> {
        match &self.runs[..] {
            [SourceRun { dir: Some(dir), .. }] => Ok(dir),
            runs => Err(ExportError::Lacking(format!(
                "{}: {} runs, but {format} is the report of one: name a run's own directory",
                self.name,
                runs.len()
            ))),
        }
    }
}
