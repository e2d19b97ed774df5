//! Programs that run in pods and on other hosts, as words of a command line.

use serde::{Deserialize, Serialize};

/// A program that a pod starts for a channel: nothing else can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// `dyno worker --stdio`.
    Worker,
    /// `dyno worker --group --stdio`.
    WorkerGroup,
    /// `dyno host --stdio`.
    Host {
        /// Where its files are.
        directory: Option<String>,
    },
}

impl Service {
    /// Words behind the program's name.
    pub fn argument_words(&self) -> Vec<&str> {
        match self {
            Service::Worker => vec!["worker", "--stdio"],
            Service::WorkerGroup => vec!["worker", "--group", "--stdio"],
            Service::Host { directory: None } => vec!["host", "--stdio"],
            Service::Host { directory: Some(directory) } => vec!["host", "--stdio", "--directory", directory],
        }
    }
}
