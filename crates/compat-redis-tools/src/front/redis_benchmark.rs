//! `dyno redis-benchmark` and `dyno valkey-benchmark`: take these programs' command lines and print what they print.

use super::ToolArgs;
use super::load::{AppliedLoad, Load, settings_of};
use crate::redis_benchmark::{
    BenchmarkPlan, ParsedCommandLine, Program, Ran, Test, TestProgress as Going, head, parse, progress,
    report, tail, width_of_progress,
};
use dyno_engine::{Control, Job};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::{signals, terminal};
use dyno_record::{Buckets, Totals};
use dyno_rundir::schema::{Phase, Reason};
use dyno_session::session::{Observer, PhaseProgress};
use dyno_types::Outcome;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Instant;

/// `dyno redis-benchmark`.
pub fn redis_benchmark(args: &ToolArgs) -> Result<Exit, Failure> {
    benchmark(Program::RedisBenchmark, args)
}

/// `dyno valkey-benchmark`.
pub fn valkey_benchmark(args: &ToolArgs) -> Result<Exit, Failure> {
    benchmark(Program::ValkeyBenchmark, args)
}

fn benchmark(program: Program, args: &ToolArgs) -> Result<Exit, Failure> {
    let stdin = || {
        let mut all = Vec::new();
        std::io::stdin().read_to_end(&mut all).map(|_| all)
    };
    let plan = match parse(program, &args.words, stdin).map_err(Failure::usage)? {
        ParsedCommandLine::Print { text, exit } => {
            terminal::out(&text);
            return Ok(if exit == 0 { Exit::Ok } else { Exit::Usage });
        }
        ParsedCommandLine::Run(plan) => *plan,
    };
    plan.notes.iter().for_each(|note| terminal::warn(note));
    if plan.idle {
        return Err(Failure::usage("-I: dyno keeps no idle connections"));
    }
    let control = Arc::new(Control::default());
    signals::listen(&control).map_err(Failure::from)?;
    let config = dyno_db_redis::target::read_configuration(&plan.uri, ["save", "appendonly"]);
    terminal::out(&head(&plan));
    let (mut worst, mut doubts) = (Exit::Ok, Vec::new());
    'all: loop {
        for test in &plan.tests {
            let applied = match one(&plan, test, config.as_ref(), &control) {
                Ok(applied) => applied,
                Err(error) => {
                    say(&doubts);
                    return Err(error);
                }
            };
            worst = if worst == Exit::Ok { applied.exit } else { worst };
            doubts.extend(applied.doubts);
            if control.is_stopping() || applied.gave_up {
                break 'all;
            }
        }
        if !plan.repeats || plan.tests.is_empty() {
            break;
        }
    }
    if control.is_stopping() {
        say(&doubts);
        return Ok(worst);
    }
    terminal::out(&tail(&plan));
    say(&doubts);
    Ok(worst)
}

/// Says each kind of doubt once, with the number of tests that it is about.
fn say(doubts: &[Reason]) {
    let mut said: Vec<(&str, &str)> = Vec::new();
    for doubt in doubts {
        let kind = (doubt.trust.trust_word(), doubt.check.as_str());
        if said.contains(&kind) {
            continue;
        }
        said.push(kind);
        let tests =
            doubts.iter().filter(|other| (other.trust.trust_word(), other.check.as_str()) == kind).count();
        let about = if tests == 1 { "a test is".to_owned() } else { format!("{tests} tests are") };
        terminal::warn(&format!("{about} {} ({}): {}", kind.0, kind.1, doubt.text));
    }
}

