//! Identity of what was run, without when, where and on which port: two runs of the same thing have the same.

use dyno_config::settings::DRAWN;
use dyno_rundir::schema::Run;
use dyno_types::units::{parse_count, parse_duration_ns};
use std::collections::BTreeMap;

/// Settings that say when and where, not what. Which run has loaded the records is no difference.
const PLACES: [&str; 10] = [
    "out",
    "dyno.out",
    "redis.port",
    "redis.host",
    "redis.uri",
    "title",
    "name",
    "cell",
    "repetition",
    "phases.load.when",
];

/// Ends of facts that were measured: they differ from run to run.
const MEASURED: [&str; 2] = [".memory_by_node", ".start_skew"];

/// A setting or a fact of a run.
#[derive(Clone, Debug)]
pub struct RunTrait {
    /// Value.
    pub value: String,
    /// True if it is what dyno does where no user has chosen.
    pub is_default: bool,
}

impl RunTrait {
    /// A value that was chosen, or found.
    pub fn chosen(value: impl Into<String>) -> Self {
        RunTrait { value: value.into(), is_default: false }
    }
}

/// Settings and facts of a run, by name.
pub type RunTraits = BTreeMap<String, RunTrait>;

/// Returns the two values of a name if they differ, `absent` for none. A default that the other run has not recorded is no
/// difference: an older dyno did not record them all.
pub fn differ(key: &str, (one, other): (&RunTraits, &RunTraits), absent: &str) -> Option<(String, String)> {
    let (one, other) = (one.get(key), other.get(key));
    let is_same = match (one, other) {
        (Some(one), Some(other)) => is_same_value(&one.value, &other.value),
        (Some(only), None) | (None, Some(only)) => only.is_default,
        (None, None) => true,
    };
    let shown = |side: Option<&RunTrait>| side.map_or(absent, |side| side.value.as_str()).to_owned();
    (!is_same).then(|| (shown(one), shown(other)))
}

/// Returns whether two values are the same, however they were typed: `60s` is `1m`, `10k` is `10000`.
fn is_same_value(one: &str, other: &str) -> bool {
    let has_unit = |text: &str| text.ends_with(|c: char| c.is_ascii_alphabetic());
    let duration = |text: &str| parse_duration_ns(text, 1).ok().filter(|_| has_unit(text));
    let count = |text: &str| parse_count(text).ok();
    let equal = |one: Option<u64>, other: Option<u64>| one.is_some() && one == other;
    one == other
        || match (duration(one), duration(other)) {
            (None, None) => equal(count(one), count(other)),
            // A minute is no million.
            (one, other) => equal(one, other),
        }
}

/// Settings and facts of a run.
pub fn what(run: &Run) -> RunTraits {
    let chosen = run.settings.iter().filter(|setting| setting.source != DRAWN);
    let settings = chosen.map(|setting| {
        let is_default = setting.source == "default";
        (setting.key.clone(), RunTrait { value: setting.value.clone(), is_default })
    });
    let kept = run.facts.iter().filter(|(name, _)| !MEASURED.iter().any(|end| name.ends_with(end)));
    let servers = servers(run.facts.keys().map(String::as_str));
    let facts = kept.map(|(name, value)| {
        (
            format!("database: {}", without_ports(name, &servers)),
            RunTrait::chosen(without_place(&without_ports(value, &servers))),
        )
    });
    let options = target_options(&run.target)
        .map(|(key, value)| (key, RunTrait::chosen(without_place(&without_ports(&value, &servers)))));
    let database = std::iter::once(("database".to_owned(), RunTrait::chosen(&run.database)));
    settings
        .chain(options)
        .chain(facts)
        .chain(database)
        .filter(|(key, _)| !PLACES.contains(&key.as_str()))
        .collect()
}

/// Options of the target's URI: `layout`, `readPreference`, `cache` and their like shape a run as settings do. Several targets
/// have the same.
fn target_options(target: &str) -> impl Iterator<Item = (String, String)> {
    let first = target.split(' ').next().unwrap_or_default();
    let options = first.split_once('?').map_or("", |(_, options)| options).split('&');
    let pairs = options.filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (format!("target: {key}"), value.to_owned()))
}

