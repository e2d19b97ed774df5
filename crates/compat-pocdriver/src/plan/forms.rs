//! The forms in which POCDriver's parser (commons-cli) takes flags, brought into one: `--name=value`.
//!
//! A long name may follow one dash or two, its beginning is enough where only one flag begins so, and it comes before
//! letters: `-em` is `--empty`, not `-e -m`. A value stands behind a blank, behind `=`, or behind its letter or name at
//! once (`-k20`, `-keyqueries20`). Of a flag that is given twice the first counts. Flags that dyno adds take no beginning
//! away from the original's.

use crate::plan::args::PocArgs;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};
use dyno_rundir::schema::Setting;
use dyno_types::secret::mask_text;
use std::ffi::OsString;

/// Brings the arguments behind `pocdriver` of a whole command line into one form; `warn` hears of flags that are given twice.
pub fn normal(arguments: Vec<OsString>, warn: fn(&str)) -> Vec<OsString> {
    // Options of dyno itself stand before the command, and take no values.
    let is_option = |word: &OsString| word.to_str().is_some_and(|word| word.starts_with('-'));
    let at = arguments.iter().skip(1).position(|word| !is_option(word)).map_or(0, |at| at + 1);
    if at == 0 || arguments[at] != "pocdriver" {
        return arguments;
    }
    let (words, notes) = rewritten(arguments, at + 1);
    notes.iter().for_each(|note| warn(note));
    words
}

/// Every flag with its value, and whether it was typed, by what clap has found behind `pocdriver`; passwords are masked.
pub fn effective(matches: &ArgMatches) -> Vec<Setting> {
    let command = PocArgs::augment_args(Command::new("pocdriver"));
    let of = |flag: &clap::Arg| {
        let name = flag.get_id().as_str();
        let values: Vec<String> =
            matches.get_raw(name)?.map(|value| value.to_string_lossy().into_owned()).collect();
        let typed = matches.value_source(name) == Some(ValueSource::CommandLine);
        Some(Setting {
            key: flag.get_long()?.to_owned(),
            value: mask_text(&values.join(",")),
            source: if typed { "command line".into() } else { "default".into() },
        })
    };
    command.get_arguments().filter_map(of).collect()
}

struct PocFlag {
    letter: Option<char>,
    /// The name that the parser knows, and others for it.
    names: Vec<String>,
    has_value: bool,
    /// True if the original has it under its first name.
    original: bool,
}

/// All flags.
fn flags() -> Vec<PocFlag> {
    let command = PocArgs::augment_args(Command::new("pocdriver"));
    let mut all: Vec<PocFlag> = command
        .get_arguments()
        .filter_map(|flag| {
            let mut names = vec![flag.get_long()?.to_owned()];
            names.extend(flag.get_all_aliases().into_iter().flatten().map(str::to_owned));
            Some(PocFlag {
                letter: flag.get_short(),
                has_value: flag.get_action().takes_values(),
                // The original's text speaks of opsratio, its parser of opratio only.
                original: flag.get_help_heading().is_none() && names[0] != "opsratio",
                names,
            })
        })
        .collect();
    all.push(PocFlag { letter: Some('h'), names: vec!["help".into()], has_value: false, original: true });
    all
}

/// The only flag with a name that is `word` or, failing that, begins with it.
fn by_name<'a>(flags: &'a [PocFlag], word: &str) -> Vec<&'a PocFlag> {
    let of = |is: &dyn Fn(&PocFlag, &str) -> bool| -> Vec<&'a PocFlag> {
        flags.iter().filter(|flag| flag.names.iter().any(|name| is(flag, name))).collect()
    };
    let exact = of(&|_, name| name == word);
    if !exact.is_empty() {
        return exact;
    }
    let originals = of(&|flag, name| flag.original && name.starts_with(word));
    if originals.is_empty() { of(&|_, name| name.starts_with(word)) } else { originals }
}

/// Kinds of arguments.
enum Argument<'a> {
    /// Flags, the last of them with a value if there is one behind it.
    Flags(Vec<&'a PocFlag>, Option<String>),
    /// Nothing that is known: left for the parser to refuse.
    Other(String),
}

