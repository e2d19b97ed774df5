//! How often the verdict accuses runs of which nothing is wrong, and how often it misses what is: real runs, disturbed on
//! purpose.

use crate::children::Bench;
use crate::disturbance::{Disturbance, Stops};
use crate::stops::run;
use anyhow::Result;
use dyno_rundir::schema::Trust;
use std::collections::BTreeMap;

/// A kind of run.
struct RunKind {
    load: &'static str,
    disturbance: Disturbance,
    /// The checks of which one must speak; none where nothing is wrong.
    expected: &'static [&'static str],
}

const KINDS: [RunKind; 7] = [
    RunKind { load: "--users 16", disturbance: Disturbance::None, expected: &[] },
    RunKind { load: "--rate 5000 --connections 32", disturbance: Disturbance::None, expected: &[] },
    RunKind { load: "--users 16", disturbance: Disturbance::Busy, expected: &["neighbours"] },
    RunKind {
        load: "--rate 5000 --connections 32",
        disturbance: Disturbance::Stopped(Stops::OF_THE_CLIENT),
        expected: &["client_share"],
    },
    RunKind {
        load: "--users 16",
        disturbance: Disturbance::Stopped(Stops::OF_THE_SERVER),
        expected: &["stalls", "gone"],
    },
    RunKind { load: "--users 16", disturbance: Disturbance::ServerBusy, expected: &["level", "neighbours"] },
    RunKind {
        load: "--rate 1M --connections 64",
        disturbance: Disturbance::None,
        expected: &["offered_rate", "drops", "overload"],
    },
];

/// `count` runs of which nothing is wrong, and as many disturbed ones, in equal parts of each kind.
pub fn rows(bench: &Bench, count: usize) -> Result<()> {
    println!("\n{count} good and {count} bad runs, 8 s after 1 s of warm-up: what the verdict says");
    let good = KINDS.iter().filter(|kind| kind.expected.is_empty()).count();
    for kind in KINDS {
        let count = (count / if kind.expected.is_empty() { good } else { KINDS.len() - good }).max(1);
        let (mut told, mut invalid) = (0, 0);
        let mut checks: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..count {
            let verdict = run(bench, kind.load, kind.disturbance)?.verdict;
            told += usize::from(kind.expected.iter().any(|check| verdict.speaks_against(check)));
            invalid += usize::from(verdict.trust == Trust::Invalid);
            for check in verdict.checks.iter().filter(|check| verdict.speaks_against(check)) {
                *checks.entry(check.clone()).or_default() += 1;
            }
        }
        let said: Vec<String> = checks.iter().map(|(check, runs)| format!("{check} {runs}")).collect();
        let said = if said.is_empty() { "nothing".to_owned() } else { said.join(", ") };
        let head = match kind.expected {
            [] => "good".to_owned(),
            expected => format!("{told} of {count} told ({})", expected.join(" or ")),
        };
        println!(
            "  {}, {}: {head}; invalid {invalid}; all that was said: {said}",
            kind.load,
            kind.disturbance.describe()
        );
    }
    Ok(())
}
