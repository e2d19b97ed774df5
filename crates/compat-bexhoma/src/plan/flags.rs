//! Every flag of `bexhoma ycsb`, whether it has a meaning here, and how a command line is read.

use Support::{Applies, Idle, Refused};
use Takes::{Nothing, One, Several};
use dyno_types::suggest;
use std::collections::BTreeMap;

/// Values behind a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: it is a switch.
    Nothing,
    /// A value; its default.
    One(&'static str),
    /// Words up to the next flag or mode.
    Several,
}

/// Treatment of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It is part of the experiment.
    Applies,
    /// It is taken and does nothing, for this reason.
    Idle(&'static str),
    /// It is not offered, for this reason; its default is taken all the same.
    Refused(&'static str),
}

/// A flag.
#[derive(Clone, Copy, Debug)]
pub struct BexhomaFlag {
    /// Short form without its dash; blank if there is none.
    pub short: &'static str,
    /// Long form without its dashes.
    pub long: &'static str,
    /// Values behind it.
    pub takes: Takes,
    /// Treatment of it.
    pub support: Support,
    /// Description for people.
    pub help: &'static str,
}

const fn flag(
    short: &'static str,
    long: &'static str,
    takes: Takes,
    support: Support,
    help: &'static str,
) -> BexhomaFlag {
    BexhomaFlag { short, long, takes, support, help }
}

const JDBC: &str = "is for databases that are reached by JDBC";
const POOLS: &str = "is PgBouncer's; Redis, Valkey, KeyDB and Dragonfly are spoken to directly";
const TENANTS: &str = "key-value stores are not divided among tenants here";
const GPU: &str = "none of these servers uses a GPU";

/// All flags, in the original's order, and dyno's own.
pub const FLAGS: [BexhomaFlag; 66] = [
    flag(
        "aws",
        "aws",
        Nothing,
        Refused("node groups are not made here; -cx names a cluster that exists"),
        "AWS",
    ),
    flag(
        "db",
        "debug",
        Nothing,
        Idle("what happens is in the journal and the logs of every run"),
        "say more",
    ),
    flag(
        "sl",
        "skip-loading",
        Nothing,
        Applies,
        "load nothing: the data are on the servers of -e, or on volumes (-rst)",
    ),
    flag("ss", "skip-shutdown", Nothing, Applies, "leave the servers running, as `load` does"),
    flag("cx", "context", One(""), Applies, "context of the kubeconfig"),
    flag("e", "experiment", One(""), Applies, "code of an experiment (summary)"),
    flag("m", "monitoring", Nothing, Applies, "watch the servers"),
    flag("mc", "monitoring-cluster", Nothing, Applies, "watch all components"),
    flag("ma", "monitoring-app", Nothing, Applies, "watch what databases say of themselves"),
    flag(
        "ms",
        "max-sut",
        One(""),
        Applies,
        "servers at once: runs of an experiment follow each other; those of others are not counted",
    ),
    flag(
        "mse",
        "max-sut-experiment",
        One(""),
        Applies,
        "servers at once: runs of an experiment follow each other",
    ),
    flag("nc", "num-config", One("1"), Applies, "repetitions of each configuration"),
    flag("ne", "num-query-executors", One("1"), Applies, "list: multiplies the benchmarking pods of a round"),
    flag("nw", "num-worker", One("0"), Applies, "primaries of a cluster; 0: a single server"),
    flag(
        "nwr",
        "num-worker-replicas",
        One("0"),
        Applies,
        "replicas of each primary; of Dragonfly: -nw servers are one primary and its copies",
    ),
    flag(
        "nws",
        "num-worker-shards",
        One("0"),
        Refused("shards are Citus'; slots are dealt out evenly"),
        "shards",
    ),
    flag("nlp", "num-loading-pods", One("1"), Applies, "list: loading pods"),
    flag("nlt", "num-loading-threads", One("1"), Applies, "list: threads of all loading pods together"),
    flag("nbp", "num-benchmarking-pods", One("1"), Applies, "list: benchmarking pods"),
    flag(
        "nbt",
        "num-benchmarking-threads",
        One("1"),
        Applies,
        "list: threads of the benchmarking pods together",
    ),
    flag("sf", "scaling-factor", One("1"), Applies, "millions of rows"),
    flag("t", "timeout", One("600"), Idle("it is a time-out of JDBC's queries"), "time-out of a query"),
    flag("lr", "limit-ram", One("0"), Applies, "limit of a server's memory"),
    flag("lc", "limit-cpu", One("0"), Applies, "limit of a server's CPU"),
    flag("rr", "request-ram", One("16Gi"), Applies, "request of a server's memory"),
    flag("rc", "request-cpu", One("4"), Applies, "request of a server's CPU"),
    flag("rct", "request-cpu-type", One(""), Applies, "node label `cpu` of the servers"),
    flag("rgt", "request-gpu-type", One(""), Refused(GPU), "node label `gpu`"),
    flag("rg", "request-gpu", One("1"), Idle(GPU), "GPUs"),
    flag("rst", "request-storage-type", One(""), Applies, "storage class of the servers' volumes"),
    flag("rss", "request-storage-size", One(""), Applies, "size of each volume"),
    flag("rsr", "request-storage-remove", Nothing, Applies, "begin with empty volumes"),
    flag("rnn", "request-node-name", One(""), Applies, "node of the servers"),
    flag("rnl", "request-node-loading", One(""), Applies, "node of the loading pods"),
    flag("rnb", "request-node-benchmarking", One(""), Applies, "node of the benchmarking pods"),
    flag("mtn", "multi-tenant-num", One("0"), Refused(TENANTS), "tenants"),
    flag("mtb", "multi-tenant-by", One(""), Refused(TENANTS), "how tenants are kept apart"),
    flag("mtv", "multi-tenant-volume", Nothing, Refused(TENANTS), "a volume for each tenant"),
    flag("tr", "test-result", Nothing, Applies, "tests are always made; they decide the exit code"),
    flag("", "set", One(""), Applies, "KEY=VALUE of the experiment file; may be given several times"),
    flag("dbms", "dbms", Several, Applies, "Redis, Valkey, KeyDB, Dragonfly"),
    flag("xwl", "xworkload", One(""), Applies, "workload, a to f"),
    flag("xop", "xnum-operations", One(""), Applies, "millions of operations; default: as -sf"),
    flag("xtb", "xtarget-base", One("16384"), Applies, "base of the targets, operations per second"),
    flag("xnlf", "xnum-loading-target-factors", One("1"), Applies, "list: target of loading / base"),
    flag(
        "xnbf",
        "xnum-benchmarking-target-factors",
        One("1"),
        Applies,
        "list: target of benchmarking / base",
    ),
    flag(
        "xnsr",
        "xnum-sut-replicas",
        One("1"),
        Refused("is TiDB's; -nwr are replicas of a cluster"),
        "replicas",
    ),
    flag("xnpp", "xnum-pooling-pods", One(""), Refused(POOLS), "pools"),
    flag("xnpi", "xnum-pooling-in", One(""), Refused(POOLS), "inbound connections of pools"),
    flag("xnpo", "xnum-pooling-out", One(""), Refused(POOLS), "outbound connections of pools"),
    flag("xsbs", "xscaling-batchsize", One(""), Refused(JDBC), "rows of a batch"),
    flag(
        "xli",
        "xlogging-interval",
        One("10"),
        Idle("every second is recorded"),
        "interval of status lines, s",
    ),
    flag("xio", "extra-insert-order", One("hashed"), Applies, "order of inserts: hashed, ordered"),
    flag("xmet", "xmax-execution-time", One("0"), Applies, "longest benchmark, s; 0: no limit"),
    flag("", "local", Nothing, Applies, "servers and load on this host, without a cluster"),
    flag("", "scale", One("1"), Applies, "divides rows and operations: a divisor of a million"),
    flag("", "namespace", One(""), Applies, "namespace; default: that of the context"),
    flag("", "image", One(""), Applies, "image of dyno for the pods"),
    flag(
        "",
        "program",
        One(""),
        Applies,
        "program of the server (--local); default: its usual name, on PATH",
    ),
    flag("", "resultfolder", One("."), Applies, "folder of the experiments, each called by its code"),
    flag(
        "",
        "cluster-config",
        One(""),
        Applies,
        "bexhoma's configuration; default: ./cluster.config, if it is there",
    ),
    flag(
        "",
        "prometheus",
        One(""),
        Applies,
        "API of a Prometheus that is asked the catalogue's queries (http://...:9090/api/v1/)",
    ),
    flag(
        "",
        "manifests",
        One(""),
        Applies,
        "folder of objects in the place of those that dyno makes (Kubernetes)",
    ),
    flag("", "dry-run", Nothing, Applies, "print names and experiment; nothing is started"),
    flag("q", "quiet", Nothing, Applies, "print no progress"),
    flag("h", "help", Nothing, Applies, "this list"),
];

/// Command of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BexhomaMode {
    /// Start, load, benchmark, report, remove.
    Run,
    /// Start and load.
    Load,
    /// Start.
    Start,
    /// Print the summary again.
    Summary,
}

