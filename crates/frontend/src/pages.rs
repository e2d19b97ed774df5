//! Reports as files: what `dyno run` leaves in a directory, and what `dyno report` makes of one again.

use crate::exit::Failure;
use crate::highest_rate::searched;
use crate::terminal;
use crate::terminal::limited;
use dyno_analysis::diagnose::{Diagnosis, DiagnosisFinding, diagnose_run};
use dyno_report::html::experiment::experiment_page;
use dyno_report::html::page::run_page;
use dyno_report::html::sections::Report;
use dyno_report::{cost_efficiency, markdown};
use dyno_rundir::files;
use dyno_rundir::monitor::Recording;
use dyno_rundir::{ExperimentDir, RunDir};
use dyno_types::percent::{self, AsciiSet, RESERVED};
use dyno_types::secret::{conceal, conceal_json};
use std::path::Path;

/// A run as reports need it.
pub struct Material {
    /// The directory, with a summary.
    dir: RunDir,
    recording: Option<Recording>,
    notes: Vec<String>,
}

impl Material {
    /// Reads what can be read of a directory.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let (mut dir, mut notes) = RunDir::salvage_run(path)?;
        let recording = Recording::open(path).unwrap_or_else(|error| {
            notes.push(format!("what monitors saw could not be read: {error}"));
            None
        });
        if dir.summary.is_none() {
            notes.push(
                "there is no summary: figures were computed from the recorded intervals, and what the load generator did is \
                 not known"
                    .into(),
            );
            let under_way = crate::run_directory::is_under_way(path, dir.run.status);
            dir.summary =
                Some(dyno_report::recompute_summary::rebuild_summary(&dir, recording.as_ref(), under_way));
        }
        Ok(Material { dir, recording, notes })
    }

    /// Worth of the run's throughput, as lines of text.
    pub fn worth(&self, price: f64) -> String {
        let Some(summary) = &self.dir.summary else { return String::new() };
        let level = cost_efficiency::throughput_interval(&self.dir);
        summary.measured_phase().map_or(String::new(), |phase| {
            cost_efficiency::render_cost_efficiency(phase, level.as_ref(), price)
        })
    }

    /// Returns what changed in the run, and what limits it.
    pub fn diagnosis(&self) -> Diagnosis {
        diagnose_run(&self.dir, self.recording.as_ref())
    }

    /// The page. `price`: of an hour of everything that took part.
    pub fn html(&self, price: Option<f64>) -> String {
        let Some(summary) = &self.dir.summary else { return String::new() };
        let diagnosis = self.diagnosis();
        run_page(&Report {
            dir: &self.dir,
            summary,
            recording: self.recording.as_ref(),
            diagnosis: &diagnosis,
            notes: &self.notes,
            price,
        })
    }

    /// `summary.md`.
    pub fn markdown(&self) -> String {
        let Some(summary) = &self.dir.summary else { return String::new() };
        markdown::of_run(&self.dir, summary, self.recording.as_ref(), &self.notes)
    }

    /// The summary.
    pub fn summary(&self) -> Option<&dyno_rundir::schema::Summary> {
        self.dir.summary.as_ref()
    }

    /// Notes on what could not be read.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Address of a directory's report.
pub fn address(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned()).join("report.html");
    format!("file://{}", percent::percent_encode(&whole.display().to_string(), IN_ADDRESS))
}

/// What is encoded in the path of an address.
const IN_ADDRESS: &AsciiSet = &RESERVED.remove(b'/').remove(b'=').remove(b',').remove(b'+');

/// Address of a run's report for a page in the folder `page`: relative, so that both can be moved or published together.
/// `None` if there is no report.
pub fn address_of_report(run: &Path, page: &Path) -> Option<String> {
    let whole = |path: &Path| path.canonicalize().ok();
    let page = whole(if page.as_os_str().is_empty() { Path::new(".") } else { page })?;
    let report = whole(&run.join("report.html")).filter(|path| path.is_file())?;
    let shared = page.components().zip(report.components()).take_while(|(one, other)| one == other).count();
    let up = page.components().skip(shared).map(|_| "..");
    let down: Option<Vec<&str>> =
        report.components().skip(shared).map(|part| part.as_os_str().to_str()).collect();
    let parts: Vec<&str> = up.chain(down?).collect();
    // A name with a colon would be taken for a scheme.
    Some(percent::percent_encode(&format!("./{}", parts.join("/")), IN_ADDRESS))
}

/// Writes a file beside its place and moves it there, readable by its owner alone, as everything of a run is.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error| Failure::internal(format!("{}: {}", path.display(), limited(error)));
    let is_json = path.extension().is_some_and(|end| end == "json");
    let shown = if is_json { conceal_json(text) } else { conceal(text) };
    files::put_private(path, shown.as_bytes()).map_err(failed)
}

/// Prints a report, or writes it to a file.
pub fn put(text: &str, place: Option<&Path>) -> Result<(), Failure> {
    match place {
        Some(path) => write(path, text),
        None => {
            terminal::out(text);
            Ok(())
        }
    }
}

/// Leaves `report.html` and `summary.md` in a run directory, and returns what limits the run. They can be made again at any time:
/// a failure is no more than a warning.
pub fn leave(path: &Path) -> Option<Vec<DiagnosisFinding>> {
    let both = |run: Material| {
        write(&path.join("report.html"), &run.html(None))?;
        write(&path.join("summary.md"), &run.markdown())?;
        Ok(run.diagnosis().findings)
    };
    Material::read(path).and_then(both).map_err(|error| warn(path, &error)).ok()
}

/// Leaves the same in an experiment's directory; `price` as in [`Material::html`].
pub fn leave_experiment(path: &Path, price: Option<f64>) {
    let both = |dir: ExperimentDir| {
        write(&path.join("report.html"), &experiment_page(&dir, price, &searched(path)))?;
        write(&path.join("summary.md"), &markdown::of_experiment(&dir))
    };
    if let Err(error) = ExperimentDir::open(path).map_err(Failure::from).and_then(both) {
        warn(path, &error);
    }
}

fn warn(path: &Path, error: &Failure) {
    let place = path.display();
    terminal::warn(&format!(
        "no report was written (`dyno report {place} --format html` tries again): {error}"
    ));
}