fn read<'a>(flags: &'a [PocFlag], argument: &str) -> Argument<'a> {
    let other = || Argument::Other(argument.to_owned());
    let Some(rest) = argument.strip_prefix('-').filter(|rest| !rest.is_empty()) else { return other() };
    let long = rest.strip_prefix('-').unwrap_or(rest);
    let (word, value) = match long.split_once('=') {
        Some((word, value)) => (word, Some(value.to_owned())),
        None => (long, None),
    };
    let single = long.len() == rest.len();
    let letter = |c: char| flags.iter().find(|flag| flag.letter == Some(c));
    let mut letters = word.chars();
    if let (true, Some(c), None) = (single, letters.next(), letters.next()) {
        return letter(c).map_or_else(other, |flag| Argument::Flags(vec![flag], value));
    }
    match by_name(flags, word)[..] {
        [flag] if !word.is_empty() => return Argument::Flags(vec![flag], value),
        [] => {}
        // Several: behind two dashes the parser names them.
        _ => return Argument::Other(format!("--{long}")),
    }
    if !single {
        return other();
    }
    // A whole name and its value.
    let named = |flag: &'a PocFlag| {
        let name = flag.names.iter().find(|name| long.starts_with(name.as_str()))?;
        (flag.has_value).then(|| Argument::Flags(vec![flag], Some(long[name.len()..].to_owned())))
    };
    flags.iter().find_map(named).or_else(|| together(long, &letter)).unwrap_or_else(other)
}

/// Letters in a row; what stands behind the first one that takes a value is its value.
fn together<'a>(text: &str, letter: &dyn Fn(char) -> Option<&'a PocFlag>) -> Option<Argument<'a>> {
    let mut found = Vec::new();
    for (at, c) in text.char_indices() {
        let flag = letter(c)?;
        found.push(flag);
        let behind = &text[at + c.len_utf8()..];
        if flag.has_value && !behind.is_empty() {
            let value = behind.strip_prefix('=').unwrap_or(behind);
            return Some(Argument::Flags(found, Some(value.to_owned())));
        }
    }
    Some(Argument::Flags(found, None))
}

/// Returns whether an argument may be the value of the flag before it: no flag, or a negative number.
fn is_value(flags: &[PocFlag], argument: &str) -> bool {
    argument.parse::<f64>().is_ok()
        || !argument.starts_with('-')
        || matches!(read(flags, argument), Argument::Other(_))
}

