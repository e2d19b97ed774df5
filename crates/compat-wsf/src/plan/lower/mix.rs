//! The workload: YCSB's properties, shares that sum to 1, and the range of keys.

use crate::plan::lower::draft::Draft;
use crate::plan::lower::error::LowerError;
use dyno_config::properties;
use dyno_types::{RefusalCode, Refused};
use dyno_workload::ycsb::known_properties;
use serde_json::json;
use std::path::Path;

/// The mix that comes along with every version.
const BUILT_IN: &str = "90Read10Update";

/// Its operationcount.
const FILE_OPERATIONS: u64 = 10_000_000;

/// Further files of the framework since 25, which differ in shares of reads, scans and inserts, and in the size of a record.
const SINCE_25: [(&str, [&str; 3], RecordSize); 8] = [
    ("workloada_query", ["0.9", "0.1", "0"], RecordSize::OneK),
    ("workloada_combined", ["0.9", "0.1", "0"], RecordSize::OneK),
    ("load_1k", ["0.6", "0.1", "0.3"], RecordSize::OneK),
    ("load_4k", ["0.6", "0.1", "0.3"], RecordSize::FourK),
    ("mix37_1k", ["0.7", "0", "0.3"], RecordSize::OneK),
    ("mix37_4k", ["0.7", "0", "0.3"], RecordSize::FourK),
    ("mix73_1k", ["0.3", "0", "0.7"], RecordSize::OneK),
    ("mix73_4k", ["0.3", "0", "0.7"], RecordSize::FourK),
];

/// Records of the files since 25.
#[derive(Clone, Copy)]
enum RecordSize {
    /// 16 million of ten fields of 100 bytes.
    OneK,
    /// 4 million of twenty fields of 200 bytes.
    FourK,
}

/// The properties of one of these files.
fn file_since_25(name: &str) -> Option<Vec<(&'static str, &'static str)>> {
    let (_, [reads, scans, inserts], size) = SINCE_25.iter().find(|(known, ..)| *known == name)?;
    let [records, fields, length] = match size {
        RecordSize::OneK => ["16000000", "10", "100"],
        RecordSize::FourK => ["4000000", "20", "200"],
    };
    Some(vec![
        ("recordcount", records),
        ("operationcount", "4000000"),
        ("fieldcount", fields),
        ("fieldlength", length),
        ("readallfields", "true"),
        ("readproportion", reads),
        ("updateproportion", "0"),
        ("scanproportion", scans),
        ("insertproportion", inserts),
        ("maxscanlength", "100"),
        ("scanlengthdistribution", "uniform"),
        ("requestdistribution", "zipfian"),
    ])
}

/// Properties.
const FILE: [(&str, &str); 8] = [
    ("recordcount", "1000"),
    ("readallfields", "true"),
    ("readproportion", "0.9"),
    ("updateproportion", "0.1"),
    ("scanproportion", "0"),
    ("insertproportion", "0"),
    ("requestdistribution", "zipfian"),
    ("operationcount", "10000000"),
];

/// Records that the workload's description says, where the variable is blank.
const DESCRIBED_RECORDS: u64 = 4_000_000;

/// Variables that are properties of both phases.
const PROPERTIES: [(&str, &str); 17] = [
    ("READ_PROPORTION", "readproportion"),
    ("UPDATE_PROPORTION", "updateproportion"),
    ("INSERT_PROPORTION", "insertproportion"),
    ("SCAN_PROPORTION", "scanproportion"),
    ("READ_MODIFY_WRITE_PROPORTION", "readmodifywriteproportion"),
    ("INSERT_ORDER", "insertorder"),
    ("FIELD_COUNT", "fieldcount"),
    ("FIELD_LENGTH", "fieldlength"),
    ("MIN_FIELD_LENGTH", "minfieldlength"),
    ("READ_ALL_FIELDS", "readallfields"),
    ("WRITE_ALL_FIELDS", "writeallfields"),
    ("REQUEST_DISTRIBUTION", "requestdistribution"),
    ("MIN_SCANLENGTH", "minscanlength"),
    ("MAX_SCANLENGTH", "maxscanlength"),
    ("SCAN_LENGTH_DISTRIBUTION", "scanlengthdistribution"),
    ("ZERO_PADDING", "zeropadding"),
    ("FIELD_NAME_PREFIX", "fieldnameprefix"),
];

