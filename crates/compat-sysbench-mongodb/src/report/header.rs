//! The block of settings that both programs begin with.

use crate::report::console::{Wording, thread_line};
use dyno_types::units::Thousands;

/// Figures that the loader shows.
#[derive(Clone, Debug)]
pub struct LoadHeader {
    /// Version.
    pub wording: Wording,
    /// Collections.
    pub collections: u32,
    /// Database.
    pub database: String,
    /// Loader threads.
    pub loaders: u32,
    /// Documents of a collection.
    pub documents: u32,
    /// Documents of an insert.
    pub batch: u32,
    /// Seconds between two lines; -1 for never.
    pub feedback_seconds: i64,
    /// Documents between two lines; -1 for never.
    pub feedback_inserts: i64,
    /// The table's file.
    pub table: String,
    /// Write concern, `host:port` and user, of the version of 2015.
    pub old: [String; 3],
    /// Connection string without secrets, of the last version.
    pub uri: String,
}

/// Figures that the run phase shows.
#[derive(Clone, Debug)]
pub struct ExecuteHeader {
    /// Version.
    pub wording: Wording,
    /// Collections.
    pub collections: u32,
    /// Database.
    pub database: String,
    /// Users.
    pub writers: u32,
    /// Documents of a collection.
    pub documents: u32,
    /// Seconds between two lines; -1 for never.
    pub feedback_seconds: i64,
    /// The table's file.
    pub table: String,
    /// Length, seconds.
    pub run_seconds: u64,
    /// Range size, then how often point selects, simple, sum, order and distinct ranges, index updates, non index
    /// updates and inserts occur.
    pub counts: [u32; 9],
    /// Cap of all users and of each.
    pub tps: [u32; 2],
    /// Seed.
    pub seed: i64,
    /// Auto commit, write concern, `host:port` and user, of the version of 2015.
    pub old: [String; 4],
    /// Connection string without secrets, of the last version.
    pub uri: String,
}

/// Names of the counts.
const COUNTS: [&str; 9] = [
    "range size",
    "point selects",
    "simple ranges",
    "sum ranges",
    "order ranges",
    "distinct ranges",
    "index updates",
    "non index updates",
    "inserts",
];

fn block(lines: &[String], rule: usize, behind: &[&str]) -> String {
    let rule = "-".repeat(rule);
    let all = ["Application Parameters", &rule].into_iter().chain(lines.iter().map(String::as_str));
    let behind = behind.iter().map(|line| if line.is_empty() { rule.as_str() } else { line });
    all.chain(behind).map(|line| thread_line("main", line)).collect()
}

/// Message of the last version about its driver's log.
const QUIET_DRIVER: &str = "setting mongodb driver log level to WARNING";

impl LoadHeader {
    /// The lines.
    pub fn text(&self) -> String {
        let mut lines = vec![
            format!("  {} collections", self.collections),
            format!("  database name = {}", self.database),
            format!("  {} writer thread(s)", self.loaders),
            format!("  {} documents per collection", Thousands(u64::from(self.documents))),
            format!("  Documents Per Insert = {}", self.batch),
            format!("  Feedback every {} seconds(s)", self.feedback_seconds),
            format!("  Feedback every {} inserts(s)", self.feedback_inserts),
            format!("  logging to file {}", self.table),
        ];
        match self.wording {
            Wording::Head => {
                lines.push(format!("  connection string = {}", self.uri));
                block(&lines, 50, &[QUIET_DRIVER, ""])
            }
            Wording::Y2015 => {
                let [concern, server, user] = &self.old;
                lines.push(format!("  write concern = {concern}"));
                lines.push(format!("  Server:Port = {server}"));
                lines.push(format!("  Username = {user}"));
                block(&lines, 50, &[""])
            }
        }
    }
}

impl ExecuteHeader {
    /// The lines.
    pub fn text(&self) -> String {
        let named = |name: &str, value: &str| format!("  {name:<24} = {value}");
        let mut lines = vec![
            named("collections", &self.collections.to_string()),
            named("database name", &self.database),
            named("writer threads", &self.writers.to_string()),
            named("documents per collection", &Thousands(u64::from(self.documents)).to_string()),
            named("feedback seconds", &self.feedback_seconds.to_string()),
            named("log file", &self.table),
        ];
        let [auto_commit, concern, server, user] = &self.old;
        let old = self.wording == Wording::Y2015;
        if old {
            lines.push(named("auto commit", auto_commit));
        }
        lines.push(named("run seconds", &self.run_seconds.to_string()));
        lines.extend(
            COUNTS.iter().zip(self.counts).map(|(name, n)| named(&format!("oltp {name}"), &n.to_string())),
        );
        if old {
            lines.push(named("write concern", concern));
        }
        lines.push(named("maximum tps (global)", &self.tps[0].to_string()));
        lines.push(named("maximum tps (per thread)", &self.tps[1].to_string()));
        if old {
            lines.push(format!("  Server:Port = {server}"));
        }
        lines.push(named("seed", &self.seed.to_string()));
        lines.push(if old { named("userName", user) } else { named("uri", &self.uri) });
        block(&lines, 97, if old { &[""] } else { &["", QUIET_DRIVER] })
    }
}