const MODES: [(&str, BexhomaMode); 4] = [
    ("run", BexhomaMode::Run),
    ("load", BexhomaMode::Load),
    ("start", BexhomaMode::Start),
    ("summary", BexhomaMode::Summary),
];

/// A command line that has been read.
#[derive(Clone, Debug, Default)]
pub struct TypedFlags {
    /// Values by the flag's long name; a switch has none.
    values: BTreeMap<&'static str, Vec<String>>,
    /// The mode, if one was typed.
    pub mode: Option<BexhomaMode>,
    /// Notes on flags that were given and have no effect.
    pub notes: Vec<String>,
}

impl TypedFlags {
    /// Returns whether a flag was typed.
    pub fn given(&self, long: &str) -> bool {
        self.values.contains_key(long)
    }

    /// Returns whether nothing was typed but some of these.
    pub fn only(&self, known: &[&str]) -> bool {
        self.values.keys().all(|typed| known.contains(typed))
    }

    /// All values of a flag that may be repeated.
    pub fn all(&self, long: &str) -> &[String] {
        self.values.get(long).map_or(&[], Vec::as_slice)
    }

    /// The value of a flag: the last one that was typed, or its default.
    pub fn value(&self, long: &str) -> &str {
        let default = FLAGS.iter().find(|flag| flag.long == long).map(|flag| flag.takes);
        match (self.all(long).last(), default) {
            (Some(value), _) => value,
            (None, Some(One(default))) => default,
            _ => "",
        }
    }
}

