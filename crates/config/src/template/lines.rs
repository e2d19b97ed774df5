//! Commands one by one, as a command line has them, with the placeholders of memtier_benchmark and valkey-benchmark.

use crate::template::arguments::{ArgumentScope, key_format, text};
use crate::template::fields::Bad;
use crate::template::values::{KeySpaceName, Scope, TableName};
use crate::template::words::split_words;
use crate::yaml::YamlNode;
use dyno_types::limits::RECORD_BYTES;
use dyno_workload::command_mix::{CommandMix, CommandStep, DataTable, MixOperation, NamedKeys, StepMode};
use dyno_workload::template::NumberDistribution;

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
    pub fn parse(self) -> Result<CommandMix, String> {
        let nowhere: YamlNode = serde_saphyr::from_str("null").map_err(|e| e.to_string())?;
        let unplaced = |(_, why): Bad| why;
        let space = |name: &str, format: &str| {
            let format = key_format(format, &nowhere).map_err(unplaced)?;
            let spread = NumberDistribution::Uniform;
            Ok::<_, String>(NamedKeys { name: name.into(), count: self.keys, first: 0, format, spread })
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
            return Err(format!("{ratios} ratios: expected at most one for each of the {lines} commands"));
        }
        let shared = text(b"%{key:rand}", &nowhere, &names).map_err(unplaced)?;
        let mut operations: Vec<MixOperation> = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            let wrong = |why: String| format!("{line:?}: {why}");
            let words = split_words(line.as_bytes()).map_err(wrong)?;
            let mut steps: Vec<CommandStep> = Vec::new();
            for words in words.split(|word| word == b";") {
                let argument = |word: &Vec<u8>| {
                    let word = placeholders(word)?;
                    text(&word, &nowhere, &names).map_err(unplaced)
                };
                let arguments = words.iter().map(argument).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
                let Some(first) = words.first().filter(|first| !first.contains(&b'%')) else {
                    return Err(wrong("expected a literal word first, the command's name".into()));
                };
                let called = String::from_utf8_lossy(first).replace('.', "_");
                let name = unused(&called.to_lowercase(), |name| steps.iter().any(|one| one.name == name));
                steps.push(CommandStep { name, arguments, ..CommandStep::default() });
            }
            let called: Vec<String> = steps.iter().map(|step| step.name.to_uppercase()).collect();
            let name = unused(&called.join("_"), |name| operations.iter().any(|one| one.name == name));
            operations.push(MixOperation {
                name,
                weight: self.ratio.get(number).copied().unwrap_or(1.0),
                bound: vec![shared.clone(); SHARED.len()],
                has_steps: steps.len() > 1,
                steps,
                mode: StepMode::Ordered,
                own: None,
            });
        }
        let mix = CommandMix { keys, tables, operations, seed: self.seed, ..CommandMix::default() };
        mix.check().map_err(|wrong| format!("{} {}: expected {}", wrong.key, wrong.value, wrong.expected))?;
        Ok(mix)
    }
}

/// The name, with a number behind it where it is taken.
fn unused(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut all = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}{number}")));
    all.find(|one| !taken(one)).unwrap_or_default()
}

/// Placeholders of the other tools as generators.
fn placeholders(word: &[u8]) -> Result<Vec<u8>, String> {
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
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &[&str], ratio: &[f64]) -> Result<CommandMix, String> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let data = DataTable {
            name: "data".into(),
            columns: vec!["sku".into()],
            rows: vec![vec![b"x".to_vec()]],
            in_order: false,
        };
        CommandLines { lines: &lines, ratio, keys: 10, data: Some(data), seed: 1 }.parse()
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
        let shown = |word: &str| String::from_utf8(placeholders(word.as_bytes()).unwrap()).unwrap();
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
        for (lines, ratio, words) in [
            (&["SET \"a"][..], &[][..], "is not closed"),
            (&["%{key} a"], &[], "literal word first"),
            (&["GET a ;"], &[], "literal word first"),
            (&["GET %{kye}"], &[], "did you mean key?"),
            (&["GET %{int:a}"], &[], "%{int:a}"),
            (&["GET __field:name__"], &[], "there is no column \"name\""),
            (&["GET a"], &[1.0, 2.0], "2 ratios"),
            (&[""], &[], "literal word first"),
        ] {
            let why = parse(lines, ratio).unwrap_err();
            assert!(why.contains(words), "{lines:?}: {why}");
        }
    }
}
