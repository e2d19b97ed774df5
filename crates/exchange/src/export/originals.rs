//! What other programs would have printed, from a run's files. Lines and numbers are made by the rooms of these programs.

use crate::export::ExportError;
use dyno_compat_pocdriver::report as pocdriver;
use dyno_compat_sysbench_mongodb::report::console::{ReportedStage, Reporter, Tick as SysbenchTick, Wording};
use dyno_compat_wsf::report::client::{client_log, lines, read_log};
use dyno_compat_wsf::report::kpis::{CombinedKpis, kpi_text};
use dyno_compat_ycsb::report::exporter::Exporter;
use dyno_compat_ycsb::report::metrics::metrics;
use dyno_compat_ycsb::report::options::MeasurementOptions;
use dyno_compat_ycsb::report::render::{Overall, report};
use dyno_record::{Buckets, MergedSlot, Scale, Totals, bucket_high, bucket_low, bucket_of};
use dyno_rundir::schema::{Phase, Summary};
use dyno_rundir::{RecordedInterval, RunDir};
use dyno_types::metric::BULK;
use std::time::{Duration, SystemTime};

/// Seconds between two lines of tables that report in intervals: the default of both programs.
const EVERY_S: u64 = 10;

fn lacking(run: &RunDir, message: &str) -> ExportError {
    ExportError::Lacking(format!("{}: {message}", run.path.display()))
}

fn summary(run: &RunDir) -> Result<&Summary, ExportError> {
    run.summary.as_ref().ok_or_else(|| lacking(run, "the run has not come to its end: no summary.json"))
}

fn measured(run: &RunDir) -> Result<&Phase, ExportError> {
    summary(run)?.measured_phase().ok_or_else(|| lacking(run, "the run was cut off before it measured"))
}

fn setting<'a>(run: &'a RunDir, key: &str) -> Option<&'a str> {
    run.run.settings.iter().find(|setting| setting.key == key).map(|setting| setting.value.as_str())
}

/// Counts in whole microseconds, as YCSB records them; sum and extremes stay exact.
fn in_micros(buckets: &Buckets) -> Buckets {
    if buckets.bucket_scale() == Scale::Micros {
        return buckets.clone();
    }
    let mut out = Buckets::new(Scale::Micros);
    for (bucket, count) in buckets.iter() {
        out.add_bucket(bucket_of(bucket_low(bucket) * Scale::Ns64.unit_ns() / 1_000), count);
    }
    out.restore_extremes(buckets.sum_ns(), buckets.min_ns(), buckets.max_ns());
    out
}

fn totals_in_micros(totals: &Totals) -> Totals {
    let mut out = Totals::new(totals.outcomes.len(), Scale::Micros);
    let slot = |slot: &MergedSlot| MergedSlot {
        service: in_micros(&slot.service),
        response: in_micros(&slot.response),
    };
    out.slots = totals.slots.iter().map(|found| found.as_ref().map(slot)).collect();
    out.outcomes.clone_from(&totals.outcomes);
    (out.ended, out.arrivals) = (totals.ended, totals.arrivals);
    out
}

/// YCSB's report of the measured phase, from the recorded histograms; of an imported run without any, from its summary.
pub fn ycsb(run: &RunDir) -> Result<String, ExportError> {
    let phase = measured(run)?;
    let recorded = run.phases.iter().find(|recorded| recorded.name == phase.name);
    let Some(recorded) = recorded.filter(|recorded| recorded.totals.slots.iter().any(Option::is_some)) else {
        return Ok(Exporter::Text.export(&lines(phase)));
    };
    let mut lookup = |key: &str| setting(run, key).map(str::to_owned);
    let options = MeasurementOptions::from_lookup(&mut lookup)
        .map_err(|e| lacking(run, &e.to_string()))?
        .without_samples();
    let options = MeasurementOptions { each_error: false, tracked_errors: Vec::new(), ..options };
    let totals = totals_in_micros(&recorded.totals);
    let names = run.run.metrics.get(&phase.name).map_or(&[][..], Vec::as_slice);
    let interval = options.interval(phase.offered.is_some(), false);
    let ms = (phase.until_last_s() * 1e3).round() as u64;
    let found = metrics(names, &totals, SystemTime::UNIX_EPOCH, &options, interval);
    let lines = report(&Overall::of(&totals, ms.max(1), ms.max(1)), &found, &options, true)
        .map_err(|e| lacking(run, &e.to_string()))?;
    Ok(options.exporter.export(&lines))
}

