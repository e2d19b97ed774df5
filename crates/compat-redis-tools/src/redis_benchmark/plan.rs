//! Settings into tests: the default suite in its order, or the user's own command.

use super::address::leading_number;
use super::args::{Args, CommandLine};
use super::flags::{help, version};
use super::uri::uri;
use super::{BenchmarkPlan, BenchmarkRefusal, Output, ParsedCommandLine, Program, Test};
use dyno_workload::commands::{ArgumentPart, CommandOperation, Commands, DataSize, KeySpace, Pattern};

/// Requests of a test without `-n`.
const REQUESTS: u64 = 100_000;
/// Digits of a number that replaces a placeholder.
const DIGITS: usize = 12;
/// Most commands of a sequence, repeats counted.
const SEQUENCE: usize = 10_000;
/// Group of the numbers in `{tag}`; 1 to 9 are those of `__rand_1st__` to `__rand_9th__`.
const TAG_GROUP: u16 = 10;
const TAG: &str = "{tag}";
const DATA: &str = "__data__";
const RANDOM: &str = "__rand_int__";
const GROUPED: [&str; 9] = [
    "__rand_1st__",
    "__rand_2nd__",
    "__rand_3rd__",
    "__rand_4th__",
    "__rand_5th__",
    "__rand_6th__",
    "__rand_7th__",
    "__rand_8th__",
    "__rand_9th__",
];

/// Commands that only read, which `--rfr` may send to replicas.
#[rustfmt::skip]
const READS: [&str; 40] = [
    "BITCOUNT", "BITPOS", "DBSIZE", "ECHO", "EVALSHA_RO", "EVAL_RO", "EXISTS", "FCALL_RO", "GET", "GETBIT",
    "GETRANGE", "HEXISTS", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HSCAN", "HVALS", "LINDEX", "LLEN",
    "LRANGE", "MGET", "PING", "PTTL", "SCARD", "SISMEMBER", "SMEMBERS", "SRANDMEMBER", "SSCAN", "STRLEN",
    "TTL", "TYPE", "XLEN", "XRANGE", "ZCARD", "ZRANGE", "ZRANGEBYSCORE", "ZRANK", "ZSCORE",
];

/// Commands whose empty answer means that nothing was found.
const LOOKUPS: [&str; 4] = ["GET", "HGET", "LINDEX", "ZSCORE"];

/// A test of the default suite.
struct SuiteTest {
    /// Names that `-t` selects it by.
    names: &'static [&'static str],
    title: &'static str,
    /// Words with blanks between them; `{t}` is the tag of a cluster, and whole words in braces stand for values.
    text: &'static str,
    /// How often the words behind the first come.
    times: usize,
    valkey_only: bool,
    /// False if it must be named.
    by_default: bool,
}

const fn known(names: &'static [&'static str], title: &'static str, text: &'static str) -> SuiteTest {
    SuiteTest { names, title, text, times: 1, valkey_only: false, by_default: true }
}

/// The suite of `redis-benchmark` 7.2 and `valkey-benchmark` 9, in its order.
#[rustfmt::skip]
const SUITE: &[SuiteTest] = &[
    known(&["ping_inline", "ping"], "PING_INLINE", "PING"),
    known(&["ping_mbulk", "ping"], "PING_MBULK", "PING"),
    known(&["set"], "SET", "SET key{t}:__rand_int__ {data}"),
    known(&["get"], "GET", "GET key{t}:__rand_int__"),
    known(&["incr"], "INCR", "INCR counter{t}:__rand_int__"),
    known(&["lpush"], "LPUSH", "LPUSH mylist{t} {data}"),
    known(&["rpush"], "RPUSH", "RPUSH mylist{t} {data}"),
    known(&["lpop"], "LPOP", "LPOP mylist{t}"),
    known(&["rpop"], "RPOP", "RPOP mylist{t}"),
    known(&["sadd"], "SADD", "SADD myset{t} element:__rand_int__"),
    known(&["hset"], "HSET", "HSET myhash{t} element:__rand_int__ {data}"),
    known(&["spop"], "SPOP", "SPOP myset{t}"),
    known(&["zadd"], "ZADD", "ZADD myzset{t} {score} {member}"),
    known(&["zpopmin"], "ZPOPMIN", "ZPOPMIN myzset{t}"),
    known(&["lrange", "lrange_100", "lrange_300", "lrange_500", "lrange_600"],
        "LPUSH (needed to benchmark LRANGE)", "LPUSH mylist{t} {data}"),
    known(&["lrange", "lrange_100"], "LRANGE_100 (first 100 elements)", "LRANGE mylist{t} 0 99"),
    known(&["lrange", "lrange_300"], "LRANGE_300 (first 300 elements)", "LRANGE mylist{t} 0 299"),
    known(&["lrange", "lrange_500"], "LRANGE_500 (first 500 elements)", "LRANGE mylist{t} 0 499"),
    known(&["lrange", "lrange_600"], "LRANGE_600 (first 600 elements)", "LRANGE mylist{t} 0 599"),
    SuiteTest { times: 10, ..known(&["mset"], "MSET (10 keys)", "MSET key{t}:__rand_int__ {data}") },
    SuiteTest { times: 10, valkey_only: true, ..known(&["mget"], "MGET (10 keys)", "MGET key{t}:__rand_int__") },
    known(&["xadd"], "XADD", "XADD mystream{t} * myfield {data}"),
    SuiteTest { valkey_only: true, by_default: false,
        ..known(&["function_load"], "FUNCTION LOAD", "function load replace {script}") },
];

