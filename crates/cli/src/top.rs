//! `dyno top`: a server alone, one line a tick, like mongostat.

use crate::options::TopArgs;
use dyno_databases::registry;
use dyno_db::target::ClientDriver;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::secret;
use dyno_frontend::{signals, terminal};
use dyno_monitor::{Sample, SampleError, SeriesKind, Source};
use dyno_types::database_series::{
    CONNECTIONS, CONNECTIONS_BLOCKED, KEYSPACE_HITS, KEYSPACE_MISSES, MEMORY_BYTES, OPERATIONS,
    RECEIVED_BYTES, SENT_BYTES,
};
use dyno_types::mongod::counters::{CACHE_BYTES, CACHE_DIRTY_BYTES, CACHE_LIMIT_BYTES, QUEUE_TOTAL};
use dyno_types::units::{Thousands, parse_duration_ns};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Lines between two headers.
const HEADER_EVERY: u64 = 20;

/// Commands of a Redis server that are named in a line.
const COMMANDS: usize = 3;

/// MongoDB's operations, in mongostat's order, and the commands that are counted where operations are not.
const KINDS: [(&str, &str); 6] = [
    ("insert", "insert"),
    ("query", "find"),
    ("update", "update"),
    ("delete", "delete"),
    ("getmore", "getMore"),
    ("command", ""),
];

/// Everything all nodes say at one instant, added up.
#[derive(Clone, Debug, Default)]
struct NodesSnapshot {
    at: Option<Instant>,
    counters: BTreeMap<String, f64>,
    gauges: BTreeMap<String, f64>,
}

impl NodesSnapshot {
    /// Asks every node; one that fails makes the sums unknown.
    fn take(sources: &mut [Box<dyn Source>]) -> Result<Self, SampleError> {
        let mut look = NodesSnapshot { at: Some(Instant::now()), ..NodesSnapshot::default() };
        for source in sources {
            let mut sample = Sample::default();
            source.sample(&mut sample)?;
            for reading in sample.all_readings() {
                let sums =
                    if reading.kind == SeriesKind::Counter { &mut look.counters } else { &mut look.gauges };
                *sums.entry(reading.name.clone()).or_insert(0.0) += reading.value;
            }
        }
        Ok(look)
    }

    fn gauge(&self, name: &str) -> Option<f64> {
        self.gauges.get(name).copied()
    }
}

/// Time and counts between two looks.
struct CountsBetweenLooks<'a> {
    now: &'a NodesSnapshot,
    before: &'a NodesSnapshot,
    seconds: f64,
}

impl CountsBetweenLooks<'_> {
    /// Increase per second; `None` if it is not known at both ends, or if the server has begun anew.
    fn rate(&self, name: &str) -> Option<f64> {
        let (now, before) = (self.now.counters.get(name)?, self.before.counters.get(name)?);
        (now >= before).then(|| (now - before) / self.seconds)
    }

    fn hit_ratio(&self) -> Option<f64> {
        let (hits, misses) = (self.rate(KEYSPACE_HITS)?, self.rate(KEYSPACE_MISSES)?);
        (hits + misses > 0.0).then(|| hits / (hits + misses))
    }

    /// Operations by kind, the busiest first.
    fn kinds(&self) -> Vec<(String, f64)> {
        let counted = self.now.counters.contains_key("opcounters.insert");
        let names = self.now.counters.keys().filter_map(|name| {
            let command =
                name.strip_prefix("command.").and_then(|n| n.strip_suffix(".calls")).filter(|_| !counted);
            let operation = name.strip_prefix("opcounters.");
            let operation = operation.filter(|n| KINDS.iter().any(|(o, _)| o == n));
            Some((command.or(operation)?.to_owned(), self.rate(name)?))
        });
        let mut kinds: Vec<(String, f64)> = names.filter(|(_, rate)| *rate > 0.0).collect();
        kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
        kinds
    }

    fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("at".into(), jiff::Timestamp::now().to_string().into());
        let mut put = |name: &str, value: Option<f64>| {
            // An unknown value is absent.
            if let Some(value) = value {
                object.insert(name.into(), json!(value));
            }
        };
        put("operations_per_s", self.rate(OPERATIONS));
        put("hit_ratio", self.hit_ratio());
        put("connections", self.now.gauge(CONNECTIONS));
        put("memory_bytes", self.now.gauge(MEMORY_BYTES));
        put("network_received_bytes_per_s", self.rate(RECEIVED_BYTES));
        put("network_sent_bytes_per_s", self.rate(SENT_BYTES));
        let kinds = self.kinds().into_iter().map(|(name, rate)| (name, json!(rate))).collect();
        object.insert("by_kind".into(), Value::Object(kinds));
        Value::Object(object)
    }
}

