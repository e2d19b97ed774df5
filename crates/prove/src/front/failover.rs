//! `dyno prove failover`.

use super::certificate::{self, Certificate, IngestMetrics, ProofClaim, Tested, figure, run_name};
use super::ingest_args::{bounded_counts, bounded_record};
use super::rounds::{self, Rounds};
use crate::failover;
use crate::failover::{FailoverPlan, FailoverProof, OutcomeCounts, Round};
use crate::verify::Copy;
use clap::{Args, ValueEnum};
use dyno_config::server::{Election, ServerKind};
use dyno_db::copies::plan::{Durability, IngestPlan};
use dyno_engine::Control;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::{signals, terminal};
use dyno_localhost::temporary::Temporary;
use dyno_types::units::{counted, parse_duration_ns};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Fault of a primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DisruptionArg {
    /// It is killed, right after the others have stood still for a while
    Kill,
    /// It is cut off from the other servers and still reached by the writers (Redis 7, Valkey, mongod; network namespaces)
    Cut,
    /// It is frozen (SIGSTOP), right after the others have stood still for a while, and goes on after the election
    Freeze,
}

/// `dyno prove failover`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Servers are started on this host: a primary with replicas and three sentinels, or a replica set of mongod. Under load the \
primary is killed, cut off or frozen at random moments; after each election it comes back as a replica. In the end every \
record is looked up on the last primary. --copies 1 is the negative control: it must lose records, or the proof could not \
fail. --by cut runs in a network namespace of its own (unshare, ip and nft must be there), in which a primary that is cut off \
goes on serving the writers that have it.")]
pub struct FailoverArgs {
    /// Server that is started: redis, valkey or mongod
    #[arg(default_value = "redis")]
    pub kind: String,
    /// Fault of primaries
    #[arg(long, value_enum, default_value = "kill")]
    pub by: DisruptionArg,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rounds: u32,
    /// Servers beside the primary [default: 1; of mongod 2]
    #[arg(long, value_name = "N")]
    pub replicas: Option<u32>,
    /// Copies that an acknowledgement stands for (of mongod: 1 for w:1, otherwise w:majority)
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub copies: usize,
    /// Time for which the others stand still before a kill or a freeze
    #[arg(long, value_name = "DURATION", default_value = "500ms")]
    pub isolate: String,
    /// Least time that a cut or a freeze goes on after the election
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub heal_after: String,
    /// After how long without a sign a server counts as down [default: 1s; of mongod 2s]
    #[arg(long, value_name = "DURATION")]
    pub down_after: Option<String>,
    /// Least time between two rounds
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

/// Most servers beside the primary: each of them has an address of its own.
const MOST_REPLICAS: u32 = 100;

impl FailoverArgs {
    fn server(&self) -> Result<(ServerKind, Election), Failure> {
        let tried =
            ServerKind::ALL.into_iter().filter_map(|kind| Some((kind, kind.server_rules().election()?)));
        let mut asked = tried.filter(|(kind, _)| kind.to_string() == self.kind);
        asked.next().ok_or_else(|| {
            let known = ServerKind::names_where(|rules| rules.election().is_some());
            Failure::usage(format!("{:?}: expected one of {known}", self.kind))
        })
    }

    /// Servers beside the primary; an error says what cannot be asked for.
    fn replicas(&self, election: Election) -> Result<u32, Failure> {
        let is_set = election == Election::Members;
        let replicas = self.replicas.unwrap_or(if is_set { 2 } else { 1 });
        let refused = |message: String| Err(Failure::usage(message));
        if replicas == 0 || replicas > MOST_REPLICAS {
            return refused(format!("--replicas: expected 1 to {MOST_REPLICAS}"));
        }
        if is_set && !(replicas == 2 || replicas == 4 || replicas == 6) {
            return refused(
                "--replicas: expected 2, 4 or 6: a set elects by the majority of at most 7".into(),
            );
        }
        // A majority has each record; more servers have it only by chance.
        let most = if is_set { replicas as usize / 2 + 1 } else { replicas as usize + 1 };
        if self.copies == 0 || self.copies > most {
            return refused(format!(
                "--copies {}: expected 1 to {most} with {replicas} replicas",
                self.copies
            ));
        }
        Ok(replicas)
    }

