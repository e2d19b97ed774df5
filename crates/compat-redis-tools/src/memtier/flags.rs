//! Every flag: what it takes, what it means here, and which ones dyno does not have.

use std::fmt::Write as _;

/// A flag.
pub(super) struct MemtierFlag {
    /// Long name.
    pub(super) name: &'static str,
    /// Letter, or a blank.
    pub(super) letter: char,
    /// What stands for its value; empty if it has none.
    pub(super) value: &'static str,
    /// What it means; of one that dyno does not have, why.
    pub(super) help: &'static str,
    /// True if dyno has it.
    pub(super) has: bool,
}

const fn flag(name: &'static str, letter: char, value: &'static str, help: &'static str) -> MemtierFlag {
    MemtierFlag { name, letter, value, help, has: true }
}

const fn without(name: &'static str, letter: char, value: &'static str, help: &'static str) -> MemtierFlag {
    MemtierFlag { name, letter, value, help, has: false }
}

/// memtier's flags, in its order, and dyno's.
pub(super) const FLAGS: [MemtierFlag; 91] = [
    flag("server", 's', "ADDR", "Server (localhost)"),
    flag("host", 'h', "ADDR", "The same"),
    flag("port", 'p', "PORT", "Port (6379)"),
    flag("unix-socket", 'S', "PATH", "Unix socket instead"),
    without("ipv4", '4', "", "give an address of that family as --server"),
    without("ipv6", '6', "", "give an address of that family as --server"),
    flag("protocol", 'P', "NAME", "redis, resp2, resp3 or memcache_text (redis)"),
    flag("authenticate", 'a', "CRED", "Password, or USER:PASSWORD"),
    flag("uri", 'u', "URI", "redis://[USER:PASSWORD@]HOST[:PORT][/DB], rediss:// for TLS"),
    flag("tls", ' ', "", "Encrypt"),
    flag("cert", ' ', "FILE", "Certificate of this client"),
    flag("key", ' ', "FILE", "Its key (the same file)"),
    flag("cacert", ' ', "FILE", "Certificates that are trusted"),
    flag("tls-skip-verify", ' ', "", "Trust any server"),
    without("tls-protocols", ' ', "LIST", "TLS 1.2 and 1.3 are offered"),
    flag("sni", ' ', "NAME", "Name that the server's certificate must have"),
    flag("run-count", 'x', "N", "Runs (1)"),
    without("debug", 'D', "", "dyno -vv memtier ... logs what it does"),
    flag("show-config", ' ', "", "Print the settings first"),
    flag("out-file", 'o', "FILE", "Write the report there"),
    flag("json-out-file", ' ', "FILE", "Write the results as JSON"),
    flag("client-stats", ' ', "PREFIX", "Write each client's seconds to PREFIX-RUN-THREAD-CLIENT.csv"),
    flag(
        "hdr-file-prefix",
        ' ',
        "PREFIX",
        "Write latencies to files PREFIX_..., as tables and as HdrHistogram logs",
    ),
    flag("hide-histogram", ' ', "", "No distribution of latencies"),
    flag("print-percentiles", ' ', "LIST", "Percentiles of the table (50,99,99.9)"),
    flag("print-all-runs", ' ', "", "With several runs: each of them, too"),
    flag("command-stats-breakdown", ' ', "BY", "Rows by command or by line (command)"),
    flag("statsd-host", ' ', "HOST", "Tell a StatsD server each second"),
    flag("statsd-port", ' ', "PORT", "Its UDP port (8125)"),
    flag("statsd-prefix", ' ', "TEXT", "Beginning of its metrics' names (memtier)"),
    flag("statsd-run-label", ' ', "TEXT", "Label of the run in them (default)"),
    flag("graphite-port", ' ', "PORT", "Port on the same host that takes a run's begin and end (8080)"),
    flag("requests", 'n', "N|allkeys", "Requests of each client (10000)"),
    flag("rate-limiting", ' ', "N", "Requests/s of each connection, in an open loop"),
    flag("clients", 'c', "N", "Clients of each thread (50)"),
    flag("threads", 't', "N", "Threads, which here only multiply the clients (4)"),
    flag("test-time", ' ', "S", "Seconds, instead of requests"),
    flag(
        "clients-start",
        ' ',
        "N",
        "Clients of each thread that begin at once; the others begin step by step",
    ),
    flag("clients-step", ' ', "N", "Clients of each thread that begin at each step"),
    flag("step-duration", ' ', "S", "Seconds of a step"),
    flag("ratio", ' ', "SETS:GETS", "Each client does so many sets, then so many gets (1:10)"),
    flag("pipeline", ' ', "N", "Requests under way on a connection (1)"),
    flag("reconnect-interval", ' ', "N", "Make a connection anew after so many of its requests"),
    flag("reconnect-on-error", ' ', "", "Connect anew where a connection was lost: dyno always does"),
    without("max-reconnect-attempts", ' ', "N", "dyno tries as long as the run lasts"),
    without("reconnect-backoff-factor", ' ', "N", "dyno waits 1 ms, then longer, up to 100 ms"),
    without("connection-timeout", ' ', "S", "dyno gives up after its own time"),
    without("thread-conn-start-min-jitter-micros", ' ', "US", "all connections are made before time counts"),
    without("thread-conn-start-max-jitter-micros", ' ', "US", "all connections are made before time counts"),
    flag("multi-key-get", ' ', "N", "memcache_text: a get asks for so many keys"),
    flag("select-db", ' ', "N", "Database (0)"),
    flag("distinct-client-seed", ' ', "", "Each client draws keys of its own; else all draw the same"),
    flag("randomize", ' ', "", "Draw a new seed; else it is 1"),
    flag(
        "command",
        ' ',
        "TEXT",
        "A command of one's own, with __key__ and __data__; may be given several times",
    ),
    flag("command-ratio", ' ', "N", "How often in a row the last command is sent (1)"),
    flag("command-key-pattern", ' ', "LETTER", "Keys of the last command: R, G, Z, S or P (R)"),
    without("monitor-input", ' ', "FILE", "dyno does not replay recordings yet"),
    without("monitor-pattern", ' ', "LETTER", "dyno does not replay recordings yet"),
    flag("scan-incremental-iteration", ' ', "", "A SCAN as --command goes on from the cursor of its reply"),
    flag("scan-incremental-max-iterations", ' ', "N", "Then so often at most (0: to the end)"),
    flag("data-size", 'd', "BYTES", "Length of a value (32)"),
    flag("data-offset", ' ', "BYTES", "SETRANGE and GETRANGE from there"),
    flag("random-data", 'R', "", "Random bytes; else all are x"),
    flag("data-size-range", ' ', "A-B", "Lengths from A to B"),
    flag("data-size-list", ' ', "SIZE:N,...", "So many values of each length in turn"),
    flag("data-size-pattern", ' ', "LETTER", "Lengths of a range: R at random, S by key (R)"),
    flag("expiry-range", ' ', "A-B", "Seconds that a set key lives: SETEX"),
    flag("data-import", ' ', "FILE", "Sets write the records of this CSV file, gets read their keys"),
    flag("data-verify", ' ', "", "Then read the records that one client wrote, and compare them"),
    flag("verify-only", ' ', "", "Only do that"),
    flag("generate-keys", ' ', "", "Make keys as without a file; records give their values"),
    flag("no-expiry", ' ', "", "Records live for ever"),
    flag("key-prefix", ' ', "TEXT", "Beginning of keys (memtier-)"),
    flag("key-minimum", ' ', "N", "Least number of a key (0)"),
    flag("key-maximum", ' ', "N", "Greatest number of a key (10000000)"),
    flag(
        "key-pattern",
        ' ',
        "A:B",
        "Keys of sets and gets: R random, G normal, Z zipfian, S in order, P in parts (R:R)",
    ),
    flag("key-stddev", ' ', "N", "Standard deviation of G (a sixth of the range)"),
    flag("key-median", ' ', "N", "Centre of G (that of the range)"),
    flag("key-zipf-exp", ' ', "N", "Exponent of Z (1)"),
    flag("wait-ratio", ' ', "SETS:WAITS", "A WAIT first, and after so many sets (none)"),
    flag("num-slaves", ' ', "A-B", "Replicas that a WAIT waits for (0)"),
    flag("wait-timeout", ' ', "A-B", "Its time-out, milliseconds, the middle most often (0: for ever)"),
    flag("cluster-mode", ' ', "", "Send each key to its node of a cluster"),
    flag("help", ' ', "", "Print this"),
    flag("version", 'v', "", "Print the version"),
    flag("run-directory", ' ', "DIR", "Keep the run there, as dyno run does (of the last run)"),
    flag("seed", ' ', "N", "Seed of keys and lengths"),
    flag(
        "load-threads",
        ' ',
        "N",
        "Threads that apply the load (one a core, less one where the server is on this host)",
    ),
    flag("timeout", ' ', "S", "Time-out of a request, seconds; 0 waits for ever (10)"),
    flag("no-monitor", ' ', "", "Watch neither host nor server"),
    flag("compat-exit", ' ', "", "Exit as memtier: 0 whatever became of the requests"),
];

