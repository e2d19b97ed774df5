//! What was learned, as a workload of commands (docs/commands.md) with how well it fits.

use super::arguments::argument;
use super::arrivals::{Arrivals, OperationSizes};
use super::dialect::Dialect;
use super::findings::{
    COMPARED, LearnedWorkload, command_arrivals, gap_findings, greatest_difference, reuse_findings,
    start_line,
};
use super::model::{ModelSequence, ModelSpace, model_distances};
use super::operations::{KeyTexts, OPERATIONS, write_operations};
use super::popularity::{KeyFit, Popularity};
use super::read_ahead::read_ahead;
use super::reuse::ReuseDistances;
use super::sequences::{FoundSequence, Pauses, SentCommand, Sequences};
use super::shapes::{NotedForm, Shape, Shapes, SpaceUses, note_form, note_keys};
use super::slots::{SlotShares, TierShares};
use super::spaces::{KeySpace, KeySpaces};
use super::yaml_text::{one_of, quoted, text_of};
use crate::entry::Entry;
use crate::format::{Lack, RecordedEvent, RecordingError, RecordingHeader, RecordingReader};
use crate::replay::{Chooser, RecordingSurvey, ReplayOptions};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Key spaces that are told one by one, those with the most requests.
const TOLD_SPACES: usize = 20;

/// Of a key space of which at least this share was there all keys are loaded.
const ALL_LOADED: f64 = 0.98;

/// Tiers stand for a zipfian distribution where the share of answered requests is so much nearer then.
const TIERS_GAIN: f64 = 0.003;

/// Sum of the weights of tiers.
const WEIGHTS: f64 = 1e4;

/// A command that fills the keys of a space: one that was seen, or what a read of texts must have found.
fn filling(
    (dialect, shapes): (Dialect, &Shapes),
    space: usize,
    key: &str,
    key_of: &dyn Fn(usize) -> String,
) -> Option<String> {
    let uses = |shape: &Shape| shape.arguments.get(1).is_some_and(|first| first.spaces.contains_key(&space));
    let requests_of = |shape: &Shape| -> u64 {
        shape.arguments.iter().filter_map(|argument| argument.spaces.get(&space)).sum()
    };
    let requests = |names: &[&str]| -> u64 {
        let found = shapes.iter().filter(|(form, _)| names.contains(&form.name.as_str()));
        found.map(|(_, shape)| requests_of(shape)).sum()
    };
    let most_frequent = |names: &[&str], has: &dyn Fn(&Shape) -> bool| {
        let found = shapes.iter().filter(|(form, shape)| {
            names.contains(&form.name.as_str()) && requests_of(shape) > 0 && has(shape)
        });
        found.max_by_key(|(_, shape)| requests_of(shape)).map(|(_, shape)| shape)
    };
    // A counter is set to a number, whatever else of its name's commands hold. What is counted now and then is none.
    let counted = requests(dialect.counting_commands());
    if counted > requests(dialect.filling_commands()) + requests(dialect.changing_commands()) {
        return Some(dialect.put_text(key, &quoted("0")));
    }
    for name in dialect.filling_commands() {
        let found = shapes
            .iter()
            .filter(|(form, shape)| form.name == *name && uses(shape) && dialect.fills(&form.options));
        if let Some((form, shape)) = found.max_by_key(|(_, shape)| requests_of(shape)) {
            let rest = shape.arguments.iter().skip(2).map(|stats| argument(stats, key_of));
            let words: Vec<String> = [quoted(&form.name), key.to_owned()].into_iter().chain(rest).collect();
            return Some(format!("[{}]", words.join(", ")));
        }
    }
    let last_of = |shape: &Shape| shape.arguments.last().map(|last| text_of(&last.lengths));
    let text = most_frequent(dialect.changing_commands(), &|_| true).and_then(last_of);
    let text = text.or_else(|| {
        most_frequent(dialect.reading_commands(), &|shape| !shape.texts.is_empty())
            .map(|shape| text_of(&shape.texts))
    });
    Some(dialect.put_text(key, &text?))
}

