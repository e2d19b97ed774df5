//! A sharded cluster: the collection is sharded by `_id`, and each worker's documents to come have a chunk of their own, on
//! the shard whose number is the worker's modulo the number of shards.

use super::setup::Ready;
use crate::exit::Failure;
use crate::{signals, terminal};
use dyno_databases::mongodb::admin::{CommandError, MongoAdmin};
use dyno_workload::pocdriver::{PocConfig, Template};
use std::thread::sleep;
use std::time::Duration;

/// How often a split or a move is tried, a second apart: others may hold the collection's lock.
const ATTEMPTS: u32 = 30;

/// Splits and moves one chunk for each worker.
pub fn distribute(
    admin: &MongoAdmin,
    collection: &str,
    config: &PocConfig,
    ready: &Ready,
) -> Result<(), Failure> {
    let shards = admin.shards()?;
    if shards.len() < 2 {
        return Ok(());
    }
    for (user, next) in ready.next.iter().enumerate() {
        let worker = config.first_worker + user as u32;
        let from = |out: &mut Vec<u8>| Template::id(worker, *next, "_id", out);
        let to = |out: &mut Vec<u8>| Template::id(worker + 1, 0, "_id", out);
        let shard = &shards[worker as usize % shards.len()];
        patiently(&|| admin.split(collection, &from))?;
        patiently(&|| admin.split(collection, &to))?;
        patiently(&|| admin.move_chunk(collection, &from, shard))?;
    }
    Ok(())
}

/// Codes after which trying again is in vain: not allowed, no such command.
const FINAL: [i64; 2] = [13, 59];

/// Tries until it succeeds, with a warning at the first failure.
fn patiently(attempt: &dyn Fn() -> Result<(), CommandError>) -> Result<(), Failure> {
    for number in 1.. {
        match attempt() {
            Ok(()) => break,
            Err(error)
                if number == ATTEMPTS
                    || signals::interrupted()
                    || error.code().is_some_and(|code| FINAL.contains(&code)) =>
            {
                let hint = "--nosharding leaves the cluster alone";
                let words = format!("chunks cannot be distributed: {error} ({hint})");
                return Err(error.explained(words).into());
            }
            Err(error) if number == 1 => {
                terminal::warn(&format!(
                    "chunks cannot be distributed yet, tried again each second: {error}"
                ));
            }
            Err(_) => {}
        }
        sleep(Duration::from_secs(1));
    }
    Ok(())
}

/// A balancer that has been turned off, and is turned on again when this is dropped.
pub struct Balancer(Option<MongoAdmin>);

impl Balancer {
    /// Turns it off if it is on.
    pub fn stop(admin: MongoAdmin) -> Result<Self, Failure> {
        if !admin.balances()? {
            return Ok(Balancer(None));
        }
        admin.balance(false)?;
        Ok(Balancer(Some(admin)))
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        if let Some(Err(words)) = self.0.as_ref().map(|admin| admin.balance(true)) {
            terminal::warn(&format!("the balancer is still off, it cannot be turned on again: {words}"));
        }
    }
}
