//! POCDriver's log file: the original's, whose first fields run into each other and which counts inserts only, and dyno's
//! readable form, which counts everything.

use crate::import::{BadFile, Found, ImportDetails, Input, count, in_interval, metric};
use dyno_rundir::imported::ImportedInterval;
use dyno_types::limits::IMPORT_COUNT;

/// Column of dyno's form and dyno's name.
const OPERATIONS: [(&str, &str); 4] = [
    ("inserts", "INSERT"),
    ("keyqueries", "KEYQUERY"),
    ("updates", "UPDATE"),
    ("rangequeries", "RANGEQUERY"),
];

/// Time and counts so far of one line, and the shares within the threshold.
struct PocRow {
    begun: Option<String>,
    seconds: u64,
    counts: Vec<u64>,
    shares: Vec<(String, String)>,
}

/// Reads a log file.
pub fn read(input: &Input, said: &ImportDetails) -> Result<Found, BadFile> {
    let first = input.text.lines().next().unwrap_or("");
    let readable = first.starts_with("time,seconds,");
    let mut rows = Vec::new();
    for (number, line) in input.text.lines().enumerate().skip(usize::from(readable)) {
        if line.trim().is_empty() {
            continue;
        }
        rows.push(if readable {
            own(input, first, number + 1, line)?
        } else {
            original(input, number + 1, line)?
        });
    }
    let Some(last) = rows.last().filter(|row| row.seconds > 0) else {
        return Err(BadFile::new(&input.path, 1, "POCDriver's log file (--logfile)", first));
    };
    let names = &OPERATIONS[..last.counts.len()];
    let mut found = Found { program: "POCDriver", phase: "measure", ..Found::default() };
    found.seconds = last.seconds as f64;
    found.started.clone_from(&rows[0].begun);
    if found.started.is_some() {
        found.facts.insert("started".into(), "by the first line; its time zone is taken for UTC".into());
    }
    found.facts.extend(last.shares.iter().cloned());
    let (mut before_s, mut before) = (0, vec![0; names.len()]);
    for row in &rows {
        let since: Vec<u64> =
            row.counts.iter().zip(&before).map(|(now, then)| now.saturating_sub(*then)).collect();
        let metrics = names.iter().zip(&since).filter(|(_, n)| **n > 0);
        found.intervals.push(ImportedInterval {
            start_ms: before_s * 1_000,
            length_ms: row.seconds.saturating_sub(before_s) * 1_000,
            ended: count(since.iter().sum()),
            metrics: metrics.map(|((_, name), n)| in_interval(name, *n, None, true)).collect(),
        });
        let most = row.counts.iter().zip(&before).map(|(now, then)| *now.max(then));
        (before_s, before) = (row.seconds.max(before_s), most.collect());
    }
    let counted = names.iter().zip(&last.counts).filter(|(_, n)| **n > 0);
    found.metrics = counted.map(|((_, name), n)| metric(name, count(*n), None, true)).collect();
    found.outcomes = count(last.counts.iter().sum());
    if !readable {
        found
            .unknown
            .push("operations other than inserts (the original's log file counts inserts only)".into());
    }
    found.unknown.push("latencies (the file has shares within a threshold)".into());
    found.unknown.push("failures".into());
    if said.users.is_none() {
        found.unknown.push("the number of users (--users)".into());
    }
    Ok(found)
}

fn begun(clock: &str, seconds: u64) -> Option<String> {
    let at: jiff::civil::DateTime = clock.parse().ok()?;
    let at = at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    at.checked_sub(std::time::Duration::from_secs(seconds)).ok().map(|at| at.to_string())
}

/// `10,40172026-11-21T03:32:05,10,4017,99.08,...`: seconds, inserts and the time without a comma between them, then for each
/// operation the share within the threshold.
fn original(input: &Input, number: usize, line: &str) -> Result<PocRow, BadFile> {
    let expected = "SECONDS,INSERTSyyyy-MM-ddTHH:mm:ss,SECONDS,INSERTS,SHARE,... as POCDriver writes it";
    let bad = || BadFile::new(&input.path, number, expected, line);
    let cells: Vec<&str> = line.split(',').collect();
    let [seconds, joined, again, inserts, ..] = cells[..] else { return Err(bad()) };
    let clock = joined.strip_prefix(inserts).ok_or_else(bad)?;
    let parsed = |text: &str| text.parse::<u64>().ok().filter(|n| *n <= IMPORT_COUNT);
    let (true, Some(seconds), Some(inserts)) = (seconds == again, parsed(seconds), parsed(inserts)) else {
        return Err(bad());
    };
    let begun = begun(clock, seconds).ok_or_else(bad)?;
    let groups = cells[1..].split(|cell| cell.is_empty());
    let every: Vec<&[&str]> =
        groups.flat_map(|group| group.chunks(4)).filter(|group| group.len() == 4).collect();
    let shares = every.iter().zip(OPERATIONS).map(|(group, (name, _))| {
        (format!("{name} within the slow threshold, per cent"), group[3].to_owned())
    });
    Ok(PocRow { begun: Some(begun), seconds, counts: vec![inserts], shares: shares.collect() })
}

fn own(input: &Input, head: &str, number: usize, line: &str) -> Result<PocRow, BadFile> {
    let names: Vec<&str> = head.split(',').collect();
    let cells: Vec<&str> = line.split(',').collect();
    let get = |name: &str| {
        let at = names.iter().position(|known| *known == name);
        let text = at.and_then(|at| cells.get(at)).copied().unwrap_or("");
        let expected = format!("a whole number in column {name}");
        let read = text.parse::<u64>().ok().filter(|n| *n <= IMPORT_COUNT);
        read.ok_or_else(|| BadFile::new(&input.path, number, &expected, text))
    };
    let seconds = get("seconds")?;
    let counts = OPERATIONS.iter().map(|(name, _)| get(name)).collect::<Result<_, _>>()?;
    let shares = names.iter().zip(&cells).filter(|(name, _)| name.ends_with("_pct"));
    Ok(PocRow {
        begun: begun(cells[0], seconds),
        seconds,
        counts,
        shares: shares.map(|(name, share)| ((*name).to_owned(), (*share).to_owned())).collect(),
    })
}
