//! The cases: named, immutable records of what they overwrite, in both readings, and the names they go by.

use dyno_types::suggest;
use std::fmt;

/// Version of the framework that is meant: "write" means inserts in 23.3 and updates in 25, and defaults differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// v23.3, whose description is the best known.
    #[default]
    V23 = 0,
    /// The line of 2025 and later.
    V25 = 1,
}

impl Reading {
    /// From `23.3` or `25`, also with `wsf-` before it.
    pub fn from_name(text: &str) -> Option<Reading> {
        match text.strip_prefix("wsf-").unwrap_or(text) {
            "23.3" => Some(Reading::V23),
            "25" => Some(Reading::V25),
            _ => None,
        }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Reading::V23 => "23.3",
            Reading::V25 => "25",
        })
    }
}

/// Values that a case overwrites, by name.
pub type Overwrites = &'static [(&'static str, &'static str)];

/// A case.
#[derive(Clone, Copy, Debug)]
pub struct WsfCase {
    /// Suffix of the test's name.
    pub name: &'static str,
    /// In a line.
    pub about: &'static str,
    /// Readings 23.3 and 25; `None` where the case does not exist.
    overwrites: [Option<Overwrites>; 2],
    /// The same where the original's departures from its own description are kept.
    faithful: [Option<Overwrites>; 2],
    /// True if it is registered as a test, and so found by `-R`.
    pub registered: bool,
}

impl WsfCase {
    /// Returns the values that it overwrites in a reading; `None` where it does not exist.
    pub fn overwrites(&self, reading: Reading, faithful: bool) -> Option<Overwrites> {
        let at = reading as usize;
        self.faithful[at].filter(|_| faithful).or(self.overwrites[at])
    }
}

macro_rules! mix {
    ($read:literal, $update:literal, $insert:literal $(, $name:literal = $value:literal)*) => {
        &[
            ("READ_PROPORTION", $read),
            ("UPDATE_PROPORTION", $update),
            ("INSERT_PROPORTION", $insert),
            ("SCAN_PROPORTION", "0"),
            $(($name, $value)),*
        ]
    };
}

const NINE_TO_ONE: Overwrites = mix!("0.90", "0.10", "0");

/// The seed's window, five minutes from the fifth on, in a run phase that holds it.
const PKM: Overwrites = mix!(
    "0.90",
    "0.10",
    "0",
    "OPERATION_COUNT" = "0",
    "MAX_EXECUTION_TIME" = "600",
    "EVENT_TRACE_PARAMS" = "time,300,300"
);

const GATED: Overwrites = mix!(
    "0.90",
    "0.10",
    "0",
    "THREADS" = "1",
    "OPERATION_COUNT" = "10000",
    "RECORD_COUNT" = "1000",
    "INSERT_START" = "0",
    "INSERT_COUNT" = "0",
    "CLIENT_SERVER_PAIR" = "1",
    "CLIENT_COUNT" = "1"
);

const fn case(name: &'static str, about: &'static str, overwrites: [Option<Overwrites>; 2]) -> WsfCase {
    WsfCase { name, about, overwrites, faithful: [None, None], registered: true }
}

/// All cases.
pub const CASES: [WsfCase; 8] = [
    case(
        "gated",
        "checks that everything works: 1,000 records, 10,000 operations",
        [Some(GATED), Some(GATED)],
    ),
    WsfCase {
        faithful: [Some(&[]), Some(&[])],
        ..case(
            "pkm",
            "90 % reads, 10 % updates for ten minutes, traced from the fifth on",
            [Some(PKM), Some(PKM)],
        )
    },
    case("90read10update", "90 % reads, 10 % updates", [Some(NINE_TO_ONE), Some(NINE_TO_ONE)]),
    case(
        "30write70read",
        "70 % reads, 30 % writes: inserts in 23.3, updates in 25",
        [Some(mix!("0.70", "0", "0.30")), Some(mix!("0.70", "0.30", "0"))],
    ),
    case(
        "write",
        "nothing but writes: inserts in 23.3, updates in 25",
        [Some(mix!("0", "0", "1.0")), Some(mix!("0", "1.0", "0"))],
    ),
    case("read", "nothing but reads", [Some(mix!("1.0", "0", "0")), Some(mix!("1.0", "0", "0"))]),
    case("50read50update", "half reads, half updates (reading 25)", [None, Some(mix!("0.50", "0.50", "0"))]),
    WsfCase {
        registered: false,
        ..case(
            "30write60read10insert",
            "shares that sum to 1.1, as the original has them (reading 25)",
            [None, Some(mix!("0.70", "0.30", "0.10"))],
        )
    },
];

/// A case, as a name chose it.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// The case.
    pub case: &'static WsfCase,
    /// The reading that the name says, such as `wsf-23.3/write`.
    pub reading: Option<Reading>,
}

/// A name that chooses no case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaseError {
    /// The version before the slash is none.
    #[error("{text}: {version:?} is no reading; expected wsf-23.3 or wsf-25")]
    NoReading {
        /// As typed.
        text: String,
        /// The version.
        version: String,
    },
    /// No case has this name.
    #[error("{text:?} is no case{hint}; cases: {}", CASES.map(|case| case.name).join(", "))]
    NoCase {
        /// As typed.
        text: String,
        /// The nearest case, as a question; empty if none is near.
        hint: String,
    },
}

/// Finds a case by any of its names: `write`, `wsf-23.3/write`, `mongodb_ycsb_write`, `test_mongodb_ycsb_write`,
/// `test_static_ycsb_mongodb441_base_write`.
pub fn choose(text: &str) -> Result<Chosen, CaseError> {
    let (reading, name) = match text.split_once('/') {
        Some((version, name)) => match Reading::from_name(version) {
            Some(reading) => (Some(reading), name),
            None => return Err(CaseError::NoReading { text: text.to_owned(), version: version.to_owned() }),
        },
        None => (None, text),
    };
    let bare = name.strip_prefix("test_").unwrap_or(name);
    let suffix = match bare.split_once("_base_") {
        Some((workload, case)) if workload.contains("mongodb") => case,
        _ => bare.strip_prefix("mongodb_ycsb_").unwrap_or(bare),
    };
    let found = CASES.iter().find(|case| case.name == suffix);
    let Some(case) = found else {
        let hint = suggest::hint(suffix, CASES.iter().map(|case| case.name));
        return Err(CaseError::NoCase { text: text.to_owned(), hint });
    };
    Ok(Chosen { case, reading })
}

/// Names under which a case is found by a pattern, the plainest first.
pub fn names(case: &WsfCase) -> [String; 4] {
    let name = case.name;
    [
        format!("test_mongodb_ycsb_{name}"),
        format!("mongodb_ycsb_{name}"),
        format!("test_ycsb_mongodb441_base_{name}"),
        format!("test_static_ycsb_mongodb441_base_{name}"),
    ]
}
