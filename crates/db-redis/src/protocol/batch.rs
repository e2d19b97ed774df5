//! Batches of inserts: each record by a command of its own (0 to n - 1), then one command with the index entries of all
//! where there is an index, then the expiry of each record where records expire. A record whose own command failed has
//! failed alone; without the index entries none of them is whole.

use super::cluster::key_slot;
use super::exchange::{BatchPart, RedisExchange};
use super::index::{INDEX_KEY, put_score};
use super::resp::{put_array, put_bulk};
use super::state::RedisDriver;

impl RedisDriver {
    /// The slot of a command's key.
    pub(super) fn batched_slot(&mut self, x: &RedisExchange, command: u32) -> u16 {
        let request = match x.more.batch.command_part(command) {
            BatchPart::Index => return self.index_slot,
            BatchPart::Record(request) | BatchPart::Expiry(request) => request,
        };
        self.batch_key.clear();
        self.content.key(request, &mut self.batch_key);
        key_slot(&self.batch_key)
    }

    /// A command of a batch: one of its records, or after them all its index entries.
    pub(super) fn put_batched(&mut self, x: &RedisExchange, command: u32, out: &mut Vec<u8>) {
        let mut key = std::mem::take(&mut self.batch_key);
        key.clear();
        match x.more.batch.command_part(command) {
            BatchPart::Record(request) => {
                self.content.key(request, &mut key);
                self.put_write(request, &key, out);
            }
            BatchPart::Expiry(request) => {
                self.content.key(request, &mut key);
                self.put_expiry(&key, out);
            }
            BatchPart::Index => {
                put_array(out, 2 + 2 * x.more.batch.requests.len());
                out.extend_from_slice(b"$4\r\nZADD\r\n");
                put_bulk(out, INDEX_KEY);
                for (request, _) in &x.more.batch.requests {
                    key.clear();
                    self.content.key(request, &mut key);
                    put_score(out, &key);
                    put_bulk(out, &key);
                }
            }
        }
        self.batch_key = key;
    }
}
