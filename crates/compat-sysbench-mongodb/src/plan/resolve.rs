//! Turns variables into a plan: dialect, numbers, connection string.

use crate::plan::variable_scopes::VariableScopes;
use crate::plan::variables::{KnownVersions, SEED, VARIABLES, names, variable};
use dyno_config::settings::{BadSetting, Provenance, Source};
use dyno_types::limits::{COLLECTIONS, CONNECTIONS};
use dyno_types::percent;
use dyno_types::secret::mask_value;
use dyno_workload::sysbench_mongodb::{Counts, Dialect, Sharding, Streams, SysbenchConfig};
use dyno_workload::ycsb::BadProperty;

/// Documents that MongoDB takes in one insert.
const INSERT: usize = 100_000;

/// Options of dyno's own, beside the variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The dialect, where it is not to be found out.
    pub dialect: Option<Dialect>,
    /// Reproduce the original's defects.
    pub faithful: bool,
    /// Transactions independent of each other and of the number of users.
    pub independent: bool,
}

/// A phase of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchmarkPhase {
    /// Loading.
    Load,
    /// Transactions.
    Execute,
}

/// Everything that a configuration asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct SysbenchPlan {
    /// The workload.
    pub config: SysbenchConfig,
    /// Connection string, with secrets.
    pub uri: String,
    /// Database.
    pub database: String,
    /// True if to load.
    pub load: bool,
    /// True if to run transactions.
    pub query: bool,
    /// Length of the run phase, seconds.
    pub run_seconds: u64,
    /// Seconds between two lines, if any are wanted.
    pub feedback_seconds: Option<u64>,
    /// Documents between two lines of the load phase, if any are wanted.
    pub feedback_inserts: Option<u64>,
    /// As written, for the version of 2015.
    pub write_concern: String,
    /// Server and port as the version of 2015 shows them.
    pub server: String,
    /// User as the version of 2015 shows it.
    pub user: String,
    /// As written, for the version of 2015.
    pub auto_commit: String,
    /// `DOCDB_DBNAME`: a word in the names of log files.
    pub log_word: String,
    /// All variables with their values and where they come from; secrets masked.
    pub provenance: Vec<Provenance>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl SysbenchPlan {
    /// Name of the original's log file; with `.tsv` behind it that of the table.
    pub fn log_name(&self, phase: BenchmarkPhase) -> String {
        let (what, users) = match phase {
            BenchmarkPhase::Load => ("Load", self.config.loaders),
            BenchmarkPhase::Execute => ("Execute", self.config.writers),
        };
        // The last version puts a variable in front that its own configuration does not assign.
        let gap = match self.config.dialect {
            Dialect::Head => format!("-{}", self.log_word),
            Dialect::Y2015 => String::new(),
        };
        let (collections, documents) = (self.config.collections, self.config.documents);
        format!("mongoSysbench{what}{gap}-{collections}-{documents}-{users}.txt")
    }
}

/// Draws the conclusions.
pub(super) fn resolve(
    layers: VariableScopes,
    overrides: &Overrides,
    now_s: u64,
) -> Result<SysbenchPlan, BadSetting> {
    let mut reader = VariableReader { dialect: dialect(&layers, overrides)?, layers, now: now_s.to_string() };
    let config = reader.config(overrides)?;
    let run_seconds = reader.run_seconds()?;
    let uri = reader.uri(overrides)?;
    let feedback = |reader: &VariableReader, key| match reader.whole(key, -1, i64::from(i32::MAX))? {
        n @ 1.. => Ok::<_, BadSetting>(Some(n as u64)),
        _ => Ok(None),
    };
    let feedback_seconds = feedback(&reader, "NUM_SECONDS_PER_FEEDBACK")?;
    let feedback_inserts = feedback(&reader, "NUM_INSERTS_PER_FEEDBACK")?;
    let (load, query) = (reader.yes("DOLOAD")?, reader.yes("DOQUERY")?);
    reader.note_without_effect();
    let database = reader.text("DB_NAME");
    if database.is_empty() || database.contains(['/', '\\', '.', ' ', '"', '$']) {
        return Err(reader.refuse("DB_NAME", "the name of a database: no / \\ . \" $ and no blanks"));
    }
    let log_word = reader.text("DOCDB_DBNAME");
    if log_word.contains('/') {
        return Err(reader.refuse("DOCDB_DBNAME", "a word without /, for the names of log files"));
    }
    Ok(SysbenchPlan {
        log_word,
        config,
        uri,
        database,
        load,
        query,
        run_seconds,
        feedback_seconds,
        feedback_inserts,
        write_concern: reader.text("WRITE_CONCERN"),
        server: format!("{}:{}", reader.text("MONGO_SERVER"), reader.text("MONGO_PORT")),
        user: reader.text("USERNAME"),
        auto_commit: reader.text("SYSBENCH_AUTO_COMMIT"),
        provenance: reader.provenance(),
        notes: reader.layers.notes,
    })
}

