//! An experiment's runs, read once, reduced to what its page needs.

use crate::cost_efficiency;
use crate::experiment::CellRow;
use crate::html::plot::Dot;
use dyno_analysis::ArrivalLatency;
use dyno_analysis::interval::mean_interval;
use dyno_analysis::laws::{Observed, ObservedGroup, for_their_course, observe_rate, observe_run};
use dyno_record::Scale;
use dyno_rundir::faults::FaultFigures;
use dyno_rundir::{EndedRun, ExperimentDir, RunDir, describe_progress, files, series};
use dyno_types::metric::is_request;
use std::collections::BTreeMap;

/// One run.
pub struct GatheredRun {
    /// Entry of the journal.
    pub ended: EndedRun,
    /// As operational analysis sees it.
    pub observed: Option<Observed>,
    /// The same, and of a rate at which nothing succeeded, too.
    pub at_rate: Option<Observed>,
    /// Successful operations of each second after the warm-up.
    pub seconds: BTreeMap<u64, u64>,
    /// p99 of the response time of each of these seconds, of the slowest operation, microseconds, where it is known.
    pub tails: BTreeMap<u64, f64>,
    /// p99 of the response time, microseconds, where enough samples support it.
    pub p99_us: Option<f64>,
    /// True if monitors have seen something of it.
    pub watched: bool,
    /// What faults did that the experiment asked for.
    pub faults: Vec<FaultFigures>,
}

/// A cell at a point of a strategy.
pub struct CellRuns {
    /// Figures.
    pub figures: CellRow,
    /// Runs.
    pub runs: Vec<GatheredRun>,
    /// True if its runs are no points of a sweep: they were meant to last much longer than most.
    pub for_its_course: bool,
}

/// An experiment.
pub struct Gathered<'a> {
    /// Directory.
    pub dir: &'a ExperimentDir,
    /// In the order of cells.
    pub rows: Vec<CellRuns>,
    /// Files that could not be read, with the reason.
    pub notes: Vec<String>,
}

fn row(
    dir: &ExperimentDir,
    levels: &[(String, String)],
    runs: Vec<EndedRun>,
    price: Option<f64>,
    notes: &mut Vec<String>,
) -> CellRuns {
    let count = |holds: &dyn Fn(&EndedRun) -> bool| runs.iter().filter(|run| holds(run)).count();
    let complete = |run: &EndedRun| run.status == "complete";
    let mut figures = CellRow {
        levels: levels.to_vec(),
        point: runs.first().map_or(String::new(), |run| run.point.clone()),
        runs: count(&complete),
        failed: count(&|run| run.status == "failed"),
        suspect: count(&|run| run.trust == "suspect"),
        invalid: count(&|run| run.trust == "invalid"),
        missed: count(&|run| complete(run) && !run.passed),
        ..CellRow::default()
    };
    let throughputs = runs.iter().filter(|run| complete(run)).filter_map(|run| run.throughput).collect();
    let mut response = ArrivalLatency::new(Scale::Ns64);
    let (mut all, mut per_core) = (Vec::with_capacity(runs.len()), Vec::new());
    for ended in runs {
        let mut one = GatheredRun {
            ended,
            observed: None,
            at_rate: None,
            seconds: BTreeMap::new(),
            tails: BTreeMap::new(),
            p99_us: None,
            watched: false,
            faults: Vec::new(),
        };
        if complete(&one.ended) {
            match RunDir::open(&dir.path.join(&one.ended.dir)) {
                Ok(found) => {
                    let own = ArrivalLatency::of_run(&found, "measure", Scale::Ns64);
                    one.p99_us = own.supported_ns(99.0).map(|ns| ns / 1e3);
                    response.merge(&own);
                    one.observed = observe_run(&found);
                    one.at_rate = observe_rate(&found);
                    one.seconds = found.successes_by_second().unwrap_or_default();
                    if let Some(summary) = &found.summary {
                        one.faults.clone_from(&summary.faults);
                        one.watched = summary.is_watched();
                    }
                    let phase = found.summary.as_ref().and_then(|summary| summary.measured_phase());
                    per_core.extend(phase.and_then(cost_efficiency::per_core));
                    let length = phase.map_or(0.0, |phase| phase.seconds);
                    // The last second is cut off by the run's end. They are counted from a whole second on.
                    let whole = (length + warmup_behind(&found) + 1e-6).floor();
                    one.seconds.retain(|second, _| (*second as f64) < whole);
                    // The warm-up's end may cut the first: a rate is by what was measured of it.
                    if let Some(first) = one.seconds.get_mut(&0) {
                        *first = (*first as f64 / measured_of_first(&found)).round() as u64;
                    }
                    one.tails = tails_by_second(&found, whole);
                }
                Err(error) => notes.push(format!("{}: no latencies: {error}", one.ended.dir)),
            }
        }
        all.push(one);
    }
    figures.set_measurements(throughputs, &response);
    figures.set_cost_efficiency(&per_core, price);
    CellRuns { figures, runs: all, for_its_course: false }
}

