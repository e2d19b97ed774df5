//! The flags' values, typed and checked.

use crate::plan::flags::{TypedFlags, shown};
use dyno_config::server::ServerKind;
use dyno_types::{RefusalCode, Refused};

/// Rows and operations are counted in millions.
const MILLION: u64 = 1_000_000;
/// Most pods of one job.
const PODS: u64 = 10_000;

/// Databases that bexhoma knows and that are no key-value stores.
const OTHERS: [&str; 10] = [
    "PostgreSQL",
    "MySQL",
    "MariaDB",
    "YugabyteDB",
    "CockroachDB",
    "TiDB",
    "DatabaseService",
    "PGBouncer",
    "Citus",
    "CedarDB",
];

/// A database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dbms {
    /// Redis.
    Redis,
    /// Valkey; not in bexhoma.
    Valkey,
    /// KeyDB; not in bexhoma.
    KeyDb,
    /// Dragonfly.
    Dragonfly,
}

const KNOWN: [(&str, Dbms, ServerKind); 4] = [
    ("Redis", Dbms::Redis, ServerKind::Redis),
    ("Valkey", Dbms::Valkey, ServerKind::Valkey),
    ("KeyDB", Dbms::KeyDb, ServerKind::KeyDb),
    ("Dragonfly", Dbms::Dragonfly, ServerKind::Dragonfly),
];

impl Dbms {
    fn parse(word: &str) -> Result<Self, Refused> {
        if let Some((_, dbms, _)) = KNOWN.iter().find(|(name, _, _)| *name == word) {
            return Ok(*dbms);
        }
        let names: Vec<&str> = KNOWN.iter().map(|(name, _, _)| *name).collect();
        let why = match OTHERS.contains(&word) {
            true => "is no key-value store that dyno drives",
            false => "is not known",
        };
        Err(Refused::new(
            RefusalCode::UnknownName,
            "-dbms",
            format!("-dbms {word}: {why}: expected {}", names.join(", ")),
        ))
    }

    /// Returns the kind of servers that are started.
    pub fn kind(self) -> ServerKind {
        KNOWN.iter().find(|(_, dbms, _)| *dbms == self).map_or(ServerKind::Redis, |(_, _, kind)| *kind)
    }

    /// bexhoma's name.
    pub fn name(self) -> &'static str {
        KNOWN.iter().find(|(_, dbms, _)| *dbms == self).map_or("Redis", |(name, _, _)| name)
    }
}

/// The flags' values, checked.
#[derive(Clone, Debug)]
pub struct Options {
    /// Databases, in their order.
    pub dbms: Vec<Dbms>,
    /// Workload, a to f.
    pub workload: char,
    /// Rows.
    pub rows: u64,
    /// Operations of each round.
    pub operations: u64,
    /// Divisor of rows and operations.
    pub scale: u64,
    /// Base of targets, operations per second.
    pub base: u64,
    /// -nlp.
    pub loading_pods: Vec<u64>,
    /// -nlt.
    pub loading_threads: Vec<u64>,
    /// -xnlf.
    pub loading_factors: Vec<u64>,
    /// -nbp.
    pub benchmarking_pods: Vec<u64>,
    /// -nbt.
    pub benchmarking_threads: Vec<u64>,
    /// -xnbf.
    pub benchmarking_factors: Vec<u64>,
    /// -ne.
    pub executors: Vec<u64>,
    /// -nc.
    pub repetitions: u64,
    /// -nw.
    pub workers: u64,
    /// -nwr.
    pub replicas: u64,
    /// -xmet, seconds; 0: no limit.
    pub longest_s: u64,
    /// -xio.
    pub order: String,
    /// True if servers run on this host.
    pub local: bool,
    /// True if anything is watched.
    pub watched: bool,
    /// The flags themselves.
    pub typed: TypedFlags,
}

fn number(typed: &TypedFlags, long: &str, least: u64, most: u64) -> Result<u64, Refused> {
    whole(&shown(long), typed.value(long), least, most)
}

fn whole(flag: &str, text: &str, least: u64, most: u64) -> Result<u64, Refused> {
    let found = text.trim().parse::<u64>().ok().filter(|n| (least..=most).contains(n));
    found.ok_or_else(|| {
        Refused::new(
            RefusalCode::BadValue,
            flag,
            format!("{flag} {text}: expected a whole number from {least} to {most}"),
        )
    })
}

fn list(typed: &TypedFlags, long: &str, least: u64, most: u64) -> Result<Vec<u64>, Refused> {
    typed.value(long).split(',').map(|text| whole(&shown(long), text, least, most)).collect()
}

