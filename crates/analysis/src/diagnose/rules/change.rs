//! Causes of a fall of throughput, by what was watched before it and after it.

use super::rule::{AGAIN, CPU_IDLE, FactTest, Rule, Unit, fact_above, fact_below};

/// Throughput has fallen.
const FALL: FactTest =
    fact_below("change.throughput", 0.8, Unit::Share, "throughput falls to {} of what it was");

const DISK_WAITS: FactTest = fact_above(
    "change.waits_for_disk",
    1.5,
    Unit::Factor,
    "tasks wait for a disk {} times as long for each operation as before",
);

/// The rules.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "change_disk_slower",
        claim: "the disk serves less than before",
        needs: &[
            FALL,
            DISK_WAITS,
            fact_above("pressure.io", 0.2, Unit::Share, "{} of the time"),
            fact_below(
                "change.disk_requests",
                0.8,
                Unit::Share,
                "the disk does {} of the requests that it did",
            ),
        ],
        supports: &[CPU_IDLE],
        against: &[],
        confidence: 0.75,
        advice: "look for a limit: burst credits of a volume or an instance, its requests and bytes a second, io.max of a \
                 control group; or for another program that uses it",
        experiment: AGAIN,
    },
    Rule {
        name: "change_disk_work",
        claim: "each operation needs more of the disk than before",
        needs: &[
            FALL,
            DISK_WAITS,
            fact_above("pressure.io", 0.2, Unit::Share, "{} of the time"),
            fact_above(
                "change.disk_work",
                1.5,
                Unit::Factor,
                "with {} times as many requests for each operation",
            ),
            // One that does fewer in all than it could is slower, whatever they are for.
            fact_above(
                "change.disk_requests",
                0.8,
                Unit::Factor,
                "the disk does {} times the requests that it did",
            ),
        ],
        supports: &[fact_above(
            "change.disk_bytes_work",
            1.5,
            Unit::Factor,
            "and {} times as many bytes for each of them",
        )],
        against: &[],
        confidence: 0.75,
        advice: "data that have outgrown memory, a cache that was emptied, a compaction, a checkpoint or a snapshot: the \
                 database's own figures say which",
        experiment: AGAIN,
    },
    Rule {
        name: "change_others",
        claim: "other programs began to use the host",
        needs: &[
            FALL,
            fact_above(
                "change.others",
                0.1,
                Unit::Share,
                "others take {} of the host's CPU more than before",
            ),
            fact_above(
                "change.waits_for_cpu",
                1.5,
                Unit::Factor,
                "tasks wait for a CPU {} times as long for each operation",
            ),
        ],
        supports: &[],
        against: &[fact_above("pressure.io", 0.5, Unit::Share, "but tasks wait for a disk {} of the time")],
        confidence: 0.75,
        advice: "see which with a monitor of processes; end them, or use a quiet host",
        experiment: AGAIN,
    },
    Rule {
        name: "change_steal",
        claim: "the hypervisor gives the host less CPU than before",
        needs: &[
            FALL,
            fact_above("change.steal", 0.05, Unit::Share, "{} of the CPU time more is taken away"),
        ],
        supports: &[fact_above(
            "change.waits_for_cpu",
            1.5,
            Unit::Factor,
            "tasks wait for a CPU {} times as long for each operation",
        )],
        against: &[fact_above("pressure.io", 0.5, Unit::Share, "but tasks wait for a disk {} of the time")],
        confidence: 0.75,
        advice: "an instance's CPU credits are used up, or its neighbours are busy: use one without credits",
        experiment: AGAIN,
    },
    Rule {
        name: "change_throttled",
        claim: "the server began to hit the CPU limit of its control group",
        needs: &[
            FALL,
            fact_above(
                "change.throttled",
                0.1,
                Unit::Share,
                "it is held back in {} of the periods more than before",
            ),
        ],
        supports: &[],
        against: &[],
        confidence: 0.8,
        advice: "a higher limit (cpu.max)",
        experiment: AGAIN,
    },
    Rule {
        name: "change_cpu_work",
        claim: "each operation needs more of the server's CPU than before",
        needs: &[
            FALL,
            fact_above("change.cpu_work", 1.5, Unit::Factor, "{} times as much for each operation"),
            fact_above("change.server_cpu", 0.9, Unit::Factor, "with {} times the CPU that it used"),
        ],
        supports: &[],
        against: &[DISK_WAITS],
        confidence: 0.65,
        advice: "a larger collection without an index, a longer scan, a compaction or a snapshot: profile the server on both \
                 sides",
        experiment: AGAIN,
    },
    Rule {
        name: "change_frequency",
        claim: "the CPU's clock slows down",
        needs: &[FALL, fact_below("change.frequency", 0.85, Unit::Share, "to {} of what it was")],
        supports: &[fact_above("host.thermal_per_s", 0.0, Unit::Number, "{} thermal events a second")],
        against: &[],
        confidence: 0.7,
        advice: "look at cooling and power limits",
        experiment: AGAIN,
    },
    Rule {
        name: "change_memory",
        claim: "the host or the server's control group ran short of memory",
        needs: &[
            FALL,
            fact_above(
                "change.waits_for_memory",
                1.5,
                Unit::Factor,
                "tasks wait for memory {} times as long for each operation",
            ),
            fact_above("pressure.memory", 0.05, Unit::Share, "{} of the time"),
        ],
        supports: &[fact_above(
            "server.limit_hits_per_s",
            1.0,
            Unit::Number,
            "the control group's limit is hit {} times a second",
        )],
        // What memory no longer holds is read from the disk: a disk that does less is slower by itself.
        against: &[fact_below(
            "change.disk_requests",
            0.8,
            Unit::Share,
            "the disk does {} of the requests that it did",
        )],
        confidence: 0.6,
        advice: "more memory, a smaller cache inside the database, or fewer things on this host",
        experiment: AGAIN,
    },
    Rule {
        name: "change_network",
        claim: "segments are lost on the way from then on: TCP waits and sends them again",
        needs: &[
            FALL,
            fact_above("change.retransmitted", 0.002, Unit::Share, "{} of the segments more are sent again"),
        ],
        supports: &[],
        against: &[],
        confidence: 0.7,
        advice: "look at the drops of the cards and of what lies between them; clouds drop beyond an allowance",
        experiment: AGAIN,
    },
];
