//! Every property of YCSB's client and workloads and of our additions, with its default and one line on it.
//!
//! The table serves help output and the warning about unknown properties; reading and checking is in
//! [`super::config`] and its like. Properties of bindings belong to their drivers.

/// Owner of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The client: phases, threads, measurements, reports, and the mock bindings.
    Client,
    /// YCSB's core workload.
    Core,
    /// Additions to the core workload that YCSB does not know.
    Dyno,
    /// Additions to the client that YCSB does not know.
    DynoClient,
    /// The constant-occupancy workload.
    Occupancy,
    /// The time-series workload.
    TimeSeries,
    /// The closed economy.
    Economy,
}

/// One property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property {
    /// Name, case-sensitive.
    pub name: &'static str,
    /// Default as text; empty if there is none.
    pub default: &'static str,
    /// Meaning of the property, one line.
    pub doc: &'static str,
    /// Owner of the property.
    pub scope: Scope,
}

/// Properties of the client that say what the data set is.
const DATA: [&str; 4] = ["recordcount", "insertstart", "insertcount", "operationcount"];

impl Property {
    /// Returns whether it says what data and requests of the core workload are like. Others shape YCSB's client, or another of
    /// its workloads: only a command line of YCSB has them.
    pub fn describes_workload(&self) -> bool {
        match self.scope {
            Scope::Client => DATA.contains(&self.name),
            Scope::Core | Scope::Dyno => true,
            Scope::DynoClient | Scope::Occupancy | Scope::TimeSeries | Scope::Economy => false,
        }
    }
}

/// All properties, grouped by scope.
pub fn known_properties() -> &'static [Property] {
    PROPERTIES
}

const fn client(name: &'static str, default: &'static str, doc: &'static str) -> Property {
    Property { name, default, doc, scope: Scope::Client }
}

const fn core(name: &'static str, default: &'static str, doc: &'static str) -> Property {
    Property { name, default, doc, scope: Scope::Core }
}

const fn dyno(name: &'static str, default: &'static str, doc: &'static str) -> Property {
    Property { name, default, doc, scope: Scope::Dyno }
}

const fn dyno_client(name: &'static str, default: &'static str, doc: &'static str) -> Property {
    Property { name, default, doc, scope: Scope::DynoClient }
}

const fn occupancy(name: &'static str, default: &'static str, doc: &'static str) -> Property {
    Property { name, default, doc, scope: Scope::Occupancy }
}

const fn series(name: &'static str, default: &'static str, doc: &'static str) -> Property {
    Property { name, default, doc, scope: Scope::TimeSeries }
}

const fn economy(name: &'static str, default: &'static str, doc: &'static str) -> Property {
    Property { name, default, doc, scope: Scope::Economy }
}

