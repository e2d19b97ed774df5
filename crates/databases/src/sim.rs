//! A simulated server in virtual time: `sim:`.

use dyno_db::probe::Stop;
use dyno_db::target::{Database, OpenTarget, Scheme, Target, TargetInfo};
use dyno_db::target_error::TargetError;
use dyno_engine::sim::{ServiceTime, SimOptions};
use dyno_engine::{Control, Finished, Job, RunError, Second, run_virtual};
use dyno_types::limits::SIM_SERVERS;
use dyno_types::units::{parse_duration_ns, written_duration};
use dyno_types::{Content, RefusalCode, Refused};
use std::sync::Arc;

/// The simulated server.
pub(super) struct Sim;

impl Database for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn schemes(&self) -> &[Scheme] {
        const { &[Scheme::store_scheme("sim", "sim:?service=100us&capacity=1")] }
    }

    fn parse(&self, uri: &str) -> Result<Box<dyn Target>, Refused> {
        Ok(Box::new(Simulated(sim_options(uri)?)))
    }
}

/// One with its options, asked for or open.
#[derive(Clone, Debug)]
struct Simulated(SimOptions);

impl Target for Simulated {
    fn redacted(&self) -> String {
        "sim:".into()
    }

    fn open(&self, _content: Arc<dyn Content>, _stop: Stop<'_>) -> Result<Box<dyn OpenTarget>, TargetError> {
        Ok(Box::new(self.clone()))
    }
}

impl OpenTarget for Simulated {
    fn info(&self) -> TargetInfo {
        let database = "simulated server (virtual time)".into();
        TargetInfo { database, wire: true, virtual_time: true, ..TargetInfo::default() }
    }

    fn apply(
        &self,
        job: Job,
        control: Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError> {
        // Repetitions draw service times anew, as they do arrivals; the seed of the first is 1.
        let seed = self.0.seed.wrapping_add(job.seed.saturating_sub(1));
        let server = SimOptions { seed, ..self.0.clone() };
        run_virtual(job, control, server, on_second)
    }
}

/// Refuses stalls, in order, of which one begins before another has ended: one cannot stand still twice.
fn refuse_overlap(key: &str, stalls: &[(u64, u64)]) -> Result<(), Refused> {
    let overlaps = |pair: &&[(u64, u64)]| pair[0].0.saturating_add(pair[0].1) > pair[1].0;
    match stalls.windows(2).find(overlaps) {
        Some(pair) => Err(Refused::new(
            RefusalCode::Conflict,
            key,
            format!(
                "sim: option {key}: the one at {} has not ended when the one at {} begins",
                written_duration(pair[0].0),
                written_duration(pair[1].0)
            ),
        )),
        None => Ok(()),
    }
}

/// Greatest part by which service may grow each second.
const STEEPEST: f64 = 1_000.0;

/// `sim:?service=100us&distribution=exponential&capacity=4&growth=0.01&stall=1s@10s&client_stall=50ms@20s&seed=7`
fn sim_options(uri: &str) -> Result<SimOptions, Refused> {
    let mut options = SimOptions::default();
    let (mut service_ns, mut exponential) = (100_000, false);
    let query = uri.split_once('?').map_or("", |(_, q)| q);
    for pair in query.split('&').filter(|p| !p.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let bad = |expected: &str| {
            Refused::new(
                RefusalCode::BadValue,
                key,
                format!("sim: option {key}={value}: expected {expected}"),
            )
        };
        let duration = |v: &str| {
            parse_duration_ns(v, 1_000)
                .map_err(|e| Refused::new(RefusalCode::BadValue, key, format!("sim: option {key}: {e}")))
        };
        match key {
            // Without a service time simulated operations would not let time pass.
            "service" => match duration(value)? {
                0 => return Err(bad("a time above 0")),
                ns => service_ns = ns,
            },
            "distribution" => match value {
                "constant" => exponential = false,
                "exponential" => exponential = true,
                _ => return Err(bad("constant or exponential")),
            },
            "capacity" => {
                options.capacity =
                    match value {
                        "unbounded" => None,
                        n => Some(n.parse().ok().filter(|n| (1..=SIM_SERVERS).contains(n)).ok_or_else(
                            || bad(&format!("a number from 1 to {SIM_SERVERS}, or unbounded")),
                        )?),
                    }
            }
            "stall" | "client_stall" => {
                let (length, begin) =
                    value.split_once('@').ok_or_else(|| bad("LENGTH@BEGIN such as 1s@10s"))?;
                let stalls = if key == "stall" { &mut options.stalls } else { &mut options.client_stalls };
                stalls.push((duration(begin)?, duration(length)?));
            }
            "growth" => {
                let growth = value.parse::<f64>().ok().filter(|growth| growth.abs() <= STEEPEST);
                options.growth =
                    growth.ok_or_else(|| bad("the part by which service grows each second: 0.01"))?;
            }
            "seed" => options.seed = value.parse().map_err(|_| bad("a whole number"))?,
            _ => {
                return Err(Refused::new(
                    RefusalCode::UnknownName,
                    key,
                    format!(
                        "sim: unknown option {key:?}; known: service, distribution, capacity, growth, stall, client_stall, \
                     seed"
                    ),
                ));
            }
        }
    }
    options.stalls.sort_unstable();
    options.client_stalls.sort_unstable();
    refuse_overlap("stall", &options.stalls)?;
    refuse_overlap("client_stall", &options.client_stalls)?;
    options.service = if exponential {
        ServiceTime::Exponential(service_ns as f64)
    } else {
        ServiceTime::Constant(service_ns)
    };
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_that_overlap_are_refused() {
        let refused = |uri: &str| sim_options(uri).unwrap_err();
        let message = "sim: option stall: the one at 1s has not ended when the one at 1500ms begins";
        assert_eq!(refused("sim:?stall=200ms@1500ms&stall=1s@1s").to_string(), message);
        assert_eq!(
            refused("sim:?client_stall=1s@0s&client_stall=1s@0s").refusal_code(),
            RefusalCode::Conflict
        );
        // One may begin where another ends; the server and the client stop for themselves.
        let options = sim_options("sim:?stall=1s@2s&stall=1s@1s&client_stall=1s@1s").unwrap();
        assert_eq!(options.stalls.len(), 2);
    }
}
