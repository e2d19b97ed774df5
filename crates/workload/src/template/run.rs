//! The run: a stratified mix of the operations.

use super::config::{Kind, Template};
use super::content::TemplateContent;
use crate::mix::{Mix, Mode};
use crate::ycsb::BadProperty;
use crate::{Draw, Frontier, Hooks, Workload};
use dyno_types::rng::{Keyed, Purpose};
use dyno_types::{Content, Request, Verb};
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
}

impl TemplateRun {
    /// `fresh` is the first free number of each collection; missing ones are its count.
    pub fn new(template: &Template, fresh: &[u64]) -> Result<Self, BadProperty> {
        template.check()?;
        let weights: Vec<f64> = template.operations.iter().map(|o| o.weight).collect();
        let mix = Mix::new(&weights, None, Mode::Stratified, template.seed)
            .ok_or_else(|| BadProperty::new("weight", weights[0], "weights from 0 on, not all of them 0"))?;
        let first = |(number, collection): (usize, &super::Collection)| {
            fresh.get(number).copied().unwrap_or(0).max(collection.count)
        };
        Ok(TemplateRun {
            metrics: template.operations.iter().map(|o| o.name.clone()).collect(),
            content: Arc::new(TemplateContent::new(template)),
            mix,
            seeds: Keyed::new(template.seed, Purpose::Key),
            fresh: template.collections.iter().enumerate().map(first).collect(),
        })
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
        let pick = self.mix.pick(index);
        Draw { index, kind: pick.kind as u16, rank: pick.rank, seed: self.seeds.draw(index) }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        let operation = &self.content.template().operations[usize::from(draw.kind)];
        let place =
            if draw.index & WARMUP == 0 { draw.index } else { WARMUP_OFFSET + (draw.index & !WARMUP) };
        let (key, limit) = match operation.kind {
            Kind::Insert(count) => (self.fresh[operation.collection] + place * u64::from(count), count),
            Kind::Action(_) => (place, 1),
        };
        Request {
            verb: Verb::Document,
            metric: draw.kind,
            shape: draw.kind + 1,
            collection: operation.collection as u32,
            seed: draw.seed,
            key,
            limit,
            ..Request::default()
        }
    }

    fn hooks(&self) -> Hooks {
        Hooks { scripts: false, settled: false, answered: false, resume: false }
    }

    fn is_pure(&self) -> bool {
        true
    }
}
