//! The command line of `dyno prove ingest`.

use crate::poc_documents::PocDocuments;
use clap::{Args, ValueEnum};
use dyno_compat_pocdriver::work::parse;
use dyno_db::copies::plan::{Durability, IngestPlan};
use dyno_db::copies::records::RecordDocuments;
use dyno_frontend::exit::Failure;
use dyno_types::limits::{BATCH, BATCH_BYTES, INDEXES, RECORD_BYTES, THREADS};
use dyno_types::secret::mask_text;
use dyno_types::units::{parse_bytes, parse_count, parse_duration_ns, parse_rate};
use dyno_workload::pocdriver::{PocConfig, Template};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The sizes of the proof of ingest rate: bytes, indexes, records a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// 1 KB, 3 indexes, 20,000 a second
    Small,
    /// 10 KB, 6 indexes, 3,500 a second
    Medium,
    /// 50 KB, 8 indexes, 460 a second
    Large,
}

impl Size {
    /// POCDriver's flags for its document, of the published proof.
    pub(super) fn pocdriver(self) -> &'static str {
        match self {
            Size::Small => "-f 25 -a 5:5 --depth 2 -x 3",
            Size::Medium => "-f 234 -a 20:20 --depth 2 -x 6",
            Size::Large => "-f 1692 -a 10:10 --depth 2 -x 8",
        }
    }

    fn figures(self) -> (usize, usize, f64) {
        match self {
            Size::Small => (1_000, 3, 20_000.0),
            Size::Medium => (10_000, 6, 3_500.0),
            Size::Large => (50_000, 8, 460.0),
        }
    }
}

/// Kind of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordKind {
    /// A name, a text of the size's bytes, and a number for each index
    Plain,
    /// MongoDB: POCDriver's document and indexes, as the published proof's command lines have them
    Pocdriver,
}

/// `dyno prove ingest`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A record counts once as many copies have acknowledged it as --copies says: WAIT of Redis, or WAITAOF with --durable; write \
concern majority of MongoDB, with j: true. Of an embedded store a process of its own writes, which is killed at random moments. \
Afterwards every record is looked up on every copy, byte by byte. Exit code 4: the evidence is complete, and the claim is not \
met.")]
pub struct IngestArgs {
    /// The primary, redis://HOST:PORT; a replica set, mongodb://HOST:PORT/DATABASE; or an embedded store, such as sqlite:FILE
    pub target: String,
    /// Take the target's password from env:NAME, file:PATH (its first line) or a prompt, instead of its URI
    #[arg(long, value_name = "FROM")]
    pub password_from: Option<dyno_frontend::secret::PasswordFrom>,
    /// Size, indexes and rate of the published proof
    #[arg(long, value_enum, default_value = "small")]
    pub size: Size,
    /// Kind of the records
    #[arg(long, value_enum, default_value = "plain")]
    pub document: RecordKind,
    /// Bytes of a record, instead of the size's
    #[arg(long, value_name = "BYTES")]
    pub record_bytes: Option<String>,
    /// Secondary indexes, instead of the size's
    #[arg(long, value_name = "N")]
    pub indexes: Option<usize>,
    /// Claimed records a second, instead of the size's
    #[arg(long, value_name = "RATE")]
    pub require_rate: Option<String>,
    /// Copies of every record, the primary's own among them [default: 2; of an embedded store 1]
    #[arg(long, value_name = "N")]
    pub copies: Option<usize>,
    /// Of an embedded store: how often the process that writes is killed
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub kills: u32,
    /// A copy is in an append-only file or a journal on disk, not in memory alone (Redis 7.2 or later)
    #[arg(long)]
    pub durable: bool,
    /// Duration for which records are written
    #[arg(short, long, value_name = "DURATION", default_value = "10m")]
    pub duration: String,
    /// Number of records, instead of a duration
    #[arg(short = 'n', long, value_name = "N")]
    pub records: Option<String>,
    /// Shortest time that proves a rate; records must be 1,000 or more in it. 0s takes any: a demonstration
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub least: String,
    /// Connections, each with a thread
    #[arg(short, long, value_name = "N", default_value_t = 4)]
    pub threads: u32,
    /// Records that go out together
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub batch: u64,
    /// Write no more records a second than this
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Longest time a batch waits for its copies, and that copies may take to catch up in the end
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub patience: String,
    /// Seed of the contents
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Leave the records in the database
    #[arg(long)]
    pub keep: bool,
    /// Where the proof goes
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Sign the digests with this ssh key (ssh-keygen -Y)
    #[arg(long, value_name = "KEY")]
    pub sign: Option<PathBuf>,
    /// Print no progress
    #[arg(short, long)]
    pub quiet: bool,
}

fn usage<T, E: std::fmt::Display>(option: &str, read: Result<T, E>) -> Result<T, Failure> {
    read.map_err(|e| Failure::usage(format!("{option}: {e}")))
}