/// Returns the version that a configuration is of: by the variables that only one of them has.
fn dialect(layers: &VariableScopes, overrides: &Overrides) -> Result<Dialect, BadSetting> {
    let file = |name: &str| {
        layers.get(name).filter(|setting| matches!(setting.source, Source::File { .. })).is_some()
    };
    let (server, uri) = (file("MONGO_SERVER") || file("MONGO_PORT"), file("URI"));
    if server && uri {
        let why = "either URI or MONGO_SERVER and MONGO_PORT, not both";
        return Err(layers.settings.refuse_value("URI", why));
    }
    let old =
        |v: &&crate::plan::variables::Variable| v.known == KnownVersions::Old && layers.get(v.name).is_some();
    let guessed = if !uri && VARIABLES.iter().any(|v| old(&v)) { Dialect::Y2015 } else { Dialect::Head };
    Ok(overrides.dialect.unwrap_or(guessed))
}

struct VariableReader {
    layers: VariableScopes,
    dialect: Dialect,
    now: String,
}

impl VariableReader {
    fn default(&self, key: &str) -> &str {
        match (variable(key), self.dialect) {
            (Some(v), Dialect::Y2015) => v.defaults.0,
            (Some(v), Dialect::Head) => v.defaults.1,
            (None, _) if key == SEED => &self.now,
            (None, _) => "",
        }
    }

    fn text(&self, key: &str) -> String {
        self.layers.get(key).map_or_else(|| self.default(key).to_owned(), |s| s.value.clone())
    }

    fn refuse(&self, key: &str, expected: &str) -> BadSetting {
        self.layers.settings.blame_source(BadProperty::new(key, self.text(key), expected))
    }

    fn whole(&self, key: &str, least: i64, most: i64) -> Result<i64, BadSetting> {
        let number = self.text(key).trim().parse().ok().filter(|n| (least..=most).contains(n));
        number.ok_or_else(|| self.refuse(key, &format!("a whole number, {least} to {most}")))
    }

    fn count(&self, key: &str, least: i64, most: usize) -> Result<u32, BadSetting> {
        self.whole(key, least, (most as i64).min(i64::from(i32::MAX))).map(|n| n as u32)
    }

    fn yes(&self, key: &str) -> Result<bool, BadSetting> {
        match self.text(key).to_ascii_lowercase().as_str() {
            "yes" | "y" | "true" => Ok(true),
            "no" | "n" | "false" => Ok(false),
            _ => Err(self.refuse(key, "yes or no")),
        }
    }

