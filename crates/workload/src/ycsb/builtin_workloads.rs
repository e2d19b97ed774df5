//! The stock workload files as text, and the names of the workload classes.
//!
//! They are built in, so that `-P workloads/workloada` works where no such file exists. The properties are YCSB's,
//! the text is our own.

use super::properties::{BadProperty, one_of};

/// Which program a `workload=` property names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadClass {
    /// The core workload.
    Core,
    /// The core workload, sized by a disk and its occupancy.
    ConstantOccupancy,
    /// Time series.
    TimeSeries,
    /// YCSB+T's closed economy.
    ClosedEconomy,
}

const CLASSES: [(&str, WorkloadClass); 4] = [
    ("CoreWorkload", WorkloadClass::Core),
    ("ConstantOccupancyWorkload", WorkloadClass::ConstantOccupancy),
    ("TimeSeriesWorkload", WorkloadClass::TimeSeries),
    ("ClosedEconomyWorkload", WorkloadClass::ClosedEconomy),
];

/// The workload that `workload=name` asks for: a class of `site.ycsb.workloads` or `com.yahoo.ycsb.workloads`, the
/// bare class name, or go-ycsb's `core`.
pub fn workload_class(name: &str) -> Result<WorkloadClass, BadProperty> {
    let name = name.trim();
    if name == "core" {
        return Ok(WorkloadClass::Core);
    }
    let packages = ["site.ycsb.workloads.", "com.yahoo.ycsb.workloads."];
    let class = packages.iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name);
    CLASSES.iter().find(|(known, _)| *known == class).map(|&(_, class)| class).ok_or_else(|| {
        let full: Vec<String> =
            CLASSES.iter().map(|(known, _)| format!("site.ycsb.workloads.{known}")).collect();
        let mut names: Vec<&str> = full.iter().map(String::as_str).collect();
        names.push("core");
        BadProperty::new("workload", name, one_of(&names))
    })
}

/// The stock file with this name (`workloada`, `workload_template`, ...), given alone or as `workloads/NAME` at the
/// end of a path.
pub fn stock_file(path: &str) -> Option<&'static str> {
    let mut parts = path.rsplit(['/', '\\']);
    let name = parts.next()?;
    if parts.next().is_some_and(|folder| folder != "workloads") {
        return None;
    }
    STOCK.iter().find(|(known, _)| *known == name).map(|&(_, text)| text)
}

/// The stock workload with this letter, `a` to `f` in either case.
pub fn stock_by_letter(letter: &str) -> Option<&'static str> {
    match letter.to_ascii_lowercase().as_str() {
        letter @ ("a" | "b" | "c" | "d" | "e" | "f") => stock_file(&format!("workload{letter}")),
        _ => None,
    }
}

/// Names of all stock files.
pub fn stock_names() -> impl Iterator<Item = &'static str> {
    STOCK.iter().map(|(name, _)| *name)
}

macro_rules! core_file {
    ($about:literal, $($line:literal),+) => {
        concat!(
            "# ", $about, "\n",
            "workload=site.ycsb.workloads.CoreWorkload\n",
            "recordcount=1000\noperationcount=1000\nreadallfields=true\n",
            $($line, "\n"),+
        )
    };
}

const STOCK: &[(&str, &str)] = &[
    (
        "workloada",
        core_file!(
            "Half reads, half updates: a session store",
            "readproportion=0.5",
            "updateproportion=0.5",
            "scanproportion=0",
            "insertproportion=0",
            "requestdistribution=zipfian"
        ),
    ),
    (
        "workloadb",
        core_file!(
            "Mostly reads, some updates: tags on photos",
            "readproportion=0.95",
            "updateproportion=0.05",
            "scanproportion=0",
            "insertproportion=0",
            "requestdistribution=zipfian"
        ),
    ),
    (
        "workloadc",
        core_file!(
            "Nothing but reads: a cache of profiles",
            "readproportion=1",
            "updateproportion=0",
            "scanproportion=0",
            "insertproportion=0",
            "requestdistribution=zipfian"
        ),
    ),
    (
        "workloadd",
        core_file!(
            "New records are inserted and read most: status messages",
            "readproportion=0.95",
            "updateproportion=0",
            "scanproportion=0",
            "insertproportion=0.05",
            "requestdistribution=latest"
        ),
    ),
    (
        "workloade",
        core_file!(
            "Short scans instead of reads: threads of a conversation",
            "readproportion=0",
            "updateproportion=0",
            "scanproportion=0.95",
            "insertproportion=0.05",
            "requestdistribution=zipfian",
            "maxscanlength=100",
            "scanlengthdistribution=uniform"
        ),
    ),
    (
        "workloadf",
        core_file!(
            "Reads, and reads followed by an update of the same record",
            "readproportion=0.5",
            "updateproportion=0",
            "scanproportion=0",
            "insertproportion=0",
            "readmodifywriteproportion=0.5",
            "requestdistribution=zipfian"
        ),
    ),
    ("workload_template", TEMPLATE),
    ("tsworkload_template", TIME_SERIES_TEMPLATE),
    ("tsworkloada", TIME_SERIES_A),
];