/// Name of a test that dyno lacks: its library must be there before it begins.
const FCALL: &str = "fcall";

/// A command: its arguments.
type Words = Vec<Vec<u8>>;

/// Reads the words behind the program's name. `stdin` is called for `-x` with a command.
///
/// # Errors
/// Refuses invalid words with the original's message, and those that dyno has nothing for.
pub fn parse(
    program: Program,
    words: &[String],
    stdin: impl FnOnce() -> std::io::Result<Vec<u8>>,
) -> Result<ParsedCommandLine, BenchmarkRefusal> {
    let args = match Args::read(program, words)? {
        CommandLine::Settings(args) => *args,
        CommandLine::Help => return Ok(ParsedCommandLine::Print { text: help(program), exit: 0 }),
        CommandLine::Version => return Ok(ParsedCommandLine::Print { text: version(program), exit: 0 }),
    };
    let own = match args.command.as_slice() {
        [] => None,
        command => {
            let mut all: Words = command.iter().map(|word| word.clone().into_bytes()).collect();
            if args.stdin {
                all.push(stdin().map_err(BenchmarkRefusal::Stdin)?);
            }
            Some(all)
        }
    };
    plan(&args, own).map(|plan| ParsedCommandLine::Run(Box::new(plan)))
}

fn plan(args: &Args, own: Option<Words>) -> Result<BenchmarkPlan, BenchmarkRefusal> {
    let mut notes = args.notes.clone();
    let uri = uri(args, &mut notes)?;
    let is_own = own.is_some();
    let tests = match own {
        Some(words) => vec![own_test(args, words)?],
        None => suite(args, &mut notes)?,
    };
    if args.sequential && args.keyspace.is_some() {
        notes.push("--sequential: each test counts from 0 anew, and connections take turns.".to_owned());
    }
    let requests = match args.duration_s {
        Some(_) => None,
        None => Some(args.requests.unwrap_or(REQUESTS)),
    };
    // Only an own command has several in an operation.
    let commands = tests.first().map_or(1, Test::commands_of_operation);
    let output = match (args.csv, args.quiet) {
        (true, _) => Output::Csv,
        (false, true) => Output::Quiet,
        (false, false) => Output::Text,
    };
    Ok(BenchmarkPlan {
        program: args.program,
        uri,
        cluster: args.cluster,
        reads: args.reads,
        clients: args.clients,
        pipeline: args.pipeline,
        threads: args.threads,
        requests: requests.map(|requests| requests.div_ceil(commands)),
        duration_s: args.duration_s,
        warmup_s: args.warmup_s,
        rate: (args.rate > 0).then_some(args.rate as f64 / commands as f64),
        tests,
        repeats: args.repeats,
        idle: args.idle,
        output,
        precision: args.precision,
        is_own,
        notes,
        seed: args.seed,
        keep_alive: true,
        settings: args.settings(),
    })
}