    fn config(&self, overrides: &Overrides) -> Result<SysbenchConfig, BadSetting> {
        let per_transaction = |key| self.count(key, 0, usize::MAX / 2);
        let positive = |key| self.count(key, 1, usize::MAX / 2);
        let mut counts = Counts {
            point_selects: per_transaction("SYSBENCH_POINT_SELECTS")?,
            simple_ranges: per_transaction("SYSBENCH_SIMPLE_RANGES")?,
            sum_ranges: per_transaction("SYSBENCH_SUM_RANGES")?,
            order_ranges: per_transaction("SYSBENCH_ORDER_RANGES")?,
            distinct_ranges: per_transaction("SYSBENCH_DISTINCT_RANGES")?,
            index_updates: per_transaction("SYSBENCH_INDEX_UPDATES")?,
            non_index_updates: per_transaction("SYSBENCH_NON_INDEX_UPDATES")?,
            inserts: per_transaction("SYSBENCH_INSERTS")?,
        };
        if self.dialect == Dialect::Y2015 && self.yes("SYSBENCH_READ_ONLY")? {
            counts = Counts { index_updates: 0, non_index_updates: 0, inserts: 0, ..counts };
        }
        let sharding = self.sharding()?;
        let config = SysbenchConfig {
            dialect: self.dialect,
            sharding,
            collections: self.count("NUM_COLLECTIONS", 1, COLLECTIONS as usize)?,
            documents: match sharding {
                Some(Sharding { keys, each }) => keys * each,
                None => positive("NUM_DOCUMENTS_PER_COLLECTION")?,
            },
            batch: match sharding {
                Some(sharding) => sharding.each,
                None => positive("NUM_DOCUMENTS_PER_INSERT")?,
            },
            loaders: self.count("NUM_LOADER_THREADS", 1, CONNECTIONS)?,
            writers: self.count("NUM_WRITER_THREADS", 1, CONNECTIONS)?,
            first_writer: 0,
            all_writers: 0,
            range_size: positive("SYSBENCH_RANGE_SIZE")?,
            counts,
            seed: self.whole(SEED, i64::MIN, i64::MAX)?,
            max_tps: positive("MAX_TPS")?,
            streams: if overrides.independent { Streams::Transactions } else { Streams::Threads },
            faithful: overrides.faithful,
        };
        config.check().map_err(|bad| self.layers.settings.blame_source(bad))?;
        Ok(config)
    }

    /// MAX_SHARD_KEY by DOCS_PER_SHARD documents, each shard key's in one insert.
    fn sharding(&self) -> Result<Option<Sharding>, BadSetting> {
        let is_set = !self.text("SHARDED").is_empty();
        if !is_set || !self.yes("SHARDED")? {
            return Ok(None);
        }
        let keys = self.count("MAX_SHARD_KEY", 1, usize::MAX / 2)?;
        let each = self.count("DOCS_PER_SHARD", 1, INSERT)?;
        let product = keys.checked_mul(each).filter(|n| i32::try_from(*n).is_ok());
        let expected = "a number whose product with DOCS_PER_SHARD is below 2147483648";
        product.ok_or_else(|| self.refuse("MAX_SHARD_KEY", expected))?;
        Ok(Some(Sharding { keys, each }))
    }

    /// RUN_TIME_SECONDS, unless RUN_TIME_MINUTES was set after it.
    fn run_seconds(&mut self) -> Result<u64, BadSetting> {
        let most = 10 * 366 * 86_400;
        let minutes = self.whole("RUN_TIME_MINUTES", 1, most / 60)?;
        let place = |name| self.layers.order.iter().position(|known| known == name);
        let (of_minutes, of_seconds) = (place("RUN_TIME_MINUTES"), place("RUN_TIME_SECONDS"));
        if of_seconds.is_none() || of_minutes > of_seconds {
            if of_seconds.is_some() {
                let note = format!("RUN_TIME_MINUTES={minutes} was set last and replaces RUN_TIME_SECONDS");
                self.layers.notes.push(note);
            }
            return Ok(minutes as u64 * 60);
        }
        self.whole("RUN_TIME_SECONDS", 1, most).map(|n| n as u64)
    }

