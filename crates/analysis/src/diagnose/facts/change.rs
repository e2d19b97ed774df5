//! The greatest change of throughput's level in a run, and every watched figure before it and after it. A mean over both says
//! nothing of either.

use super::figures::Facts;
use super::{base, between, per_interval};
use crate::monitored::summarise_monitors;
use crate::series::{SegmentLabel, judge_stability, robust_deviation};
use dyno_rundir::RunDir;
use dyno_rundir::monitor::{Kind, Recording};
use dyno_rundir::schema::{Monitored, Phase};
use dyno_types::stats::median;
use dyno_types::units::Rate;
use serde::Serialize;

/// Fewest intervals before and after a change that can be told apart from noise.
const LEAST: usize = 3;
/// Factor from which on a series has moved.
const MOVED: f64 = 1.5;
/// Deviations of one second's values by which a series has to move.
const DEVIATIONS: f64 = 4.0;
/// Series that are named.
const NAMED: usize = 8;
/// A figure that comes from nothing, or goes to it, has changed by no more than this factor.
pub(in crate::diagnose) const GREATEST: f64 = 1e3;

/// A change of the level of throughput.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThroughputChange {
    /// When it comes, seconds after the warm-up.
    pub at_s: f64,
    /// Operations a second before it.
    pub before: f64,
    /// Operations a second after it.
    pub after: f64,
    /// Series that moved in another way than throughput did, those first that moved most.
    pub moved: Vec<Moved>,
}

/// A series before a change and after it: the median of its seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Source and name of the series.
    pub series: String,
    /// True of a counter, whose figures are a second's.
    pub counter: bool,
    /// Before the change.
    pub before: f64,
    /// After it.
    pub after: f64,
    /// Of a counter: the figure of one operation after the change by that before it. Else the same of the figure itself.
    pub ratio: f64,
}

impl ThroughputChange {
    /// Says when it comes and what it is.
    pub fn describe_change(&self) -> String {
        let ThroughputChange { at_s, before, after, .. } = self;
        let heads = if self.moved.is_empty() { "; no series moved with it" } else { "" };
        format!("at {at_s} s throughput changes from {}/s to {}/s{heads}", Rate(*before), Rate(*after))
    }
}

impl Moved {
    /// The figures before the change, after it, and the factor between them, for a table with [`Moved::HEADS`].
    pub fn table_cells(&self) -> [String; 4] {
        let unit = if self.counter { "/s" } else { "" };
        let figure = |value: f64| format!("{}{unit}", Rate(value));
        let ratio = match self.ratio {
            ratio if ratio >= GREATEST => "from nothing".to_owned(),
            ratio if ratio <= 1.0 / GREATEST => "to nothing".to_owned(),
            ratio => format!("x {}{}", Rate(ratio), if self.counter { " for each operation" } else { "" }),
        };
        [self.series.clone(), figure(self.before), figure(self.after), ratio]
    }

