//! The run: a stratified mix of the operations.

use super::config::{OperationKind, WorkloadTemplate};
use super::content::TemplateContent;
use crate::mix::{Mix, MixMode};
use crate::ycsb::BadProperty;
use crate::{Draw, Frontier, Hooks, Workload};
use dyno_types::rng::{Keyed, Purpose};
use dyno_types::{Content, Outcome, Request, Verb};
use std::sync::Arc;

/// Indexes of a warm-up have this bit set; what they insert lies beyond everything that is measured.
const WARMUP: u64 = 1 << 63;
const WARMUP_OFFSET: u64 = 1 << 44;

/// The operations of a template, mixed.
#[derive(Debug)]
pub struct TemplateRun {
    metrics: Vec<String>,
    content: Arc<TemplateContent>,
    mix: Mix,
    seeds: Keyed,
    /// Of each collection: the first number of a new document.
    fresh: Vec<u64>,
    /// Of each operation: its metric.
    first_metric: Vec<u16>,
    /// Most documents that one operation inserts.
    width: u64,
}

impl TemplateRun {
    /// `fresh` is the first free number of each collection; missing ones are its count. Operations are drawn from `seed`; what
    /// documents hold stays a function of the template's own.
    pub fn new(template: &WorkloadTemplate, fresh: &[u64], seed: u64) -> Result<Self, BadProperty> {
        template.check()?;
        let weights: Vec<f64> = template.operations.iter().map(|o| o.weight).collect();
        let mix = Mix::new(&weights, None, MixMode::Stratified, seed)
            .ok_or_else(|| BadProperty::new("weight", weights[0], "weights from 0 on, not all of them 0"))?;
        let first = |(number, collection): (usize, &super::TemplateCollection)| {
            fresh.get(number).copied().unwrap_or(0).max(collection.count)
        };
        let (mut metrics, mut first_metric) = (Vec::new(), Vec::new());
        for operation in &template.operations {
            first_metric.push(metrics.len() as u16);
            metrics.extend(operation.metrics());
        }
        Ok(TemplateRun {
            metrics,
            first_metric,
            content: Arc::new(TemplateContent::new(template)),
            mix,
            seeds: Keyed::new(seed, Purpose::Key),
            fresh: template.collections.iter().enumerate().map(first).collect(),
            width: template.operations.iter().map(|o| o.inserts_before(o.steps.len())).max().unwrap_or(0),
        })
    }

    /// The request of a step; `place` is the operation's own number.
    fn request(&self, number: usize, step: usize, place: u64, seed: u64) -> Request {
        let operation = &self.content.workload_template().operations[number];
        let what = &operation.steps[step];
        let (key, limit) = match what.kind {
            OperationKind::Insert(count) => {
                let inserted = place * self.width + operation.inserts_before(step);
                (self.fresh[what.collection] + inserted, count)
            }
            OperationKind::Action(_) => (place, 1),
        };
        let metric = self.first_metric[number];
        Request {
            verb: Verb::Document,
            metric: if operation.transaction { metric + 1 + step as u16 } else { metric },
            script: if operation.transaction { metric + 1 } else { 0 },
            step: step as u16,
            shape: self.content.shape_of(number, step),
            collection: what.collection as u32,
            seed,
            key,
            limit,
            ..Request::default()
        }
    }

    /// The operation's own number, back from a request of it.
    fn place(&self, number: usize, step: usize, request: &Request) -> u64 {
        let operation = &self.content.workload_template().operations[number];
        match operation.steps[step].kind {
            OperationKind::Insert(_) => {
                (request.key - self.fresh[operation.steps[step].collection]) / self.width
            }
            OperationKind::Action(_) => request.key,
        }
    }
}

impl Workload for TemplateRun {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        Arc::clone(&self.content) as Arc<dyn Content>
    }

    fn draw(&self, index: u64) -> Draw {
        Draw { index, kind: self.first_metric[self.mix.kind(index)], seed: self.seeds.draw_keyed(index) }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        let place = match draw.index & WARMUP {
            0 => draw.index,
            _ => WARMUP_OFFSET + (draw.index & !WARMUP),
        };
        // Metrics of operations ascend.
        let number = self.first_metric.partition_point(|first| *first < draw.kind);
        self.request(number, 0, place, draw.seed)
    }

    fn hooks(&self) -> Hooks {
        let scripts = self.content.workload_template().operations.iter().any(|o| o.transaction);
        Hooks { scripts, settled: false, answered: false, resume: false }
    }

    fn spoils(&self, request: &Request, outcome: Outcome) -> bool {
        // Of a transaction; an operation by itself has failed if it has found nothing.
        !outcome.is_ok() && (request.script == 0 || outcome != Outcome::NotFound)
    }

    /// The next step of a transaction, its commit after the last one, or its end where the server has refused a step. Where
    /// no answer came, the server gives it up by itself.
    fn next(&self, done: &Request, outcome: Outcome) -> Option<Request> {
        let (number, step) = self.content.place_of(done).filter(|_| done.script != 0)?;
        let steps = self.content.workload_template().operations[number].steps.len();
        let end = |commit: bool| Request {
            metric: done.script + steps as u16 + u16::from(!commit),
            shape: self.content.end_of(commit),
            step: steps as u16,
            ..*done
        };
        match outcome {
            Outcome::Ok | Outcome::NotFound if step + 1 < steps => {
                let place = self.place(number, step, done);
                Some(self.request(number, step + 1, place, done.seed))
            }
            Outcome::Ok | Outcome::NotFound => Some(end(true)),
            refused if refused.is_error_reply() => Some(end(false)),
            _ => None,
        }
    }

    fn script(&self, first: &Request) -> Option<u16> {
        first.script.checked_sub(1)
    }

    fn is_pure(&self) -> bool {
        true
    }
}
