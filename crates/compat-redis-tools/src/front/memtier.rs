//! `dyno memtier FLAGS`: takes memtier_benchmark's command line and prints what it prints.

use super::ToolArgs;
use super::load::{AppliedLoad, Load, say};
use super::statsd::StatsdReceiver;
use crate::memtier::{
    MemtierRun, Parsed, RequestSecond, RequestTotals, RunSecond, Settings, Staircase, TableRow, Verified,
    client_files, hdr_files, help, json, load, parse, progress, records, report, rows, verification,
    verification_report,
};
use dyno_config::settings::DRAWN;
use dyno_engine::{Control, Job, LateUsers};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::run_directory::check_new;
use dyno_frontend::{signals, terminal};
use dyno_record::{Buckets, Totals};
use dyno_rundir::files;
use dyno_rundir::schema::{Phase, Setting};
use dyno_session::session::{Observer, PhaseProgress};
use dyno_types::Outcome;
use dyno_types::command::Traffic;
use dyno_types::rng::fresh_seed;
use dyno_types::secret::{conceal, conceal_json};
use dyno_workload::commands::{CommandRun, Commands, ImportedRecord};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The command.
pub fn memtier(args: &ToolArgs) -> Result<Exit, Failure> {
    let settings = match parse(&args.words).map_err(Failure::usage)? {
        Parsed::Help => {
            terminal::out(&help());
            return Ok(Exit::Ok);
        }
        Parsed::Version => {
            terminal::line(&format!("dyno memtier {}", env!("CARGO_PKG_VERSION")));
            return Ok(Exit::Ok);
        }
        Parsed::Run(settings) => *settings,
    };
    settings.notes.iter().for_each(|note| terminal::warn(note));
    let compat = settings.has("compat-exit");
    match carry_out(&settings)? {
        Exit::Invalid if compat => Ok(Exit::Ok),
        exit => Ok(exit),
    }
}

/// A number of dyno's own flags.
fn number<T: std::str::FromStr>(settings: &Settings, name: &str) -> Result<Option<T>, Failure> {
    let read = |text: &str| {
        text.parse()
            .map_err(|_| Failure::usage(format!("--{name} {text}: expected a whole number from 0 on")))
    };
    settings.value(name).map(read).transpose()
}

