//! The best known configurations of the workload's description.

use super::{Asked, Case};
use super::{CASES, Config, Means, Reading, lower, resolve};

/// A best known configuration.
#[derive(Clone, Copy, Debug)]
pub struct BestKnown {
    /// Its name behind `bkm-`.
    pub name: &'static str,
    /// For which machine.
    pub machine: &'static str,
    /// Its parameters.
    pub parameters: &'static [(&'static str, &'static str)],
}

macro_rules! parameters {
    ($pairs:literal, $option:literal) => {
        &[
            ("CLIENT_SERVER_PAIR", $pairs),
            ("THREADS", "64"),
            ("NUMACTL_OPTION", $option),
            ("CLIENT_COUNT", "3"),
            ("RECORD_COUNT", "4000000"),
        ]
    };
}

/// All four.
pub const BEST_KNOWN: [BestKnown; 4] = [
    BestKnown {
        name: "icx",
        machine: "two Xeon Gold 6338N (Ice Lake), 512 GB",
        parameters: parameters!("16", "1"),
    },
    BestKnown {
        name: "spr",
        machine: "Xeon Platinum 8480+ (Sapphire Rapids), 1 TB",
        parameters: parameters!("16", "2"),
    },
    BestKnown { name: "m6i.32xlarge", machine: "AWS m6i.32xlarge", parameters: parameters!("16", "1") },
    BestKnown { name: "m6i.16xlarge", machine: "AWS m6i.16xlarge", parameters: parameters!("8", "2") },
];

/// Finds one by its name, with or without `bkm-`.
pub fn best_known(name: &str) -> Option<&'static BestKnown> {
    let bare = name.strip_prefix("bkm-").unwrap_or(name);
    BEST_KNOWN.iter().find(|known| known.name == bare)
}

impl BestKnown {
    /// As a configuration file for every case.
    pub fn config(&self) -> Result<Config, String> {
        let pairs: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        Config::parse(&format!("\"*\": {{{}}}", pairs.join(", ")), &format!("bkm-{}", self.name), true)
    }

    /// 90read10update with it, as an experiment file.
    pub fn experiment(&self) -> Result<String, String> {
        let case: &'static Case =
            CASES.iter().find(|case| case.name == "90read10update").ok_or("90read10update is no case")?;
        let configs = [self.config()?];
        let asked = Asked {
            case,
            reading: Reading::default(),
            typed: case.name.into(),
            environment: &|_| None,
            configs: &configs,
            sets: &[],
            faithful: false,
        };
        let means = Means { name: Some(format!("wsf-bkm-{}", self.name)), ..Means::default() };
        Ok(lower(&resolve(&asked, 0)?, &means)?.text)
    }
}
