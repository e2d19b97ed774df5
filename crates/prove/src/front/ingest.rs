//! `dyno prove ingest`.

use super::certificate::{self, Certificate, IngestMetrics, ProofClaim, Tested, figure, run_name};
use super::ingest_args::IngestArgs;
use super::left::{UnderWay, database};
use crate::drive::ingest as write;
use crate::evidence::{Lag, clocks};
use crate::verify::{Copy, verify};
use dyno_db::copies::database::{PreCheck, ReplicatedStore};
use dyno_db::copies::plan::{Durability, IngestPlan};
use dyno_db::copies::sent::Sent;
use dyno_engine::Control;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::{signals, terminal};
use dyno_report::html::plain::PageBlock;
use dyno_types::units::counted;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Fewest records that prove a rate.
const LEAST_RECORDS: u64 = 1_000;

/// The command, for servers with copies.
pub fn prove(args: &IngestArgs, uri: &str) -> Result<Exit, Failure> {
    let database = database(uri)?.ok_or_else(|| {
        args.refuse("expected redis://, mongodb:// or an embedded store such as sqlite:FILE")
    })?;
    let config = args.poc_config()?;
    let ((mut plan, claimed), least) = (args.plan(run_name()?, 2, config.as_ref())?, args.least()?);
    let folder = certificate::folder(args.out.as_ref(), "proof-ingest")?;
    let database: Arc<dyn ReplicatedStore> = database.into();
    let mut pre_checks = database.pre_checks(plan.copies, plan.durability)?;
    let existing = database.existing(&plan)?;
    let found = format!("{existing} records or indexes");
    pre_checks.push(PreCheck { name: "nothing is there yet".into(), held: existing == 0, found });
    if existing > 0 {
        let message = format!(
            "{existing} records or indexes are there under the names of this run: nothing can be counted"
        );
        return Err(Failure::usage(message));
    }
    if let Some(broken) = pre_checks.iter().find(|check| !check.held) {
        let message = format!(
            "{}: {}: there cannot be {} copies; --copies 1 proves a single one",
            broken.name, broken.found, plan.copies
        );
        return Err(Failure::usage(message));
    }
    let replicas = database.replicas()?;
    if replicas.is_empty() {
        plan.wait = IngestPlan::ALONE;
    }
    let primary = database.primary()?;
    let members = [&[primary], &replicas[..]].concat();
    pre_checks.extend(clocks(database.as_ref(), &members));
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let started = dyno_frontend::run_directory::now();
    let under_way = UnderWay::begin(&folder, uri, &plan)?;
    database.prepare(&plan)?;
    let (mut lag, mut told) = (Lag::default(), progress(args.quiet, Some(plan.wait)));
    let mut each_second = |seconds: f64, done: u64| {
        told(seconds, done);
        if !replicas.is_empty() {
            lag.ask(database.as_ref(), seconds);
        }
    };
    let written = write(database.clone(), &plan, &control, &mut each_second)?;
    // Sizes that the database does not tell are left out.
    let storage = database.storage(&plan).unwrap_or_default();
    let durability = database.acknowledges(&plan);
    let copies = verify(database.as_ref(), &members, &plan, &written.ledger, plan.patience);
    let figures = IngestMetrics::of(&written.ledger, &written.history, &copies);
    let tests = tests(&plan, (claimed, least), &figures, &copies);
    let limits = limits(durability.0, least, &figures);
    let certificate = Certificate {
        version: 1,
        dyno: env!("CARGO_PKG_VERSION"),
        started,
        command: certificate::command(),
        target: dyno_types::secret::mask_text(&args.target),
        claim: claim(args, &plan, claimed, &durability.1),
        met: tests.iter().all(|test| test.held) && !signals::interrupted(),
        interrupted: signals::interrupted(),
        unread: copies.iter().all(Copy::is_unread),
        pre_checks,
        figures,
        copies,
        tests,
        troubles: written.troubles.clone(),
        limits,
        more: IngestDetails {
            sent: Some(written.sent),
            lag: Some(lag).filter(|lag| !lag.members.is_empty()),
            storage,
            pocdriver: config.as_ref().map(|config| (args.size.pocdriver().to_owned(), config.now_ms)),
            ..IngestDetails::of(&plan)
        },
    };
    // The evidence first; but what goes wrong with it leaves no records behind either.
    let kept = certificate.write(&folder, &written.ledger, &certificate.more.parts(), args.sign.as_deref());
    if !args.keep {
        match database.remove(&plan.record_recipe(), Some(&written.ledger)) {
            Ok(()) => under_way.removed(),
            Err(why) => terminal::warn(&format!(
                "the proof's records could not be removed: {why}; dyno stop {} tries again",
                folder.display()
            )),
        }
    }
    kept?;
    terminal::out(&render_certificate(&certificate, &folder));
    Ok(certificate.exit())
}