/// A property, and the variable that says it (blank: the file).
struct MixProperty {
    key: String,
    value: String,
    variable: &'static str,
}

/// Greatest difference between a sum of shares and 1.
const TOLERANCE: f64 = 1e-9;

impl Draft<'_> {
    /// The workload; returns the number of records, and of operations where no variable says it.
    pub(super) fn workload(&mut self) -> Result<(u64, u64), LowerError> {
        let mut all = self.file()?;
        let records = self.records(&all);
        let said = all.iter().find(|one| one.key == "operationcount").and_then(|one| one.value.parse().ok());
        let operations = said.unwrap_or(FILE_OPERATIONS);
        all.retain(|one| !["recordcount", "operationcount"].contains(&one.key.as_str()));
        for (variable, key) in PROPERTIES {
            let value = self.from.value(variable).to_owned();
            // In the original this name is misspelt and never arrives.
            let lost = self.means.faithful && variable == "READ_MODIFY_WRITE_PROPORTION";
            if value.is_empty() || lost {
                continue;
            }
            let one = MixProperty { key: key.into(), value, variable };
            match all.iter_mut().find(|known| known.key == key) {
                Some(known) => *known = one,
                None => all.push(one),
            }
        }
        let shares = self.shares(&all)?;
        self.own("workload.ycsb.workload", json!("a"));
        self.put("workload.ycsb.records", json!(records), "RECORD_COUNT");
        for share in ["readproportion", "updateproportion", "insertproportion", "scanproportion"] {
            // Shares that are not given must not be taken from workload a.
            if !all.iter().any(|one| one.key == share) {
                all.push(MixProperty { key: share.into(), value: "0".into(), variable: "" });
            }
        }
        for one in &all {
            self.put(&format!("workload.ycsb.properties.{}", one.key), json!(one.value), one.variable);
        }
        self.keys(records, (shares, operations), &all)?;
        Ok((records, operations))
    }

    /// The properties of WORKLOAD_FILE.
    fn file(&self) -> Result<Vec<MixProperty>, LowerError> {
        let name = self.from.value("WORKLOAD_FILE");
        let property =
            |key: &str, value: &str| MixProperty { key: key.into(), value: value.into(), variable: "" };
        if name.is_empty() || name == BUILT_IN {
            return Ok(FILE.iter().map(|(key, value)| property(key, value)).collect());
        }
        if let Some(known) = file_since_25(name) {
            return Ok(known.into_iter().map(|(key, value)| property(key, value)).collect());
        }
        let unreadable = |source| LowerError::WorkloadFile { name: name.to_owned(), source };
        let entries = if Path::new(name).is_file() {
            properties::read_file(Path::new(name)).map_err(unreadable)?
        } else if let Some(text) = dyno_workload::ycsb::stock_file(name) {
            properties::parse(text.as_bytes()).map_err(|line| unreadable(line.into()))?
        } else {
            let text = format!(
                "WORKLOAD_FILE: {name:?}: expected {BUILT_IN}, workloada_query and the other files of 25, workloads/workloada \
                 and its like, or a file of properties"
            );
            return Err(Refused::new(RefusalCode::BadValue, "WORKLOAD_FILE", text).into());
        };
        // What shapes YCSB's client alone, variables say.
        let known = || known_properties().iter().filter(|p| p.describes_workload());
        let entries = entries.into_iter().filter(|entry| known().any(|p| p.name == entry.key));
        Ok(entries.map(|entry| property(&entry.key, &entry.value)).collect())
    }

    fn records(&mut self, file: &[MixProperty]) -> u64 {
        if let Some(records) = self.from.number("RECORD_COUNT") {
            return records;
        }
        let said = file.iter().find(|one| one.key == "recordcount").and_then(|one| one.value.parse().ok());
        let own = !["", BUILT_IN].contains(&self.from.value("WORKLOAD_FILE"));
        match said {
            Some(records) if own || self.means.faithful => records,
            _ => {
                self.note(format!(
                    "RECORD_COUNT is blank: {DESCRIBED_RECORDS} records, as the description says; the original takes 1000 \
                     from its file (--faithful)"
                ));
                DESCRIBED_RECORDS
            }
        }
    }

    /// Shares of the mix; returns that of inserts.
    fn shares(&mut self, all: &[MixProperty]) -> Result<f64, Refused> {
        let mut sum = 0.0;
        let mut inserts = 0.0;
        let mut words = Vec::new();
        for one in all.iter().filter(|one| one.key.ends_with("proportion")) {
            let share: f64 = one.value.parse().map_err(|_| {
                Refused::new(
                    RefusalCode::BadValue,
                    &one.key,
                    format!("{}: {:?} is no share", one.key, one.value),
                )
            })?;
            sum += share;
            if one.key == "insertproportion" {
                inserts = share;
            }
            if share > 0.0 {
                words.push(format!("{} {share}", one.key.trim_end_matches("proportion")));
            }
        }
        if (sum - 1.0).abs() <= TOLERANCE {
            return Ok(inserts);
        }
        let text =
            format!("the shares sum to {}, not to 1 ({})", (sum * 1e9).round() / 1e9, words.join(", "));
        if !self.means.faithful_weights || sum <= 0.0 {
            return Err(Refused::new(
                RefusalCode::Conflict,
                "--faithful-weights",
                format!("{}: {text}; --faithful-weights takes them as weights", self.from.full_name()),
            ));
        }
        self.note(format!("{text}: taken as weights, so that {:.1} % are inserts", 100.0 * inserts / sum));
        Ok(inserts)
    }

    /// The keys of the run phase: in the original INSERT_START and INSERT_COUNT reach no other.
    fn keys(
        &mut self,
        records: u64,
        (inserts, operations): (f64, u64),
        all: &[MixProperty],
    ) -> Result<(), Refused> {
        let (start, count) = (self.from.number("INSERT_START"), self.from.number("INSERT_COUNT"));
        let run = "workload.ycsb.run_properties";
        if let Some(start) = start.filter(|start| *start > 0) {
            if start >= records {
                return Err(Refused::new(
                    RefusalCode::BadValue,
                    "INSERT_START",
                    format!("INSERT_START: {start} lies beyond the {records} records"),
                ));
            }
            self.put(&format!("{run}.insertstart"), json!(start.to_string()), "INSERT_START");
        }
        match count {
            None => {}
            Some(0) if self.means.faithful => self.collapse(run, (inserts, operations), all),
            Some(0) => self.note(
                "INSERT_COUNT=0 means all records; the original's run phase keeps to one key (--faithful)",
            ),
            Some(count) => {
                self.put(&format!("{run}.insertcount"), json!(count.to_string()), "INSERT_COUNT");
            }
        }
        Ok(())
    }

    /// Does as YCSB with insertcount=0: the range is empty but for its first key and those that inserts will make.
    fn collapse(&mut self, run: &str, (inserts, said): (f64, u64), all: &[MixProperty]) {
        let empty = inserts > 0.0 && has_last_key(all);
        self.put(&format!("{run}.insertcount"), json!(if empty { "0" } else { "1" }), "INSERT_COUNT");
        if inserts > 0.0 {
            let operations = self.from.number("OPERATION_COUNT").unwrap_or(said);
            self.own(&format!("{run}.operationcount"), json!(operations.to_string()));
            self.note(match empty {
                true => {
                    "INSERT_COUNT=0, kept: keys are chosen from the first one and those that inserts may make"
                }
                false => "INSERT_COUNT=0, kept as a range of one key: only zipfian can do with an empty one",
            });
            // A hot set and a cold one need two keys.
            if value(all, "requestdistribution") == Some("hotspot") {
                self.own(&format!("{run}.requestdistribution"), json!("uniform"));
            }
            return;
        }
        self.own(&format!("{run}.requestdistribution"), json!("uniform"));
        self.note("INSERT_COUNT=0, kept: every operation of the run phase meets the same one key");
    }
}

fn value<'a>(all: &'a [MixProperty], key: &str) -> Option<&'a str> {
    all.iter().find(|one| one.key == key).map(|one| one.value.trim())
}

/// Returns whether keys are chosen by YCSB's own zipfian, whose range has its last key in it. What is not said is workload a's.
fn has_last_key(all: &[MixProperty]) -> bool {
    value(all, "requestdistribution").is_none_or(|name| name == "zipfian")
        && value(all, "dyno.zipfian").is_none_or(|flavour| flavour == "ycsb")
        && value(all, "dyno.zipfian.theta").is_none()
}