/// `-sf`, or the long form where there is no short one.
pub fn shown(long: &str) -> String {
    match FLAGS.iter().find(|flag| flag.long == long) {
        Some(flag) if !flag.short.is_empty() => format!("-{}", flag.short),
        _ => format!("--{long}"),
    }
}

/// Words that are not the flags of `bexhoma ycsb`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// No flag has this name.
    #[error("{flag}: is no flag of bexhoma ycsb{hint}")]
    Unknown {
        /// As typed.
        flag: String,
        /// The nearest flag, as a question; empty if none is near.
        hint: String,
    },
    /// A mode of bexhoma's other scripts.
    #[error("{0:?}: expected a mode: run, load, start or summary; it is a mode of bexhoma's TPC scripts")]
    TpcMode(String),
    /// A word that is no mode.
    #[error("{0:?}: expected a mode: run, load, start or summary")]
    NoMode(String),
    /// Another mode than the one before.
    #[error("{0}: a mode was given before")]
    SecondMode(String),
    /// A value of a flag that takes none.
    #[error("{0}: takes no value")]
    TakesNoValue(String),
    /// A flag without its value.
    #[error("{0}: expected a value")]
    NeedsValue(String),
    /// A flag that is not offered here.
    #[error("{flag}: is not offered: {why}")]
    NotOffered {
        /// The flag.
        flag: String,
        /// Reason.
        why: &'static str,
    },
}

