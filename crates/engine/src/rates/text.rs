//! Rates over time as they are typed: `20k`, `ramp:1k-20k:30s`, `file:rates.csv`.

use super::day::DayCurve;
use super::file::{FileManner, FileProblem, read_points};
use super::pieces::Pieces;
use super::profile::Profile;
use dyno_types::units::{BadUnit, Rate, parse_duration_ns, parse_rate, parse_rate_or_zero};
use std::io;

const SECOND_NS: u64 = 1_000_000_000;
/// A day's curve has this period unless another is given.
const DAY_NS: u64 = 24 * 3_600 * SECOND_NS;
/// Shortest period of bursts and of a day's curve, and shortest mean of a state.
const SHORTEST_NS: u64 = 1_000_000;

/// The forms of a rate over time: their name before the colon, and all of it.
const FORMS: [(&str, &str); 6] = [
    ("ramp:", "ramp:FROM-TO:DURATION"),
    ("steps:", "steps:RATE:DURATION,RATE:DURATION"),
    ("file:", "file:PATH, file:PATH:steps, file:PATH:repeat or file:PATH:steps:repeat"),
    ("day:", "day:LOW:HIGH, day:LOW:HIGH:PERIOD or day:LOW:HIGH:PERIOD:PEAK"),
    ("bursty:", "bursty:MEAN:PEAK:PERIOD"),
    ("mmpp:", "mmpp:RATE:DURATION,RATE:DURATION"),
];

/// A text that is no rate over time.
#[derive(Debug, thiserror::Error)]
#[error("{why}{}", expected_forms(.text, .why))]
pub struct BadProfile {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    #[source]
    pub why: ProfileProblem,
}

/// What is accepted, where the text itself is wrong.
fn expected_forms(text: &str, why: &ProfileProblem) -> String {
    if matches!(why, ProfileProblem::Unreadable(..) | ProfileProblem::File(..)) {
        return String::new();
    }
    let own = FORMS.iter().find(|(name, _)| text.starts_with(name));
    let all = || {
        let (last, others) = (FORMS[FORMS.len() - 1].1, &FORMS[..FORMS.len() - 1]);
        let others: Vec<&str> =
            others.iter().map(|(_, form)| form.split(',').next().unwrap_or(form)).collect();
        format!("{} or {last}", others.join(", "))
    };
    match own {
        Some((_, form)) => format!("; expected {form}"),
        None => format!("; a rate over time is {}", all()),
    }
}

