//! Expiry times of Redis' commands. Absolute ones are moved: what was to expire an hour after its command then does so an hour
//! after it now. Relative ones are divided by the speed where that is asked for.

use crate::entry::Arguments;

/// Where a command has an absolute time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimePlace {
    /// At this word, in units of so many nanoseconds.
    At(usize, i128),
    /// Behind `EXAT` or `PXAT`, from this word on.
    Behind(usize),
    /// The same behind as many pairs as this word says.
    BehindPairs(usize),
    /// At this word, milliseconds, if the command says `ABSTTL`.
    IfAbsolute(usize),
}

const SECOND_NS: i128 = 1_000_000_000;
const MILLISECOND_NS: i128 = 1_000_000;

/// Commands with absolute times.
const COMMANDS: [(&str, TimePlace); 10] = [
    ("EXPIREAT", TimePlace::At(2, SECOND_NS)),
    ("PEXPIREAT", TimePlace::At(2, MILLISECOND_NS)),
    ("HEXPIREAT", TimePlace::At(2, SECOND_NS)),
    ("HPEXPIREAT", TimePlace::At(2, MILLISECOND_NS)),
    ("SET", TimePlace::Behind(3)),
    ("GETEX", TimePlace::Behind(2)),
    ("HGETEX", TimePlace::Behind(2)),
    ("HSETEX", TimePlace::Behind(2)),
    ("MSETEX", TimePlace::BehindPairs(1)),
    ("RESTORE", TimePlace::IfAbsolute(2)),
];

/// Commands with relative times; the unit is that of the absolute ones.
const RELATIVE: [(&str, TimePlace); 12] = [
    ("EXPIRE", TimePlace::At(2, SECOND_NS)),
    ("PEXPIRE", TimePlace::At(2, MILLISECOND_NS)),
    ("HEXPIRE", TimePlace::At(2, SECOND_NS)),
    ("HPEXPIRE", TimePlace::At(2, MILLISECOND_NS)),
    ("SETEX", TimePlace::At(2, SECOND_NS)),
    ("PSETEX", TimePlace::At(2, MILLISECOND_NS)),
    ("SET", TimePlace::Behind(3)),
    ("GETEX", TimePlace::Behind(2)),
    ("HGETEX", TimePlace::Behind(2)),
    ("HSETEX", TimePlace::Behind(2)),
    ("MSETEX", TimePlace::BehindPairs(1)),
    ("RESTORE", TimePlace::IfAbsolute(2)),
];

/// Whether times count from 1970 or from the command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeKind {
    Absolute,
    Relative,
}

impl TimeKind {
    fn commands(self) -> &'static [(&'static str, TimePlace)] {
        if self == TimeKind::Absolute { &COMMANDS } else { &RELATIVE }
    }

    /// The options behind which a time stands: in seconds, and in milliseconds.
    fn options(self) -> [&'static str; 2] {
        if self == TimeKind::Absolute { ["EXAT", "PXAT"] } else { ["EX", "PX"] }
    }
}

/// Returns whether a command has the name of one that may hold an absolute time.
pub(super) fn has_absolute_times(arguments: &Arguments) -> bool {
    COMMANDS.iter().any(|(name, _)| arguments.is_named(name))
}

/// Returns whether a command holds a relative time.
pub(super) fn has_relative_time(arguments: &Arguments) -> bool {
    RELATIVE.iter().any(|(name, _)| arguments.is_named(name))
        && find_time(arguments, TimeKind::Relative).is_some()
}

/// The word that holds a time of this kind, and its unit.
fn find_time(arguments: &Arguments, kind: TimeKind) -> Option<(usize, i128)> {
    let place = kind.commands().iter().find(|(name, _)| arguments.is_named(name))?.1;
    let is = |number: usize, word: &str| arguments.word(number).eq_ignore_ascii_case(word.as_bytes());
    let count = arguments.count();
    let place = match place {
        TimePlace::BehindPairs(number) if number < count => {
            let pairs: usize = std::str::from_utf8(arguments.word(number)).ok()?.parse().ok()?;
            TimePlace::Behind(pairs.checked_mul(2)?.checked_add(number + 1)?)
        }
        place => place,
    };
    match place {
        TimePlace::BehindPairs(_) => None,
        TimePlace::At(number, unit) => (number < count).then_some((number, unit)),
        TimePlace::Behind(from) => {
            // What stands behind FIELDS are names and values.
            let end = (from..count).find(|number| is(*number, "FIELDS")).unwrap_or(count);
            let [seconds, milliseconds] = kind.options();
            let unit = |number: usize| match number {
                number if is(number, seconds) => Some(SECOND_NS),
                number if is(number, milliseconds) => Some(MILLISECOND_NS),
                _ => None,
            };
            let found = (from..end).find_map(|number| Some((number + 1, unit(number)?)));
            found.filter(|(number, _)| *number < count)
        }
        TimePlace::IfAbsolute(number) => {
            let is_absolute = (number + 2..count).any(|other| is(other, "ABSTTL"));
            let is_wanted = number < count && is_absolute == (kind == TimeKind::Absolute);
            is_wanted.then_some((number, MILLISECOND_NS))
        }
    }
}

