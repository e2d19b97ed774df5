//! Commands of one's own as work.

use crate::work::users::{first_user, part_of_users};
use crate::work::{FoundCommand, Prepared, Wording, Work, job_from_spec};
use dyno_config::experiment::{CommandSource, Experiment, When};
use dyno_config::settings::PropertySettings;
use dyno_config::template::{CommandLines, CommandTextError, parse_commands, parse_data, read_file_lines};
use dyno_db::command_target::CommandTarget;
use dyno_db::target::OpenTarget;
use dyno_engine::arrivals::{Process, Profile};
use dyno_engine::{Control, End, Job, Pacing, RunError};
use dyno_types::bounded;
use dyno_types::command::CommandFacts;
use dyno_types::limits::{IMPORT_BYTES, TEXT_BYTES};
use dyno_types::{Content, RefusalCode, Refused};
use dyno_workload::Workload;
use dyno_workload::command_mix::{
    CommandMix, CommandStep, LoadItem, MixContent, MixLoad, MixRun, StepMode, TextPart,
};
use dyno_workload::ycsb::BadProperty;
use std::path::Path;
use std::sync::Arc;

/// Keys of a key space that are looked for, evenly spread over it.
const LOOKED_FOR: u64 = 128;
/// Draws of each command that are looked at for keys in several slots.
const DRAWS: u64 = 1_000;
/// Connections of an operation with a rate of its own.
const CONNECTIONS: usize = 16;
/// Time that messages on their way are awaited at the end, nanoseconds.
const LAST_MESSAGES_NS: u64 = 200_000_000;
/// Longest run of operations beside those that end it.
const YEAR_NS: u64 = 366 * 86_400 * 1_000_000_000;
/// Keys that are removed by one message.
const REMOVED: u64 = 10_000;

/// Keys of commands that are given one by one.
const DEFAULT_KEYS: u64 = 100_000;

/// Commands, and what the server says of them.
pub(super) struct CommandWork {
    spec: Experiment,
    name: String,
    mix: Arc<CommandMix>,
    load: Arc<MixLoad>,
    run: Arc<MixRun>,
    must_load: bool,
    settings: PropertySettings,
    reload: &'static str,
    no_load: &'static str,
}

fn bad(bad: BadProperty) -> Refused {
    let message = format!("{} {}: expected {}", bad.key, bad.value, bad.expected);
    Refused::new(RefusalCode::BadValue, &bad.key, message)
}

/// Puts the texts of the commands of `spec` into it, for workers on hosts that have none of its files.
///
/// # Errors
/// Names the file that cannot be read, or is no text.
pub(super) fn add_command_texts(spec: &mut Experiment) -> Result<(), Refused> {
    let Some(source) = &mut spec.workload.commands else { return Ok(()) };
    let asked = source.clone();
    let text = |name: &str, bytes: Vec<u8>| {
        String::from_utf8(bytes).map_err(|_| {
            let message = format!("{name}: expected text: it goes to workers on other hosts");
            Refused::new(RefusalCode::BadFile, name, message)
        })
    };
    let read = |path: &str| {
        bounded::bytes_file(path, IMPORT_BYTES)
            .map_err(|e| Refused::new(RefusalCode::BadFile, path, format!("{path}: {e}")))
    };
    if let (Some(path), None) = (&asked.file, &asked.text) {
        let own = text(path, read(path)?)?;
        let named = std::cell::RefCell::new(Vec::new());
        let beside = |name: &str| {
            let content = read_beside(&asked, path, name)?;
            named.borrow_mut().push((name.to_owned(), content.clone()));
            Ok(content)
        };
        parse_commands(&own, path, &beside)
            .map_err(|e| Refused::new(RefusalCode::BadFile, path, e.to_string()))?;
        for (name, content) in named.into_inner() {
            let content = text(&name, content)?;
            source.files.insert(name, content);
        }
        source.text = Some(own);
    }
    let named = [&asked.data, &asked.lines].into_iter().flatten();
    for path in named.filter(|path| !asked.files.contains_key(*path)) {
        source.files.insert(path.clone(), text(path, read(path)?)?);
    }
    Ok(())
}