/// The table of sysbench-mongodb, a line each ten seconds: of transactions, or of a load's inserts.
pub fn sysbench(run: &RunDir) -> Result<String, ExportError> {
    let phase = measured(run)?;
    let names = run.run.metrics.get(&phase.name).map_or(&[][..], Vec::as_slice);
    let has = |name: &str| names.iter().any(|known| known == name);
    let (metric, stage) = match () {
        () if has("TRANSACTION") => ("TRANSACTION", ReportedStage::Execute),
        () if phase.name == "load" && has("INSERT") => ("INSERT", ReportedStage::Load),
        () => {
            let message =
                "sysbench-mongodb counts transactions, or the inserts of a load; this run has neither";
            return Err(lacking(run, &format!("{message}: it has {}", names.join(", "))));
        }
    };
    let mut reporter = Reporter::new(Wording::Head, stage, phase.client.users as u64, false);
    let mut out = reporter.table_header().to_owned();
    let mut tick = SysbenchTick::default();
    by_intervals(run, phase, |interval, end_s, due| {
        for found in interval.metrics.iter().filter(|found| found.name == metric) {
            tick.done += found.outcomes.get("ok").copied().unwrap_or(0);
            tick.failed +=
                found.outcomes.iter().filter(|(name, _)| *name != "ok").map(|(_, n)| n).sum::<u64>();
            if let Some(buckets) = found.histograms.get("ok.service") {
                tick.latency_ms += buckets.sum_ns() as f64 / 1e6;
                tick.latencies += buckets.count();
            }
        }
        tick.elapsed_ms = (end_s * 1e3).round() as u64;
        if due {
            out.push_str(&reporter.line(&tick).1);
        }
    })?;
    Ok(out)
}

/// Hands over every interval of a phase, the time at its end, and whether a line is due: each ten seconds and at the end.
fn by_intervals(
    run: &RunDir,
    phase: &Phase,
    mut each: impl FnMut(&RecordedInterval, f64, bool),
) -> Result<(), ExportError> {
    let mut all: Vec<f64> = Vec::new();
    run.each_interval(|interval| {
        if interval.phase == phase.name {
            all.push(interval.start_s);
        }
    })?;
    // Seconds count from the epoch of the schedule, which is before the warm-up.
    let begin = all.first().copied().unwrap_or(0.0).floor();
    let last = all.len().saturating_sub(1);
    let (mut number, mut next_s) = (0, EVERY_S as f64);
    run.each_interval(|interval| {
        if interval.phase != phase.name {
            return;
        }
        let end_s = match all.get(number + 1) {
            Some(next) => next - begin,
            None => phase.until_last_s().max(interval.start_s - begin),
        };
        let due = number == last || end_s >= next_s;
        while end_s >= next_s {
            next_s += EVERY_S as f64;
        }
        each(&interval, end_s, due);
        number += 1;
    })?;
    Ok(())
}

/// POCDriver's log file in the form that can be read, a line each ten seconds.
pub fn pocdriver(run: &RunDir) -> Result<String, ExportError> {
    let phase = measured(run)?;
    let names = run.run.metrics.get(&phase.name).map_or(&[][..], Vec::as_slice);
    if !names.iter().any(|name| name == "KEYQUERY") {
        let message = "POCDriver counts inserts, key queries, updates and range queries; this run has";
        return Err(lacking(run, &format!("{message} {}", names.join(", "))));
    }
    let ok = |name: &str| {
        let found = phase.metrics.iter().find(|metric| metric.name == name);
        found.and_then(|metric| metric.outcomes.get("ok").copied()).unwrap_or(0)
    };
    let writes: u64 = ["INSERT", "UPDATE", "ARRAYUPDATE", "INCREMENT"].into_iter().map(ok).sum();
    // A bulk of one command may hold several documents, too: a worker that only inserts for a while sends such ones.
    let size = run.run.settings.iter().find(|setting| setting.key == "bulksize");
    let one_by_one = size.is_none_or(|size| size.value == "1");
    if ok(BULK) > 0 && (ok(BULK) != writes || !one_by_one) {
        let message = "POCDriver's log counts documents, but this run wrote several in one bulk and its files count commands";
        return Err(lacking(run, message));
    }
    let given = setting(run, "slowthreshold").unwrap_or("50");
    let thresholds: Vec<u64> = given.split(',').filter_map(|ms| ms.trim().parse().ok()).collect();
    let at = |name: &str| match name {
        "INSERT" => Some(0),
        "KEYQUERY" => Some(1),
        "UPDATE" | "ARRAYUPDATE" | "INCREMENT" => Some(2),
        "RANGEQUERY" => Some(3),
        _ => None,
    };
    let begun: jiff::Timestamp = run.run.started.parse().unwrap_or_default();
    let mut out = pocdriver::csv_head(&thresholds);
    let mut tick =
        pocdriver::PocTick { slow: [(); 4].map(|()| vec![(0, 0); thresholds.len()]), ..Default::default() };
    let mut last = ([0u64; 4], 0u64);
    by_intervals(run, phase, |interval, end_s, due| {
        for metric in &interval.metrics {
            let Some(at) = at(&metric.name) else { continue };
            tick.counts[at] += metric.outcomes.get("ok").copied().unwrap_or(0);
            let Some(buckets) = metric.histograms.get("ok.service") else { continue };
            for (slow, ms) in tick.slow[at].iter_mut().zip(&thresholds) {
                slow.0 += above(buckets, ms * 1_000_000);
                slow.1 += buckets.count();
            }
        }
        if !due {
            return;
        }
        let ms = (end_s * 1e3).round() as u64;
        let time = begun.checked_add(jiff::SignedDuration::from_millis(ms as i64)).unwrap_or(begun);
        tick.seconds = ms / 1_000;
        tick.clock.1 = time.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S").to_string();
        let mut since = tick.counts;
        since.iter_mut().zip(last.0).for_each(|(now, before)| *now -= before);
        tick.last = (since, ms - last.1);
        last = (tick.counts, ms);
        out.push_str(&pocdriver::csv(&tick));
    })?;
    Ok(out)
}

