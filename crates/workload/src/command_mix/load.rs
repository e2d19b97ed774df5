//! The load: a command for each key of a key space.

use super::config::{CommandMix, LoadItem};
use super::content::{MixContent, Place, load_first};
use crate::{Draw, Frontier, Hooks, Workload};
use dyno_types::command::CommandFacts;
use dyno_types::rng::{Keyed, Purpose};
use dyno_types::{Content, Request, Verb};
use std::sync::Arc;

/// Sends the commands of a load, one after the other, each for all keys of its key space. Those that are sent once are not part
/// of it.
#[derive(Debug)]
pub struct MixLoad {
    metrics: Vec<String>,
    content: Arc<MixContent>,
    seeds: Keyed,
    /// Of each command: its first index, its number, and the number of its key space.
    items: Vec<(u64, usize, usize)>,
    count: u64,
}

impl MixLoad {
    /// Of a checked mix; `facts` as [`MixContent::new`] takes them.
    pub fn new(mix: &Arc<CommandMix>, facts: &[CommandFacts]) -> Self {
        let item = |(number, item): (usize, &LoadItem)| Some((load_first(mix, number), number, item.each?));
        let items = mix.load.iter().enumerate().filter_map(item).collect();
        let count = load_first(mix, mix.load.len());
        MixLoad {
            metrics: vec!["LOAD".into()],
            content: Arc::new(MixContent::new(mix, facts)),
            seeds: Keyed::new(mix.seed, Purpose::Value),
            items,
            count,
        }
    }

    /// Commands in all.
    pub fn count_commands(&self) -> u64 {
        self.count
    }
}

impl Workload for MixLoad {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        Arc::clone(&self.content) as Arc<dyn Content>
    }

    fn draw(&self, index: u64) -> Draw {
        Draw { index, kind: 0, seed: self.seeds.draw_keyed(index) }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        let at = self.items.partition_point(|(first, ..)| *first <= draw.index).saturating_sub(1);
        let (first, number, space) = self.items[at];
        Request {
            verb: Verb::Command,
            shape: self.content.template_of(Place::Load(number)),
            collection: space as u32 + 1,
            key: draw.index - first,
            seed: draw.seed,
            ..Request::default()
        }
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn is_pure(&self) -> bool {
        true
    }
}
