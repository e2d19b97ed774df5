//! `dyno selftest`: the engine itself, on a virtual clock against a simulated server, beside closed forms.

use crate::options::SelftestArgs;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_session::oracle;
use std::fmt::Write as _;

/// Runs all cases.
pub fn selftest(args: &SelftestArgs) -> Result<Exit, Failure> {
    let cases = oracle::all_cases()?;
    let failed = cases.iter().filter(|c| !c.has_passed()).count();
    if args.json {
        let list: Vec<_> = cases
            .iter()
            .map(|c| {
                serde_json::json!({ "case": c.name, "quantity": c.quantity, "measured": c.measured,
                    "expected": c.expected, "tolerance": c.tolerance, "passed": c.has_passed() })
            })
            .collect();
        let text = serde_json::to_string_pretty(&list)?;
        terminal::out(&format!("{text}\n"));
    } else {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{:<44} {:<26} {:>14} {:>14} {:>9}",
            "case", "quantity", "measured", "expected", "off by"
        );
        for case in &cases {
            let off = if case.expected == 0.0 { 0.0 } else { (case.measured / case.expected - 1.0) * 100.0 };
            let _ = writeln!(
                out,
                "{:<44} {:<26} {:>14.4} {:>14.4} {:>7.3} % {}",
                case.name,
                case.quantity,
                case.measured,
                case.expected,
                off,
                if case.has_passed() { "ok" } else { "FAILED" }
            );
        }
        let _ = writeln!(out, "{} of {} hold", cases.len() - failed, cases.len());
        terminal::out(&out);
    }
    Ok(if failed == 0 { Exit::Ok } else { Exit::Internal })
}
