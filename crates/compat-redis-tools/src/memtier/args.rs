//! Words into settings, as getopt and memtier's checks take them.

use super::flags::{FLAGS, MemtierFlag};
use super::words;
use dyno_types::secret::mask_text;
use dyno_workload::commands::DataSize;
use std::collections::BTreeMap;

/// What words ask for.
#[derive(Debug)]
pub enum Parsed {
    /// A load.
    Run(Box<Settings>),
    /// The usage.
    Help,
    /// The version.
    Version,
}

/// Words that cannot be followed; memtier's own sentence where it has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such flag.
    #[error("unrecognized option '{0}'")]
    Unknown(String),
    /// The beginning of several flags.
    #[error("option '{0}' is ambiguous; possibilities: {1}")]
    Ambiguous(String, String),
    /// A value is missing.
    #[error("option '{0}' requires an argument")]
    NoValue(String),
    /// A flag without a value has one.
    #[error("option '{0}' doesn't allow an argument")]
    ValueTooMuch(String),
    /// One that dyno does not have, and what to do instead.
    #[error("--{0}: dyno memtier does not have it: {1}")]
    Absent(&'static str, &'static str),
    /// A check of memtier's.
    #[error("{0}")]
    Check(String),
}

/// Which commands share a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakdown {
    /// Those of one name.
    Command,
    /// None.
    Line,
}

/// A command of one's own.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OwnCommand {
    pub(super) words: Vec<Vec<u8>>,
    pub(super) ratio: u64,
    pub(super) pattern: char,
}

/// Records of a file that are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The file.
    pub path: String,
    /// Keys are made, not read.
    pub generate_keys: bool,
    /// Records live for ever.
    pub(super) no_expiry: bool,
    /// What was written is read back at the end.
    pub verify: bool,
    /// Nothing is written before.
    pub verify_only: bool,
}

/// Clients of each thread that begin step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staircase {
    /// Those that begin at once.
    pub start: u64,
    /// Those that begin at each step.
    pub step: u64,
    /// Length of a step, seconds.
    pub seconds: u64,
}

impl Staircase {
    /// Clients of each thread, of which there are `most`, so long after the begin.
    pub fn clients(&self, seconds: u64, most: u64) -> u64 {
        self.start.saturating_add((seconds / self.seconds).saturating_mul(self.step)).min(most)
    }
}

/// Where metrics go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statsd {
    /// The server.
    pub host: String,
    /// Its UDP port.
    pub port: u16,
    /// Port of Graphite's HTTP interface on the same host.
    pub graphite_port: u16,
    /// What names begin with, with a point behind it.
    pub(super) prefix: String,
    /// The run's label.
    pub(super) label: String,
}

/// WAIT commands between the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waits {
    /// One first, and one after so many sets.
    pub(super) every: u64,
    pub(super) replicas: (u64, u64),
    pub(super) timeout_ms: (u64, u64),
}

/// The settings of a load.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Values as they were typed, by long name.
    pub(super) typed: BTreeMap<&'static str, String>,
    /// Target.
    pub uri: String,
    /// Runs.
    pub runs: u64,
    /// Clients of each thread, and threads.
    pub clients: (u64, u64),
    /// Requests of each client; `None` for a time.
    pub requests: Option<u64>,
    /// Seconds.
    pub test_time: Option<u64>,
    /// Requests under way on a connection.
    pub pipeline: usize,
    /// Requests/s of each connection.
    pub rate: Option<u64>,
    /// Percentiles of the table.
    pub percentiles: Vec<f64>,
    /// Rows of one's own commands.
    pub breakdown: Breakdown,
    /// Sets and gets of a turn.
    pub(super) ratio: (u64, u64),
    pub(super) patterns: (char, char),
    pub(super) own: Vec<OwnCommand>,
    pub(super) size: DataSize,
    pub(super) expiry: Option<(u64, u64)>,
    pub(super) keys: (u64, u64),
    pub(super) spread: (Option<f64>, Option<f64>, f64),
    /// True if memcached's text protocol is spoken.
    pub memcached: bool,
    /// Keys of a get.
    pub(super) multi_key_get: Option<u64>,
    /// WAIT commands.
    pub(super) waits: Option<Waits>,
    /// Clients that begin step by step.
    pub staircase: Option<Staircase>,
    /// Most SCANs that go on from a cursor, 0 for all of them.
    pub(super) iterates: Option<u64>,
    /// Server that is told each second.
    pub statsd: Option<Statsd>,
    /// Records of a file.
    pub import: Option<Import>,
    /// Requests after which a connection is made anew.
    pub reconnect_interval: Option<u64>,
    /// Things to be said before the run.
    pub notes: Vec<String>,
}

