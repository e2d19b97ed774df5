//! Tables of any program or user: a column of times makes one run with its course; without one every row is a run.

use crate::import::{BadFile, Found, Input, count, in_interval, latency, metric};
use dyno_rundir::imported::ImportedInterval;
use dyno_rundir::schema::Setting;
use dyno_types::limits::IMPORT_COUNT;

/// Which columns hold what.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Seconds since the start.
    pub time: Option<String>,
    /// Operations per second.
    pub throughput: String,
    /// Mean response time, microseconds.
    pub response_us: Option<String>,
    /// A factor whose levels are the names of these columns of throughput, which stand instead of `throughput`: an empty cell
    /// is no run.
    pub across: Option<(String, Vec<String>)>,
    /// Users; without such a column the number of all rows.
    pub users: Option<String>,
    /// Rates that were set, operations per second.
    pub target: Option<String>,
    /// Factors: their values are levels.
    pub factors: Vec<String>,
    /// Length of a row's run, seconds: what a row does not say.
    pub duration_s: Option<f64>,
}

/// A row that is a run, with its levels.
pub type RunRow = (Vec<(String, String)>, Found);

/// Fields of a line; quotation marks hold a field together.
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut field)),
            letter => field.push(letter),
        }
    }
    all.push(field);
    all
}

struct Sheet<'a> {
    input: &'a Input,
    head: Vec<String>,
    /// Number of the line and its fields.
    rows: Vec<(usize, Vec<String>)>,
}

impl<'a> Sheet<'a> {
    fn new(input: &'a Input) -> Self {
        let mut lines = input.text.lines().enumerate();
        let head = lines.next().map_or(Vec::new(), |(_, line)| fields(line.trim_start_matches('\u{feff}')));
        let filled = lines.filter(|(_, line)| !line.trim().is_empty());
        Sheet { input, head, rows: filled.map(|(number, line)| (number + 1, fields(line))).collect() }
    }

    fn column(&self, name: &str) -> Result<usize, BadFile> {
        let expected = format!("a column {name} in the head");
        let found = self.head.iter().position(|known| known == name);
        found.ok_or_else(|| BadFile::new(&self.input.path, 1, &expected, &self.head.join(",")))
    }

    /// The number in a cell; `None` for an empty one.
    fn number(&self, row: &(usize, Vec<String>), column: usize) -> Result<Option<f64>, BadFile> {
        let text = row.1.get(column).map_or("", |cell| cell.trim());
        if text.is_empty() {
            return Ok(None);
        }
        let expected = format!("a number from 0 to {IMPORT_COUNT:e} in column {}", self.head[column]);
        match text.parse::<f64>() {
            Ok(x) if (0.0..=IMPORT_COUNT as f64).contains(&x) => Ok(Some(x)),
            _ => Err(BadFile::new(&self.input.path, row.0, &expected, text)),
        }
    }

    fn optional(&self, row: &(usize, Vec<String>), column: Option<usize>) -> Result<Option<f64>, BadFile> {
        column.map_or(Ok(None), |column| self.number(row, column))
    }
}

/// One operation name for all: the file tells none.
const ALL: &str = "ALL";

/// A file with a column of times: one run. Times are the ends of intervals, unless the first is 0: then the beginnings.
pub fn time_series(input: &Input, columns: &Columns) -> Result<Found, BadFile> {
    let sheet = Sheet::new(input);
    let time = sheet.column(columns.time.as_deref().unwrap_or_default())?;
    let throughput = sheet.column(&columns.throughput)?;
    let response = columns.response_us.as_deref().map(|name| sheet.column(name)).transpose()?;
    let mut points = Vec::new();
    let mut before = -1.0;
    for row in &sheet.rows {
        let (at, x) = (sheet.number(row, time)?, sheet.number(row, throughput)?);
        let expected = format!("times in column {} that grow", sheet.head[time]);
        let at = at.filter(|at| *at > before);
        let at = at.ok_or_else(|| BadFile::new(&input.path, row.0, &expected, &row.1.join(",")))?;
        before = at;
        // A row without a rate is a gap.
        points.push((at, x, sheet.optional(row, response)?));
    }
    let [first, .., last] = &points[..] else {
        return Err(BadFile::new(&input.path, 2, "at least two rows", ""));
    };
    let begins = first.0 == 0.0;
    let mut found = Found { program: "csv", phase: "measure", ..Found::default() };
    let (mut ok, mut weighted, mut timed, mut gaps_s) = (0, 0.0, 0, 0.0);
    for (number, (at, x, us)) in points.iter().enumerate() {
        let (start, end) = match begins {
            true => {
                (*at, points.get(number + 1).map_or(2.0 * last.0 - points[points.len() - 2].0, |next| next.0))
            }
            false => (if number == 0 { 0.0 } else { points[number - 1].0 }, *at),
        };
        found.seconds = end;
        let Some(x) = x else {
            gaps_s += end - start;
            continue;
        };
        let n = (x * (end - start)).round() as u64;
        if n > IMPORT_COUNT - ok {
            let expected = format!("up to {IMPORT_COUNT:e} operations in all");
            return Err(BadFile::new(&input.path, sheet.rows[number].0, &expected, "more"));
        }
        ok += n;
        if let Some(us) = us {
            weighted += us * n as f64;
            timed += n;
        }
        let service = us.filter(|_| n > 0).map(|us| latency(n, us));
        found.intervals.push(ImportedInterval {
            start_ms: (start * 1e3).round() as u64,
            length_ms: ((end - start) * 1e3).round() as u64,
            ended: count(n),
            metrics: vec![in_interval(ALL, n, service, true)],
        });
    }
    let service = (timed > 0 && timed == ok).then(|| latency(ok, weighted / ok as f64));
    found.metrics = vec![metric(ALL, count(ok), service, true)];
    found.outcomes = count(ok);
    unknown(&mut found, response.is_some());
    // A gap is not a time in which nothing was done: the mean is over what is known.
    if gaps_s > 0.0 && found.seconds > gaps_s {
        found.throughput = Some(ok as f64 / (found.seconds - gaps_s));
        found.unknown.push(format!("throughput in {} s without a rate", (gaps_s * 1e3).round() / 1e3));
    }
    Ok(found)
}

