//! The core workload's properties, read with YCSB's defaults and checked as a whole.
//!
//! YCSB starts with whatever it is given and then spins, divides by zero or reads records that are not there; every
//! such combination is refused here, before any load is sent. Counts have 64 bits.

use super::prior_inserts::PriorInserts;
use super::properties::{BadProperty, Lookup, MAX_COUNT, PropertyReader};
use super::request_distribution::{Flavour, RequestDistribution};
use crate::distributions::{LengthHistogram, THETA};
use crate::keys::KeyNames;
use crate::mix::MixMode;
use crate::values::ValueKind;
use dyno_types::limits::{RECORD_BYTES, REPLY_BYTES, SCAN_RECORDS};

/// The weights of the kinds of operation; only their proportions matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proportions {
    /// Reads.
    pub read: f64,
    /// Updates.
    pub update: f64,
    /// Inserts.
    pub insert: f64,
    /// Scans.
    pub scan: f64,
    /// Deletes (not offered by YCSB).
    pub delete: f64,
    /// Read-modify-writes.
    pub read_modify_write: f64,
}

impl Proportions {
    /// The weights in the order of the fields.
    pub fn all_weights(&self) -> [f64; 6] {
        [self.read, self.update, self.insert, self.scan, self.delete, self.read_modify_write]
    }
}

/// Length of a field, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldLengths {
    /// Always the greatest length.
    Constant,
    /// Every length from least to greatest equally often.
    Uniform,
    /// Short lengths favoured, zipfian.
    Zipfian,
    /// As counted in a file.
    Histogram {
        /// Path of the file as set by `fieldlengthhistogram`.
        file: String,
        /// Content, once [`CoreConfig::set_histogram`] has been called.
        histogram: Option<LengthHistogram>,
    },
}

/// Distribution of the number of records that a scan asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanLengths {
    /// Every length equally often.
    Uniform,
    /// Short scans favoured, zipfian.
    Zipfian,
}

/// Treatment of a failed insert of the load phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InsertRetries {
    /// Further attempts after the first.
    pub limit: u64,
    /// Mean pause between two attempts, seconds; the pause itself is uniform from 0.8 to 1.2 of it.
    pub interval_s: u64,
    /// True if the load goes on after an insert has failed for good.
    pub keep_going: bool,
}

/// Everything the core workload can be told.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreConfig {
    /// Table, collection or key space.
    pub table: String,
    /// Rule by which keys are named.
    pub names: KeyNames,
    /// Fields per record.
    pub field_count: u16,
    /// Text that every field's name starts with; its number follows.
    pub field_prefix: String,
    /// Greatest field length, bytes.
    pub field_bytes: u64,
    /// Least field length, bytes.
    pub min_field_bytes: u64,
    /// Distribution of field lengths.
    pub lengths: FieldLengths,
    /// Content of values, unless `data_integrity`.
    pub value: ValueKind,
    /// Values that can be verified.
    pub data_integrity: bool,
    /// Reads and scans ask for all fields instead of one.
    pub read_all_fields: bool,
    /// Reads name every field.
    pub read_all_fields_by_name: bool,
    /// Updates write all fields instead of one.
    pub write_all_fields: bool,
    /// Weights of the operations.
    pub proportions: Proportions,
    /// Distribution by which keys are chosen.
    pub requests: RequestDistribution,
    /// Records of the whole key space; the first key of run-phase inserts.
    pub record_count: u64,
    /// Operations of the run phase; 0 for no end.
    pub operation_count: u64,
    /// First key number.
    pub insert_start: u64,
    /// Number of keys that most distributions choose from: `insertcount`, else what `recordcount` leaves behind
    /// `insertstart`.
    pub insert_count: u64,
    /// Records that the load inserts, from `insertstart` on: `insertcount`, else `recordcount`.
    pub load_count: u64,
    /// Shortest scan, records.
    pub min_scan: u32,
    /// Longest scan, records.
    pub max_scan: u32,
    /// Distribution of scan lengths.
    pub scan_lengths: ScanLengths,
    /// Failed inserts of the load phase.
    pub retries: InsertRetries,
    /// Seed of every draw.
    pub seed: u64,
    /// Method by which kinds of operation are spread over the indexes.
    pub mode: MixMode,
    /// Number of this client among several, from 0.
    pub client_id: u64,
    /// Number of clients that run at the same time.
    pub client_count: u64,
    /// True if run-phase inserts go on where earlier runs of this client have ended.
    pub resume: bool,
    /// Run-phase inserts of earlier runs of this client that are there.
    pub earlier: PriorInserts,
}

