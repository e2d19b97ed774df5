//! The part of bexhoma's summary that stands before its figures: the bullets of its workload, and the plan.

use crate::plan::expand::Configuration;
use crate::plan::options::Options;
use serde::{Deserialize, Serialize};

/// The part of a summary that follows from the flags; kept beside the experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryFacts {
    /// `YCSB SF=1`.
    pub name: String,
    /// Lines of the workload, in bexhoma's order and words.
    pub bullets: Vec<String>,
    /// Plan, a line for each round.
    pub planned: Vec<String>,
}

/// `[8, 16]`, without repetitions.
fn listed<T: std::fmt::Display + PartialEq>(all: impl IntoIterator<Item = T>) -> String {
    let mut words: Vec<String> = Vec::new();
    for one in all {
        let word = one.to_string();
        if !words.contains(&word) {
            words.push(word);
        }
    }
    format!("[{}]", words.join(", "))
}

/// A line of the workflow.
fn round(configuration: &str, run: u32, client: &str, pods: usize) -> String {
    format!("DBMS {configuration} - Experiment {run} Client {client}: ycsb ({pods} pods)")
}

/// Makes this part of the summary.
pub fn about(options: &Options, configurations: &[Configuration]) -> SummaryFacts {
    let value = |long: &str| options.typed.value(long);
    let given = |long: &str| options.typed.given(long);
    let mut bullets = vec![
        format!("Workload is '{}'.", options.workload.to_ascii_uppercase()),
        format!("Number of rows to insert is {}.", options.rows),
        format!("Ordering of inserts is {}.", options.order),
        format!("Number of operations is {}.", options.operations),
        "Batch size is '1'.".to_owned(),
        match options.base {
            0 => "There is no target.".to_owned(),
            base => format!("Target is based on multiples of '{base}'."),
        },
        format!("Factors for loading are {}.", listed(&options.loading_factors)),
        format!("Factors for benchmarking are {}.", listed(&options.benchmarking_factors)),
    ];
    bullets.push(match options.watched {
        true => "System and application metrics are monitored by dyno.".into(),
        false => "Nothing is monitored.".into(),
    });
    let names: Vec<String> = options.dbms.iter().map(|dbms| format!("'{}'", dbms.name())).collect();
    bullets.push(format!("Experiment is limited to DBMS [{}].", names.join(", ")));
    for pods in &options.loading_pods {
        bullets.push(format!("Import is handled by {pods} processes (pods)."));
    }
    let pins = [
        ("Loading", "request-node-loading"),
        ("Benchmarking", "request-node-benchmarking"),
        ("SUT", "request-node-name"),
    ];
    for (what, flag) in pins.iter().filter(|(_, flag)| !options.local && !value(flag).is_empty()) {
        if *what == "SUT" && options.workers > 0 {
            continue;
        }
        bullets.push(format!("{what} is fixed to {}.", value(flag)));
    }
    if given("skip-loading") {
        bullets.push("Loading is skipped.".into());
    }
    if !value("request-storage-type").is_empty() {
        let size = match value("request-storage-size") {
            size if size.is_empty() || options.local => String::new(),
            size => format!(" and size {size}"),
        };
        let removed = if given("request-storage-remove") {
            " Persistent storage is removed at experiment start."
        } else {
            ""
        };
        let class = if options.local { "folder" } else { value("request-storage-type") };
        bullets.push(format!("Database is persisted to disk of type {class}{size}.{removed}"));
    }
    bullets.push(format!(
        "Loading is tested with {} threads, split into {} pods.",
        listed(&options.loading_threads),
        listed(&options.loading_pods)
    ));
    bullets.push(format!(
        "Benchmarking is tested with {} threads, split into {} pods.",
        listed(&options.benchmarking_threads),
        listed(&options.benchmarking_pods)
    ));
    let executors = listed(&options.executors);
    bullets.push(format!("Benchmarking is run as {executors} times the number of benchmarking pods."));
    bullets.push(match options.repetitions {
        1 => "Experiment is run once.".into(),
        times => format!("Experiment is run {times} times."),
    });
    let planned = configurations.iter().flat_map(|one| {
        (1..=options.repetitions as u32).flat_map(move |run| {
            let line = move |r: &crate::plan::expand::Round| {
                round(&one.name, run, &r.client.to_string(), r.job.pods as usize)
            };
            one.rounds.iter().map(line)
        })
    });
    let sf = options.rows as f64 / 1e6;
    SummaryFacts { name: format!("YCSB SF={sf}"), bullets, planned: planned.collect() }
}