fn unknown(found: &mut Found, response: bool) {
    found.unknown.push("counts (they are rates times lengths)".into());
    if !response {
        found.unknown.push("latencies".into());
    }
    found.unknown.push("histograms, percentiles and failures".into());
}

/// A file without a column of times: every row, or each of its columns of throughput, is a run of `duration_s`.
pub fn rows(input: &Input, columns: &Columns) -> Result<Vec<RunRow>, BadFile> {
    let sheet = Sheet::new(input);
    let throughputs: Vec<usize> = match &columns.across {
        Some((_, names)) => names.iter().map(|name| sheet.column(name)).collect::<Result<_, _>>()?,
        None => vec![sheet.column(&columns.throughput)?],
    };
    let response = columns.response_us.as_deref().map(|name| sheet.column(name)).transpose()?;
    let constant = columns.users.as_ref().filter(|name| !sheet.head.contains(name));
    let constant = constant.and_then(|text| text.parse::<usize>().ok());
    let users = columns.users.as_deref().filter(|_| constant.is_none());
    let users = users.map(|name| sheet.column(name)).transpose()?;
    let target = columns.target.as_deref().map(|name| sheet.column(name)).transpose()?;
    let factors = columns.factors.iter().map(|name| sheet.column(name)).collect::<Result<Vec<_>, _>>()?;
    let seconds = columns.duration_s.unwrap_or_default();
    let mut all = Vec::new();
    for (row, &throughput) in sheet.rows.iter().flat_map(|row| throughputs.iter().map(move |one| (row, one)))
    {
        let x = match (sheet.number(row, throughput)?, &columns.across) {
            (Some(x), _) => x,
            (None, Some(_)) => continue,
            (None, None) => {
                let expected = format!("a number in column {}", sheet.head[throughput]);
                return Err(BadFile::new(&input.path, row.0, &expected, ""));
            }
        };
        let (us, n) = (sheet.optional(row, response)?, sheet.optional(row, users)?);
        let offered = sheet.optional(row, target)?;
        let ok = (x * seconds).round() as u64;
        let service = us.filter(|_| ok > 0).map(|us| latency(ok, us));
        let mut found = Found {
            program: "csv",
            phase: "measure",
            seconds,
            throughput: Some(x),
            offered,
            outcomes: count(ok),
            users: n.map(|n| n as usize).or(constant),
            metrics: vec![metric(ALL, count(ok), service, offered.is_none())],
            ..Found::default()
        };
        unknown(&mut found, us.is_some());
        found.unknown.push("the course of throughput".into());
        found.unknown.push("the length (--duration says it)".into());
        let source = format!("file {}:{}", input.path.display(), row.0);
        // What was measured is no setting.
        let own = |at: &usize| !throughputs.contains(at) && Some(*at) != response;
        let cells =
            sheet.head.iter().zip(&row.1).enumerate().filter(|(at, (_, value))| own(at) && !value.is_empty());
        found.settings = cells
            .map(|(_, (key, value))| Setting {
                key: key.clone(),
                value: value.clone(),
                source: source.clone(),
            })
            .collect();
        let mut levels: Vec<(String, String)> = Vec::new();
        levels.extend(columns.across.iter().map(|(name, _)| (name.clone(), sheet.head[throughput].clone())));
        for &column in &factors {
            levels.push((sheet.head[column].clone(), row.1.get(column).cloned().unwrap_or_default()));
        }
        // Every row has every factor.
        let level = |value: Option<f64>| value.map_or("-".to_owned(), |value| value.to_string());
        levels.extend(users.map(|_| ("users".to_owned(), level(n))));
        levels.extend(target.map(|_| ("target".to_owned(), level(offered))));
        all.push((levels, found));
    }
    match all.is_empty() {
        true => Err(BadFile::new(&input.path, 2, "at least one row", "")),
        false => Ok(all),
    }
}
