//! A sharded cluster: the collection is sharded by `_id`, and each worker's documents to come have a chunk of their own, on
//! the shard whose number is the worker's modulo the number of shards.

use crate::WorkFrontEnd;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_db_mongodb::command_error::CommandError;
use dyno_workload::pocdriver::{PocConfig, Template};
use std::thread::sleep;
use std::time::Duration;

/// Attempts at a split or a move, a second apart: others may hold the collection's lock.
const ATTEMPTS: u32 = 30;

/// Splits and moves one chunk for each worker.
///
/// # Errors
/// The router does not answer, or refuses for half a minute.
pub fn distribute(
    admin: &MongoAdmin,
    collection: &str,
    config: &PocConfig,
    next: &[u64],
    caller: WorkFrontEnd,
) -> Result<(), CommandError> {
    let shards = admin.list_shards()?;
    if shards.len() < 2 {
        return Ok(());
    }
    for (user, next) in next.iter().enumerate() {
        let worker = config.first_worker + user as u32;
        let from = |out: &mut Vec<u8>| Template::put_id(worker, *next, "_id", out);
        let to = |out: &mut Vec<u8>| Template::put_id(worker + 1, 0, "_id", out);
        let shard = &shards[worker as usize % shards.len()];
        patiently(&|| admin.split_chunk(collection, &from), caller)?;
        patiently(&|| admin.split_chunk(collection, &to), caller)?;
        patiently(&|| admin.move_chunk(collection, &from, shard), caller)?;
    }
    Ok(())
}

/// Codes after which trying again is in vain: not allowed, no such command.
const FINAL: [i64; 2] = [13, 59];

/// Tries until it succeeds, with a warning at the first failure.
fn patiently(
    attempt: &dyn Fn() -> Result<(), CommandError>,
    caller: WorkFrontEnd,
) -> Result<(), CommandError> {
    for number in 1.. {
        match attempt() {
            Ok(()) => break,
            Err(error)
                if number == ATTEMPTS
                    || (caller.interrupted)()
                    || error.server_code().is_some_and(|code| FINAL.contains(&code)) =>
            {
                let hint = "--nosharding leaves the cluster alone";
                let message = format!("chunks cannot be distributed: {error} ({hint})");
                return Err(error.with_explanation(message));
            }
            Err(error) if number == 1 => {
                (caller.warn)(&format!("chunks cannot be distributed yet, tried again each second: {error}"));
            }
            Err(_) => {}
        }
        sleep(Duration::from_secs(1));
    }
    Ok(())
}

/// A balancer that has been turned off, and is turned on again when this is dropped.
pub struct Balancer(Option<MongoAdmin>, WorkFrontEnd);

impl Balancer {
    /// Turns it off if it is on.
    ///
    /// # Errors
    /// The router does not answer, or refuses.
    pub fn stop(admin: MongoAdmin, caller: WorkFrontEnd) -> Result<Self, CommandError> {
        if !admin.is_balancing()? {
            return Ok(Balancer(None, caller));
        }
        admin.set_balancer(false)?;
        Ok(Balancer(Some(admin), caller))
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        if let Some(Err(words)) = self.0.as_ref().map(|admin| admin.set_balancer(true)) {
            (self.1.warn)(&format!("the balancer is still off, it cannot be turned on again: {words}"));
        }
    }
}