impl CoreConfig {
    /// Reads all properties and checks them.
    pub fn from_lookup(lookup: Lookup<'_>) -> Result<CoreConfig, BadProperty> {
        let mut r = PropertyReader::new(lookup);
        let record_count = r.count("recordcount", 0, 0..=MAX_COUNT)?;
        let insert_start = r.count("insertstart", 0, 0..=MAX_COUNT)?;
        let load_count = r.count("insertcount", record_count, 0..=MAX_COUNT)?;
        let insert_count =
            r.count("insertcount", record_count.saturating_sub(insert_start), 0..=MAX_COUNT)?;
        let data_integrity = r.read_flag("dataintegrity", false)?;
        let min_field_bytes = r.count("minfieldlength", 1, 0..=REPLY_BYTES as u64)?;
        let min_scan = r.count("minscanlength", 1, 1..=u64::from(SCAN_RECORDS))? as u32;
        let table = r.read_text("table", "usertable");
        if table.is_empty() {
            return Err(BadProperty::new("table", "", "a name".to_owned()));
        }
        let config = CoreConfig {
            table,
            names: read_names(&mut r)?,
            field_count: r.count("fieldcount", 10, 1..=u64::from(u16::MAX))? as u16,
            field_prefix: r.read_text("fieldnameprefix", "field"),
            field_bytes: r.count("fieldlength", 100, 0..=REPLY_BYTES as u64)?,
            min_field_bytes,
            lengths: read_lengths(&mut r)?,
            value: read_value(&mut r, data_integrity)?,
            data_integrity,
            read_all_fields: r.read_flag("readallfields", true)?,
            read_all_fields_by_name: r.read_flag("readallfieldsbyname", false)?,
            write_all_fields: r.read_flag("writeallfields", false)?,
            proportions: read_proportions(&mut r)?,
            requests: read_requests(&mut r)?,
            record_count,
            operation_count: r.count("operationcount", 0, 0..=MAX_COUNT)?,
            insert_start,
            load_count,
            insert_count,
            min_scan,
            max_scan: r.count("maxscanlength", 1000, 1..=u64::from(SCAN_RECORDS))? as u32,
            scan_lengths: r.read_choice(
                "scanlengthdistribution",
                "uniform",
                &[("uniform", ScanLengths::Uniform), ("zipfian", ScanLengths::Zipfian)],
            )?,
            retries: read_retries(&mut r)?,
            seed: read_seed(&mut r)?,
            mode: read_mode(&mut r)?,
            client_id: r.count("dyno.client.id", 0, 0..=u64::from(u16::MAX))?,
            client_count: r.count("dyno.client.count", 1, 1..=u64::from(u16::MAX))?,
            resume: r.read_flag("dyno.insert.resume", false)?,
            earlier: PriorInserts::default(),
        };
        config.check()?;
        let bytes = config.field_bytes.saturating_mul(u64::from(config.field_count));
        if bytes > RECORD_BYTES {
            let expected = format!("records of at most {RECORD_BYTES} bytes (fieldcount x fieldlength)");
            return Err(BadProperty::new("fieldlength", config.field_bytes.to_string(), expected));
        }
        Ok(config)
    }

    /// The path of the field-length histogram whose text [`CoreConfig::set_histogram`] still needs.
    pub fn needs_histogram(&self) -> Option<&str> {
        match &self.lengths {
            FieldLengths::Histogram { file, histogram: None } => Some(file),
            _ => None,
        }
    }

    /// Hands in the text of the field-length histogram.
    pub fn set_histogram(&mut self, text: &str) -> Result<(), BadProperty> {
        if let FieldLengths::Histogram { file, histogram } = &mut self.lengths {
            let read = LengthHistogram::parse(text)
                .map_err(|e| BadProperty::new("fieldlengthhistogram", &*file, format!("a histogram; {e}")))?;
            if read.max() > REPLY_BYTES as u64 {
                let expected = format!("lengths of at most {REPLY_BYTES} bytes");
                return Err(BadProperty::new("fieldlengthhistogram", &*file, expected));
            }
            *histogram = Some(read);
        }
        Ok(())
    }

    /// Operations of the run phase; `None` for no end.
    pub fn run_operations(&self) -> Option<u64> {
        (self.operation_count > 0).then_some(self.operation_count)
    }

    /// Operations of the load phase.
    pub fn load_operations(&self) -> u64 {
        self.load_count
    }

    /// Number of keys that YCSB expects the run phase to add, for the range of the zipfian distribution: twice the
    /// inserts that the weight, taken as a probability, stands for.
    pub fn expected_new_keys(&self) -> u64 {
        ((self.operation_count as f64 * self.proportions.insert * 2.0) as u64).min(MAX_COUNT)
    }

