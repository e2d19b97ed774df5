//! The load of the settings: which commands, in which turns, with which keys.

use super::args::{Breakdown, OwnCommand, Settings};
use dyno_workload::commands::{
    ArgumentPart, Between, CommandOperation, CommandRun, Commands, FirstOf, ImportedRecord, ImportedRecords,
    KeySpace, Pattern,
};
use dyno_workload::distributions::RejectionInversion;
use std::sync::Arc;

/// Commands whose empty answer means that nothing was there.
const READS: [&str; 12] = [
    "GET",
    "GETRANGE",
    "GETEX",
    "GETDEL",
    "HGET",
    "HGETALL",
    "LPOP",
    "RPOP",
    "SPOP",
    "ZSCORE",
    "LINDEX",
    "SRANDMEMBER",
];

/// A row of the table: its name, and the numbers of the metrics that it adds up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// The command's name as memtier shows it in the table: `Sets`.
    pub name: String,
    /// Metrics, by number.
    pub metrics: Vec<usize>,
    /// True if its bytes count.
    pub bytes: bool,
}

fn pattern(settings: &Settings, letter: char) -> Pattern {
    let (min, max) = settings.keys;
    let (deviation, median, exponent) = settings.spread;
    let length = (max - min) as f64;
    match letter {
        'S' => Pattern::Sequential,
        'P' => Pattern::Parallel,
        'G' => Pattern::Gaussian {
            median: median.unwrap_or(length / 2.0 + min as f64 + 0.5),
            deviation: deviation.unwrap_or(length / 6.0),
        },
        'Z' => Pattern::Zipfian(RejectionInversion::new(exponent)),
        _ => Pattern::Uniform,
    }
}

fn space(settings: &Settings, letter: char) -> KeySpace {
    KeySpace { min: settings.keys.0, max: settings.keys.1, pattern: pattern(settings, letter) }
}

fn literal(text: &str) -> Vec<ArgumentPart> {
    vec![ArgumentPart::Literal(text.as_bytes().to_vec())]
}

/// A number of seconds.
fn seconds((least, most): (u64, u64)) -> Vec<ArgumentPart> {
    vec![ArgumentPart::Number { range: (least, most), digits: 0, group: None }]
}

/// The command that sets a key: `expiring` says that its record does not live for ever.
fn set_of(settings: &Settings, expiring: bool) -> Vec<Vec<ArgumentPart>> {
    let import = settings.import.as_ref();
    let key = match import.filter(|import| !import.generate_keys) {
        Some(_) => vec![ArgumentPart::RecordKey],
        None => made_key(settings),
    };
    let value = vec![if import.is_some() { ArgumentPart::RecordValue } else { ArgumentPart::Data }];
    let of_record = import.is_some_and(|import| !import.no_expiry) && settings.expiry.is_none();
    let range = settings.expiry.filter(|_| import.is_none_or(|import| !import.no_expiry));
    if settings.memcached {
        let time = match range {
            Some(range) => seconds(range),
            None if of_record => vec![ArgumentPart::RecordExpiry],
            None => literal("0"),
        };
        return vec![literal("set"), key, literal("0"), time, value];
    }
    match (settings.value("data-offset"), range) {
        (Some(offset), _) => vec![literal("SETRANGE"), key, literal(offset), value],
        // A time of 0 is none that Redis takes.
        (None, Some((least, most))) => vec![literal("SETEX"), key, seconds((least.max(1), most)), value],
        (None, None) if expiring => vec![literal("SETEX"), key, vec![ArgumentPart::RecordExpiry], value],
        (None, None) => vec![literal("SET"), key, value],
    }
}

/// Returns whether records have commands of their own where they do not live for ever.
fn has_expiring(settings: &Settings) -> bool {
    let lives = settings.import.as_ref().is_some_and(|import| !import.no_expiry);
    lives
        && settings.ratio.0 > 0
        && !settings.memcached
        && settings.expiry.is_none()
        && !settings.has("data-offset")
}

fn made_key(settings: &Settings) -> Vec<ArgumentPart> {
    let prefix = settings.value("key-prefix").unwrap_or("memtier-");
    vec![ArgumentPart::Literal(prefix.as_bytes().to_vec()), ArgumentPart::Key(0)]
}

/// The command that gets keys.
fn get_of(settings: &Settings, key: Vec<ArgumentPart>, keys: u64) -> Vec<Vec<ArgumentPart>> {
    match settings.value("data-offset") {
        _ if settings.memcached => {
            let keys = (0..keys).map(|_| key.clone());
            std::iter::once(literal("get")).chain(keys).collect()
        }
        Some(offset) => vec![literal("GETRANGE"), key, literal(offset), literal("-1")],
        None => vec![literal("GET"), key],
    }
}

