//! `dyno run A --versus B`: both by turns, so that what drifts on the host is no difference, and compared at the end.

use crate::args;
use crate::options::RunArgs;
use crate::{compare, experiment};
use clap::ArgAction;
use dyno_config::experiment::Experiment;
use dyno_engine::Control;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::run_directory::{check_new, new_directory};
use dyno_frontend::secret::PasswordFrom;
use dyno_frontend::{signals, terminal};
use dyno_types::bounded;
use dyno_types::limits::OUTPUT_BYTES;
use dyno_types::secret::mask_text;
use dyno_types::units::Rate;
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Options of the whole that no single run has: name, and letter if it has one.
const OF_THE_WHOLE: [(&str, Option<char>); 6] = [
    ("versus", None),
    ("turns", None),
    ("seed", None),
    ("out", Some('o')),
    ("json", None),
    ("quiet", Some('q')),
];

/// Names the process of which a run is a turn: it ends with that.
pub(super) const TURN_OF: &str = "DYNO_TURN_OF";
/// Time between two looks at a turn that is under way.
const GLANCE: Duration = Duration::from_millis(20);
/// Names of the sides' folders.
const SIDES: [&str; 2] = ["a", "b"];

/// The command.
pub(super) fn versus(args: &RunArgs, other: &str) -> Result<Exit, Failure> {
    let Some(target) = args.target.as_deref() else {
        return Err(Failure::usage("--versus: expected a target before it: dyno run A --versus B"));
    };
    if args.password_from == Some(PasswordFrom::Prompt) {
        let message = "--versus cannot ask in each of its turns: --password-from env:NAME or file:PATH";
        return Err(Failure::usage(message));
    }
    let first: u64 = match args.spec.tree.find_path("seed") {
        Some(seed) => seed.read().map_err(Failure::usage)?,
        None => Experiment::default().seed,
    };
    check_new(args.result.out.as_ref())?;
    let folder = args.result.out.clone().unwrap_or_else(|| new_directory("versus"));
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let program = std::env::current_exe()?;
    let quiet = args.result.quiet || args.result.json;
    let say = |message: &str| {
        if !quiet {
            terminal::note(message);
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
            let seed = first + turn as u64 - 1;
            let seed = match experiment::is_experiment(targets[side]) {
                true => ["--set".to_owned(), format!("seed={seed}")],
                false => ["--seed".to_owned(), seed.to_string()],
            };
            let own = words_of_a_turn(&words, targets[side], &out, &seed);
            let (code, said) = carry_out(&program, &own, &control)?;
            if signals::interrupted() {
                return Err(Failure::Interrupted);
            }
            match code {
                Some(code @ (0 | 4 | 5)) => {
                    missed |= code == Exit::Threshold as i32;
                    say(&format!("turn {turn} of {}  {}  {}", args.turns, SIDES[side], outcome(&out)));
                }
                code => return Err(failed(code, SIDES[side], said.trim())),
            }
        }
    }
    let exit = compare::compare_turns(SIDES.map(|side| folder.join(side)), args.result.json)?;
    say(&format!("runs: {}", folder.display()));
    Ok(if exit == Exit::Ok && missed { Exit::Threshold } else { exit })
}

/// Carries out a turn: its exit code, and what it says on standard error. It hears signals from this process alone, not a second
/// time from the terminal.
fn carry_out(program: &Path, words: &[String], control: &Control) -> std::io::Result<(Option<i32>, String)> {
    let mut turn = Command::new(program)
        .args(words)
        .process_group(0)
        .env(TURN_OF, std::process::id().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let says = turn.stderr.take();
    let reader =
        std::thread::spawn(move || says.map_or(Ok(Vec::new()), |says| bounded::read_out(says, OUTPUT_BYTES)));
    let mut passed_on = 0;
    let code = loop {
        if let Some(status) = turn.try_wait()? {
            break status.code();
        }
        let asked = usize::from(control.is_stopping()) + usize::from(control.is_aborting());
        if passed_on < asked {
            passed_on += 1;
            interrupt(&turn)?;
        }
        std::thread::sleep(GLANCE);
    };
    let said = reader.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    Ok((code, String::from_utf8_lossy(&said).into_owned()))
}

/// This process, a turn of `parent`, is interrupted should that be killed.
pub(super) fn end_with(parent: i32) -> std::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::INT))?;
    // It may have been killed before that was asked for.
    match getppid().is_some_and(|pid| pid.as_raw_nonzero().get() == parent) {
        true => Ok(()),
        false => Err(std::io::Error::other("the command of which this is a turn is no more")),
    }
}

