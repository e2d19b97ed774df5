//! Documents of a run of no database that began on 2026-11-25T00:00:00Z, for the tests of this crate and of its files.

use super::schema::{Run, Summary, VERSION};
use serde_json::{Value, json};

/// Begin, seconds since 1970.
pub const BEGIN_S: u64 = 1_795_564_800;

/// One that is under way.
pub fn run() -> Run {
    let run = json!({
        "version": VERSION, "dyno": "0.1.0", "command": ["dyno", "run"], "started": "2026-11-25T00:00:00Z",
        "status": "running", "target": "null:", "database": "null", "facts": {}, "settings": [], "metrics": {},
        "unit_ns": 64,
    });
    serde_json::from_value(run).unwrap()
}

/// A phase in which nothing happened.
pub fn empty_phase(name: &str, seconds: f64) -> Value {
    json!({
        "name": name, "seconds": seconds, "arrivals": 0, "outcomes": {}, "throughput": 0.0, "metrics": [],
        "late_replies": 0, "reconnects": 0, "redirects": 0, "backlog": 0, "drops": {}, "errors": {},
        "client": {"pipeline": 1, "pinned": true, "steal_share": 0.0},
    })
}

/// One that ended as planned.
pub fn empty_summary(phases: &[Value]) -> Summary {
    let summary = json!({
        "version": VERSION, "dyno": "0.1.0", "status": "complete", "target": "null:", "database": "null",
        "started": "2026-11-25T00:00:00Z", "title": "", "thresholds": [], "phases": phases,
        "verdict": {"trust": "valid", "reasons": [], "checks": []},
    });
    serde_json::from_value(summary).unwrap()
}
