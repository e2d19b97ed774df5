//! Results that are left at the end: the report through the chosen exporter, raw samples, and warnings of the verdict.

use super::ycsb_failure::YcsbFailure;
use crate::plan::Mode;
use crate::report::exporter::Exporter;
use crate::report::line::{Line, ReportNumber};
use crate::report::metrics::Metrics;
use crate::report::render::{Overall, raw_notices, report, write_raw};
use crate::work::YcsbWork;
use dyno_config::settings::BadSetting;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_rundir::schema::{Reason, Status, Summary, Trust};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Advice on options of `dyno run`, and its form on YCSB's command line.
const DIALECT: [(&str, &str); 8] = [
    ("let it run for 30 s or more", "raise operationcount or maxexecutiontime"),
    ("see --timeout and --drain", "see redis.timeout and dyno.timeout"),
    ("lower --rate, or raise --connections or --queue", "lower -target or raise -threads"),
    (
        "lower the load, or give it more cores (--threads where some are left, or a host of its own)",
        "lower the load, or raise dyno.load.threads where cores are left",
    ),
    ("--no-pin says so on purpose", "fewer dyno.load.threads may help"),
    ("the connections do not keep up", "the threads do not keep up"),
    ("use fewer users, more load threads", "use fewer -threads, more dyno.load.threads"),
    ("or more load threads", "or more dyno.load.threads"),
];

/// Refuses files that cannot be written, before the run instead of after it.
pub fn check(work: &YcsbWork) -> Result<(), BadSetting> {
    let (options, settings) = (&work.options, &work.settings);
    let writable = |key: &str, path: &str| {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        opened.map(drop).map_err(|e| settings.refuse_value(key, format!("a file that can be written ({e})")))
    };
    if let Some(path) = &options.export_file {
        writable("exportfile", path)?;
    }
    if let Some(path) = &options.raw_file {
        writable("measurement.raw.output_file", path)?;
    }
    if let Some(start) = &options.hdr_files {
        let folder = Path::new(&format!("{start}x")).parent().map(Path::to_owned).unwrap_or_default();
        if !folder.as_os_str().is_empty() && !folder.is_dir() {
            let expected = "the start of file names in a folder that exists, such as /tmp/run1-";
            return Err(settings.refuse_value("hdrhistogram.output.path", expected));
        }
    }
    Ok(())
}

/// Writes the report and further lines after it.
pub(super) fn write(
    work: &YcsbWork,
    overall: &Overall,
    metrics: &Metrics,
    further: Vec<Line>,
) -> Result<(), YcsbFailure> {
    let short = !metrics.samples && work.options.needs_samples();
    let options = &if short { work.options.without_samples() } else { work.options.clone() };
    if short {
        let most = work.client.samples;
        let message = "single samples were kept: the report is by HdrHistogram instead; raise dyno.samples (40 bytes each)";
        warn(work, &format!("only the first {most} {message}"));
    }
    let internal = |e: &dyn std::fmt::Display| Failure::internal(e.to_string());
    for warning in &metrics.warnings {
        warn(work, warning);
    }
    for notice in raw_notices(metrics, &work.options) {
        terminal::out(&format!("{notice}\n"));
    }
    let named = |path: &str, e: io::Error| Failure::internal(format!("{path}: {e}"));
    match &options.raw_file {
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path).map_err(|e| named(path, e))?;
            buffered(file, |out| write_raw(metrics, &work.options, out)).map_err(|e| named(path, e))?;
        }
        None => {
            let mut out = terminal::Results::default();
            write_raw(metrics, &work.options, &mut out)
                .and_then(|()| out.flush())
                .map_err(|e| internal(&e))?;
        }
    }
    let mut lines = report(overall, metrics, options, work.extras.compat_exit).map_err(|e| internal(&e))?;
    if work.extras.compat_exit {
        say_batched(&mut lines, u64::from(work.client.batch));
    }
    lines.extend(further);
    match &options.export_file {
        Some(path) => {
            let file = File::create(path).map_err(|e| named(path, e))?;
            buffered(file, |out| options.exporter.write(&lines, out)).map_err(|e| named(path, e))?;
        }
        None if work.extras.json => {}
        None => {
            let mut out = terminal::Results::default();
            let written = options.exporter.write(&lines, &mut out).and_then(|()| out.flush());
            written.map_err(|e| internal(&e))?;
        }
    }
    Ok(())
}

