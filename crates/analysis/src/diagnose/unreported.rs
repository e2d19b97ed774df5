//! Rules that could not be applied, because the server does not report what they look at.

use super::facts::database::SOURCE;
use super::facts::{MONGODB, mongod_version};
use super::rules::NEEDS_OF_MONGODB;
use dyno_rundir::RunDir;
use dyno_rundir::monitor::Recording;
use dyno_types::mongod::counters::find_figure;

/// Says which rules on MongoDB could not be applied to a run, and which figures of the server's they lack. Nothing is said of
/// a run without monitors, of another database, and of what a version does not have at all.
pub fn unreported_figures(run: &RunDir, recording: Option<&Recording>) -> Vec<String> {
    let Some(recording) = recording.filter(|_| run.run.database.starts_with(MONGODB)) else {
        return Vec::new();
    };
    let nodes: Vec<&str> = recording.source_names().filter(|source| source.starts_with(SOURCE)).collect();
    if nodes.is_empty() {
        let rules: Vec<&str> = NEEDS_OF_MONGODB.iter().map(|(rule, _)| *rule).collect();
        return vec![format!(
            "the server's serverStatus was not recorded: the rules {} could not be applied",
            rules.join(", ")
        )];
    }
    let is_recorded = |series: &str| {
        let below = format!("{series}.");
        let has = |name: &str| name == series || name.starts_with(&below);
        nodes.iter().any(|node| recording.series_names(node).any(has))
    };
    let version = mongod_version(run);
    let lacks = |series: &&str| {
        let figure = find_figure(series)?;
        let came_later = version.zip(figure.since).is_some_and(|(version, since)| version < since);
        (!came_later && !is_recorded(series)).then(|| figure.paths.join(" or "))
    };
    let mut all = Vec::new();
    for (rule, needs) in NEEDS_OF_MONGODB {
        let missing: Vec<String> = needs.iter().filter_map(lacks).collect();
        if !missing.is_empty() {
            all.push(format!(
                "the rule {rule} could not be applied: the server does not report {}",
                missing.join(", ")
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::made::{SyntheticRun, SyntheticRunParts};
    use super::*;
    use dyno_rundir::monitor::Kind::{Counter, Gauge};
    use dyno_types::mongod::counters::*;

    fn run(database: &str) -> SyntheticRun {
        let client = "\"users\": 8, \"pipeline\": 1, \"threads\": 2, \"busy_share\": 0.3";
        SyntheticRun::new(SyntheticRunParts { database, client, cores: "0", ..SyntheticRunParts::default() })
    }

    fn recording(without: &[&str]) -> Recording {
        let mut recording = Recording::new();
        let all = [
            (CACHE_LIMIT_BYTES, Gauge),
            (CACHE_DIRTY_BYTES, Gauge),
            (CACHE_EVICTED_BY_USERS, Counter),
            ("tickets.read.out", Gauge),
            (QUEUE_TOTAL, Gauge),
            (WRITE_CONFLICTS, Counter),
            (SCANNED_DOCUMENTS, Counter),
            (DOCUMENTS_RETURNED, Counter),
            (JOURNAL_SYNC_US, Counter),
        ];
        let rows = all.into_iter().filter(|(name, _)| !without.contains(name));
        recording.push("database", 0.0, rows.map(|(name, kind)| (name, kind, 1.0)));
        recording
    }

    #[test]
    fn a_rule_without_its_counter_is_named() {
        let made = run("MongoDB 4.0.28");
        assert!(
            unreported_figures(&made.run, Some(&recording(&[]))).is_empty(),
            "no flow control before 4.2"
        );
        let made = run("MongoDB 8.2.0");
        let said = unreported_figures(&made.run, Some(&recording(&[CACHE_EVICTED_BY_USERS])));
        assert_eq!(
            said,
            [
                "the rule cache_eviction could not be applied: the server does not report \
                 wiredTiger.cache.pages evicted by application threads or \
                 wiredTiger.cache.page evict attempts by application threads",
                "the rule flow_control could not be applied: the server does not report \
                 flowControl.timeAcquiringMicros",
            ]
        );
    }

    #[test]
    fn a_server_that_refuses_its_status_is_named_and_another_database_is_not() {
        let nothing = Recording::new();
        let said = unreported_figures(&run("MongoDB 7.0.1").run, Some(&nothing));
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("cache_eviction, tickets"), "{said:?}");
        for (database, recording) in
            [("Redis 7", Some(&nothing)), ("FerretDB 1.24.2", Some(&nothing)), ("MongoDB 7", None)]
        {
            assert!(unreported_figures(&run(database).run, recording).is_empty(), "{database}");
        }
    }
}
