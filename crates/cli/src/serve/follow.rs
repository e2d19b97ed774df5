//! News of a run under way since it was last asked: the tail of its series, its phase, and how long it will take.

use super::latest_share::latest_server_share;
use super::listing::state;
use super::served_directory::{ServedDirectory, SurveyError};
use dyno_experiment::directory::{DirectoryError, holder, read_journal, read_record};
use dyno_experiment::journal::Entry;
use dyno_frontend::run_directory::silence;
use dyno_record::Scale;
use dyno_rundir::IntervalLine;
use dyno_rundir::files;
use dyno_rundir::schema::{Planned, Run, Status};
use dyno_rundir::{Event, series};
use dyno_types::metric::CLEANUP;
use serde::Serialize;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of the series that are read at once.
const CHUNK: u64 = 1 << 20;

/// Seconds of silence that are told of.
const SILENT_S: f64 = 3.0;

/// Time, length of an interval, succeeded and failed a second, p50 and p99.
type LiveSecond = (f64, f64, f64, f64, Option<f64>, Option<f64>);

/// Answer to a page that follows.
#[derive(Debug, Default, Serialize)]
pub struct Tail {
    /// The run: its name below the served folder. Another one than before means that everything begins anew.
    pub run: String,
    /// `running`, `complete` ...
    pub state: String,
    /// The phase under way.
    pub phase: String,
    /// Seconds left of it, where they are planned.
    pub left_s: Option<f64>,
    /// Seconds since something was written, if that is long.
    pub silent_s: Option<f64>,
    /// The operation whose response times are given.
    pub metric: String,
    /// Time (seconds since the first phase began), length of an interval of the phase, succeeded and failed a second, p50 and
    /// p99 in microseconds.
    pub rows: Vec<LiveSecond>,
    /// The server's share of that operation's p50 and p99 in the last interval, microseconds, where it is known.
    pub server_us: Option<[f64; 2]>,
    /// Begin and end of that interval, on the axis of the rows: the last row may be of another one.
    pub server_span: Option<(f64, f64)>,
    /// Failures of the last interval by outcome, the most first.
    pub errors: Vec<(String, u64)>,
    /// Phases: begin, end if it has ended, name.
    pub phases: Vec<(f64, Option<f64>, String)>,
    /// Position to go on from.
    pub next: u64,
    /// Of an experiment: runs that have ended and that are planned.
    pub runs: Option<(usize, usize)>,
    /// True if all is over.
    pub over: bool,
}

/// Query of a page that follows a run.
pub struct FollowQuery<'a> {
    /// The run that was followed before.
    pub run: &'a str,
    /// Position at which its series was left.
    pub next: u64,
    /// The operation whose response times were given.
    pub metric: &'a str,
}

/// The run that an experiment is at, or was at last.
fn under_way(path: &Path) -> Option<PathBuf> {
    let entries = read_journal(path).ok()?;
    let dir = entries.iter().rev().find_map(|entry| match entry {
        Entry::Run { dir, .. } => Some(dir.clone()),
        _ => None,
    })?;
    Some(path.join(dir))
}