/// A test of them.
fn one(
    plan: &BenchmarkPlan,
    test: &Test,
    config: Option<&[String; 2]>,
    control: &Arc<Control>,
) -> Result<AppliedLoad, Failure> {
    let load = Load {
        title: format!("{}, {} clients", test.title, plan.clients),
        uri: &plan.uri,
        commands: &test.commands,
        clients: plan.clients,
        requests: plan.requests,
        seconds: plan.duration_s,
        warmup_s: plan.warmup_s,
        pipeline: plan.pipeline,
        rate: plan.rate,
        reconnect_every: None,
        late: None,
        timeout_s: 10,
        load_threads: plan.threads,
        out: None,
        watched: false,
        settings: settings_of(&plan.settings),
    };
    let workload = load.workload()?;
    let begun = Instant::now();
    let mut watch = BenchmarkWatch {
        plan,
        test,
        width: 0,
        rates: Vec::new(),
        begun,
        shown: begun,
        is_warmup: plan.warmup_s > 0,
    };
    let applied = load.apply(&workload, control, &mut watch)?;
    let totals = &applied.ended.totals;
    let ran = Ran {
        latencies: &latencies(totals),
        requests: counted(totals),
        elapsed_ms: applied.ended.finished.measured_ns / 1_000_000,
        threads: plan.threads.unwrap_or(0),
        config: config.map(|[save, appendonly]| (save.as_str(), appendonly.as_str())),
        cluster_nodes: applied.nodes,
        progress_width: watch.width,
        rates: &watch.rates,
    };
    terminal::exact(&report(plan, test, &ran));
    Ok(applied)
}

/// Requests that were answered, or were not in time.
fn counted(totals: &Totals) -> u64 {
    let lost = [Outcome::Dropped, Outcome::Aborted, Outcome::Disconnected, Outcome::Unreachable];
    let all = Outcome::ALL.iter().filter(|outcome| !lost.contains(outcome));
    all.map(|outcome| totals.ended[*outcome as usize]).sum()
}

/// Service times. Failed ones are left out where connections were lost: these have no time.
fn latencies(totals: &Totals) -> Buckets {
    let lost = [Outcome::Disconnected, Outcome::Unreachable];
    let is_whole = lost.iter().all(|outcome| totals.ended[*outcome as usize] == 0);
    let mut all = Buckets::new(totals.slot_scale());
    let kept = totals.slots.iter().enumerate().filter(|(number, _)| is_whole || number % 2 == 0);
    kept.filter_map(|(_, slot)| slot.as_ref()).for_each(|slot| all.merge(&slot.service));
    all
}

/// Mean latency, milliseconds; NaN of none.
fn mean_ms(totals: &Totals) -> f64 {
    let all = latencies(totals);
    if all.count() == 0 { f64::NAN } else { all.mean_ns() / 1e6 }
}

/// Shows progress once a second.
struct BenchmarkWatch<'a> {
    plan: &'a BenchmarkPlan,
    test: &'a Test,
    /// Length of the last text of progress.
    width: usize,
    rates: Vec<f64>,
    /// When the phase began, its warm-up apart, and when progress was shown last.
    begun: Instant,
    shown: Instant,
    is_warmup: bool,
}

impl Observer for BenchmarkWatch<'_> {
    fn begin(&mut self, _phase: &str, _plan: &Job) {
        (self.begun, self.shown) = (Instant::now(), Instant::now());
    }

    fn second(&mut self, now: &PhaseProgress<'_>) {
        let is_warmup = now.phase == "warmup";
        if self.is_warmup && !is_warmup {
            (self.is_warmup, self.begun) = (false, self.shown);
        }
        let interval_ms = self.shown.elapsed().as_millis() as u64;
        self.shown = Instant::now();
        let of_second = counted(now.last);
        if now.is_whole_second() {
            self.rates.push(of_second as f64);
        }
        let text = progress(
            self.plan,
            self.test,
            &Going {
                requests: counted(now.so_far),
                elapsed_ms: self.begun.elapsed().as_millis() as u64,
                mean_ms: mean_ms(now.so_far),
                interval_requests: of_second,
                interval_ms,
                interval_mean_ms: mean_ms(now.last),
                is_warmup,
                width: self.width,
            },
        );
        self.width = width_of_progress(&text);
        terminal::exact(&text);
    }

    fn end(&mut self, _phase: &Phase) {}
}
