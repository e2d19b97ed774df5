//! Results as JUnit XML, the form in which CI systems read tests.
//!
//! `run` makes a suite of a run, `experiment` one of each of an experiment's runs, and `comparison::junit` one of each
//! comparison. Where the exit code says that a run failed, missed or is invalid, the document has a failure or an error.

mod experiment;
mod run;
#[cfg(test)]
mod tests;

pub use experiment::of_experiment;
pub use run::{failed_suite, of_run};

use std::fmt::Write as _;

/// A document: everything that one command has made.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Name.
    pub name: String,
    /// Suites, in order.
    pub suites: Vec<Suite>,
}

/// One run, or one comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suite {
    /// Name; also the class of its cases. CI systems follow a case from build to build by class and name.
    pub name: String,
    /// Begin, RFC 3339 in UTC; empty where there is none.
    pub started: String,
    /// Facts: name and value.
    pub properties: Vec<(&'static str, String)>,
    /// Cases, in order.
    pub cases: Vec<Case>,
}

/// One test case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Name.
    pub name: String,
    /// Length, seconds. CI systems add it up: only the case of the run itself has one.
    pub seconds: f64,
    /// End.
    pub end: End,
    /// What else is to be said; empty: nothing.
    pub output: String,
}

/// End of a test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It holds.
    Passed,
    /// It does not hold: the kind and why.
    Failure(&'static str, String),
    /// It could not be found out: the kind and why.
    Error(&'static str, String),
    /// It does not count, and why.
    Skipped(String),
}

impl Case {
    /// One that takes no time.
    pub fn new(name: String, end: End) -> Self {
        Case { name, seconds: 0.0, end, output: String::new() }
    }
}

/// Cases that ended in one way.
#[derive(Clone, Copy, Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    seconds: f64,
}

impl Counts {
    fn of<'a>(cases: impl Iterator<Item = &'a Case>) -> Self {
        let mut counts = Counts::default();
        for case in cases {
            counts.tests += 1;
            counts.seconds += case.seconds;
            match case.end {
                End::Passed => {}
                End::Failure(..) => counts.failures += 1,
                End::Error(..) => counts.errors += 1,
                End::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }

    fn attributes(self) -> String {
        let Counts { tests, failures, errors, skipped, seconds } = self;
        format!(
            "tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{seconds:.3}\""
        )
    }
}

impl Document {
    /// Returns whether nothing in it has failed.
    pub fn passed(&self) -> bool {
        let counts = Counts::of(self.suites.iter().flat_map(|suite| &suite.cases));
        counts.failures == 0 && counts.errors == 0
    }

    /// The document as XML.
    pub fn xml(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let counts = Counts::of(self.suites.iter().flat_map(|suite| &suite.cases));
        // Writing to a string does not fail.
        let _ = writeln!(out, "<testsuites name=\"{}\" {}>", attribute(&self.name), counts.attributes());
        self.suites.iter().for_each(|suite| write_suite(&mut out, suite));
        out.push_str("</testsuites>\n");
        out
    }
}

fn write_suite(out: &mut String, suite: &Suite) {
    let name = attribute(&suite.name);
    let counts = Counts::of(suite.cases.iter()).attributes();
    // The schema of Ant knows neither zone nor fractions.
    let started =
        suite.started.get(..19).map_or(String::new(), |at| format!(" timestamp=\"{}\"", attribute(at)));
    let _ = writeln!(out, "  <testsuite name=\"{name}\" {counts}{started}>");
    if !suite.properties.is_empty() {
        out.push_str("    <properties>\n");
        for (name, value) in &suite.properties {
            let _ = writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", attribute(value));
        }
        out.push_str("    </properties>\n");
    }
    for case in &suite.cases {
        let Case { name: case_name, seconds, end, output } = case;
        let head =
            format!("<testcase classname=\"{name}\" name=\"{}\" time=\"{seconds:.3}\"", attribute(case_name));
        if *end == End::Passed && output.is_empty() {
            let _ = writeln!(out, "    {head}/>");
            continue;
        }
        let _ = writeln!(out, "    {head}>");
        match end {
            End::Passed => {}
            End::Failure(kind, why) => element(out, "failure", kind, why),
            End::Error(kind, why) => element(out, "error", kind, why),
            End::Skipped(why) => {
                let _ = writeln!(out, "      <skipped message=\"{}\"/>", attribute(why));
            }
        }
        if !output.is_empty() {
            let _ = writeln!(out, "      <system-out>{}</system-out>", esc(output));
        }
        out.push_str("    </testcase>\n");
    }
    out.push_str("  </testsuite>\n");
}

/// A failure or an error: its first line stands in the attribute that lists show.
fn element(out: &mut String, name: &str, kind: &str, why: &str) {
    let first = why.lines().next().unwrap_or_default();
    let _ =
        writeln!(out, "      <{name} type=\"{kind}\" message=\"{}\">{}</{name}>", attribute(first), esc(why));
}

/// Text in a quoted attribute.
fn attribute(text: &str) -> String {
    // As they are they would be read as spaces.
    esc(text).replace('\n', "&#10;").replace('\t', "&#9;")
}

/// Text between tags. XML 1.0 has no form for most control characters: they become U+FFFD.
fn esc(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            // As it is it would be read as a line feed.
            '\r' => out.push_str("&#13;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