    fn plan(&self) -> Result<FailoverPlan, Failure> {
        let span = |option: &str, text: &str| {
            parse_duration_ns(text, 1_000_000_000)
                .map(Duration::from_nanos)
                .map_err(|e| Failure::usage(format!("{option}: {e}")))
        };
        let (kind, election) = self.server()?;
        let replicas = self.replicas(election)?;
        let slow = self.rate.is_nan() || self.rate <= 0.0;
        if self.rounds == 0 || self.batch == 0 || self.threads == 0 || slow {
            return Err(Failure::usage("--rounds, --batch, --threads, --rate: expected more than 0"));
        }
        bounded_counts(self.threads, self.batch)?;
        bounded_record(self.record_bytes as u64, self.batch)?;
        let down_after = match (&self.down_after, election) {
            (Some(text), _) => span("--down-after", text)?,
            (None, Election::Members) => Duration::from_secs(2),
            (None, Election::Sentinels) => Duration::from_secs(1),
        };
        let isolate = span("--isolate", &self.isolate)?;
        if election == Election::Members && isolate >= down_after {
            let message = "--isolate: expected less than --down-after: a member that hears nothing so long \
                is no primary any more";
            return Err(Failure::usage(message));
        }
        Ok(FailoverPlan {
            ingest: IngestPlan {
                workers: self.threads,
                batch: self.batch,
                record_bytes: self.record_bytes,
                indexes: 0,
                copies: self.copies,
                durability: Durability::Memory,
                wait: IngestPlan::ELECTION,
                patience: Duration::from_secs(1),
                duration: None,
                records: None,
                rate: Some(self.rate),
                seed: self.seed,
                run: run_name()?,
                documents: None,
            },
            by: match self.by {
                DisruptionArg::Kill => failover::Disruption::Kill,
                DisruptionArg::Cut => failover::Disruption::Cut,
                DisruptionArg::Freeze => failover::Disruption::Freeze,
            },
            rounds: self.rounds,
            replicas,
            isolate,
            heal_after: span("--heal-after", &self.heal_after)?,
            down_after,
            between: span("--between", &self.between)?,
            kind,
            election,
        })
    }
}

/// Data that belong to this kind of proof alone.
#[derive(Clone, Debug, serde::Serialize)]
struct FailoverDetails {
    server: String,
    by: failover::Disruption,
    rounds: Vec<Round>,
    /// `None`: the last primary could not be looked at to the end.
    #[serde(flatten)]
    outcomes: Option<OutcomeCounts>,
}

/// The same command in a network namespace of its own; it comes back only if that cannot be.
fn again_inside() -> Failure {
    let command = || -> Result<Command, Failure> {
        failover::partition::entrance(&std::env::current_exe()?).map_err(Failure::internal)
    };
    match command() {
        Ok(mut command) => command.args(std::env::args_os().skip(1)).exec().into(),
        Err(failure) => failure,
    }
}

/// The command.
pub fn failover(args: &FailoverArgs) -> Result<Exit, Failure> {
    let plan = args.plan()?;
    let folder = certificate::folder(args.out.as_ref(), "proof-failover")?;
    if plan.by == failover::Disruption::Cut && !failover::partition::inside().map_err(Failure::internal)? {
        return Err(again_inside());
    }
    let work_dir = Temporary::for_proof().map_err(Failure::internal)?;
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let started = dyno_frontend::run_directory::now();
    let target = target(&plan);
    if !args.quiet {
        terminal::note(&format!("starting {target}"));
    }
    let mut on_round = |round: &Round| {
        if !args.quiet {
            terminal::note(&rounds::line(round));
        }
    };
    let proof = failover::failover(&plan, work_dir.data_folder(), &control, &mut on_round);
    let proof = proof.map_err(|error| match signals::interrupted() {
        true => Failure::Interrupted,
        false => Failure::unreachable(error),
    })?;
    let figures = IngestMetrics::of(proof.ledger(), &proof.written.history, &proof.copies);
    let tests = tests(args, &proof, &figures);
    let certificate = Certificate {
        version: 2,
        dyno: env!("CARGO_PKG_VERSION"),
        started,
        command: certificate::command(),
        target,
        claim: claim(&plan),
        met: tests.iter().all(|test| test.held) && !signals::interrupted(),
        interrupted: signals::interrupted(),
        // The last primary is the judge.
        unread: proof.copies.iter().filter(|copy| copy.primary).all(Copy::is_unread),
        pre_checks: Vec::new(),
        figures,
        copies: proof.copies.clone(),
        tests,
        troubles: proof.written.troubles.clone(),
        limits: limits(&plan),
        more: FailoverDetails {
            server: proof.version.clone(),
            by: plan.by,
            rounds: proof.rounds.clone(),
            outcomes: proof.outcomes(),
        },
    };
    let rounds = Rounds { rounds: &proof.rounds, outcomes: proof.outcomes() };
    certificate.write(&folder, proof.ledger(), &rounds.parts(), args.sign.as_deref())?;
    let mut out = format!("{}\n{}\n\n", certificate.word().1, certificate.claim.message);
    for test in &certificate.tests {
        out += &format!("  {} {}: {}\n", if test.held { "+" } else { "-" }, test.test, test.found);
    }
    terminal::out(&format!("{out}\n{}\nproof: {}\n", rounds.describe(), folder.display()));
    Ok(certificate.exit())
}

fn target(plan: &FailoverPlan) -> String {
    match plan.election {
        Election::Members => format!("a replica set of {} {}", plan.replicas + 1, plan.kind),
        Election::Sentinels => {
            format!("{} with {} and three sentinels", plan.kind, counted(plan.replicas as usize, "replica"))
        }
    }
}

fn claim(plan: &FailoverPlan) -> ProofClaim {
    let done = match plan.by {
        failover::Disruption::Kill => "killed",
        failover::Disruption::Cut => "cut off from the other servers",
        failover::Disruption::Freeze => "frozen",
    };
    let copies = match (plan.election, plan.ingest.copies) {
        (Election::Members, 1) => "one member has (w:1)".to_owned(),
        (Election::Members, _) => "a majority has (w:majority)".to_owned(),
        (Election::Sentinels, 1) => "one copy has".to_owned(),
        (Election::Sentinels, copies) => format!("{copies} copies have"),
    };
    let message = format!(
        "No record that {copies} acknowledged is lost when the primary is {done} {} under load.",
        counted(plan.rounds as usize, "time")
    );
    let durability = match plan.election {
        Election::Members => "as the set's default says",
        Election::Sentinels => "in memory",
    };
    ProofClaim { message, rate: None, copies: plan.ingest.copies, durability: durability.into() }
}

fn limits(plan: &FailoverPlan) -> Vec<String> {
    let mut all = vec![match plan.by {
        failover::Disruption::Kill => "All servers run on one host, and are killed, not cut off.".to_owned(),
        failover::Disruption::Freeze => {
            "All servers run on one host; the frozen one keeps its connections and its memory, as a host that swaps or a virtual \
             machine that is moved does."
                .to_owned()
        }
        failover::Disruption::Cut => {
            "All servers run on one host, whose kernel drops what is cut: delays, losses in one direction and \
             partitions that come and go are not among it."
                .to_owned()
        }
    }];
    all.push(match plan.election {
        Election::Members if plan.by == failover::Disruption::Cut => {
            "A primary that is cut off goes on for `--down-after` and then steps down by itself; what it has acknowledged \
             meanwhile with w:1 is undone when it comes back."
        }
        Election::Members => "Members ask for the oplog instead of having it streamed: what stands still has nothing more.",
        Election::Sentinels => {
            "Sentinels elect the replica that has the most; with several replicas, fewer copies than all may be lost."
        },
    }.to_owned());
    all
}

fn tests(args: &FailoverArgs, proof: &FailoverProof, figures: &IngestMetrics) -> Vec<Tested> {
    let test = |test: &str, held: bool, found: String| Tested { test: test.into(), held, found };
    let outcomes = proof.outcomes();
    let mut all = vec![
        test(
            "no acknowledged record is lost, or there with other content",
            outcomes.is_some_and(|outcomes| outcomes.lost == 0 && outcomes.wrong == 0),
            match outcomes {
                Some(outcomes) => format!(
                    "{} lost of {}, {} wrong",
                    figure(outcomes.lost as f64),
                    figure(proof.acknowledged() as f64),
                    figure(outcomes.wrong as f64)
                ),
                None => "the last primary could not be looked at to the end".into(),
            },
        ),
        test(
            "no record that was refused is there",
            outcomes.is_some_and(|outcomes| outcomes.refused_found == 0),
            outcomes.map_or("not known".into(), |outcomes| format!("{} there", outcomes.refused_found)),
        ),
        test(
            "every primary that was taken away was replaced, and followed the new one",
            proof.rounds.len() == args.rounds as usize,
            format!("{} of {}", proof.rounds.len(), args.rounds),
        ),
        test(
            "records were acknowledged after the last time",
            proof.rounds.last().is_some_and(|last| figures.seconds > last.at_s + last.settled_s),
            format!("the last one {:.1} s after the beginning", figures.seconds),
        ),
    ];
    if let Some(more) = outcomes.and_then(|outcomes| outcomes.duplicated) {
        all.push(test(
            "no record is there more than once",
            more == 0,
            format!("{more} more than there should be"),
        ));
    }
    all
}
