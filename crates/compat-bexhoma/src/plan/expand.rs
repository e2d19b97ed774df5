//! Expands flags into configurations, rounds and pods, in bexhoma's order and with bexhoma's names.

use crate::plan::options::{Dbms, Options};

/// A configuration: one deployment of a server and what is done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// `Dragonfly-1`: the kind of deployment, and a number among those of its kind.
    pub name: String,
    /// Database that is deployed.
    pub dbms: Dbms,
    /// The load.
    pub loading: PodGroup,
    /// Rounds, one after the other.
    pub rounds: Vec<Round>,
}

/// A round of benchmarking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Number, from 1; loading is 0.
    pub client: u32,
    /// Work of its pods.
    pub job: PodGroup,
}

/// Work of several pods together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodGroup {
    /// Pods.
    pub pods: u64,
    /// Threads of all pods.
    pub threads: u64,
    /// Operations per second of all pods; 0: as fast as it goes.
    pub target: u64,
    /// Rows or operations of all pods.
    pub operations: u64,
}

/// Part of a job that one pod does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PodShare {
    /// Number, from 1.
    pub child: u64,
    /// Threads.
    pub threads: u64,
    /// Operations per second; 0: as fast as it goes.
    pub target: f64,
    /// Rows or operations.
    pub operations: u64,
}

/// Returns part number `at` of `of` of `all`: remainders go to the first ones, nothing is dropped.
pub fn share(all: u64, at: u64, of: u64) -> u64 {
    all / of + u64::from(at < all % of)
}

impl PodGroup {
    /// Returns the part of each pod.
    pub fn each(&self) -> Vec<PodShare> {
        let pod = |at: u64| PodShare {
            child: at + 1,
            threads: share(self.threads, at, self.pods),
            target: self.target as f64 / self.pods as f64,
            operations: share(self.operations, at, self.pods),
        };
        (0..self.pods).map(pod).collect()
    }
}

impl Configuration {
    /// `Dragonfly-1-2`: the key of loading's table.
    pub fn run(&self, run: u32) -> String {
        format!("{}-{run}", self.name)
    }

    /// `Dragonfly-1-2-1`; client 0 is loading.
    pub fn phase(&self, run: u32, client: u32) -> String {
        format!("{}-{client}", self.run(run))
    }

    /// `Dragonfly-1-2-1-1`: there is one job in a round.
    pub fn job(&self, run: u32, client: u32) -> String {
        format!("{}-1", self.phase(run, client))
    }

    /// `Dragonfly-1-2-1-1-3`: a pod of a job.
    pub fn connection(&self, run: u32, client: u32, child: u64) -> String {
        format!("{}-{child}", self.job(run, client))
    }
}

/// All configurations.
pub fn expand(options: &Options) -> Vec<Configuration> {
    let mut all: Vec<Configuration> = Vec::new();
    for threads in &options.loading_threads {
        for pods in &options.loading_pods {
            for factor in &options.loading_factors {
                for dbms in &options.dbms {
                    let kind = options.deployment(*dbms);
                    let number = 1 + all.iter().filter(|one| options.deployment(one.dbms) == kind).count();
                    let loading = PodGroup {
                        pods: *pods,
                        threads: *threads,
                        target: options.base * factor,
                        operations: options.rows,
                    };
                    let name = format!("{kind}-{number}");
                    all.push(Configuration { name, dbms: *dbms, loading, rounds: rounds(options) });
                }
            }
        }
    }
    all
}

fn rounds(options: &Options) -> Vec<Round> {
    let mut all: Vec<Round> = Vec::new();
    for factor in &options.benchmarking_factors {
        for threads in &options.benchmarking_threads {
            for pods in &options.benchmarking_pods {
                for executors in &options.executors {
                    let job = PodGroup {
                        pods: pods * executors,
                        threads: threads * executors,
                        target: options.base * factor * executors,
                        operations: options.operations,
                    };
                    all.push(Round { client: all.len() as u32 + 1, job });
                }
            }
        }
    }
    all
}

/// Operations and rows that the original would have dropped by dividing in whole numbers, in words.
pub fn dropped(configurations: &[Configuration]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for configuration in configurations {
        let rounds = configuration.rounds.iter().map(|round| (round.client, round.job));
        for (client, job) in std::iter::once((0, configuration.loading)).chain(rounds) {
            let figures =
                [("threads", job.threads), ("operations/s", job.target), ("operations", job.operations)];
            // The original divides rows by key ranges.
            let figures = &figures[..if client == 0 { 2 } else { 3 }];
            for (what, total) in figures {
                let kept = total / job.pods * job.pods;
                if kept != *total {
                    all.push(format!(
                        "{}, client {client}: {total} {what} over {} pods: bexhoma's floor makes {kept} of it, \
                         here nothing is dropped",
                        configuration.name, job.pods
                    ));
                }
            }
        }
    }
    all
}