/// Samples beyond a time, to the width of a bucket.
fn above(buckets: &Buckets, ns: u64) -> u64 {
    let unit = buckets.bucket_scale().unit_ns();
    buckets.iter().filter(|(bucket, _)| bucket_high(*bucket) * unit > ns).map(|(_, count)| count).sum()
}

/// The Workload Services Framework's KPIs.
pub fn wsf(run: &RunDir) -> Result<String, ExportError> {
    let summary = summary(run)?;
    let clients: Vec<&[Phase]> = match summary.pairs.as_slice() {
        [] => vec![&summary.phases],
        pairs => pairs.iter().map(|pair| pair.phases.as_slice()).collect(),
    };
    let all: Vec<_> = clients.iter().map(|phases| read_log(&client_log(phases))).collect();
    Ok(kpi_text(&all, Some(&CombinedKpis::of(summary, &run.successes_by_second()?))))
}

/// The log of a bexhoma benchmarker: its header, which its evaluator asks for, and YCSB's report.
pub fn bexhoma(run: &RunDir) -> Result<String, ExportError> {
    let phase = measured(run)?;
    let begun: jiff::Timestamp = run.run.started.parse().unwrap_or_default();
    let product = run.run.database.split(' ').next().unwrap_or("").to_owned();
    let name = if product.is_empty() { "unknown".to_owned() } else { product };
    let code = begun.as_second().to_string();
    let records = setting(run, "recordcount").or(setting(run, "records")).and_then(|n| n.parse::<u64>().ok());
    let workload = setting(run, "workload").unwrap_or("unknown");
    let head = [
        ("BEXHOMA_EXPERIMENT:", code),
        ("BEXHOMA_CONNECTION:", name.clone()),
        ("BEXHOMA_CONFIGURATION:", name),
        ("BEXHOMA_EXPERIMENT_RUN:", "1".to_owned()),
        ("BEXHOMA_CLIENT:", "1".to_owned()),
        ("BEXHOMA_CHILD ", "1".to_owned()),
        ("BEXHOMA_NUM_PODS ", "1".to_owned()),
        // bexhoma's scale factor is in millions of records.
        ("SF ", records.map_or("0".to_owned(), |n| (n / 1_000_000).to_string())),
        ("YCSB_TARGET ", phase.offered.map_or("0".to_owned(), |rate| format!("{rate:.0}"))),
        ("YCSB_THREADCOUNT ", phase.client.users.to_string()),
        ("YCSB_WORKLOAD ", workload.rsplit('/').next().unwrap_or(workload).to_owned()),
        ("YCSB_OPERATIONS ", phase.arrivals.to_string()),
    ];
    let mut out: String = head.iter().map(|(key, value)| format!("{key}{value}\n")).collect();
    out.push_str(&ycsb(run)?);
    let end = begun.checked_add(Duration::from_secs_f64(phase.until_last_s().max(0.0))).unwrap_or(begun);
    out.push_str(&format!("BEXHOMA_START:{}\nBEXHOMA_END:{}\n", begun.as_second(), end.as_second()));
    Ok(out)
}