/// Learns a workload of commands from a recording.
///
/// # Errors
/// The file cannot be read, or holds nothing to learn from.
pub(super) fn learn_commands(
    path: &Path,
    dialect: Dialect,
    (header, survey): (&RecordingHeader, &RecordingSurvey),
    options: &ReplayOptions,
    seed: u64,
) -> Result<LearnedWorkload, RecordingError> {
    let (mut shapes, mut spaces, mut arrivals) =
        (Shapes::default(), KeySpaces::default(), Arrivals::default());
    let mut reuse = ReuseDistances::default();
    let mut setup: BTreeMap<String, u64> = BTreeMap::new();
    let limit_ns = pause_limit(path, header, (survey, options))?;
    let mut sequences = Sequences::with_limit(limit_ns);
    let (mut noted, mut uses) = (Vec::new(), SpaceUses::default());
    let mut chooser = Chooser::new(options, header.protocol);
    // Two threads have about the same to do: what commands are like, and which keys they are about.
    let prepare = |entry: &Entry, form: &mut NotedForm| {
        if !survey.sends(options, &mut chooser, entry) {
            return false;
        }
        let name = dialect.command_name(&entry.arguments);
        if dialect.is_setup(&name) {
            *setup.entry(name).or_default() += 1;
            return false;
        }
        let arguments = dialect.timeless(entry, header.begins_ns);
        note_form(dialect, &mut shapes, &arguments, entry.reply.as_ref(), form);
        true
    };
    read_ahead(path, prepare, |entry, form| {
        if sequences.is_begun_by(entry.connection, entry.at_ns) {
            spaces.operation += 1;
        }
        arrivals.note(entry.at_ns);
        note_keys((&mut spaces, &mut uses), &entry.arguments, form, &mut noted);
        let half = usize::from(entry.at_ns > survey.length_ns / 2);
        for (_, _, hash) in &noted {
            if reuse.requests() < COMPARED {
                reuse.note_request(*hash, half);
            }
        }
        sequences.note(&SentCommand {
            connection: entry.connection,
            time_ns: (entry.at_ns, end_ns(entry)),
            overlaps: entry.overlaps,
            pattern: form.pattern,
            keys: &noted,
        });
    })?;
    uses.add_to(&mut shapes);
    if shapes.is_empty() {
        return Err(RecordingError::Empty);
    }
    let chosen = sequences.most_frequent(OPERATIONS / 2);
    let operations = sequences.operations(&chosen);
    let fitted = fit_keys(&spaces, &reuse, (&chosen, operations), seed);
    let found = (&shapes, &spaces, &arrivals);
    Ok(written((dialect, header, survey), found, (&chosen, &sequences), fitted, &setup, seed))
}

/// When a command was over for its connection.
fn end_ns(entry: &Entry) -> u64 {
    let took_ns = entry.reply.as_ref().and_then(|reply| reply.after_ns).unwrap_or(0);
    entry.at_ns.saturating_add(took_ns)
}

/// The shortest pause between two sequences of commands; `None` where they cannot be told.
fn pause_limit(
    path: &Path,
    header: &RecordingHeader,
    (survey, options): (&RecordingSurvey, &ReplayOptions),
) -> Result<Option<u64>, RecordingError> {
    if [Lack::Connections, Lack::Times, Lack::Subseconds].iter().any(|lack| header.is_without(*lack)) {
        return Ok(None);
    }
    let (mut pauses, mut entry) = (Pauses::default(), Entry::default());
    let mut reader = RecordingReader::open_file(path)?;
    let mut chooser = Chooser::new(options, header.protocol);
    while let Some(event) = reader.next_event(&mut entry)? {
        let is_sent = event == RecordedEvent::Entry && survey.sends(options, &mut chooser, &entry);
        if is_sent && !pauses.note(entry.connection, entry.at_ns, end_ns(&entry)) {
            break;
        }
    }
    Ok(pauses.limit_ns())
}

/// What was learned of keys.
struct FittedKeys {
    fits: Vec<KeyFit>,
    slots: SlotShares,
    findings: Vec<String>,
}