/// Tells of each second; `waits`: how long a server that is gone is waited for.
pub(super) fn progress(quiet: bool, waits: Option<Duration>) -> impl FnMut(f64, u64) + Send {
    let (mut before, mut waiting) = (0, false);
    move |seconds, done| {
        let stopped = before > 0 && done == before;
        if !quiet {
            let (all, now) = (figure(done as f64), figure((done - before) as f64));
            terminal::note(&format!("{seconds:>6.0} s  {all:>12} records, {now:>9}/s"));
            if let Some(most) = waits.filter(|_| stopped && !waiting) {
                let most = most.as_secs();
                terminal::note(&format!(
                    "nothing is acknowledged; a server that is gone is waited for, up to {most} s"
                ));
            }
        }
        (before, waiting) = (done, stopped);
    }
}

/// Data that belong to this kind of proof alone.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct IngestDetails {
    record_bytes: usize,
    indexes: usize,
    batch: u64,
    threads: u32,
    seed: u64,
    /// POCDriver's flags for its documents, and "now" of their dates, ms since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pocdriver: Option<(String, i64)>,
    /// Part of all names that were written.
    run: String,
    /// SHA-256 of the program that has made the proof.
    program_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<Sent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lag: Option<Lag>,
    /// Sizes that the primary reports of its data.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    storage: BTreeMap<String, f64>,
}

impl IngestDetails {
    /// Tables for the page: what was sent, how far copies were behind, and what the database says of it.
    fn parts(&self) -> Vec<PageBlock> {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
        if let Some(sent) = self.sent.filter(|sent| sent.records > 0) {
            row("records sent, acknowledged or not", figure(sent.records as f64));
            let mean = sent.record_bytes as f64 / sent.records as f64;
            let message = format!("{mean:.1} on average, {} to {}", sent.least_bytes, sent.most_bytes);
            row("bytes of a record as it was sent", message);
            row("bytes of all commands, with names, indexes and protocol", figure(sent.wire_bytes as f64));
        }
        for (name, value) in &self.storage {
            row(&format!("the primary says: {name}"), figure(*value));
        }
        if let Some(lag) = &self.lag {
            for (member, most) in lag.greatest() {
                row(&format!("{member} was behind by at most"), format!("{} {}", figure(most), lag.unit));
            }
        }
        if let Some(digest) = &self.program_sha256 {
            row("SHA-256 of the program", digest.clone());
        }
        let heads = ["what", "found"].map(str::to_owned).to_vec();
        vec![
            PageBlock::Heading("What was sent".into()),
            PageBlock::Table("Sizes and copies".into(), heads, rows, 2),
        ]
    }

    pub(super) fn of(plan: &IngestPlan) -> Self {
        IngestDetails {
            record_bytes: plan.record_bytes,
            indexes: plan.indexes,
            batch: plan.batch,
            threads: plan.workers,
            seed: plan.seed,
            pocdriver: None,
            run: plan.run.clone(),
            program_sha256: certificate::program(),
            sent: None,
            lag: None,
            storage: BTreeMap::new(),
        }
    }
}

fn claim(args: &IngestArgs, plan: &IngestPlan, rate: f64, durability: &str) -> ProofClaim {
    let records = match &plan.documents {
        Some(_) => format!(
            "documents of POCDriver ({}; {} bytes on average)",
            args.size.pocdriver(),
            plan.record_bytes
        ),
        None => format!("records of {} bytes", plan.record_bytes),
    };
    ProofClaim {
        message: format!(
            "{} {records} a second with {} secondary indexes, each acknowledged by {}, {}.",
            figure(rate),
            plan.indexes,
            if plan.copies == 1 { "one copy".to_owned() } else { format!("{} copies", plan.copies) },
            durability
        ),
        rate: Some(rate),
        copies: plan.copies,
        durability: durability.to_owned(),
    }
}