/// The arguments, of which the first `kept` are no flags of POCDriver, and notes on what was given twice.
fn rewritten(arguments: Vec<OsString>, kept: usize) -> (Vec<OsString>, Vec<String>) {
    let flags = flags();
    let (mut out, mut notes): (Vec<OsString>, Vec<String>) = (Vec::new(), Vec::new());
    let mut seen: Vec<(&str, Option<String>)> = Vec::new();
    let mut rest = arguments.into_iter();
    out.extend(rest.by_ref().take(kept));
    let mut rest = rest.peekable();
    while let Some(argument) = rest.next() {
        let said = argument.to_str().map(|text| read(&flags, text));
        let Some(Argument::Flags(found, mut value)) = said else {
            out.push(match said {
                Some(Argument::Other(text)) => text.into(),
                _ => argument,
            });
            continue;
        };
        let last = found.len() - 1;
        for (at, flag) in found.into_iter().enumerate() {
            let name = flag.names[0].as_str();
            let mut own = if at == last { value.take() } else { None };
            if own.is_none() && flag.has_value && at == last {
                let next = rest.next_if(|next| next.to_str().is_some_and(|next| is_value(&flags, next)));
                own = next.and_then(|next| next.into_string().ok());
            }
            match seen.iter().find(|(earlier, _)| *earlier == name) {
                None => {
                    out.push(
                        own.as_ref().map_or(format!("--{name}"), |own| format!("--{name}={own}")).into(),
                    );
                    seen.push((name, own));
                }
                Some((_, first)) if *first != own => {
                    let first = first.as_deref().unwrap_or_default();
                    notes
                        .push(format!("--{name} is given twice: the first counts, {first}, as in POCDriver"));
                }
                Some(_) => {}
            }
        }
    }
    (out, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> (String, Vec<String>) {
        let typed = format!("dyno pocdriver {text}");
        let (words, notes) = rewritten(typed.split(' ').map(OsString::from).collect(), 2);
        let words: Vec<&str> = words[2..].iter().map(|word| word.to_str().unwrap()).collect();
        (words.join(" "), notes)
    }

    #[test]
    fn options_of_dyno_may_stand_before_the_command() {
        let normal = |text: &str| {
            let words = normal(text.split(' ').map(OsString::from).collect(), |_| ());
            words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(normal("dyno -v pocdriver -p -numfields 2"), "dyno -v pocdriver --print --numfields=2");
        assert_eq!(normal("dyno pocdriver -k 20"), "dyno pocdriver --keyqueries=20");
        // Others keep their own.
        for text in ["dyno run pocdriver -k 20", "dyno", "dyno -v", "dyno -v ycsb run -k 20"] {
            assert_eq!(normal(text), text);
        }
    }

    #[test]
    fn every_flag_is_a_setting_and_typed_ones_say_so() {
        let command = PocArgs::augment_args(Command::new("pocdriver"));
        let matches =
            command.clone().try_get_matches_from(["pocdriver", "--keyqueries=20", "--empty"]).unwrap();
        let all = effective(&matches);
        let source = |key: &str| {
            all.iter().find(|one| one.key == key).map(|one| (one.value.as_str(), one.source.as_str()))
        };
        assert_eq!(
            (source("keyqueries"), source("empty")),
            (Some(("20", "command line")), Some(("true", "command line")))
        );
        assert_eq!(source("print"), Some(("false", "default")));
        // All but those that have no value unless they are typed.
        let bare =
            |flag: &&clap::Arg| flag.get_action().takes_values() && flag.get_default_values().is_empty();
        let known: Vec<&clap::Arg> =
            command.get_arguments().filter(|flag| flag.get_long().is_some()).collect();
        assert_eq!(all.len(), known.iter().filter(|flag| !bare(flag)).count());
    }

    #[test]
    fn every_form_of_a_flag_is_the_same() {
        for form in [
            "-k20",
            "-k=20",
            "-k 20",
            "--keyqueries=20",
            "--keyqueries 20",
            "-keyqueries 20",
            "-keyqueries=20",
        ] {
            assert_eq!(line(form).0, "--keyqueries=20", "{form}");
        }
        for (typed, expected) in [
            ("-keyqueries20 -key 3", "--keyqueries=20"),
            ("-threads 4 -i5 -u 20", "--threads=4 --inserts=5 --updates=20"),
            ("-threadIdStart=3 -e", "--threadIdStart=3 --empty"),
            ("-rangeq 3 --ranged 4", "--rangequeries=3 --rangedocs=4"),
            ("-cmongodb://h/?w=1 -c=x", "--host=mongodb://h/?w=1"),
            ("-c=mongodb://h/?w=1", "--host=mongodb://h/?w=1"),
            // Letters together, the last with a value; but names come first.
            ("-ew -viuk", "--empty --nosharding --workflow=iuk"),
            ("-em -pi20", "--empty --print --inserts=20"),
            ("-wt 7", "--nosharding --threads=7"),
            // Beginnings that are unique in the original stay so beside dyno's own flags.
            ("--s 50 --fu --ops 9 --opr", "--slowthreshold=50 --fulltext --opsPerSecond=9 --opsratio"),
            ("--opsratio --se 4 -seed=5", "--opsratio --seed=4"),
            // No values where flags follow; numbers may be negative.
            ("-t -e -i -1", "--threads --empty --inserts=-1"),
            // Unknown arguments are left to be refused.
            ("--insrts 3 stray -", "--insrts 3 stray -"),
            ("-th 3 --in 4", "--th 3 --in 4"),
            ("-h", "--help"),
        ] {
            assert_eq!(line(typed).0, expected, "{typed}");
        }
    }

    #[test]
    fn the_first_of_a_repeated_flag_counts_and_the_user_is_told() {
        let (message, notes) = line("-t 7 -threads=8 -e -e");
        assert_eq!(message, "--threads=7 --empty");
        assert_eq!(notes, ["--threads is given twice: the first counts, 7, as in POCDriver"]);
        assert!(line("-t 7 -t 7").1.is_empty());
    }

    #[test]
    fn all_37_flags_of_the_original_are_there() {
        let flags = flags();
        let of_the_original: Vec<&PocFlag> = flags.iter().filter(|flag| flag.original).collect();
        // And opratio, the other name of opsratio.
        assert_eq!(of_the_original.len() + 1, 37);
        assert!(flags.iter().any(|flag| flag.names.contains(&"opratio".to_owned())));
        let letters: String = of_the_original.iter().filter_map(|flag| flag.letter).collect();
        assert_eq!(letters.len(), 26, "{letters}");
    }

    #[test]
    fn other_commands_are_left_alone() {
        let words: Vec<OsString> = "dyno run -threads 4 -k=2".split(' ').map(OsString::from).collect();
        assert_eq!(normal(words.clone(), |_| ()), words);
    }
}
