//! The client's properties: how many users, how fast, how long, and what is said while the run goes on.
//!
//! They are YCSB's `threadcount`, `target`, `operationcount` and so on, with 64-bit counts and a range for each, and
//! what we add to them under `dyno.`. How the counts of records relate to each other is the workload's affair.

use crate::settings::{BadSetting, PropertySettings};
use dyno_types::limits::{ASKED_S, BATCH, CONNECTIONS, OPERATIONS_PER_S, PIPELINE, SAMPLES, THREADS};
use dyno_types::units::parse_duration_ns;
use dyno_workload::ycsb::BadProperty;
use dyno_workload::ycsb::properties::{MAX_COUNT, PropertyReader};
use std::fmt;

/// YCSB's words where there are more threads than operations.
const MORE_THREADS: &str =
    "Warning: the threadcount is bigger than recordcount, the threadcount will be recordcount!";

/// Distribution of the gaps between arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapDistribution {
    /// All the same.
    Constant,
    /// Exponential, as if many independent users came.
    Poisson,
}

/// Settings of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Users, at most one per operation.
    pub threads: u32,
    /// Operations per second over all users; 0 for as fast as it goes.
    pub target: u64,
    /// Operations of this phase; `None` for no end.
    pub operations: Option<u64>,
    /// Seconds after which the run ends; `None` for no limit.
    pub max_execution_s: Option<u64>,
    /// `recordcount`.
    pub records: u64,
    /// `insertstart`: the first key number, or the first timestamp of a time series.
    pub insert_start: u64,
    /// `insertcount`, or what follows from `recordcount` and `insertstart`.
    pub insert_count: u64,
    /// True if status lines are wanted.
    pub status: bool,
    /// Seconds between status lines.
    pub status_interval_s: u64,
    /// Text before every status line.
    pub label: String,
    /// True in the run phase, false in the load.
    pub do_transactions: bool,
    /// True if users spin instead of sleeping.
    pub spin_sleep: bool,
    /// Operations in flight per connection.
    pub pipeline: u32,
    /// Inserts that go out as one batch in phases that only insert.
    pub batch: u32,
    /// Distribution of arrivals where a target is set.
    pub arrivals: GapDistribution,
    /// Duration at the start that does not count, nanoseconds.
    pub warmup_ns: u64,
    /// `dyno.timeout`: how long a reply is awaited, nanoseconds; `None` if it is not set or 0. The binding's target
    /// holds the one that applies to it.
    pub timeout_ns: Option<u64>,
    /// Length of recorded intervals, nanoseconds.
    pub interval_ns: u64,
    /// Most single samples that are kept.
    pub samples: usize,
    /// Operating-system threads that make the load; `None` for as many as suits.
    pub load_threads: Option<u32>,
    /// Workers among which users and operations are divided.
    pub workers: u32,
    /// Warnings that are worth saying.
    pub warnings: Vec<Warning>,
    threads_set: u32,
}

/// Warning about odd settings of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// There are more users than operations; there will be one per operation. The text is YCSB's, which prints it
    /// on standard output.
    MoreThreads,
    /// Nothing ends the run.
    Endless,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Warning::MoreThreads => MORE_THREADS,
            Warning::Endless => {
                "neither operationcount nor maxexecutiontime is set: the run goes on until it is interrupted"
            }
        })
    }
}

impl ClientConfig {
    /// Reads the client's properties.
    pub fn from_settings(settings: &PropertySettings) -> Result<ClientConfig, BadSetting> {
        let config = read(settings)?;
        if let Some(limit_s) = config.max_execution_s
            && config.warmup_ns >= limit_s * 1_000_000_000
        {
            let expected = format!("a duration shorter than maxexecutiontime, which is {limit_s} s");
            return Err(settings.refuse_value("dyno.warmup", expected));
        }
        if config.arrivals == GapDistribution::Poisson && config.target == 0 {
            let expected = "constant, or a target above 0 (-target N) whose arrivals it spreads";
            return Err(settings.refuse_value("dyno.arrivals", expected));
        }
        Ok(config)
    }

    /// Sets the number of operations, for workloads that reckon it themselves, and what follows from it: the number
    /// of users and the warnings.
    pub fn set_operations(&mut self, operations: Option<u64>) {
        self.operations = operations;
        self.warnings.clear();
        let most = operations.unwrap_or(u64::MAX).min(u64::from(u32::MAX)) as u32;
        self.threads = self.threads_set.min(most);
        if self.threads < self.threads_set {
            self.warnings.push(Warning::MoreThreads);
        }
        if operations.is_none() && self.max_execution_s.is_none() {
            self.warnings.push(Warning::Endless);
        }
    }
}

