//! Command lines of what dyno starts on other hosts and in pods.

use clap::Args;
use std::path::PathBuf;

/// `dyno pod`.
#[derive(Clone, Debug, Args)]
pub struct PodArgs {
    /// End when no controller has spoken to the pod for so long
    #[arg(long, value_name = "DURATION", default_value = "120s")]
    pub patience: String,
    /// Where to listen for the relay of the run
    #[arg(long, requires = "token")]
    pub port: Option<u16>,
    /// The run's token
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// Cores of its node for everything in the pod, as client.placement has them
    #[arg(long, value_name = "JSON")]
    pub placement: Option<String>,
}

/// `dyno place`.
#[derive(Clone, Debug, Args)]
pub struct PlaceArgs {
    /// Cores and memory of servers, as server.placement has them
    #[arg(long, value_name = "JSON")]
    pub placement: String,
    /// Ports of all servers
    #[arg(long, value_delimiter = ',', required = true)]
    pub ports: Vec<u16>,
    /// Which of them this one is, from 0
    #[arg(long)]
    pub number: usize,
    /// The script that starts it there
    #[arg(long, value_name = "FILE")]
    pub script: PathBuf,
}

/// `dyno tend`.
#[derive(Clone, Debug, Args)]
pub struct TendArgs {
    /// Settings of its host as long as it runs, as the section host has them
    #[arg(long, value_name = "JSON")]
    pub host: Option<String>,
    /// Go on without settings that are not permitted
    #[arg(long)]
    pub go_on: bool,
    /// What is removed at its end
    #[arg(long, value_name = "DIR")]
    pub discard: Option<PathBuf>,
    /// Only look whether the settings of another one are changed by now
    #[arg(long, conflicts_with_all = ["host", "discard"])]
    pub ready: bool,
}

/// `dyno relay`.
#[derive(Clone, Debug, Args)]
pub struct RelayArgs {
    /// Speak through standard input and output
    #[arg(long, required = true)]
    pub stdio: bool,
    /// The run's token
    #[arg(long, value_name = "FILE", default_value = dyno_hosts::kubernetes::manifests::TOKEN)]
    pub token: PathBuf,
}

/// `dyno host`.
#[derive(Clone, Debug, Args)]
pub struct HostArgs {
    /// Speak through standard input and output
    #[arg(long, required = true)]
    pub stdio: bool,
    /// Where servers have their files
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// `dyno worker`.
#[derive(Clone, Debug, Args)]
pub struct WorkerArgs {
    /// Start workers of this host and add up their seconds
    #[arg(long)]
    pub group: bool,
    /// The token of the run whose other pods have workers of the group
    #[arg(long, value_name = "FILE", requires = "group", default_value = dyno_hosts::kubernetes::manifests::TOKEN)]
    pub token: PathBuf,
    /// Speak frames through standard input and output
    #[arg(long, required = true)]
    pub stdio: bool,
}