/// The tests of the suite that are selected. Names that no test has select nothing, as in the original.
fn suite(args: &Args, notes: &mut Vec<String>) -> Result<Vec<Test>, BenchmarkRefusal> {
    let is_valkey = args.program == Program::ValkeyBenchmark;
    let own = SUITE.iter().filter(|known| is_valkey || !known.valkey_only);
    let selected: Vec<&SuiteTest> = match &args.tests {
        None => own.filter(|known| known.by_default).collect(),
        Some(names) => {
            let is_named =
                |known: &&SuiteTest| known.names.iter().any(|name| names.iter().any(|own| own == name));
            note_names(names, is_valkey, notes)?;
            own.filter(is_named).collect()
        }
    };
    if args.tests.is_none() && is_valkey && !args.idle {
        notes.push(
            "FUNCTION LOAD (-t function_load) and FCALL are not among the default tests here.".to_owned(),
        );
    }
    let mut state = DATA_SEED;
    let data = random_data(&mut state, args.data_size);
    let test = |(number, known): (usize, &&SuiteTest)| Test {
        title: known.title.to_owned(),
        commands: commands(args, number as u64, operation_of(args, known), &data),
        payload: u64::from(args.data_size),
    };
    Ok(selected.iter().enumerate().map(test).collect())
}

fn note_names(names: &[String], is_valkey: bool, notes: &mut Vec<String>) -> Result<(), BenchmarkRefusal> {
    let is_known = |name: &str| {
        SUITE.iter().any(|known| known.names.contains(&name) && (is_valkey || !known.valkey_only))
    };
    for name in names.iter().filter(|name| !name.is_empty()) {
        if is_valkey && name == FCALL {
            return Err(BenchmarkRefusal::Unavailable {
                what: "-t fcall",
                reason: "it loads no library before a test",
            });
        }
        if !is_known(name) {
            notes.push(format!("WARNING: -t has no test {name}."));
        }
    }
    if names.iter().any(|name| ["ping", "ping_inline"].contains(&name.as_str())) {
        notes.push("PING_INLINE: PING is sent as an array of RESP, not as an inline command.".to_owned());
    }
    Ok(())
}

/// The operation of a test of the suite.
fn operation_of(args: &Args, known: &SuiteTest) -> CommandOperation {
    let mut words = known.text.split(' ');
    let name = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    let mut command = vec![literal(name)];
    for _ in 0..known.times {
        command.extend(rest.iter().map(|word| word_of_suite(args, word)));
    }
    let key = known.text.contains("{t}").then_some(1);
    operation(args, known.title, vec![command], vec![key], !READS.contains(&name), LOOKUPS.contains(&name))
}

fn word_of_suite(args: &Args, word: &str) -> Vec<ArgumentPart> {
    match word {
        "{data}" => vec![ArgumentPart::Data],
        "{script}" => literal(&script(args.functions)),
        // A counter of its own, which the load cannot have: scores are drawn where members are counted.
        "{score}" => match args.keyspace {
            Some(_) if args.sequential => vec![number(args, None)],
            Some(_) => parts(args, RANDOM.as_bytes()),
            None => literal("0"),
        },
        "{member}" => match args.program {
            Program::RedisBenchmark => parts(args, b"element:__rand_int__"),
            Program::ValkeyBenchmark => parts(args, b"element:__rand_1st__"),
        },
        _ => {
            let tag = if args.cluster { ":{tag}" } else { "" };
            parts(args, word.replace("{t}", tag).as_bytes())
        }
    }
}

/// The library of the test `function_load`.
fn script(functions: u32) -> String {
    let function = |number: u32| {
        format!(
            "local function foo{number}()\nreturn 0\nend\nserver.register_function('foo{number}', foo{number})\n"
        )
    };
    let all: String = (1..=functions).rev().map(function).collect();
    format!("#!lua name=benchlib\n{all}")
}

/// The test of the user's own command, or sequence of commands.
fn own_test(args: &Args, words: Words) -> Result<Test, BenchmarkRefusal> {
    let title = args.command.join(" ");
    let sequence = match args.program {
        Program::RedisBenchmark => vec![words],
        Program::ValkeyBenchmark => sequence(args, words)?,
    };
    if sequence.is_empty() {
        return Err(BenchmarkRefusal::Command("there is none to repeat"));
    }
    if sequence.iter().any(|command| command.len() > usize::from(u16::MAX)) {
        return Err(BenchmarkRefusal::Command("it has more than 65,535 arguments"));
    }
    if args.cluster && sequence.len() > 1 {
        return Err(BenchmarkRefusal::Command(
            "dyno sends several commands with ';' to one server only, not to a cluster",
        ));
    }
    let payload = sequence.iter().map(encoded_len).sum();
    let rendered: Vec<Vec<Vec<ArgumentPart>>> =
        sequence.iter().map(|command| command.iter().map(|word| parts(args, word)).collect()).collect();
    let keys = sequence.iter().map(|command| key_of(args, command)).collect();
    let is_of = |names: &[&str], command: &Words| {
        let name = command.first().map(|name| name.to_ascii_uppercase());
        name.is_some_and(|name| names.iter().any(|known| known.as_bytes() == name))
    };
    let writes = !sequence.iter().all(|command| is_of(&READS, command));
    let misses = sequence.len() == 1 && is_of(&LOOKUPS, &sequence[0]);
    let operation = operation(args, &title, rendered, keys, writes, misses);
    check_numbers(args, &operation.commands)?;
    Ok(Test { title, commands: commands(args, 0, operation, &[]), payload })
}

