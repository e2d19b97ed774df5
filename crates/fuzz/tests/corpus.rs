//! Replays the corpus, and what is made of each of its files by changing bytes: cheap, the same on every run, on any Rust.

use dyno_fuzz::TARGETS;
use dyno_types::rng::{Purpose, Stream};
use std::path::PathBuf;

/// Inputs that are made of each file.
const CHANGED: u64 = 300;

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut all: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all.into_iter().map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

/// Cuts, changes, repeats or removes some bytes.
fn changed(input: &[u8], number: u64) -> Vec<u8> {
    let mut draws = Stream::new(number, input.len() as u64, Purpose::Key);
    let mut out = input.to_vec();
    for _ in 0..=draws.next_below(4) {
        if out.is_empty() {
            return out;
        }
        let at = draws.next_below(out.len() as u64) as usize;
        let length = (draws.next_below(8) as usize + 1).min(out.len() - at);
        match draws.next_below(5) {
            0 => out[at] = draws.next_u64() as u8,
            1 => out[at] ^= 1 << draws.next_below(8),
            2 => out.truncate(at),
            3 => drop(out.drain(at..at + length)),
            _ => {
                let again = out[at..at + length].to_vec();
                out.splice(at..at, again);
            }
        }
    }
    out
}

#[test]
fn every_target_has_a_corpus_and_takes_it() {
    for (name, target) in TARGETS {
        let files = corpus(name);
        assert!(files.len() >= 2, "{name}: {} files", files.len());
        for (_, input) in &files {
            target(input);
            (0..CHANGED).for_each(|number| target(&changed(input, number)));
        }
    }
}

/// Inputs that once broke something have names of their own and stay.
#[test]
fn nothing_is_in_the_corpus_that_no_target_reads() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(TARGETS.iter().any(|(target, _)| *target == name), "{name}");
    }
}
