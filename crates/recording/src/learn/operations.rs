//! Operations of a learned workload: sequences, and commands that stand for themselves.

use super::arguments::argument;
use super::sequences::{SequenceForm, Sequences};
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

/// Writes the operations, and returns how many there were in the recording. `key_of` is a key of a space as an argument, `draw`
/// what draws one where the space has several.
pub(super) fn write_operations(
    body: &mut String,
    shapes: &Shapes,
    (chosen, sequences): (&[(SequenceForm, u64)], &Sequences),
    (key_of, draw): (&dyn Fn(usize) -> String, &dyn Fn(usize) -> Option<String>),
    findings: &mut Vec<String>,
) -> u64 {
    let mut by_number: Vec<(&CommandPattern, &Shape)> = shapes.iter().collect();
    by_number.sort_by_key(|(_, shape)| shape.number);
    let mut names = Names::default();
    body.push_str("commands:\n");
    for (form, count) in chosen {
        write_sequence(body, &by_number, (form, *count), (key_of, draw), &mut names);
    }
    let mut alone: Vec<((&CommandPattern, &Shape), u64)> =
        sequences.alone.iter().map(|(number, count)| (by_number[*number], *count)).collect();
    alone.sort_by_key(|((pattern, _), count)| (std::cmp::Reverse(*count), (*pattern).clone()));
    let rest = alone.split_off(alone.len().min(OPERATIONS - chosen.len()));
    for (of, count) in &alone {
        let own = names.name_like(&of.0.name);
        let words = command(*of, &BTreeMap::new(), key_of);
        let _ = writeln!(body, "  {own}: {{ weight: {count}, miss: ok, command: {words} }}");
    }
    let all: u64 = shapes.values().map(|shape| shape.count).sum();
    let share = |count: u64| count as f64 * 100.0 / all.max(1) as f64;
    if let Some(limit_ns) = sequences.limit_ns {
        let inside: u64 = chosen.iter().map(|(form, count)| form.steps.len() as u64 * count).sum();
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
    chosen.iter().map(|(_, count)| count).sum::<u64>() + alone.iter().map(|(_, count)| count).sum::<u64>()
}

fn write_sequence(
    body: &mut String,
    by_number: &[(&CommandPattern, &Shape)],
    (form, count): (&SequenceForm, u64),
    (key_of, draw): (&dyn Fn(usize) -> String, &dyn Fn(usize) -> Option<String>),
    names: &mut Names,
) {
    let uses =
        |key: u16| form.steps.iter().flat_map(|step| &step.keys).filter(|(_, own)| *own == key).count();
    let mut drawn: Vec<(String, String)> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    for (number, space) in (0u16..).zip(&form.spaces) {
        // What is asked for once is drawn where it stands.
        let drawn_once = draw(*space).filter(|_| uses(number) > 1);
        texts.push(match drawn_once {
            Some(draw) => {
                let name = format!("key{}", drawn.len() + 1);
                let text = quoted(&format!("%{{{name}}}"));
                drawn.push((name, draw));
                text
            }
            None => key_of(*space),
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
    body.push_str("    steps:\n");
    let mut of_steps = Names::default();
    for step in &form.steps {
        let of = by_number[step.pattern];
        let keys =
            step.keys.iter().map(|(place, key)| (usize::from(*place), texts[usize::from(*key)].clone()));
        let words = command(of, &keys.collect(), key_of);
        let name = of_steps.name_like(&of.0.name);
        let _ = writeln!(body, "      - {{ name: {name}, miss: ok, command: {words} }}");
    }
}