/// The claims that every proof of a rate has.
pub(super) fn tests(
    plan: &IngestPlan,
    (claimed, least): (f64, Duration),
    figures: &IngestMetrics,
    copies: &[Copy],
) -> Vec<Tested> {
    let test = |test: &str, held: bool, found: String| Tested { test: test.into(), held, found };
    let whole = copies.iter().filter(|copy| copy.is_whole()).count();
    // A member that cannot be looked at is no copy: the claim is judged by the others.
    let (seen, away): (Vec<_>, Vec<_>) = copies.iter().partition(|copy| copy.trouble.is_none());
    let alike = !seen.is_empty() && seen.windows(2).all(|pair| pair[0].digest == pair[1].digest);
    let away: String = away
        .iter()
        .map(|copy| format!("; {} is no copy: {}", copy.member, copy.trouble.as_deref().unwrap_or_default()))
        .collect();
    let long =
        figures.seconds >= least.as_secs_f64() && (least.is_zero() || figures.acknowledged >= LEAST_RECORDS);
    vec![
        test(
            "the claimed rate, from the first sending to the last acknowledgement",
            figures.records_per_s >= claimed,
            format!(
                "{} records/s over {:.1} s, {} claimed",
                figure(figures.records_per_s),
                figures.seconds,
                figure(claimed)
            ),
        ),
        test(
            "every acknowledged record is on as many copies as claimed, byte by byte, and every index has as many entries",
            whole >= plan.copies,
            format!("{whole} whole copies of {}{away}", copies.len()),
        ),
        test("all copies are alike", alike, format!("{} digests compared", seen.len())),
        test(
            "long enough for a rate",
            long,
            format!(
                "{} records in {:.1} s, {} s and {} records are the least",
                figure(figures.acknowledged as f64),
                figures.seconds,
                least.as_secs_f64(),
                if least.is_zero() { 0 } else { LEAST_RECORDS }
            ),
        ),
        test(
            "as many records as asked for",
            plan.records
                .is_none_or(|all| figures.acknowledged + figures.indeterminate + figures.failed == all),
            format!(
                "{} sent",
                figure((figures.acknowledged + figures.indeterminate + figures.failed) as f64)
            ),
        ),
        test(
            "every record's fate is known",
            figures.indeterminate == 0 && figures.failed == 0,
            format!("{} indeterminate, {} refused", figures.indeterminate, figures.failed),
        ),
    ]
}

fn limits(durability: Durability, least: Duration, figures: &IngestMetrics) -> Vec<String> {
    let mut all = vec![
        "It does not prove what happens when a machine fails: dyno prove failover does.".to_owned(),
        "Copies on one host are lost with it; the pre-checks say how many hosts there are.".to_owned(),
        format!(
            "The rate is proven for the {:.1} s that it was written, not for longer; {} s were the least that was asked for.",
            figures.seconds,
            least.as_secs_f64()
        ),
    ];
    if durability == Durability::Memory {
        all.push("A copy is in memory: all of them are lost if all machines lose power at once.".to_owned());
    }
    all
}

pub(super) fn render_certificate<E: serde::Serialize>(
    certificate: &Certificate<E>,
    folder: &std::path::Path,
) -> String {
    let mut out = format!("{}\n{}\n\n", certificate.word().1, certificate.claim.message);
    for test in &certificate.tests {
        out += &format!("  {} {}: {}\n", if test.held { "+" } else { "-" }, test.test, test.found);
    }
    let figures = &certificate.figures;
    let known = |value: Option<f64>| value.map_or("-".to_owned(), figure);
    // Of fewer than twenty windows the least is taken.
    let windows =
        if figures.seconds < 200.0 { "slowest 10 s at" } else { "5 % of the windows of 10 s below" };
    out += &format!(
        "\nslowest minute {}/s, {windows} {}/s, {} over a second\n",
        known(figures.slowest_minute_per_s),
        known(figures.p5_ten_seconds_per_s),
        counted(figures.stalls.len(), "stall")
    );
    let ms = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
    out += &format!(
        "a batch takes {} (p50), {} (p99), {} at most\n\nproof: {}\n",
        ms(figures.batch_p50_ms),
        ms(figures.batch_p99_ms),
        ms(figures.batch_max_ms),
        folder.display()
    );
    out
}
