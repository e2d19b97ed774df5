//! Predictions for other resources: the bottleneck law (X <= servers / demand) with demands that were measured.

use super::demand::Demand;
use serde::Serialize;

/// A prediction for other resources.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIf {
    /// Change.
    pub change: String,
    /// Greatest throughput then, by the demands.
    pub limit: f64,
    /// Bottleneck after the change.
    pub bottleneck: String,
}

/// Variation of a demand over the runs above which it depends on load, and predicts nothing.
const STEADY: f64 = 0.15;
/// Cores that are added.
const CORES: f64 = 4.0;
const HOST: &str = "host CPU";

fn is_disk(demand: &Demand) -> bool {
    demand.name.starts_with("disk ")
}

/// The limit now, with twice of each resource, and with four more cores, each with what sets it. `best` is the greatest
/// throughput that was seen: a disk that allows less by the time it is busy does several things at once, and its limit is
/// not known. Where a demand that depends on load would set the limit, none is predicted: whatever else is named does not limit.
pub(super) fn what_if(demands: &[Demand], best: f64) -> Vec<WhatIf> {
    let limit_of = |demand: &Demand, more: f64| Some((demand.servers? + more) / demand.demand_s);
    let known = |demand: &&Demand| {
        let limit = limit_of(demand, 0.0).filter(|_| demand.demand_s > 0.0);
        limit.is_some_and(|limit| !is_disk(demand) || limit >= best)
    };
    let (steady, varying): (Vec<&Demand>, Vec<&Demand>) =
        demands.iter().filter(known).partition(|demand| demand.variation < STEADY);
    // `more`: servers that a resource gets.
    let with = |change: String, more: &dyn Fn(&Demand) -> f64| {
        let limits = steady.iter().filter_map(|demand| Some((limit_of(demand, more(demand))?, *demand)));
        let (limit, least) = limits.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let mut others = varying.iter().filter_map(|demand| limit_of(demand, more(demand)));
        if others.any(|other| other < limit) {
            return None;
        }
        let note = if is_disk(least) { ", if it does one thing at a time" } else { "" };
        Some(WhatIf { change, limit, bottleneck: format!("{}{note}", least.name) })
    };
    let mut all: Vec<WhatIf> = with("as it is".into(), &|_| 0.0).into_iter().collect();
    for demand in steady.iter().filter(|demand| demand.name != HOST) {
        let own = |other: &Demand| if other.name == demand.name { other.servers.unwrap_or(0.0) } else { 0.0 };
        all.extend(with(format!("twice the {}", demand.name), &own));
    }
    // A program of one thread, and load threads, do not become more by cores.
    if steady.iter().any(|demand| demand.name == HOST) {
        all.extend(with("four more cores".into(), &|demand| if demand.grows { CORES } else { 0.0 }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(name: &str, demand_s: f64, servers: f64) -> Demand {
        let grows = name == HOST || name == "server CPU" && servers > 1.0;
        let (servers, name) = (Some(servers), name.into());
        Demand { name, demand_s, background: 0.0, servers, grows, variation: 0.02, utilisation: None }
    }

    fn found<'a>(all: &'a [WhatIf], change: &str) -> (f64, &'a str) {
        let one = all.iter().find(|one| one.change == change).unwrap_or_else(|| panic!("{change}: {all:?}"));
        (one.limit.round(), &one.bottleneck)
    }

    #[test]
    fn more_cores_help_what_uses_many() {
        // 4 cores: a server of many threads takes 2 ms of CPU for an operation, all programs together 3 ms.
        let demands =
            [demand("server CPU", 0.002, 4.0), demand("client CPU", 0.0005, 2.0), demand(HOST, 0.003, 4.0)];
        let all = what_if(&demands, 1_000.0);
        assert_eq!(found(&all, "as it is"), (1_333.0, HOST));
        assert_eq!(found(&all, "four more cores"), (2_667.0, HOST));
        // A server of one thread stays what it is.
        let all = what_if(&[demand("server CPU", 0.002, 1.0), demand(HOST, 0.003, 4.0)], 400.0);
        assert_eq!(found(&all, "four more cores"), (500.0, "server CPU"));
        assert_eq!(found(&all, "twice the server CPU"), (1_000.0, "server CPU"));
        // On a host of one core, too.
        let all = what_if(&[demand("server CPU", 0.002, 1.0), demand(HOST, 0.001, 1.0)], 400.0);
        assert_eq!(found(&all, "four more cores"), (500.0, "server CPU"));
    }

    #[test]
    fn a_station_is_not_named_before_one_that_needs_more() {
        // Two cores: a server whose demand depends on load needs 27.4 µs for an operation, the client 10.8 µs.
        let server = Demand { variation: 0.2, ..demand("server CPU", 27.4e-6, 2.0) };
        let client = demand("client CPU", 10.8e-6, 1.0);
        assert_eq!(what_if(&[server.clone(), client.clone()], 15_261.0), []);
        // As long as the client is what limits, it is named: not twice of it.
        let slow = demand("client CPU", 20e-6, 1.0);
        let all = what_if(&[server, slow], 15_261.0);
        assert_eq!((found(&all, "as it is"), all.len()), ((50_000.0, "client CPU"), 1));
    }

    #[test]
    fn disks_limit_as_far_as_is_known() {
        let demands = [demand("server CPU", 0.001, 4.0), demand("disk vda", 0.005, 1.0)];
        let all = what_if(&demands, 190.0);
        assert_eq!(found(&all, "as it is"), (200.0, "disk vda, if it does one thing at a time"));
        assert_eq!(found(&all, "twice the disk vda"), (400.0, "disk vda, if it does one thing at a time"));
        // More than the time that it is busy would allow: it does several things at once.
        assert_eq!(found(&what_if(&demands, 250.0), "as it is"), (4_000.0, "server CPU"));
        let varying = Demand { variation: 0.3, ..demand("disk vda", 0.005, 1.0) };
        assert_eq!(what_if(&[varying], 100.0), []);
        // Exactly what it would allow is no contradiction; a demand that varies by exactly 15 % depends on load.
        assert_eq!(found(&what_if(&demands, 200.0), "as it is").0, 200.0);
        let edge =
            |variation: f64| what_if(&[Demand { variation, ..demand("locks", 0.005, 1.0) }], 1.0).len();
        assert_eq!((edge(STEADY), edge(0.149), what_if(&[demand("locks", 0.0, 1.0)], 1.0).len()), (0, 2, 0));
    }
}