/// Reads what a file of commands names: what came with its text, else files beside it.
fn read_beside(source: &CommandSource, path: &str, name: &str) -> Result<Vec<u8>, CommandTextError> {
    if let Some(text) = source.files.get(name) {
        return Ok(text.clone().into_bytes());
    }
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    Ok(bounded::bytes_file(folder.join(name), IMPORT_BYTES)?)
}

fn read_mix(source: &CommandSource, wording: &Wording<'_>) -> Result<(String, CommandMix), Refused> {
    let from = |key: &str| (wording.source)(key);
    let refused = |path: &str, why: String| Refused::new(RefusalCode::BadFile, path, why);
    match (&source.file, &source.text) {
        (_, Some(text)) => {
            let path = source.file.as_deref().unwrap_or("workload.commands.text");
            let mix = parse_commands(text, path, &|name| read_beside(source, path, name));
            Ok((path.to_owned(), mix.map_err(|e| refused(path, e.to_string()))?))
        }
        (Some(path), None) => {
            let key = from("workload.commands.file");
            let text = bounded::text_file(path, TEXT_BYTES)
                .map_err(|e| refused(&key.to_string(), format!("{key}: {path}: {e}")))?;
            let mix = parse_commands(&text, path, &|name| read_beside(source, path, name));
            Ok((path.clone(), mix.map_err(|e| refused(path, e.to_string()))?))
        }
        (None, None) if source.list.is_empty() && source.lines.is_none() => {
            let key = "workload.commands";
            let message = format!("{key}: expected file, text, list or lines: what is sent");
            Err(Refused::new(RefusalCode::Missing, key, message))
        }
        (None, None) => {
            let (key, data_key) = (from("workload.commands.list"), from("workload.commands.data"));
            let table = |path: &String| {
                let text = read_beside(source, "", path);
                text.and_then(|text| parse_data("data", path, &text))
                    .map_err(|why| refused(path, format!("{data_key}: {path}: {why}")))
            };
            let data = source.data.as_ref().map(table).transpose()?;
            let keys = source.keys.as_ref().map_or(DEFAULT_KEYS, |count| count.0.max(1));
            let common = |lines, ratio, numbers| CommandLines { lines, ratio, numbers, keys, data, seed: 1 };
            let Some(path) = &source.lines else {
                let wrong = |why: CommandTextError| {
                    Refused::new(RefusalCode::BadValue, key.to_string(), format!("{key}: {why}"))
                };
                return Ok((
                    "commands".into(),
                    common(&source.list, &source.ratio, None).parse().map_err(wrong)?,
                ));
            };
            let key = from("workload.commands.lines");
            let wrong = |why: CommandTextError| refused(path, format!("{key}: {path}: {why}"));
            let text = read_beside(source, "", path).map_err(wrong)?;
            let text = String::from_utf8(text).map_err(|_| wrong(CommandTextError::NoText))?;
            let all = read_file_lines(&text).map_err(wrong)?;
            let ratio: Vec<f64> = all.iter().map(|one| one.weight).collect();
            let numbers: Vec<usize> = all.iter().map(|one| one.number).collect();
            let lines: Vec<String> = all.into_iter().map(|one| one.line).collect();
            Ok((path.clone(), common(&lines, &ratio, Some(&numbers)).parse().map_err(wrong)?))
        }
    }
}

impl CommandWork {
    pub(super) fn read(
        spec: &Experiment,
        source: &CommandSource,
        wording: &Wording<'_>,
    ) -> Result<Self, Refused> {
        let (path, mut mix) = read_mix(source, wording)?;
        if spec.seed != 1 {
            mix.seed = spec.seed;
        }
        let name =
            Path::new(&path).file_stem().map_or("commands".into(), |s| s.to_string_lossy().into_owned());
        let mix = Arc::new(mix);
        if spec.phases.measure.pipeline > 1
            && let Some(name) = bare_transaction(&mix)
        {
            let message = format!(
                "{name}: MULTI, EXEC and WATCH by themselves take the commands of other operations in: with pipeline {} use \
                 mode: multi",
                spec.phases.measure.pipeline
            );
            return Err(Refused::new(RefusalCode::Conflict, "phases.measure.pipeline", message));
        }
        let mut settings = PropertySettings::new();
        settings.set_property("dyno.commands", &path, (wording.source)("workload.commands"));
        settings.set_property("dyno.seed", mix.seed.to_string(), (wording.source)("seed"));
        let (load, run) = made(spec, &mix, &[])?;
        Ok(CommandWork {
            spec: spec.clone(),
            name,
            must_load: spec.phases.load.when == When::Always && !mix.load.is_empty(),
            mix,
            load,
            run,
            settings,
            reload: wording.reload,
            no_load: wording.no_load,
        })
    }
}

