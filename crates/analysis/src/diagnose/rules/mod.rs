//! The rules, as a table: a change of a threshold is a change of a line.

mod change;
mod cpu;
mod database;
mod load;
mod network;
pub(super) mod rule;
mod storage;

pub use database::{ADVICE_ADJUSTED, NEEDS_OF_MONGODB};

use rule::Rule;

/// All rules, by room.
const RULES: [&[Rule]; 6] =
    [change::RULES, cpu::RULES, storage::RULES, network::RULES, database::RULES, load::RULES];

/// Every rule.
pub fn all_rules() -> impl Iterator<Item = &'static Rule> {
    RULES.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let mut names: Vec<&str> = all_rules().map(|rule| rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all_rules().count());
        for (name, _) in NEEDS_OF_MONGODB {
            assert!(names.binary_search(name).is_ok(), "{name}");
        }
        for rule in all_rules() {
            assert!(!rule.needs.is_empty() && (0.0..1.0).contains(&rule.confidence), "{}", rule.name);
            for test in rule.needs.iter().chain(rule.supports).chain(rule.against) {
                assert!(test.message.contains("{}"), "{}", test.message);
                assert!(super::super::facts::figures::KNOWN.contains(&test.fact), "{}", test.fact);
            }
        }
    }
}
