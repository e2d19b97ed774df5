//! The Workload Services Framework's Mongo-YCSB workload: cases, variables and `--set`, resolved into experiments. Pure.
//!
//! `cases` are the records, `variables` what can be changed, `sets` the grammar of `--set`, `config` files of sections,
//! `window` windows of traces, `lower` what an experiment file says of it all, `best_known_configs` the best known
//! configurations.
//!
//! ```text
//! default -> environment -> case -> --config sections -> --set  =  value and its source   (resolve)
//! values -> experiment file's text and notes                                              (lower)
//! ```

pub mod best_known_configs;
pub mod cases;
pub mod config;
pub mod lower;
pub mod sets;
pub mod variables;
pub mod window;

#[cfg(test)]
mod deployment_tests;
#[cfg(test)]
mod tests;

use crate::plan::cases::{Reading, WsfCase, names};
use crate::plan::config::Config;
use crate::plan::sets::SetOption;
use crate::plan::variables::{BadValue, VARIABLES, VariableKind, find, switch};
use crate::plan::window::{Window, WindowError};
use dyno_types::suggest;
use std::fmt;

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The reading's default.
    Default,
    /// The case overwrites it.
    Case,
    /// An exported variable.
    Environment,
    /// A section of a file; `shipped` where it comes along.
    Config {
        /// File and section.
        at: String,
        /// True if it is a best known configuration.
        shipped: bool,
    },
    /// `--set`.
    Set,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::Case => f.write_str("case"),
            Source::Environment => f.write_str("environment"),
            Source::Config { at, .. } => f.write_str(at),
            Source::Set => f.write_str("--set"),
        }
    }
}

/// A variable's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The variable.
    pub name: &'static str,
    /// Value; blank means that it is not passed on.
    pub value: String,
    /// Source of the value.
    pub source: Source,
}

/// A case and everything that changes its values.
pub struct CaseRequest<'a> {
    /// The case.
    pub case: &'static WsfCase,
    /// The reading.
    pub reading: Reading,
    /// The name that was typed.
    pub typed: String,
    /// Exported variables.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Configuration files, later ones above earlier ones.
    pub configs: &'a [Config],
    /// `--set`.
    pub sets: &'a [SetOption],
    /// Keep the original's defects where they change what is done.
    pub faithful: bool,
}

/// A case with every variable's value.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The case.
    pub case: &'static WsfCase,
    /// The reading.
    pub reading: Reading,
    /// Values in the order of [`VARIABLES`].
    pub values: Vec<Given>,
    /// Notes on the way to these values.
    pub notes: Vec<String>,
}

impl Resolved {
    /// A variable's value; blank where the reading does not have it.
    pub fn value(&self, name: &str) -> &str {
        self.given(name).map_or("", |given| given.value.as_str())
    }

    /// A variable, if the reading has it.
    pub fn given(&self, name: &str) -> Option<&Given> {
        self.values.iter().find(|given| given.name == name)
    }

    /// Returns whether a switch is on.
    pub fn on(&self, name: &str) -> bool {
        switch(self.value(name)).unwrap_or(false)
    }

    /// A whole number; `None` where it is blank.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value(name).parse().ok()
    }

    /// `wsf-25/write`.
    pub fn full_name(&self) -> String {
        format!("wsf-{}/{}", self.reading, self.case.name)
    }

    /// Suffix of the results' name that tells of changes: nothing, `_withbkc` or `_customized`.
    pub fn suffix(&self) -> &'static str {
        let by = |holds: fn(&Source) -> bool| self.values.iter().any(|given| holds(&given.source));
        let own = |source: &Source| {
            matches!(source, Source::Set | Source::Environment | Source::Config { shipped: false, .. })
        };
        match () {
            () if by(own) => "_customized",
            () if by(|source| matches!(source, Source::Config { shipped: true, .. })) => "_withbkc",
            () => "",
        }
    }
}

