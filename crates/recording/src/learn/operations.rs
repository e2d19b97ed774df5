//! Operations of a learned workload: sequences, and commands that stand for themselves.

use super::arguments::argument;
use super::sequences::{FoundSequence, Sequences};
use super::shapes::{CommandPattern, Shape, Shapes};
use super::yaml_text::quoted;

use dyno_types::units::counted;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Operations of a workload: what a run can tell apart, and room for the rest.
pub(super) const OPERATIONS: usize = 60;

/// Commands in the name of a sequence.
const NAMED: usize = 3;

/// Names that are given once.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    /// A name that is like `text`, in letters, digits and underscores.
    fn name_like(&mut self, text: &str) -> String {
        let plain: String = text
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .collect();
        let (mut own, mut number) = (plain.clone(), 1);
        while !self.0.insert(own.clone()) {
            number += 1;
            own = format!("{plain}_{number}");
        }
        own
    }
}

/// The words of a command; `keys` are those that stand at places of their own.
fn command(
    (pattern, shape): (&CommandPattern, &Shape),
    keys: &BTreeMap<usize, String>,
    key_of: &dyn Fn(usize) -> String,
) -> String {
    let rest = (1..).zip(shape.arguments.iter().skip(1));
    let rest =
        rest.map(|(place, stats)| keys.get(&place).cloned().unwrap_or_else(|| argument(stats, key_of)));
    let all: Vec<String> = std::iter::once(quoted(&pattern.name)).chain(rest).collect();
    format!("[{}]", all.join(", "))
}

/// How keys are written.
pub(super) struct KeyTexts<'a> {
    /// A key of a space, of a command that stands for itself.
    pub key_of: &'a dyn Fn(usize) -> String,
    /// The key of a sequence: number of the sequence, and of its key; and whether it is drawn, from a space that has several.
    pub key_of_sequence: &'a dyn Fn(usize, usize) -> (String, bool),
}

/// Writes the operations, and returns how many there were in the recording.
pub(super) fn write_operations(
    body: &mut String,
    shapes: &Shapes,
    (chosen, sequences): (&[FoundSequence], &Sequences),
    keys: &KeyTexts<'_>,
    findings: &mut Vec<String>,
) -> u64 {
    let mut by_number: Vec<(&CommandPattern, &Shape)> = shapes.iter().collect();
    by_number.sort_by_key(|(_, shape)| shape.number);
    let mut names = Names::default();
    body.push_str("commands:\n");
    for (number, found) in chosen.iter().enumerate() {
        write_sequence(body, &by_number, (number, found), keys, &mut names);
    }
    let mut alone: Vec<((&CommandPattern, &Shape), u64)> =
        sequences.alone.iter().map(|(number, count)| (by_number[*number], *count)).collect();
    alone.sort_by_key(|((pattern, _), count)| (std::cmp::Reverse(*count), (*pattern).clone()));
    let rest = alone.split_off(alone.len().min(OPERATIONS - chosen.len()));
    for (of, count) in &alone {
        let own = names.name_like(&of.0.name);
        let words = command(*of, &BTreeMap::new(), keys.key_of);
        let _ = writeln!(body, "  {own}: {{ weight: {count}, miss: ok, command: {words} }}");
    }
    let all: u64 = shapes.values().map(|shape| shape.count).sum();
    let share = |count: u64| count as f64 * 100.0 / all.max(1) as f64;
    if let Some(limit_ns) = sequences.limit_ns {
        let inside: u64 = chosen.iter().map(|found| found.form.steps.len() as u64 * found.count).sum();
        findings.push(format!(
            "sequences of {}, between pauses of {:.1} ms and more, hold {:.1} % of the commands; the others stand for \
             themselves",
            counted(chosen.len(), "form"),
            limit_ns as f64 / 1e6,
            share(inside)
        ));
    }
    let left: u64 = rest.iter().map(|(_, count)| count).sum();
    if left > 0 {
        findings.push(format!(
            "left out: {left} commands ({:.2} %) of rarer forms than the first {OPERATIONS}",
            share(left)
        ));
    }
    chosen.iter().map(|found| found.count).sum::<u64>() + alone.iter().map(|(_, count)| count).sum::<u64>()
}

fn write_sequence(
    body: &mut String,
    by_number: &[(&CommandPattern, &Shape)],
    (number, found): (usize, &FoundSequence),
    keys: &KeyTexts<'_>,
    names: &mut Names,
) {
    let FoundSequence { form, count, .. } = found;
    let uses =
        |key: u16| form.steps.iter().flat_map(|step| &step.keys).filter(|(_, own)| *own == key).count();
    let mut drawn: Vec<(String, String)> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let mut are_different = false;
    for (key, space) in (0u16..).zip(&form.spaces) {
        let (text, is_drawn) = (keys.key_of_sequence)(number, usize::from(key));
        // Keys of a sequence are not the same, else they would be one.
        let has_like = is_drawn && form.spaces.iter().filter(|own| *own == space).count() > 1;
        are_different |= has_like;
        // What is asked for once and is like no other is drawn where it stands.
        texts.push(if is_drawn && (has_like || uses(key) > 1) {
            let name = format!("key{}", drawn.len() + 1);
            let own = quoted(&format!("%{{{name}}}"));
            drawn.push((name, text));
            own
        } else {
            text
        });
    }
    let commands: Vec<&str> = form.steps.iter().map(|step| by_number[step.pattern].0.name.as_str()).collect();
    let own = names.name_like(&commands[..commands.len().min(NAMED)].join("_"));
    let _ = write!(body, "  {own}:\n    weight: {count}\n");
    if form.pipelined {
        body.push_str("    mode: pipelined\n");
    }
    if !drawn.is_empty() {
        let all: Vec<String> = drawn.iter().map(|(name, draw)| format!("{name}: {draw}")).collect();
        let _ = writeln!(body, "    let: {{ {} }}", all.join(", "));
    }
    if are_different {
        body.push_str("    different: true\n");
    }
    body.push_str("    steps:\n");
    let mut of_steps = Names::default();
    for step in &form.steps {
        let of = by_number[step.pattern];
        let own =
            step.keys.iter().map(|(place, key)| (usize::from(*place), texts[usize::from(*key)].clone()));
        let words = command(of, &own.collect(), keys.key_of);
        let name = of_steps.name_like(&of.0.name);
        let _ = writeln!(body, "      - {{ name: {name}, miss: ok, command: {words} }}");
    }
}