/// Divides words into commands: `[N] command args [';' [N] command args ...]`. A `;` where a command begins belongs to the
/// command, as in the original.
fn sequence(args: &Args, mut words: Words) -> Result<Vec<Words>, BenchmarkRefusal> {
    let mut state = DATA_SEED;
    let mut all = Vec::new();
    let (mut start, mut repeat) = (0, 1);
    for at in 0..=words.len() {
        match words.get(at) {
            Some(word) if at == start && matches!(word.first(), Some(b'1'..=b'9')) => {
                let digits = String::from_utf8_lossy(word);
                repeat = leading_number(&digits)
                    .and_then(|number| usize::try_from(number).ok())
                    .unwrap_or(usize::MAX);
                start += 1;
            }
            Some(word) if word != b";" => words[at] = with_data(word, args.data_size, &mut state),
            _ if at == start => {}
            _ => {
                if repeat > SEQUENCE || all.len() + repeat > SEQUENCE {
                    return Err(BenchmarkRefusal::Command("a sequence has at most 10,000 commands"));
                }
                all.extend(std::iter::repeat_n(words[start..at].to_vec(), repeat));
                (start, repeat) = (at + 1, 1);
            }
        }
    }
    Ok(all)
}

/// Replaces each `__data__`, each with the next bytes.
fn with_data(word: &[u8], size: u32, state: &mut u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = word;
    while let Some(at) = position(rest, DATA) {
        out.extend_from_slice(&rest[..at]);
        out.extend(random_data(state, size));
        rest = &rest[at + DATA.len()..];
    }
    out.extend_from_slice(rest);
    out
}

fn position(text: &[u8], found: &str) -> Option<usize> {
    text.windows(found.len()).position(|window| window == found.as_bytes())
}

/// The argument that is the key: in a cluster the first with `{tag}`, else the first.
fn key_of(args: &Args, command: &Words) -> Option<u16> {
    let tagged = command.iter().position(|word| position(word, TAG).is_some());
    match tagged {
        Some(at) if args.cluster => Some(at as u16),
        _ => (command.len() > 1).then_some(1),
    }
}

/// Length of a command on the wire.
fn encoded_len(command: &Words) -> u64 {
    let line = |number: usize| 3 + number.to_string().len();
    let words: usize = command.iter().map(|word| line(word.len()) + word.len() + 2).sum();
    (line(command.len()) + words) as u64
}

/// Refuses numbers that the load cannot keep equal, or count apart.
fn check_numbers(args: &Args, sequence: &[Vec<Vec<ArgumentPart>>]) -> Result<(), BenchmarkRefusal> {
    let in_command = |command: &Vec<Vec<ArgumentPart>>, group: u16| {
        command
            .iter()
            .flatten()
            .any(|part| matches!(part, ArgumentPart::Number { group: Some(own), .. } if *own == group))
    };
    if !args.sequential || args.keyspace.is_none() {
        return Ok(());
    }
    // The only placeholder of a group has become the load's counter; any other one still is a number of its group.
    let has_group =
        (1..=GROUPED.len() as u16).any(|group| sequence.iter().any(|command| in_command(command, group)));
    if has_group {
        let reason = "with --sequential, dyno has one counter: use __rand_int__, or one placeholder only";
        return Err(BenchmarkRefusal::Command(reason));
    }
    Ok(())
}

fn literal(text: &str) -> Vec<ArgumentPart> {
    vec![ArgumentPart::Literal(text.as_bytes().to_vec())]
}

/// A random number of 12 digits.
fn number(args: &Args, group: Option<u16>) -> ArgumentPart {
    ArgumentPart::Number { range: (0, last_key(args)), digits: DIGITS, group }
}

fn last_key(args: &Args) -> u64 {
    args.keyspace.unwrap_or(0).saturating_sub(1)
}

