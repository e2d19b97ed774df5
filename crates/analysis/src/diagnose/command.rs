//! The command that would settle a claim: the run's own, with one value changed.

use super::rules::Experiment;
use dyno_rundir::RunDir;

/// The value of an option of a run, where the command does not say it.
fn value(run: &RunDir, option: &str) -> Option<f64> {
    let phase = run.summary.as_ref()?.measured()?;
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

/// What experiments call the option.
fn key(option: &str) -> &'static str {
    match option {
        "--users" => "phases.measure.users",
        "--threads" => "client.threads",
        "--field-length" => "workload.ycsb.properties.fieldlength",
        _ => "phases.measure.duration",
    }
}

/// The command line of `run` with the experiment's option changed. Of a run of an experiment: the same experiment with the
/// value set. Empty where the run's command is not dyno's own `run`, or the value is not known.
pub fn varied(run: &RunDir, experiment: &Experiment) -> Vec<String> {
    let words = &run.run.command;
    let Some(value) = value(run, experiment.option) else { return Vec::new() };
    let changed = (value * experiment.factor).round().max(1.0);
    let text = if experiment.option == "--duration" { format!("{changed}s") } else { format!("{changed}") };
    if words.get(1).is_none_or(|verb| verb != "run") {
        return Vec::new();
    }
    let mut out: Vec<String> = std::iter::once("dyno".to_owned()).chain(words[1..].iter().cloned()).collect();
    strip(&mut out, &["--out", "-o"]);
    let of_experiment = run.run.settings.iter().any(|setting| setting.key == "cell");
    if of_experiment {
        out.extend(["--set".to_owned(), format!("{}={text}", key(experiment.option))]);
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

/// Takes options with their values away.
fn strip(words: &mut Vec<String>, names: &[&str]) {
    let mut kept = Vec::with_capacity(words.len());
    let mut all = std::mem::take(words).into_iter();
    while let Some(word) = all.next() {
        if names.contains(&word.as_str()) {
            all.next();
        } else if !names.iter().any(|name| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
        {
            kept.push(word);
        }
    }
    *words = kept;
}

fn strip_flag(words: &mut Vec<String>, name: &str) {
    words.retain(|word| word != name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_with_their_values() {
        let mut words: Vec<String> =
            ["dyno", "run", "-u", "8", "--users=4", "x", "--out", "d"].map(str::to_owned).to_vec();
        strip(&mut words, &["--users", "-u"]);
        strip(&mut words, &["--out"]);
        assert_eq!(words, ["dyno", "run", "x"]);
    }
}
