//! Words into settings, one after the other, as the original's hand-written parser takes them.
//!
//! A flag is matched exactly, and its value is the next word. The first word without a dash begins the command. The original
//! reads numbers with `atoi`, so that `-n 10k` is 10; here a value that is no whole number is refused.

use super::address::{ServerAddress, port};
use super::flags::{FLAGS, Flag, flag_of};
use super::{BenchmarkRefusal, Program, Reads};

/// Longest value, bytes.
const LONGEST: i64 = 1 << 30;
/// Most load threads.
const THREADS: i64 = 500;
/// Numbers of 12 digits.
const KEYS: i64 = 1_000_000_000_000;

/// Settings of a command line.
#[derive(Debug)]
pub(super) struct Args {
    pub program: Program,
    pub address: ServerAddress,
    pub cluster: bool,
    pub reads: Reads,
    pub resp3: bool,
    pub clients: usize,
    pub requests: Option<u64>,
    pub duration_s: Option<u64>,
    pub warmup_s: u64,
    pub data_size: u32,
    pub threads: Option<usize>,
    /// Numbers that placeholders are replaced with; `None`: they stay.
    pub keyspace: Option<u64>,
    pub sequential: bool,
    pub pipeline: usize,
    pub quiet: bool,
    pub csv: bool,
    pub precision: u8,
    pub repeats: bool,
    pub idle: bool,
    pub stdin: bool,
    pub rate: u64,
    pub seed: Option<u64>,
    pub functions: u32,
    /// Names of `-t`, in lower case.
    pub tests: Option<Vec<String>>,
    /// The user's own command.
    pub command: Vec<String>,
    pub notes: Vec<String>,
    /// Value of each flag that was typed.
    typed: Vec<Option<String>>,
}

/// What the words before the command ask for.
#[derive(Debug)]
pub(super) enum CommandLine {
    Settings(Box<Args>),
    Help,
    Version,
}

impl Args {
    fn new(program: Program) -> Self {
        Args {
            program,
            address: ServerAddress::default(),
            cluster: false,
            reads: Reads::Primary,
            resp3: false,
            clients: 50,
            requests: None,
            duration_s: None,
            warmup_s: 0,
            data_size: 3,
            threads: None,
            keyspace: None,
            sequential: false,
            pipeline: 1,
            quiet: false,
            csv: false,
            precision: 3,
            repeats: false,
            idle: false,
            stdin: false,
            rate: 0,
            seed: None,
            functions: 10,
            tests: None,
            command: Vec::new(),
            notes: Vec::new(),
            typed: vec![None; FLAGS.len()],
        }
    }

    /// Reads the words behind the program's name.
    pub fn read(program: Program, words: &[String]) -> Result<CommandLine, BenchmarkRefusal> {
        let mut args = Args::new(program);
        let mut at = 0;
        while let Some(word) = words.get(at) {
            if word == "--" && program == Program::ValkeyBenchmark {
                at += 1;
                break;
            }
            let Some((number, flag)) = flag_of(program, word) else {
                if word.starts_with('-') {
                    return Err(BenchmarkRefusal::Option(word.clone()));
                }
                break;
            };
            match flag.name {
                "--help" => return Ok(CommandLine::Help),
                "-v" | "--version" => return Ok(CommandLine::Version),
                _ => {}
            }
            let value = match flag.value {
                "" => "true",
                _ => {
                    at += 1;
                    words.get(at).ok_or_else(|| BenchmarkRefusal::Option(word.clone()))?
                }
            };
            args.apply(flag, value)?;
            args.typed[number] = Some(value.to_owned());
            at += 1;
        }
        args.command = words[at..].to_vec();
        args.check()?;
        Ok(CommandLine::Settings(Box::new(args)))
    }

    fn apply(&mut self, flag: &'static Flag, value: &str) -> Result<(), BenchmarkRefusal> {
        if let Some(reason) = flag.refused {
            return Err(BenchmarkRefusal::Unavailable { what: flag.name, reason });
        }
        let taken = self.set_server(flag.name, value)?
            || self.set_load(flag.name, value)?
            || self.set_commands(flag.name, value)?
            || self.set_output(flag.name, value)?;
        debug_assert!(taken, "{} sets nothing", flag.name);
        Ok(())
    }

