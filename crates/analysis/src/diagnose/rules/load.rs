//! The load itself: whether it met a server, its client and its users.

use super::rule::{CPU_IDLE, MORE, Rule, STAYS, THREADS, Unit, fact_above, fact_below};

/// The rules.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "gone",
        claim: "the server was not there: it ended, hung, or could not be reached",
        needs: &[fact_above("server.gone_share", 0.05, Unit::Share, "nothing succeeded for {} of the time")],
        supports: &[],
        against: &[],
        confidence: 0.95,
        advice: "look into the server's log for why it stopped: memory limit, crash, restart; other figures are of the rest",
        experiment: STAYS,
    },
    Rule {
        name: "client",
        claim: "the client limits the run, not the database: its load threads are saturated",
        needs: &[fact_above("client.busy", 0.85, Unit::Share, "load threads are busy {} of the time")],
        supports: &[
            fact_above(
                "client.lag_share",
                0.1,
                Unit::Share,
                "replies wait in the client for {} of the service time",
            ),
            fact_below("server.cpu_of_limit", 0.7, Unit::Share, "while the server's CPU is used to {}"),
        ],
        against: &[fact_above(
            "server.thread_share",
            0.95,
            Unit::Share,
            "the server's one thread is busy {} of the time",
        )],
        confidence: 0.6,
        advice: "add load threads or workers: the figures say nothing of the server",
        experiment: THREADS,
    },
    Rule {
        name: "few_users",
        claim: "users limit it: each waits for its own reply, and nothing is saturated",
        needs: &[
            fact_above("closed.users", 0.0, Unit::Number, "{} users, each with one operation under way"),
            fact_below("server.cpu_of_limit", 0.75, Unit::Share, "the server's CPU is used to {}"),
            fact_below("client.busy", 0.75, Unit::Share, "load threads are busy {} of the time"),
            fact_below("closed.queue", 1.0, Unit::Number, "{} operations wait for each one in service"),
        ],
        supports: &[CPU_IDLE],
        against: &[
            fact_above("pressure.io", 0.2, Unit::Share, "tasks wait for a disk {} of the time"),
            fact_above("server.throttled", 0.02, Unit::Share, "the server is held back {} of the time"),
        ],
        confidence: 0.55,
        advice: "more users, or an open loop with a rate",
        experiment: MORE,
    },
];