    fn uri(&self, overrides: &Overrides) -> Result<String, BadSetting> {
        if self.dialect == Dialect::Head || self.layers.get("URI").is_some() {
            let uri = match self.text("URI") {
                // Asked for the old dialect by an option.
                uri if uri.is_empty() => variable("URI").map_or("", |v| v.defaults.1).to_owned(),
                uri => uri,
            };
            return if ["mongodb://", "mongodb+srv://"].iter().any(|scheme| uri.starts_with(scheme)) {
                Ok(uri)
            } else {
                Err(self
                    .refuse("URI", "mongodb://[user:password@]host[:port][/?options] or mongodb+srv://..."))
            };
        }
        let host = self.text("MONGO_SERVER");
        if host.is_empty() || host.contains(['/', '@', ',', ' ', '?']) {
            return Err(self.refuse("MONGO_SERVER", "the name or address of one host"));
        }
        let port = self.whole("MONGO_PORT", 1, 65_535)?;
        let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host };
        let mut options = Vec::new();
        let user = self.text("USERNAME");
        let login = if user.is_empty() || user.eq_ignore_ascii_case("none") {
            String::new()
        } else {
            options.push(format!("authSource={}", escaped(&self.text("DB_NAME"))));
            format!("{}:{}@", escaped(&user), escaped(&self.text("PASSWORD")))
        };
        options.extend(self.write_concern(overrides)?.into_iter().map(str::to_owned));
        let preference = self.text("MONGO_READ_PREFERENCE");
        if !preference.is_empty() {
            options.push(format!("readPreference={}", escaped(&preference)));
        }
        let tls = self.text("USE_TLS");
        if !tls.is_empty() && self.yes("USE_TLS")? {
            options.push("tls=true".to_owned());
        }
        let query = if options.is_empty() { String::new() } else { format!("/?{}", options.join("&")) };
        Ok(format!("mongodb://{login}{host}:{port}{query}"))
    }

    /// The options that a write concern of the old driver stands for. The original reads the variable and forgets it.
    fn write_concern(&self, overrides: &Overrides) -> Result<Vec<&'static str>, BadSetting> {
        Ok(match self.text("WRITE_CONCERN").to_ascii_uppercase().as_str() {
            _ if overrides.faithful => vec!["w=1"],
            "SAFE" | "ACKNOWLEDGED" | "W1" | "" => vec!["w=1"],
            "FSYNC_SAFE" | "FSYNCED" | "JOURNAL_SAFE" | "JOURNALED" => vec!["w=1", "journal=true"],
            "NONE" | "NORMAL" | "UNACKNOWLEDGED" => vec!["w=0"],
            "REPLICAS_SAFE" | "REPLICA_ACKNOWLEDGED" | "W2" => vec!["w=2"],
            "W3" => vec!["w=3"],
            "MAJORITY" => vec!["w=majority"],
            _ => {
                let accepted = "SAFE, FSYNC_SAFE, NONE, NORMAL, REPLICAS_SAFE, ACKNOWLEDGED, UNACKNOWLEDGED, \
                                JOURNALED, MAJORITY, W1, W2 or W3";
                return Err(self.refuse("WRITE_CONCERN", accepted));
            }
        })
    }

    /// Variables that are set and change nothing.
    fn note_without_effect(&mut self) {
        let mut notes = Vec::new();
        let mut note = |name: &str, why: &str| {
            if let Some(setting) = self.layers.get(name) {
                notes.push(format!("{}: {name} has no effect: {why}", setting.source));
            }
        };
        for name in ["MONGO_COMPRESSION", "MONGO_BASEMENT"] {
            note(name, "it is TokuMX's");
        }
        if self.text("SYSBENCH_AUTO_COMMIT").eq_ignore_ascii_case("n") {
            note("SYSBENCH_AUTO_COMMIT", "it is TokuMX's; a transaction is 18 commands of their own");
        }
        let (idle, why) = if self.text("SHARDED").is_empty() || !self.yes("SHARDED").unwrap_or(false) {
            (["MAX_SHARD_KEY", "DOCS_PER_SHARD"], "it belongs to SHARDED=yes")
        } else {
            let why = "with SHARDED=yes there are MAX_SHARD_KEY by DOCS_PER_SHARD documents, an insert for each key";
            (["NUM_DOCUMENTS_PER_COLLECTION", "NUM_DOCUMENTS_PER_INSERT"], why)
        };
        idle.into_iter().for_each(|name| note(name, why));
        if self.layers.get("TRUST_STORE").is_some_and(|s| !s.value.is_empty()) {
            note("TRUST_STORE", "the original does not use it either; give tlsCAFile=FILE in URI");
        }
        self.layers.notes.append(&mut notes);
    }

    /// The variables of this dialect, and whatever else is set.
    fn provenance(&self) -> Vec<Provenance> {
        let foreign = if self.dialect == Dialect::Y2015 { KnownVersions::Head } else { KnownVersions::Old };
        let of_dialect = |name: &&str| variable(name).is_none_or(|v| v.known != foreign);
        let defaults: Vec<(&str, &str)> =
            names().filter(of_dialect).map(|name| (name, self.default(name))).collect();
        self.layers.settings.list_provenance(defaults, mask_value)
    }
}

/// A text as a part of a URI.
fn escaped(text: &str) -> String {
    percent::percent_encode(text, percent::RESERVED)
}
