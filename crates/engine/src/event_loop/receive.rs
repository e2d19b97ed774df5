//! The receive pass: everything that has arrived is stamped and decoded before any new work is done.

use super::load_thread::LoadThread;
use super::pool::State;
use crate::job::Clock;
use crate::net::{Net, Ready, Received, Stamp, monotonic_ns};
use dyno_record::RawSample;
use dyno_types::{Decoded, Driver, GreetingStep, Outcome, Then};
use std::io;

/// Time that a pass may take when more comes than is read, nanoseconds: the connections that are ready share it.
pub(super) const PASS_NS: u64 = 100_000_000;
/// Time that each of them has at least, nanoseconds.
const SHARE_NS: u64 = 1_000_000;

/// When bytes came.
#[derive(Clone, Copy)]
struct ArrivalMoment {
    /// They are handled now.
    now: u64,
    /// They arrived then.
    stamp: Stamp,
    /// Time by which what came before them on the same connection had arrived by then.
    heard_ns: u64,
}

/// Result of parsing a connection's bytes.
enum ParsedBytes {
    /// Everything up to here was used.
    Upto(usize),
    /// The connection was given up.
    Lost,
}

impl<D: Driver, N: Net> LoadThread<D, N> {
    pub(super) fn receive_pass(&mut self) -> io::Result<()> {
        let mut ready = std::mem::take(&mut self.pool.ready);
        self.net.woken();
        let share_ns = (PASS_NS / ready.len().max(1) as u64).max(SHARE_NS);
        for event in ready.drain(..) {
            let id = event.token;
            match self.pool.connections[id as usize].state {
                State::Closed { .. } => {}
                State::Opening { .. } => self.opening(id, event),
                State::Greeting { .. } | State::Ready => {
                    if event.write && self.pool.connections[id as usize].watching {
                        self.pool.mark_dirty(id);
                    }
                    if event.read {
                        self.receive(id, event.last, share_ns);
                    }
                }
            }
        }
        if let Some(metrics) = self.shared.own.messages {
            self.count_messages(metrics);
        }
        // Connections that have not been read to their end come again.
        ready.append(&mut self.pool.unread);
        self.pool.ready = ready;
        Ok(())
    }

    /// Counts messages that were delivered: the wait for one that came together with another was none.
    fn count_messages(&mut self, (wait, delivery): (u16, Option<u16>)) {
        let done_ns = self.net.now().saturating_sub(self.clock.epoch_ns);
        let (interval, keep) = (&mut self.recorder.now, self.shared.job.raw_samples);
        self.driver.take_messages(&mut |message| {
            let mut record = |metric, ns| {
                let sample =
                    RawSample { metric, outcome: Outcome::Ok, done_ns, service_ns: ns, response_ns: ns };
                interval.record_sample(sample, keep);
            };
            if message.unawaited {
                record(wait, 0);
            }
            if let (Some(metric), Some(ns)) = (delivery, message.delivery_ns) {
                record(metric, ns);
            }
        });
    }

    /// Takes what has arrived on a connection; with `all` until nothing more comes. A connection on which something always comes
    /// keeps nothing else from being done: what is left after `share_ns` is read in the next pass.
    pub(super) fn receive(&mut self, id: u32, all: bool, share_ns: u64) {
        let mut buffer = std::mem::take(&mut self.pool.buffer);
        let mut begun_ns = None;
        while let Some(socket) = self.pool.connections[id as usize].socket.as_mut() {
            match self.net.recv(socket, &mut buffer) {
                Ok(Received::Empty) => break,
                Ok(Received::Bytes { n, more, stamp }) => {
                    debug_assert!(n > 0, "an empty piece is the end, or nothing");
                    let now = self.net.now();
                    let moment = self.arrived(id, stamp, now);
                    if !self.take(id, &buffer[..n], moment) || !(more || all) {
                        break;
                    }
                    if now - *begun_ns.get_or_insert(now) > share_ns {
                        self.pool.unread.push(Ready { token: id, read: true, write: false, last: all });
                        break;
                    }
                }
                Ok(Received::Closed) => {
                    let text = self.naming(id, "the server closed the connection");
                    self.lose(id, Outcome::Disconnected, &text);
                    break;
                }
                Err(error) => {
                    let text = self.naming(id, &error.to_string());
                    self.lose(id, Outcome::Disconnected, &text);
                    break;
                }
            }
        }
        self.pool.buffer = buffer;
    }