/// Load and run of a mix, with what is known of its commands.
fn made(
    spec: &Experiment,
    mix: &Arc<CommandMix>,
    facts: &[CommandFacts],
) -> Result<(Arc<MixLoad>, Arc<MixRun>), Refused> {
    // Each repetition draws its own operations; the first one draws from the file's seed.
    let seed = mix.seed.wrapping_add(spec.run_seed() - spec.seed);
    let run = |users: u64| MixRun::new(mix, facts, seed, (users, 0)).map(Arc::new).map_err(bad);
    let users = job_from_spec::measure_job(spec, run(1)?)?.users as u64;
    Ok((Arc::new(MixLoad::new(mix, facts)), run(users)?))
}

impl Work for CommandWork {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn content(&self) -> Arc<dyn Content> {
        self.run.content()
    }

    fn prepare(&mut self, opened: &dyn OpenTarget, _control: &Arc<Control>) -> Result<Prepared, RunError> {
        let when = self.spec.phases.load.when;
        let load = when != When::Never && !self.mix.load.is_empty();
        let mut ready = Prepared { load, ..Prepared::default() };
        let Some(target) = opened.command_target() else { return Ok(ready) };
        let target = target.as_ref();
        let facts = describe(&self.mix, target)?;
        refuse_crossings(&self.mix, &facts, target)?;
        refuse_waiting(&self.mix, &facts)?;
        for script in &self.mix.scripts {
            let loaded = target.load_script(&script.body, script.function);
            loaded.map_err(|error| below(&format!("script {}", script.name), error))?;
        }
        let data =
            LoadedData { mix: &self.mix, content: MixContent::new(&self.mix, &facts), facts: &facts, target };
        if load && when == When::Always {
            data.remove()?;
        } else if load {
            let hint = format!(
                "{} removes them and loads again, {} takes them as they are",
                self.reload, self.no_load
            );
            if data.is_there(&hint)? {
                ready.notes.push(format!("the data are there already ({} loads them again)", self.reload));
                ready.load = false;
            }
        }
        if ready.load {
            data.send_once()?;
        }
        let found = |one: CommandFacts| FoundCommand { keys: one.keys, reads: one.reads, blocks: one.blocks };
        ready.commands = facts.into_iter().map(found).collect();
        Ok(ready)
    }

    fn adopt(&mut self, prepared: &Prepared) -> Result<(), Refused> {
        self.must_load = prepared.load;
        let facts = |one: &FoundCommand| CommandFacts {
            keys: one.keys.clone(),
            reads: one.reads,
            blocks: one.blocks,
        };
        let facts: Vec<CommandFacts> = prepared.commands.iter().map(facts).collect();
        (self.load, self.run) = made(&self.spec, &self.mix, &facts)?;
        Ok(())
    }

    fn load_operations(&self) -> u64 {
        self.load.count_commands()
    }

    fn load(&self) -> Result<Option<Job>, Refused> {
        let count = self.load.count_commands();
        let job = || job_from_spec::load_job(&self.spec, self.load.clone(), count);
        (self.must_load && count > 0).then(job).transpose()
    }

    fn measure(&self) -> Result<Job, Refused> {
        job_from_spec::measure_job(&self.spec, self.run.clone())
    }

    fn part(&self, job: &Job, index: usize, total: usize) -> Result<Job, Refused> {
        if total > 1 && job.workload.is_per_user() {
            let own = part_of_users(job, job.workload.clone(), index, total);
            let users = (own.users as u64, first_user(job, index, total) as u64);
            let run = self.run.of_worker(users, index as u64, total as u64);
            return Ok(Job { workload: Arc::new(run.map_err(bad)?), ..own });
        }
        if total == 1 {
            return Ok(job.clone());
        }
        let part = job.divide_among(total)?.swap_remove(index);
        let own = part.workload.part(index as u64, total as u64);
        Ok(Job { workload: own.unwrap_or(part.workload), ..part })
    }

