//! `dyno prove failover`.

use super::paper::{self, Claim, Figures, Paper, Tested};
use super::{figure, run_name};
use crate::exit::{Exit, Failure};
use crate::{signals, terminal};
use clap::Args;
use dyno_engine::Control;
use dyno_plan::server::ServerKind;
use dyno_report::html::Part;
use dyno_rig::prove::{Durability, FailoverPlan, FailoverProof, IngestPlan, Round, failover as prove};
use dyno_types::units::parse_duration_ns;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// `dyno prove failover`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A primary with replicas and three sentinels is started on this host. Under load the primary is killed at random moments, right \
after its replicas have stood still for a while; after each election it comes back as a replica. In the end every record is \
looked up on the last primary. --copies 1 is the negative control: it must lose records, or the proof could not fail.")]
pub struct FailoverArgs {
    /// What is started: redis or valkey
    #[arg(default_value = "redis")]
    pub kind: String,
    /// Kills
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rounds: u32,
    /// Replicas of the primary
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub replicas: u32,
    /// Copies that an acknowledgement stands for
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub copies: usize,
    /// How long replicas stand still before a kill
    #[arg(long, value_name = "DURATION", default_value = "500ms")]
    pub isolate: String,
    /// After how long without a sign sentinels call a server down
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub down_after: String,
    /// Least time between two kills
    #[arg(long, value_name = "DURATION", default_value = "3s")]
    pub between: String,
    /// Connections, each with a thread
    #[arg(short, long, value_name = "N", default_value_t = 4)]
    pub threads: u32,
    /// Records that go out together
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub batch: u64,
    /// Bytes of a record
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub record_bytes: usize,
    /// Records a second, at most
    #[arg(long, value_name = "RATE", default_value_t = 2_000.0)]
    pub rate: f64,
    /// Seed of moments and contents
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
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

impl FailoverArgs {
    fn plan(&self) -> Result<FailoverPlan, Failure> {
        let span = |option: &str, text: &str| {
            parse_duration_ns(text, 1_000_000_000)
                .map(Duration::from_nanos)
                .map_err(|e| Failure::Usage(format!("{option}: {e}")))
        };
        let kind = match self.kind.as_str() {
            "redis" => ServerKind::Redis,
            "valkey" => ServerKind::Valkey,
            other => return Err(Failure::Usage(format!("{other:?}: expected redis or valkey"))),
        };
        if self.copies == 0 || self.copies > self.replicas as usize + 1 {
            let words = format!(
                "--copies {}: expected 1 to {} with {} replicas",
                self.copies,
                self.replicas + 1,
                self.replicas
            );
            return Err(Failure::Usage(words));
        }
        if self.rounds == 0
            || self.replicas == 0
            || self.batch == 0
            || self.threads == 0
            || self.rate.is_nan()
            || self.rate <= 0.0
        {
            return Err(Failure::Usage(
                "--rounds, --replicas, --batch, --threads, --rate: expected more than 0".into(),
            ));
        }
        Ok(FailoverPlan {
            ingest: IngestPlan {
                workers: self.threads,
                batch: self.batch,
                record_bytes: self.record_bytes,
                indexes: 0,
                copies: self.copies,
                durability: Durability::Memory,
                patience: Duration::from_secs(1),
                duration: None,
                records: None,
                rate: Some(self.rate),
                seed: self.seed,
                run: run_name()?,
            },
            rounds: self.rounds,
            replicas: self.replicas,
            isolate: span("--isolate", &self.isolate)?,
            down_after: span("--down-after", &self.down_after)?,
            between: span("--between", &self.between)?,
            kind,
        })
    }
}

/// What belongs to this kind of proof alone.
#[derive(Clone, Debug, serde::Serialize)]
struct More {
    server: String,
    rounds: Vec<Round>,
    lost: u64,
}

/// The command.
pub fn failover(args: &FailoverArgs) -> Result<Exit, Failure> {
    let plan = args.plan()?;
    let folder = paper::folder(args.out.as_ref(), "proof-failover")?;
    let home = tempfile::Builder::new().prefix("dyno-proof-").tempdir()?;
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let started = crate::run::now();
    if !args.quiet {
        terminal::note("starting a primary, its replicas and three sentinels");
    }
    let mut on_round = |round: &Round| {
        if !args.quiet {
            terminal::note(&format!(
                "{:>6.1} s  {} killed, {} promoted after {:.2} s",
                round.at_s, round.killed, round.promoted, round.elected_s
            ));
        }
    };
    let proof = prove(&plan, home.path(), &control, &mut on_round).map_err(Failure::Unreachable)?;
    let figures = Figures::of(proof.ledger(), &proof.written.course, &proof.copies);
    let tests = tests(args, &proof, &figures);
    let words = format!(
        "No record that {} copies have acknowledged is lost when the primary is killed {} times under load.",
        args.copies, args.rounds
    );
    let paper = Paper {
        version: 1,
        dyno: env!("CARGO_PKG_VERSION"),
        started,
        command: paper::command(),
        target: format!("{} with {} replicas and three sentinels", args.kind, args.replicas),
        claim: Claim { words, rate: None, copies: args.copies, durability: "in memory" },
        met: tests.iter().all(|test| test.held) && !signals::interrupted(),
        interrupted: signals::interrupted(),
        pre_checks: Vec::new(),
        figures,
        copies: proof.copies.clone(),
        tests,
        troubles: proof.written.troubles.clone(),
        limits: vec![
            "All servers run on one host, and are killed, not cut off.".into(),
            "Sentinels elect the replica that has the most; with several replicas, fewer copies than all may be lost.".into(),
        ],
        more: More { server: proof.version.clone(), rounds: proof.rounds.clone(), lost: proof.lost() },
    };
    paper.write(&folder, proof.ledger(), &extra(&proof), args.sign.as_deref())?;
    let mut out = format!("{}\n{}\n\n", paper.word().1, paper.claim.words);
    for test in &paper.tests {
        out += &format!("  {} {}: {}\n", if test.held { "+" } else { "-" }, test.test, test.found);
    }
    let primary = proof.copies.iter().find(|copy| copy.primary);
    out += &format!(
        "\n{} records without an acknowledgement, of which {} are there; longest time without any {:.2} s\n",
        figure(paper.figures.indeterminate as f64),
        figure(primary.map_or(0, |copy| copy.indeterminate_found) as f64),
        proof.rounds.iter().map(|round| round.without_acks_s).fold(0.0, f64::max)
    );
    terminal::out(&format!("{out}\nproof: {}\n", folder.display()));
    Ok(paper.exit())
}

fn tests(args: &FailoverArgs, proof: &FailoverProof, figures: &Figures) -> Vec<Tested> {
    let test = |test: &str, held: bool, found: String| Tested { test: test.into(), held, found };
    vec![
        test(
            "no acknowledged record is lost",
            proof.lost() == 0,
            format!("{} lost of {}", figure(proof.lost() as f64), figure(proof.acknowledged() as f64)),
        ),
        test(
            "every primary that was killed was replaced",
            proof.rounds.len() == args.rounds as usize,
            format!("{} of {}", proof.rounds.len(), args.rounds),
        ),
        test(
            "records were acknowledged after the last kill",
            proof.rounds.last().is_some_and(|last| figures.seconds > last.at_s + last.elected_s),
            format!("the last one {:.1} s after the beginning", figures.seconds),
        ),
    ]
}

fn extra(proof: &FailoverProof) -> Vec<Part> {
    let heads = ["killed after s", "killed", "promoted", "elected after s", "without acknowledgements s"];
    let row = |round: &Round| {
        vec![
            format!("{:.1}", round.at_s),
            round.killed.clone(),
            round.promoted.clone(),
            format!("{:.2}", round.elected_s),
            format!("{:.2}", round.without_acks_s),
        ]
    };
    vec![
        Part::Heading("Kills".into()),
        Part::Table(
            "Rounds".into(),
            heads.map(str::to_owned).to_vec(),
            proof.rounds.iter().map(row).collect(),
            0,
        ),
    ]
}
