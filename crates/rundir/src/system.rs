//! The `system` section of `environment.json`: facts by group, their hash, and how two of them differ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Facts: group, name, value.
pub type SystemFacts = BTreeMap<String, BTreeMap<String, String>>;

/// Setup of a host. What could not be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// SHA-256 of `facts` as canonical JSON: keys sorted, no white space.
    pub hash: String,
    /// Facts that stay as they are until an administrator changes them.
    pub facts: SystemFacts,
    /// Facts that change by themselves (free memory, load, clock rates, neighbours); not part of the hash.
    pub volatile: SystemFacts,
}

/// One fact that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Group.
    pub group: String,
    /// Name.
    pub name: String,
    /// In the first; absent if it was not known there.
    pub first: Option<String>,
    /// In the second.
    pub second: Option<String>,
}

impl System {
    /// With the hash of the facts.
    pub fn new(facts: SystemFacts, volatile: SystemFacts) -> Self {
        // Maps are sorted, and texts have one form: what is written is canonical.
        let canonical = serde_json::to_string(&facts).unwrap_or_default();
        System { hash: hex::encode(Sha256::digest(canonical.as_bytes())), facts, volatile }
    }

    /// Facts that are not the same; what changes by itself is not compared.
    pub fn list_differences(&self, other: &System) -> Vec<Difference> {
        let keys = |system: &System| -> Vec<(String, String)> {
            let all = system.facts.iter();
            all.flat_map(|(group, facts)| facts.keys().map(|name| (group.clone(), name.clone()))).collect()
        };
        let all: BTreeSet<(String, String)> = keys(self).into_iter().chain(keys(other)).collect();
        let of = |system: &System, group: &str, name: &str| system.facts.get(group)?.get(name).cloned();
        all.into_iter()
            .map(|(group, name)| {
                let (first, second) = (of(self, &group, &name), of(other, &group, &name));
                Difference { group, name, first, second }
            })
            .filter(|one| one.first != one.second)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(list: &[(&str, &str, &str)]) -> SystemFacts {
        let mut facts = SystemFacts::new();
        for (group, name, value) in list {
            facts.entry((*group).into()).or_default().insert((*name).into(), (*value).into());
        }
        facts
    }

    #[test]
    fn the_hash_is_of_the_facts_alone() {
        let one = System::new(facts(&[("vm", "swappiness", "1")]), facts(&[("host", "load", "1")]));
        let two = System::new(facts(&[("vm", "swappiness", "1")]), facts(&[("host", "load", "2")]));
        assert_eq!(one.hash, two.hash);
        // printf '{"vm":{"swappiness":"1"}}' | sha256sum
        assert_eq!(one.hash, "642862002d216b4cea7815a3ff42041bf8ca7dd571893a1481c2e3de0cdca31f");
        assert_ne!(one.hash, System::new(facts(&[("vm", "swappiness", "2")]), SystemFacts::new()).hash);
    }

    #[test]
    fn differences_have_both_sides() {
        let one =
            System::new(facts(&[("a", "x", "1"), ("a", "y", "1"), ("b", "z", "1")]), SystemFacts::new());
        let two =
            System::new(facts(&[("a", "x", "1"), ("a", "y", "2"), ("c", "z", "1")]), SystemFacts::new());
        let found = one.list_differences(&two);
        let shown: Vec<_> =
            found.iter().map(|d| (d.name.as_str(), d.first.is_some(), d.second.is_some())).collect();
        assert_eq!(shown, [("y", true, true), ("z", true, false), ("z", false, true)]);
    }
}
