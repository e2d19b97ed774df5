//! The time-series workload's properties, read with YCSB's defaults and checked as a whole.

use crate::mix::MixMode;
use crate::ycsb::config::{Proportions, read_mode, read_proportions, read_requests, read_seed};
use crate::ycsb::properties::{BadProperty, Lookup, MAX_COUNT, PropertyReader};
use crate::ycsb::request_distribution::RequestDistribution;
use dyno_types::limits::SCAN_RECORDS;

/// Most series accepted, over all keys and tags.
const MAX_SERIES: u64 = 1 << 32;

/// The numbers that are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// Uniform in [0, 100000).
    Floats,
    /// Uniform over all 32-bit integers.
    Integers,
    /// Either, half and half.
    Mixed,
}

/// An aggregation that queries ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// Name of the function.
    pub function: String,
    /// For each tag, whether it is grouped by (and not given a value).
    pub tags: Vec<bool>,
}

/// A reduction of resolution that queries ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downsampling {
    /// Name of the function.
    pub function: String,
    /// Units per point of the result.
    pub interval: u64,
}

/// Everything the time-series workload can be told. Times are in `timestampunits`.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeSeriesConfig {
    /// Table or collection.
    pub table: String,
    /// Points to load.
    pub record_count: u64,
    /// Points that one load inserts.
    pub insert_count: u64,
    /// Operations of the run phase; 0 for no end.
    pub operation_count: u64,
    /// Users (threads) among whom the keys are divided.
    pub users: u64,
    /// Number of series keys.
    pub keys: u64,
    /// Letters of a key.
    pub key_letters: usize,
    /// Number of values of each tag.
    pub cardinalities: Vec<u64>,
    /// Letters of a tag's name.
    pub tag_letters: usize,
    /// Letters of a tag's value.
    pub tag_value_letters: usize,
    /// First timestamp.
    pub start: u64,
    /// Units between two points of a series.
    pub interval: u64,
    /// Name of the timestamp field.
    pub timestamp_name: String,
    /// Name of the value field.
    pub value_name: String,
    /// Text between a tag's name and value in queries.
    pub pair_delimiter: String,
    /// Text between the parts of a deleted key.
    pub delete_delimiter: String,
    /// Text between the ends of a span.
    pub span_delimiter: String,
    /// Timestamps of the load in random order.
    pub random_timestamps: bool,
    /// Series of each timestamp in random order.
    pub random_series: bool,
    /// Kind of the numbers that are stored.
    pub numbers: NumberKind,
    /// Values that can be verified.
    pub data_integrity: bool,
    /// Fraction of the points left out.
    pub sparsity: f64,
    /// Fraction of the series that lag behind.
    pub delayed: f64,
    /// A delayed series lags behind by its number modulo this, in intervals.
    pub delayed_intervals: u64,
    /// Units a query covers; 0 for one timestamp.
    pub span: u64,
    /// Spans are drawn, in whole intervals up to `span`.
    pub random_span: bool,
    /// Name under which the grouping function is passed.
    pub group_name: String,
    /// Grouping, if any.
    pub grouping: Option<Grouping>,
    /// Name under which the downsampling is passed.
    pub downsampling_name: String,
    /// Downsampling, if any.
    pub downsampling: Option<Downsampling>,
    /// Weights of the operations; no read-modify-writes.
    pub proportions: Proportions,
    /// Distribution by which series keys are chosen; not latest, not exponential.
    pub requests: RequestDistribution,
    /// Shortest scan, records.
    pub min_scan: u32,
    /// Longest scan, records.
    pub max_scan: u32,
    /// Seed of every draw.
    pub seed: u64,
    /// Method by which kinds of operation are spread over the indexes.
    pub mode: MixMode,
}

