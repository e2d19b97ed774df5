//! Rules on what databases report about themselves. Figures of MongoDB follow WiredTiger's own targets: 5 % of the cache dirty is
//! where eviction begins, 20 % where users must evict themselves (MongoDB manual, `eviction_dirty_target` and
//! `eviction_dirty_trigger`).

use super::rule::{FEWER, MORE, Rule, SuggestedExperiment, Unit, fact_above};
use dyno_types::mongod::counters::{
    CACHE_DIRTY_BYTES, CACHE_EVICTED_BY_USERS, CACHE_LIMIT_BYTES, DOCUMENTS_RETURNED, FLOW_CONTROL_WAITED_US,
    JOURNAL_SYNC_US, QUEUE_TOTAL, SCANNED_DOCUMENTS, TICKETS, WRITE_CONFLICTS,
};

/// The rules on MongoDB, and the series without which each cannot be applied.
pub const NEEDS_OF_MONGODB: &[(&str, &[&str])] = &[
    ("cache_eviction", &[CACHE_LIMIT_BYTES, CACHE_DIRTY_BYTES, CACHE_EVICTED_BY_USERS]),
    ("tickets", &[TICKETS, QUEUE_TOTAL]),
    ("write_conflicts", &[WRITE_CONFLICTS]),
    ("collection_scan", &[SCANNED_DOCUMENTS, DOCUMENTS_RETURNED]),
    ("flow_control", &[FLOW_CONTROL_WAITED_US]),
    ("journal", &[JOURNAL_SYNC_US]),
];

/// Advice of the rule `tickets` where the server adjusts their number: from 7.0 on raising it is no remedy.
pub const ADVICE_ADJUSTED: &str = "look for what holds the tickets (disk, eviction, hot documents); the server sets their \
                                   number itself, so raising it is no remedy";

const LONGER: SuggestedExperiment = SuggestedExperiment {
    option: "--duration",
    factor: 2.0,
    expect: "over twice the time the figure keeps its size, if it is a state and no incident",
};

