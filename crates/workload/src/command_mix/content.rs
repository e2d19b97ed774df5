//! Requests into arguments.

use super::config::{ArgumentText, CommandMix, CommandStep, MissRule, NumberedText, StepMode, TextPart};
use crate::keys::push_decimal;
use crate::permute::Permutation;
use crate::template::{AddressableDocuments, NumberDistribution, TextContext, TextSource};
use dyno_types::command::{CommandArgument, CommandFacts, CommandForm, CommandTemplate};
use dyno_types::rng::{self, Keyed, Purpose, Stream};
use dyno_types::{Content, Request, Verb};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Draws of values that an operation has drawn once are numbered from here on.
const BOUND: u64 = 1 << 63;

/// Draws of a value that must differ from others; then it is like one of them.
const DRAWS: u64 = 64;

/// Contents of this process so far. The first is number 1.
static CONTENTS: AtomicU64 = AtomicU64::new(1);

/// Origin of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// An operation, whose commands from this one on are the template's.
    Operation(usize, usize),
    /// A command of the load.
    Load(usize),
}

/// Renders the arguments of commands. Templates: those of the operations, one for each command that is a request of its own, then
/// those of the load.
#[derive(Debug)]
pub struct MixContent {
    mix: Arc<CommandMix>,
    templates: Vec<CommandTemplate>,
    places: Vec<Place>,
    /// Commands of the templates up to each, itself included; those of transactions without the two around them.
    upto: Vec<usize>,
    /// Scatters popular keys over each key space.
    scatter: Vec<Permutation>,
    salt: u64,
    /// No other content of this process has this number.
    identity: u64,
}

/// Content, operation, seed, key and user.
type DrawnFor = (u64, usize, u64, u64, u32);

/// The different values of one operation, end to end, and where each ends: its commands use them one after the other.
#[derive(Default)]
struct DrawnValues {
    of: DrawnFor,
    all: Vec<u8>,
    ends: Vec<usize>,
}

thread_local! {
    static DRAWN: RefCell<DrawnValues> = RefCell::default();
}

impl DrawnValues {
    /// Forgets those of another operation.
    fn begin(&mut self, of: DrawnFor) {
        if self.of != of {
            self.of = of;
            self.all.clear();
            self.ends.clear();
        }
    }

    fn value(&self, number: usize) -> &[u8] {
        let from = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[from..self.ends[number]]
    }

    /// Returns whether what stands from there on is like a value before it.
    fn has_twin(&self, from: usize) -> bool {
        (0..self.ends.len()).any(|number| *self.value(number) == self.all[from..])
    }
}