fn interrupt(turn: &Child) -> std::io::Result<()> {
    let pid = i32::try_from(turn.id()).ok().and_then(Pid::from_raw);
    // One that is stopped hears nothing else.
    let both = [Signal::INT, Signal::CONT];
    pid.map_or(Ok(()), |pid| {
        both.into_iter().try_for_each(|signal| kill_process(pid, signal)).map_err(std::io::Error::from)
    })
}

/// A turn that came to no result ends the whole, in its own words and with its own code.
fn failed(code: Option<i32>, side: &str, said: &str) -> Failure {
    let message = said.trim_start_matches("error: ");
    let message = format!("{side}: {message}");
    match code {
        Some(2) => Failure::usage(message),
        Some(3) => Failure::unreachable(message),
        Some(130) | None => Failure::Interrupted,
        _ => Failure::internal(message),
    }
}

/// What came out of a run, in words.
fn outcome(out: &Path) -> String {
    let run = dyno_report::recompute_summary::open_ended_run(out).ok().and_then(|(run, _)| run.summary);
    let Some(summary) = run else { return "done".into() };
    let rate =
        summary.measured_phase().map_or(String::new(), |phase| format!("{}/s  ", Rate(phase.throughput)));
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
    let of_the_whole = |letter: char| OF_THE_WHOLE.iter().any(|(_, own)| *own == Some(letter));
    let is_of_the_whole = |long: &str| OF_THE_WHOLE.iter().any(|(own, _)| *own == long);
    let (mut own, mut at, mut placed, mut begun) = (Vec::new(), 0, false, false);
    while at < all.len() {
        let word = all[at].as_str();
        let mut length = 1;
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            let name = long.split('=').next().unwrap_or(long);
            length += usize::from(name.len() == long.len() && of_name(name));
            if !is_of_the_whole(name) {
                own.extend(all[at..(at + length).min(all.len())].iter().cloned());
            }
        } else if let Some(letters) =
            word.strip_prefix('-').filter(|letters| *letters != "-" && !letters.is_empty())
        {
            // One that takes a value takes the rest of the word, or the next one.
            let valued = letters.char_indices().find(|(_, letter)| of_letter(*letter));
            let flags = &letters[..valued.map_or(letters.len(), |(place, _)| place)];
            let mut kept: String = flags.chars().filter(|letter| !of_the_whole(*letter)).collect();
            let last = valued.is_some_and(|(place, letter)| place + letter.len_utf8() == letters.len());
            length += usize::from(last);
            let kept_value = valued.filter(|(_, letter)| !of_the_whole(*letter));
            kept.extend(kept_value.map(|(place, _)| &letters[place..]));
            if !kept.is_empty() {
                own.push(format!("-{kept}"));
            }
            if last && kept_value.is_some() {
                own.extend(all.get(at + 1).cloned());
            }
        } else if begun && !placed && word != "--" {
            own.push(target.to_owned());
            placed = true;
        } else {
            own.push(word.to_owned());
            if word == "run" && !begun {
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
        let of = |text: &str| {
            let all: Vec<String> = text.split(' ').map(str::to_owned).collect();
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
        // Letters in one word.
        assert_eq!(
            of("run -vq redis://a -vqu 8 -qo x --versus redis://b"),
            format!("{run} -v redis://b -vu 8")
        );
        // What comes behind `--` is no option.
        assert_eq!(of("run --versus redis://b -- redis://a"), format!("{run} -- redis://b"));
    }
}