const PROPERTIES: &[Property] = &[
    client("workload", "", "class of the workload: site.ycsb.workloads.CoreWorkload (or core) and its like"),
    client("db", "site.ycsb.BasicDB", "class of the binding"),
    client(
        "recordcount",
        "0",
        "records of the whole key space; the load inserts them, run-phase inserts follow them",
    ),
    client("operationcount", "0", "operations of the run phase; 0 for no end"),
    client("insertstart", "0", "first key number"),
    client(
        "insertcount",
        "recordcount - insertstart",
        "keys that the load inserts, and range of most distributions",
    ),
    client("threadcount", "1", "users (closed-loop threads)"),
    client("target", "0", "operations per second over all threads; 0 for unthrottled"),
    client("maxexecutiontime", "0", "seconds after which the run ends; 0 for no limit"),
    client("dotransactions", "true", "true for the run phase, false for the load"),
    client("status", "false", "status lines on stderr"),
    client("status.interval", "10", "seconds between status lines"),
    client("label", "", "text before every status line"),
    client(
        "exporter",
        "site.ycsb.measurements.exporter.TextMeasurementsExporter",
        "class that formats the report",
    ),
    client("exportfile", "", "file for the report; standard output if not set"),
    client(
        "measurementtype",
        "hdrhistogram",
        "hdrhistogram, histogram, timeseries, raw, hdrhistogram+histogram or hdrhistogram+raw",
    ),
    client("measurement.interval", "op", "op, intended or both: from which start latencies count"),
    client("measurement.trackjvm", "false", "accepted; there is no JVM to track"),
    client("measurement.histogram.verbose", "false", "list every bucket in the report"),
    client("hdrhistogram.percentiles", "50,95,99", "percentiles of the report"),
    client("hdrhistogram.fileoutput", "false", "write one HDR log per operation"),
    client("hdrhistogram.output.path", "", "what the names of the HDR logs start with"),
    client("histogram.buckets", "1000", "buckets of 1 ms, for measurementtype=histogram"),
    client("timeseries.granularity", "1000", "milliseconds per point, for measurementtype=timeseries"),
    client("measurement.raw.output_file", "", "file for measurementtype=raw; standard output if empty"),
    client("measurement.raw.no_summary", "false", "no summary after raw measurements"),
    client("reportlatencyforeacherror", "false", "own metric per error status"),
    client("latencytrackederrors", "", "comma list of error statuses with a metric of their own"),
    client("spin.sleep", "false", "spin instead of sleeping between operations"),
    client("basicdb.verbose", "true", "basic binding: print every operation"),
    client("basicdb.simulatedelay", "0", "basic binding: milliseconds of delay per operation"),
    client("basicdb.randomizedelay", "true", "basic binding: draw the delay from 0 up to the setting"),
    client("basicdb.count", "false", "basic binding: count operations per key"),
    client("gbudb.delays", "200,1000,10000,50000,100000", "GoodBadUglyDB: delays in microseconds"),
    core("table", "usertable", "table, collection or key space"),
    core("fieldcount", "10", "fields per record"),
    core("fieldnameprefix", "field", "what field names start with"),
    core("fieldlength", "100", "bytes per field; the greatest length where lengths vary"),
    core("minfieldlength", "1", "least bytes per field where lengths vary"),
    core("fieldlengthdistribution", "constant", "constant, uniform, zipfian or histogram"),
    core("fieldlengthhistogram", "hist.txt", "file for fieldlengthdistribution=histogram"),
    core("readallfields", "true", "reads ask for all fields instead of one"),
    core("readallfieldsbyname", "false", "reads name all fields"),
    core("writeallfields", "false", "updates write all fields instead of one"),
    core("dataintegrity", "false", "values that depend on key and field, verified when read"),
    core("readproportion", "0.95", "weight of reads"),
    core("updateproportion", "0.05", "weight of updates"),
    core("insertproportion", "0", "weight of inserts"),
    core("scanproportion", "0", "weight of scans"),
    core("readmodifywriteproportion", "0", "weight of read-modify-writes"),
    core(
        "requestdistribution",
        "uniform",
        "uniform, zipfian, latest, hotspot, exponential or sequential; zipfian:0.8 sets the exponent",
    ),
    core("zeropadding", "1", "least number of digits in a key"),
    core("minscanlength", "1", "fewest records a scan asks for"),
    core("maxscanlength", "1000", "most records a scan asks for"),
    core("scanlengthdistribution", "uniform", "uniform or zipfian"),
    core("insertorder", "hashed", "hashed, or anything else for ordered keys"),
    core("hotspotdatafraction", "0.2", "hotspot: share of the keys that are hot"),
    core("hotspotopnfraction", "0.8", "hotspot: share of the operations on hot keys"),
    core(
        "exponential.percentile",
        "95",
        "exponential: per cent of the operations within exponential.frac of the records",
    ),
    core("exponential.frac", "0.8571428571", "exponential: fraction of the records, newest first"),
    core("core_workload_insertion_retry_limit", "0", "further attempts after a failed insert of the load"),
    core("core_workload_insertion_retry_interval", "3", "mean seconds between two attempts"),
    core("core_workload_insertion_keep_going_on_error", "false", "go on with the load after a failed insert"),
    core("maxscanrate", "0", "accepted; read by YCSB's bigtable2 binding only"),
    core("scanoptimelimit", "0", "accepted; read by YCSB's bigtable2 binding only"),
    core("discardscannedrecord", "false", "accepted; read by YCSB's bigtable2 binding only"),
    core("columnfamily", "", "accepted; read by bindings that are not offered"),
    dyno(
        "dyno.insert.resume",
        "false",
        "run-phase inserts go on after the keys that earlier runs have inserted, which are looked for first",
    ),
    dyno(
        "dyno.seed",
        "drawn",
        "seed of every draw, 64 bits; the one that was drawn is told, and repeats a run",
    ),
    dyno(
        "dyno.mix",
        "stratified",
        "stratified (exact shares per 1,024 operations) or iid (every operation drawn by itself)",
    ),
    dyno(
        "dyno.zipfian",
        "ycsb",
        "ycsb (scrambled over 10^10 ranks) or true; true by default where an exponent is set",
    ),
    dyno("dyno.zipfian.theta", "0.99", "exponent of zipfian and latest"),
    dyno("dyno.value", "random", "random, pool, text, zero or compressible:N"),
    dyno(
        "dyno.client.id",
        "0",
        "number of this client among dyno.client.count; keeps run-phase inserts apart",
    ),
    dyno("dyno.client.count", "1", "clients that run at the same time"),
    dyno("deleteproportion", "0", "weight of deletes"),
    dyno("keyprefix", "user", "what keys start with"),
    occupancy("disksize", "100000000", "bytes of the disk"),
    occupancy("storageages", "10", "operations, as multiples of the number of objects"),
    occupancy("occupancy", "0.9", "fraction of the disk to fill"),
    series("timestampkey", "YCSBTS", "name of the timestamp field"),
    series("valuekey", "YCSBV", "name of the value field"),
    series("timestampinterval", "60", "units between two points of a series"),
    series("timestampunits", "SECONDS", "MILLISECONDS, SECONDS, MINUTES, HOURS or DAYS"),
    series("tagcount", "4", "tags per point"),
    series("tagcardinality", "1, 2, 4, 8", "values of each tag, comma list; missing ones are 1"),
    series("tagkeylength", "8", "letters of a tag's name"),
    series("tagvaluelength", "8", "letters of a tag's value"),
    series("tagpairdelimiter", "=", "text between a tag's name and value in queries"),
    series("deletedelimiter", ":", "text between the parts of a deleted key"),
    series("randomwritetimestamporder", "false", "write the timestamps of the load in random order"),
    series("randomtimeseriesorder", "true", "write the series of each timestamp in random order"),
    series("valuetype", "floats", "floats, integers or mixednumbers"),
    series("sparsity", "0", "fraction of the points left out, 0 to below 1"),
    series("delayedseries", "0.1", "fraction of the series that lag behind"),
    series("delayedintervals", "5", "most intervals a delayed series lags behind, plus one"),
    series("querytimespan", "0", "units a query covers; 0 for one timestamp"),
    series("queryrandomtimespan", "false", "draw the span of a query from 0 up to the setting"),
    series("querytimespandelimiter", ",", "text between the two ends of a span"),
    series("groupbykey", "YCSBGB", "name under which the grouping function is passed"),
    series("groupbyfunction", "", "grouping function; none if empty"),
    series("groupbykeys", "", "comma list of 0 or 1 per tag: which are grouped; all if empty"),
    series("downsamplingkey", "YCSBDS", "name under which the downsampling is passed"),
    series("downsamplingfunction", "", "downsampling function; none if empty"),
    series("downsamplinginterval", "0", "units per downsampled point"),
    economy("totalcash", "1000000", "money in all accounts together; also totalCash"),
    economy("totalCash", "1000000", "another spelling of totalcash"),
    economy("validatebyquery", "true", "accepted; accounts are always read one by one; also validateByQuery"),
    economy("validateByQuery", "true", "another spelling of validatebyquery"),
    dyno_client("dyno.pipeline", "1", "operations in flight per connection, 1 to 10000"),
    dyno_client(
        "batchsize",
        "1",
        "inserts that go out as one batch while loading, 1 to 100000; also mongodb.batchsize",
    ),
    dyno_client(
        "dyno.arrivals",
        "constant",
        "gaps between arrivals where target is set: constant or poisson",
    ),
    dyno_client("dyno.warmup", "0", "duration at the start that does not count, such as 10s"),
    dyno_client(
        "dyno.timeout",
        "",
        "how long a reply is awaited, such as 500ms; 0 for ever; wins over redis.timeout",
    ),
    dyno_client("dyno.interval", "1s", "length of the intervals of --out's files, 10ms to 1s"),
    dyno_client(
        "dyno.samples",
        "20000000",
        "single samples kept for measurement types other than hdrhistogram; 40 bytes each",
    ),
    dyno_client(
        "dyno.load.threads",
        "auto",
        "operating-system threads that make the load, 1 to 1024 or auto",
    ),
    dyno_client(
        "dyno.workers",
        "1",
        "workers that share the load, each with its own users and records, 1 to 1024",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_documented() {
        let names: HashSet<&str> = PROPERTIES.iter().map(|p| p.name).collect();
        assert_eq!(names.len(), PROPERTIES.len());
        assert!(PROPERTIES.iter().all(|p| !p.doc.is_empty() && !p.doc.contains('\n')));
    }

    #[test]
    fn defaults_read_as_what_they_stand_for() {
        // Setting every property to its default must change nothing.
        use crate::ycsb::CoreConfig;
        let records = |key: &str| (key == "recordcount").then(|| "1000".to_owned());
        let bare = CoreConfig::from_lookup(&mut { records });
        let full = CoreConfig::from_lookup(&mut |key| {
            let default = PROPERTIES
                .iter()
                .find(|p| p.name == key)
                .unwrap_or_else(|| panic!("{key} is not in the table"));
            let formula = key == "insertcount";
            records(key).or_else(|| (!formula).then(|| default.default.to_owned()))
        });
        assert_eq!(bare.unwrap(), full.unwrap());
    }
}
