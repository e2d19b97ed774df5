//! Runs the cases of a suite and compares what fails with the list of deviations.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;

/// What a case expects and dyno does not do.
#[derive(Debug)]
pub struct Mismatch(pub String);

/// Result of one case.
pub type Checked = Result<(), Mismatch>;

/// A suite: the name of its data, and how one of its cases is checked.
pub struct Suite {
    /// Name of its file below `data`, without `.json`.
    pub name: &'static str,
    data: &'static str,
    check: fn(&Value, &Value) -> Checked,
}

/// The suites, in the order of the documentation.
pub const SUITES: [Suite; 10] = [
    Suite {
        name: "connection-string",
        data: include_str!("data/connection-string.json"),
        check: crate::uris::check,
    },
    Suite { name: "uri-options", data: include_str!("data/uri-options.json"), check: crate::uris::check },
    Suite { name: "auth", data: include_str!("data/auth.json"), check: crate::auth::check },
    Suite {
        name: "auth-conversations",
        data: include_str!("data/auth-conversations.json"),
        check: crate::conversations::check,
    },
    Suite {
        name: "initial-dns-seedlist-discovery",
        data: include_str!("data/initial-dns-seedlist-discovery.json"),
        check: crate::seedlist::check,
    },
    Suite {
        name: "read-write-concern",
        data: include_str!("data/read-write-concern.json"),
        check: crate::concerns::check,
    },
    Suite {
        name: "bson-corpus",
        data: include_str!("data/bson-corpus.json"),
        check: crate::bson_corpus::check,
    },
    Suite {
        name: "server-discovery-and-monitoring",
        data: include_str!("data/server-discovery-and-monitoring.json"),
        check: crate::discovery::check,
    },
    Suite {
        name: "server-selection",
        data: include_str!("data/server-selection.json"),
        check: crate::choice::check,
    },
    Suite { name: "retries", data: include_str!("data/retries.json"), check: crate::retries::check },
];

/// Number of cases, and of deviations of each kind.
pub struct Totals {
    pub cases: usize,
    pub deviations: BTreeMap<String, usize>,
}

impl Totals {
    /// Cases that dyno passes.
    pub fn passed(&self) -> usize {
        self.cases - self.deviations.values().sum::<usize>()
    }
}

/// The list of deviations: `kinds` with their reasons and parts of the messages in which cases fail, `suites` with their
/// cases.
pub fn deviations() -> Value {
    serde_json::from_str(include_str!("data/deviations.json")).unwrap()
}

/// Fails with a mismatch unless `holds`.
pub fn expect(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Mismatch(what())) }
}

/// Returns whether a case that fails with `why` is a deviation of the kind.
fn is_of(kind: &Value, why: &str) -> bool {
    kind["messages"].as_array().unwrap().iter().any(|message| why.contains(message.as_str().unwrap()))
}

/// File and number of a case.
fn id(case: &Value) -> String {
    let number = match &case["case"] {
        Value::String(text) => text.clone(),
        number => number.to_string(),
    };
    format!("{} {number}", case["file"].as_str().unwrap())
}

impl Suite {
    /// The suite of this name.
    pub fn named(name: &str) -> &'static Suite {
        SUITES.iter().find(|suite| suite.name == name).unwrap()
    }

    /// Runs all cases and prints how many pass; fails with those that are not as the list says.
    pub fn run(&self) {
        let totals = self.totals();
        let Totals { cases, deviations } = &totals;
        let line =
            format!("{}: {} of {cases} pass; deviations: {deviations:?}\n", self.name, totals.passed());
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    }

    /// Runs all cases; fails with those that are not as the list says.
    pub fn totals(&self) -> Totals {
        let data: Value = serde_json::from_str(self.data).unwrap();
        let list = deviations();
        let mut listed: BTreeMap<String, String> = list["suites"][self.name]
            .as_object()
            .into_iter()
            .flatten()
            .flat_map(|(kind, ids)| ids.as_array().unwrap().iter().map(move |id| (id, kind)))
            .map(|(id, kind)| (id.as_str().unwrap().to_owned(), kind.clone()))
            .collect();
        let cases = data["cases"].as_array().unwrap();
        let mut totals = Totals { cases: cases.len(), deviations: BTreeMap::new() };
        let mut wrong = Vec::new();
        for case in cases {
            let id = id(case);
            match ((self.check)(case, &data), listed.remove(&id)) {
                (Ok(()), None) => {}
                (Err(Mismatch(why)), Some(kind)) if is_of(&list["kinds"][&kind], &why) => {
                    *totals.deviations.entry(kind).or_default() += 1;
                }
                (Err(Mismatch(why)), Some(kind)) => {
                    wrong.push(format!("{id}: is listed as {kind}, and fails otherwise: {why}"));
                }
                (Ok(()), Some(kind)) => wrong.push(format!("{id}: passes, and is listed as {kind}")),
                (Err(Mismatch(why)), None) => wrong.push(format!("{id}: {why}\n    {case}")),
            }
        }
        wrong.extend(listed.keys().map(|id| format!("{id}: is listed, and there is no such case")));
        assert!(wrong.is_empty(), "{}: {} cases:\n{}", self.name, wrong.len(), wrong.join("\n"));
        totals
    }
}
