//! The load of the settings: which commands, in which turns, with which keys.

use super::args::{Breakdown, OwnCommand, Settings};
use dyno_workload::commands::{Commands, KeySpace, Operation, Part, Pattern};
use dyno_workload::distributions::RejectionInversion;

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
pub struct Row {
    /// The command's name as memtier shows it in the table: `Sets`.
    pub name: String,
    /// Metrics, by number.
    pub metrics: Vec<usize>,
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

fn literal(text: &str) -> Vec<Part> {
    vec![Part::Literal(text.as_bytes().to_vec())]
}

/// Sets and gets.
fn standard(settings: &Settings) -> Vec<Operation> {
    let prefix = settings.value("key-prefix").unwrap_or("memtier-");
    let key = vec![Part::Literal(prefix.as_bytes().to_vec()), Part::Key(0)];
    let offset = settings.value("data-offset").map(literal);
    let set = match (&offset, settings.expiry) {
        (Some(offset), _) => vec![literal("SETRANGE"), key.clone(), offset.clone(), vec![Part::Data]],
        (None, Some((least, most))) => {
            // A time of 0 is none that Redis takes.
            let time = Part::Number { range: (least.max(1), most), digits: 0, group: None };
            vec![literal("SETEX"), key.clone(), vec![time], vec![Part::Data]]
        }
        (None, None) => vec![literal("SET"), key.clone(), vec![Part::Data]],
    };
    let get = match offset {
        Some(offset) => vec![literal("GETRANGE"), key, offset, literal("-1")],
        None => vec![literal("GET"), key],
    };
    let (sets, gets) = settings.ratio;
    let (of_sets, of_gets) = settings.patterns;
    let operation = |name: &str, turns: u64, command: Vec<Vec<Part>>, letter: char, writes: bool| Operation {
        name: name.to_owned(),
        turns,
        commands: vec![command],
        keys: vec![Some(1)],
        writes,
        misses: !writes,
        space: space(settings, letter),
    };
    let all = [operation("SET", sets, set, of_sets, true), operation("GET", gets, get, of_gets, false)];
    all.into_iter().filter(|operation| operation.turns > 0).collect()
}

/// The parts of an argument: the first `__key__` in it is a key.
fn parts(word: &[u8], prefix: &str) -> Vec<Part> {
    const KEY: &[u8] = b"__key__";
    if word == b"__data__" {
        return vec![Part::Data];
    }
    let Some(at) = word.windows(KEY.len()).position(|window| window == KEY) else {
        return vec![Part::Literal(word.to_vec())];
    };
    let mut all = vec![Part::Literal([&word[..at], prefix.as_bytes()].concat()), Part::Key(0)];
    if at + KEY.len() < word.len() {
        all.push(Part::Literal(word[at + KEY.len()..].to_vec()));
    }
    all
}

fn own(settings: &Settings, number: usize, command: &OwnCommand) -> Operation {
    let prefix = settings.value("key-prefix").unwrap_or("memtier-");
    let name = shown(command);
    let before = settings.own[..number].iter().filter(|earlier| shown(earlier) == name).count();
    Operation {
        name: if before == 0 { name.clone() } else { format!("{name}-{}", before + 1) },
        turns: command.ratio,
        commands: vec![command.words.iter().map(|word| parts(word, prefix)).collect()],
        keys: vec![Some(key_of(&name)).filter(|key| usize::from(*key) < command.words.len())],
        writes: !READS.contains(&name.as_str()),
        misses: READS.contains(&name.as_str()),
        space: space(settings, command.pattern),
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

/// The load; `seed` for draws.
pub fn load(settings: &Settings, seed: u64) -> Commands {
    let operations = match settings.own.is_empty() {
        true => standard(settings),
        false => {
            let all = settings.own.iter().enumerate().filter(|(_, command)| command.ratio > 0);
            all.map(|(number, command)| own(settings, number, command)).collect()
        }
    };
    Commands {
        operations,
        users: settings.users(),
        size: settings.size.clone(),
        random: settings.has("random-data"),
        fixed: None,
        seed,
        apart: settings.has("distinct-client-seed"),
    }
}

/// The rows of the table, without the one of all.
pub fn rows(settings: &Settings) -> Vec<Row> {
    if settings.own.is_empty() {
        let (sets, gets) = settings.ratio;
        let first = usize::from(sets > 0);
        let of = |has: bool, number: usize| if has { vec![number] } else { Vec::new() };
        return vec![
            Row { name: "Sets".into(), metrics: of(sets > 0, 0) },
            Row { name: "Gets".into(), metrics: of(gets > 0, first) },
            Row { name: "Waits".into(), metrics: Vec::new() },
        ];
    }
    let mut all: Vec<Row> = Vec::new();
    let sent = settings.own.iter().filter(|command| command.ratio > 0);
    for (number, command) in sent.enumerate() {
        let word = shown(command).to_ascii_lowercase();
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let name = format!("{}{}s", first.map(String::from).unwrap_or_default(), letters.as_str());
        match all.iter_mut().find(|row| row.name == name && settings.breakdown == Breakdown::Command) {
            Some(row) => row.metrics.push(number),
            None => all.push(Row { name, metrics: vec![number] }),
        }
    }
    all
}