/// Error in a rate over time.
#[derive(Debug, thiserror::Error)]
pub enum ProfileProblem {
    /// A ramp without its length.
    #[error("a ramp needs a duration")]
    NoDuration,
    /// A ramp without two rates.
    #[error("a ramp needs two rates")]
    NoRates,
    /// A step without its length.
    #[error("the step {0:?} needs a rate and a duration")]
    Step(String),
    /// Steps, or states, of which none has a rate.
    #[error("every rate is 0: nothing would ever be due")]
    Nothing,
    /// Another number of parts between colons.
    #[error("{0} parts behind the name")]
    Parts(usize),
    /// A day's curve whose least rate is above its greatest.
    #[error("the low rate {} is above the high rate {}", Rate(*.0), Rate(*.1))]
    LowAboveHigh(f64, f64),
    /// A peak that is not within the period.
    #[error("the peak is at {0:?}, which is not within the period")]
    PeakOutside(String),
    /// Bursts whose peak is below the mean.
    #[error("the peak {} is below the mean {}: bursts add up to the mean", Rate(*.1), Rate(*.0))]
    PeakBelowMean(f64, f64),
    /// A process of another number of states.
    #[error("{0} states: expected 2, each with its rate and the mean time that it lasts")]
    States(usize),
    /// A process whose states are the same.
    #[error("both states have the rate {}", Rate(*.0))]
    SameStates(f64),
    /// A time that is too short.
    #[error("{0:?} is too short: expected 1ms or more")]
    Short(String),
    /// A file without a name.
    #[error("the path of the file is missing")]
    NoPath,
    /// A file that cannot be read.
    #[error("{0}: {1}")]
    Unreadable(String, #[source] io::Error),
    /// A file that is no rate over time.
    #[error("{0}: {1}")]
    File(String, #[source] FileProblem),
    /// A rate or a duration that is none.
    #[error(transparent)]
    Quantity(#[from] BadUnit),
}

/// What a rate over time needs beside its text.
pub struct ProfileSource<'a> {
    /// Seed of what changes by chance.
    pub seed: u64,
    /// Reads a file by the path in the text.
    pub file: &'a dyn Fn(&str) -> io::Result<String>,
}

/// The path of the file that a text names, and how it is read.
fn split_path(rest: &str) -> (&str, FileManner) {
    let (mut path, mut manner) = (rest, FileManner::default());
    loop {
        if let Some(before) = path.strip_suffix(":repeat").filter(|_| !manner.repeat) {
            (path, manner.repeat) = (before, true);
        } else if let Some(before) = path.strip_suffix(":steps").filter(|_| !manner.steps) {
            (path, manner.steps) = (before, true);
        } else {
            return (path, manner);
        }
    }
}

/// Returns the path of the file that a rate over time names; `None` where it names none.
pub fn file_of_rate(text: &str) -> Option<&str> {
    Some(split_path(text.strip_prefix("file:")?).0)
}

impl Profile {
    /// Reads a rate such as `20000`, or a rate over time such as `ramp:1000-20000:30s`, `steps:1000:10s,2000:10s`,
    /// `file:rates.csv`, `day:100:2k`, `bursty:500:5k:10s` or `mmpp:100:30s,2k:5s`.
    ///
    /// # Errors
    /// What is wrong with the text or the file, and which form was expected.
    pub fn parse(text: &str, source: &ProfileSource<'_>) -> Result<Self, BadProfile> {
        let text = text.trim();
        read(text, source).map_err(|why| BadProfile { text: text.to_owned(), why })
    }
}

fn read(text: &str, source: &ProfileSource<'_>) -> Result<Profile, ProfileProblem> {
    if let Some(rest) = text.strip_prefix("ramp:") {
        let (rates, over) = rest.split_once(':').ok_or(ProfileProblem::NoDuration)?;
        let (from, to) = rates.split_once('-').ok_or(ProfileProblem::NoRates)?;
        return Ok(Profile::Ramp {
            from: parse_rate_or_zero(from)?,
            to: parse_rate(to)?,
            over_ns: parse_duration_ns(over, SECOND_NS)?.max(1),
        });
    }
    if let Some(rest) = text.strip_prefix("steps:") {
        let steps = read_steps(rest)?;
        return match steps.iter().any(|(rate, _)| *rate > 0.0) {
            true => Ok(Profile::Steps { steps }),
            false => Err(ProfileProblem::Nothing),
        };
    }
    if let Some(rest) = text.strip_prefix("file:") {
        let (path, manner) = split_path(rest);
        if path.is_empty() {
            return Err(ProfileProblem::NoPath);
        }
        let text = (source.file)(path).map_err(|error| ProfileProblem::Unreadable(path.to_owned(), error))?;
        let pieces = read_points(&text, manner).map_err(|why| ProfileProblem::File(path.to_owned(), why))?;
        return Ok(Profile::Pieces(pieces));
    }
    if let Some(rest) = text.strip_prefix("day:") {
        return read_day(rest).map(Profile::Day);
    }
    if let Some(rest) = text.strip_prefix("bursty:") {
        let parts: Vec<&str> = rest.split(':').collect();
        let [mean, peak, period] = parts[..] else { return Err(ProfileProblem::Parts(parts.len())) };
        let (mean, peak, period_ns) = (parse_rate(mean)?, parse_rate(peak)?, long_enough(period)?);
        let bursts = Pieces::bursts(mean, peak, period_ns);
        return bursts.map(Profile::Pieces).ok_or(ProfileProblem::PeakBelowMean(mean, peak));
    }
    if let Some(rest) = text.strip_prefix("mmpp:") {
        let states = read_steps(rest)?;
        let [(first, _), (second, _)] = states[..] else { return Err(ProfileProblem::States(states.len())) };
        rest.split(',')
            .filter_map(|part| part.split_once(':'))
            .try_for_each(|(_, mean)| long_enough(mean).map(drop))?;
        if first == second {
            return Err(if first > 0.0 {
                ProfileProblem::SameStates(first)
            } else {
                ProfileProblem::Nothing
            });
        }
        let process = Pieces::two_state([states[0], states[1]], source.seed);
        return process.map(Profile::Pieces).ok_or(ProfileProblem::Nothing);
    }
    Ok(Profile::Constant { rate: parse_rate(text)? })
}

fn read_steps(text: &str) -> Result<Vec<(f64, u64)>, ProfileProblem> {
    let step = |part: &str| {
        let (rate, length) = part.split_once(':').ok_or_else(|| ProfileProblem::Step(part.to_owned()))?;
        let rate = parse_rate_or_zero(rate)?;
        Ok((rate, parse_duration_ns(length, SECOND_NS)?.max(1)))
    };
    text.split(',').map(step).collect()
}

fn long_enough(text: &str) -> Result<u64, ProfileProblem> {
    match parse_duration_ns(text, SECOND_NS)? {
        ns if ns >= SHORTEST_NS => Ok(ns),
        _ => Err(ProfileProblem::Short(text.to_owned())),
    }
}

fn read_day(text: &str) -> Result<DayCurve, ProfileProblem> {
    let parts: Vec<&str> = text.split(':').collect();
    let (low, high, period, peak) = match parts[..] {
        [low, high] => (low, high, None, None),
        [low, high, period] => (low, high, Some(period), None),
        [low, high, period, peak] => (low, high, Some(period), Some(peak)),
        _ => return Err(ProfileProblem::Parts(parts.len())),
    };
    let (low, high) = (parse_rate_or_zero(low)?, parse_rate(high)?);
    if low > high {
        return Err(ProfileProblem::LowAboveHigh(low, high));
    }
    let period_ns = period.map_or(Ok(DAY_NS), long_enough)?;
    let peak_ns = match peak {
        Some(text) => {
            let ns = parse_duration_ns(text, SECOND_NS)?;
            if ns > period_ns {
                return Err(ProfileProblem::PeakOutside(text.to_owned()));
            }
            ns
        }
        // The beginning is the least rate.
        None => period_ns / 2,
    };
    Ok(DayCurve { low, high, period_ns, peak_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Profile, BadProfile> {
        let file = |path: &str| match path {
            "none.csv" => Err(io::Error::from(io::ErrorKind::NotFound)),
            text => Ok(text.replace('|', "\n")),
        };
        Profile::parse(text, &ProfileSource { seed: 1, file: &file })
    }

    fn wrong(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn profiles_as_typed() {
        assert!(matches!(parse("20k"), Ok(Profile::Constant { rate: 20_000.0 })));
        let ramp = Profile::Ramp { from: 1e3, to: 2e4, over_ns: 30_000_000_000 };
        assert_eq!(parse("ramp:1k-20k:30s").unwrap(), ramp);
        assert!(matches!(parse("steps:1k:10s,2k:5s"), Ok(Profile::Steps { steps }) if steps.len() == 2));
        let Ok(Profile::Day(day)) = parse("day:0:2k") else { panic!("no day") };
        assert_eq!((day.period_ns, day.peak_ns), (DAY_NS, DAY_NS / 2));
        let Ok(Profile::Day(day)) = parse("day:10:20:10m:2m") else { panic!("no day") };
        assert_eq!((day.period_ns, day.peak_ns), (600 * SECOND_NS, 120 * SECOND_NS));
        assert!(parse("bursty:1k:5k:10s").is_ok() && parse("mmpp:0:1s,5k:1m").is_ok());
        assert_eq!(file_of_rate("file:a:b.csv:steps:repeat"), Some("a:b.csv"));
        assert_eq!(file_of_rate("file:steps"), Some("steps"));
        assert_eq!(file_of_rate("ramp:1-2:3s"), None);
    }

    #[test]
    fn files_have_two_columns_of_several_forms() {
        let rates = |text: &str| {
            let profile = parse(text).unwrap();
            [0, 5, 10, 15, 20, 25].map(|second| profile.rate_at(second * SECOND_NS))
        };
        let lines = [100.0, 150.0, 200.0, 100.0, 0.0, 0.0];
        for text in [
            "file:0,100|10,200|20,0",
            "file:time;rate||# a remark|0s;100|10s;200/s|20s;0",
            "file:\u{feff}\"t\",\"r\"|\"0\",\"100\"|\"10\",\"0.2k\"|\"20\",\"0\"",
            "file:1700000000\t100|1700000010\t200|1700000020\t0",
            "file:0 100|10   200|20 0",
        ] {
            assert_eq!(rates(text), lines, "{text}");
        }
        assert_eq!(rates("file:0,100|10,200|20,0:steps"), [100.0, 100.0, 200.0, 200.0, 0.0, 0.0]);
        assert_eq!(rates("file:0,100|10,200|20,0:steps:repeat"), [100.0, 100.0, 200.0, 200.0, 100.0, 100.0]);
        assert_eq!(rates("file:0,100|10,200|20,0:repeat"), [100.0, 150.0, 200.0, 100.0, 100.0, 150.0]);
        // Two points of one time are a jump.
        assert_eq!(rates("file:0,100|10,100|10,300|20,300"), [100.0, 100.0, 300.0, 300.0, 300.0, 300.0]);
    }

    #[test]
    fn what_is_wrong_is_named_with_the_form_that_is_right() {
        for (text, why) in [
            ("ramp:5", "a ramp needs a duration; expected ramp:FROM-TO:DURATION"),
            ("ramp:5-0:1s", "\"0\" is not a rate: expected operations per second above 0"),
            ("steps:0:1s,0:2s", "every rate is 0"),
            ("file:", "the path of the file is missing; expected file:PATH"),
            ("file::repeat", "the path of the file is missing"),
            ("file:none.csv", "none.csv: entity not found"),
            ("file:0,1|1", "line 2: \"1\": expected two columns"),
            ("file:0,1|1,2,3", "line 2: \"1,2,3\": expected two columns"),
            ("file:0,1|5,-2", "line 2: \"-2\" is not a rate: expected operations per second, 0 or more"),
            ("file:0,1|soon,2", "line 2: \"soon\" is not a duration"),
            ("file:time,rate|x,y", "line 2: \"x\" is not a duration"),
            ("file:5,1|4,2", "line 2: \"4\" is not later than the line before"),
            ("file:5,1|5,2|6,3:steps", "line 2: \"5\" is not later than the line before"),
            ("file:5,1", "1 lines with a time and a rate: expected 2 or more"),
            ("file:# nothing", "0 lines with a time and a rate"),
            ("file:0,0|9,0", "every rate is 0: nothing would ever be due"),
            ("file:0,0|9,5:steps:repeat", "every rate is 0"),
            ("day:5", "1 parts behind the name; expected day:LOW:HIGH"),
            ("day:5:4", "the low rate 5 is above the high rate 4"),
            ("day:0:0", "\"0\" is not a rate"),
            ("day:1:2:1h:2h", "the peak is at \"2h\", which is not within the period"),
            ("day:1:2:1us", "\"1us\" is too short: expected 1ms or more"),
            ("bursty:10:5:1s", "the peak 5 is below the mean 10"),
            ("bursty:10:50", "2 parts behind the name; expected bursty:MEAN:PEAK:PERIOD"),
            ("bursty:10:50:10us", "\"10us\" is too short"),
            ("mmpp:1:1s", "1 states: expected 2"),
            ("mmpp:1:1s,1:2s", "both states have the rate 1"),
            ("mmpp:0:1s,0:2s", "every rate is 0"),
            ("mmpp:0:1s,5:2us", "\"2us\" is too short"),
            ("wave:1", "or mmpp:RATE:DURATION"),
        ] {
            assert!(wrong(text).contains(why), "{text}: {}", wrong(text));
        }
    }
}
