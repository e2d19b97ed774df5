//! `dyno run A --versus B`: both by turns, so that what drifts on the host is no difference, and compared at the end.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::options::RunArgs;
use crate::run_directory::{check_new, new_directory};
use crate::{compare, experiment, signals, terminal};
use clap::ArgAction;
use dyno_engine::Control;
use dyno_types::secret::mask_text;
use dyno_types::units::Rate;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Options of the whole that no single run has: name, and letter if it has one.
const OF_THE_WHOLE: [(&str, Option<char>); 6] = [
    ("versus", None),
    ("turns", None),
    ("seed", None),
    ("out", Some('o')),
    ("json", None),
    ("quiet", Some('q')),
];

/// Names of the sides' folders.
const SIDES: [&str; 2] = ["a", "b"];

/// The command.
pub(super) fn versus(args: &RunArgs, other: &str) -> Result<Exit, Failure> {
    let Some(target) = args.target.as_deref() else {
        return Err(Failure::Usage("--versus: expected a target before it: dyno run A --versus B".into()));
    };
    check_new(args.out.as_ref())?;
    let folder = args.out.clone().unwrap_or_else(|| new_directory("versus"));
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let program = std::env::current_exe()?;
    let quiet = args.quiet || args.json;
    let say = |words: &str| {
        if !quiet {
            terminal::note(words);
        }
    };
    let targets = [target, other];
    for (side, target) in SIDES.iter().zip(targets) {
        std::fs::create_dir_all(folder.join(side))?;
        say(&format!("{side}: {}", mask_text(target)));
    }
    let mut missed = false;
    for turn in 1..=args.turns {
        // A B, then B A: a drift along a line falls on both alike.
        let order = if turn % 2 == 1 { [0, 1] } else { [1, 0] };
        for side in order {
            let out = folder.join(SIDES[side]).join(format!("{turn:02}"));
            // As repetitions have: the same for both sides of a turn.
            let seed = args.seed + turn as u64 - 1;
            let seed = match experiment::is_experiment(targets[side]) {
                true => ["--set".to_owned(), format!("seed={seed}")],
                false => ["--seed".to_owned(), seed.to_string()],
            };
            let own = words_of_a_turn(&words, targets[side], &out, &seed);
            let ended = Command::new(&program).args(&own).stdin(Stdio::null()).output()?;
            if signals::interrupted() {
                return Err(Failure::Interrupted);
            }
            let said = String::from_utf8_lossy(&ended.stderr);
            match ended.status.code() {
                Some(code @ (0 | 4 | 5)) => {
                    missed |= code == Exit::Threshold as i32;
                    say(&format!("turn {turn} of {}  {}  {}", args.turns, SIDES[side], outcome(&out)));
                }
                code => return Err(failed(code, SIDES[side], said.trim())),
            }
        }
    }
    let exit = compare::compare_turns(SIDES.map(|side| folder.join(side)), args.json)?;
    say(&format!("runs: {}", folder.display()));
    Ok(if exit == Exit::Ok && missed { Exit::Threshold } else { exit })
}

/// A turn that came to no result ends the whole, in its own words and with its own code.
fn failed(code: Option<i32>, side: &str, said: &str) -> Failure {
    let words = said.trim_start_matches("error: ");
    let words = format!("{side}: {words}");
    match code {
        Some(2) => Failure::Usage(words),
        Some(3) => Failure::Unreachable(words),
        Some(130) | None => Failure::Interrupted,
        _ => Failure::Internal(words),
    }
}

/// What came out of a run, in words.
fn outcome(out: &Path) -> String {
    let run = dyno_report::rebuilt::open(out).ok().and_then(|(run, _)| run.summary);
    let Some(summary) = run else { return "done".into() };
    let rate = summary.measured().map_or(String::new(), |phase| format!("{}/s  ", Rate(phase.throughput)));
    format!("{rate}{}", summary.verdict.trust.name())
}

/// The words of one run: those of the whole with another target, its own directory and its own `seed`.
fn words_of_a_turn(all: &[String], target: &str, out: &Path, seed: &[String]) -> Vec<String> {
    let whole = args::command();
    let run = whole.find_subcommand("run");
    let known: Vec<&clap::Arg> =
        run.into_iter().flat_map(clap::Command::get_arguments).chain(whole.get_arguments()).collect();
    let takes = |arg: &clap::Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let of_name = |name: &str| known.iter().any(|arg| arg.get_long() == Some(name) && takes(arg));
    let of_letter = |letter: char| known.iter().any(|arg| arg.get_short() == Some(letter) && takes(arg));
    let (mut own, mut at, mut placed, mut begun) = (Vec::new(), 0, false, false);
    while at < all.len() {
        let word = all[at].as_str();
        // How many words it has, and whether a single run has it.
        let (length, kept) = match word.strip_prefix("--") {
            Some(long) if !long.is_empty() => {
                let (name, inline) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
                let length = if !inline && of_name(name) { 2 } else { 1 };
                (length, OF_THE_WHOLE.iter().all(|(whole, _)| *whole != name))
            }
            _ => match word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                Some(letters) => {
                    // A letter that takes a value takes the rest of the word, or the next one.
                    let valued = letters.char_indices().find(|(_, letter)| of_letter(*letter));
                    let last =
                        valued.is_some_and(|(place, letter)| place + letter.len_utf8() == letters.len());
                    let first = letters.chars().next();
                    (
                        1 + usize::from(last),
                        OF_THE_WHOLE.iter().all(|(_, whole)| whole.is_none() || *whole != first),
                    )
                }
                None => (1, true),
            },
        };
        let is_option = word.len() > 1 && word.starts_with('-');
        if !is_option && begun && !placed {
            own.push(target.to_owned());
            placed = true;
        } else if kept {
            own.extend(all[at..(at + length).min(all.len())].iter().cloned());
            if !is_option && word == "run" && !begun {
                begun = true;
                // Before all others: what comes behind `--` is no option.
                own.extend(["--quiet".into(), "--out".into(), out.display().to_string()]);
                own.extend_from_slice(seed);
            }
        }
        at += length;
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_the_words_of_the_whole_but_its_own_target_and_directory() {
        let of = |words: &str| {
            let all: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let seed = ["--seed".to_owned(), "7".to_owned()];
            words_of_a_turn(&all, "redis://b", Path::new("x/b/01"), &seed).join(" ")
        };
        let run = "run --quiet --out x/b/01 --seed 7";
        assert_eq!(of("run redis://a --versus redis://b"), format!("{run} redis://b"));
        assert_eq!(
            of("-v run -n 1000 redis://a -u8 --versus=redis://b --turns 3 -o x -d 3s --require throughput>1"),
            format!("-v {run} -n 1000 redis://b -u8 -d 3s --require throughput>1")
        );
        // Values that look like the target are none.
        assert_eq!(
            of("run --workload redis://a redis://a --json -q --versus redis://b -ox"),
            format!("{run} --workload redis://a redis://b")
        );
        // What comes behind `--` is no option.
        assert_eq!(of("run --versus redis://b -- redis://a"), format!("{run} -- redis://b"));
    }
}
