//! The certificate of a proof: JSON, ledger, a page, and the digests of them all.

use crate::drive::BatchHistory;
use crate::verify::Copy;
use dyno_db::copies::database::PreCheck;
use dyno_db::copies::ledger::Ledger;
use dyno_frontend::exit::{Exit, Failure};
use dyno_report::html::plain::{PageBlock, plain_page};
use dyno_rundir::files;
use dyno_types::child;
use dyno_types::secret::{conceal, conceal_json, own_command_line};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Claim of a proof.
#[derive(Clone, Debug, Serialize)]
pub struct ProofClaim {
    /// In words.
    #[serde(rename = "words")]
    pub message: String,
    /// Records a second, if a rate was claimed.
    pub rate: Option<f64>,
    /// Copies.
    pub copies: usize,
    /// Meaning of a copy.
    pub durability: String,
}

/// A part of the claim, and whether it holds.
#[derive(Clone, Debug, Serialize)]
pub struct Tested {
    /// Description of the test.
    pub test: String,
    /// True if it held.
    pub held: bool,
    /// Finding.
    pub found: String,
}

/// Figures of writing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct IngestMetrics {
    /// Records by what became of them.
    pub acknowledged: u64,
    pub indeterminate: u64,
    pub failed: u64,
    /// From the first sending to the last acknowledgement, seconds.
    pub seconds: f64,
    /// Acknowledged records by that time.
    pub records_per_s: f64,
    /// Until every copy has everything, seconds.
    pub seconds_all_copies: Option<f64>,
    /// The slowest whole minute and the 5th percentile of 10-second windows, records a second.
    pub slowest_minute_per_s: Option<f64>,
    pub p5_ten_seconds_per_s: Option<f64>,
    /// Times without an acknowledgement that are longer than a second: begin and length, seconds.
    pub stalls: Vec<(f64, f64)>,
    /// Time that a batch takes, milliseconds.
    pub batch_p50_ms: Option<f64>,
    pub batch_p99_ms: Option<f64>,
    pub batch_max_ms: Option<f64>,
}

impl IngestMetrics {
    /// From ledger and history.
    pub fn of(ledger: &Ledger, history: &BatchHistory, copies: &[Copy]) -> Self {
        use dyno_db::copies::ledger::RecordStatus;
        let (acknowledged, seconds) = (ledger.count(RecordStatus::Acknowledged), history.seconds());
        let slowest = |seconds: u64| {
            let mut all: Vec<f64> =
                history.windows(seconds).iter().map(|n| *n as f64 / seconds as f64).collect();
            all.sort_unstable_by(f64::total_cmp);
            all
        };
        let tens = slowest(10);
        let late: Option<Vec<f64>> = copies.iter().map(|copy| copy.caught_up_s).collect();
        let ms = |percentile| history.batch_s(percentile).map(|s| s * 1e3);
        IngestMetrics {
            acknowledged,
            indeterminate: ledger.count(RecordStatus::Indeterminate),
            failed: ledger.count(RecordStatus::Failed),
            seconds,
            records_per_s: if seconds > 0.0 { acknowledged as f64 / seconds } else { 0.0 },
            seconds_all_copies: late.map(|late| seconds + late.into_iter().fold(0.0, f64::max)),
            slowest_minute_per_s: slowest(60).first().copied(),
            p5_ten_seconds_per_s: tens.get((tens.len() as f64 * 0.05).ceil().max(1.0) as usize - 1).copied(),
            stalls: history.stalls(Duration::from_secs(1)),
            batch_p50_ms: ms(50.0),
            batch_p99_ms: ms(99.0),
            batch_max_ms: ms(100.0),
        }
    }
}

