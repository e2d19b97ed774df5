//! Monitors of `dyno run`: what its options mean.

use super::lower::usage;
use crate::exit::Failure;
use crate::options::RunArgs;
use dyno_monitor::prometheus::Url;
use dyno_session::watch::WatchPlan;
use dyno_types::units::parse_duration_ns;
use std::time::Duration;

/// Shortest and longest time between two ticks, seconds.
const INTERVAL_S: (f64, f64) = (0.01, 3_600.0);

/// Plan of the monitors that were asked for, checked; `None` with `--no-monitor`.
pub(super) fn plan(args: &RunArgs) -> Result<Option<WatchPlan>, Failure> {
    let option = "--monitor-interval";
    let ns = parse_duration_ns(&args.monitor_interval, 1_000_000_000).map_err(|e| usage(option, e))?;
    let interval = Duration::from_nanos(ns);
    if !(INTERVAL_S.0..=INTERVAL_S.1).contains(&interval.as_secs_f64()) {
        return Err(usage(option, format!("{}: expected 10ms to 1h", args.monitor_interval)));
    }
    let mut exporters: Vec<(String, Url)> = Vec::new();
    for text in &args.prometheus {
        let option = "--prometheus";
        let (name, url) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            usage(option, format!("{text:?}: expected NAME=URL, such as redis=http://127.0.0.1:9121"))
        })?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !name.chars().all(plain) || exporters.iter().any(|(known, _)| known == name) {
            return Err(usage(
                option,
                format!("{name:?}: expected a name of its own, of letters, digits, . _ and -"),
            ));
        }
        exporters.push((name.to_owned(), Url::parse(url).map_err(|e| usage(option, e))?));
    }
    let plan = WatchPlan { interval, processes: Vec::new(), exporters, cores: Vec::new() };
    Ok((!args.no_monitor).then_some(plan))
}
