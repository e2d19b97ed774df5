//! Links.

use super::rule::{CPU_IDLE, FEWER, Rule, SMALLER, Unit, fact_above, fact_below};

/// The rules.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "bandwidth",
        claim: "the network's bandwidth limits it",
        needs: &[
            fact_above(
                "network.bytes_per_s",
                100_000.0,
                Unit::Number,
                "{} bytes a second through the busiest interface",
            ),
            fact_below("network.variation", 0.05, Unit::Share, "at a rate that varies by only {}"),
            fact_above("closed.users", 4.0, Unit::Number, "{} users have an operation under way each"),
            fact_below("client.busy", 0.6, Unit::Share, "and load threads are busy {} of the time"),
        ],
        supports: &[
            fact_above("network.retransmitted", 0.001, Unit::Share, "{} of the segments were sent again"),
            fact_below("server.cpu_of_limit", 0.6, Unit::Share, "the server's CPU is used to {}"),
            CPU_IDLE,
        ],
        against: &[
            fact_above("pressure.io", 0.2, Unit::Share, "tasks wait for a disk {} of the time"),
            fact_above("server.cpu_of_limit", 0.9, Unit::Share, "the server's CPU is used to {}"),
        ],
        confidence: 0.65,
        advice: "a faster link, smaller records, fewer fields, or compression",
        experiment: SMALLER,
    },
    Rule {
        name: "network_loss",
        claim: "segments are lost on the way: TCP waits and sends them again",
        needs: &[
            fact_above("network.retransmitted", 0.001, Unit::Share, "{} of the segments were sent again"),
            fact_above("network.retransmitted_per_s", 1.0, Unit::Number, "{} segments a second"),
        ],
        supports: &[fact_above(
            "network.drops_per_s",
            1.0,
            Unit::Number,
            "{} packets a second are dropped here",
        )],
        against: &[],
        confidence: 0.45,
        advice: "look at the drops of the cards and of what lies between them; clouds drop beyond an allowance",
        experiment: FEWER,
    },
];