fn carry_out(settings: &Settings) -> Result<Exit, Failure> {
    let out = settings.value("run-directory").map(PathBuf::from);
    check_new(out.as_ref())?;
    // Whatever cannot be written is said before the load.
    let written = ["out-file", "json-out-file"].map(|name| settings.value(name).map(Path::new));
    let first = settings.value("hdr-file-prefix").map(|prefix| format!("{prefix}_FULL_RUN_1.txt"));
    let client = settings.value("client-stats").map(|prefix| format!("{prefix}-1-0-0.csv"));
    for path in written.into_iter().flatten().chain([&first, &client].into_iter().flatten().map(Path::new)) {
        files::create_file(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    }
    let seed: Option<u64> = number(settings, "seed")?;
    let drawn = seed.is_none() && settings.has("randomize");
    let seed = seed.unwrap_or_else(|| if drawn { fresh_seed() } else { 1 });
    if drawn {
        terminal::note(&format!("seed {seed} was drawn: --seed {seed} repeats this run"));
    }
    if settings.has("show-config") {
        let lines = settings.listed().into_iter().map(|(name, value)| format!("{name} = {value}\n"));
        terminal::out(&lines.collect::<String>());
    }
    if let (Some("allkeys"), Some(requests)) = (settings.value("requests"), settings.requests) {
        terminal::line(&format!("setting requests to {requests}"));
    }
    let records = records_of(settings)?;
    let commands = load(settings, seed, &records);
    let control = Arc::new(Control::default());
    signals::listen(&control).map_err(Failure::from)?;
    let (mut runs, mut worst) = (Vec::new(), Exit::Ok);
    let mut failure = None;
    let verify_only = settings.import.as_ref().is_some_and(|import| import.verify_only);
    for number in 1..=if verify_only { 0 } else { settings.runs } {
        let last = number == settings.runs;
        let kept = out.clone().filter(|_| last);
        match one(settings, &commands, (number, drawn), kept, &control) {
            Ok((run, exit, clients)) => {
                // What cannot be written takes nothing from the report.
                failure = write_beside(settings, number, &run, clients).err();
                runs.push(run);
                worst = if worst == Exit::Ok { exit } else { worst };
            }
            // What there is is printed before it is said what there is not.
            Err(error) if !runs.is_empty() => failure = Some(error),
            Err(error) => return Err(error),
        }
        if control.is_stopping() || failure.is_some() {
            break;
        }
    }
    let mut text = if verify_only { String::new() } else { report(settings, &runs) };
    let verifies = settings.import.as_ref().is_some_and(|import| import.verify);
    let mut verified = None;
    if verifies && failure.is_none() && !control.is_stopping() {
        match verify(settings, &commands, &control) {
            Ok((found, exit)) => {
                text.push_str(&verification_report(found));
                verified = Some(found);
                worst = if worst == Exit::Ok { exit } else { worst };
            }
            Err(error) => failure = Some(error),
        }
    }
    let failed = |path: &Path, error: std::io::Error| Failure::usage(format!("{}: {error}", path.display()));
    match written[0] {
        Some(path) => std::fs::write(path, &*conceal(&text)).map_err(|error| failed(path, error))?,
        None => terminal::out(&text),
    }
    if let Some(path) = written[1] {
        let json = json(settings, &runs, verified);
        std::fs::write(path, &*conceal_json(&json)).map_err(|error| failed(path, error))?;
    }
    failure.map_or(Ok(worst), Err)
}

/// Writes the files of histograms and of clients that a run is asked for.
fn write_beside(
    settings: &Settings,
    number: u64,
    run: &MemtierRun,
    clients: Vec<(String, String)>,
) -> Result<(), Failure> {
    let histograms = hdr_files(settings, number, run).into_iter().map(|file| {
        terminal::note(&file.note);
        (file.path, file.text)
    });
    for (path, text) in histograms.chain(clients) {
        files::put_file(Path::new(&path), text.as_bytes())
            .map_err(|error| Failure::usage(format!("{path}: {error}")))?;
    }
    Ok(())
}

/// The records of the file, where there is one.
fn records_of(settings: &Settings) -> Result<Arc<[ImportedRecord]>, Failure> {
    let Some(import) = &settings.import else { return Ok(Arc::default()) };
    let mut bytes = Vec::new();
    files::open(Path::new(&import.path))
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| Failure::usage(format!("--data-import {}: {error}", import.path)))?;
    let all = records(&import.path, &bytes, settings.memcached).map_err(Failure::usage)?;
    if !import.generate_keys {
        terminal::note(&format!("Reading keys from {}... {} keys read.", import.path, all.len()));
    }
    Ok(all.into())
}

/// Reads back what one client has written.
fn verify(
    settings: &Settings,
    commands: &Commands,
    control: &Arc<Control>,
) -> Result<(Verified, Exit), Failure> {
    let Some((gets, count)) = verification(settings, commands) else {
        return Ok((Verified { keys: 0, failed: 0 }, Exit::Ok));
    };
    let load = Load {
        title: "memtier, verification".into(),
        uri: &settings.uri,
        commands: &gets,
        clients: 1,
        requests: Some(count),
        seconds: None,
        warmup_s: 0,
        pipeline: settings.pipeline,
        rate: settings.rate.map(|rate| rate as f64),
        timeout_s: number(settings, "timeout")?.unwrap_or(10),
        reconnect_every: settings.reconnect_interval,
        late: None,
        load_threads: Some(1),
        out: None,
        watched: false,
        settings: Vec::new(),
    };
    let ended = load.apply(&load.workload()?, control, &mut Quiet)?.ended;
    let outcomes = &ended.totals.outcomes[0];
    let keys = outcomes[Outcome::Ok as usize];
    let failed = count - keys;
    if failed > 0 {
        let words = ended.phase.errors.iter().map(|(outcome, message)| format!("{outcome}: {message}"));
        let message = words.collect::<Vec<_>>().join("; ");
        terminal::error(&format!("{failed} keys do not hold what was written ({message})"));
    }
    let exit = match (control.is_stopping(), failed) {
        (true, _) => Exit::Interrupted,
        (false, 0) => Exit::Ok,
        (false, _) => Exit::Invalid,
    };
    Ok((Verified { keys, failed }, exit))
}

/// Says nothing.
struct Quiet;

impl Observer for Quiet {
    fn begin(&mut self, _phase: &str, _plan: &Job) {}