impl MixContent {
    /// Of a checked mix; `facts` are those of [`CommandMix::steps`], none before a server was asked.
    pub fn new(mix: &Arc<CommandMix>, facts: &[CommandFacts]) -> Self {
        let mut facts = facts.iter();
        let mut form = |step: &CommandStep, is_alone: bool| {
            let fact = facts.next();
            form_of(mix, step, fact, is_alone)
        };
        let (mut templates, mut places) = (Vec::new(), Vec::new());
        for (number, operation) in mix.operations.iter().enumerate() {
            let is_script = operation.is_script();
            let mut forms: Vec<CommandForm> =
                operation.steps.iter().map(|step| form(step, operation.has_requests())).collect();
            let name = operation.name.clone();
            if is_script {
                for (step, form) in forms.into_iter().enumerate() {
                    places.push(Place::Operation(number, step));
                    templates.push(CommandTemplate {
                        name: name.clone(),
                        commands: vec![form],
                        atomic: false,
                    });
                }
                continue;
            }
            let atomic = operation.mode == StepMode::Atomic && operation.has_steps;
            if atomic {
                forms.insert(0, bare("MULTI"));
                forms.push(bare("EXEC"));
            }
            places.push(Place::Operation(number, 0));
            templates.push(CommandTemplate { name, commands: forms, atomic });
        }
        for (number, item) in mix.load.iter().enumerate() {
            places.push(Place::Load(number));
            let commands = vec![form(&item.step, false)];
            templates.push(CommandTemplate { name: "LOAD".into(), commands, atomic: false });
        }
        let key = |number: usize| rng::draw_at(mix.seed, number as u64, Purpose::Key);
        let own = |template: &CommandTemplate| template.commands.len() - 2 * usize::from(template.atomic);
        let mut before = 0;
        let upto = templates.iter().map(|template| {
            before += own(template);
            before
        });
        MixContent {
            upto: upto.collect(),
            templates,
            places,
            scatter: (0..mix.keys.len())
                .map(|n| Permutation::new(mix.keys[n].count.max(1), key(n)))
                .collect(),
            salt: rng::draw_at(mix.seed, 0, Purpose::Value),
            mix: mix.clone(),
            identity: CONTENTS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The workload.
    pub fn command_mix(&self) -> &Arc<CommandMix> {
        &self.mix
    }

    /// The first template of each operation.
    pub(super) fn templates_of_operations(&self) -> Vec<u16> {
        let first =
            |(number, place): (u16, &Place)| matches!(place, Place::Operation(_, 0)).then_some(number);
        (0..).zip(&self.places).filter_map(first).collect()
    }

    /// The template of a step of an operation.
    pub(super) fn template_of(&self, place: Place) -> u16 {
        self.places.iter().position(|one| *one == place).unwrap_or(0) as u16
    }

    pub(super) fn place_of(&self, request: &Request) -> Place {
        self.places[usize::from(request.shape)]
    }

    /// The step that command number `command` of a request is, and its number within its operation.
    fn step(&self, request: &Request, command: u32) -> (&CommandStep, u64) {
        match self.place_of(request) {
            Place::Load(item) => (&self.mix.load[item].step, 0),
            Place::Operation(operation, first) => {
                let atomic = self.templates[usize::from(request.shape)].atomic;
                let number = first + command as usize - usize::from(atomic);
                (&self.mix.operations[operation].steps[number], number as u64)
            }
        }
    }

    /// A request that stands for all of command number `number` of [`CommandMix::steps`], and the number of the command in it.
    /// `key` is the number of the key that it loads, or any number.
    pub fn sample_request(&self, number: usize, key: u64) -> (Request, u32) {
        let request = |shape: usize, collection: u32, seed: u64| Request {
            verb: Verb::Command,
            shape: shape as u16,
            collection,
            key,
            limit: key as u32,
            seed,
            ..Request::default()
        };
        let seed = rng::draw_at(self.mix.seed, key, Purpose::Key);
        let shape = self.upto.partition_point(|upto| *upto <= number);
        let Some((template, place)) = self.templates.get(shape).zip(self.places.get(shape)) else {
            return (request(0, 0, seed), 0);
        };
        let (collection, seed) = match place {
            Place::Load(item) => match self.mix.load[*item].each {
                Some(space) => (space as u32 + 1, load_seed(&self.mix, *item, key)),
                None => (0, seed),
            },
            Place::Operation(..) => (0, seed),
        };
        let before = shape.checked_sub(1).map_or(0, |before| self.upto[before]);
        (request(shape, collection, seed), (number - before + usize::from(template.atomic)) as u32)
    }

    /// The words of a request's command. Earlier replies that it uses are `0`.
    pub fn words_of(&self, request: &Request, command: u32) -> Vec<Vec<u8>> {
        let form = &self.templates[usize::from(request.shape)].commands[command as usize];
        let word = |(number, argument): (u16, &CommandArgument)| match argument {
            CommandArgument::Literal(bytes) => bytes.clone(),
            _ => {
                let mut out = Vec::new();
                let (step, at) = self.step(request, command);
                let own = at << 48 | u64::from(number) << 16;
                self.render(request, (&step.arguments[usize::from(number)], own), None, &mut out);
                out
            }
        };
        (0..).zip(&form.arguments).map(word).collect()
    }

    /// Appends key number `number` of a key space.
    pub fn key_of(&self, space: usize, number: u64, out: &mut Vec<u8>) {
        let keys = &self.mix.keys[space];
        for part in &keys.format {
            match part {
                NumberedText::Literal(bytes) => out.extend_from_slice(bytes),
                NumberedText::Number(digits) => {
                    let at = out.len();
                    push_decimal(keys.first + number, out);
                    let written = out.len() - at;
                    if written < *digits {
                        out.splice(at..at, std::iter::repeat_n(b'0', digits - written));
                    }
                }
            }
        }
    }

    /// Appends a value that an operation has drawn once. They use no replies.
    fn render_bound(&self, request: &Request, (operation, bound): (usize, u16), out: &mut Vec<u8>) {
        let (index, operation) = (operation, &self.mix.operations[operation]);
        let text = |number: u16| &operation.bound[usize::from(number)];
        let own = |number: u16, tries: u64| BOUND | tries << 32 | u64::from(number) << 16;
        if !operation.different {
            return self.render(request, (text(bound), own(bound, 0)), None, out);
        }
        // Taken: a value may use others.
        let mut drawn = DRAWN.take();
        drawn.begin((self.identity, index, request.seed, request.key, request.collection));
        for number in drawn.ends.len() as u16..=bound {
            let from = drawn.all.len();
            for tries in 0..DRAWS {
                drawn.all.truncate(from);
                self.render(request, (text(number), own(number, tries)), None, &mut drawn.all);
                if !drawn.has_twin(from) {
                    break;
                }
            }
            drawn.ends.push(drawn.all.len());
        }
        out.extend_from_slice(drawn.value(usize::from(bound)));
        DRAWN.set(drawn);
    }

    fn render(
        &self,
        request: &Request,
        (text, number): (&ArgumentText, u64),
        replies: Option<&[Vec<u8>]>,
        out: &mut Vec<u8>,
    ) {
        for (at, part) in (0..).zip(text) {
            match part {
                TextPart::Literal(bytes) => out.extend_from_slice(bytes),
                TextPart::Value(value) => {
                    let own = number | at;
                    let mut stream = Stream::new(request.seed, own, Purpose::Choice);
                    let salt = self.salt ^ own;
                    let source = Drawing { content: self, request };
                    value.render_text(
                        TextContext { number: request.key, salt, source: &source },
                        &mut stream,
                        out,
                    );
                }
                TextPart::Bound(bound) => {
                    if let Place::Operation(operation, _) = self.place_of(request) {
                        self.render_bound(request, (operation, *bound), out);
                    }
                }
                TextPart::Reply(kept) => {
                    let kept = usize::from(*kept);
                    let reply = replies.map(|replies| replies.get(kept).map_or(&[][..], Vec::as_slice));
                    out.extend_from_slice(reply.unwrap_or(b"0"));
                }
                TextPart::User => push_decimal(u64::from(request.collection), out),
                // Arguments are rendered when they are sent.
                TextPart::Sent => {
                    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                    push_decimal(since.as_nanos() as u64, out);
                }
            }
        }
    }
}

/// Index of the first request of an item of the load.
pub(super) fn load_first(mix: &CommandMix, item: usize) -> u64 {
    mix.load[..item].iter().filter_map(|one| one.each).map(|space| mix.keys[space].count).sum()
}

/// The seed of what an item of the load draws for a key.
fn load_seed(mix: &CommandMix, item: usize, key: u64) -> u64 {
    Keyed::new(mix.seed, Purpose::Value).draw_keyed(load_first(mix, item) + key)
}

fn bare(name: &str) -> CommandForm {
    CommandForm {
        arguments: vec![CommandArgument::Literal(name.as_bytes().to_vec())],
        writes: true,
        ..CommandForm::default()
    }
}

/// A command as a driver compiles it. Before a server was asked nothing is known to be a key, and everything may write.
fn form_of(
    mix: &CommandMix,
    step: &CommandStep,
    facts: Option<&CommandFacts>,
    is_alone: bool,
) -> CommandForm {
    let argument = |parts: &ArgumentText| {
        let is_literal = |part: &TextPart| matches!(part, TextPart::Literal(_));
        // What an operation has drawn once uses no replies.
        match parts.iter().any(|part| matches!(part, TextPart::Reply(_))) {
            true => CommandArgument::Follows,
            false if parts.iter().all(is_literal) => {
                let bytes = |part: &TextPart| match part {
                    TextPart::Literal(bytes) => bytes.clone(),
                    _ => Vec::new(),
                };
                CommandArgument::Literal(parts.iter().flat_map(bytes).collect())
            }
            false => CommandArgument::Rendered,
        }
    };
    let reads = facts.is_some_and(|facts| facts.reads);
    let (misses, not_found) = match step.miss {
        MissRule::Reads => (reads, reads),
        MissRule::NotFound => (true, true),
        // The outcome of a request of one command, which does not fail its operation; of several it would be that of all.
        MissRule::Accepted => (true, is_alone),
    };
    let keys = step.keys.as_ref().or_else(|| facts.map(|facts| &facts.keys));
    CommandForm {
        arguments: step.arguments.iter().map(argument).collect(),
        key: keys.and_then(|keys| keys.first().copied()),
        writes: !reads,
        misses,
        not_found,
        expect: step.expect.clone(),
        keeps: step.keeps.clone(),
        script: step.script.map(|number| mix.scripts[number].body.clone()),
        by_element: misses && step.answers_by_element(),
        delivery: step.delivery.clone(),
        subscribes: step.subscribes(),
    }
}

/// Where values of a request come from.
struct Drawing<'a> {
    content: &'a MixContent,
    request: &'a Request,
}

impl TextSource for Drawing<'_> {
    fn key(&self, keys: &AddressableDocuments, stream: &mut Stream, out: &mut Vec<u8>) {
        let space = keys.collection;
        if let Place::Load(_) = self.content.place_of(self.request)
            && self.request.collection as usize == space + 1
        {
            return self.content.key_of(space, self.request.key, out);
        }
        let count = self.content.mix.keys[space].count;
        let number = match keys.spread {
            NumberDistribution::Uniform => keys.spread.draw_number(count, stream),
            NumberDistribution::Active(active) => active.draw_number(self.request.key, count, stream),
            _ => self.content.scatter[space].apply(keys.spread.draw_number(count, stream)),
        };
        self.content.key_of(space, number, out);
    }