/// Servers that were started for the run, as `server.redis-12618.command` names them: kind and port, in order.
fn servers<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(String, u16)> {
    let mut all: Vec<(String, u16)> = names
        .filter_map(|name| {
            let (kind, port) = name.strip_prefix("server.")?.split('.').next()?.rsplit_once('-')?;
            Some((kind.to_owned(), port.parse().ok()?))
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

/// A text with the servers' numbers in place of their ports.
fn without_ports(text: &str, servers: &[(String, u16)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = rest[at..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| at + n);
        out.push_str(&rest[..at]);
        let digits = &rest[at..end];
        match servers.iter().position(|(_, port)| port.to_string() == digits) {
            Some(number) if out.ends_with('-') => out.push_str(&(number + 1).to_string()),
            Some(number) => out.push_str(&format!("(port {})", number + 1)),
            None => out.push_str(digits),
        }
        rest = &rest[end..];
    }
    out + rest
}

/// A value without the run's own folder, and without how many mappings a process had.
fn without_place(value: &str) -> String {
    let value = match value.split_once(" (") {
        Some((before, after)) if after.ends_with(" mappings)") => before,
        _ => value,
    };
    let words: Vec<String> = value
        .split(' ')
        .map(|word| {
            let parts: Vec<&str> = word.split('/').collect();
            let own = |part: &&str| part.starts_with("cell") && part.ends_with(".server");
            let begin = word.find('/').unwrap_or(0);
            match parts.iter().position(own) {
                Some(at) => format!("{}RUN/{}", &word[..begin], parts[at + 1..].join("/")),
                None => word.to_owned(),
            }
        })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_that_was_not_recorded_is_no_difference() {
        let traits = |value: &str, is_default| {
            RunTraits::from([("users".to_owned(), RunTrait { value: value.to_owned(), is_default })])
        };
        let (default, chosen, older) = (traits("16", true), traits("16", false), RunTraits::new());
        let of = |one, other| differ("users", (one, other), "-");
        assert_eq!((of(&default, &chosen), of(&default, &older), of(&older, &older)), (None, None, None));
        assert_eq!(of(&older, &chosen), Some(("-".into(), "16".into())));
        for (one, other, is_same) in [
            ("60s", "1m", true),
            ("1M", "1000000", true),
            ("1m", "1M", false),
            ("5", "5s", false),
            ("a", "b", false),
        ] {
            let sides = (traits(one, false), traits(other, true));
            assert_eq!(differ("users", (&sides.0, &sides.1), "-").is_none(), is_same, "{one} {other}");
        }
        let other = traits("4", false);
        assert_eq!(of(&default, &other), Some(("16".into(), "4".into())));
    }

    #[test]
    fn options_of_the_target_are_settings() {
        let of = |target: &str| target_options(target).collect::<Vec<_>>();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            of("sqlite:a.db?journal=wal&cache=64MiB"),
            [pair("target: journal", "wal"), pair("target: cache", "64MiB")]
        );
        let set = "mongodb://h:1,h:2/?readPreference=secondary mongodb://h:3/?readPreference=secondary";
        assert_eq!(of(set), [pair("target: readPreference", "secondary")]);
        assert_eq!(of("null:"), []);
    }

    #[test]
    fn ports_and_folders_are_no_difference() {
        let servers = servers(
            [
                "server.redis-12619.command",
                "server.redis-12618.command",
                "server.version",
                "server.redis-12618.cpus",
            ]
            .into_iter(),
        );
        assert_eq!(servers, [("redis".to_owned(), 12_618), ("redis".to_owned(), 12_619)]);
        assert_eq!(without_ports("server.redis-12619.command", &servers), "server.redis-2.command");
        let command = "/usr/bin/redis-server --port 12618 /tmp/x/runs/cell0001-rep02.server/redis-12618/redis.conf --io 4";
        assert_eq!(
            without_place(&without_ports(command, &servers)),
            "/usr/bin/redis-server --port (port 1) RUN/redis-1/redis.conf --io 4"
        );
        let option = "--dbpath=/tmp/runs/cell0001-rep01.server/mongod-1/data";
        assert_eq!(without_place(option), "--dbpath=RUN/mongod-1/data");
        assert_eq!(without_place("default (118 mappings)"), "default");
        // A number that is no port of a server stays.
        assert_eq!(without_ports("maxmemory 126180", &servers), "maxmemory 126180");
        assert_eq!(without_place("8 GiB (limit)"), "8 GiB (limit)");
    }
}
