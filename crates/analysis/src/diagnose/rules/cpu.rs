//! Processors: quotas, single threads, neighbours.

use super::rule::{AGAIN, FEWER, Rule, SMALLER, SuggestedExperiment, Unit, fact_above, fact_below};

/// The rules.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "cpu_quota",
        claim: "the server's CPU quota limits it: its control group is throttled",
        needs: &[fact_above(
            "server.throttled",
            0.05,
            Unit::Share,
            "the server's threads are held back for {} of the time",
        )],
        supports: &[
            fact_above("server.throttled_periods", 0.2, Unit::Share, "in {} of the scheduling periods"),
            fact_above("server.pressure.cpu", 0.1, Unit::Share, "its tasks wait for a CPU {} of the time"),
        ],
        against: &[fact_below("server.cores", 0.02, Unit::Number, "yet it uses only {} cores")],
        confidence: 0.85,
        advice: "raise the quota, or compare engines under the same one on purpose",
        experiment: FEWER,
    },
    Rule {
        name: "single_core",
        claim: "one core of the server limits it: it does its work in a single thread",
        needs: &[
            fact_above(
                "server.thread_share",
                0.9,
                Unit::Share,
                "the server keeps its one thread busy {} of the time",
            ),
            fact_below("server.throttled", 0.05, Unit::Share, "it is held back by no quota ({})"),
        ],
        supports: &[fact_above(
            "closed.queue",
            1.5,
            Unit::Number,
            "{} operations wait for each one in service",
        )],
        against: &[fact_above(
            "client.busy",
            0.9,
            Unit::Share,
            "the client's load threads are busy {} of the time",
        )],
        confidence: 0.75,
        advice: "spread the keys over several instances or a cluster, use threads for I/O, or pipeline",
        experiment: FEWER,
    },
    Rule {
        name: "server_cpu",
        claim: "the server's host has no CPU left",
        needs: &[
            fact_above("host.cpu.busy", 0.9, Unit::Share, "the host's CPU is busy {} of the time"),
            fact_above("server.cpu_share", 0.6, Unit::Share, "and the server takes {} of it"),
        ],
        supports: &[fact_above("pressure.cpu", 0.1, Unit::Share, "tasks wait for a CPU {} of the time")],
        against: &[fact_above(
            "client.busy",
            0.85,
            Unit::Share,
            "the client's load threads are busy {} of the time",
        )],
        confidence: 0.6,
        advice: "more or faster cores, or fewer things on this host",
        experiment: FEWER,
    },
    Rule {
        name: "others",
        claim: "other processes on this host take CPU time that server and client want",
        needs: &[
            fact_above("host.cpu.busy", 0.9, Unit::Share, "the host's CPU is busy {} of the time"),
            fact_above("host.cpu.others", 0.2, Unit::Share, "{} of it goes to neither server nor client"),
        ],
        supports: &[
            fact_above("pressure.cpu", 0.3, Unit::Share, "tasks wait for a CPU {} of the time"),
            fact_above(
                "server.cores",
                0.25,
                Unit::Number,
                "while the server wants more than the {} cores it gets",
            ),
        ],
        against: &[],
        confidence: 0.7,
        advice: "end them, or give server and client cores of their own; do not reuse this result: the host was busy",
        experiment: SuggestedExperiment {
            option: "--duration",
            factor: 2.0,
            expect: "repeat this on a quiet host; it should be faster",
        },
    },
    Rule {
        name: "steal",
        claim: "neighbours on the same machine take CPU time away",
        needs: &[fact_above("host.cpu.steal", 0.03, Unit::Share, "the hypervisor took {} of the CPU time")],
        supports: &[],
        against: &[],
        confidence: 0.6,
        advice: "a dedicated machine, or more repetitions spread over the day",
        experiment: SuggestedExperiment {
            option: "--duration",
            factor: 2.0,
            expect: "the share taken away stays",
        },
    },
    Rule {
        name: "interrupts",
        claim: "one core limits it that handles the network's interrupts",
        needs: &[
            fact_above(
                "host.softirq_core",
                0.7,
                Unit::Share,
                "one core spends {} of its time in soft interrupts",
            ),
            fact_below("host.cpu.busy", 0.7, Unit::Share, "while all cores together are busy {} of the time"),
        ],
        supports: &[fact_above("network.drops_per_s", 1.0, Unit::Number, "{} packets a second are dropped")],
        against: &[],
        confidence: 0.6,
        advice: "spread the queues of the network card over more cores (RPS, RSS, irqbalance)",
        experiment: SMALLER,
    },
    Rule {
        name: "frequency",
        claim: "the processor runs below its nominal clock rate under load",
        needs: &[
            fact_below("host.frequency", 0.9, Unit::Share, "the mean clock rate is {} of the nominal one"),
            fact_above("host.cpu.busy", 0.5, Unit::Share, "while the CPU is busy {} of the time"),
        ],
        supports: &[fact_above(
            "host.thermal_per_s",
            0.0,
            Unit::Number,
            "{} thermal throttling events a second",
        )],
        against: &[],
        confidence: 0.5,
        advice: "governor performance, better cooling, or a look at the power limit",
        experiment: AGAIN,
    },
    Rule {
        name: "numa",
        claim: "memory of the other node is used: pages are far from the cores that want them",
        needs: &[fact_above(
            "host.numa_remote",
            0.2,
            Unit::Share,
            "{} of the pages were given by another node",
        )],
        supports: &[fact_above("server.cpu_of_limit", 0.8, Unit::Share, "the server's CPU is used to {}")],
        against: &[],
        confidence: 0.45,
        advice: "place server and memory on one node (server.placement), or interleave on purpose",
        experiment: FEWER,
    },
];
