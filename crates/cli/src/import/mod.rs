//! `dyno import`: results of other programs as run directories, so that compare, history, explain and reports take them.

mod experiment;

use clap::{Args, Subcommand};
use dyno_compat_sysbench_mongodb::report::average::AverageWindow;
use dyno_exchange::import::{BadFile, Found, ImportDetails, Input, assemble, csv, pocdriver, sysbench, ycsb};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_rundir::imported;
use dyno_types::bounded;
use std::path::{Path, PathBuf};

/// `dyno import`.
#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// Program that made the results
    #[command(subcommand)]
    pub of: ImportSource,
}

/// Programs whose results can be imported.
#[derive(Clone, Debug, Subcommand)]
pub enum ImportSource {
    /// YCSB: files of one run: its report (text or JSON), standard error with status lines, .hdr files
    Ycsb(Plain),
    /// sysbench-mongodb: the table (TSV) of one run
    SysbenchMongodb(Table),
    /// POCDriver: the log file (CSV) of one run
    Pocdriver(Plain),
    /// A CSV file with a head: with --time one run, without it one run a row
    Csv(CsvArgs),
}

/// Options that all have in common.
#[derive(Clone, Debug, Args)]
pub struct Plain {
    /// The files of one run
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The directory to be made
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Users (threads), where no file says it
    #[arg(long, value_name = "N")]
    pub users: Option<usize>,
    /// YCSB: no -target was set, so that response time is service time
    #[arg(long)]
    pub closed_loop: bool,
    /// Product and version of the database
    #[arg(long, value_name = "TEXT")]
    pub database: Option<String>,
    /// Title: what was measured, in words; runs of one title are one history
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// When the run began, where no file says it, such as 2015-06-01T10:00:00Z
    #[arg(long, value_name = "TIME")]
    pub started: Option<String>,
}

/// `dyno import sysbench-mongodb`.
#[derive(Clone, Debug, Args)]
pub struct Table {
    #[command(flatten)]
    plain: Plain,
    /// Only the lines between these seconds, such as 3600-7200 for the second hour, which published results quote
    #[arg(long, value_name = "FROM-TO")]
    window: Option<AverageWindow>,
}

/// `dyno import csv`.
#[derive(Clone, Debug, Args)]
pub struct CsvArgs {
    /// The file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The directory to be made: a run's, or an experiment's
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Column of times, seconds since the start: makes one run
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// Column of throughput, operations per second; with --across several times: columns that are runs of their own
    #[arg(long, value_name = "COLUMN", required = true)]
    pub throughput: Vec<String>,
    /// Without --time: a factor whose levels are the names of the columns of throughput
    #[arg(long, value_name = "FACTOR", conflicts_with = "time")]
    pub across: Option<String>,
    /// Column of mean response times, microseconds
    #[arg(long, value_name = "COLUMN")]
    pub response_us: Option<String>,
    /// Number of users; without --time also a column of them
    #[arg(long, value_name = "COLUMN|N")]
    pub users: Option<String>,
    /// Without --time: column of rates that were set, operations per second; an empty cell means that none was
    #[arg(long, value_name = "COLUMN", conflicts_with = "time")]
    pub target: Option<String>,
    /// Without --time: a column whose values are levels of a factor; may be given several times
    #[arg(long, value_name = "COLUMN", conflicts_with = "time")]
    pub factor: Vec<String>,
    /// Without --time: how long each run took, which no column says, such as 60s
    #[arg(long, value_name = "DURATION", conflicts_with = "time", required_unless_present = "time")]
    pub duration: Option<String>,
    /// Product and version of the database
    #[arg(long, value_name = "TEXT")]
    pub database: Option<String>,
    /// Title: what was measured, in words
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// When the run began, such as 2015-06-01T10:00:00Z
    #[arg(long, value_name = "TIME")]
    pub started: Option<String>,
}

/// `dyno import`.
pub fn import(args: &ImportArgs) -> Result<Exit, Failure> {
    match &args.of {
        ImportSource::Ycsb(plain) => one(plain, ycsb::read),
        ImportSource::SysbenchMongodb(table) => {
            one(&table.plain, |inputs, said| sysbench::read(&inputs[0], said, table.window))
        }
        ImportSource::Pocdriver(plain) => one(plain, |inputs, said| pocdriver::read(&inputs[0], said)),
        ImportSource::Csv(table) => of_csv(table),
    }
}

