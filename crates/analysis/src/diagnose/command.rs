//! The command that would settle a claim: the run's own, with one value changed.

use super::rules::rule::SuggestedExperiment;
use dyno_rundir::schema::Setting;
use dyno_rundir::{ExperimentDir, RunDir};
use dyno_types::shell::{again, strip};

/// The value of an option of a run, where the command does not say it.
fn value(run: &RunDir, option: &str) -> Option<f64> {
    let phase = run.summary.as_ref()?.measured_phase()?;
    let setting = |key: &str| {
        run.run
            .settings
            .iter()
            .find(|setting| setting.key == key)
            .and_then(|setting| setting.value.parse().ok())
    };
    match option {
        "--users" => phase.offered.is_none().then_some(phase.client.users as f64),
        "--threads" => Some(phase.client.threads as f64),
        "--field-length" => setting("fieldlength").or(Some(100.0)),
        "--duration" => Some(phase.seconds.round()),
        _ => None,
    }
}

/// Returns the names of the option in experiments: its key, and the short name, if it has one.
fn keys(option: &str) -> [&'static str; 2] {
    match option {
        "--users" => ["phases.measure.users", "users"],
        "--threads" => ["client.threads", "client.threads"],
        "--field-length" => ["workload.ycsb.properties.fieldlength", "workload.ycsb.properties.fieldlength"],
        _ => ["phases.measure.duration", "duration"],
    }
}

/// Returns the options that make an experiment the one run alone: the cell's levels and the search's point, each as
/// `--set`; without what sets one of `keys`, which is about to be changed. `None` if a value is a secret that the run
/// does not hold.
fn pinned(levels: &[(String, String)], settings: &[Setting], keys: [&str; 2]) -> Option<Vec<String>> {
    let mut sets = Vec::new();
    for (factor, level) in levels {
        if !keys.contains(&factor.as_str()) {
            sets.push(format!("{factor}={level}"));
        }
    }
    let of_point: Vec<_> = settings.iter().filter(|one| one.source.starts_with("strategy ")).collect();
    if !of_point.is_empty() {
        sets.push("strategy=null".to_owned());
    }
    for one in of_point.iter().filter(|one| !keys.contains(&one.key.as_str())) {
        if one.value == "***" {
            return None;
        }
        sets.push(format!("{}={}", one.key, one.value));
    }
    Some(sets.into_iter().flat_map(|set| ["--set".to_owned(), set]).collect())
}

/// The command line of `run` with the experiment's option changed. Of a run of an experiment: its cell alone, with the value
/// set. Empty where the run's command is not dyno's own `run`, or the value is not known.
pub fn build_varied_command(run: &RunDir, experiment: &SuggestedExperiment) -> Vec<String> {
    let words = &run.run.command;
    let Some(value) = value(run, experiment.option) else { return Vec::new() };
    let changed = (value * experiment.factor).round().max(1.0);
    let text = if experiment.option == "--duration" { format!("{changed}s") } else { format!("{changed}") };
    if words.get(1).is_none_or(|verb| verb != "run") {
        return Vec::new();
    }
    let mut out = again(words);
    // The same once more, however it was to end.
    let changes = experiment.factor != 1.0;
    if let Some(cell) = run.run.settings.iter().find(|setting| setting.key == "cell") {
        let keys = if changes { keys(experiment.option) } else { ["", ""] };
        let levels = ExperimentDir::levels_around(&run.path, &cell.value).unwrap_or_default();
        let Some(pinned) = pinned(&levels, &run.run.settings, keys) else { return Vec::new() };
        out.extend(pinned);
        if changes {
            out.extend(["--set".to_owned(), format!("{}={text}", keys[0])]);
        }
        return out;
    }
    if !changes {
        return out;
    }
    let short: &[&str] = match experiment.option {
        "--users" => &["--users", "-u"],
        "--threads" => &["--threads", "-t"],
        "--duration" => &["--duration", "-d"],
        _ => &["--field-length"],
    };
    strip(&mut out, short);
    if experiment.option == "--field-length" {
        // Records of another size must be loaded anew.
        strip_flag(&mut out, "--no-load");
        out.push("--reload".into());
    }
    out.extend([experiment.option.to_owned(), text]);
    out
}

fn strip_flag(words: &mut Vec<String>, name: &str) {
    words.retain(|word| word != name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_an_experiment_is_made_again_alone() {
        let setting = |key: &str, value: &str, source: &str| Setting {
            key: key.into(),
            value: value.into(),
            source: source.into(),
        };
        let levels = [("users".to_owned(), "4".to_owned()), ("memory".to_owned(), "8/16".to_owned())];
        let told = [setting("phases.measure.users", "4", "x.yaml:3:4")];
        let users = keys("--users");
        // The factor that varies the key gives way to the new value, the others stay at the run's level.
        assert_eq!(pinned(&levels, &told, users).unwrap(), ["--set", "memory=8/16"]);
        assert_eq!(
            pinned(&levels, &told, keys("--duration")).unwrap(),
            ["--set", "users=4", "--set", "memory=8/16"]
        );
        let found = [
            setting("phases.measure.users", "8", "strategy phases.measure.users=8"),
            setting("server.options.hz", "10", "strategy server.options.hz=10"),
        ];
        let alone = ["--set", "strategy=null", "--set", "server.options.hz=10"];
        assert_eq!(pinned(&[], &found, users).unwrap(), alone);
        let secret =
            [setting("server.options.requirepass", "***", "strategy server.options.requirepass=***")];
        assert_eq!(pinned(&[], &secret, users), None);
    }

    #[test]
    fn options_go_with_their_values() {
        let mut words: Vec<String> =
            ["dyno", "run", "-u", "8", "--users=4", "x", "--out", "d"].map(str::to_owned).to_vec();
        strip(&mut words, &["--users", "-u"]);
        strip(&mut words, &["--out"]);
        assert_eq!(words, ["dyno", "run", "x"]);
    }
}
