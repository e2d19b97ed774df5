//! Commands one by one, as a command line has them, with the placeholders of memtier_benchmark and valkey-benchmark.

use crate::template::arguments::{ArgumentScope, key_format, text};
use crate::template::command_text_error::CommandTextError;
use crate::template::fields::Bad;
use crate::template::values::{KeySpaceName, Scope, TableName};
use crate::template::words::split_words;
use crate::yaml::YamlNode;
use dyno_types::limits::RECORD_BYTES;
use dyno_workload::command_mix::{CommandMix, CommandStep, DataTable, MixOperation, NamedKeys, StepMode};
use dyno_workload::template::NumberDistribution;
use std::collections::HashMap;

/// Placeholders of one number for a whole operation.
const SHARED: [&str; 9] = [
    "rand_1st", "rand_2nd", "rand_3rd", "rand_4th", "rand_5th", "rand_6th", "rand_7th", "rand_8th",
    "rand_9th",
];

/// Commands, each a line, and what their placeholders draw from.
pub struct CommandLines<'a> {
    /// The lines; `;` as a word of its own stands between the commands of a sequence.
    pub lines: &'a [String],
    /// Weights, in the same order; those that are not given are 1.
    pub ratio: &'a [f64],
    /// Numbers of these lines in their file, where they are of one: those of the same commands are measured together.
    pub numbers: Option<&'a [usize]>,
    /// Number of keys of `%{key}`, `__key__` and `__rand_int__`.
    pub keys: u64,
    /// Rows of `__field:NAME__` and `%{row:data.NAME}`.
    pub data: Option<DataTable>,
    /// Seed of all draws.
    pub seed: u64,
}

impl CommandLines<'_> {
    /// Reads them.
    ///
    /// # Errors
    /// Names the line and what is wrong with it.
    pub fn parse(self) -> Result<CommandMix, CommandTextError> {
        let nowhere: YamlNode =
            serde_saphyr::from_str("null").map_err(|e| CommandTextError::Generator(e.to_string()))?;
        let unplaced = |(_, why): Bad| CommandTextError::Generator(why);
        let space = |name: &str, format: &str| {
            let format = key_format(format, &nowhere).map_err(unplaced)?;
            let spread = NumberDistribution::Uniform;
            Ok::<_, CommandTextError>(NamedKeys {
                name: name.into(),
                count: self.keys,
                first: 0,
                format,
                spread,
            })
        };
        let keys = vec![space("key", "%{n}")?, space("rand", "%{n:12}")?];
        let names = keys.iter().map(|one| KeySpaceName { name: one.name.clone(), spread: one.spread });
        let tables: Vec<DataTable> = self.data.into_iter().collect();
        let table = |one: &DataTable| TableName { name: one.name.clone(), columns: one.columns.clone() };
        let scope =
            Scope::of_commands(names.collect(), tables.iter().map(table).collect(), RECORD_BYTES as i64);
        let bound = SHARED.map(str::to_owned).to_vec();
        let names = ArgumentScope { values: &scope, bound, kept: Vec::new() };
        if self.ratio.len() > self.lines.len() {
            let (ratios, lines) = (self.ratio.len(), self.lines.len());
            return Err(CommandTextError::Ratios { ratios, lines });
        }
        let shared = text(b"%{key:rand}", &nowhere, &names).map_err(unplaced)?;
        let mut operations: Vec<MixOperation> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for (number, line) in self.lines.iter().enumerate() {
            let place = self.numbers.and_then(|numbers| numbers.get(number)).copied();
            let wrong = |why: CommandTextError| CommandTextError::Line {
                number: place,
                line: line.clone(),
                source: Box::new(why),
            };
            let words = split_words(line.as_bytes()).map_err(wrong)?;
            let mut steps: Vec<CommandStep> = Vec::new();
            for words in words.split(|word| word == b";") {
                let argument = |word: &Vec<u8>| {
                    let word = placeholders(word);
                    text(&word, &nowhere, &names).map_err(unplaced)
                };
                let arguments = words.iter().map(argument).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
                let Some(first) = words.first().filter(|first| !first.contains(&b'%')) else {
                    return Err(wrong(CommandTextError::NoName));
                };
                let called = String::from_utf8_lossy(first).replace('.', "_");
                let name = unused(&called.to_lowercase(), |name| steps.iter().any(|one| one.name == name));
                steps.push(CommandStep { name, arguments, ..CommandStep::default() });
            }
            let called: Vec<String> = steps.iter().map(|step| step.name.to_uppercase()).collect();
            let group = called.join("_");
            // Names of commands do not end in digits, so that a number behind one is unused.
            let count = known.entry(group.clone()).or_default();
            *count += 1;
            let name = if *count == 1 { group.clone() } else { format!("{group}{count}") };
            operations.push(MixOperation {
                name,
                group: self.numbers.is_some().then_some(group),
                weight: self.ratio.get(number).copied().unwrap_or(1.0),
                bound: vec![shared.clone(); SHARED.len()],
                different: false,
                has_steps: steps.len() > 1,
                steps,
                mode: StepMode::Ordered,
                own: None,
            });
        }
        let mix = CommandMix { keys, tables, operations, seed: self.seed, ..CommandMix::default() };
        mix.check().map_err(CommandTextError::Mix)?;
        Ok(mix)
    }
}

