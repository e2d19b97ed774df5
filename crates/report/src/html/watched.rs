//! Figures that monitors saw, on the axis of the load: the usual figures of host, server and database, then every other series.

use crate::html::charts::{Chart, ChartChoice};
use crate::html::points::{MOST, PackedSeries, SeriesPoint, pack_series, with_gaps};
use crate::html::timeline::Timeline;
use dyno_rundir::monitor::{Kind, Recording};
use dyno_types::database_series::{CPU_SYSTEM_S, CPU_USER_S, MEMORY_BYTES, OPERATIONS};

/// Points of all series that are no chart of their own, together.
const BUDGET: usize = 60_000;

/// Fewest points of a series.
const FEWEST: usize = 60;

/// A recording on an axis.
struct RecordingView<'a> {
    recording: &'a Recording,
    origin_ms: f64,
    reach: (f64, f64),
}

/// States of the CPU that are neither idle nor given to another virtual machine.
const BUSY: [&str; 5] = ["user", "nice", "system", "irq", "softirq"];

impl RecordingView<'_> {
    /// A gauge as it is; a counter's increase per second between neighbouring samples, at the later one.
    fn points(&self, source: &str, name: &str) -> Vec<SeriesPoint> {
        let Some(series) = self.recording.find_series(source, name) else { return Vec::new() };
        let at = |ms: f64| (ms - self.origin_ms) / 1e3;
        let points: Vec<SeriesPoint> = match series.kind {
            Kind::Gauge => series.points.iter().map(|(ms, value)| (at(*ms), *value)).collect(),
            Kind::Counter => apart(&series.points)
                .windows(2)
                .map(|pair| {
                    let step = pair[0].1.zip(pair[1].1).map(|(before, after)| {
                        let step = if after >= before { after - before } else { after };
                        step / (pair[1].0 - pair[0].0) * 1e3
                    });
                    (at(pair[1].0), step)
                })
                .collect(),
        };
        let (from, to) = self.reach;
        with_gaps(points.into_iter().filter(|(at, _)| (from - 2.0..=to + 2.0).contains(at)).collect())
    }

    fn series(&self, source: &str, name: &str, label: &str, factor: f64) -> PackedSeries {
        let points: Vec<SeriesPoint> = self
            .points(source, name)
            .into_iter()
            .map(|(at, value)| (at, value.map(|v| v * factor)))
            .collect();
        pack_series(label, &points, MOST)
    }

    /// Sum of series of one source, where all of them have the same times.
    fn sum(&self, source: &str, names: &[String], label: &str, of: Option<&[SeriesPoint]>) -> PackedSeries {
        let mut all: Vec<SeriesPoint> = Vec::new();
        for name in names {
            let points = self.points(source, name);
            if all.is_empty() {
                all = points;
            } else if all.len() == points.len() {
                all.iter_mut().zip(points).for_each(|(sum, (_, v))| sum.1 = sum.1.zip(v).map(|(a, b)| a + b));
            }
        }
        if let Some(whole) = of.filter(|whole| whole.len() == all.len()) {
            let share = |(part, whole): (f64, f64)| (whole > 0.0).then(|| part / whole * 100.0);
            all.iter_mut().zip(whole).for_each(|(part, whole)| part.1 = part.1.zip(whole.1).and_then(share));
        }
        pack_series(label, &all, MOST)
    }

    fn host(&self, charts: &mut Vec<Chart>) {
        let state = |name: &str| format!("cpu.{name}_s");
        let states: Vec<&str> = BUSY.iter().copied().chain(["idle", "iowait", "steal"]).collect();
        let known: Vec<&str> = states
            .into_iter()
            .filter(|name| self.recording.find_series(self.recording.host_source(), &state(name)).is_some())
            .collect();
        let mut whole: Vec<SeriesPoint> = Vec::new();
        for name in &known {
            let points = self.points(self.recording.host_source(), &state(name));
            if whole.is_empty() {
                whole = points;
            } else if whole.len() == points.len() {
                whole
                    .iter_mut()
                    .zip(points)
                    .for_each(|(sum, (_, v))| sum.1 = sum.1.zip(v).map(|(a, b)| a + b));
            }
        }
        let busy: Vec<String> =
            known.iter().filter(|name| BUSY.contains(name)).map(|name| state(name)).collect();
        let share = |names: &[String], label: &str| {
            self.sum(self.recording.host_source(), names, label, Some(&whole))
        };
        let cpu = vec![
            share(&busy, "busy"),
            share(&[state("iowait")], "waiting for disks"),
            share(&[state("steal")], "taken by the hypervisor"),
        ];
        charts.extend(Chart::without_choices("host-cpu", "Host: CPU", "% of all cores", cpu));
        let available = vec![self.series(
            self.recording.host_source(),
            "memory.available_bytes",
            "available",
            1.0 / 1_048_576.0,
        )];
        charts.extend(Chart::without_choices("host-memory", "Host: memory", "MiB", available));
        self.devices("disk.", ".busy_s", charts);
        self.devices("network.", ".sent_bytes", charts);
        let some = |what: &str| {
            self.series(self.recording.host_source(), &format!("pressure.{what}.some_s"), what, 100.0)
        };
        let pressure = vec![some("cpu"), some("io"), some("memory")];
        charts.extend(Chart::without_choices(
            "pressure",
            "Host: pressure (some task waits)",
            "% of time",
            pressure,
        ));
    }

    /// Disks or interfaces; the choice is the device, the busiest first.
    fn devices(&self, prefix: &str, suffix: &str, charts: &mut Vec<Chart>) {
        let names = self.recording.series_names(self.recording.host_source());
        let found =
            names.filter_map(|name| name.strip_prefix(prefix)?.strip_suffix(suffix).map(str::to_owned));
        let work = |name: &str| {
            self.points(self.recording.host_source(), &format!("{prefix}{name}{suffix}"))
                .iter()
                .filter_map(|(_, v)| *v)
                .sum::<f64>()
        };
        let mut found: Vec<(String, f64)> = found.map(|name| (name.clone(), work(&name))).collect();
        found.retain(|(_, work)| *work > 0.0);
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        let choice = |name: &str, parts: &[(&str, &str, f64)]| ChartChoice {
            n: name.to_owned(),
            s: parts
                .iter()
                .map(|(what, label, factor)| {
                    self.series(
                        self.recording.host_source(),
                        &format!("{prefix}{name}.{what}"),
                        label,
                        *factor,
                    )
                })
                .filter(|series| series.v.iter().any(Option::is_some))
                .collect(),
        };
        let mut add = |id: &str, title: &str, unit: &str, parts: &[(&str, &str, f64)]| {
            let choices: Vec<ChartChoice> =
                found.iter().take(4).map(|(name, _)| choice(name, parts)).collect();
            if choices.iter().any(|choice| !choice.s.is_empty()) {
                let (id, title, unit) = (id.into(), title.into(), unit.into());
                charts.push(Chart { id, title, unit, log: false, choices });
            }
        };
        let mib = 1.0 / 1_048_576.0;
        if prefix == "disk." {
            add(
                "disk",
                "Host: disk operations",
                "1/s",
                &[("reads", "reads", 1.0), ("writes", "writes", 1.0)],
            );
            add(
                "disk-bytes",
                "Host: disk traffic",
                "MiB/s",
                &[("read_bytes", "read", mib), ("written_bytes", "written", mib)],
            );
            add("disk-queue", "Host: disk operations under way", "mean", &[("weighted_s", "under way", 1.0)]);
        } else {
            add(
                "network",
                "Host: network",
                "MiB/s",
                &[("received_bytes", "received", mib), ("sent_bytes", "sent", mib)],
            );
        }
    }

    fn process(&self, source: &str, charts: &mut Vec<Chart>) {
        let cpu = [CPU_USER_S, CPU_SYSTEM_S].map(str::to_owned);
        let group = ["cgroup.cpu_s".to_owned()];
        // Of pods that a kubelet tells of, the control group is known alone.
        let own = self.recording.find_series(source, &cpu[0]).is_some();
        let cores = vec![
            self.sum(source, if own { &cpu[..] } else { &group[..] }, "CPU", None),
            self.series(source, "cgroup.throttled_s", "throttled (all threads)", 1.0),
        ];
        charts.extend(Chart::without_choices(
            &format!("{source}-cpu"),
            &format!("{source}: CPU"),
            "cores",
            cores,
        ));
        let level = if own { "resident_bytes" } else { "cgroup.memory_working_set_bytes" };
        let memory =
            vec![self.series(source, level, if own { "resident" } else { "working set" }, 1.0 / 1_048_576.0)];
        charts.extend(Chart::without_choices(
            &format!("{source}-memory"),
            &format!("{source}: memory"),
            "MiB",
            memory,
        ));
    }

    fn database(&self, source: &str, charts: &mut Vec<Chart>) {
        let operations = vec![self.series(source, OPERATIONS, "commands", 1.0)];
        charts.extend(Chart::without_choices(
            &format!("{source}-operations"),
            &format!("{source}: commands"),
            "1/s",
            operations,
        ));
        let memory = vec![self.series(source, MEMORY_BYTES, "used", 1.0 / 1_048_576.0)];
        charts.extend(Chart::without_choices(
            &format!("{source}-memory"),
            &format!("{source}: memory"),
            "MiB",
            memory,
        ));
    }
}