    /// Heads of a table of these.
    pub const HEADS: [&'static str; 4] = ["series", "before", "after", "change"];
}

/// Times in the recording, Unix milliseconds.
type RecordingSpan = (f64, f64);

/// What is known before a change and after it.
pub(in crate::diagnose) struct BeforeAfter {
    pub change: ThroughputChange,
    pub before: Facts,
    pub after: Facts,
}

/// Returns the change with what was watched around it; `None` if throughput has no change, or no monitor watched.
pub(in crate::diagnose) fn before_after(
    run: &RunDir,
    phase: &Phase,
    recording: &Recording,
    begin_ms: f64,
) -> Option<BeforeAfter> {
    let history = run.interval_history().ok()?;
    let found = judge_stability(&history.values)?;
    found.alarm?;
    let length = |range: (usize, usize)| range.1 - range.0;
    let pairs = found.segments.windows(2).filter(|pair| {
        let told = pair.iter().all(|one| length(one.range) >= LEAST && one.mean > 0.0);
        // That a warm-up ends is no question.
        told && pair[0].label != SegmentLabel::WarmUp
    });
    let step = |pair: &&[crate::series::Segment]| (pair[1].mean / pair[0].mean).ln().abs();
    let pair = pairs.max_by(|one, other| step(one).total_cmp(&step(other)))?;
    let seconds = |interval: usize| history.from_s as f64 + interval as f64 * history.step_s as f64;
    // An interval in which it changes belongs to neither.
    let window = |range: (usize, usize), skipped: (usize, usize)| {
        let (from, to) = (seconds(range.0 + skipped.0), seconds(range.1 - skipped.1));
        (begin_ms + from * 1e3, begin_ms + to * 1e3)
    };
    let windows = [window(pair[0].range, (0, 1)), window(pair[1].range, (1, 0))];
    let rates = [pair[0].mean, pair[1].mean];
    let [before, after] = [0, 1].map(|side| facts_of(run, phase, recording, windows[side], rates[side]));
    let change = ThroughputChange {
        at_s: seconds(pair[1].range.0),
        before: rates[0],
        after: rates[1],
        moved: moved(recording, windows, rates),
    };
    Some(BeforeAfter { after: with_changes(&before, after, rates), before, change })
}

/// Facts of a window of the phase, in which there were so many operations a second.
fn facts_of(
    run: &RunDir,
    phase: &Phase,
    recording: &Recording,
    window: RecordingSpan,
    throughput: f64,
) -> Facts {
    let seconds = (window.1 - window.0) / 1e3;
    let share = seconds / phase.seconds.max(1e-9);
    let mut part = phase.clone();
    (part.seconds, part.throughput) = (seconds, throughput);
    part.client.user_cpu_s *= share;
    part.client.system_cpu_s *= share;
    part.monitor = Some(Monitored { others: None, ..summarise_monitors(recording, window.0, window.1) });
    // What others took is known of the whole phase; here it is what is left.
    part.hosts.iter_mut().for_each(|host| host.others = None);
    let mut facts = Facts::default();
    base(&mut facts, run, &part);
    between(&mut facts, run, &part, recording, window);
    facts
}

/// The facts after a change, with what they are by those before it.
fn with_changes(before: &Facts, after: Facts, rates: [f64; 2]) -> Facts {
    let [x, y] = rates;
    let both = |name: &str| before.get(name).zip(after.get(name));
    let ratio = |name: &str| both(name).map(|(was, is)| factor(was, is));
    // By operation: a figure of a second falls with throughput by itself.
    let each = |name: &str| both(name).map(|(was, is)| factor(was / x, is / y));
    let rise = |name: &str| both(name).map(|(was, is)| is - was);
    let requests = |facts: &Facts| Some(facts.get("disk.reads_per_s")? + facts.get("disk.writes_per_s")?);
    let disk = requests(before).zip(requests(&after));
    let found = [
        ("change.throughput", Some(y / x)),
        ("change.disk_requests", disk.map(|(was, is)| factor(was, is))),
        ("change.disk_work", disk.map(|(was, is)| factor(was / x, is / y))),
        ("change.disk_bytes_work", each("disk.bytes_per_s")),
        ("change.waits_for_disk", each("pressure.io")),
        ("change.waits_for_cpu", each("pressure.cpu")),
        ("change.waits_for_memory", each("pressure.memory")),
        ("change.server_cpu", ratio("server.cores")),
        ("change.cpu_work", each("server.cores")),
        ("change.others", rise("host.cpu.others")),
        ("change.steal", rise("host.cpu.steal")),
        ("change.throttled", rise("server.throttled_periods")),
        ("change.frequency", ratio("host.frequency")),
        ("change.retransmitted", rise("network.retransmitted")),
    ];
    let mut facts = after;
    found.into_iter().for_each(|(name, value)| facts.set(name, value));
    facts
}

/// The second by the first; of next to nothing no more than [`GREATEST`].
fn factor(was: f64, is: f64) -> f64 {
    match (was > 0.0, is > 0.0) {
        (true, _) => (is / was).clamp(1.0 / GREATEST, GREATEST),
        (false, true) => GREATEST,
        (false, false) => 1.0,
    }
}

/// Series that moved in another way than throughput did.
fn moved(recording: &Recording, windows: [RecordingSpan; 2], rates: [f64; 2]) -> Vec<Moved> {
    let mut all = Vec::new();
    // What dyno's own processes do says nothing of the server.
    for source in recording.source_names().filter(|source| !["monitor", "dyno"].contains(source)) {
        for name in recording.series_names(source).filter(|name| !is_of_a_core(name)) {
            all.extend(one_moved(recording, source, name, windows, rates));
        }
    }
    let size = |one: &Moved| one.ratio.ln().abs();
    all.sort_by(|one, other| size(other).total_cmp(&size(one)));
    all.truncate(NAMED);
    all
}

/// Returns whether a host's series is of one core: there are as many as it has, and all of them together have one of their own.
fn is_of_a_core(name: &str) -> bool {
    name.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

fn one_moved(
    recording: &Recording,
    source: &str,
    name: &str,
    windows: [RecordingSpan; 2],
    rates: [f64; 2],
) -> Option<Moved> {
    let series = recording.find_series(source, name)?;
    let counter = series.kind == Kind::Counter;
    let values = |(from, to): RecordingSpan| -> Vec<f64> {
        match counter {
            true => per_interval(recording, source, name, from, to),
            false => {
                let inside = series.points.iter().filter(|(at, _)| (from..=to).contains(at));
                inside.filter_map(|(_, value)| *value).collect()
            }
        }
    };
    let sides = windows.map(values);
    if sides.iter().any(|side| side.len() < LEAST) {
        return None;
    }
    let (before, after) = (median(&sides[0])?, median(&sides[1])?);
    let [was, is] = if counter { [before / rates[0], after / rates[1]] } else { [before, after] };
    let ratio = factor(was, is);
    let noise = robust_deviation(&sides[0]).max(robust_deviation(&sides[1]));
    // A counter is held against what it would be if it had moved as throughput has.
    let expected = if counter { before * rates[1] / rates[0] } else { before };
    let sure = (after - expected).abs() > DEVIATIONS * noise;
    let told = ratio >= MOVED || ratio <= 1.0 / MOVED;
    (sure && told).then(|| Moved { series: format!("{source} {name}"), counter, before, after, ratio })
}
