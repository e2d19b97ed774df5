//! Whose turn it is.

use super::clients::{Clients, CommandClient};
use super::config::{Between, Commands};
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

    /// What each user came to, where that is kept.
    pub fn clients(&self) -> Vec<CommandClient> {
        self.content.clients.as_ref().map_or_else(Vec::new, Clients::all)
    }

    /// User and turn of an index.
    fn place(&self, index: u64) -> (u64, u64) {
        let users = self.content.commands_of().users.max(1);
        (index % users, index / users)
    }

    /// The operation of a turn, and how often it came before.
    fn operation(&self, turn: u64) -> (usize, u64) {
        match (self.own_turn(turn), &self.content.commands_of().between) {
            (Err(before), Some(between)) => (between.operation, before),
            (Ok(own) | Err(own), _) => self.in_turn(own),
        }
    }

    /// The turn as it is counted without what comes between; else how often that came before.
    fn own_turn(&self, turn: u64) -> Result<u64, u64> {
        let Some(between) = &self.content.commands_of().between else { return Ok(turn) };
        if turn == 0 {
            return Err(0);
        }
        // The last of the others that is not behind this turn: at most every second one is what comes between.
        let (mut least, mut most) = ((turn - 1) / 2, turn - 1);
        while least < most {
            let middle = least + (most - least).div_ceil(2);
            match self.pushed_back(between, middle) <= turn {
                true => least = middle,
                false => most = middle - 1,
            }
        }
        if self.pushed_back(between, least) == turn { Ok(least) } else { Err(turn - least - 1) }
    }

    /// How often the first operation comes in so many turns of a user.
    pub fn first_in(&self, turns: u64) -> u64 {
        let own = match (turns.checked_sub(1), self.content.commands_of().between) {
            (None, _) => 0,
            (Some(last), Some(_)) => match self.own_turn(last) {
                Ok(own) => own + 1,
                Err(before) => last - before,
            },
            (Some(_), None) => turns,
        };
        let first = self.content.commands_of().operations[0].turns;
        own / self.cycle * first + (own % self.cycle).min(first)
    }

    /// What a turn of a user draws from.
    fn seed(&self, user: u64, turn: u64) -> u64 {
        let commands = self.content.commands_of();
        let (own, users) = match (self.own_turn(turn), commands.stands_for) {
            // What comes between takes nothing from the draws of the others.
            (Err(before), _) => (before | 1 << 63, commands.users),
            (Ok(own), None) => (own, commands.users),
            (Ok(own), Some(other)) => (own / self.cycle * other.cycle + own % self.cycle, other.users),
        };
        let own = if commands.apart { own.wrapping_mul(users.max(1)).wrapping_add(user) } else { own };
        self.seeds.draw_keyed(own)
    }

    /// The turn of the operation that is this one, from 0, of those that have turns of their own.
    fn pushed_back(&self, between: &Between, number: u64) -> u64 {
        let (first, turns) =
            (self.first[between.after], self.content.commands_of().operations[between.after].turns);
        let before = number / self.cycle * turns + (number % self.cycle).saturating_sub(first).min(turns);
        number + 1 + before / between.every
    }

    /// The same of those that have turns of their own.
    fn in_turn(&self, turn: u64) -> (usize, u64) {
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
        let (user, turn) = self.place(index);
        let seed = self.seed(user, turn);
        Draw { index, kind: self.operation(turn).0 as u16, seed }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        let (user, turn) = self.place(draw.index);
        let (mut number, before) = self.operation(turn);
        if self.content.commands_of().iterates.is_some() && self.content.cursor(user as u32) != 0 {
            number = 1;
        }
        let mut shape = number;
        let records = &self.content.commands_of().records;
        if let Some(expiring) = records.expiring.filter(|_| number == 0) {
            let record = self.content.record(&Request { key: before, ..Request::default() });
            shape = if record.expiry_s > 0 { expiring } else { number };
        }
        Request {
            verb: Verb::Command,
            metric: number as u16,
            shape: shape as u16,
            collection: user as u32,
            key: before,
            seed: draw.seed,
            ..Request::default()
        }
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn times_each(&self) -> bool {
        self.content.clients.is_some()
    }

    fn timed(&self, request: &Request, service_ns: u64, done_ns: u64) {
        if let Some(clients) = &self.content.clients {
            clients.timed(request.collection, usize::from(request.metric), service_ns, done_ns);
        }
    }

    fn is_per_user(&self) -> bool {
        true
    }

    fn is_pure(&self) -> bool {
        self.content.commands_of().iterates.is_none()
    }
}