/// How popular the keys of each space are; and how soon keys are asked for again, then and in the workload. Keys that come and
/// go are taken as such where the workload is nearer to the recording so.
fn fit_keys(
    spaces: &KeySpaces,
    reuse: &ReuseDistances,
    (chosen, operations): (&[FoundSequence], u64),
    seed: u64,
) -> FittedKeys {
    let fits: Vec<KeyFit> = spaces.all.iter().map(KeySpace::fit_popularity).collect();
    let slots = SlotShares::of_sequences(spaces, &fits, chosen);
    let number = |space: &KeySpace| if space.only_key().is_some() { 1 } else { space.keys() };
    let keys: u64 = spaces.all.iter().map(number).sum();
    if reuse.requests() == 0 || keys < 2 {
        return FittedKeys { fits, slots, findings: Vec::new() };
    }
    let made = model_of(spaces, reuse, (&fits, &slots), (chosen, operations), seed);
    let mut best = (
        greatest_difference(reuse, &made, keys),
        FittedKeys { fits, slots, findings: Vec::new() },
        made,
        true,
    );
    let mut consider = |is_still: bool, by: f64, change: &dyn Fn(&KeySpace, &KeyFit) -> Option<KeyFit>| {
        let changed = |(space, fit): (&KeySpace, &KeyFit)| change(space, fit).unwrap_or_else(|| fit.clone());
        let fits: Vec<KeyFit> = spaces.all.iter().zip(&best.1.fits).map(changed).collect();
        if fits == best.1.fits {
            return;
        }
        let slots = SlotShares::of_sequences(spaces, &fits, chosen);
        let made = model_of(spaces, reuse, (&fits, &slots), (chosen, operations), seed);
        let off = greatest_difference(reuse, &made, keys);
        if off + by < best.0 {
            best = (off, FittedKeys { fits, slots, findings: Vec::new() }, made, is_still && best.3);
        }
    };
    let counted = (spaces.operation, operations);
    consider(false, 0.0, &|space, _| space.fit_active(counted, false));
    consider(false, 0.0, &|space, _| space.fit_active(counted, true));
    consider(true, TIERS_GAIN, &|space, fit| space.fit_tiers(fit));
    let (_, fitted, made, is_still) = best;
    FittedKeys { findings: reuse_findings((reuse, &made), keys, is_still), ..fitted }
}

/// Reuse of the keys as the workload makes it.
fn model_of(
    spaces: &KeySpaces,
    reuse: &ReuseDistances,
    (fits, slots): (&[KeyFit], &SlotShares),
    (chosen, operations): (&[FoundSequence], u64),
    seed: u64,
) -> ReuseDistances {
    let model: Vec<ModelSpace<'_>> = spaces
        .all
        .iter()
        .zip(fits)
        .zip(&slots.alone)
        .map(|((space, fit), shares)| ModelSpace {
            requests: space.requests,
            keys: if space.only_key().is_some() { 1 } else { fit.keys },
            popularity: &fit.popularity,
            shares: shares.as_ref(),
        })
        .collect();
    let sequences: Vec<ModelSequence<'_>> = chosen
        .iter()
        .zip(&slots.of_sequences)
        .map(|(found, shares)| ModelSequence {
            count: found.count,
            keys: found.form.spaces.iter().copied().zip(shares.iter().map(Option::as_ref)).collect(),
            requests: found
                .form
                .steps
                .iter()
                .flat_map(|step| &step.keys)
                .map(|(_, key)| usize::from(*key))
                .collect(),
        })
        .collect();
    model_distances(&model, &sequences, (reuse.requests(), operations), seed)
}

/// A key space of the workload, one of the tiers of what is learned as one.
struct NamedTier {
    name: String,
    /// Weight among the tiers.
    weight: u64,
    /// The key space whose keys are loaded: this one or a part of it, if any.
    loaded: Option<String>,
}