/// Seconds from the one from which a run's seconds are counted to the warm-up's end; negative where that comes before, because a
/// warm-up that ends in the second half of a second has all of it.
fn warmup_behind(dir: &RunDir) -> f64 {
    let mut phases = dir.summary.iter().flat_map(|summary| &summary.phases);
    let warmup = phases.find(|phase| phase.name == "warmup").map_or(0.0, |phase| phase.seconds);
    warmup - dir.begin_s() as f64
}

/// Seconds that were measured of the second from which a run's seconds are counted: the rest was the warm-up's.
fn measured_of_first(dir: &RunDir) -> f64 {
    1.0 - warmup_behind(dir).clamp(0.0, 0.5)
}

/// p99 of each second of the measured phase up to `end`, of the slowest operation; empty where nothing was recorded by time.
fn tails_by_second(dir: &RunDir, end: f64) -> BTreeMap<u64, f64> {
    let mut all: BTreeMap<u64, f64> = BTreeMap::new();
    let Ok(text) = files::read_to_string(&dir.path.join("series.csv")) else { return all };
    let begin = dir.begin_s() as f64;
    for row in series::read(&text).0 {
        let second = row.start_s - begin;
        if row.phase != "measure"
            || row.metric == "TOTAL"
            || !is_request(&row.metric)
            || !(0.0..end).contains(&second)
        {
            continue;
        }
        if let Some(p99) = row.response_us[1].or(row.service_us[1]) {
            let most = all.entry(second as u64).or_insert(0.0);
            *most = most.max(p99);
        }
    }
    all
}

/// Reads all runs, one after another. `price`: of an hour of everything that took part.
pub fn gather_runs(dir: &ExperimentDir, price: Option<f64>) -> Gathered<'_> {
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for cell in &dir.cells {
        let mut points: Vec<(&str, Vec<EndedRun>)> = Vec::new();
        for run in dir.runs.iter().filter(|run| run.cell == cell.number) {
            match points.iter_mut().find(|(point, _)| *point == run.point) {
                Some((_, runs)) => runs.push(run.clone()),
                None => points.push((&run.point, vec![run.clone()])),
            }
        }
        if points.is_empty() {
            notes.push(format!("cell {} ({}) has no run that has ended", cell.number, cell.label));
        }
        rows.extend(points.into_iter().map(|(_, runs)| row(dir, &cell.levels, runs, price, &mut notes)));
    }
    if !dir.complete {
        notes.push(format!(
            "INCOMPLETE: {} have ended; what follows is of these",
            describe_progress(dir.runs.len(), dir.planned, dir.searches)
        ));
    }
    let mut all = Gathered { dir, rows, notes };
    let long = all.seen(for_their_course);
    all.rows.iter_mut().zip(long).for_each(|(row, long)| row.for_its_course = long);
    all
}