fn input(path: &Path) -> Result<Input, Failure> {
    let named = |e: std::io::Error| Failure::usage(format!("{}: {e}", path.display()));
    let bytes = bounded::bytes_file(path, dyno_types::limits::IMPORT_BYTES).map_err(named)?;
    // Labels and words of servers may be in any encoding; figures are not.
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(other) => String::from_utf8_lossy(other.as_bytes()).into_owned(),
    };
    Ok(Input { path: path.to_owned(), text })
}

/// Returns the time at which the newest of the files was written.
fn written(paths: &[PathBuf]) -> String {
    let newest = paths.iter().filter_map(|path| std::fs::metadata(path).ok()?.modified().ok()).max();
    let at = newest.and_then(|at| jiff::Timestamp::try_from(at).ok()).unwrap_or_default();
    at.to_string()
}

fn names(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    paths.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn said(
    database: &Option<String>,
    title: &Option<String>,
    started: &Option<String>,
) -> Result<ImportDetails, Failure> {
    let parse = |text: &String| match text.parse::<jiff::Timestamp>() {
        Ok(at) => Ok(at.to_string()),
        Err(_) => {
            Err(Failure::usage(format!("--started {text}: expected a time such as 2015-06-01T10:00:00Z")))
        }
    };
    Ok(ImportDetails {
        database: database.clone(),
        title: title.clone(),
        started: started.as_ref().map(parse).transpose()?,
        command: dyno_types::secret::own_command_line(),
        dyno: env!("CARGO_PKG_VERSION").to_owned(),
        ..ImportDetails::default()
    })
}

fn one(
    plain: &Plain,
    read: impl FnOnce(&[Input], &ImportDetails) -> Result<Found, BadFile>,
) -> Result<Exit, Failure> {
    let mut said = said(&plain.database, &plain.title, &plain.started)?;
    (said.users, said.closed_loop) = (plain.users, plain.closed_loop);
    let inputs = plain.files.iter().map(|path| input(path)).collect::<Result<Vec<_>, _>>()?;
    let found = read(&inputs, &said).map_err(Failure::usage)?;
    write(found, &said, &plain.files, &plain.out)
}

fn write(found: Found, said: &ImportDetails, files: &[PathBuf], out: &Path) -> Result<Exit, Failure> {
    let imported = assemble(found, said, &names(files), &written(files));
    imported::write(out, &imported).map_err(Failure::of_new_directory)?;
    dyno_frontend::summary::show(&imported.summary, dyno_report::summary::SummaryExtras::default(), false)?;
    terminal::note(&format!("run directory: {}", out.display()));
    Ok(dyno_frontend::summary::exit_of(&imported.summary))
}

fn of_csv(args: &CsvArgs) -> Result<Exit, Failure> {
    let mut said = said(&args.database, &args.title, &args.started)?;
    let source = input(&args.file)?;
    let files = [args.file.clone()];
    if args.throughput.len() > 1 && args.across.is_none() {
        let message = "several columns of throughput are levels of a factor: --across NAME names it";
        return Err(Failure::usage(format!("--throughput: {message}")));
    }
    let mut columns = csv::Columns {
        time: args.time.clone(),
        throughput: args.throughput[0].clone(),
        across: args.across.clone().map(|factor| (factor, args.throughput.clone())),
        response_us: args.response_us.clone(),
        target: args.target.clone(),
        factors: args.factor.clone(),
        ..csv::Columns::default()
    };
    if args.time.is_some() {
        let number = |text: &String| {
            let message = "with --time the number of users is expected";
            text.parse::<usize>().map_err(|_| Failure::usage(format!("--users {text}: {message}")))
        };
        said.users = args.users.as_ref().map(number).transpose()?;
        let mut found = csv::time_series(&source, &columns).map_err(Failure::usage)?;
        if said.users.is_none() {
            found.unknown.push("the number of users (--users)".into());
        }
        return write(found, &said, &files, &args.out);
    }
    columns.users.clone_from(&args.users);
    let text = args.duration.as_deref().unwrap_or_default();
    let length_ns = dyno_types::units::parse_duration_ns(text, 1_000_000_000)
        .map_err(|e| Failure::usage(format!("--duration: {e}")))?;
    columns.duration_s = Some(length_ns as f64 / 1e9);
    let rows = csv::rows(&source, &columns).map_err(Failure::usage)?;
    experiment::write(rows, &said, &names(&files), &written(&files), &args.out)
}
