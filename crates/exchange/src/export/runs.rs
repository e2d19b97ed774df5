//! One row for each run: levels, throughput, percentiles from merged histograms, verdict, what the server used.

use crate::export::intervals::{latencies, place};
use crate::export::source::{ExportSource, SourceRun};
use crate::export::table::{Cell, ColumnKind, ExportTable};
use dyno_analysis::ArrivalLatency;
use dyno_record::Scale;
use dyno_rundir::schema::{Claim, Latency, Phase};

type NamedRun = (String, ColumnKind, Cell);

/// Every run, those that failed too.
pub fn runs(source: &ExportSource) -> ExportTable {
    let mut table = ExportTable::default();
    for run in &source.runs {
        let mut row = place(source, run);
        row.extend(verdict(run));
        if let Some(phase) = run.measured() {
            row.extend(figures(phase));
            latencies("response", response(run).as_ref(), &mut row);
            if phase.ideal_response.is_some() {
                latencies("ideal_response", phase.ideal_response.as_ref(), &mut row);
            }
            for metric in &phase.metrics {
                let found = metric.arrival_response().or(metric.arrival_service());
                let kind = if metric.arrival_response().is_some() { "response" } else { "service" };
                if found.is_some() {
                    latencies(&format!("{}_{kind}", metric.name), found, &mut row);
                }
            }
        }
        table.push(row);
    }
    table.numbers(&source.factors);
    table
}

fn text(name: &str, value: Option<&str>) -> NamedRun {
    (name.to_owned(), ColumnKind::Text, value.into())
}

fn verdict(run: &SourceRun) -> Vec<NamedRun> {
    let summary = run.summary();
    let journal = run.ended.as_ref();
    let status = summary.map(|s| format!("{:?}", s.status).to_lowercase());
    let trust = summary.map(|s| s.verdict.trust.name());
    let reasons: Option<String> = summary.map(|s| {
        s.verdict.reasons.iter().map(|r| format!("{}: {}", r.check, r.text)).collect::<Vec<_>>().join("; ")
    });
    let words = journal.map(|ended| ended.message.clone()).filter(|_| summary.is_none());
    let graded = summary.map_or(&[][..], |summary| summary.verdict.grades.as_slice());
    let grade = |claim: Claim| {
        let found = graded.iter().find(|grade| grade.claim == claim.name());
        text(&format!("grade_{}", claim.name()), found.map(|grade| grade.trust.name()))
    };
    let run_file = run.dir.as_ref().map(|dir| &dir.run);
    vec![
        text("status", journal.map(|ended| ended.status.as_str()).or(status.as_deref())),
        text("verdict", trust),
        text("reasons", reasons.or(words).as_deref()),
        grade(Claim::Throughput),
        grade(Claim::Median),
        grade(Claim::Tail),
        grade(Claim::Resources),
        text("started", run_file.map(|r| r.started.as_str())),
        text("database", run_file.map(|r| r.database.as_str())),
        text("target", run_file.map(|r| r.target.as_str())),
    ]
}

fn figures(phase: &Phase) -> Vec<NamedRun> {
    let int = |name: &str, count: Option<u64>| (name.to_owned(), ColumnKind::Int, Cell::from(count));
    let real = |name: &str, value: Option<f64>| (name.to_owned(), ColumnKind::Real, Cell::from(value));
    let known = |value: f64| Some(value).filter(|value| *value > 0.0);
    let client = &phase.client;
    let users = (client.users * client.pipeline.max(1) * client.batch.max(1)) as u64;
    let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
    let dropped = phase.outcomes.get("dropped").copied().unwrap_or(0);
    let seen = phase.monitor.as_ref();
    let server = seen.and_then(|seen| seen.server.as_ref());
    let workers = seen.and_then(|seen| seen.workers.as_ref());
    let host = seen.and_then(|seen| seen.host.as_ref());
    vec![
        int("users", Some(users).filter(|n| *n > 0)),
        real("offered_per_s", phase.offered),
        real("seconds", Some(phase.seconds)),
        int("arrivals", Some(phase.arrivals)),
        int("ok", Some(ok)),
        int("failed", Some(phase.arrivals.saturating_sub(ok + dropped))),
        int("dropped", Some(dropped)),
        real("throughput_per_s", Some(phase.throughput)),
        real("server_cpu_cores", server.map(|used| used.cpu_cores)),
        real("server_resident_bytes", server.and_then(|used| used.resident_bytes)),
        real("workers_cpu_cores", workers.map(|used| used.cpu_cores)),
        real("host_cpu_busy_share", host.map(|used| used.cpu_busy_share)),
        real("client_cpu_us_per_op", known(client.cpu_us_per_op)),
    ]
}

/// Response times of all operations of the measured phase, from the merged histograms; failures with at least their time.
pub(super) fn response(run: &SourceRun) -> Option<Latency> {
    let (dir, phase) = (run.dir.as_ref()?, run.measured()?);
    let scale = if dir.run.unit_ns == 1_000 { Scale::Micros } else { Scale::Ns64 };
    ArrivalLatency::of_run(dir, &phase.name, scale).to_latency()
}