/// Samples without those that stand close to the one before: further samples are taken at the edges of phases, and a rate over
/// a few milliseconds says nothing about a second.
fn apart(points: &[SeriesPoint]) -> Vec<SeriesPoint> {
    let mut steps: Vec<f64> = points.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    if steps.is_empty() {
        return points.to_vec();
    }
    let middle = steps.len() / 2;
    let usual = *steps.select_nth_unstable_by(middle, f64::total_cmp).1;
    let mut out: Vec<SeriesPoint> = Vec::with_capacity(points.len());
    for point in points {
        if out.last().is_none_or(|last| point.0 - last.0 > usual / 3.0) {
            out.push(*point);
        }
    }
    out
}

/// Returns the unit of a series, by the name's end.
fn unit(name: &str, kind: Kind) -> &'static str {
    let ends = |end: &str| name.ends_with(end);
    match kind {
        Kind::Counter if ends("_s") => "s/s",
        Kind::Counter if ends("_bytes") => "B/s",
        Kind::Counter if ends("_us") => "us/s",
        Kind::Counter => "1/s",
        Kind::Gauge if ends("_s") => "s",
        Kind::Gauge if ends("_bytes") => "B",
        Kind::Gauge if ends("_us") => "us",
        Kind::Gauge => "value",
    }
}