/// Reasons for which there is nothing to tell of a run.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The run's folder is not read.
    #[error(transparent)]
    Survey(#[from] SurveyError),
    /// The record of its experiment cannot be read.
    #[error(transparent)]
    Experiment(#[from] DirectoryError),
    /// `run.json` cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// `run.json` is none.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The rows cannot be read.
    #[error("series.csv: {0}")]
    Series(#[source] std::io::Error),
}

/// The tail of a run, or of the run that an experiment is at.
pub fn tail(directory: &ServedDirectory, path: &Path, query: &FollowQuery<'_>) -> Result<Tail, FollowError> {
    let mut tail = Tail::default();
    let mut run = Some(path.to_owned());
    let mut of_experiment = false;
    if path.join("experiment.json").is_file() {
        of_experiment = true;
        run = under_way(path);
        let record = read_record(path)?;
        let ended =
            read_journal(path).map_or(0, |entries| dyno_experiment::directory::finished(entries).len());
        tail.runs = (!record.searches).then_some((ended, record.runs));
        tail.over = holder(path).is_none();
    }
    // A run that is being prepared has no directory yet.
    let name = run.as_ref().and_then(|run| directory.name(run));
    let folder = name.as_ref().and_then(|name| directory.folder(name));
    let (Some(name), Some(folder)) = (name, folder.filter(|folder| folder.join("run.json").is_file())) else {
        tail.state = if tail.over { "not running" } else { "preparing" }.into();
        return Ok(tail);
    };
    directory.survey(&folder)?;
    let (next, metric) = if query.run == name { (query.next, query.metric) } else { (0, "") };
    (tail.run, tail.next) = (name, next);
    of_run(&folder, metric, &mut tail)?;
    if !of_experiment {
        tail.over = tail.state != "running";
    }
    Ok(tail)
}

fn of_run(path: &Path, metric: &str, tail: &mut Tail) -> Result<(), FollowError> {
    let text = files::read_to_string(&path.join("run.json"))?;
    let run: Run = serde_json::from_str(&text)?;
    tail.state = state(path, run.status).into();
    let silence = silence(path).map(|silence| silence.as_secs_f64());
    tail.silent_s = silence.filter(|s| run.status == Status::Running && *s > SILENT_S);
    let events = events(path);
    let at = |kind: &str, name: &str| {
        events.iter().find(|e| e.event == kind && e.text == name).and_then(Event::at_ms)
    };
    let begun = events.iter().filter(|e| e.event == "begin");
    let begun: Vec<(&str, f64)> = begun.filter_map(|e| Some((e.text.as_str(), e.at_ms()?))).collect();
    let Some(origin) = begun.iter().map(|(_, at)| *at).reduce(f64::min) else { return Ok(()) };
    let since = |ms: f64| (ms - origin) / 1e3;
    for (name, from) in &begun {
        tail.phases.push((since(*from), at("end", name).map(since), (*name).to_owned()));
    }
    if let Some((name, from)) = begun.iter().rev().find(|(name, _)| at("end", name).is_none()) {
        tail.phase = (*name).to_owned();
        let now = jiff::Timestamp::now().as_nanosecond() as f64 / 1e6;
        tail.left_s = left(&run, name, (now - from) / 1e3).filter(|_| tail.state == "running");
    }
    let (text, next) = chunk(&path.join("series.csv"), tail.next).map_err(FollowError::Series)?;
    tail.next = next;
    tail.errors = failures(path);
    let epoch = |phase: &str| {
        // Seconds are counted from the beginning of the warm-up where there is one.
        let before = Some("warmup").filter(|_| phase == "measure").and_then(|name| at("begin", name));
        before.or_else(|| at("begin", phase)).map(since)
    };
    let now = since(jiff::Timestamp::now().as_nanosecond() as f64 / 1e6);
    let axis = |phase: &str| {
        let plan = plan(&run, phase);
        let step = plan.map_or(1.0, |plan| plan.interval_s).max(0.01);
        let begin = at("begin", phase).map(since)?;
        let end = at("end", phase).map_or_else(|| latest_end(plan, phase, begin, now), since);
        Some(Axis { epoch: epoch(phase)?, step, span: (begin, end) })
    };
    rows(&text, metric, &axis, tail);
    let scale = if run.unit_ns == 1_000 { Scale::Micros } else { Scale::Ns64 };
    let share = latest_server_share(path, scale, &tail.phase, &tail.metric);
    if let Some(((start_s, share), axis)) = share.zip(axis(&tail.phase)) {
        let begin = axis.epoch + start_s;
        (tail.server_us, tail.server_span) = (Some(share), Some((begin, begin + axis.step)));
    }
    Ok(())
}

/// Bytes at the end of `intervals.jsonl` in which its last line is looked for.
const LAST_LINE: u64 = 1 << 18;

/// Failures of the last interval that was recorded; nothing where that cannot be read.
fn failures(path: &Path) -> Vec<(String, u64)> {
    let read = || -> Option<IntervalLine> {
        let mut file = files::open(&path.join("intervals.jsonl")).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST_LINE))).ok()?;
        let mut bytes = Vec::new();
        file.take(LAST_LINE).read_to_end(&mut bytes).ok()?;
        let whole = bytes.strip_suffix(b"\n").or_else(|| {
            let end = bytes.iter().rposition(|byte| *byte == b'\n')?;
            Some(&bytes[..end])
        })?;
        serde_json::from_slice(whole.rsplit(|byte| *byte == b'\n').next()?).ok()
    };
    let ended = read().map(|line| line.ended).unwrap_or_default();
    let mut failed: Vec<(String, u64)> =
        ended.into_iter().filter(|(name, count)| name != "ok" && *count > 0).collect();
    failed.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    failed
}

fn plan<'a>(run: &'a Run, phase: &str) -> Option<&'a Planned> {
    run.plans.get(if phase == "warmup" { "measure" } else { phase })
}