    fn beside(&self) -> Result<Vec<Job>, Refused> {
        let main = self.measure()?;
        let mut first = main.users as u64;
        let mut all = Vec::new();
        for (number, operation) in self.mix.operations.iter().enumerate() {
            let Some(own) = operation.own else { continue };
            let users = own.users.map_or(CONNECTIONS, |users| users as usize);
            let run = self.run.beside(number, (users as u64, first)).map_err(bad)?;
            first += users as u64;
            let pacing = match own.rate {
                Some(rate) => {
                    Pacing::Open { profile: Profile::Constant { rate }, process: Process::Constant }
                }
                None => Pacing::Closed { think_ns: 0 },
            };
            // A subscription waits for as long as nothing is published, and for nothing at the end.
            let (timeout_ns, drain_ns) = match run.subscribes(number) {
                true => (None, LAST_MESSAGES_NS),
                false => (main.timeout_ns, main.drain_ns),
            };
            let job = Job {
                workload: Arc::new(run),
                timeout_ns,
                drain_ns,
                users,
                warm_users: None,
                pacing,
                pipeline: 1,
                cores: vec![None],
                // It ends with the others.
                end: End { operations: None, duration_ns: Some(main.end.duration_ns.unwrap_or(YEAR_NS)) },
                ..main.clone()
            };
            job.check().map_err(|refused| refused.with_prefix(format!("{}: ", operation.name)))?;
            all.push(job);
        }
        Ok(all)
    }

    fn settings(&self) -> PropertySettings {
        self.settings.clone()
    }
}

/// The same error of a part of the workload.
fn below(what: &str, error: RunError) -> RunError {
    match error {
        RunError::Refused(refused) => refused.with_prefix(format!("{what}: ")).into(),
        other => other,
    }
}

/// Asks the server what the commands are.
fn describe(mix: &Arc<CommandMix>, target: &dyn CommandTarget) -> Result<Vec<CommandFacts>, RunError> {
    let content = MixContent::new(mix, &[]);
    let sample = |number: usize| {
        let (request, command) = content.sample_request(number, 0);
        content.words_of(&request, command)
    };
    let samples: Vec<_> = (0..mix.steps().count()).map(sample).collect();
    target.describe(&samples).map_err(|(number, error)| below(mix.owner(number), error))
}

/// The operation that has a command of transactions among its own.
fn bare_transaction(mix: &CommandMix) -> Option<&str> {
    let names: [&[u8]; 3] = [b"MULTI", b"EXEC", b"WATCH"];
    let is_one = |step: &CommandStep| match step.arguments.first().map(Vec::as_slice) {
        Some([TextPart::Literal(word)]) => names.iter().any(|name| word.eq_ignore_ascii_case(name)),
        _ => false,
    };
    mix.operations.iter().find(|one| one.steps.iter().any(is_one)).map(|one| one.name.as_str())
}

/// Refuses commands that may wait for data among others: their waiting would be in the times of the mix.
fn refuse_waiting(mix: &CommandMix, facts: &[CommandFacts]) -> Result<(), Refused> {
    let mut number = 0;
    for operation in &mix.operations {
        let waits = (number..number + operation.steps.len())
            .any(|step| facts.get(step).is_some_and(|fact| fact.blocks) && may_wait(mix, step));
        if waits && !operation.own.is_some_and(|own| own.blocking) {
            let subscribes = operation.steps.iter().find(|step| step.subscribes());
            let message = match subscribes.and_then(|step| step.arguments.first()).map(Vec::as_slice) {
                Some([TextPart::Literal(name)]) => format!(
                    "{}: {} changes how its connection answers: in a file of commands give it `users: N`",
                    operation.name,
                    String::from_utf8_lossy(name)
                ),
                _ => format!(
                    "{}: may wait for data at the server: it needs connections of its own, `users: N` and `blocking: true`",
                    operation.name
                ),
            };
            return Err(Refused::new(RefusalCode::Conflict, "workload.commands", message));
        }
        number += operation.steps.len();
    }
    Ok(())
}

/// Returns whether a command that can wait is asked to: a stream is read without waiting unless it says `BLOCK`.
fn may_wait(mix: &CommandMix, number: usize) -> bool {
    let words = mix.steps().nth(number).map_or(&[][..], |step| &step.arguments);
    let is = |word: &[TextPart], text: &[u8]| matches!(word, [TextPart::Literal(bytes)] if bytes.eq_ignore_ascii_case(text));
    let reads_stream = words.first().is_some_and(|word| is(word, b"XREAD") || is(word, b"XREADGROUP"));
    !reads_stream || words.iter().any(|word| is(word, b"BLOCK"))
}

