//! The oracle: the engine on a virtual clock against a simulated server, beside results known in closed form.

use dyno_analysis::closed_form::{closed_throughput, md1_response, mm1_response, mm1_response_quantile};
use dyno_analysis::users_by_littles_law;
use dyno_db::target_error::TargetError;
use dyno_engine::arrivals::{Process, Profile};
use dyno_engine::sim::{ServiceTime, SimOptions};
use dyno_engine::{Clock, Control, End, Job, Pacing, run_virtual};
use dyno_record::Totals;
use dyno_types::content::Nothing;
use dyno_types::{Content, Request};
use dyno_workload::{Draw, Frontier, Workload};
use std::sync::Arc;

/// One comparison.
#[derive(Clone, Debug)]
pub struct OracleCase {
    /// Simulated case.
    pub name: &'static str,
    /// Compared quantity, with its unit.
    pub quantity: &'static str,
    /// Value that the engine measured.
    pub measured: f64,
    /// Value that theory predicts.
    pub expected: f64,
    /// Relative tolerance: statistical where the case is random, the histogram's resolution where it is not.
    pub tolerance: f64,
}

impl OracleCase {
    /// Returns whether measured and expected agree.
    pub fn has_passed(&self) -> bool {
        (self.measured - self.expected).abs() <= self.tolerance * self.expected.abs().max(f64::MIN_POSITIVE)
    }
}

/// A workload of one kind of request without content.
struct Pings(Vec<String>);

impl Workload for Pings {
    fn metrics(&self) -> &[String] {
        &self.0
    }
    fn content(&self) -> Arc<dyn Content> {
        Arc::new(Nothing)
    }
    fn draw(&self, index: u64) -> Draw {
        Draw { index, kind: 0, seed: 0 }
    }
    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        Request { key: draw.index, ..Request::default() }
    }
    fn is_pure(&self) -> bool {
        true
    }
}

/// A job of pings for a simulation.
pub fn ping_job(pacing: Pacing, users: usize, threads: usize, end: End) -> Job {
    Job {
        pacing,
        cores: vec![None; threads],
        seed: 42,
        drain_ns: u64::MAX / 4,
        ..Job::closed_loop(Arc::new(Pings(vec!["PING".into()])), users, end)
    }
}

/// Runs a job in virtual time; the totals, and the length of its measured phase in virtual seconds.
pub fn simulate_job(job: Job, server: SimOptions) -> Result<(Totals, f64), TargetError> {
    let mut totals = Totals::new(1, job.scale);
    let finished = run_virtual(job, Arc::new(Control::default()), server, &mut |second| {
        totals.merge(&second.totals);
        totals.samples.extend_from_slice(&second.totals.samples);
    })?;
    Ok((totals, finished.measured_ns as f64 / 1e9))
}

fn open(rate: f64, process: Process) -> Pacing {
    Pacing::Open { profile: Profile::Constant { rate }, process }
}

fn mean_us(totals: &Totals) -> f64 {
    totals.ok_slot(0).map_or(0.0, |s| s.response.mean_ns() / 1e3)
}

fn operations(n: u64) -> End {
    End { operations: Some(n), duration_ns: None }
}

/// All cases.
pub fn all_cases() -> Result<Vec<OracleCase>, TargetError> {
    let mut cases = Vec::new();
    constant(&mut cases)?;
    queues(&mut cases)?;
    stall(&mut cases)?;
    stolen(&mut cases)?;
    closed(&mut cases)?;
    workers(&mut cases)?;
    Ok(cases)
}

fn constant(cases: &mut Vec<OracleCase>) -> Result<(), TargetError> {
    let server = SimOptions { service: ServiceTime::Constant(100_000), ..SimOptions::default() };
    let (totals, _) =
        simulate_job(ping_job(open(5_000.0, Process::Constant), 8, 1, operations(50_000)), server)?;
    let max = totals.ok_slot(0).map_or(0.0, |s| s.response.max_ns() as f64 / 1e3);
    let name = "constant service 100 us, 5,000/s evenly";
    cases.push(OracleCase {
        name,
        quantity: "mean response, µs",
        measured: mean_us(&totals),
        expected: 100.0,
        tolerance: 1e-9,
    });
    cases.push(OracleCase {
        name,
        quantity: "max response, µs",
        measured: max,
        expected: 100.0,
        tolerance: 1e-9,
    });
    Ok(())
}