/// A proof as it is written down.
#[derive(Clone, Debug, Serialize)]
pub struct Certificate<E: Serialize> {
    /// Version of the form.
    pub version: u32,
    pub dyno: &'static str,
    /// RFC 3339.
    pub started: String,
    /// The command line, secrets masked.
    pub command: Vec<String>,
    pub target: String,
    pub claim: ProofClaim,
    /// True if everything that was tested held.
    pub met: bool,
    /// True if it was ended before it could show that.
    pub interrupted: bool,
    /// True if what was written could not be read, so that nothing is proven, and nothing refuted.
    #[serde(skip)]
    pub unread: bool,
    pub pre_checks: Vec<PreCheck>,
    pub figures: IngestMetrics,
    pub copies: Vec<Copy>,
    pub tests: Vec<Tested>,
    /// Problems on the way, and how often each occurred.
    pub troubles: std::collections::BTreeMap<String, u64>,
    /// Limits of the proof.
    pub limits: Vec<String>,
    /// Data that belong to this kind of proof.
    #[serde(flatten)]
    pub more: E,
}

impl<E: Serialize> Certificate<E> {
    /// Writes everything into `folder`, which is made; `key` is an ssh key that signs the digests.
    pub fn write(
        &self,
        folder: &Path,
        ledger: &Ledger,
        extra: &[PageBlock],
        key: Option<&Path>,
    ) -> Result<(), Failure> {
        let trouble = |path: &Path, e: std::io::Error| Failure::internal(format!("{}: {e}", path.display()));
        std::fs::create_dir_all(folder).map_err(|e| trouble(folder, e))?;
        let json = serde_json::to_string_pretty(self)?;
        let mut lines = String::new();
        for range in ledger.merged_ranges() {
            lines += &serde_json::to_string(range)?;
            lines.push('\n');
        }
        let mut sums = String::new();
        for (name, text) in [
            ("proof.json", conceal_json(&json).into_owned() + "\n"),
            ("ledger.jsonl", lines),
            ("proof.html", conceal(&self.page(extra)).into_owned()),
        ] {
            let path = folder.join(name);
            files::put_file(&path, text.as_bytes()).map_err(|e| trouble(&path, e))?;
            sums += &format!("{}  {name}\n", hex::encode(Sha256::digest(text.as_bytes())));
        }
        let path = folder.join("SHA256SUMS");
        files::put_file(&path, sums.as_bytes()).map_err(|e| trouble(&path, e))?;
        key.map_or(Ok(()), |key| sign(&path, key))
    }

    /// The verdict: a class of the pages' style, and its word.
    pub fn word(&self) -> (&'static str, &'static str) {
        match (self.interrupted, self.met) {
            (true, _) => ("suspect", "INTERRUPTED: NOTHING IS PROVEN"),
            (false, true) => ("valid", "CLAIM MET"),
            (false, false) if self.unread => {
                ("suspect", "WHAT WAS WRITTEN COULD NOT BE READ: NOTHING IS PROVEN")
            }
            (false, false) => ("invalid", "CLAIM NOT MET"),
        }
    }

    /// Returns the exit code of the command.
    pub fn exit(&self) -> Exit {
        match (self.interrupted, self.met) {
            (true, _) => Exit::Interrupted,
            (false, true) => Exit::Ok,
            (false, false) if self.unread => Exit::Unreachable,
            (false, false) => Exit::Threshold,
        }
    }

    fn page(&self, extra: &[PageBlock]) -> String {
        let (class, word) = self.word();
        let rows = |all: Vec<[String; 3]>| all.into_iter().map(Vec::from).collect::<Vec<_>>();
        let held = |held: bool| if held { "yes" } else { "no" }.to_owned();
        let heads = |names: [&str; 3]| names.map(str::to_owned).to_vec();
        let mut parts = vec![
            PageBlock::Text(self.claim.message.clone()),
            PageBlock::Verdict(class, word.into()),
            PageBlock::Heading("What was tested".into()),
            PageBlock::Table(
                "Tests".into(),
                heads(["test", "held", "found"]),
                rows(self.tests.iter().map(|t| [t.test.clone(), held(t.held), t.found.clone()]).collect()),
                3,
            ),
            PageBlock::Heading("Before anything was written".into()),
            PageBlock::Table(
                "Pre-checks".into(),
                heads(["looked at", "as the claim needs it", "found"]),
                rows(
                    self.pre_checks.iter().map(|c| [c.name.clone(), held(c.held), c.found.clone()]).collect(),
                ),
                3,
            ),
            PageBlock::Heading("On every copy".into()),
            PageBlock::Table(
                "Copies".into(),
                [
                    "copy",
                    "found",
                    "missing",
                    "wrong",
                    "unacknowledged found",
                    "unacknowledged missing",
                    "index entries",
                    "caught up after s",
                ]
                .map(str::to_owned)
                .to_vec(),
                self.copies.iter().map(row).collect(),
                1,
            ),
        ];
        parts.extend(extra.iter().map(again));
        parts.push(PageBlock::Heading("What this does not prove".into()));
        parts.extend(self.limits.iter().cloned().map(PageBlock::Text));
        parts.push(PageBlock::Heading("To do it again".into()));
        parts.push(PageBlock::Verbatim(dyno_types::shell::quoted(&self.command)));
        plain_page(&format!("Proof: {}", self.target), &parts)
    }
}