/// Refuses commands, and transactions, whose keys are in several slots of a cluster, as far as draws show it.
fn refuse_crossings(
    mix: &Arc<CommandMix>,
    facts: &[CommandFacts],
    target: &dyn CommandTarget,
) -> Result<(), RunError> {
    if target.slot(b"").is_none() {
        return Ok(());
    }
    if let Some(name) = bare_transaction(mix) {
        let message = format!(
            "{name}: MULTI, EXEC and WATCH by themselves name no node of the cluster: use mode: multi"
        );
        return Err(Refused::new(RefusalCode::Conflict, "workload.commands", message).into());
    }
    let content = MixContent::new(mix, facts);
    let together = |first: usize, count: usize, name: &str| {
        let places = |number: usize, step: &CommandStep| {
            step.keys
                .clone()
                .unwrap_or_else(|| facts.get(number).map_or(Vec::new(), |fact| fact.keys.clone()))
        };
        let steps: Vec<(usize, Vec<u16>)> =
            mix.steps().enumerate().skip(first).take(count).map(|(n, step)| (n, places(n, step))).collect();
        if steps.iter().map(|(_, keys)| keys.len()).sum::<usize>() < 2 {
            return Ok(());
        }
        for draw in 0..DRAWS {
            let mut one: Option<(Vec<u8>, Option<u16>)> = None;
            for (number, places) in &steps {
                let (request, command) = content.sample_request(*number, draw);
                let words = content.words_of(&request, command);
                for key in places.iter().filter_map(|place| words.get(usize::from(*place))) {
                    let slot = target.slot(key);
                    match &one {
                        Some((first, other)) if *other != slot => {
                            let shown = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
                            let (first, key) = (shown(first), shown(key));
                            let (other, slot) = (other.unwrap_or(0), slot.unwrap_or(0));
                            let message = format!(
                                "{name}: the keys {first:?} and {key:?} go together, but are in the slots {other} and \
                                 {slot}: a hash tag such as {{%{{id}}}} puts keys into one slot"
                            );
                            return Err(
                                Refused::new(RefusalCode::Conflict, "workload.commands", message).into()
                            );
                        }
                        Some(_) => {}
                        None => one = Some((key.clone(), slot)),
                    }
                }
            }
        }
        Ok::<(), RunError>(())
    };
    let mut first = 0;
    for operation in &mix.operations {
        let count = operation.steps.len();
        match operation.mode {
            StepMode::Atomic => together(first, count, &operation.name)?,
            _ => (first..first + count).try_for_each(|number| together(number, 1, &operation.name))?,
        }
        first += count;
    }
    (first..first + mix.load.len()).try_for_each(|number| together(number, 1, "load"))
}

/// The data of a load, as far as keys tell.
struct LoadedData<'a> {
    mix: &'a CommandMix,
    content: MixContent,
    facts: &'a [CommandFacts],
    target: &'a dyn CommandTarget,
}

/// Keys that a command of a load writes.
enum WrittenKeys {
    /// Keys of their own for each key of the key space, so many.
    Own(u64),
    /// These, each of which takes so many elements.
    Shared(Vec<Vec<u8>>, u64),
}

