//! memtier_benchmark.
//!
//! `flags` lists what it takes, `args` reads words into settings, `words` splits commands as redis-cli does, `plan` makes the
//! load of the settings, `report` prints what came of it, `json` writes the same as memtier's file.

mod args;
mod flags;
mod json;
mod plan;
mod report;
mod words;

pub use args::{Breakdown, Parsed, Refusal, Settings, parse};
pub use flags::help;
pub use json::json;
pub use plan::{Row, load, rows};
pub use report::{Kind, Run, Second, progress, report};

#[cfg(test)]
mod tests;