impl Options {
    /// Takes what was typed.
    pub fn read(typed: TypedFlags) -> Result<Options, Refused> {
        let words = typed.all("dbms").iter().flat_map(|word| word.split(','));
        let dbms: Vec<Dbms> = words
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .map(Dbms::parse)
            .collect::<Result<_, _>>()?;
        if dbms.is_empty() {
            let message = "expected Redis, Valkey, KeyDB or Dragonfly; without it bexhoma would take SQL databases, too";
            return Err(Refused::new(RefusalCode::Missing, "-dbms", format!("-dbms: {message}")));
        }
        let scale = number(&typed, "scale", 1, MILLION)?;
        if !MILLION.is_multiple_of(scale) {
            return Err(Refused::new(
                RefusalCode::BadValue,
                "--scale",
                format!("--scale {scale}: expected a divisor of 1,000,000"),
            ));
        }
        let factor = number(&typed, "scaling-factor", 1, 1_000_000)?;
        let operations = match typed.value("xnum-operations") {
            "" => factor,
            text => whole("-xop", text, 1, 1_000_000)?,
        };
        let workload = match typed.value("xworkload").as_bytes() {
            [letter @ (b'a'..=b'f' | b'A'..=b'F')] => letter.to_ascii_lowercase() as char,
            _ => {
                return Err(Refused::new(
                    RefusalCode::BadValue,
                    "-xwl",
                    format!("-xwl {}: expected a workload: a, b, c, d, e or f", typed.value("xworkload")),
                ));
            }
        };
        let order = typed.value("extra-insert-order").to_owned();
        if !["hashed", "ordered"].contains(&order.as_str()) {
            return Err(Refused::new(
                RefusalCode::BadValue,
                "-xio",
                format!("-xio {order}: expected hashed or ordered"),
            ));
        }
        for flag in ["max-sut", "max-sut-experiment"] {
            if typed.given(flag) {
                number(&typed, flag, 1, PODS)?;
            }
        }
        let most = 1 << 24;
        let options = Options {
            dbms,
            workload,
            rows: factor * (MILLION / scale),
            operations: operations * (MILLION / scale),
            scale,
            base: number(&typed, "xtarget-base", 0, 1 << 32)?,
            loading_pods: list(&typed, "num-loading-pods", 1, PODS)?,
            loading_threads: list(&typed, "num-loading-threads", 1, most)?,
            loading_factors: list(&typed, "xnum-loading-target-factors", 1, most)?,
            benchmarking_pods: list(&typed, "num-benchmarking-pods", 1, PODS)?,
            benchmarking_threads: list(&typed, "num-benchmarking-threads", 1, most)?,
            benchmarking_factors: list(&typed, "xnum-benchmarking-target-factors", 1, most)?,
            executors: list(&typed, "num-query-executors", 1, PODS)?,
            repetitions: number(&typed, "num-config", 1, 10_000)?,
            workers: number(&typed, "num-worker", 0, 512)?,
            replicas: number(&typed, "num-worker-replicas", 0, 512)?,
            longest_s: number(&typed, "xmax-execution-time", 0, 1 << 31)?,
            order,
            local: typed.given("local"),
            watched: ["monitoring", "monitoring-cluster", "monitoring-app"]
                .iter()
                .any(|flag| typed.given(flag)),
            typed,
        };
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<(), Refused> {
        if self.replicas > 0 && self.workers == 0 {
            return Err(Refused::new(
                RefusalCode::Missing,
                "-nwr",
                "-nwr: replicas are of a cluster's workers: expected -nw, too",
            ));
        }
        if (1..3).contains(&self.workers) {
            return Err(Refused::new(
                RefusalCode::BadValue,
                "-nw",
                format!("-nw {}: a cluster has 3 primaries or more; 0 is a single server", self.workers),
            ));
        }
        if self.typed.given("skip-loading") {
            let given = |flag: &str| !self.typed.value(flag).is_empty();
            if !given("experiment") && !given("request-storage-type") {
                return Err(Refused::new(
                    RefusalCode::Missing,
                    "-sl",
                    "-sl: a server of its own begins with nothing: expected -e CODE, or -rst",
                ));
            }
            if self.typed.given("request-storage-remove") {
                return Err(Refused::new(
                    RefusalCode::Conflict,
                    "-sl",
                    "-sl: the volume is to be empty (-rsr)",
                ));
            }
        }
        let sides = [
            ("-nlt", &self.loading_threads, "-nlp", &self.loading_pods),
            ("-nbt", &self.benchmarking_threads, "-nbp", &self.benchmarking_pods),
        ];
        for (threads_flag, threads, pods_flag, pods) in sides {
            let (least, most) = (threads.iter().min().unwrap_or(&1), pods.iter().max().unwrap_or(&1));
            if least < most {
                return Err(Refused::new(
                    RefusalCode::Conflict,
                    threads_flag,
                    format!("{threads_flag} {least}: fewer threads than the {most} pods of {pods_flag}"),
                ));
            }
        }
        Ok(())
    }

    /// bexhoma's name of what is deployed.
    pub fn deployment(&self, dbms: Dbms) -> String {
        format!("{}{}", dbms.name(), if self.workers > 0 { "Cluster" } else { "" })
    }
}