fn read(settings: &PropertySettings) -> Result<ClientConfig, BadSetting> {
    let blame = |bad: BadProperty| settings.blame_source(bad);
    let mut lookup = settings.property_lookup();
    let mut r = PropertyReader::new(&mut lookup);
    let mut count = |key: &str, default: u64, range| r.count(key, default, range).map_err(blame);
    let threads = count("threadcount", 1, 1..=CONNECTIONS as u64)? as u32;
    let target = count("target", 0, 0..=OPERATIONS_PER_S)?;
    let limit_s = count("maxexecutiontime", 0, 0..=ASKED_S)?;
    let records = count("recordcount", 0, 0..=MAX_COUNT)?;
    let insert_start = count("insertstart", 0, 0..=MAX_COUNT)?;
    // As in YCSB the load inserts recordcount records from insertstart on, unless insertcount is given.
    let insert_count = count("insertcount", records, 0..=MAX_COUNT)?;
    let operations = count("operationcount", 0, 0..=MAX_COUNT)?;
    let status_interval_s = count("status.interval", 10, 1..=ASKED_S)?;
    let pipeline = count("dyno.pipeline", 1, 1..=PIPELINE as u64)? as u32;
    let workers = count("dyno.workers", 1, 1..=THREADS as u64)? as u32;
    let samples = count("dyno.samples", SAMPLES as u64, 0..=MAX_COUNT)? as usize;
    let batch_key = if settings.text_of("batchsize").is_some() { "batchsize" } else { "mongodb.batchsize" };
    let batch = count(batch_key, 1, 1..=BATCH as u64)? as u32;
    let do_transactions = r.read_flag("dotransactions", true).map_err(blame)?;
    let arrivals = [("constant", GapDistribution::Constant), ("poisson", GapDistribution::Poisson)];
    let mut config = ClientConfig {
        threads,
        target,
        operations: None,
        max_execution_s: (limit_s > 0).then_some(limit_s),
        records,
        insert_start,
        insert_count,
        status: r.read_flag("status", false).map_err(blame)?,
        status_interval_s,
        label: r.read_text("label", ""),
        do_transactions,
        spin_sleep: r.read_flag("spin.sleep", false).map_err(blame)?,
        pipeline,
        batch,
        arrivals: r.read_choice("dyno.arrivals", "constant", &arrivals).map_err(blame)?,
        warmup_ns: duration_ns(settings, "dyno.warmup")?,
        timeout_ns: Some(duration_ns(settings, "dyno.timeout")?).filter(|&ns| ns > 0),
        interval_ns: interval_ns(settings)?,
        samples,
        load_threads: load_threads(settings)?,
        workers,
        warnings: Vec::new(),
        threads_set: threads,
    };
    let phase = if do_transactions { operations } else { insert_count };
    config.set_operations((phase > 0).then_some(phase));
    Ok(config)
}

/// The duration `key` is set to, nanoseconds; 0 if it is not set. A bare number other than 0 is refused, because
/// YCSB's own properties count in seconds here and in milliseconds there.
pub fn duration_ns(settings: &PropertySettings, key: &str) -> Result<u64, BadSetting> {
    let Some(text) = settings.text_of(key).map(str::trim) else { return Ok(0) };
    let ns = parse_duration_ns(text, 1).ok().filter(|&ns| ns <= ASKED_S * 1_000_000_000);
    let has_unit = text.ends_with(char::is_alphabetic);
    ns.filter(|&ns| ns == 0 || has_unit).ok_or_else(|| {
        settings.refuse_value(key, "a duration with its unit: ns, us, ms, s, m or h, such as 500ms")
    })
}

/// The length of recorded intervals: a whole number of them makes a second.
fn interval_ns(settings: &PropertySettings) -> Result<u64, BadSetting> {
    const KEY: &str = "dyno.interval";
    const SECOND_NS: u64 = 1_000_000_000;
    match duration_ns(settings, KEY)? {
        0 if settings.text_of(KEY).is_none() => Ok(SECOND_NS),
        ns if (10_000_000..=SECOND_NS).contains(&ns) && SECOND_NS.is_multiple_of(ns) => Ok(ns),
        _ => Err(settings.refuse_value(KEY, "10ms to 1s, a whole number of them in a second, such as 100ms")),
    }
}

