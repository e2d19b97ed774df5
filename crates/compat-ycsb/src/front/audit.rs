//! The closed economy's validation: when the run has ended, every account is read once and the money counted.

use super::output::say;
use crate::report::line::{Line, ReportNumber};
use crate::work::YcsbWork;
use dyno_db::target::OpenTarget;
use dyno_engine::{Control, End, Job};
use dyno_frontend::exit::Failure;
use dyno_frontend::signals;
use dyno_session::session::EndedPhase;
use dyno_types::Outcome;
use dyno_workload::ycsb::Audit;
use std::sync::Arc;

/// Counts the money, if the workload has any and the run was not interrupted.
pub(super) fn take(
    work: &YcsbWork,
    opened: &dyn OpenTarget,
    job: &Job,
    ended: &EndedPhase,
) -> Result<Option<Audit>, Failure> {
    let Some(economy) = work.economy.as_ref().filter(|_| !signals::interrupted()) else {
        return Ok(None);
    };
    say(work, "Validating: reading every account...");
    let count = economy.count();
    let job = Job {
        pipeline: job.pipeline,
        cores: job.cores.clone(),
        timeout_ns: job.timeout_ns,
        seed: job.seed,
        drain_ns: job.drain_ns,
        ..Job::closed_loop(
            count.clone(),
            job.users,
            End { operations: Some(count.count_accounts()), duration_ns: None },
        )
    };
    let mut failed = 0;
    let counting = opened.run(job, Arc::new(Control::default()), &mut |second| {
        let ended = &second.totals.ended;
        let found = ended[Outcome::Ok as usize] + ended[Outcome::NotFound as usize];
        failed += ended.iter().sum::<u64>() - found;
    });
    counting.map_err(Failure::from)?;
    if failed > 0 {
        return Err(Failure::internal(format!(
            "{failed} accounts could not be read: the money is not counted"
        )));
    }
    Ok(Some(economy.audit_after(ended.totals.ended_total())))
}

/// The report's lines about it.
pub(super) fn lines(audit: &Audit) -> Vec<Line> {
    let line = |name: &str, value| Line::new("VALIDATE", name, value);
    vec![
        line("STATUS", ReportNumber::Text(if audit.has_passed() { "PASSED" } else { "FAILED" })),
        line("TOTAL CASH", ReportNumber::Int(audit.total as i64)),
        line("COUNTED CASH", ReportNumber::Int(audit.counted)),
        line("ACTUAL OPERATIONS", ReportNumber::Int(audit.operations as i64)),
        line("ANOMALY SCORE", ReportNumber::Double(audit.anomaly_score())),
    ]
}

/// Complaint about the count of the money, if there is one.
pub(super) fn complaint(audit: &Audit) -> Option<String> {
    let changed = audit.counted - audit.total as i64;
    let what = if changed < 0 { "vanished" } else { "appeared" };
    let unreadable = match audit.unreadable {
        0 => String::new(),
        n => format!("; {n} accounts hold no number"),
    };
    (!audit.has_passed()).then(|| {
        format!(
            "the closed economy is not consistent: {} of {} {what} (anomaly score {:.6}){unreadable}",
            changed.abs(),
            audit.total,
            audit.anomaly_score()
        )
    })
}