    fn check(&self) -> Result<(), BadProperty> {
        self.check_ranges()?;
        self.check_lengths()?;
        self.requests.check(self.insert_count)?;
        if self.client_id >= self.client_count {
            let expected = format!("0 to {} (dyno.client.count - 1)", self.client_count - 1);
            return Err(BadProperty::new("dyno.client.id", self.client_id, expected));
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), BadProperty> {
        let weights = self.proportions.all_weights();
        if weights.iter().sum::<f64>() <= 0.0 {
            let expected = "a weight above 0 for at least one operation: readproportion, updateproportion, \
                insertproportion, scanproportion, deleteproportion or readmodifywriteproportion";
            return Err(BadProperty::new("readproportion", self.proportions.read, expected));
        }
        let room = self.record_count.saturating_sub(self.insert_start);
        if self.insert_count > room {
            let expected = format!("at most recordcount - insertstart, which is {room}");
            return Err(BadProperty::new("insertcount", self.insert_count, expected));
        }
        let only_inserts = weights.iter().sum::<f64>() == self.proportions.insert;
        if self.record_count == 0 && !only_inserts {
            return Err(BadProperty::new("recordcount", 0, "the number of records, above 0"));
        }
        // The load goes from insertstart on, wherever that is; a run is asked for its keys when it begins.
        if self.insert_start >= self.record_count {
            return Ok(());
        }
        // YCSB's zipfian range has its last key in it: one of no records is the first key, and those that inserts will make.
        let inclusive = matches!(self.requests, RequestDistribution::Zipfian { flavour: Flavour::Ycsb, .. });
        if self.insert_count == 0 && !only_inserts && !inclusive {
            return Err(BadProperty::new("insertcount", 0, "a range of at least one key below recordcount"));
        }
        Ok(())
    }

    fn check_lengths(&self) -> Result<(), BadProperty> {
        let varies = !matches!(self.lengths, FieldLengths::Constant);
        if self.data_integrity && varies {
            let expected = "constant, which dataintegrity=true requires";
            return Err(BadProperty::new("fieldlengthdistribution", "other than constant", expected));
        }
        let ascii = self.names.prefix.is_ascii() && self.field_prefix.is_ascii();
        if self.data_integrity && !ascii {
            let expected = "ASCII only in keyprefix and fieldnameprefix, which dataintegrity=true requires";
            return Err(BadProperty::new("fieldnameprefix", &self.field_prefix, expected));
        }
        let ranged = matches!(self.lengths, FieldLengths::Uniform | FieldLengths::Zipfian);
        if ranged && self.min_field_bytes > self.field_bytes {
            let expected = format!("at most fieldlength, which is {}", self.field_bytes);
            return Err(BadProperty::new("minfieldlength", self.min_field_bytes, expected));
        }
        if self.min_scan > self.max_scan {
            let expected = format!("at most maxscanlength, which is {}", self.max_scan);
            return Err(BadProperty::new("minscanlength", self.min_scan, expected));
        }
        Ok(())
    }
}

pub(super) fn read_proportions(r: &mut PropertyReader<'_>) -> Result<Proportions, BadProperty> {
    Ok(Proportions {
        read: r.read_proportion("readproportion", 0.95)?,
        update: r.read_proportion("updateproportion", 0.05)?,
        insert: r.read_proportion("insertproportion", 0.0)?,
        scan: r.read_proportion("scanproportion", 0.0)?,
        delete: r.read_proportion("deleteproportion", 0.0)?,
        read_modify_write: r.read_proportion("readmodifywriteproportion", 0.0)?,
    })
}

fn read_names(r: &mut PropertyReader<'_>) -> Result<KeyNames, BadProperty> {
    Ok(KeyNames {
        prefix: r.read_text("keyprefix", "user"),
        zero_padding: r.count("zeropadding", 1, 0..=1024)? as usize,
        // As in YCSB: exactly "hashed" hashes, anything else keeps the order.
        hashed: r.read_text("insertorder", "hashed") == "hashed",
    })
}

fn read_lengths(r: &mut PropertyReader<'_>) -> Result<FieldLengths, BadProperty> {
    let file = r.read_text("fieldlengthhistogram", "hist.txt");
    let choices = [("constant", 0), ("uniform", 1), ("zipfian", 2), ("histogram", 3)];
    Ok(match r.read_choice("fieldlengthdistribution", "constant", &choices)? {
        0 => FieldLengths::Constant,
        1 => FieldLengths::Uniform,
        2 => FieldLengths::Zipfian,
        _ => FieldLengths::Histogram { file, histogram: None },
    })
}

fn read_value(r: &mut PropertyReader<'_>, data_integrity: bool) -> Result<ValueKind, BadProperty> {
    let Some(value) = r.raw_text("dyno.value") else { return Ok(ValueKind::Random) };
    let kind = match value.trim().split_once(':') {
        None => match value.trim() {
            "random" => Some(ValueKind::Random),
            "pool" => Some(ValueKind::Pool),
            "text" => Some(ValueKind::Text),
            "zero" => Some(ValueKind::Zero),
            _ => None,
        },
        Some(("compressible", ratio)) => {
            ratio.parse().ok().filter(|n| (1..=1000).contains(n)).map(ValueKind::Compressible)
        }
        Some(_) => None,
    };
    let expected = "random, pool, text, zero or compressible:N with N from 1 to 1000";
    match kind {
        None => Err(BadProperty::new("dyno.value", value, expected)),
        Some(ValueKind::Random) => Ok(ValueKind::Random),
        Some(_) if data_integrity => {
            Err(BadProperty::new("dyno.value", value, "no value kind together with dataintegrity=true"))
        }
        Some(kind) => Ok(kind),
    }
}

fn read_retries(r: &mut PropertyReader<'_>) -> Result<InsertRetries, BadProperty> {
    Ok(InsertRetries {
        limit: r.count("core_workload_insertion_retry_limit", 0, 0..=1_000_000)?,
        interval_s: r.count("core_workload_insertion_retry_interval", 3, 0..=86_400)?,
        keep_going: r.read_flag("core_workload_insertion_keep_going_on_error", false)?,
    })
}

pub(super) fn read_seed(r: &mut PropertyReader<'_>) -> Result<u64, BadProperty> {
    let Some(value) = r.raw_text("dyno.seed") else { return Ok(1) };
    let text = value.trim();
    // The code that draws has put a number in its place.
    if text == "drawn" {
        return Ok(1);
    }
    let seed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    seed.map_err(|_| BadProperty::new("dyno.seed", &value, "a whole number of 64 bits, decimal or 0x..."))
}

pub(super) fn read_mode(r: &mut PropertyReader<'_>) -> Result<MixMode, BadProperty> {
    let choices = [("stratified", MixMode::Stratified), ("iid", MixMode::Independent)];
    r.read_choice("dyno.mix", "stratified", &choices)
}

/// Reads `requestdistribution` and what belongs to it. A zipfian exponent other than YCSB's selects the true
/// distribution unless `dyno.zipfian=ycsb` is set.
pub(super) fn read_requests(r: &mut PropertyReader<'_>) -> Result<RequestDistribution, BadProperty> {
    let value = r.read_word("requestdistribution", "uniform");
    let (name, suffix) = value.split_once(':').map_or((value.as_str(), None), |(n, s)| (n, Some(s)));
    let expected = "uniform, zipfian, latest, hotspot, exponential or sequential; zipfian and latest also with an \
        exponent, such as zipfian:0.8";
    let bad = || BadProperty::new("requestdistribution", &value, expected);
    let theta_ok = |x: f64| (0.0..=10.0).contains(&x);
    let property = r.number_if_set("dyno.zipfian.theta", theta_ok, "an exponent, 0 to 10")?;
    let theta = match suffix {
        None => property.unwrap_or(THETA),
        Some(text) => text.parse().ok().filter(|&x: &f64| theta_ok(x)).ok_or_else(bad)?,
    };
    let zipfian = matches!(name, "zipfian" | "latest");
    if suffix.is_some() && (!zipfian || property.is_some_and(|p| p != theta)) {
        return Err(bad());
    }
    let default = if theta == THETA { "ycsb" } else { "true" };
    let flavour =
        r.read_choice("dyno.zipfian", default, &[("ycsb", Flavour::Ycsb), ("true", Flavour::True)])?;
    if zipfian && flavour == Flavour::Ycsb && !(theta > 0.0 && theta < 1.0) {
        let expected = "true, because YCSB's approximation needs an exponent between 0 and 1";
        return Err(BadProperty::new("dyno.zipfian", "ycsb", expected));
    }
    let fraction = |x: f64| (0.0..=1.0).contains(&x);
    Ok(match name {
        "uniform" => RequestDistribution::Uniform,
        "sequential" => RequestDistribution::Sequential,
        "zipfian" => RequestDistribution::Zipfian { flavour, theta },
        "latest" => RequestDistribution::Latest { flavour, theta },
        "hotspot" => RequestDistribution::Hotspot {
            data: r.read_number(
                "hotspotdatafraction",
                0.2,
                |x| x > 0.0 && x < 1.0,
                "a fraction above 0 and below 1",
            )?,
            operations: r.read_number("hotspotopnfraction", 0.8, fraction, "a fraction, 0 to 1")?,
        },
        "exponential" => RequestDistribution::Exponential {
            percentile: r.read_number(
                "exponential.percentile",
                95.0,
                |x| x > 0.0 && x < 100.0,
                "a percentage above 0 and below 100",
            )?,
            fraction: r.read_number(
                "exponential.frac",
                0.857_142_857_1,
                |x| x > 0.0,
                "a fraction above 0",
            )?,
        },
        _ => return Err(bad()),
    })
}