/// YCSB says of inserts that wait for their batch that they are done as such, and of the one that sends it what became of it.
fn say_batched(lines: &mut Vec<Line>, batch: u64) {
    let place = lines.iter().position(|line| line.metric == "INSERT" && line.measurement == "Return=OK");
    if let Some((at, ReportNumber::Int(inserts))) =
        place.map(|at| (at, lines[at].value.clone())).filter(|_| batch > 1)
    {
        let sent = (inserts as u64).div_ceil(batch) as i64;
        if inserts == sent {
            return;
        }
        lines[at].value = ReportNumber::Int(sent);
        lines.insert(at + 1, Line::new("INSERT", "Return=BATCHED_OK", ReportNumber::Int(inserts - sent)));
    }
}

fn buffered(file: File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush()
}

/// A warning, unless nothing but errors is wanted, or nothing but what YCSB says.
pub(super) fn warn(work: &YcsbWork, text: &str) {
    if !work.extras.quiet && !work.extras.compat_exit {
        terminal::warn(text);
    }
}

/// A line of YCSB's own talk on standard error.
pub(super) fn say(work: &YcsbWork, text: &str) {
    if !work.extras.quiet {
        terminal::verbatim(text);
    }
}

/// YCSB says on standard output that values are verified; beside JSON that would be in the way.
pub(super) fn say_integrity(work: &YcsbWork) {
    if !work.data_integrity {
        return;
    }
    let text = "Data integrity is enabled.";
    match work.options.exporter {
        Exporter::Text if !work.extras.json => terminal::out(&format!("{text}\n")),
        _ => say(work, text),
    }
}

/// Checks of the set-up: they are said of a load and of a short run as well.
const OF_EVERY_RUN: [&str; 4] = ["pinning", "clock_jump", "monitors", "shared_cores"];

/// Reasons that speak against the result. Reasons against single figures say nothing of a load, which only has to bring the
/// records in, and nothing of a run that is too short for percentiles, which is said instead.
pub(super) fn reasons(mode: Mode, summary: &Summary) -> Vec<&Reason> {
    let all = &summary.verdict.reasons;
    let too_short = |reason: &Reason| reason.check == "samples";
    let short = all.iter().any(too_short);
    let matters = |reason: &&Reason| {
        let always = reason.affects.is_empty() || OF_EVERY_RUN.contains(&reason.check.as_str());
        match mode {
            Mode::Load => always,
            _ => !short || always || too_short(reason),
        }
    };
    all.iter().filter(|reason| reason.trust != Trust::Valid).filter(matters).collect()
}

/// Says all that speaks against the result.
pub(super) fn warn_of(work: &YcsbWork, summary: &Summary) {
    let what = work.mode.name();
    for reason in reasons(work.mode, summary) {
        let word = reason.trust.trust_word();
        warn(work, &format!("the {what} is {word} ({}): {}", reason.check, in_dialect(&reason.text)));
    }
}

/// The code to exit with.
pub(super) fn exit_of(mode: Mode, summary: &Summary) -> Exit {
    match summary.status {
        Status::Interrupted => Exit::Interrupted,
        _ if reasons(mode, summary).iter().any(|reason| reason.trust == Trust::Invalid) => Exit::Invalid,
        _ => Exit::Ok,
    }
}

fn in_dialect(text: &str) -> String {
    DIALECT.iter().fold(text.to_owned(), |text, (ours, theirs)| text.replace(ours, theirs))
}