fn count(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| Thousands(v.round() as u64).to_string())
}

/// Bytes with a unit of 1024s: `12.3M`.
fn bytes(value: Option<f64>) -> String {
    let Some(mut value) = value else { return "-".into() };
    let mut unit = 'B';
    for next in ['K', 'M', 'G', 'T'] {
        if value < 999.5 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == 'B' { format!("{value:.0}B") } else { format!("{value:.1}{unit}") }
}

fn header(mongo: bool) -> String {
    if mongo {
        let mut line = String::new();
        for (name, _) in KINDS {
            let _ = write!(line, "{name:>9}");
        }
        line + "   conn active queue  memory     in/s    out/s  dirty   used\n"
    } else {
        "    ops/s   hits    conn blocked   memory     in/s    out/s  busiest commands\n".into()
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |s| format!("{:.1}%", s * 100.0))
}

fn line(step: &CountsBetweenLooks<'_>, mongo: bool) -> String {
    let mut line = String::new();
    let (now, network) = (step.now, [RECEIVED_BYTES, SENT_BYTES].map(|n| bytes(step.rate(n))));
    let connections = count(now.gauge(CONNECTIONS));
    let memory = bytes(now.gauge(MEMORY_BYTES));
    if mongo {
        for (name, command) in KINDS {
            let counted = step.rate(&format!("opcounters.{name}"));
            let rate = counted.or_else(|| step.rate(&format!("command.{command}.calls")));
            let _ = write!(line, "{:>9}", count(rate));
        }
        // Its total has the server's own threads in.
        let active = now.gauge("active.readers").zip(now.gauge("active.writers")).map(|(r, w)| r + w);
        let of_cache =
            |name: &str| Some(now.gauge(name)? / now.gauge(CACHE_LIMIT_BYTES).filter(|l| *l > 0.0)?);
        let _ = writeln!(
            line,
            "{connections:>7}{:>7}{:>6}{memory:>8}{:>9}{:>9}{:>7}{:>7}",
            count(active),
            count(now.gauge(QUEUE_TOTAL)),
            network[0],
            network[1],
            percent(of_cache(CACHE_DIRTY_BYTES)),
            percent(of_cache(CACHE_BYTES)),
        );
    } else {
        let busiest = step.kinds().into_iter().take(COMMANDS);
        let busiest: Vec<String> =
            busiest.map(|(name, rate)| format!("{name} {}", count(Some(rate)))).collect();
        let _ = writeln!(
            line,
            "{:>9}{:>7}{connections:>8}{:>8}{memory:>9}{:>9}{:>9}  {}",
            count(step.rate(OPERATIONS)),
            percent(step.hit_ratio()),
            count(now.gauge(CONNECTIONS_BLOCKED)),
            network[0],
            network[1],
            busiest.join(" "),
        );
    }
    line
}

/// The command.
pub fn top(args: &TopArgs) -> Result<Exit, Failure> {
    let interval = parse_duration_ns(&args.interval, 1_000_000_000)
        .map_err(|e| Failure::usage(format!("--interval: {e}")))
        .map(Duration::from_nanos)?;
    if interval < Duration::from_millis(50) {
        return Err(Failure::usage(format!("--interval {}: expected 50ms or more", args.interval)));
    }
    signals::begin()?;
    let target =
        registry::parse_for(&secret::uri(&args.target, args.password_from.as_ref())?, ClientDriver::Wire)?;
    if !target.is_watched() {
        return Err(Failure::usage(format!(
            "{}: only servers can be watched: {}",
            target.redacted(),
            registry::servers_in_words()
        )));
    }
    let mongo = target.has_collections();
    let opened = target.open_for_look(&signals::interrupted)?;
    let mut sources = dyno_session::watch::sources::watch_nodes(opened.as_ref());
    sources.retain(|source| source.name().starts_with("database"));
    let mut before = NodesSnapshot::take(&mut sources).map_err(Failure::unreachable)?;
    let (mut printed, mut due) = (0, Instant::now());
    while args.count.is_none_or(|n| printed < n) {
        due = (due + interval).max(Instant::now());
        if !terminal::waits_for_more(due.saturating_duration_since(Instant::now())) {
            break;
        }
        let now = match NodesSnapshot::take(&mut sources) {
            Ok(now) => now,
            Err(error) => {
                printed += 1;
                // A server that comes back was watched; one that is away at the end was not.
                if args.count == Some(printed) {
                    return Err(Failure::unreachable(error));
                }
                terminal::warn(&error.to_string());
                // The time between is not known.
                before = NodesSnapshot::default();
                continue;
            }
        };
        let since = now.at.zip(before.at).map(|(now, before)| (now - before).as_secs_f64());
        let step = CountsBetweenLooks { now: &now, before: &before, seconds: since.unwrap_or(1.0) };
        if args.json {
            terminal::out(&format!("{}\n", step.json()));
        } else {
            if printed % HEADER_EVERY == 0 {
                terminal::out(&header(mongo));
            }
            terminal::out(&line(&step, mongo));
        }
        printed += 1;
        before = now;
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(counters: &[(&str, f64)], gauges: &[(&str, f64)]) -> NodesSnapshot {
        let map = |list: &[(&str, f64)]| list.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
        NodesSnapshot { at: None, counters: map(counters), gauges: map(gauges) }
    }

    #[test]
    fn lines_stand_under_their_header() {
        let before = look(&[("operations", 0.0), ("keyspace.hits", 0.0), ("keyspace.misses", 0.0)], &[]);
        let now = look(
            &[("operations", 2_469_134.0), ("keyspace.hits", 90.0), ("keyspace.misses", 10.0)],
            &[("connections", 17.0), ("memory_bytes", 12_900_000.0)],
        );
        let step = CountsBetweenLooks { now: &now, before: &before, seconds: 2.0 };
        let line = line(&step, false);
        assert_eq!(line, "1,234,567  90.0%      17       -    12.3M        -        -  \n");
        let header = header(false);
        for (title, cell) in [("ops/s", "1,234,567"), ("hits", "90.0%"), ("conn", "17"), ("memory", "12.3M")]
        {
            let end = |text: &str, word: &str| text.find(word).unwrap() + word.len();
            assert_eq!(end(&header, title), end(&line, cell), "{title}");
        }
        assert_eq!(step.json()["operations_per_s"], 1_234_567.0);
        assert!(step.json().get("network_sent_bytes_per_s").is_none());
    }

    #[test]
    fn a_server_that_begins_anew_has_no_rates_yet() {
        let before = look(&[("opcounters.insert", 100.0)], &[]);
        let now = look(&[("opcounters.insert", 3.0)], &[("connections", 1.0)]);
        let step = CountsBetweenLooks { now: &now, before: &before, seconds: 1.0 };
        let line = line(&step, true);
        assert!(line.starts_with("        -        -") && line.contains("      1      -"), "{line:?}");
        let width = |text: &str| text.trim_end_matches('\n').chars().count();
        assert_eq!(width(&line), width(&header(true)));
        assert_eq!(bytes(Some(1_023.0)), "1.0K");
        assert_eq!(bytes(Some(512.0)), "512B");
    }
}