/// Moves the absolute time of a command by so many nanoseconds; `None` where it has none.
pub(super) fn move_expiry(arguments: &Arguments, by_ns: i128) -> Option<Arguments> {
    let (place, unit_ns) = find_time(arguments, TimeKind::Absolute)?;
    let time: i128 = std::str::from_utf8(arguments.word(place)).ok()?.parse().ok()?;
    // Zero and less delete at once, and RESTORE takes 0 for never.
    if time <= 0 {
        return None;
    }
    Some(with_time(arguments, place, time.saturating_add(by_ns / unit_ns).max(1)))
}

/// Divides the relative time of a command by a speed, to at least one of its units; `None` where it has none.
pub(super) fn scale_expiry(arguments: &Arguments, speed: f64) -> Option<Arguments> {
    let (place, _) = find_time(arguments, TimeKind::Relative)?;
    let time: i64 = std::str::from_utf8(arguments.word(place)).ok()?.parse().ok()?;
    if time <= 0 {
        return None;
    }
    Some(with_time(arguments, place, ((time as f64 / speed).round() as i128).max(1)))
}

/// The same command with another time at this word.
fn with_time(arguments: &Arguments, place: usize, time: i128) -> Arguments {
    let mut out = Arguments::default();
    for (number, word) in arguments.words().enumerate() {
        match arguments.long_value(number) {
            Some(value) => out.push_long(value),
            None if number == place => out.push_word(time.to_string().as_bytes()),
            None => out.push_word(word),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(line: &str) -> Option<String> {
        let arguments = Arguments::from_words(line.split(' '));
        let found = move_expiry(&arguments, 60 * SECOND_NS)?;
        Some(found.words().map(String::from_utf8_lossy).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn relative_times_are_divided_by_the_speed() {
        let scaled = |line: &str| {
            let found = scale_expiry(&Arguments::from_words(line.split(' ')), 3.0)?;
            Some(found.words().map(String::from_utf8_lossy).collect::<Vec<_>>().join(" "))
        };
        for (then, now) in [
            ("EXPIRE k 60", "EXPIRE k 20"),
            ("pexpire k 1000 NX", "pexpire k 333 NX"),
            ("SETEX k 2 v", "SETEX k 1 v"),
            ("SETEX k 1 v", "SETEX k 1 v"),
            ("SET k EX PX 900", "SET k EX PX 300"),
            ("GETEX k EX 30", "GETEX k EX 10"),
            ("HSETEX k FNX EX 30 FIELDS 1 EX 5", "HSETEX k FNX EX 10 FIELDS 1 EX 5"),
            ("RESTORE k 9000 v", "RESTORE k 3000 v"),
        ] {
            assert_eq!(scaled(then).as_deref(), Some(now));
        }
        for line in
            ["SET k v EXAT 1700000000", "RESTORE k 9000 v ABSTTL", "RESTORE k 0 v", "EXPIRE k -1", "GET EX"]
        {
            assert_eq!(scaled(line), None, "{line}");
        }
    }

    #[test]
    fn absolute_times_are_moved_and_others_are_not() {
        for (then, now) in [
            ("EXPIREAT k 1700000000", "EXPIREAT k 1700000060"),
            ("pexpireat k 1700000000000 NX", "pexpireat k 1700000060000 NX"),
            ("HEXPIREAT k 1700000000 FIELDS 1 f", "HEXPIREAT k 1700000060 FIELDS 1 f"),
            ("SET k EXAT nx exat 1700000000", "SET k EXAT nx exat 1700000060"),
            ("GETEX k PXAT 1700000000000", "GETEX k PXAT 1700000060000"),
            ("HSETEX k FNX EXAT 1700000000 FIELDS 1 PXAT 5", "HSETEX k FNX EXAT 1700000060 FIELDS 1 PXAT 5"),
            ("MSETEX 1 EXAT 5 EXAT 1700000000", "MSETEX 1 EXAT 5 EXAT 1700000060"),
            ("RESTORE k 1700000000000 v ABSTTL", "RESTORE k 1700000060000 v ABSTTL"),
        ] {
            assert_eq!(moved(then).as_deref(), Some(now));
        }
        for line in [
            "SET k v EX 60",
            "EXPIRE k 60",
            "RESTORE k 60000 v",
            "GET EXAT",
            "SET k v EXAT",
            "EXPIREAT k",
            "EXPIREAT k -1",
            "EXPIREAT k x",
            "HSETEX k FIELDS 1 EXAT 1700000000",
        ] {
            assert_eq!(moved(line), None, "{line}");
        }
    }
}