/// A command of a file of lines.
#[derive(Clone, Debug, PartialEq)]
pub struct FileLine {
    /// Number of the line, from 1.
    pub number: usize,
    /// Weight among all.
    pub weight: f64,
    /// The command, or several with `;` between them.
    pub line: String,
}

/// Reads a file of commands: one a line, behind a weight or without one. Empty lines and those that begin with `#` are passed
/// over.
///
/// # Errors
/// Names the line whose weight is none, or says that there is no command.
pub fn read_file_lines(text: &str) -> Result<Vec<FileLine>, CommandTextError> {
    let mut all = Vec::new();
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        // No command begins with a digit.
        let (weight, line) = match first.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') {
            true => (first.parse().unwrap_or(f64::NAN), rest.trim_start()),
            false => (1.0, line),
        };
        if !(weight.is_finite() && weight > 0.0) {
            return Err(CommandTextError::Weight { line: number, weight: first.to_owned() });
        }
        all.push(FileLine { number, weight, line: line.to_owned() });
    }
    if all.is_empty() { Err(CommandTextError::NoCommand) } else { Ok(all) }
}

/// The name, with a number behind it where it is taken.
fn unused(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut all = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}{number}")));
    all.find(|one| !taken(one)).unwrap_or_default()
}

/// Placeholders of the other tools as generators.
fn placeholders(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < word.len() {
        let rest = &word[at..];
        let named = rest.strip_prefix(b"__").and_then(|rest| {
            let end = rest.windows(2).position(|two| two == b"__")?;
            std::str::from_utf8(&rest[..end]).ok()
        });
        let generator = match named {
            Some("key") => "memtier-%{key:key}".to_owned(),
            Some("data") => "%{string:32}".to_owned(),
            Some("rand_int") => "%{key:rand}".to_owned(),
            Some(name) if SHARED.contains(&name) => format!("%{{{name}}}"),
            Some(name) if name.starts_with("field:") => format!("%{{row:data.{}}}", &name[6..]),
            _ => {
                out.push(rest[0]);
                at += 1;
                continue;
            }
        };
        out.extend_from_slice(generator.as_bytes());
        at += named.map_or(0, str::len) + 4;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &[&str], ratio: &[f64]) -> Result<CommandMix, CommandTextError> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let data = DataTable {
            name: "data".into(),
            columns: vec!["sku".into()],
            rows: vec![vec![b"x".to_vec()]],
            in_order: false,
        };
        CommandLines { lines: &lines, ratio, numbers: None, keys: 10, data: Some(data), seed: 1 }.parse()
    }

    #[test]
    fn files_have_a_command_a_line_and_weights_before_them() {
        let text = "\u{feff}# as typed\nGET a\n\n  3 SET b 'x y'  \r\n0.5\tMULTI ; EXEC\n";
        let read: Vec<(usize, f64, String)> = read_file_lines(text)
            .unwrap()
            .into_iter()
            .map(|one| (one.number, one.weight, one.line))
            .collect();
        let expected = [(2, 1.0, "GET a"), (4, 3.0, "SET b 'x y'"), (5, 0.5, "MULTI ; EXEC")];
        assert_eq!(read, expected.map(|(number, weight, line)| (number, weight, line.to_owned())));
        for (text, why) in
            [("", "no command"), ("# x\n", "no command"), ("GET a\n-1 GET b", "line 2: the weight \"-1\"")]
        {
            assert!(read_file_lines(text).unwrap_err().to_string().contains(why), "{text}");
        }
        assert!(read_file_lines("1x GET a").unwrap_err().to_string().contains("the weight \"1x\""));
    }

    #[test]
    fn lines_of_a_file_with_the_same_commands_are_measured_together() {
        let lines = ["GET a", "get b", "FT.SEARCH i '@x:{y}'"].map(str::to_owned);
        let parse = |lines: &[String], numbers: &[usize]| {
            CommandLines { lines, ratio: &[], numbers: Some(numbers), keys: 10, data: None, seed: 1 }.parse()
        };
        let mix = parse(&lines, &[1, 2, 3]).unwrap();
        let names: Vec<(&str, Option<&str>)> =
            mix.operations.iter().map(|one| (one.name.as_str(), one.group.as_deref())).collect();
        assert_eq!(names, [("GET", Some("GET")), ("GET2", Some("GET")), ("FT_SEARCH", Some("FT_SEARCH"))]);
        let wrong = parse(&["GET %{kye}".to_owned()], &[7]).unwrap_err().to_string();
        assert!(wrong.starts_with("line 7: \"GET %{kye}\": "), "{wrong}");
    }

    #[test]
    fn names_and_weights_follow_the_lines() {
        let mix = parse(&["GET a", "get b", "MULTI ; INCR a ; EXEC"], &[3.0]).unwrap();
        let names: Vec<(&str, f64)> =
            mix.operations.iter().map(|one| (one.name.as_str(), one.weight)).collect();
        assert_eq!(names, [("GET", 3.0), ("GET2", 1.0), ("MULTI_INCR_EXEC", 1.0)]);
        assert_eq!(mix.operations[2].steps.len(), 3);
    }

    #[test]
    fn placeholders_are_those_of_the_other_tools() {
        let shown = |word: &str| String::from_utf8(placeholders(word.as_bytes())).unwrap();
        assert_eq!(shown("a__key__b"), "amemtier-%{key:key}b");
        assert_eq!(shown("{t}__rand_int__"), "{t}%{key:rand}");
        assert_eq!(
            (shown("__rand_2nd__"), shown("__field:sku__")),
            ("%{rand_2nd}".into(), "%{row:data.sku}".into())
        );
        assert_eq!((shown("__other__"), shown("__")), ("__other__".into(), "__".into()));
        assert!(parse(&["SET __key__ __data____field:sku__"], &[]).is_ok());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (lines, ratio, message) in [
            (&["SET \"a"][..], &[][..], "is not closed"),
            (&["%{key} a"], &[], "literal word first"),
            (&["GET a ;"], &[], "literal word first"),
            (&["GET %{kye}"], &[], "did you mean key?"),
            (&["GET %{int:a}"], &[], "%{int:a}"),
            (&["GET __field:name__"], &[], "there is no column \"name\""),
            (&["GET a"], &[1.0, 2.0], "2 ratios"),
            (&[""], &[], "literal word first"),
        ] {
            let why = parse(lines, ratio).unwrap_err().to_string();
            assert!(why.contains(message), "{lines:?}: {why}");
        }
    }
}