/// Mean size of POCDriver's documents, bytes: of the first thousand.
fn mean_bytes(config: &PocConfig) -> usize {
    let (template, mut out) = (Template::new(config), Vec::new());
    (0..1_000).for_each(|number| template.render_document(config.seed, 0, number, &mut out));
    out.len() / 1_000
}

impl IngestArgs {
    /// The shortest time that proves a rate.
    pub(super) fn least(&self) -> Result<Duration, Failure> {
        usage("--least", parse_duration_ns(&self.least, 1_000_000_000)).map(Duration::from_nanos)
    }

    /// Refuses the target, shown without its password.
    pub(super) fn refuse(&self, why: &str) -> Failure {
        Failure::usage(format!("{}: {why}", mask_text(&self.target)))
    }

    /// POCDriver's document, with the indexes asked for. "Now" of its dates is now; the certificate has it.
    pub(super) fn poc_config(&self) -> Result<Option<PocConfig>, Failure> {
        if self.document != RecordKind::Pocdriver {
            return Ok(None);
        }
        if self.record_bytes.is_some() {
            let message =
                "--record-bytes: the size of POCDriver's document follows from its fields; see --size";
            return Err(Failure::usage(message));
        }
        let args = parse(self.size.pocdriver(), dyno_frontend::terminal::warn);
        let mut args = args.map_err(Failure::internal)?;
        args.indexes = self.indexes.map_or(args.indexes, |count| count as u32);
        args.seed = Some(self.seed);
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
        Ok(Some(args.config(now_ms)?))
    }

    /// The plan, and the rate that is claimed. Records are the documents of `config` where there is one.
    pub(super) fn plan(
        &self,
        run: String,
        copies: usize,
        config: Option<&PocConfig>,
    ) -> Result<(IngestPlan, f64), Failure> {
        let (bytes, indexes, rate) = self.size.figures();
        let span = |option: &str, text: &str| {
            usage(option, parse_duration_ns(text, 1_000_000_000)).map(Duration::from_nanos)
        };
        let copies = self.copies.unwrap_or(copies);
        if copies == 0 || self.threads == 0 || self.batch == 0 {
            return Err(Failure::usage("--copies, --threads, --batch: expected 1 or more"));
        }
        bounded_counts(self.threads, self.batch)?;
        if self.indexes.is_some_and(|indexes| indexes > INDEXES) {
            return Err(Failure::usage(format!("--indexes: expected at most {INDEXES}")));
        }
        let records =
            self.records.as_deref().map(|text| usage("--records", parse_count(text))).transpose()?;
        let plan = IngestPlan {
            workers: self.threads,
            batch: self.batch,
            record_bytes: match (config, &self.record_bytes) {
                (Some(config), _) => mean_bytes(config),
                (None, Some(text)) => usage("--record-bytes", parse_bytes(text))? as usize,
                (None, None) => bytes,
            },
            indexes: self.indexes.unwrap_or(indexes),
            copies,
            durability: if self.durable { Durability::Disk } else { Durability::Memory },
            wait: IngestPlan::ELECTION,
            patience: span("--patience", &self.patience)?,
            duration: if records.is_some() { None } else { Some(span("--duration", &self.duration)?) },
            records,
            rate: self.rate.as_deref().map(|text| usage("--rate", parse_rate(text))).transpose()?,
            seed: self.seed,
            run,
            documents: config.map(|config| Arc::new(PocDocuments::new(config)) as Arc<dyn RecordDocuments>),
        };
        bounded_record(plan.record_bytes as u64, plan.batch)?;
        let claimed = match &self.require_rate {
            Some(text) => usage("--require-rate", parse_rate(text))?,
            None => rate,
        };
        Ok((plan, claimed))
    }
}

/// Refuses more threads, or more records at once, than there is room for.
pub(super) fn bounded_counts(threads: u32, batch: u64) -> Result<(), Failure> {
    let refuse =
        |option: &str, most: usize| Err(Failure::usage(format!("{option}: expected at most {most}")));
    match () {
        () if threads as usize > THREADS => refuse("--threads", THREADS),
        () if batch > BATCH as u64 => refuse("--batch", BATCH),
        () => Ok(()),
    }
}

/// Refuses records that no database takes, and batches that do not fit into memory.
pub(super) fn bounded_record(bytes: u64, batch: u64) -> Result<(), Failure> {
    let refuse =
        |what: &str, most: u64| Err(Failure::usage(format!("{what}: expected at most {most} bytes")));
    match () {
        () if bytes > RECORD_BYTES => refuse("--record-bytes", RECORD_BYTES),
        () if bytes.saturating_mul(batch) > BATCH_BYTES => {
            refuse("--record-bytes times --batch", BATCH_BYTES)
        }
        () => Ok(()),
    }
}