fn queues(cases: &mut Vec<OracleCase>) -> Result<(), TargetError> {
    let (lambda, mu) = (7_000.0, 10_000.0);
    let exponential = SimOptions { service: ServiceTime::Exponential(1e9 / mu), ..SimOptions::default() };
    let (totals, _) =
        simulate_job(ping_job(open(lambda, Process::Poisson), 1_000, 1, operations(1_000_000)), exponential)?;
    let name = "M/M/1, load 0.7";
    let expected = mm1_response(lambda, mu) * 1e6;
    cases.push(OracleCase {
        name,
        quantity: "mean response, µs",
        measured: mean_us(&totals),
        expected,
        tolerance: 0.03,
    });
    let p99 = totals.ok_slot(0).map_or(0.0, |s| s.response.percentile_ns(99.0) as f64 / 1e3);
    let expected = mm1_response_quantile(lambda, mu, 0.99) * 1e6;
    cases.push(OracleCase { name, quantity: "p99 response, µs", measured: p99, expected, tolerance: 0.05 });
    let constant = SimOptions { service: ServiceTime::Constant((1e9 / mu) as u64), ..SimOptions::default() };
    let (totals, _) =
        simulate_job(ping_job(open(lambda, Process::Poisson), 1_000, 1, operations(1_000_000)), constant)?;
    let expected = md1_response(lambda, mu) * 1e6;
    let name = "M/D/1, load 0.7";
    cases.push(OracleCase {
        name,
        quantity: "mean response, µs",
        measured: mean_us(&totals),
        expected,
        tolerance: 0.02,
    });
    Ok(())
}

/// A server that stops for 1 s in a run at r per second: exactly r samples wait, evenly from 0 to 1 s.
fn stall(cases: &mut Vec<OracleCase>) -> Result<(), TargetError> {
    let server = SimOptions {
        service: ServiceTime::Constant(64),
        capacity: None,
        growth: 0.0,
        stalls: vec![(5_000_000_000, 1_000_000_000)],
        ..SimOptions::default()
    };
    let rate = 1_000.0;
    let mut job = ping_job(
        open(rate, Process::Constant),
        4,
        1,
        End { operations: None, duration_ns: Some(10_000_000_000) },
    );
    job.raw_samples = true;
    let (totals, _) = simulate_job(job, server)?;
    let name = "stall of 1 s at 1,000/s, 4 connections";
    let mut waited: Vec<u64> =
        totals.samples.iter().map(|s| s.response_ns).filter(|&ns| ns > 500_000).collect();
    waited.sort_unstable();
    cases.push(OracleCase {
        name,
        quantity: "operations",
        measured: totals.arrivals as f64,
        expected: 10_000.0,
        tolerance: 0.0,
    });
    cases.push(OracleCase {
        name,
        quantity: "operations that waited",
        measured: waited.len() as f64,
        expected: rate,
        tolerance: 0.0,
    });
    // The i-th of them, in ascending order, waited i milliseconds, and up to 16 us for the backlog (4 x 64 ns at a time).
    let worst = waited
        .iter()
        .enumerate()
        .map(|(i, &ns)| (ns as f64 / 1e6 - (i + 1) as f64).abs())
        .fold(0.0, f64::max);
    cases.push(OracleCase {
        name,
        quantity: "largest deviation + 1, ms",
        measured: 1.0 + worst,
        expected: 1.0,
        tolerance: 0.02,
    });
    Ok(())
}

