//! Settings of `dyno run` as run.json had them before they had the keys of experiments.

use crate::setting::Setting;
use serde::{Deserialize, Deserializer};

/// Name of an option, which was the key, and the key.
const KEYS: [(&str, &str); 22] = [
    ("users", "phases.measure.users"),
    ("connections", "phases.measure.connections"),
    ("rate", "phases.measure.rate"),
    ("arrivals", "phases.measure.arrivals"),
    ("think", "phases.measure.think"),
    ("duration", "phases.measure.duration"),
    ("ops", "phases.measure.operations"),
    ("warmup", "phases.measure.warmup"),
    ("pipeline", "phases.measure.pipeline"),
    ("timeout", "phases.measure.timeout"),
    ("drain", "phases.measure.drain"),
    ("queue", "phases.measure.queue"),
    ("queue-age", "phases.measure.queue_age"),
    ("interval", "phases.measure.interval"),
    ("load-pipeline", "phases.load.pipeline"),
    ("load-batch", "phases.load.batch"),
    ("client", "client.driver"),
    ("stamps", "client.stamps"),
    ("threads", "client.threads"),
    ("cores", "client.cores"),
    ("wait", "client.wait"),
    ("monitor-interval", "monitors.interval"),
];

/// Reads the settings of a run; those that `dyno run` wrote by the names of its options get their keys.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<Setting>, D::Error> {
    let settings = Vec::<Setting>::deserialize(reader)?;
    let has = |key: &str| settings.iter().any(|setting| setting.key == key);
    // No other command has both, and the keys of today have neither.
    Ok(if has("loop") && has("no-pin") {
        settings.into_iter().filter_map(renamed).collect()
    } else {
        settings
    })
}

fn renamed(setting: Setting) -> Option<Setting> {
    let is_set = setting.value == "true";
    let (key, value) = match setting.key.as_str() {
        "no-pin" => ("client.pin", (!is_set).to_string()),
        "no-monitor" => ("monitors.enabled", (!is_set).to_string()),
        // Which of two runs has loaded the records was never a difference.
        "no-load" | "reload" => return None,
        key => match KEYS.iter().find(|(option, _)| *option == key) {
            Some((_, key)) => (*key, setting.value.clone()),
            None => return Some(setting),
        },
    };
    Some(Setting { key: key.to_owned(), value, ..setting })
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
}
