//! Every property that something reads: one table for help texts and for the note about unknown properties.

use crate::bindings;
use crate::property::DescribedProperty;
use dyno_workload::ycsb::{Scope, known_properties};

/// Prefixes of properties that other programs or later releases read; they pass without a note.
const FOREIGN: [&str; 1] = ["htrace."];

/// All properties: the client's, the workloads', ours, and those of each binding.
pub fn all() -> Vec<DescribedProperty> {
    let workloads = known_properties().iter().map(|p| DescribedProperty {
        group: match p.scope {
            Scope::Client if p.name.starts_with("basicdb.") => "basic",
            Scope::Client => "client",
            Scope::Core => "core",
            Scope::Dyno | Scope::DynoClient => "dyno",
            Scope::Occupancy => "occupancy",
            Scope::TimeSeries => "timeseries",
            Scope::Economy => "closedeconomy",
        },
        name: p.name.into(),
        default: p.default,
        doc: p.doc.into(),
    });
    workloads.chain(bindings::properties()).collect()
}

/// Returns whether a property with this name belongs to another program.
pub(crate) fn is_foreign(name: &str) -> bool {
    FOREIGN.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_documented() {
        let all = all();
        let names: HashSet<&str> = all.iter().map(|p| p.name.as_ref()).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().all(|p| !p.doc.is_empty() && !p.doc.contains('\n')));
        for name in
            ["fieldcount", "dyno.pipeline", "redis.host", "sqlite.journal", "fjall.path", "basicdb.verbose"]
        {
            assert!(names.contains(name), "{name}");
        }
    }
}
