//! The forms in which POCDriver's parser takes flags: a long name may follow a single dash (`-threads 4`), and its unique
//! beginning is enough.

use super::PocArgs;
use clap::{Args, Command};
use std::ffi::OsString;

/// Arguments of the whole command line, those behind `pocdriver` with long names behind two dashes.
pub fn normal(arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_none_or(|command| command != "pocdriver") {
        return arguments;
    }
    let flags = PocArgs::augment_args(Command::new("pocdriver"));
    let longs: Vec<&str> = flags.get_arguments().filter_map(|flag| flag.get_long()).collect();
    arguments.into_iter().map(|argument| two_dashes(&longs, argument)).collect()
}

fn two_dashes(longs: &[&str], argument: OsString) -> OsString {
    let Some(text) = argument.to_str() else { return argument };
    let Some(rest) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else { return argument };
    let name = rest.split('=').next().unwrap_or(rest);
    // One letter is a short flag, and digits behind a letter are its value.
    let is_word = name.len() > 2 && name.chars().all(|c| c.is_ascii_alphabetic());
    let exact = longs.contains(&name);
    let unique = longs.iter().filter(|long| long.starts_with(name)).count() == 1;
    if is_word && (exact || unique) { format!("-{text}").into() } else { argument }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_dashes_before_long_names() {
        let line = |text: &str| {
            let words = normal(text.split(' ').map(OsString::from).collect());
            words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        for (typed, expected) in [
            ("dyno pocdriver -threads 4 -i5 -k 20", "dyno pocdriver --threads 4 -i5 -k 20"),
            ("dyno pocdriver -threadIdStart=3 -e", "dyno pocdriver --threadIdStart=3 -e"),
            ("dyno pocdriver -rangeq 3", "dyno pocdriver --rangeq 3"),
            // Letters together, and a value behind its letter.
            ("dyno pocdriver -ew -viuk", "dyno pocdriver -ew -viuk"),
            ("dyno run -threads 4", "dyno run -threads 4"),
        ] {
            assert_eq!(line(typed), expected);
        }
    }
}