    fn second(&mut self, _now: &PhaseProgress<'_>) {}

    fn end(&mut self, _phase: &Phase) {}
}

/// Clients that begin step by step.
fn late(settings: &Settings) -> Option<LateUsers> {
    let Staircase { start, step, seconds } = settings.staircase?;
    let every_ns = seconds.saturating_mul(1_000_000_000);
    Some(LateUsers { of: settings.clients.0 as usize, first: start as usize, step: step as usize, every_ns })
}

/// A run of them.
fn one(
    settings: &Settings,
    commands: &Commands,
    (run, drawn): (u64, bool),
    out: Option<PathBuf>,
    control: &Arc<Control>,
) -> Result<(MemtierRun, Exit, Vec<(String, String)>), Failure> {
    let users = settings.users();
    let mut listed: Vec<Setting> = settings
        .listed()
        .into_iter()
        .map(|(key, value)| Setting { key, value, source: "command line".into() })
        .collect();
    if !settings.has("seed") {
        let source = if drawn { DRAWN } else { "default" };
        listed.push(Setting { key: "seed".into(), value: commands.seed.to_string(), source: source.into() });
    }
    let told = settings.statsd.as_ref().map(StatsdReceiver::of).transpose()?;
    let load = Load {
        title: format!("memtier, {users} clients"),
        uri: &settings.uri,
        commands,
        clients: users as usize,
        requests: settings.requests.map(|requests| requests.saturating_mul(users)),
        seconds: settings.test_time,
        warmup_s: 0,
        pipeline: settings.pipeline,
        rate: settings.rate.map(|rate| rate as f64 * users as f64),
        timeout_s: number(settings, "timeout")?.unwrap_or(10),
        reconnect_every: settings.reconnect_interval,
        late: late(settings),
        load_threads: number(settings, "load-threads")?,
        out,
        watched: !settings.has("no-monitor"),
        settings: listed,
    };
    let workload = load.workload()?;
    let mut watch = MemtierWatch::new(settings, run, workload.clone(), told);
    let began = now_ms();
    let AppliedLoad { ended, exit, doubts, .. } = load.apply(&workload, control, &mut watch)?;
    say(&doubts);
    let clients = client_files(settings, run, &workload.clients());
    let run = MemtierRun {
        times_ms: (began, now_ms()),
        seconds: ended.finished.measured_ns as f64 / 1e9,
        interrupted: control.is_stopping(),
        kinds: watch.kinds(&ended.totals),
    };
    Ok((run, exit, clients))
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// Follows a run: progress once a second, and what each second came to.
struct MemtierWatch<'a> {
    settings: &'a Settings,
    run: u64,
    workload: Arc<CommandRun>,
    rows: Vec<TableRow>,
    seconds: Vec<Vec<RequestSecond>>,
    /// Bytes of each row up to the last second.
    bytes: Vec<(u64, u64)>,
    begun: Instant,
    /// Whom each second is told.
    told: Option<StatsdReceiver>,
}

impl<'a> MemtierWatch<'a> {
    fn new(
        settings: &'a Settings,
        run: u64,
        workload: Arc<CommandRun>,
        told: Option<StatsdReceiver>,
    ) -> Self {
        let rows = rows(settings);
        let seconds = rows.iter().map(|_| Vec::new()).collect();
        MemtierWatch {
            settings,
            run,
            workload,
            seconds,
            bytes: vec![(0, 0); rows.len()],
            rows,
            begun: Instant::now(),
            told,
        }
    }

    fn traffic(&self, row: &TableRow) -> Traffic {
        let add = |sum: Traffic, metric: &usize| {
            let own = self.workload.traffic(*metric);
            Traffic {
                sent: sum.sent + own.sent,
                received: sum.received + own.received,
                hits: sum.hits + own.hits,
                misses: sum.misses + own.misses,
            }
        };
        let all = row.metrics.iter().fold(Traffic::default(), add);
        if row.bytes { all } else { Traffic { sent: 0, received: 0, ..all } }
    }

    /// What each row came to.
    fn kinds(&self, totals: &Totals) -> Vec<RequestTotals> {
        let kind = |(number, row): (usize, &TableRow)| RequestTotals {
            name: row.name.clone(),
            count: counted(totals, &row.metrics),
            hits: (self.traffic(row).hits, self.traffic(row).misses),
            connection_errors: lost(totals, &row.metrics),
            bytes: bytes_of(self.traffic(row)),
            latencies: latencies(totals, &row.metrics),
            seconds: self.seconds[number].clone(),
        };
        self.rows.iter().enumerate().map(kind).collect()
    }
}

fn bytes_of(traffic: Traffic) -> (u64, u64) {
    (traffic.sent, traffic.received)
}

/// Requests of some metrics with these outcomes.
fn count(totals: &Totals, metrics: &[usize], of: impl Fn(Outcome) -> bool) -> u64 {
    let one = |metric: &usize| {
        let outcomes = Outcome::ALL.iter().filter(|outcome| of(**outcome));
        outcomes.map(|outcome| totals.outcomes[*metric][*outcome as usize]).sum::<u64>()
    };
    metrics.iter().map(one).sum()
}

/// Requests that were lost with their connection, or had none.
fn lost(totals: &Totals, metrics: &[usize]) -> u64 {
    count(totals, metrics, is_lost)
}

fn is_lost(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Disconnected | Outcome::Unreachable)
}