/// A case whose variables cannot all be given a value.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The other reading has the case.
    #[error("{case}: reading {reading} has no such case, --reading {other} has")]
    NotInReading {
        /// Name of the case.
        case: &'static str,
        /// The reading asked for.
        reading: Reading,
        /// The one that has it.
        other: Reading,
    },
    /// The other reading has the variable.
    #[error("{at}: {name} is a variable of reading {other} (--reading {other}), not of {reading}")]
    OtherReading {
        /// Source of the setting.
        at: String,
        /// The variable.
        name: String,
        /// The reading that has it.
        other: Reading,
        /// The reading asked for.
        reading: Reading,
    },
    /// No reading has the variable.
    #[error("{at}: {name:?} is no variable of this workload{hint}")]
    NoVariable {
        /// Source of the setting.
        at: String,
        /// The name.
        name: String,
        /// The nearest variable, as a question; empty if none is near.
        hint: String,
    },
    /// A variable does not take its value.
    #[error("{name} ({from}): {source}")]
    Value {
        /// The variable.
        name: &'static str,
        /// Source of the value.
        from: Source,
        /// Values that the variable takes.
        source: BadValue,
    },
    /// The windows of traces are not understood.
    #[error("EVENT_TRACE_PARAMS: {0}")]
    Window(#[source] WindowError),
}

fn unknown(name: &str, reading: Reading, at: &str) -> ResolveError {
    let (at, name) = (at.to_owned(), name.to_owned());
    if let Some(variable) = find(&name) {
        let other = if variable.defaults[0].is_some() { Reading::V23 } else { Reading::V25 };
        return ResolveError::OtherReading { at, name, other, reading };
    }
    let hint = suggest::hint(&name, VARIABLES.iter().map(|variable| variable.name));
    ResolveError::NoVariable { at, name, hint }
}

/// Gives every variable its value for an iteration (from 0) of `--set`.
pub fn resolve(asked: &CaseRequest<'_>, iteration: usize) -> Result<Resolved, ResolveError> {
    let (case, reading) = (asked.case, asked.reading);
    let Some(overwrites) = case.overwrites(reading, asked.faithful) else {
        let other = if reading == Reading::V23 { Reading::V25 } else { Reading::V23 };
        return Err(ResolveError::NotInReading { case: case.name, reading, other });
    };
    let mut all = Resolved { case, reading, values: Vec::new(), notes: Vec::new() };
    for variable in &VARIABLES {
        let Some(default) = variable.default(reading) else {
            if (asked.environment)(variable.name).is_some_and(|value| !value.is_empty()) {
                all.notes.push(unknown(variable.name, reading, "exported, without effect").to_string());
            }
            continue;
        };
        let mut given = Given { name: variable.name, value: default.into(), source: Source::Default };
        let exported = (asked.environment)(variable.name).filter(|value| !value.is_empty());
        // The original assigns the window of traces whatever is exported.
        if let Some(value) = exported.filter(|_| !(asked.faithful && variable.name == "EVENT_TRACE_PARAMS")) {
            given = Given { value, source: Source::Environment, ..given };
        }
        all.values.push(given);
    }
    for (name, value) in overwrites {
        if all.given(name).is_some_and(|given| given.source == Source::Environment) {
            all.notes.push(format!("{name}: the case overwrites what is exported; --set would change it"));
        }
        put(&mut all, name, value, Source::Case, "case")?;
    }
    let mut called = names(case).to_vec();
    called.push(asked.typed.clone());
    for config in asked.configs {
        for (section, name, value) in config.values(&called) {
            let at = format!("{}: {section}", config.path);
            put(&mut all, name, value, Source::Config { at: at.clone(), shipped: config.shipped }, &at)?;
        }
    }
    for set in asked.sets {
        for (name, value) in set.at(iteration) {
            put(&mut all, name, value, Source::Set, "--set")?;
        }
    }
    for given in &all.values {
        let kind = find(given.name).map_or(VariableKind::Text, |variable| variable.kind);
        kind.check(&given.value).map_err(|source| ResolveError::Value {
            name: given.name,
            from: given.source.clone(),
            source,
        })?;
    }
    Window::parse_all(all.value("EVENT_TRACE_PARAMS")).map_err(ResolveError::Window)?;
    Ok(all)
}

fn put(all: &mut Resolved, name: &str, value: &str, source: Source, at: &str) -> Result<(), ResolveError> {
    let reading = all.reading;
    let Some(given) = all.values.iter_mut().find(|given| given.name == name) else {
        return Err(unknown(name, reading, at));
    };
    (given.value, given.source) = (value.to_owned(), source);
    Ok(())
}