fn load_threads(settings: &PropertySettings) -> Result<Option<u32>, BadSetting> {
    const KEY: &str = "dyno.load.threads";
    let mut lookup = settings.property_lookup();
    let mut r = PropertyReader::new(&mut lookup);
    match r.read_word(KEY, "auto").as_str() {
        "auto" => Ok(None),
        _ => r
            .count_if_set(KEY, 1..=THREADS as u64)
            .map(|n| n.map(|n| n as u32))
            .map_err(|_| settings.refuse_value(KEY, format!("auto or a whole number, 1 to {THREADS}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Source;
    use dyno_workload::ycsb::{Property, Scope, known_properties};

    fn read(pairs: &[(&str, &str)]) -> Result<ClientConfig, String> {
        let mut settings = PropertySettings::new();
        for (i, (key, value)) in pairs.iter().enumerate() {
            settings.set_property(key, *value, Source::File { path: "w".into(), line: i as u32 + 1 });
        }
        ClientConfig::from_settings(&settings).map_err(|bad| bad.to_string())
    }

    /// The properties that only dyno's client has.
    fn of_client() -> impl Iterator<Item = &'static Property> {
        known_properties().iter().filter(|p| p.scope == Scope::DynoClient)
    }

    #[test]
    fn defaults() {
        let config = read(&[]).unwrap();
        assert_eq!((config.threads, config.target, config.operations), (1, 0, None));
        assert_eq!((config.status, config.status_interval_s, config.label.as_str()), (false, 10, ""));
        assert!(config.do_transactions && !config.spin_sleep);
        assert_eq!((config.pipeline, config.arrivals, config.warmup_ns), (1, GapDistribution::Constant, 0));
        assert_eq!((config.timeout_ns, config.load_threads), (None, None));
        assert_eq!(config.warnings, [Warning::Endless]);
        // The declared defaults are what is read where nothing is set.
        let mut pairs: Vec<(&str, &str)> = of_client().map(|p| (p.name, p.default)).collect();
        pairs.retain(|(_, default)| !default.is_empty());
        assert_eq!(read(&pairs).unwrap(), config);
    }

    #[test]
    fn phases_count_their_own_operations() {
        let pairs = [("recordcount", "5000000000"), ("operationcount", "7"), ("insertstart", "10")];
        let run = read(&pairs).unwrap();
        assert_eq!((run.operations, run.insert_count, run.records), (Some(7), 5_000_000_000, 5_000_000_000));
        let with = |extra: &[(&'static str, &'static str)]| read(&[&pairs[..], extra].concat()).unwrap();
        assert_eq!(with(&[("dotransactions", "false")]).operations, Some(5_000_000_000));
        assert_eq!(with(&[("dotransactions", "false"), ("insertcount", "3")]).operations, Some(3));
        let series = ("workload", "site.ycsb.workloads.TimeSeriesWorkload");
        let load = with(&[series, ("insertstart", "1700000000"), ("dotransactions", "false")]);
        assert_eq!(load.operations, Some(5_000_000_000));
    }

    #[test]
    fn no_more_users_than_operations() {
        let mut config = read(&[("threadcount", "8"), ("operationcount", "3")]).unwrap();
        assert_eq!((config.threads, config.warnings.as_slice()), (3, &[Warning::MoreThreads][..]));
        assert!(config.warnings[0].to_string().starts_with("Warning: the threadcount is bigger than"));
        config.set_operations(Some(100));
        assert_eq!((config.threads, config.warnings.len()), (8, 0));
    }

    #[test]
    fn additions() {
        let pairs = [
            ("target", "20k"),
            ("dyno.arrivals", "poisson"),
            ("dyno.warmup", "1.5s"),
            ("dyno.timeout", "50 ms"),
            ("dyno.workers", "3"),
            ("dyno.load.threads", "2"),
            ("maxexecutiontime", "60 "),
        ];
        let config = read(&pairs).unwrap();
        assert_eq!((config.target, config.arrivals), (20_000, GapDistribution::Poisson));
        assert_eq!((config.warmup_ns, config.timeout_ns), (1_500_000_000, Some(50_000_000)));
        assert_eq!((config.load_threads, config.max_execution_s), (Some(2), Some(60)));
        assert_eq!(config.workers, 3);
        assert_eq!(config.warnings, []);
    }

    #[test]
    fn refusals() {
        let text = |pairs: &[(&str, &str)]| read(pairs).unwrap_err();
        assert_eq!(text(&[("threadcount", "0")]), "w:1: threadcount=0: expected a whole number, 1 to 100000");
        assert!(text(&[("target", "-5")]).starts_with("w:1: target=-5: expected a whole number, 0 to"));
        assert!(text(&[("target", "0.5")]).contains("whole number"));
        assert!(text(&[("status.interval", "0")]).contains("1 to"));
        assert!(text(&[("dyno.pipeline", "10001")]).contains("1 to 10000"));
        assert!(text(&[("dyno.arrivals", "poisson")]).contains("a target above 0"));
        assert!(text(&[("dyno.arrivals", "uniform")]).contains("constant or poisson"));
        assert!(text(&[("dyno.warmup", "5")]).contains("with its unit"));
        assert!(
            text(&[("maxexecutiontime", "5"), ("dyno.warmup", "5s")])
                .contains("shorter than maxexecutiontime")
        );
        assert!(text(&[("dyno.load.threads", "many")]).contains("auto or a whole number"));
        assert!(text(&[("dyno.workers", "0")]).contains("1 to 1024"));
        assert!(text(&[("status", "yes")]).contains("true or false"));
    }
}