impl CellRuns {
    /// The cell in words.
    pub fn describe_cell(&self) -> String {
        let mut words: Vec<String> =
            self.figures.levels.iter().map(|(name, label)| format!("{name} {label}")).collect();
        words.extend(Some(self.figures.point.clone()).filter(|point| !point.is_empty()));
        if words.is_empty() { "the only cell".into() } else { words.join(", ") }
    }
}

impl Gathered<'_> {
    /// Names of the factors.
    pub fn factor_names(&self) -> Vec<&str> {
        self.dir
            .cells
            .first()
            .map_or(Vec::new(), |cell| cell.levels.iter().map(|(name, _)| name.as_str()).collect())
    }

    /// Levels of a factor in their order.
    pub fn factor_levels(&self, factor: usize) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for cell in &self.dir.cells {
            if let Some((_, label)) =
                cell.levels.get(factor).filter(|(_, label)| !all.contains(&label.as_str()))
            {
                all.push(label);
            }
        }
        all
    }

    /// The same of the rows that are points of a sweep.
    pub fn sweep_groups(&self, left_out: &[usize]) -> Vec<(String, Vec<&CellRuns>)> {
        let mut all = self.group_rows(left_out);
        all.iter_mut().for_each(|(_, rows)| rows.retain(|row| !row.for_its_course));
        all.retain(|(_, rows)| !rows.is_empty());
        all
    }

    /// Rows that agree in all factors but those left out, with the words for what they share.
    pub fn group_rows(&self, left_out: &[usize]) -> Vec<(String, Vec<&CellRuns>)> {
        let mut all: Vec<(String, Vec<&CellRuns>)> = Vec::new();
        for row in &self.rows {
            let shared = row.figures.levels.iter().enumerate().filter(|(at, _)| !left_out.contains(at));
            let words: Vec<String> = shared.map(|(_, (name, label))| format!("{name} {label}")).collect();
            let message = words.join(", ");
            match all.iter_mut().find(|(known, _)| *known == message) {
                Some((_, rows)) => rows.push(row),
                None => all.push((message, vec![row])),
            }
        }
        all
    }

    /// Applies an analysis to the rows, as groups of observed runs.
    fn seen<T>(&self, of: impl FnOnce(&[ObservedGroup<'_>]) -> T) -> T {
        let observed: Vec<Vec<Observed>> = self
            .rows
            .iter()
            .map(|row| row.runs.iter().filter_map(|run| run.at_rate.clone()).collect())
            .collect();
        let rows = self.rows.iter().zip(&observed);
        of(&rows
            .filter(|(row, _)| !row.for_its_course)
            .map(|(row, runs)| ObservedGroup { levels: &row.figures.levels, runs })
            .collect::<Vec<_>>())
    }

    /// Factors that set what is swept, by `which`: levels differ in it while all others are the same.
    pub fn factors_of(&self, which: for<'g> fn(&[ObservedGroup<'g>]) -> Vec<&'g str>) -> Vec<usize> {
        let is_one = |names: &[&str], at: usize| names.contains(&self.factor_names()[at]);
        self.seen(|rows| {
            let names = which(rows);
            (0..self.factor_names().len()).filter(|at| is_one(&names, *at)).collect()
        })
    }
}

/// Mean and 95 % interval of a figure `of` the runs at each place `at` the axis across.
pub fn mean_dots(
    rows: &[&CellRuns],
    at: impl Fn(&Observed) -> Option<f64>,
    of: impl Fn(&Observed) -> Option<f64>,
) -> Vec<Dot> {
    let mut all: Vec<(f64, Vec<f64>)> = Vec::new();
    let observed = rows.iter().flat_map(|row| &row.runs).filter_map(|run| run.at_rate.as_ref());
    for (place, value) in observed.filter_map(|run| Some((at(run)?, of(run)?))) {
        match all.iter_mut().find(|(known, _)| *known == place) {
            Some((_, values)) => values.push(value),
            None => all.push((place, vec![value])),
        }
    }
    all.into_iter()
        .map(|(place, values)| match mean_interval(&values) {
            Some(found) => (place, found.mean, Some((found.half_width, found.half_width))),
            None => (place, values[0], None),
        })
        .collect()
}