fn operation(
    name: &str,
    turns: u64,
    command: Vec<Vec<ArgumentPart>>,
    space: KeySpace,
    writes: bool,
) -> CommandOperation {
    CommandOperation {
        name: name.to_owned(),
        turns,
        commands: vec![command],
        keys: vec![Some(1)],
        writes,
        misses: !writes,
        space,
        goes_on: false,
    }
}

/// Sets and gets.
fn standard(settings: &Settings) -> Vec<CommandOperation> {
    let (sets, gets) = settings.ratio;
    let (of_sets, of_gets) = settings.patterns;
    let set = set_of(settings, false);
    let key = match settings.import.as_ref().filter(|import| !import.generate_keys) {
        Some(_) => vec![ArgumentPart::KeyOfRecord],
        None => made_key(settings),
    };
    let mut all = vec![operation("SET", sets, set, space(settings, of_sets), true)];
    let get = |name: &str, turns: u64, keys: u64| {
        operation(name, turns, get_of(settings, key.clone(), keys), space(settings, of_gets), false)
    };
    match settings.multi_key_get {
        None => all.push(get("GET", gets, 1)),
        Some(keys) => {
            // The last one of a turn asks for what is left.
            all.push(get("GET", gets / keys, keys));
            let rest = get("GET-rest", u64::from(gets % keys > 0), gets % keys);
            all.push(CommandOperation { goes_on: gets / keys > 0, ..rest });
        }
    }
    all.retain(|operation| operation.turns > 0);
    all
}

/// The WAIT command, and when its turn is. It is the last of the operations.
fn waits(settings: &Settings, operations: &mut Vec<CommandOperation>) -> Option<Between> {
    let waits = settings.waits?;
    let (least, most) = waits.replicas;
    let replicas = vec![ArgumentPart::Number { range: (least, most), digits: 0, group: None }];
    let timeout = vec![ArgumentPart::Middling(waits.timeout_ms.0, waits.timeout_ms.1)];
    operations.push(CommandOperation {
        name: "WAIT".into(),
        turns: 0,
        commands: vec![vec![literal("WAIT"), replicas, timeout]],
        keys: vec![None],
        writes: true,
        misses: false,
        space: space(settings, 'R'),
        goes_on: false,
    });
    // Where there are no sets, there is the first one alone.
    let every = if settings.ratio.0 > 0 { waits.every } else { u64::MAX };
    Some(Between { operation: operations.len() - 1, after: 0, every })
}

/// The parts of an argument: the first `__key__` in it is a key.
fn parts(word: &[u8], prefix: &str) -> Vec<ArgumentPart> {
    const KEY: &[u8] = b"__key__";
    if word == b"__data__" {
        return vec![ArgumentPart::Data];
    }
    let Some(at) = word.windows(KEY.len()).position(|window| window == KEY) else {
        return vec![ArgumentPart::Literal(word.to_vec())];
    };
    let mut all =
        vec![ArgumentPart::Literal([&word[..at], prefix.as_bytes()].concat()), ArgumentPart::Key(0)];
    if at + KEY.len() < word.len() {
        all.push(ArgumentPart::Literal(word[at + KEY.len()..].to_vec()));
    }
    all
}

fn own(settings: &Settings, number: usize, command: &OwnCommand) -> CommandOperation {
    let prefix = settings.value("key-prefix").unwrap_or("memtier-");
    let name = shown(command);
    let before = settings.own[..number].iter().filter(|earlier| shown(earlier) == name).count();
    CommandOperation {
        name: if before == 0 { name.clone() } else { format!("{name}-{}", before + 1) },
        turns: command.ratio,
        commands: vec![command.words.iter().map(|word| parts(word, prefix)).collect()],
        keys: vec![Some(key_of(&name)).filter(|key| usize::from(*key) < command.words.len())],
        writes: !READS.contains(&name.as_str()),
        misses: READS.contains(&name.as_str()),
        space: space(settings, command.pattern),
        goes_on: false,
    }
}

/// Number of the argument that says which node has the data.
fn key_of(name: &str) -> u16 {
    match name {
        "EVAL" | "EVALSHA" | "EVAL_RO" | "EVALSHA_RO" | "FCALL" | "FCALL_RO" => 3,
        _ => 1,
    }
}

/// A command's name in capitals.
fn shown(command: &OwnCommand) -> String {
    String::from_utf8_lossy(&command.words[0]).to_ascii_uppercase()
}

