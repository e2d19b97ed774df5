//! The run: a stratified mix of the operations.

use super::config::{CommandMix, CommandStep, MissRule, MixOperation, StepCondition, TextPart};
use super::content::{MixContent, Place};
use super::names::{Group, MetricNames, OperationMetrics};
use crate::mix::{Mix, MixMode};
use crate::template::ValueTemplate;
use crate::ycsb::BadProperty;
use crate::{Draw, Frontier, Hooks, OwnMetrics, Workload};
use dyno_types::command::CommandFacts;
use dyno_types::rng::{self, Keyed, Purpose};
use dyno_types::{Content, Outcome, Request, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Indexes of a warm-up have this bit set; their numbers lie beyond everything that is measured.
const WARMUP: u64 = 1 << 63;
const WARMUP_OFFSET: u64 = 1 << 44;

/// The operations of a mix.
#[derive(Debug)]
pub struct MixRun {
    metrics: Vec<String>,
    content: Arc<MixContent>,
    mix: Mix,
    seeds: Keyed,
    /// Groups of operations with the same metric, and the group of each metric.
    groups: Vec<Group>,
    group_of: Vec<u16>,
    /// Of each operation: its metrics.
    metrics_of: Vec<OperationMetrics>,
    /// Choice among the operations of a group.
    members: Keyed,
    /// Of each operation: its template, and its rows so far where it takes rows in order.
    first_template: Vec<(u16, Option<AtomicU64>)>,
    /// Users, and the number of the first one, where operations belong to users.
    users: Option<(u64, u64)>,
    /// This worker and the number of workers: each takes every n-th row.
    stripe: (u64, u64),
    /// The only operation, where it is beside the mix.
    alone: Option<usize>,
    seed: u64,
    facts: Vec<CommandFacts>,
}

impl MixRun {
    /// Of a mix, drawn from `seed`; `facts` as [`MixContent::new`] takes them, `users` the number of users and of the first one.
    ///
    /// # Errors
    /// Names what is wrong with it.
    pub fn new(
        mix: &Arc<CommandMix>,
        facts: &[CommandFacts],
        seed: u64,
        users: (u64, u64),
    ) -> Result<Self, BadProperty> {
        mix.check()?;
        let MetricNames { names: metrics, of: metrics_of, groups } = MetricNames::of_mix(mix);
        let weights: Vec<f64> = groups.iter().map(|group| group.weight).collect();
        let chosen = Mix::new(&weights, None, MixMode::Stratified, seed)
            .ok_or_else(|| BadProperty::new("weight", weights[0], "weights from 0 on, not all of them 0"))?;
        let content = Arc::new(MixContent::new(mix, facts));
        let mut group_of = vec![0; metrics.len()];
        for (number, group) in (0..).zip(&groups) {
            group_of[usize::from(group.metric)] = number;
        }
        let places = content.templates_of_operations();
        let mut first_template = Vec::new();
        for (operation, template) in mix.operations.iter().zip(places) {
            let texts = operation.steps.iter().flat_map(|step| &step.arguments).chain(&operation.bound);
            let in_order = |part: &TextPart| match part {
                TextPart::Value(ValueTemplate::Row(file, _)) => mix.tables[*file].in_order,
                _ => false,
            };
            let counts = texts.flatten().any(in_order).then(AtomicU64::default);
            first_template.push((template, counts));
        }
        Ok(MixRun {
            metrics,
            content,
            mix: chosen,
            seeds: Keyed::new(seed, Purpose::Key),
            groups,
            group_of,
            metrics_of,
            members: Keyed::new(seed, Purpose::Mix),
            first_template,
            users: mix.uses_users().then_some(users),
            stripe: (0, 1),
            alone: None,
            seed,
            facts: facts.to_vec(),
        })
    }

    /// The same for worker `index` of `total`, whose users are these.
    ///
    /// # Errors
    /// As [`MixRun::new`].
    pub fn of_worker(&self, users: (u64, u64), index: u64, total: u64) -> Result<Self, BadProperty> {
        let own = MixRun::new(self.content.command_mix(), &self.facts, self.seed, users)?;
        Ok(MixRun { stripe: (index, total), ..own })
    }

    /// The operation of this number alone, for users of its own.
    ///
    /// # Errors
    /// As [`MixRun::new`].
    pub fn beside(&self, operation: usize, users: (u64, u64)) -> Result<Self, BadProperty> {
        let own = MixRun::new(self.content.command_mix(), &self.facts, self.seed, users)?;
        let seed = rng::draw_at(self.seed, operation as u64, Purpose::Mix);
        // Whose connection has subscribed is known by its user.
        let users = if own.subscribes(operation) { Some(users) } else { own.users };
        Ok(MixRun { alone: Some(operation), users, seeds: Keyed::new(seed, Purpose::Key), ..own })
    }

    /// Returns whether an operation subscribes to messages.
    pub fn subscribes(&self, operation: usize) -> bool {
        self.steps(operation).iter().any(CommandStep::subscribes)
    }

    /// The operation of an index, which is one of a group.
    fn operation_of(&self, group: &Group, index: u64) -> usize {
        let number = match &group.operations[..] {
            [only] => *only,
            several => {
                let share = rng::unit_interval(self.members.draw_keyed(index));
                let at = group.upto.partition_point(|upto| *upto <= share);
                several[at.min(several.len() - 1)]
            }
        };
        usize::from(number)
    }

    fn step(&self, request: &Request) -> Option<(usize, usize)> {
        match self.content.place_of(request) {
            Place::Operation(operation, step) => Some((operation, step)),
            Place::Load(_) => None,
        }
    }

    fn steps(&self, operation: usize) -> &[CommandStep] {
        &self.content.command_mix().operations[operation].steps
    }
}

impl Workload for MixRun {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        Arc::clone(&self.content) as Arc<dyn Content>
    }

    fn draw(&self, index: u64) -> Draw {
        Draw {
            index,
            kind: match self.alone {
                Some(operation) => self.metrics_of[operation].whole,
                None => self.groups[self.mix.kind(index)].metric,
            },
            seed: self.seeds.draw_keyed(index),
        }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        let group = &self.groups[usize::from(self.group_of[usize::from(draw.kind)])];
        let number = self.alone.unwrap_or_else(|| self.operation_of(group, draw.index));
        let place = match draw.index & WARMUP {
            0 => draw.index,
            _ => WARMUP_OFFSET + (draw.index & !WARMUP),
        };
        let metrics = &self.metrics_of[number];
        let (template, rows) = &self.first_template[number];
        let row = rows.as_ref().map_or(0, |rows| {
            let (index, total) = self.stripe;
            rows.fetch_add(1, Ordering::Relaxed) * total + index
        });
        let is_script = self.content.command_mix().operations[number].is_script();
        Request {
            verb: Verb::Command,
            metric: if is_script { metrics.steps[0] } else { metrics.whole },
            script: if is_script { metrics.whole + 1 } else { 0 },
            shape: *template,
            collection: self.users.map_or(0, |(users, first)| (first + draw.index % users.max(1)) as u32),
            limit: row as u32,
            key: place,
            seed: draw.seed,
            ..Request::default()
        }
    }

    fn hooks(&self) -> Hooks {
        let accepts = |step: &CommandStep| step.miss == MissRule::Accepted;
        let asked = |one: &MixOperation| one.is_script() || one.steps.iter().any(accepts);
        let scripts = self.content.command_mix().operations.iter().any(asked);
        Hooks { scripts, settled: false, answered: false, resume: false }
    }

    fn spoils(&self, request: &Request, outcome: Outcome) -> bool {
        let accepted = |(operation, step): (usize, usize)| {
            let operation = &self.content.command_mix().operations[operation];
            operation.has_requests() && operation.steps[step].miss == MissRule::Accepted
        };
        match outcome {
            Outcome::Ok => false,
            Outcome::NotFound => !self.step(request).is_some_and(accepted),
            _ => true,
        }
    }

    /// The next step of an operation whose condition holds. A step that has failed ends it, and so does one that has found
    /// nothing and must.
    fn next(&self, done: &Request, outcome: Outcome) -> Option<Request> {
        let (operation, step) = self.step(done).filter(|_| done.script != 0)?;
        if self.spoils(done, outcome) {
            return None;
        }
        let holds = |step: &CommandStep| match step.when {
            None => true,
            Some(StepCondition::Miss) => outcome == Outcome::NotFound,
            Some(StepCondition::Hit) => outcome != Outcome::NotFound,
        };
        let ahead = self.steps(operation).iter().enumerate().skip(step + 1);
        let (next, _) = ahead.into_iter().find(|(_, step)| holds(step))?;
        let (ahead, metric) = ((next - step) as u16, self.metrics_of[operation].steps[next]);
        Some(Request { metric, step: next as u16, shape: done.shape + ahead, ..*done })
    }

    fn script(&self, first: &Request) -> Option<u16> {
        first.script.checked_sub(1)
    }

    fn is_per_user(&self) -> bool {
        self.users.is_some()
    }

    fn is_pure(&self) -> bool {
        self.first_template.iter().all(|(_, rows)| rows.is_none())
    }

    fn asked(&self) -> Vec<f64> {
        let operations = &self.content.command_mix().operations;
        let sum: f64 = self.groups.iter().map(|group| group.weight).sum();
        let mut all = vec![f64::NAN; self.metrics.len()];
        let is_own = |group: &Group| operations[usize::from(group.operations[0])].own.is_some();
        for group in self.groups.iter().filter(|group| !is_own(group)) {
            all[usize::from(group.metric)] = group.weight / sum;
        }
        all
    }

    fn own_metrics(&self) -> OwnMetrics {
        let own = |operation: usize| {
            let metrics = &self.metrics_of[operation];
            (metrics.delivery.is_some() || self.subscribes(operation))
                .then_some((metrics.whole, metrics.delivery))
        };
        let elements = self.metrics_of.iter().any(|metrics| !metrics.hits.is_empty());
        OwnMetrics { messages: self.alone.and_then(own), elements, ..OwnMetrics::default() }
    }

    fn element_metrics(&self, request: &Request) -> Option<(u16, u16)> {
        let (operation, first) = self.step(request)?;
        let step = first as u16;
        let (_, hits) = self.metrics_of[operation].hits.iter().find(|(number, _)| *number == step)?;
        Some((*hits, hits + 1))
    }

    fn is_beside(&self) -> bool {
        self.alone.is_some()
    }

    fn accepts_misses(&self, metric: u16) -> bool {
        let accepts = |(operation, metrics): (&MixOperation, &OperationMetrics)| {
            let whole = [metrics.whole];
            let steps = if operation.is_script() { &metrics.steps[..] } else { &whole };
            let mut own = steps.iter().zip(&operation.steps).filter(|(one, _)| **one == metric);
            operation.has_requests() && own.any(|(_, step)| step.miss == MissRule::Accepted)
        };
        self.content.command_mix().operations.iter().zip(&self.metrics_of).any(accepts)
    }

    fn part(&self, index: u64, total: u64) -> Option<Arc<dyn Workload>> {
        let own = self.of_worker(self.users.unwrap_or((1, 0)), index, total).ok()?;
        Some(Arc::new(own))
    }
}
