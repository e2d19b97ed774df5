//! Disks and memory.

use super::rule::{AGAIN, CPU_IDLE, FEWER, MORE, Rule, SMALLER, Unit, fact_above, fact_below};

/// The rules.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "disk_reads",
        claim: "reads from a disk are at a ceiling",
        needs: &[
            fact_above("disk.reads_per_s", 20.0, Unit::Number, "{} reads a second from the busiest disk"),
            fact_below("disk.reads_variation", 0.1, Unit::Share, "at a rate that varies by only {}"),
            fact_above("pressure.io", 0.2, Unit::Share, "tasks wait for a disk {} of the time"),
        ],
        supports: &[
            fact_above("disk.reads_per_op", 0.05, Unit::Number, "{} reads for each operation"),
            CPU_IDLE,
        ],
        against: &[
            fact_above("server.thread_share", 0.9, Unit::Share, "the server's thread is busy {} of the time"),
            fact_above(
                "server.limit_hits_per_s",
                1_000.0,
                Unit::Number,
                "a limit of memory is hit {} times a second",
            ),
        ],
        confidence: 0.7,
        advice: "more cache, a faster volume, or a smaller working set",
        experiment: FEWER,
    },
    Rule {
        name: "disk_writes",
        claim: "writes to a disk, or waiting until they are safe, limit it",
        needs: &[
            fact_above("disk.writes_per_s", 50.0, Unit::Number, "{} writes a second to the busiest disk"),
            fact_above("disk.writes_per_op", 0.02, Unit::Number, "{} disk writes for each operation"),
            fact_below("disk.reads_per_op", 0.5, Unit::Number, "and {} reads"),
            fact_above("pressure.io", 0.2, Unit::Share, "tasks wait for a disk {} of the time"),
        ],
        supports: &[
            CPU_IDLE,
            fact_above("disk.queue", 0.7, Unit::Number, "{} operations of the disk are under way on average"),
        ],
        against: &[fact_above(
            "server.thread_share",
            0.9,
            Unit::Share,
            "the server's thread is busy {} of the time",
        )],
        confidence: 0.6,
        advice: "a faster volume, larger groups of commits, or weaker durability on purpose",
        experiment: MORE,
    },
    Rule {
        name: "memory",
        claim: "memory limits it: the server's data are read back from disk",
        needs: &[
            fact_above(
                "server.major_faults_per_op",
                0.01,
                Unit::Number,
                "{} page faults for each operation had to wait for a disk",
            ),
            fact_above("server.major_faults_per_s", 20.0, Unit::Number, "{} a second"),
        ],
        supports: &[
            fact_above(
                "server.limit_hits_per_s",
                0.5,
                Unit::Number,
                "the control group's limit was hit {} times a second",
            ),
            fact_above("pressure.memory", 0.05, Unit::Share, "tasks wait for memory {} of the time"),
            fact_above("pressure.io", 0.1, Unit::Share, "tasks wait for a disk {} of the time"),
        ],
        against: &[],
        confidence: 0.75,
        advice: "a higher limit, a smaller cache inside the server, or a smaller working set",
        experiment: FEWER,
    },
    Rule {
        name: "page_cache",
        claim: "memory limits it: what the control group may keep of the files is too little",
        needs: &[
            fact_above(
                "server.limit_hits_per_s",
                5.0,
                Unit::Number,
                "the control group's limit was hit {} times a second",
            ),
            fact_above("disk.reads_per_op", 0.02, Unit::Number, "{} reads from a disk for each operation"),
        ],
        supports: &[
            fact_above("pressure.memory", 0.05, Unit::Share, "tasks wait for memory {} of the time"),
            fact_above("pressure.io", 0.1, Unit::Share, "tasks wait for a disk {} of the time"),
        ],
        against: &[],
        confidence: 0.8,
        advice: "a higher limit, or a smaller working set",
        experiment: FEWER,
    },
    Rule {
        name: "disk_bandwidth",
        claim: "a disk's bandwidth is at a ceiling",
        needs: &[
            fact_above(
                "disk.bytes_per_s",
                20e6,
                Unit::Number,
                "{} bytes a second from and to the busiest disk",
            ),
            fact_below("disk.bytes_variation", 0.05, Unit::Share, "at a rate that varies by only {}"),
            fact_above("disk.bytes_per_request", 65_536.0, Unit::Number, "in requests of {} bytes"),
            fact_above("pressure.io", 0.2, Unit::Share, "tasks wait for a disk {} of the time"),
        ],
        supports: &[
            CPU_IDLE,
            fact_above("disk.queue", 1.0, Unit::Number, "{} operations of the disk are under way on average"),
        ],
        against: &[fact_above(
            "server.thread_share",
            0.9,
            Unit::Share,
            "the server's thread is busy {} of the time",
        )],
        confidence: 0.7,
        advice: "a faster volume, compression, or smaller pages where little of each is used",
        experiment: SMALLER,
    },
    Rule {
        name: "memory_pressure",
        claim: "the host is short of memory: tasks wait until pages are free",
        needs: &[fact_above("pressure.memory", 0.05, Unit::Share, "tasks wait for memory {} of the time")],
        supports: &[fact_above("host.swapped_per_s", 10.0, Unit::Number, "{} pages a second are swapped")],
        against: &[fact_above(
            "server.limit_hits_per_s",
            1.0,
            Unit::Number,
            "it is the control group's limit, hit {} times a second",
        )],
        confidence: 0.65,
        advice: "more memory, a smaller cache inside the database, or fewer things on this host",
        experiment: FEWER,
    },
    Rule {
        name: "swap",
        claim: "pages are swapped: what looks like memory is a disk",
        needs: &[fact_above(
            "host.swapped_per_s",
            10.0,
            Unit::Number,
            "{} pages a second are swapped in and out",
        )],
        supports: &[fact_above("pressure.memory", 0.02, Unit::Share, "tasks wait for memory {} of the time")],
        against: &[],
        confidence: 0.7,
        advice: "no swap on database hosts, or swappiness 1, and memory for all that runs",
        experiment: AGAIN,
    },
    Rule {
        name: "burst_credits",
        claim: "the volume's burst credits ran out in the middle of the run",
        needs: &[
            fact_above("burst.ratio", 2.0, Unit::Number, "throughput falls by a factor of {}"),
            fact_above("burst.signs", 2.5, Unit::Number, "{} of the four signs of an empty bucket hold"),
        ],
        supports: &[
            fact_above(
                "burst.before_per_s",
                0.0,
                Unit::Number,
                "{} disk operations a second before the fall",
            ),
            fact_above("burst.after_per_s", 0.0, Unit::Number, "{} after it"),
            fact_below(
                "burst.work_changed",
                0.1,
                Unit::Share,
                "disk operations for each operation change by only {}",
            ),
        ],
        against: &[],
        confidence: 0.7,
        advice: "a volume with provisioned operations, or only what comes after the fall; wait for credits before the next run",
        experiment: AGAIN,
    },
    Rule {
        name: "burst_credits_unseen",
        claim: "perhaps a volume's burst credits ran out: the disk itself was not watched",
        needs: &[
            fact_above("burst.ratio", 2.0, Unit::Number, "throughput falls by a factor of {}"),
            fact_above("burst.signs", 1.5, Unit::Number, "{} signs of it hold"),
            fact_below("burst.looked_at", 2.5, Unit::Number, "{} of its four signs could be looked at"),
        ],
        supports: &[],
        against: &[],
        confidence: 0.45,
        advice: "watch the disk in the next run; ask the cloud's console for the volume's burst balance",
        experiment: AGAIN,
    },
];
