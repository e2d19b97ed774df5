//! The load: one request inserts a batch of documents into one collection.

use super::config::WorkloadTemplate;
use super::content::TemplateContent;
use crate::ycsb::BadProperty;
use crate::{Draw, Frontier, Hooks, Workload};
use dyno_types::{Content, Request, Verb};
use std::sync::Arc;

/// Bytes of documents in one insert, about: half of what servers take in one message.
const BATCH_BYTES: u64 = 24 << 20;

/// Inserts the documents of all collections, one collection after the other.
#[derive(Debug)]
pub struct TemplateLoad {
    metrics: Vec<String>,
    content: Arc<TemplateContent>,
    /// Of each collection: the index of its first batch, and documents of a batch.
    collections: Vec<(u64, u64)>,
    batches: u64,
}

impl TemplateLoad {
    /// All documents of a template.
    pub fn new(template: &WorkloadTemplate) -> Result<Self, BadProperty> {
        template.check()?;
        let content = Arc::new(TemplateContent::new(template));
        let (mut collections, mut batches) = (Vec::new(), 0);
        for (number, collection) in template.collections.iter().enumerate() {
            let mut sample = Vec::new();
            content.document_of(number, 0, &mut sample);
            let batch = u64::from(template.batch).min(BATCH_BYTES / sample.len().max(1) as u64).max(1);
            collections.push((batches, batch));
            batches += collection.count.div_ceil(batch);
        }
        Ok(TemplateLoad { metrics: vec!["LOAD".into()], content, collections, batches })
    }

    /// Inserts in all: the operations of the run.
    pub fn count_inserts(&self) -> u64 {
        self.batches
    }
}

impl Workload for TemplateLoad {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        Arc::clone(&self.content) as Arc<dyn Content>
    }

    fn draw(&self, index: u64) -> Draw {
        Draw { index, kind: 0, seed: 0 }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        let number = self.collections.partition_point(|(first, _)| *first <= draw.index).saturating_sub(1);
        // Collections without documents share their first index with the next one: the last of them has it.
        let (first, batch) = self.collections[number];
        let key = (draw.index - first) * batch;
        let left = self.content.workload_template().collections[number].count.saturating_sub(key);
        Request {
            verb: Verb::Document,
            collection: number as u32,
            limit: batch.min(left) as u32,
            key,
            ..Request::default()
        }
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn documents(&self) -> Option<u64> {
        Some(self.content.workload_template().collections.iter().map(|collection| collection.count).sum())
    }

    fn is_pure(&self) -> bool {
        true
    }
}