    /// Bytes of a connection are handled now.
    fn arrived(&mut self, id: u32, stamp: Stamp, now: u64) -> ArrivalMoment {
        let heard = &mut self.pool.connections[id as usize].heard_ns;
        let heard_ns = *heard;
        if let Stamp::At { at_ns, .. } = stamp {
            self.recorder.now.receive_lag.record(now.saturating_sub(at_ns));
            *heard = at_ns;
        }
        ArrivalMoment { now, stamp, heard_ns }
    }

    /// Bytes have arrived on a connection; false if it was given up.
    fn take(&mut self, id: u32, bytes: &[u8], moment: ArrivalMoment) -> bool {
        let input = &mut self.pool.connections[id as usize].input;
        // Behind bytes that were not a whole reply.
        let is_more = !input.is_empty();
        let mut kept = Vec::new();
        if is_more {
            kept = std::mem::take(input);
            kept.extend_from_slice(bytes);
        }
        let all = if is_more { kept.as_slice() } else { bytes };
        let ParsedBytes::Upto(used) = self.parse(id, all, moment) else { return false };
        if used < all.len() {
            if is_more {
                kept.drain(..used);
            } else {
                kept = self.pool.spare.pop().unwrap_or_default();
                kept.extend_from_slice(&bytes[used..]);
            }
            self.pool.connections[id as usize].input = kept;
        } else if is_more {
            kept.clear();
            self.pool.spare.push(kept);
        }
        true
    }

    fn parse(&mut self, id: u32, bytes: &[u8], moment: ArrivalMoment) -> ParsedBytes {
        let mut at = 0;
        while at < bytes.len() {
            let c = &self.pool.connections[id as usize];
            let decoded = match (c.state, c.awaited.front()) {
                (State::Greeting { reply, .. }, _) => {
                    match self.greeting(id, reply, moment.now, &bytes[at..]) {
                        Some(used) => Decoded::Push { used },
                        None if matches!(self.pool.connections[id as usize].state, State::Closed { .. }) => {
                            return ParsedBytes::Lost;
                        }
                        None => Decoded::Need,
                    }
                }
                (State::Ready, Some(&reply)) => {
                    if reply.preamble || !self.operations.is_current(reply) {
                        self.driver.skip(&bytes[at..])
                    } else {
                        let op = &mut self.operations.ops[reply.op as usize];
                        // Values are checked while they are decoded: that time is the check's.
                        let since = self.shared.own.verify.map(|_| monotonic_ns());
                        let decoded = self.driver.decode(&mut op.exchange, reply.command, &bytes[at..]);
                        op.verify_ns = since.map_or(0, |since| monotonic_ns() - since);
                        decoded
                    }
                }
                (State::Ready, None) => match self.driver.skip(&bytes[at..]) {
                    Decoded::Reply { .. } => Decoded::Unexpected,
                    other => other,
                },
                _ => return ParsedBytes::Lost,
            };
            match decoded {
                Decoded::Need => break,
                Decoded::Push { used } => {
                    debug_assert!(used > 0, "a message of no bytes would come for ever");
                    at += used;
                    debug_assert!(at <= bytes.len(), "no more was used than had come");
                }
                Decoded::Reply { used, then } => {
                    debug_assert!(used > 0, "a reply of no bytes would be that of all commands");
                    at += used;
                    debug_assert!(at <= bytes.len(), "no more was used than had come");
                    self.replied(id, then, moment, at < bytes.len());
                }
                Decoded::Unexpected => {
                    self.recorder.now.unexpected += 1;
                    let text = self.naming(id, "a reply came that no command had asked for");
                    self.lose(id, Outcome::Protocol, &text);
                    return ParsedBytes::Lost;
                }
                Decoded::Broken => {
                    self.recorder.now.broken +=
                        u64::from(self.pool.connections[id as usize].state == State::Ready);
                    let text = self.naming(id, "what answered does not speak the protocol");
                    self.lose(id, Outcome::Protocol, &text);
                    return ParsedBytes::Lost;
                }
            }
        }
        ParsedBytes::Upto(at)
    }

