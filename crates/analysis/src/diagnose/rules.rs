//! The rules, as a table: a change of a threshold is a change of a line.

/// How a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A share: `12.3 %`.
    Share,
    /// A plain number.
    Number,
}

impl Unit {
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Share => format!("{:.1} %", value * 100.0),
            Unit::Number if value.abs() >= 100.0 => format!("{value:.0}"),
            Unit::Number => format!("{value:.2}"),
        }
    }
}

/// Which way a figure must lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    Above(f64),
    Below(f64),
}

/// One figure against its limit.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    pub fact: &'static str,
    pub limit: Limit,
    pub unit: Unit,
    /// With `{}` for the figure.
    pub words: &'static str,
}

impl Test {
    pub fn holds(&self, value: f64) -> bool {
        match self.limit {
            Limit::Above(limit) => value > limit,
            Limit::Below(limit) => value < limit,
        }
    }
}

/// How the run is varied to settle a claim.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// The option that changes, and by which factor its value.
    pub option: &'static str,
    pub factor: f64,
    /// What to look for.
    pub expect: &'static str,
}

/// A rule: all of `needs` must hold; each of `supports` raises the confidence, each of `against` halves it.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub name: &'static str,
    pub claim: &'static str,
    pub needs: &'static [Test],
    pub supports: &'static [Test],
    pub against: &'static [Test],
    pub confidence: f64,
    pub advice: &'static str,
    pub experiment: Experiment,
}

const fn above(fact: &'static str, limit: f64, unit: Unit, words: &'static str) -> Test {
    Test { fact, limit: Limit::Above(limit), unit, words }
}

const fn below(fact: &'static str, limit: f64, unit: Unit, words: &'static str) -> Test {
    Test { fact, limit: Limit::Below(limit), unit, words }
}

const FEWER: Experiment = Experiment {
    option: "--users",
    factor: 0.5,
    expect: "with half the users throughput stays and response time halves, if this is the limit",
};

const MORE: Experiment = Experiment {
    option: "--users",
    factor: 2.0,
    expect: "with twice the users throughput grows, nearly twofold, if nothing is saturated",
};

const SMALLER: Experiment = Experiment {
    option: "--field-length",
    factor: 0.5,
    expect: "with records of half the size throughput grows, nearly twofold, if bytes are the limit",
};

const THREADS: Experiment = Experiment {
    option: "--threads",
    factor: 2.0,
    expect: "with twice the load threads throughput grows by more than 3 %, if the client is the limit",
};

const CPU_IDLE: Test =
    below("host.cpu.busy", 0.6, Unit::Share, "the host's CPU is busy no more than {} of the time");