impl Settings {
    /// The value of a flag as it was typed.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.typed.get(name).map(String::as_str)
    }

    /// Returns whether a flag was typed.
    pub fn has(&self, name: &str) -> bool {
        self.typed.contains_key(name)
    }

    /// Clients in all.
    pub fn users(&self) -> u64 {
        self.clients.0 * self.clients.1
    }

    /// Clients that have begun so long after the begin, in all.
    pub fn connected(&self, seconds: u64) -> u64 {
        let (clients, threads) = self.clients;
        threads * self.staircase.map_or(clients, |stairs| stairs.clients(seconds, clients))
    }

    /// Every flag that was typed, with its value; passwords are masked.
    pub fn listed(&self) -> Vec<(String, String)> {
        let value = |name: &str, value: &String| match name {
            "authenticate" => "***".to_owned(),
            _ => mask_text(value),
        };
        self.typed.iter().map(|(name, text)| ((*name).to_owned(), value(name, text))).collect()
    }
}

/// Requests of a client where the user does not say.
const REQUESTS: u64 = 10_000;
/// Most clients, in all.
const CLIENTS: u64 = 1_000_000;

pub(super) fn check(text: impl Into<String>) -> Refusal {
    Refusal::Check(text.into())
}

/// The flag of a long name or of its beginning.
fn by_name(word: &str) -> Result<&'static MemtierFlag, Refusal> {
    if let Some(flag) = FLAGS.iter().find(|flag| flag.name == word) {
        return Ok(flag);
    }
    let found: Vec<&'static MemtierFlag> = FLAGS.iter().filter(|flag| flag.name.starts_with(word)).collect();
    match found[..] {
        [flag] if !word.is_empty() => Ok(flag),
        [] => Err(Refusal::Unknown(format!("--{word}"))),
        _ => {
            let names: Vec<String> = found.iter().map(|flag| format!("'--{}'", flag.name)).collect();
            Err(Refusal::Ambiguous(format!("--{word}"), names.join(" ")))
        }
    }
}

/// Flags and their values, in the order in which they were typed, and words that are no flags.
fn flags(typed: &[String]) -> Result<(Vec<(&'static MemtierFlag, String)>, Vec<String>), Refusal> {
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let mut all = typed.iter();
    while let Some(word) = all.next() {
        if word == "--" {
            others.extend(all.by_ref().cloned());
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let flag = by_name(name)?;
            let shown = format!("--{}", flag.name);
            let value = match (flag.value.is_empty(), value) {
                (true, None) => String::new(),
                (true, Some(_)) => return Err(Refusal::ValueTooMuch(shown)),
                (false, Some(value)) => value.to_owned(),
                (false, None) => all.next().cloned().ok_or(Refusal::NoValue(shown))?,
            };
            found.push((flag, value));
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            let mut rest = letters.chars();
            while let Some(letter) = rest.next() {
                let known = FLAGS.iter().find(|flag| flag.letter == letter && letter != ' ');
                let flag = known.ok_or_else(|| Refusal::Unknown(format!("-{letter}")))?;
                if flag.value.is_empty() {
                    found.push((flag, String::new()));
                    continue;
                }
                let behind = rest.as_str();
                let value = match behind.is_empty() {
                    true => all.next().cloned().ok_or_else(|| Refusal::NoValue(format!("-{letter}")))?,
                    false => behind.to_owned(),
                };
                found.push((flag, value));
                break;
            }
        } else {
            others.push(word.clone());
        }
    }
    Ok((found, others))
}

/// A number from 1 on; memtier says `name must be greater than zero.`
pub(super) fn positive(name: &str, text: &str) -> Result<u64, Refusal> {
    let number = text.trim().parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| check(format!("{name} must be greater than zero.")))
}

