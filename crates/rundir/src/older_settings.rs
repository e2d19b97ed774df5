//! Settings of `dyno run` as run.json had them before they had the keys of experiments.

use crate::setting::Setting;
use dyno_types::units::{parse_cores, parse_count, parse_duration_ns, written_cores, written_duration};
use serde::{Deserialize, Deserializer};

/// Writes a value as it is written today; `None` where it cannot be read.
type Rewrite = fn(&str) -> Option<String>;

/// A value that is written as it always was.
const AS_IT_WAS: Rewrite = |text| Some(text.to_owned());
const DURATION: Rewrite = |text| parse_duration_ns(text, 1_000_000_000).ok().map(written_duration);
const COUNT: Rewrite = |text| parse_count(text).ok().map(|count| count.to_string());
const CORES: Rewrite = |text| parse_cores(text).map(|cores| written_cores(&cores));
const INVERTED: Rewrite = |text| Some((text != "true").to_string());

/// The old key (an option's name), today's key, and what became of the value.
const KEYS: [(&str, &str, Rewrite); 25] = [
    ("users", "phases.measure.users", AS_IT_WAS),
    ("connections", "phases.measure.connections", AS_IT_WAS),
    ("rate", "phases.measure.rate", AS_IT_WAS),
    ("arrivals", "phases.measure.arrivals", AS_IT_WAS),
    ("think", "phases.measure.think", DURATION),
    ("duration", "phases.measure.duration", DURATION),
    ("ops", "phases.measure.operations", COUNT),
    ("warmup", "phases.measure.warmup", DURATION),
    ("pipeline", "phases.measure.pipeline", AS_IT_WAS),
    ("timeout", "phases.measure.timeout", DURATION),
    ("drain", "phases.measure.drain", DURATION),
    ("queue", "phases.measure.queue", COUNT),
    ("queue-age", "phases.measure.queue_age", DURATION),
    ("interval", "phases.measure.interval", DURATION),
    ("load-pipeline", "phases.load.pipeline", AS_IT_WAS),
    ("load-batch", "phases.load.batch", AS_IT_WAS),
    ("client", "client.driver", AS_IT_WAS),
    ("stamps", "client.stamps", AS_IT_WAS),
    ("threads", "client.threads", AS_IT_WAS),
    ("cores", "client.cores", CORES),
    ("wait", "client.wait", AS_IT_WAS),
    ("monitor-interval", "monitors.interval", DURATION),
    ("no-pin", "client.pin", INVERTED),
    ("no-monitor", "monitors.enabled", INVERTED),
    ("workload", WORKLOAD, AS_IT_WAS),
];

/// Key of the workload's name.
const WORKLOAD: &str = "workload.ycsb.workload";

/// Key of the mark of documents of one's own, which have no workload of YCSB.
const DOCUMENTS: &str = "dyno.template";

/// Reads the settings of a run; those that `dyno run` wrote by the names of its options get the keys and the values of
/// today.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<Setting>, D::Error> {
    let settings = Vec::<Setting>::deserialize(reader)?;
    let has = |key: &str| settings.iter().any(|setting| setting.key == key);
    // No other command has both, and the keys of today have neither.
    if !(has("loop") && has("no-pin")) {
        return Ok(settings);
    }
    let has_documents = has(DOCUMENTS);
    let today = settings.into_iter().flat_map(renamed);
    Ok(today.filter(|setting| !(has_documents && setting.key == WORKLOAD)).collect())
}

fn renamed(setting: Setting) -> Vec<Setting> {
    match setting.key.as_str() {
        // Which of two runs has loaded the records was never a difference.
        "no-load" | "reload" => Vec::new(),
        "prometheus" => exporters(&setting),
        key => match KEYS.iter().find(|(option, ..)| *option == key) {
            Some((_, key, rewrite)) => {
                let value = rewrite(&setting.value).unwrap_or_else(|| setting.value.clone());
                vec![Setting { key: (*key).to_owned(), value, ..setting }]
            }
            None => vec![setting],
        },
    }
}

/// A setting for each `NAME=URL` of a list.
fn exporters(setting: &Setting) -> Vec<Setting> {
    let exporter = |(name, url): (&str, &str)| Setting {
        key: format!("monitors.prometheus.{name}"),
        value: url.to_owned(),
        source: setting.source.clone(),
    };
    setting.value.split(',').filter_map(|text| text.split_once('=')).map(exporter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let all = deserialize(&mut reader).unwrap();
        all.into_iter().map(|one| (one.key, one.value)).collect()
    }

    #[test]
    fn settings_of_older_runs_have_the_keys_of_today() {
        let setting = |(key, value): &(&str, &str)| {
            format!("{{\"key\":\"{key}\",\"value\":\"{value}\",\"source\":\"default\"}}")
        };
        let text =
            |all: &[(&str, &str)]| format!("[{}]", all.iter().map(setting).collect::<Vec<_>>().join(","));
        let pairs = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let older = [
            ("loop", "closed"),
            ("users", "4"),
            ("no-pin", "true"),
            ("reload", "false"),
            ("fieldcount", "10"),
        ];
        let newer = [
            ("loop", "closed"),
            ("phases.measure.users", "4"),
            ("client.pin", "false"),
            ("fieldcount", "10"),
        ];
        assert_eq!(read(&text(&older)), pairs(&newer));
        assert_eq!(read(&text(&newer)), pairs(&newer));
        // Another command's.
        let other = [("threads", "4"), ("target", "500")];
        assert_eq!(read(&text(&other)), pairs(&other));
    }

    /// The older values are those that `dyno run` wrote by default, or as they were typed.
    #[test]
    fn values_of_older_runs_are_written_as_today() {
        let of = |(key, value): (&str, &str)| {
            let marks = ["loop", "no-pin"]
                .map(|key| format!("{{\"key\":\"{key}\",\"value\":\"x\",\"source\":\"\"}}"));
            let setting = format!("{{\"key\":\"{key}\",\"value\":\"{value}\",\"source\":\"--{key}\"}}");
            read(&format!("[{},{setting}]", marks.join(","))).split_off(2)
        };
        for (old, new) in [
            (("timeout", "60s"), vec![("phases.measure.timeout", "1m")]),
            (("warmup", "0.5s"), vec![("phases.measure.warmup", "500ms")]),
            (("think", "0s"), vec![("phases.measure.think", "0s")]),
            (("queue", "1M"), vec![("phases.measure.queue", "1000000")]),
            (("ops", "10k"), vec![("phases.measure.operations", "10000")]),
            (("cores", "2,3"), vec![("client.cores", "2-3")]),
            (("rate", "20k"), vec![("phases.measure.rate", "20k")]),
            (("workload", "b"), vec![("workload.ycsb.workload", "b")]),
            (("no-monitor", "false"), vec![("monitors.enabled", "true")]),
            (
                ("prometheus", "a=http://h:1,b=http://h:2/m?x=y"),
                vec![("monitors.prometheus.a", "http://h:1"), ("monitors.prometheus.b", "http://h:2/m?x=y")],
            ),
            (("prometheus", ""), vec![]),
            // What cannot be read is kept.
            (("timeout", "long"), vec![("phases.measure.timeout", "long")]),
        ] {
            let new: Vec<_> = new.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
            assert_eq!(of(old), new, "{old:?}");
        }
    }
}