/// Key spaces, of which one may have several tiers.
fn spaces_text(
    spaces: &KeySpaces,
    fits: &[KeyFit],
    out: &mut String,
    findings: &mut Vec<String>,
) -> Vec<Vec<NamedTier>> {
    let mut names = Vec::new();
    let mut told: Vec<(u64, String)> = Vec::new();
    for (number, (space, fit)) in spaces.all.iter().zip(fits).enumerate() {
        if let Some(key) = space.only_key() {
            told.push((space.requests, format!("{key}: one key, {} requests", space.requests)));
            names.push(Vec::new());
            continue;
        }
        let format = space.key_format(number);
        let keys = fit.keys;
        let name = format!("k{number}");
        let mut own = Vec::new();
        let begin = space.first_number(keys);
        let share = space.loaded_share().unwrap_or(1.0);
        let loaded_until =
            |keys: u64| if share >= ALL_LOADED { keys } else { (keys as f64 * share).round() as u64 };
        let mut add = |name: String, count: u64, first: u64, spread: &str, weight: u64| {
            let line = |name: &str, count: u64| {
                let first = begin + first;
                let first = if first > 0 { format!(", first: {first}") } else { String::new() };
                format!("  {name}: {{ count: {count}, format: {}{first}{spread} }}\n", quoted(&format))
            };
            out.push_str(&line(&name, count));
            let loaded = match loaded_until(first + count) - loaded_until(first) {
                0 => None,
                all if all == count => Some(name.clone()),
                part => {
                    let own = format!("{name}_there");
                    out.push_str(&line(&own, part));
                    Some(own)
                }
            };
            own.push(NamedTier { name, weight, loaded });
        };
        let message = match &fit.popularity {
            Popularity::Uniform => {
                add(name, keys, 0, "", 1);
                "all alike".to_owned()
            }
            Popularity::Active(active) => {
                let spread = format!("active:{}:{}", active.at_a_time, active.operations);
                add(name, keys, 0, &format!(", distribution: \"{spread}\""), 1);
                format!("{} at a time, each for {} operations", active.at_a_time, active.operations)
            }
            Popularity::Zipfian(theta) => {
                add(name, keys, 0, &format!(", distribution: \"zipfian:{theta}\""), 1);
                format!("zipfian with exponent {theta}")
            }
            Popularity::Tiers(tiers) => {
                let scale = 1.0 / space.counted_share();
                let mut first = 0;
                for (tier, (size, share)) in tiers.all.iter().enumerate() {
                    let (name, size) = (format!("{name}_{tier}"), (*size as f64 * scale) as u64);
                    add(name, size, first, "", ((share * WEIGHTS) as u64).max(1));
                    first += size;
                }
                format!(
                    "in {} tiers, the most popular key {:.2} % of the requests",
                    tiers.all.len(),
                    tiers.all[0].1 * 100.0
                )
            }
        };
        let estimate = if space.counted_share() < 1.0 { "about " } else { "" };
        let seen = space.keys();
        let unseen = match keys > seen + seen / 100 {
            true => format!(" (and about {} that were not asked for)", keys - seen),
            false => String::new(),
        };
        let there = match share < ALL_LOADED {
            true => format!("; {:.0} % of them were there before", share * 100.0),
            false => String::new(),
        };
        let line = format!(
            "{format}: {estimate}{seen} keys{unseen}, {} requests; popularity {message}, off by at most {:.1} % of the \
             requests{there}",
            space.requests,
            fit.error * 100.0
        );
        told.push((space.requests, line));
        names.push(own);
    }
    told.sort_by_key(|(requests, _)| std::cmp::Reverse(*requests));
    let rest = told.split_off(told.len().min(TOLD_SPACES));
    findings.extend(told.into_iter().map(|(_, line)| line));
    if !rest.is_empty() {
        let requests: u64 = rest.iter().map(|(requests, _)| requests).sum();
        findings.push(format!("and {} patterns more, with {requests} requests", rest.len()));
    }
    names
}