    fn set_server(&mut self, flag: &'static str, value: &str) -> Result<bool, BenchmarkRefusal> {
        let address = &mut self.address;
        match flag {
            "-h" => address.host = value.to_owned(),
            "-p" => address.port = port(integer(flag, value)?)?,
            "-s" => address.socket = Some(value.to_owned()),
            "-a" => address.password = Some(value.to_owned()),
            "--user" => address.user = Some(value.to_owned()),
            "-u" => address.read_uri(self.program, value)?,
            "--dbnum" => address.database = natural(flag, value, "a database's number from 0")?,
            "--tls" => address.tls = true,
            "--sni" => address.sni = Some(value.to_owned()),
            "--cacert" => address.ca = Some(value.to_owned()),
            "--insecure" => address.insecure = true,
            "--cert" => address.cert = Some(value.to_owned()),
            "--key" => address.key = Some(value.to_owned()),
            "-3" => self.resp3 = true,
            "--cluster" => self.cluster = true,
            "--rfr" => {
                self.reads = match value {
                    "no" => Reads::Primary,
                    "yes" => Reads::Replica,
                    "all" => Reads::Any,
                    _ => return Err(BenchmarkRefusal::Option(value.to_owned())),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_load(&mut self, flag: &'static str, value: &str) -> Result<bool, BenchmarkRefusal> {
        match flag {
            "-c" => self.clients = positive(flag, value, "a number of connections from 1")?,
            "-n" if self.duration_s.is_some() => return Err(BenchmarkRefusal::RequestsAndDuration),
            "-n" => self.requests = Some(positive(flag, value, "a number of requests from 1")?),
            "--duration" if self.requests.is_some() => return Err(BenchmarkRefusal::RequestsAndDuration),
            "--duration" => self.duration_s = Some(positive(flag, value, "seconds from 1")?),
            "--warmup" => self.warmup_s = natural(flag, value, "seconds from 0")?,
            "--rps" => self.rate = natural(flag, value, "requests a second, or 0 for no limit")?,
            "--threads" => self.set_threads(integer(flag, value)?),
            "-P" => self.pipeline = integer(flag, value)?.max(1) as usize,
            "-k" => match integer(flag, value)? {
                1 => {}
                0 => {
                    return Err(BenchmarkRefusal::Unavailable {
                        what: "-k 0",
                        reason: "it keeps its connections open",
                    });
                }
                _ => return Err(refused(flag, value, "1")),
            },
            "-l" => self.repeats = true,
            "-I" => self.idle = true,
            "--seed" => self.seed = Some(integer(flag, value)? as u64),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_threads(&mut self, threads: i64) {
        if threads > THREADS {
            self.notes.push(format!("WARNING: Too many threads, limiting threads to {THREADS}."));
        }
        self.threads = (threads > 0).then_some(threads.min(THREADS) as usize);
    }

    fn set_commands(&mut self, flag: &'static str, value: &str) -> Result<bool, BenchmarkRefusal> {
        match flag {
            "-d" => self.data_size = integer(flag, value)?.clamp(1, LONGEST) as u32,
            "-r" => {
                if value.starts_with('-') && !value[1..].starts_with(|digit: char| digit.is_ascii_digit()) {
                    return Err(BenchmarkRefusal::Option(value.to_owned()));
                }
                let keys = integer(flag, value)?.max(0);
                if keys > KEYS {
                    return Err(refused(flag, value, "at most 1000000000000, the numbers of 12 digits"));
                }
                self.keyspace = Some(keys as u64);
            }
            "--sequential" => self.sequential = true,
            "-t" => self.tests = Some(value.to_ascii_lowercase().split(',').map(str::to_owned).collect()),
            "-x" => self.stdin = true,
            "--num-functions" => {
                let expected = "a number of functions from 1 to 700";
                self.functions = natural(flag, value, expected)?;
                if !(1..=700).contains(&self.functions) {
                    return Err(refused(flag, value, expected));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_output(&mut self, flag: &'static str, value: &str) -> Result<bool, BenchmarkRefusal> {
        match flag {
            "-q" => self.quiet = true,
            "--csv" => self.csv = true,
            "--precision" => {
                self.precision = match integer(flag, value)? {
                    0 => return Err(refused(flag, value, "1 to 4 significant digits")),
                    digits if digits < 0 => 3,
                    digits => digits.min(4) as u8,
                }
            }
            "-e" => self.notes.push(
                "WARNING: -e option has no effect. We now immediately exit on error to avoid false results."
                    .into(),
            ),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Refuses combinations, and notes flags that have no effect.
    fn check(&mut self) -> Result<(), BenchmarkRefusal> {
        if self.reads != Reads::Primary && !self.cluster {
            return Err(BenchmarkRefusal::Needs { flag: "--rfr", other: "--cluster" });
        }
        if !self.command.is_empty() && self.tests.is_some() {
            self.notes.push("WARNING: Option -t is ignored.".into());
        }
        let address = &self.address;
        if address.user.is_some() && address.password.is_none() {
            self.notes.push("WARNING: --user has no effect without -a.".into());
        }
        if !address.tls {
            for (flag, is_given) in address.tls_flags() {
                if is_given {
                    self.notes.push(format!("WARNING: {flag} has no effect without --tls."));
                }
            }
        }
        Ok(())
    }

    /// Every flag with its value, and whether it was typed.
    pub fn settings(&self) -> Vec<(String, String, bool)> {
        let flags = FLAGS.iter().zip(&self.typed).filter(|(flag, _)| flag.is_setting());
        let own = flags.filter(|(flag, _)| flag.is_of(self.program));
        own.map(|(flag, typed)| {
            let value = match (flag.name, typed) {
                ("-a", Some(_)) => "***".to_owned(),
                ("-u", Some(uri)) => super::address::masked(uri),
                (_, Some(value)) => value.clone(),
                (_, None) if flag.value.is_empty() => "false".to_owned(),
                (_, None) => flag.default.to_owned(),
            };
            (flag.name.to_owned(), value, typed.is_some())
        })
        .collect()
    }
}

fn refused(flag: &'static str, value: &str, expected: &'static str) -> BenchmarkRefusal {
    BenchmarkRefusal::Value { flag, value: value.to_owned(), expected }
}

fn integer(flag: &'static str, value: &str) -> Result<i64, BenchmarkRefusal> {
    value.trim().parse().map_err(|_| refused(flag, value, "a whole number"))
}

/// A number from 0.
fn natural<T: TryFrom<i64>>(
    flag: &'static str,
    value: &str,
    expected: &'static str,
) -> Result<T, BenchmarkRefusal> {
    T::try_from(integer(flag, value)?).map_err(|_| refused(flag, value, expected))
}

/// A number from 1.
fn positive<T: TryFrom<i64>>(
    flag: &'static str,
    value: &str,
    expected: &'static str,
) -> Result<T, BenchmarkRefusal> {
    let number = integer(flag, value)?;
    if number < 1 {
        return Err(refused(flag, value, expected));
    }
    T::try_from(number).map_err(|_| refused(flag, value, expected))
}