/// Number of memtier's own flags, which come first.
const ORIGINAL: usize = 85;

/// The usage.
pub fn help() -> String {
    let mut text = "\
Drop-in for memtier_benchmark: its flags, its keys and values, its report.

Usage: dyno memtier [FLAGS]

"
    .to_owned();
    let mut section = |title: &str, flags: &[MemtierFlag]| {
        let _ = writeln!(text, "{title}:");
        for flag in flags.iter().filter(|flag| flag.has) {
            let letter = if flag.letter == ' ' { "    ".to_owned() } else { format!("-{}, ", flag.letter) };
            let value = if flag.value.is_empty() { String::new() } else { format!("={}", flag.value) };
            let _ = writeln!(text, "  {letter}--{:<28} {}", format!("{}{value}", flag.name), flag.help);
        }
    };
    section("memtier's flags", &FLAGS[..ORIGINAL]);
    section("\ndyno's flags", &FLAGS[ORIGINAL..]);
    let _ = writeln!(text, "\nNot here:");
    for flag in FLAGS.iter().filter(|flag| !flag.has) {
        let _ = writeln!(text, "      --{:<36} {}", flag.name, flag.help);
    }
    text.push_str(
        "\nExit codes: 0 valid or suspect, 1 internal error, 2 usage, 3 target unreachable, 5 run invalid, 130 interrupted.\n",
    );
    text
}