fn written(
    (dialect, header, survey): (Dialect, &RecordingHeader, &RecordingSurvey),
    (shapes, spaces, arrivals): (&Shapes, &KeySpaces, &Arrivals),
    (chosen, sequences): (&[FoundSequence], &Sequences),
    fitted: FittedKeys,
    setup: &BTreeMap<String, u64>,
    seed: u64,
) -> LearnedWorkload {
    let mut findings = Vec::new();
    let mut body = format!("seed: {seed}\n");
    let mut keys = String::new();
    let FittedKeys { fits, slots, findings: reused } = fitted;
    let names = spaces_text(spaces, &fits, &mut keys, &mut findings);
    findings.extend(reused);
    if !keys.is_empty() {
        let _ = write!(body, "keys:\n{keys}");
    }
    let drawn = |space: usize, shares: Option<&TierShares>| {
        if let Some(key) = spaces.all[space].only_key() {
            return quoted(&key);
        }
        let weight = |tier: usize, own: u64| shares.map_or(own, |shares| (shares[tier] * WEIGHTS) as u64);
        let tiers = names[space].iter().enumerate();
        let all: Vec<(String, u64)> = tiers
            .map(|(tier, own)| (format!("{{ $key: {} }}", own.name), weight(tier, own.weight)))
            .filter(|(_, weight)| *weight > 0)
            .collect();
        one_of(&all)
    };
    let key_of = |space: usize| drawn(space, slots.alone[space].as_ref());
    let mut load = String::new();
    for (space, own) in names.iter().enumerate() {
        if let Some(key) = spaces.all[space].only_key() {
            let command = filling((dialect, shapes), space, &key_of(space), &key_of);
            if command.is_none() {
                findings.push(format!("{key}: nothing shows what it holds: it is not loaded"));
            }
            load.extend(command.map(|command| format!("  - {{ once: true, command: {command} }}\n")));
            continue;
        }
        let loaded: Vec<&String> = own.iter().filter_map(|tier| tier.loaded.as_ref()).collect();
        let filled = loaded.iter().filter_map(|name| {
            let command = filling((dialect, shapes), space, &format!("{{ $key: {name} }}"), &key_of)?;
            Some(format!("  - {{ for: {name}, command: {command} }}\n"))
        });
        let filled: Vec<String> = filled.collect();
        if filled.is_empty() && !loaded.is_empty() {
            findings.push(format!(
                "{}: nothing shows what its keys hold: they are not loaded",
                spaces.all[space].key_format(space)
            ));
        }
        load.extend(filled);
    }
    if !load.is_empty() {
        let _ = write!(body, "load:\n{load}");
    }
    let key_of_sequence = |sequence: usize, key: usize| {
        let space = chosen[sequence].form.spaces[key];
        let text = drawn(space, slots.of_sequences[sequence][key].as_ref());
        (text, spaces.all[space].only_key().is_none())
    };
    let texts = KeyTexts { key_of: &key_of, key_of_sequence: &key_of_sequence };
    let count = write_operations(&mut body, shapes, (chosen, sequences), &texts, &mut findings);
    // In no time there is no rate.
    let is_timed = arrivals.seconds() > 0.0 && !header.is_without(Lack::Times);
    let rate = is_timed.then(|| count as f64 / arrivals.seconds());
    let mut sizes = OperationSizes::default();
    chosen.iter().for_each(|found| sizes.add_operations(found.count, found.form.steps.len()));
    sizes.add_operations(sequences.alone.values().sum(), 1);
    let is_even = rate.is_some_and(|rate| sizes.are_even(rate, arrivals.dispersion()));
    findings.extend(rate.and_then(|rate| command_arrivals(arrivals, (&sizes, rate, is_even))));
    gaps((dialect, header, survey), (shapes, spaces), setup, &mut findings);
    let mut text = start_line(rate, survey.users.max(1), is_even);
    for finding in &findings {
        let _ = writeln!(text, "# - {}", finding.replace('\n', " "));
    }
    text.push_str(&body);
    LearnedWorkload { text, findings, rate, connections: survey.users.max(1) }
}

