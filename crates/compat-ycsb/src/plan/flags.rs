//! The flags of the command line, and what their values are.

/// A flag of the command line.
pub(super) struct YcsbFlag {
    /// Name with its dashes.
    pub(super) name: &'static str,
    /// Description of its value; empty if it takes none.
    pub(super) value: &'static str,
    /// True if load and run take it, and whether the shell does.
    pub(super) modes: (bool, bool),
}

const fn run(name: &'static str, value: &'static str) -> YcsbFlag {
    YcsbFlag { name, value, modes: (true, false) }
}

const fn any(name: &'static str, value: &'static str) -> YcsbFlag {
    YcsbFlag { name, value, modes: (true, true) }
}

/// All flags, those for help aside.
pub(super) const FLAGS: [YcsbFlag; 19] = [
    any("-P", "a property file or a built-in workload, such as workloads/workloada"),
    any("-p", "key=value, such as -p operationcount=99999"),
    any("-db", "a class or name of a binding, such as site.ycsb.db.RedisClient"),
    run("-threads", "a whole number, 1 to 100000"),
    run("-target", "a whole number of operations per second, 0 or more"),
    run("-s", ""),
    run("-l", "a label for the status lines"),
    run("-load", ""),
    run("-t", ""),
    YcsbFlag { name: "-table", value: "the name of a table", modes: (false, true) },
    any("-cp", "a class path, which is ignored"),
    any("-jvm-args", "arguments of a JVM, which are ignored"),
    any("--compat-exit", ""),
    any("--client", "wire or official"),
    run("--out", "a directory for the run's files"),
    run("--no-out", ""),
    run("--no-monitor", ""),
    run("--json", ""),
    any("--quiet", ""),
];

/// Returns the description of a flag's value.
pub(super) fn accepted(flag: &str) -> &'static str {
    FLAGS.iter().find(|known| known.name == flag).map_or("", |known| known.value)
}