impl TimeSeriesConfig {
    /// Reads all properties and checks them. `users` share the keys among them; `now_ms`, milliseconds since 1970,
    /// is the first timestamp where `insertstart` is not set (load and run must then be given the same).
    pub fn from_lookup(lookup: Lookup<'_>, users: u64, now_ms: u64) -> Result<TimeSeriesConfig, BadProperty> {
        let mut r = PropertyReader::new(lookup);
        let record_count = r.count("recordcount", 0, 1..=MAX_COUNT)?;
        if record_count == 0 {
            return Err(BadProperty::new("recordcount", 0, "the number of points, above 0"));
        }
        let unit_ms = read_unit_ms(&mut r)?;
        let cardinalities = read_cardinalities(&mut r)?;
        let min_scan = r.count("minscanlength", 1, 1..=u64::from(SCAN_RECORDS))? as u32;
        let numbers = [
            ("floats", NumberKind::Floats),
            ("integers", NumberKind::Integers),
            ("mixednumbers", NumberKind::Mixed),
            ("mixed", NumberKind::Mixed),
        ];
        let fraction = |x: f64| (0.0..=1.0).contains(&x);
        let config = TimeSeriesConfig {
            table: r.read_text("table", "usertable"),
            record_count,
            insert_count: r.count("insertcount", record_count, 1..=MAX_COUNT)?,
            operation_count: r.count("operationcount", 0, 0..=MAX_COUNT)?,
            users: users.max(1),
            keys: r.count("fieldcount", 10, 1..=MAX_SERIES)?,
            key_letters: r.count("fieldlength", 100, 1..=1024)? as usize,
            tag_letters: r.count("tagkeylength", 8, 1..=1024)? as usize,
            tag_value_letters: r.count("tagvaluelength", 8, 1..=1024)? as usize,
            start: r.count("insertstart", now_ms / unit_ms, 0..=MAX_COUNT)?,
            interval: r.count("timestampinterval", 60, 1..=1 << 40)?,
            timestamp_name: r.read_text("timestampkey", "YCSBTS"),
            value_name: r.read_text("valuekey", "YCSBV"),
            pair_delimiter: r.read_text("tagpairdelimiter", "="),
            delete_delimiter: r.read_text("deletedelimiter", ":"),
            span_delimiter: r.read_text("querytimespandelimiter", ","),
            random_timestamps: r.read_flag("randomwritetimestamporder", false)?,
            random_series: r.read_flag("randomtimeseriesorder", true)?,
            numbers: r.read_choice("valuetype", "floats", &numbers)?,
            data_integrity: r.read_flag("dataintegrity", false)?,
            sparsity: r.read_number(
                "sparsity",
                0.0,
                |x| (0.0..1.0).contains(&x),
                "a fraction from 0 to below 1",
            )?,
            delayed: r.read_number("delayedseries", 0.1, fraction, "a fraction, 0 to 1")?,
            delayed_intervals: r.count("delayedintervals", 5, 0..=1 << 20)?,
            span: r.count("querytimespan", 0, 0..=1 << 50)?,
            random_span: r.read_flag("queryrandomtimespan", false)?,
            group_name: r.read_text("groupbykey", "YCSBGB"),
            grouping: read_grouping(&mut r, cardinalities.len())?,
            downsampling_name: r.read_text("downsamplingkey", "YCSBDS"),
            downsampling: read_downsampling(&mut r)?,
            cardinalities,
            proportions: read_proportions(&mut r)?,
            requests: read_requests(&mut r)?,
            min_scan,
            max_scan: r.count("maxscanlength", 1000, 1..=u64::from(SCAN_RECORDS))? as u32,
            seed: read_seed(&mut r)?,
            mode: read_mode(&mut r)?,
        };
        config.check()?;
        Ok(config)
    }

    /// Combinations of tag values; every key has that many series.
    pub fn count_combinations(&self) -> u64 {
        self.cardinalities.iter().product()
    }

    fn check(&self) -> Result<(), BadProperty> {
        self.check_space()?;
        let weights = self.proportions.all_weights();
        if weights.iter().sum::<f64>() <= 0.0 {
            let expected = "a weight above 0 for at least one operation";
            return Err(BadProperty::new("readproportion", self.proportions.read, expected));
        }
        if self.proportions.read_modify_write > 0.0 {
            let expected = "0, because time series have no read-modify-write";
            let value = self.proportions.read_modify_write;
            return Err(BadProperty::new("readmodifywriteproportion", value, expected));
        }
        let named = match self.requests {
            RequestDistribution::Latest { .. } => Some("latest"),
            RequestDistribution::Exponential { .. } => Some("exponential"),
            _ => None,
        };
        if let Some(name) = named {
            let expected = "uniform, zipfian, hotspot or sequential (over the series keys)";
            return Err(BadProperty::new("requestdistribution", name, expected));
        }
        self.requests.check(self.keys)?;
        if self.min_scan > self.max_scan {
            let expected = format!("at most maxscanlength, which is {}", self.max_scan);
            return Err(BadProperty::new("minscanlength", self.min_scan, expected));
        }
        let aggregates = self.span > 0 || self.grouping.is_some() || self.downsampling.is_some();
        if self.data_integrity && aggregates {
            let expected = "false together with querytimespan, groupbyfunction or downsamplingfunction";
            return Err(BadProperty::new("dataintegrity", true, expected));
        }
        Ok(())
    }