/// What the workload does not have of the recording.
fn gaps(
    (dialect, header, survey): (Dialect, &RecordingHeader, &RecordingSurvey),
    (shapes, spaces): (&Shapes, &KeySpaces),
    setup: &BTreeMap<String, u64>,
    findings: &mut Vec<String>,
) {
    let reads: Vec<&str> = dialect
        .reading_commands()
        .iter()
        .copied()
        .filter(|name| shapes.keys().any(|form| form.name == *name))
        .collect();
    let (replies, nils) = shapes
        .iter()
        .filter(|(form, shape)| {
            // Of several keys an array says nothing of each.
            let keys = shape.arguments.iter().filter(|argument| !argument.spaces.is_empty()).count();
            dialect.reading_commands().contains(&form.name.as_str()) && keys == 1
        })
        .fold((0, 0), |(replies, nils), (_, shape)| (replies + shape.replies, nils + shape.nils));
    if replies > 0 {
        let hits = (replies - nils) as f64 * 100.0 / replies as f64;
        findings.push(format!("{} found something in {hits:.1} % of {replies} cases", reads.join(", ")));
    }
    if spaces.others > 0 {
        findings.push(format!("left out: the keys of {} requests, of rarer patterns", spaces.others));
    }
    for (name, count) in setup {
        findings.push(format!(
            "left out: {count} {name}: commands that set up connections or ask a server what it is, and transactions around \
             others"
        ));
    }
    findings.extend(gap_findings(header, survey));
    findings.push(
        "a key that holds many elements is filled by one command of the load: what it holds comes with the run".into(),
    );
    findings.push(
        "not learned: changes of the mix over time, which fields go with which keys, compressibility of values"
            .into(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Arguments;
    use crate::format::{RecordingPoint, RecordingWriter};
    use crate::replay::survey_file;
    use dyno_types::rng::{below, mix_bits};

    fn learned(lines: impl Iterator<Item = String>) -> LearnedWorkload {
        let header = RecordingHeader {
            protocol: crate::RecordedProtocol::Redis,
            source: "monitor".into(),
            point: RecordingPoint::Server,
            begins_ns: None,
            clock_step_ns: 1_000,
            lacks: vec![Lack::Replies],
            value_limit: 1 << 16,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.dyno");
        let mut writer = RecordingWriter::create_file(&path, &header).unwrap();
        for (number, line) in (0u64..).zip(lines) {
            let arguments = Arguments::from_words(line.split(' '));
            let entry = Entry {
                at_ns: number * 1_000_000,
                connection: number as u32 % 3,
                arguments,
                ..Entry::default()
            };
            writer.push_entry(&entry).unwrap();
        }
        writer.finish().unwrap();
        let options = ReplayOptions::default();
        let (header, survey) = survey_file(&path, &options).unwrap();
        learn_commands(&path, Dialect::Redis, (&header, &survey), &options, 7).unwrap()
    }

    #[test]
    fn a_workload_has_the_mix_the_keys_and_the_values() {
        let line = |n: u64| match n % 4 {
            0 => format!("SET user:{} {}", below(mix_bits(n), 500), "x".repeat(10 + n as usize % 5)),
            1 => format!("ZADD board {n} u{}", n % 97),
            2 => "FLUSHALL".to_owned(),
            _ => format!("GET user:{}", below(mix_bits(n), 500)),
        };
        let found = learned((0..8_000).map(line));
        assert_eq!((found.connections, (found.rate.unwrap() - 750.0).abs() < 1.0), (3, true));
        let has = |part: &str| assert!(found.text.contains(part), "{part}\n{}", found.text);
        has(
            "seed: 7\nkeys:\n  k0: { count: 500, format: \"user:%{n}\" }\nload:\n  - { for: k0, command: [\"SET\", ",
        );
        has("  - { once: true, command: [\"ZADD\", \"board\", { $long: [1, 7997] }, \"u%{long:0-96}\"] }\n");
        has("  get: { weight: 2000, miss: ok, command: [\"GET\", { $key: k0 }] }\n");
        has("weights: [400, 400, 400, 400, 400]");
        has("left out: 2000 commands that administer the server");
        assert!(!found.text.contains("\"FLUSHALL\""));
    }
}
