//! workload-config.yaml: what was asked for, with the source of every value.

use super::WsfArgs;
use super::iteration::{Iteration, test_name};
use crate::plan::Resolved;
use dyno_types::secret::{mask_text, mask_value, own_command_line};
use serde_json::json;
use std::fmt::Write as _;

/// `_customized` and the like: a stand-in for mongod is a change too.
pub fn suffix(args: &WsfArgs, iteration: &Iteration) -> &'static str {
    let stand_in = args.server != super::args::ServerArg::Mongod || args.target.is_some();
    if stand_in || args.warmup > 0 { "_customized" } else { iteration.resolved.suffix() }
}

/// The file's text; of a sweep, that of one of its points.
pub fn text(args: &WsfArgs, iteration: &Iteration, resolved: &Resolved) -> String {
    let mut out = String::new();
    let mut line = |key: &str, value: serde_json::Value| {
        let _ = writeln!(out, "{key}: {value}");
    };
    let called = test_name(&iteration.typed, resolved.case.name);
    line("testcase", json!(format!("{called}{}", suffix(args, iteration))));
    line("case", json!(resolved.full_name()));
    line("backend", json!(super::deployment::name(args.deployment.backend)));
    line("dyno", json!(env!("CARGO_PKG_VERSION")));
    line("command", json!(own_command_line()));
    let server = match &args.target {
        Some(target) => mask_text(target),
        None => dyno_config::server::ServerKind::from(args.server).to_string(),
    };
    line("server", json!(server));
    line("runs", json!(args.runs));
    if let Some((round, burst)) = iteration.number {
        line("loop", json!(round));
        line("burst", json!(burst.unwrap_or(1)));
    }
    line("faithful", json!(args.faithful));
    line("trace_windows", json!(iteration.lowered.windows));
    line("notes", json!(iteration.lowered.notes));
    out.push_str("tunables:\n");
    for given in &resolved.values {
        let source = given.source.to_string().replace(['\n', '\r'], " ");
        let _ =
            writeln!(out, "  {}: {}  # {source}", given.name, json!(mask_value(given.name, &given.value)));
    }
    out
}