const TEMPLATE: &str = "\
# The usual properties of the core workload with the values of YCSB's template
workload=site.ycsb.workloads.CoreWorkload
recordcount=1000000
operationcount=3000000
insertstart=0
fieldcount=10
fieldlength=100
readallfields=true
writeallfields=false
fieldlengthdistribution=constant
readproportion=0.95
updateproportion=0.05
insertproportion=0
readmodifywriteproportion=0
scanproportion=0
maxscanlength=1000
scanlengthdistribution=uniform
insertorder=hashed
requestdistribution=zipfian
hotspotdatafraction=0.2
hotspotopnfraction=0.8
table=usertable
measurementtype=histogram
histogram.buckets=1000
timeseries.granularity=1000
";

// YCSB's template spells delayedSeries and delayedIntervals with capitals, which nothing reads; the values are the
// defaults all the same.
const TIME_SERIES_TEMPLATE: &str = "\
# The properties of the time-series workload with the values of YCSB's template
workload=site.ycsb.workloads.TimeSeriesWorkload
recordcount=1000000
operationcount=3000000
timestampunits=SECONDS
timestampinterval=60
fieldcount=16
fieldlength=8
tagcount=4
tagcardinality=1,2,4,8
tagkeylength=8
tagvaluelength=8
tagpairdelimiter==
deletedelimiter=:
valuetype=floats
sparsity=0.00
delayedseries=0.10
delayedintervals=5
querytimespan=0
querytimespandelimiter=,
groupbykey=YCSBGB
downsamplingkey=YCSBDS
readproportion=0.10
updateproportion=0.00
insertproportion=0.90
requestdistribution=zipfian
measurementtype=histogram
histogram.buckets=1000
timeseries.granularity=1000
";

const TIME_SERIES_A: &str = "\
# A small set of time series: mostly new points, some queries over an hour
workload=site.ycsb.workloads.TimeSeriesWorkload
recordcount=1474560
operationcount=2949120
fieldcount=64
fieldlength=8
tagcount=4
tagcardinality=1,2,4,2
querytimespan=3600
readproportion=0.10
updateproportion=0.00
insertproportion=0.90
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ycsb::{CoreConfig, CoreWorkload};

    fn lookup(text: &str, key: &str) -> Option<String> {
        let line = text.lines().find(|l| l.strip_prefix(key).is_some_and(|rest| rest.starts_with('=')))?;
        Some(line[key.len() + 1..].to_owned())
    }

    #[test]
    fn paths_and_letters() {
        for path in [
            "workloads/workloada",
            "workloada",
            "/opt/ycsb/workloads/workloada",
            "ycsb\\workloads\\workloada",
        ] {
            assert_eq!(stock_file(path), stock_by_letter("A"), "{path}");
            assert!(stock_file(path).is_some());
        }
        for path in ["mine/workloada", "workloadg", "", "workloads/"] {
            assert_eq!(stock_file(path), None, "{path}");
        }
        assert_eq!(stock_by_letter("ab"), None);
        assert_eq!(stock_names().count(), 9);
    }

    #[test]
    fn the_six_run() {
        let metrics = |letter: &str| {
            let text = stock_by_letter(letter).unwrap();
            assert_eq!(workload_class(&lookup(text, "workload").unwrap()), Ok(WorkloadClass::Core));
            let config = CoreConfig::from_lookup(&mut |key| lookup(text, key)).unwrap();
            assert_eq!((config.record_count, config.operation_count), (1000, 1000));
            CoreWorkload::load_phase(&config).unwrap();
            crate::Workload::metrics(&CoreWorkload::run(&config).unwrap()).join(" ")
        };
        assert_eq!(metrics("a"), "READ UPDATE CLEANUP");
        assert_eq!(metrics("b"), "READ UPDATE CLEANUP");
        assert_eq!(metrics("c"), "READ CLEANUP");
        assert_eq!(metrics("d"), "READ INSERT CLEANUP");
        assert_eq!(metrics("e"), "INSERT SCAN SCAN-LATENCY-PER-RECORD CLEANUP");
        assert_eq!(metrics("f"), "READ UPDATE READ-MODIFY-WRITE CLEANUP");
        let template = CoreConfig::from_lookup(&mut |key| lookup(TEMPLATE, key)).unwrap();
        assert_eq!(template.record_count, 1_000_000);
    }

    #[test]
    fn every_stock_property_is_known() {
        let known = crate::ycsb::known_properties();
        for (name, text) in STOCK {
            for line in text.lines().filter(|l| !l.starts_with('#')) {
                let key = line.split_once('=').unwrap().0;
                assert!(known.iter().any(|p| p.name == key), "{name}: {key}");
            }
        }
        assert_eq!(lookup(TIME_SERIES_TEMPLATE, "tagpairdelimiter").as_deref(), Some("="));
    }

    #[test]
    fn classes() {
        for name in [
            "core",
            "CoreWorkload",
            "site.ycsb.workloads.CoreWorkload",
            "com.yahoo.ycsb.workloads.CoreWorkload ",
        ] {
            assert_eq!(workload_class(name), Ok(WorkloadClass::Core));
        }
        let full = "com.yahoo.ycsb.workloads.TimeSeriesWorkload";
        assert_eq!(workload_class(full), Ok(WorkloadClass::TimeSeries));
        let text = workload_class("site.ycsb.workloads.RestWorkload").unwrap_err().to_string();
        assert!(text.contains("expected site.ycsb.workloads.CoreWorkload, "), "{text}");
    }
}
