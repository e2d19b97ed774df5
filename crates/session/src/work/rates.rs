//! Rates over time of an experiment: what changes by chance has its seed, and files that rates name may come with it.

use dyno_config::experiment::Experiment;
use dyno_engine::arrivals::Profile;
use dyno_engine::rates::text::{BadProfile, ProfileSource, file_of_rate};
use dyno_types::bounded;
use dyno_types::limits::IMPORT_BYTES;
use dyno_types::{RefusalCode, Refused};
use std::io;

/// Reads a rate over time of `spec`.
///
/// # Errors
/// What is wrong with the text, or with the file that it names.
pub fn parse_profile(spec: &Experiment, rate: &str) -> Result<Profile, BadProfile> {
    let file = |path: &str| read_file(spec, path);
    Profile::parse(rate, &ProfileSource { seed: spec.run_seed(), file: &file })
}

/// Reads a file that a rate names: what came with the experiment, else the file.
fn read_file(spec: &Experiment, path: &str) -> io::Result<String> {
    match spec.phases.rate_files.get(path) {
        Some(text) => Ok(text.clone()),
        None => bounded::text_file(path, IMPORT_BYTES),
    }
}

/// Puts the contents of the files that the rates of `spec` name into it.
///
/// # Errors
/// Names the file that cannot be read.
pub(super) fn add_rate_files(spec: &mut Experiment) -> Result<(), Refused> {
    let phases = &spec.phases;
    let warmup = phases.warmup.as_ref().and_then(|warmup| warmup.rate.as_ref());
    let rates = [phases.measure.rate.as_ref(), warmup, phases.load.rate.as_ref()];
    let paths = rates.into_iter().flatten().filter_map(|rate| file_of_rate(rate));
    let mut found = Vec::new();
    for path in paths {
        let text = read_file(spec, path)
            .map_err(|e| Refused::new(RefusalCode::BadFile, path, format!("{path}: {e}")))?;
        found.push((path.to_owned(), text));
    }
    spec.phases.rate_files.extend(found);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_files(spec: &Experiment) -> Result<Experiment, Refused> {
        let mut whole = spec.clone();
        add_rate_files(&mut whole).map(|()| whole)
    }

    #[test]
    fn files_of_rates_go_with_the_experiment() {
        let path = std::env::temp_dir().join(format!("dyno-rates-{}.csv", std::process::id()));
        std::fs::write(&path, "time,rate\n0,100\n10,200\n").unwrap();
        let mut spec = Experiment::default();
        let rate = format!("file:{}:repeat", path.display());
        spec.phases.measure.rate = Some(rate.clone());
        let (here, whole) = (parse_profile(&spec, &rate).unwrap(), with_files(&spec).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(parse_profile(&whole, &rate).unwrap(), here);
        assert_eq!(with_files(&whole).unwrap(), whole);
        let gone = with_files(&spec).unwrap_err().to_string();
        assert!(gone.contains(".csv: No such file"), "{gone}");
    }

    #[test]
    fn every_worker_of_a_repetition_sees_the_same_modulation_and_every_repetition_its_own() {
        let mut spec = Experiment::default();
        let read = |spec: &Experiment| parse_profile(spec, "mmpp:10:1s,100:1s").unwrap();
        let first = read(&spec);
        assert_eq!(read(&spec.clone()), first);
        spec.repetition = Some(2);
        assert_ne!(read(&spec), first);
    }
}