/// The rules.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "cache_eviction",
        claim: "the database's cache limits it: users must evict pages before they can go on",
        needs: &[
            fact_above("cache.dirty_share", 0.05, Unit::Share, "{} of the cache are dirty"),
            fact_above(
                "cache.evicted_by_users_per_op",
                0.001,
                Unit::Number,
                "{} pages for each operation are evicted by users",
            ),
        ],
        supports: &[
            fact_above("cache.used_share", 0.93, Unit::Share, "{} of the cache are in use"),
            fact_above("cache.dirty_share", 0.2, Unit::Share, "{} dirty is beyond the trigger"),
            fact_above("pressure.io", 0.1, Unit::Share, "tasks wait for a disk {} of the time"),
        ],
        against: &[],
        confidence: 0.7,
        advice: "a larger cache, a faster disk, or fewer writes at a time",
        experiment: FEWER,
    },
    Rule {
        name: "tickets",
        claim: "the storage engine's tickets are used up: operations queue in front of it",
        needs: &[
            fact_above("tickets.used_share", 0.95, Unit::Share, "{} of the tickets are taken"),
            fact_above("database.queue", 1.0, Unit::Number, "{} operations wait for a lock or a ticket"),
        ],
        supports: &[fact_above(
            "closed.queue",
            1.5,
            Unit::Number,
            "{} operations wait for each one in service",
        )],
        // It gives out as many as it can use, so that none left is its usual state under load.
        against: &[fact_above(
            "tickets.adjusted_by",
            0.0,
            Unit::Number,
            "MongoDB {} adjusts the number of tickets itself: none left is no sign of a limit alone",
        )],
        confidence: 0.7,
        advice: "look for what holds the tickets (disk, eviction, hot documents) before raising their number",
        experiment: FEWER,
    },
    Rule {
        name: "write_conflicts",
        claim: "hot documents limit it: writers of the same document repeat their work",
        needs: &[fact_above(
            "database.conflicts_per_op",
            0.01,
            Unit::Number,
            "{} write conflicts for each operation",
        )],
        supports: &[],
        against: &[],
        confidence: 0.65,
        advice: "spread the writes over more documents; check that the choice of keys is the wanted one",
        experiment: FEWER,
    },
    Rule {
        name: "collection_scan",
        claim: "queries look at far more documents than they return: an index is missing",
        needs: &[
            fact_above(
                "database.scanned_per_returned",
                10.0,
                Unit::Number,
                "{} documents are looked at for each one returned",
            ),
            fact_above("database.scanned_per_op", 10.0, Unit::Number, "{} for each operation"),
        ],
        supports: &[fact_above("server.cpu_of_limit", 0.8, Unit::Share, "the server's CPU is used to {}")],
        against: &[],
        confidence: 0.7,
        advice: "create the index that the query needs, or ask for fewer documents",
        experiment: FEWER,
    },
    Rule {
        name: "flow_control",
        claim: "flow control holds writes back, because secondaries lag",
        needs: &[fact_above(
            "database.flow_control_share",
            0.05,
            Unit::Share,
            "writers wait {} of the time for flow control",
        )],
        supports: &[],
        against: &[],
        confidence: 0.7,
        advice: "faster secondaries, or a write concern that waits for them on purpose",
        experiment: FEWER,
    },
    Rule {
        name: "key_eviction",
        claim: "memory limits it: the database evicts keys to stay below its limit",
        needs: &[fact_above(
            "database.evicted_per_op",
            0.001,
            Unit::Number,
            "{} keys are evicted for each operation",
        )],
        supports: &[
            fact_above("database.memory_of_limit", 0.95, Unit::Share, "memory stands at {} of its limit"),
            fact_above("database.misses", 0.01, Unit::Share, "{} of the reads find nothing"),
        ],
        against: &[],
        confidence: 0.75,
        advice: "raise maxmemory, or load fewer records: reads of evicted keys are cheaper than reads of records",
        experiment: LONGER,
    },
    Rule {
        name: "snapshot",
        claim: "a snapshot or a rewrite of the log runs beside the load and takes CPU, memory and disk from it",
        needs: &[fact_above("database.saving_share", 0.2, Unit::Share, "one is under way {} of the time")],
        supports: &[
            fact_above("host.cpu.busy", 0.85, Unit::Share, "the host's CPU is busy {} of the time"),
            fact_above("pressure.io", 0.1, Unit::Share, "tasks wait for a disk {} of the time"),
        ],
        against: &[],
        confidence: 0.5,
        advice: "set save points on purpose, and measure long enough to see several",
        experiment: LONGER,
    },
    Rule {
        name: "log_sync",
        claim: "the append-only file limits it: syncs are late, and writes wait for them",
        needs: &[fact_above("database.delayed_syncs_per_s", 0.1, Unit::Number, "{} delayed syncs a second")],
        supports: &[fact_above("pressure.io", 0.1, Unit::Share, "tasks wait for a disk {} of the time")],
        against: &[],
        confidence: 0.65,
        advice: "a disk of its own for the log, or appendfsync as weak as the data allow",
        experiment: FEWER,
    },
    Rule {
        name: "refused_connections",
        claim: "the database refuses connections: its limit of clients is reached",
        needs: &[fact_above("database.refused_per_s", 0.1, Unit::Number, "{} refused connections a second")],
        supports: &[],
        against: &[],
        confidence: 0.7,
        advice: "raise its limit of clients (maxclients, maxIncomingConnections), or use fewer connections",
        experiment: FEWER,
    },
    Rule {
        name: "journal",
        claim: "the journal's syncs limit it: the disk is asked to be sure nearly all the time",
        needs: &[fact_above(
            "journal.sync_share",
            0.7,
            Unit::Share,
            "syncs of the journal take {} of the time",
        )],
        supports: &[fact_above("pressure.io", 0.1, Unit::Share, "tasks wait for a disk {} of the time")],
        against: &[],
        confidence: 0.6,
        advice: "a faster disk for the journal, larger groups, or j: false on purpose",
        experiment: MORE,
    },
];
