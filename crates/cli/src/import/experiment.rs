//! A table whose rows are runs, as an experiment's directory.

use dyno_exchange::import::csv::RunRow;
use dyno_exchange::import::{ImportDetails, assemble};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_rundir::files;
use dyno_rundir::imported;
use serde_json::{Value, json};
use std::path::Path;

/// One cell for each combination of levels; rows of the same levels are repetitions.
pub(super) fn write(
    rows: Vec<RunRow>,
    said: &ImportDetails,
    files: &str,
    written: &str,
    out: &Path,
) -> Result<Exit, Failure> {
    if out.exists() && std::fs::read_dir(out)?.next().is_some() {
        return Err(Failure::usage(format!(
            "{}: not empty; an experiment's directory must be new",
            out.display()
        )));
    }
    std::fs::create_dir_all(out)?;
    let mut cells: Vec<(Vec<(String, String)>, u32)> = Vec::new();
    let mut journal = Vec::new();
    let count = rows.len();
    for (levels, found) in rows {
        let at = cells.iter().position(|(known, _)| *known == levels).unwrap_or(cells.len());
        if at == cells.len() {
            cells.push((levels, 0));
        }
        cells[at].1 += 1;
        let dir = format!("runs/cell{:04}-rep{:02}", at + 1, cells[at].1);
        let run = assemble(found, said, files, written);
        imported::write(&out.join(&dir), &run).map_err(Failure::of_new_directory)?;
        let trust = serde_json::to_value(run.summary.verdict.trust).unwrap_or(Value::Null);
        let message = run.summary.verdict.reasons.first().map_or("", |reason| reason.text.as_str());
        let measured = run.summary.measured_phase();
        journal.push(json!({
            "at": written, "event": "ended", "cell": at + 1, "repetition": cells[at].1, "point": "", "value": 0.0,
            "dir": dir, "status": "complete", "words": message, "trust": trust, "passed": true,
            "throughput": measured.map(|phase| phase.throughput), "offered": measured.and_then(|phase| phase.offered),
        }));
    }
    journal.push(json!({"at": written, "event": "end", "status": "complete"}));
    let label = |levels: &[(String, String)]| {
        levels.iter().map(|(name, level)| format!("{name}={level}")).collect::<Vec<_>>().join(" ")
    };
    let mut shown = Vec::with_capacity(cells.len());
    for (number, (levels, _)) in cells.iter().enumerate() {
        shown.push(json!({ "number": number + 1, "label": label(levels), "levels": levels }));
    }
    let name = said.title.clone().unwrap_or_else(|| "csv (imported)".into());
    let (started, cwd) = (said.started.as_deref().unwrap_or(written), std::env::current_dir()?);
    let mut record = json!({ "version": 1, "dyno": said.dyno, "name": name, "path": files, "sets": [] });
    record["cwd"] = json!(cwd);
    record["started"] = json!(started);
    record["command"] = json!(said.command);
    record["cells"] = json!(shown);
    record["runs"] = json!(count);
    let text = journal.iter().map(|line| format!("{line}\n")).collect::<String>();
    files::put_file(&out.join("experiment.json"), format!("{record:#}\n").as_bytes())?;
    files::put_file(&out.join("journal.jsonl"), text.as_bytes())?;
    terminal::note(&format!("{count} runs of {} cells: experiment directory {}", cells.len(), out.display()));
    Ok(Exit::Ok)
}