fn find(word: &str) -> Result<&'static BexhomaFlag, FlagError> {
    let by_long = word.strip_prefix("--");
    let is = |flag: &&BexhomaFlag| match by_long {
        Some(long) => flag.long == long,
        None => !flag.short.is_empty() && word.strip_prefix('-') == Some(flag.short),
    };
    FLAGS.iter().find(is).ok_or_else(|| {
        let known: Vec<String> = FLAGS
            .iter()
            .flat_map(|flag| [format!("-{}", flag.short), format!("--{}", flag.long)])
            .filter(|word| word != "-")
            .collect();
        let hint = suggest::hint(word, known.iter().map(String::as_str));
        FlagError::Unknown { flag: word.to_owned(), hint }
    })
}

fn mode(word: &str) -> Result<BexhomaMode, FlagError> {
    if let Some((_, mode)) = MODES.iter().find(|(name, _)| *name == word) {
        return Ok(*mode);
    }
    let tpc = ["empty", "profiling"].contains(&word);
    Err(if tpc { FlagError::TpcMode(word.to_owned()) } else { FlagError::NoMode(word.to_owned()) })
}

/// Reads the words after `dyno bexhoma ycsb`.
pub fn parse(words: &[String]) -> Result<TypedFlags, FlagError> {
    let mut typed = TypedFlags::default();
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        if !word.starts_with('-') {
            let found = mode(word)?;
            if typed.mode.is_some_and(|before| before != found) {
                return Err(FlagError::SecondMode(word.clone()));
            }
            typed.mode = Some(found);
            continue;
        }
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let flag = find(name)?;
        let values = typed.values.entry(flag.long).or_default();
        match (flag.takes, attached) {
            (Nothing, None) => {}
            (Nothing, Some(_)) => return Err(FlagError::TakesNoValue(name.to_owned())),
            (_, Some(value)) => values.push(value),
            (One(_), None) => {
                // A value may begin with a dash only where it is attached by `=`.
                let next = rest.next_if(|next| !next.starts_with('-'));
                values.push(next.ok_or_else(|| FlagError::NeedsValue(name.to_owned()))?.clone());
            }
            (Several, None) => {
                let ends = |next: &&String| next.starts_with('-') || MODES.iter().any(|(m, _)| m == next);
                let before = values.len();
                while let Some(next) = rest.next_if(|next| !ends(next)) {
                    values.push(next.clone());
                }
                if values.len() == before {
                    return Err(FlagError::NeedsValue(name.to_owned()));
                }
            }
        }
        support(flag, &mut typed)?;
    }
    Ok(typed)
}

/// Refuses a flag that is not offered; notes one that does nothing.
fn support(flag: &BexhomaFlag, typed: &mut TypedFlags) -> Result<(), FlagError> {
    // A flag that is not offered may be given with the value that it would have anyway.
    let changed = !matches!(flag.takes, One(default) if default == typed.value(flag.long));
    match flag.support {
        Refused(why) if changed => Err(FlagError::NotOffered { flag: shown(flag.long), why }),
        Refused(_) | Applies => Ok(()),
        Idle(why) => {
            typed.notes.push(format!("{}: without effect: {why}", shown(flag.long)));
            Ok(())
        }
    }
}

/// All flags in words, for `--help`.
pub fn help() -> String {
    let line = |flag: &BexhomaFlag| {
        let names = match flag.short {
            "" => format!("    --{}", flag.long),
            short => format!("-{short}, --{}", flag.long),
        };
        let default = match flag.takes {
            One(default) if !default.is_empty() => format!(" [{default}]"),
            _ => String::new(),
        };
        let treatment = match flag.support {
            Applies => String::new(),
            Idle(why) => format!(" (without effect: {why})"),
            Refused(why) => format!(" (not offered: {why})"),
        };
        format!("  {names:<44} {}{default}{treatment}\n", flag.help)
    };
    FLAGS.iter().map(line).collect()
}
