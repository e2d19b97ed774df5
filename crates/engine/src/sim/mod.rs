//! A server in virtual time: programmable service time, capacity and stalls.
//!
//! First come, first served, by `capacity` servers. Because the service time is known at arrival, the completion is
//! too: the queue is the time at which each server becomes free, counted in *working time*, which stands still during
//! a stall.

use dyno_types::rng::{Purpose, draw_at, unit_interval};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Distribution of the service time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServiceTime {
    /// Always this many nanoseconds.
    Constant(u64),
    /// Exponential with this mean in nanoseconds.
    Exponential(f64),
}

/// Properties of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct SimOptions {
    /// Service time.
    pub service: ServiceTime,
    /// Requests served at once; `None` is without bound (a delay).
    pub capacity: Option<u32>,
    /// By which part of itself the service time grows each second of virtual time; negative: it shrinks, never below a tenth.
    pub growth: f64,
    /// Stalls as (begin, length) in nanoseconds of virtual time, ascending, not overlapping.
    pub stalls: Vec<(u64, u64)>,
    /// Seed of the service times.
    pub seed: u64,
    /// Times in which the client does not run, as (begin, length) in nanoseconds of virtual time, ascending, not overlapping.
    pub client_stalls: Vec<(u64, u64)>,
}

impl Default for SimOptions {
    fn default() -> Self {
        SimOptions {
            service: ServiceTime::Constant(100_000),
            capacity: Some(1),
            growth: 0.0,
            stalls: Vec::new(),
            seed: 1,
            client_stalls: Vec::new(),
        }
    }
}

/// The server.
#[derive(Clone, Debug)]
pub struct SimServer {
    options: SimOptions,
    /// Working time at which each server becomes free.
    free: BinaryHeap<Reverse<u64>>,
    served: u64,
}

impl SimServer {
    /// An idle server at time 0.
    pub fn new(options: SimOptions) -> Self {
        let free = (0..options.capacity.unwrap_or(0)).map(|_| Reverse(0)).collect();
        SimServer { options, free, served: 0 }
    }

    /// Accepts a request that arrives at `now_ns`; returns when its reply leaves. Calls must be in order of time.
    pub fn accept_request(&mut self, now_ns: u64) -> u64 {
        let service = match self.options.service {
            ServiceTime::Constant(ns) => ns,
            ServiceTime::Exponential(mean) => {
                let u = unit_interval(draw_at(self.options.seed, self.served, Purpose::Service));
                (-(1.0 - u).ln() * mean).round() as u64
            }
        };
        let grown = (1.0 + self.options.growth * now_ns as f64 / 1e9).max(0.1);
        let service =
            if self.options.growth == 0.0 { service } else { (service as f64 * grown).round() as u64 };
        // A reply that takes no time would leave before a stall that its request came in.
        let service = service.max(1);
        self.served += 1;
        let now = self.working(now_ns);
        let begin = match self.free.pop() {
            Some(Reverse(free)) => free.max(now),
            None => now,
        };
        let end = begin + service;
        if let Some(capacity) = self.options.capacity {
            self.free.push(Reverse(end));
            debug_assert!(self.free.len() <= capacity.max(1) as usize, "a server is free once");
        }
        self.wall(end)
    }

    /// Wall time to working time.
    fn working(&self, wall_ns: u64) -> u64 {
        let lost: u64 = self
            .options
            .stalls
            .iter()
            .map(|&(begin, length)| wall_ns.saturating_sub(begin).min(length))
            .sum();
        wall_ns - lost
    }

    /// When a client that would run from `ns` on does run.
    pub fn runs_ns(&self, ns: u64) -> u64 {
        let stalls = &self.options.client_stalls;
        stalls
            .iter()
            .find(|(begin, length)| (*begin..begin + length).contains(&ns))
            .map_or(ns, |(b, l)| b + l)
    }

    /// Working time to the first wall time that has it, after any stall that begins there.
    fn wall(&self, working_ns: u64) -> u64 {
        let mut wall = working_ns;
        for &(begin, length) in &self.options.stalls {
            if wall > begin {
                wall += length;
            }
        }
        wall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_queues() {
        let mut s =
            SimServer::new(SimOptions { service: ServiceTime::Constant(10), ..SimOptions::default() });
        assert_eq!(s.accept_request(0), 10);
        assert_eq!(s.accept_request(1), 20);
        assert_eq!(s.accept_request(50), 60);
    }

    #[test]
    fn a_stall_stops_the_work() {
        let options = SimOptions {
            service: ServiceTime::Constant(10),
            stalls: vec![(100, 1000)],
            ..SimOptions::default()
        };
        let mut s = SimServer::new(options);
        assert_eq!(s.accept_request(80), 90);
        assert_eq!(s.accept_request(95), 1105);
        assert_eq!(s.accept_request(500), 1115);
        assert_eq!(s.accept_request(2000), 2010);
    }

    #[test]
    fn service_grows_with_time() {
        let service = ServiceTime::Constant(1_000);
        let mut s = SimServer::new(SimOptions { service, growth: 0.5, ..SimOptions::default() });
        assert_eq!(s.accept_request(0), 1_000);
        assert_eq!(s.accept_request(2_000_000_000), 2_000_002_000);
        let mut s = SimServer::new(SimOptions { service, growth: -0.5, ..SimOptions::default() });
        assert_eq!(s.accept_request(9_000_000_000), 9_000_000_100);
    }

    #[test]
    fn without_bound_no_operation_waits() {
        let options =
            SimOptions { service: ServiceTime::Constant(10), capacity: None, ..SimOptions::default() };
        let mut s = SimServer::new(options);
        assert_eq!((s.accept_request(5), s.accept_request(5), s.accept_request(6)), (15, 15, 16));
    }
}
