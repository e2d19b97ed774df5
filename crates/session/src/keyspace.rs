//! Number of keys that a workload really asks for. A property that is set wrong can make a whole run hit one record: YCSB's
//! zipfian chooser over a small `insertcount` does.

use dyno_types::Verb;
use dyno_workload::Workload;
use std::collections::BTreeSet;

/// Operations that are looked at.
const LOOKED_AT: u64 = 2_000;

/// Distinct keys that reads, updates, deletes and scans of the first operations address, and the number of records there
/// are; `None` for workloads of documents and commands, whose keys are their own affair, and where nothing but inserts was seen.
pub(crate) fn distinct_keys(workload: &dyn Workload) -> Option<(u64, u64)> {
    let content = workload.content();
    if workload.is_per_user() || !content.shapes().is_empty() || !content.commands().is_empty() {
        return None;
    }
    let frontier = workload.frontier();
    let records = frontier.last()? + 1;
    let mut keys = BTreeSet::new();
    let mut seen = 0;
    for index in 0..LOOKED_AT {
        let request = workload.bind(&workload.draw(index), &frontier);
        if !matches!(request.verb, Verb::Insert | Verb::Document | Verb::Topology) {
            keys.insert(request.key);
            seen += 1;
        }
    }
    (seen >= LOOKED_AT / 20).then_some((keys.len() as u64, records))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_config::settings::{PropertySettings, Source};
    use dyno_workload::ycsb::{CoreConfig, CoreWorkload};

    fn keys(pairs: &[(&str, &str)]) -> Option<(u64, u64)> {
        let mut settings = PropertySettings::new();
        for (key, value) in pairs {
            settings.set_property(key, *value, Source::CommandLine);
        }
        let config = CoreConfig::from_lookup(&mut settings.property_lookup()).unwrap();
        distinct_keys(&CoreWorkload::run(&config).unwrap())
    }

    #[test]
    fn the_trap_of_a_small_insert_count() {
        let zipfian = ("requestdistribution", "zipfian");
        let (many, records) = keys(&[("recordcount", "100000"), zipfian]).unwrap();
        assert!(many > 500 && records == 100_000, "{many}");
        let (few, _) = keys(&[("recordcount", "100000"), ("insertcount", "1"), zipfian]).unwrap();
        assert!(few <= 2, "{few}");
        assert_eq!(
            keys(&[
                ("recordcount", "10"),
                ("insertproportion", "1"),
                ("readproportion", "0"),
                ("updateproportion", "0")
            ]),
            None
        );
    }
}