/// A client that does not run for 50 ms of each second, before ten servers of 5 ms each at a load of 0.6: with arrivals by the
/// kernel's clock service times are true, and the response times of an ideal client are those of one that was not disturbed.
fn stolen(cases: &mut Vec<OracleCase>) -> Result<(), TargetError> {
    let run = |stalls: bool| {
        let client_stalls = if stalls {
            (0..20).map(|s| (s * 1_000_000_000 + 400_000_000, 50_000_000)).collect()
        } else {
            Vec::new()
        };
        let server = SimOptions {
            service: ServiceTime::Constant(5_000_000),
            capacity: None,
            client_stalls,
            ..SimOptions::default()
        };
        let job = ping_job(open(1_200.0, Process::Poisson), 10, 1, operations(24_000));
        simulate_job(Job { stamps: Clock::Kernel, ..job }, server)
    };
    let ((disturbed, _), (calm, _)) = (run(true)?, run(false)?);
    let service = disturbed.ok_slot(0).map_or(0, |slot| slot.service.max_ns());
    let response = |totals: &Totals| totals.ok_slot(0).map(|slot| slot.response.clone());
    let plain = response(&disturbed).map_or(0, |buckets| buckets.max_ns());
    let name = "client stopped 50 ms a second, load 0.6";
    let equal = |one: bool| f64::from(u8::from(one));
    for (quantity, measured, expected, tolerance) in [
        ("longest service time, µs", service as f64 / 1e3, 5_000.0, 1e-9),
        ("plain ones waited (1 yes)", equal(plain > 50_000_000), 1.0, 0.0),
        ("ideal as calm (1 yes)", equal(Some(&disturbed.ideal) == response(&calm).as_ref()), 1.0, 0.0),
        ("calm: ideal as plain", equal(Some(&calm.ideal) == response(&calm).as_ref()), 1.0, 0.0),
    ] {
        cases.push(OracleCase { name, quantity, measured, expected, tolerance });
    }
    Ok(())
}

fn closed(cases: &mut Vec<OracleCase>) -> Result<(), TargetError> {
    let service_ns = 100_000;
    for (users, think_ns, name) in [
        (4usize, 900_000u64, "closed loop, 4 users, think 900 us"),
        (32, 900_000, "closed loop, 32 users, think 900 us (saturated)"),
    ] {
        let server = SimOptions { service: ServiceTime::Constant(service_ns), ..SimOptions::default() };
        let (totals, seconds) =
            simulate_job(ping_job(Pacing::Closed { think_ns }, users, 1, operations(200_000)), server)?;
        let measured = totals.count_completed() as f64 / seconds;
        let expected = closed_throughput(users as f64, service_ns as f64 / 1e9, think_ns as f64 / 1e9);
        cases.push(OracleCase { name, quantity: "throughput, 1/s", measured, expected, tolerance: 0.001 });
        let found = users_by_littles_law(&totals, think_ns, seconds, &["PING"]).unwrap_or(0.0);
        cases.push(OracleCase {
            name,
            quantity: "users by Little's law",
            measured: found,
            expected: users as f64,
            tolerance: 0.002,
        });
    }
    Ok(())
}

/// Four threads apply what one applies: same intended starts, same histogram.
fn workers(cases: &mut Vec<OracleCase>) -> Result<(), TargetError> {
    let server =
        SimOptions { service: ServiceTime::Constant(250_000), capacity: None, ..SimOptions::default() };
    let run = |threads| {
        simulate_job(
            ping_job(open(3_000.0, Process::Poisson), 4_000, threads, operations(60_000)),
            server.clone(),
        )
    };
    let ((one, _), (four, _)) = (run(1)?, run(4)?);
    let equal = one.ok_slot(0).map(|s| &s.response) == four.ok_slot(0).map(|s| &s.response)
        && one.ended == four.ended;
    cases.push(OracleCase {
        name: "four load threads against one, Poisson",
        quantity: "equal histograms",
        measured: f64::from(u8::from(equal)),
        expected: 1.0,
        tolerance: 0.0,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_agrees_with_theory() {
        // Case by case, so that a failing one is named at once.
        type Part = fn(&mut Vec<OracleCase>) -> Result<(), TargetError>;
        for part in [constant as Part, queues, stall, stolen, closed, workers] {
            let mut cases = Vec::new();
            part(&mut cases).unwrap();
            for case in cases {
                assert!(case.has_passed(), "{case:?}");
            }
        }
    }
}