/// The load; `seed` for draws, `records` of the file where there is one.
pub fn load(settings: &Settings, seed: u64, records: &Arc<[ImportedRecord]>) -> Commands {
    let ranged;
    let settings = match settings.import.as_ref().filter(|import| !import.generate_keys) {
        Some(_) => {
            ranged = Settings { keys: (1, records.len() as u64), ..settings.clone() };
            &ranged
        }
        None => settings,
    };
    let mut operations = match settings.own.is_empty() {
        true => standard(settings),
        false => {
            let all = settings.own.iter().enumerate().filter(|(_, command)| command.ratio > 0);
            all.map(|(number, command)| own(settings, number, command)).collect()
        }
    };
    if settings.iterates.is_some() {
        // Another with the cursor of the last reply.
        let mut goes_on = operations[0].clone();
        (goes_on.name, goes_on.turns) = ("SCAN <cursor>".into(), 0);
        goes_on.commands[0][..2].clone_from_slice(&[literal("SCAN"), vec![ArgumentPart::Cursor]]);
        operations[0].name = "SCAN 0".into();
        operations.push(goes_on);
    }
    let between = waits(settings, &mut operations);
    let expiring = has_expiring(settings).then(|| {
        let space = space(settings, settings.patterns.0);
        operations.push(operation("SETEX", 0, set_of(settings, true), space, true));
        operations.len() - 1
    });
    Commands {
        operations,
        between,
        users: settings.users(),
        size: settings.size.clone(),
        random: settings.has("random-data"),
        fixed: None,
        seed,
        apart: settings.has("distinct-client-seed"),
        stands_for: None,
        iterates: settings.iterates,
        by_user: settings.has("client-stats"),
        records: ImportedRecords { all: records.clone(), expiring, verify: false },
    }
}

/// Gets of what the first client has set, and how many; none where it has set nothing.
pub fn verification(settings: &Settings, commands: &Commands) -> Option<(Commands, u64)> {
    let (sets, users) = (settings.ratio.0, commands.users);
    let run = CommandRun::new(commands).ok().filter(|_| sets > 0)?;
    let count = run.first_in(settings.requests.unwrap_or(0));
    let key = commands.operations[0].commands[0][1].clone();
    let (min, max) = commands.operations[0].space.of_user(0, users);
    let pattern = match commands.operations[0].space.pattern {
        Pattern::Parallel => Pattern::Sequential,
        other => other,
    };
    let get = get_of(settings, key, 1);
    let one = Commands {
        operations: vec![operation("GET", sets, get, KeySpace { min, max, pattern }, false)],
        between: None,
        users: 1,
        by_user: false,
        stands_for: Some(FirstOf { cycle: commands.cycle(), users }),
        records: ImportedRecords { expiring: None, verify: true, ..commands.records.clone() },
        ..commands.clone()
    };
    (count > 0).then_some((one, count))
}

/// The rows of the table, without the one of all.
pub fn rows(settings: &Settings) -> Vec<TableRow> {
    rows_by(settings, settings.breakdown)
}

/// The same, where commands of one name share a row or do not.
pub(super) fn rows_by(settings: &Settings, breakdown: Breakdown) -> Vec<TableRow> {
    if settings.own.is_empty() {
        let (sets, gets) = settings.ratio;
        let kinds = match settings.multi_key_get.filter(|_| gets > 0) {
            Some(keys) => usize::from(gets >= keys) + usize::from(gets % keys > 0),
            None => usize::from(gets > 0),
        };
        let first = usize::from(sets > 0);
        let waits = first + kinds..first + kinds + usize::from(settings.waits.is_some());
        let expiring = waits.end..waits.end + usize::from(has_expiring(settings));
        let row =
            |name: &str, metrics: Vec<usize>, bytes: bool| TableRow { name: name.into(), metrics, bytes };
        return vec![
            row("Sets", (0..first).chain(expiring).collect(), true),
            row("Gets", (first..first + kinds).collect(), true),
            // memtier does not count their bytes.
            row("Waits", waits.collect(), false),
        ];
    }
    if settings.iterates.is_some() {
        let row =
            |name: &str, metric: usize| TableRow { name: name.into(), metrics: vec![metric], bytes: true };
        return vec![row("Scan 0s", 0), row("Scan <cursor>s", 1)];
    }
    let mut all: Vec<TableRow> = Vec::new();
    let sent = settings.own.iter().filter(|command| command.ratio > 0);
    for (number, command) in sent.enumerate() {
        let word = shown(command).to_ascii_lowercase();
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let name = format!("{}{}s", first.map(String::from).unwrap_or_default(), letters.as_str());
        match all.iter_mut().find(|row| row.name == name && breakdown == Breakdown::Command) {
            Some(row) => row.metrics.push(number),
            None => all.push(TableRow { name, metrics: vec![number], bytes: true }),
        }
    }
    all
}
