//! Whose turn it is.

use super::config::Commands;
use super::content::CommandContent;
use crate::ycsb::BadProperty;
use crate::{Draw, Frontier, Hooks, Workload};
use dyno_types::command::Traffic;
use dyno_types::rng::{Keyed, Purpose};
use dyno_types::{Content, Request, Verb};
use std::sync::Arc;

/// Operations of users that take turns.
#[derive(Debug)]
pub struct CommandRun {
    metrics: Vec<String>,
    content: Arc<CommandContent>,
    seeds: Keyed,
    cycle: u64,
    /// Of each operation: the first turn of the cycle that is its own.
    first: Vec<u64>,
}

impl CommandRun {
    /// Of these commands.
    ///
    /// # Errors
    /// Names what is wrong with them.
    pub fn new(commands: &Commands) -> Result<Self, BadProperty> {
        commands.check()?;
        let first = commands.operations.iter().scan(0, |sum, operation| {
            let first = *sum;
            *sum += operation.turns;
            Some(first)
        });
        Ok(CommandRun {
            metrics: commands.operations.iter().map(|operation| operation.name.clone()).collect(),
            content: Arc::new(CommandContent::new(commands)),
            seeds: Keyed::new(commands.seed, Purpose::Key),
            cycle: commands.cycle(),
            first: first.collect(),
        })
    }

    /// What was exchanged for the operations of this number so far; load threads report every thousand commands, and at their
    /// end.
    pub fn traffic(&self, operation: usize) -> Traffic {
        self.content.traffic(operation)
    }

    /// User and turn of an index.
    fn place(&self, index: u64) -> (u64, u64) {
        let users = self.content.commands_of().users.max(1);
        (index % users, index / users)
    }

    /// The operation of a turn, and how often it came before.
    fn operation(&self, turn: u64) -> (usize, u64) {
        let within = turn % self.cycle;
        let number = self.first.partition_point(|first| *first <= within) - 1;
        let turns = self.content.commands_of().operations[number].turns;
        (number, turn / self.cycle * turns + (within - self.first[number]))
    }
}

impl Workload for CommandRun {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        self.content.clone()
    }

    fn draw(&self, index: u64) -> Draw {
        let (_, turn) = self.place(index);
        let seed = match self.content.commands_of().apart {
            true => self.seeds.draw(index),
            false => self.seeds.draw(turn),
        };
        Draw { index, kind: self.operation(turn).0 as u16, seed }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        let (user, turn) = self.place(draw.index);
        let (number, before) = self.operation(turn);
        Request {
            verb: Verb::Command,
            metric: number as u16,
            shape: number as u16,
            collection: user as u32,
            key: before,
            seed: draw.seed,
            ..Request::default()
        }
    }

    fn hooks(&self) -> Hooks {
        Hooks { scripts: false, settled: false, answered: false, resume: false }
    }

    fn is_per_user(&self) -> bool {
        true
    }

    fn is_pure(&self) -> bool {
        true
    }
}
