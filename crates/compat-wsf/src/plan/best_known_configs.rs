//! The best known configurations of the workload's description.

use crate::plan::ResolveError;
use crate::plan::cases::CaseError;
use crate::plan::cases::{Reading, choose};
use crate::plan::config::Config;
use crate::plan::lower::error::LowerError;
use crate::plan::lower::lower;
use crate::plan::lower::options::LowerOptions;
use crate::plan::variables::find;
use crate::plan::{CaseRequest, resolve};
use dyno_config::tree::TreeError;

/// A best known configuration.
#[derive(Clone, Copy, Debug)]
pub struct BestKnown {
    /// Name behind `bkm-`.
    pub name: &'static str,
    /// Machine that it is for.
    pub machine: &'static str,
    /// Parameters.
    pub parameters: &'static [(&'static str, &'static str)],
}

macro_rules! parameters {
    ($pairs:literal, $option:literal $(, $more:expr)*) => {
        &[
            ("CLIENT_SERVER_PAIR", $pairs),
            ("THREADS", "64"),
            ("NUMACTL_OPTION", $option),
            ("CLIENT_COUNT", "3"),
            ("RECORD_COUNT", "4000000"),
            $($more,)*
        ]
    };
}

/// A best known configuration that is no experiment.
#[derive(Debug, thiserror::Error)]
pub enum BestKnownError {
    /// The case is not there.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// The parameters are no configuration.
    #[error(transparent)]
    Config(#[from] TreeError),
    /// The variables have no values.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// It cannot be carried out.
    #[error(transparent)]
    Lower(#[from] LowerError),
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
    BestKnown {
        name: "m6i.32xlarge",
        machine: "AWS m6i.32xlarge",
        // Its command says it, its list of parameters does not. 25 has no such variable.
        parameters: parameters!("16", "1", ("NETWORK_RPS_TUNE_ENABLE", "true")),
    },
    BestKnown { name: "m6i.16xlarge", machine: "AWS m6i.16xlarge", parameters: parameters!("8", "2") },
];

/// Finds one by its name, with or without `bkm-`.
pub fn best_known(name: &str) -> Option<&'static BestKnown> {
    let bare = name.strip_prefix("bkm-").unwrap_or(name);
    BEST_KNOWN.iter().find(|known| known.name == bare)
}

impl BestKnown {
    /// Makes a configuration file for every case, of the variables that a reading has.
    pub fn config(&self, reading: Reading) -> Result<Config, TreeError> {
        let is_known = |name: &str| find(name).is_some_and(|variable| variable.default(reading).is_some());
        let known = self.parameters.iter().filter(|(name, _)| is_known(name));
        let pairs: Vec<String> = known.map(|(name, value)| format!("{name}: {value}")).collect();
        Config::parse(&format!("\"*\": {{{}}}", pairs.join(", ")), &format!("bkm-{}", self.name), true)
    }

    /// 90read10update with it, as an experiment file.
    pub fn experiment(&self) -> Result<String, BestKnownError> {
        let case = choose("90read10update")?.case;
        let configs = [self.config(Reading::default())?];
        let asked = CaseRequest {
            case,
            reading: Reading::default(),
            typed: case.name.into(),
            environment: &|_| None,
            configs: &configs,
            sets: &[],
            faithful: false,
        };
        let means = LowerOptions { name: Some(format!("wsf-bkm-{}", self.name)), ..LowerOptions::default() };
        Ok(lower(&resolve(&asked, 0)?, &means)?.text)
    }
}