    /// One reply of the greeting; the bytes used, or `None` if it is not complete or the connection was refused. The next reply
    /// has its own time from `now` on: what this process was late with is not the server's silence.
    fn greeting(&mut self, id: u32, reply: u16, now: u64, bytes: &[u8]) -> Option<usize> {
        let node = self.pool.connections[id as usize].node;
        let mut words = self.pool.spare.pop().unwrap_or_default();
        let heard = self.driver.greeted(node, id, reply, bytes, &mut words);
        let said = self.send_handshake(id, &mut words);
        self.pool.spare.push(words);
        if !said {
            self.lose(id, Outcome::Unreachable, "the greeting could not be sent");
            return None;
        }
        match heard {
            GreetingStep::Need => None,
            GreetingStep::Reply { used, more } => {
                if more {
                    self.pool.connections[id as usize].state =
                        State::Greeting { reply: reply + 1, since_ns: now };
                } else {
                    self.welcome(id);
                }
                Some(used)
            }
            GreetingStep::Refused(outcome, message) => {
                let text = self.naming(id, &message);
                self.lose(id, outcome, &text);
                None
            }
        }
    }

    /// Sends what a driver says during the greeting; false if the connection does not take it.
    fn send_handshake(&mut self, id: u32, words: &mut Vec<u8>) -> bool {
        let Some(socket) = self.pool.connections[id as usize].socket.as_mut() else { return true };
        // It always fits a socket buffer that holds nothing else.
        let said = words.is_empty() || self.net.send(socket, words).is_ok_and(|n| n == words.len());
        words.clear();
        said
    }

    /// Returns when a reply came: the stamp of the kernel or the network card, if that is asked for and lies between sending
    /// and handling; else the time of handling. A reply read together with later bytes gets the later stamp. The error is at
    /// most that stamp minus the later one of sending and the previous stamp.
    fn arrival_time_ns(&mut self, op: u32, moment: ArrivalMoment, shared: bool) -> u64 {
        let ArrivalMoment { now, stamp, heard_ns } = moment;
        if self.shared.job.stamps == Clock::Client {
            return now;
        }
        let (sent_ns, stamps) = (self.operations.ops[op as usize].sent_ns, &mut self.recorder.now.stamps);
        match stamp {
            Stamp::At { at_ns, by_card } if sent_ns != 0 && sent_ns < at_ns && at_ns <= now => {
                stamps.kernel += 1;
                stamps.card += u64::from(by_card);
                if shared {
                    stamps.shared += 1;
                    stamps.shared_most_ns =
                        stamps.shared_most_ns.max(at_ns.saturating_sub(sent_ns.max(heard_ns)));
                }
                debug_assert!(stamps.card <= stamps.kernel);
                debug_assert!(stamps.shared <= stamps.kernel);
                at_ns
            }
            _ => {
                stamps.client += 1;
                now
            }
        }
    }

    /// The reply at the head of a connection's queue has come; `shared` says that other bytes came with it, behind it.
    fn replied(&mut self, id: u32, then: Then, moment: ArrivalMoment, shared: bool) {
        let c = &mut self.pool.connections[id as usize];
        debug_assert!(!c.awaited.is_empty(), "what nothing waits for is refused before");
        let Some(reply) = c.awaited.pop_front() else { return };
        c.timeouts = 0;
        if reply.preamble {
            return;
        }
        if !self.operations.is_current(reply) {
            self.recorder.now.late += 1;
            return;
        }
        match then {
            Then::Wait => {}
            Then::Send { first, count } => self.send_commands(reply.op, first, count),
            Then::Finish(outcome) => {
                let came_ns = self.arrival_time_ns(reply.op, moment, shared);
                // By the client's clock it is not known when it came.
                let too_late = came_ns < moment.now && self.came_too_late(reply.op, came_ns);
                self.finish(reply.op, if too_late { Outcome::TimedOut } else { outcome }, came_ns);
            }
            Then::Again { outcome, pause_ns } => {
                self.park_command(reply.op, reply.command, outcome, pause_ns, moment.now);
            }
            Then::Redirect { node, ask } => self.redirect(reply.op, reply.command, node, ask, moment.now),
        }
    }
}
