//! `dyno wsf`: the Workload Services Framework's Mongo-YCSB workload.
//!
//! `args` is what can be typed, `select` which tests that means, `deployment` where they run, `iteration` one of their
//! iterations, `run` carries it out, `logs` is the layout of what it leaves, `config` the text of workload-config.yaml, `manage`
//! --stop,
//! --status and --continue, `kpi` list-kpi, `ctest` what else ctest.sh has, `testset` files of tests, `sut` the prepared
//! host.

mod args;
mod config;
mod ctest;
mod deployment;
mod iteration;
mod kpi;
mod logs;
mod manage;
mod run;
mod select;
mod sut;
mod testset;

pub use args::WsfArgs;

use crate::plan::best_known_configs::best_known;
use crate::plan::cases::Reading;
use crate::plan::config::Config;
use crate::plan::lower::options::LowerOptions;
use crate::plan::lower::{is_sweep, lower, lower_sweep};
use crate::plan::sets::{SetOption, covering};
use crate::plan::variables::VARIABLES;
use crate::plan::{CaseRequest, Resolved, resolve};
use args::{Leave, LogAction};
use dyno_config::server::IfNotPermitted;
use dyno_engine::Control;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_types::bounded;
use dyno_types::limits::{ITERATIONS, TEXT_BYTES};
use iteration::Iteration;
use select::Selected;
use std::sync::Arc;

/// The command.
pub fn wsf(args: &WsfArgs) -> Result<Exit, Failure> {
    if let Some(LogAction::ListKpi(options)) = &args.action {
        return kpi::list_kpi(options);
    }
    match () {
        () if args.describe_params => return Ok(describe(args)),
        () if args.status => return manage::status(&args.out),
        () if args.go_on => return manage::go_on(&args.out, args.quiet),
        () => {}
    }
    if let Some(prefix) = &args.stop {
        return manage::stop(&args.out, prefix);
    }
    ctest::detached();
    args.ctest.check()?;
    let tests = match &args.ctest.testset {
        Some(path) => testset::read(args, path)?,
        None => vec![args.clone()],
    };
    let mut prepared = Vec::new();
    for test in &tests {
        let selected = select::select(test)?;
        if test.list {
            select::list(&selected);
            continue;
        }
        prepared.push((test, iterations(test, &selected)?));
    }
    if args.list {
        return Ok(Exit::Ok);
    }
    carry_out(args, &prepared)
}

/// Everything that was asked for, one after the other.
fn carry_out(args: &WsfArgs, tests: &[(&WsfArgs, Vec<Iteration>)]) -> Result<Exit, Failure> {
    type Step = fn(&WsfArgs, &[Iteration]) -> Result<Exit, Failure>;
    let only: [(bool, Step); 4] = [
        (args.dry_run, run::dry),
        (args.deployment.manifests.is_some(), deployment::manifests),
        (args.ctest.prepare_sut, sut::prepare),
        (args.ctest.cleanup_sut, sut::clean_up),
    ];
    if let Some((_, step)) = only.into_iter().find(|(wanted, _)| *wanted) {
        for (test, iterations) in tests {
            step(test, iterations)?;
        }
        return Ok(Exit::Ok);
    }
    for (test, iterations) in tests {
        run::available(test)?;
        if args.ctest.reuse_sut {
            sut::reuse(test, iterations)?;
        }
    }
    if let Some(exit) = args.ctest.detach()? {
        return Ok(exit);
    }
    let control = Arc::new(Control::default());
    dyno_frontend::signals::listen(&control)?;
    let mut worst = Exit::Ok;
    for (test, iteration) in tests.iter().flat_map(|(test, all)| all.iter().map(move |one| (test, one))) {
        let exit = run::run(test, iteration, &control)?;
        if exit == Exit::Interrupted {
            return Ok(exit);
        }
        worst = if worst == Exit::Ok { exit } else { worst };
    }
    Ok(worst)
}