/// Time before which a phase ends that is not told to have ended. An interval that was recorded before its time is over is the
/// last one, and a part: its phase ends by the number of its operations, or while last replies are awaited.
fn latest_end(plan: Option<&Planned>, phase: &str, begin: f64, now: f64) -> f64 {
    let seconds = plan.and_then(|plan| if phase == "warmup" { Some(plan.warmup_s) } else { plan.seconds });
    seconds.map_or(now, |seconds| now.min(begin + seconds))
}

/// Seconds that a phase goes on after `elapsed` seconds of it.
fn left(run: &Run, phase: &str, elapsed: f64) -> Option<f64> {
    let plan = plan(run, phase)?;
    let all = if phase == "warmup" { plan.warmup_s + plan.seconds? } else { plan.seconds? };
    Some((all - elapsed).max(0.0))
}

fn events(path: &Path) -> Vec<Event> {
    let text = files::read_to_string(&path.join("events.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    text[..whole].lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Whole lines from a place on, and where they end. From the beginning of a long file only the last of it is taken.
fn chunk(path: &Path, from: u64) -> std::io::Result<(String, u64)> {
    let mut file = files::open(path)?;
    let length = file.metadata()?.len();
    let (from, torn) = match from {
        0 if length > CHUNK => (length - CHUNK, true),
        // A file that is shorter than it was is another one.
        from if from > length => (0, false),
        from => (from, false),
    };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(CHUNK).read_to_end(&mut bytes)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let begin = if torn { bytes.iter().position(|byte| *byte == b'\n').map_or(end, |at| at + 1) } else { 0 };
    let lines = bytes.get(begin..end).unwrap_or_default();
    Ok((String::from_utf8_lossy(lines).into_owned(), from + end as u64))
}

/// A phase on the axis of time.
struct Axis {
    /// Time that its seconds are counted from.
    epoch: f64,
    /// Length of its intervals.
    step: f64,
    /// Begin, and the latest end.
    span: (f64, f64),
}

/// Rows of a chunk by time; of response times those of the operation that was given before, else of the one with the most
/// requests in the latest phase.
fn rows(text: &str, metric: &str, axis: &dyn Fn(&str) -> Option<Axis>, tail: &mut Tail) {
    let text = match text.starts_with("second,") {
        true => text.to_owned(),
        false => format!("{}{text}", series::HEADER),
    };
    let (rows, _) = series::read(&text);
    tail.metric = metric.to_owned();
    if metric.is_empty() {
        let latest = rows.last().map(|row| &row.phase);
        let mut counts: std::collections::BTreeMap<&str, u64> = Default::default();
        for row in rows.iter().filter(|row| Some(&row.phase) == latest) {
            if !["TOTAL", CLEANUP].contains(&row.metric.as_str()) {
                *counts.entry(&row.metric).or_default() += row.ok;
            }
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        tail.metric = most.map_or(String::new(), |(name, _)| name.to_owned());
    }
    // The operations of an interval stand before its total.
    let mut last: Option<&series::ReadRow> = None;
    for row in &rows {
        if row.metric == tail.metric {
            last = Some(row);
        }
        let Some(axis) = axis(&row.phase).filter(|_| row.metric == "TOTAL") else { continue };
        // The first and the last interval of a phase may be short; of a very short one nothing can be said.
        let begin = axis.epoch + row.start_s;
        let (from, to) = (begin.max(axis.span.0), (begin + axis.step).min(axis.span.1));
        let length = to - from;
        if length < axis.step / 4.0 {
            continue;
        }
        let same = last.filter(|one| one.phase == row.phase && one.start_s == row.start_s);
        let [p50, p99, ..] = same.map_or([None; 4], |one| one.response_us);
        let failed = (row.failed + row.dropped) as f64 / length;
        tail.rows.push((from.midpoint(to), axis.step, row.ok as f64 / length, failed, p50, p99));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_last_whole_line_are_told() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(failures(folder.path()), []);
        let line = |ended: &str| {
            let line = IntervalLine { phase: "measure".into(), ..IntervalLine::default() };
            serde_json::to_string(&line).unwrap().replace("\"ended\":{}", &format!("\"ended\":{ended}"))
        };
        let text = format!("{}\n{}\n", line("{\"ok\":5}"), line("{\"ok\":1,\"busy\":2,\"timed_out\":7}"));
        for torn in ["", "{\"phase\":\"mea"] {
            std::fs::write(folder.path().join("intervals.jsonl"), format!("{text}{torn}")).unwrap();
            assert_eq!(failures(folder.path()), [("timed_out".to_owned(), 7), ("busy".to_owned(), 2)]);
        }
    }

    #[test]
    fn an_interval_that_is_recorded_before_its_time_is_a_part_of_one() {
        let plan = |seconds| Planned { seconds, warmup_s: 0.5, interval_s: 1.0, ..Planned::default() };
        let (by_clock, by_count) = (plan(Some(2.5)), plan(None));
        // 0.4 s of the third second are over: 400 operations are 1,000/s.
        let now = latest_end(Some(&by_count), "measure", 10.0, 12.4);
        let mut tail = Tail::default();
        let text = "2,measure,TOTAL,400,0,0,,,,,,,,,,,0,\n";
        rows(text, "READ", &|_| Some(Axis { epoch: 10.0, step: 1.0, span: (10.0, now) }), &mut tail);
        let (middle, rate) = (tail.rows[0].0, tail.rows[0].2);
        assert!((middle - 12.2).abs() < 1e-9 && (rate - 1_000.0).abs() < 1e-6, "{middle} {rate}");
        // Replies are awaited behind the end by the clock.
        assert_eq!(latest_end(Some(&by_clock), "measure", 10.0, 17.0), 12.5);
        assert_eq!(latest_end(Some(&by_clock), "measure", 10.0, 11.0), 11.0);
        assert_eq!(latest_end(Some(&by_clock), "warmup", 10.0, 17.0), 10.5);
        assert_eq!(latest_end(None, "measure", 10.0, 17.0), 17.0);
    }

    #[test]
    fn a_tail_goes_on_where_it_was_left_and_takes_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("series.csv");
        let line = |second: u32, ok: u32| {
            format!(
                "{second},measure,READ,{ok},0,0,,,,,,5.0,9.0,,,,,\n{second},measure,TOTAL,{ok},1,1,,,,,,,,,,,0,\n"
            )
        };
        std::fs::write(&path, format!("{}{}2,meas", series::HEADER, line(1, 10))).unwrap();
        let (text, next) = chunk(&path, 0).unwrap();
        let mut tail = Tail::default();
        let axis =
            |epoch: f64, step: f64, end: f64| move |_: &str| Some(Axis { epoch, step, span: (epoch, end) });
        rows(&text, "", &axis(100.0, 0.5, f64::INFINITY), &mut tail);
        assert_eq!(tail.rows, [(101.25, 0.5, 20.0, 4.0, Some(5.0), Some(9.0))]);
        assert_eq!(tail.metric, "READ");
        std::fs::write(&path, format!("{}{}{}", series::HEADER, line(1, 10), line(2, 20))).unwrap();
        let (text, end) = chunk(&path, next).unwrap();
        let mut tail = Tail::default();
        rows(&text, "READ", &axis(0.0, 1.0, 2.5), &mut tail);
        assert_eq!(
            tail.rows,
            [(2.25, 1.0, 40.0, 4.0, Some(5.0), Some(9.0))],
            "a phase that ended in the middle of a second"
        );
        let mut tail = Tail::default();
        rows(&text, "READ", &axis(0.0, 1.0, 2.1), &mut tail);
        assert_eq!(tail.rows, []);
        assert_eq!(chunk(&path, end).unwrap(), (String::new(), end));
        assert_eq!(chunk(&path, end + 1_000).unwrap().1, end, "a shorter file begins anew");
        // The load had another operation; an interval without the one that is followed changes nothing.
        let loaded = "1,load,INSERT,90,0,0,,,,,,1.0,2.0,,,,,\n1,load,TOTAL,90,1,1,,,,,,,,,,,0,\n";
        let followed = |text: &str, before: &str| {
            let mut tail = Tail::default();
            rows(text, before, &axis(0.0, 1.0, f64::INFINITY), &mut tail);
            (tail.metric, tail.rows.last().and_then(|row| row.4))
        };
        assert_eq!(followed(loaded, ""), ("INSERT".into(), Some(1.0)));
        assert_eq!(followed(&format!("{loaded}{}", line(2, 9)), ""), ("READ".into(), Some(5.0)));
        assert_eq!(followed(&line(2, 9), "UPDATE"), ("UPDATE".into(), None));
        let long: String = (0..40_000).map(|second| line(second, 1)).collect();
        std::fs::write(&path, format!("{}{long}", series::HEADER)).unwrap();
        let (text, end) = chunk(&path, 0).unwrap();
        assert!(text.len() < CHUNK as usize && text.ends_with(&line(39_999, 1)), "the last of a long file");
        assert_eq!(end, std::fs::metadata(&path).unwrap().len());
        assert!(series::read(&format!("{}{text}", series::HEADER)).1 == 0);
    }
}
