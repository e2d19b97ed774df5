//! What each user came to, second by second, where the caller asks for it.

use dyno_types::command::Traffic;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What requests of one operation of a user came to in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientSecond {
    /// Requests.
    pub count: u64,
    /// Sum of their latencies, microseconds.
    pub latency_us: u64,
    /// Bytes, hits and misses.
    pub traffic: Traffic,
}

/// A user.
#[derive(Clone, Debug, Default)]
pub struct CommandClient {
    /// By second, then by operation.
    pub seconds: BTreeMap<u64, Vec<ClientSecond>>,
    /// Of each operation: latencies in microseconds, rounded up, and how often they occurred.
    pub latencies_us: Vec<BTreeMap<u64, u64>>,
}

/// All users.
#[derive(Debug)]
pub(super) struct Clients {
    /// Each with what was exchanged since its last request ended.
    all: Vec<Mutex<(CommandClient, Traffic)>>,
    operations: usize,
}

impl Clients {
    pub(super) fn new(users: u64, operations: usize) -> Self {
        let client =
            CommandClient { latencies_us: vec![BTreeMap::new(); operations], ..CommandClient::default() };
        Clients {
            all: (0..users).map(|_| Mutex::new((client.clone(), Traffic::default()))).collect(),
            operations,
        }
    }

    /// A user's own; no other user asks for it while a load runs.
    fn of(&self, user: u32) -> Option<MutexGuard<'_, (CommandClient, Traffic)>> {
        let client = self.all.get(user as usize)?;
        Some(client.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn exchanged(&self, user: u32, more: Traffic) {
        if let Some(mut client) = self.of(user) {
            client.1 += more;
        }
    }

    pub(super) fn timed(&self, user: u32, operation: usize, service_ns: u64, done_ns: u64) {
        let Some(mut client) = self.of(user) else { return };
        let (client, pending) = &mut *client;
        let us = service_ns.div_ceil(1_000);
        *client.latencies_us[operation].entry(us).or_default() += 1;
        let second = client.seconds.entry(done_ns / 1_000_000_000);
        let second = &mut second.or_insert_with(|| vec![ClientSecond::default(); self.operations])[operation];
        second.count += 1;
        second.latency_us += us;
        second.traffic += std::mem::take(pending);
    }

    /// What all of them came to.
    pub(super) fn all(&self) -> Vec<CommandClient> {
        (0..self.all.len() as u32).filter_map(|user| self.of(user).map(|client| client.0.clone())).collect()
    }
}
