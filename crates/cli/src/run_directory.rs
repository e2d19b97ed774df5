//! Run directories of all commands: where they are, and what they say at the start.

use crate::exit::Failure;
use dyno_databases::registry;
use dyno_databases::target::OpenTarget;
use dyno_record::Scale;
use dyno_rundir::files;
use dyno_rundir::monitor::ELSEWHERE;
use dyno_rundir::schema::{Environment, Run, Setting, Status, VERSION};
use dyno_rundir::{Writer, must_be_new};
use dyno_session::environment::system;
use dyno_session::session::SessionPlan;
use dyno_types::secret::own_command_line;
use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A run writes once a second; one that has not written for this long is not under way any more, or nothing is known of it.
const SILENT: Duration = Duration::from_secs(10);

/// Wall clock, RFC 3339 in UTC.
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

/// What is not as it was at the beginning of the run.
pub fn changes(then: &Environment) -> Vec<String> {
    let Some(before) = &then.system else { return Vec::new() };
    let found = before.differences(&system());
    let side = |value: Option<String>| value.unwrap_or("unknown".into());
    found
        .into_iter()
        .map(|d| format!("{} {}: {} -> {}", d.group, d.name, side(d.first), side(d.second)))
        .collect()
}

/// A directory under `dyno-runs` that does not exist yet.
pub fn new_directory(name: &str) -> PathBuf {
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
    let base = PathBuf::from("dyno-runs").join(format!("{stamp}-{name}"));
    let numbered = (2..1_000).map(|n| PathBuf::from(format!("{}-{n}", base.display())));
    std::iter::once(base.clone()).chain(numbered).find(|path| !path.exists()).unwrap_or(base)
}

fn unwritable(error: std::io::Error) -> Failure {
    Failure::Usage(format!("cannot write the run directory: {error}"))
}

/// Whether a run directory can be made at `path`, before a server is told anything.
pub fn check_new(path: Option<&PathBuf>) -> Result<(), Failure> {
    path.map_or(Ok(()), |path| must_be_new(path).map_err(unwritable))
}

/// Creates a run directory at `path` with the command's settings, whose histograms will be of `scale`.
pub fn create(
    path: &Path,
    settings: Vec<Setting>,
    plan: &SessionPlan,
    opened: &dyn OpenTarget,
    environment: &Environment,
    scale: Scale,
) -> Result<Writer, Failure> {
    let mut list = vec![Setting { key: "title".into(), value: plan.title.clone(), source: "derived".into() }];
    list.extend(settings);
    let mut facts = opened.facts();
    if registry::parse(&plan.target).is_ok_and(|target| target.is_elsewhere()) {
        facts.insert(ELSEWHERE.into(), "true".into());
    }
    let run = Run {
        version: VERSION,
        dyno: env!("CARGO_PKG_VERSION").into(),
        command: own_command_line(),
        started: plan.started.clone(),
        status: Status::Running,
        target: plan.target.clone(),
        database: opened.database(),
        facts,
        settings: list,
        metrics: BTreeMap::new(),
        unit_ns: scale.unit_ns(),
        plans: Default::default(),
    };
    Writer::create(path, run, environment, scale).map_err(unwritable)
}

/// Whether a run is being made: it has not ended, and whoever makes it holds its events; where a file system knows no locks,
/// it has written lately.
pub fn is_under_way(path: &Path, status: Status) -> bool {
    let held = || match files::open(&path.join("events.jsonl")).ok()?.try_lock_shared() {
        Ok(()) => Some(false),
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    };
    let lately = || silence(path).is_none_or(|silence| silence < SILENT);
    status == Status::Running && held().unwrap_or_else(lately)
}

/// How long nothing has been written.
pub fn silence(path: &Path) -> Option<Duration> {
    let files = ["run.json", "series.csv", "events.jsonl", "journal.jsonl"];
    let changed = files.iter().filter_map(|name| std::fs::metadata(path.join(name)).ok()?.modified().ok());
    changed.max().and_then(|at| SystemTime::now().duration_since(at).ok())
}