    fn cell(&self, file: usize, column: usize, out: &mut Vec<u8>) {
        let table = &self.content.mix.tables[file];
        let rows = table.rows.len() as u64;
        let row = match (table.in_order, self.content.place_of(self.request)) {
            (true, Place::Operation(..)) => u64::from(self.request.limit) % rows.max(1),
            (true, Place::Load(_)) => self.request.key % rows.max(1),
            // One row for all arguments of an operation.
            (false, _) => {
                rng::below(rng::draw_at(self.request.seed, BOUND | file as u64, Purpose::Key), rows.max(1))
            }
        };
        if let Some(cell) = table.rows.get(row as usize).and_then(|row| row.get(column)) {
            out.extend_from_slice(cell);
        }
    }
}

impl Content for MixContent {
    fn table(&self) -> &'static str {
        ""
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        let mut words = self.words_of(request, 0).into_iter();
        out.extend(words.nth(1).unwrap_or_default());
    }

    fn fields(&self, _request: &Request) -> usize {
        0
    }

    fn name(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn value_len(&self, _request: &Request, _field: usize) -> usize {
        0
    }

    fn value(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn commands(&self) -> &[CommandTemplate] {
        &self.templates
    }

    fn argument(&self, request: &Request, command: u32, argument: u16, out: &mut Vec<u8>) {
        self.argument_after(request, command, argument, &[], out);
    }

    fn argument_after(
        &self,
        request: &Request,
        command: u32,
        argument: u16,
        replies: &[Vec<u8>],
        out: &mut Vec<u8>,
    ) {
        let (step, number) = self.step(request, command);
        let own = number << 48 | u64::from(argument) << 16;
        self.render(request, (&step.arguments[usize::from(argument)], own), Some(replies), out);
    }
}
