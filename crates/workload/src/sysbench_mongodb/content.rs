//! Renders requests: documents from a generator's state, operands from the `_id`.
//!
//! Meaning of a request: `collection` from 0, `key` the (first) `_id`, `seed` the generator's state before the request's
//! own draws; `limit` is the number of documents of a batch or the user of a transaction.

use super::config::{Dialect, Sharding, SysbenchConfig};
use super::generator::{Generator, IdKind};
use super::shapes::{self, C, Command, ID, LAST, ONE, SHARD};
use crate::java_random::JavaRandom;
use dyno_types::document::{Operand, OperationShape};
use dyno_types::{Content, Request, bson};
use std::cell::Cell;

/// Name of collections, less their number.
const TABLE: &str = "sbtest";

/// Position of this thread in a batch, so that each document begins where the one before it has ended.
#[derive(Clone, Copy)]
struct BatchPosition {
    bound: u32,
    batch: u64,
    number: u32,
    random: JavaRandom,
}

thread_local! {
    static PLACE: Cell<Option<BatchPosition>> = const { Cell::new(None) };
}

/// Content of both phases.
#[derive(Debug)]
pub struct SysbenchContent {
    pub(super) generator: Generator,
    loader_ids: IdKind,
    sharding: Option<Sharding>,
    range_size: u32,
    shapes: Vec<OperationShape>,
}

impl SysbenchContent {
    /// For the load phase of a checked config.
    pub fn new(config: &SysbenchConfig) -> Self {
        Self::drawing(config, config.documents)
    }

    /// For the run phase, whose numbers are those of a `shardKey` where there is one.
    pub(super) fn of_run(config: &SysbenchConfig) -> Self {
        Self::drawing(config, config.sharding.map_or(config.documents, |sharding| sharding.each))
    }

    fn drawing(config: &SysbenchConfig, bound: u32) -> Self {
        SysbenchContent {
            generator: Generator::new(bound, config.sharding),
            sharding: config.sharding,
            loader_ids: match config.dialect {
                Dialect::Y2015 => IdKind::Int32,
                Dialect::Head => IdKind::Int64,
            },
            range_size: config.range_size,
            shapes: shapes::shapes(config.sharding.is_some()),
        }
    }

    /// The sharded program inserts the `_id` that it has found, the other one a number of its own.
    fn run_ids(&self) -> IdKind {
        if self.sharding.is_some() { self.loader_ids } else { IdKind::Int32 }
    }

    /// The generator as document `number` of a batch finds it.
    fn at(&self, request: &Request, number: u32) -> JavaRandom {
        let bound = self.generator.key_bound().count();
        let known = PLACE.get().filter(|p| (p.bound, p.batch, p.number) == (bound, request.seed, number));
        if let Some(place) = known {
            return place.random;
        }
        let mut random = JavaRandom::from_state(request.seed);
        for _ in 0..number {
            self.generator.skip_document(&mut random);
        }
        random
    }

    /// The generator's state after all draws of a transaction's request.
    pub(super) fn after(&self, request: &Request) -> JavaRandom {
        let mut random = JavaRandom::from_state(request.seed);
        match Command::of_shape(request.shape) {
            Command::Insert => self.generator.skip_document(&mut random),
            Command::NonIndexUpdate => {
                self.generator.draw_id(&mut random);
                Generator::skip_c(&mut random);
            }
            _ => {
                self.generator.draw_id(&mut random);
            }
        }
        random
    }
}

impl Content for SysbenchContent {
    fn table(&self) -> &str {
        TABLE
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        bson::put_decimal(out, request.key as u32);
    }

    fn fields(&self, _request: &Request) -> usize {
        0
    }

    fn name(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn value_len(&self, _request: &Request, _field: usize) -> usize {
        0
    }

    fn value(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn indexes(&self) -> Vec<(String, String)> {
        vec![(super::INDEX.0.into(), super::INDEX.1.into())]
    }

    fn shapes(&self) -> &[OperationShape] {
        &self.shapes
    }

    fn collection(&self, request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(TABLE.as_bytes());
        bson::put_decimal(out, request.collection + 1);
    }

    fn documents(&self, request: &Request) -> u32 {
        if Command::of_shape(request.shape) == Command::Load { request.limit } else { 1 }
    }

    fn document(&self, request: &Request, number: u32, out: &mut Vec<u8>) {
        if Command::of_shape(request.shape) != Command::Load {
            let mut random = JavaRandom::from_state(request.seed);
            return self.generator.put_document(&mut random, request.key as i32, self.run_ids(), out);
        }
        let mut random = self.at(request, number);
        let id = request.key as i32 + number as i32;
        self.generator.put_document(&mut random, id, self.loader_ids, out);
        let bound = self.generator.key_bound().count();
        PLACE.set(Some(BatchPosition { bound, batch: request.seed, number: number + 1, random }));
    }

    fn operand(&self, request: &Request, _number: u32, operand: Operand, name: &str, out: &mut Vec<u8>) {
        let (shard, id) = match &self.sharding {
            Some(sharding) => sharding.shard_place(request.key as u32),
            None => (0, request.key as u32),
        };
        let id = id as i32;
        match operand {
            SHARD => bson::put_int32(out, name, shard as i32),
            ID => bson::put_int32(out, name, id),
            LAST => bson::put_int32(out, name, id + self.range_size as i32 - 1),
            ONE => bson::put_int32(out, name, 1),
            C => {
                let mut random = JavaRandom::from_state(request.seed);
                self.generator.draw_id(&mut random);
                Generator::put_c(&mut random, name, out);
            }
            other => unreachable!("operand {other} stands in no shape"),
        }
    }
}
