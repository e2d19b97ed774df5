//! `dyno prove ingest` of an embedded store.

use super::certificate::{self, Certificate, IngestMetrics, ProofClaim, Tested, figure, run_name};
use super::ingest::{IngestDetails, progress, render_certificate, tests};
use super::ingest_args::IngestArgs;
use crate::embedded::embedded;
use crate::embedded::{EmbeddedError, EmbeddedProof, Kill, write_embedded};
use dyno_db::copies::database::PreCheck;
use dyno_db::copies::plan::IngestPlan;
use dyno_engine::Control;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::{signals, terminal};
use dyno_report::html::plain::PageBlock;
use dyno_types::units::counted;
use std::sync::Arc;
use std::time::Duration;

/// `dyno prove writer`.
pub fn writer() -> Result<Exit, Failure> {
    write_embedded(&mut std::io::stdin().lock(), Box::new(std::io::stdout())).map_err(Failure::internal)?;
    Ok(Exit::Ok)
}

/// Data that belong to this kind of proof alone.
#[derive(Clone, Debug, serde::Serialize)]
struct EmbeddedDetails {
    #[serde(flatten)]
    ingest: IngestDetails,
    engine: String,
    kills: Vec<Kill>,
}

/// The command, for a store.
pub fn prove(args: &IngestArgs, uri: &str) -> Result<Exit, Failure> {
    let (plan, claimed) = args.plan(run_name()?, 1, args.poc_config()?.as_ref())?;
    if plan.copies > 1 {
        return Err(Failure::usage(format!("--copies {}: an embedded store has one copy", plan.copies)));
    }
    if args.durable {
        let message =
            "--durable: an embedded store's options say what its commits sync (dyno doctor lists them)";
        return Err(Failure::usage(message));
    }
    let folder = certificate::folder(args.out.as_ref(), "proof-ingest")?;
    let program = std::env::current_exe()?;
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let started = dyno_frontend::run_directory::now();
    let proof = embedded(uri, &program, &plan, args.kills, &control, &mut progress(args.quiet, None));
    let proof = proof.map_err(|error| match error {
        EmbeddedError::Refused(refused) => refused.into(),
        other => Failure::internal(other),
    })?;
    let copies = vec![proof.copy.clone()];
    let figures = IngestMetrics::of(&proof.written.ledger, &proof.written.history, &copies);
    let tests = all_tests(args, &plan, (claimed, args.least()?), &figures, &proof);
    let interrupted = signals::interrupted();
    let certificate = Certificate {
        version: 1,
        dyno: env!("CARGO_PKG_VERSION"),
        started,
        command: certificate::command(),
        target: uri.to_owned(),
        claim: claim(args, &plan, claimed),
        met: tests.iter().all(|test| test.held) && !interrupted,
        interrupted,
        unread: false,
        pre_checks: vec![
            PreCheck { name: "engine".into(), held: true, found: proof.engine.clone() },
            PreCheck { name: "durability".into(), held: true, found: proof.durability.clone() },
        ],
        figures,
        copies,
        tests,
        troubles: proof.written.troubles.clone(),
        limits: limits(),
        more: EmbeddedDetails {
            ingest: IngestDetails::of(&plan),
            engine: proof.engine.clone(),
            kills: proof.kills.clone(),
        },
    };
    certificate.write(&folder, &proof.written.ledger, &[kills(&proof)], args.sign.as_deref())?;
    if !args.keep {
        terminal::note(&format!("the records stay in {uri}: remove the file or folder yourself"));
    }
    terminal::out(&render_certificate(&certificate, &folder));
    Ok(certificate.exit())
}

fn claim(args: &IngestArgs, plan: &IngestPlan, rate: f64) -> ProofClaim {
    ProofClaim {
        message: format!(
            "{} records of {} bytes a second with {} secondary indexes, none lost when the process that writes \
             is killed {}.",
            figure(rate),
            plan.record_bytes,
            plan.indexes,
            counted(args.kills as usize, "time")
        ),
        rate: Some(rate),
        copies: 1,
        durability: "as the store's options say".into(),
    }
}

/// Records that are under way at a kill have no known fate: here that is no failure, as long as they are whole or not there.
fn all_tests(
    args: &IngestArgs,
    plan: &IngestPlan,
    claimed: (f64, Duration),
    figures: &IngestMetrics,
    proof: &EmbeddedProof,
) -> Vec<Tested> {
    let mut all = tests(plan, claimed, figures, std::slice::from_ref(&proof.copy));
    all.retain(|test| !test.test.starts_with("all copies") && !test.test.starts_with("every record's fate"));
    all.push(Tested {
        test: "the process was killed as often as asked for, and the store opened again".into(),
        held: proof.kills.len() == args.kills as usize,
        found: format!("{} of {} kills", proof.kills.len(), args.kills),
    });
    let under_way = proof.kills.iter().map(|kill| kill.under_way).sum::<u64>() + proof.at_end;
    all.push(Tested {
        test: "only what was under way at a kill has no known fate".into(),
        held: figures.indeterminate == under_way,
        found: format!(
            "{} indeterminate, {} under way at kills and at the end, {} of them there",
            figures.indeterminate, under_way, proof.copy.indeterminate_found
        ),
    });
    all
}

fn limits() -> Vec<String> {
    vec![
        "A killed process leaves the operating system's cache behind: what a loss of power takes is not proven by it.".into(),
        "There is one copy: it is lost with its disk.".into(),
    ]
}

fn kills(proof: &EmbeddedProof) -> PageBlock {
    let heads = ["killed at s", "records under way", "back after s"].map(str::to_owned).to_vec();
    let row = |kill: &Kill| {
        let back = kill.back_s.map_or("-".to_owned(), |seconds| format!("{seconds:.3}"));
        vec![format!("{:.2}", kill.at_s), kill.under_way.to_string(), back]
    };
    PageBlock::Table("Kills".into(), heads, proof.kills.iter().map(row).collect(), 0)
}