fn again(part: &PageBlock) -> PageBlock {
    match part {
        PageBlock::Heading(text) => PageBlock::Heading(text.clone()),
        PageBlock::Text(text) => PageBlock::Text(text.clone()),
        PageBlock::Verdict(class, word) => PageBlock::Verdict(class, word.clone()),
        PageBlock::Table(caption, heads, rows, words) => {
            PageBlock::Table(caption.clone(), heads.clone(), rows.clone(), *words)
        }
        PageBlock::Verbatim(text) => PageBlock::Verbatim(text.clone()),
    }
}

fn row(copy: &Copy) -> Vec<String> {
    let role = if copy.primary { "primary" } else { "replica" };
    let entries: Vec<String> = copy.indexed.iter().map(u64::to_string).collect();
    vec![
        format!("{} ({role})", copy.member),
        copy.found.to_string(),
        copy.missing.to_string(),
        copy.wrong.to_string(),
        copy.indeterminate_found.to_string(),
        copy.indeterminate_missing.to_string(),
        if entries.is_empty() { "-".into() } else { entries.join(" ") },
        match (&copy.trouble, copy.caught_up_s) {
            (Some(why), _) => format!("not looked at to the end: {why}"),
            (None, None) => "not".into(),
            (None, Some(seconds)) => format!("{seconds:.3}"),
        },
    ]
}

/// Signs a file with an ssh key: `ssh-keygen -Y verify` checks it.
fn sign(path: &Path, key: &Path) -> Result<(), Failure> {
    let words = ["-Y", "sign", "-n", "dyno-proof", "-f"];
    let told =
        child::clean_command("ssh-keygen").args(words).arg(key).arg(path).stdin(Stdio::null()).output();
    match told {
        Ok(told) if told.status.success() => Ok(()),
        Ok(told) => {
            let message = String::from_utf8_lossy(&told.stderr).trim().to_owned();
            Err(Failure::usage(format!("--sign {}: {message}", key.display())))
        }
        Err(error) => Err(Failure::usage(format!("--sign: ssh-keygen: {error}"))),
    }
}

/// A new folder for a proof.
pub fn folder(asked: Option<&PathBuf>, name: &str) -> Result<PathBuf, Failure> {
    let path = asked.cloned().unwrap_or_else(|| dyno_frontend::run_directory::new_directory(name));
    match path.exists() {
        true => Err(Failure::usage(format!("--out {}: it is there already", path.display()))),
        false => Ok(path),
    }
}

/// The command line without secrets.
pub fn command() -> Vec<String> {
    std::iter::once("dyno".to_owned()).chain(own_command_line().into_iter().skip(1)).collect()
}

/// The digest of this program, hexadecimal; none where it cannot be read.
pub fn program() -> Option<String> {
    dyno_hosts::remote::deploy::file_digest(&std::env::current_exe().ok()?).ok()
}

/// Eight digits that no other run has.
pub(super) fn run_name() -> Result<String, Failure> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|e| Failure::internal(format!("no random numbers: {e}")))?;
    Ok(hex::encode(bytes))
}

/// A share of the time, or a figure, that a reader can check.
pub(super) fn figure(value: f64) -> String {
    dyno_types::units::Thousands(value.round() as u64).to_string()
}