/// Requests that were answered, or were not in time.
fn counted(totals: &Totals, metrics: &[usize]) -> u64 {
    count(totals, metrics, |outcome| {
        !is_lost(outcome) && !matches!(outcome, Outcome::Dropped | Outcome::Aborted)
    })
}

/// Service times of some metrics. Failed ones are left out where connections were lost: these have no time.
fn latencies(totals: &Totals, metrics: &[usize]) -> Buckets {
    let mut all = Buckets::new(totals.slot_scale());
    for metric in metrics {
        let slots = &totals.slots[metric * 2..metric * 2 + 2];
        let kept = if lost(totals, &[*metric]) > 0 { &slots[..1] } else { slots };
        kept.iter().flatten().for_each(|slot| all.merge(&slot.service));
    }
    all
}

impl Observer for MemtierWatch<'_> {
    fn begin(&mut self, _phase: &str, _plan: &Job) {
        terminal::verbatim(&format!("[RUN #{}] Launching threads now...", self.run));
        self.begun = Instant::now();
        if let (Some(receiver), Some(statsd)) = (&mut self.told, &self.settings.statsd) {
            receiver.event(&statsd.begins(self.settings, self.run));
        }
        if let Some(Staircase { start, step, seconds }) = self.settings.staircase {
            let (clients, threads) = self.settings.clients;
            terminal::verbatim(&format!(
                "[RUN #{}] Client staircase (per thread x {threads} threads): {start}, {step} more every {seconds} s, \
                 up to {clients}",
                self.run
            ));
        }
    }

    fn second(&mut self, now: &PhaseProgress<'_>) {
        let number = now.second;
        let (mut moved, mut sum) = (0, 0);
        for row in 0..self.rows.len() {
            let bytes = bytes_of(self.traffic(&self.rows[row]));
            let before = std::mem::replace(&mut self.bytes[row], bytes);
            let own = (bytes.0 - before.0, bytes.1 - before.1);
            (moved, sum) = (moved + own.0 + own.1, sum + bytes.0 + bytes.1);
            let metrics = &self.rows[row].metrics;
            self.seconds[row].push(RequestSecond {
                number,
                count: counted(now.last, metrics),
                bytes: own,
                latencies: latencies(now.last, metrics),
            });
        }
        let all: Vec<usize> = (0..now.last.outcomes.len()).collect();
        let mean = |totals: &Totals| latencies(totals, &all).mean_ns() / 1e6;
        let of = |totals: &Totals, bytes: u64| (counted(totals, &all), bytes, mean(totals));
        let done = now.done.unwrap_or(0.0);
        let seconds = self.begun.elapsed().as_secs_f64().min(now.elapsed_s);
        let per_second = |count: u64| (count as f64 / seconds.max(1e-6)) as u64;
        let (connection_errors, last) = (lost(now.so_far, &all), latencies(now.last, &all));
        let line = progress(
            self.settings,
            self.run,
            // The last second of a run is a part of one.
            (done, seconds),
            of(now.last, moved),
            of(now.so_far, sum),
            done < 1.0,
        );
        terminal::progress(&line);
        if let (Some(receiver), Some(statsd)) = (&self.told, &self.settings.statsd) {
            let (now, so_far) = (of(now.last, moved), of(now.so_far, sum));
            let packets = statsd.second(
                self.settings,
                &RunSecond {
                    ops: (now.0, per_second(so_far.0)),
                    bytes: (now.1, per_second(so_far.1)),
                    latency_ms: (now.2, so_far.2),
                    connections: if done < 1.0 { self.settings.connected(seconds as u64) } else { 0 },
                    percent: done * 100.0,
                    connection_errors,
                    latencies: last,
                },
            );
            receiver.send(&packets);
        }
    }

    fn end(&mut self, _phase: &Phase) {
        if let (Some(receiver), Some(statsd)) = (&mut self.told, &self.settings.statsd) {
            receiver.event(&statsd.ended(self.run));
            receiver.send(&statsd.end());
        }
        terminal::progress("\n\n");
    }
}