fn positive_float(name: &str, text: &str) -> Result<f64, Refusal> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| check(format!("{name} must be greater than zero.")))
}

pub(super) fn pair(text: &str, between: char) -> Option<(u64, u64)> {
    let (a, b) = text.split_once(between)?;
    Some((a.trim().parse().ok()?, b.trim().parse().ok()?))
}

fn letter(text: &str) -> Option<char> {
    let mut all = text.chars();
    all.next().filter(|_| all.next().is_none()).filter(|letter| "RSPGZ".contains(*letter))
}

/// The own command that a flag speaks of: the last one.
fn last(own: &mut [OwnCommand]) -> Result<&mut OwnCommand, Refusal> {
    own.last_mut().ok_or_else(|| check("no arbitrary command found."))
}

fn own_commands(found: &[(&'static MemtierFlag, String)]) -> Result<Vec<OwnCommand>, Refusal> {
    let mut own: Vec<OwnCommand> = Vec::new();
    for (flag, text) in found {
        match flag.name {
            "command" => {
                let words = words::split(text).filter(|words| !words.is_empty());
                let words = words.ok_or_else(|| check("failed to parse arbitrary command."))?;
                if words[0].windows(2).any(|two| two == b"__") && (words[0].starts_with(b"__")) {
                    return Err(check("failed to parse arbitrary command."));
                }
                let mixed = |word: &&Vec<u8>| contains(word, b"__data__") && word.as_slice() != b"__data__";
                if words.iter().find(mixed).is_some() {
                    return Err(check("data placeholder can't combined with other data"));
                }
                own.push(OwnCommand { words, ratio: 1, pattern: 'R' });
            }
            "command-ratio" => {
                let shown = || own_name(own.last());
                let ratio: u32 = text
                    .trim()
                    .parse()
                    .map_err(|_| check(format!("failed to set ratio for command {}.", shown())))?;
                last(&mut own)?.ratio = u64::from(ratio);
            }
            "command-key-pattern" => {
                let shown = own_name(own.last());
                let pattern = letter(text).ok_or_else(|| {
                    check(format!("key-pattern for command {shown} must be in the format of [S/R/Z/G/P]."))
                })?;
                last(&mut own)?.pattern = pattern;
            }
            _ => {}
        }
    }
    if own.iter().any(|one| one.pattern == 'P') && own.iter().any(|one| one.pattern != 'P') {
        return Err(check("parallel key-pattern must be configured to all commands."));
    }
    if !own.is_empty() && own.iter().all(|one| one.ratio == 0) {
        return Err(check("--command-ratio 0 for every command leaves nothing to send"));
    }
    Ok(own)
}

fn own_name(command: Option<&OwnCommand>) -> String {
    command.map_or(String::new(), |one| String::from_utf8_lossy(&one.words[0]).into_owned())
}

/// Returns whether bytes are within others.
fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Reads the words behind `memtier`.
///
/// # Errors
/// The first word that cannot be followed.
pub fn parse(typed: &[String]) -> Result<Parsed, Refusal> {
    let (found, others) = flags(typed)?;
    if found.iter().any(|(flag, _)| flag.name == "help") {
        return Ok(Parsed::Help);
    }
    if found.iter().any(|(flag, _)| flag.name == "version") {
        return Ok(Parsed::Version);
    }
    if let Some((flag, _)) = found.iter().find(|(flag, _)| !flag.has) {
        return Err(Refusal::Absent(flag.name, flag.help));
    }
    let own = own_commands(&found)?;
    let typed: BTreeMap<&'static str, String> = found
        .into_iter()
        .map(|(flag, text)| (if flag.name == "host" { "server" } else { flag.name }, text))
        .collect();
    let mut notes: Vec<String> =
        others.iter().map(|word| format!("{word:?} is no flag and is ignored, as memtier does")).collect();
    let settings = ValueReader { typed: &typed, own: &own };
    settings.check_together()?;
    let (requests, test_time) = settings.length()?;
    let users = settings.users()?;
    let keys = settings.keys()?;
    let patterns = settings.patterns()?;
    let requests = match settings.get("requests") {
        // One short of all keys, unless all clients have parts of their own.
        Some("allkeys") => {
            // Keys that are read are none of these: the default number.
            let reads_keys = settings.import().is_some_and(|import| !import.generate_keys);
            let all = match patterns {
                _ if reads_keys => REQUESTS,
                ('P', 'P') if own.is_empty() => (keys.1 - keys.0) / users + 1,
                _ => keys.1 - keys.0,
            };
            if all == 0 {
                return Err(check("requests must be greater than zero."));
            }
            Some(all)
        }
        _ => requests,
    };
    Ok(Parsed::Run(Box::new(Settings {
        uri: settings.uri(&mut notes)?,
        runs: typed.get("run-count").map_or(Ok(1), |text| positive("run count", text))?,
        clients: (settings.positive("clients", 50)?, settings.positive("threads", 4)?),
        requests,
        test_time,
        pipeline: settings.positive("pipeline", 1)? as usize,
        rate: settings.rate(users)?,
        percentiles: settings.percentiles()?,
        breakdown: settings.breakdown()?,
        ratio: settings.ratio()?,
        patterns,
        size: settings.size()?,
        expiry: settings.expiry()?,
        keys,
        spread: settings.spread(patterns, keys)?,
        memcached: settings.is_memcached(),
        multi_key_get: settings.multi_key_get()?,
        waits: settings.waits()?,
        staircase: settings.staircase()?,
        statsd: settings.statsd()?,
        iterates: settings.iterates()?,
        import: settings.import(),
        reconnect_interval: typed
            .get("reconnect-interval")
            .map(|text| positive("reconnect-interval", text))
            .transpose()?,
        notes,
        own,
        typed,
    })))
}

/// Reads the values that were typed.
pub(super) struct ValueReader<'a> {
    typed: &'a BTreeMap<&'static str, String>,
    pub(super) own: &'a [OwnCommand],
}

impl ValueReader<'_> {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.typed.get(name).map(String::as_str)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.typed.contains_key(name)
    }

    pub(super) fn positive(&self, name: &str, default: u64) -> Result<u64, Refusal> {
        self.get(name).map_or(Ok(default), |text| positive(name, text))
    }

    /// Clients of all threads.
    fn users(&self) -> Result<u64, Refusal> {
        let (clients, threads) = (self.positive("clients", 50)?, self.positive("threads", 4)?);
        let users = clients.checked_mul(threads).filter(|users| *users <= CLIENTS);
        users.ok_or_else(|| {
            check(format!("{clients} clients of {threads} threads: expected {CLIENTS} in all at most"))
        })
    }

    /// Refuses flags that exclude each other.
    fn check_together(&self) -> Result<(), Refusal> {
        let refuse = |text: &str| Err(check(text));
        if self.has("unix-socket") && ["server", "port"].iter().any(|name| self.has(name)) {
            return refuse("UNIX domain socket and TCP cannot be used together.");
        }
        if self.has("unix-socket") && (self.has("tls") || self.has("uri")) {
            return refuse("--unix-socket: neither --tls nor --uri goes with it");
        }
        let is_encrypted = self.has("tls") || self.get("uri").is_some_and(|uri| uri.starts_with("rediss:"));
        let of_tls =
            ["cert", "key", "cacert", "sni", "tls-skip-verify"].into_iter().find(|name| self.has(name));
        if let Some(name) = of_tls.filter(|_| !is_encrypted) {
            return Err(check(format!("--{name} needs --tls")));
        }
        if self.has("cluster-mode") && self.has("unix-socket") {
            return refuse("cluster mode dose not support unix-socket option.");
        }
        let pipelined = self.get("pipeline").is_some_and(|text| text.trim() != "1");
        if self.has("client-stats") && pipelined {
            return refuse(
                "--client-stats: of requests in a pipeline bytes are not known of each; use --pipeline 1",
            );
        }
        if self.has("cluster-mode") && self.has("client-stats") {
            return refuse(
                "--client-stats: moved keys are not known of each client; --run-directory has what all came to",
            );
        }
        if self.has("cluster-mode") {
            for name in ["reconnect-interval", "multi-key-get", "wait-ratio"] {
                if self.has(name) {
                    return Err(check(format!("cluster mode dose not support {name} option.")));
                }
            }
            if self.is_memcached() {
                return refuse("cluster mode supported only in redis protocol.");
            }
        }
        self.check_import()?;
        if self.is_memcached() {
            self.check_memcached()?;
        } else if self.has("multi-key-get") {
            return refuse(
                "multi get not implemented for redis yet! Neither in memtier: give --command 'MGET __key__ __key__'",
            );
        }
        if !self.own.is_empty() && self.has("wait-ratio") {
            return refuse(
                "--wait-ratio goes with sets and gets: give --command 'WAIT N MS' with a --command-ratio",
            );
        }
        if !self.own.is_empty() && self.has("ratio") {
            return refuse("when using arbitrary command, ratio is configured with --command-ratio option.");
        }
        if !self.own.is_empty() && self.has("key-pattern") {
            return refuse(
                "when using arbitrary command, key pattern is configured with --command-key-pattern option.",
            );
        }
        if self.has("data-size") && (self.has("data-size-list") || self.has("data-size-range")) {
            return refuse("data-size cannot be used with data-size-list or data-size-range.");
        }
        if self.has("data-size-list") && self.has("data-size-range") {
            return refuse("data-size-list cannot be used with data-size-range.");
        }
        if self.has("data-offset") && self.has("expiry-range") {
            return refuse(
                "data-offset can only be used with redis protocol, and cannot be used with expiry",
            );
        }
        Ok(())
    }

    fn length(&self) -> Result<(Option<u64>, Option<u64>), Refusal> {
        let time = self.get("test-time").map(|text| positive("test time", text)).transpose()?;
        let requests = match self.get("requests") {
            None => None,
            Some("allkeys") => Some(0),
            Some(text) => Some(positive("requests", text)?),
        };
        match (requests, time) {
            (Some(_), Some(_)) => Err(check("--test-time and --requests are mutually exclusive.")),
            (None, Some(time)) => Ok((None, Some(time))),
            (requests, None) => Ok((Some(requests.unwrap_or(REQUESTS)), None)),
        }
    }

    fn keys(&self) -> Result<(u64, u64), Refusal> {
        let (min, max) = (self.key("key-minimum", 0)?, self.key("key-maximum", 10_000_000)?);
        if min > max || max > u64::MAX >> 1 {
            return Err(check(format!("keys from {min} to {max}: expected a range up to {}", u64::MAX >> 1)));
        }
        Ok((min, max))
    }

    fn key(&self, name: &str, default: u64) -> Result<u64, Refusal> {
        self.get(name).map_or(Ok(default), |text| positive(name, text))
    }

    fn patterns(&self) -> Result<(char, char), Refusal> {
        let text = self.get("key-pattern").unwrap_or("R:R");
        let both = text.split_once(':').and_then(|(sets, gets)| Some((letter(sets)?, letter(gets)?)));
        let (sets, gets) =
            both.ok_or_else(|| check("key-pattern must be in the format of [S/R/G/P/Z]:[S/R/G/P/Z]."))?;
        if (sets == 'P') != (gets == 'P') {
            return Err(check("parallel key-pattern must be configured for both SET and GET commands."));
        }
        Ok((sets, gets))
    }

    /// Deviation and centre of a normal distribution, and the exponent of a zipfian one.
    fn spread(
        &self,
        (sets, gets): (char, char),
        (min, max): (u64, u64),
    ) -> Result<(Option<f64>, Option<f64>, f64), Refusal> {
        let read = |name: &str| self.get(name).map(|text| positive_float(name, text)).transpose();
        let (deviation, median) = (read("key-stddev")?, read("key-median")?);
        if (deviation.is_some() || median.is_some()) && sets != 'G' && gets != 'G' {
            return Err(check(
                "key-stddev and key-median are only allowed together with key-pattern set to G.",
            ));
        }
        if median.is_some_and(|median| median < min as f64 || median > max as f64) {
            return Err(check("key-median must be between key-minimum and key-maximum."));
        }
        let exponent = match self.get("key-zipf-exp") {
            None => 1.0,
            Some(text) => {
                let found =
                    text.trim().parse().ok().filter(|exponent: &f64| *exponent > 0.0 && *exponent < 5.0);
                found.ok_or_else(|| check("key-zipf-exp must be within interval (0, 5)."))?
            }
        };
        Ok((deviation, median, exponent))
    }

    fn rate(&self, users: u64) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.get("rate-limiting") else { return Ok(None) };
        let rate = positive("rate", text)?;
        let fits = rate.checked_mul(users).is_some_and(|all| all <= 1_000_000_000);
        if fits {
            Ok(Some(rate))
        } else {
            Err(check(format!("--rate-limiting {rate}: too much for {users} connections")))
        }
    }

    fn ratio(&self) -> Result<(u64, u64), Refusal> {
        let sane = |ratio: &(u64, u64)| *ratio != (0, 0) && ratio.0.max(ratio.1) <= u64::from(u32::MAX);
        let ratio = pair(self.get("ratio").unwrap_or("1:10"), ':').filter(sane);
        ratio.ok_or_else(|| check("ratio must be expressed as [0-n]:[0-n]."))
    }

    fn size(&self) -> Result<DataSize, Refusal> {
        let most = |size: u64| u32::try_from(size).ok().filter(|size| *size <= 512 << 20);
        if let Some(text) = self.get("data-size-list") {
            let one = |part: &str| pair(part, ':').and_then(|(size, weight)| Some((most(size)?, weight)));
            let all: Option<Vec<(u32, u64)>> = text.split(',').map(one).collect();
            let sum = |all: &Vec<(u32, u64)>| {
                all.iter().try_fold(0u64, |sum, (_, weight)| sum.checked_add(*weight))
            };
            let all = all.filter(|all| sum(all).is_some_and(|sum| sum > 0));
            return all.map(DataSize::Turns).ok_or_else(|| {
                check("data-size-list must be expressed as [size1:weight1],...[sizeN:weightN].")
            });
        }
        if let Some(text) = self.get("data-size-range") {
            let range = pair(text, '-').filter(|(least, greatest)| *least > 0 && *greatest > 0);
            let range = range.and_then(|(a, b)| Some((most(a.min(b))?, most(a.max(b))?)));
            let (least, greatest) =
                range.ok_or_else(|| check("data-size-range must be expressed as [1-n]-[1-n]."))?;
            return match self.get("data-size-pattern").unwrap_or("R") {
                "R" => Ok(DataSize::Uniform(least, greatest)),
                "S" => Ok(DataSize::ByKey(least, greatest)),
                _ => Err(check("data-size-pattern must be either R or S.")),
            };
        }
        if self.get("data-size-pattern").is_some_and(|pattern| !["R", "S"].contains(&pattern)) {
            return Err(check("data-size-pattern must be either R or S."));
        }
        let size = self.positive("data-size", 32)?;
        let size = most(size).ok_or_else(|| check(format!("data-size {size}: Redis holds 512 MiB")))?;
        Ok(DataSize::Uniform(size, size))
    }

    fn expiry(&self) -> Result<Option<(u64, u64)>, Refusal> {
        let Some(text) = self.get("expiry-range") else { return Ok(None) };
        let most = i64::MAX as u64 / 1_000;
        let range = pair(text, '-').filter(|(a, b)| *b > 0 && *a <= most && *b <= most);
        let (a, b) = range.ok_or_else(|| check("expiry-range must be expressed as [0-n]-[1-n]."))?;
        Ok(Some((a.min(b), a.max(b))))
    }

    fn percentiles(&self) -> Result<Vec<f64>, Refusal> {
        let text = self.get("print-percentiles").unwrap_or("50,99,99.9");
        let one =
            |part: &str| part.trim().parse().ok().filter(|percentile| (0.0..=100.0).contains(percentile));
        let all: Option<Vec<f64>> = text.split(',').map(one).collect();
        all.ok_or_else(|| check("quantiles must be expressed as [0.0-100.0],[0.0-100.0](,...) ."))
    }

    fn breakdown(&self) -> Result<Breakdown, Refusal> {
        match self.get("command-stats-breakdown").map(str::to_ascii_lowercase).as_deref() {
            None | Some("command") => Ok(Breakdown::Command),
            Some("line") => Ok(Breakdown::Line),
            Some(_) => Err(check("command-stats-breakdown must be 'command' or 'line'.")),
        }
    }
}