impl LoadedData<'_> {
    /// Number of the first command of the load among all.
    fn first(&self) -> usize {
        self.mix.steps().count() - self.mix.load.len()
    }

    /// The keys of command `item` of the load, for key `number` of its key space.
    fn keys_at(&self, item: usize, number: u64) -> Vec<Vec<u8>> {
        let step = self.first() + item;
        let (request, command) = self.content.sample_request(step, number);
        let words = self.content.words_of(&request, command);
        let places = self.mix.load[item].step.keys.as_ref().unwrap_or(&self.facts[step].keys);
        places.iter().filter_map(|place| words.get(usize::from(*place)).cloned()).collect()
    }

    fn written(&self, item: usize, of: &LoadItem) -> WrittenKeys {
        let count = of.each.map_or(1, |space| self.mix.keys[space].count);
        let first = self.keys_at(item, 0);
        match of.each.is_some() && !first.is_empty() && (count == 1 || first != self.keys_at(item, 1)) {
            true => WrittenKeys::Own(count),
            false => WrittenKeys::Shared(first, if of.each.is_some() { count } else { 1 }),
        }
    }

    /// Returns whether all of the load is there; refuses a part of it with `hint`.
    fn is_there(&self, hint: &str) -> Result<bool, RunError> {
        let (mut found, mut wanted) = (0, 0);
        let mut missing = None;
        for (item, of) in self.mix.load.iter().enumerate() {
            let (there, all, what) = match self.written(item, of) {
                WrittenKeys::Own(count) => {
                    let looked = count.min(LOOKED_FOR);
                    let at = |n: u64| if looked < 2 { 0 } else { n * (count - 1) / (looked - 1) };
                    let keys: Vec<_> = (0..looked).flat_map(|n| self.keys_at(item, at(n))).collect();
                    let name = of.each.map_or("", |space| &self.mix.keys[space].name);
                    (self.target.existing(&keys)?, keys.len() as u64, name.to_owned())
                }
                WrittenKeys::Shared(keys, elements) => {
                    let mut there = 0;
                    for key in &keys {
                        there += match self.target.size(key)? {
                            Some(size) => u64::from(size >= elements && size > 0),
                            None => self.target.existing(std::slice::from_ref(key))?,
                        };
                    }
                    let name = keys.first().map(|key| String::from_utf8_lossy(key).into_owned());
                    (there, keys.len() as u64, name.unwrap_or_default())
                }
            };
            (found, wanted) = (found + there, wanted + all);
            if there < all && missing.is_none() {
                missing = Some(format!("{what}: {there} of {all} keys that were looked for are there"));
            }
        }
        match missing {
            Some(message) if found > 0 => {
                let message = format!("the load is there in part: {message}: {hint}");
                Err(Refused::new(RefusalCode::OtherData, "phases.load.when", message).into())
            }
            missing => Ok(missing.is_none() && wanted > 0),
        }
    }

    /// Removes the keys of the load.
    fn remove(&self) -> Result<(), RunError> {
        for (item, of) in self.mix.load.iter().enumerate() {
            match self.written(item, of) {
                WrittenKeys::Shared(keys, _) => self.target.remove(&keys)?,
                WrittenKeys::Own(count) => {
                    for first in (0..count).step_by(REMOVED as usize) {
                        let keys: Vec<_> = (first..count.min(first + REMOVED))
                            .flat_map(|number| self.keys_at(item, number))
                            .collect();
                        self.target.remove(&keys)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends the commands that are sent once, in their order.
    fn send_once(&self) -> Result<(), RunError> {
        for (item, _) in self.mix.load.iter().enumerate().filter(|(_, one)| one.each.is_none()) {
            let (request, command) = self.content.sample_request(self.first() + item, 0);
            let words = self.content.words_of(&request, command);
            let key = self.keys_at(item, 0).into_iter().next();
            self.target.send(&words, key.as_deref()).map_err(|error| below("load", error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_with_the_experiment() {
        let folder = std::env::temp_dir().join(format!("dyno-commands-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("c.yaml");
        std::fs::write(folder.join("d.csv"), "a\n1\n").unwrap();
        std::fs::write(&path, "data: { d: d.csv }\ncommands: { x: 'GET %{row:d.a}' }\n").unwrap();
        let mut spec = Experiment::default();
        spec.workload.commands = Some(CommandSource {
            file: Some(path.to_string_lossy().into_owned()),
            ..CommandSource::default()
        });
        let with_texts = |spec: &Experiment| {
            let mut whole = spec.clone();
            add_command_texts(&mut whole).map(|()| whole)
        };
        let whole = with_texts(&spec).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(CommandWork::read(&spec, spec.workload.commands.as_ref().unwrap(), &Wording::FILE).is_err());
        let read =
            CommandWork::read(&whole, whole.workload.commands.as_ref().unwrap(), &Wording::FILE).unwrap();
        assert_eq!((read.name(), read.mix.tables[0].rows.len()), ("c".to_owned(), 1));
        assert!(with_texts(&spec).is_err(), "the file is gone");
        assert_eq!(with_texts(&whole).unwrap(), whole);
    }
}