/// All iterations of all selected tests.
fn iterations(args: &WsfArgs, selected: &[Selected]) -> Result<Vec<Iteration>, Failure> {
    let sets: Vec<SetOption> =
        args.sets.iter().map(|text| SetOption::parse(text)).collect::<Result<_, _>>()?;
    let mut configs = Vec::new();
    if let Some(name) = &args.bkm {
        let Some(known) = best_known(name) else {
            return Err(Failure::usage(format!(
                "--bkm {name}: expected icx, spr, m6i.32xlarge or m6i.16xlarge"
            )));
        };
        let reading = args.reading.map_or(Reading::default(), Reading::from);
        configs.push(known.config(reading).map_err(Failure::internal)?);
    }
    for path in &args.configs {
        let shown = path.display().to_string();
        let text = bounded::text_file(path, TEXT_BYTES)
            .map_err(|e| Failure::usage(format!("--config {shown}: {e}")))?;
        configs.push(Config::parse(&text, &shown, false)?);
    }
    let counted = args.loops.is_some() || args.burst.is_some();
    let burst = args.burst.unwrap_or(1);
    let loops = args.loops.unwrap_or(if counted { 1 } else { covering(&sets) });
    if loops == 0 || burst == 0 || args.runs == 0 {
        return Err(Failure::usage("--loop, --burst, --run: expected 1 or more"));
    }
    let iterations = loops.checked_mul(burst).filter(|all| *all <= ITERATIONS);
    let Some(iterations) = iterations else {
        return Err(Failure::usage(format!("--loop, --burst: more than {ITERATIONS} iterations")));
    };
    let environment = |name: &str| if args.noenv { None } else { std::env::var(name).ok() };
    let lower_options = lower_options(args)?;
    let mut all = Vec::new();
    for one in selected {
        let asked = CaseRequest {
            case: one.case,
            reading: one.reading,
            typed: one.typed.clone(),
            environment: &environment,
            configs: &configs,
            sets: &sets,
            faithful: args.faithful,
        };
        let of = |at: usize| resolve(&asked, at).map_err(Failure::usage);
        let points: Vec<Resolved> = (0..iterations).map(of).collect::<Result<_, _>>()?;
        let typed = one.typed.clone();
        if !counted && is_sweep(&points) {
            let lowered = lower_sweep(&points, &lower_options)?;
            all.push(Iteration { number: None, typed, resolved: points[0].clone(), lowered, sweep: points });
            continue;
        }
        for (at, resolved) in points.into_iter().enumerate() {
            let lowered = lower(&resolved, &lower_options)?;
            let second = (burst > 1).then_some(at % burst + 1);
            let number = (iterations > 1).then_some((at / burst + 1, second));
            all.push(Iteration { number, typed: typed.clone(), resolved, lowered, sweep: Vec::new() });
        }
    }
    Ok(all)
}

fn lower_options(args: &WsfArgs) -> Result<LowerOptions, Failure> {
    Ok(LowerOptions {
        name: None,
        server: args.server.into(),
        program: args.program.clone(),
        version: deployment::version(args),
        target: args.target.clone(),
        port: args.port,
        runs: args.runs,
        tune_host: args.tune_host,
        warmup_s: args.warmup,
        pause_s: args.pause,
        if_not_permitted: match args.if_not_permitted {
            Leave::Fail => IfNotPermitted::Fail,
            Leave::Continue => IfNotPermitted::Continue,
        },
        faithful: args.faithful,
        faithful_weights: args.faithful_weights,
        tracers: args.ctest.tracers()?,
        deployment: deployment::read_deployment(args)?,
    })
}

/// All variables, their defaults in the reading, and what they do.
fn describe(args: &WsfArgs) -> Exit {
    let reading = args.reading.map_or(Reading::default(), Reading::from);
    for variable in &VARIABLES {
        if let Some(default) = variable.default(reading) {
            terminal::out(&format!("{}={default}  {}\n", variable.name, variable.help));
        }
    }
    Exit::Ok
}