    fn check_space(&self) -> Result<(), BadProperty> {
        let series = self.cardinalities.iter().try_fold(self.keys, |all, &c| all.checked_mul(c));
        if series.is_none_or(|s| s > MAX_SERIES) {
            let expected = format!("at most {MAX_SERIES} series: fieldcount times all cardinalities");
            return Err(BadProperty::new("tagcardinality", format!("{:?}", self.cardinalities), expected));
        }
        if self.keys < self.users {
            let expected = format!("at least one key for each of the {} threads", self.users);
            return Err(BadProperty::new("fieldcount", self.keys, expected));
        }
        let most = self.cardinalities.iter().copied().max().unwrap_or(1);
        let tags = self.cardinalities.len() as u64;
        for (key, letters, names) in [
            ("fieldlength", self.key_letters, self.keys),
            ("tagkeylength", self.tag_letters, tags),
            ("tagvaluelength", self.tag_value_letters, most),
        ] {
            let room = 26u64.saturating_pow(letters.min(14) as u32);
            if names > room {
                let expected = format!("enough letters for {names} different names");
                return Err(BadProperty::new(key, letters, expected));
            }
        }
        Ok(())
    }
}

/// Milliseconds per unit of time.
fn read_unit_ms(r: &mut PropertyReader<'_>) -> Result<u64, BadProperty> {
    let units = [
        ("MILLISECONDS", 1),
        ("SECONDS", 1_000),
        ("MINUTES", 60_000),
        ("HOURS", 3_600_000),
        ("DAYS", 86_400_000),
    ];
    r.read_choice("timestampunits", "SECONDS", &units)
}

/// One cardinality per tag; missing ones are 1 (YCSB fills in a single one only), further ones are not used.
fn read_cardinalities(r: &mut PropertyReader<'_>) -> Result<Vec<u64>, BadProperty> {
    let tags = r.count("tagcount", 4, 0..=1024)? as usize;
    let text = r.read_text("tagcardinality", "1, 2, 4, 8");
    let numbers = text.split(',').map(|n| n.trim().parse().ok().filter(|n| (1..=MAX_SERIES).contains(n)));
    let numbers: Option<Vec<u64>> = numbers.collect();
    let mut numbers = numbers.ok_or_else(|| {
        BadProperty::new("tagcardinality", &text, "whole numbers above 0, separated by commas")
    })?;
    numbers.resize(tags, 1);
    Ok(numbers)
}

fn read_grouping(r: &mut PropertyReader<'_>, tags: usize) -> Result<Option<Grouping>, BadProperty> {
    let function = r.read_word("groupbyfunction", "");
    let keys = r.read_word("groupbykeys", "");
    if function.is_empty() {
        return Ok(None);
    }
    let flags: Vec<&str> = keys.split(',').map(str::trim).collect();
    let grouped = match flags[..] {
        [""] => vec![true; tags],
        _ if flags.len() == tags && flags.iter().all(|f| matches!(*f, "0" | "1")) => {
            flags.iter().map(|f| *f == "1").collect()
        }
        _ => {
            let expected = format!("0 or 1 for each of the {tags} tags, separated by commas");
            return Err(BadProperty::new("groupbykeys", keys, expected));
        }
    };
    Ok(Some(Grouping { function, tags: grouped }))
}

fn read_downsampling(r: &mut PropertyReader<'_>) -> Result<Option<Downsampling>, BadProperty> {
    let function = r.read_word("downsamplingfunction", "");
    let interval = r.count("downsamplinginterval", 0, 0..=1 << 50)?;
    if function.is_empty() {
        return Ok(None);
    }
    if interval == 0 {
        let expected = "units per point, above 0, because downsamplingfunction is set";
        return Err(BadProperty::new("downsamplinginterval", 0, expected));
    }
    Ok(Some(Downsampling { function, interval }))
}