/// An argument: its placeholders are numbers with `-r`, and its tags in a cluster; everything else stays.
fn parts(args: &Args, word: &[u8]) -> Vec<ArgumentPart> {
    let mut out = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < word.len() {
        let Some((length, found)) = placeholder(args, &word[at..]) else {
            at += 1;
            continue;
        };
        let (before, behind): (&[u8], &[u8]) = if found.is_tag { (b"{", b"}") } else { (b"", b"") };
        push_literal(&mut out, &word[from..at]);
        push_literal(&mut out, before);
        out.push(found.part);
        push_literal(&mut out, behind);
        at += length;
        from = at;
    }
    push_literal(&mut out, &word[from..]);
    out
}

/// Appends bytes to the last literal, or as a new one.
fn push_literal(parts: &mut Vec<ArgumentPart>, bytes: &[u8]) {
    match parts.last_mut() {
        _ if bytes.is_empty() => {}
        Some(ArgumentPart::Literal(last)) => last.extend_from_slice(bytes),
        _ => parts.push(ArgumentPart::Literal(bytes.to_vec())),
    }
}

struct FoundOption {
    part: ArgumentPart,
    is_tag: bool,
}

/// The placeholder at the beginning of a text, and its length.
fn placeholder(args: &Args, text: &[u8]) -> Option<(usize, FoundOption)> {
    if args.cluster && text.starts_with(TAG.as_bytes()) {
        // Three characters, as the original's tags have. Tags of a thousand numbers reach all nodes.
        let part = ArgumentPart::Number { range: (0, 999), digits: 3, group: Some(TAG_GROUP) };
        return Some((TAG.len(), FoundOption { part, is_tag: true }));
    }
    args.keyspace?;
    let part = if text.starts_with(RANDOM.as_bytes()) {
        if args.sequential { ArgumentPart::Key(DIGITS) } else { number(args, None) }
    } else if args.program == Program::ValkeyBenchmark {
        let group = GROUPED.iter().position(|name| text.starts_with(name.as_bytes()))?;
        number(args, Some(group as u16 + 1))
    } else {
        return None;
    };
    Some((RANDOM.len(), FoundOption { part, is_tag: false }))
}

fn operation(
    args: &Args,
    name: &str,
    mut commands: Vec<Vec<Vec<ArgumentPart>>>,
    keys: Vec<Option<u16>>,
    writes: bool,
    misses: bool,
) -> CommandOperation {
    let pattern = if args.sequential { Pattern::Sequential } else { Pattern::Uniform };
    let space = KeySpace { min: 0, max: last_key(args), pattern };
    if args.sequential {
        count_single_group(&mut commands);
    }
    CommandOperation {
        name: name.to_owned(),
        turns: 1,
        commands,
        keys,
        writes,
        misses,
        space,
        goes_on: false,
    }
}

/// With `--sequential` a placeholder of a group is a counter; the load has one, which the only such placeholder gets.
fn count_single_group(commands: &mut [Vec<Vec<ArgumentPart>>]) {
    let is_counted = |part: &ArgumentPart| match part {
        ArgumentPart::Key(_) => true,
        ArgumentPart::Number { group, .. } => group.is_some_and(|group| group != TAG_GROUP),
        _ => false,
    };
    let all = || commands.iter().flatten().flatten();
    if all().filter(|part| is_counted(part)).count() != 1 {
        return;
    }
    for part in commands.iter_mut().flatten().flatten().filter(|part| is_counted(part)) {
        *part = ArgumentPart::Key(DIGITS);
    }
}

/// The load of an operation. Each test draws numbers of its own, as the original's go on from test to test.
fn commands(args: &Args, test: u64, operation: CommandOperation, data: &[u8]) -> Commands {
    let has_data = operation.commands.iter().flatten().flatten().any(|part| *part == ArgumentPart::Data);
    Commands {
        operations: vec![operation],
        between: None,
        // Of one user the turns are the operations of all connections: they count together.
        users: if args.sequential { 1 } else { args.clients as u64 },
        size: DataSize::Uniform(args.data_size, args.data_size),
        random: false,
        records: Default::default(),
        iterates: None,
        by_user: false,
        fixed: has_data.then(|| data.to_vec()),
        seed: args.seed.unwrap_or(1).wrapping_add(test),
        apart: true,
        stands_for: None,
    }
}

/// First state of the generator of values, the same in every run.
const DATA_SEED: u32 = 1234;

/// The bytes of a value, `0` to `o`, by the original's linear congruential generator.
fn random_data(state: &mut u32, size: u32) -> Vec<u8> {
    let byte = |_| {
        *state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        b'0' + ((*state >> 16) & 63) as u8
    };
    (0..size).map(byte).collect()
}