/// All rules.
pub const RULES: &[Rule] = &[
    Rule {
        name: "cpu_quota",
        claim: "the server's CPU quota limits it: its control group is throttled",
        needs: &[above(
            "server.throttled",
            0.05,
            Unit::Share,
            "the server's threads are held back for {} of the time",
        )],
        supports: &[
            above("server.throttled_periods", 0.2, Unit::Share, "in {} of the scheduling periods"),
            above("server.pressure.cpu", 0.1, Unit::Share, "its tasks wait for a CPU {} of the time"),
        ],
        against: &[below("server.cores", 0.02, Unit::Number, "yet it uses only {} cores")],
        confidence: 0.85,
        advice: "raise the quota, or compare engines under the same one on purpose",
        experiment: FEWER,
    },
    Rule {
        name: "single_core",
        claim: "one core of the server limits it: it does its work in a single thread",
        needs: &[
            above(
                "server.thread_share",
                0.9,
                Unit::Share,
                "the server keeps its one thread busy {} of the time",
            ),
            below("server.throttled", 0.05, Unit::Share, "it is held back by no quota ({})"),
        ],
        supports: &[above("closed.queue", 1.5, Unit::Number, "{} operations wait for each one in service")],
        against: &[above(
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
            above("host.cpu.busy", 0.9, Unit::Share, "the host's CPU is busy {} of the time"),
            above("server.cpu_share", 0.6, Unit::Share, "and the server takes {} of it"),
        ],
        supports: &[above("pressure.cpu", 0.1, Unit::Share, "tasks wait for a CPU {} of the time")],
        against: &[above(
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
        name: "client",
        claim: "the client limits the run, not the database: its load threads are saturated",
        needs: &[above("client.busy", 0.85, Unit::Share, "load threads are busy {} of the time")],
        supports: &[
            above(
                "client.lag_share",
                0.1,
                Unit::Share,
                "replies wait in the client for {} of the service time",
            ),
            below("server.cpu_of_limit", 0.7, Unit::Share, "while the server's CPU is used to {}"),
        ],
        against: &[above(
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
        name: "disk_reads",
        claim: "reads from a disk are at a ceiling",
        needs: &[
            above("disk.reads_per_s", 20.0, Unit::Number, "{} reads a second from the busiest disk"),
            below("disk.reads_variation", 0.1, Unit::Share, "at a rate that varies by only {}"),
            above("pressure.io", 0.2, Unit::Share, "tasks wait for a disk {} of the time"),
        ],
        supports: &[above("disk.reads_per_op", 0.05, Unit::Number, "{} reads for each operation"), CPU_IDLE],
        against: &[
            above("server.thread_share", 0.9, Unit::Share, "the server's thread is busy {} of the time"),
            above(
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
            above("disk.writes_per_s", 50.0, Unit::Number, "{} writes a second to the busiest disk"),
            above("disk.writes_per_op", 0.02, Unit::Number, "{} disk writes for each operation"),
            below("disk.reads_per_op", 0.5, Unit::Number, "and {} reads"),
            above("pressure.io", 0.2, Unit::Share, "tasks wait for a disk {} of the time"),
        ],
        supports: &[
            CPU_IDLE,
            above("disk.queue", 0.7, Unit::Number, "{} operations of the disk are under way on average"),
        ],
        against: &[above(
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
        needs: &[above(
            "server.major_faults_per_op",
            0.01,
            Unit::Number,
            "{} page faults for each operation had to wait for a disk",
        )],
        supports: &[
            above(
                "server.limit_hits_per_s",
                0.5,
                Unit::Number,
                "the control group's limit was hit {} times a second",
            ),
            above("pressure.memory", 0.05, Unit::Share, "tasks wait for memory {} of the time"),
            above("pressure.io", 0.1, Unit::Share, "tasks wait for a disk {} of the time"),
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
            above(
                "server.limit_hits_per_s",
                5.0,
                Unit::Number,
                "the control group's limit was hit {} times a second",
            ),
            above("disk.reads_per_op", 0.02, Unit::Number, "{} reads from a disk for each operation"),
        ],
        supports: &[
            above("pressure.memory", 0.05, Unit::Share, "tasks wait for memory {} of the time"),
            above("pressure.io", 0.1, Unit::Share, "tasks wait for a disk {} of the time"),
        ],
        against: &[],
        confidence: 0.8,
        advice: "a higher limit, or a smaller working set",
        experiment: FEWER,
    },
    Rule {
        name: "bandwidth",
        claim: "the network's bandwidth limits it",
        needs: &[
            above(
                "network.bytes_per_s",
                100_000.0,
                Unit::Number,
                "{} bytes a second through the busiest interface",
            ),
            below("network.variation", 0.05, Unit::Share, "at a rate that varies by only {}"),
            above("closed.users", 4.0, Unit::Number, "{} users have an operation under way each"),
            below("client.busy", 0.6, Unit::Share, "and load threads are busy {} of the time"),
        ],
        supports: &[
            above("network.retransmitted", 0.001, Unit::Share, "{} of the segments were sent again"),
            below("server.cpu_of_limit", 0.6, Unit::Share, "the server's CPU is used to {}"),
            CPU_IDLE,
        ],
        against: &[
            above("pressure.io", 0.2, Unit::Share, "tasks wait for a disk {} of the time"),
            above("server.cpu_of_limit", 0.9, Unit::Share, "the server's CPU is used to {}"),
        ],
        confidence: 0.65,
        advice: "a faster link, smaller records, fewer fields, or compression",
        experiment: SMALLER,
    },
    Rule {
        name: "others",
        claim: "other processes on this host take CPU time that server and client want",
        needs: &[
            above("host.cpu.busy", 0.9, Unit::Share, "the host's CPU is busy {} of the time"),
            above("host.cpu.others", 0.2, Unit::Share, "{} of it goes to neither server nor client"),
            above(
                "server.cores",
                0.25,
                Unit::Number,
                "while the server wants more than the {} cores it gets",
            ),
        ],
        supports: &[above("pressure.cpu", 0.3, Unit::Share, "tasks wait for a CPU {} of the time")],
        against: &[],
        confidence: 0.7,
        advice: "end them, or give server and client cores of their own; results of such a run are of this hour only",
        experiment: Experiment {
            option: "--duration",
            factor: 2.0,
            expect: "when the host is quiet the same run is faster",
        },
    },
    Rule {
        name: "steal",
        claim: "neighbours on the same machine take CPU time away",
        needs: &[above("host.cpu.steal", 0.03, Unit::Share, "the hypervisor took {} of the CPU time")],
        supports: &[],
        against: &[],
        confidence: 0.6,
        advice: "a dedicated machine, or more repetitions spread over the day",
        experiment: Experiment { option: "--duration", factor: 2.0, expect: "the share taken away stays" },
    },
    Rule {
        name: "few_users",
        claim: "users limit it: each waits for its own reply, and nothing is saturated",
        needs: &[
            above("closed.users", 0.0, Unit::Number, "{} users, each with one operation under way"),
            below("server.cpu_of_limit", 0.75, Unit::Share, "the server's CPU is used to {}"),
            below("client.busy", 0.75, Unit::Share, "load threads are busy {} of the time"),
            below("closed.queue", 1.0, Unit::Number, "{} operations wait for each one in service"),
        ],
        supports: &[CPU_IDLE],
        against: &[
            above("pressure.io", 0.2, Unit::Share, "tasks wait for a disk {} of the time"),
            above("server.throttled", 0.02, Unit::Share, "the server is held back {} of the time"),
        ],
        confidence: 0.55,
        advice: "more users, or an open loop with a rate",
        experiment: MORE,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
        for rule in RULES {
            assert!(!rule.needs.is_empty() && (0.0..1.0).contains(&rule.confidence), "{}", rule.name);
            for test in rule.needs.iter().chain(rule.supports).chain(rule.against) {
                assert!(test.words.contains("{}"), "{}", test.words);
                assert!(super::super::facts::KNOWN.contains(&test.fact), "{}", test.fact);
            }
        }
    }
}