/// Charts, and how many series did not change.
pub struct MonitorCharts {
    /// Charts in order; the last lets one choose any series.
    pub charts: Vec<Chart>,
    /// Series that had one value all the time, with it.
    pub constant: Vec<(String, f64)>,
}

/// Everything monitors saw.
pub fn build_monitor_charts(recording: &Recording, axis: &Timeline) -> MonitorCharts {
    let mut out = MonitorCharts { charts: Vec::new(), constant: Vec::new() };
    let Some(origin_ms) = axis.origin_ms else { return out };
    let seen = RecordingView { recording, origin_ms, reach: axis.drawn_range() };
    seen.host(&mut out.charts);
    let sources: Vec<&str> = recording.source_names().collect();
    for source in sources.iter().filter(|name| name.starts_with("server") || name.starts_with("worker")) {
        seen.process(source, &mut out.charts);
    }
    for source in sources.iter().filter(|name| name.starts_with("database")) {
        seen.database(source, &mut out.charts);
    }
    if sources.contains(&"dyno") {
        seen.process("dyno", &mut out.charts);
    }
    let names: Vec<(&str, &str)> = sources
        .iter()
        .flat_map(|source| recording.series_names(source).map(move |name| (*source, name)))
        .collect();
    let most = (BUDGET / names.len().max(1)).clamp(FEWEST, MOST);
    let mut choices = Vec::new();
    for (source, name) in names {
        let points = seen.points(source, name);
        let mut values = points.iter().filter_map(|(_, value)| *value);
        let Some(first) = values.next() else { continue };
        if values.all(|value| value == first) {
            out.constant.push((format!("{source} {name}"), first));
            continue;
        }
        let unit = recording.find_series(source, name).map_or("value", |series| unit(name, series.kind));
        choices.push(ChartChoice {
            n: format!("{source} {name} ({unit})"),
            s: vec![pack_series(name, &points, most)],
        });
    }
    if !choices.is_empty() {
        out.charts.push(Chart {
            id: "any".into(),
            title: "Any series".into(),
            unit: String::new(),
            log: false,
            choices,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_at_edges_make_no_spikes() {
        let points: Vec<SeriesPoint> =
            [0.0, 1_000.0, 1_010.0, 2_000.0, 3_000.0, 3_300.0, 4_000.0].map(|at| (at, Some(at))).to_vec();
        let kept: Vec<f64> = apart(&points).iter().map(|point| point.0).collect();
        assert_eq!(kept, [0.0, 1_000.0, 2_000.0, 3_000.0, 4_000.0]);
        assert!(apart(&[]).is_empty());
    }
}
